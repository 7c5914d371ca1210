//! The iteration space of a fused step on a device: dims in the order of memory, merged where every column allows
//! it. Knows strides in elements and nothing of what is computed.

use crate::kernel::abi::RawView;

/// One dim: its size and, for each column, the elements from one index to the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Dim {
    pub size: u64,
    pub strides: Vec<i64>,
}

/// Dims, outermost first; those that remain and those that are reduced in two lists. The last column is the position.
#[derive(Clone, Debug)]
pub struct Space {
    pub output_dims: Vec<Dim>,
    pub reduced: Vec<Dim>,
}

/// Whether reduced dims may be reordered.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Free,
    /// Not: positions within a row are results.
    Fixed,
}

impl Space {
    /// `lead`: columns whose strides decide the order of dims, the most important first. `positions`: distance between
    /// positions along each dim.
    pub fn new(
        shape: &[usize],
        reduced: usize,
        positions: &[isize],
        views: &[RawView],
        lead: &[usize],
        order: Order,
    ) -> Space {
        let split = shape.len() - reduced;
        let mut dims: Vec<Dim> = Vec::new();
        for (at, &size) in shape.iter().enumerate() {
            let mut strides: Vec<i64> =
                views.iter().map(|view| view.strides.get(at).map_or(0, |&stride| stride as i64)).collect();
            strides.push(positions[at] as i64);
            dims.push(Dim { size: size as u64, strides });
        }
        let reduced = dims.split_off(split);
        let tidy = |mut dims: Vec<Dim>, free: bool| {
            dims.retain(|dim| dim.size != 1);
            if free {
                sort(&mut dims, lead);
            }
            merge(dims)
        };
        Space { output_dims: tidy(dims, true), reduced: tidy(reduced, order == Order::Free) }
    }

    pub fn kept_count(&self) -> u64 {
        self.output_dims.iter().map(|dim| dim.size).product()
    }

    pub fn reduced_count(&self) -> u64 {
        self.reduced.iter().map(|dim| dim.size).product()
    }
}

/// By falling strides of the first leading column in which the two dims differ.
fn sort(dims: &mut [Dim], lead: &[usize]) {
    for start in 1..dims.len() {
        for at in (1..=start).rev() {
            let decided = lead.iter().find_map(|&column| {
                let (outer, inner) = (dims[at - 1].strides[column].abs(), dims[at].strides[column].abs());
                (outer != 0 && inner != 0 && outer != inner).then_some(outer < inner)
            });
            if decided != Some(true) {
                break;
            }
            dims.swap(at - 1, at);
        }
    }
}

/// Merges adjacent dims that are one contiguous dim in every column.
fn merge(dims: Vec<Dim>) -> Vec<Dim> {
    let mut merged: Vec<Dim> = Vec::new();
    for dim in dims {
        match merged.last_mut() {
            Some(last)
                if last.strides.iter().zip(&dim.strides).all(|(&outer, &inner)| outer == inner * dim.size as i64) =>
            {
                *last = Dim { size: last.size * dim.size, ..dim };
            }
            _ => merged.push(dim),
        }
    }
    merged
}

/// The stride of a column along the innermost dim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Zero,
    Unit,
    Any,
    /// Two, beside the column that is given, whose elements lie between: real and imaginary parts.
    Pair(usize),
    /// The column that lies between those of a `Pair`.
    Between,
}

/// Pairs of views of the same layout, of which the second begins one element after the first and whose elements lie two
/// apart: the parts of complex numbers. The first begin at multiples of 16.
pub(super) fn pairs(views: &[RawView]) -> Vec<(usize, usize)> {
    let spread = |at: &usize| views[*at].strides.contains(&2);
    let mut free: Vec<usize> = (0..views.len()).filter(spread).collect();
    let mut pairs = Vec::new();
    while let Some(first) = free.iter().copied().find(|&at| (views[at].ptr as usize).is_multiple_of(16)) {
        free.retain(|&at| at != first);
        let view = &views[first];
        let next = (view.ptr as usize).wrapping_add(view.dtype.size_bytes());
        let is_mate = |other: &RawView| {
            other.ptr as usize == next
                && other.dtype == view.dtype
                && other.shape == view.shape
                && other.strides == view.strides
        };
        if let Some(second) = free.iter().copied().find(|&at| is_mate(&views[at])) {
            free.retain(|&at| at != second);
            pairs.push((first, second));
        }
    }
    pairs
}

pub(super) fn step(dims: &[Dim], column: usize) -> Step {
    match dims.last().map_or(0, |dim| dim.strides[column]) {
        0 => Step::Zero,
        1 => Step::Unit,
        _ => Step::Any,
    }
}

/// The largest power of two, at most `limit`, that divides the innermost size and the other strides of `columns`.
pub(super) fn vector(dims: &[Dim], others: &[Dim], columns: &[usize], limit: u64) -> u64 {
    let Some((last, outer)) = dims.split_last() else { return 1 };
    let mut v = limit;
    while v > 1
        && (!last.size.is_multiple_of(v)
            || outer
                .iter()
                .chain(others)
                .any(|dim| columns.iter().any(|&c| !(dim.strides[c] as u64).is_multiple_of(v))))
    {
        v /= 2;
    }
    v
}

/// Multiplier and shift for `ts_fast_div`.
pub fn division(d: u64) -> u64 {
    let d = d.max(1);
    let shift = 64 - (d - 1).leading_zeros() as u64;
    let multiplier = (((1u128 << 32) * ((1u128 << shift) - d as u128)) / d as u128 + 1) as u64;
    multiplier & 0xffff_ffff | shift << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::layout::contiguous_strides;

    #[test]
    fn division_is_exact() {
        for d in (1..2000u64).chain([65_535, 65_536, 1 << 20, 999_983, (1 << 31) - 1, 1 << 31]) {
            let word = division(d);
            for n in [0, 1, d - 1, d, d + 1, 7 * d, 12_345_678, (1 << 31) - 1, u32::MAX as u64] {
                let n = n & 0xffff_ffff;
                let high = (n * (word & 0xffff_ffff)) >> 32;
                assert_eq!((high + n) >> (word >> 32), n / d, "{n} / {d}");
            }
        }
    }

    #[test]
    fn dims_are_merged_in_memory_order() {
        let positions = contiguous_strides(&[2, 3, 4]);
        let view = |strides: &[isize]| RawView {
            ptr: std::ptr::null_mut(),
            dtype: crate::base::dtype::DType::F32,
            shape: crate::base::layout::Shape::from_slice(&[2, 3, 4]),
            strides: crate::base::layout::Strides::from_slice(strides),
        };
        let space = Space::new(&[2, 3, 4], 0, &positions, &[view(&[12, 4, 1])], &[0], Order::Free);
        assert_eq!(space.output_dims, [Dim { size: 24, strides: vec![1, 1] }]);
        let space = Space::new(&[2, 3, 4], 0, &positions, &[view(&[1, 2, 6])], &[0], Order::Free);
        assert_eq!(space.output_dims.iter().map(|dim| dim.size).collect::<Vec<_>>(), [4, 3, 2]);
        let space = Space::new(&[2, 3, 4], 1, &positions, &[view(&[12, 4, 1])], &[0], Order::Free);
        assert_eq!((space.kept_count(), space.reduced_count()), (6, 4));
        assert_eq!(vector(&space.reduced, &space.output_dims, &[0], 8), 4);
    }
}
