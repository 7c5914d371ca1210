//! Eigenvalues of Hermitian matrices: reflections to a real tridiagonal matrix, then implicit QL (Bowdler, Martin,
//! Reinsch and Wilkinson, 1968; EISPACK's `tql2`).

use super::matrix::{C, Matrix};
use super::triangles::hessenberg;
use crate::base::order;

/// Bound: sweeps for one eigenvalue.
const SWEEPS: usize = 60;

/// Eigenvalues, ascending, and eigenvectors as columns; nothing where the iteration does not end.
pub fn eigen(a: &Matrix, upper: bool) -> Option<(Vec<f64>, Matrix)> {
    let n = a.n;
    let whole = Matrix::from_fn(n, n, |i, j| match (i == j, (i > j) != upper) {
        (true, _) => C::new(a[(i, i)].re, 0.0),
        (_, true) => a[(i, j)],
        _ => a[(j, i)].conj(),
    });
    // Of a Hermitian matrix it is tridiagonal, and real.
    let (tridiagonal, mut vectors) = hessenberg(whole);
    let mut diagonal: Vec<f64> = (0..n).map(|i| tridiagonal[(i, i)].re).collect();
    let mut beside: Vec<f64> = (0..n).map(|i| if i + 1 < n { tridiagonal[(i + 1, i)].re } else { 0.0 }).collect();
    if !implicit_ql(&mut diagonal, &mut beside, &mut vectors) {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order::by(&mut order, |&i, &j| diagonal[i].total_cmp(&diagonal[j]));
    let sorted = Matrix::from_fn(n, n, |i, j| vectors[(i, order[j])]);
    Some((order.iter().map(|&i| diagonal[i]).collect(), sorted))
}

/// Turns the diagonal into eigenvalues; rotations act on the columns of `vectors`.
fn implicit_ql(d: &mut [f64], e: &mut [f64], vectors: &mut Matrix) -> bool {
    let n = d.len();
    for l in 0..n {
        let mut sweeps = 0;
        loop {
            let small = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
            let m = (l..n - 1).find(|&i| small(i)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            sweeps += 1;
            if sweeps > SWEEPS || !e[l].is_finite() {
                return false;
            }
            let ratio = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let root = ratio.hypot(1.0);
            let mut g = d[m] - d[l] + e[l] / (ratio + root.copysign(ratio));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                for row in 0..n {
                    let (low, high) = (vectors[(row, i)], vectors[(row, i + 1)]);
                    vectors[(row, i + 1)] = low * s + high * c;
                    vectors[(row, i)] = low * c - high * s;
                }
            }
            if !split {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    true
}
