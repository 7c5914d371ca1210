//! Batch normalization: statistics of a channel over the batch and all positions.
//!
//! The caller computes running averages: training returns mean and biased variance.

use super::layer::store;
use crate::kernel::abi::Call;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real, widths};
use crate::kernel::host::rows;
use crate::kernel::host::staging::{Scratch, Shared, Sink, read};
use crate::kernel::host::vector::Vector;

/// `[batch, channels, positions]`.
#[derive(Clone, Copy)]
struct Planes {
    batch: usize,
    channels: usize,
    span: usize,
}

impl Planes {
    fn of(shape: &[usize]) -> Planes {
        Planes { batch: shape[0], channels: shape[1], span: shape[2..].iter().product() }
    }

    fn per_channel(&self) -> usize {
        self.batch * self.span
    }

    /// One channel, gathered.
    fn gather<T: Real>(&self, from: &[T], channel: usize, to: &mut [T]) {
        if self.span == 1 {
            to.iter_mut().zip(from.iter().skip(channel).step_by(self.channels)).for_each(|(to, &x)| *to = x);
        } else if self.span > 0 {
            for (n, to) in to.chunks_exact_mut(self.span).enumerate() {
                let start = (n * self.channels + channel) * self.span;
                to.copy_from_slice(&from[start..start + self.span]);
            }
        }
    }

    /// # Safety
    /// `to` has the planes' size and no other thread touches this channel.
    unsafe fn scatter<T: Real>(&self, from: &[T], channel: usize, to: Shared<T>) {
        if self.span == 1 {
            // SAFETY: `to` has the planes' size, and this thread alone has the channel (this function's contract).
            from.iter().enumerate().for_each(|(n, &x)| unsafe { *to.at(n * self.channels + channel) = x });
        } else if self.span > 0 {
            for (n, from) in from.chunks_exact(self.span).enumerate() {
                let start = (n * self.channels + channel) * self.span;
                // SAFETY: `to` has the planes' size, and this thread alone has the channel (this function's contract).
                unsafe { to.range(start..start + self.span) }.copy_from_slice(from);
            }
        }
    }

    /// Channels for a thread at a time: whole cache lines if channels are adjacent in memory.
    fn grain(&self) -> usize {
        let enough = 8192 / self.per_channel().max(1);
        if self.span == 1 { enough.max(16) } else { enough.max(1) }
    }
}

/// Batch norm in training. Inputs: `x` `[N, C, ..]`; `weight` `[C]` and `bias` `[C]` as the attributes say.
/// Outputs: `y` like `x`; `mean` `[C]`; biased variance `[C]`.
/// Attributes: `eps` (Float), has weight (Bool), has bias (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn batch_norm_train(call: &Call<'_>) {
    let p = Planes::of(&call.inputs[0].shape);
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let (weight, bias) = affine::<T>(call, p.channels, 1, 1);
            let eps = T::from_f64(attributes::float(call, 0));
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let (mut mean, mut variance) = (Scratch::<T>::new(p.channels), Scratch::<T>::new(p.channels));
            let (y_out, mean_out, variance_out) =
                (Shared::new(y.slice()), Shared::new(&mut mean), Shared::new(&mut variance));
            call.threads.split(p.channels, p.grain(), |range| {
                let mut plane = Scratch::<T>::new(p.per_channel());
                for c in range {
                    p.gather(&x, c, &mut plane);
                    let (m, v) = moments(&plane);
                    (*mean_out.at(c), *variance_out.at(c)) = (m, v);
                    let scale = weight[c] / Real::sqrt(v + eps);
                    map_affine(&mut plane, m, scale, bias[c]);
                    p.scatter(&plane, c, y_out);
                }
            });
            store(&call.outputs[1], &mean, call.threads);
            store(&call.outputs[2], &variance, call.threads);
            y.finish(call.threads);
        }
    });
}

/// Gradient of batch norm. Inputs: gradient of `y`, `x`, mean `[C]`, variance `[C]` (biased; those that the
/// forward pass used), `weight` as the attribute says. Outputs: gradients of `x`, and optionally of `weight`
/// and of `bias`. Attributes: `eps` (Float), training (Bool: were the statistics those of `x`?), has weight (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn batch_norm_grad(call: &Call<'_>) {
    let p = Planes::of(&call.inputs[1].shape);
    let training = attributes::flag(call, 1);
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let (g, x) = (read::<T>(&call.inputs[0], call.threads), read::<T>(&call.inputs[1], call.threads));
            let (mean, variance) = (read::<T>(&call.inputs[2], call.threads), read::<T>(&call.inputs[3], call.threads));
            let (weight, _) = affine::<T>(call, p.channels, 4, 2);
            let eps = T::from_f64(attributes::float(call, 0));
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let (mut dw, mut db) = (Scratch::<T>::new(p.channels), Scratch::<T>::new(p.channels));
            let (dx_out, dw_out, db_out) = (Shared::new(dx.slice()), Shared::new(&mut dw), Shared::new(&mut db));
            call.threads.split(p.channels, p.grain(), |range| {
                let n = p.per_channel();
                let (mut gs, mut xs) = (Scratch::<T>::new(n), Scratch::<T>::new(n));
                for c in range {
                    p.gather(&g, c, &mut gs);
                    p.gather(&x, c, &mut xs);
                    let rstd = T::ONE / Real::sqrt(variance[c] + eps);
                    let (sum, dot) = sums(&gs, &xs, mean[c]);
                    (*dw_out.at(c), *db_out.at(c)) = (dot * rstd, sum);
                    let count = T::from_usize(n);
                    let (a, b) = if training { (sum / count, dot * rstd * rstd / count) } else { (T::ZERO, T::ZERO) };
                    grad_plane(&mut gs, &xs, mean[c], a, b, weight[c] * rstd);
                    p.scatter(&gs, c, dx_out);
                }
            });
            if let Some(view) = call.outputs.get(1) {
                store(view, &dw, call.threads);
            }
            if let Some(view) = call.outputs.get(2) {
                store(view, &db, call.threads);
            }
            dx.finish(call.threads);
        }
    });
}

/// Weight (ones when not given) and bias (zeros), from input `fixed` on; attributes from `first` on say which.
unsafe fn affine<T: Real>(call: &Call<'_>, channels: usize, fixed: usize, first: usize) -> (Vec<T>, Vec<T>) {
    let mut next = fixed;
    let mut take = |i: usize, default: T| {
        if i < call.attrs.len() && attributes::flag(call, i) {
            next += 1;
            // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the
            // callee asks for.
            unsafe { read::<T>(&call.inputs[next - 1], call.threads) }.to_vec()
        } else {
            vec![default; channels]
        }
    };
    (take(first, T::ONE), take(first + 1, T::ZERO))
}

widths! {
    without_highest:
    /// Mean and biased variance, in two passes.
    fn moments<T, S>(x: &[T]) -> (T, T) {
        let count = T::from_usize(x.len());
        // SAFETY: `widths!` calls this with the level of the machine; positions are below the length of `x`.
        unsafe {
            let mean = rows::sum::<T, T::In<S>>(x, |x| x) / count;
            let from = T::In::<S>::splat(mean);
            let variance = rows::sum::<T, T::In<S>>(x, |x| {
                let d = x.sub(from);
                d.mul(d)
            });
            (mean, variance / count)
        }
    }
}

widths! {
    without_highest:
    fn map_affine<T>(x: &mut [T], mean: T, scale: T, shift: T) {
        x.iter_mut().for_each(|x| *x = (*x - mean).fma(scale, shift));
    }
}

widths! {
    without_highest:
    /// Sum of `g`, and of `g * (x - mean)`.
    fn sums<T, S>(g: &[T], x: &[T], mean: T) -> (T, T) {
        // SAFETY: `widths!` calls this with the level of the machine; `g` and `x` have the same length.
        unsafe {
            let from = T::In::<S>::splat(mean);
            let dot = rows::sum2::<T, T::In<S>>(g, x, |g, x| g.mul(x.sub(from)));
            (rows::sum::<T, T::In<S>>(g, |g| g), dot)
        }
    }
}

widths! {
    without_highest:
    /// `g = scale * (g - a - (x - mean) * b)`.
    fn grad_plane<T>(g: &mut [T], x: &[T], mean: T, a: T, b: T, scale: T) {
        g.iter_mut().zip(x).for_each(|(g, &x)| *g = scale * (*g - a - (x - mean) * b));
    }
}
