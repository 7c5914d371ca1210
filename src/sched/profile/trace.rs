//! What windows became, recorded on request: the passes of each plan, with their operations and the bytes that they
//! moved. Has no influence on execution.

use crate::base::device_id::DeviceId;
use crate::base::span::Origin;
use crate::device::clock::Clock;
use crate::op::tensor::View;
use crate::sched::window::node::Node;
use crate::sched::window::plan::{Operand, Step, view_of};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bound: passes kept; a loop that makes more repeats itself.
const MAX_PASSES: usize = 100_000;

/// One step of a plan that ran or was submitted to a device.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Counts windows from the start of the trace.
    pub window: usize,
    pub device: DeviceId,
    /// The operations in it, in order, with their places.
    pub operations: Vec<(&'static str, Origin)>,
    /// What it iterates over.
    pub shape: Vec<usize>,
    pub read_bytes: usize,
    pub written_bytes: usize,
    /// Results that got memory; the others were never stored.
    pub stored: usize,
    /// How long it ran, if that is known: on the host.
    pub time: Option<Duration>,
}

/// The trace of a runtime.
pub struct Trace {
    on: AtomicBool,
    clock: Clock,
    book: Mutex<Book>,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace { on: AtomicBool::new(false), clock: Clock::start(), book: Mutex::default() }
    }
}

#[derive(Default)]
struct Book {
    windows: usize,
    passes: Vec<Pass>,
}

impl Trace {
    /// Begins a new recording.
    pub fn start(&self) {
        *self.book.lock() = Book::default();
        self.on.store(true, Ordering::Relaxed);
    }

    /// Ends the recording and returns it.
    pub fn stop(&self) -> Vec<Pass> {
        self.on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.book.lock()).passes
    }

    /// A window begins.
    pub fn window(&self) {
        if self.on.load(Ordering::Relaxed) {
            self.book.lock().windows += 1;
        }
    }

    /// The time at which a pass begins, in ns, if it is recorded.
    pub fn begin(&self) -> Option<u64> {
        self.on.load(Ordering::Relaxed).then(|| self.clock.now_ns())
    }

    /// A pass has ended that began at this time, or was submitted to its device.
    pub fn pass(&self, device: DeviceId, nodes: &[Node], step: &Step, begun: Option<u64>) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let time = begun.map(|begun| Duration::from_nanos(self.clock.now_ns() - begun));
        let mut book = self.book.lock();
        if book.passes.len() < MAX_PASSES {
            let window = book.windows;
            book.passes.push(Pass { window, time, ..describe(device, nodes, step) });
        }
    }
}

fn describe(device: DeviceId, nodes: &[Node], step: &Step) -> Pass {
    let bytes = |view: &View| (view.layout.numel() * view.dtype.size_bytes()).min(view.buffer.size_bytes);
    let (mut read_bytes, mut written_bytes, mut stored) = (0, 0, 0);
    let shape = match step {
        Step::Fused(fused) => {
            let unread = |at: usize| fused.program.epilogue.as_ref().is_some_and(|e| e.unread.contains(&(at as u16)));
            for (_, slot) in fused.slots.iter().enumerate().filter(|&(at, _)| !unread(at)) {
                let size = bytes(view_of(&nodes[slot.node], slot.operand));
                match slot.operand {
                    Operand::Input(_) => read_bytes += size,
                    Operand::Output(_) => (written_bytes, stored) = (written_bytes + size, stored + 1),
                }
            }
            fused.shape.to_vec()
        }
        Step::Kernel(_) | Step::Each(..) => {
            let node = &nodes[step.nodes()[0]];
            read_bytes = node.reads().map(|view| bytes(view)).sum();
            written_bytes = node.outputs.iter().map(|view| bytes(view)).sum();
            stored = node.outputs.len();
            node.iteration().to_vec()
        }
    };
    let operations = step.nodes().iter().map(|&at| (nodes[at].name, nodes[at].origin)).collect();
    Pass { window: 0, device, operations, shape, read_bytes, written_bytes, stored, time: None }
}
