//! Calls of values: `f(x)` where `f` is a variable, `fs[0](x)`, `make(3)(x)`. A closure is called, a module runs its
//! `forward`; what a variable holds and cannot be called leaves the name to a function.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::{Natives, raw};
use crate::script::bind::signed::MAX_ARITY;
use crate::script::host::Host;
use crate::script::values::module::fields;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Dynamic, Engine, EvalContext, Expr, Expression, FnPtr, NativeCallContext};
use std::sync::Arc;

/// What runs when a value is called.
pub enum Callee {
    Closure(FnPtr),
    /// The `forward` of a module, which sees the module as `this`.
    Forward(FnPtr),
}

/// How a value is called; none where it cannot be.
pub fn callee(value: &Dynamic) -> Option<Callee> {
    if value.is_fnptr() {
        return value.read_lock::<FnPtr>().map(|pointer| Callee::Closure(pointer.clone()));
    }
    let map = fields(value)?;
    let forward = map.get("forward")?.read_lock::<FnPtr>()?.clone();
    Some(Callee::Forward(forward))
}

/// Calls a value, if it can be called.
pub fn apply(context: &NativeCallContext, value: &mut Dynamic, arguments: Vec<Dynamic>) -> Option<Native> {
    Some(match callee(value)? {
        Callee::Closure(pointer) => pointer.call_raw(context, None, arguments),
        Callee::Forward(pointer) => pointer.call_raw(context, Some(value), arguments),
    })
}

/// The error of a call of what is no function.
pub fn not_callable(value: &Dynamic) -> Box<Diag> {
    let kind = type_names::of_value(value);
    Diag::error(code::TYPE, format!("{kind} cannot be called"))
        .help("closures, functions (`Fn(\"name\")`) and modules with a `forward` can be called")
}

/// `x.__apply(a, b)`, which the source pass writes for `x(a, b)` where `x` is no name.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=MAX_ARITY {
        let shared = host.clone();
        raw(module, "__apply", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let Some((value, arguments)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
            let arguments = arguments.iter_mut().map(|value| value.flatten_clone()).collect();
            match apply(&context, value, arguments) {
                Some(result) => result,
                None => Err(shared.raise(&context, not_callable(value), "")),
            }
        });
    }
}

/// `__either(f, f(x))`, which the source pass writes for `f(x)` where `f` is a variable, or a constant that a function
/// names: `__either(global::F, F(x))`.
pub fn install(engine: &mut Engine) {
    let either = |context: &mut EvalContext, inputs: &[Expression]| -> Native {
        let (Expr::Variable(variable, ..), Expr::FnCall(call, at)) = (&*inputs[0], &*inputs[1]) else {
            return context.eval_expression_tree(&inputs[1]);
        };
        let name = &variable.1;
        let outer = match variable.2.path.is_empty() {
            true => None,
            false => Some(context.eval_expression_tree(&inputs[0])?),
        };
        if outer.as_ref().or(context.scope().get(name)).and_then(callee).is_none() {
            return context.eval_expression_tree(&inputs[1]);
        }
        let arguments: Result<Vec<Dynamic>, _> =
            call.args.iter().map(|argument| context.eval_expression_tree(&argument.into())).collect();
        let arguments = arguments?;
        // A map with a `forward` is called where it stands; what cannot be changed is called as a copy.
        let place = if outer.is_some() { None } else { context.scope_mut().get_mut(name).map(Dynamic::take) };
        let is_taken = place.is_some();
        let value = outer.or(place).or_else(|| context.scope().get(name).cloned());
        let mut value = value.unwrap_or(Dynamic::UNIT);
        let global = context.global_runtime_state();
        let calls = NativeCallContext::new_with_all_fields(context.engine(), name, global.source(), global, *at);
        let result = apply(&calls, &mut value, arguments);
        if let Some(place) = context.scope_mut().get_mut(name).filter(|_| is_taken) {
            *place = value;
        }
        result.unwrap_or_else(|| context.eval_expression_tree(&inputs[1]))
    };
    let symbols = ["__either", "(", "$expr$", ",", "$expr$", ")"];
    // The words are constant and well formed: this cannot fail.
    let installed = engine.register_custom_syntax(symbols, false, either).map(drop);
    debug_assert!(installed.is_ok());
}
