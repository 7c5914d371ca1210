//! One matrix product of `f32` or `f64` on raw addresses: chooses the fastest algorithm for the shape.
//!
//! Knows nothing of batches or dtypes. Large products are cut into parts for the threads, each of which `tiles` computes.

use super::tiles::multiply;
use crate::kernel::abi::Threads;
use crate::kernel::host::real::{Real, widths};
use crate::kernel::host::staging::{Scratch, Shared};
use crate::kernel::host::vector::Vector;
pub use faer::Accum;

/// A matrix in memory: element (i, j) is at `ptr + i * row + j * col`, in elements.
#[derive(Debug)]
pub struct Matrix<T> {
    pub ptr: *mut T,
    pub row: isize,
    pub col: isize,
}

impl<T> Copy for Matrix<T> {}
impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Matrix<T> {
        *self
    }
}

// SAFETY: an address; whoever calls a product promises what is behind it.
unsafe impl<T: Send> Send for Matrix<T> {}
// SAFETY: a shared `Matrix` gives the address, which is `Copy` anyway.
unsafe impl<T: Send> Sync for Matrix<T> {}

impl<T> Matrix<T> {
    /// Row-major with rows of `cols` elements.
    pub fn packed(slice: &[T], cols: usize) -> Matrix<T> {
        Matrix { ptr: slice.as_ptr().cast_mut(), row: cols as isize, col: 1 }
    }

    /// As `packed`, to be written.
    pub fn packed_mut(slice: &mut [T], cols: usize) -> Matrix<T> {
        Matrix { ptr: slice.as_mut_ptr(), row: cols as isize, col: 1 }
    }

    pub fn transposed(self) -> Matrix<T> {
        Matrix { ptr: self.ptr, row: self.col, col: self.row }
    }

    pub fn at(self, i: usize, j: usize) -> *mut T {
        self.ptr.wrapping_offset(i as isize * self.row + j as isize * self.col)
    }

    /// The part that starts at (i, j).
    pub fn from(self, i: usize, j: usize) -> Matrix<T> {
        Matrix { ptr: self.at(i, j), ..self }
    }
}

/// Sizes of a product: `[m, k] @ [k, n]`.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// Cost: operations below which the pool takes longer than it saves (two cores: 64³ runs at 222 GFLOP/s on one thread
/// and at 24 through rayon).
pub const PARALLEL_FLOPS: usize = 4_000_000;
/// Cost: operations from which on the cost of further parts is negligible.
const BALANCED_FLOPS: usize = 500_000_000;
/// Bound: minimal rows or columns of a part; thinner ones pack more than they multiply.
const SHORTEST_PART: usize = 32;
/// Parts begin at multiples of this many rows and columns: whole vectors, so that rows of all parts have the same
/// alignment.
const PART_EDGE: usize = 16;
/// Cost: multiplications below which plain loops are faster; choosing tiles and taking scratch memory costs about 50
/// ns.
const TINY: usize = 256;
/// Bytes of a matrix below which a matrix-vector product stays on one thread.
const VECTOR_BYTES: usize = 512 * 1024;
/// Bound: elements of a row from which on a few rows take long enough for a call of `guard::check`.
const LONG: usize = 1 << 16;

/// `c = a @ b`, or `c += a @ b`. With `k == 0` the product is zero.
///
/// # Safety
/// `a` is `[m, k]`, `b` `[k, n]`, readable (stride 0 is fine); `c` is `[m, n]`, writable, with distinct
/// elements, and does not overlap `a` or `b`.
#[inline]
pub unsafe fn product<T: Real>(threads: &Threads, s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>, accum: Accum) {
    if s.m.saturating_mul(s.n).saturating_mul(s.k) <= TINY {
        // SAFETY: the operands are those of this function, whose contract `tiny` has as well.
        return unsafe { tiny(s, a, b, c, accum) };
    }
    // SAFETY: the operands are those of this function's contract; transposing both sides leaves the product the same.
    unsafe {
        if s.n > 1 && s.n <= NARROW && s.m <= NARROW && s.k <= NARROW && b.col == 1 && c.col == 1 {
            return narrow(s, a, b, c, matches!(accum, Accum::Add));
        }
        if s.n == 1 && matrix_vector(threads, s.m, s.k, a, b.ptr, b.row, c.ptr, c.row, accum)
            || s.m == 1 && matrix_vector(threads, s.n, s.k, b.transposed(), a.ptr, a.col, c.ptr, c.col, accum)
            || s.k == 1 && outer(threads, s, a, b, c, accum)
        {
            return;
        }
        large(threads, s, a, b, c, accum);
    }
}

/// Bound: rows, columns and depth up to which a product of row-major matrices is computed row by row in registers: packing
/// takes longer.
const NARROW: usize = 16;

widths! {
    /// Called by `product` alone, under its contract, when no size is above `NARROW` and rows of `b` and `c` lie beside
    /// each other.
    fn narrow<T>(s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>, adds: bool) {
        for i in 0..s.m {
            // SAFETY: all positions are inside their matrices.
            unsafe {
                match s.n {
                    8 => row_of::<T, 8>(s.k, a.at(i, 0), a.col, b, c.at(i, 0), 8, adds),
                    n => row_of::<T, NARROW>(s.k, a.at(i, 0), a.col, b, c.at(i, 0), n, adds),
                }
            }
        }
    }
}

/// One row of `narrow`, of `n` elements in room for `N`.
///
/// # Safety
/// The row of `a` has `k` elements, `b` as many rows of `n` elements, and `c` has `n`.
#[inline(always)]
unsafe fn row_of<T: Real, const N: usize>(
    k: usize,
    a: *const T,
    step: isize,
    b: Matrix<T>,
    c: *mut T,
    n: usize,
    adds: bool,
) {
    let mut sums = [T::ZERO; N];
    // SAFETY: rows are as long as this function's contract says.
    unsafe {
        for l in 0..k {
            let (x, row) = (*a.offset(l as isize * step), b.at(l, 0));
            for (j, sum) in sums[..n].iter_mut().enumerate() {
                *sum += x * *row.add(j);
            }
        }
        for (j, &sum) in sums[..n].iter().enumerate() {
            *c.add(j) = if adds { *c.add(j) + sum } else { sum };
        }
    }
}

#[inline]
unsafe fn tiny<T: Real>(s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>, accum: Accum) {
    for i in 0..s.m {
        for j in 0..s.n {
            // SAFETY: all three positions are inside their matrices.
            unsafe {
                let mut sum = if matches!(accum, Accum::Add) { *c.at(i, j) } else { T::ZERO };
                let (mut x, mut y) = (a.at(i, 0), b.at(0, j));
                for _ in 0..s.k {
                    sum += *x * *y;
                    x = x.wrapping_offset(a.col);
                    y = y.wrapping_offset(b.row);
                }
                *c.at(i, j) = sum;
            }
        }
    }
}

unsafe fn large<T: Real>(threads: &Threads, s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>, accum: Accum) {
    // SAFETY: operands of a valid product are given, or those of a part of it, which no other part writes.
    let run = |s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>| unsafe { multiply(s, a, b, c, accum) };
    let (rows, cols) = grid(s, threads.count());
    if rows * cols == 1 {
        return run(s, a, b, c);
    }
    threads.split(rows * cols, 1, |range| {
        for part in range {
            let (i, j) = (cut(s.m, rows, part / cols), cut(s.n, cols, part % cols));
            run(
                Sizes { m: i.len(), n: j.len(), k: s.k },
                a.from(i.start, 0),
                b.from(0, j.start),
                c.from(i.start, j.start),
            );
        }
    });
}

/// Into how many parts along `m` and `n` a product is cut, so that each thread gets some.
/// Cost: two cores reach 1.9 times one core on whole parts, and 1.2 to 1.7 times where they share panels (measured with faer).
fn grid(s: Sizes, threads: usize) -> (usize, usize) {
    // Saturating: sizes of expanded operands can exceed any memory.
    let flops = s.m.saturating_mul(s.n).saturating_mul(s.k).saturating_mul(2);
    if threads == 1 || flops < PARALLEL_FLOPS {
        return (1, 1);
    }
    // Twice as many parts if that costs little, so that the load is balanced.
    let parts = if flops >= BALANCED_FLOPS { 2 * threads } else { threads };
    let (mut rows, mut cols) = (1, 1);
    while rows * cols < parts {
        let (tall, wide) = (s.m / (rows + 1) >= SHORTEST_PART, s.n / (cols + 1) >= SHORTEST_PART);
        match (tall, wide) {
            (false, false) => break,
            (true, true) if s.m * cols >= s.n * rows => rows += 1,
            (true, false) => rows += 1,
            _ => cols += 1,
        }
    }
    (rows, cols)
}

/// Part `i` of `n` cut into `parts`, at whole register tiles.
fn cut(n: usize, parts: usize, i: usize) -> std::ops::Range<usize> {
    let edge = |i: usize| if i == parts { n } else { n * i / parts / PART_EDGE * PART_EDGE };
    edge(i)..edge(i + 1)
}

widths! {
    /// `y[i] (+)= dot(row i of a, x)` for rows `a + i * lda`.
    fn dot_rows<T, S>(a: *const T, lda: isize, x: &[T], y: &mut [T], accum: Accum) {
        let mut i = 0;
        while i < y.len() {
            let mut found = [T::ZERO; 4];
            let rows = Ord::min(y.len() - i, 4);
            // SAFETY: `matrix_vector` gives rows of `x.len()` elements; `S` is the machine's.
            unsafe {
                let row = a.offset(i as isize * lda);
                if rows == 4 {
                    dots::<T, T::In<S>, 4>(row, lda, x, &mut found);
                } else {
                    for r in 0..rows {
                        dots::<T, T::In<S>, 1>(row.offset(r as isize * lda), lda, x, &mut found[r..]);
                    }
                }
            }
            for (y, &dot) in y[i..i + rows].iter_mut().zip(&found) {
                *y = if matches!(accum, Accum::Add) { *y + dot } else { dot };
            }
            i += rows;
        }
    }
}

/// Dot products of `ROWS` rows with one vector, which is read once for all of them.
///
/// # Safety
/// The machine has the vector's instructions; each row has `x.len()` elements.
#[inline(always)]
unsafe fn dots<T: Real, V: Vector<Elem = T>, const ROWS: usize>(a: *const T, lda: isize, x: &[T], out: &mut [T]) {
    // SAFETY: positions are below `x.len()`.
    unsafe {
        let mut sums = [[V::splat(T::ZERO); 2]; ROWS];
        let mut j = 0;
        while j + 2 * V::N <= x.len() {
            let (x0, x1) = (V::load(x.as_ptr().add(j)), V::load(x.as_ptr().add(j + V::N)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let row = a.offset(r as isize * lda).add(j);
                sums[0] = V::load(row).fma(x0, sums[0]);
                sums[1] = V::load(row.add(V::N)).fma(x1, sums[1]);
            }
            j += 2 * V::N;
        }
        for r in 0..ROWS {
            let mut sum = sums[r][0].add(sums[r][1]).sum();
            for (k, &x) in x.iter().enumerate().skip(j) {
                sum = (*a.offset(r as isize * lda + k as isize)).fma(x, sum);
            }
            out[r] = sum;
        }
    }
}

widths! {
    /// `y += sum of x[j] * column j`, columns at `a + j * lda`, each of `y.len()` elements.
    fn add_columns<T>(a: *const T, lda: isize, x: &[T], y: &mut [T]) {
        let rows = y.len();
        // SAFETY: `matrix_vector` gives columns of `y.len()` elements.
        let column = |j: usize| unsafe { std::slice::from_raw_parts(a.offset(j as isize * lda), rows) };
        let mut j = 0;
        // Eight columns at a time: one pass over `y` for eight over `a`.
        while j + 8 <= x.len() {
            let columns: [&[T]; 8] = std::array::from_fn(|c| column(j + c));
            for i in 0..rows {
                let mut sum = y[i];
                for c in 0..8 {
                    sum = columns[c][i].fma(x[j + c], sum);
                }
                y[i] = sum;
            }
            j += 8;
        }
        for (j, &x) in x.iter().enumerate().skip(j) {
            for (y, &a) in y.iter_mut().zip(column(j)) {
                *y = a.fma(x, *y);
            }
        }
    }
}

/// `y (+)= a @ x` at memory bandwidth; returns `false` and computes nothing for strides that it does not support.
#[allow(clippy::too_many_arguments)]
unsafe fn matrix_vector<T: Real>(
    threads: &Threads,
    m: usize,
    k: usize,
    a: Matrix<T>,
    x: *const T,
    x_stride: isize,
    y: *mut T,
    y_stride: isize,
    accum: Accum,
) -> bool {
    if !(a.col == 1 || a.row == 1) || y_stride != 1 && m > 1 {
        return false;
    }
    let packed;
    // SAFETY: `product` calls this with `x` of `k` elements and `y` of `m`.
    let (x, y) = unsafe {
        let x = if x_stride == 1 {
            std::slice::from_raw_parts(x, k)
        } else {
            let mut copy = Scratch::<T>::new(k);
            copy.iter_mut().enumerate().for_each(|(j, c)| *c = *x.offset(j as isize * x_stride));
            packed = copy;
            &packed
        };
        (x, std::slice::from_raw_parts_mut(y, m))
    };
    let bytes = m.saturating_mul(k).saturating_mul(size_of::<T>());
    let out = Shared::new(y);
    let by_rows = a.col == 1;
    let grain = if bytes < VECTOR_BYTES {
        m
    } else {
        (64 * 1024 / (k * size_of::<T>())).max(if k < LONG { 64 } else { 4 }).next_multiple_of(if k < LONG {
            16
        } else {
            4
        })
    };
    threads.split(m, grain, |range| {
        let from = Matrix::from(a, range.start, 0).ptr;
        // SAFETY: each thread has a range of `y` of its own.
        let y = unsafe { out.range(range) };
        if by_rows {
            dot_rows(from, a.row, x, y, accum);
        } else {
            if matches!(accum, Accum::Replace) {
                y.fill(T::ZERO);
            }
            add_columns(from, a.col, x, y);
        }
    });
    true
}

widths! {
    fn scaled_row<T>(x: T, b: &[T], c: &mut [T], accum: Accum) {
        match accum {
            Accum::Replace => c.iter_mut().zip(b).for_each(|(c, &b)| *c = x * b),
            Accum::Add => c.iter_mut().zip(b).for_each(|(c, &b)| *c = b.fma(x, *c)),
        }
    }
}

/// `c (+)= column @ row`; `false` for strides that it does not support.
unsafe fn outer<T: Real>(threads: &Threads, s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>, accum: Accum) -> bool {
    if c.col != 1 || b.col != 1 || s.n < 8 {
        return false;
    }
    // SAFETY: `product` calls this with one row of `n` elements for `b`, next to each other.
    let row = unsafe { std::slice::from_raw_parts(b.ptr.cast_const(), s.n) };
    let grain = (64 * 1024 / s.n).max(1);
    threads.split(s.m, grain, |range| {
        let (a, c) = (&a, &c);
        for i in range {
            // SAFETY: row `i` of `c` is contiguous and only this thread's.
            unsafe { scaled_row(*a.at(i, 0), row, std::slice::from_raw_parts_mut(c.at(i, 0), s.n), accum) };
        }
    });
    true
}
