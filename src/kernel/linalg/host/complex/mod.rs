//! Decompositions of complex matrices. The algorithms are the classical ones, in f64 pairs, for every dtype.
//!
//! Matrices come and go as rows of pairs: `[.., m, 2 n]` holds m rows of n complex numbers.

mod eig;
mod hermitian;
mod matrix;
mod svd;
mod triangles;

use super::{Matrices, Results, fault, for_each};
use crate::kernel::abi::{Call, FaultKind};
use crate::kernel::host::attributes;
use crate::kernel::host::staging::Sink;
use matrix::{C, Matrix, put};

/// Runs `work` for every matrix of the input with its part of each output. Where it says no the results are zeros, and
/// a fault says that it did not converge.
///
/// # Safety
/// As `HostFn`; input and outputs are f64, and the outputs begin with the input's batch dims.
unsafe fn each<const N: usize>(call: &Call<'_>, work: impl Fn(&Matrix, [&mut [f64]; N]) -> bool + Sync) {
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe {
        let a = Matrices::<f64>::read(&call.inputs[0], call.threads);
        let lead = call.inputs[0].shape.len() - 2;
        let mut sinks: [Sink<'_, f64>; N] = std::array::from_fn(|i| Sink::new(&call.outputs[i]));
        let mut sizes = call.outputs.iter().map(|view| view.shape[lead..].iter().product());
        let results = sinks.each_mut().map(|sink| Results::of(sink, sizes.next().unwrap_or(0)));
        for_each(call.threads, a.count, [a.m, a.n, a.n], |i, _| {
            let matrix = Matrix::of_pairs(a.slice(i), a.m, a.n / 2);
            if !work(&matrix, results.map(|result| result.slice(i))) {
                results.iter().for_each(|result| result.slice(i).fill(0.0));
                fault(call, FaultKind::NoConvergence, i, 0, 0);
            }
        });
        sinks.into_iter().for_each(|sink| sink.finish(call.threads));
    }
}

/// Permutation, unit lower triangle, upper triangle with A = P L U, by partial pivoting. Input `[.., m, 2 n]`. Outputs:
/// `[.., m, 2 m]`, `[.., m, 2 k]`, `[.., k, 2 n]`, k the smaller of m and n. No attributes, no faults.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn lu(call: &Call<'_>) {
    // SAFETY: the contract is this function's.
    unsafe {
        each(call, |a, [p, l, u]| {
            let (rows, both) = triangles::lu(a);
            let k = a.m.min(a.n);
            p.fill(0.0);
            rows.iter().enumerate().for_each(|(to, &from)| p[(from * a.m + to) * 2] = 1.0);
            put(
                l,
                &Matrix::from_fn(a.m, k, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Less => C::ZERO,
                    std::cmp::Ordering::Equal => C::ONE,
                    std::cmp::Ordering::Greater => both[(i, j)],
                }),
            );
            put(u, &Matrix::from_fn(k, a.n, |i, j| if i <= j { both[(i, j)] } else { C::ZERO }));
            true
        });
    }
}

/// Upper triangle with the reflectors below it, and their factors, as LAPACK's `zgeqrf`. Input `[.., m, 2 n]`. Outputs:
/// `[.., m, 2 n]`, `[.., 2 k]`. No attributes, no faults.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn geqrf(call: &Call<'_>) {
    // SAFETY: the contract is this function's.
    unsafe {
        each(call, |a, [both, tau]| {
            let (reflected, factors) = triangles::reflect(a);
            put(both, &reflected);
            put(tau, &Matrix { m: 1, n: factors.len(), data: factors });
            true
        });
    }
}

/// QR decomposition. Input `[.., m, 2 n]`. Outputs: Q `[.., m, 2 k]`, R `[.., k, 2 n]`, k the smaller of m and n, or m
/// when the attribute is set. Attributes: complete (Bool). Signs are LAPACK's. No faults.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn qr(call: &Call<'_>) {
    let complete = attributes::flag(call, 0);
    // SAFETY: the contract is this function's.
    unsafe {
        each(call, |a, [q, r]| {
            let k = if complete { a.m } else { a.m.min(a.n) };
            let (both, tau) = triangles::reflect(a);
            put(r, &Matrix::from_fn(k, a.n, |i, j| if i <= j { both[(i, j)] } else { C::ZERO }));
            put(q, &triangles::orthonormal(&both, &tau, k));
            true
        });
    }
}

/// Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read. Input `[.., n, 2 n]`.
/// Outputs: `[.., n]`, `[.., n, 2 n]`. Attributes: upper (Bool). Faults: `NoConvergence`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn eigh(call: &Call<'_>) {
    let upper = attributes::flag(call, 0);
    // SAFETY: the contract is this function's.
    unsafe {
        each(call, |a, [values, vectors]| match hermitian::eigen(a, upper) {
            Some((found, v)) => {
                values.copy_from_slice(&found);
                put(vectors, &v);
                true
            }
            None => false,
        });
    }
}

/// Singular values, descending, with their vectors. Input `[.., m, 2 n]`. Outputs: U `[.., m, 2 k]`, S `[.., k]`, the
/// conjugated transpose of V `[.., k, 2 n]`; U and V are square when the attribute is set. Attributes: full (Bool).
/// Faults: `NoConvergence`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn svd(call: &Call<'_>) {
    let full = attributes::flag(call, 0);
    // SAFETY: the contract is this function's.
    unsafe {
        each(call, |a, [u, s, vh]| match svd::decompose(a, full) {
            Some(parts) => {
                put(u, &parts.u);
                s.copy_from_slice(&parts.s);
                put(vh, &parts.v.adjoint());
                true
            }
            None => false,
        });
    }
}

/// Eigenvalues and eigenvectors of square matrices, in no order; vectors have length 1. Input `[.., n, 2 n]`. Outputs:
/// `[.., 2 n]`, `[.., n, 2 n]`. No attributes. Faults: `NoConvergence`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn eig(call: &Call<'_>) {
    // SAFETY: the contract is this function's.
    unsafe {
        each(call, |a, [values, vectors]| match eig::decompose(a) {
            Some((found, v)) => {
                put(values, &Matrix { m: 1, n: found.len(), data: found });
                put(vectors, &v);
                true
            }
            None => false,
        });
    }
}
