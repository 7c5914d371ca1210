//! The incomplete gamma functions, regularized, in f64, one element at a time.

use std::f64::consts::PI;

/// Bound: terms of a series or continued fraction; both need a few times the root of the order.
const TERMS: usize = 20_000;

/// From this order on the uniform asymptotic form is more accurate.
const LARGE: f64 = 1e6;

/// The lower function P(a, x).
pub fn lower(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(lower) => lower,
        None => both(a, x).0,
    }
}

/// The upper function Q(a, x) = 1 - P(a, x), exact where it is small.
pub fn upper(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(lower) => 1.0 - lower,
        None => both(a, x).1,
    }
}

/// P at 0, at infinity and outside of the domain, as PyTorch defines it: these are tested before NaN.
fn edge(a: f64, x: f64) -> Option<f64> {
    if a < 0.0 || x < 0.0 {
        return Some(f64::NAN);
    }
    if a == 0.0 {
        return Some(if x > 0.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 {
        return Some(0.0);
    }
    if a.is_infinite() {
        return Some(if x.is_infinite() { f64::NAN } else { 0.0 });
    }
    match x.is_infinite() {
        true => Some(1.0),
        false => (a.is_nan() || x.is_nan()).then_some(f64::NAN),
    }
}

/// P and Q of finite positive arguments: the power series left of the order, the continued fraction right of
/// it (Numerical Recipes, 3rd edition, section 6.2), Temme's form for large orders (NIST DLMF 8.12).
fn both(a: f64, x: f64) -> (f64, f64) {
    if a > LARGE {
        let upper = temme(a, x);
        return (1.0 - upper, upper);
    }
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..TERMS {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        let lower = (sum * front).min(1.0);
        return (lower, 1.0 - lower);
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..TERMS {
        let n = i as f64;
        let an = -n * (n - a);
        b += 2.0;
        d = an * d + b;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = b + an / c;
        c = if c.abs() < TINY { TINY } else { c };
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    let upper = (front * h).min(1.0);
    (1.0 - upper, upper)
}

/// Q for a large order: an error function and the first correction term of the expansion.
fn temme(a: f64, x: f64) -> f64 {
    let mu = (x - a) / a;
    // mu - ln(1 + mu), whose parts cancel near 0.
    let half_square = if mu.abs() < 1e-2 {
        (2..12).map(|k| if k % 2 == 0 { 1.0 } else { -1.0 } * mu.powi(k) / k as f64).sum()
    } else {
        mu - mu.ln_1p()
    };
    let eta = (2.0f64 * half_square).max(0.0).sqrt().copysign(mu);
    let main = 0.5 * libm::erfc(eta * (0.5 * a).sqrt());
    let first = if eta.abs() < 1e-3 { -1.0 / 3.0 + eta / 12.0 } else { 1.0 / mu - 1.0 / eta };
    (main + (-0.5 * a * eta * eta).exp() / (2.0 * PI * a).sqrt() * first).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy's values.
    #[test]
    fn values() {
        let close = |got: f64, want: f64| assert!((got - want).abs() <= 1e-8 * want.abs(), "{got} {want}");
        close(lower(0.5, 0.3), 0.5614219739190003);
        close(lower(10.0, 12.0), 0.7576078383294875);
        close(upper(10.0, 12.0), 0.24239216167051245);
        close(upper(100.0, 90.0), 0.84177901081357);
        close(lower(1e5, 1e5), 0.5004205221103651);
        close(upper(1e7, 1.0001e7), 0.37587881649444765);
        close(upper(2e6, 2e6 + 1000.0), 0.23971343905306378);
    }

    #[test]
    fn edges() {
        assert!(lower(-1.0, 1.0).is_nan() && upper(0.0, 0.0).is_nan());
        assert_eq!((lower(0.0, 1.0), upper(0.0, 1.0)), (1.0, 0.0));
        assert_eq!((lower(2.0, f64::INFINITY), upper(f64::INFINITY, 2.0)), (1.0, 1.0));
    }
}
