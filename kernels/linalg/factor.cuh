// Blocked Cholesky and LU factorizations, triangular solves, and what is computed from their results. T: linalg/panel.cuh.
//
// Triangular systems are solved forward, as lower ones. An upper one is the same system counted from its end, with negative
// strides.
#include "common/reduce.cuh"
#include "linalg/panel.cuh"

// Forward substitution for one right-hand side, in place; `stride` is the distance of its elements.
TS_FN void ts_forward_substitution(const T (*triangle)[TS_PANEL + 1], T* pivot_row, ts_i64 stride, int n, bool unit) {
    T x[TS_PANEL];
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++) x[r] = r < n ? pivot_row[r * stride] : T(0);
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++) {
        T v = x[r];
#pragma unroll
        for (int p = 0; p < r; p++) v = ts_fma(-triangle[r][p], x[p], v);
        x[r] = unit ? v : v / triangle[r][r];
    }
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++)
        if (r < n) pivot_row[r * stride] = x[r];
}

// trsm: solves a x = b in place for a lower triangle a of n <= 32 rows and k right-hand sides. flag: a has a unit diagonal.
TS_KERNEL void __launch_bounds__(128) ts_trsm(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    ts_load_triangle(triangle, g.a + blockIdx.x * g.a_batch, g.a_row, g.a_column, (int)g.n);
    __syncthreads();
    const ts_i64 column = (ts_i64)blockIdx.y * blockDim.x + threadIdx.x;
    if (column < g.k)
        ts_forward_substitution(triangle, g.b + blockIdx.x * g.b_batch + column * g.b_column, g.b_row, (int)g.n, g.flag != 0);
}

// The same for a lower triangle of any number of rows: a block solves for SIDES right-hand sides, panel after panel. What the
// solution so far takes from a panel is summed by 8 warps, a lane for each row, over tiles of a in shared memory; then a warp
// substitutes for each side.
static const int SIDES = 4, TILE = sizeof(T) == 8 ? 64 : 128, TILE_ITEMS = TS_PANEL * TILE / 256;
static const int SIDE_ITEMS = (TILE * SIDES + 255) / 256;

struct ts_trsm_tile {
    T a[TILE_ITEMS], x[SIDE_ITEMS];
    // Columns from `from` on of the panel, before column `first`, and what they are multiplied with.
    TS_METHOD void load(const Args& g, const T* a_from, const T* b, ts_i64 first, ts_i64 from, int count) {
        const bool row_major = ts_dense(g.a_column);
#pragma unroll
        for (int r = 0; r < TILE_ITEMS; r++) {
            const int e = threadIdx.x + r * 256;
            const ts_i64 row = first + (row_major ? e / TILE : e % TS_PANEL), k = from + (row_major ? e % TILE : e / TS_PANEL);
            a[r] = row < g.n && k < first ? a_from[row * g.a_row + k * g.a_column] : T(0);
        }
#pragma unroll
        for (int r = 0; r < SIDE_ITEMS; r++) {
            const int e = threadIdx.x + r * 256, side = e % SIDES;
            const ts_i64 k = from + e / SIDES;
            x[r] = e < TILE * SIDES && k < first && side < count ? b[k * g.b_row + side * g.b_column] : T(0);
        }
    }
    TS_METHOD void store(const Args& g, T (*to)[TILE + 1], T (*sides)[SIDES]) const {
        const bool row_major = ts_dense(g.a_column);
#pragma unroll
        for (int r = 0; r < TILE_ITEMS; r++) {
            const int e = threadIdx.x + r * 256;
            to[row_major ? e / TILE : e % TS_PANEL][row_major ? e % TILE : e / TS_PANEL] = a[r];
        }
#pragma unroll
        for (int r = 0; r < SIDE_ITEMS; r++) {
            const int e = threadIdx.x + r * 256;
            if (e < TILE * SIDES) sides[e / SIDES][e % SIDES] = x[r];
        }
    }
};

TS_KERNEL void __launch_bounds__(256, 2) ts_trsm_whole(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    __shared__ T columns[TS_PANEL][TILE + 1];
    __shared__ T sides[TILE][SIDES];
    __shared__ T parts[8][SIDES][TS_PANEL];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const ts_i64 left = g.k - (ts_i64)blockIdx.y * SIDES;
    const int count = left < SIDES ? (int)left : SIDES;
    const T* a = g.a + blockIdx.x * g.a_batch;
    T* b = g.b + blockIdx.x * g.b_batch + (ts_i64)blockIdx.y * SIDES * g.b_column;
    for (ts_i64 first = 0; first < g.n; first += TS_PANEL) {
        const int height = g.n - first < TS_PANEL ? (int)(g.n - first) : TS_PANEL;
        ts_load_triangle(triangle, a + first * (g.a_row + g.a_column), g.a_row, g.a_column, height);
        T taken[SIDES];
#pragma unroll
        for (int c = 0; c < SIDES; c++) taken[c] = 0;
        ts_trsm_tile tile;
        if (first > 0) tile.load(g, a, b, first, 0, count);
        for (ts_i64 from = 0; from < first; from += TILE) {
            __syncthreads();
            tile.store(g, columns, sides);
            __syncthreads();
            // The next tile is under way while this one is summed.
            if (from + TILE < first) tile.load(g, a, b, first, from + TILE, count);
#pragma unroll
            for (int k = 0; k < TILE / 8; k++)
#pragma unroll
                for (int c = 0; c < SIDES; c++)
                    taken[c] = ts_fma(columns[lane][warp * (TILE / 8) + k], sides[warp * (TILE / 8) + k][c], taken[c]);
        }
#pragma unroll
        for (int c = 0; c < SIDES; c++) parts[warp][c][lane] = taken[c];
        __syncthreads();
        if (warp < count) {
            T* x = b + (first + lane) * g.b_row + warp * g.b_column;
            T value = lane < height ? *x : T(0), sum = 0;
#pragma unroll
            for (int w = 0; w < 8; w++) sum += parts[w][warp][lane];
            value -= sum;
            const T inverse = g.flag ? T(1) : T(1) / triangle[lane][lane];
#pragma unroll
            for (int j = 0; j < TS_PANEL; j++) {
                const T solved = __shfl_sync(0xffffffffu, value * inverse, j);
                if (lane > j) value = ts_fma(-triangle[lane][j], solved, value);
            }
            if (lane < height) *x = value * inverse;
        }
        __syncthreads();
    }
}

// potf2: the Cholesky factor of a, n <= 32 rows, in place, by one warp; a lane has a row. info: the order of the first
// leading minor that is not positive-definite, including the `panel_start` rows before.
TS_KERNEL void __launch_bounds__(32) ts_potf2(const __grid_constant__ Args g) {
    const int lane = threadIdx.x, n = (int)g.n;
    T* a = g.a + blockIdx.x * g.a_batch + lane * g.a_row;
    T row[TS_PANEL];
#pragma unroll
    for (int c = 0; c < TS_PANEL; c++) row[c] = lane < n && c <= lane ? a[c * g.a_column] : T(c == lane);
    int info = 0;
#pragma unroll
    for (int j = 0; j < TS_PANEL; j++) {
        const T pivot = __shfl_sync(0xffffffffu, row[j], j);
        if (info == 0 && !(pivot > 0 && pivot < ts_inf(T()))) info = (int)g.panel_start + j + 1;
        const T root = ts_sqrt(pivot);
        row[j] = lane == j ? root : row[j] / root;
#pragma unroll
        for (int c = j + 1; c < TS_PANEL; c++) row[c] = ts_fma(-row[j], __shfl_sync(0xffffffffu, row[j], c), row[c]);
    }
#pragma unroll
    for (int c = 0; c < TS_PANEL; c++)
        if (lane < n && c <= lane) a[c * g.a_column] = row[c];
    if (lane == 0 && (g.panel_start == 0 || g.info[blockIdx.x] == 0)) g.info[blockIdx.x] = info;
}
// Zeroes the upper triangle of a (n by n, column-major), and all of a matrix that has no factor.
TS_KERNEL void __launch_bounds__(256) ts_cholesky_finish(const __grid_constant__ Args g) {
    const ts_i32 info = g.info[blockIdx.x];
    T* a = g.a + blockIdx.x * g.a_batch;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.n * g.n; i += (ts_i64)gridDim.y * 256)
        if (info || i % g.n < i / g.n) a[i] = 0;
    if (info && g.fault && blockIdx.y == 0 && threadIdx.x == 0)
        ts_fault(g.fault, TS_NOT_POSITIVE, 0, blockIdx.x, info, g.n);
}

// Finds the first pivot on the diagonal of a factor of Cholesky that is no positive number, where info has found none.
TS_KERNEL void __launch_bounds__(256) ts_check_pivots(const __grid_constant__ Args g) {
    __shared__ int first;
    if (threadIdx.x == 0) first = 0x7fffffff;
    __syncthreads();
    const T* a = g.a + blockIdx.x * g.a_batch;
    for (int j = threadIdx.x; j < (int)g.n; j += 256) {
        const T pivot = a[j * (g.a_column + 1)];
        if (!(pivot > 0 && pivot < ts_inf(T()))) atomicMin(&first, j + 1);
    }
    __syncthreads();
    if (threadIdx.x == 0 && g.info[blockIdx.x] == 0 && first != 0x7fffffff) g.info[blockIdx.x] = first;
}

// The larger of two pivot candidates; of equal ones the upper row.
TS_FN void ts_max_pivot(T& max_abs, int& pivot_row, T abs, int row) {
    if (abs > max_abs || (abs == max_abs && row < pivot_row)) max_abs = abs, pivot_row = row;
}
// getf2: LU of n <= 32 columns from column `panel_start` on, of a column-major matrix of m rows. A column without a nonzero
// pivot is left as it is. k: pivots of a matrix.
TS_KERNEL void __launch_bounds__(1024) ts_getf2(const __grid_constant__ Args g) {
    __shared__ T pivot_values[TS_PANEL], warp_max[32];
    __shared__ int warp_row[32];
    const int t = threadIdx.x, step = blockDim.x, m = (int)g.m, width = (int)g.n, panel_start = (int)g.panel_start;
    const ts_i64 ld = g.a_column;
    T* panel = g.a + blockIdx.x * g.a_batch + panel_start * ld;
    ts_i32 *rows = g.rows + (ts_i64)blockIdx.x * m, *pivots = g.pivots + blockIdx.x * g.k;
    int info = panel_start > 0 ? g.info[blockIdx.x] : 0, swaps = panel_start > 0 ? g.swaps[blockIdx.x] : 0;
    if (panel_start == 0)
        for (int r = t; r < m; r += step) rows[r] = r;
    T max_abs = -1;
    int pivot_row = panel_start;
    for (int r = panel_start + t; r < m && width > 0; r += step) ts_max_pivot(max_abs, pivot_row, ts_abs(panel[r]), r);
    for (int j = 0; j < width; j++) {
        const int row = panel_start + j;
        for (int d = 16; d > 0; d /= 2) {
            const T abs = __shfl_xor_sync(0xffffffffu, max_abs, d);
            ts_max_pivot(max_abs, pivot_row, abs, __shfl_xor_sync(0xffffffffu, pivot_row, d));
        }
        if (t % 32 == 0) warp_max[t / 32] = max_abs, warp_row[t / 32] = pivot_row;
        __syncthreads();
        max_abs = warp_max[0], pivot_row = warp_row[0];
        for (int w = 1; w < step / 32; w++) ts_max_pivot(max_abs, pivot_row, warp_max[w], warp_row[w]);
        if (t < width) {
            const T x = panel[t * ld + pivot_row];
            panel[t * ld + pivot_row] = panel[t * ld + row];
            panel[t * ld + row] = x;
            pivot_values[t] = x;
        }
        if (t == 0) {
            pivots[row] = pivot_row;
            if (pivot_row != row) {
                const int swapped = rows[pivot_row];
                rows[pivot_row] = rows[row];
                rows[row] = swapped;
                swaps++;
            }
            if (max_abs == 0 && info == 0) info = row + 1;
        }
        __syncthreads();
        const T pivot = pivot_values[j];
        max_abs = -1, pivot_row = row + 1;
        for (int r = row + 1 + t; r < m; r += step) {
            if (pivot != 0) {
                const T factor = panel[j * ld + r] / pivot;
                panel[j * ld + r] = factor;
                for (int c = j + 1; c < width; c += 8) {
                    T x[8];
#pragma unroll
                    for (int i = 0; i < 8; i++) x[i] = c + i < width ? panel[(c + i) * ld + r] : T(0);
#pragma unroll
                    for (int i = 0; i < 8; i++)
                        if (c + i < width) panel[(c + i) * ld + r] = ts_fma(-factor, pivot_values[c + i], x[i]);
                }
            }
            if (j + 1 < width) ts_max_pivot(max_abs, pivot_row, ts_abs(panel[(j + 1) * ld + r]), r);
        }
    }
    if (t == 0) g.info[blockIdx.x] = info, g.swaps[blockIdx.x] = swaps;
}
// A library's pivots, i64 from 1 on in b, as ours: `pivots`, `rows` and `swaps`. m: rows; k: pivots of a matrix.
TS_KERNEL void __launch_bounds__(256) ts_take_pivots(const __grid_constant__ Args g) {
    __shared__ int order[8192];
    const ts_i64* from = (const ts_i64*)g.b + blockIdx.x * g.k;
    ts_i32 *rows = g.rows + blockIdx.x * g.m, *pivots = g.pivots + blockIdx.x * g.k;
    const bool fits = g.m <= 8192;
    int* const at = fits ? order : rows;
    for (int r = threadIdx.x; r < (int)g.m; r += 256) at[r] = r;
    for (int j = threadIdx.x; j < (int)g.k; j += 256) pivots[j] = (ts_i32)from[j] - 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        int swaps = 0;
        for (int j = 0; j < (int)g.k; j++) {
            const int other = pivots[j], kept = at[j];
            at[j] = at[other];
            at[other] = kept;
            swaps += other != j;
        }
        g.swaps[blockIdx.x] = swaps;
    }
    __syncthreads();
    for (int r = threadIdx.x; r < (int)g.m && fits; r += 256) rows[r] = order[r];
}
// Identity matrices of n rows in c.
TS_KERNEL void __launch_bounds__(256) ts_identity(const __grid_constant__ Args g) {
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.n * g.n; i += (ts_i64)gridDim.y * 256)
        g.c[blockIdx.x * g.n * g.n + i] = T(i % (g.n + 1) == 0);
}
// laswp and trsm: applies a panel's row exchanges to the other columns, and solves with its triangle the columns to its
// right. n: columns of the matrix; b_row: columns of the panel.
TS_KERNEL void __launch_bounds__(128) ts_laswp_trsm(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    const int width = (int)g.b_row;
    T* a = g.a + blockIdx.x * g.a_batch;
    ts_load_triangle(triangle, a + g.panel_start * (g.a_column + 1), 1, g.a_column, width);
    __syncthreads();
    ts_i64 column = (ts_i64)blockIdx.y * blockDim.x + threadIdx.x;
    if (column >= g.panel_start) column += width;
    if (column >= g.n) return;
    const ts_i32* pivots = g.pivots + blockIdx.x * g.k + g.panel_start;
    T *pivot_row = a + column * g.a_column, *pivot_values = pivot_row + g.panel_start;
    for (int i = 0; i < width; i++) {
        const T x = pivot_row[pivots[i]];
        pivot_row[pivots[i]] = pivot_values[i];
        pivot_values[i] = x;
    }
    if (column > g.panel_start) ts_forward_substitution(triangle, pivot_values, 1, width, true);
}

// Permutes rows: c[i, j] = b[rows[i], j], n rows of k; b is the identity where it is null.
TS_KERNEL void __launch_bounds__(256) ts_permute_rows(const __grid_constant__ Args g) {
    const ts_i32* rows = g.rows + blockIdx.x * g.n;
    const T* b = g.b + blockIdx.x * g.b_batch;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.n * g.k; i += (ts_i64)gridDim.y * 256) {
        const ts_i64 row = rows[i / g.k], column = i % g.k;
        g.c[blockIdx.x * g.c_batch + i] = g.b ? b[row * g.k + column] : T(row == column);
    }
}
// Zeroes the results c, k elements each, of singular matrices, and reports them.
TS_KERNEL void __launch_bounds__(256) ts_solve_finish(const __grid_constant__ Args g) {
    const ts_i32 info = g.info[blockIdx.x];
    if (!info) return;
    if (g.fault && blockIdx.y == 0 && threadIdx.x == 0) ts_fault(g.fault, TS_SINGULAR, 0, blockIdx.x, info, g.n);
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.k; i += (ts_i64)gridDim.y * 256)
        g.c[blockIdx.x * g.c_batch + i] = 0;
}
// det: the determinant of each of m matrices in b; or slogdet: its sign in b and the logarithm of its absolute value in c. A
// thread has a matrix.
TS_KERNEL void __launch_bounds__(64) ts_determinant(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 64 + threadIdx.x;
    if (i >= g.m) return;
    const T* a = g.a + i * g.a_batch;
    T sign = g.swaps[i] % 2 ? T(-1) : T(1), log = 0;
    for (ts_i64 k = 0; k < g.n; k++) {
        const T x = a[k * (g.a_column + 1)];
        sign *= !g.c ? x : x > 0 ? T(1) : x < 0 ? T(-1) : x;
        if (g.c) log += ts_log(x < 0 ? -x : x);
    }
    g.b[i] = sign;
    if (g.c) g.c[i] = log;
}
// The permutation matrices of matrices with m rows, in b.
TS_KERNEL void __launch_bounds__(256) ts_permutation_matrix(const __grid_constant__ Args g) {
    const ts_i32* rows = g.rows + blockIdx.x * g.m;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.m * g.m; i += (ts_i64)gridDim.y * 256)
        g.b[blockIdx.x * g.m * g.m + i] = T(rows[i % g.m] == i / g.m);
}
