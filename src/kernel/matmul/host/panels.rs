//! A right operand that is packed once for many products of few rows: the weights of a recurrent layer, step after step.

use super::product::{Accum, Matrix, PARALLEL_FLOPS};
use super::tiles::{KC, MC, PACK_MIN_READS, column_of_tiles, lanes, pack, shape};
use crate::kernel::abi::Threads;
use crate::kernel::guard;
use crate::kernel::host::real::Real;
use crate::kernel::host::simd;
use crate::kernel::host::staging::Scratch;
use crate::kernel::matmul::host::product::Sizes;

/// `b` of `c = a @ b`, `[k, n]`, in panels of whole vectors: those of the first block of `k`, then those of the next.
pub struct Panels<T> {
    data: Scratch<T>,
    k: usize,
    n: usize,
    /// Columns of a panel, and elements of `k` in a block.
    width: usize,
    block: usize,
}

impl<T: Real> Panels<T> {
    /// # Safety
    /// `b` is `[k, n]` and readable.
    pub unsafe fn new(b: Matrix<T>, k: usize, n: usize) -> Panels<T> {
        let level = simd::level();
        let width = shape(level).1 * lanes::<T>(level);
        let block = k.div_ceil(k.div_ceil(KC).max(1)).max(1);
        let columns = n.next_multiple_of(width);
        let mut data = Scratch::<T>::new(k * columns);
        for first in (0..k).step_by(block) {
            guard::check();
            let deep = block.min(k - first);
            let to = &mut data[first * columns..(first + deep) * columns];
            // SAFETY: the rows of this block exist, and `to` has room for whole panels of them.
            unsafe { pack(b.from(first, 0).transposed(), n, deep, width, to) };
        }
        Panels { data, k, n, width, block }
    }

    /// `c = a @ b`, or `c += a @ b`, for `m` rows.
    ///
    /// # Safety
    /// `a` is `[m, k]` and readable; `c` is `[m, n]`, writable, with adjacent elements of a row, and overlaps neither `a`
    /// nor anything that another thread uses.
    pub unsafe fn multiply(&self, threads: &Threads, m: usize, a: Matrix<T>, c: Matrix<T>, accum: Accum) {
        let panels = self.n.div_ceil(self.width);
        let flops = m.saturating_mul(self.n).saturating_mul(self.k).saturating_mul(2);
        let grain = if flops < PARALLEL_FLOPS { panels } else { panels.div_ceil(threads.count()) };
        threads.split(panels, grain, |range| {
            // SAFETY: each thread has columns of its own; the operands are those of this function's contract.
            unsafe { self.columns(range, m, a, c, accum) }
        });
    }

    /// Some panels of `multiply`.
    ///
    /// # Safety
    /// As `multiply`.
    unsafe fn columns(&self, panels: std::ops::Range<usize>, m: usize, a: Matrix<T>, c: Matrix<T>, accum: Accum) {
        let rows = shape(simd::level()).0;
        let packs = panels.len() > PACK_MIN_READS;
        let mut packed = Scratch::<T>::new(if packs { MC.min(m.next_multiple_of(rows)) * self.block } else { 0 });
        let columns = self.n.next_multiple_of(self.width);
        for first in (0..self.k).step_by(self.block) {
            let k = self.block.min(self.k - first);
            let accum = if first == 0 { accum } else { Accum::Add };
            for i in (0..m).step_by(MC) {
                let (count, from) = (MC.min(m - i), a.from(i, first));
                let left = if packs {
                    // SAFETY: the rows exist, and there is room for whole tiles of them.
                    unsafe { pack(from, count, k, rows, &mut packed) };
                    Matrix { ptr: packed.as_mut_ptr(), row: 1, col: rows as isize }
                } else {
                    from
                };
                for panel in panels.clone() {
                    let column = panel * self.width;
                    let at = first * columns + column * k;
                    let b = Matrix { ptr: self.data[at..].as_ptr().cast_mut(), row: self.width as isize, col: 1 };
                    let size = Sizes { m: count, n: self.width.min(self.n - column), k };
                    column_of_tiles(size, left, if packs { rows * k } else { 0 }, b, c.from(i, column), accum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::matmul::host::product::product;

    #[test]
    fn packed_once_is_the_same_product() {
        for (m, k, n) in [(1, 5, 3), (7, 600, 130), (33, 17, 500), (100, 40, 64)] {
            let wave = |n: usize, by: f64| (0..n).map(|i| (i as f64 * by).sin()).collect::<Vec<f64>>();
            let (a, b) = (wave(m * k, 0.37), wave(n * k, 0.61));
            let (mut ours, mut expected) = (wave(m * n, 0.11), wave(m * n, 0.11));
            let (left, right) = (Matrix::packed(&a, k), Matrix::packed(&b, k).transposed());
            // SAFETY: the sizes are those of the vectors.
            unsafe {
                let threads = Threads::new(2);
                let panels = Panels::new(right, k, n);
                panels.multiply(&threads, m, left, Matrix::packed_mut(&mut ours, n), Accum::Add);
                let c = Matrix::packed_mut(&mut expected, n);
                product(&threads, Sizes { m, n, k }, left, right, c, Accum::Add);
            }
            assert!(ours.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11));
        }
    }
}
