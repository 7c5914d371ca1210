//! Reductions of views that repeat their elements along a dim, as `expand` makes them: each element is read once.

use super::{Task, Wide};
use crate::base::layout::{Shape, Strides};
use crate::kernel::abi::RawView;
use crate::kernel::fused::host::{RunArgs, Space};
use crate::kernel::program::ReduceKind;
use smallvec::SmallVec;

/// Parts of outputs, and those that they are copied to, one after the other.
pub(super) type Copies = SmallVec<[(RawView, RawView); 2]>;

/// Takes dims along which view `slot`, the only one that is read, repeats its elements out of the space. A reduced one becomes
/// a factor of sums; along others the first result is copied.
pub(super) fn drop_repeated(space: &mut Space, tasks: &mut [Task], slot: u16, given: RunArgs<'_>) -> Copies {
    use ReduceKind::{All, Any, Max, Min, Sum};
    let mut copies = Copies::new();
    let repeats = |space: &Space, dim: usize| space.dims[dim].size > 1 && space.stride(dim, slot as usize) == 0;
    let dims = space.dims.len();
    if !(0..dims).any(|dim| repeats(space, dim))
        || !tasks.iter().all(|task| matches!(task.kind, Sum | Min | Max | Any | All))
    {
        return copies;
    }
    let sizes: SmallVec<[usize; 6]> = space.dims.iter().map(|dim| dim.size).collect();
    for dim in 0..dims {
        if !repeats(space, dim) {
            continue;
        }
        if space.dims[dim].reduced {
            tasks.iter_mut().filter(|task| task.kind == Sum).for_each(|task| task.times *= sizes[dim]);
        }
        space.dims[dim].size = 1;
    }
    // Dims of the results that are there so far.
    let mut there: SmallVec<[usize; 6]> = space.dims.iter().map(|dim| dim.size).collect();
    for dim in (0..dims).filter(|&dim| !space.dims[dim].reduced) {
        if there[dim] == sizes[dim] {
            continue;
        }
        for task in tasks.iter() {
            let view = &given.views[task.slot];
            let size = view.dtype.size_bytes() as isize;
            let output = (0..dims).filter(|&other| !space.dims[other].reduced);
            let strides: Strides = output.clone().map(|other| space.stride(other, task.slot) / size).collect();
            let shape: Shape =
                output.clone().map(|other| if other == dim { sizes[dim] - 1 } else { there[other] }).collect();
            let from = output.zip(&strides).map(|(other, &stride)| if other == dim { 0 } else { stride }).collect();
            let first = RawView { shape: shape.clone(), strides: from, ..view.clone() };
            let others = view.ptr.wrapping_offset(space.stride(dim, task.slot));
            copies.push((first, RawView { ptr: others, shape, strides, ..view.clone() }));
        }
        there[dim] = sizes[dim];
    }
    copies
}

impl Task {
    /// A result added up as often as its elements are repeated.
    pub(super) fn repeated(&self, value: Wide) -> Wide {
        match self.kernels.float {
            true => (f64::from_bits(value) * self.times as f64).to_bits(),
            false => value.wrapping_mul(self.times as u64),
        }
    }
}
