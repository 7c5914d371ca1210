//! What is told of a step that did not come to its end, and of a launch that did not happen.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::device::planned_fault::Fate;
use crate::kernel::guard::End;
use crate::sched::backend::step::Failure;
use crate::sched::memory;
use crate::sched::runtime::Runtime;
use crate::sched::window::node::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Runtime {
    /// An error where the script has to end: for what goes on for long between two steps of the interpreter. Costs one load.
    #[inline]
    pub fn heed(&self) -> Result<()> {
        if self.options.stop.has_signals() { self.heed_signs() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn heed_signs(&self) -> Result<()> {
        let stop = &self.options.stop;
        match (stop.is_requested(), stop.check_alarm()) {
            (true, _) => Err(Diag::error(code::INTERRUPTED, "the script was interrupted")),
            (_, true) => Err(Diag::error(code::LIMIT_TIME, "the time for this script is over")),
            _ => Ok(()),
        }
    }

    /// What is told of a node whose step did not come to its end.
    #[cold]
    pub(in crate::sched) fn ended(&self, end: &End, node: &Node, place: &str) -> Arc<Diag> {
        let diag = match end {
            End::Interrupted => return self.left_out(node),
            End::NoTime => {
                let text = format!("`{}` would take longer than the time that is left for the script", node.name);
                Diag::error(code::LIMIT_TIME, text)
            }
            // It never ends a step: see `run_kernel`.
            End::Detach => return self.left_out(node),
            End::NoMemory(bytes) => {
                let limit = self.options.limit_of(DeviceId::Cpu);
                memory::no_scratch(node.name, *bytes, self.room.is_limited_to(limit))
            }
            End::Panic(said) => Diag::error(code::INTERNAL, format!("`{}` failed inside: {said}", node.name))
                .help("this is a mistake in tscript"),
        };
        self.late(
            diag.label(node.origin, Focus::Expression, format!("queued here, on {place}")),
            node.number,
            node.trail,
        )
    }

    /// Why a node was not computed, when the script was to end before its turn or in the midst of it.
    pub(in crate::sched) fn left_out(&self, node: &Node) -> Arc<Diag> {
        let diag = match self.options.stop.ended_by_timeout() {
            true => Diag::error(code::LIMIT_TIME, "the time for the script was over before this was computed"),
            false => Diag::error(code::INTERRUPTED, "the script was interrupted before this was computed"),
        };
        self.late(diag.or_at(node.origin, "queued here"), node.number, node.trail)
    }

    /// Whether a copy goes wrong by plan, and what is told then.
    pub(in crate::sched) fn planned_fault(&self, device: DeviceId, node: &Node) -> Option<Arc<Diag>> {
        let fate = self.gpus()?.faults.lock().launch(device);
        self.tell_fate(fate, device, node)
    }

    /// What is told of a launch with this fate.
    pub(in crate::sched) fn tell_fate(&self, fate: Fate, device: DeviceId, node: &Node) -> Option<Arc<Diag>> {
        let text = format!("queued here, on {device}");
        match fate {
            Fate::Runs => None,
            Fate::Fails => {
                let diag = Diag::error(code::LAUNCH_FAILED, format!("{device} could not run `{}`", node.name));
                Some(self.late(diag.label(node.origin, Focus::Expression, text), node.number, node.trail))
            }
            Fate::DeviceLost => {
                let mut last_words = self.gpus()?.gpu(device).last_words.lock();
                if last_words.is_some() {
                    return last_words.clone();
                }
                let diag = Diag::error(code::DEVICE_LOST, format!("{device} was lost while it ran `{}`", node.name))
                    .label(node.origin, Focus::Expression, text)
                    .note("its memory is gone; other devices and the session go on");
                self.lose(device);
                *last_words = Some(self.late(diag, node.number, node.trail));
                last_words.clone()
            }
        }
    }

    /// A device is gone: what is queued there never runs, and what it made is unknown.
    pub(in crate::sched) fn lose(&self, device: DeviceId) {
        let DeviceId::Cuda(index) = device else { return };
        let Some(gpus) = self.gpus() else { return };
        gpus.gpu(device).lost.store(true, Ordering::Release);
        gpus.queues.lose(index);
    }

    /// A device that cannot be opened counts as lost.
    #[cold]
    pub(in crate::sched) fn unusable(&self, node: &Node) -> Arc<Diag> {
        let device = node.outputs[0].buffer.device;
        self.lose(device);
        let mut diag =
            Diag::error(code::DEVICE_LOST, format!("{device} cannot be used: no stream could be made there"));
        let gpus = self.gpus().expect("the device exists");
        let mut others = (0..gpus.list.len() as u16).filter(|&index| DeviceId::Cuda(index) != device);
        if let Some(dead) = others.find(|&index| gpus.backend.death(index).is_some()) {
            let dead = DeviceId::Cuda(dead);
            diag = diag
                .note(format!("{dead} was lost before, and CUDA gives a process nothing new on any GPU after that"));
        }
        self.late(
            diag.label(node.origin, Focus::Expression, format!("queued here, on {device}")),
            node.number,
            node.trail,
        )
    }

    /// A launch that did not happen, on a device that lives.
    #[cold]
    pub(in crate::sched) fn failed(&self, device: DeviceId, node: &Node, failure: &Failure) -> Arc<Diag> {
        let text = format!("queued here, on {device}");
        let diag = match failure.is_out_of_memory {
            true => Diag::error(code::OUT_OF_MEMORY, format!("out of memory on {device}")),
            false => Diag::error(code::LAUNCH_FAILED, format!("{device} could not run `{}`", node.name)),
        };
        let diag = diag.label(node.origin, Focus::Expression, text).note(failure.said.clone());
        self.late(diag, node.number, node.trail)
    }
}
