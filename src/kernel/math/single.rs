//! `f32` functions. Those that take much of a network's time compute in f32; the others compute in f64.
//!
//! Coefficients of exp and of tanh near 0 are those of Cephes (Moshier), of log those of fdlibm's `logf`; the
//! two pieces of erf are Chebyshev fits of our own, of the form that N. Juffa found.

use super::{Math, Simd, angles, special, wide};
use crate::kernel::host::simd::Portable;
use std::f32::consts::{FRAC_PI_2, LN_2, LOG2_E, LOG10_E, PI};

/// 1.5 · 2^23: adding it rounds an f32 of magnitude below 2^22 to an integer, half to even, which is then in the low
/// bits.
const MAGIC: f32 = 12_582_912.0;

/// `y * 2^k` for |k| up to 252, in two factors so that the result may be subnormal or infinite.
#[inline(always)]
pub(super) fn scale(y: f32, k: i32) -> f32 {
    let half = k >> 1;
    let power = |k: i32| f32::from_bits((k.wrapping_add(127) << 23) as u32);
    y * power(half) * power(k.wrapping_sub(half))
}

/// Coefficients of the highest power first.
#[inline(always)]
pub(super) fn polynomial<S: Simd, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    coefficients.into_iter().reduce(|sum, c| S::fma32(sum, x, c)).unwrap_or(0.0)
}

/// `erfinv(x) / x` in `w - 2.5` and, from w = 5, in `sqrt(w) - 3`, where `w = -ln(1 - x^2)`.
pub(super) const ERFINV_MIDDLE: [f32; 9] = [
    2.810_226_4e-8,
    3.432_739_4e-7,
    -3.523_387_7e-6,
    -4.391_506_5e-6,
    2.185_808_7e-4,
    -1.253_725e-3,
    -4.177_681_6e-3,
    2.466_407_3e-1,
    1.501_409_4,
];
pub(super) const ERFINV_TAIL: [f32; 9] = [
    -2.002_142_6e-4,
    1.009_505_6e-4,
    1.349_343_2e-3,
    -3.673_428_4e-3,
    5.739_507_7e-3,
    -7.622_461e-3,
    9.438_87e-3,
    1.001_674_1,
    2.832_976_8,
];

/// `(atan(x) / x - 1) / x^2` in x^2, for |x| <= 1: a fit of our own, by Chebyshev nodes.
const ATAN: [f32; 9] = [
    -1.751_677_8e-3,
    1.072_627_5e-2,
    -3.082_600_2e-2,
    5.760_393e-2,
    -8.382_812e-2,
    1.094_516_1e-1,
    -1.426_291_8e-1,
    1.999_842_8e-1,
    -3.333_329_6e-1,
];

/// `(atanh(x) / x - 1) / x^2` in x^2, for |x| <= 0.21, likewise.
const ATANH: [f32; 4] = [1.215_160_8e-1, 1.424_632_2e-1, 2.000_058_1e-1, 3.333_333e-1];

/// `erf(x) / x - 1` in x^2, for |x| <= 0.93.
pub(super) const ERF_NEAR: [f32; 6] =
    [-5.977_727_4e-4, 4.990_934e-3, -2.676_536_1e-2, 1.128_179_1e-1, -3.761_249_2e-1, 1.283_791_5e-1];

/// `(1 + 2a) e^(a^2) erfc(a) - 1` in `(a - 2) / (a + 2)`, the form of M. Shepherd and J. Laframboise (Mathematics of
/// Computation 36, 1981).
const ERFCX: [f32; 10] = [
    -4.011_392_6e-4,
    -1.230_752_1e-3,
    1.313_553_4e-3,
    8.632_274e-3,
    -8.059_92e-3,
    -5.420_466e-2,
    1.640_553_9e-1,
    -1.660_313_6e-1,
    -9.276_398e-2,
    2.769_784e-1,
];

/// `e^(a^2) erfc(a)` for a >= 0 in two parts: its rounded value, and what rounding took. For fused multiply-add.
#[inline(always)]
pub(super) fn erfcx_parts<S: Simd>(a: f32) -> (f32, f32) {
    let r = 1.0 / (a + 2.0);
    let q = S::fma32(-4.0, r, 1.0);
    // One step of Newton's, since the quotient must be exact.
    let u = S::fma32(r, S::fma32(q, -a, S::fma32(q + 1.0, -2.0, a)), q);
    let p = polynomial::<S, 10>(u, ERFCX);
    let r = 0.5 / (a + 0.5);
    let y = S::fma32(p, r, r);
    (y, ((p - y) + S::fma32(y + y, -a, 1.0)) * r)
}

/// e^(x + rest) as `2^k (1 + e)`: `e` and `k`, for a rest that is much smaller than x.
#[inline(always)]
pub(super) fn power_parts<S: Simd>(x: f32, rest: f32) -> (f32, i32) {
    let t = S::fma32(x, LOG2_E, MAGIC);
    let n = t - MAGIC;
    let r = S::fma32(n, 2.121_944_4e-4, S::fma32(n, -0.693_359_4, x)) + rest;
    (expm1_small::<S>(r), (t.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32))
}

/// The complementary error function for machines with fused multiply-add.
#[inline(always)]
fn erfc<S: Simd>(x: f32) -> f32 {
    let a = x.abs();
    let near = 1.0 - S::fma32(polynomial::<S, 6>(a * a, ERF_NEAR), a, a);
    // From here on the result rounds to 0.
    let a = if a > 10.1 { 10.1 } else { a };
    let (tail, lost) = erfcx_parts::<S>(a);
    let square = a * a;
    let (e, k) = power_parts::<S>(-square, S::fma32(-a, a, square));
    let far = scale(tail + S::fma32(e, tail, S::fma32(e, lost, lost)), k);
    let y = if a < 0.45 { near } else { far };
    let y = if x < 0.0 { 2.0 - y } else { y };
    if x.is_nan() { x } else { y }
}

/// The quotient `(1 + a) / (1 - a)` is `2^j (1 + s) / (1 - s)`, so the result is `j ln 2 / 2 + atanh(s)`. For machines with
/// fused multiply-add.
#[inline(always)]
fn atanh<S: Simd>(x: f32) -> f32 {
    let a = x.abs();
    // Differences of bits are about those of logarithms.
    let j = (1.0 + a).to_bits().wrapping_sub((1.0 - a).to_bits()) as i32;
    let j = j.wrapping_add(0x40_0000) >> 23;
    let power = f32::from_bits((j.wrapping_add(127) << 23) as u32);
    // (1 + a) / (1 - a) = 2^j (1 + s) / (1 - s). Near 1 the power is so large that 1 is lost beside it, and 1 - a is exact.
    let (apart, share) = (1.0 + a, power * (1.0 - a));
    let is_near_one = j > 20;
    let over = if is_near_one { apart - share } else { S::fma32(a, 1.0 + power, 1.0 - power) };
    let s = over / if is_near_one { apart + share } else { S::fma32(a, 1.0 - power, 1.0 + power) };
    let z = s * s;
    let near = S::fma32(polynomial::<S, 4>(z, ATANH) * z, s, s);
    let y = S::fma32(j as f32, 0.5 * LN_2, near);
    let y = if a == 1.0 { f32::INFINITY } else { y };
    (if a > 1.0 { f32::NAN } else { y }).copysign(x)
}

/// asin for |x| <= 0.625, by a fit of our own of `(asin(x) / x - 1) / x^2` in x^2.
#[inline(always)]
fn asin_near<S: Simd>(x: f32) -> f32 {
    let z = x * x;
    let fit =
        [6.349_409_3e-2, -2.292_886_2e-2, 3.726_557_2e-2, 2.750_696_4e-2, 4.493_180_3e-2, 7.498_647e-2, 1.666_668_8e-1];
    S::fma32(polynomial::<S, 7>(z, fit) * z, x, x)
}

/// `e^r - 1` for |r| <= 0.36.
#[inline(always)]
fn expm1_small<S: Simd>(r: f32) -> f32 {
    let mut p = 1.987_569_1e-4f32;
    p = S::fma32(p, r, 1.398_199_9e-3);
    p = S::fma32(p, r, 8.333_452e-3);
    p = S::fma32(p, r, 4.166_579_6e-2);
    p = S::fma32(p, r, 1.666_666_5e-1);
    p = S::fma32(p, r, 0.5);
    S::fma32(p * r, r, r)
}

/// A number as `2^n m` with m between the roots of 1/2 and 2, and what fdlibm's `logf` makes of `f = m - 1`: the logarithm
/// of m is `f - (half - rest)`.
struct Logarithm {
    n: f32,
    f: f32,
    half: f32,
    rest: f32,
}

impl Logarithm {
    #[inline(always)]
    fn of(x: f32) -> Logarithm {
        let tiny = x < f32::MIN_POSITIVE;
        let scaled = if tiny { x * 33_554_432.0 } else { x };
        let bits = scaled.to_bits().wrapping_add(0x3f80_0000 - 0x3f35_04f3);
        let n = ((bits >> 23) as i32).wrapping_sub(0x7f) as f32;
        let n = if tiny { n - 25.0 } else { n };
        let f = f32::from_bits((bits & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
        let s = f / (2.0 + f);
        let z = s * s;
        let w = z * z;
        let r = z * (0.666_666_6 + w * 0.284_987_87) + w * (0.400_009_72 + w * 0.242_790_79);
        let half = 0.5 * f * f;
        Logarithm { n, f, half, rest: s * (half + r) }
    }

    #[inline(always)]
    fn of_mantissa(&self) -> f32 {
        self.f - (self.half - self.rest)
    }
}

/// The logarithm `y` of x, or what it is of zero, negative numbers, infinity and NaN.
#[inline(always)]
fn logarithm_of(x: f32, y: f32) -> f32 {
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f32::NAN } else { y };
    if x < f32::INFINITY { y } else { x }
}

/// Methods computed in f64.
macro_rules! through_f64 {
    ($($name:ident)*) => {
        $(#[inline(always)]
        fn $name<S: Simd>(self) -> f32 {
            wide::$name::<S>(self as f64) as f32
        })*
    };
}

/// Methods computed in f32 with fused multiply-add, and in f64 where the machine has none.
macro_rules! fused {
    ($($name:ident: $function:expr),*) => {
        $(#[inline(always)]
        fn $name<S: Simd>(self) -> f32 {
            if S::LEVEL == Portable::LEVEL { wide::$name::<S>(self as f64) as f32 } else { $function(self) }
        })*
    };
}

impl Math for f32 {
    #[inline(always)]
    fn exp<S: Simd>(self) -> f32 {
        let x = if self > 130.0 { 130.0 } else { self };
        let x = if x < -130.0 { -130.0 } else { x };
        let t = S::fma32(x, LOG2_E, MAGIC);
        let n = t - MAGIC;
        let k = (t.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
        // Cody and Waite's range reduction: -ln 2 in two parts, the first with so few bits that its product with n is
        // exact.
        let r = S::fma32(n, 2.121_944_4e-4, S::fma32(n, -0.693_359_4, x));
        scale(1.0 + expm1_small::<S>(r), k)
    }

    #[inline(always)]
    fn exp2<S: Simd>(self) -> f32 {
        let x = if self > 150.0 { 150.0 } else { self };
        let x = if x < -160.0 { -160.0 } else { x };
        let t = x + MAGIC;
        let k = (t.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
        scale(1.0 + expm1_small::<S>((x - (t - MAGIC)) * LN_2), k)
    }

    #[inline(always)]
    fn log<S: Simd>(self) -> f32 {
        let Logarithm { n, f, half, rest } = Logarithm::of(self);
        logarithm_of(self, n * 0.693_138_1 - ((half - (rest + n * 9.058_001e-6)) - f))
    }
    #[inline(always)]
    fn log2<S: Simd>(self) -> f32 {
        let log = Logarithm::of(self);
        logarithm_of(self, S::fma32(log.of_mantissa(), LOG2_E, log.n))
    }
    #[inline(always)]
    fn log10<S: Simd>(self) -> f32 {
        let log = Logarithm::of(self);
        // log10 of 2 in two parts, the first with so few bits that its product with n is exact.
        let low = S::fma32(log.of_mantissa(), LOG10_E, log.n * 7.903_415e-7);
        logarithm_of(self, log.n * 0.301_029_2 + low)
    }
    #[inline(always)]
    fn log1p<S: Simd>(self) -> f32 {
        let u = 1.0 + self;
        // What rounding took from u.
        let lost = (self - (u - 1.0)) / u;
        let lost = if u > 0.0 && u < f32::INFINITY { lost } else { 0.0 };
        let y = Math::log::<S>(u) + lost;
        if u == 1.0 { self } else { y }
    }

    #[inline(always)]
    fn atan<S: Simd>(self) -> f32 {
        let a = self.abs();
        let t = if a > 1.0 { 1.0 / a } else { a };
        let z = t * t;
        let near = S::fma32(polynomial::<S, 9>(z, ATAN) * z, t, t);
        (if a > 1.0 { FRAC_PI_2 - near } else { near }).copysign(self)
    }

    #[inline(always)]
    fn tanh<S: Simd>(self) -> f32 {
        let e = Math::exp::<S>(2.0 * self.abs());
        let big = 1.0 - 2.0 / (e + 1.0);
        let z = self * self;
        let mut p = -5.704_988_7e-3f32;
        p = S::fma32(p, z, 2.063_908_9e-2);
        p = S::fma32(p, z, -5.373_971_6e-2);
        p = S::fma32(p, z, 1.333_144_2e-1);
        p = S::fma32(p, z, -3.333_328e-1);
        let small = S::fma32(p * z, self, self);
        // -0 stays -0.
        (if self.abs() < 0.625 { small } else { big }).copysign(self)
    }

    #[inline(always)]
    fn sigmoid<S: Simd>(self) -> f32 {
        1.0 / (1.0 + Math::exp::<S>(-self))
    }

    #[inline(always)]
    fn erf<S: Simd>(self) -> f32 {
        let t = self.abs();
        let z = t * t;
        let small = S::fma32(polynomial::<S, 6>(z, ERF_NEAR), self, self);
        // -ln(erfc(t)) = t + t q(t); beyond 4 the result is 1.
        let t = if t > 4.0 { 4.0 } else { t };
        let mut q = -1.093_213_3e-6f32;
        q = S::fma32(q, t, 3.520_419_7e-5);
        q = S::fma32(q, t, -5.046_981e-4);
        q = S::fma32(q, t, 4.326_54e-3);
        q = S::fma32(q, t, -2.519_061_2e-2);
        q = S::fma32(q, t, 1.079_218_76e-1);
        q = S::fma32(q, t, 6.341_023_4e-1);
        q = S::fma32(q, t, 1.289_158_3e-1);
        let big = 1.0 - Math::exp::<S>(-S::fma32(q, t, t));
        if self.abs() > 0.927_734_4 { big.copysign(self) } else { small }
    }

    through_f64! { expm1 sinh cosh asinh acosh }
    fused! { sin: angles::sin::<S>, cos: angles::cos::<S>, tan: angles::tan::<S>, atanh: atanh::<S>,
    erfc: erfc::<S> }

    fn sin_any(self) -> f32 {
        (self as f64).sin() as f32
    }
    fn cos_any(self) -> f32 {
        (self as f64).cos() as f32
    }
    fn tan_any(self) -> f32 {
        (self as f64).tan() as f32
    }
    /// The smaller of the two by the larger, so that one polynomial does; angles beyond by differences from pi/2 and pi, which
    /// have two parts.
    #[inline(always)]
    fn atan2<S: Simd>(self, x: f32) -> f32 {
        let (ay, ax) = (self.abs(), x.abs());
        let steep = ay > ax;
        let (low, high) = if steep { (ax, ay) } else { (ay, ax) };
        let t = if low == high { 1.0 } else { low / high };
        let t = if low == 0.0 { 0.0 } else { t };
        let z = t * t;
        let near = S::fma32(polynomial::<S, 9>(z, ATAN) * z, t, t);
        let a = if steep { (FRAC_PI_2 - near) - 4.371_139e-8 } else { near };
        let a = if x.is_sign_negative() { (PI - a) - 8.742_278e-8 } else { a };
        if x.is_nan() || self.is_nan() { f32::NAN } else { a.copysign(self) }
    }
    #[inline(always)]
    fn pow<S: Simd>(self, y: f32) -> f32 {
        wide::pow::<S>(self as f64, y as f64) as f32
    }
    #[inline(always)]
    fn hypot<S: Simd>(self, y: f32) -> f32 {
        let (a, b) = (self as f64, y as f64);
        let h = (a * a + b * b).sqrt() as f32;
        if self.is_infinite() || y.is_infinite() { f32::INFINITY } else { h }
    }
    #[inline(always)]
    fn asin<S: Simd>(self) -> f32 {
        let t = self.abs();
        let folded = asin_near::<S>(if t > 0.625 { (0.5 * (1.0 - t)).sqrt() } else { t });
        let result = if t > 0.625 { S::fma32(-2.0, folded, FRAC_PI_2) } else { folded };
        result.copysign(self)
    }
    #[inline(always)]
    fn acos<S: Simd>(self) -> f32 {
        let t = self.abs();
        let folded = asin_near::<S>(if t > 0.625 { (0.5 * (1.0 - t)).sqrt() } else { self });
        let outer = 2.0 * folded;
        if t > 0.625 { if self < 0.0 { PI - outer } else { outer } } else { FRAC_PI_2 - folded }
    }

    /// M. Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2012).
    #[inline(always)]
    fn erfinv<S: Simd>(self) -> f32 {
        let w = -Math::log::<S>((1.0 - self) * (1.0 + self));
        let middle = polynomial::<S, 9>(w - 2.5, ERFINV_MIDDLE);
        let tail = polynomial::<S, 9>(w.sqrt() - 3.0, ERFINV_TAIL);
        let x = self * if w < 5.0 { middle } else { tail };
        if self.abs() == 1.0 { self * f32::INFINITY } else { x }
    }
    fn lgamma(self) -> f32 {
        libm::lgamma(self as f64) as f32
    }
    fn digamma(self) -> f32 {
        special::digamma(self as f64) as f32
    }
    fn trigamma(self) -> f32 {
        if self < 0.0 && self == self.trunc() {
            // A pole: see `special::trigamma`.
            let s = (std::f32::consts::PI * self).sin();
            return std::f32::consts::PI * std::f32::consts::PI / (s * s) - special::trigamma(1.0 - self as f64) as f32;
        }
        special::trigamma(self as f64) as f32
    }
    fn bessel_i0(self) -> f32 {
        special::bessel_i0(self as f64) as f32
    }
    fn bessel_i1(self) -> f32 {
        special::bessel_i1(self as f64) as f32
    }
    fn zeta(self, q: f32) -> f32 {
        special::zeta(self as f64, q as f64) as f32
    }
    #[inline(always)]
    fn next_after(self, y: f32) -> f32 {
        // The bits of a float increase with its magnitude.
        let away = (self < y) == (self > 0.0);
        let next = f32::from_bits(self.to_bits().wrapping_add(if away { 1 } else { u32::MAX }));
        let next = if self == 0.0 { f32::from_bits(1).copysign(y) } else { next };
        let next = if self == y { y } else { next };
        if self.is_nan() || y.is_nan() { f32::NAN } else { next }
    }
}
