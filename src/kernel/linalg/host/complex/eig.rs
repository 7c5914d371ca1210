//! Eigenvalues of general matrices: reflections to Hessenberg form, shifted QR to a triangle (Golub and Van Loan, Matrix
//! Computations, 7.4 and 7.5, with Wilkinson's shift), and back substitution for the vectors.

use super::matrix::{C, Matrix};
use super::triangles::hessenberg;

/// Bound: QR steps for one eigenvalue.
const STEPS: usize = 80;

/// Eigenvalues, and eigenvectors of length 1 as columns; nothing where the iteration does not end.
pub fn decompose(a: &Matrix) -> Option<(Vec<C>, Matrix)> {
    let (mut h, mut q) = hessenberg(a.copied());
    if !triangular(&mut h, &mut q) {
        return None;
    }
    let values = (0..a.n).map(|i| h[(i, i)]).collect();
    Some((values, vectors(&h, &q)))
}

/// The eigenvalue of the last two rows and columns up to `end` that is nearer to the corner.
fn shift(h: &Matrix, end: usize) -> C {
    let (a, b, c, d) = (h[(end - 1, end - 1)], h[(end - 1, end)], h[(end, end - 1)], h[(end, end)]);
    let half = (a - d) * 0.5;
    let root = (half * half + b * c).sqrt();
    let far = if (half + root).norm_sqr() > (half - root).norm_sqr() { half + root } else { half - root };
    if far == C::ZERO { d } else { d - b * c / far }
}

/// Shifted QR steps on the part that is not yet triangular.
fn triangular(h: &mut Matrix, q: &mut Matrix) -> bool {
    let n = h.n;
    let scale = h.data.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    if !scale.is_finite() {
        return false;
    }
    let (mut end, mut steps) = (n.saturating_sub(1), 0);
    while end > 0 {
        let negligible = |i: usize| {
            let beside = h[(i - 1, i - 1)].norm() + h[(i, i)].norm();
            h[(i, i - 1)].norm() <= f64::EPSILON * if beside == 0.0 { scale } else { beside }
        };
        let start = (1..=end).rev().find(|&i| negligible(i)).unwrap_or(0);
        if start > 0 {
            h[(start, start - 1)] = C::ZERO;
        }
        if start == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        steps += 1;
        if steps > STEPS {
            return false;
        }
        // Now and then another shift, where Wilkinson's goes round in a circle.
        let at = if steps % 10 == 0 { h[(end, end)] + h[(end, end - 1)].norm() } else { shift(h, end) };
        step(h, q, start, end, at);
    }
    true
}

/// One QR step on rows and columns `start..=end`: H - shift = G R, then R Gᴴ + shift.
fn step(h: &mut Matrix, q: &mut Matrix, start: usize, end: usize, shift: C) {
    let n = h.n;
    (start..=end).for_each(|i| h[(i, i)] -= shift);
    let mut turns = Vec::with_capacity(end - start);
    for k in start..end {
        let (x, y) = (h[(k, k)], h[(k + 1, k)]);
        let size = x.norm().hypot(y.norm());
        let (c, s) = if size == 0.0 { (C::ONE, C::ZERO) } else { (x / size, y / size) };
        for j in k..n {
            let (above, below) = (h[(k, j)], h[(k + 1, j)]);
            h[(k, j)] = c.conj() * above + s.conj() * below;
            h[(k + 1, j)] = c * below - s * above;
        }
        turns.push((c, s));
    }
    for (k, (c, s)) in (start..end).zip(turns) {
        for (target, rows) in [(&mut *h, (k + 2).min(end + 1)), (&mut *q, n)] {
            for i in 0..rows {
                let (left, right) = (target[(i, k)], target[(i, k + 1)]);
                target[(i, k)] = left * c + right * s;
                target[(i, k + 1)] = right * c.conj() - left * s.conj();
            }
        }
    }
    (start..=end).for_each(|i| h[(i, i)] += shift);
}

/// Eigenvectors of the triangle by back substitution, turned back by Q, of length 1 with a real largest element.
fn vectors(t: &Matrix, q: &Matrix) -> Matrix {
    let n = t.n;
    let scale = t.data.iter().map(|z| z.norm()).fold(f64::MIN_POSITIVE, f64::max);
    let mut all = Matrix::from_fn(n, n, |_, _| C::ZERO);
    for k in 0..n {
        let mut x = vec![C::ZERO; k + 1];
        x[k] = C::ONE;
        for i in (0..k).rev() {
            let sum: C = (i + 1..=k).map(|j| t[(i, j)] * x[j]).sum();
            let gap = t[(i, i)] - t[(k, k)];
            let gap = if gap.norm() < f64::EPSILON * scale { C::new(f64::EPSILON * scale, 0.0) } else { gap };
            x[i] = -sum / gap;
        }
        let mut vector: Vec<C> = (0..n).map(|i| x.iter().enumerate().map(|(j, x)| q[(i, j)] * x).sum()).collect();
        let size = vector.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        let largest = vector.iter().copied().max_by(|a, b| a.norm_sqr().total_cmp(&b.norm_sqr())).unwrap_or(C::ONE);
        let turn = largest.conj() / largest.norm() / size;
        vector.iter_mut().for_each(|z| *z *= turn);
        (0..n).for_each(|i| all[(i, k)] = vector[i]);
    }
    all
}
