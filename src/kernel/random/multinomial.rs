//! multinomial: sampling from given probabilities. The kernel checks them, since they are data.
//!
//! Seed and first counter are arguments of the call (`base::rng`).

use crate::base::rng;
use crate::kernel::abi::{Call, Fault, FaultKind, Threads};
use crate::kernel::guard;
use crate::kernel::host::attributes;
use crate::kernel::host::staging::{Scratch, Shared, read};

fn report(call: &Call<'_>, position: usize) {
    call.faults.report(Fault { kind: FaultKind::Probability, position: position as u64, value: 0, bound: 0 });
}

/// Weights that are added one by one first, and how many such sums are added the same way to a group's, and groups to a
/// block's; then blocks. An order that blocks of threads can keep, too; and since each level adds one by one, cumulative weights
/// never fall.
const LEAF: usize = 8;
const SIDE: usize = 16;
pub const GROUP: usize = LEAF * SIDE;
pub const BLOCK: usize = GROUP * SIDE;

/// Whether samples are found by cumulative weights: with replacement, and where there is one.
pub fn by_sums(call: &Call<'_>, samples: usize) -> bool {
    attributes::flag(call, 0) || samples == 1
}

/// Samples indices with the probabilities of each row. Input: floats, one or two dims, the last the categories. Output:
/// i64, samples in the last dim. Attribute: with replacement or without.
///
/// With replacement, and a single sample, sample k of row r is the first category whose cumulative probability exceeds u · sum,
/// where u is the uniform value of element r · samples + k. Without replacement, category c of row r has the key -ln(1 - u) / p
/// with the u of element r · categories + c, and the categories with the smallest keys are sampled in order (Efraimidis
/// and Spirakis, 2006).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn multinomial(call: &Call<'_>) {
    let ([input], [output]) = (call.inputs, call.outputs) else { return };
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
    let sums = by_sums(call, samples).then(|| cumulated(call, &from, categories));
    let rows = Shared::new(out);
    // Threads share rows, or else the work of each row.
    let (outer, inner) =
        if from.len() / categories > 1 { (call.threads, &Threads::ONE) } else { (&Threads::ONE, call.threads) };
    outer.split(from.len() / categories, GRAIN.div_ceil(categories), |range| {
        for r in range {
            let row = &from[r * categories..(r + 1) * categories];
            // SAFETY: each row is another part of the output.
            let picked = unsafe { rows.range(r * samples..(r + 1) * samples) };
            let bad = row.iter().position(|p| !(p.is_finite() && *p >= 0.0));
            let positive = row.iter().filter(|p| **p > 0.0).count();
            if bad.is_some() || positive == 0 || (sums.is_none() && positive < samples) {
                report(call, r * categories + bad.unwrap_or(0));
                picked.fill(0);
            } else if let Some(sums) = &sums {
                with_replacement(call, inner, row, &sums[r * categories..(r + 1) * categories], picked, r * samples);
            } else {
                without_replacement(call, inner, row, picked, r * categories);
            }
        }
    });
}

/// Elements of a thread.
const GRAIN: usize = 16 * 1024;

fn uniform(call: &Call<'_>, element: usize) -> f64 {
    rng::uniform_f64(rng::word64(call.seed, call.offset, element as u64))
}

/// Cumulative weights of each row: within blocks first, then the sums of the blocks before are added.
fn cumulated(call: &Call<'_>, from: &[f64], categories: usize) -> Scratch<f64> {
    let mut sums = Scratch::new(from.len());
    let (rows, blocks) = (from.len() / categories, categories.div_ceil(BLOCK));
    let block = |at: usize| {
        let (row, first) = (at / blocks * categories, at % blocks * BLOCK);
        row + first..row + (first + BLOCK).min(categories)
    };
    let shared = Shared::new(&mut sums);
    call.threads.split(rows * blocks, (GRAIN / BLOCK).max(1), |range| {
        for at in range {
            // SAFETY: blocks do not overlap.
            cumulate_block(&from[block(at)], unsafe { shared.range(block(at)) });
        }
    });
    let mut starts = Scratch::new(rows * blocks);
    for row in 0..rows {
        let mut start = 0.0;
        for at in row * blocks..(row + 1) * blocks {
            starts[at] = start;
            start += sums[block(at).end - 1];
        }
    }
    let shared = Shared::new(&mut sums);
    call.threads.split(rows * blocks, (GRAIN / BLOCK).max(1), |range| {
        for at in range.filter(|at| at % blocks > 0) {
            // SAFETY: blocks do not overlap.
            unsafe { shared.range(block(at)) }.iter_mut().for_each(|sum| *sum += starts[at]);
        }
    });
    sums
}

fn cumulate_block(from: &[f64], to: &mut [f64]) {
    let mut group_start = 0.0;
    for (from, to) in from.chunks(GROUP).zip(to.chunks_mut(GROUP)) {
        let mut leaf_start = 0.0;
        for (from, to) in from.chunks(LEAF).zip(to.chunks_mut(LEAF)) {
            let mut sum = 0.0;
            for (p, to) in from.iter().zip(to) {
                sum += p;
                *to = group_start + (leaf_start + sum);
            }
            leaf_start += sum;
        }
        group_start += leaf_start;
    }
}

fn with_replacement(call: &Call<'_>, threads: &Threads, row: &[f64], sums: &[f64], picked: &mut [i64], first: usize) {
    let last = row.iter().rposition(|p| *p > 0.0).unwrap_or(0);
    let sum = sums[sums.len() - 1];
    let (count, picked) = (picked.len(), Shared::new(picked));
    threads.split(count, 1024, |range| {
        // SAFETY: ranges do not overlap.
        let picked = unsafe { picked.range(range.clone()) };
        for (k, pick) in range.zip(picked) {
            let at = uniform(call, first + k) * sum;
            // Rounding can make u · sum equal to the sum.
            *pick = sums.partition_point(|c| *c <= at).min(last) as i64;
        }
    });
}

fn without_replacement(call: &Call<'_>, threads: &Threads, row: &[f64], picked: &mut [i64], first: usize) {
    let mut keys = Scratch::new(row.len());
    let shared = Shared::new(&mut keys);
    threads.split(row.len(), 4096, |range| {
        // SAFETY: ranges do not overlap.
        let keys = unsafe { shared.range(range.clone()) };
        for (c, key) in range.zip(keys).filter(|(c, _)| row[*c] > 0.0) {
            *key = -(-uniform(call, first + c)).ln_1p() / row[c];
        }
    });
    let mut all: Vec<(f64, i64)> = guard::with_capacity(row.len());
    all.extend((0..row.len()).filter(|&c| row[c] > 0.0).map(|c| (keys[c], c as i64)));
    let order = |a: &(f64, i64), b: &(f64, i64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if picked.len() < all.len() {
        all.select_nth_unstable_by(picked.len(), order);
        all.truncate(picked.len());
    }
    all.sort_unstable_by(order);
    picked.iter_mut().zip(all).for_each(|(pick, (_, c))| *pick = c);
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
