//! Steps of optimizers, and clipping of gradients.

pub mod adaptive;
pub mod asgd_rprop;
pub mod clip_grad;
pub mod optimizers;
