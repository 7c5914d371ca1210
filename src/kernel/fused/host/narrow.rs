//! One operation on integers that are shorter than registers, in their own width: in registers of 64 bits a byte costs
//! eight times as much.

use super::{Address, RunArgs, flat};
use crate::base::dtype::DType;
use crate::kernel::abi::{RawView, Threads};
use crate::kernel::elementwise as f;
use crate::kernel::host::simd;
use crate::kernel::program::{Function, Instr, Program, TILE};
use smallvec::SmallVec;

/// Minimal bytes for a thread.
const GRAIN: usize = 128 << 10;

/// Computes `n` elements of two operands.
type Narrow = unsafe fn(a: *const u8, b: *const u8, out: *mut u8, n: usize);

#[derive(Clone, Copy)]
enum Source<'a> {
    View(&'a RawView),
    Number(u64),
}

/// A program that is one such operation.
pub(super) struct Single<'a> {
    operands: [Source<'a>; 2],
    out: &'a RawView,
    narrow: Narrow,
    /// Bytes that `narrow` counts as one element.
    unit: usize,
}

/// The operation of a program that loads or is given two operands, computes, wraps and stores, over views that lie alike.
pub(super) fn single<'a>(program: &Program, given: RunArgs<'a>) -> Option<Single<'a>> {
    let (
        loads @ [_, ..],
        &[
            Instr::Apply { function, args, out: made, .. },
            Instr::Cast { reg, to, out: cast, .. },
            Instr::Store { reg: stored, slot },
        ],
    ) = program.instrs.split_at_checked(program.instrs.len().checked_sub(3)?)?
    else {
        return None;
    };
    let out = &given.views[slot as usize];
    let size = to.size_bytes();
    if !matches!(to, DType::U8 | DType::I8 | DType::I16 | DType::I32)
        || out.dtype != to
        || (reg, stored) != (made, cast)
    {
        return None;
    }
    let (narrow, unit) = narrow(function, size)?;
    let mut sources: SmallVec<[(u16, Source<'a>); 2]> = SmallVec::new();
    for load in loads {
        sources.push(match *load {
            Instr::Load { slot, out } => (out, Source::View(&given.views[slot as usize])),
            Instr::Scalar { index, out, .. } => (out, Source::Number(given.scalars[index as usize])),
            _ => return None,
        });
    }
    let operand = |reg: u16| sources.iter().find(|(at, _)| *at == reg).map(|&(_, source)| source);
    let operands = [operand(args[0])?, operand(args[1])?];
    let lead = if out.is_contiguous() { out } else { flat::in_another_order(std::slice::from_ref(out))? };
    let alike = |view: &RawView| view.dtype == to && view.shape == out.shape && flat::lies_as(view, lead);
    let fits = operands.iter().all(|source| if let Source::View(view) = source { alike(view) } else { true });
    fits.then_some(Single { operands, out, narrow, unit })
}

impl Single<'_> {
    /// Runs it over `n` elements.
    ///
    /// # Safety
    /// As `fused::run`.
    pub unsafe fn run(&self, n: usize, threads: &Threads) {
        let size = self.out.dtype.size_bytes();
        let out = Address(self.out.ptr);
        let operands = self.operands.map(|source| match source {
            Source::View(view) => (Address(view.ptr), 0),
            Source::Number(bits) => (Address(std::ptr::null_mut()), bits),
        });
        threads.split(n, GRAIN / size, |range| {
            let mut numbers = [[0u8; 4 * TILE]; 2];
            let mut stage = [0u8; 4 * TILE];
            for ((operand, bits), numbers) in operands.iter().zip(&mut numbers) {
                if operand.get().is_null() {
                    // The low bytes, which is how numbers are wrapped.
                    let numbers = &mut numbers[..TILE.min(range.len()) * size];
                    numbers.chunks_exact_mut(size).for_each(|one| one.copy_from_slice(&bits.to_le_bytes()[..size]));
                }
            }
            for start in range.clone().step_by(TILE) {
                let count = TILE.min(range.end - start);
                let [a, b] = [0, 1].map(|i| match operands[i].0.get() {
                    view if view.is_null() => numbers[i].as_ptr(),
                    view => view.wrapping_add(start * size).cast_const(),
                });
                let to = out.get().wrapping_add(start * size);
                // The vectorized loop needs distinct memory.
                let staged = a == to.cast_const() || b == to.cast_const();
                // SAFETY: ranges of views without gaps, of which the caller promised the rest; a tile has room in the others.
                unsafe {
                    let target = if staged { stage.as_mut_ptr() } else { to };
                    (self.narrow)(a, b, target, count * size / self.unit);
                    if staged {
                        std::ptr::copy_nonoverlapping(target.cast_const(), to, count * size);
                    }
                }
            }
        });
    }
}

/// The loop of a function over elements of `size` bytes, and the bytes that it counts as one.
fn narrow(function: &'static Function, size: usize) -> Option<(Narrow, usize)> {
    macro_rules! width {
        ($T:ty, |$a:ident, $b:ident| $body:expr) => {{
            const ALL: [Narrow; 3] = simd::levels!(<S> fn(a: *const u8, b: *const u8, out: *mut u8, n: usize) {
                let (a, b, out) = (a.cast::<$T>(), b.cast::<$T>(), out.cast::<$T>());
                for i in 0..n {
                    let ($a, $b) = (a.add(i).read_unaligned(), b.add(i).read_unaligned());
                    out.add(i).write_unaligned($body);
                }
            });
            (ALL[simd::level()], size_of::<$T>())
        }};
    }
    macro_rules! widths {
        (|$a:ident, $b:ident| $body:expr) => {
            match size {
                1 => width!(u8, |$a, $b| $body),
                2 => width!(u16, |$a, $b| $body),
                _ => width!(u32, |$a, $b| $body),
            }
        };
    }
    let is = |other: &'static Function| std::ptr::eq(function, other);
    Some(match () {
        () if is(&f::ADD) => widths!(|a, b| a.wrapping_add(b)),
        () if is(&f::SUB) => widths!(|a, b| a.wrapping_sub(b)),
        () if is(&f::MUL) => widths!(|a, b| a.wrapping_mul(b)),
        () if is(&f::BIT_AND) => width!(u8, |a, b| a & b),
        () if is(&f::BIT_OR) => width!(u8, |a, b| a | b),
        () if is(&f::BIT_XOR) => width!(u8, |a, b| a ^ b),
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::super::tests::{apply, view};
    use super::*;
    use crate::kernel::program::Class;

    const I2: [Class; 2] = [Class::I64, Class::I64];

    /// `a op b`, `a op 5`, `5 op a` and `a op a`, into new memory and into `a`, against arithmetic in 64 bits.
    fn check<T: Copy + PartialEq + std::fmt::Debug>(dtype: DType, wrap: fn(i64) -> T, wide: fn(T) -> i64) {
        let functions: [(&'static Function, fn(i64, i64) -> i64); 6] = [
            (&f::ADD, i64::wrapping_add),
            (&f::SUB, i64::wrapping_sub),
            (&f::MUL, i64::wrapping_mul),
            (&f::BIT_AND, |a, b| a & b),
            (&f::BIT_OR, |a, b| a | b),
            (&f::BIT_XOR, |a, b| a ^ b),
        ];
        let load = |slot: u16| Instr::Load { slot, out: slot };
        let number = Instr::Scalar { index: 0, class: Class::I64, out: 1 };
        for (function, exact) in functions {
            for (form, in_place) in [(0, false), (1, false), (2, false), (3, false), (0, true), (3, true)] {
                let (mut instrs, args) = match form {
                    0 => (vec![load(0), load(1)], [0, 1, 0, 0]),
                    1 => (vec![load(0), number.clone()], [0, 1, 0, 0]),
                    2 => (vec![number.clone(), load(0)], [1, 0, 0, 0]),
                    _ => (vec![load(0)], [0, 0, 0, 0]),
                };
                instrs.push(apply(function, &I2, args, 2));
                instrs.push(Instr::Cast { reg: 2, from: Class::I64, to: dtype, out: 3 });
                instrs.push(Instr::Store { reg: 3, slot: if in_place { 0 } else { 2 } });
                let program = Program::new(instrs, vec![Class::I64; 4], 0);
                let (rows, columns) = (37, 90);
                let shape = [rows, columns];
                for strides in [[90, 1], [1, 37]] {
                    let mut a: Vec<T> = (0..rows * columns).map(|i| wrap(i as i64 * 7_919)).collect();
                    let mut b: Vec<T> = (0..rows * columns).map(|i| wrap(i as i64 * 104_729 - 3)).collect();
                    let mut out = a.clone();
                    let five = [5u64];
                    let expected: Vec<T> = (0..rows * columns)
                        .map(|i| {
                            let (x, y) = (wide(a[i]), wide(b[i]));
                            wrap(match form {
                                0 => exact(x, y),
                                1 => exact(x, 5),
                                2 => exact(5, x),
                                _ => exact(x, x),
                            })
                        })
                        .collect();
                    let views = [
                        view(&mut a, dtype, &shape, &strides),
                        view(&mut b, dtype, &shape, &strides),
                        view(&mut out, dtype, &shape, &strides),
                    ];
                    let given = RunArgs { views: &views, scalars: &five, faults: &[] };
                    assert!(single(&program, given).is_some());
                    // SAFETY: the views lie in their vectors.
                    unsafe { run(&program, &shape, &views, &five, &Threads::new(2), &[]) };
                    assert_eq!(
                        if in_place { &a } else { &out },
                        &expected,
                        "{} {dtype} {form} {in_place}",
                        function.name
                    );
                }
            }
        }
    }

    #[test]
    fn short_integers_wrap_as_in_registers() {
        check::<u8>(DType::U8, |x| x as u8, |x| x as i64);
        check::<i8>(DType::I8, |x| x as i8, |x| x as i64);
        check::<i16>(DType::I16, |x| x as i16, |x| x as i64);
        check::<i32>(DType::I32, |x| x as i32, |x| x as i64);
    }
}
