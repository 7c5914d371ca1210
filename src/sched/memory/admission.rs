//! Whether there will be memory for a result that is computed later: checked at the call, where the error can be
//! caught.
//!
//! Invariant: results without memory are few enough to get it from segments that can still be reserved, however they
//! are packed. Further results get their memory at the call, from cached blocks, or after all pending work has run.

use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::limits::WINDOW_BYTES;
use crate::device::cache::{SHARED_SEGMENTS_BYTES, StreamPoint, reserved_bytes_bound};
use crate::op::tensor::Buffer;
use crate::sched::memory;
use crate::sched::order::points::HOST;
use crate::sched::runtime::{Runtime, SMALL_BYTES, State};
use std::sync::atomic::Ordering;

/// Bound: free memory below which also small results are checked, which are otherwise not counted: more than all
/// windows hold of them.
const TIGHT_BYTES: usize = 16 * SMALL_BYTES;

/// By allocator: bytes that guarantee memory for the pending results, and the windows that they are in.
#[derive(Default)]
pub struct PendingDemand(Vec<(usize, usize)>);

impl PendingDemand {
    /// The demand of a window is added or removed.
    pub fn note(&mut self, home: usize, bytes: usize, comes: bool) {
        if self.0.len() <= home {
            self.0.resize(home + 1, (0, 0));
        }
        let (all, windows) = &mut self.0[home];
        (*all, *windows) = if comes { (*all + bytes, *windows + 1) } else { (*all - bytes, *windows - 1) };
    }

    fn more(&mut self, home: usize, bytes: usize) {
        self.0[home].0 += bytes;
    }

    fn of(&self, home: usize) -> (usize, usize) {
        self.0.get(home).copied().unwrap_or_default()
    }
}

/// Which allocator a buffer's memory comes from: the host's, that of pinned memory, those of GPUs.
fn home_of(buffer: &Buffer) -> usize {
    match buffer.device {
        DeviceId::Cpu => buffer.pinned as usize,
        DeviceId::Cuda(index) => 2 + index as usize,
    }
}

impl Runtime {
    /// Admission: a result that may find no memory later gets it at the call, so that out of memory can be caught
    /// there.
    pub fn admit(&self, buffer: &Buffer) -> Result<()> {
        let (home, on_gpu) = (home_of(buffer), buffer.device.is_cuda());
        let tiny = if on_gpu { self.tiny_device_bytes } else { self.tiny_bytes };
        let is_tight = self.tight.load(Ordering::Relaxed) >> home.min(63) & 1 != 0;
        if buffer.size_bytes == 0 || buffer.size_bytes <= tiny && tiny > 0 && !is_tight {
            return Ok(());
        }
        let slot = self.slot_of(buffer.device);
        let mut state = self.state.lock();
        let window = &mut state.windows[slot as usize];
        window.pending_bytes += buffer.size_bytes;
        let pending = window.pending_bytes;
        let counted = on_gpu && self.gpus().is_some_and(|gpus| gpus.counts_requests);
        if !counted {
            // Small results of the host are recognized without the allocator.
            let small = pending < SMALL_BYTES.min(self.options.host_limit / 64);
            if small && !on_gpu && !is_tight {
                return Ok(());
            }
            if pending < WINDOW_BYTES && self.may_be_deferred(&mut state, slot, home, buffer) {
                return Ok(());
            }
        }
        self.flush_device(&mut state, buffer.device);
        drop(state);
        self.give_memory(buffer)
    }

    /// Whether the result may get its memory later, or gets it now without using up other memory.
    fn may_be_deferred(&self, state: &mut State, slot: u32, home: usize, buffer: &Buffer) -> bool {
        let bytes = reserved_bytes_bound(buffer.size_bytes);
        let (demand, windows) = state.demand.of(home);
        let known = state.windows[slot as usize].demand.iter().position(|(other, _)| *other == home);
        let windows = windows + known.is_none() as usize;
        let owner = buffer.writer.load(Ordering::Relaxed);
        let taken = self.with_home(buffer, |memory| {
            let room = memory.cache().room();
            self.note_room(home, room);
            if demand.saturating_add(bytes).saturating_add(windows * SHARED_SEGMENTS_BYTES) <= room {
                return Ok(());
            }
            Err(memory.take_cached(buffer.size_bytes, slot, owner))
        });
        match taken {
            Ok(()) => {
                let own = &mut state.windows[slot as usize].demand;
                match known {
                    Some(at) => {
                        own[at].1 += bytes;
                        state.demand.more(home, bytes);
                    }
                    None => {
                        own.push((home, bytes));
                        state.demand.note(home, bytes, true);
                    }
                }
                true
            }
            Err(Some(taken)) => {
                self.keep(buffer, slot, taken);
                true
            }
            Err(None) => false,
        }
    }

    fn note_room(&self, home: usize, room: usize) {
        let bit = 1 << home.min(63);
        let is_tight = room < TIGHT_BYTES;
        // Asked for each allocation: nearly always nothing has changed.
        if is_tight == (self.tight.load(Ordering::Relaxed) & bit != 0) {
            return;
        }
        if is_tight {
            self.tight.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.tight.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// The memory that a device may reserve has changed.
    pub fn update_room(&self, device: DeviceId) -> Result<()> {
        let room = self.with_memory(device, |memory| memory.cache().room())?;
        if let DeviceId::Cuda(index) = device {
            self.note_room(2 + index as usize, room);
        }
        Ok(())
    }

    fn keep(&self, buffer: &Buffer, slot: u32, taken: memory::Taken) {
        buffer.stream.store(slot, Ordering::Relaxed);
        buffer.block.store(taken.number, Ordering::Relaxed);
        buffer.address.store(taken.address, Ordering::Release);
    }

    /// Allocates memory now, of the device's current stream; out of memory is an error value.
    pub fn give_memory(&self, buffer: &Buffer) -> Result<()> {
        self.give_memory_of(buffer, self.slot_of(buffer.device))
    }

    /// The same of the stream whose work will write it first, which need not be the current one: what another stream has freed
    /// may still be in use there.
    pub fn give_memory_of(&self, buffer: &Buffer, slot: u32) -> Result<()> {
        if buffer.has_memory() {
            return Ok(());
        }
        let owner = buffer.writer.load(Ordering::Relaxed);
        let slot = if buffer.pinned { HOST } else { slot };
        let mut planned = true;
        if let (DeviceId::Cuda(_), Some(gpus)) = (buffer.device, self.gpus())
            && gpus.counts_requests
        {
            planned = gpus.faults.lock().may_alloc(buffer.device);
        }
        let wait = |points: &[StreamPoint]| {
            let Some(gpus) = self.gpus_if_opened() else { return true };
            gpus.backend.let_go();
            points.iter().all(|p| gpus.queues.wait(p.stream, p.sequence, &self.options.stop))
        };
        let home = home_of(buffer);
        let taken = self.with_home(buffer, |memory| {
            if !planned {
                return Err(Box::new(memory.cache().out_of_memory(buffer.size_bytes)));
            }
            let taken = memory.take(buffer.size_bytes, slot, owner, wait);
            self.note_room(home, memory.cache().room());
            taken
        });
        if taken.is_err() && planned && self.drop_copies_ahead() {
            return self.give_memory_of(buffer, slot);
        }
        let report = match taken {
            Ok(taken) => {
                self.keep(buffer, slot, taken);
                return Ok(());
            }
            Err(report) => report,
        };
        Err(memory::diagnose(&report, buffer.device, self.options.limit_of(buffer.device)))
    }
}
