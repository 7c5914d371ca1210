//! What scripts may ask about devices and their memory as a whole.

use super::runtime::Runtime;
use super::stream::StreamHandle;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::device::cache::RawMemory;
use crate::op::tensor::View;

/// One device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    pub name: String,
    /// Major and minor number of what its processors can do.
    pub capability: (i64, i64),
    pub total_bytes: usize,
    pub multiprocessors: u32,
    pub is_simulated: bool,
}

impl Runtime {
    /// What is known of a GPU.
    pub fn device_facts(&self, device: DeviceId) -> Result<DeviceFacts> {
        let index = self.gpu_index(device)?;
        let gpus = self.gpus().expect("the device exists");
        let total_bytes = gpus.list[index].memory.lock().cache().raw().total();
        Ok(DeviceFacts {
            name: "Simulated GPU".to_string(),
            capability: (9, 0),
            total_bytes,
            multiprocessors: 1,
            is_simulated: true,
        })
    }

    /// Whether one GPU can read another's memory.
    pub fn can_access_peer(&self, a: DeviceId, b: DeviceId) -> Result<bool> {
        self.gpu_index(a)?;
        self.gpu_index(b)?;
        Ok(a != b)
    }

    /// Bytes that are free on a GPU, and in all.
    pub fn memory_info(&self, device: DeviceId) -> Result<(usize, usize)> {
        self.with_memory(device, |memory| {
            let total = memory.cache().raw().total();
            let reserved = memory.cache().statistics().reserved_bytes[0].current as usize;
            (total.saturating_sub(reserved), total)
        })
    }

    /// Gives cached memory of every device back, also what waits for streams, which are waited for.
    pub fn empty_caches(&self) -> Result<()> {
        for index in 0..self.gpu_count() as u16 {
            let device = DeviceId::Cuda(index);
            self.drain_device(device)?;
            self.with_memory(device, |memory| memory.cache().empty_cache())?;
        }
        Ok(())
    }

    /// A stream uses a tensor's memory: it is reused only after what is queued there now. The allocator sees to
    /// that by itself; this only delays reuse.
    pub fn record_stream(&self, view: &View, stream: &StreamHandle) -> Result<()> {
        self.gpu_index(view.buffer.device)?;
        let mut state = self.state.lock();
        self.flush_buffer(&mut state, &view.buffer);
        self.run_window(&mut state, stream.slot);
        let sequence = state.streams[stream.slot as usize].submitted;
        self.note_use(&view.buffer, stream.slot, sequence);
        Ok(())
    }
}
