//! Special functions that are computed in f64, one element at a time; those of `f32` that have a form without branches in
//! that.

use super::super::math::polynomial::Polynomial;
use super::super::math::{bessel, bessel_single, counts, gamma, normal, normal_single, reparameterized};
use super::*;

/// A float that can be computed by a function of f64.
trait Wide: Copy {
    fn wide(self, function: fn(f64) -> f64) -> Self;
    fn wide2(self, other: Self, function: fn(f64, f64) -> f64) -> Self;
    fn wide3(self, second: Self, third: Self, function: fn(f64, f64, f64) -> f64) -> Self;
}

macro_rules! wide {
    ($($T:ty),*) => {
        $(impl Wide for $T {
            #[inline(always)]
            fn wide(self, function: fn(f64) -> f64) -> $T {
                function(self as f64) as $T
            }
            #[inline(always)]
            fn wide2(self, other: $T, function: fn(f64, f64) -> f64) -> $T {
                function(self as f64, other as f64) as $T
            }
            #[inline(always)]
            fn wide3(self, second: $T, third: $T, function: fn(f64, f64, f64) -> f64) -> $T {
                function(self as f64, second as f64, third as f64) as $T
            }
        })*
    };
}
wide!(f32, f64);

/// The exponent of x = m 2^e with |m| in [1/2, 1); 0 for zero, infinities and NaN.
fn exponent(x: f64) -> f64 {
    if x.is_finite() { libm::frexp(x).1 as f64 } else { 0.0 }
}

fn mantissa(x: f64) -> f64 {
    if x.is_finite() { libm::frexp(x).0 } else { x }
}

/// a ln(1 + b), 0 where `a` is 0 unless `b` is NaN.
fn xlog1py(a: f64, b: f64) -> f64 {
    if b.is_nan() {
        b
    } else if a == 0.0 {
        0.0
    } else {
        a * b.ln_1p()
    }
}

functions! {
    /// -a ln a.
    ENTR "entr" "ts_entr(a)" { single(a) = normal_single::entr, normal::entr; }
    /// e^(a²) erfc(a).
    ERFCX "erfcx" "ts_erfcx(a)" { single(a) = normal_single::erfcx, normal::erfcx; }
    /// The distribution function of the standard normal, its logarithm, its inverse.
    NDTR "ndtr" "ts_ndtr(a)" { single(a) = normal_single::ndtr, normal::ndtr; }
    LOG_NDTR "log_ndtr" "ts_log_ndtr(a)" { single(a) = normal_single::log_ndtr, normal::log_ndtr; }
    NDTRI "ndtri" "ts_ndtri(a)" { single(a) = normal_single::ndtri, normal::ndtri; }
    XLOG1PY "xlog1py" "ts_xlog1py(a, b)" { float(a, b) = a.wide2(b, xlog1py); }
    /// Incomplete gamma functions of order `a`, regularized.
    IGAMMA "igamma" "ts_igamma(a, b)" { float(a, b) = a.wide2(b, gamma::lower); }
    IGAMMAC "igammac" "ts_igammac(a, b)" { float(a, b) = a.wide2(b, gamma::upper); }
    /// `frexp`: mantissa in [1/2, 1) and exponent of `a`.
    MANTISSA "mantissa" "ts_mantissa(a)" { float(a) = a.wide(mantissa); }
    EXPONENT "exponent" "ts_exponent(a)" { float(a) = a.wide(exponent); }

    /// Random counts of mean `a`, and of `a` trials of probability `b`, from uniform numbers.
    POISSON "poisson" "ts_poisson(a, b)" { (a: F64, b: F64) -> F64 = counts::poisson(a, b); }
    BINOMIAL "binomial" "ts_binomial(a, b, c)" { (a: F64, b: F64, c: F64) -> F64 = counts::binomial(a, b, c); }

    /// Samples `b` that move with parameters `a`, and how they move.
    SAMPLED "sampled" "ts_sampled(a, b)" { float(a, b) = { let _ = a; b }; }
    GAMMA_SLOPE "gamma_slope" "ts_gamma_slope(a, b)" { float(a, b) = a.wide2(b, reparameterized::gamma); }
    DIRICHLET_SLOPE "dirichlet_slope" "ts_dirichlet_slope(a, b, c)" {
        float(a, b, c) = a.wide3(b, c, reparameterized::dirichlet);
    }

    /// I0 and I1 times e^-|a|.
    I0E "i0e" "ts_i0e(a)" { single(a) = bessel_single::i0e, bessel::i0e; }
    I1E "i1e" "ts_i1e(a)" { single(a) = bessel_single::i1e, bessel::i1e; }
    BESSEL_J0 "bessel_j0" "ts_bessel_j0(a)" { float(a) = a.wide(bessel::j0); }
    BESSEL_J1 "bessel_j1" "ts_bessel_j1(a)" { float(a) = a.wide(bessel::j1); }
    BESSEL_Y0 "bessel_y0" "ts_bessel_y0(a)" { float(a) = a.wide(bessel::y0); }
    BESSEL_Y1 "bessel_y1" "ts_bessel_y1(a)" { float(a) = a.wide(bessel::y1); }
    BESSEL_K0 "bessel_k0" "ts_bessel_k0(a)" { single(a) = bessel_single::k0, bessel::k0; }
    BESSEL_K1 "bessel_k1" "ts_bessel_k1(a)" { single(a) = bessel_single::k1, bessel::k1; }
    /// K0 and K1 times e^a.
    BESSEL_K0E "bessel_k0e" "ts_bessel_k0e(a)" { single(a) = bessel_single::k0e, bessel::k0e; }
    BESSEL_K1E "bessel_k1e" "ts_bessel_k1e(a)" { single(a) = bessel_single::k1e, bessel::k1e; }
    SPHERICAL_J0 "spherical_j0" "ts_spherical_j0(a)" { float(a) = a.wide(bessel::spherical_j0); }
    AIRY "airy" "ts_airy(a)" { float(a) = a.wide(bessel::airy); }

    /// Polynomials of degree `b` at `a`.
    CHEBYSHEV_T "chebyshev_t" "ts_chebyshev_t(a, b)" { float(a, b) = Polynomial::chebyshev_t(a, b); }
    CHEBYSHEV_U "chebyshev_u" "ts_chebyshev_u(a, b)" { float(a, b) = Polynomial::chebyshev_u(a, b); }
    CHEBYSHEV_V "chebyshev_v" "ts_chebyshev_v(a, b)" { float(a, b) = Polynomial::chebyshev_v(a, b); }
    CHEBYSHEV_W "chebyshev_w" "ts_chebyshev_w(a, b)" { float(a, b) = Polynomial::chebyshev_w(a, b); }
    SHIFTED_T "shifted_t" "ts_shifted_t(a, b)" { float(a, b) = Polynomial::shifted_t(a, b); }
    SHIFTED_U "shifted_u" "ts_shifted_u(a, b)" { float(a, b) = Polynomial::shifted_u(a, b); }
    SHIFTED_V "shifted_v" "ts_shifted_v(a, b)" { float(a, b) = Polynomial::shifted_v(a, b); }
    SHIFTED_W "shifted_w" "ts_shifted_w(a, b)" { float(a, b) = Polynomial::shifted_w(a, b); }
    HERMITE_H "hermite_h" "ts_hermite_h(a, b)" { float(a, b) = Polynomial::hermite_h(a, b); }
    HERMITE_HE "hermite_he" "ts_hermite_he(a, b)" { float(a, b) = Polynomial::hermite_he(a, b); }
    LAGUERRE_L "laguerre_l" "ts_laguerre_l(a, b)" { float(a, b) = Polynomial::laguerre_l(a, b); }
    LEGENDRE_P "legendre_p" "ts_legendre_p(a, b)" { float(a, b) = Polynomial::legendre_p(a, b); }
}
