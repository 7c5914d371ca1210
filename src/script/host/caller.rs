//! Calls closures of a script without a native call context: for iterators, which the interpreter calls without one.

use crate::base::code;
use crate::base::diag::Diag;
use crate::base::span::Site;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::raise::raise;
use rhai::{Dynamic, Engine, FnPtr, GlobalRuntimeState, NativeCallContext, Position};
use std::sync::{Arc, Weak};

/// The environment of a closure: the functions and imports where the caller was created.
pub struct Caller {
    host: Arc<Host>,
    global: GlobalRuntimeState,
    at: Position,
    /// The user's position for what the library does in the closure.
    user: Site,
}

impl Caller {
    pub fn new(host: &Arc<Host>, context: &NativeCallContext) -> Caller {
        let global = context.global_runtime_state().clone();
        Caller { host: host.clone(), global, at: context.call_position(), user: host.origin(context).user }
    }

    pub fn call(&self, closure: &FnPtr, arguments: Vec<Dynamic>) -> Native {
        // The session may have ended, and the iterator with it.
        let Some(engine) = self.host.interpreter.lock().upgrade() else {
            return Err(raise(Diag::error(code::INTERNAL, "the session has ended"), self.at));
        };
        let context: NativeCallContext = (&*engine, closure.fn_name(), None, &self.global, self.at).into();
        let before = self.host.rt.calls.enter_silently(self.user);
        let result = closure.call_raw(&context, None, arguments);
        self.host.rt.calls.leave(before);
        result
    }
}

/// The interpreter, as `Host` holds it; empty before the session is built.
pub type Interpreter = parking_lot::Mutex<Weak<Engine>>;
