//! Hands a planned window to a device's queue: addresses are fixed here, in the script's order, and memory of
//! what nobody needs any more goes back at once, since later work of the stream comes after.

use crate::base::attr::Attrs;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus};
use crate::base::layout::Shape;
use crate::device::planned_fault::Fate;
use crate::device::queues::Point;
use crate::device::sim::Simulator;
use crate::kernel::abi::{Call, Faults, HostFn, RawView};
use crate::kernel::guard::End;
use crate::kernel::program::Program;
use crate::sched::backend::device_set::Kind;
use crate::sched::backend::touch;
use crate::sched::fault::ledger::{Ended, Entry};
use crate::sched::fault::ward::Ward;
use crate::sched::order::gate::Gate;
use crate::sched::profile::timeline::{self, Part, Timing};
use crate::sched::runtime::{Runtime, State, end_pending, threads};
use crate::sched::window::each;
use crate::sched::window::node::{Node, Work};
use crate::sched::window::plan::{Plan, Step, view_of};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One step with everything that a thread of its own needs.
// A window's steps are moved once, into its job: a box each would cost more than the space.
#[allow(clippy::large_enum_variant)]
enum Ready {
    Fused {
        program: Arc<Program>,
        shape: Shape,
        views: Vec<RawView>,
        table: Vec<u64>,
        slots: Range<usize>,
    },
    Kernel {
        host: HostFn,
        attrs: Attrs,
        inputs: Vec<RawView>,
        outputs: Vec<RawView>,
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
    /// A launch that goes wrong by plan.
    Fails,
    /// Whether the next step is left out.
    Guard(Arc<Gate>),
}

/// The steps of one window on their way to a queue.
#[derive(Default)]
struct Batch {
    steps: Vec<Ready>,
    /// The nodes of each.
    step_nodes: Vec<SmallVec<[usize; 4]>>,
    owners: Vec<usize>,
    known: Vec<(usize, Arc<Diag>)>,
    /// The nodes of each step, for a trace.
    parts: Vec<SmallVec<[Part; 1]>>,
}

impl Runtime {
    /// Submits a window to its device.
    pub(in crate::sched) fn submit(&self, state: &mut State, slot: u32, nodes: Vec<Node>, plan: &mut Plan) {
        let gpus = self.gpus().expect("streams are of devices");
        let simulator = match &gpus.kind {
            Kind::Simulated(simulator) => simulator,
            Kind::Cuda(set) => return self.submit_cuda(state, slot, nodes, plan, set),
        };
        let device = state.streams[slot as usize].name.device;
        let sequence = state.streams[slot as usize].submitted + 1;
        state.streams[slot as usize].last_work = (nodes.last().map_or(0, |node| node.number), sequence);
        let mut batch = Batch::default();
        for (step, last_uses) in plan.steps.iter_mut().zip(&plan.last_uses) {
            if self.timeline.is_some() {
                batch.parts.push(step.nodes().iter().map(|&at| timeline::part(&nodes[at])).collect());
            }
            self.prepare(&nodes, step, device, &mut batch);
            let first = batch.step_nodes.len();
            batch.step_nodes.extend((first..batch.steps.len()).map(|_| SmallVec::from_slice(step.nodes())));
            self.trace.pass(device, &nodes, step, None);
            self.note_uses(&nodes, step, slot, sequence);
            for &(node, operand) in last_uses {
                let buffer = &view_of(&nodes[node as usize], operand).buffer;
                if !buffer.is_live() && buffer.has_memory() {
                    buffer.home.release(buffer);
                }
            }
        }
        end_pending(plan, &nodes);
        self.launch(state, slot, nodes, batch, simulator);
        // An interruption is noticed by the script at its next step.
        let _ = self.harvest_front(state);
    }

    fn prepare(&self, nodes: &[Node], step: &mut Step, device: DeviceId, batch: &mut Batch) {
        let first = step.nodes()[0];
        if let Some(fault) = self.planned_fault(device, &nodes[first]) {
            batch.known.push((first, fault));
            batch.steps.push(Ready::Fails);
            return;
        }
        if let Some(gate) = &nodes[first].gate {
            batch.steps.push(Ready::Guard(gate.clone()));
        }
        match step {
            Step::Fused(fused) => {
                if !self.fill_fused(nodes, fused, &mut batch.known) {
                    batch.steps.push(Ready::Fails);
                    return;
                }
                let from = batch.owners.len();
                batch.owners.extend(&fused.fallible);
                batch.steps.push(Ready::Fused {
                    program: fused.program.clone(),
                    shape: fused.shape.clone(),
                    views: fused.views.clone(),
                    table: fused.table.clone(),
                    slots: from..batch.owners.len(),
                });
            }
            Step::Each(step) => {
                let node = &nodes[step.node];
                let Some((each, scalars, _)) = each::of(node) else { return };
                if !self.ensure_all(node, step.node, &mut batch.known) {
                    batch.steps.push(Ready::Fails);
                    return;
                }
                let member = |at| (Shape::from_slice(each.shape(node, at)), each.views(node, at));
                let members = (0..each.members(node)).map(member).collect();
                batch.steps.push(Ready::Each { program: each.program.clone(), members, table: scalars.into() });
            }
            Step::Kernel(at) => {
                let node = &nodes[*at];
                let Work::Kernel { host, attrs, seed, offset } = &node.work else { unreachable!("a kernel step") };
                let Some((inputs, outputs)) = self.operands(node, *at, &mut batch.known) else {
                    batch.steps.push(Ready::Fails);
                    return;
                };
                let slot = batch.owners.len();
                batch.owners.push(*at);
                let (host, attrs, seed, offset) = (*host, attrs.clone(), *seed, *offset);
                batch.steps.push(Ready::Kernel { host, attrs, inputs, outputs, seed, offset, slot });
            }
        }
    }

    /// Whether this launch goes wrong by plan, and what is told then.
    pub(in crate::sched) fn planned_fault(&self, device: DeviceId, node: &Node) -> Option<Arc<Diag>> {
        let gpus = self.gpus()?;
        let fate = gpus.faults.lock().launch(device);
        let text = format!("queued here, on {device}");
        match fate {
            Fate::Runs => None,
            Fate::Fails => {
                let diag = Diag::error(code::LAUNCH_FAILED, format!("{device} could not run `{}`", node.name));
                Some(self.late(diag.label(node.origin, Focus::Expression, text), node.number, node.trail))
            }
            Fate::DeviceLost => {
                let mut last_words = gpus.gpu(device).last_words.lock();
                if last_words.is_some() {
                    return last_words.clone();
                }
                let diag = Diag::error(code::DEVICE_LOST, format!("{device} was lost while it ran `{}`", node.name))
                    .label(node.origin, Focus::Expression, text)
                    .note("its memory is gone; other devices and the session go on");
                self.lose(device);
                *last_words = Some(self.late(diag, node.number, node.trail));
                last_words.clone()
            }
        }
    }

    /// Blocks that other streams than their own use are kept from reuse until this work has ended.
    pub(in crate::sched) fn note_uses(&self, nodes: &[Node], step: &Step, slot: u32, sequence: u64) {
        // What a fused step does not see has no memory, or is seen by another step.
        if let Step::Fused(fused) = step {
            for seen in &fused.slots {
                self.note_use(&view_of(&nodes[seen.node], seen.operand).buffer, slot, sequence);
            }
            return;
        }
        for view in step.nodes().iter().flat_map(|&at| nodes[at].reads().chain(&nodes[at].outputs)) {
            self.note_use(&view.buffer, slot, sequence);
        }
    }

    pub(in crate::sched) fn note_use(&self, buffer: &crate::op::tensor::Buffer, slot: u32, sequence: u64) {
        if buffer.stream.load(Ordering::Relaxed) != slot && buffer.has_memory() {
            let number = buffer.block.load(Ordering::Relaxed);
            self.with_home(buffer, |memory| memory.record_use(number, slot, sequence));
        }
    }

    fn launch(&self, state: &mut State, slot: u32, nodes: Vec<Node>, batch: Batch, simulator: &Simulator) {
        let device = state.streams[slot as usize].name.device;
        let Batch { steps, step_nodes, owners, known, parts } = batch;
        let timing = self.timeline.as_ref().map(|_| Timing::new(parts.into_iter()));
        let faults: Arc<[Faults]> = owners.iter().map(|_| Faults::default()).collect();
        let numbers: Vec<u64> = owners.iter().map(|&owner| nodes[owner].number).collect();
        known.iter().for_each(|(at, diag)| state.ledger.note(diag, slot, device, nodes[*at].number));
        let (log, slots) = (state.ledger.log.clone(), faults.clone());
        let ran = Arc::new(AtomicBool::new(false));
        let at_end = ran.clone();
        let number_of = |nodes_of: &SmallVec<[usize; 4]>| nodes_of.iter().map(|&at| nodes[at].number).collect();
        let step_numbers: Vec<SmallVec<[u64; 4]>> = step_nodes.iter().map(number_of).collect();
        let ended: Arc<Mutex<Vec<(usize, End)>>> = Arc::default();
        let (cut, stop, room) = (ended.clone(), self.options.stop.clone(), self.room.clone());
        let asked_by = stop.run();
        let took: Vec<Arc<AtomicU64>> = timing.iter().flat_map(|t| t.steps.iter().map(|step| step.1.clone())).collect();
        let clock = self.timeline.as_ref().map(|trace| trace.clock);
        let job = move || {
            let (mut steps, mut took) = (steps.into_iter().enumerate(), took.iter());
            let mut may_end = true;
            while let Some((at, step)) = steps.next() {
                let own = slots_of(&step);
                let end_with = |end: End| {
                    own.clone().for_each(|at| slots[at].spoil());
                    cut.lock().push((at, end));
                };
                match step {
                    Ready::Guard(gate) if (stop.drops(asked_by) && gate.leave_out()) || gate.is_held() => {
                        steps.next();
                        took.next();
                    }
                    Ready::Guard(_) => may_end = false,
                    // Looked at before each step, since a window may hold minutes of work.
                    _ if may_end && stop.drops(asked_by) => {
                        end_with(End::Asked);
                        took.next();
                    }
                    step => {
                        let begun = clock.map(|clock| clock.now_ns());
                        let ward = Ward::new(&stop, &room, asked_by, std::mem::replace(&mut may_end, true));
                        match run(step, &slots, &ward) {
                            Ok(()) => {
                                let bad = own.clone().filter(|&at| slots[at].is_set());
                                bad.for_each(|at| log.note(slot, device, numbers[at]));
                            }
                            Err(end) => {
                                if !matches!(end, End::Asked | End::NoTime) {
                                    step_numbers[at].iter().for_each(|&number| log.note(slot, device, number));
                                }
                                end_with(end);
                            }
                        }
                        if let (Some(clock), Some(begun), Some(took)) = (clock, begun, took.next()) {
                            took.store((clock.now_ns() - begun).max(1), Ordering::Release);
                        }
                    }
                }
            }
            at_end.store(true, Ordering::Release);
        };
        let sequence = self.enqueue_job(state, slot, simulator, Box::new(job), timing.as_ref());
        let point = Point { stream: slot, sequence };
        let ran = Some(ran);
        let ended = Some(Ended { ends: ended, step_nodes });
        let entry = Entry { faults, owners, known, timing, ran, ended, ..Entry::new(point, nodes) };
        state.ledger.push(entry, device);
    }

    /// A device is gone: what is queued there never runs, and what it made is unknown.
    pub(in crate::sched) fn lose(&self, device: DeviceId) {
        let DeviceId::Cuda(index) = device else { return };
        let Some(gpus) = self.gpus() else { return };
        gpus.gpu(device).lost.store(true, Ordering::Release);
        gpus.queues.lose(index);
    }
}

/// Places of a step's error slots.
fn slots_of(step: &Ready) -> Range<usize> {
    match step {
        Ready::Fails | Ready::Guard(_) | Ready::Each { .. } => 0..0,
        Ready::Fused { slots, .. } => slots.clone(),
        Ready::Kernel { slot, .. } => *slot..*slot + 1,
    }
}

/// Runs a step; the error says why it did not come to its end.
fn run(step: Ready, faults: &[Faults], ward: &Ward<'_>) -> Result<(), End> {
    match step {
        Ready::Fails | Ready::Guard(_) => Ok(()),
        Ready::Fused { program, shape, views, table, slots } => {
            touch::run_fused(&program, &shape, &views, &table, &faults[slots], ward)
        }
        Ready::Each { program, members, table } => {
            members.iter().try_for_each(|(shape, views)| touch::run_fused(&program, shape, views, &table, &[], ward))
        }
        Ready::Kernel { host, attrs, inputs, outputs, seed, offset, slot } => {
            let call = Call {
                inputs: &inputs,
                outputs: &outputs,
                attrs: &attrs,
                threads: threads(),
                faults: &faults[slot],
                seed,
                offset,
            };
            touch::run_kernel(host, &call, ward)
        }
    }
}
