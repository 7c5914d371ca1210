//! Attributes of an operation: every argument that is not a tensor, already checked and normalised.

use super::device_id::DeviceId;
use super::dtype::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// A list of integers: dims, sizes, paddings.
pub type Ints = SmallVec<[i64; 6]>;

/// One attribute.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Attr {
    /// Not given and without a default: PyTorch's `None`.
    #[default]
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Scalar(Scalar),
    Ints(Ints),
    Floats(Arc<[f64]>),
    Str(Arc<str>),
    DType(DType),
    Device(DeviceId),
}
