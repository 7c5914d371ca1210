//! Work that was submitted to devices and whose outcome is not known yet, and faults that were not reported.
//!
//! Outcomes are read in the order in which the work was queued, so that the report does not depend on which device
//! was faster.

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
use crate::sched::order::gate::{FaultLog, Past};
use crate::sched::order::points::HOST;
use crate::sched::profile::timeline::Timing;
use crate::sched::runtime::{Runtime, State};
use crate::sched::window::each;
use crate::sched::window::node::{Input, Node};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bound: submissions in flight before the host waits for the oldest, so that a script that never waits does not fill
/// the memory with its queue.
pub const MAX_IN_FLIGHT: usize = 1024;

/// One submitted window.
pub struct Entry {
    pub point: Point,
    pub nodes: Vec<Node>,
    /// Error slots, and the node that owns each.
    pub faults: Arc<[Faults]>,
    pub owners: Vec<usize>,
    /// Faults that were known when it was submitted.
    pub known: Vec<(usize, Arc<Diag>)>,
    /// Error slots that the device keeps, with their addresses and the nodes that own them.
    pub slots: Vec<(u32, u64, usize)>,
    /// Whether it ran to its end; none if that cannot be known.
    pub ran: Option<Arc<AtomicBool>>,
    /// Steps that did not finish.
    pub ended: Option<Ended>,
    /// When it ran, for a trace.
    pub timing: Option<Timing>,
    /// Host memory that it reads or writes.
    pub host_side: SmallVec<[Arc<View>; 1]>,
    /// Faults of its nodes that others may query before its outcome is read.
    pub causes: Vec<(usize, Arc<Cause>)>,
}

/// A fault that was not reported yet.
pub struct Unreported {
    pub fault: Arc<Diag>,
    /// The node's queue number.
    pub order: u64,
    pub device: DeviceId,
    pub slot: u32,
}

impl Unreported {
    /// Whether its work is among this.
    pub fn is_within(&self, past: &Past) -> bool {
        past.of(self.slot) >= self.order
    }
}

/// What the host is about to do with a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

#[derive(Default)]
pub struct Ledger {
    pub entries: VecDeque<Entry>,
    pub unreported: Vec<Unreported>,
    /// Lost devices, with their diagnostics.
    lost: Vec<(DeviceId, u64, Arc<Diag>)>,
    /// Losses of devices that were recorded, so that each counts as one fault.
    noted: Vec<Arc<Diag>>,
    /// Whether any buffer was ever poisoned: until then the check is skipped.
    any_poison: bool,
    /// Holds steps of optimizers.
    pub log: Arc<FaultLog>,
    pub suspects: Suspects,
    /// Error slots of devices that work in flight may still read.
    kept: Vec<(Arc<Cause>, u16, u32)>,
}

/// The outcome of one window's nodes.
pub struct Outcome {
    pub faults: Vec<(usize, Arc<Diag>)>,
    /// A fault from outside that reached all of it: its device was lost before it ran.
    pub reached: Option<(u64, Arc<Diag>)>,
}

impl Ledger {
    /// Work was submitted.
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
        if let Some((at, diag)) = lost
            && self.loss_of(device).is_none()
        {
            self.lost.push((device, entry.nodes[*at].number, diag.clone()));
        }
        self.entries.push_back(entry);
    }

    /// From now on a fault may hold steps that run after it.
    pub fn note(&self, diag: &Arc<Diag>, slot: u32, device: DeviceId, number: u64) {
        // The loss of a device is one fault, and the end of the script holds nothing.
        let is_noted = self.noted.iter().any(|noted| Arc::ptr_eq(noted, diag));
        if !is_noted && !is_end(diag) {
            self.log.note(slot, device, number);
        }
    }

    /// A device is lost, with its queue number and diagnostic.
    pub fn note_loss(&mut self, device: DeviceId, order: u64, report: Arc<Diag>) {
        self.lost.push((device, order, report));
    }

    pub fn loss_of(&self, device: DeviceId) -> Option<(u64, Arc<Diag>)> {
        let found = self.lost.iter().find(|(lost, ..)| *lost == device);
        found.map(|(_, order, report)| (*order, report.clone()))
    }

    /// Elements that were computed wrong without a fault of a kernel, and reported at once: `--check`.
    pub fn poison_reported(&mut self, views: &[Arc<View>], order: u64, fault: &Arc<Diag>) {
        self.any_poison = true;
        for view in views {
            poison::write(view, Some(&(order, fault.clone())));
            self.suspects.write(view, &[Cause::known_bad()]);
        }
        self.follow();
    }

    /// Once there is poison, work in flight is followed.
    pub fn follow(&mut self) {
        if self.any_poison {
            self.suspects.turn_on(self.entries.iter_mut());
        }
    }

    /// The earliest unreported fault that matches.
    fn first_unreported(&self, fits: impl Fn(&Unreported) -> bool) -> Option<Arc<Diag>> {
        let fitting = self.unreported.iter().filter(|unreported| fits(unreported));
        fitting.min_by_key(|unreported| unreported.order).map(|unreported| unreported.fault.clone())
    }

    /// Poisons what depended on a fault, clears poison that was overwritten completely, and records unreported
    /// faults.
    pub fn settle(&mut self, nodes: &[Node], outcome: Outcome, point: Point, device: DeviceId) {
        if outcome.faults.is_empty() && outcome.reached.is_none() && !self.any_poison {
            return;
        }
        self.any_poison = true;
        // Submitted work is followed from its submission; work that ran at once, or has already ended, is handled
        // here.
        let follows = point.stream == HOST || !self.suspects.is_on();
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_held()) {
            let own = outcome.faults.iter().find(|(owner, _)| *owner == at).map(|(_, diag)| {
                let (order, fault) = (node.number, diag.clone());
                let unreported = Unreported { fault, order, device, slot: point.stream };
                self.note(diag, point.stream, device, order);
                let is_noted = self.noted.iter().any(|noted| Arc::ptr_eq(noted, diag));
                if !is_end(diag) && !is_noted {
                    self.unreported.push(unreported);
                }
                if diag.code == code::DEVICE_LOST && !is_noted {
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

/// Whether the script already ends with that.
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

    fn touches(&self, buffer: &Arc<Buffer>, access: Access) -> bool {
        let same = |view: &Arc<View>| Arc::ptr_eq(&view.buffer, buffer);
        self.nodes
            .iter()
            .any(|node| node.outputs.iter().any(same) || (access == Access::Write && node.reads().any(same)))
    }
}

impl Runtime {
    /// Reads the outcome of everything that has ended.
    pub(in crate::sched) fn harvest(&self, state: &mut State) {
        if let Some(gpus) = self.gpus() {
            let mut last = HOST;
            for entry in &state.ledger.entries {
                if std::mem::replace(&mut last, entry.point.stream) != entry.point.stream {
                    gpus.queues.refresh(entry.point.stream);
                }
            }
        }
        // From the latest to the earliest: work that ran before is then known to be done when later work is.
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

    /// Reads the oldest entries that have ended; cheap enough for every submission.
    pub(in crate::sched) fn harvest_front(&self, state: &mut State) -> Result<()> {
        while let Some(point) = state.ledger.entries.front().map(|entry| entry.point) {
            let is_done = |state: &State| state.streams[point.stream as usize].is_done(point.sequence);
            // The device is queried if the progress is not known: usually once for all that has ended.
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
                let diagnosed = |&at: &usize| (at, self.ended(&end, &entry.nodes[at], &name.to_string()));
                faults.extend(step_nodes[step].iter().map(diagnosed));
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
        self.free_device_slots(state);
        // A device may decide itself what it skips, by the same conditions.
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
        if let Some((order, report)) = self.lost_with(state, &entry, device) {
            if !entry.nodes.is_empty() {
                faults = vec![(0, report.clone())];
            }
            reached = Some((order, report));
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

    /// Waits until a stream has passed a point, and reads the outcome of what ended. An interruption is an error.
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

    /// Waits for all work in flight that accesses a buffer, or, for a read, only for what writes it.
    pub(in crate::sched) fn wait_buffer(&self, state: &mut State, buffer: &Arc<Buffer>, access: Access) -> Result<()> {
        if access == Access::Write && buffer.device == DeviceId::Cpu {
            self.stop_readers(buffer);
        }
        loop {
            let found = state.ledger.entries.iter().rev().find(|entry| entry.touches(buffer, access));
            let Some(point) = found.map(|entry| entry.point) else { return Ok(()) };
            self.wait_point(state, point)?;
        }
    }

    /// Raises the earliest unreported fault that matches; it is then reported.
    pub(in crate::sched) fn raise_first(&self, state: &mut State, fits: impl Fn(&Unreported) -> bool) -> Result<()> {
        let Some(first) = state.ledger.first_unreported(fits) else { return Ok(()) };
        self.report_with_repeats(state, &first);
        Err(Box::new((*first).clone()))
    }

    /// A fault is reported, and with it those with the same text, also where their work is under way.
    pub(in crate::sched) fn report_with_repeats(&self, state: &mut State, reported: &Diag) {
        self.wait_for_repeats(state, reported);
        self.remove_repeats(state, reported);
    }

    /// A fault was reported; those with the same text are reported with it.
    fn remove_repeats(&self, state: &mut State, reported: &Diag) {
        let same = |unreported: &Unreported| diagnose::is_same(&unreported.fault, reported);
        while let Some(at) = state.ledger.unreported.iter().position(same) {
            self.take_unreported(state, at);
        }
    }

    /// Waits for work in flight that may repeat a fault's text: the same position queued it. Whether they are
    /// reported again then does not depend on which device was faster.
    fn wait_for_repeats(&self, state: &mut State, reported: &Diag) {
        let place = diagnose::queued_at(reported);
        let repeats = |nodes: &[Node]| nodes.iter().any(|node| node.origin == place);
        for slot in 0..state.windows.len() as u32 {
            if repeats(&state.windows[slot as usize].nodes) {
                self.run_window(state, slot);
            }
        }
        let entries = state.ledger.entries.iter().filter(|entry| repeats(&entry.nodes));
        let points: Vec<Point> = entries.map(|entry| entry.point).collect();
        for point in points {
            // An interruption ends the script at its next step.
            if self.wait_point(state, point).is_err() {
                break;
            }
        }
    }

    /// The earliest known fault that was not reported, which is then reported. Does not wait.
    pub fn known_fault(&self) -> Option<Box<Diag>> {
        let mut state = self.state.lock();
        self.harvest(&mut state);
        let first = state.ledger.first_unreported(|_| true)?;
        self.remove_repeats(&mut state, &first);
        Some(Box::new((*first).clone()))
    }

    /// Whether work that writes a buffer is recorded or in flight. Does not wait.
    pub fn is_pending(&self, buffer: &Arc<Buffer>) -> bool {
        let mut state = self.state.lock();
        self.harvest(&mut state);
        let under_way = || state.ledger.entries.iter().any(|entry| entry.touches(buffer, Access::Read));
        buffer.pending.load(Ordering::Relaxed) != 0 || under_way()
    }

    /// Frees error slots that are not read any more.
    fn free_device_slots(&self, state: &mut State) {
        let Some(gpus) = self.gpus() else { return };
        state.ledger.kept.retain(|(cause, device, slot)| {
            let used = Arc::strong_count(cause) > 1;
            if !used {
                gpus.backend.free_slot(*device, *slot);
            }
            used
        });
    }

    /// Removes a fault from the list of unreported ones: it holds no step that is queued from now on.
    pub(in crate::sched) fn take_unreported(&self, state: &mut State, at: usize) -> Arc<Diag> {
        let (slot, device) = (state.ledger.unreported[at].slot, state.ledger.unreported[at].device);
        let deciding = match (device, self.gpus()) {
            (DeviceId::Cuda(index), Some(gpus)) if gpus.backend.decides_gates() => Some((index, gpus)),
            _ => None,
        };
        if deciding.is_some() {
            // Steps that this fault holds have run, and other faults of its stream are known, before the device
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
        let removed = state.ledger.unreported.remove(at);
        state.ledger.log.mark_reported(removed.order, self.current_queue_number() - 1);
        self.forget_reported(state);
        if let Some((index, gpus)) = deciding {
            gpus.backend.set_first_fault(index, slot, state.ledger.log.first_unreported(slot));
        }
        removed.fault
    }

    /// `--check` found this in a result: it is reported at once, and these elements stay poisoned.
    pub fn found(&self, diag: Box<Diag>, views: &[Arc<View>]) -> Box<Diag> {
        let order = self.current_queue_number() - 1;
        let fault = self.late(diag, order, self.call_chain());
        self.state.lock().ledger.poison_reported(views, order, &fault);
        Box::new((*fault).clone())
    }

    /// Marks a fault as reported.
    pub fn mark_reported(&self, diag: &Arc<Diag>) {
        let mut state = self.state.lock();
        if state.ledger.unreported.iter().any(|unreported| Arc::ptr_eq(&unreported.fault, diag)) {
            self.report_with_repeats(&mut state, diag);
        }
    }
}
