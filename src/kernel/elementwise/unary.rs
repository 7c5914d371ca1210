//! Functions of one number.

use super::super::math::{bessel_single, gamma_single};
use super::*;

/// sin(pi a) / (pi a) for any argument.
fn sinc_any<T: Math + From<f32> + std::ops::Mul<Output = T> + std::ops::Div<Output = T> + PartialEq>(a: T, pi: T) -> T {
    let x = a * pi;
    if a == T::from(0.0) { T::from(1.0) } else { x.sin_any() / x }
}

functions! {
    NEG "neg" "-a" { float(a) = -a; int(a) = a.wrapping_neg(); }
    ABS "abs" "ts_abs(a)" { float(a) = a.abs(); int(a) = a.wrapping_abs(); }
    /// -1, 0 or 1; NaN gives 0, as in PyTorch.
    SIGN "sgn" "ts_sign(a)" {
        float(a) = {
            let up = if a > 0.0 { 1.0 } else { 0.0 };
            if a < 0.0 { -1.0 } else { up }
        };
        int(a) = (a > 0) as i64 - (a < 0) as i64;
        bool(a) = a;
    }
    SQUARE "square" "a * a" { float(a) = a * a; int(a) = a.wrapping_mul(a); }
    RECIPROCAL "reciprocal" "ts_reciprocal(a)" { float(a) = 1.0 / a; }
    SQRT "sqrt" "ts_sqrt(a)" { float(a) = a.sqrt(); }
    RSQRT "rsqrt" "ts_rsqrt(a)" { float(a) = 1.0 / a.sqrt(); }

    EXP "exp" "ts_exp(a)" { float(a) = Math::exp::<S>(a), f32: vector::exp; }
    EXP2 "exp2" "ts_exp2(a)" { float(a) = Math::exp2::<S>(a); }
    EXPM1 "expm1" "ts_expm1(a)" { float(a) = Math::expm1::<S>(a); }
    LOG "log" "ts_log(a)" { float(a) = Math::log::<S>(a); }
    LOG2 "log2" "ts_log2(a)" { float(a) = Math::log2::<S>(a); }
    LOG10 "log10" "ts_log10(a)" { float(a) = Math::log10::<S>(a); }
    LOG1P "log1p" "ts_log1p(a)" { float(a) = Math::log1p::<S>(a); }

    SIN "sin" "ts_sin(a)" { trig(a) = Math::sin::<S>(a), Math::sin_any(a); }
    COS "cos" "ts_cos(a)" { trig(a) = Math::cos::<S>(a), Math::cos_any(a); }
    TAN "tan" "ts_tan(a)" { trig(a) = Math::tan::<S>(a), Math::tan_any(a); }
    ASIN "asin" "ts_asin(a)" { float(a) = Math::asin::<S>(a); }
    ACOS "acos" "ts_acos(a)" { float(a) = Math::acos::<S>(a); }
    ATAN "atan" "ts_atan(a)" { float(a) = Math::atan::<S>(a); }
    SINH "sinh" "ts_sinh(a)" { float(a) = Math::sinh::<S>(a); }
    COSH "cosh" "ts_cosh(a)" { float(a) = Math::cosh::<S>(a); }
    TANH "tanh" "ts_tanh(a)" { float(a) = Math::tanh::<S>(a), f32: vector::tanh; }
    ASINH "asinh" "ts_asinh(a)" { float(a) = Math::asinh::<S>(a); }
    ACOSH "acosh" "ts_acosh(a)" { float(a) = Math::acosh::<S>(a); }
    ATANH "atanh" "ts_atanh(a)" { float(a) = Math::atanh::<S>(a); }

    ERF "erf" "ts_erf(a)" { float(a) = Math::erf::<S>(a); }
    ERFC "erfc" "ts_erfc(a)" { float(a) = Math::erfc::<S>(a); }
    ERFINV "erfinv" "ts_erfinv(a)" { float(a) = Math::erfinv::<S>(a); }
    LGAMMA "lgamma" "ts_lgamma(a)" { single(a) = gamma_single::lgamma, Math::lgamma; }
    DIGAMMA "digamma" "ts_digamma(a)" { single(a) = gamma_single::digamma, Math::digamma; }
    /// The trigamma function.
    POLYGAMMA1 "polygamma1" "ts_polygamma1(a)" { float(a) = Math::trigamma(a); }
    /// The modified Bessel function of the first kind, order 0.
    I0 "i0" "ts_i0(a)" { single(a) = bessel_single::i0, Math::bessel_i0; }
    /// The modified Bessel function of the first kind, order 1.
    I1 "i1" "ts_i1(a)" { single(a) = bessel_single::i1, Math::bessel_i1; }
    /// Hurwitz' zeta function: the sum over k of (k + b)^-a.
    ZETA "zeta" "ts_zeta(a, b)" { float(a, b) = Math::zeta(a, b); }
    /// sin(pi a) / (pi a), 1 at 0.
    SINC "sinc" "ts_sinc(a)" {
        trig(a) = {
            let x = a * 3.141_592_653_589_793;
            if a == 0.0 { 1.0 } else { Math::sin::<S>(x) / x }
        }, sinc_any(a, 3.141_592_653_589_793);
    }
    SIGMOID "sigmoid" "ts_sigmoid(a)" { float(a) = Math::sigmoid::<S>(a), f32: vector::sigmoid; }
    LOGIT "logit" "ts_logit(a)" { float(a) = Math::log::<S>(a / (1.0 - a)); }

    FLOOR "floor" "ts_floor(a)" { float(a) = a.floor(); int(a) = a; }
    CEIL "ceil" "ts_ceil(a)" { float(a) = a.ceil(); int(a) = a; }
    /// Rounds half to even.
    ROUND "round" "ts_round(a)" { float(a) = a.round_ties_even(); int(a) = a; }
    TRUNC "trunc" "ts_trunc(a)" { float(a) = a.trunc(); int(a) = a; }
    FRAC "frac" "ts_frac(a)" { float(a) = a - a.trunc(); }
    DEG2RAD "deg2rad" "ts_deg2rad(a)" { float(a) = a * 0.017_453_292_519_943_295; }
    RAD2DEG "rad2deg" "ts_rad2deg(a)" { float(a) = a * 57.295_779_513_082_32; }
}
