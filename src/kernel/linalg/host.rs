//! Decompositions and linear systems, batched over leading dims, in `f32` and `f64` (16-bit through `f32`).
//!
//! The algorithms are faer's. This code adds batches, faults with LAPACK's meaning, and defined results in case of a
//! fault. Signs: those of `qr` are LAPACK's; vectors of `svd` and `eigh` are determined only up to a sign (or a
//! rotation for equal values), and are faer's.

pub mod complex;
pub mod cross;
pub mod factor;
pub mod householder;
pub mod spectral;

use crate::kernel::abi::{Call, Fault, FaultKind, RawView, Threads};
use crate::kernel::guard;
use crate::kernel::host::real::Real;
use crate::kernel::host::staging::{Packed, Shared, Sink, read};
use faer::{MatMut, MatRef, Par};
use std::ops::Range;
use std::time::Duration;

/// Bound: size of a matrix from which on several threads work on it.
const PARALLEL_SIZE: usize = 192;

/// Operations of a decomposition, divided by its rows times columns times third size; and operations of a core in a
/// second, a low estimate.
const FLOPS: f64 = 6.0;
const SPEED: f64 = 4e9;
/// Bound: estimated time from which on a decomposition runs on a detached thread. An interruption may have to wait this
/// long without; copies and the thread cost a hundredth of it.
const APART: Duration = Duration::from_millis(50);

/// Matrices of one operand.
struct Matrices<'a, T> {
    data: Packed<'a, T>,
    count: usize,
    m: usize,
    n: usize,
}

impl<'a, T: Real> Matrices<'a, T> {
    /// # Safety
    /// As `read`.
    unsafe fn read(view: &'a RawView, threads: &Threads) -> Matrices<'a, T> {
        let lead = view.shape.len() - 2;
        // SAFETY: the view is valid for reading (this function's contract).
        let data = unsafe { read(view, threads) };
        Matrices { data, count: view.shape[..lead].iter().product(), m: view.shape[lead], n: view.shape[lead + 1] }
    }

    fn slice(&self, i: usize) -> &[T] {
        let size = self.m * self.n;
        &self.data[i * size..(i + 1) * size]
    }

    fn get(&self, i: usize) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(self.slice(i), self.m, self.n)
    }
}

/// One result for every matrix of a batch.
#[derive(Clone, Copy)]
struct Results<T> {
    to: Shared<T>,
    each: usize,
}

impl<T: Real> Results<T> {
    fn of(sink: &mut Sink<'_, T>, each: usize) -> Results<T> {
        Results { to: Shared::new(sink.slice()), each }
    }

    /// # Safety
    /// No other reference to the results of matrix `i` lives.
    unsafe fn slice<'a>(self, i: usize) -> &'a mut [T] {
        let range: Range<usize> = i * self.each..(i + 1) * self.each;
        // SAFETY: nobody else has the results of matrix `i` (this function's contract), and they lie inside the output.
        unsafe { self.to.range(range) }
    }

    /// The results of matrix `i` as rows of `n`.
    ///
    /// # Safety
    /// As `slice`.
    unsafe fn matrix<'a>(self, i: usize, n: usize) -> MatMut<'a, T> {
        let rows = self.each.checked_div(n).unwrap_or(0);
        // SAFETY: nobody else has the results of matrix `i` (this function's contract).
        MatMut::from_row_major_slice_mut(unsafe { self.slice(i) }, rows, n)
    }
}

/// Runs `each(matrix, threads for faer)`: small matrices in parallel, or large ones one after the other on all threads.
/// `sizes` are the rows and columns of a matrix, and a third size: columns of a result, or right-hand sides.
fn for_each(threads: &Threads, count: usize, sizes: [usize; 3], each: impl Fn(usize, Par) + Sync) {
    let [m, n, k] = sizes;
    let size = m.max(n);
    if size >= PARALLEL_SIZE {
        afford(threads, count, sizes);
    }
    if count < threads.count() && size >= PARALLEL_SIZE {
        let par = Par::rayon(threads.count());
        let one = |i| {
            guard::check();
            each(i, par);
        };
        threads.install(|| (0..count).for_each(one));
    } else {
        let grain = (32 * 1024 / m.saturating_mul(n).saturating_mul(k).max(1)).max(1);
        threads.split(count, grain, |range| range.for_each(|i| each(i, Par::Seq)));
    }
}

/// faer can neither be interrupted nor report its memory. It copies operands and results a few times.
fn afford(threads: &Threads, count: usize, [m, n, k]: [usize; 3]) {
    let product = |a: usize, b: usize| a.saturating_mul(b);
    let elements = product(m, n).saturating_add(product(n, k)).saturating_add(product(m, k));
    guard::admit(elements.saturating_mul(2 * size_of::<f64>()));
    let one = Duration::from_secs_f64(product(product(m, n), k) as f64 * FLOPS / (SPEED * threads.count() as f64));
    guard::require_time(one);
    if one.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX)) > APART {
        guard::detach();
    }
}

/// Reports a fault of matrix `position` of a batch.
fn fault(call: &Call<'_>, kind: FaultKind, position: usize, value: usize, bound: usize) {
    call.faults.report(Fault { kind, position: position as u64, value: value as i64, bound: bound as i64 });
}

#[cfg(test)]
mod tests {
    use super::{factor, spectral};
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::abi::{Fault, FaultKind};
    use crate::kernel::host::staging::testing::*;

    const F: DType = DType::F64;

    fn multiply(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
        (0..m * n).map(|i| (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum()).collect()
    }

    fn transpose(a: &[f64], (m, n): (usize, usize)) -> Vec<f64> {
        (0..m * n).map(|i| a[i % m * n + i / m]).collect()
    }

    fn identity(n: usize) -> Vec<f64> {
        (0..n * n).map(|i| (i / n == i % n) as u8 as f64).collect()
    }

    /// Symmetric, positive-definite.
    fn definite(n: usize) -> Vec<f64> {
        let a = Array::wave(F, &[n, n], 0.4).get();
        let mut p = multiply(&a, &transpose(&a, (n, n)), (n, n, n));
        (0..n).for_each(|i| p[i * n + i] += 1.0);
        p
    }

    #[test]
    fn cholesky_gives_the_factor_back() {
        for n in [0, 1, 5, 70] {
            let data = definite(n);
            let a = Array::of(F, &[n, n], &data);
            let (l, u) = (Array::empty(F, &[n, n]), Array::empty(F, &[n, n]));
            assert_eq!(call(factor::cholesky, &[&a], &[&l], &[Attr::Bool(false)]), None);
            call(factor::cholesky, &[&a], &[&u], &[Attr::Bool(true)]);
            close(&multiply(&l.get(), &transpose(&l.get(), (n, n)), (n, n, n)), &data, 1e-11);
            close(&u.get(), &transpose(&l.get(), (n, n)), 1e-11);
            assert!(n < 2 || l.get()[1] == 0.0);
        }
    }

    #[test]
    fn cholesky_tells_the_leading_minor() {
        for (n, bad) in [(3, 1), (40, 30), (150, 149)] {
            let mut data = definite(n);
            data[bad * n + bad] = -1.0;
            let mut both = definite(n);
            both.extend(&data);
            let a = Array::of(F, &[2, n, n], &both);
            let l = Array::empty(F, &[2, n, n]);
            let fault = call(factor::cholesky, &[&a], &[&l], &[Attr::Bool(false)]);
            let kind = FaultKind::NotPositiveDefinite;
            assert_eq!(fault, Some(Fault { kind, position: 1, value: bad as i64 + 1, bound: n as i64 }));
        }
    }

    #[test]
    fn solve_inv_det_and_lu_fit_together() {
        for n in [1, 4, 33] {
            let a = Array::wave(F, &[3, n, n], 0.2);
            let b = Array::wave(F, &[3, n, 2], 0.5);
            let (x, inverse, det) = (Array::empty(F, &[3, n, 2]), Array::empty(F, &[3, n, n]), Array::empty(F, &[3]));
            let (sign, log) = (Array::empty(F, &[3]), Array::empty(F, &[3]));
            let (p, l, u) = (Array::empty(F, &[3, n, n]), Array::empty(F, &[3, n, n]), Array::empty(F, &[3, n, n]));
            assert_eq!(call(factor::solve, &[&a, &b], &[&x], &[]), None);
            assert_eq!(call(factor::inv, &[&a], &[&inverse], &[]), None);
            call(factor::det, &[&a], &[&det], &[]);
            call(factor::slogdet, &[&a], &[&sign, &log], &[]);
            call(factor::lu, &[&a], &[&p, &l, &u], &[]);
            for i in 0..3 {
                let part = |a: &Array, size: usize| a.get()[i * size..(i + 1) * size].to_vec();
                let (ai, n2) = (part(&a, n * n), n * n);
                close(&multiply(&ai, &part(&x, n * 2), (n, n, 2)), &part(&b, n * 2), 1e-10);
                close(&multiply(&ai, &part(&inverse, n2), (n, n, n)), &identity(n), 1e-10);
                let lu = multiply(&part(&l, n2), &part(&u, n2), (n, n, n));
                close(&multiply(&part(&p, n2), &lu, (n, n, n)), &ai, 1e-12);
                close(&[sign.get()[i] * log.get()[i].exp()], &[det.get()[i]], 1e-12);
            }
        }
        // numpy.linalg.det([[1, 2, 3], [4, 5, 6], [7, 8, 10]])
        let (a, det) = (Array::of(F, &[3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 10.]), Array::empty(F, &[]));
        call(factor::det, &[&a], &[&det], &[]);
        close(&det.get(), &[-3.0], 1e-12);
    }

    #[test]
    fn a_singular_matrix_is_told_and_has_determinant_zero() {
        let mut data = identity(3);
        data.extend([1., 2., 3., 2., 4., 6., 1., 0., 1.]);
        data.extend([0.; 9]);
        let a = Array::of(F, &[3, 3, 3], &data);
        let (x, det) = (Array::empty(F, &[3, 3, 3]), Array::empty(F, &[3]));
        let fault = call(factor::inv, &[&a], &[&x], &[]);
        assert_eq!(fault, Some(Fault { kind: FaultKind::Singular, position: 1, value: 3, bound: 3 }));
        assert_eq!(x.get()[..9], identity(3));
        assert_eq!(call(factor::det, &[&a], &[&det], &[]), None);
        assert_eq!(det.get(), [1., 0., 0.]);
        let (sign, log) = (Array::empty(F, &[3]), Array::empty(F, &[3]));
        call(factor::slogdet, &[&a], &[&sign, &log], &[]);
        assert_eq!((sign.get()[2], log.get()[2]), (0.0, f64::NEG_INFINITY));
    }

    #[test]
    fn triangular_systems() {
        let a = Array::of(F, &[2, 2], &[2., 9., 3., 4.]);
        let b = Array::of(F, &[2, 1], &[2., 11.]);
        let x = Array::empty(F, &[2, 1]);
        let solve = |upper: bool, left: bool, unit: bool| {
            let attrs = [Attr::Bool(upper), Attr::Bool(left), Attr::Bool(unit)];
            if left {
                call(factor::triangular_solve, &[&a, &b], &[&x], &attrs);
                return x.get();
            }
            let (row, y) = (Array::of(F, &[1, 2], &[2., 11.]), Array::empty(F, &[1, 2]));
            call(factor::triangular_solve, &[&a, &row], &[&y], &attrs);
            y.get()
        };
        close(&solve(false, true, false), &[1., 2.], 1e-14);
        close(&solve(false, true, true), &[2., 5.], 1e-14);
        close(&solve(true, true, false), &[(2. - 9. * 2.75) / 2., 2.75], 1e-14);
        close(&solve(true, false, false), &[1., 0.5], 1e-14);
        close(&solve(false, false, true), &[-31., 11.], 1e-14);
    }

    // torch.linalg.qr (LAPACK): the signs of R must agree.
    #[test]
    fn qr_is_lapacks() {
        for (m, n) in [(5, 3), (3, 5), (4, 4), (70, 40)] {
            let a = Array::wave(F, &[m, n], 0.3);
            let k = m.min(n);
            let (q, r) = (Array::empty(F, &[m, k]), Array::empty(F, &[k, n]));
            call(spectral::qr, &[&a], &[&q, &r], &[Attr::Bool(false)]);
            close(&multiply(&q.get(), &r.get(), (m, k, n)), &a.get(), 1e-12);
            close(&multiply(&transpose(&q.get(), (m, k)), &q.get(), (k, m, k)), &identity(k), 1e-12);
            let (q, r) = (Array::empty(F, &[m, m]), Array::empty(F, &[m, n]));
            call(spectral::qr, &[&a], &[&q, &r], &[Attr::Bool(true)]);
            close(&multiply(&q.get(), &r.get(), (m, m, n)), &a.get(), 1e-12);
            // A reflection sends the first column to minus the sign of its first element.
            assert!(r.get()[0] * a.get()[0] < 0.0);
        }
        let a = Array::of(F, &[3, 2], &[12., -51., 6., 167., -4., 24.]);
        let (q, r) = (Array::empty(F, &[3, 2]), Array::empty(F, &[2, 2]));
        call(spectral::qr, &[&a], &[&q, &r], &[Attr::Bool(false)]);
        close(&r.get(), &[-14., -21., 0., -175.], 1e-13);
        let a = Array::of(F, &[2, 3], &[1., 2., 3., 4., 5., 6.]);
        let (q, r) = (Array::empty(F, &[2, 2]), Array::empty(F, &[2, 3]));
        call(spectral::qr, &[&a], &[&q, &r], &[Attr::Bool(false)]);
        let expected = [-4.123105625617661, -5.335783750799326, -6.5484618759809905, 0.];
        close(&r.get()[..4], &expected, 1e-13);
        close(&r.get()[4..], &[-0.7276068751089992, -1.4552137502179985], 1e-13);
        let a = Array::of(F, &[2, 2], &[-3., 1., 4., 2.]);
        let (q, r) = (Array::empty(F, &[2, 2]), Array::empty(F, &[2, 2]));
        call(spectral::qr, &[&a], &[&q, &r], &[Attr::Bool(false)]);
        close(&r.get(), &[5., 1., 0., 2.], 1e-13);
        // LAPACK makes no last reflection of a square matrix, so its sign remains.
        let a = Array::of(F, &[2, 2], &[1., 0., 0., 1.]);
        let (q, r) = (Array::empty(F, &[2, 2]), Array::empty(F, &[2, 2]));
        call(spectral::qr, &[&a], &[&q, &r], &[Attr::Bool(false)]);
        close(&r.get(), &identity(2), 1e-14);
        close(&q.get(), &identity(2), 1e-14);
    }

    #[test]
    fn svd_and_its_uses() {
        for (m, n) in [(5, 3), (3, 5), (40, 40), (1, 4)] {
            let a = Array::wave(F, &[2, m, n], 0.3);
            let k = m.min(n);
            let (u, s, v) = (Array::empty(F, &[2, m, k]), Array::empty(F, &[2, k]), Array::empty(F, &[2, k, n]));
            assert_eq!(call(spectral::svd, &[&a], &[&u, &s, &v], &[Attr::Bool(false)]), None);
            let values = Array::empty(F, &[2, k]);
            call(spectral::svdvals, &[&a], &[&values], &[]);
            close(&values.get(), &s.get(), 1e-12);
            assert!(s.get()[..k].is_sorted_by(|a, b| a >= b));
            let us: Vec<f64> = u.get()[m * k..].iter().enumerate().map(|(i, u)| u * s.get()[k + i % k]).collect();
            close(&multiply(&us, &v.get()[k * n..], (m, k, n)), &a.get()[m * n..], 1e-12);
            let (full_u, full_v) = (Array::empty(F, &[2, m, m]), Array::empty(F, &[2, n, n]));
            call(spectral::svd, &[&a], &[&full_u, &s, &full_v], &[Attr::Bool(true)]);
            let fu = &full_u.get()[..m * m];
            close(&multiply(&transpose(fu, (m, m)), fu, (m, m, m)), &identity(m), 1e-12);
            // The pseudoinverse's first law, and least squares through it.
            let (pinv, x) = (Array::empty(F, &[2, n, m]), Array::empty(F, &[2, n, 2]));
            call(spectral::pinv, &[&a], &[&pinv], &[Attr::None]);
            let (a0, p0) = (&a.get()[..m * n], &pinv.get()[..m * n]);
            close(&multiply(&multiply(a0, p0, (m, n, m)), a0, (m, m, n)), a0, 1e-10);
            let b = Array::wave(F, &[2, m, 2], 0.6);
            call(spectral::lstsq, &[&a, &b], &[&x], &[Attr::None]);
            close(&x.get()[..n * 2], &multiply(p0, &b.get()[..m * 2], (n, m, 2)), 1e-10);
        }
        let a = Array::of(F, &[1, 1], &[f64::NAN]);
        let s = Array::empty(F, &[1]);
        assert_eq!(call(spectral::svdvals, &[&a], &[&s], &[]).map(|f| f.kind), Some(FaultKind::NoConvergence));
    }

    #[test]
    fn eigh_reads_one_triangle() {
        for n in [1, 2, 6, 50] {
            let mut data = definite(n);
            let whole = data.clone();
            (0..n * n).filter(|i| i % n > i / n).for_each(|i| data[i] = 777.0);
            let (lower, upper) = (Array::of(F, &[n, n], &data), Array::of(F, &[n, n], &transpose(&data, (n, n))));
            let (w, v, values) = (Array::empty(F, &[n]), Array::empty(F, &[n, n]), Array::empty(F, &[n]));
            call(spectral::eigh, &[&lower], &[&w, &v], &[Attr::Bool(false)]);
            call(spectral::eigvalsh, &[&upper], &[&values], &[Attr::Bool(true)]);
            close(&values.get(), &w.get(), 1e-11);
            assert!(w.get().is_sorted());
            let vw: Vec<f64> = v.get().iter().enumerate().map(|(i, v)| v * w.get()[i % n]).collect();
            close(&multiply(&vw, &transpose(&v.get(), (n, n)), (n, n, n)), &whole, 1e-11);
        }
    }

    #[test]
    fn exponentials() {
        // A rotation: exp([[0, -t], [t, 0]]).
        let a = Array::of(F, &[2, 2, 2], &[0., -7.5, 7.5, 0., 1., 0., 0., -2.]);
        let e = Array::empty(F, &[2, 2, 2]);
        call(spectral::matrix_exp, &[&a], &[&e], &[]);
        let (s, c) = 7.5f64.sin_cos();
        close(&e.get(), &[c, -s, s, c, 1f64.exp(), 0., 0., (-2f64).exp()], 1e-12);
    }
}
