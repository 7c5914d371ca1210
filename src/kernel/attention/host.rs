//! Scaled dot-product attention in tiles with an online softmax, and its gradient: the matrix of all scores is never stored.
//!
//! Source: Dao, "FlashAttention-2" (2023). Has no dropout and no gradient of the mask: calls that need them are
//! composed of other operations.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real, widths};
use crate::kernel::host::rows;
use crate::kernel::host::rows::Through;
use crate::kernel::host::staging::{Packed, Scratch, Shared, Sink, read, row_offset};
use crate::kernel::host::vector::Vector;
use crate::kernel::matmul::host::product::{Accum, Matrix, Sizes, product};
use half::{bf16, f16};
use std::ops::Range;

/// Queries and keys of a tile: its scores (32 KiB in `f32`) fit into the L1 cache.
const QUERIES: usize = 64;
const KEYS: usize = 128;

/// Sizes of a call: `heads` problems of `[queries, width] x [keys, width] x [keys, value_width]`.
#[derive(Clone, Copy)]
struct Problem<'a, T> {
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
    value_width: usize,
    scale: T,
    causal: bool,
    mask: Option<&'a RawView>,
}

impl<'a, T: Real> Problem<'a, T> {
    fn of(call: &'a Call<'_>, q: &RawView, k: &RawView, v: &RawView, mask: Option<&'a RawView>) -> Problem<'a, T> {
        let lead = q.shape.len() - 2;
        let width = q.shape[lead + 1];
        let scale = attributes::float_or_none(call, 1).unwrap_or(1.0 / (width as f64).sqrt());
        Problem {
            heads: q.shape[..lead].iter().product(),
            queries: q.shape[lead],
            keys: k.shape[lead],
            width,
            value_width: v.shape[lead + 1],
            scale: T::from_f64(scale),
            causal: attributes::flag(call, 0),
            mask,
        }
    }

    /// One past the last key that a query below `end` attends to.
    fn visible_keys(&self, end: usize) -> usize {
        if self.causal { self.keys.min(end) } else { self.keys }
    }

    /// Scores of a tile: `scale * q @ k.T`, then the masks; minus infinity where a query does not attend to a key.
    fn scores(&self, head: usize, q: &[T], k: &[T], queries: Range<usize>, keys: Range<usize>, to: &mut [T]) {
        let s = Sizes { m: queries.len(), n: keys.len(), k: self.width };
        let a = Matrix::packed(&q[(head * self.queries + queries.start) * self.width..], self.width);
        let b = Matrix::packed(&k[(head * self.keys + keys.start) * self.width..], self.width).transposed();
        // SAFETY: the sizes are those of the operands; `to` has room for the tile.
        unsafe { product(&Threads::ONE, s, a, b, Matrix::packed_mut(to, s.n), Accum::Replace) };
        to[..s.m * s.n].iter_mut().for_each(|x| *x *= self.scale);
        for (row, i) in to.chunks_exact_mut(s.n).zip(queries) {
            if let Some(mask) = self.mask {
                // SAFETY: the mask covers `[.., queries, keys]`.
                unsafe { add_mask(mask, head, i, keys.start, row) };
            }
            if self.causal && i + 1 < keys.end {
                row[(i + 1).saturating_sub(keys.start)..].fill(T::NEG_INF);
            }
        }
    }
}

/// Adds a part of the mask's row: floats are added, `false` becomes minus infinity.
unsafe fn add_mask<T: Real>(mask: &RawView, head: usize, query: usize, key: usize, row: &mut [T]) {
    let lead = mask.shape.len() - 2;
    let stride = mask.strides[lead + 1];
    let start = row_offset(&mask.shape[..lead], &mask.strides[..lead], head)
        + query as isize * mask.strides[lead]
        + key as isize * stride;
    // SAFETY: whoever calls this names a head, a query and `row.len()` keys from `key` on that the mask has.
    unsafe {
        fn each<S: Copy, T: Real>(from: *const S, stride: isize, row: &mut [T], add: impl Fn(S, T) -> T) {
            for (j, x) in row.iter_mut().enumerate() {
                // SAFETY: `row` has as many elements as keys are asked of the mask, and `stride` is that of its keys.
                *x = add(unsafe { *from.offset(j as isize * stride) }, *x);
            }
        }
        match mask.dtype {
            DType::Bool if stride == 1 => {
                hide(std::slice::from_raw_parts(mask.ptr.cast::<u8>().offset(start), row.len()), row);
            }
            dtype if stride == 1 && dtype == T::DTYPE => {
                add(std::slice::from_raw_parts(mask.ptr.cast::<T>().offset(start), row.len()), row);
            }
            DType::Bool => {
                each(mask.ptr.cast::<u8>().offset(start), stride, row, |m, x| if m == 0 { T::NEG_INF } else { x });
            }
            DType::F32 => {
                each(mask.ptr.cast::<f32>().offset(start), stride, row, |m, x| x + T::from_f64(m as f64));
            }
            DType::F64 => each(mask.ptr.cast::<f64>().offset(start), stride, row, |m, x| x + T::from_f64(m)),
            DType::F16 => {
                each(mask.ptr.cast::<f16>().offset(start), stride, row, |m, x| x + T::from_f64(m.to_f64()));
            }
            DType::BF16 => {
                each(mask.ptr.cast::<bf16>().offset(start), stride, row, |m, x| x + T::from_f64(m.to_f64()));
            }
            other => debug_assert!(false, "no mask of {other}"),
        }
    }
}

widths! {
    /// Minus infinity where the mask is false.
    fn hide<T>(mask: &[u8], row: &mut [T]) {
        for (&seen, x) in mask.iter().zip(row) {
            *x = if seen == 0 { T::NEG_INF } else { *x };
        }
    }
}

widths! {
    fn add<T>(mask: &[T], row: &mut [T]) {
        for (&added, x) in mask.iter().zip(row) {
            *x += added;
        }
    }
}

/// Attention. Inputs: q `[B.., L, E]`, k `[B.., S, E]`, v `[B.., S, Ev]`, floats of one dtype, any strides, the same
/// leading dims; optionally a mask `[B.., L, S]` (expanded with stride 0): bool (`false`: not seen) or float (added to
/// the scaled scores). Outputs: `[B.., L, Ev]`; logsumexp of each query's scores `[B.., L]` (`f32`, or `f64` for
/// `f64`). Attributes: causal (Bool: query i sees keys up to i), scale (Float, or None: 1/√E). The output of a query
/// that attends to no key is zero.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn attention(call: &Call<'_>) {
    let [q, k, v] = [&call.inputs[0], &call.inputs[1], &call.inputs[2]];
    real!(q.dtype, T => {
        let p = Problem::<T>::of(call, q, k, v, call.inputs.get(3));
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let (q, k, v) = (read::<T>(q, call.threads), read::<T>(k, call.threads), read::<T>(v, call.threads));
            let (mut out, mut lse) = (Sink::<T>::new(&call.outputs[0]), Sink::<T>::new(&call.outputs[1]));
            let (to, lse_to) = (Shared::new(out.slice()), Shared::new(lse.slice()));
            let tiles = p.queries.div_ceil(QUERIES);
            call.threads.split(p.heads * tiles, 1, |range| {
                let mut scores = Scratch::<T>::new(QUERIES * KEYS);
                for i in range {
                    let (head, first) = (i / tiles, i % tiles * QUERIES);
                    let queries = first..(first + QUERIES).min(p.queries);
                    let rows = head * p.queries + queries.start..head * p.queries + queries.end;
                    // SAFETY: tiles have their own queries.
                    let out = to.range(rows.start * p.value_width..rows.end * p.value_width);
                    forward_tile(&p, head, queries, [&q, &k, &v], &mut scores, out, lse_to.range(rows));
                }
            });
            out.finish(call.threads);
            lse.finish(call.threads);
        }
    });
}

fn forward_tile<T: Real>(
    p: &Problem<'_, T>,
    head: usize,
    queries: Range<usize>,
    [q, k, v]: [&[T]; 3],
    scores: &mut [T],
    out: &mut [T],
    lse: &mut [T],
) {
    out.fill(T::ZERO);
    let (mut max, mut sum) = ([T::NEG_INF; QUERIES], [T::ZERO; QUERIES]);
    let key_end = p.visible_keys(queries.end);
    for first in (0..key_end).step_by(KEYS) {
        let keys = first..(first + KEYS).min(key_end);
        let n = keys.len();
        p.scores(head, q, k, queries.clone(), keys, scores);
        for (r, row) in scores.chunks_exact_mut(n).enumerate().take(queries.len()) {
            let out = &mut out[r * p.value_width..(r + 1) * p.value_width];
            advance(row, &mut max[r], &mut sum[r], out);
        }
        let s = Sizes { m: queries.len(), n: p.value_width, k: n };
        let values = Matrix::packed(&v[(head * p.keys + first) * p.value_width..], p.value_width);
        let c = Matrix::packed_mut(out, p.value_width);
        // SAFETY: the sizes are those of the operands.
        unsafe { product(&Threads::ONE, s, Matrix::packed(scores, n), values, c, Accum::Add) };
    }
    for r in 0..queries.len() {
        let unseen = sum[r] == T::ZERO;
        lse[r] = if unseen { T::NEG_INF } else { max[r] + sum[r].ln() };
        let scale = if unseen { T::ZERO } else { T::ONE / sum[r] };
        out[r * p.value_width..(r + 1) * p.value_width].iter_mut().for_each(|x| *x *= scale);
    }
}

widths! {
    /// A step of the online softmax: adds one more tile of a query's scores to its running maximum and sum. Scores are
    /// replaced by exp(score - new maximum), and `out` is rescaled to the new maximum.
    fn advance<T, S>(row: &mut [T], max: &mut T, sum: &mut T, out: &mut [T]) {
        // SAFETY: `S` is the machine's; `row` is read where it is written.
        unsafe {
            let new = rows::largest::<T, T::In<S>>(row).max_nan(*max);
            // No key is seen; `largest` passes over what is not a number.
            if new == T::NEG_INF && !row.iter().any(|x| x.is_nan()) {
                return row.fill(T::ZERO);
            }
            let rescale = (*max - new).exp();
            if rescale != T::ONE {
                let by = T::In::<S>::splat(rescale);
                let to = out.as_mut_ptr();
                rows::map::<T, T::In<S>>(to, to, out.len(), Through::Cache, |x| x.mul(by));
            }
            let (n, row) = (row.len(), row.as_mut_ptr());
            *sum = *sum * rescale + rows::exp_sum::<T, S>(row, new, row, n, 0);
            *max = new;
        }
    }
}

/// Gradient of `attention`. Inputs: gradient of the output, q, k, v, the output, logsumexp, and the mask if there
/// was one. Outputs: gradients of q, k, v (the mask gets none). Attributes: as `attention`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn attention_grad(call: &Call<'_>) {
    let [q, k, v] = [&call.inputs[1], &call.inputs[2], &call.inputs[3]];
    let threads = call.threads;
    real!(q.dtype, T => {
        let p = Problem::<T>::of(call, q, k, v, call.inputs.get(6));
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let grad_out = read::<T>(&call.inputs[0], threads);
            let (q, k, v) = (read::<T>(q, threads), read::<T>(k, threads), read::<T>(v, threads));
            let (out, lse) = (read::<T>(&call.inputs[4], threads), read::<T>(&call.inputs[5], threads));
            let mut grads = [0, 1, 2].map(|i| Sink::<T>::new(&call.outputs[i]));
            grads.iter_mut().for_each(|grad| grad.slice().fill(T::ZERO));
            let to = grads.each_mut().map(|grad| Shared::new(grad.slice()));
            let given = Backward { grad_out: &grad_out, q: &q, k: &k, v: &v, lse: &lse, delta: delta(&grad_out, &out, p.value_width), to };
            let (query_tiles, key_tiles) = (p.queries.div_ceil(QUERIES), p.keys.div_ceil(KEYS));
            if p.heads >= threads.count() {
                threads.split(p.heads, 1, |heads| {
                    for head in heads {
                        given.tiles(&p, head, 0..query_tiles, 0..key_tiles, Grads::Both);
                    }
                });
            } else {
                // Fewer heads than threads: the gradients of keys and of queries are computed in two passes, in each of
                // which a tile is written by only one thread.
                threads.split(p.heads * key_tiles, 1, |range| {
                    for i in range {
                        let tile = i % key_tiles;
                        given.tiles(&p, i / key_tiles, 0..query_tiles, tile..tile + 1, Grads::Keys);
                    }
                });
                threads.split(p.heads * query_tiles, 1, |range| {
                    for i in range {
                        let tile = i % query_tiles;
                        given.tiles(&p, i / query_tiles, tile..tile + 1, 0..key_tiles, Grads::Queries);
                    }
                });
            }
            grads.into_iter().for_each(|grad| grad.finish(threads));
        }
    });
}

widths! {
    /// delta: dot(dO, O) of each query.
    fn delta<T, S>(grad_out: &[T], out: &[T], width: usize) -> Vec<T> {
        let mut delta = Vec::new();
        if width > 0 {
            for (grad_out, out) in grad_out.chunks_exact(width).zip(out.chunks_exact(width)) {
                // SAFETY: `widths!` calls this with the level of the machine; both slices are of `width` elements.
                delta.push(unsafe { rows::sum2::<T, T::In<S>>(grad_out, out, |grad_out, out| grad_out.mul(out)) });
            }
        }
        delta
    }
}

/// Which gradients a pass over tiles computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grads {
    Both,
    Keys,
    Queries,
}

struct Backward<'a, T> {
    grad_out: &'a Packed<'a, T>,
    q: &'a Packed<'a, T>,
    k: &'a Packed<'a, T>,
    v: &'a Packed<'a, T>,
    lse: &'a Packed<'a, T>,
    delta: Vec<T>,
    /// Gradients of q, k, v.
    to: [Shared<T>; 3],
}

impl<T: Real> Backward<'_, T> {
    /// # Safety
    /// No other thread writes the computed gradients of these tiles.
    unsafe fn tiles(
        &self,
        p: &Problem<'_, T>,
        head: usize,
        query_tiles: Range<usize>,
        key_tiles: Range<usize>,
        grads: Grads,
    ) {
        if self.delta.is_empty() {
            return;
        }
        let (mut probability, mut ds) = (Scratch::<T>::new(QUERIES * KEYS), Scratch::<T>::new(QUERIES * KEYS));
        for key_tile in key_tiles {
            for query_tile in query_tiles.clone() {
                let queries = query_tile * QUERIES..((query_tile + 1) * QUERIES).min(p.queries);
                let first = key_tile * KEYS;
                let keys = first..(first + KEYS).min(p.visible_keys(queries.end));
                if keys.is_empty() {
                    continue;
                }
                // SAFETY: nobody else writes the computed gradients of these tiles (this function's contract).
                unsafe { self.tile(p, head, queries, keys, grads, &mut probability, &mut ds) };
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    unsafe fn tile(
        &self,
        p: &Problem<'_, T>,
        head: usize,
        queries: Range<usize>,
        keys: Range<usize>,
        grads: Grads,
        probability: &mut [T],
        ds: &mut [T],
    ) {
        let (m, n) = (queries.len(), keys.len());
        let (row, key) = (head * p.queries + queries.start, head * p.keys + keys.start);
        let one = &Threads::ONE;
        let at = |x: &[T], row: usize, width: usize| Matrix::packed(&x[row * width..], width);
        let out = |i: usize, row: usize, width: usize| Matrix {
            ptr: self.to[i].at(row * width),
            row: width as isize,
            col: 1,
        };
        let (grad_out, v) = (at(self.grad_out, row, p.value_width), at(self.v, key, p.value_width));
        p.scores(head, self.q, self.k, queries, keys, probability);
        // SAFETY: every matrix has the sizes given beside it, and nobody else writes the computed gradients of this
        // tile (the contract of `tiles`).
        unsafe {
            let s = Sizes { m, n, k: p.value_width };
            product(one, s, grad_out, v.transposed(), Matrix::packed_mut(ds, n), Accum::Replace);
            for r in 0..m {
                let part = r * n..(r + 1) * n;
                score_grads(
                    &mut probability[part.clone()],
                    &mut ds[part],
                    self.lse[row + r],
                    self.delta[row + r],
                    p.scale,
                );
            }
            let (probability, ds) = (Matrix::packed(probability, n), Matrix::packed(ds, n));
            if grads != Grads::Queries {
                let s = Sizes { m: n, n: p.value_width, k: m };
                product(one, s, probability.transposed(), grad_out, out(2, key, p.value_width), Accum::Add);
                let s = Sizes { m: n, n: p.width, k: m };
                product(one, s, ds.transposed(), at(self.q, row, p.width), out(1, key, p.width), Accum::Add);
            }
            if grads != Grads::Keys {
                let s = Sizes { m, n: p.width, k: n };
                product(one, s, ds, at(self.k, key, p.width), out(0, row, p.width), Accum::Add);
            }
        }
    }
}

widths! {
    /// Replaces scores by probabilities, and dP by dS, the gradient of the unscaled scores.
    fn score_grads<T, S>(score: &mut [T], ds: &mut [T], lse: T, dot: T, scale: T) {
        // A query that attends to no key has a logsumexp of minus infinity, and no gradient.
        if lse == T::NEG_INF {
            score.fill(T::ZERO);
            return ds.fill(T::ZERO);
        }
        let n = Ord::min(score.len(), ds.len());
        // SAFETY: `S` is the machine's; both have `n` elements.
        unsafe {
            let (score, ds) = (score.as_mut_ptr(), ds.as_mut_ptr());
            let (dot, scale) = (T::In::<S>::splat(dot), T::In::<S>::splat(scale));
            rows::exp_map::<T, S>(score, lse, T::ONE, score, n);
            rows::map3::<T, T::In<S>>([score, ds, ds], ds, n, Through::Cache, |p, ds, _| {
                p.mul(ds.sub(dot)).mul(scale)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::kernel::host::staging::testing::*;

    /// The definition: `softmax(q @ k.T * scale + mask) @ v`.
    fn naive(
        q: &[f64],
        k: &[f64],
        v: &[f64],
        sizes: [usize; 5],
        key_end: impl Fn(usize, usize, usize) -> f64,
    ) -> Vec<f64> {
        let [heads, l, s, e, ev] = sizes;
        let mut out = Vec::new();
        for h in 0..heads {
            for i in 0..l {
                let score = |j: usize| {
                    let dot: f64 = (0..e).map(|d| q[(h * l + i) * e + d] * k[(h * s + j) * e + d]).sum();
                    (dot / (e as f64).sqrt() + key_end(h, i, j)).exp()
                };
                let scores: Vec<f64> = (0..s).map(score).collect();
                let sum: f64 = scores.iter().sum();
                for d in 0..ev {
                    let dot: f64 = (0..s).map(|j| scores[j] * v[(h * s + j) * ev + d]).sum();
                    out.push(if sum == 0.0 { 0.0 } else { dot / sum });
                }
            }
        }
        out
    }

    struct Run {
        out: Array,
        lse: Array,
    }

    fn run(dtype: DType, inputs: &[&Array], sizes: [usize; 5], causal: bool) -> Run {
        let [heads, l, _, _, ev] = sizes;
        let run = Run { out: Array::empty(dtype, &[heads, l, ev]), lse: Array::empty(dtype.compute(), &[heads, l]) };
        call(attention, inputs, &[&run.out, &run.lse], &[Attr::Bool(causal), Attr::None]);
        run
    }

    #[test]
    fn forward_is_its_definition() {
        let sizes = [2, 150, 300, 24, 17];
        let [heads, l, s, e, ev] = sizes;
        for (dtype, tolerance) in [(DType::F32, 2e-6), (DType::F64, 1e-13), (DType::BF16, 1e-2)] {
            let q = Array::wave(dtype, &[heads, l, e], 0.1);
            let k = Array::wave(dtype, &[heads, e, s], 0.2).permute(&[0, 2, 1]);
            let v = Array::wave(dtype, &[heads, s, ev], 0.3);
            let check = |mask: Option<&Array>, causal: bool| {
                let mut inputs = vec![&q, &k, &v];
                inputs.extend(mask);
                let masks = mask.map(Array::get);
                let expected = naive(&q.get(), &k.get(), &v.get(), sizes, |h, i, j| {
                    let added = match (&masks, mask.map(|m| m.view.dtype)) {
                        (Some(m), Some(DType::Bool)) if m[(h * l + i) * s + j] == 0.0 => f64::NEG_INFINITY,
                        (Some(m), Some(DType::F32)) => m[(h * l + i) * s + j],
                        _ => 0.0,
                    };
                    if causal && j > i { f64::NEG_INFINITY } else { added }
                });
                close(&run(dtype, &inputs, sizes, causal).out.get(), &expected, tolerance);
            };
            check(None, false);
            check(None, true);
            let bits: Vec<f64> = (0..l * s).map(|i| (i % 3 != 0 && i / s != 5) as u8 as f64).collect();
            let mut mask = Array::of(DType::Bool, &[l, s], &bits);
            mask.view.shape.insert(0, heads);
            mask.view.strides.insert(0, 0);
            check(Some(&mask), false);
            check(Some(&mask), true);
            check(Some(&Array::wave(DType::F32, &[heads, l, s], 0.7)), false);
        }
    }

    fn check_gradients(sizes: [usize; 5], causal: bool) {
        let [heads, l, s, e, ev] = sizes;
        let f = DType::F64;
        let shapes = [[heads, l, e], [heads, s, e], [heads, s, ev]];
        let data: Vec<Array> =
            shapes.iter().zip([0.1, 0.2, 0.3]).map(|(shape, seed)| Array::wave(f, shape, seed)).collect();
        let bits: Vec<f64> = (0..heads * l * s).map(|i| (i % 5 != 0 && i / s != 2) as u8 as f64).collect();
        let mask = Array::of(DType::Bool, &[heads, l, s], &bits);
        let grad_out = Array::wave(f, &[heads, l, ev], 0.4);
        let first = run(f, &[&data[0], &data[1], &data[2], &mask], sizes, causal);
        let grads = shapes.map(|shape| Array::empty(f, &shape));
        let inputs = [&grad_out, &data[0], &data[1], &data[2], &first.out, &first.lse, &mask];
        let outputs = [&grads[0], &grads[1], &grads[2]];
        call(attention_grad, &inputs, &outputs, &[Attr::Bool(causal), Attr::None]);
        for which in 0..3 {
            differences(&data[which].get(), &grads[which].get(), |x| {
                let moved = Array::of(f, &shapes[which], x);
                let mut inputs = [&data[0], &data[1], &data[2], &mask];
                inputs[which] = &moved;
                let out = run(f, &inputs, sizes, causal).out;
                out.get().iter().zip(grad_out.get()).map(|(y, grad_out)| y * grad_out).sum()
            });
        }
    }

    #[test]
    fn gradients_are_differences() {
        check_gradients([3, 9, 14, 5, 6], false);
        check_gradients([1, 70, 135, 4, 3], true);
        check_gradients([1, 70, 135, 4, 3], false);
    }
}
