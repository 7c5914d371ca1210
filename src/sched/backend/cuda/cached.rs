//! What NVIDIA GPUs cache of a plan between runs: launches without their addresses and scalars, and graphs.

use crate::device::cuda::replay::Replay;
use crate::kernel::abi::RawView;
use crate::kernel::fused::cuda::{self as fused, Table};
use crate::sched::window::each::EachProgram;
use crate::sched::window::node::Node;

/// Bound: recordings of a stream. Two, so that kernels whose sizes alternate, as with batches for training and for
/// evaluation, keep a graph for either.
const RECORDINGS: usize = 2;

/// The cache of one plan.
#[derive(Default)]
pub(super) struct Cached {
    /// The latest last.
    pub recordings: Vec<Recording>,
    steps: Vec<Option<Step>>,
}

/// The commands of a run.
pub(super) struct Recording {
    /// Of the stream.
    pub slot: u32,
    /// What its kernels' operands looked like (`window::key`).
    pub layouts: u64,
    pub replay: Replay,
}

// Most plans consist of fused steps: inline they are found without another memory access.
#[allow(clippy::large_enum_variant)]
enum Step {
    Fused(fused::Ready),
    Each(Box<Each>),
}

impl Cached {
    /// The commands recorded on a stream when operands looked the same, or else a new recording, or the oldest: where
    /// sizes grow from run to run, all of it that does not depend on them is repeated.
    pub fn take_replay(&mut self, slot: u32, layouts: u64) -> Replay {
        let of_stream = |recording: &&Recording| recording.slot == slot;
        let same = |recording: &Recording| recording.slot == slot && recording.layouts == layouts;
        let is_full = self.recordings.iter().filter(of_stream).count() >= RECORDINGS;
        let oldest = || self.recordings.iter().position(|recording| is_full && recording.slot == slot);
        let known = self.recordings.iter().position(same).or_else(oldest);
        known.map(|at| self.recordings.remove(at).replay).unwrap_or_default()
    }

    fn step(&mut self, at: usize, make: impl FnOnce() -> Step) -> &mut Step {
        if self.steps.len() <= at {
            self.steps.resize_with(at + 1, || None);
        }
        self.steps[at].get_or_insert_with(make)
    }

    /// The cache of a fused step. Precondition: the step with this index is one.
    pub fn fused(&mut self, at: usize) -> &mut fused::Ready {
        match self.step(at, || Step::Fused(fused::prepare())) {
            Step::Fused(ready) => ready,
            Step::Each(_) => unreachable!("a plan's steps stay what they are"),
        }
    }

    /// The cache of a step over many tensors. Precondition: the step with this index is one.
    pub fn each(&mut self, at: usize) -> &mut Each {
        match self.step(at, || Step::Each(Box::default())) {
            Step::Each(each) => each,
            Step::Fused(_) => unreachable!("a plan's steps stay what they are"),
        }
    }
}

/// The cache of a step over many tensors.
#[derive(Default)]
pub(super) struct Each {
    pub on_gpu: fused::Each,
    pub lines: Lines,
    /// The views of the largest member, once they are known; the addresses of all members are in `lines`.
    views: Option<Vec<RawView>>,
}

impl Each {
    /// The launch's table, and what it does not contain: the strides of the slots. A member of one element does not
    /// show whether a slot has a stride.
    pub fn fill<'a>(
        &'a mut self,
        each: &'a EachProgram,
        node: &Node,
    ) -> (&'a mut fused::Each, Table<'a>, &'a [RawView]) {
        let size = |&member: &usize| each.shape(node, member).iter().product::<usize>();
        let largest = || (0..each.members(node)).max_by_key(size).unwrap_or(0);
        let views = self.views.get_or_insert_with(|| each.views(node, largest()));
        (&mut self.on_gpu, self.lines.fill(each, node), views)
    }
}

/// All members of a node as a table for one launch. Precondition: each is contiguous, and all have memory.
#[derive(Default)]
pub(super) struct Lines {
    addresses: Vec<u64>,
    sizes: Vec<u64>,
}

impl Lines {
    fn fill<'a>(&'a mut self, each: &'a EachProgram, node: &Node) -> Table<'a> {
        let count = each.members(node);
        let width = each.columns.iter().max().map_or(0, |last| last + 1);
        self.sizes.clear();
        self.sizes.extend((0..count).map(|member| each.shape(node, member).iter().product::<usize>() as u64));
        self.addresses.clear();
        self.addresses.resize(count * width, 0);
        let (mut inputs, mut outputs) = (node.reads(), node.outputs.iter());
        for row in self.addresses.chunks_exact_mut(width.max(1)) {
            for (&column, &(_, stored)) in each.columns.iter().zip(&each.slots) {
                let view = if stored { outputs.next() } else { inputs.next() };
                row[column] = view.map_or(0, |view| view.ptr() as u64);
            }
        }
        Table { columns: &each.columns, width, addresses: &self.addresses, sizes: &self.sizes }
    }
}
