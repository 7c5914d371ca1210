//! Complex numbers where a row takes a number (`fill_value`, `alpha`), and random numbers of two parts.

use super::Forward::{self, One};
use super::refused;
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::Kind;
use crate::op::row::Op;
use crate::op::rows::pointwise::complex::{VIEW_AS_COMPLEX, VIEW_AS_REAL};
use crate::op::rows::random::distributions::NORMAL_;
use crate::op::tensor::{Meta, Tensor};

/// Where a complex tensor stands for a number.
fn places<'a>(op: &'static Op, args: &'a Args) -> impl Iterator<Item = (usize, &'a Tensor)> {
    let given = op.params.iter().zip(&args.0).enumerate();
    given.filter_map(|(at, (param, arg))| match arg {
        Arg::Tensor(z) if param.kind == Kind::Number && z.dtype().is_complex() => Some((at, z)),
        _ => None,
    })
}

pub fn any(op: &'static Op, args: &Args) -> bool {
    places(op, args).next().is_some()
}

/// How a row takes complex numbers.
pub fn rule(op: &'static Op) -> Result<Forward> {
    match op.name {
        "full" | "full_like" | "new_full" | "scalar_tensor" => Ok(One(filled)),
        "constant_pad_nd" | "pad" => Ok(One(padded)),
        "add" | "sub" | "rsub" | "addmm" | "addmv" | "addr" | "addbmm" | "baddbmm" | "addcmul" | "addcdiv" => {
            Ok(One(scaled))
        }
        name => Err(refused(name)),
    }
}

/// Zeros of the result's dtype, and the number.
fn filled(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let mut plain = args.clone();
    let mut number = None;
    for (at, z) in places(op, args) {
        plain.0[at] = Scalar::Int(0).into();
        number = Some(z.clone());
    }
    let Some(z) = number else { return Err(refused(op.name)) };
    for (param, arg) in op.params.iter().zip(&mut plain.0) {
        if param.kind == Kind::DType && matches!(arg, Arg::None) && op.name != "full_like" && op.name != "new_full" {
            *arg = z.dtype().into();
        }
    }
    let zeros = e.call(op, plain)?;
    let dtype = zeros.dtype();
    if !dtype.is_complex() {
        return Err(super::loses_imaginary(dtype));
    }
    let z = e.cast(&z, dtype)?;
    e.add(&zeros, &z)
}

/// Zeros around the tensor, and the number there.
fn padded(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let (mut inner, mut around) = (args.clone(), args.clone());
    let mut number = None;
    for (at, z) in places(op, args) {
        (inner.0[at], around.0[at]) = (Scalar::Int(0).into(), Scalar::Int(1).into());
        number = Some(z.clone());
    }
    let (Some(z), x) = (number, args.input()) else { return Err(refused(op.name)) };
    if !x.dtype().is_complex() {
        return Err(super::loses_imaginary(x.dtype()));
    }
    around.0[0] = Arg::Tensor(e.zeros_like(&Meta { dtype: x.dtype().real_part(), ..Meta::of(x) })?);
    let (x, mask) = (e.call(op, inner)?, e.call(op, around)?);
    let number = e.cast(&z, x.dtype())?;
    let number = e.mul(&number, &mask)?;
    e.add(&x, &number)
}

/// Factors of the operands instead of `alpha`, `beta` and `value`.
fn scaled(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let mut plain = args.clone();
    for (at, z) in places(op, args) {
        plain.0[at] = Scalar::Int(1).into();
        let target = if op.params[at].name == "beta" { 0 } else { 1 };
        let (Arg::Tensor(x), true) = (&plain.0[target], args.input().dtype().is_complex()) else {
            return Err(refused(op.name));
        };
        let z = e.cast(z, x.dtype())?;
        plain.0[target] = Arg::Tensor(e.mul(x, &z)?);
    }
    e.call(op, plain)
}

/// `uniform_` and `normal_`: both parts are drawn. Normal ones have half of the variance each, and the mean is real.
pub fn drawn(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let mut parts = args.clone();
    parts.0[0] = Arg::Tensor(e.call(&VIEW_AS_REAL, args![args.input()])?);
    let normal = op.is(&NORMAL_);
    if normal {
        parts.0[1] = Arg::from(0.0);
        parts.0[2] = Arg::from(args.float(2) * std::f64::consts::FRAC_1_SQRT_2);
    }
    let pairs = e.call(op, parts)?;
    let z = e.call(&VIEW_AS_COMPLEX, args![&pairs])?;
    if normal { e.add(&z, args.float(1)) } else { Ok(z) }
}
