//! Diagnostics of a step that did not finish, and of a launch that failed.

use super::loss_report::WHAT_IS_LEFT;
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
    /// An error if the script has to end: for work that takes long between two steps of the interpreter. Costs one
    /// load.
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

    /// The diagnostic of a node whose step did not finish.
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
            node.call_chain,
        )
    }

    /// Why a node was not computed, if the script had to end before or during its step.
    pub(in crate::sched) fn left_out(&self, node: &Node) -> Arc<Diag> {
        let diag = match self.options.stop.ended_by_timeout() {
            true => Diag::error(code::LIMIT_TIME, "the time for the script was over before this was computed"),
            false => Diag::error(code::INTERRUPTED, "the script was interrupted before this was computed"),
        };
        self.late(diag.or_at(node.origin, "queued here"), node.number, node.call_chain)
    }

    /// Whether an injected fault makes a copy fail, and its diagnostic.
    pub(in crate::sched) fn planned_fault(&self, device: DeviceId, node: &Node) -> Option<Arc<Diag>> {
        let fate = self.gpus()?.faults.lock().launch(device);
        self.diagnose_injected(fate, device, node)
    }

    /// The diagnostic of a launch with this injected fault.
    pub(in crate::sched) fn diagnose_injected(&self, fate: Fate, device: DeviceId, node: &Node) -> Option<Arc<Diag>> {
        let text = format!("queued here, on {device}");
        match fate {
            Fate::Runs => None,
            Fate::Fails => {
                let diag = Diag::error(code::LAUNCH_FAILED, format!("{device} could not run `{}`", node.name));
                Some(self.late(diag.label(node.origin, Focus::Expression, text), node.number, node.call_chain))
            }
            Fate::DeviceLost => {
                let mut loss_report = self.gpus()?.gpu(device).loss_report.lock();
                if loss_report.is_some() {
                    return loss_report.clone();
                }
                let diag = Diag::error(code::DEVICE_LOST, format!("{device} was lost while it ran `{}`", node.name))
                    .label(node.origin, Focus::Expression, text)
                    .note(WHAT_IS_LEFT);
                self.lose(device);
                *loss_report = Some(self.late(diag, node.number, node.call_chain));
                loss_report.clone()
            }
        }
    }

    /// A device is lost: queued work never runs there, and its results are unknown.
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
            node.call_chain,
        )
    }

    /// A launch that failed, on a device that is not lost.
    #[cold]
    pub(in crate::sched) fn failed(&self, device: DeviceId, node: &Node, failure: &Failure) -> Arc<Diag> {
        let text = format!("queued here, on {device}");
        let diag = match failure.is_out_of_memory {
            true => Diag::error(code::OUT_OF_MEMORY, format!("out of memory on {device}")),
            false => Diag::error(code::LAUNCH_FAILED, format!("{device} could not run `{}`", node.name)),
        };
        let diag = diag.label(node.origin, Focus::Expression, text).note(failure.said.clone());
        self.late(diag, node.number, node.call_chain)
    }
}
