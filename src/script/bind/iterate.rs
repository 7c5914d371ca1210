//! What `for` goes over: the rows of a tensor, which are views, and whatever else has an iterator.

use crate::args;
use crate::base::code;
use crate::base::diag::Diag;
use crate::op::emit::Emit;
use crate::op::rows::shape::view::SELECT;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::panics::Items;
use crate::script::values::raise::Native;
use crate::script::values::raise::at_iterator;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use rhai::packages::{Package, StandardPackage};
use rhai::{Blob, Dynamic, GlobalRuntimeState};
use std::any::TypeId;
use std::sync::{Arc, LazyLock, Weak};

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    crate::script::values::panics::place_iterator(&mut module.module, TypeId::of::<Tensor>(), move |value| match value
        .try_cast::<Tensor>(
    ) {
        Some(tensor) => Box::new(rows(&shared, tensor)),
        None => Box::new(std::iter::empty()),
    });
    // Rhai's own gives bytes, which take part in no arithmetic.
    crate::script::values::panics::place_iterator(&mut module.module, TypeId::of::<Blob>(), |value| {
        let bytes = value.try_cast::<Blob>().unwrap_or_default();
        Box::new(bytes.into_iter().map(|byte| Ok(Dynamic::from_int(byte.into()))))
    });
}

/// The rows of a tensor. An iterator has no source position of its own: errors point at where the tensor was created.
pub fn rows(host: &Arc<Host>, tensor: Tensor) -> impl Iterator<Item = Native> + use<> {
    let host = host.clone();
    let origin = tensor.0.made;
    // A tensor without dimensions has one row, and reading it is an error.
    let count = tensor.shape().first().copied();
    (0..count.unwrap_or(1)).map(move |at| {
        if count.is_none() {
            let diag = Diag::error(code::SHAPE, "a 0-dimensional tensor has no rows to go over");
            return Err(at_iterator(diag.help("`x.item()` is its value"), origin));
        }
        let mut engine = Engine::new(host.rt.clone(), origin);
        let row = engine.call_row(&SELECT, args![&tensor, 0i64, at as i64]);
        let row = row.inspect(|row| engine.made_together(std::slice::from_ref(row)));
        row.map(Dynamic::from).map_err(|diag| at_iterator(diag, origin))
    })
}

/// Iterators of Rhai's own types.
static STANDARD: LazyLock<GlobalRuntimeState> = LazyLock::new(|| {
    let mut state = rhai::Engine::new_raw().new_global_runtime_state();
    state.push_import("standard", StandardPackage::new().as_shared_module());
    state
});

/// What `for` goes over in a value; none where it has nothing to go over.
pub fn items(host: &Host, value: Dynamic) -> Option<Items> {
    let kind = value.type_id();
    let engine = host.interpreter.lock().upgrade()?;
    let natives = host.native_module.get().and_then(Weak::upgrade)?;
    let mut state = engine.new_global_runtime_state();
    state.push_import("natives", natives);
    match state.get_iter(kind) {
        Some(open) => Some(open(value)),
        None => STANDARD.get_iter(kind).map(|open| open(value)),
    }
}
