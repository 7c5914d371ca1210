//! Attributes of an operation: every argument that is not a tensor, already checked and normalized.

use super::device_id::DeviceId;
use super::dtype::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// A list of integers: dims, sizes, paddings; up to four without an allocation, since every argument has room for it.
pub type Ints = SmallVec<[i64; 4]>;

/// The attributes of a kernel.
pub type Attrs = SmallVec<[Attr; 1]>;

/// A string. Most are static strings of the op table, which are not allocated.
#[derive(Clone, Debug)]
pub enum Text {
    Known(&'static str),
    Given(Arc<str>),
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Known(text) => text,
            Text::Given(text) => text,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        **self == **other
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self)
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Text {
        Text::Known(text)
    }
}

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
    Str(Text),
    DType(DType),
    Device(DeviceId),
}
