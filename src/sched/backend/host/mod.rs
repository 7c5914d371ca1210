//! The host: steps run at once on the script's own thread, using the thread pool. The loop is generic over it, so
//! that a small window needs no indirect call.

use super::step::{Command, Decides, Report, StepCall, Submission, Submitted};
use super::touch;
use crate::device::stop::Stop;
use crate::kernel::abi::{Call, Faults};
use crate::kernel::guard::End;
use crate::sched::memory::Room;
use crate::sched::memory::kernel_context::KernelContext;
use crate::sched::runtime::threads;
use crate::sched::window::node::Node;
use std::sync::Arc;

/// A window of the host.
pub struct Host<'a> {
    stop: &'a Stop,
    room: &'a Arc<Room>,
}

impl<'a> Host<'a> {
    pub fn new(stop: &'a Stop, room: &'a Arc<Room>) -> Host<'a> {
        Host { stop, room }
    }
}

impl Submission for Host<'_> {
    #[inline]
    fn decides(&self) -> Decides {
        Decides::Loop
    }

    #[inline]
    fn step(&mut self, call: &StepCall<'_>, report: &mut Report) {
        let kernel_context = KernelContext::new(self.stop, self.room, self.stop.run(), call.may_end);
        run_reporting(call, &kernel_context, report);
    }

    fn end(&mut self, _nodes: &[Node], _report: &mut Report) -> Submitted {
        Submitted::default()
    }
}

/// Runs a step at once, if the host can access the memory of all its operands.
#[inline]
pub fn run_reporting(call: &StepCall<'_>, kernel_context: &KernelContext<'_>, report: &mut Report) {
    match &call.command {
        // No list for the single slot of a kernel.
        Command::Kernel { .. } => {
            let slot = Faults::default();
            report.end = run(&call.command, std::slice::from_ref(&slot), kernel_context).err();
            if report.end.is_none() {
                report.take(std::slice::from_ref(&slot), call.owners);
            }
        }
        _ => {
            let slots: Vec<Faults> = call.owners.iter().map(|_| Faults::default()).collect();
            report.end = run(&call.command, &slots, kernel_context).err();
            if report.end.is_none() {
                report.take(&slots, call.owners);
            }
        }
    }
}

/// The same with the caller's error slots, one for each owner; the error says why it did not finish.
#[inline]
pub fn run(command: &Command<'_>, slots: &[Faults], kernel_context: &KernelContext<'_>) -> Result<(), End> {
    match command {
        Command::Fused { program, shape, views, table } => {
            touch::run_fused(program, shape, views, table, slots, kernel_context)
        }
        Command::Kernel { kernel, attrs, operands, seed, offset } => {
            let (inputs, outputs) = (&operands.inputs, &operands.outputs);
            let (seed, offset) = (*seed, *offset);
            let call = Call { inputs, outputs, attrs, threads: threads(), faults: &slots[0], seed, offset };
            touch::run_kernel(kernel.host, &call, kernel_context)
        }
        Command::Each { each, node, scalars, members, .. } => members.try_for_each(each, node, |shape, views| {
            touch::run_fused(&each.program, shape, views, scalars, &[], kernel_context)
        }),
    }
}
