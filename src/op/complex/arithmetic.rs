//! Sums, products, powers, comparisons and parts of complex numbers.

use super::{Z, join, part, parts};
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::expr::{compute, compute_all};
use crate::op::infer::{self, Operand};
use crate::op::row::Op;
use crate::op::rows::linalg::matmul::{DOT, MATMUL, check_dtypes};
use crate::op::rows::pointwise::arith::{ADD, DIV, MUL, NEG, common};
use crate::op::rows::pointwise::compare::{EQ, LOGICAL_AND, LOGICAL_OR, LT, NE, WHERE};
use crate::op::rows::pointwise::complex::{PART, REAL};
use crate::op::rows::pointwise::complex_parts::CONJ;
use crate::op::rows::pointwise::unary::{ABS, EXP, LOG, SQRT};
use crate::op::rows::shape::view::{CLONE, RESHAPE};
use crate::op::tensor::{Meta, Tensor};

/// The dtype of the parts of a result.
fn real_of(e: &dyn Emit, args: &Args) -> DType {
    let operands: Vec<Operand<'_>> = args
        .0
        .iter()
        .take(2)
        .filter_map(|arg| match arg {
            Arg::Tensor(tensor) => Some(Operand::of(tensor)),
            other => other.scalar().map(Operand::Number),
        })
        .collect();
    infer::result_type(&operands, e.default_float()).real_part()
}

/// Two operands by their parts.
pub(super) fn pair(e: &mut dyn Emit, args: &Args) -> Result<(Z, Z)> {
    let real = real_of(e, args);
    let device = |arg: &Arg| arg.as_tensor().map(Meta::of);
    // Numbers lie where the tensors with dimensions lie.
    let widest = [args.get(0), args.get(1)].into_iter().filter_map(device).max_by_key(|meta| meta.device.is_cuda());
    let like = widest.unwrap_or(Meta { shape: Default::default(), dtype: real, device: e.default_device() });
    Ok((parts(e, args.get(0), real, &like)?, parts(e, args.get(1), real, &like)?))
}

/// The parts of the first operand.
pub(super) fn one(e: &mut dyn Emit, args: &Args) -> Result<Z> {
    let z = args.input();
    Ok(Z { re: part(e, z, 0)?, im: part(e, z, 1)?, is_real: false })
}

pub fn add(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (x, y) = pair(e, args)?;
    let made = compute_all(e, |c| [c.of(&x.re) + &y.re, c.of(&x.im) + &y.im])?;
    join(e, made)
}

pub fn sub(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (x, y) = pair(e, args)?;
    let made = compute_all(e, |c| [c.of(&x.re) - &y.re, c.of(&x.im) - &y.im])?;
    join(e, made)
}

/// A real operand is not made complex first: infinite parts stay what they are.
pub fn mul(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (mut x, mut y) = pair(e, args)?;
    if x.is_real {
        std::mem::swap(&mut x, &mut y);
    }
    let made = compute_all(e, |c| {
        let (a, b, p, q) = (c.of(&x.re), c.of(&x.im), c.of(&y.re), c.of(&y.im));
        if y.is_real { [a * p, b * p] } else { [a * p - b * q, a * q + b * p] }
    })?;
    join(e, made)
}

pub fn square(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    e.call(&MUL, args![args.input(), args.input()])
}

/// By two roots: the root of `z² - 1`, which the gradient for real numbers takes, has another branch cut.
pub fn acosh(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compute(e, |c| {
        let z = c.of(args.input());
        (z + (z + 1).sqrt() * (z - 1).sqrt()).log()
    })
}

pub fn div(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (x, y) = pair(e, args)?;
    quotient(e, &x, &y)
}

/// Smith's method: the divisor is scaled by its larger part, so that squares do not overflow.
pub(super) fn quotient(e: &mut dyn Emit, x: &Z, y: &Z) -> Result<Tensor> {
    if y.is_real {
        let made = compute_all(e, |c| [c.of(&x.re) / &y.re, c.of(&x.im) / &y.re])?;
        return join(e, made);
    }
    let made = compute_all(e, |c| {
        let (a, b, p, q) = (c.of(&x.re), c.of(&x.im), c.of(&y.re), c.of(&y.im));
        let (large, small) = (p.of(&ABS), q.of(&ABS));
        let by_real = large.greater_equal(small);
        let zero = (large + small).equals(0);
        let (top, bottom) = (by_real.choose(p, q), by_real.choose(q, p));
        let ratio = zero.choose(0.0, bottom / top);
        let scale = 1.0 / (top + bottom * ratio);
        let re = by_real.choose(a + b * ratio, a * ratio + b) * scale;
        let im = by_real.choose(b - a * ratio, b * ratio - a) * scale;
        // By zero, as by the real number 0.
        [zero.choose(a / large, re), zero.choose(b / large, im)]
    })?;
    join(e, made)
}

pub fn reciprocal(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    div(e, op, &args![Scalar::Int(1), args.input()])
}

/// `z ** w`: products for small whole exponents, otherwise `exp(w log z)`; powers of 0 are 0 or 1.
pub fn pow(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (base, exponent) = (args.get(0).clone(), args.get(1).clone());
    let (base, dtype) = as_complex(e, base, args)?;
    let mul = |e: &mut dyn Emit, a: &Tensor, b: &Tensor| e.call(&MUL, args![a, b]);
    match exponent.scalar().map(Scalar::to_f64) {
        Some(1.0) => return e.call(&CLONE, args![&base]),
        Some(2.0) => return mul(e, &base, &base),
        Some(3.0) => {
            let square = mul(e, &base, &base)?;
            return mul(e, &square, &base);
        }
        Some(-1.0) => return e.call(&DIV, args![Scalar::Int(1), &base]),
        Some(0.5) => return e.call(&SQRT, args![&base]),
        _ => {}
    }
    let exponent = match exponent {
        Arg::Tensor(w) => e.cast(&w, dtype)?,
        other => e.full(&[], other.scalar().unwrap_or(Scalar::Int(0)), &Meta { dtype, ..Meta::of(&base) })?,
    };
    let zero = e.call(&EQ, args![&base, Scalar::Int(0)])?;
    let one = e.full(&[], Scalar::Int(1), &Meta { dtype, ..Meta::of(&base) })?;
    let safe = e.call(&WHERE, args![&zero, &one, &base])?;
    let log = e.call(&LOG, args![&safe])?;
    let product = mul(e, &log, &exponent)?;
    let power = e.call(&EXP, args![&product])?;
    let none = e.call(&EQ, args![&exponent, Scalar::Int(0)])?;
    let of_zero = e.cast(&none, dtype)?;
    // Of 0 a power with a negative exponent is what 1 / 0 is.
    let nothing = e.full(&[], Scalar::Int(0), &Meta { dtype, ..Meta::of(&base) })?;
    let endless = e.call(&DIV, args![Scalar::Int(1), &nothing])?;
    let real = e.call(&REAL, args![&exponent])?;
    let below = e.call(&LT, args![&real, Scalar::Int(0)])?;
    let of_zero = e.call(&WHERE, args![&below, &endless, &of_zero])?;
    e.call(&WHERE, args![&zero, &of_zero, &power])
}

/// The base of a power as a complex tensor of the result's dtype.
fn as_complex(e: &mut dyn Emit, base: Arg, args: &Args) -> Result<(Tensor, DType)> {
    let dtype = real_of(e, args).to_complex();
    match base {
        Arg::Tensor(z) => Ok((e.cast(&z, dtype)?, dtype)),
        other => {
            let like = args.get(1).as_tensor().map(Meta::of);
            let device = like.map_or(e.default_device(), |meta| meta.device);
            let meta = Meta { shape: Default::default(), dtype, device };
            Ok((e.full(&[], other.scalar().unwrap_or(Scalar::Int(0)), &meta)?, dtype))
        }
    }
}

/// Four real products.
pub fn matmul(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    check_dtypes(&[("input", args.input()), ("other", args.tensor(1))])?;
    let (x, y) = pair(e, args)?;
    let dense = |e: &mut dyn Emit, t: &Tensor| e.call(&CLONE, args![t]);
    let (a, b, p, q) = (dense(e, &x.re)?, dense(e, &x.im)?, dense(e, &y.re)?, dense(e, &y.im)?);
    let made = compute_all(e, |c| {
        let (a, b) = (c.of(&a), c.of(&b));
        [a.with(&MATMUL, &p) - b.with(&MATMUL, &q), a.with(&MATMUL, &q) + b.with(&MATMUL, &p)]
    })?;
    join(e, made)
}

fn compared(e: &mut dyn Emit, op: &'static Op, args: &Args, both: &'static Op) -> Result<Tensor> {
    let (x, y) = pair(e, args)?;
    let re = e.call(op, args![&x.re, &y.re])?;
    let im = e.call(op, args![&x.im, &y.im])?;
    e.call(both, args![&re, &im])
}

pub fn eq(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compared(e, &EQ, args, &LOGICAL_AND)
}

pub fn ne(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compared(e, &NE, args, &LOGICAL_OR)
}

fn asked_of_parts(e: &mut dyn Emit, op: &'static Op, args: &Args, both: &'static Op) -> Result<Tensor> {
    let z = one(e, args)?;
    let (re, im) = (e.call(op, args![&z.re])?, e.call(op, args![&z.im])?);
    e.call(both, args![&re, &im])
}

/// Of the real part or the imaginary part (`isnan`).
pub fn any_part(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    asked_of_parts(e, op, args, &LOGICAL_OR)
}

/// Of the real part and the imaginary part (`isfinite`).
pub fn both_parts(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    asked_of_parts(e, op, args, &LOGICAL_AND)
}

pub fn is_real(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let im = part(e, args.input(), 1)?;
    e.call(&EQ, args![&im, Scalar::Int(0)])
}

pub fn real(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    part(e, args.input(), 0)
}

/// `select_scatter` and its like: of complex numbers, a real tensor takes the real parts, as in PyTorch.
pub fn real_source(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let mut given = args.clone();
    given.0[1] = Arg::Tensor(e.call(&PART, args![args.tensor(1), 0])?);
    e.call(op, given)
}

pub fn conj(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let z = one(e, args)?;
    let im = e.call(&NEG, args![&z.im])?;
    join(e, [z.re, im])
}

/// The row checks the shape and transposes, without conjugating.
pub fn adjoint(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let crate::op::row::Lower::Compose(transpose) = op.lower else { return Err(super::refused(op.name)) };
    let transposed = transpose(e, args)?.swap_remove(0);
    conj(e, op, &args![&transposed])
}

/// `input + weight * (end - input)`.
pub fn lerp(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    infer::same_dtype(&[("input", args.input()), ("end", args.tensor(1))])?;
    compute(e, |c| {
        let (start, end) = (c.of(args.input()), c.of(args.tensor(1)));
        start + (end - start) * args.get(2).clone()
    })
}

/// `input + value * tensor1 * tensor2`.
pub fn addcmul(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    added(e, args, &MUL)
}

/// `input + value * tensor1 / tensor2`.
pub fn addcdiv(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    added(e, args, &DIV)
}

fn added(e: &mut dyn Emit, args: &Args, op: &'static Op) -> Result<Tensor> {
    // In the dtype of the result: products of narrow operands would wrap or be rounded.
    let dtype = common(e, &[args.get(0), args.get(1), args.get(2)]);
    let (left, right) = (e.cast(args.tensor(1), dtype)?, e.cast(args.tensor(2), dtype)?);
    let made = e.call(op, args![&left, &right])?;
    let scaled = e.call(&MUL, args![&made, args.get(3).clone()])?;
    e.call(&ADD, args![args.input(), &scaled])
}

/// A complex variance is the sum of those of the parts.
pub fn var(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let [re, im] = of_each(e, op, args)?;
    e.add(&re, &im)
}

pub fn std(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let [re, im] = of_each(e, &crate::op::rows::reduction::moments::VARIANCE, args)?;
    compute(e, |c| (c.of(&re) + &im).sqrt())
}

/// A row of one operand, applied to each part.
fn of_each(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<[Tensor; 2]> {
    let z = one(e, args)?;
    let mut apply = |part: Tensor| {
        let mut args = args.clone();
        args.0[0] = Arg::Tensor(part);
        e.call(op, args)
    };
    Ok([apply(z.re)?, apply(z.im)?])
}

/// A row that asks which elements are not 0.
/// Each complex operand as whether it is not 0.
pub fn of_nonzero(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    Ok(places(e, op, args)?.swap_remove(0))
}

pub fn places(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    let mut args = args.clone();
    for arg in &mut args.0 {
        if let Arg::Tensor(z) = arg
            && z.dtype().is_complex()
        {
            *arg = Arg::Tensor(e.call(&NE, args![&*z, Scalar::Int(0)])?);
        }
    }
    e.apply(op, args)
}

pub fn truth(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    e.call(&NE, args![args.input(), Scalar::Int(0)])
}

/// The sum of `conj(x) y`.
pub fn vdot(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let x = e.call(&CONJ, args![args.input()])?;
    e.call(&DOT, args![&x, args.tensor(1)])
}

/// A function that is linear in its first two operands, with a third that is added (`bias`): four real ones.
pub fn bilinear(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let (x, y) = pair(e, args)?;
    let mut of = |x: &Tensor, y: &Tensor| {
        let mut args = args.clone();
        (args.0[0], args.0[1], args.0[2]) = (x.into(), y.into(), Arg::None);
        e.call(op, args)
    };
    let (rr, ii, ri, ir) = (of(&x.re, &y.re)?, of(&x.im, &y.im)?, of(&x.re, &y.im)?, of(&x.im, &y.re)?);
    let made = compute_all(e, |c| [c.of(&rr) - &ii, c.of(&ri) + &ir])?;
    let z = join(e, made)?;
    let Some(bias) = args.opt_tensor(2) else { return Ok(z) };
    let shape: Vec<i64> = (0..z.ndim()).map(|dim| if dim == 1 { -1 } else { 1 }).collect();
    let bias = e.call(&RESHAPE, args![bias, shape.as_slice()])?;
    e.add(&z, &bias)
}
