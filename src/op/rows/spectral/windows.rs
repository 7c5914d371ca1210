//! The windows of `torch.signal.windows`, symmetric unless `sym` is false.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::creation::create::{ARANGE, leaf};
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::special::I0;
use crate::op::tensor::Tensor;
use crate::signature;
use std::f64::consts::{PI, TAU};

const DETAILS: &str = "`sym: false`: as one of a row of windows, so that the last weight is left out.";

/// Weights by a function of the places 0 to M - 1, in f64; `rest` is the place of `sym`, which `dtype`, `device` and
/// `requires_grad` follow.
fn window(
    e: &mut dyn Emit,
    a: &Args,
    rest: usize,
    weights: impl for<'c> FnOnce(Expr<'c>, Lengths) -> Expr<'c>,
) -> Result<Vec<Tensor>> {
    let m = a.int(hann::M);
    if m < 0 {
        fail!(VALUE, "`M` must not be negative, but is {m}");
    }
    let dtype = a.dtype(rest + 1).unwrap_or(e.default_float());
    if !dtype.is_float() {
        fail!(DTYPE, "a floating-point dtype is expected, not {dtype}");
    }
    let device = a.device(rest + 2).unwrap_or(e.default_device());
    let (zero, end) = (Scalar::Int(0), Scalar::Int(m));
    let places = e.call(&ARANGE, args![zero, end, Scalar::Int(1), DType::F64, device])?;
    let lengths = Lengths { m: m as f64, symmetric: a.flag(rest) };
    let made = match m {
        0 => places,
        _ => compute(e, |c| weights(c.of(&places), lengths))?,
    };
    let made = e.cast(&made, dtype)?;
    leaf(a, rest + 3, made)
}

#[derive(Clone, Copy)]
struct Lengths {
    m: f64,
    symmetric: bool,
}

impl Lengths {
    /// From the first weight to the one that repeats it.
    fn period(self) -> f64 {
        if self.symmetric || self.m == 1.0 { self.m - 1.0 } else { self.m }
    }
}

/// The sum of (-1)^i a_i cos(2 pi i x / period); 1 for a single weight.
fn cosines<'c>(x: Expr<'c>, lengths: Lengths, weights: &[f64]) -> Expr<'c> {
    if lengths.m == 1.0 {
        return x + 1.0;
    }
    let turn = TAU / lengths.period();
    let wave = |(i, weight): (usize, &f64)| (x * (turn * i as f64)).cos() * if i % 2 == 0 { *weight } else { -weight };
    weights.iter().enumerate().skip(1).map(wave).fold(x * 0.0 + weights[0], |sum, wave| sum + wave)
}

/// Parameters that all windows have after their own.
macro_rules! window_signature {
    ($list:ident($($own:tt)*)) => {
        signature!($list(
            M: Int, $($own)* sym: Bool = true, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
        ));
    };
}

window_signature!(hann());
window_signature!(exponential(center: Float = None, tau: Float = 1.0,));
window_signature!(gaussian(std: Float = 1.0,));
window_signature!(general_cosine(a: Floats,));
window_signature!(general_hamming(alpha: Float = 0.54,));
window_signature!(kaiser(beta: Float = 12.0,));
window_signature!(nuttall());

macro_rules! windows {
    ($($NAME:ident $name:literal $list:ident $summary:literal [$($example:expr),*] $lower:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: $list::PARAMS,
            summary: $summary,
            details: DETAILS,
            examples: &[$($example),*],
            lower: Lower::Compose($lower),
            grad: Grad::Composed,
            call: CallForm::Function,
            ..Op::BASE
        };)*

        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
}

windows! {
    BARTLETT "signal::windows::bartlett" hann "Bartlett's window, a triangle." [
        ex("signal::windows::bartlett(5)", "tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])"),
        ex("signal::windows::bartlett(-1)", "E0206")
    ] |e, a| window(e, a, hann::sym, |x, n| match n.m {
        1.0 => x + 1.0,
        _ => 1.0 - (x * (2.0 / n.period()) - 1.0).abs(),
    });
    BLACKMAN "signal::windows::blackman" hann "Blackman's window: 0.42, 0.5 and 0.08 as weights of cosines." [
        ex("signal::windows::blackman(5)[1..4]", "tensor([0.3400, 1.0000, 0.3400])")
    ] |e, a| window(e, a, hann::sym, |x, n| cosines(x, n, &[0.42, 0.5, 0.08]));
    COSINE "signal::windows::cosine" hann "Half a period of a sine." [
        ex("signal::windows::cosine(3)", "tensor([0.5000, 1.0000, 0.5000])")
    ] |e, a| window(e, a, hann::sym, |x, n| {
        let whole = if n.symmetric || n.m == 1.0 { n.m } else { n.m + 1.0 };
        ((x + 0.5) * (PI / whole)).sin()
    });
    EXPONENTIAL "signal::windows::exponential" exponential
        "An exponential function of the distance from `center`, the middle without it, in units of `tau`." [
        ex("signal::windows::exponential(3)", "tensor([0.3679, 1.0000, 0.3679])"),
        ex("signal::windows::exponential(3, #{tau: 0})", "E0206"),
        ex("signal::windows::exponential(3, #{center: 0.0})", "E0206")
    ] |e, a| {
        let (tau, center) = (a.float(exponential::tau), a.opt_float(exponential::center));
        if tau <= 0.0 {
            fail!(VALUE, "`tau` must be positive, but is {tau}");
        }
        if center.is_some() && a.flag(exponential::sym) {
            fail!(VALUE, "a symmetric window has its center in the middle: `center` goes with `sym: false`");
        }
        window(e, a, exponential::sym, |x, n| {
            let center = center.unwrap_or(n.period() / 2.0);
            (-((x - center) * (1.0 / tau)).abs()).exp()
        })
    };
    GAUSSIAN "signal::windows::gaussian" gaussian "The density of a normal distribution, 1 in the middle." [
        ex("signal::windows::gaussian(3)", "tensor([0.6065, 1.0000, 0.6065])"),
        ex("signal::windows::gaussian(3, #{std: 0})", "E0206")
    ] |e, a| {
        let std = a.float(gaussian::std);
        if std <= 0.0 {
            fail!(VALUE, "`std` must be positive, but is {std}");
        }
        window(e, a, gaussian::sym, |x, n| {
            (-((x - n.period() / 2.0) * (1.0 / (std * 2f64.sqrt()))).square()).exp()
        })
    };
    GENERAL_COSINE "signal::windows::general_cosine" general_cosine
        "Cosines of whole numbers of periods, with weights `a` of alternating signs." [
        ex("signal::windows::general_cosine(5, [0.5, 0.5])", "tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])"),
        ex("signal::windows::general_cosine(5, [])", "E0206")
    ] |e, a| {
        let weights = match a.attr(general_cosine::a) {
            Attr::Floats(list) => list.to_vec(),
            _ => a.opt_float(general_cosine::a).into_iter().collect(),
        };
        if weights.is_empty() {
            fail!(VALUE, "`a` has no weights");
        }
        window(e, a, general_cosine::sym, |x, n| cosines(x, n, &weights))
    };
    GENERAL_HAMMING "signal::windows::general_hamming" general_hamming "alpha - (1 - alpha) cos(2 pi n / N)." [
        ex("signal::windows::general_hamming(3, #{alpha: 0.6})", "tensor([0.2000, 1.0000, 0.2000])")
    ] |e, a| {
        let alpha = a.float(general_hamming::alpha);
        window(e, a, general_hamming::sym, |x, n| cosines(x, n, &[alpha, 1.0 - alpha]))
    };
    HAMMING "signal::windows::hamming" hann "Hamming's window: 0.54 - 0.46 cos(2 pi n / N)." [
        ex("signal::windows::hamming(3)", "tensor([0.0800, 1.0000, 0.0800])")
    ] |e, a| window(e, a, hann::sym, |x, n| cosines(x, n, &[0.54, 1.0 - 0.54]));
    HANN "signal::windows::hann" hann "Hann's window: 1/2 - 1/2 cos(2 pi n / N)." [
        ex("signal::windows::hann(5)", "tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])"),
        ex("signal::windows::hann(4, #{sym: false})", "tensor([0.0000, 0.5000, 1.0000, 0.5000])"),
        ex("signal::windows::hann(4, #{dtype: \"i64\"})", "E0202")
    ] |e, a| window(e, a, hann::sym, |x, n| cosines(x, n, &[0.5, 0.5]));
    KAISER "signal::windows::kaiser" kaiser "Kaiser's window: i0(beta sqrt(1 - (2 n / N - 1)²)) / i0(beta)." [
        ex("signal::windows::kaiser(3, #{beta: 0.0})", "tensor([1., 1., 1.])"),
        ex("signal::windows::kaiser(3, #{beta: -1.0})", "E0206")
    ] |e, a| {
        let beta = a.float(kaiser::beta);
        if beta < 0.0 {
            fail!(VALUE, "`beta` must not be negative, but is {beta}");
        }
        window(e, a, kaiser::sym, |x, n| {
            if n.m == 1.0 {
                return x + 1.0;
            }
            let root = (1.0 - (x * (2.0 / n.period()) - 1.0).square()).with(&CLAMP_MIN, 0.0).sqrt();
            (root * beta).of(&I0) / crate::kernel::math::bessel_i0(beta)
        })
    };
    NUTTALL "signal::windows::nuttall" nuttall "Nuttall's window, the minimum of side lobes of four cosines." [
        ex("signal::windows::nuttall(5)[1..4]", "tensor([0.2270, 1.0000, 0.2270])")
    ] |e, a| window(e, a, nuttall::sym, |x, n| cosines(x, n, &[0.3635819, 0.4891775, 0.1365995, 0.0106411]));
}
