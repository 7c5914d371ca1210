// Blocked algorithms on panels of 32 columns: arguments, the update of the trailing matrix, triangles in shared memory.
//
// T: float or double. blockIdx.x is a matrix of the batch.
#pragma once
#include "math/math.cuh"

#define TS_PANEL 32

#include "linalg/panel_args.cuh"

TS_FN bool ts_dense(ts_i64 stride) { return stride == 1 || stride == -1; }

// Trailing update: c -= a b, m by n elements over k <= 32. flag: tiles entirely below the diagonal are skipped.
TS_KERNEL void __launch_bounds__(256) ts_trailing_update(const __grid_constant__ Args g) {
    __shared__ T a_tile[TS_PANEL][65];
    __shared__ T b_tile[TS_PANEL][65];
    const ts_i64 row_start = (ts_i64)blockIdx.y * 64, column_start = (ts_i64)blockIdx.z * 64;
    if (g.flag && column_start + 63 < row_start) return;
    const T *a = g.a + blockIdx.x * g.a_batch, *b = g.b + blockIdx.x * g.b_batch;
    const bool a_row_major = ts_dense(g.a_column), b_row_major = ts_dense(g.b_column);
#pragma unroll
    for (int r = 0; r < 8; r++) {
        const int e = threadIdx.x + r * 256;
        const int row = a_row_major ? e / 32 : e % 64, k = a_row_major ? e % 32 : e / 64;
        const int column = b_row_major ? e % 64 : e / 32, l = b_row_major ? e / 64 : e % 32;
        a_tile[k][row] = row_start + row < g.m && k < g.k ? a[(row_start + row) * g.a_row + k * g.a_column] : T(0);
        b_tile[l][column] = column_start + column < g.n && l < g.k ? b[l * g.b_row + (column_start + column) * g.b_column] : T(0);
    }
    __syncthreads();
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    T acc[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] = 0;
#pragma unroll 8
    for (int k = 0; k < TS_PANEL; k++) {
        T x[4], y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = a_tile[k][ty + i * 16], y[i] = b_tile[k][tx + i * 16];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) acc[i][j] = ts_fma(x[i], y[j], acc[i][j]);
    }
    T* c = g.c + blockIdx.x * g.c_batch;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const ts_i64 row = row_start + ty + i * 16, column = column_start + tx + j * 16;
            if (row < g.m && column < g.n) c[row * g.c_row + column * g.c_column] -= acc[i][j];
        }
}

// Loads a lower triangle of n rows into shared memory, padded with the identity.
TS_FN void ts_load_triangle(T (*to)[TS_PANEL + 1], const T* a, ts_i64 row, ts_i64 column, int n) {
    const bool row_major = ts_dense(column);
    for (int e = threadIdx.x; e < TS_PANEL * TS_PANEL; e += blockDim.x) {
        const int r = row_major ? e / TS_PANEL : e % TS_PANEL, c = row_major ? e % TS_PANEL : e / TS_PANEL;
        to[r][c] = c <= r && r < n ? a[r * row + c * column] : T(r == c);
    }
}
// Extracts the unit lower (flag 0: k columns) or the upper (flag 1: k rows) triangle of a, m by n and column-major, into c.
TS_KERNEL void __launch_bounds__(256) ts_extract_triangle(const __grid_constant__ Args g) {
    const ts_i64 rows = g.flag ? g.k : g.m, columns = g.flag ? g.n : g.k;
    const T* a = g.a + blockIdx.x * g.a_batch;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < rows * columns; i += (ts_i64)gridDim.y * 256) {
        const ts_i64 r = i / columns, c = i % columns;
        const bool keep = g.flag ? c >= r : c < r;
        g.c[blockIdx.x * rows * columns + i] = keep ? a[r + c * g.a_column] : T(r == c);
    }
}
