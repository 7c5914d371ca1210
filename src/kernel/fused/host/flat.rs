//! A map over so few elements without gaps that they are one tile: views are used as registers, and no boxes are planned.
//! Operands of one element are broadcast. Most steps of small models are of this kind.
//!
//! Cost: about 200 instructions in addition to the arithmetic; the general path through boxes has 3000.

use super::RunArgs;
use super::code::{Code, Op};
use super::tiles::{fill, is_register, satisfies, violation, with_scratch};
use crate::kernel::abi::RawView;
use crate::kernel::program::Class;
use smallvec::SmallVec;

/// Whether a program over `n` elements can be run here: they fit into a tile, the views lie alike and without gaps or, for
/// loads, are one element, they have the register's representation, and no op needs positions or reduces.
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
    n <= code.tile
        && code.reduces == 0
        && given.views.iter().all(|view| is_register(view.dtype))
        // In another order the place of a fault would not be that of the element.
        && (fits(true, &RawView::is_contiguous)
            || in_another_order(given.views).is_some_and(|lead| fits(false, &|view| lies_as(view, lead))))
}

/// The first of the views with more than one element, if its dims lie in memory without gaps.
fn in_another_order(views: &[RawView]) -> Option<&RawView> {
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
fn lies_as(view: &RawView, lead: &RawView) -> bool {
    let mut dims = view.shape.iter().zip(&view.strides).zip(&lead.strides);
    dims.all(|((&size, own), lead)| size == 1 || own == lead)
}

/// Whether a view is one broadcast element.
fn is_one(view: &RawView) -> bool {
    view.strides.iter().all(|&stride| stride == 0)
}

/// The one element of a view, as an entry of the scalar table.
///
/// # Safety
/// As `run`.
unsafe fn one(view: &RawView) -> u64 {
    // SAFETY: the view is valid, and its dtype one that registers hold.
    unsafe {
        match Class::of(view.dtype) {
            Class::Bool => view.ptr.read() as u64,
            Class::I64 => view.ptr.cast::<u64>().read(),
            Class::F32 => f64::from(view.ptr.cast::<f32>().read()).to_bits(),
            Class::F64 => view.ptr.cast::<u64>().read(),
        }
    }
}

/// Runs it.
///
/// # Safety
/// As `fused::run`; `fits` was true.
pub(super) unsafe fn run(code: &Code, n: usize, given: RunArgs<'_>) {
    with_scratch(code.scratch * code.tile, |base| {
        // SAFETY: places lie within `code.scratch` bytes per element of a tile.
        let mut values: SmallVec<[*mut u8; 16]> =
            code.values.iter().map(|value| unsafe { base.add(value.place * code.tile) }).collect();
        for &(index, id) in &code.scalars {
            // SAFETY: a scalar's place has room for a tile.
            unsafe { fill(values[id as usize], code.values[id as usize].class, given.scalars[index as usize], n) };
        }
        // A value is computed directly into the view that it is stored to, if no other op accesses that memory in
        // between.
        for op in &code.ops {
            if let Op::Store { arg, slot, from: Some(_) } = *op {
                values[arg as usize] = given.views[slot as usize].ptr;
            }
        }
        for (at, op) in code.ops.iter().enumerate() {
            // SAFETY: views and registers have room for `n` elements of their classes, which are not more than a tile.
            unsafe {
                match *op {
                    Op::Load { .. } => load(code, given, at, n, &mut values),
                    Op::Apply { tile, args, out } => {
                        let args = args.map(|id| values[id as usize].cast_const());
                        tile(&args, values[out as usize], n);
                    }
                    Op::Store { arg, slot, from: None } => {
                        let (value, view) = (values[arg as usize], &given.views[slot as usize]);
                        if value != view.ptr {
                            std::ptr::copy(value.cast_const(), view.ptr, n * view.dtype.size_bytes());
                        }
                    }
                    Op::Check { check, class, arg, node } => {
                        let value = values[arg as usize].cast_const();
                        if !satisfies(check, class, value, 0..n)
                            && let Some(first) = (0..n).find(|&k| !satisfies(check, class, value, k..k + 1))
                        {
                            given.faults[node as usize].report(violation(check, first as u64));
                        }
                    }
                    Op::Store { .. } | Op::Position { .. } | Op::Random { .. } | Op::Reduce { .. } => {}
                }
            }
        }
    });
}

/// The view's memory is the register, unless it is written between this op and the last one that reads the value.
///
/// # Safety
/// As `run`.
unsafe fn load(code: &Code, given: RunArgs<'_>, at: usize, n: usize, values: &mut SmallVec<[*mut u8; 16]>) {
    let Op::Load { slot, out } = code.ops[at] else { return };
    let view = &given.views[slot as usize];
    if n > 1 && is_one(view) {
        // SAFETY: a loaded value has a place of its own, with room for a tile.
        return unsafe { fill(values[out as usize], code.values[out as usize].class, one(view), n) };
    }
    let last = code.values[out as usize].last;
    // The last op that reads it may write it: each element is read before it is written.
    let overwritten = code.ops.get(at + 1..last).unwrap_or_default().iter().any(|op| match *op {
        Op::Apply { out, .. } => values[out as usize] == view.ptr,
        Op::Store { slot: other, from: None, .. } => given.views[other as usize].ptr == view.ptr,
        _ => false,
    });
    if overwritten {
        // SAFETY: a loaded value has a place of its own, with room for a tile.
        unsafe { std::ptr::copy_nonoverlapping(view.ptr, values[out as usize], n * view.dtype.size_bytes()) };
    } else {
        values[out as usize] = view.ptr;
    }
}
