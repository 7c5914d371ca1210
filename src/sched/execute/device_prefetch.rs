//! Prefetches copies to devices: a loader offers the pinned memory of its batches, and the copies that the script
//! requested for one batch are already in flight for the next one.
//!
//! The copies have their own stream on each device. Their memory is reserved, but not counted as allocated, until
//! `to` requests the copy: then it becomes the result's memory, and the current stream waits for the copy. A source
//! that was written meanwhile is copied again. Independent of loaders and batches.

use super::transfer::Asked;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::layout::Layout;
use crate::base::span::Origin;
use crate::device::queues::Point;
use crate::device::race::StreamName;
use crate::op::tensor::{Buffer, Held, View};
use crate::sched::backend::touch::Span;
use crate::sched::fault::ledger::Entry;
use crate::sched::memory;
use crate::sched::order::gate::note_writer;
use crate::sched::profile::timeline;
use crate::sched::runtime::Runtime;
use crate::sched::streams::stream::{Moment, StreamHandle};
use crate::sched::window::node::Input;
use parking_lot::Mutex;
use smallvec::smallvec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bound: batches whose work may be queued without having ended. Memory of the copies is reused only after that work,
/// so that a script which never waits would otherwise reserve all memory.
const BATCHES_AHEAD: usize = 4;

/// Where tensors like this one were last copied to: 1 + the device's index, 0 before the first copy.
#[derive(Default)]
pub struct LastTarget(AtomicU32);

impl LastTarget {
    fn device(&self) -> Option<DeviceId> {
        self.0.load(Ordering::Relaxed).checked_sub(1).map(|index| DeviceId::Cuda(index as u16))
    }
}

/// Host memory that may be copied to a device, and the copy that is in flight.
struct Offer {
    last_target: Arc<LastTarget>,
    begun: Option<CopyInFlight>,
}

/// A copy in flight.
struct CopyInFlight {
    /// Its target, not counted as allocated.
    target: Held,
    /// The source's version when it was queued.
    version: u32,
    moment: Moment,
}

/// All offers of a session, by the source's buffer.
#[derive(Default)]
pub struct Offers {
    /// Whether there ever was one: until then the lookup is skipped.
    any: AtomicBool,
    offers: Mutex<HashMap<u64, Offer>>,
    streams: Mutex<HashMap<DeviceId, Arc<StreamHandle>>>,
    readers: Mutex<Vec<Arc<Reader>>>,
}

/// Progress of a loop over batches on the devices that it feeds.
#[derive(Default)]
pub struct BatchPace(VecDeque<Vec<Point>>);

/// A thread that reads host memory of tensors outside of windows.
pub struct Reader {
    /// What it reads.
    buffers: Vec<Held>,
    stopped: AtomicBool,
    /// Locked while it reads.
    busy: Mutex<()>,
}

impl Reader {
    /// Calls `work`, which reads the memory, unless a writer has stopped the reader: then never again.
    pub fn read<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        let _busy = self.busy.lock();
        (!self.stopped.load(Ordering::Acquire)).then(work)
    }
}

/// Rows to copy from host memory to host memory.
pub struct RowCopy {
    from: Span,
    row_bytes: usize,
    to: Span,
}

impl RowCopy {
    /// Copies these rows. Must be called under [`Reader::read`].
    pub fn run(&self, rows: &[usize]) {
        self.from.gather_rows(self.row_bytes, rows, &self.to);
    }
}

impl Runtime {
    /// A thread will read rows of dense host tensors. None if their values are not available.
    pub fn begin_reading(&self, views: &[Arc<View>]) -> Option<Arc<Reader>> {
        for view in views {
            self.settle(view).ok()?;
        }
        let buffers: Vec<Held> = views.iter().map(|view| Held::new(view.clone())).collect();
        let reader = Reader { buffers, stopped: AtomicBool::new(false), busy: Mutex::new(()) };
        // Whoever writes host memory checks this first, and finds the reader.
        reader.buffers.iter().for_each(|held| _ = held.view().buffer.in_flight.fetch_add(1, Ordering::AcqRel));
        let reader = Arc::new(reader);
        self.offers.readers.lock().push(reader.clone());
        Some(reader)
    }

    /// Nothing is read any more when this returns.
    pub fn end_reading(&self, reader: &Arc<Reader>) {
        reader.stopped.store(true, Ordering::Release);
        drop(reader.busy.lock());
        let mut readers = self.offers.readers.lock();
        if let Some(at) = readers.iter().position(|other| Arc::ptr_eq(other, reader)) {
            readers.remove(at);
            reader.buffers.iter().for_each(|held| _ = held.view().buffer.in_flight.fetch_sub(1, Ordering::AcqRel));
        }
    }

    /// Before a host buffer is written: stops the threads that read it.
    pub(in crate::sched) fn stop_readers(&self, buffer: &Arc<Buffer>) {
        let reads = |reader: &&Arc<Reader>| reader.buffers.iter().any(|held| Arc::ptr_eq(&held.view().buffer, buffer));
        let found: Vec<Arc<Reader>> = self.offers.readers.lock().iter().filter(reads).cloned().collect();
        found.iter().for_each(|reader| self.end_reading(reader));
    }

    /// New pinned memory for `rows` rows of a dense host tensor, and the copy that fills it.
    pub fn rows_to_pinned(&self, from: &Arc<View>, rows: usize, origin: Origin) -> Result<(Arc<View>, RowCopy)> {
        let mut layout = Layout::contiguous(from.shape());
        layout.shape[0] = rows;
        let layout = Layout::contiguous(&layout.shape);
        let row_bytes = from.layout.numel() / from.shape()[0].max(1) * from.dtype.size_bytes();
        let buffer = self.buffer(DeviceId::Cpu, rows * row_bytes, true);
        buffer.owned_by(origin);
        self.give_memory(&buffer)?;
        let to = Arc::new(View::new(buffer, layout, from.dtype));
        let bytes = from.layout.numel() * from.dtype.size_bytes();
        let copy = RowCopy { from: Span::new(from.ptr(), bytes), row_bytes, to: Span::new(to.ptr(), rows * row_bytes) };
        Ok((to, copy))
    }

    /// Offers pinned memory: a copy of all of it to a device uses a separate stream.
    pub fn offer(&self, view: &Arc<View>, last_target: &Arc<LastTarget>) {
        if view.buffer.pinned && view.covers_buffer() && view.layout.numel() > 0 {
            self.offers.any.store(true, Ordering::Relaxed);
            let offer = Offer { last_target: last_target.clone(), begun: None };
            self.offers.offers.lock().insert(view.buffer.id, offer);
        }
    }

    /// Starts the copy of an offer to the device where its predecessor was last copied.
    pub fn copy_ahead(&self, view: &Arc<View>, origin: Origin) {
        let last_target = self.offers.offers.lock().get(&view.buffer.id).and_then(|offer| offer.last_target.device());
        // An error here occurs again, and is reported, when the copy is requested.
        let Some(device) = last_target.filter(|&device| !self.is_lost(device)) else { return };
        let asked = Asked { name: "to", origin, non_blocking: true };
        if let Ok(Some(begun)) = self.begin_copy(view, device, asked)
            && let Some(offer) = self.offers.offers.lock().get_mut(&view.buffer.id)
        {
            offer.begun = Some(begun);
        }
    }

    /// The copy of this will not be requested any more.
    pub fn withdraw(&self, view: &Arc<View>) {
        let gone = self.offers.offers.lock().remove(&view.buffer.id);
        drop(gone);
    }

    /// Memory is short: frees copies that were not requested. Returns whether there were any.
    pub(in crate::sched) fn drop_copies_ahead(&self) -> bool {
        if !self.offers.any.load(Ordering::Relaxed) {
            return false;
        }
        let gone: Vec<CopyInFlight> =
            self.offers.offers.lock().values_mut().filter_map(|offer| offer.begun.take()).collect();
        !gone.is_empty()
    }

    /// A batch of a loop begins: waits for the work on the batch that was `BATCHES_AHEAD` before it.
    pub fn limit_batches_in_flight(&self, pace: &mut BatchPace) -> Result<()> {
        let mut state = self.state.lock();
        let devices: Vec<DeviceId> = self.offers.streams.lock().keys().copied().collect();
        let now = devices.into_iter().map(|device| {
            let slot = self.slot_of(device);
            Point { stream: slot, sequence: state.streams[slot as usize].submitted }
        });
        pace.0.push_back(now.collect());
        if pace.0.len() > BATCHES_AHEAD {
            for point in pace.0.pop_front().unwrap_or_default() {
                self.wait_point(&mut state, point)?;
            }
        }
        Ok(())
    }

    fn copy_stream(&self, device: DeviceId) -> Result<Arc<StreamHandle>> {
        if let Some(known) = self.offers.streams.lock().get(&device) {
            return Ok(known.clone());
        }
        let name = StreamName { device, number: StreamName::COPIES };
        let made = self.add_stream(&mut self.state.lock(), name, 0, Origin::NONE)?;
        Ok(self.offers.streams.lock().entry(device).or_insert(made).clone())
    }

    fn begin_copy(&self, from: &Arc<View>, device: DeviceId, asked: Asked) -> Result<Option<CopyInFlight>> {
        let stream = self.copy_stream(device)?;
        self.flush_buffer(&mut self.state.lock(), &from.buffer);
        let buffer = self.buffer(device, from.buffer.size_bytes, false);
        buffer.owned_by(asked.origin);
        if !self.give_reserved(&buffer, stream.slot) {
            return Ok(None);
        }
        let layout = Layout::contiguous(from.shape());
        let target = Held::new(Arc::new(View::new(buffer, layout, from.dtype)));
        let version = from.buffer.version.load(Ordering::Acquire);
        self.transfer_on(Some(stream.slot), from, target.view(), asked)?;
        let moment = self.moment(&mut self.state.lock(), stream.slot, false);
        Ok(Some(CopyInFlight { target, version, moment }))
    }

    /// The copy of the offer, in flight or started now, becomes this new tensor's memory; false if nothing was
    /// offered or there is no memory for it.
    pub fn take_offered(&self, from: &Arc<View>, to: &Arc<View>, asked: Asked) -> Result<bool> {
        let DeviceId::Cuda(index) = to.buffer.device else { return Ok(false) };
        if !self.offers.any.load(Ordering::Relaxed)
            || !from.covers_buffer()
            || !to.covers_buffer()
            || self.options.blocking
        {
            return Ok(false);
        }
        let begun = {
            let mut offers = self.offers.offers.lock();
            let Some(offer) = offers.get_mut(&from.buffer.id) else { return Ok(false) };
            offer.last_target.0.store(index as u32 + 1, Ordering::Relaxed);
            offer.begun.take()
        };
        self.check_device(&mut self.state.lock(), to.buffer.device)?;
        let is_it = |begun: &CopyInFlight| {
            let version = from.buffer.version.load(Ordering::Acquire);
            begun.version == version && begun.target.view().buffer.device == to.buffer.device
        };
        let begun = match begun.filter(is_it) {
            Some(begun) => Some(begun),
            None => self.begin_copy(from, to.buffer.device, asked)?,
        };
        let Some(begun) = begun else { return Ok(false) };
        self.adopt(from, to, begun, asked)?;
        Ok(true)
    }

    fn adopt(&self, from: &Arc<View>, to: &Arc<View>, begun: CopyInFlight, asked: Asked) -> Result<()> {
        let began = self.time_now();
        let mut state = self.state.lock();
        let state = &mut *state;
        let slot = self.slot_of(to.buffer.device);
        self.wait_moment(state, slot, &begun.moment);
        let copied = begun.target.view();
        // The copy's own faults reach the result through its target.
        let inputs = smallvec![Input::View(from.clone()), Input::View(copied.clone())];
        let node = self.transfer_node(asked, inputs, to);
        self.watch(state, slot, &node)?;
        self.take_over(&copied.buffer, &to.buffer)?;
        to.write_by(asked.origin);
        note_writer(&to.buffer, slot, node.number);
        let (part, point) = (timeline::part(&node), begun.moment.point);
        state.streams[point.stream as usize].last_work = (node.number, point.sequence);
        state.ledger.push(Entry::new(point, vec![node]), to.buffer.device);
        self.note_launch(began, part);
        Ok(())
    }

    /// The memory of one buffer becomes another's, and is counted as allocated.
    fn take_over(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        if to.has_memory() {
            to.home.release(to);
        } else if let Some(gpus) = self.gpus()
            && !gpus.faults.lock().may_alloc(to.device)
        {
            let report = self.with_home(to, |memory| memory.cache().out_of_memory(to.size_bytes));
            return Err(memory::diagnose(&report, to.device, self.options.limit_of(to.device)));
        }
        let number = from.block.load(Ordering::Relaxed);
        let owner = to.writer.load(Ordering::Relaxed);
        self.with_home(from, |memory| memory.count(number, owner));
        to.block.store(number, Ordering::Relaxed);
        to.stream.store(from.stream.load(Ordering::Relaxed), Ordering::Relaxed);
        to.address.store(from.address.swap(0, Ordering::AcqRel), Ordering::Release);
        Ok(())
    }

    /// Memory that is reserved and not counted as allocated; false if there is none.
    fn give_reserved(&self, buffer: &Buffer, slot: u32) -> bool {
        let owner = buffer.writer.load(Ordering::Relaxed);
        let Some(taken) = self.with_home(buffer, |memory| memory.take_reserved(buffer.size_bytes, slot, owner)) else {
            return false;
        };
        buffer.stream.store(slot, Ordering::Relaxed);
        buffer.block.store(taken.number, Ordering::Relaxed);
        buffer.address.store(taken.address, Ordering::Release);
        true
    }
}
