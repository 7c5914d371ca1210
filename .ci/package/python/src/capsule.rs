//! DLPack's capsules: tensors of other libraries in, ours out. Nothing is copied but memory that may only be read, and bools.

use crate::failure::Failure;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};
use tscript::{Dlpack, Tensor};

const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_PLAIN: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// Kinds of devices whose memory the host reaches: the host, and pinned memory.
const HOST: [i32; 2] = [1, 3];

/// A tensor over the memory of an object with `__dlpack__`.
pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let (kind, index): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if !HOST.contains(&kind) {
        let place = if kind == 2 { format!("cuda:{index}") } else { format!("a device of kind {kind}") };
        let text = format!("the tensor is on {place}; only memory of the host passes without a copy: give `x.cpu()`");
        return Err(PyBufferError::new_err(text));
    }
    let py = object.py();
    let words = PyDict::new(py);
    words.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&words)) {
        // Libraries of before DLPack 1.0 do not know the word.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__")?,
        other => other?,
    };
    Ok(Tensor::from_dlpack(taken(&capsule)?).map_err(Failure::from)?)
}

/// What a capsule holds; the capsule is marked as used.
fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Dlpack> {
    let holds = |name: &CStr| {
        // SAFETY: `capsule` is an object; the function answers 0 for what is no capsule of this name.
        unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 }
    };
    let (name, used) = match () {
        () if holds(VERSIONED) => (VERSIONED, USED_VERSIONED),
        () if holds(PLAIN) => (PLAIN, USED_PLAIN),
        () => return Err(PyTypeError::new_err("`__dlpack__` gave no unused capsule of DLPack")),
    };
    // SAFETY: the capsule has this name.
    let pointer: *mut c_void = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
    // SAFETY: as above; the new name is a constant.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    // SAFETY: an unused capsule of this name holds such a tensor, and whoever renames it takes it over. Its deleter may be
    // called from any thread, which DLPack asks for.
    let taken = unsafe {
        match name == VERSIONED {
            true => Dlpack::from_raw_versioned(pointer),
            false => Dlpack::from_raw(pointer),
        }
    };
    taken.map_err(PyBufferError::new_err)
}

/// A new capsule: a versioned one where the caller knows them.
pub fn export(py: Python<'_>, tensor: Dlpack, versioned: bool) -> PyResult<Bound<'_, PyAny>> {
    let (pointer, name) = match versioned {
        true => (tensor.into_raw_versioned(), VERSIONED),
        false => (tensor.into_raw(), PLAIN),
    };
    // SAFETY: the pointer is not null, the name a constant; `drop_unused` takes the tensor unless somebody else did.
    let capsule = unsafe { ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_unused)) };
    // SAFETY: a new reference, or null with an exception.
    let capsule = unsafe { Bound::from_owned_ptr_or_err(py, capsule)? };
    Ok(capsule.cast_into::<PyCapsule>()?.into_any())
}

/// Ends a capsule that nobody took the tensor out of.
unsafe extern "C" fn drop_unused(capsule: *mut ffi::PyObject) {
    for (name, versioned) in [(VERSIONED, true), (PLAIN, false)] {
        // SAFETY: Python calls this with a capsule that is about to end; one with an unused name still holds the tensor
        // that `export` put there.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1 {
                let pointer = ffi::PyCapsule_GetPointer(capsule, name.as_ptr());
                drop(if versioned { Dlpack::from_raw_versioned(pointer) } else { Dlpack::from_raw(pointer) });
            }
        }
    }
}
