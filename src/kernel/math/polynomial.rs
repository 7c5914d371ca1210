//! Orthogonal polynomials by their recurrences, in the type of their argument, as PyTorch computes them: inside the
//! interval the Chebyshev polynomials of higher degree are computed by cosines. A negative degree gives 0.

/// Bound: degree up to which a recurrence runs; above it the result is NaN, since the loop would take minutes.
const DEGREE_MAX: i64 = 1_000_000;

/// A degree truncated to an integer; infinities and NaN become negative, as in the conversion instruction of x86.
fn degree(n: f64) -> i64 {
    if n < 9_223_372_036_854_775_808.0 { n as i64 } else { i64::MIN }
}

/// The polynomials for one float type.
pub trait Polynomial: Copy {
    fn chebyshev_t(self, n: Self) -> Self;
    fn chebyshev_u(self, n: Self) -> Self;
    fn chebyshev_v(self, n: Self) -> Self;
    fn chebyshev_w(self, n: Self) -> Self;
    fn shifted_t(self, n: Self) -> Self;
    fn shifted_u(self, n: Self) -> Self;
    fn shifted_v(self, n: Self) -> Self;
    fn shifted_w(self, n: Self) -> Self;
    fn hermite_h(self, n: Self) -> Self;
    fn hermite_he(self, n: Self) -> Self;
    fn laguerre_l(self, n: Self) -> Self;
    fn legendre_p(self, n: Self) -> Self;
}

macro_rules! polynomials {
    ($T:ident, $hermite_max:literal) => {
        impl Polynomial for $T {
            fn chebyshev_t(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n >= 0 && x.abs() == 1.0 {
                    return if x > 0.0 || n % 2 == 0 { 1.0 } else { -1.0 };
                }
                if n > 6 && x.abs() < 1.0 {
                    return (n as $T * x.acos()).cos();
                }
                Self::three_terms(n, x, |_, q, p| (x + x) * q - p)
            }
            fn chebyshev_u(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n >= 0 && x.abs() == 1.0 {
                    return Self::ends(x > 0.0 || n % 2 == 0, n.wrapping_add(1) as $T);
                }
                if n > 8 && x.abs() < 1.0 {
                    let (angle, next) = (x.acos(), n.wrapping_add(1) as $T);
                    let s = angle.sin();
                    return if s != 0.0 { (next * angle).sin() / s } else { next * (next * angle).cos() / x };
                }
                Self::three_terms(n, x + x, |_, q, p| (x + x) * q - p)
            }
            fn chebyshev_v(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n >= 0 && x.abs() == 1.0 {
                    return if x > 0.0 { 1.0 } else { Self::ends(n % 2 == 0, n.wrapping_mul(2).wrapping_add(1) as $T) };
                }
                if n > 8 && x.abs() < 1.0 {
                    let angle = x.acos();
                    return ((n as $T + 0.5) * angle).cos() / (angle / 2.0).cos();
                }
                Self::three_terms(n, x + x - 1.0, |_, q, p| (x + x) * q - p)
            }
            fn chebyshev_w(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n >= 0 && x.abs() == 1.0 {
                    return if x > 0.0 {
                        Self::ends(true, n.wrapping_mul(2).wrapping_add(1) as $T)
                    } else {
                        Self::ends(n % 2 == 0, 1.0)
                    };
                }
                if n > 8 && x.abs() < 1.0 {
                    let angle = x.acos();
                    return ((n as $T + 0.5) * angle).sin() / (angle / 2.0).sin();
                }
                Self::three_terms(n, x + x + 1.0, |_, q, p| (x + x) * q - p)
            }
            fn shifted_t(self, n: $T) -> $T {
                let (x, y, n) = (self, self + self - 1.0, degree(n as f64));
                if n >= 0 && (x == 1.0 || x == 0.0) {
                    return Self::ends(x == 1.0 || n % 2 == 0, 1.0);
                }
                if n > 6 && y.abs() < 1.0 {
                    return (n as $T * y.acos()).cos();
                }
                Self::three_terms(n, y, |_, q, p| (y + y) * q - p)
            }
            fn shifted_u(self, n: $T) -> $T {
                let (x, y, n) = (self, self + self - 1.0, degree(n as f64));
                if n >= 0 && (x == 1.0 || x == 0.0) {
                    return Self::ends(x == 1.0 || n % 2 == 0, n.wrapping_add(1) as $T);
                }
                if n > 6 && y.abs() < 1.0 {
                    let (angle, next) = (y.acos(), n.wrapping_add(1) as $T);
                    let s = angle.sin();
                    return if s != 0.0 { (next * angle).sin() / s } else { next * (next * angle).cos() / y };
                }
                Self::three_terms(n, y + y, |_, q, p| (y + y) * q - p)
            }
            fn shifted_v(self, n: $T) -> $T {
                let (x, y, n) = (self, self + self - 1.0, degree(n as f64));
                if n >= 0 && (x == 1.0 || x == 0.0) {
                    return if x == 1.0 {
                        1.0
                    } else {
                        Self::ends(n % 2 == 0, n.wrapping_mul(2).wrapping_add(1) as $T)
                    };
                }
                if n > 6 && y.abs() < 1.0 {
                    let angle = y.acos();
                    return ((n as $T + 0.5) * angle).cos() / (angle / 2.0).cos();
                }
                Self::three_terms(n, y + y - 1.0, |_, q, p| (y + y) * q - p)
            }
            fn shifted_w(self, n: $T) -> $T {
                let (x, y, n) = (self, self + self - 1.0, degree(n as f64));
                if n >= 0 && (x == 1.0 || x == 0.0) {
                    return if x == 1.0 {
                        Self::ends(true, n.wrapping_mul(2).wrapping_add(1) as $T)
                    } else {
                        Self::ends(n % 2 == 0, 1.0)
                    };
                }
                if n > 4 && y.abs() < 1.0 {
                    let angle = y.acos();
                    return ((n as $T + 0.5) * angle).sin() / (angle / 2.0).sin();
                }
                Self::three_terms(n, y + y + 1.0, |_, q, p| (y + y) * q - p)
            }
            fn hermite_h(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n > $hermite_max {
                    return $T::NAN;
                }
                Self::three_terms(n, x + x, |k, q, p| (x + x) * q - (2 * (k - 1)) as $T * p)
            }
            fn hermite_he(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n > $hermite_max {
                    return $T::NAN;
                }
                Self::three_terms(n, x, |k, q, p| x * q - (k - 1) as $T * p)
            }
            fn laguerre_l(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n >= 0 && x == 0.0 {
                    return 1.0;
                }
                Self::three_terms(n, 1.0 - x, |k, q, p| (((2 * k - 1) as $T - x) * q - (k - 1) as $T * p) / k as $T)
            }
            fn legendre_p(self, n: $T) -> $T {
                let (x, n) = (self, degree(n as f64));
                if n >= 0 && x.abs() == 1.0 {
                    return if x > 0.0 || n % 2 == 0 { 1.0 } else { -1.0 };
                }
                Self::three_terms(n, x, |k, q, p| ((2 * k - 1) as $T * x * q - (k - 1) as $T * p) / k as $T)
            }
        }

        impl Recurrence for $T {
            fn ends(positive: bool, size: $T) -> $T {
                if positive { size } else { -size }
            }

            fn three_terms(n: i64, first: $T, next: impl Fn(i64, $T, $T) -> $T) -> $T {
                match n {
                    ..0 => return 0.0,
                    0 => return 1.0,
                    1 => return first,
                    n if n > DEGREE_MAX => return $T::NAN,
                    _ => {}
                }
                let (mut p, mut q) = (1.0, first);
                for k in 2..=n {
                    (p, q) = (q, next(k, q, p));
                    if q.is_nan() {
                        break;
                    }
                }
                q
            }
        }
    };
}

/// What the recurrences share.
trait Recurrence: Sized {
    /// `size` or `-size`: the value at an end of the interval.
    fn ends(positive: bool, size: Self) -> Self;
    /// The polynomial of degree `n` from those of degree 0 (1) and 1; `next(k, q, p)` gives degree `k` from `q` of
    /// degree k - 1 and `p` of degree k - 2.
    fn three_terms(n: i64, first: Self, next: impl Fn(i64, Self, Self) -> Self) -> Self;
}

polynomials!(f32, 128);
polynomials!(f64, 512);

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy's values.
    #[test]
    fn values() {
        let close = |got: f64, want: f64| assert!((got - want).abs() <= 1e-12 * want.abs().max(1.0), "{got} {want}");
        close(0.3f64.chebyshev_t(4.0), 0.3448);
        close(0.3f64.chebyshev_t(20.0), 0.3f64.acos().mul_add(20.0, 0.0).cos());
        close(1.5f64.chebyshev_u(3.0), 21.0);
        close(1.5f64.hermite_h(3.0), 9.0);
        close(1.5f64.hermite_he(3.0), -1.125);
        close(1.5f64.laguerre_l(3.0), -0.6875);
        close(0.3f64.legendre_p(5.0), 0.34538625);
        close(0.3f64.shifted_t(3.0), (-0.4f64).acos().mul_add(3.0, 0.0).cos());
        assert_eq!(0.5f32.legendre_p(-3.0), 0.0);
        assert!(0.5f64.legendre_p(1e18).is_nan());
    }
}
