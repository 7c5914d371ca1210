//! Sessions in Python.

use crate::failure::rendered;
use crate::values::{from_python, to_python};
use crate::worker::Worker;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use tscript::{Session as Inner, Value};

/// An interpreter with its variables and functions. It has a thread of its own; calls from several threads wait for each
/// other.
#[pyclass(module = "tscript", frozen)]
pub struct Session(Worker);

#[pymethods]
impl Session {
    /// `device` is where tensors are made, `simulate_gpus` how many GPUs are simulated, `seed` that of the random numbers,
    /// `arguments` what `arg` and `flag` of a script read.
    #[new]
    #[pyo3(signature = (*, seed=0, device=None, simulate_gpus=None, arguments=Vec::new()))]
    fn new(
        seed: u64,
        device: Option<String>,
        simulate_gpus: Option<usize>,
        arguments: Vec<String>,
    ) -> PyResult<Session> {
        let mut builder = Inner::builder().seed(seed).all_files().arguments(arguments).output(print).on_warning(warn);
        if let Some(count) = simulate_gpus {
            builder = builder.simulate_gpus(count);
        }
        if let Some(device) = device {
            builder = builder.device(&device);
        }
        Worker::start(builder).map(Session)
    }

    /// Runs a file to its end; its functions and variables stay.
    fn run(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.0.run(py, move |session| session.run_file(path))
    }

    /// Runs a text to its end; `name` is what messages call it.
    #[pyo3(signature = (text, name="script"))]
    fn run_text(&self, py: Python<'_>, text: String, name: &str) -> PyResult<()> {
        let name = name.to_string();
        self.0.run(py, move |session| session.run_str(&name, &text))
    }

    /// The value of an expression.
    fn eval<'py>(&self, py: Python<'py>, text: String) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.run(py, move |session| session.eval::<Value>(&text))?)
    }

    /// Calls a function of what ran. Keywords become a map behind the arguments.
    #[pyo3(signature = (name, *arguments, **keywords))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: String,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut values = arguments.iter().map(|value| from_python(&value)).collect::<PyResult<Vec<Value>>>()?;
        if let Some(keywords) = keywords {
            values.push(from_python(keywords)?);
        }
        to_python(py, self.0.run(py, move |session| session.call::<Value>(&name, values))?)
    }

    /// Sets a variable of the top level.
    fn set(&self, py: Python<'_>, name: String, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = from_python(value)?;
        self.0.run(py, move |session| session.set(&name, value))
    }

    /// A variable of the top level.
    fn get<'py>(&self, py: Python<'py>, name: String) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.run(py, move |session| session.get::<Value>(&name))?)
    }

    /// Waits for all work; raises the earliest late error.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.0.run(py, |session| session.synchronize())
    }
}

/// A line of a script, to what `sys.stdout` is at the moment.
fn print(line: &str) {
    Python::try_attach(|py| {
        let write = || py.import("sys")?.getattr("stdout")?.call_method1("write", (format!("{line}\n"),));
        if let Err(error) = write() {
            error.write_unraisable(py, None);
        }
    });
}

fn warn(warning: &tscript::Error) {
    Python::try_attach(|py| {
        let warn = || {
            let class = py.import("tscript")?.getattr("ScriptWarning")?;
            py.import("warnings")?.call_method1("warn", (rendered(warning), class))
        };
        if let Err(error) = warn() {
            error.write_unraisable(py, None);
        }
    });
}
