//! Properties of devices and their memory that scripts may query.

use super::stream::StreamHandle;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::span::Origin;
use crate::device::cache::RawMemory;
use crate::device::queues::Point;
use crate::device::race::StreamName;
use crate::kernel::custom::Custom;
use crate::kernel::recurrent::layer::Layer;
use crate::op::tensor::View;
use crate::sched::backend::Compiled;
use crate::sched::fault::ledger::Entry;
use crate::sched::memory::Memory;
use crate::sched::runtime::Runtime;

/// One device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i64, i64),
    pub total_bytes: usize,
    pub multiprocessors: u32,
    /// In the usual form of 36 characters.
    pub uuid: String,
    pub is_simulated: bool,
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let hex = |range: std::ops::Range<usize>| bytes[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-")
}

/// Memory of one device, in bytes.
#[derive(Clone, Debug)]
pub struct MemoryFacts {
    pub device: DeviceId,
    pub allocated: usize,
    pub reserved: usize,
    pub peak: usize,
    pub total: usize,
    /// Allocated memory by the position that allocated it: bytes and blocks, largest first.
    pub held: Vec<(Origin, usize, usize)>,
}

fn facts(memory: &mut Memory, device: DeviceId) -> MemoryFacts {
    let stats = memory.cache().statistics();
    let (allocated, reserved) = (stats.allocated_bytes[0], stats.reserved_bytes[0].current as usize);
    let (allocated, peak) = (allocated.current as usize, allocated.peak as usize);
    let held = memory.cache().held().into_iter();
    let held = held.map(|held| (crate::sched::memory::unpack(held.owner), held.bytes, held.blocks)).collect();
    MemoryFacts { device, allocated, reserved, peak, total: memory.cache().raw().total(), held }
}

impl Runtime {
    /// Memory of the host and of every open GPU, as it is now: runs nothing.
    pub fn memory_by_device(&self) -> Vec<MemoryFacts> {
        let mut all = vec![facts(&mut self.host.lock(), DeviceId::Cpu)];
        for (index, gpu) in self.gpus_if_opened().into_iter().flat_map(|gpus| gpus.list.iter().enumerate()) {
            all.push(facts(&mut gpu.memory.lock(), DeviceId::Cuda(index as u16)));
        }
        all
    }

    /// Streams in use, the host's first, with the operations that are queued and not known to be done.
    pub fn pending_by_stream(&self) -> Vec<(StreamName, usize, bool)> {
        let state = self.state.lock();
        let in_flight = |slot: usize| {
            let entries = state.ledger.entries.iter().filter(move |entry| entry.point.stream as usize == slot);
            entries.map(|entry| entry.nodes.len()).sum::<usize>()
        };
        let streams = state.streams.iter().enumerate().filter(|(_, stream)| stream.in_use);
        streams
            .map(|(slot, stream)| {
                // What can no longer fail is in no list, and may still be under way.
                let is_done = self.poll(&state, Point { stream: slot as u32, sequence: stream.submitted });
                (stream.name, state.windows[slot].len() + in_flight(slot), !is_done)
            })
            .collect()
    }

    /// The properties of a GPU.
    pub fn device_facts(&self, device: DeviceId) -> Result<DeviceFacts> {
        let index = self.gpu_index(device)?;
        let gpus = self.gpus().expect("the device exists");
        let total_bytes = gpus.list[index].memory.lock().cache().raw().total();
        let facts = gpus.backend.facts(index as u16);
        Ok(DeviceFacts {
            name: facts.name,
            capability: (facts.capability.0 as i64, facts.capability.1 as i64),
            total_bytes,
            multiprocessors: facts.multiprocessors,
            uuid: uuid_text(facts.uuid),
            is_simulated: facts.is_simulated,
        })
    }

    /// Compiles a kernel whose text the script gave, for a device.
    pub fn compile_kernel(&self, device: DeviceId, custom: &'static Custom) -> Result<Compiled> {
        let index = self.gpu_index(device)?;
        let gpus = self.gpus().expect("the device exists");
        gpus.backend.open(index as u16);
        Ok(gpus.backend.compile(index as u16, custom))
    }

    /// Bytes that a library of the device keeps of a recurrent layer for its gradient; 0 if our own kernels compute it.
    pub fn recurrent_reserve(&self, device: DeviceId, layer: &Layer, dtype: DType, biased: bool) -> usize {
        let (DeviceId::Cuda(_), Ok(index)) = (device, self.gpu_index(device)) else { return 0 };
        let gpus = self.gpus().expect("the device exists");
        gpus.backend.open(index as u16);
        gpus.backend.recurrent_reserve(index as u16, layer, dtype, biased)
    }

    /// Whether a GPU was used so far: before that CUDA is not initialized.
    pub fn cuda_is_open(&self) -> bool {
        self.gpus_if_opened().is_some()
    }

    /// Calls `work` with the allocator of pinned host memory.
    pub fn with_pinned<R>(&self, work: impl FnOnce(&mut Memory) -> R) -> Result<R> {
        self.current_cuda()?;
        self.flush();
        self.harvest(&mut self.state.lock());
        let gpus = self.gpus().expect("there is a current CUDA device");
        let mut pinned = gpus.pinned.lock();
        Ok(work(&mut pinned))
    }

    /// Whether one GPU can read another's memory.
    pub fn can_access_peer(&self, a: DeviceId, b: DeviceId) -> Result<bool> {
        self.gpu_index(a)?;
        self.gpu_index(b)?;
        Ok(a != b)
    }

    /// Free and total bytes of a GPU.
    pub fn memory_info(&self, device: DeviceId) -> Result<(usize, usize)> {
        self.with_memory(device, |memory| {
            let total = memory.cache().raw().total();
            let reserved = memory.cache().statistics().reserved_bytes[0].current as usize;
            (total.saturating_sub(reserved), total)
        })
    }

    /// Frees cached memory of every device, including blocks that wait for streams; waits for these.
    pub fn empty_caches(&self) -> Result<()> {
        for index in 0..self.gpu_count() as u16 {
            let device = DeviceId::Cuda(index);
            self.drain_device(device)?;
            self.with_memory(device, |memory| memory.cache().empty_cache())?;
        }
        self.forget_graphs();
        Ok(())
    }

    /// A stream uses a tensor's memory: it is reused only after the work that is queued there now. The allocator does
    /// this by itself; the call only delays reuse.
    pub fn record_stream(&self, view: &View, stream: &StreamHandle) -> Result<()> {
        if !view.buffer.device.is_cuda() {
            return Err(Diag::error(code::STREAM, "the tensor is on the CPU, which has no streams"));
        }
        self.check_own(stream)?;
        let mut state = self.state.lock();
        self.flush_buffer(&mut state, &view.buffer);
        self.run_window(&mut state, stream.slot);
        let sequence = state.streams[stream.slot as usize].submitted;
        if !state.streams[stream.slot as usize].is_done(sequence) {
            self.note_use(&view.buffer, stream.slot, sequence);
            // The queued work may not appear in the ledger.
            let point = Point { stream: stream.slot, sequence };
            state.ledger.push(Entry::new(point, Vec::new()), stream.name.device);
        }
        Ok(())
    }
}
