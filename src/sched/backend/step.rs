//! The interface by which the loop (`execute/window.rs`) submits one window, step by step.

use crate::base::attr::Attrs;
use crate::base::device_id::DeviceId;
use crate::base::layout::Shape;
use crate::device::planned_fault::Fate;
use crate::kernel::abi::{Fault, Faults, RawView};
use crate::kernel::family::Kernel;
use crate::kernel::guard::End;
use crate::kernel::program::Program;
use crate::sched::order::gate::Gate;
use crate::sched::profile::timeline::Timing;
use crate::sched::window::each::{EachProgram, Members};
use crate::sched::window::node::Node;
use crate::sched::window::plan::Operands;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Who decides whether a step is held, or skipped because the script must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// The loop: all earlier work has run.
    Loop,
    /// The loop as far as it knows; the device decides the rest when the step's turn comes.
    Device,
    /// The device, when the step's turn comes, with [`Turn::of`].
    Queue,
}

/// What happens to a step when its turn comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    Runs,
    /// It is held by its gate and changes nothing.
    Held,
    /// The script must end before it.
    LeftOut,
}

impl Turn {
    /// `must_end`: the run that queued the step has to end. An optimizer's step is then skipped, or finished as a
    /// whole once a part of it has started.
    #[inline]
    pub fn of(gate: Option<&Gate>, must_end: bool, is_held: impl FnOnce(&Gate) -> bool) -> Turn {
        match gate {
            Some(gate) if (must_end && gate.skip()) || is_held(gate) => Turn::Held,
            None if must_end => Turn::LeftOut,
            _ => Turn::Runs,
        }
    }
}

/// A window that is being submitted.
pub trait Submission {
    fn decides(&self) -> Decides;

    /// Whether anything can be queued; if not, its steps are not passed.
    fn is_usable(&self) -> bool {
        true
    }

    /// What an injected fault does to the next step. Called once a step.
    fn fate(&mut self) -> Fate {
        Fate::Runs
    }

    /// The next step is held if the gate says so. `device_of` gives the device of a stream.
    fn guard(&mut self, _gate: &Arc<Gate>, _of: &[usize], _device_of: &dyn Fn(u32) -> DeviceId) {}

    /// The next step, with memory for all of its operands.
    fn step(&mut self, call: &StepCall<'_>, report: &mut Report);

    /// The next step does nothing: it fails by plan, or has no memory.
    fn skip(&mut self, _nodes: &[Node], _of: &[usize]) {}

    /// All steps were passed. What is reported now belongs to the first node.
    fn end(&mut self, nodes: &[Node], report: &mut Report) -> Submitted;
}

/// A step that can be carried out.
pub struct StepCall<'a> {
    /// Its index in the plan.
    pub at: usize,
    pub nodes: &'a [Node],
    /// The nodes that it computes.
    pub of: &'a [usize],
    /// Nodes that own its error slots.
    pub owners: &'a [usize],
    pub command: Command<'a>,
    /// Whether it may be aborted; an optimizer's step may not.
    pub may_end: bool,
}

/// What a step does, with the addresses and scalars of this run.
pub enum Command<'a> {
    /// One program over all elements of a shape.
    Fused {
        program: &'a Arc<Program>,
        shape: &'a Shape,
        views: &'a Arc<Vec<RawView>>,
        table: &'a Arc<Vec<u64>>,
    },
    Kernel {
        kernel: &'static Kernel,
        attrs: &'a Attrs,
        operands: &'a Arc<Operands>,
        seed: u64,
        offset: u64,
    },
    /// A program for each member of several lists.
    Each {
        each: &'a Arc<EachProgram>,
        node: &'a Node,
        scalars: &'a [u64],
        lines: bool,
        members: &'a Members,
    },
}

/// What is known right after a step.
#[derive(Default)]
pub struct Report {
    /// Faults of kernels, and the nodes that own them.
    pub faults: Vec<(usize, Fault)>,
    /// Why it did not finish, if it ran on the host.
    pub end: Option<End>,
    /// Why it was not queued.
    pub failure: Option<Failure>,
}

impl Report {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.end.is_none() && self.failure.is_none()
    }

    /// Reads the faults from error slots.
    #[inline]
    pub fn take(&mut self, slots: &[Faults], owners: &[usize]) {
        for (slot, &owner) in slots.iter().zip(owners) {
            if let Some(found) = slot.take() {
                self.faults.push((owner, found));
            }
        }
    }
}

/// A launch that failed, on a device that is not lost.
pub struct Failure {
    pub is_out_of_memory: bool,
    /// The message of the device.
    pub said: String,
}

/// A window that was submitted, and where its outcome will be.
#[derive(Default)]
pub struct Submitted {
    pub sequence: u64,
    /// Error slots in host memory, and the node that owns each.
    pub faults: Arc<[Faults]>,
    pub owners: Vec<usize>,
    /// Error slots that the device keeps: their numbers, their addresses, and the nodes that own them.
    pub slots: Vec<(u32, u64, usize)>,
    /// Whether it ran to its end; none if that cannot be known.
    pub ran: Option<Arc<AtomicBool>>,
    /// Steps that did not finish.
    pub ended: Option<Ended>,
    /// When it ran, for a trace.
    pub timing: Option<Timing>,
}

/// Steps of one submission that did not finish, by index, and the nodes of all its steps.
pub struct Ended {
    pub ends: Arc<Mutex<Vec<(usize, End)>>>,
    pub step_nodes: Vec<SmallVec<[usize; 4]>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::order::gate::{FaultLog, Past};

    fn gate() -> Gate {
        Gate::new(7, &[DeviceId::Cpu, DeviceId::Cuda(0)], Past::default(), Vec::new(), Arc::<FaultLog>::default())
    }

    #[test]
    fn a_step_that_has_started_on_one_device_is_done_on_all() {
        let gate = gate();
        assert!(!gate.is_held(), "nothing went wrong");
        for is_held in [Gate::is_held, Gate::is_known_held] {
            assert_eq!(Turn::of(Some(&gate), true, is_held), Turn::Runs);
        }
    }

    #[test]
    fn the_end_of_a_run_holds_steps_that_have_not_started_and_skips_all_else() {
        let gate = gate();
        assert_eq!(Turn::of(Some(&gate), true, Gate::is_held), Turn::Held);
        assert_eq!(Turn::of(Some(&gate), false, Gate::is_held), Turn::Held, "and it stays so");
        assert_eq!(Turn::of(None, true, Gate::is_held), Turn::LeftOut);
        assert_eq!(Turn::of(None, false, Gate::is_held), Turn::Runs);
    }
}
