//! Functions by which Rhai calls a field of a module as its method where the module stands in a value of a host program's
//! type: `state.model.forward(x)`. Rhai calls fields of maps
//! alone, so each method that is left to it gets a function for modules, of its name and number of arguments.

use parking_lot::Mutex;
use rhai::{Dynamic, FuncRegistration, ImmutableString, Module, RhaiFunc, Shared};
use std::any::TypeId;
use std::collections::HashSet;

/// The id of the module with these functions.
pub const METHODS: &str = "methods of modules";

/// The methods of the texts of a session that Rhai may meet.
#[derive(Default)]
pub struct Methods(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    known: HashSet<(ImmutableString, usize)>,
    module: Module,
    /// A copy of `module`, until the next method is noted.
    shared: Option<Shared<Module>>,
}

impl Methods {
    /// A method of this name with so many arguments is called; `make` gives the function for values of a type.
    pub fn note(&self, name: &ImmutableString, count: usize, of: TypeId, make: impl FnOnce(&str) -> RhaiFunc) {
        let mut noted = self.0.lock();
        if noted.known.contains(&(name.clone(), count)) {
            return;
        }
        noted.known.insert((name.clone(), count));
        let mut types = vec![TypeId::of::<Dynamic>(); count + 1];
        types[0] = of;
        FuncRegistration::new(name.as_str()).set_into_module_raw(&mut noted.module, types, make(name));
        noted.shared = None;
    }

    /// The functions; none if there are none.
    pub fn module(&self) -> Option<Shared<Module>> {
        let mut noted = self.0.lock();
        if noted.known.is_empty() {
            return None;
        }
        let Noted { module, shared, .. } = &mut *noted;
        module.set_id(METHODS);
        Some(shared.get_or_insert_with(|| module.clone().into()).clone())
    }
}
