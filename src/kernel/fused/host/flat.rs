//! A map over elements without gaps: views are used as registers, or converted on the way, and no boxes are planned.
//! Operands of one element are broadcast. Most steps are of this kind.
//!
//! Cost: about 200 instructions in addition to the arithmetic; the general path through boxes has 3000, and 300 for each tile.

use super::RunArgs;
use super::code::{Code, Op};
use super::convert::{self, BoxFn};
use super::tiles::{Prefetch, fill, is_non_temporal, satisfies, violation, with_scratch};
use crate::kernel::abi::{RawView, Threads};
use smallvec::SmallVec;
use std::ops::Range;

/// Whether a program over `n` elements can be run here: the views lie alike and without gaps or, for loads, are one element,
/// no op needs positions or reduces, and none of the outputs is to bypass the cache.
pub(super) fn fits(code: &Code, n: usize, given: RunArgs<'_>) -> bool {
    let fits = |places: bool, dense: &dyn Fn(&RawView) -> bool| {
        code.ops.iter().all(|op| match *op {
            Op::Load { slot, .. } => dense(&given.views[slot as usize]) || is_one(&given.views[slot as usize]),
            Op::Store { slot, .. } => dense(&given.views[slot as usize]),
            Op::Check { .. } => places,
            Op::Apply { .. } => true,
            Op::Position { .. } | Op::Random { .. } | Op::Reduce { .. } => false,
        })
    };
    code.reduces == 0
        && (n <= code.tile || !given.views.iter().any(is_non_temporal))
        // In another order the place of a fault would not be that of the element.
        && (fits(true, &RawView::is_contiguous)
            || in_another_order(given.views).is_some_and(|lead| fits(false, &|view| lies_as(view, lead))))
}

/// The first of the views with more than one element, if its dims lie in memory without gaps.
pub(super) fn in_another_order(views: &[RawView]) -> Option<&RawView> {
    let lead = views.iter().find(|view| !is_one(view))?;
    let mut dims: SmallVec<[(isize, usize); 6]> =
        lead.strides.iter().copied().zip(lead.shape.iter().copied()).filter(|&(_, size)| size != 1).collect();
    dims.sort_unstable();
    let mut expected = 1;
    let dense = dims.iter().all(|&(stride, size)| {
        let fits = stride == expected;
        expected *= size as isize;
        fits
    });
    dense.then_some(lead)
}

/// Whether two views of one shape have their elements in the same order.
pub(super) fn lies_as(view: &RawView, lead: &RawView) -> bool {
    let mut dims = view.shape.iter().zip(&view.strides).zip(&lead.strides);
    dims.all(|((&size, own), lead)| size == 1 || own == lead)
}

/// Whether a view is one broadcast element.
pub(super) fn is_one(view: &RawView) -> bool {
    view.strides.iter().all(|&stride| stride == 0)
}

/// How an op accesses its view.
#[derive(Clone, Copy)]
enum Access {
    /// The view's memory is the register, or no view is accessed.
    Direct,
    /// Copied as it is, to or from the register.
    Copied,
    /// Converted on the way.
    Converted(BoxFn),
    /// One element, which is in the register from the beginning.
    Broadcast,
}

/// Runs it.
///
/// # Safety
/// As `fused::run`; `fits` was true.
pub(super) unsafe fn run(code: &Code, n: usize, given: RunArgs<'_>, threads: &Threads) {
    let access = choose_access(code, n, given);
    let work = |range: Range<usize>| {
        with_scratch(code.scratch * code.tile, |base| {
            // SAFETY: ranges are disjoint; the rest is this function's contract.
            unsafe { run_range(code, range, given, &access, base) }
        });
    };
    if n <= code.grain {
        work(0..n);
    } else {
        threads.split(n, code.grain, work);
    }
}

fn choose_access(code: &Code, n: usize, given: RunArgs<'_>) -> SmallVec<[Access; 12]> {
    let register = |slot: u16, value: u16| given.views[slot as usize].dtype == code.values[value as usize].dtype;
    // Whether an op writes the memory `ptr`: the store, or the op that computes directly into it.
    let writes = |op: &Op, ptr: *mut u8| match *op {
        Op::Apply { out, .. } => code.ops.iter().any(|op| {
            matches!(*op, Op::Store { arg, slot, from: Some(_) }
                if arg == out && register(slot, arg) && given.views[slot as usize].ptr == ptr)
        }),
        Op::Store { arg, slot, from } => {
            (from.is_none() || !register(slot, arg)) && given.views[slot as usize].ptr == ptr
        }
        _ => false,
    };
    let choose = |(at, op): (usize, &Op)| match *op {
        Op::Load { slot, .. } if n > 1 && is_one(&given.views[slot as usize]) => Access::Broadcast,
        Op::Load { slot, out } if !register(slot, out) => {
            Access::Converted(convert::load(given.views[slot as usize].dtype, code.values[out as usize].dtype))
        }
        Op::Load { slot, out } => {
            let last = code.values[out as usize].last;
            // The last op that reads it may write it: each element is read before it is written.
            let between = code.ops.get(at + 1..last).unwrap_or_default();
            let overwritten = between.iter().any(|op| writes(op, given.views[slot as usize].ptr));
            if overwritten { Access::Copied } else { Access::Direct }
        }
        Op::Store { arg, slot, .. } if !register(slot, arg) => {
            Access::Converted(convert::store_held(given.views[slot as usize].dtype, code.values[arg as usize].dtype))
        }
        Op::Store { from: None, .. } => Access::Copied,
        _ => Access::Direct,
    };
    code.ops.iter().enumerate().map(choose).collect()
}

/// Computes the elements of `range`, tile by tile.
///
/// # Safety
/// As `run`; `base` is scratch memory for the code.
unsafe fn run_range(code: &Code, range: Range<usize>, given: RunArgs<'_>, access: &[Access], base: *mut u8) {
    // SAFETY: places lie within `code.scratch` bytes per element of a tile.
    let mut values: SmallVec<[*mut u8; 16]> =
        code.values.iter().map(|value| unsafe { base.add(value.place * code.tile) }).collect();
    let longest = code.tile.min(range.len());
    for &(index, id) in &code.scalars {
        // SAFETY: a scalar's place has room for a tile.
        unsafe { fill(values[id as usize], code.values[id as usize].dtype, given.scalars[index as usize], longest) };
    }
    for (op, access) in code.ops.iter().zip(access) {
        if let (&Op::Load { slot, out }, Access::Broadcast) = (op, access) {
            let (view, held) = (&given.views[slot as usize], code.values[out as usize].dtype);
            // SAFETY: the view is one element, and a loaded value has a place of its own, with room for a tile.
            unsafe { convert::load(view.dtype, held)(view.ptr, [0; 3], [1, 1, longest], values[out as usize]) };
        }
    }
    let mut start = range.start;
    while start < range.end {
        let n = code.tile.min(range.end - start);
        // SAFETY: the elements are of the range.
        unsafe { run_tile(code, start, n, given, access, &mut values, n < range.len()) };
        start += n;
    }
}

/// # Safety
/// As `run_range`; the `n` elements from `start` on are of its range.
unsafe fn run_tile(
    code: &Code,
    start: usize,
    n: usize,
    given: RunArgs<'_>,
    access: &[Access],
    values: &mut SmallVec<[*mut u8; 16]>,
    more: bool,
) {
    let place = |slot: u16| {
        let view = &given.views[slot as usize];
        let size = view.dtype.size_bytes();
        (view.ptr.wrapping_add(start * size), size)
    };
    // A value is computed directly into the view that it is stored to, if no other op accesses that memory in between.
    for (op, access) in code.ops.iter().zip(access) {
        if let (&Op::Store { arg, slot, from: Some(_) }, Access::Direct) = (op, access) {
            values[arg as usize] = place(slot).0;
        }
    }
    // A short program is limited by memory bandwidth anyway.
    let (long, mut prefetcher) = (more && code.ops.len() > 4, Prefetch::default());
    for (op, access) in code.ops.iter().zip(access) {
        if long {
            prefetcher.step();
        }
        // SAFETY: views and registers have room for `n` elements of their classes, which are not more than a tile.
        unsafe {
            match *op {
                Op::Load { slot, out } => {
                    let ((memory, size), value) = (place(slot), &mut values[out as usize]);
                    match *access {
                        Access::Direct => {
                            *value = memory;
                            if long {
                                prefetcher.add(memory, n * size);
                            }
                        }
                        Access::Copied => std::ptr::copy_nonoverlapping(memory.cast_const(), *value, n * size),
                        Access::Converted(load) => load(memory, [0, 0, size as isize], [1, 1, n], *value),
                        Access::Broadcast => {}
                    }
                }
                Op::Apply { tile, args, out } => {
                    let args = args.map(|id| values[id as usize].cast_const());
                    tile(&args, values[out as usize], n);
                }
                Op::Store { arg, slot, .. } => {
                    let ((memory, size), value) = (place(slot), values[arg as usize]);
                    match *access {
                        Access::Converted(store) => store(memory, [0, 0, size as isize], [1, 1, n], value),
                        Access::Copied if value != memory => std::ptr::copy(value.cast_const(), memory, n * size),
                        _ => {}
                    }
                }
                Op::Check { check, class, arg, node } => {
                    let value = values[arg as usize].cast_const();
                    if !satisfies(check, class, value, 0..n)
                        && let Some(first) = (0..n).find(|&k| !satisfies(check, class, value, k..k + 1))
                    {
                        given.faults[node as usize].report(violation(check, (start + first) as u64));
                    }
                }
                Op::Position { .. } | Op::Random { .. } | Op::Reduce { .. } => {}
            }
        }
    }
}
