//! One direction of one recurrent layer over all steps of time, and its gradient from what the forward pass kept.

pub mod host;
pub mod layer;

use super::family::family;

family! {
    "recurrent";
    kernels {
        "recurrent" RECURRENT: host::recurrent;
        "recurrent_grad" RECURRENT_GRAD: host::recurrent_grad;
    }
    headers {}
    structs {}
    texts Vec::new
}
