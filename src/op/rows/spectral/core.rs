//! The three transforms that all others are made of. Each one's gradient is one of them again: the adjoint of a
//! transform with a factor is the inverse sum with the same factor, and what was cut is filled up with zeros.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::base::limits::MAX_DIMS;
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::fft;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op};
use crate::op::tensor::Tensor;
use crate::signature;
use std::sync::Arc;

/// The complex dtype whose parts have the precision of a dtype.
pub fn complex_of(dtype: DType) -> DType {
    if dtype.is_complex() { dtype } else { dtype.to_complex() }
}

// `length` are those of the transforms along the dims, `sizes` those of the result; `flag` as the kernels have it, and
// `real`: only the real part of a complex result.
signature!(transform(
    input: Tensor, dim: Dims, length: Ints, sizes: Ints, scale: Float, flag: Bool, middle: Float, real: Bool,
));

/// A call of one of the three.
#[derive(Clone)]
pub struct Transform {
    pub dims: Ints,
    pub lengths: Ints,
    pub sizes: Ints,
    pub scale: f64,
    pub flag: bool,
    pub middle: f64,
    pub real: bool,
}

impl Transform {
    pub fn of(self, e: &mut dyn Emit, op: &'static Op, x: &Tensor) -> Result<Tensor> {
        let Transform { dims, lengths, sizes, scale, flag, middle, real } = self;
        e.call(op, args![x, dims, lengths, sizes, scale, flag, middle, real])
    }
}

fn lists(a: &Args) -> [Ints; 3] {
    [transform::dim, transform::length, transform::sizes].map(|at| a.ints(at).unwrap_or_default())
}

/// Runs a kernel, for which complex numbers are pairs of real ones in a last dimension.
fn run(e: &mut dyn Emit, a: &Args, kernel: &'static Kernel, to_real: bool) -> Result<Vec<Tensor>> {
    let x = a.tensor(transform::input);
    let [dims, lengths, sizes] = lists(a);
    let mut shape: Shape = x.shape();
    for (&dim, &size) in dims.iter().zip(&sizes) {
        shape[dim as usize] = size as usize;
    }
    let from_pairs = x.dtype().is_complex();
    if shape.len() == MAX_DIMS && (from_pairs || !to_real) {
        fail!(VALUE, "complex numbers of {MAX_DIMS} dimensions are not transformed");
    }
    let view = Arc::new((*x.view()).clone()).as_real();
    let parts = if from_pairs { e.reinterpret(x, view.layout.clone(), view.dtype) } else { x.clone() };
    let mut places = shape.clone();
    if !to_real {
        places.push(2);
    }
    let call = KernelCall::new("fft", kernel).input(&parts).ints(&dims).ints(&lengths).float(a.float(transform::scale));
    let call = call.flag(a.flag(transform::flag)).float(a.float(transform::middle)).flag(from_pairs).flag(!to_real);
    let result = e.kernel(call.output(&places, view.dtype))?.swap_remove(0);
    if to_real {
        return Ok(vec![result]);
    }
    let layout = Layout::contiguous(&shape);
    Ok(vec![e.reinterpret(&result, layout, complex_of(view.dtype))])
}

/// The adjoint, as another of the three.
fn adjoint(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    op: &'static Op,
    flag: bool,
    middle: f64,
) -> Result<Vec<Option<Tensor>>> {
    let [dims, lengths, _] = lists(v.args);
    let meta = v.meta(transform::input);
    let sizes = dims.iter().map(|&dim| meta.shape[dim as usize] as i64).collect();
    let (scale, real) = (v.args.float(transform::scale), !meta.dtype.is_complex());
    let back = Transform { dims, lengths, sizes, scale, flag, middle, real };
    Ok(vec![Some(back.of(e, op, v.g())?)])
}

pub static WHOLE: Op = Op {
    name: "_fft_whole",
    params: transform::PARAMS,
    summary: "Transforms of complex or real numbers.",
    lower: Lower::Steps(|e, a| run(e, a, &fft::WHOLE, a.flag(transform::real))),
    grad: Grad::Rule(|e, v| adjoint(e, v, &WHOLE, !v.args.flag(transform::flag), 1.0)),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static TO_HALF: Op = Op {
    name: "_fft_to_half",
    params: transform::PARAMS,
    summary: "Transforms of real numbers to half spectra.",
    lower: Lower::Steps(|e, a| run(e, a, &fft::TO_HALF, a.flag(transform::real))),
    // An element with a mirror image counts twice on the way back.
    grad: Grad::Rule(|e, v| {
        let (flag, middle) = (v.args.flag(transform::flag), v.args.float(transform::middle));
        adjoint(e, v, &FROM_HALF, flag, middle / 2.0)
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static FROM_HALF: Op = Op {
    name: "_fft_from_half",
    params: transform::PARAMS,
    summary: "Transforms of half spectra to real numbers.",
    lower: Lower::Steps(|e, a| run(e, a, &fft::FROM_HALF, true)),
    grad: Grad::Rule(|e, v| {
        let (flag, middle) = (v.args.flag(transform::flag), v.args.float(transform::middle));
        adjoint(e, v, &TO_HALF, flag, middle * 2.0)
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&WHOLE, &TO_HALF, &FROM_HALF];
