//! Where work is queued: the default device, the current CUDA device, the current stream of each.

use super::stream::StreamHandle;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::span::Origin;
use crate::device::race::StreamName;
use crate::sched::backend::gpus::{Gpus, no_cuda};
use crate::sched::runtime::Runtime;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The current devices and streams. The lists are by GPU, and empty until the GPUs are opened.
#[derive(Clone)]
pub struct Placement {
    pub default_device: DeviceId,
    pub current_cuda: u16,
    pub(in crate::sched) current: Vec<Arc<StreamHandle>>,
    pub(in crate::sched) defaults: Vec<Arc<StreamHandle>>,
}

/// What was current before a device or stream was entered.
pub struct Previous {
    default_device: DeviceId,
    current_cuda: u16,
    /// By GPU, when a stream was entered; empty otherwise.
    streams: SmallVec<[Arc<StreamHandle>; 2]>,
}

impl Placement {
    pub fn new() -> Placement {
        Placement { default_device: DeviceId::Cpu, current_cuda: 0, current: Vec::new(), defaults: Vec::new() }
    }
}

impl Default for Placement {
    fn default() -> Placement {
        Placement::new()
    }
}

impl Runtime {
    /// The GPUs; opens them at the first call.
    pub fn gpus(&self) -> Option<&Gpus> {
        let open = || {
            let gpus = Gpus::open(&self.options)?;
            gpus.backend.set_matmul_precision(self.matmul_precision());
            gpus.backend.set_deterministic(self.deterministic());
            Some(gpus)
        };
        self.opened.get_or_init(open).as_ref()
    }

    /// Opens the GPUs with their default streams.
    fn ready(&self) -> Option<&Gpus> {
        let gpus = self.gpus()?;
        // Checked at each block that changes the stream: without the lock.
        if self.placed.load(Ordering::Acquire) {
            return Some(gpus);
        }
        if self.placement.lock().current.is_empty() {
            let mut state = self.state.lock();
            state.stream_numbers = vec![0; gpus.list.len()];
            let defaults: Vec<Arc<StreamHandle>> = (0..gpus.list.len() as u16)
                .map_while(|index| {
                    let name = StreamName { device: DeviceId::Cuda(index), number: 0 };
                    self.add_stream(&mut state, name, 0, Origin::NONE).ok()
                })
                .collect();
            if defaults.len() < gpus.list.len() {
                return None;
            }
            let mut placement = self.placement.lock();
            placement.current = defaults.clone();
            placement.defaults = defaults;
        }
        self.placed.store(true, Ordering::Release);
        Some(gpus)
    }

    /// How many GPUs there are.
    pub fn gpu_count(&self) -> usize {
        self.ready().map_or(0, |gpus| gpus.list.len())
    }

    /// Index of a GPU that exists.
    pub(in crate::sched) fn gpu_index(&self, device: DeviceId) -> Result<usize> {
        match device {
            DeviceId::Cuda(index) if (index as usize) < self.gpu_count() => Ok(index as usize),
            DeviceId::Cuda(index) => Err(no_cuda(Some(index as i64), self.gpu_count())),
            DeviceId::Cpu => Err(no_cuda(None, 0)),
        }
    }

    /// The CUDA device with an index.
    pub fn cuda_device(&self, index: i64) -> Result<DeviceId> {
        match u16::try_from(index) {
            Ok(small) if (small as usize) < self.gpu_count() => Ok(DeviceId::Cuda(small)),
            _ => Err(no_cuda(Some(index), self.gpu_count())),
        }
    }

    /// The device that `"cuda"` means now.
    pub fn current_cuda(&self) -> Result<DeviceId> {
        if self.gpu_count() == 0 {
            return Err(no_cuda(None, 0));
        }
        Ok(DeviceId::Cuda(self.placement.lock().current_cuda))
    }

    /// The stream of work on `"cuda"` now.
    pub fn stream_now(&self) -> Result<Arc<StreamHandle>> {
        if self.gpu_count() == 0 {
            return Err(no_cuda(None, 0));
        }
        let now = self.placement.lock();
        Ok(now.current[now.current_cuda as usize].clone())
    }

    /// Sets the device that `"cuda"` means. Precondition: the device exists.
    pub fn set_current_cuda(&self, index: u16) {
        self.placement.lock().current_cuda = index;
    }

    pub fn default_device(&self) -> DeviceId {
        self.placement.lock().default_device
    }

    /// Where tensors are created from now on; a CUDA device becomes the current one too. Precondition: it exists.
    pub fn set_default_device(&self, device: DeviceId) {
        let mut now = self.placement.lock();
        now.default_device = device;
        if let DeviceId::Cuda(index) = device {
            now.current_cuda = index;
        }
    }

    /// `with_device`: makes a device the default one, and the current CUDA device when it is one.
    pub fn enter_device(&self, device: DeviceId) -> Previous {
        let mut now = self.placement.lock();
        let before =
            Previous { default_device: now.default_device, current_cuda: now.current_cuda, streams: SmallVec::new() };
        now.default_device = device;
        if let DeviceId::Cuda(index) = device {
            now.current_cuda = index;
        }
        before
    }

    /// `with_stream`: makes a stream current on its device, and that the current CUDA device.
    pub fn enter_stream(&self, stream: Arc<StreamHandle>) -> Result<Previous> {
        self.check_own(&stream)?;
        let at = self.gpu_index(stream.name.device)?;
        let mut now = self.placement.lock();
        let (default_device, current_cuda) = (now.default_device, now.current_cuda);
        let mut streams = SmallVec::new();
        now.current.iter().for_each(|stream| streams.push(stream.clone()));
        // The streams of before are among those that are restored.
        now.current[at] = stream;
        now.current_cuda = at as u16;
        Ok(Previous { default_device, current_cuda, streams })
    }

    /// Restores what was current when a device or stream was entered.
    pub fn restore(&self, before: Previous) {
        let mut now = self.placement.lock();
        now.default_device = before.default_device;
        now.current_cuda = before.current_cuda;
        let mut left = before.streams;
        for (current, before) in now.current.iter_mut().zip(&mut left) {
            std::mem::swap(current, before);
        }
        // Not under the lock: dropping the last handle of a stream retires it.
        drop(now);
        drop(left);
    }

    /// Whether work on the slot's device goes to it already.
    pub fn is_current(&self, slot: u32) -> bool {
        self.placement.lock().current.iter().any(|stream| stream.slot == slot)
    }

    /// The device of a slot.
    pub fn device_of_slot(&self, slot: u32) -> DeviceId {
        self.state.lock().streams[slot as usize].name.device
    }

    /// Slot of the window that work on a device is recorded in. Precondition: the device exists.
    pub fn slot_of(&self, device: DeviceId) -> u32 {
        match device {
            DeviceId::Cpu => crate::sched::order::points::HOST,
            DeviceId::Cuda(index) => self.placement.lock().current[index as usize].slot,
        }
    }
}
