//! Calls from the host program into functions of its scripts: interpreter state that is created once and used by many
//! calls. Without it, most of the cost of a call would be looking up the native functions that it uses.

use crate::script::session::persistent::Persistent;
use rhai::{AST, Caches, Dynamic, Engine, EvalAltResult, EvalContext, GlobalRuntimeState, Scope};
use smallvec::SmallVec;

/// Created after a text has run, for the calls until the next text runs.
#[derive(Default)]
pub struct Calls(Option<Ready>);

struct Ready {
    global: GlobalRuntimeState,
    caches: Caches,
}

impl Calls {
    /// Another text has run: functions, imports or constants may have changed.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Calls a function of a script, or a native one.
    pub fn call(
        &mut self,
        engine: &Engine,
        persistent: &Persistent,
        functions: &AST,
        name: &str,
        values: &mut [Dynamic],
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        // Moved out, so that a panic during a call leaves no half-updated state.
        let mut ready = self.0.take().unwrap_or_else(|| {
            let mut global = persistent.state();
            global.lib.push(functions.shared_lib().clone());
            let mut caches = Caches::new();
            caches.push_fn_resolution_cache();
            Ready { global, caches }
        });
        let (imports, libraries) = (ready.global.num_imports(), ready.global.lib.len());
        let mut scope = Scope::new();
        let mut context = EvalContext::new(engine, &mut ready.global, &mut ready.caches, &mut scope, None);
        let mut arguments: SmallVec<[&mut Dynamic; 8]> = values.iter_mut().collect();
        let result = context.call_fn_raw(name, false, false, &mut arguments);
        let global = &mut ready.global;
        global.num_operations = Default::default();
        global.level = 0;
        global.scope_level = 0;
        global.truncate_imports(imports);
        global.lib.truncate(libraries);
        ready.caches.rewind_fn_resolution_caches(1);
        self.0 = Some(ready);
        result
    }
}
