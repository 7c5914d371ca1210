//! Steps of optimizers, and clipping and scaling of gradients.

pub mod adagrad_adadelta_rmsprop;
pub mod adam_variants;
pub mod asgd_rprop;
pub mod clip_grad;
pub mod grad_scale;
pub mod sgd_lion;
pub mod step;
