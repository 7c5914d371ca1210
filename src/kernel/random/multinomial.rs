//! multinomial: sampling from given probabilities. The kernel checks them, since they are data.
//!
//! Seed and first counter are arguments of the call (`base::rng`).

use crate::base::rng;
use crate::kernel::abi::{Call, Fault, FaultKind};
use crate::kernel::guard;
use crate::kernel::host::staging::read;

fn report(call: &Call<'_>, position: usize) {
    call.faults.report(Fault { kind: FaultKind::Probability, position: position as u64, value: 0, bound: 0 });
}

/// Samples indices with the probabilities of each row. Input: floats, one or two dims, the last the categories. Output:
/// i64, samples in the last dim. Attribute: with replacement or without.
///
/// With replacement, sample k of row r is the first category whose cumulative probability exceeds u · sum, where u is
/// the uniform value of element r · samples + k. Without replacement, category c of row r has the key -ln(1 - u) / p
/// with the u of element r · categories + c, and the categories with the smallest keys are sampled in order (Efraimidis
/// and Spirakis, 2006).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn multinomial(call: &Call<'_>) {
    let ([input], [output]) = (call.inputs, call.outputs) else { return };
    let replacement = crate::kernel::host::attributes::flag(call, 0);
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; floats to read, i64 to write.
    let (from, out) = unsafe { (read::<f64>(input, call.threads), output.slice_mut::<i64>()) };
    let categories = input.shape.last().copied().unwrap_or(0);
    let samples = output.shape.last().copied().unwrap_or(0);
    if categories == 0 || samples == 0 {
        if !out.is_empty() {
            report(call, 0);
            out.fill(0);
        }
        return;
    }
    for (r, (row, picked)) in from.chunks_exact(categories).zip(out.chunks_exact_mut(samples)).enumerate() {
        guard::check_every(r, 256);
        let bad = row.iter().position(|p| !(p.is_finite() && *p >= 0.0));
        let positive = row.iter().filter(|p| **p > 0.0).count();
        if bad.is_some() || positive == 0 || (!replacement && positive < samples) {
            report(call, r * categories + bad.unwrap_or(0));
            picked.fill(0);
        } else if replacement {
            with_replacement(call, row, picked, r * samples);
        } else {
            without_replacement(call, row, picked, r * categories);
        }
    }
}

fn uniform(call: &Call<'_>, element: usize) -> f64 {
    rng::uniform_f64(rng::word64(call.seed, call.offset, element as u64))
}

fn with_replacement(call: &Call<'_>, row: &[f64], picked: &mut [i64], first: usize) {
    let mut sum = 0.0;
    let mut cumulated = guard::with_capacity(row.len());
    cumulated.extend(row.iter().map(|p| {
        sum += p;
        sum
    }));
    let last = row.iter().rposition(|p| *p > 0.0).unwrap_or(0);
    for (k, pick) in picked.iter_mut().enumerate() {
        guard::check_every(k, 4096);
        let at = uniform(call, first + k) * sum;
        // Rounding can make u · sum equal to the sum.
        *pick = cumulated.partition_point(|c| *c <= at).min(last) as i64;
    }
}

fn without_replacement(call: &Call<'_>, row: &[f64], picked: &mut [i64], first: usize) {
    let mut keys: Vec<(f64, i64)> = guard::with_capacity(row.len());
    for (c, p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        guard::check_every(c, 4096);
        keys.push((-(-uniform(call, first + c)).ln_1p() / p, c as i64));
    }
    let order = |a: &(f64, i64), b: &(f64, i64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if picked.len() < keys.len() {
        keys.select_nth_unstable_by(picked.len(), order);
        keys.truncate(picked.len());
    }
    keys.sort_unstable_by(order);
    picked.iter_mut().zip(keys).for_each(|(pick, (_, c))| *pick = c);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::abi::{Faults, RawView, Threads};

    fn draw(p: &mut [f64], rows: usize, samples: usize, replacement: bool) -> (Vec<i64>, Option<Fault>) {
        let mut out = vec![-1i64; rows * samples];
        let input = RawView::contiguous(p.as_mut_ptr().cast(), DType::F64, &[rows, p.len() / rows]);
        let output = RawView::contiguous(out.as_mut_ptr().cast(), DType::I64, &[rows, samples]);
        let faults = Faults::default();
        let call = Call {
            inputs: &[input],
            outputs: &[output],
            attrs: &[Attr::Bool(replacement)],
            threads: &Threads::ONE,
            faults: &faults,
            seed: 5,
            offset: 0,
        };
        // SAFETY: both views are of live vectors of their dtype.
        unsafe { multinomial(&call) };
        (out, faults.take())
    }

    #[test]
    fn frequencies_follow_the_probabilities() {
        for replacement in [true, false] {
            let n = 20_000;
            let rows = if replacement { 1 } else { n };
            let mut p = [1.0, 0.0, 3.0].repeat(rows);
            let (out, fault) = draw(&mut p, rows, if replacement { n } else { 1 }, replacement);
            assert_eq!(fault, None);
            let ones = out.iter().filter(|&&c| c == 0).count() as f64 / n as f64;
            assert!((ones - 0.25).abs() < 0.02 && !out.contains(&1), "{ones}");
        }
    }

    #[test]
    fn without_replacement_none_twice() {
        let mut p: Vec<f64> = (1..=50).map(f64::from).collect();
        let (mut out, _) = draw(&mut p, 1, 50, false);
        out.sort_unstable();
        assert_eq!(out, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn bad_rows_are_faults() {
        let position = |p: &mut [f64], rows, samples| draw(p, rows, samples, false).1.map(|fault| fault.position);
        assert_eq!(position(&mut [1.0, 1.0, 0.5, -0.5], 2, 1), Some(3));
        assert_eq!(position(&mut [1.0, 1.0, 0.0, 0.0], 2, 1), Some(2));
        assert_eq!(position(&mut [1.0, f64::INFINITY], 1, 1), Some(1));
        assert_eq!(position(&mut [1.0, 0.0], 1, 2), Some(0));
    }
}
