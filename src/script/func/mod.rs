//! The module `func`: transforms of functions, as PyTorch's `torch.func`. What they do with the gradient graph is in
//! `tensor/transforms.rs`, what a tensor with samples is in `tensor/batch/`.

mod calls;
mod forward;
pub mod gradients;
mod jacobian;
mod modules;
mod reverse;
mod tree;
mod vmap;

use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use std::sync::Arc;

/// The functions of the module, which needs no import.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut natives = Natives::default();
    reverse::register(&mut natives, host);
    forward::register(&mut natives, host);
    jacobian::register(&mut natives, host);
    vmap::register(&mut natives, host);
    modules::register(&mut natives, host);
    natives
}
