//! A set of bytes inside a buffer: the elements of a strided layout.
//!
//! Knows no streams and no accesses.

use super::overlap;
use crate::base::layout::Layout;
use smallvec::SmallVec;

/// `count` copies, `stride` bytes apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Repeat {
    pub stride: u64,
    pub count: u64,
}

/// `run` bytes from `start`, repeated along every entry of `repeats`.
///
/// Invariant: counts are at least 2, strides ascend and exceed `run`; the run is as long and the repeats as few as
/// possible. Dims of size 1 or stride 0 and the order of dims make no difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pub(super) start: u64,
    pub(super) run: u64,
    pub(super) repeats: SmallVec<[Repeat; 2]>,
}

impl Region {
    pub fn whole(bytes: u64) -> Region {
        Region { start: 0, run: bytes, repeats: SmallVec::new() }
    }

    /// The bytes of a layout's elements.
    pub fn of(layout: &Layout, elem_bytes: usize) -> Region {
        if layout.is_empty() {
            return Region::whole(0);
        }
        if let Some(region) = Region::of_ordered(layout, elem_bytes as u64) {
            return region;
        }
        let elem = elem_bytes as i64;
        let mut start = layout.offset as i64 * elem;
        let mut repeats = SmallVec::new();
        for (&size, &stride) in layout.shape.iter().zip(&layout.strides) {
            let stride = stride as i64 * elem;
            if stride < 0 {
                start += stride * (size as i64 - 1);
            }
            if size > 1 && stride != 0 {
                repeats.push(Repeat { stride: stride.unsigned_abs(), count: size as u64 });
            }
        }
        Region::normal(start as u64, elem_bytes as u64, repeats)
    }

    /// The same where strides do not ascend and none is negative, as in most views: without lists to sort.
    fn of_ordered(layout: &Layout, elem: u64) -> Option<Region> {
        let mut region = Region { start: layout.offset as u64 * elem, run: elem, repeats: SmallVec::new() };
        let mut before = 0;
        for (&size, &stride) in layout.shape.iter().zip(&layout.strides).rev() {
            if size > 1 && stride != 0 {
                if stride < before {
                    return None;
                }
                before = stride;
                region.repeat(Repeat { stride: stride as u64 * elem, count: size as u64 });
            }
        }
        Some(region)
    }

    fn normal(start: u64, run: u64, mut repeats: SmallVec<[Repeat; 2]>) -> Region {
        repeats.sort_unstable_by_key(|repeat| repeat.stride);
        let mut region = Region { start, run, repeats: SmallVec::new() };
        repeats.into_iter().for_each(|repeat| region.repeat(repeat));
        region
    }

    /// Adds a repeat whose stride is not below those so far.
    fn repeat(&mut self, Repeat { stride, count }: Repeat) {
        match self.repeats.last_mut() {
            None if stride <= self.run => self.run += stride * (count - 1),
            // An arithmetic progression of progressions that touch is one progression.
            Some(last) if stride % last.stride == 0 && stride / last.stride <= last.count => {
                last.count += stride / last.stride * (count - 1);
            }
            _ => self.repeats.push(Repeat { stride, count }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.run == 0
    }

    /// One past the last byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.run + self.repeats.iter().map(|repeat| repeat.stride * (repeat.count - 1)).sum::<u64>()
    }

    /// True only if every byte of `other` is in this; false may also mean that the quick check did not find it.
    pub fn contains(&self, other: &Region) -> bool {
        let within = self.start <= other.start && other.end() <= self.end();
        within && (self.repeats.is_empty() || self == other)
    }

    /// The union, if it is exactly one region and a quick check finds it.
    pub(super) fn join(&self, other: &Region) -> Option<Region> {
        let (low, high) = if self.start <= other.start { (self, other) } else { (other, self) };
        if low.contains(high) {
            return Some(low.clone());
        }
        if high.contains(low) {
            return Some(high.clone());
        }
        let apart = high.start - low.start;
        if low.repeats == high.repeats && apart <= low.run {
            let run = low.run.max(apart + high.run);
            return Some(Region::normal(low.start, run, low.repeats.clone()));
        }
        // One more repeat at either end, or the second of two.
        let (last, inner) = match (low.repeats.split_last(), high.repeats.split_last()) {
            _ if low.run != high.run => return None,
            _ if low.repeats == high.repeats => (Repeat { stride: apart, count: 1 }, &low.repeats[..]),
            (Some((last, inner)), _) if inner == &high.repeats[..] && apart == last.stride * last.count => {
                (*last, inner)
            }
            (_, Some((last, inner))) if inner == &low.repeats[..] && apart == last.stride => (*last, inner),
            _ => return None,
        };
        let mut repeats = SmallVec::from_slice(inner);
        repeats.push(Repeat { stride: last.stride, count: last.count + 1 });
        Some(Region::normal(low.start, low.run, repeats))
    }

    /// Whether the two sets have a byte in common, decided exactly.
    pub fn overlaps(&self, other: &Region) -> bool {
        if self.is_empty() || other.is_empty() || self.start >= other.end() || other.start >= self.end() {
            return false;
        }
        if self.repeats.is_empty() && other.repeats.is_empty() {
            return true;
        }
        overlap::overlap(self, other)
    }
}
