//! The end of a session: its values are taken apart, so that reference cycles are freed as well.
//!
//! Not: cycles that no variable leads to any more. Nothing traces references between values, so such a cycle stays in
//! memory.

use crate::script::host::Host;
use crate::script::values::module::module;
use crate::script::values::types::Cell;
use rhai::{Array, Dynamic, FnPtr, Map, Scope};
use std::sync::Arc;

/// Dropped after everything else of a session.
pub struct End(pub Arc<Host>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.rt.session_ends();
        // A module's native functions hold the host, which holds the module; so do functions of `eval`'s texts.
        self.0.loaded.write().clear();
        self.0.evaluated.lock().clear();
    }
}

/// Empties the variables of a scope, and what they share with closures and cells.
pub fn take_apart(scope: &mut Scope<'static>) {
    let mut left: Vec<Dynamic> = std::mem::take(scope).into_iter().map(|(_, value, _)| value).collect();
    while let Some(value) = left.pop() {
        parts_of(value, &mut left);
    }
}

/// Moves the elements of a value to `parts`. Shared variables and cells become empty for all their holders, so that
/// each is visited at most once more.
fn parts_of(mut value: Dynamic, parts: &mut Vec<Dynamic>) {
    if value.is_shared() {
        if let Some(mut inside) = value.write_lock::<Dynamic>() {
            parts.push(std::mem::take(&mut *inside));
        }
    } else if let Some(cell) = value.read_lock::<Cell>().map(|cell| cell.clone()) {
        parts.push(cell.with(std::mem::take));
    } else if let Some(module) = module(&value) {
        parts.extend(module.change(std::mem::take).into_iter().flat_map(Map::into_values));
    } else if value.is::<FnPtr>() {
        parts.extend(value.cast::<FnPtr>().iter_curry().cloned());
    } else if value.is_array() {
        parts.extend(value.cast::<Array>());
    } else if value.is_map() {
        parts.extend(value.cast::<Map>().into_values());
    }
}
