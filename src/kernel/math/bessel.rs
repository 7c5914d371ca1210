//! Bessel and Airy functions in f64, one element at a time. Values at infinities and at negative arguments of functions
//! with a pole are PyTorch's.

use super::special::{bessel_i0, bessel_i1};
use std::f64::consts::{FRAC_PI_4, PI};

const EULER: f64 = 0.577_215_664_901_532_9;

/// e^-|x| I0(x).
pub fn i0e(x: f64) -> f64 {
    let a = x.abs();
    if a < 25.0 { (-a).exp() * bessel_i0(a) } else { hankel(a, 0.0) / ((2.0 * PI).sqrt() * a.sqrt()) }
}

/// e^-|x| I1(x).
pub fn i1e(x: f64) -> f64 {
    let a = x.abs();
    if a < 25.0 {
        return (-a).exp() * bessel_i1(x);
    }
    (hankel(a, 4.0) / ((2.0 * PI).sqrt() * a.sqrt())).copysign(x)
}

/// The series of I's asymptotic form, mu = 4 order² (Abramowitz and Stegun 9.7.1).
fn hankel(a: f64, mu: f64) -> f64 {
    let (mut term, mut sum) = (1.0f64, 1.0f64);
    for k in 1..40 {
        let odd = (2 * k - 1) as f64;
        term *= -(mu - odd * odd) / (8.0 * k as f64 * a);
        sum += term;
        if term.abs() < 1e-17 {
            break;
        }
    }
    sum
}

/// e^x K(x) of an order of at most a half, and of the next order, for x >= 2: Temme's continued fraction
/// (Numerical Recipes, 3rd edition, section 6.6.3).
fn macdonald(order: f64, x: f64) -> (f64, f64) {
    if x > 1e16 {
        let far = (0.5 * PI).sqrt() / x.sqrt();
        return (far, far);
    }
    let a1 = 0.25 - order * order;
    let mut b = 2.0 * (1.0 + x);
    let mut d = 1.0 / b;
    let (mut h, mut delta) = (d, d);
    let (mut q1, mut q2) = (0.0, 1.0);
    let (mut q, mut c, mut a) = (a1, a1, -a1);
    let mut s = 1.0 + q * delta;
    for i in 2..10_000 {
        a -= 2.0 * (i - 1) as f64;
        c = -a * c / i as f64;
        let next = (q1 - b * q2) / a;
        (q1, q2) = (q2, next);
        q += c * next;
        b += 2.0;
        d = 1.0 / (b + a * d);
        delta *= b * d - 1.0;
        h += delta;
        let more = q * delta;
        s += more;
        if (more / s).abs() < 1e-17 {
            break;
        }
    }
    let own = (PI / (2.0 * x)).sqrt() / s;
    (own, own * (order + x + 0.5 - a1 * h) / x)
}

/// K0 and K1 below 2 (Abramowitz and Stegun 9.6.13 and 9.6.11).
fn small(x: f64) -> (f64, f64) {
    let (z, log) = (0.25 * x * x, (0.5 * x).ln());
    let (mut term, mut k0, mut k1, mut harmonic) = (1.0, 0.0, 0.0, 0.0);
    for k in 0..30 {
        let n = k as f64;
        if k > 0 {
            term *= z / (n * n);
            harmonic += 1.0 / n;
        }
        k0 += term * harmonic;
        // psi(k + 1) + psi(k + 2), over k! (k + 1)!.
        k1 += term / (n + 1.0) * (2.0 * (harmonic - EULER) + 1.0 / (n + 1.0));
        if term < 1e-18 {
            break;
        }
    }
    (k0 - (log + EULER) * bessel_i0(x), 1.0 / x + log * bessel_i1(x) - 0.25 * x * k1)
}

/// K0 and K1, multiplied by e^x when `scaled`.
fn both(x: f64, scaled: bool) -> (f64, f64) {
    if x == 0.0 {
        return (f64::INFINITY, f64::INFINITY);
    }
    if x.is_nan() || x < 0.0 {
        return (f64::NAN, f64::NAN);
    }
    if x == f64::INFINITY {
        return (0.0, 0.0);
    }
    let (k0, k1) = if x < 2.0 { small(x) } else { macdonald(0.0, x) };
    // `small` returns the plain value, `macdonald` the scaled one.
    let factor = match (x < 2.0, scaled) {
        (true, true) => x.exp(),
        (false, false) => (-x).exp(),
        _ => 1.0,
    };
    (k0 * factor, k1 * factor)
}

pub fn k0(x: f64) -> f64 {
    both(x, false).0
}

pub fn k1(x: f64) -> f64 {
    both(x, false).1
}

pub fn k0e(x: f64) -> f64 {
    both(x, true).0
}

pub fn k1e(x: f64) -> f64 {
    both(x, true).1
}

pub fn j0(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::j0(x) }
}

pub fn j1(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::j1(x) }
}

pub fn y0(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::y0(x) }
}

pub fn y1(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::y1(x) }
}

/// sin(x) / x, 1 at 0.
pub fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        0.0
    } else if x.abs() < 1e-4 {
        1.0 - x * x / 6.0
    } else {
        x.sin() / x
    }
}

/// The Airy function Ai: through K of order 1/3 above 2.1, the power series down to -8, the asymptotic series
/// below (NIST DLMF 9.6.2, 9.4.1, 9.7.9).
pub fn airy(x: f64) -> f64 {
    if x.is_nan() || x.is_infinite() {
        return f64::NAN;
    }
    let zeta = x.abs() * x.abs().sqrt() / 1.5;
    if x >= 2.1 {
        return macdonald(1.0 / 3.0, zeta).0 * (-zeta).exp() * ((x / 3.0).sqrt() / PI);
    }
    if x >= -8.0 {
        let cube = x * x * x;
        let (mut f, mut g, mut sum) = (0.355_028_053_887_817_24, -0.258_819_403_792_806_8 * x, 0.0);
        for k in 0..200 {
            sum += f + g;
            let n = 3.0 * k as f64;
            f *= cube / ((n + 2.0) * (n + 3.0));
            g *= cube / ((n + 3.0) * (n + 4.0));
            if f.abs() + g.abs() < 1e-18 {
                break;
            }
        }
        return sum;
    }
    let (mut term, mut cosine, mut sine) = (1.0f64, 0.0, 0.0);
    for k in 0..16 {
        match k % 4 {
            0 => cosine += term,
            1 => sine += term,
            2 => cosine -= term,
            _ => sine -= term,
        }
        let n = 6.0 * k as f64;
        let next = term * (n + 1.0) * (n + 3.0) * (n + 5.0) / (216.0 * (k + 1) as f64 * (2 * k + 1) as f64 * zeta);
        if next > term {
            break;
        }
        term = next;
    }
    let angle = zeta - FRAC_PI_4;
    (angle.cos() * cosine + angle.sin() * sine) / (PI.sqrt() * x.abs().sqrt().sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy's values.
    #[test]
    fn values() {
        let close = |got: f64, want: f64| assert!((got - want).abs() <= 2e-12 * want.abs(), "{got} {want}");
        close(i0e(3.0), 0.24300035416182536);
        close(i0e(40.0), 0.06327827987523532);
        close(i1e(-3.0), -0.19682671329730084);
        close(i1e(40.0), 0.06248222907444206);
        close(k0(0.5), 0.9244190712276656);
        close(k0(3.5), 0.01959889717036849);
        close(k1(0.5), 1.6564411200033007);
        close(k1(3.5), 0.022239392925923834);
        close(k0e(30.0), 0.22788666561625373);
        close(k1e(1.0), 1.636153486263258);
        close(airy(0.0), 0.3550280538878172);
        close(airy(3.0), 0.006591139357460717);
        close(airy(-3.0), -0.37881429367765806);
        close(airy(-12.0), -0.06655517505437264);
    }
}
