//! Singular values by rotations of columns (Hestenes, 1958; one-sided Jacobi), which finds small ones precisely.

use super::matrix::{C, Matrix};
use crate::base::order;

/// Bound: rounds over all pairs of columns.
const ROUNDS: usize = 60;

pub struct Parts {
    pub u: Matrix,
    pub s: Vec<f64>,
    pub v: Matrix,
}

/// A = U diag(S) Vᴴ, values descending; U and V square when `full`. Nothing where the rotations do not end.
pub fn decompose(a: &Matrix, full: bool) -> Option<Parts> {
    if a.m < a.n {
        let Parts { u, s, v } = decompose(&a.adjoint(), full)?;
        return Some(Parts { u: v, s, v: u });
    }
    let (mut b, mut v) = (a.copied(), Matrix::identity(a.n, a.n));
    if !rotate_all(&mut b, &mut v) {
        return None;
    }
    let sizes: Vec<f64> = (0..a.n).map(|j| b.squares(j, 0).sqrt()).collect();
    let mut order: Vec<usize> = (0..a.n).collect();
    order::by(&mut order, |&i, &j| sizes[j].total_cmp(&sizes[i]));
    let s: Vec<f64> = order.iter().map(|&j| sizes[j]).collect();
    let negligible = s.first().map_or(0.0, |most| most * f64::MIN_POSITIVE.sqrt());
    let width = if full { a.m } else { a.n };
    let mut u = Matrix::from_fn(a.m, width, |i, j| match s.get(j) {
        Some(&size) if size > negligible => b[(i, order[j])] / size,
        _ => C::ZERO,
    });
    let known = s.iter().take_while(|&&size| size > negligible).count();
    (known..width).for_each(|j| complete(&mut u, j));
    Some(Parts { u, s, v: Matrix::from_fn(a.n, a.n, |i, j| v[(i, order[j])]) })
}

/// Rotates pairs of columns until all are orthogonal.
fn rotate_all(b: &mut Matrix, v: &mut Matrix) -> bool {
    for _ in 0..ROUNDS {
        let mut still = true;
        for p in 0..b.n {
            for q in p + 1..b.n {
                let (alpha, beta) = (b.squares(p, 0), b.squares(q, 0));
                let product: C = (0..b.m).map(|i| b[(i, p)].conj() * b[(i, q)]).sum();
                let size = product.norm();
                if !(alpha.is_finite() && beta.is_finite()) {
                    return false;
                }
                if size <= f64::EPSILON * (alpha * beta).sqrt() || size == 0.0 {
                    continue;
                }
                still = false;
                let zeta = (beta - alpha) / (2.0 * size);
                let t = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let turn = product / size * (c * t);
                rotate(b, p, q, c, turn);
                rotate(v, p, q, c, turn);
            }
        }
        if still {
            return true;
        }
    }
    false
}

fn rotate(x: &mut Matrix, p: usize, q: usize, c: f64, turn: C) {
    for i in 0..x.m {
        let (left, right) = (x[(i, p)], x[(i, q)]);
        x[(i, p)] = left * c - right * turn.conj();
        x[(i, q)] = left * turn + right * c;
    }
}

/// Makes column `j` a unit vector that is orthogonal to those before it: what remains of the axis that they reach least.
fn complete(u: &mut Matrix, j: usize) {
    let reached = |axis: usize| (0..j).map(|c| u[(axis, c)].norm_sqr()).sum::<f64>();
    let axis = (0..u.m).min_by(|&x, &y| reached(x).total_cmp(&reached(y))).unwrap_or(0);
    (0..u.m).for_each(|i| u[(i, j)] = if i == axis { C::ONE } else { C::ZERO });
    // Twice: once leaves rounding errors that are large beside a small rest.
    for _ in 0..2 {
        for c in 0..j {
            let along: C = (0..u.m).map(|i| u[(i, c)].conj() * u[(i, j)]).sum();
            (0..u.m).for_each(|i| {
                let part = u[(i, c)] * along;
                u[(i, j)] -= part;
            });
        }
    }
    let size = u.squares(j, 0).sqrt();
    (0..u.m).for_each(|i| u[(i, j)] /= size);
}
