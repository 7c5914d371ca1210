//! A kind of devices for tests: it runs every step at once on copies in host memory, and records it. Its memory has
//! invalid addresses, so that any access that bypasses the interface crashes at once.
//!
//! The minimum of a further kind: this file and its line in `KINDS`.

mod queues;
mod tests;

use super::gpus::{Gpus, gpu, host_memory};
use super::step::{Command, Decides, Report, StepCall, Submission, Submitted};
use super::task::{Enqueued, Stamp, Task, Wish};
use super::through_host::{self, Remote};
use super::touch::Span;
use super::{After, Backend, Facts, Window};
use crate::base::device_id::DeviceId;
use crate::device::cache::RawMemory;
use crate::device::clock::Clock;
use crate::device::host_memory::HostMemory;
use crate::device::planned_fault::FaultPlan;
use crate::device::queues::Queues;
use crate::kernel::abi::Faults;
use crate::sched::memory::kernel_context::KernelContext;
use crate::sched::options::{Options, SIMULATED_BYTES};
use crate::sched::order::gate::Gate;
use crate::sched::window::node::Node;
use parking_lot::Mutex;
use queues::Finished;
use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The recorded calls, a line each.
pub type Book = Arc<Mutex<Vec<String>>>;

thread_local! {
    /// Where sessions of this thread record; none for sessions with other devices.
    static BOOK: RefCell<Option<Book>> = const { RefCell::new(None) };
}

/// Sessions that this thread starts from now on have these devices and record here.
pub fn write_to(book: Option<Book>) {
    BOOK.set(book);
}

const DEVICES: u16 = 2;

/// Added to addresses of the devices' memory.
const OFFSET: u64 = 1 << 60;

struct Recorder {
    book: Book,
    streams: Arc<Finished>,
    clock: Clock,
}

pub(in crate::sched) fn open(options: &Options) -> Option<Gpus> {
    let book = BOOK.with_borrow(Option::clone)?;
    let streams = Arc::<Finished>::default();
    let queues: Arc<dyn Queues> = streams.clone();
    let memory = |at| gpu(Far(HostMemory::new(SIMULATED_BYTES)), at, options, &queues, None);
    let list = (0..DEVICES).map(memory).collect();
    Some(Gpus {
        backend: Box::new(Recorder { book, streams, clock: Clock::start() }),
        queues,
        list,
        pinned: Mutex::new(host_memory(options.host_limit)),
        faults: Mutex::new(FaultPlan::default()),
        counts_requests: false,
    })
}

/// Memory of the devices.
struct Far(HostMemory);

impl RawMemory for Far {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        self.0.reserve(bytes).map(|address| address + OFFSET)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        self.0.release(address - OFFSET, bytes);
    }

    fn total(&self) -> usize {
        self.0.total()
    }

    fn available(&self) -> usize {
        self.0.available()
    }
}

/// The real address of device memory.
fn near(span: &Span) -> Span {
    let address = span.address().checked_sub(OFFSET).expect("memory of a device");
    Span::new(address as *mut u8, span.len())
}

/// The same on the host or a device.
fn near_on((device, span): &(DeviceId, Span)) -> Span {
    if device.is_cuda() { near(span) } else { Span::new(span.address() as *mut u8, span.len()) }
}

struct Copied;

impl Remote for Copied {
    type Error = Infallible;

    fn fetch(&self, span: &Span) -> Result<Vec<u8>, Infallible> {
        Ok(if span.is_empty() { Vec::new() } else { near(span).read() })
    }

    fn store(&self, span: &Span, bytes: &[u8]) -> Result<(), Infallible> {
        if !span.is_empty() {
            near(span).write(bytes);
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Backend for Recorder {
    fn facts(&self, device: u16) -> Facts {
        Facts {
            name: "Recorder".to_string(),
            capability: (9, 0),
            multiprocessors: 1,
            uuid: std::array::from_fn(|at| if at == 15 { device as u8 } else { 1 }),
            is_simulated: true,
        }
    }

    fn begin<'a>(&'a self, window: Window<'a>) -> Box<dyn Submission + 'a> {
        self.book.lock().push(format!("window on {}", window.name));
        Box::new(Writing { recorder: self, window })
    }

    fn enqueue(&self, stream: u32, _after: After, task: Task, wish: Wish) -> Enqueued {
        let line = match &task {
            Task::Nothing | Task::Fails => "nothing".to_string(),
            Task::Sleep { ns } => format!("sleep for {ns} ns"),
            Task::Write { to, .. } => format!("write {} bytes", to.len()),
            Task::Copy { from, to } => format!("copy {} bytes from {} to {}", to.1.len(), from.0, to.0),
        };
        self.book.lock().push(line);
        match task {
            Task::Nothing | Task::Fails | Task::Sleep { .. } => {}
            Task::Write { to, .. } if to.is_empty() => {}
            Task::Write { from, to } => near(&to).write(&from.read()),
            Task::Copy { from: (_, from), .. } if from.is_empty() => {}
            Task::Copy { from, to } => near_on(&from).copy_to(&near_on(&to)),
        }
        Enqueued {
            sequence: self.streams.finish(stream),
            stamp: wish.stamp.then(|| Stamp(Arc::new(self.clock.now_ns()))),
            ran: wish.ran.then(|| Arc::new(AtomicBool::new(true))),
            timing: None,
        }
    }

    fn elapsed_ms(&self, from: &Stamp, to: &Stamp) -> Result<f64, String> {
        let time = |stamp: &Stamp| stamp.0.downcast_ref::<u64>().map(|&ns| ns as f64 / 1e6);
        Ok(time(to).ok_or("no stamp of this device")? - time(from).ok_or("no stamp of this device")?)
    }

    fn shares_memory(&self) -> bool {
        false
    }

    fn read(&self, _device: u16, from: &Span) -> Result<Vec<u8>, String> {
        self.book.lock().push(format!("read {} bytes", from.len()));
        Ok(near(from).read())
    }
}

struct Writing<'a> {
    recorder: &'a Recorder,
    window: Window<'a>,
}

impl Submission for Writing<'_> {
    fn decides(&self) -> Decides {
        Decides::Loop
    }

    fn guard(&mut self, _gate: &Arc<Gate>, _of: &[usize], _device_of: &dyn Fn(u32) -> DeviceId) {
        self.recorder.book.lock().push("guarded".to_string());
    }

    fn step(&mut self, call: &StepCall<'_>, report: &mut Report) {
        let names: Vec<&str> = call.of.iter().map(|&at| call.nodes[at].name).collect();
        let kind = match call.command {
            Command::Fused { .. } => "fused",
            Command::Kernel { .. } => "kernel",
            Command::Each { .. } => "each",
        };
        self.recorder.book.lock().push(format!("{kind} {}", names.join(", ")));
        let slots: Vec<Faults> = call.owners.iter().map(|_| Faults::default()).collect();
        let stop = self.window.stop;
        let kernel_context = KernelContext::new(stop, self.window.room, stop.run(), call.may_end);
        let Ok(done) = through_host::run(&Copied, &call.command, &slots, &kernel_context);
        report.end = done.err();
        report.take(&slots, call.owners);
    }

    fn end(&mut self, _nodes: &[Node], _report: &mut Report) -> Submitted {
        Submitted { sequence: self.recorder.streams.finish(self.window.stream), ..Submitted::default() }
    }
}
