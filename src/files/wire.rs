//! Element types as files store them, and their conversion to ours.

use super::array::Array;
use crate::base::diag::Result;
use crate::base::dtype::DType;

/// Our dtypes, or an unsigned type that a wider one of ours holds without loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    Same(DType),
    /// Becomes `i32`.
    U16,
    /// Becomes `i64`.
    U32,
}

impl Wire {
    /// Bytes of one element in the file.
    pub fn size_bytes(self) -> usize {
        match self {
            Wire::Same(dtype) => dtype.size_bytes(),
            Wire::U16 => 2,
            Wire::U32 => 4,
        }
    }

    /// Bytes that are in reverse order in the other byte order: of a complex number each part.
    pub fn swapped_bytes(self) -> usize {
        match self {
            Wire::Same(dtype) => dtype.real_part().size_bytes(),
            _ => self.size_bytes(),
        }
    }

    /// An array from the file's little-endian bytes.
    pub fn array(self, shape: Vec<usize>, bytes: Vec<u8>) -> Result<Array> {
        match self {
            Wire::Same(dtype) => Array::new(dtype, shape, bytes),
            Wire::U16 => {
                let wide = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]) as i32;
                Array::of(&bytes.chunks_exact(2).map(wide).collect::<Vec<_>>(), &shape)
            }
            Wire::U32 => {
                let wide = |four: &[u8]| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as i64;
                Array::of(&bytes.chunks_exact(4).map(wide).collect::<Vec<_>>(), &shape)
            }
        }
    }
}
