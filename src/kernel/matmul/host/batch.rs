//! The products of a batched product, and how they are divided among threads.

use super::product::{Matrix, PARALLEL_FLOPS, Sizes};
use crate::kernel::abi::{RawView, Threads};
use crate::kernel::host::staging::row_offset;

/// A batch of products of one size. Strides count elements.
pub struct Batch<'a, T> {
    pub sizes: Sizes,
    a: Matrix<T>,
    b: Matrix<T>,
    c: Matrix<T>,
    shape: &'a [usize],
    strides: [&'a [isize]; 3],
}

impl<'a, T> Batch<'a, T> {
    /// `a` is `[.., m, k]`, `b` `[.., k, n]`, `c` `[.., m, n]`, with the same leading dims.
    ///
    /// A batch in which `b` is the same for all matrices becomes one product with more rows, if the rows of `a` and `c`
    /// have one stride across the batch.
    pub fn of(a: &'a RawView, b: &'a RawView, c: &'a RawView) -> Batch<'a, T> {
        let lead = c.shape.len() - 2;
        let matrix =
            |view: &RawView| Matrix { ptr: view.ptr.cast(), row: view.strides[lead], col: view.strides[lead + 1] };
        let (m, n, k) = (c.shape[lead], c.shape[lead + 1], a.shape[lead + 1]);
        let mut batch = Batch {
            sizes: Sizes { m, n, k },
            a: matrix(a),
            b: matrix(b),
            c: matrix(c),
            shape: &c.shape[..lead],
            strides: [&a.strides[..lead], &b.strides[..lead], &c.strides[..lead]],
        };
        batch.fold();
        batch
    }

    fn fold(&mut self) {
        while let Some((&size, shape)) = self.shape.split_last() {
            let last = shape.len();
            let stride = |i: usize| self.strides[i][last];
            let m = self.sizes.m as isize;
            let follows = |stride: isize, row: isize| stride == m * row;
            // With one row, the row stride can be that of the batch.
            let free = self.sizes.m == 1;
            let folds = stride(1) == 0 && (free || follows(stride(0), self.a.row) && follows(stride(2), self.c.row));
            if size != 1 && !folds {
                break;
            }
            if size != 1 {
                if free {
                    (self.a.row, self.c.row) = (stride(0), stride(2));
                }
                self.sizes.m *= size;
            }
            self.shape = shape;
            self.strides = self.strides.map(|strides| &strides[..last]);
        }
    }

    fn count(&self) -> usize {
        self.shape.iter().product()
    }

    fn product(&self, i: usize) -> (Matrix<T>, Matrix<T>, Matrix<T>) {
        let at = |matrix: Matrix<T>, strides: &[isize]| Matrix {
            ptr: matrix.ptr.wrapping_offset(row_offset(self.shape, strides, i)),
            ..matrix
        };
        (at(self.a, self.strides[0]), at(self.b, self.strides[1]), at(self.c, self.strides[2]))
    }
}

/// Calls `one` for each product: large ones one after the other with all threads, small ones in parallel.
///
/// # Safety
/// The views that the batch was made of are valid, and `c` overlaps nothing.
pub unsafe fn for_each_product<T: Send>(
    threads: &Threads,
    batch: &Batch<'_, T>,
    one: impl Fn(&Threads, Sizes, Matrix<T>, Matrix<T>, Matrix<T>) + Sync,
) {
    let (s, count) = (batch.sizes, batch.count());
    if s.m == 0 || s.n == 0 || count == 0 {
        return;
    }
    let flops = s.m.saturating_mul(s.n).saturating_mul(s.k).saturating_mul(2);
    if count == 1 {
        return one(threads, s, batch.a, batch.b, batch.c);
    }
    // Cost: a product on all threads pays only if the batch does not divide evenly among them.
    if flops >= PARALLEL_FLOPS && count < 4 * threads.count() && count % threads.count() != 0 {
        for i in 0..count {
            let (a, b, c) = batch.product(i);
            one(threads, s, a, b, c);
        }
        return;
    }
    threads.split(count, (1_000_000 / flops.max(1)).max(1), |range| {
        for i in range {
            let (a, b, c) = batch.product(i);
            one(&Threads::ONE, s, a, b, c);
        }
    });
}
