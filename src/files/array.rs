//! An array on the host as a file holds it: dtype, shape and row-major little-endian bytes.
//!
//! Deliberately without arithmetic, strides or shared memory: a tensor is made from it by one copy.

use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::numel;
use crate::fail;
use half::{bf16, f16};

/// Row-major, little-endian, without holes. Invariant: `data` holds exactly the elements of `shape`, and a
/// `bool` is 0 or 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    data: Vec<u8>,
}

/// What a file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    One(Array),
    Named(Named),
}

/// Arrays with names, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Named {
    pub arrays: Vec<(String, Array)>,
    /// Free text beside the arrays; only `.safetensors` has a place for it.
    pub metadata: Vec<(String, String)>,
}

impl Named {
    pub fn new(arrays: Vec<(String, Array)>) -> Named {
        Named { arrays, metadata: Vec::new() }
    }

    pub fn get(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|(known, _)| known == name).map(|(_, array)| array)
    }
}

/// A Rust type that is an element type.
pub trait Number: Copy {
    const DTYPE: DType;
    /// Appends the little-endian bytes.
    fn put(self, out: &mut Vec<u8>);
    /// From exactly as many bytes as the dtype has.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty = $dtype:ident),*) => {
        $(impl Number for $type {
            const DTYPE: DType = DType::$dtype;
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                <$type>::from_le_bytes(raw)
            }
        })*
    };
}

numbers!(u8 = U8, i8 = I8, i16 = I16, i32 = I32, i64 = I64, f16 = F16, bf16 = BF16, f32 = F32, f64 = F64);

impl Number for bool {
    const DTYPE: DType = DType::Bool;
    fn put(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }
    fn get(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

impl Array {
    /// Fails when `data` has not exactly the bytes that `shape` needs.
    pub fn new(dtype: DType, shape: Vec<usize>, mut data: Vec<u8>) -> Result<Array> {
        let needed = numel(&shape).and_then(|n| n.checked_mul(dtype.size_bytes()));
        if needed != Some(data.len()) {
            fail!(FILE_FORMAT, "{} bytes do not make an array {dtype} {shape:?}", data.len());
        }
        if dtype == DType::Bool {
            data.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
        }
        Ok(Array { dtype, shape, data })
    }

    /// Fails when `shape` has not as many elements as `values`.
    pub fn of<T: Number>(values: &[T], shape: &[usize]) -> Result<Array> {
        let mut data = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.put(&mut data));
        Array::new(T::DTYPE, shape.to_vec(), data)
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.data.len() / self.dtype.size_bytes()
    }

    /// The elements' bytes, row-major and little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.data
    }

    /// The elements, when `T` is the array's type.
    pub fn to_vec<T: Number>(&self) -> Option<Vec<T>> {
        (T::DTYPE == self.dtype).then(|| self.data.chunks_exact(T::DTYPE.size_bytes()).map(T::get).collect())
    }

    /// Element `index` in row-major order. Precondition: `index < numel()`.
    pub fn get(&self, index: usize) -> Scalar {
        let size = self.dtype.size_bytes();
        let bytes = &self.data[index * size..(index + 1) * size];
        match self.dtype {
            DType::Bool => Scalar::Bool(bool::get(bytes)),
            DType::U8 => Scalar::Int(u8::get(bytes) as i64),
            DType::I8 => Scalar::Int(i8::get(bytes) as i64),
            DType::I16 => Scalar::Int(i16::get(bytes) as i64),
            DType::I32 => Scalar::Int(i32::get(bytes) as i64),
            DType::I64 => Scalar::Int(i64::get(bytes)),
            DType::F16 => Scalar::Float(f16::get(bytes).to_f64()),
            DType::BF16 => Scalar::Float(bf16::get(bytes).to_f64()),
            DType::F32 => Scalar::Float(f32::get(bytes) as f64),
            DType::F64 => Scalar::Float(f64::get(bytes)),
        }
    }
}
