//! Floor 4: tensors as users know them: calls, gradients, observation.

mod autocast;
pub mod check;
mod devices;
pub mod each;
pub mod engine;
pub mod grad;
pub mod history;
pub mod index;
mod inplace;
pub mod movement;
mod needed_nodes;
pub mod observe;
mod slices;
