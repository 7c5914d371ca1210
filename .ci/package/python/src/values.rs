//! Values of Python for scripts, and of scripts for Python.

use crate::capsule;
use crate::tensor::Tensor;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::collections::BTreeMap;
use tscript::Value;

/// Bound: nesting of lists and dictionaries; one that holds itself has no end.
const NESTING: usize = 64;

/// A value of a script that Python has no equivalent for, such as a function: it can be kept and passed back.
#[pyclass(module = "tscript", frozen)]
pub struct Opaque(tscript::Opaque);

#[pymethods]
impl Opaque {
    fn __repr__(&self) -> String {
        format!("tscript.Opaque({})", self.0.type_name())
    }
}

/// Numbers, strings, lists, dictionaries, `None`, tensors, and whatever has `__dlpack__`.
pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > NESTING {
        return Err(PyValueError::new_err(format!("values are nested more than {NESTING} deep")));
    }
    if object.is_none() {
        return Ok(Value::Unit);
    }
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Ok(Value::Tensor(tensor.get().0.clone()));
    }
    if let Ok(opaque) = object.cast::<Opaque>() {
        return Ok(Value::Other(opaque.get().0.clone()));
    }
    if object.is_instance_of::<PyString>() {
        return Ok(Value::Str(object.extract()?));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return Ok(Value::Array(object.try_iter()?.map(|item| nested(&item?, depth + 1)).collect::<PyResult<_>>()?));
    }
    if let Ok(map) = object.cast::<PyDict>() {
        let entry =
            |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((name.extract()?, nested(&value, depth + 1)?));
        return Ok(Value::Map(map.iter().map(entry).collect::<PyResult<BTreeMap<String, Value>>>()?));
    }
    if object.hasattr("__dlpack__")? && object.hasattr("__dlpack_device__")? {
        return capsule::import(object).map(Value::Tensor);
    }
    number(object)
}

/// Numbers of Python, and of NumPy.
fn number(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(value) = object.extract::<bool>() {
        return Ok(Value::Bool(value));
    }
    if object.is_instance_of::<PyInt>() || object.hasattr("__index__")? {
        let too_large = |_| PyOverflowError::new_err("an integer of a script has 64 bits");
        return object.extract().map(Value::Int).map_err(too_large);
    }
    if object.is_instance_of::<PyFloat>() || object.hasattr("__float__")? {
        return object.extract().map(Value::Float);
    }
    Err(PyTypeError::new_err(format!("a script has no value for a `{}`", object.get_type().name()?)))
}

pub fn to_python<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Unit => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Value::Int(value) => value.into_pyobject(py)?.into_any(),
        Value::Float(value) => value.into_pyobject(py)?.into_any(),
        Value::Str(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Map(entries) => {
            let map = PyDict::new(py);
            entries.into_iter().try_for_each(|(name, value)| map.set_item(name, to_python(py, value)?))?;
            map.into_any()
        }
        Value::Tensor(tensor) => Bound::new(py, Tensor(tensor))?.into_any(),
        Value::Other(opaque) => Bound::new(py, Opaque(opaque))?.into_any(),
        other => return Err(PyTypeError::new_err(format!("Python has no value for {other:?}"))),
    })
}
