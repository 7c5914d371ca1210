//! One thread's product of `f32` or `f64` matrices, by register tiles (the scheme of BLIS, van Zee and van de Geijn 2015).
//!
//! A tile of the result stays in registers while it iterates over a block of `k`: vectors of a row of `b` times single
//! elements of a column of `a`. Operands that are read often are packed first, so that tiles read them sequentially;
//! others are read in place. Knows nothing of threads.

use super::product::{Accum, Matrix, Sizes};
use crate::kernel::copy::host::transpose;
use crate::kernel::guard;
use crate::kernel::host::real::{Real, widths};
use crate::kernel::host::simd;
use crate::kernel::host::staging::Scratch;
use crate::kernel::host::vector::Vector;

/// Bound: length of a block of `k` (BLIS' KC): a panel of `b` then has at most 96 KiB and stays in the L2 cache.
pub(super) const KC: usize = 512;
/// Rows of `a` that are packed together (BLIS' MC), whole tiles: at most 384 KiB of `f64`, which stay in the L2 cache.
pub(super) const MC: usize = 96;
/// Bound: rows that are not packed, between two calls of `guard::check`; a multiple of the rows of every tile.
const UNPACKED_ROWS: usize = 1008;
/// Bound: panels of `b` that are packed together (BLIS' NC), about 4 MiB.
const NC_PANELS: usize = 64;
/// Number of panels, or of tiles along a panel, that read the same part of an operand, from which on packing it pays.
pub(super) const PACK_MIN_READS: usize = 6;

/// Rows and vectors of a tile for each vector level: as many accumulators as there are free registers.
pub(super) const fn shape(level: usize) -> (usize, usize) {
    match level {
        0 => (8, 3),
        1 => (6, 2),
        _ => (4, 1),
    }
}

/// Elements of a vector of each machine level (`simd`).
pub(super) const fn lanes<T>(level: usize) -> usize {
    let bytes = match level {
        0 => 64,
        1 => 32,
        _ => 16,
    };
    bytes / size_of::<T>()
}

/// `c = a @ b`, or `c += a @ b`.
///
/// # Safety
/// As `product::product`.
pub unsafe fn multiply<T: Real>(s: Sizes, a: Matrix<T>, b: Matrix<T>, c: Matrix<T>, accum: Accum) {
    if s.m * s.n == 0 {
        return;
    }
    // Tiles store rows: for a column-major result the transposed product is computed.
    let (s, a, b, c) = if c.row == 1 && c.col != 1 {
        (Sizes { m: s.n, n: s.m, k: s.k }, b.transposed(), a.transposed(), c.transposed())
    } else {
        (s, a, b, c)
    };
    let level = simd::level();
    let (rows, vectors) = shape(level);
    let width = vectors * lanes::<T>(level);
    let k_blocks = s.k.div_ceil(KC).max(1);
    let k_block = s.k.div_ceil(k_blocks);
    let pack_a = s.n > PACK_MIN_READS * width;
    let pack_b = b.col != 1 || s.m > PACK_MIN_READS * rows;
    let packed_columns = if pack_b { (NC_PANELS * width).min(s.n.next_multiple_of(width)) } else { width };
    let packed_rows = if pack_a { MC.min(s.m.next_multiple_of(rows)) } else { 0 };
    let mut packed_a = Scratch::<T>::new(packed_rows * k_block);
    let mut packed_b = Scratch::<T>::new(packed_columns * k_block);
    for j0 in (0..s.n).step_by(if pack_b { packed_columns } else { s.n }) {
        let n = if pack_b { (s.n - j0).min(packed_columns) } else { s.n };
        for block in 0..k_blocks {
            let k = block * k_block..((block + 1) * k_block).min(s.k);
            let accum = if block == 0 { accum } else { Accum::Add };
            let (a, b) = (a.from(0, k.start), b.from(k.start, j0));
            let k = k.len();
            // A last panel that is not full is always packed, with zeros.
            let first = if pack_b { 0 } else { n / width * width };
            if first < n {
                // SAFETY: the operands are those of `product` (this function's contract); the scratch has room for
                // whole panels of this block.
                unsafe { pack(b.from(0, first).transposed(), n - first, k, width, &mut packed_b) };
            }
            for i0 in (0..s.m).step_by(if pack_a { MC } else { UNPACKED_ROWS }) {
                let m = (s.m - i0).min(if pack_a { MC } else { UNPACKED_ROWS });
                if pack_a {
                    // SAFETY: the operands are those of `product` (this function's contract); the scratch has room for
                    // whole panels of `m` rows.
                    unsafe { pack(a.from(i0, 0), m, k, rows, &mut packed_a) };
                }
                for j in (0..n).step_by(width) {
                    guard::check_every(j / width, 8);
                    let panel = if j >= first {
                        let at = (j - first) * k;
                        Matrix { ptr: packed_b[at..].as_ptr().cast_mut(), row: width as isize, col: 1 }
                    } else {
                        b.from(0, j)
                    };
                    let left = if pack_a {
                        Matrix { ptr: packed_a.as_mut_ptr(), row: 1, col: rows as isize }
                    } else {
                        a.from(i0, 0)
                    };
                    let step = if pack_a { rows * k } else { 0 };
                    let to = c.from(i0, j0 + j);
                    let size = Sizes { m, n: (n - j).min(width), k };
                    column_of_tiles(size, left, step, panel, to, accum);
                }
            }
        }
    }
}

/// Lines of `k` elements as panels of `width` lines: `[panel][k][width]`, with zeros for lines that do not exist.
///
/// # Safety
/// The lines exist.
pub(super) unsafe fn pack<T: Real>(from: Matrix<T>, lines: usize, k: usize, width: usize, to: &mut [T]) {
    for first in (0..lines).step_by(width) {
        let count = (lines - first).min(width);
        let panel = &mut to[first * k..(first + width) * k];
        if count < width {
            panel.fill(T::ZERO);
        }
        let from = from.from(first, 0);
        if from.row == 1 {
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                // SAFETY: `from.row` is 1: column `p` is `count` consecutive elements of the operand.
                to[..count].copy_from_slice(unsafe { std::slice::from_raw_parts(from.at(0, p), count) });
            }
            continue;
        }
        let whole = if from.col == 1 { k / BLOCK * BLOCK } else { 0 };
        transpose(from, count, whole, width, panel);
        for p in whole..k {
            for line in 0..count {
                // SAFETY: an element of a line that exists.
                panel[p * width + line] = unsafe { *from.at(line, p) };
            }
        }
    }
}

/// Lines and elements that are transposed at a time.
const BLOCK: usize = 8;

widths! {
    at_each_level:
    /// Packs the first `k` elements of lines with contiguous elements; `k` is a multiple of `BLOCK`, `width` is even.
    fn transpose<T, S>(from: Matrix<T>, lines: usize, k: usize, width: usize, panel: &mut [T]) {
        for line in (0..lines).step_by(BLOCK) {
            // Lanes of this square that the panel has; lanes past the last line read another line, and are not used.
            let lanes = Ord::min(width - line, BLOCK);
            for p in (0..k).step_by(BLOCK) {
                let to = panel[p * width + line..(p + BLOCK - 1) * width + line + lanes].as_mut_ptr();
                let mut rows = [std::ptr::null::<T>(); BLOCK];
                for (i, row) in rows.iter_mut().enumerate() {
                    *row = from.at(Ord::min(line + i, lines - 1), p);
                }
                // SAFETY: eight elements of each row exist, and places for all lanes; levels below 2 have AVX2.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if S::LEVEL < 2 && size_of::<T>() == 4 && lanes == BLOCK {
                        let square = transpose::eight_avx2(rows.map(|row| row.cast()));
                        for (i, row) in square.iter().enumerate() {
                            to.add(i * width).cast::<[u32; BLOCK]>().write_unaligned(*row);
                        }
                        continue;
                    }
                    // Two halves of four lines, which fit into the registers.
                    for half in [0, 4] {
                        let mut square = [[T::ZERO; BLOCK]; 4];
                        for (i, row) in square.iter_mut().enumerate() {
                            *row = rows[half + i].cast::<[T; BLOCK]>().read_unaligned();
                        }
                        for (i, &first) in square[0].iter().enumerate() {
                            let to = to.add(i * width + half);
                            if half + 4 <= lanes {
                                let column = [first, square[1][i], square[2][i], square[3][i]];
                                to.cast::<[T; 4]>().write_unaligned(column);
                            } else if half + 2 <= lanes {
                                to.cast::<[T; 2]>().write_unaligned([first, square[1][i]]);
                            }
                        }
                    }
                }
            }
        }
    }
}

widths! {
    at_each_level:
    /// A column of tiles: `s.m` rows of `c`, up to a tile's width of columns.
    ///
    /// `step` is the distance from one tile's rows of `a` to the next one's if they are packed, else 0. Vectors of `b`
    /// are always whole.
    pub(super) fn column_of_tiles<T, S>(s: Sizes, a: Matrix<T>, step: usize, b: Matrix<T>, c: Matrix<T>, accum: Accum) {
        // SAFETY: `multiply` names operands that are there; `S` is the machine's.
        unsafe {
            // Remaining rows are computed by a tile of half the height if that is enough.
            let rest = if S::LEVEL == 0 && (1..=4).contains(&(s.m % 8)) { s.m % 8 } else { 0 };
            let whole = s.m - rest;
            let last = if step > 0 { Matrix { ptr: a.ptr.wrapping_add(whole / 8 * step), ..a } } else { a.from(whole, 0) };
            let (top, bottom) = (Sizes { m: whole, ..s }, Sizes { m: rest, ..s });
            let to = c.from(whole, 0);
            match (S::LEVEL, s.n.div_ceil(<T::In<S> as Vector>::N)) {
                (0, 1) => {
                    tiles::<T, T::In<S>, 8, 1>(top, a, step, b, c, accum);
                    tiles::<T, T::In<S>, 4, 1>(bottom, last, step, b, to, accum);
                }
                (0, 2) => {
                    tiles::<T, T::In<S>, 8, 2>(top, a, step, b, c, accum);
                    tiles::<T, T::In<S>, 4, 2>(bottom, last, step, b, to, accum);
                }
                (0, _) => {
                    tiles::<T, T::In<S>, 8, 3>(top, a, step, b, c, accum);
                    tiles::<T, T::In<S>, 4, 3>(bottom, last, step, b, to, accum);
                }
                (1, 1) => tiles::<T, T::In<S>, 6, 1>(s, a, step, b, c, accum),
                (1, _) => tiles::<T, T::In<S>, 6, 2>(s, a, step, b, c, accum),
                _ => tiles::<T, T::In<S>, 4, 1>(s, a, step, b, c, accum),
            }
        }
    }
}

/// As `column_of_tiles`, for tiles of `ROWS` by `VECTORS`.
///
/// # Safety
/// The operands are valid, `b` with whole vectors, and the machine has the vector's instructions.
#[inline(always)]
unsafe fn tiles<T: Real, V: Vector<Elem = T>, const ROWS: usize, const VECTORS: usize>(
    s: Sizes,
    a: Matrix<T>,
    step: usize,
    b: Matrix<T>,
    c: Matrix<T>,
    accum: Accum,
) {
    // SAFETY: operands and instructions are there (this function's contract); rows beyond the last are read as the
    // last, and not stored.
    unsafe {
        for i in (0..s.m).step_by(ROWS) {
            let rows = (s.m - i).min(ROWS);
            let from = if step > 0 { Matrix { ptr: a.ptr.add(i / ROWS * step), ..a } } else { a.from(i, 0) };
            let mut lines = [from.ptr.cast_const(); ROWS];
            for (r, line) in lines.iter_mut().enumerate() {
                *line = from.at(if step > 0 { r } else { r.min(rows - 1) }, 0);
            }
            // Prefetches the result. Cost: without it, large products wait for its cache lines, 3 to 9 % of their time.
            #[cfg(target_arch = "x86_64")]
            for (r, v) in (0..rows).flat_map(|r| (0..VECTORS).map(move |v| (r, v))) {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(c.at(i + r, v * V::N).cast_const().cast());
            }
            let mut sums = [[V::splat(T::ZERO); VECTORS]; ROWS];
            let (mut at, mut right) = (0, b.ptr.cast_const());
            for _ in 0..s.k {
                let mut columns = [V::splat(T::ZERO); VECTORS];
                for (v, column) in columns.iter_mut().enumerate() {
                    *column = V::load(right.add(v * V::N));
                }
                for (sums, line) in sums.iter_mut().zip(&lines) {
                    let x = V::splat(*line.offset(at));
                    for (sum, &column) in sums.iter_mut().zip(&columns) {
                        *sum = x.fma(column, *sum);
                    }
                }
                at += a.col;
                right = right.offset(b.row);
            }
            if c.col == 1 && s.n == VECTORS * V::N {
                for (r, sums) in sums.iter().enumerate() {
                    if r < rows {
                        for (v, &sum) in sums.iter().enumerate() {
                            let to = c.at(i + r, v * V::N);
                            (if matches!(accum, Accum::Add) { sum.add(V::load(to)) } else { sum }).store(to);
                        }
                    }
                }
            } else {
                // Through the stack, element by element.
                let mut tile = [[[T::ZERO; 16]; VECTORS]; ROWS];
                for (sums, row) in sums.iter().zip(&mut tile) {
                    for (sum, lanes) in sums.iter().zip(row) {
                        sum.store(lanes.as_mut_ptr());
                    }
                }
                for (r, row) in tile.iter().enumerate().take(rows) {
                    for j in 0..s.n {
                        let (to, sum) = (c.at(i + r, j), row[j / V::N][j % V::N]);
                        *to = if matches!(accum, Accum::Add) { *to + sum } else { sum };
                    }
                }
            }
        }
    }
}
