//! Cross entropy and negative log-likelihood, fused from logits to loss, with gradients.
//!
//! Returns the loss of every element and the sum of their weights; the caller divides for the mean.

use crate::kernel::abi::{Call, Fault, FaultKind, RawView};
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real, widths};
use crate::kernel::host::rows;
use crate::kernel::host::staging::{Packed, Scratch, Shared, Sink, read, read_as};
use crate::kernel::host::vector::Vector;
use std::ops::Range;

/// `[N, C, d..]` as outer × classes × inner.
#[derive(Clone, Copy)]
struct Classes {
    outer: usize,
    classes: usize,
    inner: usize,
}

impl Classes {
    fn of(shape: &[usize]) -> Classes {
        match shape {
            [] => Classes { outer: 1, classes: 1, inner: 1 },
            [classes] => Classes { outer: 1, classes: *classes, inner: 1 },
            [outer, classes, rest @ ..] => Classes { outer: *outer, classes: *classes, inner: rest.iter().product() },
        }
    }

    fn elements(&self) -> usize {
        self.outer * self.inner
    }

    /// Offset of the first class of an element; classes have a stride of `inner`.
    fn start(&self, element: usize) -> usize {
        element / self.inner * self.classes * self.inner + element % self.inner
    }
}

/// Elements of `columns` at a time: a row of each class, in the first-level cache.
const COLUMNS: usize = 256;

impl Classes {
    /// Calls `each` for runs of elements that lie beside each other: the first element, the offset of its first class, and
    /// how many they are, at most `COLUMNS`.
    fn columns(&self, range: Range<usize>, mut each: impl FnMut(usize, usize, usize)) {
        let mut first = range.start;
        while first < range.end {
            let n = COLUMNS.min(range.end - first).min(self.inner - first % self.inner);
            each(first, self.start(first), n);
            first += n;
        }
    }
}

/// A checked label.
#[derive(Clone, Copy)]
enum Label {
    Class(usize),
    /// `ignore_index`, or an invalid label that was reported.
    None,
}

fn label(call: &Call<'_>, c: Classes, targets: &[i64], element: usize, ignored: i64) -> Label {
    let value = targets[element];
    if value == ignored {
        return Label::None;
    }
    if value < 0 || value as usize >= c.classes {
        let fault = Fault { kind: FaultKind::Label, position: element as u64, value, bound: c.classes as i64 };
        call.faults.report(fault);
        return Label::None;
    }
    Label::Class(value as usize)
}

struct Options<'a, T> {
    weight: Option<Packed<'a, T>>,
    ignored: i64,
    smoothing: T,
}

impl<T: Real> Options<'_, T> {
    fn weight(&self, class: usize) -> T {
        self.weight.as_ref().map_or(T::ONE, |w| w[class])
    }
}

/// Attributes from 0: `ignore_index`, label smoothing (if any), has weight; the weight is input `at`.
unsafe fn options<'a, T: Real>(call: &'a Call<'_>, at: usize, smoothed: Option<usize>, has: usize) -> Options<'a, T> {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    let weight = attributes::flag(call, has).then(|| unsafe { read::<T>(&call.inputs[at], call.threads) });
    let smoothing = T::from_f64(smoothed.map_or(0.0, |i| attributes::float(call, i)));
    Options { weight, ignored: attributes::int(call, 0), smoothing }
}

fn store_weight<T: Real>(view: &RawView, weights: &[T]) {
    let total: T = weights.iter().copied().sum();
    // SAFETY: the total weight is an output of one element.
    let mut sink = unsafe { Sink::<T>::new(view) };
    sink.slice()[0] = total;
    sink.finish(&crate::kernel::abi::Threads::ONE);
}

/// Cross entropy of logits. Inputs: logits `[N, C, d..]` (or `[C]`), targets i64 `[N, d..]` (or `[]`), `weight`
/// `[C]` if the third attribute says so. Outputs: loss of each element, like the targets, in the logits' dtype
/// (0 where ignored); total weight `[]` (the divisor of the mean); logsumexp of each element, like the
/// targets (saved for the gradient, `f32` or `f64` recommended).
/// Attributes: `ignore_index` (Int), label smoothing (Float), has weight (Bool).
/// Faults: `Label` for a class outside `0..C`, at its position among the targets; that element counts as ignored.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn cross_entropy(call: &Call<'_>) {
    let logits = &call.inputs[0];
    let c = Classes::of(&logits.shape);
    real!(logits.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(logits, call.threads);
            let targets = read_as::<i64>(&call.inputs[1]);
            let options = options::<T>(call, 2, Some(1), 2);
            let (mut loss, mut lse) = (Sink::<T>::new(&call.outputs[0]), Sink::<T>::new(&call.outputs[2]));
            let mut weights = Scratch::<T>::new(c.elements());
            let (loss_out, lse_out, weights_out) =
                (Shared::new(loss.slice()), Shared::new(lse.slice()), Shared::new(&mut weights));
            let total_class_weight: T = (0..c.classes).map(|class| options.weight(class)).sum();
            call.threads.split(c.elements(), (16384 / c.classes.max(1)).max(1), |range| {
                if c.inner > 1 && options.smoothing == T::ZERO {
                    let mut all = [T::ZERO; COLUMNS];
                    return c.columns(range, |first, start, n| {
                        let z = &mut all[..n];
                        log_sum_exps(&x[start..], c.inner, c.classes, z);
                        for (i, &z) in (first..).zip(&*z) {
                            let (loss, weight) = match label(call, c, &targets, i, options.ignored) {
                                Label::None => (T::ZERO, T::ZERO),
                                Label::Class(class) => {
                                    let w = options.weight(class);
                                    ((z - x[c.start(i) + class * c.inner]) * w, w)
                                }
                            };
                            (*loss_out.at(i), *lse_out.at(i), *weights_out.at(i)) = (loss, z, weight);
                        }
                    });
                }
                let mut row = Scratch::<T>::new(c.classes);
                for i in range {
                    let classes = class_row(c, &x, i, &mut row);
                    let z = log_sum_exp(classes);
                    let (loss, weight) = match label(call, c, &targets, i, options.ignored) {
                        Label::None => (T::ZERO, T::ZERO),
                        Label::Class(class) => {
                            let w = options.weight(class);
                            let plain = (z - classes[class]) * w;
                            (smoothed_loss(classes, &options, total_class_weight, z, plain), w)
                        }
                    };
                    (*loss_out.at(i), *lse_out.at(i), *weights_out.at(i)) = (loss, z, weight);
                }
            });
            store_weight(&call.outputs[1], &weights);
            loss.finish(call.threads);
            lse.finish(call.threads);
        }
    });
}

/// The logits of an element as a slice: in place, or gathered into `row`.
fn class_row<'a, T: Real>(c: Classes, x: &'a [T], element: usize, row: &'a mut [T]) -> &'a [T] {
    let start = c.start(element);
    if c.inner == 1 {
        return &x[start..start + c.classes];
    }
    row.iter_mut().enumerate().for_each(|(k, to)| *to = x[start + k * c.inner]);
    row
}

/// `(1 - e) * plain + e / C * sum over classes of weight * (z - x)`.
fn smoothed_loss<T: Real>(x: &[T], options: &Options<'_, T>, total: T, z: T, plain: T) -> T {
    let e = options.smoothing;
    if e == T::ZERO {
        return plain;
    }
    let weighted: T = x.iter().enumerate().map(|(k, &x)| options.weight(k) * x).sum();
    (T::ONE - e) * plain + e / T::from_usize(x.len()) * (z * total - weighted)
}

widths! {
    without_highest:
    fn log_sum_exp<T, S>(x: &[T]) -> T {
        // SAFETY: `widths!` calls this with the level of the machine; positions are below the length of `x`.
        unsafe {
            let max = rows::largest::<T, T::In<S>>(x);
            if max == T::NEG_INF && x.iter().all(|x| !x.is_nan()) {
                return max;
            }
            max + rows::exp_sum::<T, S>(x.as_ptr(), max, std::ptr::null_mut(), x.len(), 0).ln()
        }
    }
}

widths! {
    without_highest:
    /// `log_sum_exp` of elements that lie beside each other; their classes are `stride` elements apart.
    fn log_sum_exps<T, S>(x: &[T], stride: usize, classes: usize, out: &mut [T]) {
        let (n, width) = (out.len(), T::In::<S>::N);
        for first in (0..n).step_by(width) {
            let count = width.min(n - first);
            // SAFETY: `widths!` calls this with the level of the machine; elements `first` to `n` are inside each class.
            unsafe {
                let at = x.as_ptr().add(first);
                let mut max = T::In::<S>::splat(T::NEG_INF);
                for k in 0..classes {
                    max = max.max(some::<T, T::In<S>>(at.add(k * stride), count));
                }
                // Of minus infinities alone the sum is 0, and so is that without a maximum.
                let max = T::In::<S>::splat(T::NEG_INF).less(max, max, T::In::<S>::splat(T::ZERO));
                let mut sum = T::In::<S>::splat(T::ZERO);
                for k in 0..classes {
                    sum = sum.add(T::exp_in::<S>(some::<T, T::In<S>>(at.add(k * stride), count).sub(max)));
                }
                let (mut maxima, mut sums) = ([T::ZERO; 16], [T::ZERO; 16]);
                max.store(maxima.as_mut_ptr());
                sum.store(sums.as_mut_ptr());
                for (out, (max, sum)) in out[first..first + count].iter_mut().zip(maxima.into_iter().zip(sums)) {
                    *out = max + sum.ln();
                }
            }
        }
    }
}

/// A vector of `count` elements.
///
/// # Safety
/// As `rows::part`; `count` is not above the width.
#[inline(always)]
unsafe fn some<T: Real, V: Vector<Elem = T>>(from: *const T, count: usize) -> V {
    // SAFETY: `from` names `count` elements (this function's contract).
    unsafe { if count == V::N { V::load(from) } else { rows::part(from, count) } }
}

/// Gradient of `cross_entropy`. Inputs: gradient of each element's loss, like the targets; logits; targets;
/// logsumexp; `weight` if the third attribute says so. Output: gradient of the logits.
/// Attributes: as `cross_entropy`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn cross_entropy_grad(call: &Call<'_>) {
    let logits = &call.inputs[1];
    let c = Classes::of(&logits.shape);
    real!(logits.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let (g, x) = (read::<T>(&call.inputs[0], call.threads), read::<T>(logits, call.threads));
            let targets = read_as::<i64>(&call.inputs[2]);
            let lse = read::<T>(&call.inputs[3], call.threads);
            let options = options::<T>(call, 4, Some(1), 2);
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(dx.slice());
            let total: T = (0..c.classes).map(|class| options.weight(class)).sum();
            let e = options.smoothing;
            call.threads.split(c.elements(), (16384 / c.classes.max(1)).max(1), |range| {
                if c.inner > 1 && e == T::ZERO {
                    let mut all = [T::ZERO; COLUMNS];
                    return c.columns(range, |first, start, n| {
                        for (i, share) in (first..).zip(&mut all[..n]) {
                            *share = match label(call, c, &targets, i, options.ignored) {
                                Label::None => T::ZERO,
                                Label::Class(class) => options.weight(class) * g[i],
                            };
                        }
                        scaled_softmaxes(&x[start..], c.inner, c.classes, &lse[first..first + n], &all[..n], out.at(start));
                        for (j, i) in (first..first + n).enumerate() {
                            match label(call, c, &targets, i, options.ignored) {
                                Label::Class(class) => *out.at(start + class * c.inner + j) -= all[j],
                                Label::None => {
                                    (0..c.classes).for_each(|k| *out.at(start + k * c.inner + j) = T::ZERO);
                                }
                            }
                        }
                    });
                }
                let mut row = Scratch::<T>::new(c.classes);
                let mut grad = Scratch::<T>::new(c.classes);
                for i in range {
                    let classes = class_row(c, &x, i, &mut row);
                    let (share, class) = match label(call, c, &targets, i, options.ignored) {
                        Label::None => (None, 0),
                        Label::Class(class) => (Some((T::ONE - e) * options.weight(class) * g[i]), class),
                    };
                    match share {
                        None => grad.fill(T::ZERO),
                        Some(share) => {
                            let spread = e / T::from_usize(c.classes) * g[i];
                            scaled_softmax(classes, lse[i], share + spread * total, &mut grad);
                            grad[class] -= share;
                            if e != T::ZERO {
                                grad.iter_mut().enumerate().for_each(|(k, d)| *d -= spread * options.weight(k));
                            }
                        }
                    }
                    let start = c.start(i);
                    for (k, &d) in grad.iter().enumerate() {
                        *out.at(start + k * c.inner) = d;
                    }
                }
            });
            dx.finish(call.threads);
        }
    });
}

widths! {
    without_highest:
    /// `scaled_softmax` of elements that lie beside each other, with a logarithm and a scale for each.
    fn scaled_softmaxes<T, S>(x: &[T], stride: usize, classes: usize, lse: &[T], scale: &[T], out: *mut T) {
        let (n, width) = (lse.len(), T::In::<S>::N);
        for first in (0..n).step_by(width) {
            let count = width.min(n - first);
            // SAFETY: `widths!` calls this with the level of the machine; elements `first` to `n` are inside each class.
            unsafe {
                let lse = some::<T, T::In<S>>(lse.as_ptr().add(first), count);
                let scale = some::<T, T::In<S>>(scale.as_ptr().add(first), count);
                for k in 0..classes {
                    let x = some::<T, T::In<S>>(x.as_ptr().add(k * stride + first), count);
                    let y = T::exp_in::<S>(x.sub(lse)).mul(scale);
                    let to = out.add(k * stride + first);
                    if count == width { y.store(to) } else { rows::store_part(y, to, count) }
                }
            }
        }
    }
}

widths! {
    without_highest:
    fn scaled_softmax<T, S>(x: &[T], z: T, scale: T, out: &mut [T]) {
        let n = Ord::min(x.len(), out.len());
        // SAFETY: `S` is the machine's; both have `n` elements.
        unsafe { rows::exp_map::<T, S>(x.as_ptr(), z, scale, out.as_mut_ptr(), n) }
    }
}

/// Negative log-likelihood. Inputs: log-probabilities `[N, C, d..]` (or `[C]`), targets i64 `[N, d..]` (or `[]`),
/// `weight` `[C]` if the second attribute says so. Outputs: loss of each element (0 where ignored); total
/// weight `[]`. Attributes: `ignore_index` (Int), has weight (Bool). Faults: as `cross_entropy`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn nll(call: &Call<'_>) {
    let input = &call.inputs[0];
    let c = Classes::of(&input.shape);
    real!(input.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(input, call.threads);
            let targets = read_as::<i64>(&call.inputs[1]);
            let options = options::<T>(call, 2, None, 1);
            let mut loss = Sink::<T>::new(&call.outputs[0]);
            let mut weights = Scratch::<T>::new(c.elements());
            for (i, (loss, weight)) in loss.slice().iter_mut().zip(weights.iter_mut()).enumerate() {
                (*loss, *weight) = match label(call, c, &targets, i, options.ignored) {
                    Label::None => (T::ZERO, T::ZERO),
                    Label::Class(class) => {
                        let w = options.weight(class);
                        (-x[c.start(i) + class * c.inner] * w, w)
                    }
                };
            }
            store_weight(&call.outputs[1], &weights);
            loss.finish(call.threads);
        }
    });
}

/// Gradient of `nll`. Inputs: gradient of each element's loss; targets; `weight` if the second attribute says so.
/// Output: gradient of the log-probabilities. Attributes: as `nll`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn nll_grad(call: &Call<'_>) {
    let c = Classes::of(&call.outputs[0].shape);
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let g = read::<T>(&call.inputs[0], call.threads);
            let targets = read_as::<i64>(&call.inputs[1]);
            let options = options::<T>(call, 2, None, 1);
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let out = dx.slice();
            out.fill(T::ZERO);
            for i in 0..c.elements() {
                if let Label::Class(class) = label(call, c, &targets, i, options.ignored) {
                    out[c.start(i) + class * c.inner] = -g[i] * options.weight(class);
                }
            }
            dx.finish(call.threads);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::staging::testing::*;

    const F: DType = DType::F64;

    fn attrs(smoothing: f64) -> [Attr; 3] {
        [Attr::Int(-100), Attr::Float(smoothing), Attr::Bool(true)]
    }

    // torch.nn.functional.cross_entropy(x, t, w, reduction='none', label_smoothing=0.1) of the values below.
    #[test]
    fn matches_pytorch() {
        let x = Array::of(F, &[2, 3], &[0.5, -1.0, 2.0, 1.5, 0.25, -0.75]);
        let t = Array::of(DType::I64, &[2], &[2., 0.]);
        let w = Array::of(F, &[3], &[1.0, 2.0, 0.5]);
        let (loss, total, lse) = (Array::empty(F, &[2]), Array::empty(F, &[]), Array::empty(F, &[2]));
        assert_eq!(call(cross_entropy, &[&x, &t, &w], &[&loss, &total, &lse], &attrs(0.1)), None);
        close(&loss.get(), &TORCH, 1e-12);
        assert_eq!(total.get(), [1.5]);
    }

    const TORCH: [f64; 2] = [0.38674306810572234, 0.45701715289734457];

    #[test]
    fn gradients_are_differences() {
        for (shape, targets) in [(&[3, 5][..], &[3][..]), (&[2, 5, 3], &[2, 3])] {
            for smoothing in [0.0, 0.2] {
                let n: usize = targets.iter().product();
                let x = Array::wave(F, shape, 0.1);
                let mut labels: Vec<f64> = (0..n).map(|i| (i * 2 % 5) as f64).collect();
                labels[1] = -100.0;
                let t = Array::of(DType::I64, targets, &labels);
                let (g, w) = (Array::wave(F, targets, 0.2), Array::wave(F, &[5], 0.7));
                let forward = |x: &Array| {
                    let (loss, total, lse) = (Array::empty(F, targets), Array::empty(F, &[]), Array::empty(F, targets));
                    call(cross_entropy, &[x, &t, &w], &[&loss, &total, &lse], &attrs(smoothing));
                    (loss, lse)
                };
                let (loss, lse) = forward(&x);
                assert_eq!(loss.get()[1], 0.0);
                let dx = Array::empty(F, shape);
                call(cross_entropy_grad, &[&g, &x, &t, &lse, &w], &[&dx], &attrs(smoothing));
                differences(&x.get(), &dx.get(), |x| {
                    let (loss, _) = forward(&Array::of(F, shape, x));
                    loss.get().iter().zip(g.get()).map(|(l, g)| l * g).sum()
                });
            }
        }
    }

    /// Classes that lie apart give the losses and gradients of classes that lie beside each other.
    #[test]
    fn images_give_what_their_elements_give() {
        let (batch, classes, inner) = (2, 5, 333);
        let n = batch * inner;
        for dtype in [DType::F32, F] {
            let mut values = Array::wave(dtype, &[batch, classes, inner], 0.3).get();
            (0..classes).for_each(|k| values[k * inner + 7] = f64::NEG_INFINITY);
            values[inner + 9] = f64::NAN;
            values[3 * inner + 11] = f64::NEG_INFINITY;
            let mut turned = Vec::new();
            for i in 0..n {
                turned.extend((0..classes).map(|k| values[(i / inner * classes + k) * inner + i % inner]));
            }
            let mut labels: Vec<f64> = (0..n).map(|i| (i * 7 % classes) as f64).collect();
            labels[20] = -100.0;
            let w = Array::wave(dtype, &[classes], 0.7);
            let run = |shape: &[usize], targets: &[usize], values: &[f64]| {
                let (x, t) = (Array::of(dtype, shape, values), Array::of(DType::I64, targets, &labels));
                let (loss, total, lse) =
                    (Array::empty(dtype, targets), Array::empty(dtype, &[]), Array::empty(dtype, targets));
                call(cross_entropy, &[&x, &t, &w], &[&loss, &total, &lse], &attrs(0.0));
                let (g, dx) = (Array::wave(dtype, &[n], 0.2), Array::empty(dtype, shape));
                let g = Array::of(dtype, targets, &g.get());
                call(cross_entropy_grad, &[&g, &x, &t, &lse, &w], &[&dx], &attrs(0.0));
                (loss.get(), lse.get(), total.get(), dx.get())
            };
            let (loss, lse, total, dx) = run(&[batch, classes, inner], &[batch, inner], &values);
            let (loss_rows, lse_rows, total_rows, dx_rows) = run(&[n, classes], &[n], &turned);
            let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() < 2e-6 * (1.0 + a.abs());
            assert!(loss.iter().zip(&loss_rows).all(|(&a, &b)| same(a, b)), "{dtype}");
            assert!(lse.iter().zip(&lse_rows).all(|(&a, &b)| same(a, b)), "{dtype}");
            assert!(same(total[0], total_rows[0]));
            for i in 0..n {
                for k in 0..classes {
                    let at = (i / inner * classes + k) * inner + i % inner;
                    assert!(
                        same(dx[at], dx_rows[i * classes + k]),
                        "{dtype} {i} {k}: {} {}",
                        dx[at],
                        dx_rows[i * classes + k]
                    );
                }
            }
        }
    }

    #[test]
    fn the_first_bad_label_is_told() {
        let x = Array::wave(DType::F32, &[300, 4], 0.1);
        let mut labels = vec![1.0; 300];
        (labels[70], labels[250]) = (4.0, -3.0);
        let t = Array::of(DType::I64, &[300], &labels);
        let (loss, total) = (Array::empty(DType::F32, &[300]), Array::empty(DType::F32, &[]));
        let lse = Array::empty(DType::F32, &[300]);
        let plain = [Attr::Int(-100), Attr::Float(0.0), Attr::Bool(false)];
        let fault = call(cross_entropy, &[&x, &t], &[&loss, &total, &lse], &plain);
        assert_eq!(fault, Some(Fault { kind: FaultKind::Label, position: 70, value: 4, bound: 4 }));
        assert_eq!(total.get(), [298.0]);
        let fault = call(nll, &[&x, &t], &[&loss, &total], &[Attr::Int(-100), Attr::Bool(false)]);
        assert_eq!(fault.map(|f| f.position), Some(70));
        assert_eq!(loss.get()[0], -x.get()[1]);
        let (g, dx) = (Array::wave(DType::F32, &[300], 0.5), Array::empty(DType::F32, &[300, 4]));
        call(nll_grad, &[&g, &t], &[&dx], &[Attr::Int(-100), Attr::Bool(false)]);
        assert_eq!((dx.get()[1], dx.get()[70 * 4]), (-g.get()[0], 0.0));
    }
}
