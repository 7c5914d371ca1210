//! Work that was handed to devices and whose outcome is not known yet, and faults that nobody was told.
//!
//! Outcomes are looked at in the order in which the work was queued, so that what is told does not depend on
//! which device was faster.

use super::diagnose;
use super::poison;
use super::suspects::{self, Suspects};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::device::queues::Point;
use crate::kernel::abi::Faults;
use crate::kernel::guard::End;
use crate::op::tensor::{Buffer, View};
use crate::sched::backend::step::Ended;
use crate::sched::order::cause::Cause;
use crate::sched::order::gate::FaultLog;
use crate::sched::order::points::HOST;
use crate::sched::profile::timeline::Timing;
use crate::sched::runtime::{Runtime, State};
use crate::sched::window::each;
use crate::sched::window::node::{Input, Node};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bound: submissions in flight before the host waits for the oldest, so that a script that never waits does
/// not fill the memory with its queue.
pub const MAX_IN_FLIGHT: usize = 1024;

/// One window on its way.
pub struct Entry {
    pub point: Point,
    pub nodes: Vec<Node>,
    /// Error slots, and the node that owns each.
    pub faults: Arc<[Faults]>,
    pub owners: Vec<usize>,
    /// Faults that were known when it was handed over.
    pub known: Vec<(usize, Arc<Diag>)>,
    /// Error slots that the device keeps, with their addresses and the nodes that own them.
    pub slots: Vec<(u32, u64, usize)>,
    /// Whether it ran to its end; none where nobody can tell.
    pub ran: Option<Arc<AtomicBool>>,
    /// Steps that did not come to their end.
    pub ended: Option<Ended>,
    /// When it ran, for a trace.
    pub timing: Option<Timing>,
    /// Host memory that it reads or writes.
    pub host_side: SmallVec<[Arc<View>; 1]>,
    /// Faults of its nodes that somebody may ask about before it is looked at.
    pub causes: Vec<(usize, Arc<Cause>)>,
}

/// A fault that nobody was told yet.
pub struct Untold {
    pub fault: Arc<Diag>,
    /// The node's place in the order of queueing.
    pub order: u64,
    pub device: DeviceId,
    pub slot: u32,
    pub sequence: u64,
}

#[derive(Default)]
pub struct Ledger {
    pub entries: VecDeque<Entry>,
    pub untold: Vec<Untold>,
    /// Devices that were lost, with what is told of them.
    lost: Vec<(DeviceId, u64, Arc<Diag>)>,
    /// Of these, the ones that are untold or told: the loss of a device is one fault.
    noted: Vec<Arc<Diag>>,
    /// Whether any buffer was ever poisoned: until then nobody looks.
    any_poison: bool,
    /// What holds steps of optimizers.
    pub log: Arc<FaultLog>,
    pub suspects: Suspects,
    /// Error slots of devices that something under way may still look at.
    kept: Vec<(Arc<Cause>, u16, u32)>,
}

/// What happened to one window's nodes.
pub struct Outcome {
    pub faults: Vec<(usize, Arc<Diag>)>,
    /// What reached all of it from outside: its device was lost before it ran.
    pub reached: Option<(u64, Arc<Diag>)>,
}

impl Ledger {
    /// Work was handed over.
    pub fn push(&mut self, mut entry: Entry, device: DeviceId) {
        for (at, diag) in &entry.known {
            self.note(diag, entry.point.stream, device, entry.nodes[*at].number);
        }
        if !self.suspects.is_on() && entry.nodes.iter().any(suspects::crosses) {
            self.suspects.turn_on(self.entries.iter_mut());
        }
        if self.suspects.is_on() {
            self.suspects.enter(&mut entry);
        }
        let lost = entry.known.iter().find(|(_, diag)| diag.code == code::DEVICE_LOST);
        if let Some((at, diag)) = lost {
            self.lost.push((device, entry.nodes[*at].number, diag.clone()));
        }
        self.entries.push_back(entry);
    }

    /// A fault may hold steps that come after it, from now on.
    pub fn note(&self, diag: &Arc<Diag>, slot: u32, device: DeviceId, number: u64) {
        // The loss of a device is one fault, and the end of the script holds nothing.
        let is_noted = self.noted.iter().any(|noted| Arc::ptr_eq(noted, diag));
        if !is_noted && !is_end(diag) {
            self.log.note(slot, device, number);
        }
    }

    /// A device is gone, with what is told of it: place in the order, words.
    pub fn note_loss(&mut self, device: DeviceId, order: u64, told: Arc<Diag>) {
        self.lost.push((device, order, told));
    }

    pub fn loss_of(&self, device: DeviceId) -> Option<(u64, Arc<Diag>)> {
        let found = self.lost.iter().find(|(lost, ..)| *lost == device);
        found.map(|(_, order, told)| (*order, told.clone()))
    }

    /// Elements that were computed wrong without a fault of a kernel, and told at once: `--check`.
    pub fn poison_told(&mut self, views: &[Arc<View>], order: u64, fault: &Arc<Diag>) {
        self.any_poison = true;
        for view in views {
            poison::write(view, Some(&(order, fault.clone())));
            self.suspects.write(view, &[Cause::known_bad()]);
        }
        self.follow();
    }

    /// Once there is poison, what is under way is followed.
    pub fn follow(&mut self) {
        if self.any_poison {
            self.suspects.turn_on(self.entries.iter_mut());
        }
    }

    /// The earliest untold fault that fits.
    fn first_untold(&self, fits: impl Fn(&Untold) -> bool) -> Option<Arc<Diag>> {
        let fitting = self.untold.iter().filter(|untold| fits(untold));
        fitting.min_by_key(|untold| untold.order).map(|untold| untold.fault.clone())
    }

    /// Poisons what depended on a fault, cures what was overwritten whole, and notes what is untold.
    pub fn settle(&mut self, nodes: &[Node], outcome: Outcome, point: Point, device: DeviceId) {
        if outcome.faults.is_empty() && outcome.reached.is_none() && !self.any_poison {
            return;
        }
        self.any_poison = true;
        // What is handed over is followed from there; what ran at once, and what ended before, is here.
        let follows = point.stream == HOST || !self.suspects.is_on();
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_held()) {
            let own = outcome.faults.iter().find(|(owner, _)| *owner == at).map(|(_, diag)| {
                let (order, fault) = (node.number, diag.clone());
                let untold = Untold { fault, order, device, slot: point.stream, sequence: point.sequence };
                self.note(diag, point.stream, device, order);
                if !is_end(diag) && !self.noted.iter().any(|noted| Arc::ptr_eq(noted, diag)) {
                    self.untold.push(untold);
                }
                if diag.code == code::DEVICE_LOST {
                    self.noted.push(diag.clone());
                }
                (order, diag.clone())
            });
            let (members, inputs, outputs) = each::shape_of(node);
            for member in 0..members {
                let inputs = &node.inputs[member * inputs..(member + 1) * inputs];
                let inherited = inputs.iter().filter_map(Input::view).filter_map(|view| poison::of(view));
                let known = outcome.reached.clone().into_iter().chain(own.clone());
                let reached = inherited.chain(known).min_by_key(|(order, _)| *order);
                let outputs = &node.outputs[member * outputs..(member + 1) * outputs];
                let causes: SmallVec<[Arc<Cause>; 1]> = reached.iter().map(|_| Cause::known_bad()).collect();
                for output in outputs {
                    poison::write(output, reached.as_ref());
                    if follows {
                        self.suspects.write(output, &causes);
                    }
                }
            }
        }
    }
}

/// Whether the script ends with that already.
fn is_end(diag: &Diag) -> bool {
    matches!(diag.code, code::INTERRUPTED | code::LIMIT_TIME)
}

impl Entry {
    pub fn new(point: Point, nodes: Vec<Node>) -> Entry {
        Entry {
            point,
            nodes,
            faults: Arc::default(),
            owners: Vec::new(),
            known: Vec::new(),
            slots: Vec::new(),
            ran: None,
            ended: None,
            timing: None,
            host_side: SmallVec::new(),
            causes: Vec::new(),
        }
    }

    fn touches(&self, buffer: &Arc<Buffer>, writes_only: bool) -> bool {
        let same = |view: &Arc<View>| Arc::ptr_eq(&view.buffer, buffer);
        self.nodes.iter().any(|node| node.outputs.iter().any(same) || (!writes_only && node.reads().any(same)))
    }
}

impl Runtime {
    /// Looks at the outcome of everything that has ended.
    pub(in crate::sched) fn harvest(&self, state: &mut State) {
        if let Some(gpus) = self.gpus() {
            let mut last = HOST;
            for entry in &state.ledger.entries {
                if std::mem::replace(&mut last, entry.point.stream) != entry.point.stream {
                    gpus.queues.refresh(entry.point.stream);
                }
            }
        }
        // From the latest to the earliest: what work comes after is then seen to be done when the work is.
        let streams = &state.streams;
        let is_done = |entry: &Entry| streams[entry.point.stream as usize].is_done(entry.point.sequence);
        let done: Vec<bool> = state.ledger.entries.iter().rev().map(is_done).collect();
        if !done.contains(&true) {
            return;
        }
        let in_order = done.iter().rev().take_while(|done| **done).count();
        for _ in 0..in_order {
            let entry = state.ledger.entries.pop_front().expect("it was counted");
            self.close(state, entry);
        }
        if done.iter().filter(|done| **done).count() == in_order {
            state.ledger.follow();
            return;
        }
        let entries = std::mem::take(&mut state.ledger.entries);
        for (entry, done) in entries.into_iter().zip(done.into_iter().rev().skip(in_order)) {
            if done {
                self.close(state, entry);
            } else {
                state.ledger.entries.push_back(entry);
            }
        }
        state.ledger.follow();
    }

    /// The oldest entries that have ended; cheap, for the way of every submission.
    pub(in crate::sched) fn harvest_front(&self, state: &mut State) -> Result<()> {
        while let Some(point) = state.ledger.entries.front().map(|entry| entry.point) {
            let is_done = |state: &State| state.streams[point.stream as usize].is_done(point.sequence);
            // The device is asked where it is not known: mostly once for all that has ended.
            if !is_done(state)
                && let Some(gpus) = self.gpus()
            {
                gpus.queues.refresh(point.stream);
            }
            if is_done(state) {
                let entry = state.ledger.entries.pop_front().expect("it is there");
                self.close(state, entry);
                state.ledger.follow();
            } else if state.ledger.entries.len() >= MAX_IN_FLIGHT {
                self.wait_point(state, point)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn close(&self, state: &mut State, mut entry: Entry) {
        let name = state.streams[entry.point.stream as usize].name;
        let device = name.device;
        let never_ran = entry.ran.as_ref().is_some_and(|ran| !ran.load(Ordering::Acquire));
        let mut faults = std::mem::take(&mut entry.known);
        let found_in_slot = |state: &mut State, address: u64, slot: u32| {
            let (DeviceId::Cuda(index), Some(gpus)) = (device, self.gpus()) else { return None };
            let cause = entry.causes.iter().find(|(_, cause)| cause.device_slot() == address);
            let found = gpus.backend.read_slot(index, slot);
            match cause {
                Some((_, cause)) => state.ledger.kept.push((cause.clone(), index, slot)),
                None => gpus.backend.free_slot(index, slot),
            }
            found
        };
        for &(slot, address, owner) in &entry.slots {
            if let Some(found) = found_in_slot(state, address, slot) {
                faults.push((owner, self.diagnose(found, &entry.nodes[owner], &name.to_string())));
            }
        }
        if let Some(Ended { ends, step_nodes }) = entry.ended.take() {
            for (step, end) in ends.lock().drain(..) {
                let told = |&at: &usize| (at, self.ended(&end, &entry.nodes[at], &name.to_string()));
                faults.extend(step_nodes[step].iter().map(told));
            }
        }
        let bad_slots = |at: usize| faults.iter().any(|(owner, _)| *owner == at);
        suspects::settle(&entry, |at| never_ran || bad_slots(at));
        for (slot, &owner) in entry.faults.iter().zip(&entry.owners) {
            if let Some(found) = slot.get() {
                let node = &entry.nodes[owner];
                faults.push((owner, self.diagnose(found, node, &name.to_string())));
            }
        }
        self.free_kept_slots(state);
        // A device may decide by itself what it leaves out, on the same grounds.
        faults
            .iter()
            .for_each(|(at, diag)| state.ledger.note(diag, entry.point.stream, device, entry.nodes[*at].number));
        // Gates are decided now, by what is known now.
        entry.nodes.iter().for_each(|node| _ = node.is_held());
        if let Some(timing) = entry.timing.take() {
            self.note_submission(name, timing);
        }
        let mut reached = if never_ran { state.ledger.loss_of(device) } else { None };
        if never_ran && reached.is_none() {
            let end = End::Panic("its queue gave up".into());
            let all = entry.nodes.iter().enumerate();
            faults.extend(all.map(|(at, node)| (at, self.ended(&end, node, &name.to_string()))));
        }
        if let Some((order, told)) = self.lost_with(state, &entry, device) {
            if !entry.nodes.is_empty() {
                faults = vec![(0, told.clone())];
            }
            reached = Some((order, told));
        }
        state.ledger.settle(&entry.nodes, Outcome { faults, reached }, entry.point, device);
        for view in &entry.host_side {
            view.buffer.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        if let Some(gpus) = self.gpus() {
            let mut memory = gpus.gpu(device).memory.lock();
            memory.cache().release_ready(entry.point.stream, entry.point.sequence);
            drop(memory);
            gpus.pinned.lock().cache().release_ready(entry.point.stream, entry.point.sequence);
        }
        state.keep_list(entry.nodes);
    }

    /// Waits until a stream has passed a point, and looks at what ended. An interruption is an error.
    pub(in crate::sched) fn wait_point(&self, state: &mut State, point: Point) -> Result<()> {
        if point.stream == HOST || state.streams[point.stream as usize].is_done(point.sequence) {
            self.harvest(state);
            return Ok(());
        }
        let gpus = self.gpus().expect("streams are of devices");
        let passed = gpus.queues.wait(point.stream, point.sequence, &self.options.stop);
        self.harvest(state);
        if passed {
            return Ok(());
        }
        Err(match self.options.stop.is_requested() {
            true => Diag::error(code::INTERRUPTED, "interrupted while waiting for a device"),
            false => Diag::error(code::LIMIT_TIME, "the time for this script was over while it waited for a device"),
        })
    }

    /// Waits for all work in flight that touches a buffer, or only for what writes it.
    pub(in crate::sched) fn wait_buffer(
        &self,
        state: &mut State,
        buffer: &Arc<Buffer>,
        writes_only: bool,
    ) -> Result<()> {
        if !writes_only && buffer.device == DeviceId::Cpu {
            self.stop_readers(buffer);
        }
        loop {
            let found = state.ledger.entries.iter().rev().find(|entry| entry.touches(buffer, writes_only));
            let Some(point) = found.map(|entry| entry.point) else { return Ok(()) };
            self.wait_point(state, point)?;
        }
    }

    /// Raises the earliest untold fault that fits, which is then told.
    pub(in crate::sched) fn tell_first(&self, state: &mut State, fits: impl Fn(&Untold) -> bool) -> Result<()> {
        let Some(first) = state.ledger.first_untold(fits) else { return Ok(()) };
        self.wait_for_repeats(state, &first);
        self.spend(state, &first);
        Err(Box::new((*first).clone()))
    }

    /// A fault was told, and with it those that would only repeat its words.
    fn spend(&self, state: &mut State, told: &Diag) {
        let same = |untold: &Untold| diagnose::is_same(&untold.fault, told);
        while let Some(at) = state.ledger.untold.iter().position(same) {
            self.take_untold(state, at);
        }
    }

    /// Waits for what is under way and may yet repeat a fault's words: the same place queued it. Whether they are told
    /// again does not depend on which device was faster then.
    fn wait_for_repeats(&self, state: &mut State, told: &Diag) {
        let place = diagnose::place(told);
        let repeats = |nodes: &[Node]| nodes.iter().any(|node| node.origin == place);
        for slot in 0..state.windows.len() as u32 {
            if repeats(&state.windows[slot as usize].nodes) {
                self.run_window(state, slot);
            }
        }
        let entries = state.ledger.entries.iter().filter(|entry| repeats(&entry.nodes));
        let points: Vec<Point> = entries.map(|entry| entry.point).collect();
        for point in points {
            // An interruption ends the script, at its next step.
            if self.wait_point(state, point).is_err() {
                break;
            }
        }
    }

    /// The earliest fault that is known and nobody was told, which is then told. Does not wait.
    pub fn known_fault(&self) -> Option<Box<Diag>> {
        let mut state = self.state.lock();
        self.harvest(&mut state);
        let first = state.ledger.first_untold(|_| true)?;
        self.spend(&mut state, &first);
        Some(Box::new((*first).clone()))
    }

    /// Whether work that writes a buffer is recorded or under way. Does not wait.
    pub fn is_pending(&self, buffer: &Arc<Buffer>) -> bool {
        let mut state = self.state.lock();
        self.harvest(&mut state);
        let under_way = || state.ledger.entries.iter().any(|entry| entry.touches(buffer, true));
        buffer.pending.load(Ordering::Relaxed) != 0 || under_way()
    }

    /// Error slots that nobody looks at any more are free.
    fn free_kept_slots(&self, state: &mut State) {
        let Some(gpus) = self.gpus() else { return };
        state.ledger.kept.retain(|(cause, device, slot)| {
            let used = Arc::strong_count(cause) > 1;
            if !used {
                gpus.backend.free_slot(*device, *slot);
            }
            used
        });
    }

    /// Takes a fault off the list of what is untold: it holds no step that is queued from now on.
    pub(in crate::sched) fn take_untold(&self, state: &mut State, at: usize) -> Arc<Diag> {
        let (slot, device) = (state.ledger.untold[at].slot, state.ledger.untold[at].device);
        let deciding = match (device, self.gpus()) {
            (DeviceId::Cuda(index), Some(gpus)) if gpus.backend.decides_gates() => Some((index, gpus)),
            _ => None,
        };
        if deciding.is_some() {
            // Steps that this fault holds have run, and what else goes wrong on its stream is known, before the device
            // forgets it.
            let concerned =
                |entry: &&Entry| entry.point.stream == slot || entry.nodes.iter().any(|node| node.gate.is_some());
            let points: Vec<Point> = state.ledger.entries.iter().filter(concerned).map(|entry| entry.point).collect();
            for point in points {
                if self.wait_point(state, point).is_err() {
                    break;
                }
            }
        }
        let told = state.ledger.untold.remove(at);
        state.ledger.log.tell(told.order, self.place_in_order() - 1);
        if let Some((index, gpus)) = deciding {
            gpus.backend.set_first_fault(index, slot, state.ledger.log.first_untold(slot));
        }
        told.fault
    }

    /// `--check` found this in what was just computed: it is told at once, and these elements stay poisoned.
    pub fn found(&self, diag: Box<Diag>, views: &[Arc<View>]) -> Box<Diag> {
        let order = self.place_in_order() - 1;
        let fault = self.late(diag, order, self.trail());
        self.state.lock().ledger.poison_told(views, order, &fault);
        Box::new((*fault).clone())
    }

    /// Marks a fault as told.
    pub fn told(&self, diag: &Arc<Diag>) {
        let mut state = self.state.lock();
        if state.ledger.untold.iter().any(|untold| Arc::ptr_eq(&untold.fault, diag)) {
            self.wait_for_repeats(&mut state, diag);
            self.spend(&mut state, diag);
        }
    }
}
