//! State that persists from one text of a session to the next besides variables and functions: imported modules, and
//! constants as `global::NAME`. Rhai drops both at the end of each evaluation.

use crate::script::machine;
use crate::script::machine::Unit;
use rhai::{AST, Dynamic, Engine, EvalAltResult, GlobalRuntimeState, Scope};
use std::sync::Arc;

/// Imports and constants of the top level.
pub struct Persistent(GlobalRuntimeState);

impl Persistent {
    pub fn new(engine: &Engine) -> Persistent {
        Persistent(engine.new_global_runtime_state())
    }

    /// Names of imported modules.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.0.scan_imports_raw().map(|(name, _)| name.as_str())
    }

    /// The module that was imported under a name.
    pub fn module(&self, name: &str) -> Option<&rhai::Module> {
        self.0.iter_imports().find(|(known, _)| *known == name).map(|(_, module)| module)
    }

    /// The state in which functions of earlier texts run.
    pub fn state(&self) -> GlobalRuntimeState {
        self.0.clone()
    }

    /// Evaluates a text with the state that earlier texts left, and keeps the state that it leaves, also when it
    /// fails.
    pub fn evaluate(
        &mut self,
        engine: &Engine,
        scope: &mut Scope<'static>,
        ast: &AST,
        unit: &Arc<Unit>,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let mut global = self.0.clone();
        global.lib.push(ast.shared_lib().clone());
        let result = machine::evaluate(engine, &mut global, scope, ast.statements(), unit);
        unshadow(scope);
        self.keep(engine, global, scope);
        result
    }

    /// A new state, so that counts of operations and the like begin at zero.
    fn keep(&mut self, engine: &Engine, global: GlobalRuntimeState, scope: &Scope) {
        let mut fresh = engine.new_global_runtime_state();
        let count = global.num_imports();
        for (index, (name, module)) in global.scan_imports_raw().enumerate() {
            // Of several imports under one name the last one counts.
            if !global.scan_imports_raw().skip(index + 1).take(count).any(|(later, _)| later == name) {
                fresh.push_import(name.clone(), module.clone());
            }
        }
        fresh.constants = global.constants;
        let mut constants = scope.iter_raw().filter(|(_, constant, _)| *constant).peekable();
        if constants.peek().is_some()
            && let Ok(mut known) = fresh.constants.get_or_insert_with(Default::default).write()
        {
            known.extend(constants.map(|(name, _, value)| (name.into(), value.flatten_clone())));
        }
        self.0 = fresh;
    }
}

/// A variable that is hidden by a later one of the same name cannot be used any more: its tensor must not hold
/// memory.
fn unshadow(scope: &mut Scope<'static>) {
    let mut seen = std::collections::HashSet::new();
    // Rhai iterates from the latest to the earliest.
    let entries = scope.iter_raw().map(|(name, constant, _)| (seen.insert(name.to_string()), constant));
    let kept: Vec<(bool, bool)> = entries.collect();
    if kept.iter().all(|(is_latest, _)| *is_latest) {
        return;
    }
    let values = std::mem::take(scope).into_iter().zip(kept.into_iter().rev());
    for ((name, value, _), (_, constant)) in values.filter(|(_, (is_latest, _))| *is_latest) {
        if constant {
            scope.push_constant_dynamic(name, value);
        } else {
            scope.push_dynamic(name, value);
        }
    }
}
