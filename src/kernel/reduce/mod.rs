//! Reductions of tile programs: a map of any length, reduced over some dims.
//!
//! There are three kinds. `Rows`: the innermost dim in memory is reduced, and each tile is reduced to one value.
//! `Short`: the same with rows so short that a tile contains many. `Columns`: the innermost dim is an output dim, and
//! tiles are combined elementwise. Long reductions are divided into parts by shape only and combined in order, so
//! results do not depend on the number of threads. Sums of f32 are accumulated in f32 lanes within a tile and in f64
//! between tiles.

mod columns;
mod kernels;
mod narrow;
mod repeated;
mod rows;

use crate::kernel::abi::Threads;
use crate::kernel::copy::host::copy_view;
use crate::kernel::fused::host::{Code, Op, Plain, RunArgs, Space, cast, is_register, store};
use crate::kernel::host::simd;
use crate::kernel::program::{Class, ReduceKind};
use kernels::{Kernels, Wide, kernels};
use narrow::{Narrow, narrow};
use smallvec::SmallVec;

/// Bound: minimal number of elements for a further thread.
const GRAIN: usize = 32 << 10;
/// Minimal number of tiles of a part.
const PART_TILES: usize = 64;
/// Maximal number of parts of a reduction to few values.
const PARTS: usize = 64;

/// One `Reduce` of the program.
struct Task {
    kernels: Kernels,
    value: u16,
    slot: usize,
    arg: bool,
    kind: ReduceKind,
    /// What reduces the view's own elements, if they are short and nothing is computed with them.
    narrow: Option<Narrow>,
    /// Times that the result is added up, since each element is repeated so often.
    times: usize,
}

impl Task {
    /// Whether the order in which elements are combined changes nothing.
    fn in_any_order(&self) -> bool {
        !self.kernels.float || matches!(self.kind, ReduceKind::Min | ReduceKind::Max)
    }

    /// Writes `m` results at byte offsets `offset`, `offset + step`, ... of the view.
    ///
    /// # Safety
    /// The view is valid there.
    unsafe fn emit(&self, given: RunArgs<'_>, offset: isize, step: isize, values: &mut [Wide], positions: &mut [i64]) {
        let view = &given.views[self.slot];
        let (class, m) = if self.arg { (Class::I64, positions.len()) } else { (self.class(), values.len()) };
        if self.times != 1 {
            values.iter_mut().for_each(|value| *value = self.repeated(*value));
        }
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
pub(crate) unsafe fn run(code: &Code, mut space: Space, given: RunArgs<'_>, threads: &Threads) {
    let plain = code.plain;
    let narrow = |kind| plain.and_then(|plain| narrow(kind, given.views[plain.slot as usize].dtype, plain.converts));
    let mut tasks: SmallVec<[Task; 2]> = code
        .ops
        .iter()
        .filter_map(|op| match *op {
            Op::Reduce { kind, arg, slot } => Some(Task {
                kernels: kernels(kind, code.values[arg as usize].class),
                value: arg,
                slot: slot as usize,
                arg: matches!(kind, ReduceKind::ArgMin | ReduceKind::ArgMax),
                kind,
                narrow: narrow(kind),
                times: 1,
            }),
            _ => None,
        })
        .collect();
    if space.dims.iter().any(|dim| dim.size == 0 && !dim.reduced) {
        return;
    }
    let copies =
        plain.map(|plain| repeated::drop_repeated(&mut space, &mut tasks, plain.slot, given)).unwrap_or_default();
    let ordered = tasks.iter().any(|task| task.arg);
    let loads = code.ops.iter().filter_map(|op| if let Op::Load { slot, .. } = *op { Some(slot) } else { None });
    let priority: SmallVec<[u16; 8]> = loads.chain(code.position_column(given.views)).collect();
    space.sort(&priority, |a, b| ordered && a.reduced && b.reduced);
    let columns = space.dims.last().is_some_and(|dim| !dim.reduced) && space.dims.iter().any(|dim| dim.reduced);
    let output_dims = space.partition(columns);
    let plan = Plan { code, given, tasks: &tasks, threads };
    // SAFETY: the views are those of `fused::run`, which is the contract of both.
    unsafe {
        if columns {
            plan.columns(space, output_dims);
        } else {
            plan.rows(space, output_dims);
        }
    }
    for (from, to) in &copies {
        // SAFETY: both are parts of an output that do not overlap.
        unsafe { copy_view(from, to, threads) };
    }
}

struct Plan<'a> {
    code: &'a Code,
    given: RunArgs<'a>,
    tasks: &'a [Task],
    threads: &'a Threads,
}

/// Partial results, written by several workers.
struct Partials {
    values: Vec<Wide>,
    positions: Vec<i64>,
}

/// A pointer into `Partials`: workers write disjoint entries.
#[derive(Clone, Copy)]
struct Shared(*mut Wide, *mut i64);
// SAFETY: each unit writes only its own entries, and they are read after all have finished.
unsafe impl Send for Shared {}
// SAFETY: a shared `Shared` gives the addresses, which are `Copy` anyway; units write apart.
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
    /// The view whose elements can be reduced as they are in memory.
    fn plain_load(&self) -> Option<u16> {
        let Plain { slot, converts } = self.code.plain?;
        let own = !converts && is_register(self.given.views[slot as usize].dtype);
        (own || self.tasks.iter().all(|task| task.narrow.is_some())).then_some(slot)
    }

    fn split(&self, units: usize, unit_elements: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
        if units * unit_elements <= GRAIN {
            work(0..units);
        } else {
            self.threads.split(units, (GRAIN / unit_elements.max(1)).max(1), work);
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

#[cfg(test)]
mod tests {
    use crate::base::dtype::DType;
    use crate::base::layout::{Shape, Strides, contiguous_strides};
    use crate::kernel::abi::{RawView, Threads};
    use crate::kernel::elementwise as f;
    use crate::kernel::fused::host as fused;
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

    /// The definition, in f64, in order of position.
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

    /// Every division of every layout against the definition, with several kinds in one program.
    fn check(shape: &[usize], x: impl Fn(usize) -> f64) {
        use ReduceKind::*;
        let kinds = [Sum, Max, ArgMax, Min, ArgMin];
        let n: usize = shape.iter().product();
        let dense = contiguous_strides(shape).to_vec();
        let mut column_major = vec![1isize; shape.len()];
        for d in 1..shape.len() {
            column_major[d] = column_major[d - 1] * shape[d - 1] as isize;
        }
        let mut mixed = dense.clone();
        if shape.len() == 3 {
            mixed = vec![shape[2] as isize, (shape[0] * shape[2]) as isize, 1];
        }
        for strides in [dense, column_major, mixed] {
            for reduced in 1..=shape.len() {
                for threads in [Threads::ONE, Threads::new(3)] {
                    let mut program = program(&kinds, Class::F32);
                    program.reduced = reduced;
                    let mut data: Vec<f32> = (0..n).map(|i| x(i) as f32).collect();
                    let output_dims = &shape[..shape.len() - reduced];
                    let outs: usize = output_dims.iter().product();
                    let mut floats = vec![[0f32; 3]; outs];
                    let mut positions = vec![[0i64; 2]; outs];
                    let steps: Vec<isize> = contiguous_strides(output_dims).to_vec();
                    let thrice: Vec<isize> = steps.iter().map(|s| s * 3).collect();
                    let twice: Vec<isize> = steps.iter().map(|s| s * 2).collect();
                    let base = floats.as_mut_ptr().cast::<f32>();
                    let at = positions.as_mut_ptr().cast::<i64>();
                    let out = |k: usize| {
                        // SAFETY: within the three columns of `floats`.
                        let ptr = unsafe { base.add(k) }.cast();
                        RawView {
                            ptr,
                            dtype: DType::F32,
                            shape: Shape::from_slice(output_dims),
                            strides: Strides::from_slice(&thrice),
                        }
                    };
                    let place = |k: usize| {
                        // SAFETY: `k < 2`, inside one `[i64; 2]` of `positions`.
                        let ptr = unsafe { at.add(k) }.cast();
                        RawView {
                            ptr,
                            dtype: DType::I64,
                            shape: Shape::from_slice(output_dims),
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
                            positions[o][0] as f64,
                            floats[o][2] as f64,
                            positions[o][1] as f64,
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
        check(&[1500, 2], x);
        check(&[700, 2, 2], x);
        check(&[130, 65, 9], x);
        check(&[9, 1300, 5], x);
        check(&[2, 3, 4, 5], x);
        check(&[4, 90_000], x);
        check(&[300, 10_001], x);
    }

    #[test]
    fn nan_wins() {
        check(&[40, 300], |i| if i % 1777 == 1776 { f64::NAN } else { (i % 91) as f64 });
        check(&[3000], |i| if i > 2000 { f64::NAN } else { i as f64 });
        check(&[10, 20], |_| f64::NEG_INFINITY);
    }

    /// A sum of ten million times 0.1: sequential addition in f32 gives 1087937.
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
        for (shape, want) in [
            ([2, 10], [[110, 310], [3_715_891_200, 686_533_194_547_200]]),
            ([2, 0], [[0, 0], [1, 1]]),
            ([0, 3], [[0, 0], [1, 1]]),
        ] {
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

    /// Windows of rows that are reduced as they lie in memory, against a loop; small integers, whose sums are exact in any order.
    fn check_plain<T: Copy>(dtype: DType, of: fn(i64) -> T, cast: Option<DType>, kinds: &[ReduceKind]) {
        let (shape, strides) = ([5, 30, 100], [130 * 30, 130, 1]);
        let value = |i: usize| (i * 7919 % 11) as i64 % 3;
        for (&kind, reduced) in kinds.iter().flat_map(|kind| [1, 2, 3].map(|reduced| (kind, reduced))) {
            let mut x: Vec<T> = (0..5 * 30 * 130).map(|i| of(value(i))).collect();
            let (class, out_dtype) = match (kind, Class::of(dtype)) {
                (ReduceKind::Any | ReduceKind::All, _) => (Class::Bool, DType::Bool),
                (_, Class::F32) => (Class::F32, DType::F32),
                _ => (Class::I64, DType::I64),
            };
            let mut instrs = vec![Instr::Load { slot: 0, out: 0 }];
            if let Some(to) = cast {
                instrs.push(Instr::Cast { reg: 0, from: Class::of(dtype), to, out: 1 });
            }
            let reg = cast.is_some() as u16;
            instrs.push(Instr::Reduce { kind, reg, class, slot: 1 });
            let regs = vec![Class::of(dtype), cast.map_or(class, Class::of)];
            let program = Program::new(instrs, regs, reduced);
            let output_dims = &shape[..3 - reduced];
            let outs: usize = output_dims.iter().product();
            let mut got = vec![0u64; outs];
            let steps: Vec<isize> =
                contiguous_strides(output_dims).iter().map(|s| s * 8 / out_dtype.size_bytes() as isize).collect();
            let views = [view(&mut x, dtype, &shape, &strides), view(&mut got, out_dtype, output_dims, &steps)];
            // SAFETY: both views lie in their vectors.
            unsafe { fused::run(&program, &shape, &views, &[], &Threads::new(2), &[]) };
            let m = 15_000 / outs;
            for (o, &got) in got.iter().enumerate() {
                let at = |i: usize| i / 3000 * 3900 + i / 100 % 30 * 130 + i % 100;
                let values: Vec<f64> = (0..m).map(|r| value(at(o * m + r))).map(|x| x as f64).collect();
                let truths = dtype == DType::Bool;
                let values: Vec<f64> =
                    values.into_iter().map(|x| if truths { (x != 0.0) as u8 as f64 } else { x }).collect();
                let got = match out_dtype {
                    DType::Bool => (got as u8) as f64,
                    DType::F32 => f32::from_bits(got as u32) as f64,
                    _ => got as i64 as f64,
                };
                assert_eq!(got, reference(kind, &values), "{kind:?} {dtype} last {reduced} at {o}");
            }
        }
    }

    #[test]
    fn windows_of_rows_as_they_are() {
        use ReduceKind::{All, Any, Max, Min, Sum};
        check_plain::<f32>(DType::F32, |x| x as f32, None, &[Sum, Min, Max]);
        check_plain::<i64>(DType::I64, |x| x, None, &[Sum, Min, Max]);
        check_plain::<i32>(DType::I32, |x| x as i32, None, &[Sum, Min, Max]);
        check_plain::<u8>(DType::U8, |x| x as u8, None, &[Sum, Min, Max]);
        check_plain::<u16>(DType::BF16, |x| half::bf16::from_f32(x as f32).to_bits(), None, &[Sum, Min, Max]);
        check_plain::<u16>(DType::F16, |x| half::f16::from_f32(x as f32).to_bits(), None, &[Sum, Min, Max]);
        check_plain::<u8>(DType::Bool, |x| (x != 0) as u8, None, &[Sum, Any, All]);
        check_plain::<u8>(DType::U8, |x| x as u8, Some(DType::Bool), &[Any, All]);
        check_plain::<i64>(DType::I64, |x| x, Some(DType::Bool), &[Any, All]);
    }
}
