//! The one handle of a host program: sources in, values out.

use super::host::{Host, Native};
use super::raise::ErrorValue;
use super::{bind, properties, show};
use crate::base::diag::Diag;
use crate::base::limits::{CALL_LEVELS, EXPR_DEPTH};
use crate::sched::runtime::{Options, Runtime};
use rhai::{AST, Dynamic, Engine, EvalAltResult, Module, Scope};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// A script session: interpreter, runtime, variables.
pub struct Session {
    engine: Engine,
    host: Arc<Host>,
    scope: Scope<'static>,
    functions: AST,
}

/// What ended a script.
pub type Failure = Box<EvalAltResult>;

impl Session {
    pub fn new(options: Options) -> Session {
        let host = Arc::new(Host {
            rt: Runtime::new(options),
            mark: AtomicU32::new(0),
            std_line: AtomicU32::new(u32::MAX),
            interrupt: AtomicBool::new(false),
            print: show::Printing::default(),
        });
        let engine = engine(&host);
        Session { engine, host, scope: Scope::new(), functions: AST::empty() }
    }

    /// Runs a text to its end, then waits for what it queued.
    pub fn run_str(&mut self, text: &str) -> Result<Dynamic, Failure> {
        let ast = self.engine.compile_with_scope(&self.scope, text).map_err(EvalAltResult::from)?;
        let value = self.engine.eval_ast_with_scope::<Dynamic>(&mut self.scope, &ast)?;
        self.host.rt.synchronize().map_err(|diag| super::raise::raise(diag, rhai::Position::NONE))?;
        Ok(value)
    }

    pub fn functions(&self) -> &AST {
        &self.functions
    }
}

fn engine(host: &Arc<Host>) -> Engine {
    let mut engine = Engine::new();
    engine.set_max_expr_depths(EXPR_DEPTH, EXPR_DEPTH);
    engine.set_max_call_levels(CALL_LEVELS);
    engine.register_type_with_name::<super::value::Tensor>("tensor");
    engine.register_type_with_name::<super::value::DTypeValue>("dtype");
    engine.register_type_with_name::<super::value::DeviceValue>("device");
    let mut module = Module::new();
    bind::register(&mut module, host);
    properties::register(&mut module, host);
    super::index::register(&mut module, host);
    printing(&mut module, host);
    engine.register_global_module(module.into());
    engine.on_print(|text| println!("{text}"));
    engine.on_debug(|text, _, _| println!("{text}"));
    engine
}

fn printing(module: &mut Module, host: &Arc<Host>) {
    // Rhai hands what `print` and `debug` return to its callback.
    for name in ["to_string", "to_debug", "print", "debug"] {
        let shared = host.clone();
        bind::raw(module, name, 1, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            match show::value(&shared, values[0]) {
                Ok(text) => Ok(text.into()),
                Err(diag) => Err(shared.raise(&context, diag, "")),
            }
        });
    }
}

/// The diagnostic inside a failure, when it is one of ours.
pub fn diagnostic(failure: &EvalAltResult) -> Option<Diag> {
    match failure {
        EvalAltResult::ErrorRuntime(value, _) => value.read_lock::<ErrorValue>().map(|e| (*e.0).clone()),
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) | EvalAltResult::ErrorInModule(_, inner, _) => {
            diagnostic(inner)
        }
        _ => None,
    }
}
