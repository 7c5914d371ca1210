//! Reductions of complex numbers that are no sums of their parts: products, norms, logarithms of sums, moments.

use super::part;
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::expr::compute;
use crate::op::infer;
use crate::op::row::Op;
use crate::op::rows::pointwise::arith::MUL;
use crate::op::rows::pointwise::compare::{ISFINITE, WHERE};
use crate::op::rows::pointwise::power::LOGADDEXP;
use crate::op::rows::pointwise::unary::ABS;
use crate::op::rows::reduction::reduce::{AMAX, SUM};
use crate::op::rows::shape::copies::FLIP;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::SQUEEZE;
use crate::op::rows::shape::view::{RESHAPE, SLICE};
use crate::op::tensor::Tensor;

/// A norm of sizes.
pub fn norm(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let mut args = args.clone();
    args.0[0] = Arg::Tensor(e.call(&ABS, args![args.input()])?);
    e.call(op, args)
}

/// The largest real part is taken out of the exponents.
pub fn logsumexp(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (z, dim, keepdim) = (args.input(), args.get(1).clone(), args.flag(2));
    let re = part(e, z, 0)?;
    let re = e.detach(&re);
    let most = e.call(&AMAX, args![&re, dim.clone(), true])?;
    let finite = e.call(&ISFINITE, args![&most])?;
    let most = e.call(&WHERE, args![&finite, &most, Scalar::Int(0)])?;
    let sum = compute(e, |c| (c.of(z) - &most).exp().call(&SUM, args![dim.clone(), keepdim]).log())?;
    let most = if keepdim { most } else { e.call(&SQUEEZE, args![&most, dim])? };
    e.add(&sum, &most)
}

/// Halves are multiplied until one element is left.
pub fn prod(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (mut z, keepdim) = (args.input().clone(), args.flag(2));
    if let Some(dtype) = args.dtype(3) {
        z = e.cast(&z, dtype)?;
    }
    let whole = args.is_none(1);
    let dim = if whole {
        z = e.call(&RESHAPE, args![&z, &[-1i64][..]])?;
        0
    } else {
        infer::dim(args.int(1), z.ndim())? as i64
    };
    if !whole && z.ndim() == 0 {
        return Ok(z);
    }
    let size = |z: &Tensor| z.shape()[dim as usize];
    if size(&z) == 0 {
        let nothing = e.call(&SUM, args![&z, dim, true])?;
        z = e.add(&nothing, Scalar::Int(1))?;
    }
    while size(&z) > 1 {
        let (n, half) = (size(&z), size(&z) / 2);
        let mut range = |from: usize, to: usize| e.call(&SLICE, args![&z, dim, from, to, 1]);
        let (low, high, rest) = (range(0, half)?, range(half, 2 * half)?, range(2 * half, n)?);
        let product = e.mul(&low, &high)?;
        z = if n % 2 == 0 { product } else { e.call(&CAT, args![vec![product, rest], dim])? };
    }
    if keepdim && !whole { Ok(z) } else { e.call(&SQUEEZE, args![&z, dim]) }
}

/// Running log-sum-exps, joined over twice the distance in each step.
pub fn logcumsumexp(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let z = args.input().clone();
    let dim = infer::dim(args.int(1), z.ndim())?;
    if z.ndim() == 0 {
        return Ok(z);
    }
    if args.flag(3) {
        let turned = e.call(&FLIP, args![&z, dim])?;
        let sums = e.call(op, args![&turned, dim, (), false])?;
        return e.call(&FLIP, args![&sums, dim]);
    }
    doubled(e, z, dim, &LOGADDEXP)
}

/// Running products, from the end when asked. Each round multiplies by what stands twice as far in front (Hillis and
/// Steele, 1986).
pub fn cumprod(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let mut z = args.input().clone();
    if let Some(dtype) = args.dtype(2) {
        z = e.cast(&z, dtype)?;
    }
    let dim = infer::dim(args.int(1), z.ndim())?;
    if z.ndim() == 0 {
        return Ok(z);
    }
    if args.flag(3) {
        let turned = e.call(&FLIP, args![&z, dim])?;
        let products = e.call(op, args![&turned, dim, (), false])?;
        return e.call(&FLIP, args![&products, dim]);
    }
    doubled(e, z, dim, &MUL)
}

/// What an associative operation makes of all elements up to each (Hillis and Steele, "Data parallel algorithms", 1986).
fn doubled(e: &mut dyn Emit, mut z: Tensor, dim: usize, joins: &'static Op) -> Result<Tensor> {
    let (n, mut apart) = (z.shape()[dim], 1);
    while apart < n {
        let mut range = |from: usize, to: usize| e.call(&SLICE, args![&z, dim, from, to, 1]);
        let (head, low, high) = (range(0, apart)?, range(0, n - apart)?, range(apart, n)?);
        let joined = e.call(joins, args![&low, &high])?;
        z = e.call(&CAT, args![vec![head, joined], dim])?;
        apart *= 2;
    }
    Ok(z)
}
