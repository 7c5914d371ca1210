//! LU by partial pivoting, QR and Hessenberg form by Householder reflections (Golub and Van Loan, Matrix Computations, 3.4,
//! 5.2 and 7.4).

use super::matrix::{C, Matrix};

/// Which row of A each row of `L U` is, and both triangles in one matrix.
pub fn lu(a: &Matrix) -> (Vec<usize>, Matrix) {
    let (mut a, mut rows) = (a.copied(), (0..a.m).collect::<Vec<_>>());
    for k in 0..a.m.min(a.n) {
        // LAPACK measures pivots by the sum of their parts' sizes.
        let size = |z: C| z.re.abs() + z.im.abs();
        let mut pivot = k;
        (k + 1..a.m).for_each(|i| {
            if size(a[(i, k)]) > size(a[(pivot, k)]) {
                pivot = i;
            }
        });
        if pivot != k {
            rows.swap(k, pivot);
            (0..a.n).for_each(|j| a.data.swap(k * a.n + j, pivot * a.n + j));
        }
        let head = a[(k, k)];
        if head == C::ZERO {
            continue;
        }
        for i in k + 1..a.m {
            let factor = a[(i, k)] / head;
            a[(i, k)] = factor;
            for j in k + 1..a.n {
                let change = factor * a[(k, j)];
                a[(i, j)] -= change;
            }
        }
    }
    (rows, a)
}

/// The reflection `1 - tau v vᴴ` that takes `(head, rest)` to `(beta, 0)` with a real `beta`, where v is 1 in front and the
/// rest times `scale` behind: tau, beta, scale (LAPACK's `zlarfg`). `below` is the squared size of the rest.
pub fn reflector(head: C, below: f64) -> Option<(C, f64, C)> {
    if below == 0.0 && head.im == 0.0 {
        return None;
    }
    let beta = -(head.norm_sqr() + below).sqrt().copysign(head.re);
    let tau = C::new((beta - head.re) / beta, -head.im / beta);
    Some((tau, beta, C::ONE / (head - beta)))
}

/// Columns from `from` on, minus `factor · v (vᴴ column)`, where v stands below the diagonal of column `j` of `v`.
fn apply(v: &Matrix, j: usize, factor: C, x: &mut Matrix, from: usize) {
    for c in from..x.n {
        let mut along = x[(j, c)];
        (j + 1..v.m).for_each(|i| along += v[(i, j)].conj() * x[(i, c)]);
        along *= factor;
        x[(j, c)] -= along;
        (j + 1..v.m).for_each(|i| {
            let change = v[(i, j)] * along;
            x[(i, c)] -= change;
        });
    }
}

/// R with the reflectors below it, and their factors.
pub fn reflect(a: &Matrix) -> (Matrix, Vec<C>) {
    let mut a = a.copied();
    let mut factors = Vec::new();
    for j in 0..a.m.min(a.n) {
        let Some((tau, beta, scale)) = reflector(a[(j, j)], a.squares(j, j + 1)) else {
            factors.push(C::ZERO);
            continue;
        };
        (j + 1..a.m).for_each(|i| a[(i, j)] *= scale);
        a[(j, j)] = C::new(beta, 0.0);
        let v = Matrix::from_fn(a.m, j + 1, |i, c| if c == j { a[(i, j)] } else { C::ZERO });
        apply(&v, j, tau.conj(), &mut a, j + 1);
        factors.push(tau);
    }
    (a, factors)
}

/// The first `k` columns of the product of the reflections.
pub fn orthonormal(both: &Matrix, factors: &[C], k: usize) -> Matrix {
    let mut q = Matrix::identity(both.m, k);
    for (j, &tau) in factors.iter().enumerate().rev() {
        apply(both, j, tau, &mut q, 0);
    }
    q
}

/// H and the unitary Q with A = Q H Qᴴ of a square A; H is zero below the first subdiagonal, which is real.
pub fn hessenberg(mut a: Matrix) -> (Matrix, Matrix) {
    let n = a.n;
    let mut q = Matrix::identity(n, n);
    for k in 0..n.saturating_sub(1) {
        let Some((tau, beta, scale)) = reflector(a[(k + 1, k)], a.squares(k, k + 2)) else { continue };
        let v: Vec<C> = (k + 1..n).map(|i| if i == k + 1 { C::ONE } else { a[(i, k)] * scale }).collect();
        // Gᴴ A G with G = 1 - tau v vᴴ, and Q G.
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
        a[(k + 1, k)] = C::new(beta, 0.0);
        (k + 2..n).for_each(|i| a[(i, k)] = C::ZERO);
    }
    (a, q)
}
