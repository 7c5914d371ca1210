//! Texts with their functions compiled.

use crate::script::host::Host;
use crate::script::machine;
use crate::script::machine::Unit;
use crate::script::session::hooks::SessionHooks;
use crate::script::source::Hooks;
use rhai::{AST, Engine, EvalAltResult};
use std::sync::Arc;

/// The text with its functions compiled, and what its top level needs to know of them.
pub fn compiled(engine: &Engine, host: &Arc<Host>, ast: &AST) -> Result<(AST, Arc<Unit>), Box<EvalAltResult>> {
    let hooks: Arc<dyn Hooks> = Arc::new(SessionHooks(host.clone()));
    machine::adopt(engine, ast, &hooks)
}
