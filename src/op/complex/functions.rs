//! Analytic functions of one complex number by its parts, with the usual branch cuts; absolute value and angle.

use super::arithmetic::{one, pair, quotient};
use super::{Z, join};
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute, compute_all};
use crate::op::row::Op;
use crate::op::rows::pointwise::arith::MUL;
use crate::op::rows::pointwise::compare::GE;
use crate::op::rows::pointwise::power::{ATAN2, COPYSIGN, HYPOT};
use crate::op::rows::pointwise::unary::{
    ABS, ASINH, COS, COSH, EXP, EXPM1, LOG, LOG1P, SIGMOID, SIN, SINH, SQRT, TAN, TANH,
};
use crate::op::tensor::{Meta, Tensor};
use std::f64::consts::{LN_2, LN_10, PI};

/// From here on 1 is nothing beside a number, of an f64 too.
const FAR: f64 = 1e17;
/// Numbers from here on are made smaller before their parts are squared or added.
const LARGE: f64 = f32::MAX as f64 / 4.0;

/// Both parts of a function, from the parts of its operand.
type Pair<'c> = (Expr<'c>, Expr<'c>);

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident |$a:ident, $b:ident| $value:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
            let z = one(e, args)?;
            let made = compute_all(e, |c| {
                let ($a, $b) = (c.of(&z.re), c.of(&z.im));
                let (re, im) = $value;
                [re, im]
            })?;
            join(e, made)
        }
    )* };
}

functions! {
    exp |a, b| {
        let size = a.of(&EXP);
        (size * b.of(&COS), b.equals(0).choose(b, size * b.of(&SIN)))
    };
    expm1 |a, b| {
        let half = (b * 0.5).of(&SIN);
        (a.of(&EXPM1) * b.of(&COS) - half * half * 2.0, b.equals(0).choose(b, a.of(&EXP) * b.of(&SIN)))
    };
    log |a, b| logarithm(a, b, 1.0);
    log2 |a, b| logarithm(a, b, 1.0 / LN_2);
    log10 |a, b| logarithm(a, b, 1.0 / LN_10);
    log1p |a, b| logarithm_beside_one(a, b);
    sqrt |a, b| root(a, b);
    sin |a, b| (a.of(&SIN) * b.of(&COSH), a.of(&COS) * b.of(&SINH));
    cos |a, b| (a.of(&COS) * b.of(&COSH), -(a.of(&SIN) * b.of(&SINH)));
    sinh |a, b| (a.of(&SINH) * b.of(&COS), a.of(&COSH) * b.of(&SIN));
    cosh |a, b| (a.of(&COSH) * b.of(&COS), a.of(&SINH) * b.of(&SIN));
    /// tan(a + ib) = -i tanh(i (a + ib)).
    tan |a, b| {
        let (re, im) = hyperbolic_tangent(-b, a);
        (im, -re)
    };
    tanh |a, b| hyperbolic_tangent(a, b);
    asin |a, b| arcsine(a, b);
    acos |a, b| arccosine(a, b);
    /// asinh(z) = -i asin(iz).
    asinh |a, b| {
        let (re, im) = arcsine(-b, a);
        (im, -re)
    };
    atanh |a, b| area_tangent(a, b);
    /// atan(z) = -i atanh(iz).
    atan |a, b| {
        let (re, im) = area_tangent(-b, a);
        (im, -re)
    };
}

// Not: inlined, which is a copy in each function of numbers and derivatives.
#[inline(never)]
fn logarithm<'c>(a: Expr<'c>, b: Expr<'c>, scale: f64) -> Pair<'c> {
    let (by, a, b) = shrunk(a, b);
    let size = a.with(&HYPOT, b).of(&LOG);
    let (size, angle) = (by.choose(size + 2.0 * LN_2, size), b.with(&ATAN2, a));
    if scale == 1.0 { (size, angle) } else { (size * scale, angle * scale) }
}

/// `log1p`. Where 1 is nothing beside a number, it is the logarithm of that number, which no square makes infinite.
#[inline(never)]
fn logarithm_beside_one<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let far = a.of(&ABS).greater_equal(FAR).or(b.of(&ABS).greater_equal(FAR));
    let (x, y) = (far.choose(0.0, a), far.choose(0.0, b));
    let (size, angle) = logarithm(far.choose(a, 1.0), far.choose(b, 0.0), 1.0);
    let near = (x * (x + 2.0) + y * y).of(&LOG1P) * 0.5;
    (far.choose(size, near), far.choose(angle, b.with(&ATAN2, a + 1.0)))
}

/// The principal root: its real part is not negative.
#[inline(never)]
fn root<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let (by, a, b) = shrunk(a, b);
    let (re, im) = plain_root(a, b);
    (by.choose(re * 2.0, re), by.choose(im * 2.0, im))
}

/// A quarter of a number so large that its absolute value may be infinite, and whether it was.
#[inline(never)]
fn shrunk<'c>(a: Expr<'c>, b: Expr<'c>) -> (Expr<'c>, Expr<'c>, Expr<'c>) {
    // Half of the largest f32; an f64 beyond it loses nothing by a factor of four either.
    let large = a.of(&ABS).greater_equal(LARGE).or(b.of(&ABS).greater_equal(LARGE));
    (large, large.choose(a * 0.25, a), large.choose(b * 0.25, b))
}

#[inline(never)]
fn plain_root<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let size = a.with(&HYPOT, b);
    let large = ((size + a.of(&ABS)) * 0.5).of(&SQRT);
    let small = size.equals(0).choose(0.0, b.of(&ABS) / (large * 2.0));
    let right = a.greater_equal(0);
    (right.choose(large, small), right.choose(small, large).with(&COPYSIGN, b))
}

/// With h = tanh a and t = tan b: (h (1 + t²) + i t (1 - h²)) / (1 + h² t²).
fn hyperbolic_tangent<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let (h, t) = (a.of(&TANH), b.of(&TAN));
    let (cosh, t2) = (a.of(&COSH), t * t);
    let below = h * h * t2 + 1.0;
    (h * (t2 + 1.0) / below, t / (cosh * cosh) / below)
}

/// Kahan's: from the roots of 1 - z and 1 + z, which do not cancel.
fn arcsine<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let (p, q) = root(1.0 - a, -b);
    let (r, s) = root(a + 1.0, b);
    (a.with(&ATAN2, p * r - q * s), (p * s - q * r).of(&ASINH))
}

fn arccosine<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let (p, q) = root(1.0 - a, -b);
    let (r, s) = root(a + 1.0, b);
    (p.with(&ATAN2, r) * 2.0, (r * q - s * p).of(&ASINH))
}

/// At all infinities it is `±iπ/2`.
fn area_tangent<'c>(a: Expr<'c>, b: Expr<'c>) -> Pair<'c> {
    let infinite = (a.of(&ABS) + b.of(&ABS)).equals(f64::INFINITY);
    let away = (1.0 - a) * (1.0 - a) + b * b;
    let re = (a * 4.0 / away).of(&LOG1P) * 0.25;
    let im = (b * 2.0).with(&ATAN2, (1.0 - a) * (a + 1.0) - b * b) * 0.5;
    let (re, im) = (infinite.choose(0.0, re), infinite.choose(PI / 2.0, im));
    (re.with(&COPYSIGN, a), im.with(&COPYSIGN, b))
}

/// One over a complex number.
fn inverse(e: &mut dyn Emit, z: &Tensor) -> Result<Tensor> {
    let below = one(e, &args![z])?;
    let meta = Meta { shape: Default::default(), ..Meta::of(&below.re) };
    let above = Z { re: e.full(&[], Scalar::Int(1), &meta)?, im: e.full(&[], Scalar::Int(0), &meta)?, is_real: true };
    quotient(e, &above, &below)
}

pub fn rsqrt(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let root = sqrt(e, op, args)?;
    inverse(e, &root)
}

pub fn sigmoid(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let minus = e.neg(args.input())?;
    let power = exp(e, op, &args![&minus])?;
    let below = e.add(&power, Scalar::Int(1))?;
    inverse(e, &below)
}

/// `exp(z ln 2)`.
pub fn exp2(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compute(e, |c| (c.of(args.input()) * LN_2).exp())
}

pub fn silu(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compute(e, |c| {
        let z = c.of(args.input());
        z * z.of(&SIGMOID)
    })
}

/// `sin(πz) / (πz)`, and 1 at 0.
pub fn sinc(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compute(e, |c| {
        let z = c.of(args.input()) * PI;
        let zero = z.equals(0);
        let below = zero.choose(1.0, z);
        zero.choose(1.0, below.of(&SIN) / below)
    })
}

/// The operand with the larger real part, and the logarithm of one more than the exponential of what the other is beyond it.
pub fn logaddexp(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (x, y) = pair(e, args)?;
    let first = e.call(&GE, args![&x.re, &y.re])?;
    let (x, y) = (join(e, [x.re, x.im])?, join(e, [y.re, y.im])?);
    compute(e, |c| {
        let (first, x, y) = (c.of(&first), c.of(&x), c.of(&y));
        let (large, small) = (first.choose(x, y), first.choose(y, x));
        large + (small - large).exp().of(&LOG1P)
    })
}

pub fn abs(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let z = one(e, args)?;
    e.call(&HYPOT, args![&z.re, &z.im])
}

/// 0 has no angle that changes: its gradient is 0.
pub fn angle(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let z = one(e, args)?;
    compute(e, |c| {
        let (a, b) = (c.of(&z.re), c.of(&z.im));
        let zero = (a.of(&ABS) + b.of(&ABS)).detach().equals(0);
        let still = b.detach().with(&ATAN2, a.detach());
        let (a, b) = (zero.choose(1.0, a), zero.choose(0.0, b));
        zero.choose(still, b.with(&ATAN2, a))
    })
}

/// `z / |z|`, and 0 of 0.
pub fn sgn(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let z = one(e, args)?;
    let size = e.call(&ABS, args![args.input()])?;
    let made = compute_all(e, |c| {
        let size = c.of(&size);
        let zero = size.detach().equals(0);
        let below = zero.choose(1.0, size);
        [zero.choose(0.0, c.of(&z.re) / below), zero.choose(0.0, c.of(&z.im) / below)]
    })?;
    join(e, made)
}

/// `g (1 - y²)`.
pub fn tanh_grad(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compute(e, |c| {
        let y = c.of(args.tensor(1));
        (1 - y.with(&MUL, y)) * args.tensor(0)
    })
}

/// `g (1 - y) y`.
pub fn sigmoid_grad(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    compute(e, |c| {
        let y = c.of(args.tensor(1));
        (1 - y) * y * args.tensor(0)
    })
}
