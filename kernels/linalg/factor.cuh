// Cholesky and LU decompositions, triangular systems, and what is read off their results. T: linalg/panel.cuh.
//
// Triangular systems are lower ones, solved forward: an upper one is the same system counted from its end, by negative
// strides.
#include "linalg/panel.cuh"

// Solves for one right-hand side in place, `stride` from one element to the next.
TS_FN void ts_forward(const T (*triangle)[TS_PANEL + 1], T* at, ts_i64 stride, int n, bool unit) {
    T x[TS_PANEL];
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++) x[r] = r < n ? at[r * stride] : T(0);
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++) {
        T v = x[r];
#pragma unroll
        for (int p = 0; p < r; p++) v = ts_fma(-triangle[r][p], x[p], v);
        x[r] = unit ? v : v / triangle[r][r];
    }
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++)
        if (r < n) at[r * stride] = x[r];
}

// Solves a x = b for a lower triangle a of n rows, at most 32, and k right-hand sides in place. flag: ones on the diagonal.
TS_KERNEL void __launch_bounds__(128) ts_triangle(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    ts_bring_triangle(triangle, g.a + blockIdx.x * g.a_batch, g.a_row, g.a_column, (int)g.n);
    __syncthreads();
    const ts_i64 column = (ts_i64)blockIdx.y * blockDim.x + threadIdx.x;
    if (column < g.k)
        ts_forward(triangle, g.b + blockIdx.x * g.b_batch + column * g.b_column, g.b_row, (int)g.n, g.flag != 0);
}

// The lower factor of a, of n rows, at most 32, in place, by one warp: a lane has a row. info: the order of the first
// leading minor, counted with the `first` rows before, that is not positive-definite.
TS_KERNEL void __launch_bounds__(32) ts_cholesky(const __grid_constant__ Args g) {
    const int lane = threadIdx.x, n = (int)g.n;
    T* a = g.a + blockIdx.x * g.a_batch + lane * g.a_row;
    T row[TS_PANEL];
#pragma unroll
    for (int c = 0; c < TS_PANEL; c++) row[c] = lane < n && c <= lane ? a[c * g.a_column] : T(c == lane);
    int bad = 0;
#pragma unroll
    for (int j = 0; j < TS_PANEL; j++) {
        const T pivot = __shfl_sync(0xffffffffu, row[j], j);
        if (bad == 0 && !(pivot > 0 && pivot < ts_inf(T()))) bad = (int)g.first + j + 1;
        const T root = ts_sqrt(pivot);
        row[j] = lane == j ? root : row[j] / root;
#pragma unroll
        for (int c = j + 1; c < TS_PANEL; c++) row[c] = ts_fma(-row[j], __shfl_sync(0xffffffffu, row[j], c), row[c]);
    }
#pragma unroll
    for (int c = 0; c < TS_PANEL; c++)
        if (lane < n && c <= lane) a[c * g.a_column] = row[c];
    if (lane == 0 && (g.first == 0 || g.info[blockIdx.x] == 0)) g.info[blockIdx.x] = bad;
}
// Clears what is above the diagonal of a (n by n, column after column), and all of a matrix that has no factor.
TS_KERNEL void __launch_bounds__(256) ts_cholesky_end(const __grid_constant__ Args g) {
    const ts_i32 bad = g.info[blockIdx.x];
    T* a = g.a + blockIdx.x * g.a_batch;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.n * g.n; i += (ts_i64)gridDim.y * 256)
        if (bad || i % g.n < i / g.n) a[i] = 0;
    if (bad && g.fault && blockIdx.y == 0 && threadIdx.x == 0)
        ts_fault(g.fault, TS_NOT_POSITIVE, 0, blockIdx.x, bad, g.n);
}

// Of two candidates for a pivot the larger, of equal ones the upper.
TS_FN void ts_better(T& best, int& at, T size, int row) {
    if (size > best || (size == best && row < at)) best = size, at = row;
}
// LU of the n columns, at most 32, from column `first` on, of a matrix of m rows that lies column after column. A column
// without a pivot is left as it is. k: pivots of a matrix.
TS_KERNEL void __launch_bounds__(1024) ts_panel(const __grid_constant__ Args g) {
    __shared__ T top[TS_PANEL], sizes[32];
    __shared__ int places[32];
    const int t = threadIdx.x, step = blockDim.x, m = (int)g.m, width = (int)g.n, first = (int)g.first;
    const ts_i64 ld = g.a_column;
    T* panel = g.a + blockIdx.x * g.a_batch + first * ld;
    ts_i32 *rows = g.rows + (ts_i64)blockIdx.x * m, *pivots = g.pivots + blockIdx.x * g.k;
    int info = first > 0 ? g.info[blockIdx.x] : 0, swaps = first > 0 ? g.swaps[blockIdx.x] : 0;
    if (first == 0)
        for (int r = t; r < m; r += step) rows[r] = r;
    T best = -1;
    int at = first;
    for (int r = first + t; r < m && width > 0; r += step) ts_better(best, at, ts_abs(panel[r]), r);
    for (int j = 0; j < width; j++) {
        const int row = first + j;
        for (int d = 16; d > 0; d /= 2) {
            const T size = __shfl_xor_sync(0xffffffffu, best, d);
            ts_better(best, at, size, __shfl_xor_sync(0xffffffffu, at, d));
        }
        if (t % 32 == 0) sizes[t / 32] = best, places[t / 32] = at;
        __syncthreads();
        best = sizes[0], at = places[0];
        for (int w = 1; w < step / 32; w++) ts_better(best, at, sizes[w], places[w]);
        if (t < width) {
            const T x = panel[t * ld + at];
            panel[t * ld + at] = panel[t * ld + row];
            panel[t * ld + row] = x;
            top[t] = x;
        }
        if (t == 0) {
            pivots[row] = at;
            if (at != row) {
                const int other = rows[at];
                rows[at] = rows[row];
                rows[row] = other;
                swaps++;
            }
            if (best == 0 && info == 0) info = row + 1;
        }
        __syncthreads();
        const T pivot = top[j];
        best = -1, at = row + 1;
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
                        if (c + i < width) panel[(c + i) * ld + r] = ts_fma(-factor, top[c + i], x[i]);
                }
            }
            if (j + 1 < width) ts_better(best, at, ts_abs(panel[(j + 1) * ld + r]), r);
        }
    }
    if (t == 0) g.info[blockIdx.x] = info, g.swaps[blockIdx.x] = swaps;
}
// Exchanges the rows of the other columns as a panel of m rows found them, and solves with its triangle to its right. n:
// columns of the matrix; b_row: columns of the panel.
TS_KERNEL void __launch_bounds__(128) ts_exchange_rows(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    const int width = (int)g.b_row;
    T* a = g.a + blockIdx.x * g.a_batch;
    ts_bring_triangle(triangle, a + g.first * (g.a_column + 1), 1, g.a_column, width);
    __syncthreads();
    ts_i64 column = (ts_i64)blockIdx.y * blockDim.x + threadIdx.x;
    if (column >= g.first) column += width;
    if (column >= g.n) return;
    const ts_i32* pivots = g.pivots + blockIdx.x * g.k + g.first;
    T *at = a + column * g.a_column, *top = at + g.first;
    for (int i = 0; i < width; i++) {
        const T x = at[pivots[i]];
        at[pivots[i]] = top[i];
        top[i] = x;
    }
    if (column > g.first) ts_forward(triangle, top, 1, width, true);
}

// c[i, j] = b[rows[i], j], or of the identity where there is no b; n rows of k.
TS_KERNEL void __launch_bounds__(256) ts_permute(const __grid_constant__ Args g) {
    const ts_i32* rows = g.rows + blockIdx.x * g.n;
    const T* b = g.b + blockIdx.x * g.b_batch;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.n * g.k; i += (ts_i64)gridDim.y * 256) {
        const ts_i64 row = rows[i / g.k], column = i % g.k;
        g.c[blockIdx.x * g.c_batch + i] = g.b ? b[row * g.k + column] : T(row == column);
    }
}
// Clears the results of singular matrices, c, of k elements each, and tells of them.
TS_KERNEL void __launch_bounds__(256) ts_solve_end(const __grid_constant__ Args g) {
    const ts_i32 bad = g.info[blockIdx.x];
    if (!bad) return;
    if (g.fault && blockIdx.y == 0 && threadIdx.x == 0) ts_fault(g.fault, TS_SINGULAR, 0, blockIdx.x, bad, g.n);
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.k; i += (ts_i64)gridDim.y * 256)
        g.c[blockIdx.x * g.c_batch + i] = 0;
}
// The determinant of each of m matrices in b, or its sign there and the logarithm of its size in c. A thread has a matrix.
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
// The permutations of matrices of m rows, in b.
TS_KERNEL void __launch_bounds__(256) ts_permutation(const __grid_constant__ Args g) {
    const ts_i32* rows = g.rows + blockIdx.x * g.m;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.m * g.m; i += (ts_i64)gridDim.y * 256)
        g.b[blockIdx.x * g.m * g.m + i] = T(rows[i % g.m] == i / g.m);
}
