//! The end of a session: its values are taken apart, so that those that hold themselves are gone as well.
//!
//! Not: values that hold themselves and that no variable leads to any more. Nobody counts the references between
//! values; what such a loop holds stays.

use crate::script::host::Host;
use crate::script::values::types::Cell;
use rhai::{Array, Dynamic, FnPtr, Map, Scope};
use std::sync::Arc;

/// Goes after everything else of a session.
pub struct End(pub Arc<Host>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.rt.session_ends();
        // Native functions of a module hold the host, which holds the module.
        self.0.loaded.write().clear();
    }
}

/// Empties the variables of a scope, and whatever they share with closures and cells.
pub fn take_apart(scope: &mut Scope<'static>) {
    let mut left: Vec<Dynamic> = std::mem::take(scope).into_iter().map(|(_, value, _)| value).collect();
    while let Some(value) = left.pop() {
        parts_of(value, &mut left);
    }
}

/// Moves what a value holds to `parts`. A shared variable and a cell are empty afterwards, for all who have them: what
/// is inside leads back to them at most once.
fn parts_of(mut value: Dynamic, parts: &mut Vec<Dynamic>) {
    if value.is_shared() {
        if let Some(mut inside) = value.write_lock::<Dynamic>() {
            parts.push(std::mem::take(&mut *inside));
        }
    } else if let Some(cell) = value.read_lock::<Cell>().map(|cell| cell.clone()) {
        parts.push(cell.with(std::mem::take));
    } else if value.is::<FnPtr>() {
        parts.extend(value.cast::<FnPtr>().iter_curry().cloned());
    } else if value.is_array() {
        parts.extend(value.cast::<Array>());
    } else if value.is_map() {
        parts.extend(value.cast::<Map>().into_values());
    }
}
