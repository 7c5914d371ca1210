//! Which parts of which buffers a fault has reached.

use crate::base::diag::Diag;
use crate::base::layout::Layout;
use crate::device::race::Region;
use crate::op::tensor::{Poison, View};
use std::sync::Arc;

/// Bound: parts that are examined to remove a write from the poisoned part, and parts that may remain. Beyond it the
/// poisoned part stays whole: a tensor that was overwritten in a pattern that no slice makes still counts as
/// poisoned, but never the opposite.
const MAX_EXAMINED: usize = 1 << 12;
const MAX_PARTS: usize = 64;

fn region(view: &View) -> Region {
    Region::of(&view.layout, view.dtype.size_bytes())
}

/// The earliest fault that reached an element of the view, with its queue number.
pub fn of(view: &View) -> Option<(u64, Arc<Diag>)> {
    let poison = view.buffer.poison.lock();
    if poison.is_empty() {
        return None;
    }
    let own = region(view);
    let reached = poison.iter().filter(|p| {
        let part = Region::of(&p.layout, p.elem_bytes);
        // What failed into a tensor of no elements is all of it.
        part.overlaps(&own) || (part.is_empty() && own.is_empty())
    });
    reached.min_by_key(|p| p.order).map(|p| (p.order, p.fault.clone()))
}

/// The view was written: by work that a fault has reached, or by other work, which clears the poison of what it
/// overwrites.
pub fn write(view: &View, fault: Option<&(u64, Arc<Diag>)>) {
    let mut poison = view.buffer.poison.lock();
    if poison.is_empty() && fault.is_none() {
        return;
    }
    let (own, elem_bytes) = (region(view), view.dtype.size_bytes());
    for old in std::mem::take(&mut *poison) {
        let left = without(&old.layout, old.elem_bytes, &own, elem_bytes);
        poison.extend(left.into_iter().map(|layout| Poison { layout, fault: old.fault.clone(), ..old }));
    }
    if let Some((order, fault)) = fault {
        let layout = view.layout.clone();
        poison.push(Poison { layout, elem_bytes, fault: fault.clone(), order: *order });
    }
}

/// The elements of a layout that remain after those of a region were overwritten.
pub(in crate::sched) fn without(
    layout: &Layout,
    elem_bytes: usize,
    written: &Region,
    written_bytes: usize,
) -> Vec<Layout> {
    let (mut left, mut open) = (Vec::new(), vec![layout.clone()]);
    let mut looks = 0;
    while let Some(part) = open.pop() {
        let own = Region::of(&part, elem_bytes);
        looks += 1;
        if looks > MAX_EXAMINED || left.len() > MAX_PARTS {
            return vec![layout.clone()];
        }
        if own.is_empty() || written.contains(&own) {
            continue;
        }
        // Elements of equal size that overlap are identical.
        match (written.overlaps(&own), halves(&part)) {
            (true, Some(both)) => open.extend(both),
            (true, None) if elem_bytes <= written_bytes => {}
            _ => left.push(part),
        }
    }
    left
}

/// Splits a layout across its largest stride; none for a single element.
fn halves(layout: &Layout) -> Option<[Layout; 2]> {
    let dims = (0..layout.shape.len()).filter(|&dim| layout.shape[dim] > 1 && layout.strides[dim] != 0);
    let dim = dims.max_by_key(|&dim| layout.strides[dim].unsigned_abs())?;
    let (mut low, mut high) = (layout.clone(), layout.clone());
    let half = layout.shape[dim] / 2;
    low.shape[dim] = half;
    high.shape[dim] -= half;
    high.offset = high.offset.wrapping_add_signed(layout.strides[dim] * half as isize);
    Some([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of a layout's elements.
    fn elements(layout: &Layout) -> Vec<isize> {
        let mut all = vec![layout.offset as isize];
        for (&size, &stride) in layout.shape.iter().zip(&layout.strides) {
            all = (0..size as isize).flat_map(|at| all.iter().map(move |start| start + at * stride)).collect();
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn layout(offset: usize, shape: &[usize], strides: &[isize]) -> Layout {
        Layout { offset, shape: shape.iter().copied().collect(), strides: strides.iter().copied().collect() }
    }

    /// Random layouts in a matrix of 6 x 8 elements, against lists of elements.
    #[test]
    fn the_rest_is_what_was_not_written() {
        let mut state = 3u64;
        let mut draw = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for _ in 0..2000 {
            let mut any = || {
                let (row, column) = (draw(6), draw(8));
                let (rows, columns) = (1 + draw(6 - row), 1 + draw(8 - column));
                let (down, right) = (1 + draw(2), 1 + draw(3));
                let shape = [rows.div_ceil(down), columns.div_ceil(right)];
                layout(row * 8 + column, &shape, &[8 * down as isize, right as isize])
            };
            let (bad, written) = (any(), any());
            let over = elements(&written);
            let expected: Vec<isize> = elements(&bad).into_iter().filter(|at| !over.contains(at)).collect();
            let mut left: Vec<isize> =
                without(&bad, 4, &Region::of(&written, 4), 4).iter().flat_map(elements).collect();
            left.sort_unstable();
            assert_eq!(left, expected, "{bad:?} without {written:?}");
        }
    }

    #[test]
    fn parts_of_wider_elements_and_patterns_beyond_the_bound_stay_poisoned() {
        let wide = layout(0, &[4], &[1]);
        let narrow = Region::of(&layout(0, &[1], &[1]), 2);
        assert_eq!(without(&wide, 4, &narrow, 2).iter().map(|part| part.shape[0]).sum::<usize>(), 4);
        let whole = layout(0, &[1000, 1000], &[1000, 1]);
        let column = Region::of(&layout(0, &[1000], &[1000]), 4);
        assert_eq!(without(&whole, 4, &column, 4), std::slice::from_ref(&whole));
        let rows = Region::of(&layout(0, &[500, 1000], &[1000, 1]), 4);
        assert_eq!(without(&whole, 4, &rows, 4), [layout(500_000, &[500, 1000], &[1000, 1])]);
    }
}
