//! Texts with their functions compiled, where the session compiles.

use crate::script::host::Host;
use crate::script::machine;
use crate::script::machine::Unit;
use crate::script::session::hooks::SessionHooks;
use crate::script::source::Hooks;
use rhai::{AST, Engine, EvalAltResult};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What runs functions and loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evaluator {
    /// Rhai's own evaluator.
    Rhai,
    /// The machine of `script/machine`.
    Compiled,
}

impl Evaluator {
    /// The one that the environment asks for.
    pub fn asked() -> Evaluator {
        match std::env::var("TSCRIPT_EVALUATOR").is_ok_and(|evaluator| evaluator == "rhai") {
            true => Evaluator::Rhai,
            false => Evaluator::Compiled,
        }
    }
}

/// The text with its functions compiled, and what its top level needs to know of them; no such where Rhai evaluates it.
pub fn compiled(engine: &Engine, host: &Arc<Host>, ast: &AST) -> Result<(AST, Option<Arc<Unit>>), Box<EvalAltResult>> {
    let hooks: Arc<dyn Hooks> = Arc::new(SessionHooks(host.clone()));
    if !host.compiles.load(Ordering::Relaxed) {
        machine::note_all_methods(&*hooks, ast);
        return Ok((ast.clone(), None));
    }
    machine::adopt(engine, ast, &hooks).map(|(ast, unit)| (ast, Some(unit)))
}
