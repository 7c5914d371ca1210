//! One operation on integers that are shorter than registers, in their own width: in registers of 64 bits a byte costs
//! eight times as much.

use super::{Address, RunArgs, flat};
use crate::base::dtype::DType;
use crate::kernel::abi::{RawView, Threads};
use crate::kernel::elementwise as f;
use crate::kernel::host::simd;
use crate::kernel::program::{Class, Function, Instr, Program};
use smallvec::{SmallVec, smallvec};
use std::mem::MaybeUninit;

/// Minimal bytes for a thread.
const GRAIN: usize = 128 << 10;
/// Bytes of operands that are computed at a time.
const PIECE: usize = 4096;

/// Computes `n` elements of two operands.
type Narrow = unsafe fn(a: *const u8, b: *const u8, out: *mut u8, n: usize);

#[derive(Clone, Copy)]
enum Source<'a> {
    View(&'a RawView),
    /// The bits of a number in registers.
    Number(i64),
}

/// A step of the operation: with the given operand or, from the second step on, with the result so far as the first.
struct Step<'a> {
    operands: [Source<'a>; 2],
    narrow: Narrow,
    /// Bytes that `narrow` counts as one element.
    unit: usize,
}

/// A program that is one such operation.
pub(super) struct Single<'a> {
    steps: SmallVec<[Step<'a>; 2]>,
    out: &'a RawView,
    /// Bytes of an operand's element.
    size: usize,
}

/// The operation of a program that loads or is given operands, computes, wraps and stores, over views that lie alike.
pub(super) fn single<'a>(program: &Program, given: RunArgs<'a>) -> Option<Single<'a>> {
    let (&Instr::Store { reg: stored, slot }, rest) = program.instrs.split_last()? else { return None };
    let out = &given.views[slot as usize];
    let compares = out.dtype == DType::Bool;
    if !(compares || is_narrow(out.dtype)) || simd::level() == PORTABLE {
        return None;
    }
    let (wrapped, rest) = match rest.split_last()? {
        (&Instr::Cast { reg, to, out: cast, .. }, rest) if to == out.dtype && cast == stored => (reg, rest),
        _ => (stored, program.instrs.split_last()?.1),
    };
    let (&Instr::Apply { function, ref args, out: made, .. }, loads) = rest.split_last()? else { return None };
    if made != wrapped {
        return None;
    }
    let mut sources: SmallVec<[(u16, Source<'a>); 4]> = SmallVec::new();
    let mut dtype = None;
    for load in loads {
        sources.push(match *load {
            Instr::Load { slot, out } => {
                let view = &given.views[slot as usize];
                if !is_narrow(view.dtype) || dtype.is_some_and(|dtype| dtype != view.dtype) {
                    return None;
                }
                dtype = Some(view.dtype);
                (out, Source::View(view))
            }
            Instr::Scalar { index, class: Class::I64, out } => {
                (out, Source::Number(given.scalars[index as usize] as i64))
            }
            _ => return None,
        });
    }
    let dtype = dtype.filter(|&dtype| compares || dtype == out.dtype)?;
    let operand = |at: usize| sources.iter().find(|(reg, _)| *reg == args[at]).map(|&(_, source)| source);
    let steps = steps(function, dtype, compares, operand)?;
    let lead = if out.is_contiguous() { out } else { flat::in_another_order(std::slice::from_ref(out))? };
    let alike = |view: &RawView| view.shape == out.shape && flat::lies_as(view, lead);
    let fits = |source: &Source<'_>| if let Source::View(view) = source { alike(view) } else { true };
    let fits = steps.iter().flat_map(|step| &step.operands).all(fits);
    fits.then_some(Single { steps, out, size: dtype.size_bytes() })
}

/// The level of vectors at which everything is computed in registers of tiles.
const PORTABLE: usize = 2;

fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8 | DType::I16 | DType::I32)
}

/// Whether an operand has its value in the dtype too; a view does.
fn is_exact(source: Source<'_>, dtype: DType) -> bool {
    let Source::Number(x) = source else { return true };
    match dtype {
        DType::U8 => u8::try_from(x).is_ok(),
        DType::I8 => i8::try_from(x).is_ok(),
        DType::I16 => i16::try_from(x).is_ok(),
        _ => i32::try_from(x).is_ok(),
    }
}

/// What computes `function` of the operands.
fn steps<'a>(
    function: &'static Function,
    dtype: DType,
    compares: bool,
    operand: impl Fn(usize) -> Option<Source<'a>>,
) -> Option<SmallVec<[Step<'a>; 2]>> {
    let is = |other: &'static Function| std::ptr::eq(function, other);
    let a = operand(0)?;
    let step = |kind: Kind, operands: [Source<'a>; 2]| {
        let (narrow, unit) = narrow(kind, dtype);
        Step { operands, narrow, unit }
    };
    if is(&f::NEG) && !compares {
        return Some(smallvec![step(Kind::Sub, [Source::Number(0), a])]);
    }
    if is(&f::BIT_NOT) && !compares {
        return Some(smallvec![step(Kind::Xor, [a, Source::Number(-1)])]);
    }
    if is(&f::ABS) && !compares && dtype != DType::U8 {
        return Some(smallvec![step(Kind::Abs, [a, a])]);
    }
    let b = operand(1)?;
    if is(&f::CLAMP) && !compares {
        let c = operand(2)?;
        let (low, high) = (step(Kind::Max, [a, b]), step(Kind::Min, [a, c]));
        return (is_exact(b, dtype) && is_exact(c, dtype)).then(|| smallvec![low, high]);
    }
    let kinds: [(&'static Function, Kind, bool); 14] = [
        (&f::ADD, Kind::Add, false),
        (&f::SUB, Kind::Sub, false),
        (&f::MUL, Kind::Mul, false),
        (&f::BIT_AND, Kind::And, false),
        (&f::BIT_OR, Kind::Or, false),
        (&f::BIT_XOR, Kind::Xor, false),
        (&f::MAXIMUM, Kind::Max, false),
        (&f::MINIMUM, Kind::Min, false),
        (&f::EQ, Kind::Eq, true),
        (&f::NE, Kind::Ne, true),
        (&f::LT, Kind::Lt, true),
        (&f::LE, Kind::Le, true),
        (&f::GT, Kind::Lt, true),
        (&f::GE, Kind::Le, true),
    ];
    let &(_, kind, gives_bool) = kinds.iter().find(|(function, ..)| is(function))?;
    let wraps = matches!(kind, Kind::Add | Kind::Sub | Kind::Mul | Kind::And | Kind::Or | Kind::Xor);
    let exact = wraps || (is_exact(a, dtype) && is_exact(b, dtype));
    let operands = if is(&f::GT) || is(&f::GE) { [b, a] } else { [a, b] };
    (exact && gives_bool == compares).then(|| smallvec![step(kind, operands)])
}

impl Single<'_> {
    /// Runs it over `n` elements.
    ///
    /// # Safety
    /// As `fused::run`.
    pub unsafe fn run(&self, n: usize, threads: &Threads) {
        let (size, out_size) = (self.size, self.out.dtype.size_bytes());
        let out = Address(self.out.ptr);
        type Addresses = [(Address, i64); 2];
        let address = |source: &Source<'_>| match *source {
            Source::View(view) => (Address(view.ptr), 0),
            Source::Number(bits) => (Address(std::ptr::null_mut()), bits),
        };
        let steps: SmallVec<[(Addresses, Narrow, usize); 2]> =
            self.steps.iter().map(|step| (step.operands.each_ref().map(address), step.narrow, step.unit)).collect();
        threads.split(n, GRAIN / size, |range| {
            // For a number of the first operand, for one of each step, and for results.
            let mut memory = MaybeUninit::<[[u64; PIECE / 8]; 4]>::uninit();
            let memory = memory.as_mut_ptr().cast::<u8>();
            let buffer = |at: usize| memory.wrapping_add(at * PIECE);
            let stage = buffer(3);
            let longest = (PIECE / size).min(range.len());
            for (at, (operands, ..)) in steps.iter().enumerate() {
                for (i, (operand, bits)) in operands.iter().enumerate() {
                    if operand.get().is_null() && (at == 0 || i == 1) {
                        // SAFETY: each buffer has a piece's bytes.
                        unsafe { repeat(*bits, size, buffer(i + at), longest) };
                    }
                }
            }
            for start in range.clone().step_by(PIECE / size) {
                let count = (PIECE / size).min(range.end - start);
                let to = out.get().wrapping_add(start * out_size);
                for (at, &(operands, narrow, unit)) in steps.iter().enumerate() {
                    let place = |i: usize| match operands[i].0.get() {
                        _ if at > 0 && i == 0 => to.cast_const(),
                        view if view.is_null() => buffer(i + at).cast_const(),
                        view => view.wrapping_add(start * size).cast_const(),
                    };
                    let (a, b) = (place(0), place(1));
                    // The vectorized loop needs distinct memory.
                    let staged = a == to.cast_const() || b == to.cast_const();
                    // SAFETY: ranges of views without gaps, of which the caller promised the rest; a piece has room in the
                    // buffers.
                    unsafe {
                        let target = if staged { stage } else { to };
                        narrow(a, b, target, count * size / unit);
                        if staged {
                            std::ptr::copy_nonoverlapping(target.cast_const(), to, count * out_size);
                        }
                    }
                }
            }
        });
    }
}

/// Writes the low bytes of a number `n` times, which is how numbers are wrapped.
///
/// # Safety
/// `to` has room for them and is aligned to 8.
unsafe fn repeat(bits: i64, size: usize, to: *mut u8, n: usize) {
    // SAFETY: this function's contract.
    unsafe {
        match size {
            1 => std::slice::from_raw_parts_mut(to, n).fill(bits as u8),
            2 => std::slice::from_raw_parts_mut(to.cast::<u16>(), n).fill(bits as u16),
            _ => std::slice::from_raw_parts_mut(to.cast::<u32>(), n).fill(bits as u32),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Max,
    Min,
    Abs,
    Eq,
    Ne,
    Lt,
    Le,
}

/// The loop over elements of a dtype, and the bytes that it counts as one. AVX-512 runs what is compiled for AVX2, which takes
/// half of the code.
fn narrow(kind: Kind, dtype: DType) -> (Narrow, usize) {
    macro_rules! width {
        ($T:ty => $O:ty, |$a:ident, $b:ident| $body:expr) => {{
            const ALL: [Narrow; 3] = simd::levels!(<S> fn(a: *const u8, b: *const u8, out: *mut u8, n: usize) {
                let (a, b, out) = (a.cast::<$T>(), b.cast::<$T>(), out.cast::<$O>());
                for i in 0..n {
                    let ($a, $b) = (*a.add(i), *b.add(i));
                    *out.add(i) = $body;
                }
            });
            const AVX2: Narrow = ALL[1];
            (AVX2, size_of::<$T>())
        }};
    }
    macro_rules! unsigned {
        (|$a:ident, $b:ident| $body:expr) => {
            match dtype {
                DType::U8 | DType::I8 => width!(u8 => u8, |$a, $b| $body),
                DType::I16 => width!(u16 => u16, |$a, $b| $body),
                _ => width!(u32 => u32, |$a, $b| $body),
            }
        };
    }
    macro_rules! equal {
        (|$a:ident, $b:ident| $body:expr) => {
            match dtype {
                DType::U8 | DType::I8 => width!(u8 => u8, |$a, $b| $body as u8),
                DType::I16 => width!(u16 => u8, |$a, $b| $body as u8),
                _ => width!(u32 => u8, |$a, $b| $body as u8),
            }
        };
    }
    macro_rules! compared {
        (|$a:ident, $b:ident| $body:expr) => {
            match dtype {
                DType::U8 => width!(u8 => u8, |$a, $b| $body as u8),
                DType::I8 => width!(i8 => u8, |$a, $b| $body as u8),
                DType::I16 => width!(i16 => u8, |$a, $b| $body as u8),
                _ => width!(i32 => u8, |$a, $b| $body as u8),
            }
        };
    }
    macro_rules! chosen {
        (|$a:ident, $b:ident| $body:expr) => {
            match dtype {
                DType::U8 => width!(u8 => u8, |$a, $b| $body),
                DType::I8 => width!(i8 => i8, |$a, $b| $body),
                DType::I16 => width!(i16 => i16, |$a, $b| $body),
                _ => width!(i32 => i32, |$a, $b| $body),
            }
        };
    }
    match kind {
        Kind::Add => unsigned!(|a, b| a.wrapping_add(b)),
        Kind::Sub => unsigned!(|a, b| a.wrapping_sub(b)),
        Kind::Mul => unsigned!(|a, b| a.wrapping_mul(b)),
        Kind::And => width!(u8 => u8, |a, b| a & b),
        Kind::Or => width!(u8 => u8, |a, b| a | b),
        Kind::Xor => width!(u8 => u8, |a, b| a ^ b),
        Kind::Max => chosen!(|a, b| if a > b { a } else { b }),
        Kind::Min => chosen!(|a, b| if a < b { a } else { b }),
        Kind::Abs => match dtype {
            DType::I8 => width!(i8 => i8, |a, _b| a.wrapping_abs()),
            DType::I16 => width!(i16 => i16, |a, _b| a.wrapping_abs()),
            _ => width!(i32 => i32, |a, _b| a.wrapping_abs()),
        },
        Kind::Eq => equal!(|a, b| (a == b)),
        Kind::Ne => equal!(|a, b| (a != b)),
        Kind::Lt => compared!(|a, b| (a < b)),
        Kind::Le => compared!(|a, b| (a <= b)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::super::tests::{apply, view};
    use super::*;

    type Exact = fn(i64, i64) -> i64;
    const FUNCTIONS: [(&Function, Exact); 17] = [
        (&f::ADD, i64::wrapping_add),
        (&f::SUB, i64::wrapping_sub),
        (&f::MUL, i64::wrapping_mul),
        (&f::BIT_AND, |a, b| a & b),
        (&f::BIT_OR, |a, b| a | b),
        (&f::BIT_XOR, |a, b| a ^ b),
        (&f::MAXIMUM, |a, b| a.max(b)),
        (&f::MINIMUM, |a, b| a.min(b)),
        (&f::NEG, |a, _| a.wrapping_neg()),
        (&f::ABS, |a, _| a.wrapping_abs()),
        (&f::BIT_NOT, |a, _| !a),
        (&f::EQ, |a, b| (a == b) as i64),
        (&f::NE, |a, b| (a != b) as i64),
        (&f::LT, |a, b| (a < b) as i64),
        (&f::LE, |a, b| (a <= b) as i64),
        (&f::GT, |a, b| (a > b) as i64),
        (&f::GE, |a, b| (a >= b) as i64),
    ];

    /// `a op b`, `a op 5`, `5 op a` and `a op a`, into new memory and into `a`, against arithmetic in 64 bits.
    fn check<T: Copy + PartialEq + std::fmt::Debug>(dtype: DType, wrap: fn(i64) -> T, wide: fn(T) -> i64) {
        let load = |slot: u16| Instr::Load { slot, out: slot };
        let number = Instr::Scalar { index: 0, class: Class::I64, out: 1 };
        for (at, (function, exact)) in FUNCTIONS.into_iter().enumerate() {
            let (unary, compares) = ((8..11).contains(&at), at > 10);
            let forms = [(0, false), (1, false), (2, false), (3, false), (0, true), (3, true)];
            for (form, in_place) in forms.into_iter().filter(|&(form, place)| !(unary && form > 0 || compares && place))
            {
                let (mut instrs, args) = match form {
                    0 => (vec![load(0), load(1)], [0, 1, 0, 0]),
                    1 => (vec![load(0), number.clone()], [0, 1, 0, 0]),
                    2 => (vec![number.clone(), load(0)], [1, 0, 0, 0]),
                    _ => (vec![load(0)], [0, 0, 0, 0]),
                };
                let classes = [Class::I64; 2];
                instrs.push(apply(function, &classes[..if unary { 1 } else { 2 }], args, 2));
                if !compares {
                    instrs.push(Instr::Cast { reg: 2, from: Class::I64, to: dtype, out: 3 });
                }
                let slot = if in_place { 0 } else { 2 };
                instrs.push(Instr::Store { reg: if compares { 2 } else { 3 }, slot });
                let mut regs = vec![Class::I64; 4];
                regs[2] = if compares { Class::Bool } else { Class::I64 };
                let program = Program::new(instrs, regs, 0);
                let (rows, columns) = (137, 90);
                let shape = [rows, columns];
                for strides in [[90, 1], [1, 137]] {
                    let mut a: Vec<T> = (0..rows * columns).map(|i| wrap(i as i64 * 7_919)).collect();
                    let mut b: Vec<T> = (0..rows * columns).map(|i| wrap(i as i64 * 104_729 % 77 - 3)).collect();
                    let mut out = a.clone();
                    let mut bits = vec![7u8; rows * columns];
                    let five = [5u64];
                    let expected: Vec<i64> = (0..rows * columns)
                        .map(|i| {
                            let (x, y) = (wide(a[i]), wide(b[i]));
                            let value = match form {
                                0 => exact(x, y),
                                1 => exact(x, 5),
                                2 => exact(5, x),
                                _ => exact(x, x),
                            };
                            if compares { value } else { wide(wrap(value)) }
                        })
                        .collect();
                    let result = if compares {
                        view(&mut bits, DType::Bool, &shape, &strides)
                    } else {
                        view(&mut out, dtype, &shape, &strides)
                    };
                    let views = [view(&mut a, dtype, &shape, &strides), view(&mut b, dtype, &shape, &strides), result];
                    let given = RunArgs { views: &views, scalars: &five, faults: &[] };
                    let own_width = simd::level() != PORTABLE && !(at == 9 && dtype == DType::U8);
                    assert_eq!(single(&program, given).is_some(), own_width, "{} {dtype} {form}", function.name);
                    // SAFETY: the views lie in their vectors.
                    unsafe { run(&program, &shape, &views, &five, &Threads::new(2), &[]) };
                    let got: Vec<i64> = match (compares, in_place) {
                        (true, _) => bits.iter().map(|&bit| bit as i64).collect(),
                        (_, true) => a.iter().map(|&x| wide(x)).collect(),
                        _ => out.iter().map(|&x| wide(x)).collect(),
                    };
                    assert!(got == expected, "{} {dtype} {form} {in_place}", function.name);
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

    /// Clamping takes two steps; bounds that the dtype cannot hold are left to registers.
    #[test]
    fn clamps() {
        for (bounds, in_place) in [([-5i64, 9], false), ([-5, 9], true), ([-500, 9], false), ([9, -5], false)] {
            let program = Program::new(
                vec![
                    Instr::Load { slot: 0, out: 0 },
                    Instr::Scalar { index: 0, class: Class::I64, out: 1 },
                    Instr::Scalar { index: 1, class: Class::I64, out: 2 },
                    apply(&f::CLAMP, &[Class::I64; 3], [0, 1, 2, 0], 3),
                    Instr::Cast { reg: 3, from: Class::I64, to: DType::I8, out: 4 },
                    Instr::Store { reg: 4, slot: if in_place { 0 } else { 1 } },
                ],
                vec![Class::I64; 5],
                0,
            );
            let n = 10_001;
            let mut x: Vec<i8> = (0..n).map(|i| (i * 7) as i8).collect();
            let expected: Vec<i8> = x.iter().map(|&x| (x as i64).max(bounds[0]).min(bounds[1]) as i8).collect();
            let mut y = vec![0i8; n];
            let views = [view(&mut x, DType::I8, &[n], &[1]), view(&mut y, DType::I8, &[n], &[1])];
            let scalars = bounds.map(|bound| bound as u64);
            // SAFETY: the views lie in their vectors.
            unsafe { run(&program, &[n], &views, &scalars, &Threads::ONE, &[]) };
            assert!(if in_place { &x } else { &y } == &expected, "{bounds:?} {in_place}");
        }
    }
}
