//! An array on the host as a file holds it: dtype, shape and row-major little-endian bytes.
//!
//! Deliberately without arithmetic, strides or shared memory: a tensor is made from it by one copy.

pub use crate::base::bytes::Number;
use crate::base::bytes::element;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::numel;
use crate::fail;

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
    /// Free text besides the arrays; only `.safetensors` supports it.
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
        element(&self.data[index * size..], self.dtype)
    }
}
