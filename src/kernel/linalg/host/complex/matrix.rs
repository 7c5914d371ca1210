//! Row-major matrices of complex numbers.

use std::ops::{Index, IndexMut};

pub type C = faer::c64;

pub struct Matrix {
    pub m: usize,
    pub n: usize,
    pub data: Vec<C>,
}

impl Index<(usize, usize)> for Matrix {
    type Output = C;

    fn index(&self, (i, j): (usize, usize)) -> &C {
        &self.data[i * self.n + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut C {
        &mut self.data[i * self.n + j]
    }
}

impl Matrix {
    pub fn from_fn(m: usize, n: usize, mut element: impl FnMut(usize, usize) -> C) -> Matrix {
        let mut data = Vec::with_capacity(m * n);
        (0..m).for_each(|i| data.extend((0..n).map(|j| element(i, j))));
        Matrix { m, n, data }
    }

    pub fn of_pairs(pairs: &[f64], m: usize, n: usize) -> Matrix {
        Matrix { m, n, data: pairs.chunks_exact(2).map(|pair| C::new(pair[0], pair[1])).collect() }
    }

    pub fn identity(m: usize, n: usize) -> Matrix {
        Matrix::from_fn(m, n, |i, j| if i == j { C::ONE } else { C::ZERO })
    }

    pub fn adjoint(&self) -> Matrix {
        Matrix::from_fn(self.n, self.m, |i, j| self[(j, i)].conj())
    }

    pub fn copied(&self) -> Matrix {
        Matrix { data: self.data.clone(), ..*self }
    }

    /// Sum of squared sizes in column `j` from row `from` on.
    pub fn squares(&self, j: usize, from: usize) -> f64 {
        (from..self.m).map(|i| self[(i, j)].norm_sqr()).sum()
    }
}

/// Writes the elements of a matrix as pairs.
pub fn put(to: &mut [f64], from: &Matrix) {
    for (pair, z) in to.chunks_exact_mut(2).zip(&from.data) {
        (pair[0], pair[1]) = (z.re, z.im);
    }
}
