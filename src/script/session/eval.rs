//! `eval(text)`: the text is a source of its own, with its own lines, and runs in the scope of the call. It sees the
//! functions, imports and constants of the text that it stands in; what it declares itself, its own functions see.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::error::{self, Context};
use crate::script::host::Host;
use crate::script::machine::{self, Unit};
use crate::script::session::hooks::SessionHooks;
use crate::script::source::{Hooks, Source, SourceKind};
use crate::script::values::raise::{Native, raise, site_of};
use crate::script::values::type_names;
use rhai::{AST, Dynamic, Engine, EvalAltResult, EvalContext, Expression, GlobalRuntimeState, Position, Shared};
use std::cell::LazyCell;
use std::sync::Arc;

/// What the functions and closures of a text refer to, which may outlive its run.
///
/// Bound: the texts of a session that are kept have 65,535 lines together.
struct Kept {
    _unit: Arc<Unit>,
    _state: GlobalRuntimeState,
}

pub fn register(engine: &mut Engine, host: &Arc<Host>) {
    let hooks: Arc<dyn Hooks> = Arc::new(SessionHooks(host.clone()));
    let host = host.clone();
    let eval = move |context: &mut EvalContext, inputs: &[Expression]| -> Native {
        let value = context.eval_expression_tree(&inputs[0])?;
        run(context, &host, &hooks, &value, inputs[0].position())
    };
    // It does change the scope, which the compiler knows. Rhai's parser would put a constant on its stack in the middle of
    // `v = eval(..)`, and take that for the variable that is assigned.
    let registered = engine.register_custom_syntax([machine::EVAL, "(", "$expr$", ")"], false, eval).map(drop);
    debug_assert!(registered.is_ok());
}

fn run(context: &mut EvalContext, host: &Host, hooks: &Arc<dyn Hooks>, text: &Dynamic, at: Position) -> Native {
    if context.global_runtime_state().level >= context.engine().max_call_levels() {
        return Err(Box::new(EvalAltResult::ErrorStackOverflow(at)));
    }
    let source =
        source_of(context, host, text).map_err(|diag| raise(diag.or_at(host.origin_at(site_of(at)), ""), at))?;
    host.passing(&source, || {
        let ast = compiled(context, host, &source, at)?;
        let engine = context.engine();
        let (ast, unit) = machine::adopt(engine, &ast, hooks)?;
        let mut global = state(context.global_runtime_state(), &ast);
        let result = machine::evaluate(engine, &mut global, context.scope_mut(), ast.statements(), &unit);
        if ast.has_functions() {
            host.evaluated.lock().push(Box::new(Kept { _unit: unit, _state: global }));
        }
        result
    })
}

fn source_of(context: &EvalContext, host: &Host, text: &Dynamic) -> Result<Arc<Source>, Box<Diag>> {
    let Some(text) = text.read_lock::<rhai::ImmutableString>().map(|text| text.to_string()) else {
        let text = format!("`eval` expects a string, not {}", type_names::of_value(text));
        return Err(Diag::error(code::ARGUMENT_TYPE, text));
    };
    let scope = context.scope();
    let known = context.global_runtime_state().constants.as_ref().and_then(|known| known.read().ok());
    let around = known.iter().flat_map(|known| known.keys()).filter(|name| !scope.contains(name));
    host.note_variables(scope, around.map(|name| name.to_string()).collect());
    host.add_source(SourceKind::Eval, "eval", &text)
}

fn compiled(context: &EvalContext, host: &Host, source: &Source, at: Position) -> Result<AST, Box<EvalAltResult>> {
    let known = LazyCell::new(|| host.known());
    // Not a copy of them, which a loop over `eval` would make for each text.
    let sources = host.sources.read();
    let names = Context { sources: &sources, known: &known };
    error::compile(context.engine(), context.scope(), source, &names).map_err(|mut errors| raise(errors.remove(0), at))
}

/// The state of the place of the `eval`, in which the text's own constants come to those that there are. The text counts
/// as a call.
fn state(around: &GlobalRuntimeState, ast: &AST) -> GlobalRuntimeState {
    let mut global = around.clone();
    global.level += 1;
    global.lib.push(ast.shared_lib().clone());
    // Rhai keeps constants for functions where they are declared outside of everything.
    global.scope_level = 0;
    let known = global.constants.as_ref().and_then(|known| known.read().ok().map(|known| known.clone()));
    global.constants = Some(Shared::new(rhai::Locked::new(known.unwrap_or_default())));
    global
}
