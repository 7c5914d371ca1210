//! `tscript._native`: sessions and tensors for Python. `tscript/__init__.py` is what users see.

mod capsule;
mod failure;
mod session;
mod tensor;
mod values;
mod worker;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::values::Opaque;
}
