//! A window that is being submitted to a simulated device: one job of its queue, which evaluates gates when a step's
//! turn comes.

use crate::base::attr::Attrs;
use crate::base::device_id::DeviceId;
use crate::base::layout::Shape;
use crate::device::clock::Clock;
use crate::device::planned_fault::Fate;
use crate::device::simulated::{Job, Simulator, Work};
use crate::device::stop::Stop;
use crate::kernel::abi::{Call, Faults, RawView};
use crate::kernel::family::Kernel;
use crate::kernel::guard::End;
use crate::kernel::program::Program;
use crate::sched::backend::Window;
use crate::sched::backend::step::{Command, Decides, Ended, Report, StepCall, Submission, Submitted, Turn};
use crate::sched::backend::touch;
use crate::sched::memory::Room;
use crate::sched::memory::kernel_context::KernelContext;
use crate::sched::order::gate::{FaultLog, Gate};
use crate::sched::profile::timeline::{self, Part};
use crate::sched::runtime::threads;
use crate::sched::window::node::Node;
use crate::sched::window::plan::Operands;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::shares::Shares;

/// One step with everything that another thread needs to run it.
// A window's steps are moved once, into its job: boxing each would cost more than the space.
#[allow(clippy::large_enum_variant)]
enum Ready {
    Fused {
        program: Arc<Program>,
        shape: Shape,
        views: Arc<Vec<RawView>>,
        table: Arc<Vec<u64>>,
        slots: Range<usize>,
    },
    Kernel {
        kernel: &'static Kernel,
        attrs: Attrs,
        operands: Arc<Operands>,
        seed: u64,
        offset: u64,
        slot: usize,
    },
    /// A program for each of these members.
    Each {
        program: Arc<Program>,
        members: Vec<(Shape, Vec<RawView>)>,
        table: Box<[u64]>,
    },
    /// A launch that fails by plan.
    Fails,
    /// Whether the next step is skipped.
    Guard(Arc<Gate>),
}

/// The steps of one window before they are queued.
pub(super) struct Batch<'a> {
    simulator: &'a Simulator,
    window: Window<'a>,
    steps: Vec<Ready>,
    /// The nodes of each.
    step_nodes: Vec<SmallVec<[usize; 4]>>,
    owners: Vec<usize>,
    /// The nodes of each step that is not a guard, for a trace.
    parts: Vec<SmallVec<[Part; 1]>>,
}

impl<'a> Batch<'a> {
    pub fn new(simulator: &'a Simulator, window: Window<'a>) -> Batch<'a> {
        let (steps, step_nodes) = (Vec::with_capacity(window.steps), Vec::with_capacity(window.steps));
        let (owners, parts) = (Vec::with_capacity(window.steps), Vec::new());
        Batch { simulator, window, steps, step_nodes, owners, parts }
    }

    fn push(&mut self, step: Ready, nodes: &[Node], of: &[usize]) {
        if self.window.clock.is_some() && !matches!(step, Ready::Guard(_)) {
            self.parts.push(of.iter().map(|&at| timeline::part(&nodes[at])).collect());
        }
        self.steps.push(step);
        self.step_nodes.push(SmallVec::from_slice(of));
    }
}

impl Submission for Batch<'_> {
    fn decides(&self) -> Decides {
        Decides::Queue
    }

    fn fate(&mut self) -> Fate {
        self.window.planned.lock().launch(self.window.name.device)
    }

    fn guard(&mut self, gate: &Arc<Gate>, of: &[usize], _device_of: &dyn Fn(u32) -> DeviceId) {
        self.push(Ready::Guard(gate.clone()), &[], of);
    }

    fn skip(&mut self, nodes: &[Node], of: &[usize]) {
        self.push(Ready::Fails, nodes, of);
    }

    fn step(&mut self, call: &StepCall<'_>, _report: &mut Report) {
        let from = self.owners.len();
        self.owners.extend(call.owners);
        let ready = match &call.command {
            Command::Fused { program, shape, views, table } => Ready::Fused {
                program: (*program).clone(),
                shape: (*shape).clone(),
                views: (*views).clone(),
                table: (*table).clone(),
                slots: from..self.owners.len(),
            },
            Command::Kernel { kernel, attrs, operands, seed, offset } => {
                let (kernel, attrs, seed, offset) = (*kernel, (*attrs).clone(), *seed, *offset);
                Ready::Kernel { kernel, attrs, operands: (*operands).clone(), seed, offset, slot: from }
            }
            Command::Each { each, node, scalars, .. } => {
                let member = |at| (Shape::from_slice(each.shape(node, at)), each.views(node, at));
                let members = (0..each.members(node)).map(member).collect();
                Ready::Each { program: each.program.clone(), members, table: (*scalars).into() }
            }
        };
        self.push(ready, call.nodes, call.of);
    }

    fn end(&mut self, nodes: &[Node], _report: &mut Report) -> Submitted {
        let (steps, step_nodes) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.step_nodes));
        let (owners, parts) = (std::mem::take(&mut self.owners), std::mem::take(&mut self.parts));
        let window = &self.window;
        let shares = window.clock.map(|_| Shares::new(parts.len(), self.simulator.clock()));
        let faults: Arc<[Faults]> = owners.iter().map(|_| Faults::default()).collect();
        let number_of = |nodes_of: &SmallVec<[usize; 4]>| nodes_of.iter().map(|&at| nodes[at].number).collect();
        let turns = Turns {
            device: window.name.device,
            stream: window.stream,
            slots: faults.clone(),
            numbers: owners.iter().map(|&owner| nodes[owner].number).collect(),
            step_numbers: step_nodes.iter().map(number_of).collect(),
            ends: Arc::default(),
            log: window.log.clone(),
            stop: window.stop.clone(),
            room: window.room.clone(),
            asked_by: window.stop.run(),
            clock: window.clock,
            took: shares.iter().flat_map(|shares| shares.took.iter().cloned()).collect(),
        };
        let (ran, ends) = (Arc::new(AtomicBool::new(false)), turns.ends.clone());
        let at_end = ran.clone();
        let job: Job = Box::new(move || {
            turns.take(steps);
            at_end.store(true, Ordering::Release);
        });
        let (began, stamp) = (shares.as_ref().map(|s| s.began.clone()), shares.as_ref().map(|s| s.ended.clone()));
        let after = std::mem::take(&mut self.window.after);
        let work = Work { after, job: Some(job), began, stamp, ..Work::default() };
        let sequence = self.simulator.submit(self.window.stream, work);
        Submitted {
            sequence,
            faults,
            owners,
            slots: Vec::new(),
            ran: Some(ran),
            ended: Some(Ended { ends, step_nodes }),
            timing: shares.map(|shares| shares.timing(parts)),
        }
    }
}

/// What the queue's thread needs to run the window.
struct Turns {
    device: DeviceId,
    stream: u32,
    slots: Arc<[Faults]>,
    /// By error slot, and by step: the queue numbers of the nodes.
    numbers: Vec<u64>,
    step_numbers: Vec<SmallVec<[u64; 4]>>,
    ends: Arc<Mutex<Vec<(usize, End)>>>,
    log: Arc<FaultLog>,
    stop: Arc<Stop>,
    room: Arc<Room>,
    /// The run that queued it.
    asked_by: u64,
    clock: Option<Clock>,
    took: Vec<Arc<AtomicU64>>,
}

impl Turns {
    fn take(&self, steps: Vec<Ready>) {
        let mut took = self.took.iter();
        let mut gate = None;
        for (at, step) in steps.into_iter().enumerate() {
            if let Ready::Guard(next) = step {
                gate = Some(next);
                continue;
            }
            let (gate, took) = (gate.take(), took.next());
            // Checked before each step, since a window may hold minutes of work.
            match Turn::of(gate.as_deref(), self.stop.drops(self.asked_by), Gate::is_held) {
                Turn::Held => {}
                Turn::LeftOut => self.end_with(at, &slots_of(&step), End::Interrupted),
                Turn::Runs => {
                    let begun = self.clock.map(|clock| clock.now_ns());
                    self.run(at, step, gate.is_none());
                    if let (Some(clock), Some(begun), Some(took)) = (self.clock, begun, took) {
                        took.store((clock.now_ns() - begun).max(1), Ordering::Release);
                    }
                }
            }
        }
    }

    fn run(&self, at: usize, step: Ready, may_end: bool) {
        let own = slots_of(&step);
        let kernel_context = KernelContext::new(&self.stop, &self.room, self.asked_by, may_end);
        match run(step, &self.slots, &kernel_context) {
            Ok(()) => {
                let bad = own.filter(|&at| self.slots[at].is_set());
                bad.for_each(|at| self.log.note(self.stream, self.device, self.numbers[at]));
            }
            Err(end) => {
                if !matches!(end, End::Interrupted | End::NoTime) {
                    let numbers = self.step_numbers[at].iter();
                    numbers.for_each(|&number| self.log.note(self.stream, self.device, number));
                }
                self.end_with(at, &own, end);
            }
        }
    }

    fn end_with(&self, at: usize, own: &Range<usize>, end: End) {
        own.clone().for_each(|at| self.slots[at].spoil());
        self.ends.lock().push((at, end));
    }
}

/// Queue numbers of a step's error slots.
fn slots_of(step: &Ready) -> Range<usize> {
    match step {
        Ready::Fails | Ready::Guard(_) | Ready::Each { .. } => 0..0,
        Ready::Fused { slots, .. } => slots.clone(),
        Ready::Kernel { slot, .. } => *slot..*slot + 1,
    }
}

/// Runs a step; the error says why it did not finish.
fn run(step: Ready, faults: &[Faults], kernel_context: &KernelContext<'_>) -> Result<(), End> {
    match step {
        Ready::Fails | Ready::Guard(_) => Ok(()),
        Ready::Fused { program, shape, views, table, slots } => {
            touch::run_fused(&program, &shape, &views, &table, &faults[slots], kernel_context)
        }
        Ready::Each { program, members, table } => members
            .iter()
            .try_for_each(|(shape, views)| touch::run_fused(&program, shape, views, &table, &[], kernel_context)),
        Ready::Kernel { kernel, attrs, operands, seed, offset, slot } => {
            let call = Call {
                inputs: &operands.inputs,
                outputs: &operands.outputs,
                attrs: &attrs,
                threads: threads(),
                faults: &faults[slot],
                seed,
                offset,
            };
            touch::run_kernel(kernel.host, &call, kernel_context)
        }
    }
}
