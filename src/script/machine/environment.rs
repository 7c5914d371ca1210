//! What the code of a text sees besides its variables: its functions, imported modules and constants. A function runs
//! among those of its own text, whoever calls it: a closure that a module's function calls sees the constants of the text
//! in which it is written, not the module's.

use super::callback::Running;
use super::run::Machine;
use super::unit::Unit;
use parking_lot::RwLock;
use rhai::{Dynamic, GlobalRuntimeState, ImmutableString, Locked, Module, Shared};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

type Constants = Locked<BTreeMap<ImmutableString, Dynamic>>;

/// What the top level of a text has. The session holds it; the text is held by its functions, which are a part of it.
#[derive(Default)]
pub struct Environment(RwLock<Arc<Seen>>);

#[derive(Default)]
struct Seen {
    libraries: Vec<Weak<Module>>,
    imports: Vec<(ImmutableString, Weak<Module>)>,
    constants: Weak<Constants>,
}

impl Environment {
    /// Keeps what the top level has by now.
    pub fn note(&self, global: &GlobalRuntimeState) {
        if !self.0.read().is_of(global) {
            *self.0.write() = Arc::new(Seen::of(global));
        }
    }
}

impl Seen {
    fn of(global: &GlobalRuntimeState) -> Seen {
        let import = |(name, module): (&ImmutableString, &Shared<Module>)| (name.clone(), Arc::downgrade(module));
        Seen {
            libraries: global.lib.iter().map(Arc::downgrade).collect(),
            imports: global.scan_imports_raw().map(import).collect(),
            constants: global.constants.as_ref().map_or(Weak::new(), Arc::downgrade),
        }
    }

    /// Whether nothing was added since: texts take nothing away.
    fn is_of(&self, global: &GlobalRuntimeState) -> bool {
        self.libraries.len() == global.lib.len()
            && self.imports.len() == global.num_imports()
            && global.constants.as_ref().map_or(Weak::new(), Arc::downgrade).ptr_eq(&self.constants)
    }
}

/// What was in effect before.
pub struct Before {
    pub unit: *const Unit,
    libraries: usize,
    imports: usize,
    constants: Option<Shared<Constants>>,
}

impl Before {
    /// What is in effect now.
    pub fn now(machine: &Machine) -> Before {
        Before {
            unit: machine.unit,
            libraries: machine.global.lib.len(),
            imports: machine.global.num_imports(),
            constants: machine.global.constants.clone(),
        }
    }

    /// Back to it.
    pub fn restore(self, machine: &mut Machine) {
        machine.global.constants = self.constants;
        machine.global.truncate_imports(self.imports);
        machine.global.lib.truncate(self.libraries);
        machine.unit = self.unit;
    }
}

impl Machine<'_> {
    /// Runs something in the environment of a text.
    pub(super) fn among<T>(&mut self, unit: &Arc<Unit>, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = Before::now(self);
        let _running = Running::enter(unit);
        self.unit = Arc::as_ptr(unit);
        let text = unit.environment.0.read().clone();
        self.global.lib.extend(text.libraries.iter().filter_map(Weak::upgrade));
        for (name, module) in &text.imports {
            if let Some(module) = module.upgrade() {
                self.global.push_import(name.clone(), module);
            }
        }
        self.global.constants = text.constants.upgrade();
        let result = run(self);
        before.restore(self);
        result
    }
}
