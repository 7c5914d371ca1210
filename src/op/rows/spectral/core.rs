//! The three transforms that all others are made of. Each one's gradient is one of them again: the adjoint of a
//! transform with a factor is the inverse sum with the same factor, and what was cut is filled up with zeros.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::fft;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op};
use crate::op::tensor::Tensor;
use crate::signature;

/// The complex dtype whose parts have the precision of a dtype.
pub fn complex_of(dtype: DType) -> Result<DType> {
    let name = if dtype.size_bytes() == if is_complex(dtype) { 16 } else { 8 } { "c128" } else { "c64" };
    match DType::parse(name) {
        Some(found) => Ok(found),
        None => fail!(DTYPE, "complex numbers are not among the dtypes"),
    }
}

/// The dtype of the parts.
pub fn real_of(dtype: DType) -> DType {
    match (is_complex(dtype), dtype.size_bytes()) {
        (true, 16) => DType::F64,
        (true, _) => DType::F32,
        _ => dtype,
    }
}

pub fn is_complex(dtype: DType) -> bool {
    matches!(dtype.name(), "c64" | "c128")
}

// `length` are those of the transforms along the dims, `sizes` those of the result; `flag` as the kernels have it, and
// `real`: of a whole transform only the real part.
signature!(transform(
    input: Tensor, dim: Ints, length: Ints, sizes: Ints, scale: Float, flag: Bool, middle: Float, real: Bool,
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

fn kernel(a: &Args, kernel: &'static Kernel, to_real: bool) -> Result<KernelCall> {
    let x = a.tensor(transform::input);
    let [dims, lengths, sizes] = lists(a);
    let mut shape: Shape = x.shape();
    for (&dim, &size) in dims.iter().zip(&sizes) {
        shape[dim as usize] = size as usize;
    }
    let dtype = if to_real { real_of(x.dtype()) } else { complex_of(x.dtype())? };
    let call = KernelCall::new("fft", kernel).input(x).ints(&dims).ints(&lengths).float(a.float(transform::scale));
    Ok(call.flag(a.flag(transform::flag)).float(a.float(transform::middle)).output(&shape, dtype))
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
    let (scale, real) = (v.args.float(transform::scale), !is_complex(meta.dtype));
    let back = Transform { dims, lengths, sizes, scale, flag, middle, real };
    Ok(vec![Some(back.of(e, op, v.g())?)])
}

pub static WHOLE: Op = Op {
    name: "_fft_whole",
    params: transform::PARAMS,
    summary: "Transforms of complex or real numbers.",
    lower: Lower::Kernel(|_, a| kernel(a, &fft::WHOLE, a.flag(transform::real))),
    grad: Grad::Rule(|e, v| adjoint(e, v, &WHOLE, !v.args.flag(transform::flag), 1.0)),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static TO_HALF: Op = Op {
    name: "_fft_to_half",
    params: transform::PARAMS,
    summary: "Transforms of real numbers to half spectra.",
    lower: Lower::Kernel(|_, a| kernel(a, &fft::TO_HALF, false)),
    // An element with a mirror image counts twice on the way back.
    grad: Grad::Rule(|e, v| {
        let (flag, middle) = (v.args.flag(transform::flag), v.args.float(transform::middle));
        adjoint(e, v, &FROM_HALF, flag, middle / 2.0)
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static FROM_HALF: Op = Op {
    name: "_fft_from_half",
    params: transform::PARAMS,
    summary: "Transforms of half spectra to real numbers.",
    lower: Lower::Kernel(|_, a| kernel(a, &fft::FROM_HALF, true)),
    grad: Grad::Rule(|e, v| {
        let (flag, middle) = (v.args.flag(transform::flag), v.args.float(transform::middle));
        adjoint(e, v, &TO_HALF, flag, middle * 2.0)
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&WHOLE, &TO_HALF, &FROM_HALF];
