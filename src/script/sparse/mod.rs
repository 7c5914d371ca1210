//! Sparse tensors: values of the script made of ordinary tensors, the places and the values
//! ([0136](../../../docs/decisions/0136-sparse-tensors.md)). The floors below know nothing of them.

mod form;
mod making;
mod methods;
mod product;
pub mod rows;
mod softmax;

use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    making::register(natives, host);
    methods::register(natives, host);
}

/// The functions of the module `sparse`, which needs no import.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut natives = Natives::default();
    methods::module_functions(&mut natives, host);
    natives
}
