//! Copies between devices: ordered against the current streams of both, as in PyTorch.

use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::span::Origin;
use crate::device::queues::Point;
use crate::op::tensor::View;
use crate::sched::backend::task::{Enqueued, Task};
use crate::sched::backend::touch::Span;
use crate::sched::fault::ledger::{Access, Entry};
use crate::sched::order::gate::note_writer;
use crate::sched::order::points::HOST;
use crate::sched::profile::timeline;
use crate::sched::runtime::{Runtime, State};
use crate::sched::window::node::{Input, Node, Work};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Who requested a copy.
#[derive(Clone, Copy)]
pub struct Asked {
    pub name: &'static str,
    pub origin: Origin,
    /// The host does not wait for the copy; only between pinned memory and a device.
    pub non_blocking: bool,
}

impl Runtime {
    /// Copies the bytes of one dense view to another of the same size on another device.
    pub fn transfer(&self, from: &Arc<View>, to: &Arc<View>, asked: Asked) -> Result<()> {
        self.transfer_on(None, from, to, asked)
    }

    /// As `transfer`, on a stream other than the device's current one.
    pub(in crate::sched) fn transfer_on(
        &self,
        slot: Option<u32>,
        from: &Arc<View>,
        to: &Arc<View>,
        asked: Asked,
    ) -> Result<()> {
        let begun = self.time_now();
        let mut state = self.state.lock();
        let state = &mut *state;
        for view in [from, to] {
            self.check_device(state, view.buffer.device)?;
            self.flush_buffer(state, &view.buffer);
        }
        let (source, target) = (from.buffer.device, to.buffer.device);
        let slot = slot.unwrap_or_else(|| self.slot_of(if source.is_cuda() { source } else { target }));
        self.run_window(state, slot);
        let other = if source.is_cuda() && target.is_cuda() { Some(self.slot_of(target)) } else { None };
        if let Some(other) = other {
            self.order_slots(state, slot, other);
        }
        for view in [from, to] {
            self.give_memory(&view.buffer)?;
            if view.buffer.device == DeviceId::Cpu && view.buffer.in_flight.load(Ordering::Acquire) > 0 {
                self.wait_buffer(state, &view.buffer, Access::Write)?;
            }
        }
        if source == DeviceId::Cpu {
            self.follow_poison(state, slot, from);
        }
        let node = self.transfer_node(asked, smallvec![Input::View(from.clone())], to);
        self.watch(state, slot, &node)?;
        to.write_by(asked.origin);
        note_writer(&to.buffer, slot, node.number);
        let late = asked.non_blocking && (from.buffer.pinned || to.buffer.pinned || other.is_some());
        let (part, number) = (timeline::part(&node), node.number);
        let point = self.queue_copy(state, slot, node, late);
        self.note_launch(begun, part);
        if let Some(other) = other {
            self.order_slots(state, other, slot);
        }
        if (!late && target == DeviceId::Cpu) || self.options.blocking {
            let _waiting = self.waiting("copy to the host");
            self.wait_point(state, point)?;
            self.host_came_after(state, slot, number);
            self.watch_host_read(state, to);
            self.follow_poison(state, HOST, to);
        }
        self.harvest_front(state)
    }

    /// A copy into a view, as a node with a queue number.
    pub(super) fn transfer_node(&self, asked: Asked, inputs: SmallVec<[Input; 3]>, to: &Arc<View>) -> Node {
        Node {
            name: asked.name,
            origin: asked.origin,
            number: self.next_number(),
            call_chain: self.call_chain(),
            work: Work::Transfer,
            inputs,
            outputs: smallvec![to.clone()],
            ..Node::default()
        }
    }

    fn queue_copy(&self, state: &mut State, slot: u32, node: Node, late: bool) -> Point {
        let (from, to) = (node.inputs[0].view().expect("a copy reads").clone(), node.outputs[0].clone());
        let bytes = from.layout.numel() * from.dtype.size_bytes();
        let device = state.streams[slot as usize].name.device;
        let known = self.planned_fault(device, &node).map(|fault| (0, fault));
        let (source, target) = (Span::new(from.ptr(), bytes), Span::new(to.ptr(), bytes));
        let (source_on, target_on) = (from.buffer.device, to.buffer.device);
        let task = if known.is_some() {
            Task::Fails
        } else if source_on == DeviceId::Cpu && !late {
            // Memory that the host may change while the copy waits is copied now.
            Task::Write { from: source, to: target }
        } else {
            Task::Copy { from: (source_on, source), to: (target_on, target) }
        };
        let Enqueued { sequence, timing, ran, .. } = self.enqueue_watched(state, slot, task, timeline::part(&node));
        let host_side = [(&from, late), (&to, true)];
        let host_side = host_side.into_iter().filter(|(view, used)| *used && view.buffer.device == DeviceId::Cpu);
        let host_side: SmallVec<[Arc<View>; 1]> = host_side.map(|(view, _)| view.clone()).collect();
        for view in &host_side {
            view.buffer.in_flight.fetch_add(1, Ordering::AcqRel);
        }
        self.note_use(&from.buffer, slot, sequence);
        self.note_use(&to.buffer, slot, sequence);
        let point = Point { stream: slot, sequence };
        let known = known.into_iter().collect();
        state.ledger.push(Entry { known, host_side, timing, ran, ..Entry::new(point, vec![node]) }, device);
        point
    }

    /// Fills a new dense view of a device from the host.
    pub fn upload_to_device(&self, view: &Arc<View>, bytes: &[u8], asked: Asked) -> Result<()> {
        let begun = self.time_now();
        let mut state = self.state.lock();
        let state = &mut *state;
        self.check_device(state, view.buffer.device)?;
        let slot = self.slot_of(view.buffer.device);
        self.run_window(state, slot);
        self.give_memory(&view.buffer)?;
        let node = self.transfer_node(asked, smallvec![], view);
        self.watch(state, slot, &node)?;
        note_writer(&view.buffer, slot, node.number);
        let from = Span::new(bytes.as_ptr() as *mut u8, bytes.len());
        let task = Task::Write { from, to: Span::new(view.ptr(), bytes.len()) };
        let Enqueued { sequence, timing, ran, .. } = self.enqueue_watched(state, slot, task, timeline::part(&node));
        self.note_launch(begun, timeline::part(&node));
        self.note_use(&view.buffer, slot, sequence);
        let entry = Entry { timing, ran, ..Entry::new(Point { stream: slot, sequence }, vec![node]) };
        state.ledger.push(entry, view.buffer.device);
        self.harvest_front(state)
    }

    /// Runs the window that contains a node on this buffer.
    pub(in crate::sched) fn flush_buffer(&self, state: &mut State, buffer: &crate::op::tensor::Buffer) {
        match buffer.pending.load(Ordering::Relaxed) {
            0 => {}
            pending => self.run_window(state, pending - 1),
        }
    }
}
