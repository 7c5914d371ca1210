//! Activations, and gradients that would be long as compositions (arguments: `g` first, then the tensors that the
//! forward pass saved).

use super::*;

/// `tanh(ln(1 + e^x))` without a logarithm: with `n = e^x (e^x + 2)` it is `n / (n + 2)`.
macro_rules! tanh_softplus {
    (<$S:ident> $x:expr) => {{
        let x = $x;
        let e = Math::exp::<$S>(if x > 20.0 { 20.0 } else { x });
        let n = e * (e + 2.0);
        n / (n + 2.0)
    }};
}

/// The argument of the tanh in the tanh form of gelu: sqrt(2 / pi) (x + 0.044715 x^3).
macro_rules! gelu_inner {
    ($x:expr) => {
        0.797_884_560_802_865_4 * ($x + 0.044_715 * $x * $x * $x)
    };
}

functions! {
    /// NaN propagates.
    RELU "relu" "ts_relu(a)" {
        float(a) = if a < 0.0 { 0.0 } else { a };
        int(a) = if a < 0 { 0 } else { a };
    }
    GELU_ERF "gelu_erf" "ts_gelu_erf(a)" {
        float(a) = 0.5 * a * (1.0 + Math::erf::<S>(a * 0.707_106_781_186_547_5));
    }
    GELU_TANH "gelu_tanh" "ts_gelu_tanh(a)" {
        float(a) = 0.5 * a * (1.0 + Math::tanh::<S>(gelu_inner!(a))), f32: vector::gelu_tanh;
    }
    SILU "silu" "ts_silu(a)" { float(a) = a / (1.0 + Math::exp::<S>(-a)), f32: vector::silu; }
    /// `ln(1 + e^(b a)) / b`, and `a` itself where `b a` exceeds the threshold `c`.
    SOFTPLUS "softplus" "ts_softplus(a, b, c)" {
        float(a, b, c) = {
            let x = a * b;
            let y = Math::log1p::<S>(Math::exp::<S>(x)) / b;
            if x > c { a } else { y }
        };
    }
    MISH "mish" "ts_mish(a)" { float(a) = a * tanh_softplus!(<S> a); }
    /// `a` above 0, `b (e^a - 1)` below.
    ELU "elu" "ts_elu(a, b)" {
        float(a, b) = {
            let low = b * Math::expm1::<S>(a);
            if a > 0.0 { a } else { low }
        };
    }
    SELU "selu" "ts_selu(a)" {
        float(a) = {
            let low = 1.673_263_242_354_377_2 * Math::expm1::<S>(a);
            1.050_700_987_355_480_5 * (if a > 0.0 { a } else { low })
        };
    }
    CELU "celu" "ts_celu(a, b)" {
        float(a, b) = {
            let low = b * Math::expm1::<S>(a / b);
            if a > 0.0 { a } else { low }
        };
    }
    LEAKY_RELU "leaky_relu" "ts_leaky_relu(a, b)" { float(a, b) = if a > 0.0 { a } else { a * b }; }
    HARDTANH "hardtanh" "ts_hardtanh(a, b, c)" {
        float(a, b, c) = {
            let y = if a < b { b } else { a };
            if y > c { c } else { y }
        };
    }
    HARDSIGMOID "hardsigmoid" "ts_hardsigmoid(a)" {
        float(a) = {
            let y = a + 3.0;
            let y = if y < 0.0 { 0.0 } else { y };
            (if y > 6.0 { 6.0 } else { y }) / 6.0
        };
    }
    HARDSWISH "hardswish" "ts_hardswish(a)" {
        float(a) = {
            let y = a + 3.0;
            let y = if y < 0.0 { 0.0 } else { y };
            a * (if y > 6.0 { 6.0 } else { y }) / 6.0
        };
    }
    SOFTSIGN "softsign" "ts_softsign(a)" { float(a) = a / (1.0 + a.abs()); }
    LOGSIGMOID "logsigmoid" "ts_logsigmoid(a)" {
        float(a) = {
            let low = if a > 0.0 { 0.0 } else { a };
            low - Math::log1p::<S>(Math::exp::<S>(-a.abs()))
        };
    }
    NAN_TO_ZERO "nan_to_zero" "ts_nan_to_zero(a)" { float(a) = if a.is_nan() { 0.0 } else { a }; }
    TANHSHRINK "tanhshrink" "ts_tanhshrink(a)" { float(a) = a - Math::tanh::<S>(a); }
    SOFTSHRINK "softshrink" "ts_softshrink(a, b)" {
        float(a, b) = {
            let far = a - b.copysign(a);
            if a.abs() <= b { 0.0 } else { far }
        };
    }
    HARDSHRINK "hardshrink" "ts_hardshrink(a, b)" { float(a, b) = if a.abs() <= b { 0.0 } else { a }; }
    /// Half the square of `a` over `b` below it, the absolute value less half of `b` elsewhere.
    SMOOTH_L1 "smooth_l1" "ts_smooth_l1(a, b)" {
        float(a, b) = {
            let (near, far) = (0.5 * a * a / b, a.abs() - 0.5 * b);
            if a.abs() < b { near } else { far }
        };
    }
    /// The same, times `b`.
    HUBER "huber" "ts_huber(a, b)" {
        float(a, b) = {
            let (near, far) = (0.5 * a * a, (a.abs() - 0.5 * b) * b);
            if a.abs() < b { near } else { far }
        };
    }
    /// `a` where it exceeds `b`, else `c`.
    THRESHOLD "threshold" "ts_threshold(a, b, c)" {
        float(a, b, c) = if a <= b { c } else { a };
        int(a, b, c) = if a <= b { c } else { a };
    }

    GELU_ERF_GRAD "gelu_erf_grad" "ts_gelu_erf_grad(a, b)" {
        float(a, b) = {
            let below = 0.5 * (1.0 + Math::erf::<S>(b * 0.707_106_781_186_547_5));
            let density = 0.398_942_280_401_432_7 * Math::exp::<S>(-0.5 * b * b);
            a * (below + b * density)
        };
    }
    GELU_TANH_GRAD "gelu_tanh_grad" "ts_gelu_tanh_grad(a, b)" {
        float(a, b) = {
            let t = Math::tanh::<S>(gelu_inner!(b));
            let derivative = 0.797_884_560_802_865_4 * (1.0 + 0.134_145 * b * b);
            a * (0.5 * (1.0 + t) + 0.5 * b * (1.0 - t * t) * derivative)
        }, f32: vector::gelu_tanh_grad;
    }
    SILU_GRAD "silu_grad" "ts_silu_grad(a, b)" {
        float(a, b) = {
            let s = Math::sigmoid::<S>(b);
            a * s * (1.0 + b * (1.0 - s))
        };
    }
    MISH_GRAD "mish_grad" "ts_mish_grad(a, b)" {
        float(a, b) = {
            let (t, s) = (tanh_softplus!(<S> b), Math::sigmoid::<S>(b));
            a * (t + b * s * (1.0 - t * t))
        };
    }
    /// Arguments: gradient, input, beta, threshold.
    SOFTPLUS_GRAD "softplus_grad" "ts_softplus_grad(a, b, c, d)" {
        float(a, b, c, d) = {
            let x = b * c;
            let y = a * Math::sigmoid::<S>(x);
            if x > d { a } else { y }
        };
    }
    /// `b` is the output of tanh.
    TANH_GRAD "tanh_grad" "a * (1 - b * b)" { float(a, b) = a * (1.0 - b * b); }
    /// `b` is the output of sigmoid.
    SIGMOID_GRAD "sigmoid_grad" "a * (1 - b) * b" { float(a, b) = a * (1.0 - b) * b; }
}
