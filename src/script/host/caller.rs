//! Calls closures of a script without a native call context: for iterators, which the interpreter calls without one, and
//! for backward, whose walk knows of no script.

use crate::base::code;
use crate::base::diag::Diag;
use crate::base::span::Site;
use crate::script::host::Host;
use crate::script::values::calling;
use crate::script::values::raise::Native;
use crate::script::values::raise::raise;
use rhai::{Dynamic, Engine, EvalAltResult, FnPtr, GlobalRuntimeState, NativeCallContext, Position};
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

    /// The session in which it was made.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    pub fn call(&self, closure: &FnPtr, arguments: Vec<Dynamic>) -> Native {
        self.call_on(closure, None, arguments)
    }

    /// The same with a value as its `this`.
    pub fn call_on(&self, closure: &FnPtr, this: Option<&mut Dynamic>, arguments: Vec<Dynamic>) -> Native {
        // The session may have ended, and the iterator with it.
        let Some(engine) = self.host.interpreter.lock().upgrade() else {
            return Err(raise(Diag::error(code::INTERNAL, "the session has ended"), self.at));
        };
        let context: NativeCallContext = (&*engine, closure.fn_name(), None, &self.global, self.at).into();
        let before = self.host.rt.calls.enter_silently(self.user);
        let result = calling::call(&context, closure, this, arguments);
        self.host.rt.calls.leave(before);
        result
    }
}

/// The message of the diagnostic that stands for an error of script code on its way through the floors below.
const THROWN: &str = "an error of the script";

impl Host {
    /// A diagnostic that stands for an error of script code, which `raise` gives back.
    #[cold]
    pub fn carried(&self, error: Box<EvalAltResult>) -> Box<Diag> {
        *self.thrown.lock() = Some(error);
        let mut diag = Diag::error(code::INTERNAL, THROWN);
        // Nobody below adds places to it.
        diag.is_late = true;
        diag
    }

    /// The error that a diagnostic stands for.
    #[cold]
    pub fn thrown(&self, diag: &Diag) -> Option<Box<EvalAltResult>> {
        if diag.is_late && diag.message == THROWN { self.thrown.lock().take() } else { None }
    }
}

/// The interpreter, as `Host` holds it; empty before the session is built.
pub type Interpreter = parking_lot::Mutex<Weak<Engine>>;
