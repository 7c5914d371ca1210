//! Products of `bf16` matrices with AVX-512 BF16, whose instruction multiplies pairs of elements and accumulates in
//! `f32`.
//!
//! Both operands are packed into panels of pairs along `k`; a register tile is 8 rows by 48 columns and runs over all
//! of `k`, so sums are rounded to `bf16` once, at the end. Subnormal inputs count as zero, as the instruction defines.

use super::product::{Matrix, Sizes};
use crate::kernel::abi::Threads;
use crate::kernel::copy::host::transpose;
use crate::kernel::fused::host::f32_to_bf16;
use crate::kernel::host::staging::{Scratch, Shared};
use half::bf16;

/// Rows and columns of a register tile.
const ROWS: usize = 8;
const COLS: usize = 48;
/// Panels of rows in a task: with 1024 columns of `k` they stay in the L2 cache.
const PANELS_PER_TASK: usize = 16;
/// Lines and pairs that are transposed at a time.
const BLOCK: usize = 8;

/// Whether the machine has the instruction.
pub fn applies() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        crate::kernel::host::simd::level() == 0 && std::arch::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// `c = a @ b + bias`, with one bias for each column.
///
/// # Safety
/// As `product::product`, and `applies` has said yes.
pub unsafe fn product_bf16(
    threads: &Threads,
    s: Sizes,
    a: Matrix<bf16>,
    b: Matrix<bf16>,
    c: Matrix<bf16>,
    bias: Option<&[f32]>,
) {
    let (panels_a, panels_b) = (s.m.div_ceil(ROWS), s.n.div_ceil(COLS));
    let pairs = s.k.div_ceil(2);
    let mut packed_a = Scratch::<u32>::new(panels_a * pairs * ROWS);
    let mut packed_b = Scratch::<u32>::new(panels_b * pairs * COLS);
    let (to_a, to_b) = (Shared::new(&mut packed_a), Shared::new(&mut packed_b));
    let grain = |width: usize| (32 * 1024 / (pairs * width).max(1)).max(1);
    threads.split(panels_a, grain(ROWS), |range| {
        for panel in range {
            // SAFETY: panels are disjoint; the operand has `m` rows of `k`.
            unsafe {
                let to = to_a.range(panel * pairs * ROWS..(panel + 1) * pairs * ROWS);
                pack::<ROWS>(a.from(panel * ROWS, 0), (s.m - panel * ROWS).min(ROWS), s.k, to);
            }
        }
    });
    threads.split(panels_b, grain(COLS), |range| {
        for panel in range {
            // SAFETY: `b` has `n` columns of `k` elements; panels of the scratch do not overlap.
            unsafe {
                let to = to_b.range(panel * pairs * COLS..(panel + 1) * pairs * COLS);
                let columns = b.from(0, panel * COLS).transposed();
                pack::<COLS>(columns, (s.n - panel * COLS).min(COLS), s.k, to);
            }
        }
    });
    let (packed_a, packed_b) = (&packed_a, &packed_b);
    let blocks = panels_a.div_ceil(PANELS_PER_TASK);
    let grain = (2_000_000 / (2 * PANELS_PER_TASK * ROWS * COLS * s.k).max(1)).max(1);
    threads.split(panels_b * blocks, grain, |range| {
        let mut tile = [[0f32; COLS]; ROWS];
        for task in range {
            let (j, block) = (task / blocks, task % blocks);
            let right = &packed_b[j * pairs * COLS..(j + 1) * pairs * COLS];
            for i in block * PANELS_PER_TASK..((block + 1) * PANELS_PER_TASK).min(panels_a) {
                let left = &packed_a[i * pairs * ROWS..(i + 1) * pairs * ROWS];
                let size = [(s.m - i * ROWS).min(ROWS), (s.n - j * COLS).min(COLS)];
                let bias = bias.map(|bias| &bias[j * COLS..j * COLS + size[1]]);
                // SAFETY: `applies` has said yes; tiles are disjoint parts of `c`.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    register_tile(left, right, &mut tile);
                    store(&tile, c.from(i * ROWS, j * COLS), size, bias);
                }
            }
        }
    });
}

/// `lines` rows of `k` elements as pairs: `[k / 2][WIDTH]`, zeros where there is no row or element.
///
/// # Safety
/// The rows exist.
unsafe fn pack<const WIDTH: usize>(from: Matrix<bf16>, lines: usize, k: usize, to: &mut [u32]) {
    let from = Matrix { ptr: from.ptr.cast::<u16>(), row: from.row, col: from.col };
    // SAFETY: `line` and `i` name an element.
    let element = |line: usize, i: usize| unsafe { *from.at(line, i) as u32 };
    if lines < WIDTH {
        to.fill(0);
    }
    let pairs = k / 2;
    if from.col == 1 {
        let word = |line: usize, pair: usize| from.at(line, 0).cast::<u32>().wrapping_add(pair);
        let none = [0u32; BLOCK];
        for first in (0..WIDTH).step_by(BLOCK) {
            for pair in (0..pairs / BLOCK * BLOCK).step_by(BLOCK) {
                let row = |i: usize| if first + i < lines { word(first + i, pair) } else { none.as_ptr() };
                // SAFETY: eight pairs of each of eight lines exist, or are `none`; `applies` has said that the processor
                // has AVX2.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    let square = transpose::eight_avx2(std::array::from_fn(row));
                    for (i, line) in square.into_iter().enumerate() {
                        to[(pair + i) * WIDTH + first..][..BLOCK].copy_from_slice(&line);
                    }
                }
            }
            for pair in pairs / BLOCK * BLOCK..pairs {
                for i in 0..BLOCK.min(lines.saturating_sub(first)) {
                    // SAFETY: both elements of the pair exist, one after the other.
                    to[pair * WIDTH + first + i] = unsafe { word(first + i, pair).read_unaligned() };
                }
            }
        }
    } else {
        for (pair, to) in to.chunks_exact_mut(WIDTH).enumerate().take(pairs) {
            if from.row == 1 {
                // SAFETY: `lines` elements lie side by side.
                let row = |i: usize| unsafe { std::slice::from_raw_parts(from.at(0, i).cast_const(), lines) };
                // SAFETY: `applies` has said that the processor has AVX-512.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    interleave(row(2 * pair), row(2 * pair + 1), to);
                }
            } else {
                for (line, to) in to.iter_mut().enumerate().take(lines) {
                    *to = element(line, 2 * pair) | element(line, 2 * pair + 1) << 16;
                }
            }
        }
    }
    if k % 2 == 1 {
        let last = &mut to[pairs * WIDTH..(pairs + 1) * WIDTH];
        last.fill(0);
        last.iter_mut().enumerate().take(lines).for_each(|(line, to)| *to = element(line, k - 1));
    }
}

/// Pairs of two lines.
///
/// # Safety
/// The processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn interleave(low: &[u16], high: &[u16], to: &mut [u32]) {
    for ((to, &low), &high) in to.iter_mut().zip(low).zip(high) {
        *to = low as u32 | (high as u32) << 16;
    }
}

/// `tile[r][c] = sum over pairs of left[pair][r] . right[pair][c]`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn register_tile(left: &[u32], right: &[u32], tile: &mut [[f32; COLS]; ROWS]) {
    use std::arch::x86_64::*;
    // SAFETY: panels are whole; a vector of 32 `bf16` has the bytes of one of 16 words.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); 3]; ROWS];
        let mut b = right.as_ptr();
        for a in left.chunks_exact(ROWS) {
            let columns: [__m512bh; 3] = [
                std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(b.cast())),
                std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(b.add(16).cast())),
                std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(b.add(32).cast())),
            ];
            for (sums, &a) in sums.iter_mut().zip(a) {
                let a = std::mem::transmute::<__m512i, __m512bh>(_mm512_set1_epi32(a as i32));
                sums[0] = _mm512_dpbf16_ps(sums[0], a, columns[0]);
                sums[1] = _mm512_dpbf16_ps(sums[1], a, columns[1]);
                sums[2] = _mm512_dpbf16_ps(sums[2], a, columns[2]);
            }
            b = b.add(COLS);
        }
        for (sums, row) in sums.iter().zip(tile) {
            for (v, &sum) in sums.iter().enumerate() {
                _mm512_storeu_ps(row.as_mut_ptr().add(16 * v), sum);
            }
        }
    }
}

/// Rounds the first rows and columns of a tile into `c`.
///
/// # Safety
/// `c` has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store(tile: &[[f32; COLS]; ROWS], c: Matrix<bf16>, [rows, cols]: [usize; 2], bias: Option<&[f32]>) {
    for (i, row) in tile.iter().enumerate().take(rows) {
        let mut sums = *row;
        if let Some(bias) = bias {
            for (sum, &bias) in sums.iter_mut().zip(bias) {
                *sum += bias;
            }
        }
        let mut rounded = [0u16; COLS];
        for j in 0..COLS {
            rounded[j] = f32_to_bf16(sums[j]);
        }
        // SAFETY: `c` has these rows and columns, and nobody else touches them (this function's contract).
        unsafe {
            if c.col == 1 {
                std::ptr::copy_nonoverlapping(rounded.as_ptr(), c.at(i, 0).cast(), cols);
            } else {
                for (j, &bits) in rounded.iter().enumerate().take(cols) {
                    *c.at(i, j) = bf16::from_bits(bits);
                }
            }
        }
    }
}
