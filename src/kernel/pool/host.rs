//! Pooling over windows of one to three dims, with gradients.
//!
//! Rows of the op table compute output sizes: `ceil_mode` and adaptive sizes appear here only as the shape of the
//! output. Planes (all dims before the spatial ones) are independent.

mod max_pool;
pub mod window;

use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::guard;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Packed, Shared, Sink, read, read_as};
use max_pool::Even;
use window::{Window, Windows, adaptive, average, dilated};

/// Bound: elements of a window from which on `guard::check` is called for each window.
const LONG: usize = 4096;

/// Leading dims as one, spatial dims as three.
#[derive(Clone, Copy)]
pub(crate) struct Planes {
    pub count: usize,
    pub size: [usize; 3],
}

impl Planes {
    pub fn of(view: &RawView, spatial: usize) -> Planes {
        let lead = view.shape.len().saturating_sub(spatial);
        let mut size = [1; 3];
        size[3 - spatial.min(3)..].copy_from_slice(&view.shape[lead..]);
        Planes { count: view.shape[..lead].iter().product(), size }
    }

    pub fn len(&self) -> usize {
        self.size.iter().product()
    }
}

/// Runs `each(plane)` for every plane; a thread gets several if they are small.
pub(crate) fn for_planes(threads: &Threads, count: usize, work: usize, each: impl Fn(usize) + Sync) {
    threads.split(count, (16 * 1024 / work.max(1)).max(1), |range| range.for_each(&each));
}

/// Largest element of each window. Inputs: `x` `[.., d..]`, float. Outputs: `y` `[.., o..]`; positions i64, like `y`,
/// flat in the plane `d..`. NaN is largest; padding is never chosen.
/// Attributes: kernel, stride, padding, dilation (Ints, one for each of 1 to 3 spatial dims).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn max_pool(call: &Call<'_>) {
    let dims = attributes::ints(call, 0).len();
    let (from, to) = (Planes::of(&call.inputs[0], dims), Planes::of(&call.outputs[0], dims));
    if to.count == 0 {
        return;
    }
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { largest_of_each(call, from, to, &dilated(call, from.size, to.size)) }
}

/// Largest element of each of `o..` adaptive windows. Inputs, outputs as `max_pool`. Attributes: number of spatial dims
/// (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn adaptive_max_pool(call: &Call<'_>) {
    let dims = attributes::size(call, 0);
    let (from, to) = (Planes::of(&call.inputs[0], dims), Planes::of(&call.outputs[0], dims));
    if to.count == 0 {
        return;
    }
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { largest_of_each(call, from, to, &adaptive(from.size, to.size)) }
}

unsafe fn largest_of_each(call: &Call<'_>, from: Planes, to: Planes, windows: &Windows) {
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let (out, at) = (Shared::new(y.slice()), Shared::new(call.outputs[1].slice_mut::<i64>()));
            let even = Even::of(&windows.dims()[2]);
            for_planes(call.threads, to.count, from.len() + to.len(), |plane| {
                let x = &x[plane * from.len()..(plane + 1) * from.len()];
                let range = plane * to.len()..(plane + 1) * to.len();
                // SAFETY: `plane` is a different plane of the output for each call, and planes do not overlap.
                max_pool::max_pool_plane(from, windows, &even, x, out.range(range.clone()), at.range(range));
            });
            y.finish(call.threads);
        }
    });
}

/// Gradient of `max_pool` and `adaptive_max_pool`. Inputs: gradient of `y`, positions i64. Output: gradient of `x`.
/// Attributes: number of spatial dims (Int).
///
/// # Safety
/// As `HostFn`; the positions are those of the forward pass.
pub unsafe fn max_pool_grad(call: &Call<'_>) {
    let dims = attributes::size(call, 0);
    let (from, to) = (Planes::of(&call.outputs[0], dims), Planes::of(&call.inputs[0], dims));
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let g = read::<T>(&call.inputs[0], call.threads);
            let at: Packed<'_, i64> = read_as(&call.inputs[1]);
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(dx.slice());
            for_planes(call.threads, from.count, from.len() + to.len(), |plane| {
                // SAFETY: `plane` is a different plane of the output for each call, and planes do not overlap.
                let dx = out.range(plane * from.len()..(plane + 1) * from.len());
                dx.fill(T::ZERO);
                let range = plane * to.len()..(plane + 1) * to.len();
                for (&g, &at) in g[range.clone()].iter().zip(&at[range]) {
                    if let Some(dx) = dx.get_mut(at as usize) {
                        *dx += g;
                    }
                }
            });
            dx.finish(call.threads);
        }
    });
}

/// Mean of each window. Inputs: `x` `[.., d..]`, float. Output: `y` `[.., o..]`.
/// Attributes: kernel, stride, padding (Ints, one for each of 1 to 3 spatial dims), count_include_pad (Bool),
/// divisor_override (Int or None).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn avg_pool(call: &Call<'_>) {
    let dims = attributes::ints(call, 0).len();
    let (from, to) = (Planes::of(&call.inputs[0], dims), Planes::of(&call.outputs[0], dims));
    if to.count == 0 {
        return;
    }
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { mean(call, from, to, &average(call, from.size, to.size)) }
}

/// Mean of each of `o..` adaptive windows. Inputs, output as `avg_pool`. Attributes: number of spatial dims (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn adaptive_avg_pool(call: &Call<'_>) {
    let dims = attributes::size(call, 0);
    let (from, to) = (Planes::of(&call.inputs[0], dims), Planes::of(&call.outputs[0], dims));
    if to.count == 0 {
        return;
    }
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { mean(call, from, to, &adaptive(from.size, to.size)) }
}

unsafe fn mean(call: &Call<'_>, from: Planes, to: Planes, windows: &Windows) {
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(y.slice());
            for_planes(call.threads, to.count, from.len() + to.len(), |plane| {
                let x = &x[plane * from.len()..(plane + 1) * from.len()];
                // SAFETY: `plane` is a different plane of the output for each call, and planes do not overlap.
                let y = out.range(plane * to.len()..(plane + 1) * to.len());
                let mut next = y.iter_mut();
                windows.each(|window| {
                    if let Some(y) = next.next() {
                        let mut sum = T::ZERO;
                        rows_of(from.size, window, |row| x[row].iter().for_each(|&x| sum += x));
                        *y = sum / T::from_f64(windows.divisor(window));
                    }
                });
            });
            y.finish(call.threads);
        }
    });
}

/// The contiguous pieces of a window (which is not dilated).
#[inline]
fn rows_of(size: [usize; 3], [d, h, w]: [&Window; 3], mut each: impl FnMut(std::ops::Range<usize>)) {
    if d.span() * h.span() * w.span() > LONG {
        guard::check();
    }
    for i in d.positions() {
        for j in h.positions() {
            let row = (i * size[1] + j) * size[2];
            each(row + w.start..row + w.end);
        }
    }
}

/// Gradient of `avg_pool`. Inputs: gradient of `y`. Output: gradient of `x`. Attributes: as `avg_pool`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn avg_pool_grad(call: &Call<'_>) {
    let dims = attributes::ints(call, 0).len();
    let (from, to) = (Planes::of(&call.outputs[0], dims), Planes::of(&call.inputs[0], dims));
    if to.count == 0 {
        return;
    }
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { mean_grad(call, from, to, &average(call, from.size, to.size)) }
}

/// Gradient of `adaptive_avg_pool`. Inputs: gradient of `y`. Output: gradient of `x`. Attributes: number of
/// spatial dims (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn adaptive_avg_pool_grad(call: &Call<'_>) {
    let dims = attributes::size(call, 0);
    let (from, to) = (Planes::of(&call.outputs[0], dims), Planes::of(&call.inputs[0], dims));
    if to.count == 0 {
        return;
    }
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { mean_grad(call, from, to, &adaptive(from.size, to.size)) }
}

unsafe fn mean_grad(call: &Call<'_>, from: Planes, to: Planes, windows: &Windows) {
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let g = read::<T>(&call.inputs[0], call.threads);
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(dx.slice());
            for_planes(call.threads, from.count, from.len() + to.len(), |plane| {
                // SAFETY: `plane` is a different plane of the output for each call, and planes do not overlap.
                let dx = out.range(plane * from.len()..(plane + 1) * from.len());
                dx.fill(T::ZERO);
                let mut next = g[plane * to.len()..(plane + 1) * to.len()].iter();
                windows.each(|window| {
                    if let Some(&g) = next.next() {
                        let share = g / T::from_f64(windows.divisor(window));
                        rows_of(from.size, window, |row| dx[row].iter_mut().for_each(|dx| *dx += share));
                    }
                });
            });
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
    use crate::kernel::resample::host as resample;

    const F: DType = DType::F64;

    /// One number that depends on every element and its position.
    fn summary(a: &Array) -> f64 {
        a.get().iter().enumerate().map(|(i, y)| y * (i as f64 * 0.7).cos()).sum()
    }

    // Summaries of PyTorch 2.15's results in f64 for `wave` data: outputs, positions, gradients (the output's gradient
    // is `wave` data too).

    #[allow(clippy::type_complexity)]
    #[rustfmt::skip]
    const MAX: &[(&[usize], &[usize], [&[i64]; 4], [f64; 3])] = &[
        (&[2, 3, 11], &[2, 3, 6], [&[3], &[2], &[1], &[1]], [0.537356288861961, -3.2740868056441332, -2.3276879927476473]),
        (&[2, 3, 11], &[2, 3, 4], [&[2], &[3], &[0], &[2]], [0.25380309228817155, -15.611998460939594, 1.1170322156369792]),
        (&[2, 3, 9, 7], &[2, 3, 5, 4], [&[2, 2], &[2, 2], &[0, 0], &[1, 1]], [-5.453617774960402, 126.8502108776843, 2.9132350925505985]),
        (&[2, 3, 9, 7], &[2, 3, 5, 5], [&[3, 2], &[2, 1], &[1, 0], &[1, 2]], [-0.004318864319725391, -76.37851394969896, 1.377948438290417]),
        (&[2, 2, 5, 6, 7], &[2, 2, 3, 4, 5], [&[2, 3, 2], &[2, 2, 1], &[1, 1, 0], &[1, 1, 2]], [-3.0088680044158536, -513.3157486859544, -10.205573056326248]),
    ];

    #[test]
    fn max_pool_is_pytorchs() {
        for (x, y, attrs, expected) in MAX {
            let attrs = attrs.map(ints);
            let seed = [0.1, 0.2, 0.3][x.len() - 3];
            let (input, g, dx) = (Array::wave(F, x, seed), Array::wave(F, y, 0.9), Array::empty(F, x));
            let (out, at) = (Array::empty(F, y), Array::empty(DType::I64, y));
            call(max_pool, &[&input], &[&out, &at], &attrs);
            call(max_pool_grad, &[&g, &at], &[&dx], &[Attr::Int(x.len() as i64 - 2)]);
            close(&[summary(&out), summary(&at), summary(&dx)], expected, 1e-10);
        }
    }

    /// A window that is a whole plane.
    #[test]
    fn the_largest_of_a_plane_and_where_it_lies() {
        let x = Array::wave(DType::F32, &[2, 3, 40, 30], 0.4);
        let (out, at) = (Array::empty(DType::F32, &[2, 3, 1, 1]), Array::empty(DType::I64, &[2, 3, 1, 1]));
        call(adaptive_max_pool, &[&x], &[&out, &at], &[Attr::Int(2)]);
        for (plane, values) in x.get().chunks(1200).enumerate() {
            let place = (0..1200).fold(0, |best, i| if values[i] > values[best] { i } else { best });
            assert_eq!((out.get()[plane], at.get()[plane]), (values[place], place as f64));
        }
    }

    #[allow(clippy::type_complexity)]
    #[rustfmt::skip]
    const AVERAGE: &[(&[usize], &[usize], [&[i64]; 3], bool, Option<i64>, [f64; 2])] = &[
        (&[2, 3, 11], &[2, 3, 6], [&[3], &[2], &[1]], true, None, [0.387482381529372, -1.3810267969726104]),
        (&[2, 3, 11], &[2, 3, 5], [&[4], &[3], &[2]], false, None, [0.4736526184475107, 1.1423708795457077]),
        (&[2, 3, 9, 7], &[2, 3, 5, 4], [&[2, 3], &[2, 2], &[1, 1]], true, None, [-0.5233086929299955, -3.0034334283453306]),
        (&[2, 3, 9, 7], &[2, 3, 5, 5], [&[3, 3], &[2, 1], &[1, 0]], false, Some(5), [-2.7554191842159694, 2.185882343947702]),
        (&[2, 2, 5, 6, 7], &[2, 2, 3, 4, 6], [&[2, 3, 2], &[2, 2, 1], &[1, 1, 0]], true, None, [1.715927357713925, -0.5583083108891469]),
    ];

    #[test]
    fn avg_pool_is_pytorchs() {
        for (x, y, attrs, padded, divisor, expected) in AVERAGE {
            let mut attrs = attrs.map(ints).to_vec();
            attrs.extend([Attr::Bool(*padded), divisor.map_or(Attr::None, Attr::Int)]);
            let seed = [0.1, 0.2, 0.3][x.len() - 3];
            let (input, g, dx) = (Array::wave(F, x, seed), Array::wave(F, y, 0.9), Array::empty(F, x));
            let out = Array::empty(F, y);
            call(avg_pool, &[&input], &[&out], &attrs);
            call(avg_pool_grad, &[&g], &[&dx], &attrs);
            close(&[summary(&out), summary(&dx)], expected, 1e-10);
        }
    }

    #[rustfmt::skip]
    const ADAPTIVE: &[(&[usize], &[usize], [f64; 4])] = &[
        (&[2, 3, 11], &[2, 3, 4], [-0.7488862259912024, 2.193973940861813, -1.4582343272759097, -14.874169380558659]),
        (&[2, 3, 9, 7], &[2, 3, 4, 7], [-1.6580426628838527, -7.777134278605382, -2.7195613085697055, 148.7133120612281]),
        (&[2, 3, 9, 7], &[2, 3, 12, 2], [0.571324312837818, 1.046278078803108, 2.364756217654526, 25.924510656392698]),
        (&[2, 2, 5, 6, 7], &[2, 2, 2, 3, 4], [-0.5747678902741653, -0.07177659165283568, -0.7070610818164805, -41.65475095923034]),
    ];

    #[test]
    fn adaptive_pools_are_pytorchs() {
        for (x, y, expected) in ADAPTIVE {
            let attrs = [Attr::Int(x.len() as i64 - 2)];
            let seed = [0.1, 0.2, 0.3][x.len() - 3];
            let (input, g, dx) = (Array::wave(F, x, seed), Array::wave(F, y, 0.9), Array::empty(F, x));
            let (mean, max, at) = (Array::empty(F, y), Array::empty(F, y), Array::empty(DType::I64, y));
            call(adaptive_avg_pool, &[&input], &[&mean], &attrs);
            call(adaptive_avg_pool_grad, &[&g], &[&dx], &attrs);
            call(adaptive_max_pool, &[&input], &[&max, &at], &attrs);
            close(&[summary(&mean), summary(&dx), summary(&max), summary(&at)], expected, 1e-10);
        }
    }

    #[allow(clippy::type_complexity)]
    #[rustfmt::skip]
    const RESAMPLE: &[(&[usize], &[usize], &str, bool, &[f64], [f64; 2])] = &[
        (&[2, 3, 11], &[2, 3, 17], "nearest", false, &[], [-0.27162337923330604, 1.5752311882212577]),
        (&[2, 3, 11], &[2, 3, 17], "linear", false, &[], [0.8948852773092526, -2.7110773797608854]),
        (&[2, 3, 11], &[2, 3, 5], "linear", true, &[], [2.4474755988491257, 0.9140862260279665]),
        (&[2, 3, 9, 7], &[2, 3, 15, 16], "nearest", false, &[1.7, 2.3], [33.25305890956226, 7.111657166008292]),
        (&[2, 3, 9, 7], &[2, 3, 4, 15], "nearest-exact", false, &[], [-9.08361713464488, -7.786353725428233]),
        (&[2, 3, 9, 7], &[2, 3, 15, 4], "bilinear", false, &[1.7, 0.6], [-0.18564867998366374, 1.8694973554960606]),
        (&[2, 3, 9, 7], &[2, 3, 1, 13], "bilinear", true, &[], [-1.9173763231767484, 1.2435402247762428]),
        (&[2, 3, 9, 7], &[2, 3, 14, 4], "bicubic", false, &[], [-1.1124155468966332, -0.8673477401646397]),
        (&[2, 3, 9, 7], &[2, 3, 5, 19], "bicubic", true, &[], [10.338756876978815, -0.765417458769486]),
        (&[2, 3, 9, 7], &[2, 3, 22, 9], "bicubic", false, &[2.5, 1.3], [2.4910248183225967, -4.235790730017938]),
        (&[2, 2, 5, 6, 7], &[2, 2, 7, 4, 9], "trilinear", false, &[], [3.2647902365487504, -4.350953774152368]),
        (&[2, 2, 5, 6, 7], &[2, 2, 3, 8, 2], "nearest", false, &[], [0.9264855677102117, 4.507908931205679]),
        (&[2, 2, 5, 6, 7], &[2, 2, 2, 9, 3], "trilinear", true, &[], [2.993707540173818, -2.2057405908694605]),
    ];

    #[test]
    fn interpolate_is_pytorchs() {
        for (x, y, mode, align, factors, expected) in RESAMPLE {
            let factors = if factors.is_empty() { Attr::None } else { Attr::Floats((*factors).into()) };
            let attrs = [Attr::Int(x.len() as i64 - 2), Attr::Str((*mode).into()), Attr::Bool(*align), factors];
            let seed = [0.1, 0.2, 0.3][x.len() - 3];
            let (input, g, dx) = (Array::wave(F, x, seed), Array::wave(F, y, 0.9), Array::empty(F, x));
            let out = Array::empty(F, y);
            call(resample::interpolate, &[&input], &[&out], &attrs);
            call(resample::interpolate_grad, &[&g], &[&dx], &attrs);
            close(&[summary(&out), summary(&dx)], expected, 1e-10);
        }
    }

    #[test]
    fn nan_is_the_largest_and_an_empty_batch_is_no_work() {
        let x = Array::of(DType::F32, &[1, 4], &[1., f64::NAN, 2., 3.]);
        let (y, at) = (Array::empty(DType::F32, &[1, 2]), Array::empty(DType::I64, &[1, 2]));
        let attrs = [ints(&[2]), ints(&[2]), ints(&[0]), ints(&[1])];
        call(max_pool, &[&x], &[&y, &at], &attrs);
        close(&y.get(), &[f64::NAN, 3.], 0.0);
        assert_eq!(at.get(), [1., 3.]);
        let (x, y, at) = (Array::empty(F, &[0, 4]), Array::empty(F, &[0, 2]), Array::empty(DType::I64, &[0, 2]));
        assert_eq!(call(max_pool, &[&x], &[&y, &at], &attrs), None);
    }
}
