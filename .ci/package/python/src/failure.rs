//! Errors of scripts as exceptions of Python: `tscript.Error` with the rendered message.

use pyo3::prelude::*;
use tscript::internals::tools::render::{Coloring, render_error};

/// An error on its way to Python.
pub struct Failure(tscript::Error);

impl From<tscript::Error> for Failure {
    fn from(error: tscript::Error) -> Failure {
        Failure(error)
    }
}

/// The message as the program shows it, with the lines of the script.
pub fn rendered(error: &tscript::Error) -> String {
    render_error(error, Coloring::Off).trim_end().to_string()
}

impl From<Failure> for PyErr {
    fn from(Failure(error): Failure) -> PyErr {
        Python::attach(|py| exception(py, &error).unwrap_or_else(|other| other))
    }
}

fn exception(py: Python<'_>, error: &tscript::Error) -> PyResult<PyErr> {
    let place = error.location();
    let place = place.as_ref().map(|place| (&*place.source, place.line, place.column));
    let (source, line, column) = (place.map(|p| p.0), place.map(|p| p.1), place.map(|p| p.2));
    let class = py.import("tscript")?.getattr("Error")?;
    let args = (rendered(error), error.code(), error.message(), error.help(), source, line, column);
    Ok(PyErr::from_value(class.call1(args)?))
}
