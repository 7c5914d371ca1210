//! Elementary functions that vectorize: one trait, implemented for `f32` and `f64`.
//!
//! Bodies are branch-free (selects only), so that the compiler vectorizes loops over them; exceptions are marked. Many
//! `f32` functions are computed in f64 (`wide`) and rounded once, which is both the shortest and the most accurate
//! form. Knows nothing of tiles.

// Coefficients have all digits of their sources; every function takes the machine level, used or not.
#![allow(clippy::excessive_precision, clippy::extra_unused_type_parameters)]

mod angles;
pub mod bessel;
pub mod bessel_single;
pub mod counts;
mod double;
pub mod gamma;
pub mod gamma_single;
pub mod normal;
pub mod normal_single;
pub mod polynomial;
pub mod reparameterized;
mod single;
mod special;
pub mod vector;
mod wide;

use crate::kernel::host::simd::Simd;

pub use special::bessel_i0;

/// Functions of a float, compiled for a machine level `S`. For `f32`, errors are at most 2 units in the last place over
/// the whole range; the tests check each function.
pub trait Math: Copy {
    fn exp<S: Simd>(self) -> Self;
    fn exp2<S: Simd>(self) -> Self;
    fn expm1<S: Simd>(self) -> Self;
    fn log<S: Simd>(self) -> Self;
    fn log2<S: Simd>(self) -> Self;
    fn log10<S: Simd>(self) -> Self;
    fn log1p<S: Simd>(self) -> Self;
    /// For |x| below `TRIG_LIMIT`.
    fn sin<S: Simd>(self) -> Self;
    fn cos<S: Simd>(self) -> Self;
    fn tan<S: Simd>(self) -> Self;
    /// For any argument; not vectorized.
    fn sin_any(self) -> Self;
    fn cos_any(self) -> Self;
    fn tan_any(self) -> Self;
    fn asin<S: Simd>(self) -> Self;
    fn acos<S: Simd>(self) -> Self;
    fn atan<S: Simd>(self) -> Self;
    fn atan2<S: Simd>(self, x: Self) -> Self;
    fn sinh<S: Simd>(self) -> Self;
    fn cosh<S: Simd>(self) -> Self;
    fn tanh<S: Simd>(self) -> Self;
    fn asinh<S: Simd>(self) -> Self;
    fn acosh<S: Simd>(self) -> Self;
    fn atanh<S: Simd>(self) -> Self;
    fn pow<S: Simd>(self, y: Self) -> Self;
    fn hypot<S: Simd>(self, y: Self) -> Self;
    fn erf<S: Simd>(self) -> Self;
    fn erfc<S: Simd>(self) -> Self;
    /// 1 / (1 + e^-x).
    fn sigmoid<S: Simd>(self) -> Self;
    fn erfinv<S: Simd>(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    fn trigamma(self) -> Self;
    fn bessel_i1(self) -> Self;
    fn zeta(self, q: Self) -> Self;
    fn bessel_i0(self) -> Self;
    /// The next representable value towards `y`.
    fn next_after(self, y: Self) -> Self;
}

/// Bound: magnitude up to which the three-part reduction modulo pi/2 is exact.
pub const TRIG_LIMIT: f64 = 100_000.0;
/// Quotients of two f32 below this are truncated exactly in f64.
pub const QUOTIENT_LIMIT: f32 = 16_777_216.0;

#[cfg(test)]
mod tests {
    use super::special::{digamma, erfinv, trigamma};
    use super::*;
    use crate::kernel::elementwise as f;
    use crate::kernel::host::simd;
    use crate::kernel::program::{Class, Function, TILE};

    /// Distance in units in the last place of the exact result rounded to f32.
    fn ulps(got: f32, want: f64) -> f64 {
        let rounded = want as f32;
        if got == 0.0 && rounded == 0.0 && got.is_sign_negative() != rounded.is_sign_negative() {
            return f64::INFINITY;
        }
        if got == rounded || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        if !got.is_finite() || !rounded.is_finite() {
            return f64::INFINITY;
        }
        let (_, exponent) = libm::frexp(want);
        let unit = 2f64.powi((exponent - 24).max(-149));
        (got as f64 - want).abs() / unit
    }

    /// Largest error of a function over every 2^10-th float, its edges and a dense range, at every level of
    /// the machine.
    fn check(function: &'static Function, reference: fn(f64) -> f64, bound: f64) {
        check_each(function, reference, bound, 1021);
    }

    /// As `check`, over fewer floats, for references that take long.
    fn check_some(function: &'static Function, reference: fn(f64) -> f64, bound: f64) {
        check_each(function, reference, bound, 99_991);
    }

    fn check_each(function: &'static Function, reference: fn(f64) -> f64, bound: f64, step: u32) {
        let variant = &function.variants[function.variant(&[Class::F32]).unwrap()];
        let edges = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX, f32::MIN];
        let all = (0..u32::MAX / step).map(|i| f32::from_bits(i * step));
        let dense = (-20_000..20_000).map(|i| i as f32 * 0.0007);
        let inputs: Vec<f32> = edges.into_iter().chain(all).chain(dense).collect();
        let mut worst = (0.0, 0.0f32, 0.0f32, 0);
        for level in simd::level()..3 {
            let mut out = [0f32; TILE];
            for tile in inputs.chunks(TILE) {
                // SAFETY: both tiles hold their elements.
                unsafe { variant.tiles[level](&[tile.as_ptr().cast(); 4], out.as_mut_ptr().cast(), tile.len()) };
                for (&x, &y) in tile.iter().zip(&out) {
                    let error = ulps(y, reference(x as f64));
                    if error > worst.0 {
                        worst = (error, x, y, level);
                    }
                }
            }
        }
        assert!(
            worst.0 <= bound,
            "{}: {} ulp at {:e}: {:e}, not {:e} (level {})",
            function.name,
            worst.0,
            worst.1,
            worst.2,
            reference(worst.1 as f64),
            worst.3
        );
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    #[test]
    fn exponentials() {
        check(&f::EXP, f64::exp, 2.0);
        check(&f::EXP2, f64::exp2, 2.0);
        check(&f::EXPM1, f64::exp_m1, 2.0);
        check(&f::TANH, f64::tanh, 2.0);
        check(&f::SINH, f64::sinh, 2.0);
        check(&f::COSH, f64::cosh, 2.0);
    }

    #[test]
    fn logarithms() {
        check(&f::LOG, f64::ln, 2.0);
        check(&f::LOG2, f64::log2, 2.0);
        check(&f::LOG10, f64::log10, 2.0);
        check(&f::LOG1P, f64::ln_1p, 2.0);
        check(&f::ASINH, libm::asinh, 2.0);
        check(&f::ACOSH, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 2.0);
        check(&f::ATANH, libm::atanh, 2.0);
    }

    #[test]
    fn angles() {
        check(&f::SIN, f64::sin, 2.0);
        check(&f::COS, f64::cos, 2.0);
        check(&f::TAN, f64::tan, 2.0);
        check(&f::ASIN, f64::asin, 2.0);
        check(&f::ACOS, f64::acos, 2.0);
        check(&f::ATAN, f64::atan, 2.0);
    }

    #[test]
    fn angles_of_points() {
        let variant = &f::ATAN2.variants[f::ATAN2.variant(&[Class::F32, Class::F32]).unwrap()];
        let edges = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-45, f32::MAX];
        let all: Vec<f32> = edges.into_iter().chain((0..990).map(|i| f32::from_bits(i * 4_338_000))).collect();
        for level in simd::level()..3 {
            for &y in &all {
                let (ys, mut out) = (vec![y; all.len()], [0f32; TILE]);
                let args = [ys.as_ptr().cast(), all.as_ptr().cast(), all.as_ptr().cast(), all.as_ptr().cast()];
                // SAFETY: all hold their elements, fewer than a tile.
                unsafe { variant.tiles[level](&args, out.as_mut_ptr().cast(), all.len()) };
                for (&x, &got) in all.iter().zip(&out) {
                    let want = (y as f64).atan2(x as f64);
                    assert!(ulps(got, want) <= 2.0, "atan2({y:e}, {x:e}): {got:e}, not {want:e} (level {level})");
                }
            }
        }
    }

    #[test]
    fn errors_and_roots() {
        check(&f::ERFINV, special::erfinv, 5.0);
        check(&f::ERF, libm::erf, 2.0);
        check(&f::ERFC, libm::erfc, 2.0);
        check(&f::RSQRT, |x| 1.0 / x.sqrt(), 2.0);
        // Below -87 e^-x overflows before the quotient underflows; PyTorch's does too.
        check(
            &f::SIGMOID,
            |x| if x < -87.3 { if (-x) as f32 > 88.722_84 { 0.0 } else { sigmoid(x) } } else { sigmoid(x) },
            2.5,
        );
    }

    #[test]
    fn gamma_and_bessel_functions() {
        check_some(&f::LGAMMA, |x| if x == f64::NEG_INFINITY { f64::INFINITY } else { libm::lgamma(x) }, 2.0);
        check_some(&f::DIGAMMA, digamma, 2.0);
        check_some(&f::I0, special::bessel_i0, 6.0);
        check_some(&f::I1, special::bessel_i1, 6.0);
        check_some(&f::I0E, bessel::i0e, 6.0);
        check_some(&f::I1E, bessel::i1e, 6.0);
        check_some(&f::BESSEL_K0, bessel::k0, 6.0);
        check_some(&f::BESSEL_K1, bessel::k1, 6.0);
        check_some(&f::BESSEL_K0E, bessel::k0e, 6.0);
        check_some(&f::BESSEL_K1E, bessel::k1e, 6.0);
    }

    #[test]
    fn normal_distribution() {
        check_some(&f::ENTR, normal::entr, 3.0);
        check_some(&f::ERFCX, normal::erfcx, 4.0);
        check_some(&f::NDTR, normal::ndtr, 4.0);
        check_some(&f::LOG_NDTR, normal::log_ndtr, 4.0);
        check_some(&f::NDTRI, normal::ndtri, 6.0);
    }

    /// SciPy's values.
    #[test]
    fn special_functions() {
        let check = |function: fn(f64) -> f64, table: &[(f64, f64)]| {
            for &(x, want) in table {
                let got = function(x);
                assert!((got - want).abs() <= 4e-14 * want.abs(), "{x}: {got} {want}");
            }
        };
        let inverse = [(0.1, 0.08885599049425769), (0.5, 0.4769362762044699), (-0.9, -1.1630871536766743)];
        check(erfinv, &inverse);
        check(erfinv, &[(0.999999, 3.458910737275499)]);
        let first = [(0.3, -3.502524222200133), (1.0, -0.5772156649015329), (7.5, 1.9467574842460866)];
        check(digamma, &first);
        check(digamma, &[(-1.5, 0.7031566406452434)]);
        check(trigamma, &[(0.3, 12.245364546107734), (1.0, 1.6449340668482266), (9.25, 0.11416188455670627)]);
        check(
            bessel_i0,
            &[(0.0, 1.0), (1.5, 1.6467231897728907), (24.0, 2168619088.2413764), (30.0, 781672297823.9775)],
        );
    }

    /// f64 against the standard library, relative.
    #[test]
    fn doubles() {
        type Real = fn(f64) -> f64;
        let ours: [(Real, Real, f64); 7] = [
            (|x| Math::exp::<simd::Portable>(x), f64::exp, 700.0),
            (|x| Math::log::<simd::Portable>(x.abs()), |x| x.abs().ln(), 1e300),
            (|x| Math::log1p::<simd::Portable>(x.abs()), |x| x.abs().ln_1p(), 1e10),
            (|x| Math::expm1::<simd::Portable>(x), f64::exp_m1, 50.0),
            (|x| Math::tanh::<simd::Portable>(x), f64::tanh, 25.0),
            (|x| Math::sin::<simd::Portable>(x), f64::sin, 99_999.0),
            (|x| Math::cos::<simd::Portable>(x), f64::cos, 99_999.0),
        ];
        for (k, (ours, std, reach)) in ours.into_iter().enumerate() {
            for x in [0.0, -0.0] {
                assert_eq!(ours(x).to_bits(), std(x).to_bits(), "{k}: {x}");
            }
            for i in -20_000..20_000 {
                let x = reach * (i as f64 / 20_000.0).powi(7) + 1e-9;
                let (got, want) = (ours(x), std(x));
                assert!((got - want).abs() <= 6e-16 * want.abs(), "{k}: {x} {got} {want}");
            }
        }
    }
}
