//! Layer, group, RMS and batch normalization, with gradients.
//!
//! The caller computes running statistics.

pub mod batch;
pub mod layer;

use crate::kernel::abi::Threads;
use crate::kernel::host::real::Real;
use crate::kernel::host::staging::{Scratch, Shared};

/// Maximal number of parts of a sum over rows. Their number depends only on the shape, so that the result is the same
/// with any number of threads.
const PARTS: usize = 32;

/// Runs `each(rows, partial sums)` over parts of `0..rows` and adds the parts' sums of `width` in order.
pub(crate) fn sum_in_parts<T: Real>(
    threads: &Threads,
    rows: usize,
    width: usize,
    each: impl Fn(std::ops::Range<usize>, &mut [T]) + Sync,
) -> Scratch<T> {
    let mut total = Scratch::zeroed(width);
    let per_part = rows.div_ceil(PARTS).max((4096 / width.max(1)).max(1));
    let parts = rows.div_ceil(per_part);
    if parts <= 1 {
        each(0..rows, &mut total);
        return total;
    }
    let mut sums = Scratch::<T>::zeroed(parts * width);
    let shared = Shared::new(&mut sums);
    threads.split(parts, 1, |range| {
        for part in range {
            // SAFETY: `part` is a different number for each call, and the sums of parts do not overlap.
            let sums = unsafe { shared.range(part * width..(part + 1) * width) };
            each(part * per_part..((part + 1) * per_part).min(rows), sums);
        }
    });
    if width > 0 {
        for part in sums.chunks_exact(width) {
            total.iter_mut().zip(part).for_each(|(total, &x)| *total += x);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{batch, layer};
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::abi::HostFn;
    use crate::kernel::host::staging::testing::*;

    const F: DType = DType::F64;

    /// Rows of the normalized values by the definition.
    fn normalized(x: &[f64], n: usize, eps: f64) -> Vec<f64> {
        x.chunks(n)
            .flat_map(|row| {
                let mean = row.iter().sum::<f64>() / n as f64;
                let var = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
                row.iter().map(move |x| (x - mean) / (var + eps).sqrt()).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Gradients of `x`, `weight`, `bias` of a norm whose forward has outputs `y` and `stats`.
    fn check_gradients(
        (forward, backward): (HostFn, HostFn),
        shape: &[usize],
        weights: &[usize],
        stats: &[&[usize]],
        (attrs, grad_attrs): (&[Attr], &[Attr]),
        biased: bool,
    ) {
        let (x, w, b) = (Array::wave(F, shape, 0.1), Array::wave(F, weights, 0.2), Array::wave(F, weights, 0.3));
        let g = Array::wave(F, shape, 0.4);
        let run = |x: &Array, w: &Array, b: &Array| {
            let mut outputs = vec![Array::empty(F, shape)];
            outputs.extend(stats.iter().map(|shape| Array::empty(F, shape)));
            let inputs = if biased { vec![x, w, b] } else { vec![x, w] };
            call(forward, &inputs, &outputs.iter().collect::<Vec<_>>(), attrs);
            outputs
        };
        let outputs = run(&x, &w, &b);
        let mut grads = vec![Array::empty(F, shape), Array::empty(F, weights)];
        if biased {
            grads.push(Array::empty(F, weights));
        }
        let mut inputs = vec![&g, &x];
        inputs.extend(&outputs[1..]);
        inputs.push(&w);
        call(backward, &inputs, &grads.iter().collect::<Vec<_>>(), grad_attrs);
        let loss = |outputs: Vec<Array>| outputs[0].get().iter().zip(g.get()).map(|(y, g)| y * g).sum::<f64>();
        differences(&x.get(), &grads[0].get(), |x| loss(run(&Array::of(F, shape, x), &w, &b)));
        differences(&w.get(), &grads[1].get(), |w| loss(run(&x, &Array::of(F, weights, w), &b)));
        if biased {
            differences(&b.get(), &grads[2].get(), |b| loss(run(&x, &w, &Array::of(F, weights, b))));
        }
    }

    #[test]
    fn layer_norm_is_its_definition() {
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let x = Array::wave(dtype, &[7, 45], 0.1);
            let y = Array::empty(dtype, &[7, 45]);
            let (mean, rstd) = (Array::empty(DType::F32, &[7]), Array::empty(DType::F32, &[7]));
            let attrs = [Attr::Int(1), Attr::Float(1e-5), Attr::Bool(false), Attr::Bool(false)];
            call(layer::layer_norm, &[&x], &[&y, &mean, &rstd], &attrs);
            close(&y.get(), &normalized(&x.get(), 45, 1e-5), if dtype == DType::BF16 { 1e-2 } else { 1e-5 });
        }
    }

    #[test]
    fn group_norm_is_its_definition() {
        let x = Array::wave(F, &[2, 6, 5], 0.1);
        let (y, mean, rstd) = (Array::empty(F, &[2, 6, 5]), Array::empty(F, &[2, 3]), Array::empty(F, &[2, 3]));
        let w = Array::wave(F, &[6], 0.5);
        let attrs = [Attr::Int(3), Attr::Float(1e-5), Attr::Bool(true), Attr::Bool(false)];
        call(layer::group_norm, &[&x, &w], &[&y, &mean, &rstd], &attrs);
        let w = w.get();
        let expected: Vec<f64> =
            normalized(&x.get(), 10, 1e-5).iter().enumerate().map(|(i, y)| y * w[i / 5 % 6]).collect();
        close(&y.get(), &expected, 1e-12);
    }

    #[test]
    fn batch_norm_is_its_definition_in_both_layouts() {
        for shape in [&[9, 20][..], &[3, 20, 2, 3]] {
            let (batch, span) = (shape[0], shape[2..].iter().product::<usize>());
            let x = Array::wave(F, shape, 0.1);
            let xs = x.get();
            let by_channel: Vec<f64> = (0..20 * batch * span)
                .map(|i| xs[(i % (batch * span) / span * 20 + i / (batch * span)) * span + i % span])
                .collect();
            let expected = normalized(&by_channel, batch * span, 1e-5);
            let (y, mean, var) = (Array::empty(F, shape), Array::empty(F, &[20]), Array::empty(F, &[20]));
            call(
                batch::batch_norm_train,
                &[&x],
                &[&y, &mean, &var],
                &[Attr::Float(1e-5), Attr::Bool(false), Attr::Bool(false)],
            );
            let back = |i: usize| {
                let (n, c, s) = (i / (20 * span), i / span % 20, i % span);
                expected[c * batch * span + n * span + s]
            };
            let expected: Vec<f64> = (0..xs.len()).map(back).collect();
            close(&y.get(), &expected, 1e-12);
        }
    }

    #[test]
    fn gradients_are_differences() {
        let yes = Attr::Bool(true);
        let eps = Attr::Float(1e-5);
        check_gradients(
            (layer::layer_norm, layer::layer_norm_grad),
            &[40, 3, 13],
            &[3, 13],
            &[&[40], &[40]],
            (&[Attr::Int(2), eps.clone(), yes.clone(), yes.clone()], &[Attr::Int(2), yes.clone()]),
            true,
        );
        check_gradients(
            (layer::group_norm, layer::group_norm_grad),
            &[3, 6, 4, 2],
            &[6],
            &[&[3, 2], &[3, 2]],
            (&[Attr::Int(2), eps.clone(), yes.clone(), yes.clone()], &[Attr::Int(2), yes.clone()]),
            true,
        );
        check_gradients(
            (layer::rms_norm, layer::rms_norm_grad),
            &[5, 33],
            &[33],
            &[&[5]],
            (&[Attr::Int(1), eps.clone(), yes.clone()], &[Attr::Int(1), yes.clone()]),
            false,
        );
        for shape in [&[6, 4][..], &[3, 4, 5]] {
            check_gradients(
                (batch::batch_norm_train, batch::batch_norm_grad),
                shape,
                &[4],
                &[&[4], &[4]],
                (&[eps.clone(), yes.clone(), yes.clone()], &[eps.clone(), yes.clone(), yes.clone()]),
                true,
            );
        }
    }

    #[test]
    fn an_empty_batch_is_no_work() {
        let (x, y) = (Array::empty(F, &[0, 5]), Array::empty(F, &[0, 5]));
        let (mean, rstd) = (Array::empty(F, &[0]), Array::empty(F, &[0]));
        let attrs = [Attr::Int(1), Attr::Float(1e-5), Attr::Bool(false), Attr::Bool(false)];
        assert_eq!(call(layer::layer_norm, &[&x], &[&y, &mean, &rstd], &attrs), None);
        let (dw, db) = (Array::empty(F, &[5]), Array::empty(F, &[5]));
        call(layer::layer_norm_grad, &[&y, &x, &mean, &rstd], &[&y, &dw, &db], &[Attr::Int(1), Attr::Bool(false)]);
        assert_eq!((dw.get(), db.get()), (vec![0.; 5], vec![0.; 5]));
    }
}
