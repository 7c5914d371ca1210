//! Copies of pageable host memory through pinned buffers, by several threads if the copy is large.
//!
//! The driver's own copy of pageable memory makes the caller wait for the stream. This one waits only until the bytes are
//! read, and its threads keep the link to the device busy. One for each stream.
//!
//! Cost: 256 MB to the device at 44 GB/s and back at 41; the driver's copy of pageable memory reaches 9, and copies of
//! pinned memory 55 (H100, 16 cores).

use super::context::Context;
use super::error::DriverError;
use super::event::{Event, Timing};
use super::memory::PinnedMemory;
use super::stream::Stream;
use crate::device::cache::RawMemory;

/// Bytes of a buffer. Bound: a core copies it in 200 µs, beside which a thread's wake-up is negligible.
const SLOT_BYTES: usize = 2 << 20;
/// Threads. Bound: each copies some 8 GB/s, and the link takes 55.
const WORKERS_MAX: usize = 8;
/// Bytes for each thread: starting one costs 20 to 50 µs.
const WORKER_BYTES: usize = 4 << 20;
/// Every piece starts at a multiple of this.
const ALIGN: usize = 256;

/// The buffers of one stream.
pub struct Staging {
    context: &'static Context,
    workers: Vec<Worker>,
    workers_max: usize,
}

/// Two buffers that one thread uses in turn.
struct Worker {
    memory: PinnedMemory,
    slots: [u64; 2],
    /// Recorded after the last copy of the slot was queued.
    passed: [Event; 2],
    current: usize,
    /// Bytes of the current slot that are in use.
    used: usize,
}

impl Staging {
    /// For streams of this device. Allocates memory at the first copy.
    pub fn new(context: &'static Context) -> Staging {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Staging { context, workers: Vec::new(), workers_max: (cores / 2).clamp(1, WORKERS_MAX) }
    }

    /// Queues a copy to the device. When this returns the bytes are read, and the copy is in the stream.
    pub fn upload(&mut self, stream: &Stream, to: u64, from: &[u8]) -> Result<(), DriverError> {
        let workers = self.grow(from.len())?;
        let part = part(from.len(), workers);
        let pieces = from.chunks(part.max(1)).enumerate();
        let jobs = self.workers.iter_mut().zip(pieces).map(|(worker, (at, piece))| {
            let to = to + (at * part) as u64;
            move || worker.upload(stream, to, piece)
        });
        all(jobs)
    }

    /// Copies from the device, after all work that the stream has, and waits for the copy.
    pub fn download(&mut self, stream: &Stream, to: &mut [u8], from: u64) -> Result<(), DriverError> {
        let workers = self.grow(to.len())?;
        let part = part(to.len(), workers);
        let pieces = to.chunks_mut(part.max(1)).enumerate();
        let jobs = self.workers.iter_mut().zip(pieces).map(|(worker, (at, piece))| {
            let from = from + (at * part) as u64;
            move || worker.download(stream, piece, from)
        });
        all(jobs)
    }

    /// Makes as many workers as a copy of `bytes` pays for, and returns their number.
    fn grow(&mut self, bytes: usize) -> Result<usize, DriverError> {
        let count = bytes.div_ceil(WORKER_BYTES).clamp(1, self.workers_max);
        while self.workers.len() < count {
            self.workers.push(Worker::new(self.context)?);
        }
        Ok(count)
    }
}

/// Bytes of each worker's part.
fn part(bytes: usize, workers: usize) -> usize {
    bytes.div_ceil(workers).next_multiple_of(4096)
}

/// Runs all jobs in parallel, the last on this thread; returns the first error.
fn all<J>(jobs: impl Iterator<Item = J>) -> Result<(), DriverError>
where
    J: FnOnce() -> Result<(), DriverError> + Send,
{
    let mut jobs: Vec<J> = jobs.collect();
    let Some(own) = jobs.pop() else { return Ok(()) };
    if jobs.is_empty() {
        return own();
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        let mut result = own();
        for other in others {
            let failed = Err(DriverError::refused("a copying thread", "it ended before its copy"));
            result = result.and(other.join().unwrap_or(failed));
        }
        result
    })
}

impl Worker {
    fn new(context: &'static Context) -> Result<Worker, DriverError> {
        let mut memory = PinnedMemory::new(context);
        let passed = [Event::new(context, Timing::Off)?, Event::new(context, Timing::Off)?];
        let Some(first) = memory.reserve(2 * SLOT_BYTES) else {
            return Err(memory.take_failure().unwrap_or(OUT));
        };
        Ok(Worker { memory, slots: [first, first + SLOT_BYTES as u64], passed, current: 0, used: 0 })
    }

    fn upload(&mut self, stream: &Stream, mut to: u64, mut from: &[u8]) -> Result<(), DriverError> {
        while !from.is_empty() {
            if self.used >= SLOT_BYTES {
                self.passed[self.current].record(stream)?;
                self.current = 1 - self.current;
                self.passed[self.current].wait()?;
                self.used = 0;
            }
            let (piece, rest) = from.split_at(from.len().min(SLOT_BYTES - self.used));
            let at = (self.slots[self.current] + self.used as u64) as *mut u8;
            // SAFETY: the slot has room for the piece; the stream has passed what was there before, and the piece
            // stays until it has passed the copy, since the slot is used again only after its event.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), at, piece.len());
                stream.copy_from_host(to, at, piece.len())?;
            }
            self.used = (self.used + piece.len()).next_multiple_of(ALIGN);
            to += piece.len() as u64;
            from = rest;
        }
        Ok(())
    }

    /// Two pieces are under way at a time: while one is copied out of its slot, the other arrives.
    fn download(&mut self, stream: &Stream, to: &mut [u8], mut from: u64) -> Result<(), DriverError> {
        let mut arriving: [Option<&mut [u8]>; 2] = [None, None];
        for (at, piece) in to.chunks_mut(SLOT_BYTES).enumerate() {
            let slot = at % 2;
            self.take(slot, arriving[slot].take())?;
            // SAFETY: the slot has room for the piece. Copies from it that came before are earlier in the stream.
            unsafe { stream.copy_to_host(self.slots[slot] as *mut u8, from, piece.len()) }?;
            self.passed[slot].record(stream)?;
            from += piece.len() as u64;
            arriving[slot] = Some(piece);
            // The older copy completes first.
            let other = 1 - slot;
            self.take(other, arriving[other].take())?;
        }
        for (slot, piece) in arriving.into_iter().enumerate() {
            self.take(slot, piece)?;
        }
        // The stream has passed all copies of this worker.
        self.used = 0;
        Ok(())
    }

    /// Waits for the copy into a slot and copies it to its destination.
    fn take(&mut self, slot: usize, to: Option<&mut [u8]>) -> Result<(), DriverError> {
        let Some(to) = to else { return Ok(()) };
        self.passed[slot].wait()?;
        // SAFETY: the slot holds the piece, since the stream has passed the copy into it.
        unsafe { std::ptr::copy_nonoverlapping(self.slots[slot] as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Freeing pinned memory waits for the copies that use it.
        self.memory.release(self.slots[0], 2 * SLOT_BYTES);
    }
}

/// Pinned memory ran out.
const OUT: DriverError =
    DriverError { call: "cuMemHostAlloc", code: 2, name: "CUDA_ERROR_OUT_OF_MEMORY", text: "out of memory" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything() {
        for bytes in [0usize, 1, 4095, 4096, 4097, (20 << 20) + 1] {
            for workers in 1..=8 {
                let part = part(bytes, workers).max(1);
                assert!(bytes.div_ceil(part) <= workers && part * workers >= bytes, "{bytes} by {workers}");
            }
        }
    }

    #[test]
    fn the_first_error_counts() {
        let job = |at: u32| move || if at % 3 == 1 { Err(DriverError { code: at, ..OUT }) } else { Ok(()) };
        assert_eq!(all([0, 2, 3].map(job).into_iter()), Ok(()));
        assert_eq!(all([0, 1, 4].map(job).into_iter()).map_err(|error| error.code), Err(4), "this thread's own");
        assert_eq!(all([0, 1, 4, 3].map(job).into_iter()).map_err(|error| error.code), Err(1));
        assert_eq!(all([0u32; 0].map(job).into_iter()), Ok(()));
    }
}
