//! The frequencies of a transform's elements, and the order that has 0 in the middle.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::creation::create::{ARANGE, leaf};
use crate::op::rows::shape::copies::ROLL;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(fftfreq(
    n: Int, d: Float = 1.0, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
));

/// Integers, by a function of their places, divided by the length of the whole in time.
fn frequencies(
    e: &mut dyn Emit,
    a: &Args,
    count: impl Fn(i64) -> i64,
    number: impl for<'c> FnOnce(Expr<'c>) -> Expr<'c>,
) -> Result<Vec<Tensor>> {
    let n = a.int(fftfreq::n);
    if n < 0 {
        fail!(VALUE, "`n` must not be negative, but is {n}");
    }
    let dtype = a.dtype(fftfreq::dtype).unwrap_or(e.default_float());
    if !dtype.is_float() {
        fail!(DTYPE, "a floating-point dtype is expected, not {dtype}");
    }
    let device = a.device(fftfreq::device).unwrap_or(e.default_device());
    let (zero, end) = (Scalar::Int(0), Scalar::Int(if n == 0 { 0 } else { count(n) }));
    let places = e.call(&ARANGE, args![zero, end, Scalar::Int(1), DType::F64, device])?;
    let frequency = 1.0 / (n as f64 * a.float(fftfreq::d));
    let made = if n == 0 { places } else { compute(e, |c| number(c.of(&places)) * frequency)? };
    let made = e.cast(&made, dtype)?;
    leaf(a, fftfreq::requires_grad, made)
}

pub static FFTFREQ: Op = Op {
    name: "fft::fftfreq",
    params: fftfreq::PARAMS,
    summary: "The frequencies of the elements of `fft::fft` of `n` samples that are `d` apart: first 0 and the positive ones.",
    examples: &[
        ex("fft::fftfreq(4)", "tensor([ 0.0000,  0.2500, -0.5000, -0.2500])"),
        ex("fft::fftfreq(5, 0.2)", "tensor([ 0.,  1.,  2., -2., -1.])"),
        ex("fft::fftfreq(-1)", "E0206"),
        ex("fft::fftfreq(4, #{dtype: \"i64\"})", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let n = a.int(fftfreq::n);
        frequencies(e, a, |n| n, |x| x.greater_equal(((n + 1) / 2) as f64).choose(x - n as f64, x))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static RFFTFREQ: Op = Op {
    name: "fft::rfftfreq",
    params: fftfreq::PARAMS,
    summary: "The frequencies of the elements of `fft::rfft` of `n` samples that are `d` apart.",
    examples: &[
        ex("fft::rfftfreq(4)", "tensor([0.0000, 0.2500, 0.5000])"),
        ex("fft::rfftfreq(5, 0.2)", "tensor([0., 1., 2.])"),
        ex("fft::rfftfreq(-1)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| frequencies(e, a, |n| n / 2 + 1, |x| x)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(fftshift(input: Tensor, dim: Dims = None));

/// Rolls each dim by a number of places.
fn shifted(e: &mut dyn Emit, a: &Args, places: impl Fn(usize) -> usize) -> Result<Vec<Tensor>> {
    let x = a.input();
    let shape = x.shape();
    let given = a.ints(fftshift::dim);
    let dims: Ints = match given {
        Some(given) => given.iter().map(|&dim| Ok(infer::dim(dim, shape.len())? as i64)).collect::<Result<Ints>>()?,
        None => (0..shape.len() as i64).collect(),
    };
    let dims: Ints = dims.into_iter().filter(|&dim| (dim as usize) < shape.len()).collect();
    if dims.is_empty() {
        return Ok(vec![x.clone()]);
    }
    let shifts: Ints = dims.iter().map(|&dim| places(shape[dim as usize]) as i64).collect();
    e.apply(&ROLL, args![x, shifts, dims])
}

pub static FFTSHIFT: Op = Op {
    name: "fft::fftshift",
    params: fftshift::PARAMS,
    summary: "Moves the frequency 0 from the first place to the middle, along `dim` or all dimensions.",
    examples: &[
        ex("fft::fftshift(tensor([0, 1, 2, -2, -1]))", "tensor([-2, -1,  0,  1,  2])"),
        ex("fft::fftshift(ones([2]), 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| shifted(e, a, |n| n / 2)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static IFFTSHIFT: Op = Op {
    name: "fft::ifftshift",
    params: fftshift::PARAMS,
    summary: "The inverse of `fft::fftshift`: moves the frequency 0 from the middle to the first place.",
    examples: &[ex("fft::ifftshift(tensor([-2, -1, 0, 1, 2]))", "tensor([ 0,  1,  2, -2, -1])")],
    lower: Lower::Compose(|e, a| shifted(e, a, |n| n.div_ceil(2))),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&FFTFREQ, &RFFTFREQ, &FFTSHIFT, &IFFTSHIFT];
