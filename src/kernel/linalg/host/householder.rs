//! QR decomposition in its compact form (geqrf): the Householder reflectors themselves.

use super::{Matrices, Results, for_each};
use crate::kernel::abi::Call;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::Sink;
use faer::MatMut;

/// Householder reflectors that reduce a matrix to an upper triangle, as LAPACK's `geqrf`. Inputs: `[.., m, n]`.
/// Outputs: the triangle with the reflectors below it, `[.., m, n]`; tau `[.., k]`, k the smaller of m and n. No
/// attributes, no faults.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn geqrf(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let k = a.m.min(a.n);
            let (mut both, mut factors) = (Sink::<T>::new(&call.outputs[0]), Sink::<T>::new(&call.outputs[1]));
            let (to, tau) = (Results::of(&mut both, a.m * a.n), Results::of(&mut factors, k));
            if k > 0 {
                for_each(call.threads, a.count, [a.m, a.n, k], |i, _| {
                    to.slice(i).copy_from_slice(a.slice(i));
                    reflect(to.matrix(i, a.n), tau.slice(i));
                });
            }
            both.finish(call.threads);
            factors.finish(call.threads);
        }
    });
}

/// LAPACK's `geqr2`.
fn reflect<T: Real>(mut a: MatMut<'_, T>, tau: &mut [T]) {
    let (m, n) = a.shape();
    for (j, tau) in tau.iter_mut().enumerate() {
        let below: f64 = (j + 1..m).map(|i| a[(i, j)].to_f64().powi(2)).sum();
        let head = a[(j, j)].to_f64();
        if below == 0.0 {
            *tau = T::ZERO;
            continue;
        }
        let beta = -(head * head + below).sqrt().copysign(head);
        *tau = T::from_f64((beta - head) / beta);
        let scale = T::from_f64(1.0 / (head - beta));
        for i in j + 1..m {
            a[(i, j)] *= scale;
        }
        a[(j, j)] = T::from_f64(beta);
        for c in j + 1..n {
            let mut product = a[(j, c)];
            for i in j + 1..m {
                let term = a[(i, j)] * a[(i, c)];
                product += term;
            }
            let product = product * *tau;
            a[(j, c)] -= product;
            for i in j + 1..m {
                let term = a[(i, j)] * product;
                a[(i, c)] -= term;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::host::staging::testing;
    use crate::kernel::host::staging::testing::Array;

    /// NumPy's `qr(a, mode="raw")`.
    #[test]
    fn values() {
        let a = Array::of(DType::F64, &[3, 2], &[1.0, 2.0, 2.0, 1.0, 2.0, 3.0]);
        let (both, tau) = (Array::empty(DType::F64, &[3, 2]), Array::empty(DType::F64, &[2]));
        assert!(testing::call(geqrf, &[&a], &[&both, &tau], &[]).is_none());
        testing::close(&tau.get(), &[4.0 / 3.0, 1.980_580_675_690_920_1], 1e-12);
        testing::close(
            &both.get(),
            &[-3.0, -10.0 / 3.0, 0.5, 1.699_673_171_197_595, 0.5, -0.099_019_513_592_784_87],
            1e-12,
        );
    }
}
