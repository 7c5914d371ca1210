//! Windows of signal processing: weights that fall off towards both ends.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::special::I0;
use crate::op::tensor::Tensor;
use crate::signature;
use std::f64::consts::TAU;

const DETAILS: &str = "`periodic`: as one of a row of windows, so that the last weight is left out; else symmetric.";

/// From places n / N, in f64, to weights; the arguments from `dtype` on stand at `rest`.
fn window(
    e: &mut dyn Emit,
    a: &Args,
    rest: usize,
    weights: impl Fn(&mut dyn Emit, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let length = a.int(hann_window::window_length);
    if length < 0 {
        fail!(VALUE, "`window_length` must not be negative, but is {length}");
    }
    let dtype = a.dtype(rest).unwrap_or(e.default_float());
    if !dtype.is_float() {
        fail!(DTYPE, "a floating-point dtype is expected, not {dtype}");
    }
    let device = a.device(rest + 1).unwrap_or(e.default_device());
    let (zero, end) = (Scalar::Int(0), Scalar::Int(length));
    let n = e.call(&ARANGE, args![zero, end, Scalar::Int(1), DType::F64, device])?;
    let weights = if length == 1 {
        e.add(&n, Scalar::Float(1.0))?
    } else {
        let period = if a.flag(hann_window::periodic) { length } else { length - 1 };
        let place = e.div(&n, Scalar::Float(period as f64))?;
        weights(e, &place)?
    };
    let window = e.cast(&weights, dtype)?;
    crate::op::rows::creation::create::leaf(a, rest + 2, window)
}

/// The sum of (-1)^k a_k cos(2 pi k x).
fn cosines(e: &mut dyn Emit, place: &Tensor, weights: &[f64]) -> Result<Tensor> {
    compute(e, |c| {
        let x = c.of(place);
        let wave =
            |(k, weight): (usize, &f64)| (x * (TAU * k as f64)).cos() * if k % 2 == 0 { *weight } else { -weight };
        weights.iter().enumerate().skip(1).map(wave).fold(x * 0.0 + weights[0], |sum, wave| sum + wave)
    })
}

signature!(hann_window(
    window_length: Int, periodic: Bool = true, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false,
));

pub static HANN_WINDOW: Op = Op {
    name: "hann_window",
    params: hann_window::PARAMS,
    summary: "Hann's window: 1/2 - 1/2 cos(2 pi n / N).",
    details: DETAILS,
    examples: &[ex("hann_window(4)", "tensor([0.0000, 0.5000, 1.0000, 0.5000])"), ex("hann_window(-1)", "E0206")],
    lower: Lower::Compose(|e, a| window(e, a, 2, |e, x| cosines(e, x, &[0.5, 0.5]))),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(hamming_window(
    window_length: Int, periodic: Bool = true, alpha: Float = 0.54, beta: Float = 0.46, dtype: DType = None,
    device: Device = None, requires_grad: Bool = false,
));

pub static HAMMING_WINDOW: Op = Op {
    name: "hamming_window",
    params: hamming_window::PARAMS,
    summary: "Hamming's window: alpha - beta cos(2 pi n / N).",
    details: DETAILS,
    examples: &[ex("hamming_window(4)", "tensor([0.0800, 0.5400, 1.0000, 0.5400])"), ex("hamming_window(-1)", "E0206")],
    lower: Lower::Compose(|e, a| {
        let weights = [a.float(hamming_window::alpha), a.float(hamming_window::beta)];
        window(e, a, 4, |e, x| cosines(e, x, &weights))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static BLACKMAN_WINDOW: Op = Op {
    name: "blackman_window",
    params: hann_window::PARAMS,
    summary: "Blackman's window: 0.42 - 1/2 cos(2 pi n / N) + 0.08 cos(4 pi n / N).",
    details: DETAILS,
    examples: &[
        ex("blackman_window(5, false)[1..4]", "tensor([0.3400, 1.0000, 0.3400])"),
        ex("blackman_window(-1)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| window(e, a, 2, |e, x| cosines(e, x, &[0.42, 0.5, 0.08]))),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static BARTLETT_WINDOW: Op = Op {
    name: "bartlett_window",
    params: hann_window::PARAMS,
    summary: "Bartlett's window, a triangle: 1 - |2 n / N - 1|.",
    details: DETAILS,
    examples: &[
        ex("bartlett_window(4)", "tensor([0.0000, 0.5000, 1.0000, 0.5000])"),
        ex("bartlett_window(-1)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| window(e, a, 2, |e, x| compute(e, |c| 1.0 - around(c.of(x)).abs()))),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// From 0..1 to -1..1.
fn around(place: Expr<'_>) -> Expr<'_> {
    place * 2.0 - 1.0
}

signature!(kaiser_window(
    window_length: Int, periodic: Bool = true, beta: Float = 12.0, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false,
));

pub static KAISER_WINDOW: Op = Op {
    name: "kaiser_window",
    params: kaiser_window::PARAMS,
    summary: "Kaiser's window: i0(beta sqrt(1 - (2 n / N - 1)²)) / i0(beta).",
    details: DETAILS,
    examples: &[ex("kaiser_window(3, false, 0.0)", "tensor([1., 1., 1.])"), ex("kaiser_window(-1)", "E0206")],
    lower: Lower::Compose(|e, a| {
        let beta = a.float(kaiser_window::beta);
        window(e, a, 3, |e, x| {
            let scale = crate::kernel::math::bessel_i0(beta);
            compute(e, |c| {
                let root = (1.0 - around(c.of(x)).square()).with(&CLAMP_MIN, 0.0).sqrt();
                (root * beta).of(&I0) / scale
            })
        })
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&HANN_WINDOW, &HAMMING_WINDOW, &BLACKMAN_WINDOW, &BARTLETT_WINDOW, &KAISER_WINDOW];
