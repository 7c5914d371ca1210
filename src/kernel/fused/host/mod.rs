//! Runs a tile program on the host: on every core, with tiles in the L1 cache, and with views used as registers where
//! their layout allows.
//!
//! Knows nothing of operations, buffers or streams. Results depend neither on the order of tiles nor on the number of
//! threads.

mod code;
mod convert;
mod flat;
mod narrow;
mod space;
mod tiles;

pub use code::Prepared;
pub use convert::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

use crate::base::layout::Strides;
use crate::kernel::abi::{Faults, RawView, Threads};
use crate::kernel::copy::host::copy_view;
use crate::kernel::program::{Instr, Program};
use crate::kernel::random::host as random;
use crate::kernel::reduce;
pub(crate) use code::{Code, Op, Plain};
pub(crate) use convert::{cast, store};
use smallvec::SmallVec;
use space::Dim;
pub(crate) use space::{Grid, Place, Space, fit};
pub(crate) use tiles::{Tiles, is_register};

/// Bound: minimal number of elements for a further thread; fewer cost less than waking one.
const GRAIN: usize = 32 << 10;

/// The arguments of a run, beside the program.
#[derive(Clone, Copy)]
pub(crate) struct RunArgs<'a> {
    pub views: &'a [RawView],
    pub scalars: &'a [u64],
    pub faults: &'a [Faults],
}

/// Runs `program` over `shape`. `views` are addressed by slot: those of `Load` and `Store` have the iteration
/// shape (stride 0 where broadcast), those of `Reduce` the output dims. `scalars` holds raw bits of f64, i64 or
/// 0/1. Node `i` of `Check` reports to `faults[i]`.
///
/// # Safety
/// Every view is valid for its shape and strides, nobody else writes the inputs or touches the outputs, and
/// an output overlaps an input only if both are the same view.
pub unsafe fn run(
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    scalars: &[u64],
    threads: &Threads,
    faults: &[Faults],
) {
    let body = program.epilogue.as_ref().map_or(views, |epilogue| &views[..epilogue.first as usize]);
    // SAFETY: views are valid and not shared (this function's contract, which is that of both parts).
    unsafe { run_body(program, shape, body, scalars, threads, faults) };
    if let Some(epilogue) = &program.epilogue {
        let kept = &shape[..shape.len() - program.reduced];
        // SAFETY: views are valid and not shared (this function's contract), and the body has ended.
        unsafe { run_body(&epilogue.program, kept, &epilogue.views(views), scalars, threads, &[]) };
    }
}

/// A program without its epilogue.
///
/// # Safety
/// As for [`run`].
unsafe fn run_body(
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    scalars: &[u64],
    threads: &Threads,
    faults: &[Faults],
) {
    if let Some((from, to, convert)) = conversion(program, views) {
        let sizes = [from.dtype.size_bytes(), to.dtype.size_bytes()];
        let (from, to) = (Address(from.ptr), Address(to.ptr));
        threads.split(shape.iter().product(), GRAIN, |range| {
            // SAFETY: ranges of contiguous views, of which the caller promised the rest.
            unsafe {
                let (from, to) = (from.get().add(range.start * sizes[0]), to.get().add(range.start * sizes[1]));
                convert(from, to, range.len());
            };
        });
        return;
    }
    let given = RunArgs { views, scalars, faults };
    let n = shape.iter().product();
    let code = program.prepared.get(program, views, scalars);
    if n > 0 && flat::fits(code, n, given) {
        // SAFETY: views are valid and not shared (this function's contract, which `flat::run` has as well).
        return unsafe { flat::run(code, n, given, threads) };
    }
    let mut space = make_space(code, shape, program, views);
    if code.reduces > 0 {
        // SAFETY: views are valid and not shared (this function's contract, which `reduce::run` has as well).
        unsafe { reduce::run(code, space, given, threads) };
        return;
    }
    if space.numel() == 0 {
        return;
    }
    if let Some((from, to)) = code.copies(views) {
        // SAFETY: views are valid and not shared (this function's contract); `copy_view` may be given identical ones.
        return unsafe { copy_view(from, to, threads) };
    }
    let full = plan_map(code, &mut space, views);
    let grid = Grid { space: &space, first: 0, count: space.dims.len(), full };
    let base: SmallVec<[isize; 8]> = smallvec::smallvec![0; space.columns];
    let work = |range: std::ops::Range<usize>| {
        // SAFETY: boxes are disjoint, and the caller promised the rest.
        unsafe {
            let mut tiles = Tiles::new(code, &grid, given);
            let mut place = grid.place(range.start, &base);
            for n in range.clone() {
                tiles.run(&place);
                if n + 1 < range.end {
                    grid.advance(&mut place);
                }
            }
        }
    };
    let boxes = grid.boxes();
    let box_elements: usize = full.iter().product();
    if boxes * box_elements <= code.grain {
        work(0..boxes);
    } else {
        threads.split(boxes, (code.grain / box_elements).max(1), work);
    }
}

/// An address that threads share; they write apart.
#[derive(Clone, Copy)]
struct Address(*mut u8);
// SAFETY: an address; `run` says who may use what is behind it.
unsafe impl Send for Address {}
// SAFETY: as for `Send`.
unsafe impl Sync for Address {}

impl Address {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

/// The views of a program that does nothing but convert contiguous elements, and the function that does so.
fn conversion<'a>(program: &Program, views: &'a [RawView]) -> Option<(&'a RawView, &'a RawView, convert::FlatFn)> {
    let [
        Instr::Load { slot: from, out: loaded },
        Instr::Cast { reg, out: cast, .. },
        Instr::Store { reg: stored, slot: to },
    ] = program.instrs[..]
    else {
        return None;
    };
    let (from, to) = (&views[from as usize], &views[to as usize]);
    let plain = loaded == reg && cast == stored && from.ptr != to.ptr;
    let convert =
        convert::flat(from.dtype, to.dtype).filter(|_| plain && from.is_contiguous() && to.is_contiguous())?;
    (from.numel() == to.numel()).then_some((from, to, convert))
}

/// The space of a program with one column per view; a reduction's output does not move along reduced dims.
fn make_space(code: &Code, shape: &[usize], program: &Program, views: &[RawView]) -> Space {
    let columns = views.len() + code.positions as usize;
    let mut space = Space { dims: SmallVec::new(), strides: SmallVec::new(), columns };
    let output_dims = shape.len() - program.reduced;
    let positions = if code.positions { program.position_strides(shape) } else { Strides::new() };
    for (dim, &size) in shape.iter().enumerate() {
        if size == 1 {
            continue;
        }
        space.dims.push(Dim { size, reduced: dim >= output_dims });
        for view in views {
            let stride = view.strides.get(dim).map_or(0, |&stride| stride * view.dtype.size_bytes() as isize);
            space.strides.push(stride);
        }
        if code.positions {
            space.strides.push(positions[dim]);
        }
    }
    space
}

/// Orders and merges the dims of a map and chooses its boxes.
fn plan_map(code: &Code, space: &mut Space, views: &[RawView]) -> [usize; 3] {
    if space.dims.len() > 1 {
        // Stores decide before loads: writing short runs costs more than reading them. Random values are generated in
        // blocks, by position.
        let slot = |store: bool| {
            code.ops.iter().filter_map(move |op| match *op {
                Op::Store { slot, .. } if store => Some(slot),
                Op::Load { slot, .. } if !store => Some(slot),
                _ => None,
            })
        };
        let priority: SmallVec<[u16; 8]> = slot(true).chain(slot(false)).chain(code.position_column(views)).collect();
        space.sort(&priority, |_, _| false);
        space.merge();
    }
    space.pad(3);
    let last = space.dims.len() - 1;
    // A view that is contiguous along another dim is read in square boxes, so that all bytes of a cache line are used.
    let crossing = (0..last).rev().find(|&dim| {
        views.iter().enumerate().any(|(column, view)| {
            let size = view.dtype.size_bytes() as isize;
            let (inner, other) = (space.stride(last, column), space.stride(dim, column));
            inner.abs() > 4 * size && other == size && space.dims[dim].size > 4
        })
    });
    if let Some(dim) = crossing
        && space.dims[last].size > 4
    {
        space.move_dim(dim, last - 1);
        let (r, c) = (space.dims[last - 1].size, space.dims[last].size);
        let rows = r.min(32.max(code.tile / c));
        return [1, rows, c.min((code.tile / rows).max(1))];
    }
    space::fit([0, 1, 2].map(|i| space.dims[last - 2 + i].size), code.tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::base::layout::{Shape, Strides};
    use crate::kernel::elementwise as f;
    use crate::kernel::program::{Class, Draw, Function, ReduceKind};

    pub(super) fn apply(function: &'static Function, classes: &[Class], args: [u16; 4], out: u16) -> Instr {
        Instr::Apply { function, variant: function.variant(classes).unwrap() as u16, args, out }
    }

    pub(super) fn view<T>(data: &mut [T], dtype: DType, shape: &[usize], strides: &[isize]) -> RawView {
        RawView {
            ptr: data.as_mut_ptr().cast(),
            dtype,
            shape: Shape::from_slice(shape),
            strides: Strides::from_slice(strides),
        }
    }

    const F2: [Class; 2] = [Class::F32, Class::F32];

    /// relu(x * a + b) * 0.5 + x, in registers that are written more than once.
    fn chain() -> Program {
        let instrs = vec![
            Instr::Load { slot: 0, out: 0 },
            Instr::Load { slot: 1, out: 1 },
            Instr::Scalar { index: 0, class: Class::F32, out: 2 },
            apply(&f::MUL, &F2, [0, 1, 0, 0], 3),
            apply(&f::ADD, &F2, [3, 1, 0, 0], 3),
            apply(&f::RELU, &F2[..1], [3, 0, 0, 0], 3),
            apply(&f::MUL, &F2, [3, 2, 0, 0], 3),
            apply(&f::ADD, &F2, [3, 0, 0, 0], 3),
            Instr::Store { reg: 3, slot: 2 },
        ];
        Program::new(instrs, vec![Class::F32; 4], 0)
    }

    fn expect(x: f32, a: f32) -> f32 {
        (x * a + a).max(0.0) * 0.5 + x
    }

    /// Every layout gives the result of the definition.
    #[test]
    fn layouts() {
        let threads = Threads::new(2);
        let program = chain();
        let shapes: [&[usize]; 8] =
            [&[], &[1], &[5], &[7, 3], &[3, 1, 70], &[100, 1500], &[129, 65, 9], &[2, 3, 4, 5, 6]];
        for shape in shapes {
            let n: usize = shape.iter().product();
            let dense = crate::base::layout::contiguous_strides(shape);
            let mut columns: Vec<isize> = vec![1; shape.len()];
            for d in 1..shape.len() {
                columns[d] = columns[d - 1] * shape[d - 1] as isize;
            }
            let row: Vec<isize> = (0..shape.len()).map(|d| (d + 1 == shape.len()) as isize).collect();
            let first: Vec<isize> = (0..shape.len()).map(|d| (d == 0) as isize).collect();
            let wide: Vec<isize> = dense.iter().map(|s| s * 2).collect();
            let none = vec![0isize; shape.len()];
            let layouts: [&[isize]; 6] = [&dense, &columns, &row, &first, &wide, &none];
            for xs in layouts {
                for a in layouts {
                    for out in [&dense[..], &columns[..], &wide[..]] {
                        let mut x: Vec<f32> = (0..2 * n + 1).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.1).collect();
                        let mut y: Vec<f32> = (0..2 * n + 1).map(|i| ((i * 53 % 89) as f32 - 40.0) * 0.1).collect();
                        let mut z = vec![f32::NAN; 2 * n + 1];
                        let views = [
                            view(&mut x, DType::F32, shape, xs),
                            view(&mut y, DType::F32, shape, a),
                            view(&mut z, DType::F32, shape, out),
                        ];
                        let half = [0.5f64.to_bits()];
                        // SAFETY: the vectors are long enough for every layout.
                        unsafe { run(&program, shape, &views, &half, &threads, &[]) };
                        for i in 0..n {
                            let (mut rest, mut at) = (i, [0isize; 3]);
                            for d in (0..shape.len()).rev() {
                                let index = (rest % shape[d]) as isize;
                                rest /= shape[d];
                                for (at, strides) in at.iter_mut().zip([xs, a, out]) {
                                    *at += index * strides[d];
                                }
                            }
                            let [x, y, z] = [x[at[0] as usize], y[at[1] as usize], z[at[2] as usize]];
                            let want = expect(x, y);
                            assert!(
                                (z - want).abs() <= 1e-5 * want.abs().max(1.0),
                                "{shape:?} {xs:?} {a:?} {out:?} {i}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// The output may be the input, also when the old value is read after the new one is stored.
    #[test]
    fn in_place() {
        let program = Program::new(
            vec![
                Instr::Load { slot: 0, out: 0 },
                apply(&f::ADD, &F2, [0, 0, 0, 0], 1),
                Instr::Store { reg: 1, slot: 0 },
                apply(&f::ADD, &F2, [0, 1, 0, 0], 1),
                Instr::Store { reg: 1, slot: 1 },
            ],
            vec![Class::F32; 2],
            0,
        );
        for n in [5000, 50] {
            let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let mut y = vec![0.0f32; n];
            let views = [view(&mut x, DType::F32, &[n], &[1]), view(&mut y, DType::F32, &[n], &[1])];
            // SAFETY: both views lie in their vectors.
            unsafe { run(&program, &[n], &views, &[], &Threads::ONE, &[]) };
            assert!((0..n).all(|i| x[i] == 2.0 * i as f32 && y[i] == 3.0 * i as f32), "{n}");
        }
    }

    /// An operand of one element is broadcast, for every class and for few and many elements.
    #[test]
    fn one_element_beside_many() {
        let program = Program::new(
            vec![
                Instr::Load { slot: 0, out: 0 },
                Instr::Load { slot: 1, out: 1 },
                Instr::Cast { reg: 1, from: Class::F64, to: DType::F32, out: 2 },
                apply(&f::MUL, &F2, [0, 2, 0, 0], 3),
                Instr::Load { slot: 2, out: 4 },
                Instr::Cast { reg: 4, from: Class::I64, to: DType::F32, out: 5 },
                apply(&f::ADD, &F2, [3, 5, 0, 0], 6),
                Instr::Load { slot: 3, out: 7 },
                apply(&f::ADD, &F2, [6, 7, 0, 0], 8),
                Instr::Store { reg: 8, slot: 0 },
            ],
            [
                Class::F32,
                Class::F64,
                Class::F32,
                Class::F32,
                Class::I64,
                Class::F32,
                Class::F32,
                Class::F32,
                Class::F32,
            ]
            .to_vec(),
            0,
        );
        for n in [1, 3, 50, 5000] {
            let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let (mut factor, mut added, mut more) = ([0.5f64], [3i64], [0.25f32]);
            let views = [
                view(&mut x, DType::F32, &[n], &[1]),
                view(&mut factor, DType::F64, &[n], &[0]),
                view(&mut added, DType::I64, &[n], &[0]),
                view(&mut more, DType::F32, &[n], &[0]),
            ];
            // SAFETY: the views lie in their vectors.
            unsafe { run(&program, &[n], &views, &[], &Threads::ONE, &[]) };
            assert!((0..n).all(|i| x[i] == 0.5 * i as f32 + 3.25), "{n}");
        }
    }

    /// Integers of floats are those of C where it defines them, and the lowest ones elsewhere.
    #[test]
    fn integers_of_floats() {
        let high = 2f32.powi(31);
        let mut x: Vec<f32> =
            vec![1.9, -1.9, 0.0, 300.7, -129.5, 70_000.0, high, -high, 3e9, f32::NAN, f32::INFINITY, 1e30];
        let n = x.len();
        let truncated: Vec<i64> =
            x.iter().map(|&x| if x.is_nan() || x.abs() > 9e18 { i64::MIN } else { x as i64 }).collect();
        let narrow = |x: i64| if (i32::MIN as i64..=i32::MAX as i64).contains(&x) { x as i32 } else { i32::MIN };
        let program = |to: DType| {
            let cast = Instr::Cast { reg: 0, from: Class::F32, to, out: 1 };
            let instrs = vec![Instr::Load { slot: 0, out: 0 }, cast, Instr::Store { reg: 1, slot: 1 }];
            Program::new(instrs, vec![Class::F32, Class::I64], 0)
        };
        let (mut bytes, mut short, mut int, mut long) = (vec![0u8; n], vec![0i16; n], vec![0i32; n], vec![0i64; n]);
        for view_of in [
            view(&mut bytes, DType::U8, &[n], &[1]),
            view(&mut short, DType::I16, &[n], &[1]),
            view(&mut int, DType::I32, &[n], &[1]),
            view(&mut long, DType::I64, &[n], &[1]),
        ] {
            let program = program(view_of.dtype);
            let views = [view(&mut x, DType::F32, &[n], &[1]), view_of];
            // SAFETY: the views lie in their vectors.
            unsafe { run(&program, &[n], &views, &[], &Threads::ONE, &[]) };
        }
        for i in 0..n {
            assert_eq!(bytes[i], truncated[i] as u8, "{}", x[i]);
            assert_eq!((short[i], int[i]), (narrow(truncated[i]) as i16, narrow(truncated[i])), "{}", x[i]);
            assert_eq!(long[i], truncated[i], "{}", x[i]);
        }
    }

    /// Positions and random values are numbered by the dims of the script's tensor, in whatever order a step iterates.
    #[test]
    fn positions_in_the_order_of_the_script() {
        let (rows, columns) = (50, 30);
        for (reduced, strides) in [(0, [1isize, 30]), (0, [50, 1]), (1, [1, 30]), (1, [50, 1])] {
            let mut instrs = vec![
                Instr::Position { out: 0 },
                Instr::Store { reg: 0, slot: 0 },
                Instr::Random { draw: Draw::Word, class: Class::I64, seed: 0, out: 1 },
                Instr::Store { reg: 1, slot: 1 },
            ];
            if reduced == 1 {
                instrs.push(Instr::Reduce { kind: ReduceKind::Sum, reg: 1, class: Class::I64, slot: 2 });
            }
            let mut program = Program::new(instrs, vec![Class::I64; 2], reduced);
            program.order.extend([1, 0]);
            let shape = [columns, rows];
            let (mut at, mut words, mut sums) = (vec![0i64; rows * columns], vec![0i64; rows * columns], [0i64; 30]);
            let views = [
                view(&mut at, DType::I64, &shape, &strides),
                view(&mut words, DType::I64, &shape, &strides),
                view(&mut sums, DType::I64, &[columns], &[1]),
            ];
            // SAFETY: the views lie in their vectors.
            unsafe { run(&program, &shape, &views, &[42, 7], &Threads::ONE, &[]) };
            for (column, &summed) in sums.iter().enumerate().take(columns) {
                let mut sum = 0;
                for row in 0..rows {
                    let place = column * strides[0] as usize + row * strides[1] as usize;
                    let index = row * columns + column;
                    let word = crate::base::rng::word(42, 7, index as u64) as i64;
                    assert_eq!((at[place], words[place]), (index as i64, word), "{strides:?} {row} {column}");
                    sum += word;
                }
                assert_eq!(summed, if reduced == 1 { sum } else { 0 }, "{strides:?} {column}");
            }
        }
    }

    /// Every dtype survives a load and a store, and f16 and bf16 agree with the `half` crate on all bits.
    #[test]
    fn half_conversions() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{bits:#x}");
            assert!(ours.is_nan() || f32_to_f16(ours) == bits);
            assert!(ours.is_nan() || bf16_to_f32(bits).is_nan() || f32_to_bf16(bf16_to_f32(bits)) == bits);
        }
        for i in 0..=u32::MAX / 977 {
            let x = f32::from_bits(i * 977);
            if x.is_nan() {
                assert!(half::f16::from_bits(f32_to_f16(x)).is_nan() && bf16_to_f32(f32_to_bf16(x)).is_nan());
            } else {
                assert_eq!(f32_to_f16(x), half::f16::from_f32(x).to_bits(), "{x:e}");
                assert_eq!(f32_to_bf16(x), half::bf16::from_f32(x).to_bits(), "{x:e}");
            }
        }
    }
}
