//! `f64` functions: vectorized where training and statistics need them, otherwise those of the standard
//! library and of `libm`, one element at a time.

use super::{Math, Simd, special, wide};

/// `method = function`: functions of one argument without branches.
macro_rules! through {
    ($($name:ident = $($path:ident)::+;)*) => {
        $(#[inline(always)]
        fn $name<S: Simd>(self) -> f64 {
            $($path)::+(self)
        })*
    };
}

impl Math for f64 {
    #[inline(always)]
    fn exp<S: Simd>(self) -> f64 {
        wide::exp::<S>(self)
    }
    #[inline(always)]
    fn exp2<S: Simd>(self) -> f64 {
        wide::exp2::<S>(self)
    }
    #[inline(always)]
    fn expm1<S: Simd>(self) -> f64 {
        wide::expm1::<S>(self)
    }
    #[inline(always)]
    fn log<S: Simd>(self) -> f64 {
        wide::log::<S>(self)
    }
    #[inline(always)]
    fn log2<S: Simd>(self) -> f64 {
        wide::log2::<S>(self)
    }
    #[inline(always)]
    fn log1p<S: Simd>(self) -> f64 {
        wide::log1p::<S>(self)
    }
    #[inline(always)]
    fn sin<S: Simd>(self) -> f64 {
        wide::sin::<S>(self)
    }
    #[inline(always)]
    fn cos<S: Simd>(self) -> f64 {
        wide::cos::<S>(self)
    }
    #[inline(always)]
    fn tanh<S: Simd>(self) -> f64 {
        wide::tanh::<S>(self)
    }
    #[inline(always)]
    fn sinh<S: Simd>(self) -> f64 {
        let y = wide::sinh::<S>(self);
        // e^|x| overflows for arguments whose result does not.
        let half = wide::exp::<S>(0.5 * self.abs());
        if self.abs() > 709.0 { (0.5 * half * half).copysign(self) } else { y }
    }
    #[inline(always)]
    fn cosh<S: Simd>(self) -> f64 {
        let half = wide::exp::<S>(0.5 * self.abs());
        if self.abs() > 709.0 { 0.5 * half * half } else { wide::cosh::<S>(self) }
    }
    #[inline(always)]
    fn sigmoid<S: Simd>(self) -> f64 {
        1.0 / (1.0 + wide::exp::<S>(-self))
    }
    through! {
        log10 = f64::log10;
        tan = f64::tan;
        asin = f64::asin;
        acos = f64::acos;
        atan = f64::atan;
        asinh = libm::asinh;
        atanh = libm::atanh;
        erf = libm::erf;
        erfc = libm::erfc;
    }
    #[inline(always)]
    fn acosh<S: Simd>(self) -> f64 {
        // Not: `libm::acosh` below 1, where it does not return NaN.
        if self < 1.0 { f64::NAN } else { libm::acosh(self) }
    }
    fn sin_any(self) -> f64 {
        self.sin()
    }
    fn cos_any(self) -> f64 {
        self.cos()
    }
    fn tan_any(self) -> f64 {
        self.tan()
    }
    #[inline(always)]
    fn atan2<S: Simd>(self, x: f64) -> f64 {
        f64::atan2(self, x)
    }
    #[inline(always)]
    fn pow<S: Simd>(self, y: f64) -> f64 {
        self.powf(y)
    }
    #[inline(always)]
    fn hypot<S: Simd>(self, y: f64) -> f64 {
        f64::hypot(self, y)
    }
    fn erfinv<S: Simd>(self) -> f64 {
        special::erfinv(self)
    }
    fn lgamma(self) -> f64 {
        libm::lgamma(self)
    }
    fn digamma(self) -> f64 {
        special::digamma(self)
    }
    fn trigamma(self) -> f64 {
        special::trigamma(self)
    }
    fn bessel_i0(self) -> f64 {
        special::bessel_i0(self)
    }
    fn bessel_i1(self) -> f64 {
        special::bessel_i1(self)
    }
    fn zeta(self, q: f64) -> f64 {
        special::zeta(self, q)
    }
    fn next_after(self, y: f64) -> f64 {
        libm::nextafter(self, y)
    }
}
