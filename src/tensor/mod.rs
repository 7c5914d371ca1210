//! Floor 4: tensors as users know them: calls, gradients, observation.

mod autocast;
pub mod batch;
pub mod check;
pub mod checkpoint;
pub mod custom_kernel;
mod devices;
pub mod each;
pub mod elementwise;
pub mod engine;
mod forward;
pub mod grad;
pub mod history;
pub mod hooks;
pub mod index;
mod inplace;
pub mod movement;
mod needed_nodes;
pub mod observe;
pub mod own_functions;
pub mod row_grads;
mod slices;
pub mod transforms;
