//! Reductions whose innermost dim is an output dim: tiles are combined elementwise.
//!
//! Several tiles of a wide row are processed before the next row: sequential reads are several times faster than
//! reading tile by tile down a column.

use super::{Partials, Plan, Task, Wide, part_count};
use crate::kernel::fused::host::{Grid, Place, Space, Tiles, fit};
use crate::kernel::guard;
use crate::kernel::host::simd;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Bound: tiles of one row that are processed together; their accumulators stay in the L2 cache.
const GROUP: usize = 8;
/// Tiles that are accumulated in the element type before the accumulators are added to f64 ones.
const FLUSH: usize = 16;
/// Rows that are added while accumulators are in registers, if a view is reduced without computation.
const ROWS: usize = 16;
/// The same where their order changes nothing.
const MANY_ROWS: usize = 256;
/// Minimal rows of a part in this case: a part costs as much as reading some dozens of rows.
const PART_ROWS: usize = 256;
/// Width from which on accumulators have one row; for narrower rows a tile of several rows is faster.
const WIDE: usize = 64;

/// The innermost output dim, cut into pieces of `c` elements; the last is shorter.
struct Cut {
    /// Space and full box of a piece of `c` elements, and of the last one.
    whole: (Space, [usize; 3]),
    tail: (Space, [usize; 3]),
    /// Index of the first dim of a piece: reduced dims, then the innermost output dim.
    first: usize,
    c: usize,
    pieces: usize,
}

impl Cut {
    /// `by_rows`: a box is one row, for any width.
    fn new(space: &Space, first: usize, tile: usize, by_rows: bool) -> Cut {
        let last = space.dims.len() - 1;
        let width = space.dims[last].size;
        let c = fit([1, 1, width], tile)[2];
        let pieces = width.div_ceil(c);
        let piece = |c: usize| {
            let mut piece = space.clone();
            piece.dims[last].size = c;
            let sizes = [0, 1, 2].map(|i| piece.dims[last - 2 + i].size);
            // Pieces of one row are processed together, so they need the same number of boxes.
            let full = if pieces > 1 || by_rows { [1, 1, c] } else { fit(sizes, tile) };
            (piece, full)
        };
        Cut { whole: piece(c), tail: piece(width - (pieces - 1) * c), first, c, pieces }
    }

    fn grid(&self, piece: usize) -> Grid<'_> {
        let (space, full) = if piece + 1 == self.pieces { &self.tail } else { &self.whole };
        Grid { space, first: self.first, count: space.dims.len() - self.first, full: *full }
    }

    /// Lanes of a full box of the longest piece.
    fn lanes(&self) -> usize {
        [&self.whole, &self.tail].map(|(_, full)| full.iter().product()).into_iter().max().unwrap_or(0)
    }

    fn width(&self, piece: usize) -> usize {
        let (space, _) = if piece + 1 == self.pieces { &self.tail } else { &self.whole };
        space.dims[space.dims.len() - 1].size
    }
}

/// Boxes between two calls of `guard::check`; each is processed for several pieces.
const LOOKS: usize = 16;

impl Plan<'_> {
    /// `space`: `output_dims` output dims, then reduced ones, then one output dim.
    ///
    /// # Safety
    /// As `run`.
    pub(super) unsafe fn columns(&self, mut space: Space, output_dims: usize) {
        let output_dims = space.pad_at(0, output_dims, 3, false);
        let count = space.dims.len() - output_dims - 1;
        space.pad_at(output_dims, count, 2, true);
        let last = space.dims.len() - 1;
        let plain = self.plain_rows_of(&space);
        let cut = Cut::new(&space, output_dims, self.code.tile, plain.is_some());
        let reduced: usize = space.dims[output_dims..last].iter().map(|dim| dim.size).product();
        let groups = cut.pieces.div_ceil(GROUP);
        let lanes_of_unit = cut.pieces.min(GROUP) * cut.c;
        let units = Grid { space: &space, first: 0, count: output_dims, full: [1; 3] };
        let unit_count = units.boxes() * groups;
        let boxes = cut.grid(0).boxes();
        let max = if plain.is_some() { boxes / PART_ROWS } else { boxes };
        let parts = part_count(unit_count, boxes * cut.pieces.min(GROUP)).min(max.max(1));
        let tasks = self.tasks.len();
        let lanes_of_piece = if boxes == 1 { cut.c } else { cut.lanes() };
        let mut partials = Partials::new(if parts > 1 { unit_count * parts * tasks * lanes_of_unit } else { 0 });
        let shared = partials.share();
        let base: SmallVec<[isize; 8]> = smallvec![0; space.columns];
        let pieces_of = |unit: usize| {
            let start = unit % groups * GROUP;
            start..(start + GROUP).min(cut.pieces)
        };
        let offsets_of = |unit: usize, piece: usize| {
            let mut offsets = units.place(unit / groups, &base).offsets;
            for (column, offset) in offsets.iter_mut().enumerate() {
                *offset += (piece * cut.c) as isize * space.stride(last, column);
            }
            offsets
        };
        self.split(unit_count * parts, (reduced * lanes_of_unit / parts).max(1), |range| {
            let mut lanes: Vec<Lanes> =
                (0..cut.pieces.min(GROUP)).map(|_| Lanes::new(self.tasks, lanes_of_piece)).collect();
            // SAFETY: units are disjoint; the caller promised the rest.
            unsafe {
                let mut tail = Tiles::new(self.code, &cut.grid(cut.pieces - 1), self.given);
                let mut whole = (cut.pieces > 1).then(|| Tiles::new(self.code, &cut.grid(0), self.given));
                for job in range {
                    let (unit, part) = (job / parts, job % parts);
                    let span = boxes * part / parts..boxes * (part + 1) / parts;
                    let pieces = pieces_of(unit);
                    let offsets = pieces.clone().map(|piece| offsets_of(unit, piece)).collect();
                    if boxes == 1 && plain.is_none() {
                        self.one_box(&cut, (whole.as_mut(), &mut tail), pieces.clone(), offsets, &mut lanes);
                    } else if let Some(slot) = plain {
                        self.rows_of(&cut, slot, span, pieces.clone(), offsets, &mut lanes);
                    } else {
                        self.column(&cut, (whole.as_mut(), &mut tail), span, pieces.clone(), offsets, &mut lanes);
                    }
                    for (k, piece) in pieces.enumerate() {
                        let width = cut.width(piece);
                        for (t, task) in self.tasks.iter().enumerate() {
                            let (values, positions) = lanes[k].result(t, width);
                            if parts > 1 {
                                let (all_values, all_positions) = shared.get();
                                let at = (job * tasks + t) * lanes_of_unit + k * cut.c;
                                std::ptr::copy_nonoverlapping(values.as_ptr(), all_values.add(at), width);
                                std::ptr::copy_nonoverlapping(positions.as_ptr(), all_positions.add(at), width);
                            } else {
                                let (offsets, step) = (offsets_of(unit, piece), space.stride(last, task.slot));
                                task.emit(self.given, offsets[task.slot], step, values, positions);
                            }
                        }
                    }
                }
            }
        });
        if parts == 1 {
            return;
        }
        for unit in 0..unit_count {
            for (t, task) in self.tasks.iter().enumerate() {
                let at = |part: usize| ((unit * parts + part) * tasks + t) * lanes_of_unit;
                let first = at(0);
                for part in 1..parts {
                    for l in 0..lanes_of_unit {
                        let (value, position) = (partials.values[at(part) + l], partials.positions[at(part) + l]);
                        let head = &mut partials.values[first + l];
                        task.combine(head, &mut partials.positions[first + l], value, position);
                    }
                }
                for (k, piece) in pieces_of(unit).enumerate() {
                    let lanes = first + k * cut.c..first + k * cut.c + cut.width(piece);
                    let (offsets, step) = (offsets_of(unit, piece), space.stride(last, task.slot));
                    let (values, positions) = (&mut partials.values[lanes.clone()], &mut partials.positions[lanes]);
                    // SAFETY: the outputs are those of `run`, and these offsets lie in them.
                    unsafe { task.emit(self.given, offsets[task.slot], step, values, positions) };
                }
            }
        }
    }

    /// The view that is reduced without computation or conversion, if its rows are contiguous.
    fn plain_rows_of(&self, space: &Space) -> Option<usize> {
        let slot = self.plain_load()? as usize;
        let dtype = self.given.views[slot].dtype;
        let dense = space.stride(space.dims.len() - 1, slot) == dtype.size_bytes() as isize;
        let wide = space.dims[space.dims.len() - 1].size >= WIDE;
        (dense && wide && self.tasks.iter().all(|task| !task.arg)).then_some(slot)
    }

    /// As `column`, directly from the memory of view `slot`: rows are added to accumulators in registers.
    ///
    /// # Safety
    /// As `column`; `plain_rows_of` gave the slot.
    unsafe fn rows_of(
        &self,
        cut: &Cut,
        slot: usize,
        span: Range<usize>,
        pieces: Range<usize>,
        offsets: SmallVec<[SmallVec<[isize; 8]>; GROUP]>,
        lanes: &mut [Lanes],
    ) {
        for (k, piece) in pieces.clone().enumerate() {
            lanes[k].reset(self.tasks, cut.width(piece));
        }
        let view = &self.given.views[slot];
        let most = if self.tasks.iter().all(Task::in_any_order) { MANY_ROWS } else { ROWS };
        let mut at = span.start;
        let mut runs = 0;
        while at < span.end {
            guard::check_every(runs, LOOKS);
            let mut rows = 0;
            for (k, piece) in pieces.clone().enumerate() {
                let grid = cut.grid(piece);
                let dim = grid.space.dims.len() - 2;
                let size = grid.space.dims[dim].size;
                let max = most.max(1024 / cut.c);
                rows = max.min(span.end - at).min(size - at % size);
                // SAFETY: the rows belong to the span; lanes have room for a piece.
                unsafe {
                    let from = view.ptr.offset(grid.place(at, &offsets[k]).offsets[slot]);
                    let step = grid.space.stride(dim, slot);
                    for (t, task) in self.tasks.iter().enumerate() {
                        let (narrow, wide, _) = lanes[k].pointers(t);
                        let join = match task.narrow {
                            Some(narrow) => narrow.join_rows,
                            None => task.kernels.join_rows[simd::level()],
                        };
                        join(narrow, from, step, rows, cut.width(piece));
                        if runs % 2 == 1 {
                            (task.kernels.flush[simd::level()])(narrow, wide, cut.width(piece));
                        }
                    }
                }
            }
            at += rows;
            runs += 1;
        }
        for (k, piece) in pieces.enumerate() {
            lanes[k].finish(self.tasks, cut.width(piece), cut.width(piece));
        }
    }

    /// As `column`, for reduced dims that are one box: its rows are added to one row of accumulators, since combining
    /// the accumulators of a whole box would cost more than it saves.
    ///
    /// # Safety
    /// As `column`.
    unsafe fn one_box<'t>(
        &self,
        cut: &Cut,
        (mut whole, tail): (Option<&mut Tiles<'t>>, &mut Tiles<'t>),
        pieces: Range<usize>,
        offsets: SmallVec<[SmallVec<[isize; 8]>; GROUP]>,
        lanes: &mut [Lanes],
    ) {
        for (k, piece) in pieces.enumerate() {
            let (grid, width) = (cut.grid(piece), cut.width(piece));
            let tiles = match &mut whole {
                Some(whole) if piece + 1 != cut.pieces => whole,
                _ => &mut *tail,
            };
            lanes[k].reset(self.tasks, width);
            lanes[k].start(0, width);
            let place = grid.place(0, &offsets[k]);
            // SAFETY: the place is one of the grid of `run`; lanes have room for a row, and the tile holds all rows.
            unsafe {
                tiles.run(&place);
                let rows = place.counts.iter().product::<usize>() / width;
                lanes[k].add_rows(self.tasks, &*tiles, rows, width);
            }
        }
    }

    /// Combines the boxes `span` of the reduced dims, for some pieces of one row, elementwise into `lanes`.
    ///
    /// # Safety
    /// As `run`; `offsets` are the pieces'.
    unsafe fn column<'t>(
        &self,
        cut: &Cut,
        (mut whole, tail): (Option<&mut Tiles<'t>>, &mut Tiles<'t>),
        span: Range<usize>,
        pieces: Range<usize>,
        offsets: SmallVec<[SmallVec<[isize; 8]>; GROUP]>,
        lanes: &mut [Lanes],
    ) {
        let mut boxes: SmallVec<[Place; GROUP]> = SmallVec::new();
        let mut position = 0;
        for (k, piece) in pieces.clone().enumerate() {
            let grid = cut.grid(piece);
            lanes[k].reset(self.tasks, grid.full.iter().product());
            if !span.is_empty() {
                boxes.push(grid.place(span.start, &offsets[k]));
                position = (grid.elements_before(&boxes[k]) / cut.width(piece)) as i64;
                lanes[k].start(position, cut.width(piece));
            }
        }
        for (done, n) in span.clone().enumerate() {
            guard::check_every(done, LOOKS);
            let mut rows = 0;
            for (k, piece) in pieces.clone().enumerate() {
                let grid = cut.grid(piece);
                let tiles = match &mut whole {
                    Some(whole) if piece + 1 != cut.pieces => whole,
                    _ => &mut *tail,
                };
                // SAFETY: the places are those of `run`, and `offsets` lie in its views (this function's contract);
                // lanes have room for a full box.
                unsafe {
                    tiles.run(&boxes[k]);
                    let count = boxes[k].counts.iter().product::<usize>();
                    rows = count / cut.width(piece);
                    let full = grid.full.iter().product();
                    lanes[k].add(self.tasks, tiles, (count, rows, full), position, done % FLUSH == FLUSH - 1);
                }
                if n + 1 < span.end {
                    grid.advance(&mut boxes[k]);
                }
            }
            position += rows as i64;
        }
        for (k, piece) in pieces.enumerate() {
            lanes[k].finish(self.tasks, cut.grid(piece).full.iter().product(), cut.width(piece));
        }
    }
}

/// Accumulators of one piece for each task: in the element type, in the wide type, and positions.
struct Lanes {
    /// Number of accumulators of a task.
    each: usize,
    narrow: Vec<u64>,
    wide: Vec<Wide>,
    positions: Vec<i64>,
}

impl Lanes {
    fn new(tasks: &[Task], each: usize) -> Lanes {
        let n = tasks.len() * each;
        Lanes { each, narrow: vec![0; n], wide: vec![0; n], positions: vec![0; n] }
    }

    fn reset(&mut self, tasks: &[Task], n: usize) {
        for (t, task) in tasks.iter().enumerate() {
            let at = t * self.each;
            self.wide[at..at + n].fill(task.kernels.identity);
            let (narrow, _, _) = self.pointers(t);
            // SAFETY: `n` is at most a tile, for which lanes have room.
            unsafe { (task.kernels.clear)(narrow, n) };
        }
    }

    fn start(&mut self, position: i64, width: usize) {
        for task in self.positions.chunks_mut(self.each.max(1)) {
            task[..width].fill(position);
        }
    }

    fn pointers(&mut self, t: usize) -> (*mut u8, *mut Wide, *mut i64) {
        let at = t * self.each;
        (self.narrow[at..].as_mut_ptr().cast(), self.wide[at..].as_mut_ptr(), self.positions[at..].as_mut_ptr())
    }

    /// Combines a box of (elements, rows, elements of a full box) into the accumulators.
    ///
    /// # Safety
    /// The tiles have just run on that box.
    unsafe fn add(
        &mut self,
        tasks: &[Task],
        tiles: &Tiles<'_>,
        (count, rows, full): (usize, usize, usize),
        position: i64,
        flush: bool,
    ) {
        for (t, task) in tasks.iter().enumerate() {
            let value = tiles.value(task.value);
            let (narrow, wide, positions) = self.pointers(t);
            // SAFETY: lanes have room for a full box.
            unsafe {
                if task.arg {
                    let join = task.kernels.join_at[simd::level()];
                    join(narrow, positions, value, rows, count / rows, position);
                } else {
                    (task.kernels.join[simd::level()])(narrow, value, count);
                    if flush {
                        (task.kernels.flush[simd::level()])(narrow, wide, full);
                    }
                }
            }
        }
    }

    /// Combines all rows of a tile, of `width` elements, into `width` accumulators.
    ///
    /// # Safety
    /// The tiles have just run on that box.
    unsafe fn add_rows(&mut self, tasks: &[Task], tiles: &Tiles<'_>, rows: usize, width: usize) {
        for (t, task) in tasks.iter().enumerate() {
            let value = tiles.value(task.value);
            let (narrow, wide, positions) = self.pointers(t);
            // SAFETY: lanes have room for a row; the value's register holds `rows` of them.
            unsafe {
                if task.arg {
                    let join = task.kernels.join_at[simd::level()];
                    join(narrow, positions, value, rows, width, 0);
                    (task.kernels.flush[simd::level()])(narrow, wide, width);
                    continue;
                }
                let step = (width * tiles.class(task.value).size_bytes()) as isize;
                let join = task.kernels.join_rows[simd::level()];
                for first in (0..rows).step_by(ROWS) {
                    join(narrow, value.offset(first as isize * step), step, ROWS.min(rows - first), width);
                    (task.kernels.flush[simd::level()])(narrow, wide, width);
                }
            }
        }
    }

    /// Combines the rows of accumulators, `full` in all, into the first row of `width`.
    fn finish(&mut self, tasks: &[Task], full: usize, width: usize) {
        for (t, task) in tasks.iter().enumerate() {
            let filled = if task.arg { width } else { full };
            let (narrow, wide, _) = self.pointers(t);
            // SAFETY: lanes have room for a full box.
            unsafe { (task.kernels.flush[simd::level()])(narrow, wide, filled) };
            let wide = &mut self.wide[t * self.each..][..filled];
            let (first, rest) = wide.split_at_mut(width);
            for row in rest.chunks(width) {
                for (total, &value) in first.iter_mut().zip(row) {
                    *total = (task.kernels.combine)(*total, value);
                }
            }
        }
    }

    fn result(&mut self, t: usize, width: usize) -> (&mut [Wide], &mut [i64]) {
        let at = t * self.each;
        (&mut self.wide[at..at + width], &mut self.positions[at..at + width])
    }
}
