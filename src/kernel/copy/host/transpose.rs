//! Transposes: copies whose input is contiguous along another dim than the output.
//!
//! Tiles limit the pages in use to what the TLB holds, for any strides. Within a tile, blocks of one cache line by one
//! cache line are transposed, so that each line is read and written as a whole.

use crate::kernel::abi::Threads;
use crate::kernel::host::walk::{Ptr, StridedIter};

/// Columns and rows of the output in a tile. Bound: a tile reads from as many pages as it has columns; the more rows, the
/// more of each page is used at once, and the pages written to, one a row, still fit the second-level TLB.
const COLS: usize = 64;
const ROWS: usize = 256;
/// Fewer columns or rows than these are no blocks, and the other side of a tile is longer.
const NARROW: usize = 8;
const LONG: usize = 1024;

/// Copies if some outer dim of the input has a stride of 1 or -1; returns false otherwise. `walk` has the output's strides
/// first; the output's inner stride is 1.
///
/// # Safety
/// The walk's elements exist, those of the output are distinct and nobody else touches them.
pub unsafe fn transpose<T: Copy + Send + Sync + 'static>(
    from: Ptr<T>,
    to: Ptr<T>,
    walk: &StridedIter<2>,
    non_temporal: bool,
    threads: &Threads,
) -> bool {
    let last = walk.shape.len() - 1;
    let Some(unit) = (0..last).find(|&d| walk.strides[1][d].abs() == 1) else { return false };
    let (cols, rows) = (walk.shape[last], walk.shape[unit]);
    let (mut from, mut to, mut to_stride, from_stride) = (from, to, walk.strides[0][unit], walk.strides[1][last]);
    if walk.strides[1][unit] < 0 {
        // From the other end.
        let end = rows as isize - 1;
        (from, to, to_stride) = (Ptr::new(from.at(-end)), Ptr::new(to.at(end * to_stride)), -to_stride);
    }
    let keep = |list: &[isize]| -> Vec<isize> {
        list.iter().enumerate().filter(|&(d, _)| d != unit && d != last).map(|(_, &s)| s).collect()
    };
    let outer_shape: Vec<usize> = (0..last).filter(|&d| d != unit).map(|d| walk.shape[d]).collect();
    let outer = StridedIter::<2>::new(&outer_shape, [&keep(&walk.strides[0]), &keep(&walk.strides[1])]);
    let (tile_cols, tile_rows) = match (cols < NARROW, rows < NARROW) {
        (true, _) => (NARROW, LONG),
        (false, true) => (LONG, NARROW),
        (false, false) => (COLS, ROWS),
    };
    let (col_tiles, row_tiles) = (cols.div_ceil(tile_cols), rows.div_ceil(tile_rows));
    let tiles = outer.numel * col_tiles * row_tiles;
    let aligned = (to.at(0) as usize).is_multiple_of(32)
        && [to_stride].iter().chain(&outer.strides[0]).all(|&s| (s * size_of::<T>() as isize) % 32 == 0);
    threads.split(tiles, 1, |range| {
        for tile in range {
            // Tiles are numbered along the output's rows, so that consecutive tiles write adjacent lines.
            let (i0, rest) = (tile % col_tiles * tile_cols, tile / col_tiles);
            let (j0, which) = (rest % row_tiles * tile_rows, rest / row_tiles);
            let [t, f] = outer.offsets(which);
            let (ni, nj) = (tile_cols.min(cols - i0), tile_rows.min(rows - j0));
            let block = Block {
                from: from.at(f + i0 as isize * from_stride + j0 as isize),
                to: to.at(t + j0 as isize * to_stride + i0 as isize),
                from_stride,
                to_stride,
                cols: ni,
                rows: nj,
            };
            // SAFETY: tiles are disjoint and lie inside the walk.
            unsafe { block.copy(non_temporal && aligned) };
        }
        #[cfg(target_arch = "x86_64")]
        if non_temporal && aligned {
            // SAFETY: SSE is part of x86-64. Streamed stores become visible before other threads go on.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    });
    true
}

/// `to[j * cols + i] = from[i * from_stride + j]` for `i < cols`, `j < rows`, of elements of `size` bytes.
///
/// # Safety
/// These elements exist, and those of `to` are nobody else's.
#[inline(never)]
pub unsafe fn turn(from: *const u8, from_stride: isize, to: *mut u8, cols: usize, rows: usize, size: usize) {
    macro_rules! turn {
        ($T:ty) => {{
            let (from, to) = (from.cast::<$T>(), to.cast::<$T>());
            Block { from, to, from_stride, to_stride: cols as isize, cols, rows }.copy(false)
        }};
    }
    // SAFETY: the block names these elements (this function's contract).
    unsafe {
        match size {
            1 => turn!(u8),
            2 => turn!(u16),
            4 => turn!(u32),
            _ => turn!(u64),
        }
    }
}

/// `to[j * to_stride + i] = from[i * from_stride + j]` for `i < cols`, `j < rows`.
struct Block<T> {
    from: *const T,
    to: *mut T,
    from_stride: isize,
    to_stride: isize,
    cols: usize,
    rows: usize,
}

impl<T: Copy> Block<T> {
    fn part(&self, i: usize, j: usize, cols: usize, rows: usize) -> Block<T> {
        let from = self.from.wrapping_offset(i as isize * self.from_stride + j as isize);
        let to = self.to.wrapping_offset(j as isize * self.to_stride + i as isize);
        Block { from, to, cols, rows, ..*self }
    }

    unsafe fn copy(&self, non_temporal: bool) {
        // SAFETY: the block's elements exist; narrow ones have that many columns or rows.
        unsafe {
            match (self.cols, self.rows) {
                (2, _) => return self.few_cols::<2>(),
                (3, _) => return self.few_cols::<3>(),
                (4, _) => return self.few_cols::<4>(),
                (_, 2) => return self.few_rows::<2>(),
                (_, 3) => return self.few_rows::<3>(),
                (_, 4) => return self.few_rows::<4>(),
                _ => {}
            }
        }
        #[cfg(target_arch = "x86_64")]
        if size_of::<T>() == 4 && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature is there; a block of u32 has the size of a block of T.
            unsafe {
                let words = Block {
                    from: self.from.cast::<u32>(),
                    to: self.to.cast::<u32>(),
                    from_stride: self.from_stride,
                    to_stride: self.to_stride,
                    cols: self.cols,
                    rows: self.rows,
                };
                words.copy_avx2(non_temporal);
            }
            return;
        }
        let _ = non_temporal;
        let (cols, rows) = (self.cols / 8 * 8, self.rows / 8 * 8);
        for i in (0..cols).step_by(8) {
            for j in (0..rows).step_by(8) {
                // SAFETY: the eight rows and columns from (i, j) on lie inside the block, by the loops' bounds.
                unsafe { self.part(i, j, 8, 8).eight() };
            }
        }
        // SAFETY: `cols` and `rows` are at most the block's.
        unsafe { self.rest(cols, rows) };
    }

    /// `N` columns: the rows of the output are interleaved from as many lines.
    unsafe fn few_cols<const N: usize>(&self) {
        let lines: [*const T; N] = std::array::from_fn(|i| self.from.wrapping_offset(i as isize * self.from_stride));
        for j in 0..self.rows {
            // SAFETY: `j` is below the block's rows, each of which has `N` columns.
            unsafe {
                let row = lines.map(|line| *line.add(j));
                self.to.offset(j as isize * self.to_stride).cast::<[T; N]>().write(row);
            }
        }
    }

    /// `N` rows: the lines of the input are spread over as many.
    unsafe fn few_rows<const N: usize>(&self) {
        let rows: [*mut T; N] = std::array::from_fn(|j| self.to.wrapping_offset(j as isize * self.to_stride));
        for i in 0..self.cols {
            // SAFETY: `i` is below the block's columns, each of which has `N` rows.
            unsafe {
                let line = self.from.offset(i as isize * self.from_stride).cast::<[T; N]>().read();
                rows.iter().zip(line).for_each(|(row, value)| *row.add(i) = value);
            }
        }
    }

    /// Eight by eight through registers or the stack.
    #[inline(always)]
    unsafe fn eight(&self) {
        #[cfg(target_arch = "x86_64")]
        if size_of::<T>() != 4 {
            let line = |i: usize| self.from.wrapping_offset(i as isize * self.from_stride).cast::<u8>();
            let row = |j: usize| self.to.wrapping_offset(j as isize * self.to_stride).cast::<u8>();
            // SAFETY: the block has eight rows and columns.
            unsafe {
                match size_of::<T>() {
                    1 => return eight_bytes(line, row),
                    2 => return eight_halves(line, row),
                    8 => return eight_doubles(line, row),
                    _ => {}
                }
            }
        }
        // SAFETY: the block has eight rows and columns.
        unsafe {
            let square: [[T; 8]; 8] = std::array::from_fn(|i| {
                self.from.offset(i as isize * self.from_stride).cast::<[T; 8]>().read_unaligned()
            });
            for j in 0..8 {
                let line = square.map(|row| row[j]);
                self.to.offset(j as isize * self.to_stride).cast::<[T; 8]>().write_unaligned(line);
            }
        }
    }

    /// The remainder beyond the first `cols` columns and `rows` rows.
    #[inline(always)]
    unsafe fn rest(&self, cols: usize, rows: usize) {
        for j in 0..self.rows {
            let first = if j < rows { cols } else { 0 };
            for i in first..self.cols {
                // SAFETY: `i` and `j` are below the block's columns and rows, by the loops' bounds.
                unsafe {
                    *self.to.offset(j as isize * self.to_stride + i as isize) =
                        *self.from.offset(i as isize * self.from_stride + j as isize);
                }
            }
        }
    }
}

/// Eight by eight bytes, from eight lines to eight rows, by the vectors that every x86-64 has.
///
/// # Safety
/// Each line and each row has eight of them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn eight_bytes(line: impl Fn(usize) -> *const u8, row: impl Fn(usize) -> *mut u8) {
    use std::arch::x86_64::*;
    // SAFETY: eight bytes can be read and written at each address; SSE2 is part of x86-64.
    unsafe {
        let load = |i: usize| _mm_loadl_epi64(line(i).cast());
        let pairs: [__m128i; 4] = std::array::from_fn(|i| _mm_unpacklo_epi8(load(2 * i), load(2 * i + 1)));
        for (half, [low, high]) in [
            [_mm_unpacklo_epi16(pairs[0], pairs[1]), _mm_unpacklo_epi16(pairs[2], pairs[3])],
            [_mm_unpackhi_epi16(pairs[0], pairs[1]), _mm_unpackhi_epi16(pairs[2], pairs[3])],
        ]
        .into_iter()
        .enumerate()
        {
            let columns = [_mm_unpacklo_epi32(low, high), _mm_unpackhi_epi32(low, high)];
            for (k, two) in columns.into_iter().enumerate() {
                let first = half * 4 + k * 2;
                _mm_storel_epi64(row(first).cast(), two);
                _mm_storel_epi64(row(first + 1).cast(), _mm_unpackhi_epi64(two, two));
            }
        }
    }
}

/// Eight by eight elements of two bytes, as `eight_bytes`.
///
/// # Safety
/// As `eight_bytes`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn eight_halves(line: impl Fn(usize) -> *const u8, row: impl Fn(usize) -> *mut u8) {
    use std::arch::x86_64::*;
    // SAFETY: eight elements can be read and written at each address; SSE2 is part of x86-64.
    unsafe {
        let r: [__m128i; 8] = std::array::from_fn(|i| _mm_loadu_si128(line(i).cast()));
        for half in 0..2 {
            let pair = |i: usize| match half {
                0 => _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]),
                _ => _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]),
            };
            let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
            let top = [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
            let bottom = [_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d)];
            for k in 0..2 {
                let first = half * 4 + k * 2;
                _mm_storeu_si128(row(first).cast(), _mm_unpacklo_epi64(top[k], bottom[k]));
                _mm_storeu_si128(row(first + 1).cast(), _mm_unpackhi_epi64(top[k], bottom[k]));
            }
        }
    }
}

/// Eight by eight elements of eight bytes, as `eight_bytes`.
///
/// # Safety
/// As `eight_bytes`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn eight_doubles(line: impl Fn(usize) -> *const u8, row: impl Fn(usize) -> *mut u8) {
    use std::arch::x86_64::*;
    for j in (0..8).step_by(2) {
        for i in (0..8).step_by(2) {
            // SAFETY: eight elements can be read and written at each address; SSE2 is part of x86-64.
            unsafe {
                let (a, b) =
                    (_mm_loadu_si128(line(i).add(8 * j).cast()), _mm_loadu_si128(line(i + 1).add(8 * j).cast()));
                _mm_storeu_si128(row(j).add(8 * i).cast(), _mm_unpacklo_epi64(a, b));
                _mm_storeu_si128(row(j + 1).add(8 * i).cast(), _mm_unpackhi_epi64(a, b));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Block<u32> {
    /// Blocks of 16 by 16: whole cache lines on both sides.
    #[target_feature(enable = "avx2")]
    unsafe fn copy_avx2(&self, non_temporal: bool) {
        let (cols, rows) = (self.cols / 16 * 16, self.rows / 16 * 16);
        for j in (0..rows).step_by(16) {
            for i in (0..cols).step_by(16) {
                // SAFETY: the sixteen rows and columns from (i, j) on lie inside the block, by the loops' bounds.
                unsafe { self.part(i, j, 16, 16).sixteen(non_temporal) };
            }
        }
        // SAFETY: `cols` and `rows` are at most the block's.
        unsafe { self.rest(cols, rows) };
    }

    #[target_feature(enable = "avx2")]
    unsafe fn sixteen(&self, non_temporal: bool) {
        use std::arch::x86_64::*;
        // SAFETY: the block has sixteen rows and columns; the caller of `transpose` checked the alignment.
        unsafe {
            let mut lines = [[_mm256_setzero_si256(); 2]; 16];
            for i in [0, 8] {
                for j in [0, 8] {
                    let at = self.from.offset(i as isize * self.from_stride + j as isize);
                    let square = transpose_8x8_avx2(std::array::from_fn(|k| {
                        _mm256_loadu_si256(at.offset(k as isize * self.from_stride).cast())
                    }));
                    (0..8).for_each(|k| lines[j + k][i / 8] = square[k]);
                }
            }
            for (j, line) in lines.into_iter().enumerate() {
                let to = self.to.offset(j as isize * self.to_stride).cast::<__m256i>();
                if non_temporal {
                    _mm256_stream_si256(to, line[0]);
                    _mm256_stream_si256(to.add(1), line[1]);
                } else {
                    _mm256_storeu_si256(to, line[0]);
                    _mm256_storeu_si256(to.add(1), line[1]);
                }
            }
        }
    }
}

/// The three rounds of unpack instructions that transpose 8 by 8 words.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn transpose_8x8_avx2(r: [std::arch::x86_64::__m256i; 8]) -> [std::arch::x86_64::__m256i; 8] {
    use std::arch::x86_64::*;
    let a: [__m256i; 8] = std::array::from_fn(|i| {
        let (x, y) = (r[i / 2 * 2], r[i / 2 * 2 + 1]);
        if i % 2 == 0 { _mm256_unpacklo_epi32(x, y) } else { _mm256_unpackhi_epi32(x, y) }
    });
    // b[4 * h + c] holds column c (and c + 4 in the upper half) of rows 4h to 4h + 3.
    let b: [__m256i; 8] = std::array::from_fn(|i| {
        let (h, c) = (i / 4 * 4, i % 4);
        let (x, y) = (a[h + c / 2], a[h + 2 + c / 2]);
        if c % 2 == 0 { _mm256_unpacklo_epi64(x, y) } else { _mm256_unpackhi_epi64(x, y) }
    });
    std::array::from_fn(|i| {
        if i < 4 {
            _mm256_permute2x128_si256::<0x20>(b[i], b[i + 4])
        } else {
            _mm256_permute2x128_si256::<0x31>(b[i - 4], b[i])
        }
    })
}

/// Eight words at each of eight addresses, transposed.
///
/// # Safety
/// The words exist, and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub unsafe fn eight_avx2(rows: [*const u32; 8]) -> [[u32; 8]; 8] {
    use std::arch::x86_64::*;
    // SAFETY: eight words can be read from each row, and the processor has AVX2 (this function's contract); a vector is
    // as large as eight words.
    unsafe { std::mem::transmute(transpose_8x8_avx2(rows.map(|row| _mm256_loadu_si256(row.cast())))) }
}
