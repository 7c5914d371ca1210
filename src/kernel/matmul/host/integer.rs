//! Matrix products of integers: exact, wrapping on overflow as PyTorch's do.

use super::batch::{Batch, for_each_product};
use super::product::{Matrix, Sizes};
use crate::kernel::abi::{RawView, Threads};
use crate::kernel::guard;
use crate::kernel::host::element::Element;

/// `c = a @ b` for integers of one type.
///
/// # Safety
/// As `matmul`.
pub unsafe fn matmul_wrapping<T: Element>(threads: &Threads, a: &RawView, b: &RawView, c: &RawView) {
    let batch = Batch::<T>::of(a, b, c);
    // SAFETY: shapes fit each other and `c` overlaps nothing (this function's contract), and so for each product of the
    // batch.
    unsafe { for_each_product(threads, &batch, |threads, s, a, b, c| rows(threads, s, a, b, c)) }
}

unsafe fn rows<T: Element>(threads: &Threads, s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>) {
    let grain = (256 * 1024 / s.n.saturating_mul(s.k).max(1)).max(1);
    threads.split(s.m, grain, |range| {
        let (a, b, c) = (&a, &b, &c);
        let mut sums = guard::filled(s.n, T::ZERO);
        for i in range {
            sums.fill(T::ZERO);
            for k in 0..s.k {
                guard::check_every(k, 4096);
                // SAFETY: positions inside `a` and `b`; row `i` of `c` is this thread's.
                unsafe {
                    let x = *a.at(i, k);
                    if b.col == 1 {
                        let row = std::slice::from_raw_parts(b.at(k, 0).cast_const(), s.n);
                        sums.iter_mut().zip(row).for_each(|(sum, &y)| *sum = sum.plus(x.times(y)));
                    } else {
                        sums.iter_mut().enumerate().for_each(|(j, sum)| *sum = sum.plus(x.times(*b.at(k, j))));
                    }
                }
            }
            for (j, &sum) in sums.iter().enumerate() {
                // SAFETY: `i` and `j` are inside `c`; row `i` of it is this thread's.
                unsafe { *c.at(i, j) = sum };
            }
        }
    });
}
