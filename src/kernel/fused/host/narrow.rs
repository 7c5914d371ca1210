//! Functions of elements that are shorter than registers, in their own width: in registers of 64 bits a byte costs eight
//! times as much.
//!
//! A function gives what its class gives after wrapping to the dtype, or rounding to it.

use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::elementwise as f;
use crate::kernel::host::simd;
use crate::kernel::program::{Class, Function, Instr, Program, TileFn, Variant};

/// Minimal bytes for a thread.
pub(super) const GRAIN_BYTES: usize = 128 << 10;
/// Bytes of a tile's register.
pub(super) const TILE_BYTES: usize = 8 << 10;
/// Elements that are computed at a time where the result replaces an operand. Not: fewer, whose loop is unrolled before it can
/// become vectors.
const BLOCK: usize = 128;
/// The level of vectors at which everything is computed in the registers of classes.
const PORTABLE: usize = 2;

/// By bit masks: branches are not vectorized.
macro_rules! chosen {
    ($c:ident, $b:ident, $other:ident) => {{
        let all = (0 as T).wrapping_sub(($c != 0) as T);
        $b & all | $other & !all
    }};
}

/// The one dtype of a program's views beside `bool`, if its elements are short; `bool` if there is no other.
pub(super) fn dtype_of(program: &Program, views: &[RawView]) -> Option<DType> {
    let mut found = None;
    for instr in &program.instrs {
        let (Instr::Load { slot, .. } | Instr::Store { slot, .. }) = *instr else { continue };
        let dtype = views[slot as usize].dtype;
        if dtype == DType::Bool {
            continue;
        }
        if dtype.size_bytes() > 4 || dtype == DType::F32 || found.is_some_and(|found| found != dtype) {
            return None;
        }
        found = Some(dtype);
    }
    Some(found.unwrap_or(DType::Bool)).filter(|_| simd::level() != PORTABLE)
}

/// Whether an integer has its value in the dtype too; numbers beside floats are rounded anyway.
pub(super) fn is_exact(x: i64, dtype: DType) -> bool {
    match dtype {
        DType::U8 => u8::try_from(x).is_ok(),
        DType::I8 => i8::try_from(x).is_ok(),
        DType::I16 => i16::try_from(x).is_ok(),
        DType::I32 => i32::try_from(x).is_ok(),
        _ => true,
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Integers, their index in `Own`.
fn index_of(dtype: DType) -> Option<usize> {
    [DType::U8, DType::I8, DType::I16, DType::I32].iter().position(|&own| own == dtype)
}

/// For u8, i8, i16 and i32.
type Own = [TileFn; 4];

/// A `TileFn` over elements of any type. AVX-512 runs what is compiled for AVX2, which takes half of the code. The vectorized loop
/// needs distinct memory, so that where the result replaces an operand it is computed in blocks beside it.
macro_rules! own {
    (($($arg:ident: $A:ty),*) -> $O:ty = $body:expr) => {{
        const ALL: [TileFn; 3] = simd::levels!(<S> fn(args: &[*const u8; 4], out: *mut u8, n: usize) {
            let mut done = 0;
            if $(args[simd::nth!($arg)] == out.cast_const())||* {
                while done + BLOCK <= n {
                    let mut block = [0 as $O; BLOCK];
                    for l in 0..BLOCK {
                        $(let $arg = *args[simd::nth!($arg)].cast::<$A>().add(done + l);)*
                        block[l] = $body;
                    }
                    out.cast::<$O>().add(done).cast::<[$O; BLOCK]>().write_unaligned(block);
                    done += BLOCK;
                }
            }
            for i in done..n {
                $(let $arg = *args[simd::nth!($arg)].cast::<$A>().add(i);)*
                *out.cast::<$O>().add(i) = $body;
            }
        });
        const AVX2: TileFn = ALL[1];
        AVX2
    }};
}

/// `Own` of one expression: `bits` for what does not ask for the sign, `signs` for what does; `is` instead of `=` for truth
/// values. `T` names the type.
macro_rules! each {
    (bits ($($a:ident),*) $($rest:tt)*) => {{
        const OF: [TileFn; 3] = [
            each!(@ u8 ($($a),*) $($rest)*),
            each!(@ u16 ($($a),*) $($rest)*),
            each!(@ u32 ($($a),*) $($rest)*),
        ];
        [OF[0], OF[0], OF[1], OF[2]]
    }};
    (signs ($($a:ident),*) $($rest:tt)*) => {
        [
            each!(@ u8 ($($a),*) $($rest)*),
            each!(@ i8 ($($a),*) $($rest)*),
            each!(@ i16 ($($a),*) $($rest)*),
            each!(@ i32 ($($a),*) $($rest)*),
        ]
    };
    (@ $T:ident ($($a:ident),*) is $body:expr) => {{
        #[allow(dead_code)]
        type T = $T;
        own!(($($a: $T),*) -> u8 = ($body) as u8)
    }};
    (@ $T:ident ($($a:ident),*) = $body:expr) => {{
        #[allow(dead_code)]
        type T = $T;
        own!(($($a: $T),*) -> $T = $body)
    }};
    (@ $T:ident ($c:ident?, $($a:ident),*) = $body:expr) => {{
        #[allow(dead_code)]
        type T = $T;
        own!(($c: u8, $($a: $T),*) -> $T = $body)
    }};
}

/// Functions of integers that give integers, and whether scalars beside them must have their value in the dtype: those that
/// depend on the lowest bits alone wrap them.
// Unsigned integers are never below 0.
#[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
static NUMBERS: &[(&Function, bool, Own)] = &[
    (&f::ADD, false, each!(bits(a, b) = a.wrapping_add(b))),
    (&f::SUB, false, each!(bits(a, b) = a.wrapping_sub(b))),
    (&f::MUL, false, each!(bits(a, b) = a.wrapping_mul(b))),
    (&f::FMA, false, each!(bits(a, b, c, d) = a.wrapping_add(b.wrapping_mul(c).wrapping_mul(d)))),
    (&f::SQUARE, false, each!(bits(a) = a.wrapping_mul(a))),
    (&f::NEG, false, each!(bits(a) = (0 as T).wrapping_sub(a))),
    (&f::BIT_AND, false, each!(bits(a, b) = a & b)),
    (&f::BIT_OR, false, each!(bits(a, b) = a | b)),
    (&f::BIT_XOR, false, each!(bits(a, b) = a ^ b)),
    (&f::BIT_NOT, false, each!(bits(a) = !a)),
    (&f::ABS, true, each!(signs(a) = if a < 0 { (0 as T).wrapping_sub(a) } else { a })),
    (&f::SIGN, true, each!(signs(a) = if a > 0 { 1 } else { (0 as T).wrapping_sub((a < 0) as T) })),
    (&f::RELU, true, each!(signs(a) = if a < 0 { 0 } else { a })),
    (&f::MAXIMUM, true, each!(signs(a, b) = if a > b { a } else { b })),
    (&f::MINIMUM, true, each!(signs(a, b) = if a < b { a } else { b })),
    (
        &f::CLAMP,
        true,
        each!(
            signs(a, b, c) = {
                let y = if a < b { b } else { a };
                if y > c { c } else { y }
            }
        ),
    ),
    (
        &f::SHL,
        true,
        each!(
            bits(a, b) = {
                let shifted = a.wrapping_shl(b as u32);
                if b > T::BITS as T - 1 { 0 } else { shifted }
            }
        ),
    ),
    (
        &f::SHR,
        true,
        each!(
            signs(a, b) = {
                const LAST: T = T::BITS as T - 1;
                let far = !(0..=LAST).contains(&b);
                let near = a.wrapping_shr(if far { LAST } else { b } as u32);
                // What is left is the sign.
                near.wrapping_shr(far as u32)
            }
        ),
    ),
];

/// The same of those that give truth values.
// Unsigned integers are never below 0.
#[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
static TRUTHS: &[(&Function, Own)] = &[
    (&f::EQ, each!(bits (a, b) is a == b)),
    (&f::NE, each!(bits (a, b) is a != b)),
    (&f::LT, each!(signs (a, b) is a < b)),
    (&f::LE, each!(signs (a, b) is a <= b)),
    (&f::GT, each!(signs (a, b) is a > b)),
    (&f::GE, each!(signs (a, b) is a >= b)),
    (&f::SIGNBIT, each!(signs (a) is a < 0)),
    (&f::ISNAN, NEVER),
    (&f::ISINF, NEVER),
    (&f::ISFINITE, ALWAYS),
];

const NEVER: Own = each!(bits (a) is { let _ = a; false });
const ALWAYS: Own = each!(bits (a) is { let _ = a; true });
/// Between truth values and integers, and the choice between two elements.
const TRUTH: Own = each!(bits (a) is a != 0);
const FROM_TRUTH: [TileFn; 3] =
    [own!((a: u8) -> u8 = a), own!((a: u8) -> u16 = a as u16), own!((a: u8) -> u32 = a as u32)];
const CHOICE: [TileFn; 3] = [
    each!(@ u8 (a?, b, c) = chosen!(a, b, c)),
    each!(@ u16 (a?, b, c) = chosen!(a, b, c)),
    each!(@ u32 (a?, b, c) = chosen!(a, b, c)),
];
/// The sign of 16-bit floats.
const SIGN: u16 = 1 << 15;
const NEG_HALF: TileFn = own!((a: u16) -> u16 = a ^ SIGN);
const ABS_HALF: TileFn = own!((a: u16) -> u16 = a & !SIGN);
const TRUTH_HALF: TileFn = own!((a: u16) -> u8 = (a & !SIGN != 0) as u8);

const NOT: TileFn = own!((a: u8) -> u8 = a ^ 1);

/// The function of truth values, which are bits.
pub(super) fn of_truths(function: &'static Function) -> Option<TileFn> {
    const AND: &[&Function] = &[&f::LOGICAL_AND, &f::BIT_AND, &f::MUL, &f::MINIMUM];
    const OR: &[&Function] = &[&f::LOGICAL_OR, &f::BIT_OR, &f::ADD, &f::MAXIMUM];
    const XOR: &[&Function] = &[&f::LOGICAL_XOR, &f::BIT_XOR, &f::NE];
    let is = |others: &[&'static Function]| others.iter().any(|other| std::ptr::eq(function, *other));
    let bits = match () {
        () if is(&[&f::LOGICAL_NOT, &f::BIT_NOT]) => return Some(NOT),
        () if is(&[&f::WHERE]) => return Some(CHOICE[0]),
        () if is(AND) => &f::BIT_AND,
        () if is(OR) => &f::BIT_OR,
        () if is(XOR) => &f::BIT_XOR,
        () => return None,
    };
    NUMBERS.iter().find(|(function, ..)| std::ptr::eq(*function, bits)).map(|(_, _, own)| own[0])
}

/// The function for elements of `dtype`, and whether scalars beside it must have their value in the dtype.
pub(super) fn tile(function: &'static Function, variant: &Variant, dtype: DType) -> Option<(TileFn, bool)> {
    let is = |other: &'static Function| std::ptr::eq(function, other);
    if dtype == DType::Bool {
        return None;
    }
    if is(&f::WHERE) {
        return Some((CHOICE[dtype.size_bytes() / 2], false));
    }
    let Some(at) = index_of(dtype) else {
        let half = if is(&f::NEG) { NEG_HALF } else { ABS_HALF };
        return (is(&f::NEG) || is(&f::ABS)).then_some((half, false));
    };
    if variant.out == Class::Bool {
        return TRUTHS.iter().find(|(function, _)| is(function)).map(|(_, own)| (own[at], true));
    }
    NUMBERS.iter().find(|(function, ..)| is(function)).map(|&(_, exact, own)| (own[at], exact))
}

/// Conversions between elements of `dtype` and truth values.
pub(super) fn cast(from: Class, to: DType, dtype: DType) -> Option<TileFn> {
    match (from, to) {
        (Class::I64, DType::Bool) => Some(TRUTH[index_of(dtype)?]),
        (Class::F32, DType::Bool) => is_half(dtype).then_some(TRUTH_HALF),
        (Class::Bool, _) if to == dtype => index_of(dtype).map(|_| FROM_TRUTH[dtype.size_bytes() / 2]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Code;
    use super::super::run;
    use super::super::tests::{apply, view};
    use super::*;
    use crate::kernel::abi::Threads;

    type Exact = fn(i64, i64) -> i64;
    const FUNCTIONS: [(&Function, Exact); 25] = [
        (&f::ADD, i64::wrapping_add),
        (&f::SUB, i64::wrapping_sub),
        (&f::MUL, i64::wrapping_mul),
        (&f::BIT_AND, |a, b| a & b),
        (&f::BIT_OR, |a, b| a | b),
        (&f::BIT_XOR, |a, b| a ^ b),
        (&f::MAXIMUM, |a, b| a.max(b)),
        (&f::MINIMUM, |a, b| a.min(b)),
        (&f::SHL, |a, b| if (0..64).contains(&b) { a << b } else { 0 }),
        (&f::SHR, |a, b| a >> if (0..64).contains(&b) { b } else { 63 }),
        (&f::NEG, |a, _| a.wrapping_neg()),
        (&f::ABS, |a, _| a.wrapping_abs()),
        (&f::BIT_NOT, |a, _| !a),
        (&f::SQUARE, |a, _| a.wrapping_mul(a)),
        (&f::SIGN, |a, _| a.signum()),
        (&f::RELU, |a, _| a.max(0)),
        (&f::EQ, |a, b| (a == b) as i64),
        (&f::NE, |a, b| (a != b) as i64),
        (&f::LT, |a, b| (a < b) as i64),
        (&f::LE, |a, b| (a <= b) as i64),
        (&f::GT, |a, b| (a > b) as i64),
        (&f::GE, |a, b| (a >= b) as i64),
        (&f::SIGNBIT, |a, _| (a < 0) as i64),
        (&f::ISNAN, |_, _| 0),
        (&f::ISFINITE, |_, _| 1),
    ];

    /// `a op b`, `a op 5`, `5 op a` and `a op a`, into new memory and into `a`, against arithmetic in 64 bits.
    fn check<T: Copy + PartialEq + std::fmt::Debug>(dtype: DType, wrap: fn(i64) -> T, wide: fn(T) -> i64) {
        for (function, exact) in FUNCTIONS {
            let of_numbers = function.variants.iter().find(|variant| variant.args[0] == Class::I64).unwrap();
            let (unary, compares) = (of_numbers.args.len() == 1, of_numbers.out == Class::Bool);
            for (form, in_place) in [(0, false), (1, false), (2, false), (3, false), (0, true), (3, true)] {
                if unary && form > 0 || compares && in_place {
                    continue;
                }
                let program = program_of(function, of_numbers.args, dtype, form, compares, in_place);
                let (rows, columns) = (137, 90);
                let (shape, n) = ([rows, columns], rows * columns);
                let dense = [90, 1];
                for (strides, others) in
                    [(dense, dense), ([1, 137], [1, 137]), (dense, [0, 1]), (dense, [1, 0]), ([1, 137], dense)]
                {
                    let mut a: Vec<T> = (0..n).map(|i| wrap(i as i64 * 7_919)).collect();
                    let mut b: Vec<T> = (0..n).map(|i| wrap(i as i64 * 104_729 % 77 - 3)).collect();
                    let mut out = a.clone();
                    let mut bits = vec![7u8; n];
                    let five = [5u64];
                    let at = |strides: [isize; 2], i: usize| {
                        (i / columns) as isize * strides[0] + (i % columns) as isize * strides[1]
                    };
                    let expected: Vec<i64> = (0..n)
                        .map(|i| {
                            let (x, y) = (wide(a[at(strides, i) as usize]), wide(b[at(others, i) as usize]));
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
                    let views = [view(&mut a, dtype, &shape, &strides), view(&mut b, dtype, &shape, &others), result];
                    let own_width = Code::narrow(&program, &views).is_some();
                    assert_eq!(own_width, simd::level() != PORTABLE, "{} {dtype} {form}", function.name);
                    // SAFETY: the views lie in their vectors.
                    unsafe { run(&program, &shape, &views, &five, &Threads::new(2), &[]) };
                    let got = |i: usize| match (compares, in_place) {
                        (true, _) => bits[at(strides, i) as usize] as i64,
                        (_, true) => wide(a[at(strides, i) as usize]),
                        _ => wide(out[at(strides, i) as usize]),
                    };
                    assert!((0..n).all(|i| got(i) == expected[i]), "{} {dtype} {form} {in_place}", function.name);
                }
            }
        }
    }

    fn program_of(
        function: &'static Function,
        classes: &[Class],
        dtype: DType,
        form: usize,
        compares: bool,
        in_place: bool,
    ) -> Program {
        let load = |slot: u16| Instr::Load { slot, out: slot };
        let number = Instr::Scalar { index: 0, class: Class::I64, out: 1 };
        let (mut instrs, args) = match form {
            0 => (vec![load(0), load(1)], [0, 1, 0, 0]),
            1 => (vec![load(0), number], [0, 1, 0, 0]),
            2 => (vec![number, load(0)], [1, 0, 0, 0]),
            _ => (vec![load(0)], [0, 0, 0, 0]),
        };
        instrs.push(apply(function, classes, args, 2));
        if !compares {
            instrs.push(Instr::Cast { reg: 2, from: Class::I64, to: dtype, out: 3 });
        }
        let slot = if in_place { 0 } else { 2 };
        instrs.push(Instr::Store { reg: if compares { 2 } else { 3 }, slot });
        let mut regs = vec![Class::I64; 4];
        regs[2] = if compares { Class::Bool } else { Class::I64 };
        Program::new(instrs, regs, 0)
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

    /// Functions of truth values, against what every level computes them with.
    #[test]
    fn functions_of_truth_values() {
        let functions = [
            &f::LOGICAL_AND,
            &f::LOGICAL_OR,
            &f::LOGICAL_XOR,
            &f::LOGICAL_NOT,
            &f::BIT_AND,
            &f::BIT_OR,
            &f::BIT_XOR,
            &f::BIT_NOT,
            &f::ADD,
            &f::MUL,
            &f::MAXIMUM,
            &f::MINIMUM,
            &f::NE,
            &f::WHERE,
        ];
        for function in functions {
            let general = function
                .variants
                .iter()
                .find(|variant| variant.args.iter().all(|&class| class == Class::Bool))
                .unwrap();
            let operands: Vec<[u8; 8]> = (0..3).map(|bit| std::array::from_fn(|i| (i >> bit & 1) as u8)).collect();
            let args = [0, 1, 2, 2].map(|at: usize| operands[at].as_ptr());
            let (mut expected, mut got) = ([7u8; 8], [9u8; 8]);
            // SAFETY: all arrays have eight elements; every machine has the last level, and `of_truths` is for those above it.
            unsafe {
                general.tiles[PORTABLE](&args, expected.as_mut_ptr(), 8);
                if simd::level() != PORTABLE {
                    of_truths(function).unwrap()(&args, got.as_mut_ptr(), 8);
                    assert_eq!(got, expected, "{}", function.name);
                }
            }
        }
    }

    /// What is not wrapped yet is not read in the own width: `(a + b) / 2` before wrapping.
    #[test]
    fn values_that_are_not_wrapped_stay_in_registers() {
        let two = [Class::I64; 2];
        let add = apply(&f::ADD, &two, [0, 1, 0, 0], 2);
        let wrapped = Instr::Cast { reg: 3, from: Class::I64, to: DType::U8, out: 3 };
        let program = Program::new(
            vec![
                Instr::Load { slot: 0, out: 0 },
                Instr::Load { slot: 1, out: 1 },
                add,
                apply(&f::SHR, &two, [2, 1, 0, 0], 3),
                wrapped,
                Instr::Store { reg: 3, slot: 2 },
            ],
            vec![Class::I64; 4],
            0,
        );
        let (mut a, mut b, mut out) = ([200u8; 70], [100u8; 70], [0u8; 70]);
        b[7] = 1;
        let views = [&mut a, &mut b, &mut out].map(|data| view(data, DType::U8, &[70], &[1]));
        assert!(Code::narrow(&program, &views).is_none());
        // SAFETY: the views lie in their vectors.
        unsafe { run(&program, &[70], &views, &[], &Threads::ONE, &[]) };
        assert_eq!((out[6], out[7]), (0, 100));
    }

    /// `where`, truth values of integers and of 16-bit floats, and integers of truth values.
    #[test]
    fn truth_values() {
        let n = 9000;
        let mut x: Vec<i16> = (0..n).map(|i| (i % 7) as i16 - 3).collect();
        let mut y: Vec<i16> = (0..n).map(|i| i as i16).collect();
        let mut out = vec![0i16; n];
        let program = Program::new(
            vec![
                Instr::Load { slot: 0, out: 0 },
                Instr::Load { slot: 1, out: 1 },
                Instr::Cast { reg: 0, from: Class::I64, to: DType::Bool, out: 2 },
                Instr::Cast { reg: 2, from: Class::Bool, to: DType::I16, out: 3 },
                apply(&f::WHERE, &[Class::Bool, Class::I64, Class::I64], [2, 1, 3, 0], 4),
                Instr::Cast { reg: 4, from: Class::I64, to: DType::I16, out: 4 },
                Instr::Store { reg: 4, slot: 2 },
            ],
            vec![Class::I64, Class::I64, Class::Bool, Class::I64, Class::I64],
            0,
        );
        let views = [&mut x, &mut y, &mut out].map(|data| view(data, DType::I16, &[n], &[1]));
        assert_eq!(Code::narrow(&program, &views).is_some(), simd::level() != PORTABLE);
        // SAFETY: the views lie in their vectors.
        unsafe { run(&program, &[n], &views, &[], &Threads::new(2), &[]) };
        assert!((0..n).all(|i| out[i] == if x[i] != 0 { y[i] } else { 0 }));
    }

    /// The sign of 16-bit floats is one bit of them, also of zeros and infinities.
    #[test]
    fn signs_of_short_floats() {
        for dtype in [DType::F16, DType::BF16] {
            for (function, exact) in [(&f::NEG, (|x| x ^ SIGN) as fn(u16) -> u16), (&f::ABS, |x| x & !SIGN)] {
                let program = Program::new(
                    vec![
                        Instr::Load { slot: 0, out: 0 },
                        apply(function, &[Class::F32], [0; 4], 1),
                        Instr::Cast { reg: 1, from: Class::F32, to: dtype, out: 1 },
                        Instr::Store { reg: 1, slot: 1 },
                    ],
                    vec![Class::F32; 2],
                    0,
                );
                let not_nan = |x: &u16| x & !SIGN <= if dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
                let mut x: Vec<u16> = (0..=u16::MAX).filter(not_nan).collect();
                let mut y = vec![0u16; x.len()];
                let shape = [x.len()];
                let views = [&mut x, &mut y].map(|data| view(data, dtype, &shape, &[1]));
                // SAFETY: the views lie in their vectors.
                unsafe { run(&program, &shape, &views, &[], &Threads::ONE, &[]) };
                assert!(x.iter().zip(&y).all(|(&x, &y)| y == exact(x)), "{} {dtype}", function.name);
            }
        }
    }
}
