//! Types of the language that Rhai does not have.

use crate::base::device_id::DeviceId;
use crate::base::dtype::DType;
pub use crate::op::tensor::Tensor;
use rhai::Dynamic;

/// A dtype as a value: `x.dtype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeValue(pub DType);

/// A device as a value: `x.device`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceValue(pub DeviceId);

/// The comma form of an index, `x[a, b]`, made by the source pass.
#[derive(Clone, Debug)]
pub struct IndexTuple(pub Vec<Dynamic>);

/// `slice(start, stop, step)`; open ends are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SliceValue {
    pub start: Option<i64>,
    pub stop: Option<i64>,
    pub step: i64,
}
