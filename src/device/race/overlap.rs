//! Do two strided sets of bytes meet? An exact answer.
//!
//! Bytes `a + Σ sᵢ·kᵢ + x` and `b + Σ tⱼ·lⱼ + y` are the same one exactly when `Σ sᵢ·kᵢ - Σ tⱼ·lⱼ` lies in an
//! interval. With `lⱼ` counted from the other end every coefficient is positive, and the question is whether
//! a sum of bounded multiples falls into an interval: a bounded linear Diophantine problem.
//! Equal or nested strides (views of one tensor) melt into one coefficient, two coefficients are decided in
//! logarithmic time by counting lattice points, and more are searched from the largest down, where the
//! others' span and their greatest common divisor leave few values.

use super::region::Region;
use smallvec::SmallVec;

/// `step`·k for k from 0 to `most`.
#[derive(Clone, Copy, Debug)]
struct Term {
    step: i128,
    most: i128,
}

type Terms = SmallVec<[Term; 6]>;

/// Bound: sums tried. Layouts made by views never come near it: their strides nest, so that each level leaves
/// two or three values. Where it is reached, by strides that are chosen to, the answer is "they meet": a
/// superfluous wait is harmless, an unnoticed race is not.
const TRIES: u32 = 1 << 20;

/// Precondition: neither is empty.
pub(super) fn meet(a: &Region, b: &Region) -> bool {
    let distance = b.start as i128 - a.start as i128;
    let mut low = distance - (a.run as i128 - 1);
    let mut high = distance + (b.run as i128 - 1);
    let mut terms = Terms::new();
    for repeat in &a.repeats {
        terms.push(Term { step: repeat.stride as i128, most: repeat.count as i128 - 1 });
    }
    for repeat in &b.repeats {
        let term = Term { step: repeat.stride as i128, most: repeat.count as i128 - 1 };
        low += term.step * term.most;
        high += term.step * term.most;
        terms.push(term);
    }
    let terms = simplify(terms, &mut low, high);
    let mut tries = TRIES;
    reaches(&terms, low, high, &mut tries)
}

/// Melts terms into one another or into the interval; largest first.
fn simplify(mut terms: Terms, low: &mut i128, high: i128) -> Terms {
    terms.sort_unstable_by_key(|term| term.step);
    let mut kept = Terms::new();
    for term in terms {
        match kept.last_mut() {
            // Steps no longer than the interval: shifted copies of it leave no gap.
            None if term.step <= high - *low + 1 => *low -= term.step * term.most,
            Some(last) if term.step % last.step == 0 && term.step / last.step <= last.most + 1 => {
                last.most += term.step / last.step * term.most;
            }
            _ => kept.push(term),
        }
    }
    kept.reverse();
    kept
}

/// Whether some sum of the terms lies in `low..=high`. Terms: largest step first.
fn reaches(terms: &[Term], low: i128, high: i128, tries: &mut u32) -> bool {
    match terms {
        [] => low <= 0 && 0 <= high,
        [one] => ceil_div(low, one.step).max(0) <= high.div_euclid(one.step).min(one.most),
        [first, second] => reaches_by_two(*first, *second, low, high),
        [first, others @ ..] => {
            let span: i128 = others.iter().map(|term| term.step * term.most).sum();
            let divisor = others.iter().fold(0, |divisor, term| gcd(divisor, term.step));
            let from = ceil_div(low - span, first.step).max(0);
            let to = high.div_euclid(first.step).min(first.most);
            for k in from..=to {
                if *tries == 0 {
                    return true;
                }
                *tries -= 1;
                let (low, high) = (low - first.step * k, high - first.step * k);
                let has_multiple = high.div_euclid(divisor) * divisor >= low;
                if has_multiple && reaches(others, low, high, tries) {
                    return true;
                }
            }
            false
        }
    }
}

/// `a.step·x + b.step·y` in `low..=high`, by counting.
fn reaches_by_two(a: Term, b: Term, low: i128, high: i128) -> bool {
    let span = b.step * b.most;
    // Only for these x does the interval left for y meet 0..=span.
    let from = ceil_div(low - span, a.step).max(0);
    let to = high.div_euclid(a.step).min(a.most);
    if from > to {
        return false;
    }
    // What is left for y then lies inside 0..=span or holds one of its ends, both multiples of b.step: the
    // question is only whether a multiple falls into it, for some x.
    // There are floor((high-ax)/b) - floor((low-1-ax)/b) in low-ax..=high-ax; x counts down from `to`,
    // so that slopes are positive.
    let count = to - from + 1;
    let total = |bound: i128| floor_sum(count, b.step, a.step, bound - a.step * to);
    total(high) > total(low - 1)
}

/// Σ floor((step·i + offset) / modulus) for i in 0..count, by Euclid's scheme; the offset may be negative.
fn floor_sum(count: i128, modulus: i128, step: i128, offset: i128) -> i128 {
    let (mut n, mut m, mut a) = (count, modulus, step);
    let mut total = n * offset.div_euclid(m);
    let mut b = offset.rem_euclid(m);
    loop {
        total += n * (n - 1) / 2 * (a / m);
        a %= m;
        total += n * (b / m);
        b %= m;
        let top = a * n + b;
        if top < m {
            return total;
        }
        n = top / m;
        b = top % m;
        (m, a) = (a, m);
    }
}

fn ceil_div(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
