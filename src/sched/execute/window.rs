//! The one loop over the steps of a window, for every kind of device: it handles guards, memory, faults, ends of runs
//! and releases; a device only carries out steps (`backend`).
//!
//! Addresses are assigned here, in the script's order, and memory that is not needed any more is freed at once, since
//! later work of the stream runs after this.

use super::operands::{Kept, command};
use crate::base::device_id::DeviceId;
use crate::device::planned_fault::Fate;
use crate::device::queues::Point;
use crate::device::race::StreamName;
use crate::op::tensor::Buffer;
use crate::sched::backend;
use crate::sched::backend::host::Host;
use crate::sched::backend::step::{Decides, Report, StepCall, Submission, Submitted, Turn};
use crate::sched::fault::Found;
use crate::sched::fault::ledger::{Entry, Outcome};
use crate::sched::order::gate::Gate;
use crate::sched::order::points::HOST;
use crate::sched::runtime::{Runtime, State, end_pending};
use crate::sched::window::node::Node;
use crate::sched::window::plan::{Plan, Step, view_of};
use std::sync::atomic::Ordering;

/// Nodes that are queued between two queries of a device's progress, if querying is expensive, so that the memory of
/// finished nodes is still in the processor's cache when it is reused.
pub const LOOK_NODES: usize = 128;
/// The minimum number of nodes that a window counts as.
/// Bound: a query costs as much as the launch of a small window; a caller that waits queries by itself.
pub const LEAST_NODES: usize = 16;

/// The stream that a window is submitted to.
struct Place {
    slot: u32,
    name: StreamName,
    /// The sequence number that it will have there.
    sequence: u64,
}

/// Faults that are known, and how many of them the fault log has.
#[derive(Default)]
struct Known {
    faults: Found,
    noted: usize,
}

impl Known {
    /// Adds new faults to the log, which gates read.
    fn note(&mut self, state: &State, place: &Place, nodes: &[Node]) {
        for (at, diag) in &self.faults[self.noted..] {
            state.ledger.note(diag, place.slot, place.name.device, nodes[*at].number);
        }
        self.noted = self.faults.len();
    }
}

impl Runtime {
    /// Runs the host's window to its end.
    pub(in crate::sched) fn run_on_host(&self, state: &mut State, nodes: &[Node], plan: &mut Plan) {
        let place = Place { slot: HOST, name: state.streams[HOST as usize].name, sequence: 0 };
        let mut host = Host::new(&self.options.stop, &self.room);
        let known = self.carry_out(state, &place, nodes, plan, &mut host);
        let point = Point { stream: HOST, sequence: 0 };
        state.ledger.settle(nodes, Outcome { faults: known.faults, reached: None }, point, DeviceId::Cpu);
        state.ledger.follow();
    }

    /// Submits a window to its device.
    pub(in crate::sched) fn submit(&self, state: &mut State, slot: u32, nodes: Vec<Node>, plan: &mut Plan) {
        let gpus = self.gpus().expect("streams are of devices");
        let stream = &mut state.streams[slot as usize];
        let (name, sequence) = (stream.name, stream.submitted + 1);
        let DeviceId::Cuda(device) = name.device else { unreachable!("the window of a device's stream") };
        let place = Place { slot, name, sequence };
        let log = state.ledger.log.clone();
        let mut prepared = std::mem::take(&mut plan.prepared);
        let mut submission = gpus.backend.begin(backend::Window {
            stream: slot,
            name,
            device,
            after: std::mem::take(&mut stream.waits),
            prepared: &mut prepared,
            layouts: plan.layouts,
            memory: &gpus.gpu(name.device).memory,
            planned: &gpus.faults,
            stop: &self.options.stop,
            room: &self.room,
            log: &log,
            clock: self.timeline.as_ref().map(|trace| trace.clock),
            graphs: self.options.graphs,
            steps: plan.steps.len(),
        });
        let mut known = self.carry_out(state, &place, &nodes, plan, &mut *submission);
        known.note(state, &place, &nodes);
        let mut report = Report::default();
        let submitted = submission.end(&nodes, &mut report);
        drop(submission);
        if !report.is_empty() {
            self.diagnose_report(report, &nodes, &[0], &place, &mut known.faults);
        }
        plan.prepared = prepared;
        end_pending(plan, &nodes);
        let Submitted { sequence, faults, owners, slots, ran, ended, timing } = submitted;
        let stream = &mut state.streams[slot as usize];
        stream.submitted = sequence;
        stream.last_work = (nodes.last().map_or(0, |node| node.number), sequence);
        state.since_look += nodes.len().max(LEAST_NODES);
        let point = Point { stream: slot, sequence };
        let entry =
            Entry { faults, owners, known: known.faults, slots, ran, ended, timing, ..Entry::new(point, nodes) };
        state.ledger.push(entry, name.device);
        if state.since_look >= LOOK_NODES || !gpus.backend.is_query_slow() {
            state.since_look = 0;
            // The script notices an interruption at its next step.
            let _ = self.harvest_front(state);
        }
    }

    /// The loop. Returns the faults that are known when it ends, with their nodes.
    fn carry_out<S: Submission + ?Sized>(
        &self,
        state: &State,
        place: &Place,
        nodes: &[Node],
        plan: &mut Plan,
        submission: &mut S,
    ) -> Known {
        let mut known = Known::default();
        let decides = submission.decides();
        let is_usable = submission.is_usable();
        if !is_usable {
            known.faults.push((0, self.unusable(&nodes[0])));
        }
        let has_new_layouts = plan.has_new_layouts;
        let steps = plan.steps.iter_mut().zip(&plan.last_uses).zip(&mut plan.operands).enumerate();
        for (at, ((step, last_uses), kept)) in steps {
            // Times of queued work are measured elsewhere.
            let at_once = decides == Decides::Loop;
            let (start, begun) = if at_once { (self.trace.begin(), self.time_now()) } else { (None, None) };
            let gate = nodes[step.nodes()[0]].gate.as_ref();
            if gate.is_some() {
                // Faults of this window take precedence, if they were queued earlier.
                known.note(state, place, nodes);
            }
            // Checked before each step, since a window may hold minutes of work.
            let must_end = decides != Decides::Queue && self.options.stop.drops(self.options.stop.run());
            let turn = match decides {
                Decides::Loop => Turn::of(gate.map(|gate| &**gate), must_end, Gate::is_held),
                Decides::Device => Turn::of(gate.map(|gate| &**gate), must_end, Gate::is_known_held),
                Decides::Queue => Turn::Runs,
            };
            match turn {
                Turn::Runs if is_usable => {
                    let kept = Kept { operands: kept, has_new_layouts };
                    self.take_step(state, place, nodes, (at, &mut *step, kept), submission, &mut known.faults);
                }
                Turn::LeftOut => known.faults.extend(step.nodes().iter().map(|&at| (at, self.left_out(&nodes[at])))),
                Turn::Runs | Turn::Held => {}
            }
            self.trace.pass(place.name.device, nodes, step, start);
            if turn == Turn::Runs {
                self.note_step(place.name, begun, nodes, step.nodes());
            }
            if place.slot != HOST {
                self.note_uses(nodes, step, place.slot, place.sequence);
            }
            for &(node, operand) in last_uses {
                let buffer = &view_of(&nodes[node as usize], operand).buffer;
                if !buffer.is_live() && buffer.has_memory() {
                    buffer.home.release(buffer);
                }
            }
        }
        known
    }

    /// Runs the next step, unless it is skipped as far as is known here.
    #[inline]
    fn take_step<S: Submission + ?Sized>(
        &self,
        state: &State,
        place: &Place,
        nodes: &[Node],
        (at, step, mut kept): (usize, &mut Step, Kept<'_>),
        submission: &mut S,
        faults: &mut Found,
    ) {
        let first = step.nodes()[0];
        let fate = submission.fate();
        if fate != Fate::Runs {
            faults.extend(self.diagnose_injected(fate, place.name.device, &nodes[first]).map(|fault| (first, fault)));
            submission.skip(nodes, step.nodes());
            return;
        }
        let gate = nodes[first].gate.as_ref();
        if let Some(gate) = gate {
            let device_of = |stream: u32| state.streams[stream as usize].name.device;
            submission.guard(gate, step.nodes(), &device_of);
        }
        if !self.make_ready(nodes, step, &mut kept, place.slot, faults) {
            submission.skip(nodes, step.nodes());
            return;
        }
        let (command, owners) = command(nodes, step, kept.operands);
        let mut report = Report::default();
        let call = StepCall { at, nodes, of: step.nodes(), owners, command, may_end: gate.is_none() };
        submission.step(&call, &mut report);
        if !report.is_empty() {
            self.diagnose_report(report, nodes, step.nodes(), place, faults);
        }
    }

    /// Diagnostics of the faults that a device reported for some nodes.
    #[cold]
    fn diagnose_report(&self, report: Report, nodes: &[Node], of: &[usize], place: &Place, faults: &mut Found) {
        let text = if place.slot == HOST { "cpu".to_string() } else { place.name.to_string() };
        faults.extend(report.faults.into_iter().map(|(at, found)| (at, self.diagnose(found, &nodes[at], &text))));
        if let Some(end) = report.end {
            faults.extend(of.iter().map(|&at| (at, self.ended(&end, &nodes[at], &text))));
        }
        if let Some(failure) = report.failure {
            faults.push((of[0], self.failed(place.name.device, &nodes[of[0]], &failure)));
        }
    }

    /// Blocks that are used by streams other than their own are not reused before this work has ended.
    fn note_uses(&self, nodes: &[Node], step: &Step, slot: u32, sequence: u64) {
        // Views that a fused step does not contain have no memory, or belong to another step.
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

    pub(in crate::sched) fn note_use(&self, buffer: &Buffer, slot: u32, sequence: u64) {
        if buffer.stream.load(Ordering::Relaxed) != slot && buffer.has_memory() {
            let number = buffer.block.load(Ordering::Relaxed);
            self.with_home(buffer, |memory| memory.record_use(number, slot, sequence));
        }
    }
}
