//! Cholesky and LU decompositions, and what is computed by them: linear systems, inverses, determinants.

use super::{Matrices, Results, fault, for_each};
use crate::kernel::abi::{Call, FaultKind};
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Shared, Sink};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::lu::partial_pivoting::factor as lu_factor;
use faer::linalg::triangular_solve as triangular;
use faer::{Mat, MatMut, MatRef, Par};

/// Where the failure of a matrix is reported: as a fault, or in a second output.
struct Outcome<'a> {
    call: &'a Call<'a>,
    info: Option<Shared<i32>>,
}

impl<'a> Outcome<'a> {
    /// # Safety
    /// A second output, if there is one, is contiguous i32.
    unsafe fn of(call: &'a Call<'a>) -> Outcome<'a> {
        // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee
        // asks for.
        let info = call.outputs.get(1).map(|view| unsafe { view.slice_mut::<i32>() });
        Outcome {
            call,
            info: info.map(|slice| {
                slice.fill(0);
                Shared::new(slice)
            }),
        }
    }

    fn failed(&self, kind: FaultKind, matrix: usize, value: usize, bound: usize) {
        match self.info {
            None => fault(self.call, kind, matrix, value, bound),
            // SAFETY: each matrix has its own element.
            Some(info) => unsafe { info.range(matrix..matrix + 1)[0] = value as i32 },
        }
    }
}

/// Cholesky factor. Inputs: `[.., n, n]`, of which one triangle is read (the lower; the upper when the attribute
/// is set). Output: lower L with A = L L', or upper U with A = U' U. Attributes: upper (Bool).
/// Faults: `NotPositiveDefinite`, position: matrix in the batch, value: order of the first leading minor that is
/// not positive-definite; the result is then zero.
///
/// With a second output `[..]` (i32) there are no faults: it gets the value of the fault, or 0.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn cholesky(call: &Call<'_>) {
    let upper = attributes::flag(call, 0);
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let outcome = Outcome::of(call);
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let n = a.n;
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            let out = Results::of(&mut sink, n * n);
            for_each(call.threads, a.count, [n, n, n], |i, par| {
                let mut to = out.matrix(i, n);
                to.fill(T::ZERO);
                let given = if upper { a.get(i).transpose() } else { a.get(i) };
                match cholesky_of(given, par) {
                    Ok(l) => to.copy_from(if upper { l.transpose() } else { l.as_ref() }),
                    Err(order) => outcome.failed(FaultKind::NotPositiveDefinite, i, order, n),
                }
            });
            sink.finish(call.threads);
        }
    });
}

/// The lower factor from the lower triangle, or the order of the first leading minor that is not positive-definite.
fn cholesky_of<T: Real>(a: MatRef<'_, T>, par: Par) -> Result<Mat<T>, usize> {
    let n = a.nrows();
    let mut l = Mat::<T>::zeros(n, n);
    l.copy_from_triangular_lower(a);
    let mut memory = MemBuffer::new(llt::cholesky_in_place_scratch::<T>(n, par, Default::default()));
    let done =
        llt::cholesky_in_place(l.as_mut(), Default::default(), par, MemStack::new(&mut memory), Default::default());
    let finite = (0..n).position(|i| !(l[(i, i)] > T::ZERO && l[(i, i)] < T::INF));
    match done {
        Ok(_) => {}
        Err(llt::LltError::NonPositivePivot { index }) => return Err(index + 1),
    }
    // faer's test of the pivot's sign accepts NaN.
    if let Some(index) = finite {
        return Err(index + 1);
    }
    for j in 0..n {
        (0..j).for_each(|i| l[(i, j)] = T::ZERO);
    }
    Ok(l)
}

/// A matrix as P' L U: unit lower and upper triangle in one.
struct Lu<T> {
    both: Mat<T>,
    /// Row i of the product L U is this row of the matrix.
    rows: Vec<usize>,
}

impl<T: Real> Lu<T> {
    fn of(a: MatRef<'_, T>, par: Par) -> Lu<T> {
        let (m, n) = a.shape();
        let mut both = a.to_owned();
        let (mut rows, mut inverse) = (vec![0usize; m], vec![0usize; m]);
        let scratch = lu_factor::lu_in_place_scratch::<usize, T>(m, n, par, Default::default());
        let mut memory = MemBuffer::new(scratch);
        let stack = MemStack::new(&mut memory);
        lu_factor::lu_in_place(both.as_mut(), &mut rows, &mut inverse, par, stack, Default::default());
        let lu = Lu { both, rows };
        if lu.is_spoiled(a) { Lu::plain(a) } else { lu }
    }

    /// Whether the decomposition is invalid: faer divides by a zero pivot.
    fn is_spoiled(&self, a: MatRef<'_, T>) -> bool {
        let finite = |m: MatRef<'_, T>| m.col_iter().all(|c| c.iter().all(|&x| x.to_f64().is_finite()));
        !finite(self.both.as_ref()) && finite(a)
    }

    /// Column by column, leaving columns below a zero pivot as they are, as LAPACK's `getf2`.
    fn plain(a: MatRef<'_, T>) -> Lu<T> {
        let (m, n) = a.shape();
        let mut lu = Lu { both: a.to_owned(), rows: (0..m).collect() };
        let x = &mut lu.both;
        for k in 0..m.min(n) {
            let size = |x: &Mat<T>, i: usize| x[(i, k)].to_f64().abs();
            let pivot = (k + 1..m).fold(k, |row, i| if size(x, i) > size(x, row) { i } else { row });
            if x[(pivot, k)] == T::ZERO {
                continue;
            }
            if pivot != k {
                for j in 0..n {
                    (x[(k, j)], x[(pivot, j)]) = (x[(pivot, j)], x[(k, j)]);
                }
                lu.rows.swap(k, pivot);
            }
            for i in k + 1..m {
                let factor = x[(i, k)] / x[(k, k)];
                x[(i, k)] = factor;
                for j in k + 1..n {
                    let change = factor * x[(k, j)];
                    x[(i, j)] -= change;
                }
            }
        }
        lu
    }

    /// Number, from 1, of the first pivot that is zero.
    fn zero_pivot(&self) -> Option<usize> {
        (0..self.both.ncols()).position(|i| self.both[(i, i)] == T::ZERO).map(|i| i + 1)
    }

    /// Writes the solution of `A x = b`.
    fn solve(&self, b: impl Fn(usize, usize) -> T, mut x: MatMut<'_, T>, par: Par) {
        for i in 0..x.nrows() {
            for j in 0..x.ncols() {
                x[(i, j)] = b(self.rows[i], j);
            }
        }
        triangular::solve_unit_lower_triangular_in_place(self.both.as_ref(), x.as_mut(), par);
        triangular::solve_upper_triangular_in_place(self.both.as_ref(), x.as_mut(), par);
    }

    /// Whether the permutation is odd.
    fn is_odd(&self) -> bool {
        let mut seen = vec![false; self.rows.len()];
        let mut cycles = 0;
        for start in 0..seen.len() {
            let mut at = start;
            cycles += !seen[start] as usize;
            while !seen[at] {
                seen[at] = true;
                at = self.rows[at];
            }
        }
        (seen.len() - cycles) % 2 == 1
    }

    /// Sign, and logarithm of the absolute value, of the determinant.
    fn slogdet(&self) -> (T, T) {
        let (mut sign, mut log) = (if self.is_odd() { -T::ONE } else { T::ONE }, T::ZERO);
        for i in 0..self.both.ncols() {
            let x = self.both[(i, i)];
            sign *= if x > T::ZERO {
                T::ONE
            } else if x < T::ZERO {
                -T::ONE
            } else {
                x
            };
            log += if x < T::ZERO { Real::ln(-x) } else { Real::ln(x) };
        }
        (sign, log)
    }
}

/// Solution of linear systems. Inputs: `a` `[.., n, n]`, `b` `[.., n, k]`, the same leading dims. Output: x `[.., n, k]`
/// with a x = b. No attributes. Faults: `Singular`, position: matrix in the batch, value: first zero pivot, from 1;
/// x is then zero. With a second output there are no faults, as in `cholesky`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn solve(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let outcome = Outcome::of(call);
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let b = Matrices::<T>::read(&call.inputs[1], call.threads);
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            let out = Results::of(&mut sink, b.m * b.n);
            for_each(call.threads, a.count, [a.n, a.n, a.n.max(b.n)], |i, par| {
                let (lu, mut to, b) = (Lu::of(a.get(i), par), out.matrix(i, b.n), b.get(i));
                match lu.zero_pivot() {
                    None => lu.solve(|r, c| b[(r, c)], to, par),
                    Some(pivot) => {
                        to.fill(T::ZERO);
                        outcome.failed(FaultKind::Singular, i, pivot, a.n);
                    }
                }
            });
            sink.finish(call.threads);
        }
    });
}

/// Inverses. Inputs: `[.., n, n]`. Output: the same shape. No attributes. Faults: as `solve`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn inv(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let outcome = Outcome::of(call);
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            let out = Results::of(&mut sink, a.n * a.n);
            for_each(call.threads, a.count, [a.n, a.n, a.n], |i, par| {
                let (lu, mut to) = (Lu::of(a.get(i), par), out.matrix(i, a.n));
                match lu.zero_pivot() {
                    None => lu.solve(|r, c| if r == c { T::ONE } else { T::ZERO }, to, par),
                    Some(pivot) => {
                        to.fill(T::ZERO);
                        outcome.failed(FaultKind::Singular, i, pivot, a.n);
                    }
                }
            });
            sink.finish(call.threads);
        }
    });
}

/// Determinants. Inputs: `[.., n, n]`. Output: `[..]`. No attributes, no faults: a singular matrix has 0.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn det(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            let out = Results::of(&mut sink, 1);
            for_each(call.threads, a.count, [a.n, a.n, a.n], |i, par| {
                let lu = Lu::of(a.get(i), par);
                let sign = if lu.is_odd() { -T::ONE } else { T::ONE };
                out.slice(i)[0] = (0..a.n).fold(sign, |product, k| product * lu.both[(k, k)]);
            });
            sink.finish(call.threads);
        }
    });
}

/// Sign and logarithm of the absolute value of determinants. Inputs: `[.., n, n]`. Outputs: sign `[..]`,
/// logarithm `[..]` (0 and minus infinity for a singular matrix). No attributes, no faults.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn slogdet(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let (mut sign, mut log) = (Sink::<T>::new(&call.outputs[0]), Sink::<T>::new(&call.outputs[1]));
            let (sign_to, log_to) = (Results::of(&mut sign, 1), Results::of(&mut log, 1));
            for_each(call.threads, a.count, [a.n, a.n, a.n], |i, par| {
                (sign_to.slice(i)[0], log_to.slice(i)[0]) = Lu::of(a.get(i), par).slogdet();
            });
            sign.finish(call.threads);
            log.finish(call.threads);
        }
    });
}

/// LU decomposition with row pivoting. Inputs: `[.., m, n]`. Outputs: P `[.., m, m]`, unit lower L `[.., m, k]`, upper
/// U `[.., k, n]`, k the smaller of m and n, with A = P L U. No attributes, no faults.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn lu(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let k = a.m.min(a.n);
            let mut sinks = [0, 1, 2].map(|i| Sink::<T>::new(&call.outputs[i]));
            let [p, l, u] = &mut sinks;
            let (p, l, u) = (Results::of(p, a.m * a.m), Results::of(l, a.m * k), Results::of(u, k * a.n));
            for_each(call.threads, a.count, [a.m, a.n, k], |i, par| {
                let lu = Lu::of(a.get(i), par);
                let (p, l, u) = (p.slice(i), l.slice(i), u.slice(i));
                p.fill(T::ZERO);
                lu.rows.iter().enumerate().for_each(|(to, &from)| p[from * a.m + to] = T::ONE);
                for r in 0..a.m {
                    for c in 0..k {
                        l[r * k + c] = match r.cmp(&c) {
                            std::cmp::Ordering::Less => T::ZERO,
                            std::cmp::Ordering::Equal => T::ONE,
                            std::cmp::Ordering::Greater => lu.both[(r, c)],
                        };
                    }
                }
                for r in 0..k {
                    for c in 0..a.n {
                        u[r * a.n + c] = if c < r { T::ZERO } else { lu.both[(r, c)] };
                    }
                }
            });
            sinks.into_iter().for_each(|sink| sink.finish(call.threads));
        }
    });
}

/// Solution of triangular systems. Inputs: `a` `[.., n, n]`, `b` `[.., n, k]` (or `[.., k, n]` from the right), the same
/// leading dims. Output: x like b, with a x = b (or x a = b). Attributes: upper (Bool: which triangle is read),
/// left (Bool), unitriangular (Bool: the diagonal counts as ones). No faults: zeros on the diagonal give infinities.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn triangular_solve(call: &Call<'_>) {
    let [upper, left, unit] = [0, 1, 2].map(|i| attributes::flag(call, i));
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let a = Matrices::<T>::read(&call.inputs[0], call.threads);
            let b = Matrices::<T>::read(&call.inputs[1], call.threads);
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            let out = Results::of(&mut sink, b.m * b.n);
            if b.m * b.n == 0 {
                return;
            }
            for_each(call.threads, a.count, [a.n, a.n, b.m.max(b.n)], |i, par| {
                out.slice(i).copy_from_slice(b.slice(i));
                let to = out.matrix(i, b.n);
                // x a = b is the transposed system, which reads the other triangle.
                let (a, x) = if left { (a.get(i), to) } else { (a.get(i).transpose(), to.transpose_mut()) };
                match (upper == left, unit) {
                    (true, false) => triangular::solve_upper_triangular_in_place(a, x, par),
                    (true, true) => triangular::solve_unit_upper_triangular_in_place(a, x, par),
                    (false, false) => triangular::solve_lower_triangular_in_place(a, x, par),
                    (false, true) => triangular::solve_unit_lower_triangular_in_place(a, x, par),
                }
            });
            sink.finish(call.threads);
        }
    });
}
