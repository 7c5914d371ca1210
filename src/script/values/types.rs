//! Types of the language that Rhai does not have.

use crate::base::device_id::{DeviceId, DeviceSpec};
use crate::base::dtype::DType;
pub use crate::op::tensor::Tensor;
use crate::sched::streams::stream::{Event, StreamHandle};
use rhai::Dynamic;
use std::sync::Arc;

/// A dtype as a value: `x.dtype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeValue(pub DType);

/// A device as a value: `x.device`, or `device("cuda")`, which means the current CUDA device when it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceValue(pub DeviceSpec);

impl From<DeviceId> for DeviceValue {
    fn from(device: DeviceId) -> DeviceValue {
        DeviceValue(device.into())
    }
}

/// `slice(start, stop, step)`; open ends are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SliceValue {
    pub start: Option<i64>,
    pub stop: Option<i64>,
    pub step: i64,
}

/// A value behind a handle: `cell(v)`, shared by all copies.
#[derive(Clone, Debug)]
pub struct Cell(std::sync::Arc<parking_lot::Mutex<Dynamic>>);

impl Cell {
    pub fn new(value: Dynamic) -> Cell {
        Cell(std::sync::Arc::new(parking_lot::Mutex::new(value)))
    }

    pub fn get(&self) -> Dynamic {
        self.0.lock().clone()
    }

    /// Reads the value, or changes it in place. Not for work that calls script code, which may need this cell.
    pub fn with<R>(&self, work: impl FnOnce(&mut Dynamic) -> R) -> R {
        work(&mut self.0.lock())
    }

    /// The same; none where the cell is at work already, as one that holds itself is.
    pub fn try_with<R>(&self, work: impl FnOnce(&mut Dynamic) -> Option<R>) -> Option<R> {
        work(&mut *self.0.try_lock()?)
    }

    /// Whether two handles belong to one cell.
    pub fn same(&self, other: &Cell) -> bool {
        std::sync::Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn set(&self, value: Dynamic) {
        // The old value is dropped outside the lock: it may contain this very cell.
        let old = std::mem::replace(&mut *self.0.lock(), value);
        drop(old);
    }
}

/// Numbers with a name, known in functions too.
pub const CONSTANTS: [(&str, f64); 4] =
    [("INF", f64::INFINITY), ("NAN", f64::NAN), ("PI", std::f64::consts::PI), ("E", std::f64::consts::E)];

/// Names of the constants: numbers, and dtypes in every spelling.
pub fn constants() -> impl Iterator<Item = &'static str> {
    CONSTANTS.iter().map(|(name, _)| *name).chain(DType::NAMES.iter().map(|(name, _)| *name))
}

/// `stream()`.
#[derive(Clone)]
pub struct StreamValue(pub Arc<StreamHandle>);

/// `event()`.
#[derive(Clone)]
pub struct EventValue(pub Arc<Event>);

impl StreamValue {
    pub fn text(&self) -> String {
        format!("stream({}, {})", self.0.name.device, self.0.name.number)
    }
}

impl EventValue {
    pub fn text(&self) -> String {
        match self.0.moment() {
            Some(moment) => format!("event(recorded on {})", moment.name),
            None => "event(not recorded)".to_string(),
        }
    }
}
