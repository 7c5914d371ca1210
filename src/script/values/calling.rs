//! Calls of closures by natives. A closure of any text of the session is run where it was compiled; Rhai alone finds those of
//! the text that runs, and of its imports.

use super::raise::Native;
use rhai::{Dynamic, FnPtr, NativeCallContext};
use std::sync::OnceLock;

/// Runs a compiled closure with values, which it takes; none where it is not one.
pub type Run = fn(&NativeCallContext, &FnPtr, Option<&mut Dynamic>, &mut Vec<Dynamic>) -> Option<Native>;

static RUN: OnceLock<Run> = OnceLock::new();

/// Sets what runs compiled closures, once in a process.
pub fn install(run: Run) {
    let _ = RUN.set(run);
}

/// Calls a closure, or a function by its name, with a value as its `this` or none.
pub fn call(
    context: &NativeCallContext,
    closure: &FnPtr,
    mut this: Option<&mut Dynamic>,
    mut values: Vec<Dynamic>,
) -> Native {
    if let Some(run) = RUN.get()
        && let Some(result) = run(context, closure, this.as_deref_mut(), &mut values)
    {
        return result;
    }
    closure.call_raw(context, this, values)
}
