//! Decides exactly whether two strided sets of bytes overlap.
//!
//! Bytes `a + Σ sᵢ·kᵢ + x` and `b + Σ tⱼ·lⱼ + y` are the same one exactly when `Σ sᵢ·kᵢ - Σ tⱼ·lⱼ` lies in an interval.
//! With `lⱼ` counted from the other end every coefficient is positive, and the question is whether a sum of bounded
//! multiples falls into an interval: a bounded linear Diophantine problem. Equal or nested strides (views of one
//! tensor) merge into one coefficient, two coefficients are decided in logarithmic time by counting lattice points, and
//! more are searched from the largest down, where the span of the others and their greatest common divisor leave few
//! values.

use super::region::Region;
use smallvec::SmallVec;

/// `step`·k for k from 0 to `max`.
#[derive(Clone, Copy, Debug)]
struct Term {
    step: i128,
    max: i128,
}

type Terms = SmallVec<[Term; 6]>;

/// Bound: sums tried. Layouts made by views stay far below it: their strides nest, so that each level leaves two or
/// three values. If strides are chosen to reach it, the answer is "they overlap": an unnecessary report is better than
/// a race that is not found.
const TRIES: u32 = 1 << 20;

/// Precondition: neither is empty.
pub(super) fn overlap(a: &Region, b: &Region) -> bool {
    let distance = b.start as i128 - a.start as i128;
    let mut low = distance - (a.run as i128 - 1);
    let mut high = distance + (b.run as i128 - 1);
    let mut terms = Terms::new();
    for repeat in &a.repeats {
        terms.push(Term { step: repeat.stride as i128, max: repeat.count as i128 - 1 });
    }
    for repeat in &b.repeats {
        let term = Term { step: repeat.stride as i128, max: repeat.count as i128 - 1 };
        low += term.step * term.max;
        high += term.step * term.max;
        terms.push(term);
    }
    let terms = simplify(terms, &mut low, high);
    let mut tries = TRIES;
    reaches(&terms, low, high, &mut tries)
}

/// Merges terms into one another or into the interval; largest first.
fn simplify(mut terms: Terms, low: &mut i128, high: i128) -> Terms {
    terms.sort_unstable_by_key(|term| term.step);
    let mut remaining = Terms::new();
    for term in terms {
        match remaining.last_mut() {
            // Steps no longer than the interval: shifted copies of it leave no gap.
            None if term.step <= high - *low + 1 => *low -= term.step * term.max,
            Some(last) if term.step % last.step == 0 && term.step / last.step <= last.max + 1 => {
                last.max += term.step / last.step * term.max;
            }
            _ => remaining.push(term),
        }
    }
    remaining.reverse();
    remaining
}

/// Whether some sum of the terms lies in `low..=high`. Terms: largest step first.
fn reaches(terms: &[Term], low: i128, high: i128, tries: &mut u32) -> bool {
    match terms {
        [] => low <= 0 && 0 <= high,
        [one] => ceil_div(low, one.step).max(0) <= high.div_euclid(one.step).min(one.max),
        [first, second] => reaches_by_two(*first, *second, low, high),
        [first, others @ ..] => {
            let span: i128 = others.iter().map(|term| term.step * term.max).sum();
            let divisor = others.iter().fold(0, |divisor, term| gcd(divisor, term.step));
            let from = ceil_div(low - span, first.step).max(0);
            let to = high.div_euclid(first.step).min(first.max);
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
    let span = b.step * b.max;
    // Only for these x does the interval that remains for y overlap 0..=span.
    let from = ceil_div(low - span, a.step).max(0);
    let to = high.div_euclid(a.step).min(a.max);
    if from > to {
        return false;
    }
    // The interval that remains for y then lies inside 0..=span or contains one of its ends, both multiples of b.step:
    // the question is only whether a multiple lies in it, for some x. There are floor((high-ax)/b) -
    // floor((low-1-ax)/b) multiples in low-ax..=high-ax; x counts down from `to`, so that the coefficients of i are
    // positive.
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
