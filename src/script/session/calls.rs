//! Calls from the host program into functions of its scripts: state of the interpreter that is made once and used by
//! call after call. Most of a call's cost would else be looking up the native functions that it uses.

use crate::script::session::lasting::Lasting;
use rhai::{AST, Caches, Dynamic, Engine, EvalAltResult, EvalContext, GlobalRuntimeState, Scope};
use smallvec::SmallVec;

/// Made after a text has run, for the calls until the next one runs.
#[derive(Default)]
pub struct Calls(Option<Ready>);

struct Ready {
    global: GlobalRuntimeState,
    caches: Caches,
}

impl Calls {
    /// Another text has run: there are other functions, imports or constants.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// Calls a function of the scripts, or a native one.
    pub fn call(
        &mut self,
        engine: &Engine,
        lasting: &Lasting,
        functions: &AST,
        name: &str,
        values: &mut [Dynamic],
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        // Taken out: a panic in the midst of a call leaves nothing half done behind.
        let mut ready = self.0.take().unwrap_or_else(|| {
            let mut global = lasting.state();
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
