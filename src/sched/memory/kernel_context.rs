//! The context of running kernels: when to end, and how much scratch memory there is.

use super::Room;
use crate::device::stop::Stop;
use crate::kernel::guard::Guard;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The context of one step's kernels.
pub struct KernelContext<'a> {
    stop: &'a Stop,
    room: &'a Arc<Room>,
    /// The run that queued the step.
    run: u64,
    /// Whether it may be aborted. An optimizer's step may not, once it has started: it takes as long as a pass over
    /// the model, which would be half updated.
    may_end: bool,
    taken: AtomicUsize,
}

impl<'a> KernelContext<'a> {
    pub fn new(stop: &'a Stop, room: &'a Arc<Room>, run: u64, may_end: bool) -> KernelContext<'a> {
        KernelContext { stop, room, run, may_end, taken: AtomicUsize::new(0) }
    }

    /// The kernel's scratch memory plus so many bytes, for as long as the lease is held; none if there is not enough.
    pub fn lease(&self, bytes: usize) -> Option<Lease> {
        if !self.room.admit(bytes) {
            return None;
        }
        let bytes = bytes + self.taken.swap(0, Ordering::Relaxed);
        Some(Lease { room: self.room.clone(), bytes })
    }
}

/// Scratch memory that outlives the step.
pub struct Lease {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

impl Guard for KernelContext<'_> {
    fn must_stop(&self) -> bool {
        self.may_end && self.stop.drops(self.run)
    }

    fn admit(&self, bytes: usize) -> bool {
        let admitted = self.room.admit(bytes);
        if admitted {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        }
        admitted
    }

    fn release(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        self.room.give_back(bytes);
    }

    fn time_left(&self) -> Option<Duration> {
        if self.may_end { self.stop.time_left() } else { None }
    }

    fn may_detach(&self) -> bool {
        self.may_end
    }
}

impl Drop for KernelContext<'_> {
    fn drop(&mut self) {
        // Lists count until the kernel ends.
        self.room.give_back(*self.taken.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::code;
    use crate::base::device_id::DeviceId;
    use crate::base::dtype::DType;
    use crate::base::layout::Layout;
    use crate::kernel::abi::{Call, HostFn};
    use crate::kernel::family::Kernel;
    use crate::kernel::guard;
    use crate::op::tensor::{Held, View};
    use crate::sched::options::{Options, SIMULATED_BYTES, Simulation};
    use crate::sched::runtime::Runtime;
    use crate::sched::window::node::{Node, Work};
    use smallvec::smallvec;
    use std::time::Instant;

    fn panics(_: &Call<'_>) {
        panic!("on purpose")
    }

    fn panics_on_a_thread(call: &Call<'_>) {
        call.threads.split(64, 1, |range| assert!(!range.contains(&40), "on purpose"));
    }

    fn wants_much(_: &Call<'_>) {
        drop(guard::filled(1 << 30, 0u8));
    }

    fn never_ends(call: &Call<'_>) {
        let wait = |range: std::ops::Range<usize>| std::thread::sleep(Duration::from_millis(range.len() as u64));
        call.threads.split(1 << 40, 1, wait);
    }

    fn runtime(allowed: Option<Duration>) -> Arc<Runtime> {
        let gpus = Simulation { gpus: 1, memory_bytes: SIMULATED_BYTES, seed: None, faults: Vec::new() };
        let runtime = Runtime::new(Options { host_limit: 64 << 20, simulate: Some(gpus), ..Options::default() });
        runtime.cuda_device(0).expect("one GPU");
        runtime.options.stop.begin(allowed);
        runtime
    }

    /// The error of reading the result of a kernel.
    fn outcome(rt: &Runtime, host: HostFn, device: DeviceId) -> crate::base::diag::Result<()> {
        let layout = Layout::contiguous(&[4]);
        let view = Arc::new(View::new(rt.buffer(device, 16, false), layout, DType::F32));
        let held = Held::new(view.clone());
        let kernel = Kernel {
            name: "test",
            host,
            #[cfg(feature = "cuda")]
            cuda: None,
        };
        let work = Work::Kernel { kernel: Box::leak(Box::new(kernel)), attrs: Default::default(), seed: 0, offset: 0 };
        rt.record(Node { name: "test", work, outputs: smallvec![view], ..Node::default() })?;
        rt.settle(held.view())
    }

    const DEVICES: [DeviceId; 2] = [DeviceId::Cpu, DeviceId::Cuda(0)];

    #[test]
    fn a_panic_in_a_kernel_is_a_fault_of_its_node() {
        let rt = runtime(None);
        for device in DEVICES {
            for host in [panics as HostFn, panics_on_a_thread] {
                let error = outcome(&rt, host, device).expect_err("a panic");
                assert_eq!(error.code, code::INTERNAL, "{device}");
                assert!(error.message.contains("on purpose"), "{}", error.message);
                assert!(rt.synchronize().is_ok(), "reported once");
            }
        }
    }

    #[test]
    fn scratch_memory_counts_for_the_limit() {
        let rt = runtime(None);
        for device in DEVICES {
            assert_eq!(outcome(&rt, wants_much, device).expect_err("64 MiB").code, code::LIMIT_MEMORY, "{device}");
        }
        assert!(rt.room.admit(64 << 20), "all of it was given back");
    }

    #[test]
    fn a_kernel_is_aborted_at_the_time_limit() {
        for device in DEVICES {
            let rt = runtime(Some(Duration::from_millis(100)));
            let begun = Instant::now();
            assert_eq!(outcome(&rt, never_ends, device).expect_err("too long").code, code::LIMIT_TIME, "{device}");
            rt.drop_recorded();
            rt.options.stop.end();
            rt.options.stop.begin(None);
            // The queue can be used again.
            assert!(rt.synchronize().is_ok());
            drop(rt);
            assert!(begun.elapsed() < Duration::from_secs(5), "{device} took {:?}", begun.elapsed());
        }
    }
}
