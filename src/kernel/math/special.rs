//! Functions without a vector form: series and recurrences in f64, one element at a time.

use std::f64::consts::PI;

/// The inverse of `erf`: a rational approximation and two Newton steps. NaN outside -1..=1.
pub fn erfinv(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    let mut x = if y.abs() <= 0.7 {
        let z = y * y;
        let p = ((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899;
        let q = (((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1.0;
        y * p / q
    } else {
        let z = (-((1.0 - y.abs()) / 2.0).ln()).sqrt();
        let p = ((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454;
        let q = (1.637067800 * z + 3.543889200) * z + 1.0;
        (p / q).copysign(y)
    };
    // Near -1 and 1 `erf` loses digits by cancellation; `erfc` does not.
    for _ in 0..2 {
        let error = if y.abs() < 0.5 { libm::erf(x) - y } else { ((1.0 - y.abs()) - libm::erfc(x.abs())) * y.signum() };
        x -= error / (2.0 / PI.sqrt() * (-x * x).exp());
    }
    x
}

/// The derivative of `lgamma`: reflection, recurrence up to 10, then the asymptotic series (Abramowitz and Stegun
/// 6.3.18). Poles give NaN, zero an infinity of the opposite sign, as in PyTorch.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * x.fract()).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0
                    - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32_760.0 - z * (1.0 / 12.0)))))));
    if x == f64::INFINITY { x } else { sum + x.ln() - 0.5 / x - series }
}

/// The derivative of `digamma` (Abramowitz and Stegun 6.4.12), by reflection and recurrence likewise.
pub fn trigamma(x: f64) -> f64 {
    if x < 0.5 {
        // At a pole the sine of a rounded multiple of pi is not 0; the result is a large number, as in PyTorch.
        let s = if x == x.trunc() { (PI * x).sin() } else { (PI * x.fract()).sin() };
        return PI * PI / (s * s) - trigamma(1.0 - x);
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0 - z * 691.0 / 2730.0)))));
    sum + (1.0 + 0.5 / x + series) / x
}

/// The modified Bessel function of order 0: its power series up to 25, beyond that the asymptotic series
/// (Abramowitz and Stegun 9.6.12 and 9.7.1).
pub fn bessel_i0(x: f64) -> f64 {
    let a = x.abs();
    if a < 25.0 {
        let q = 0.25 * a * a;
        let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
        while term > sum * 1e-17 {
            term *= q / (k * k);
            sum += term;
            k += 1.0;
        }
        return if a.is_nan() { a } else { sum };
    }
    let (mut term, mut sum, mut k) = (1.0f64, 1.0f64, 1.0f64);
    while k < 40.0 && term > 1e-17 {
        term *= (2.0 * k - 1.0) * (2.0 * k - 1.0) / (8.0 * k * a);
        sum += term;
        k += 1.0;
    }
    // e^a in two factors: it overflows before the quotient does. At infinity PyTorch's is NaN, as here.
    let half = (0.5 * a).exp();
    half * (half * sum / ((2.0 * PI).sqrt() * a.sqrt()))
}

/// The modified Bessel function of order 1, by the same two series as order 0.
pub fn bessel_i1(x: f64) -> f64 {
    let a = x.abs();
    if a < 25.0 {
        let q = 0.25 * a * a;
        let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
        while term > sum * 1e-17 {
            term *= q / (k * (k + 1.0));
            sum += term;
            k += 1.0;
        }
        return 0.5 * x * sum;
    }
    let (mut term, mut sum, mut k) = (1.0f64, 1.0f64, 1.0f64);
    while k < 40.0 && term.abs() > 1e-17 {
        term *= -(4.0 - (2.0 * k - 1.0) * (2.0 * k - 1.0)) / (8.0 * k * a);
        sum += term;
        k += 1.0;
    }
    let half = (0.5 * a).exp();
    (half * (half * sum / ((2.0 * PI).sqrt() * a.sqrt()))).copysign(x)
}

/// Hurwitz' zeta function, the sum over k of (k + q)^-s for s > 1: twelve terms and Euler and Maclaurin's
/// formula for the rest (NIST DLMF 25.11.7). Infinite at the poles q = 0, -1, ...; at other negative q it is
/// defined for whole s only.
pub fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if s != s.floor() {
            return f64::NAN;
        }
    }
    if s.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if s == f64::INFINITY {
        // As PyTorch's sum: only the first term remains, and for q > 1 none.
        return if q == 1.0 {
            1.0
        } else if q < 1.0 {
            f64::INFINITY
        } else {
            f64::NAN
        };
    }
    // B(2j) / (2j)!
    const BERNOULLI: [f64; 10] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -691.0 / 1_307_674_368_000.0,
        1.0 / 74_724_249_600.0,
        -3617.0 / 10_670_622_842_880_000.0,
        43_867.0 / 5_109_094_217_170_944_000.0,
        -174_611.0 / 802_857_662_698_291_200_000.0,
    ];
    let (mut a, mut sum) = (q, 0.0);
    for k in 0.. {
        let term = a.powf(-s);
        sum += term;
        if k >= 12 && a > 9.0 {
            break;
        }
        // A large negative argument needs one term for each pole between it and 0.
        if k > 100_000 {
            return f64::NAN;
        }
        a += 1.0;
    }
    let last = a.powf(-s);
    sum += a * last / (s - 1.0) - 0.5 * last;
    let (mut rising, mut power) = (s, last / a);
    for (j, b) in BERNOULLI.iter().enumerate() {
        let term = b * rising * power;
        sum += term;
        if term.abs() < sum.abs() * 1e-17 {
            break;
        }
        let k = 2.0 * j as f64 + 1.0;
        rising *= (s + k) * (s + k + 1.0);
        power /= a * a;
    }
    sum
}
