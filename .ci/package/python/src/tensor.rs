//! Tensors in Python.

use crate::capsule;
use crate::failure::Failure;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tscript::Tensor as Inner;

/// A tensor of a script. NumPy, PyTorch and others take its memory without a copy, by DLPack.
#[pyclass(module = "tscript", frozen)]
pub struct Tensor(pub Inner);

#[pymethods]
impl Tensor {
    /// Sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// The name of the type of the elements, such as `f32`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype().name()
    }

    /// `cpu`, or `cuda:0` and so on.
    #[getter]
    fn device(&self) -> String {
        self.0.device()
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = self.0.device();
        match device.strip_prefix("cuda:").and_then(|index| index.parse().ok()) {
            Some(index) => (2, index),
            None => (1, 0),
        }
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() || dl_device.is_some_and(|device| device != (1, 0)) {
            return Err(PyBufferError::new_err(
                "only memory of the host passes by DLPack: move the tensor with `.cpu()`",
            ));
        }
        let share = || match copy {
            Some(true) => {
                Inner::from_bytes(self.0.dtype(), &self.0.shape(), self.0.to_bytes()?).and_then(|copy| copy.to_dlpack())
            }
            _ => self.0.to_dlpack(),
        };
        let shared = py.detach(share).map_err(Failure::from)?;
        capsule::export(py, shared, max_version.is_some_and(|(major, _)| major >= 1))
    }

    /// The tensor as an array of NumPy, over the same memory.
    fn numpy<'py>(slf: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("from_dlpack", (slf,))
    }

    /// The tensor as one of PyTorch, over the same memory.
    fn torch<'py>(slf: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("torch")?.call_method1("from_dlpack", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("tscript.Tensor(shape={:?}, dtype={}, device={})", self.0.shape(), self.0.dtype(), self.0.device())
    }
}
