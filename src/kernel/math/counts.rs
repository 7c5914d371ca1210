//! Random counts from one uniform number: binomial and Poisson values by inversion from the mode outward.
//!
//! The probabilities nearest to the mode are subtracted first, alternating between both sides, so that about as many
//! terms as the standard deviation are needed. Above a bound, counts come from the normal distribution, which is then
//! as accurate as f64 can represent.

use super::normal::ndtri;

/// Bound: variance from which on the normal distribution is used instead.
const MANY: f64 = 1e8;

/// Subtracts probabilities from `u`, from `mode` outwards, and returns the count at which nothing of `u` remains. `up(k)`
/// is the quotient of the probabilities of k + 1 and k.
fn outwards(u: f64, mode: f64, at_mode: f64, last: f64, up: impl Fn(f64) -> f64) -> f64 {
    let mut left = u - at_mode;
    let (mut low, mut high) = (mode, mode);
    let (mut p_low, mut p_high) = (at_mode, at_mode);
    while left > 0.0 {
        let before = left;
        if high < last {
            p_high *= up(high);
            high += 1.0;
            left -= p_high;
            if left <= 0.0 {
                return high;
            }
        }
        if low > 0.0 {
            low -= 1.0;
            p_low /= up(low);
            left -= p_low;
            if left <= 0.0 {
                return low;
            }
        }
        // Rounding left a remainder of `u` that the tiny terms cannot reduce.
        if left == before {
            break;
        }
    }
    mode
}

/// A count of mean `rate` for `u` of [0, 1); NaN for a negative rate.
pub fn poisson(rate: f64, u: f64) -> f64 {
    if rate.is_nan() || rate < 0.0 || rate.is_infinite() {
        return f64::NAN;
    }
    if rate == 0.0 {
        return 0.0;
    }
    if rate > MANY {
        return (rate + rate.sqrt() * ndtri(u.max(f64::MIN_POSITIVE))).round().max(0.0);
    }
    let mode = rate.floor();
    let at_mode = (mode * rate.ln() - rate - libm::lgamma(mode + 1.0)).exp();
    outwards(u, mode, at_mode, f64::INFINITY, |k| rate / (k + 1.0))
}

/// Successes of `count` trials of probability `p` for `u` of [0, 1); NaN for an invalid count or probability.
pub fn binomial(count: f64, p: f64, u: f64) -> f64 {
    let n = count.floor();
    if !(n.is_finite() && n >= 0.0 && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if n == 0.0 || p == 0.0 {
        return 0.0;
    }
    if p == 1.0 {
        return n;
    }
    if n * p * (1.0 - p) > MANY {
        let z = ndtri(u.max(f64::MIN_POSITIVE));
        return (n * p + (n * p * (1.0 - p)).sqrt() * z).round().clamp(0.0, n);
    }
    let mode = ((n + 1.0) * p).floor().min(n);
    let ways = libm::lgamma(n + 1.0) - libm::lgamma(mode + 1.0) - libm::lgamma(n - mode + 1.0);
    let at_mode = (ways + mode * p.ln() + (n - mode) * (-p).ln_1p()).exp();
    outwards(u, mode, at_mode, n, |k| (n - k) / (k + 1.0) * p / (1.0 - p))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of each count over a fine grid of uniforms against the probabilities.
    fn check(draw: impl Fn(f64) -> f64, probability: impl Fn(f64) -> f64, max: usize) {
        let n = 200_000;
        let mut seen = vec![0usize; max + 1];
        (0..n).for_each(|i| seen[draw((i as f64 + 0.5) / n as f64) as usize] += 1);
        for (k, &count) in seen.iter().enumerate() {
            let share = count as f64 / n as f64;
            assert!((share - probability(k as f64)).abs() < 2e-5, "{k}: {share}");
        }
    }

    #[test]
    fn counts_have_their_distribution() {
        let factorial = |k: f64| libm::lgamma(k + 1.0).exp();
        check(|u| poisson(3.5, u), |k| 3.5f64.powf(k) * (-3.5f64).exp() / factorial(k), 40);
        check(
            |u| binomial(9.0, 0.3, u),
            |k| factorial(9.0) / factorial(k) / factorial(9.0 - k) * 0.3f64.powf(k) * 0.7f64.powf(9.0 - k),
            9,
        );
        assert!(poisson(-1.0, 0.5).is_nan() && binomial(3.0, 1.5, 0.5).is_nan());
        assert_eq!((poisson(0.0, 0.9), binomial(4.0, 1.0, 0.1)), (0.0, 4.0));
        assert!((poisson(1e12, 0.5) - 1e12).abs() < 2.0);
    }
}
