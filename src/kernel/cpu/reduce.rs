//! Reductions of tile programs: a map of any length, combined over some dims.
//!
//! Three shapes of work. `Rows`: the dim nearest in memory is reduced, tiles become single values. `Short`:
//! the same with rows so short that a tile holds many. `Columns`: the nearest dim is kept, tiles are combined
//! lane by lane. Long reductions are cut into parts by shape alone and combined in order, so no result
//! depends on the number of threads. Sums of f32 are lanes within a tile and f64 between tiles.

use super::fused::{Code, Given, Grid, Op, Space, Tiles, cast, store};
use super::simd::{self, levels};
use crate::kernel::abi::Threads;
use crate::kernel::program::{Class, ReduceKind};
use smallvec::{SmallVec, smallvec};

/// Bound: elements worth handing to another thread.
const GRAIN: usize = 32 << 10;
/// Tiles of a part, at least.
const PART_TILES: usize = 64;
/// Parts that a reduction to few values is cut into, at most in all.
const PARTS: usize = 64;
/// Tiles that are added lane by lane in the element type before the lanes are added to f64 ones.
const FLUSH: usize = 16;

/// Accumulated values travel as 64 bits: f64 for floats, i64 for integers and bool.
type Wide = u64;

/// The arithmetic of one kind over one class.
#[derive(Clone, Copy)]
struct Kernels {
    /// All of `n` elements to one.
    fold: [unsafe fn(*const u8, usize) -> Wide; 3],
    /// Row after row of `c` elements: (source, rows, c, out, positions).
    rows: [unsafe fn(*const u8, usize, usize, *mut Wide, *mut i64); 3],
    /// Lane by lane: (accumulators, source, n).
    join: [unsafe fn(*mut u8, *const u8, usize); 3],
    /// Lane by lane with positions: (accumulators, positions, source, rows, c, position of the first row).
    join_at: [unsafe fn(*mut u8, *mut i64, *const u8, usize, usize, i64); 3],
    /// Sets lanes to the identity.
    clear: unsafe fn(*mut u8, usize),
    /// Adds lanes to wide ones and resets them.
    flush: unsafe fn(*mut u8, *mut Wide, usize),
    /// First element equal to a wide value (NaN equals NaN).
    find: unsafe fn(*const u8, usize, Wide) -> usize,
    /// Combines two wide values.
    combine: fn(Wide, Wide) -> Wide,
    /// Whether the second beats the first, for `ArgMin` and `ArgMax`.
    beats: fn(Wide, Wide) -> bool,
    identity: Wide,
    float: bool,
}

/// `kernels!(element, wide, identity, |x, y| combination, |old, new| whether new beats old)`.
macro_rules! kernels {
    ($T:ident, $W:ident, $identity:expr, |$x:ident, $y:ident| $join:expr, |$old:ident, $new:ident| $beats:expr) => {{
        const IDENTITY: $T = $identity;
        const LANES: usize = 256 / size_of::<$T>();
        #[inline(always)]
        fn join($x: $T, $y: $T) -> $T {
            $join
        }
        #[inline(always)]
        fn join_wide($x: $W, $y: $W) -> $W {
            $join
        }
        #[inline(always)]
        fn beats($old: $T, $new: $T) -> bool {
            $beats
        }
        #[inline(always)]
        fn bits(x: $W) -> Wide {
            Wide::from_ne_bytes(x.to_ne_bytes())
        }
        #[inline(always)]
        fn value(x: Wide) -> $W {
            <$W>::from_ne_bytes(x.to_ne_bytes())
        }
        #[allow(clippy::eq_op)]
        unsafe fn find(source: *const u8, n: usize, what: Wide) -> usize {
            // SAFETY: the caller gives `n` elements.
            let elements = unsafe { std::slice::from_raw_parts(source.cast::<$T>(), n) };
            let what = value(what);
            let same = |x: $T| x as $W == what || (x != x && what != what);
            elements.iter().position(|&x| same(x)).unwrap_or(0)
        }
        unsafe fn clear(lanes: *mut u8, n: usize) {
            // SAFETY: the caller gives `n` lanes.
            unsafe { std::slice::from_raw_parts_mut(lanes.cast::<$T>(), n) }.fill(IDENTITY);
        }
        unsafe fn flush(lanes: *mut u8, wide: *mut Wide, n: usize) {
            for i in 0..n {
                // SAFETY: the caller gives `n` lanes of each.
                unsafe {
                    let lane = &mut *lanes.cast::<$T>().add(i);
                    *wide.add(i) = bits(join_wide(value(*wide.add(i)), *lane as $W));
                    *lane = IDENTITY;
                }
            }
        }
        Kernels {
            fold: levels!(<S> fn(source: *const u8, n: usize) -> Wide {
                let source = source.cast::<$T>();
                let mut lanes = [IDENTITY; LANES];
                for i in 0..n / LANES {
                    let row = source.add(i * LANES);
                    for l in 0..LANES {
                        lanes[l] = join(lanes[l], *row.add(l));
                    }
                }
                let done = n / LANES * LANES;
                for l in 0..n - done {
                    lanes[l] = join(lanes[l], *source.add(done + l));
                }
                let mut width = LANES / 2;
                while width > 0 {
                    for l in 0..width {
                        lanes[l] = join(lanes[l], lanes[l + width]);
                    }
                    width /= 2;
                }
                bits(lanes[0] as $W)
            }),
            rows: levels!(<S> fn(source: *const u8, rows: usize, c: usize, out: *mut Wide, positions: *mut i64) {
                for i in 0..rows {
                    let row = source.cast::<$T>().add(i * c);
                    if !positions.is_null() {
                        let (mut best, mut at) = (*row, 0);
                        for l in 1..c {
                            if beats(best, *row.add(l)) {
                                (best, at) = (*row.add(l), l);
                            }
                        }
                        *positions.add(i) = at as i64;
                        continue;
                    }
                    let mut lanes = [IDENTITY; 8];
                    for k in 0..c / 8 {
                        for l in 0..8 {
                            lanes[l] = join(lanes[l], *row.add(k * 8 + l));
                        }
                    }
                    for l in 0..c % 8 {
                        lanes[l] = join(lanes[l], *row.add(c / 8 * 8 + l));
                    }
                    let mut width = 4;
                    while width > 0 {
                        for l in 0..width {
                            lanes[l] = join(lanes[l], lanes[l + width]);
                        }
                        width /= 2;
                    }
                    *out.add(i) = bits(lanes[0] as $W);
                }
            }),
            join: levels!(<S> fn(lanes: *mut u8, source: *const u8, n: usize) {
                let (lanes, source) = (lanes.cast::<$T>(), source.cast::<$T>());
                for i in 0..n {
                    *lanes.add(i) = join(*lanes.add(i), *source.add(i));
                }
            }),
            join_at: levels!(<S> fn(
                lanes: *mut u8, positions: *mut i64, source: *const u8, rows: usize, c: usize, first: i64
            ) {
                let (lanes, source) = (lanes.cast::<$T>(), source.cast::<$T>());
                for j in 0..rows {
                    for l in 0..c {
                        let new = *source.add(j * c + l);
                        let better = beats(*lanes.add(l), new);
                        *lanes.add(l) = if better { new } else { *lanes.add(l) };
                        *positions.add(l) = if better { first + j as i64 } else { *positions.add(l) };
                    }
                }
            }),
            clear,
            flush,
            find,
            combine: |x, y| bits(join_wide(value(x), value(y))),
            beats: |old, new| beats(value(old) as $T, value(new) as $T),
            identity: bits_of!($W, IDENTITY),
            float: bits_of!(float $W),
        }
    }};
}

macro_rules! bits_of {
    (f64, $x:expr) => {
        ($x as f64).to_bits()
    };
    (i64, $x:expr) => {
        $x as i64 as u64
    };
    (float f64) => {
        true
    };
    (float i64) => {
        false
    };
}

/// Minimum and maximum where NaN wins, and their arg-forms.
macro_rules! extremes {
    ($T:ident, $W:ident, $kind:expr) => {
        match $kind {
            ReduceKind::Min | ReduceKind::ArgMin => {
                const K: Kernels =
                    kernels!($T, $W, $T::INFINITY, |x, y| if y < x || y.is_nan() { y } else { x }, |old, new| new
                        < old
                        || (new.is_nan() && !old.is_nan()));
                K
            }
            _ => {
                const K: Kernels =
                    kernels!($T, $W, $T::NEG_INFINITY, |x, y| if y > x || y.is_nan() { y } else { x }, |old, new| new
                        > old
                        || (new.is_nan() && !old.is_nan()));
                K
            }
        }
    };
}

fn kernels(kind: ReduceKind, class: Class) -> Kernels {
    use ReduceKind::*;
    match (class, kind) {
        (Class::F32, Sum) => {
            const K: Kernels = kernels!(f32, f64, 0.0, |x, y| x + y, |_old, _new| false);
            K
        }
        (Class::F32, Prod) => {
            const K: Kernels = kernels!(f32, f64, 1.0, |x, y| x * y, |_old, _new| false);
            K
        }
        (Class::F32, _) => extremes!(f32, f64, kind),
        (Class::F64, Sum) => {
            const K: Kernels = kernels!(f64, f64, 0.0, |x, y| x + y, |_old, _new| false);
            K
        }
        (Class::F64, Prod) => {
            const K: Kernels = kernels!(f64, f64, 1.0, |x, y| x * y, |_old, _new| false);
            K
        }
        (Class::F64, _) => extremes!(f64, f64, kind),
        (Class::I64, Sum) => {
            const K: Kernels = kernels!(i64, i64, 0, |x, y| x.wrapping_add(y), |_old, _new| false);
            K
        }
        (Class::I64, Prod) => {
            const K: Kernels = kernels!(i64, i64, 1, |x, y| x.wrapping_mul(y), |_old, _new| false);
            K
        }
        (Class::I64, Min | ArgMin | All) => {
            const K: Kernels = kernels!(i64, i64, i64::MAX, |x, y| if y < x { y } else { x }, |old, new| new < old);
            K
        }
        (Class::I64, _) => {
            const K: Kernels = kernels!(i64, i64, i64::MIN, |x, y| if y > x { y } else { x }, |old, new| new > old);
            K
        }
        (Class::Bool, Min | ArgMin | All | Prod) => {
            const K: Kernels = kernels!(u8, i64, 1, |x, y| x & y, |old, new| new < old);
            K
        }
        (Class::Bool, _) => {
            const K: Kernels = kernels!(u8, i64, 0, |x, y| x | y, |old, new| new > old);
            K
        }
    }
}

/// One `Reduce` of the program.
struct Task {
    kernels: Kernels,
    value: u16,
    slot: usize,
    arg: bool,
}

impl Task {
    /// Writes `m` results, the view's bytes `step` apart from `offset` on.
    ///
    /// # Safety
    /// The view is valid there.
    unsafe fn emit(&self, given: Given<'_>, offset: isize, step: isize, values: &mut [Wide], positions: &mut [i64]) {
        let view = &given.views[self.slot];
        let (class, m) = if self.arg { (Class::I64, positions.len()) } else { (self.class(), values.len()) };
        let source: *mut u8 = if self.arg { positions.as_mut_ptr().cast() } else { values.as_mut_ptr().cast() };
        // SAFETY: a cast never makes elements longer than 8 bytes, so it can work in place; the rest is the
        // caller's promise.
        unsafe {
            if let Some(tiles) = cast(class, view.dtype) {
                tiles[simd::level()](&[source.cast_const(); 4], source, m);
            }
            store(view.dtype)(view.ptr.offset(offset), [0, 0, step], [1, 1, m], source);
        }
    }

    fn class(&self) -> Class {
        if self.kernels.float { Class::F64 } else { Class::I64 }
    }
}

/// Runs a program with reductions.
///
/// # Safety
/// As `fused::run`.
pub(super) unsafe fn run(code: &Code, mut space: Space, given: Given<'_>, threads: &Threads) {
    let tasks: SmallVec<[Task; 2]> = code
        .ops
        .iter()
        .filter_map(|op| match *op {
            Op::Reduce { kind, arg, slot } => Some(Task {
                kernels: kernels(kind, code.values[arg as usize].class),
                value: arg,
                slot: slot as usize,
                arg: matches!(kind, ReduceKind::ArgMin | ReduceKind::ArgMax),
            }),
            _ => None,
        })
        .collect();
    let ordered = tasks.iter().any(|task| task.arg);
    let loads: SmallVec<[u16; 8]> =
        code.ops.iter().filter_map(|op| if let Op::Load { slot, .. } = *op { Some(slot) } else { None }).collect();
    space.sort(&loads, |a, b| ordered && a.reduced && b.reduced);
    let columns = space.dims.last().is_some_and(|dim| !dim.reduced) && space.dims.iter().any(|dim| dim.reduced);
    let kept = space.partition(columns);
    let plan = Plan { code, given, tasks: &tasks, threads };
    // SAFETY: the caller's promise.
    unsafe {
        if columns {
            plan.columns(space, kept);
        } else {
            plan.rows(space, kept);
        }
    }
}

struct Plan<'a> {
    code: &'a Code,
    given: Given<'a>,
    tasks: &'a [Task],
    threads: &'a Threads,
}

/// Results of units that are parts of a reduction, written by several workers.
struct Partials {
    values: Vec<Wide>,
    positions: Vec<i64>,
}

/// A pointer into `Partials`: workers write disjoint entries.
#[derive(Clone, Copy)]
struct Shared(*mut Wide, *mut i64);
// SAFETY: each unit writes only its own entries, and they are read after all have finished.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl Shared {
    fn get(&self) -> (*mut Wide, *mut i64) {
        (self.0, self.1)
    }
}

fn part_count(units: usize, boxes: usize) -> usize {
    (boxes / PART_TILES).clamp(1, PARTS.div_ceil(units.max(1)))
}

impl Plan<'_> {
    fn split(&self, units: usize, unit_elements: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
        if units * unit_elements <= GRAIN {
            work(0..units);
        } else {
            self.threads.split(units, (GRAIN / unit_elements.max(1)).max(1), work);
        }
    }

    /// `space`: `kept` dims, then reduced ones.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn rows(&self, mut space: Space, kept: usize) {
        let reduced_dims = space.dims.len() - kept;
        let reduced: usize = space.dims[kept..].iter().map(|dim| dim.size).product();
        let short = kept > 0 && reduced_dims <= 2 && reduced > 0 && reduced <= self.code.tile / 2;
        if short {
            // SAFETY: the caller's promise.
            return unsafe { self.short(space, kept, reduced) };
        }
        let kept = space.pad_at(0, kept, 3, false);
        let count = space.dims.len() - kept;
        space.pad_at(kept, count, 3, true);
        let units = Grid { space: &space, first: 0, count: kept, full: [1; 3] };
        let last = space.dims.len() - 1;
        let full = super::fused::fit([0, 1, 2].map(|i| space.dims[last - 2 + i].size), self.code.tile);
        let inner = Grid { space: &space, first: kept, count: space.dims.len() - kept, full };
        let (unit_count, boxes) = (units.boxes(), inner.boxes());
        let parts = part_count(unit_count, boxes);
        let tasks = self.tasks.len();
        let mut partials = Partials::new(if parts > 1 { unit_count * parts * tasks } else { 0 });
        let shared = partials.share();
        let base: SmallVec<[isize; 8]> = smallvec![0; space.columns];
        self.split(unit_count * parts, (reduced / parts).max(1), |range| {
            // SAFETY: units are disjoint, and the caller promised the rest.
            unsafe {
                let mut tiles = Tiles::new(self.code, &inner, self.given);
                let mut totals: SmallVec<[(Wide, i64); 2]> = SmallVec::new();
                for job in range {
                    let (unit, part) = (job / parts, job % parts);
                    let place = units.place(unit, &base);
                    let span = boxes * part / parts..boxes * (part + 1) / parts;
                    self.row(&inner, &mut tiles, span, &place.offsets, &mut totals);
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
                    // SAFETY: the caller's promise.
                    unsafe { task.emit(self.given, place.offsets[task.slot], 0, &mut [value], &mut [position]) };
                }
            }
        }
    }

    /// Boxes `span` of one row's reduced dims, to one value per task.
    ///
    /// # Safety
    /// As `run`; the offsets are the row's.
    unsafe fn row(
        &self,
        inner: &Grid<'_>,
        tiles: &mut Tiles<'_>,
        span: std::ops::Range<usize>,
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
        for total in totals.iter_mut() {
            total.1 = position;
        }
        for n in span.clone() {
            // SAFETY: the caller's promise.
            unsafe { tiles.run(&place) };
            let count = place.counts.iter().product::<usize>();
            for (task, total) in self.tasks.iter().zip(totals.iter_mut()) {
                let value = tiles.value(task.value);
                // SAFETY: the value's register holds `count` elements.
                unsafe {
                    let new = (task.kernels.fold[simd::level()])(value, count);
                    if !task.arg {
                        total.0 = (task.kernels.combine)(total.0, new);
                    } else if (task.kernels.beats)(total.0, new) {
                        *total = (new, position + (task.kernels.find)(value, count, new) as i64);
                    }
                }
            }
            position += count as i64;
            if n + 1 < span.end {
                inner.advance(&mut place);
            }
        }
    }

    /// Many short rows of `reduced` elements per tile; at most two reduced dims.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn short(&self, mut space: Space, kept: usize, reduced: usize) {
        let reduced_dims = space.dims.len() - kept;
        if reduced_dims == 0 {
            space.pad_at(kept, 0, 1, true);
        }
        space.pad_at(0, kept, 3 - (space.dims.len() - kept).min(2), false);
        let last = space.dims.len() - 1;
        let two = space.dims[last - 1].reduced;
        // Box: rows along the innermost kept dim; a kept dim beyond it only when there is one reduced dim.
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
                let (mut values, mut positions) =
                    ([0; crate::kernel::program::TILE], [0; crate::kernel::program::TILE]);
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

    /// `space`: `kept` dims, then reduced ones, then one kept dim.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn columns(&self, mut space: Space, kept: usize) {
        let kept = space.pad_at(0, kept, 3, false);
        let count = space.dims.len() - kept - 1;
        space.pad_at(kept, count, 2, true);
        let last = space.dims.len() - 1;
        let width = space.dims[last].size;
        let c = if width > self.code.tile { super::fused::fit([1, 1, width], self.code.tile)[2] } else { width };
        let pieces = width.div_ceil(c);
        let reduced: usize = space.dims[kept..last].iter().map(|dim| dim.size).product();
        // Spaces of a full piece and of the last one.
        let piece_space = |c: usize| {
            let mut piece = space.clone();
            piece.dims[last].size = c;
            let full = super::fused::fit([0, 1, 2].map(|i| piece.dims[last - 2 + i].size), self.code.tile);
            (piece, full)
        };
        let (whole, tail) = (piece_space(c), piece_space(width - (pieces - 1) * c));
        let grid = |piece: usize| {
            let (space, full) = if piece + 1 == pieces { &tail } else { &whole };
            // A box never mixes outer kept dims into its rows.
            Grid { space, first: kept, count: space.dims.len() - kept, full: *full }
        };
        let units = Grid { space: &space, first: 0, count: kept, full: [1; 3] };
        let unit_count = units.boxes() * pieces;
        let parts = part_count(unit_count, grid(0).boxes());
        let tasks = self.tasks.len();
        let mut partials = Partials::new(if parts > 1 { unit_count * parts * tasks * c } else { 0 });
        let shared = partials.share();
        let base: SmallVec<[isize; 8]> = smallvec![0; space.columns];
        let place_of = |unit: usize| {
            let mut offsets = units.place(unit / pieces, &base).offsets;
            for (column, offset) in offsets.iter_mut().enumerate() {
                *offset += ((unit % pieces) * c) as isize * space.stride(last, column);
            }
            offsets
        };
        self.split(unit_count * parts, (reduced * c / parts).max(1), |range| {
            let mut lanes = Lanes::new(self.tasks, self.code.tile);
            let mut job = range.start;
            while job < range.end {
                // Jobs with the same piece size share their registers.
                let piece_kind = (job / parts) % pieces + 1 == pieces;
                let grid = grid((job / parts) % pieces);
                let width = grid.space.dims[last].size;
                // SAFETY: units are disjoint; the caller promised the rest.
                unsafe {
                    let mut tiles = Tiles::new(self.code, &grid, self.given);
                    while job < range.end && ((job / parts) % pieces + 1 == pieces) == piece_kind {
                        let (unit, part) = (job / parts, job % parts);
                        let offsets = place_of(unit);
                        let boxes = grid.boxes();
                        let span = boxes * part / parts..boxes * (part + 1) / parts;
                        self.column(&grid, &mut tiles, span, &offsets, &mut lanes);
                        for (t, task) in self.tasks.iter().enumerate() {
                            let (values, positions) = lanes.result(t, width);
                            if parts > 1 {
                                let (all_values, all_positions) = shared.get();
                                let at = (job * tasks + t) * c;
                                std::ptr::copy_nonoverlapping(values.as_ptr(), all_values.add(at), width);
                                std::ptr::copy_nonoverlapping(positions.as_ptr(), all_positions.add(at), width);
                            } else {
                                let step = space.stride(last, task.slot);
                                task.emit(self.given, offsets[task.slot], step, values, positions);
                            }
                        }
                        job += 1;
                    }
                }
            }
        });
        if parts == 1 {
            return;
        }
        for unit in 0..unit_count {
            let offsets = place_of(unit);
            let width = grid(unit % pieces).space.dims[last].size;
            for (t, task) in self.tasks.iter().enumerate() {
                let at = |part: usize| ((unit * parts + part) * tasks + t) * c;
                let first = at(0);
                for part in 1..parts {
                    for l in 0..width {
                        let (value, position) = (partials.values[at(part) + l], partials.positions[at(part) + l]);
                        let (head, head_position) =
                            (&mut partials.values[first + l], &mut partials.positions[first + l]);
                        task.combine(head, head_position, value, position);
                    }
                }
                let (values, positions) =
                    (&mut partials.values[first..first + width], &mut partials.positions[first..first + width]);
                let step = space.stride(last, task.slot);
                // SAFETY: the caller's promise.
                unsafe { task.emit(self.given, offsets[task.slot], step, values, positions) };
            }
        }
    }

    /// Boxes `span` of one unit's reduced dims, lane by lane into `lanes`.
    ///
    /// # Safety
    /// As `run`; the offsets are the unit's.
    unsafe fn column(
        &self,
        grid: &Grid<'_>,
        tiles: &mut Tiles<'_>,
        span: std::ops::Range<usize>,
        offsets: &[isize],
        lanes: &mut Lanes,
    ) {
        let full: usize = grid.full.iter().product();
        let width = grid.full[2];
        lanes.reset(self.tasks, full);
        if span.is_empty() {
            return;
        }
        let mut place = grid.place(span.start, offsets);
        let mut position = (grid.elements_before(&place) / width) as i64;
        lanes.start(position, width);
        for (done, n) in span.clone().enumerate() {
            // SAFETY: the caller's promise; lanes have room for a full box.
            unsafe {
                tiles.run(&place);
                let count = place.counts.iter().product::<usize>();
                for (t, task) in self.tasks.iter().enumerate() {
                    let value = tiles.value(task.value);
                    let (narrow, wide, positions) = lanes.pointers(t);
                    if task.arg {
                        let rows = count / width;
                        (task.kernels.join_at[simd::level()])(narrow, positions, value, rows, width, position);
                    } else {
                        (task.kernels.join[simd::level()])(narrow, value, count);
                        if done % FLUSH == FLUSH - 1 {
                            (task.kernels.flush)(narrow, wide, full);
                        }
                    }
                }
                position += (count / width) as i64;
            }
            if n + 1 < span.end {
                grid.advance(&mut place);
            }
        }
        for (t, task) in self.tasks.iter().enumerate() {
            let (narrow, wide, _) = lanes.pointers(t);
            let filled = if task.arg { width } else { full };
            // SAFETY: lanes have room for a full box.
            unsafe { (task.kernels.flush)(narrow, wide, filled) };
            lanes.fold(t, task, filled, width);
        }
    }
}

impl Task {
    /// Combines a later part into an earlier one.
    fn combine(&self, value: &mut Wide, position: &mut i64, later: Wide, later_position: i64) {
        if !self.arg {
            *value = (self.kernels.combine)(*value, later);
        } else if (self.kernels.beats)(*value, later) {
            (*value, *position) = (later, later_position);
        }
    }
}

impl Partials {
    fn new(count: usize) -> Partials {
        Partials { values: vec![0; count], positions: vec![0; count] }
    }

    fn share(&mut self) -> Shared {
        Shared(self.values.as_mut_ptr(), self.positions.as_mut_ptr())
    }
}

/// Accumulators of a column unit, per task: lanes in the element type, wide lanes, positions.
struct Lanes {
    tile: usize,
    narrow: Vec<u64>,
    wide: Vec<Wide>,
    positions: Vec<i64>,
}

impl Lanes {
    fn new(tasks: &[Task], tile: usize) -> Lanes {
        let n = tasks.len() * tile;
        Lanes { tile, narrow: vec![0; n], wide: vec![0; n], positions: vec![0; n] }
    }

    fn reset(&mut self, tasks: &[Task], n: usize) {
        for (t, task) in tasks.iter().enumerate() {
            let at = t * self.tile;
            self.wide[at..at + n].fill(task.kernels.identity);
            let (narrow, _, _) = self.pointers(t);
            // SAFETY: `n` is at most a tile.
            unsafe { (task.kernels.clear)(narrow, n) };
        }
    }

    fn start(&mut self, position: i64, width: usize) {
        for task in self.positions.chunks_mut(self.tile) {
            task[..width].fill(position);
        }
    }

    fn pointers(&mut self, t: usize) -> (*mut u8, *mut Wide, *mut i64) {
        let at = t * self.tile;
        (self.narrow[at..].as_mut_ptr().cast(), self.wide[at..].as_mut_ptr(), self.positions[at..].as_mut_ptr())
    }

    /// Combines the rows of a box into its first.
    fn fold(&mut self, t: usize, task: &Task, filled: usize, width: usize) {
        let wide = &mut self.wide[t * self.tile..][..filled];
        let (first, rest) = wide.split_at_mut(width);
        for row in rest.chunks(width) {
            for (total, &value) in first.iter_mut().zip(row) {
                *total = (task.kernels.combine)(*total, value);
            }
        }
    }

    fn result(&mut self, t: usize, width: usize) -> (&mut [Wide], &mut [i64]) {
        let at = t * self.tile;
        (&mut self.wide[at..at + width], &mut self.positions[at..at + width])
    }
}

#[cfg(test)]
mod tests {
    use crate::base::dtype::DType;
    use crate::base::layout::{Shape, Strides, contiguous_strides};
    use crate::kernel::abi::{RawView, Threads};
    use crate::kernel::cpu::elementwise as f;
    use crate::kernel::cpu::fused;
    use crate::kernel::program::{Class, Instr, Program, ReduceKind};

    fn view<T>(data: &mut [T], dtype: DType, shape: &[usize], strides: &[isize]) -> RawView {
        let ptr = data.as_mut_ptr().cast();
        RawView { ptr, dtype, shape: Shape::from_slice(shape), strides: Strides::from_slice(strides) }
    }

    fn program(kinds: &[ReduceKind], class: Class) -> Program {
        let function = &f::ADD;
        let variant = function.variant(&[class, class]).unwrap() as u16;
        let mut instrs =
            vec![Instr::Load { slot: 0, out: 0 }, Instr::Apply { function, variant, args: [0, 0, 0, 0], out: 1 }];
        instrs.extend(kinds.iter().enumerate().map(|(i, &kind)| Instr::Reduce {
            kind,
            reg: 1,
            class,
            slot: i as u16 + 1,
        }));
        Program::new(instrs, vec![class; 2], 0)
    }

    /// The definition, in f64, first position first.
    fn reference(kind: ReduceKind, values: &[f64]) -> f64 {
        let extreme = |better: fn(f64, f64) -> bool| {
            let mut at = 0;
            for (i, &x) in values.iter().enumerate() {
                if better(x, values[at]) || (x.is_nan() && !values[at].is_nan()) {
                    at = i;
                }
            }
            at
        };
        match kind {
            ReduceKind::Sum => values.iter().sum(),
            ReduceKind::Prod => values.iter().product(),
            ReduceKind::Min => values[extreme(|x, y| x < y)],
            ReduceKind::Max => values[extreme(|x, y| x > y)],
            ReduceKind::ArgMin => extreme(|x, y| x < y) as f64,
            ReduceKind::ArgMax => extreme(|x, y| x > y) as f64,
            ReduceKind::Any => values.iter().any(|&x| x != 0.0) as u8 as f64,
            ReduceKind::All => values.iter().all(|&x| x != 0.0) as u8 as f64,
        }
    }

    /// Every split of every layout against the definition, for kinds together in one program.
    fn check(shape: &[usize], x: impl Fn(usize) -> f64) {
        use ReduceKind::*;
        let kinds = [Sum, Max, ArgMax, Min, ArgMin];
        let n: usize = shape.iter().product();
        let dense = contiguous_strides(shape).to_vec();
        let mut turned = vec![1isize; shape.len()];
        for d in 1..shape.len() {
            turned[d] = turned[d - 1] * shape[d - 1] as isize;
        }
        let mut mixed = dense.clone();
        if shape.len() == 3 {
            mixed = vec![shape[2] as isize, (shape[0] * shape[2]) as isize, 1];
        }
        for strides in [dense, turned, mixed] {
            for reduced in 1..=shape.len() {
                for threads in [Threads::ONE, Threads::new(3)] {
                    let mut program = program(&kinds, Class::F32);
                    program.reduced = reduced;
                    let mut data: Vec<f32> = (0..n).map(|i| x(i) as f32).collect();
                    let kept = &shape[..shape.len() - reduced];
                    let outs: usize = kept.iter().product();
                    let mut floats = vec![[0f32; 3]; outs];
                    let mut places = vec![[0i64; 2]; outs];
                    let steps: Vec<isize> = contiguous_strides(kept).to_vec();
                    let thrice: Vec<isize> = steps.iter().map(|s| s * 3).collect();
                    let twice: Vec<isize> = steps.iter().map(|s| s * 2).collect();
                    let base = floats.as_mut_ptr().cast::<f32>();
                    let at = places.as_mut_ptr().cast::<i64>();
                    let out = |k: usize| {
                        // SAFETY: within the three columns of `floats`.
                        let ptr = unsafe { base.add(k) }.cast();
                        RawView {
                            ptr,
                            dtype: DType::F32,
                            shape: Shape::from_slice(kept),
                            strides: Strides::from_slice(&thrice),
                        }
                    };
                    let place = |k: usize| {
                        // SAFETY: within the two columns of `places`.
                        let ptr = unsafe { at.add(k) }.cast();
                        RawView {
                            ptr,
                            dtype: DType::I64,
                            shape: Shape::from_slice(kept),
                            strides: Strides::from_slice(&twice),
                        }
                    };
                    let views =
                        [view(&mut data, DType::F32, shape, &strides), out(0), out(1), place(0), out(2), place(1)];
                    // SAFETY: all views lie in their vectors.
                    unsafe { fused::run(&program, shape, &views, &[], &threads, &[]) };
                    let m = n / outs;
                    for o in 0..outs {
                        let values: Vec<f64> = (0..m)
                            .map(|r| {
                                let mut rest = o * m + r;
                                let mut offset = 0;
                                for d in (0..shape.len()).rev() {
                                    offset += (rest % shape[d]) as isize * strides[d];
                                    rest /= shape[d];
                                }
                                2.0 * data[offset as usize] as f64
                            })
                            .collect();
                        let got = [
                            floats[o][0] as f64,
                            floats[o][1] as f64,
                            places[o][0] as f64,
                            floats[o][2] as f64,
                            places[o][1] as f64,
                        ];
                        for (kind, got) in kinds.iter().zip(got) {
                            let want = reference(*kind, &values);
                            let scale: f64 = values.iter().map(|v| v.abs()).sum::<f64>() * 1e-6;
                            let bound = if *kind == Sum { scale } else { 0.0 };
                            let same = (got - want).abs() <= bound || (got.is_nan() && want.is_nan()) || got == want;
                            assert!(same, "{kind:?} {shape:?} {strides:?} last {reduced}: {got} not {want} at {o}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_layout() {
        let x = |i: usize| ((i * 7919 % 1013) as f64 - 500.0) * 0.25;
        check(&[1], x);
        check(&[70_001], x);
        check(&[5, 1, 7], x);
        check(&[3, 2000], x);
        check(&[2000, 3], x);
        check(&[130, 65, 9], x);
        check(&[9, 1300, 5], x);
        check(&[2, 3, 4, 5], x);
        check(&[4, 90_000], x);
    }

    #[test]
    fn nan_wins() {
        check(&[40, 300], |i| if i % 1777 == 1776 { f64::NAN } else { (i % 91) as f64 });
        check(&[3000], |i| if i > 2000 { f64::NAN } else { i as f64 });
        check(&[10, 20], |_| f64::NEG_INFINITY);
    }

    /// A sum of ten million tenths: adding one after another gives 1087937.
    #[test]
    fn sums_keep_their_digits() {
        let n = 10_000_000;
        let mut x = vec![0.05f32; n];
        let mut y = [0f32; 3];
        let out = |y: &mut [f32]| view(y, DType::F32, &[], &[]);
        let (mut a, mut b) = ([0f32], [0f32]);
        for (threads, y) in [(Threads::ONE, &mut a), (Threads::new(2), &mut b)] {
            let mut program = program(&[ReduceKind::Sum], Class::F32);
            program.reduced = 1;
            let views = [view(&mut x, DType::F32, &[n], &[1]), out(y)];
            // SAFETY: both views lie in their vectors.
            unsafe { fused::run(&program, &[n], &views, &[], &threads, &[]) };
        }
        y[..1].copy_from_slice(&a);
        assert_eq!(a, b);
        assert!((y[0] - 1_000_000.0).abs() <= 0.25, "{}", y[0]);
    }

    /// Integers, and the identities of empty reductions.
    #[test]
    fn integers_and_empty() {
        let mut program = program(&[ReduceKind::Sum, ReduceKind::Prod], Class::I64);
        program.reduced = 1;
        let mut x: Vec<i64> = (1..=20).collect();
        let (mut sum, mut product) = ([7i64; 2], [7i64; 2]);
        for (shape, want) in [([2, 10], [[110, 310], [3_715_891_200, 686_533_194_547_200]]), ([2, 0], [[0, 0], [1, 1]])]
        {
            let views = [
                view(&mut x, DType::I64, &shape, &[10, 1]),
                view(&mut sum, DType::I64, &[2], &[1]),
                view(&mut product, DType::I64, &[2], &[1]),
            ];
            // SAFETY: all views lie in their vectors.
            unsafe { fused::run(&program, &shape, &views, &[], &Threads::ONE, &[]) };
            assert_eq!([sum, product], want);
        }
    }
}
