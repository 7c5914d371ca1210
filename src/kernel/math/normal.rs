//! Functions about the normal distribution and the error function's tail, in f64, one element at a time.

use super::special::erfinv;
use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// e^(x²) erfc(x): a product while `erfc` has its digits, then the asymptotic series (NIST DLMF 7.12.1).
pub fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 * (x * x).exp() - erfcx(-x);
    }
    if x < 10.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    let z = -0.5 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..12 {
        term *= (2 * k + 1) as f64 * z;
        sum += term;
    }
    sum / (x * PI.sqrt())
}

/// The distribution function of the standard normal.
pub fn ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if t.abs() < FRAC_1_SQRT_2 {
        return 0.5 + 0.5 * libm::erf(t);
    }
    let tail = 0.5 * libm::erfc(t.abs());
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// Its logarithm, exact in the lower tail.
pub fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 { (erfcx(-t) / 2.0).ln() - t * t } else { (-libm::erfc(t) / 2.0).ln_1p() }
}

/// Its inverse: `erfinv` in the middle, in the tails an asymptotic approximation and Newton steps on the logarithm.
pub fn ndtri(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    if (0.01..=0.99).contains(&p) {
        return SQRT_2 * erfinv(2.0 * p - 1.0);
    }
    let (low, target) = if p < 0.5 { (true, p.ln()) } else { (false, (1.0 - p).ln()) };
    // The tail is close to exp(-x²/2) / (|x| sqrt(2 pi)).
    let mut x = -(-2.0 * target - (2.0 * PI * -2.0 * target).ln()).max(1.0).sqrt();
    for _ in 0..8 {
        // d/dx ln ndtr(x) = density / ndtr = sqrt(2 / pi) / erfcx(-x / sqrt(2)).
        let derivative = (2.0 / PI).sqrt() / erfcx(-x * FRAC_1_SQRT_2);
        let step = (log_ndtr(x) - target) / derivative;
        x -= step;
        if step.abs() <= 1e-16 * x.abs() {
            break;
        }
    }
    if low { x } else { -x }
}

/// -x ln x, 0 at 0, minus infinity below.
pub fn entr(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x > 0.0 {
        -x * x.ln()
    } else if x == 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy's values.
    #[test]
    fn values() {
        let close = |got: f64, want: f64| assert!((got - want).abs() <= 1e-13 * want.abs(), "{got} {want}");
        close(erfcx(0.5), 0.6156903441929258);
        close(erfcx(-2.0), 108.94090438997797);
        close(erfcx(12.0), 0.04685422101489376);
        close(ndtr(-3.0), 0.0013498980316300933);
        close(log_ndtr(-30.0), -454.32124395634327);
        close(log_ndtr(2.0), -0.023012909328963476);
        close(ndtri(0.975), 1.959963984540054);
        close(ndtri(1e-20), -9.262340089798409);
        close(ndtri(0.001), -3.090232306167813);
        assert_eq!(ndtri(0.0), f64::NEG_INFINITY);
        assert!(ndtri(1.5).is_nan());
    }
}
