//! Eigenvalues of Hermitian matrices: reflections to a real tridiagonal matrix, then implicit QL (Bowdler, Martin,
//! Reinsch and Wilkinson, 1968; EISPACK's `tql2`).

use super::matrix::{C, Matrix};
use super::triangles::reflector;

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
    let (mut diagonal, mut beside, mut vectors) = tridiagonal(whole);
    if !implicit_ql(&mut diagonal, &mut beside, &mut vectors) {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| diagonal[i].total_cmp(&diagonal[j]));
    let sorted = Matrix::from_fn(n, n, |i, j| vectors[(i, order[j])]);
    Some((order.iter().map(|&i| diagonal[i]).collect(), sorted))
}

/// Diagonal, what stands below it, and the unitary Q with A = Q T Qᴴ.
fn tridiagonal(mut a: Matrix) -> (Vec<f64>, Vec<f64>, Matrix) {
    let n = a.n;
    let mut q = Matrix::identity(n, n);
    let mut beside = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let Some((tau, beta, scale)) = reflector(a[(k + 1, k)], a.squares(k, k + 2)) else {
            beside[k] = a[(k + 1, k)].re;
            continue;
        };
        beside[k] = beta;
        let v: Vec<C> = (k + 1..n).map(|i| if i == k + 1 { C::ONE } else { a[(i, k)] * scale }).collect();
        // Hᴴ A H with H = 1 - tau v vᴴ, then Q H.
        for j in k + 1..n {
            let along: C = v.iter().enumerate().map(|(i, v)| v.conj() * a[(k + 1 + i, j)]).sum::<C>() * tau.conj();
            v.iter().enumerate().for_each(|(i, v)| a[(k + 1 + i, j)] -= *v * along);
        }
        for target in [&mut a, &mut q] {
            for i in 0..n {
                let along: C = v.iter().enumerate().map(|(j, v)| target[(i, k + 1 + j)] * v).sum::<C>() * tau;
                v.iter().enumerate().for_each(|(j, v)| target[(i, k + 1 + j)] -= along * v.conj());
            }
        }
    }
    ((0..n).map(|i| a[(i, i)].re).collect(), beside, q)
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
