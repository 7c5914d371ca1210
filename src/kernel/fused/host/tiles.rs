//! Executes the ops of a program on one box after the other. Decides which values are in a view's memory, which in
//! scratch memory, and which need not be loaded again.

use super::code::{Code, Op};
use super::convert::{self, BoxFn};
use super::space::{Grid, Place};
use super::{RunArgs, random};
use crate::base::dtype::DType;
use crate::kernel::abi::{Fault, RawView};
use crate::kernel::copy::host::{NON_TEMPORAL_BYTES, copy_non_temporal, non_temporal_fence};
use crate::kernel::host::rows::prefetch;
use crate::kernel::program::{Check, Class};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

thread_local! {
    /// Cached scratch memory of this thread; an entry is removed while it is in use.
    static SCRATCH: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with scratch memory of at least this many bytes.
pub(super) fn with_scratch(bytes: usize, work: impl FnOnce(*mut u8)) {
    let lines = bytes.div_ceil(64);
    let mut scratch = SCRATCH.with(|cell| cell.take());
    if scratch.len() < lines {
        scratch.resize(lines, Line([0; 64]));
    }
    work(scratch.as_mut_ptr().cast());
    let _ = SCRATCH.try_with(|cell| cell.replace(scratch));
}

/// How a load or store accesses its view.
#[derive(Clone, Copy)]
enum Access {
    /// The register is the view's memory: no copy.
    Direct,
    /// Copied by this function with these strides; `last`: offset and counts of the box that a load copied last.
    Copied { copy: BoxFn, strides: [isize; 3], last: (isize, [usize; 3]) },
    /// A contiguous store with non-temporal instructions.
    NonTemporal { size: usize },
    /// Not a load or store, or a store that the op that computes the value has done.
    None,
}

/// A worker's registers.
pub(crate) struct Tiles<'a> {
    code: &'a Code,
    given: RunArgs<'a>,
    columns: usize,
    position_strides: [isize; 3],
    access: SmallVec<[Access; 12]>,
    /// Address of each value.
    values: SmallVec<[*mut u8; 16]>,
    /// Values that are written directly into a view: (value, slot).
    direct: SmallVec<[(u16, u16); 4]>,
    scratch: Vec<Line>,
    /// Whether a store is non-temporal.
    has_non_temporal: bool,
}

impl Drop for Tiles<'_> {
    fn drop(&mut self) {
        if self.has_non_temporal {
            non_temporal_fence();
        }
        let scratch = std::mem::take(&mut self.scratch);
        // A thread that is ending has no place for it any more.
        let _ = SCRATCH.try_with(|cell| cell.replace(scratch));
    }
}

impl<'a> Tiles<'a> {
    /// # Safety
    /// The views are valid over the grid's space.
    pub unsafe fn new(code: &'a Code, grid: &Grid<'_>, given: RunArgs<'a>) -> Tiles<'a> {
        let lines = (code.scratch * code.tile).div_ceil(64);
        let mut scratch = SCRATCH.with(|cell| cell.take());
        if scratch.len() < lines {
            scratch.resize(lines, Line([0; 64]));
        }
        let base = scratch.as_mut_ptr().cast::<u8>();
        // SAFETY: places lie within `code.scratch` bytes per element of a tile.
        let values = code.values.iter().map(|value| unsafe { base.add(value.place * code.tile) }).collect();
        let position_strides = if code.positions { grid.box_strides(given.views.len()) } else { [0; 3] };
        let mut tiles = Tiles {
            code,
            given,
            columns: given.views.len(),
            position_strides,
            access: SmallVec::new(),
            values,
            direct: SmallVec::new(),
            scratch,
            has_non_temporal: false,
        };
        tiles.choose_access(grid);
        let elements = grid.full.iter().product::<usize>();
        for &(index, id) in &code.scalars {
            let dtype = code.values[id as usize].dtype;
            // SAFETY: a scalar's place has room for a tile.
            unsafe { fill(tiles.values[id as usize], dtype, given.scalars[index as usize], elements) };
        }
        tiles
    }

    fn choose_access(&mut self, grid: &Grid<'_>) {
        let views = self.given.views;
        // The op that writes each stored view: the store, or the op that computes the value.
        let mut writes: SmallVec<[(u16, usize); 4]> = SmallVec::new();
        for (index, op) in self.code.ops.iter().enumerate() {
            let Op::Store { arg, slot, from } = *op else { continue };
            let direct =
                from.is_some() && self.is_register_run(grid, slot, arg) && !is_non_temporal(&views[slot as usize]);
            match from {
                Some(maker) if direct => {
                    self.direct.push((arg, slot));
                    writes.push((slot, maker));
                }
                _ => writes.push((slot, index)),
            }
        }
        for op in &self.code.ops {
            let access = match *op {
                Op::Load { slot, out } => {
                    let view = &views[slot as usize];
                    let last = self.code.values[out as usize].last;
                    let outlives = writes.iter().any(|&(other, at)| views[other as usize].ptr == view.ptr && at < last);
                    if self.is_register_run(grid, slot, out) && !outlives {
                        Access::Direct
                    } else {
                        let strides = grid.box_strides(slot as usize);
                        let copy = convert::load(view.dtype, self.code.values[out as usize].dtype);
                        Access::Copied { copy, strides, last: (isize::MIN, [0; 3]) }
                    }
                }
                Op::Store { arg, slot, .. } if !self.direct.contains(&(arg, slot)) => {
                    let view = &views[slot as usize];
                    if is_non_temporal(view) && self.is_register_run(grid, slot, arg) {
                        self.has_non_temporal = true;
                        Access::NonTemporal { size: view.dtype.size_bytes() }
                    } else {
                        let copy = convert::store_held(view.dtype, self.code.values[arg as usize].dtype);
                        let strides = grid.box_strides(slot as usize);
                        Access::Copied { copy, strides, last: (isize::MIN, [0; 3]) }
                    }
                }
                _ => Access::None,
            };
            self.access.push(access);
        }
    }

    /// Whether each box of a view is contiguous and is what the value's register is.
    fn is_register_run(&self, grid: &Grid<'_>, slot: u16, value: u16) -> bool {
        let dtype = self.given.views[slot as usize].dtype;
        dtype == self.code.values[value as usize].dtype && grid.is_dense(slot as usize, dtype.size_bytes())
    }

    /// Address of the value that op `index`, a `Reduce`, combines.
    pub fn value(&self, id: u16) -> *const u8 {
        self.values[id as usize]
    }

    /// Class of a value.
    pub fn class(&self, id: u16) -> Class {
        self.code.values[id as usize].class
    }

    /// Executes the program on one box.
    ///
    /// # Safety
    /// The place belongs to the grid, and no other thread works on the same outputs.
    pub unsafe fn run(&mut self, place: &Place) {
        let counts = place.counts;
        let n = counts[0] * counts[1] * counts[2];
        let views = self.given.views;
        // SAFETY: offsets of a place of the grid stay inside the views; registers have room for a tile.
        unsafe {
            for &(id, slot) in &self.direct {
                self.values[id as usize] = views[slot as usize].ptr.offset(place.offsets[slot as usize]);
            }
            // A short program is limited by memory bandwidth anyway.
            let (long, mut prefetcher) = (self.code.ops.len() > 4, Prefetch::default());
            for (op, access) in self.code.ops.iter().zip(&mut self.access) {
                if long {
                    prefetcher.step();
                }
                match *op {
                    Op::Load { slot, out } => {
                        let offset = place.offsets[slot as usize];
                        let memory = views[slot as usize].ptr.offset(offset);
                        match access {
                            Access::Copied { copy, strides, last } if *last != (offset, counts) => {
                                copy(memory, *strides, counts, self.values[out as usize]);
                                *last = (offset, counts);
                            }
                            Access::Direct => {
                                self.values[out as usize] = memory;
                                if long {
                                    prefetcher.add(memory, n * self.code.values[out as usize].dtype.size_bytes());
                                }
                            }
                            _ => {}
                        }
                    }
                    Op::Apply { tile, args, out } => {
                        let args = args.map(|id| self.values[id as usize].cast_const());
                        tile(&args, self.values[out as usize], n);
                    }
                    Op::Store { arg, slot, .. } => {
                        let value = self.values[arg as usize];
                        let memory = views[slot as usize].ptr.wrapping_offset(place.offsets[slot as usize]);
                        match access {
                            Access::Copied { copy, strides, .. } => copy(memory, *strides, counts, value),
                            Access::NonTemporal { size } => copy_non_temporal(value, memory, n * *size),
                            _ => {}
                        }
                    }
                    Op::Position { out } => {
                        let out = self.values[out as usize].cast::<i64>();
                        each_run(self.position_strides, counts, |at, start, step, length| {
                            for k in 0..length {
                                *out.add(at + k) = (place.offsets[self.columns] + start + k as isize * step) as i64;
                            }
                        });
                    }
                    Op::Random { draw, class, seed, out } => {
                        let out = self.values[out as usize];
                        let source = random::Source::new(draw, &self.given.scalars[seed as usize..]);
                        each_run(self.position_strides, counts, |at, start, step, length| {
                            let start = (place.offsets[self.columns] + start) as u64;
                            source.fill(class, start, step as u64, length, out.add(at * class.size_bytes()));
                        });
                    }
                    Op::Check { check, class, arg, node } => {
                        let value = self.values[arg as usize].cast_const();
                        if !satisfies(check, class, value, 0..n) {
                            let faults = &self.given.faults[node as usize];
                            each_run(self.position_strides, counts, |at, start, step, length| {
                                for k in (0..length).filter(|k| !satisfies(check, class, value, at + k..at + k + 1)) {
                                    let position = place.offsets[self.columns] + start + k as isize * step;
                                    faults.report(violation(check, position as u64));
                                }
                            });
                        }
                    }
                    Op::Reduce { .. } => {}
                }
            }
        }
    }
}

/// Prefetches memory that the next box will probably read while this one is computed. Cost: without it a thread waits
/// for memory at each box's first operation, a third of the time of a long chain.
#[derive(Default)]
pub(super) struct Prefetch {
    runs: SmallVec<[(*const u8, usize); 4]>,
}

impl Prefetch {
    /// Called for a box that reads `bytes` at `memory`: the next one will read the bytes after it.
    pub(super) fn add(&mut self, memory: *const u8, bytes: usize) {
        self.runs.push((memory.wrapping_add(bytes), bytes));
    }

    /// Prefetches the next lines.
    #[inline]
    pub(super) fn step(&mut self) {
        /// Lines that are prefetched at a time: as many as the L1 cache can have outstanding.
        const LINES: usize = 16;
        for (memory, bytes) in &mut self.runs {
            for _ in 0..bytes.div_ceil(64).min(LINES) {
                prefetch(*memory);
                *memory = memory.wrapping_add(64);
            }
            *bytes = bytes.saturating_sub(64 * LINES);
        }
    }
}

/// Whether a view is so large that writing it through the cache would evict everything else.
pub(super) fn is_non_temporal(view: &RawView) -> bool {
    view.numel() * view.dtype.size_bytes() >= NON_TEMPORAL_BYTES
}

/// Whether the representation of `dtype` in memory is that of its register class. Bytes of a bool are always 0 or 1.
pub(crate) fn is_register(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::I64 | DType::F32 | DType::F64)
}

/// Calls `run(index in the tile, position of the first, step, length)` for every innermost run of a box.
#[inline(always)]
fn each_run(strides: [isize; 3], counts: [usize; 3], mut run: impl FnMut(usize, isize, isize, usize)) {
    let mut at = 0;
    for i in 0..counts[0] {
        for j in 0..counts[1] {
            run(at, i as isize * strides[0] + j as isize * strides[1], strides[2], counts[2]);
            at += counts[2];
        }
    }
}

/// Whether all values satisfy the check.
///
/// # Safety
/// `values` holds elements of `class` in that range.
pub(super) unsafe fn satisfies(check: Check, class: Class, values: *const u8, range: Range<usize>) -> bool {
    /// # Safety
    /// As above.
    unsafe fn all<T: Copy>(values: *const u8, range: Range<usize>, fits: impl Fn(T) -> bool) -> bool {
        // SAFETY: `values` names elements of `T` up to the end of `range`, as `holds` asks.
        let values = unsafe { std::slice::from_raw_parts(values.cast::<T>().add(range.start), range.len()) };
        // Not: `all`, which stops at the first and so makes no vectors.
        values.iter().fold(true, |fit, &value| fit & fits(value))
    }
    // SAFETY: the register holds the elements of `range` in `class`; checks of floats are asked of floats, the other of
    // integers.
    unsafe {
        match (check, class) {
            (Check::NonZero, _) => all::<i64>(values, range, |x| x != 0),
            (Check::Probability, Class::F64) => all::<f64>(values, range, |p| (0.0..=1.0).contains(&p)),
            (Check::Probability, _) => all::<f32>(values, range, |p| (0.0..=1.0).contains(&p)),
            (Check::Deviation, Class::F64) => all::<f64>(values, range, |x| x >= 0.0),
            (Check::Deviation, _) => all::<f32>(values, range, |x| x >= 0.0),
            (Check::Finite, Class::F64) => all::<f64>(values, range, f64::is_finite),
            (Check::Finite, _) => all::<f32>(values, range, f32::is_finite),
        }
    }
}

/// The fault of a value that violates the check.
pub(super) fn violation(check: Check, position: u64) -> Fault {
    let (kind, bound) = check.fault();
    Fault { kind, position, value: 0, bound }
}

/// Fills a register with a scalar, which is wrapped or rounded to the register's dtype.
///
/// # Safety
/// `out` has room for `n` elements of `dtype`.
pub(super) unsafe fn fill(out: *mut u8, dtype: DType, bits: u64, n: usize) {
    let float = f64::from_bits(bits) as f32;
    let bits = match dtype {
        DType::Bool => (bits != 0) as u64,
        DType::F16 => convert::f32_to_f16(float) as u64,
        DType::BF16 => convert::f32_to_bf16(float) as u64,
        DType::F32 => float.to_bits() as u64,
        _ => bits,
    };
    // SAFETY: `out` has room for `n` elements of this size (this function's contract).
    unsafe {
        match dtype.size_bytes() {
            1 => out.write_bytes(bits as u8, n),
            2 => std::slice::from_raw_parts_mut(out.cast::<u16>(), n).fill(bits as u16),
            4 => std::slice::from_raw_parts_mut(out.cast::<u32>(), n).fill(bits as u32),
            _ => std::slice::from_raw_parts_mut(out.cast::<u64>(), n).fill(bits),
        }
    }
}
