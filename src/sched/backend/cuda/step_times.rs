//! When the steps of a submission ran on an NVIDIA GPU, for a trace: time stamps before the first step and after
//! each.

use super::device::CudaDevice;
use crate::device::clock::Clock;
use crate::device::cuda::{Event, Stopwatch, Stream};
use crate::sched::profile::timeline::{Part, Timing};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) struct StepTimes {
    device: Arc<CudaDevice>,
    marks: Vec<Event>,
    parts: Vec<SmallVec<[Part; 1]>>,
}

impl StepTimes {
    /// None if the device measures no times.
    pub fn begin(device: &Arc<CudaDevice>, clock: Clock, stream: &Stream) -> Option<StepTimes> {
        let mut watch = device.stopwatch.lock();
        if watch.is_none() {
            *watch = Some(Stopwatch::start(stream, clock).ok()?);
        }
        drop(watch);
        Some(StepTimes { device: device.clone(), marks: vec![Stopwatch::mark(stream).ok()?], parts: Vec::new() })
    }

    /// Everything queued since the last time stamp is one step. None if the device is lost, which is reported
    /// elsewhere.
    pub fn end_step(mut self, stream: &Stream, parts: SmallVec<[Part; 1]>) -> Option<StepTimes> {
        self.marks.push(Stopwatch::mark(stream).ok()?);
        self.parts.push(parts);
        Some(self)
    }

    pub fn timing(self) -> Timing {
        let StepTimes { device, marks, parts } = self;
        // The device's times are already on the trace's clock.
        let spans = move |_: Clock| {
            let mut watch = device.stopwatch.lock();
            let times = watch.as_mut().and_then(|watch| watch.times(marks).ok()).unwrap_or_default();
            times.windows(2).map(|pair| (pair[0], pair[1])).collect()
        };
        Timing { parts, spans: Box::new(spans) }
    }
}
