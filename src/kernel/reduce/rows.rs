//! Reductions whose innermost dim is reduced: a tile gives one value, or one for each short row.

use super::{Partials, Plan, Task, Wide, narrow, part_count};
use crate::kernel::fused::host::{Grid, Space, Tiles, fit};
use crate::kernel::guard;
use crate::kernel::host::simd;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Tiles between two calls of `guard::check`.
const TILES: usize = 64;
/// Rows whose results are stored together.
const BATCH: usize = 64;
/// Elements of a row from which on it is reduced by a call of its own.
const PLAIN_ROW: usize = 64;

impl Plan<'_> {
    /// `space`: `output_dims` output dims, then reduced ones.
    ///
    /// # Safety
    /// As `run`.
    pub(super) unsafe fn rows(&self, mut space: Space, output_dims: usize) {
        let reduced_dims = space.dims.len() - output_dims;
        let reduced: usize = space.dims[output_dims..].iter().map(|dim| dim.size).product();
        let short = output_dims > 0 && reduced_dims <= 2 && reduced > 0 && reduced <= self.code.tile / 2;
        // Rows that lie in memory as they are reduced, and not so short that a call for each costs more.
        let lies_so = |slot: u16| {
            let size = self.given.views[slot as usize].dtype.size_bytes() as isize;
            reduced_dims == 1
                && reduced >= PLAIN_ROW
                && self.tasks.iter().all(|task| !task.arg)
                && space.stride(space.dims.len() - 1, slot as usize) == size
        };
        if short && !self.plain_load().is_some_and(lies_so) {
            // SAFETY: the views are those of `run` (this function's contract).
            return unsafe { self.short(space, output_dims, reduced) };
        }
        let output_dims = space.pad_at(0, output_dims, 3, false);
        let count = space.dims.len() - output_dims;
        space.pad_at(output_dims, count, 3, true);
        let units = Grid { space: &space, first: 0, count: output_dims, full: [1; 3] };
        let last = space.dims.len() - 1;
        let full = fit([0, 1, 2].map(|i| space.dims[last - 2 + i].size), self.code.tile);
        let inner = Grid { space: &space, first: output_dims, count: space.dims.len() - output_dims, full };
        let (unit_count, boxes) = (units.boxes(), inner.boxes());
        let parts = part_count(unit_count, boxes);
        let tasks = self.tasks.len();
        let plain = self.plain(&inner);
        if let (Some(slot), 1) = (plain, parts) {
            // SAFETY: units are disjoint, and the caller promised the rest.
            return self
                .split(unit_count, reduced.max(1), |range| unsafe { self.plain_rows(&units, &inner, slot, range) });
        }
        let mut partials = Partials::new(if parts > 1 { unit_count * parts * tasks } else { 0 });
        let shared = partials.share();
        let base: SmallVec<[isize; 8]> = smallvec![0; space.columns];
        self.split(unit_count * parts, (reduced / parts).max(1), |range| {
            if range.is_empty() {
                return;
            }
            // SAFETY: units are disjoint, and the caller promised the rest.
            unsafe {
                let mut tiles = Tiles::new(self.code, &inner, self.given);
                let mut totals: SmallVec<[(Wide, i64); 2]> = SmallVec::new();
                let mut place = units.place(range.start / parts, &base);
                for job in range.clone() {
                    let part = job % parts;
                    if part == 0 && job > range.start {
                        units.advance(&mut place);
                    }
                    let span = boxes * part / parts..boxes * (part + 1) / parts;
                    match plain {
                        Some(slot) => self.plain_row(&inner, slot, span, &place.offsets, &mut totals),
                        None => self.row(&inner, &mut tiles, span, &place.offsets, &mut totals),
                    }
                    for (t, (task, &(value, position))) in self.tasks.iter().zip(&totals).enumerate() {
                        if parts > 1 {
                            let (values, positions) = shared.get();
                            *values.add(job * tasks + t) = value;
                            *positions.add(job * tasks + t) = position;
                        } else {
                            task.emit(self.given, place.offsets[task.slot], 0, &mut [value], &mut [position]);
                        }
                    }
                }
            }
        });
        if parts > 1 {
            for unit in 0..unit_count {
                let place = units.place(unit, &base);
                for (t, task) in self.tasks.iter().enumerate() {
                    let at = |part: usize| (unit * parts + part) * tasks + t;
                    let (mut value, mut position) = (partials.values[at(0)], partials.positions[at(0)]);
                    for part in 1..parts {
                        task.combine(
                            &mut value,
                            &mut position,
                            partials.values[at(part)],
                            partials.positions[at(part)],
                        );
                    }
                    // SAFETY: the outputs are those of `run`, and these offsets lie in them.
                    unsafe { task.emit(self.given, place.offsets[task.slot], 0, &mut [value], &mut [position]) };
                }
            }
        }
    }

    /// The view that is reduced without computation or conversion, if each row is contiguous.
    fn plain(&self, inner: &Grid<'_>) -> Option<u16> {
        let slot = self.plain_load()?;
        let dtype = self.given.views[slot as usize].dtype;
        let last = inner.first + inner.count - 1;
        let one = inner.space.dims[inner.first..last].iter().all(|dim| dim.size == 1);
        let dense = inner.space.stride(last, slot as usize) == dtype.size_bytes() as isize;
        (one && dense).then_some(slot)
    }

    /// Reduces whole rows of a view that `plain` returned. Results are stored many at a time. Cost: for rows of 1000 elements,
    /// one by one they take as long as the sums.
    ///
    /// # Safety
    /// As `run`; the units `range` are nobody else's.
    unsafe fn plain_rows(&self, units: &Grid<'_>, inner: &Grid<'_>, slot: u16, range: Range<usize>) {
        let (space, along) = (units.space, units.count - 1);
        let size = inner.space.dims[inner.first + inner.count - 1].size;
        let (width, step) = (space.dims[along].size, space.stride(along, slot as usize));
        let base: SmallVec<[isize; 8]> = smallvec![0; space.columns];
        let (mut values, mut positions) = ([0; BATCH], [0; BATCH]);
        let mut at = range.start;
        while at < range.end {
            let m = BATCH.min(range.end - at).min(width - at % width);
            let place = units.place(at, &base);
            for task in self.tasks {
                for row in 0..m {
                    let mut total = (task.kernels.identity, 0);
                    // SAFETY: the row has `size` elements, one after the other; the outputs are those of the units.
                    unsafe {
                        let row = self.given.views[slot as usize]
                            .ptr
                            .offset(place.offsets[slot as usize] + row as isize * step);
                        self.total(task, slot, row, (0, size), inner.full[2], &mut total);
                    }
                    (values[row], positions[row]) = total;
                }
                let (offset, step) = (place.offsets[task.slot], space.stride(along, task.slot));
                // SAFETY: the outputs of these rows belong to this thread alone, and the steps between them are those of their views.
                unsafe { task.emit(self.given, offset, step, &mut values[..m], &mut positions[..m]) };
            }
            at += m;
        }
    }

    /// Combines the elements from the first to the second place of a row, `full` at a time where the order matters.
    ///
    /// # Safety
    /// These elements exist.
    unsafe fn total(
        &self,
        task: &Task,
        slot: u16,
        row: *const u8,
        (first, end): (usize, usize),
        full: usize,
        total: &mut (Wide, i64),
    ) {
        let size = self.given.views[slot as usize].dtype.size_bytes();
        let most = if task.in_any_order() && !task.arg { narrow::MOST } else { full };
        for (n, start) in (first..end).step_by(most.max(1)).enumerate() {
            guard::check_every(n, TILES);
            let count = most.min(end - start);
            // SAFETY: the elements exist (this function's contract).
            unsafe {
                let elements = row.add(start * size);
                match task.narrow {
                    Some(narrow) => total.0 = (task.kernels.combine)(total.0, (narrow.fold)(elements, count)),
                    None => task.take(elements, count, start as i64, total),
                }
            }
        }
    }

    /// As `row`, for a view that `plain` returned: the same elements are combined in the same order, without executing
    /// a program. Cost: for rows of 4096 elements, executing the program takes a fifth of the time.
    ///
    /// # Safety
    /// As `row`.
    unsafe fn plain_row(
        &self,
        inner: &Grid<'_>,
        slot: u16,
        span: Range<usize>,
        offsets: &[isize],
        totals: &mut SmallVec<[(Wide, i64); 2]>,
    ) {
        let view = &self.given.views[slot as usize];
        let (size, full) = (inner.space.dims[inner.first + inner.count - 1].size, inner.full[2]);
        let (first, end) = (span.start * full, (span.end * full).min(size));
        totals.clear();
        totals.extend(self.tasks.iter().map(|task| (task.kernels.identity, first as i64)));
        for (task, total) in self.tasks.iter().zip(totals.iter_mut()) {
            // SAFETY: the row has `size` elements, one after the other.
            unsafe {
                let row = view.ptr.offset(offsets[slot as usize]);
                self.total(task, slot, row, (first, end), full, total);
            }
        }
    }

    /// Reduces the boxes `span` of a row to one value for each task.
    ///
    /// # Safety
    /// As `run`; the offsets are the row's.
    unsafe fn row(
        &self,
        inner: &Grid<'_>,
        tiles: &mut Tiles<'_>,
        span: Range<usize>,
        offsets: &[isize],
        totals: &mut SmallVec<[(Wide, i64); 2]>,
    ) {
        totals.clear();
        totals.extend(self.tasks.iter().map(|task| (task.kernels.identity, 0)));
        if span.is_empty() {
            return;
        }
        let mut place = inner.place(span.start, offsets);
        let mut position = inner.elements_before(&place) as i64;
        let size = |slot: usize| self.given.views[slot].dtype.size_bytes();
        let direct = self.plain_load().map(usize::from).filter(|&slot| inner.is_dense(slot, size(slot)));
        for total in totals.iter_mut() {
            total.1 = position;
        }
        for n in span.clone() {
            guard::check_every(n, TILES);
            let count = place.counts.iter().product::<usize>();
            // SAFETY: the place is one of the grid of `run`, whose offsets lie in its views (this function's contract); the value's
            // register, or the view there, holds `count` elements.
            unsafe {
                if direct.is_none() {
                    tiles.run(&place);
                }
                for (task, total) in self.tasks.iter().zip(totals.iter_mut()) {
                    match (direct, task.narrow) {
                        (None, _) => task.take(tiles.value(task.value), count, position, total),
                        (Some(slot), narrow) => {
                            let elements = self.given.views[slot].ptr.offset(place.offsets[slot]);
                            match narrow {
                                Some(narrow) => {
                                    total.0 = (task.kernels.combine)(total.0, (narrow.fold)(elements, count))
                                }
                                None => task.take(elements, count, position, total),
                            }
                        }
                    }
                }
            }
            position += count as i64;
            if n + 1 < span.end {
                inner.advance(&mut place);
            }
        }
    }

    /// Reduces short rows of `reduced` elements, many in a tile; at most two reduced dims.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn short(&self, mut space: Space, output_dims: usize, reduced: usize) {
        let reduced_dims = space.dims.len() - output_dims;
        if reduced_dims == 0 {
            space.pad_at(output_dims, 0, 1, true);
        }
        space.pad_at(0, output_dims, 3 - (space.dims.len() - output_dims).min(2), false);
        let last = space.dims.len() - 1;
        let two = space.dims[last - 1].reduced;
        // A box has rows along the innermost output dim; and along the next one only if there is one reduced dim.
        let rows_dim = if two { last - 2 } else { last - 1 };
        let rows = (self.code.tile / reduced).clamp(1, space.dims[rows_dim].size.max(1));
        let c = space.dims[last].size;
        let full = if two { [rows, space.dims[last - 1].size, c] } else { [1, rows, c] };
        let grid = Grid { space: &space, first: 0, count: space.dims.len(), full };
        let base: SmallVec<[isize; 8]> = smallvec![0; space.columns];
        let boxes = grid.boxes();
        self.split(boxes, rows * reduced, |range| {
            if range.is_empty() {
                return;
            }
            // SAFETY: boxes are disjoint; the caller promised the rest.
            unsafe {
                let mut tiles = Tiles::new(self.code, &grid, self.given);
                let mut place = grid.place(range.start, &base);
                let (mut values, mut positions) = (vec![0; rows], vec![0; rows]);
                for n in range.clone() {
                    tiles.run(&place);
                    let m = if two { place.counts[0] } else { place.counts[1] };
                    for task in self.tasks {
                        let target = if task.arg { positions.as_mut_ptr() } else { std::ptr::null_mut() };
                        let value = tiles.value(task.value);
                        (task.kernels.rows[simd::level()])(value, m, reduced, values.as_mut_ptr(), target);
                        let step = space.stride(rows_dim, task.slot);
                        let offset = place.offsets[task.slot];
                        task.emit(self.given, offset, step, &mut values[..m], &mut positions[..m]);
                    }
                    if n + 1 < range.end {
                        grid.advance(&mut place);
                    }
                }
            }
        });
    }
}

impl Task {
    /// Combines `count` elements, the first of which is at `position` of the row, into a total.
    ///
    /// # Safety
    /// The elements exist.
    #[inline]
    unsafe fn take(&self, elements: *const u8, count: usize, position: i64, total: &mut (Wide, i64)) {
        // SAFETY: `count` elements exist at `elements` (this function's contract); the fold is that of the machine's
        // level.
        unsafe {
            let new = (self.kernels.fold[simd::level()])(elements, count);
            if !self.arg {
                total.0 = (self.kernels.combine)(total.0, new);
            } else if (self.kernels.beats)(total.0, new) {
                *total = (new, position + (self.kernels.find)(elements, count, new) as i64);
            }
        }
    }
}
