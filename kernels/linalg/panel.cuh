// Matrices in panels of 32 columns: arguments, the product that brings the rest up to date, triangles in shared memory.
//
// T: float or double. blockIdx.x is a matrix of the batch.
#pragma once
#include "math/math.cuh"

#define TS_PANEL 32

struct Args {
    // Three matrices and their strides.
    T *a, *b, *c;
    ts_i64 a_row, a_column, a_batch, b_row, b_column, b_batch, c_row, c_column, c_batch;
    // For each matrix: which row of the input is row i; which row was exchanged with row i; what went wrong; exchanges.
    ts_i32 *rows, *pivots, *info, *swaps;
    void* fault;
    ts_i64 m, n, k, first, flag;
};

TS_FN bool ts_dense(ts_i64 stride) { return stride == 1 || stride == -1; }

// c -= a b, of m by n elements over k, which is at most 32. flag: tiles wholly below the diagonal are left out.
TS_KERNEL void __launch_bounds__(256) ts_update(const __grid_constant__ Args g) {
    __shared__ T left[TS_PANEL][65];
    __shared__ T right[TS_PANEL][65];
    const ts_i64 top = (ts_i64)blockIdx.y * 64, start = (ts_i64)blockIdx.z * 64;
    if (g.flag && start + 63 < top) return;
    const T *a = g.a + blockIdx.x * g.a_batch, *b = g.b + blockIdx.x * g.b_batch;
    const bool wide = ts_dense(g.a_column), flat = ts_dense(g.b_column);
#pragma unroll
    for (int r = 0; r < 8; r++) {
        const int e = threadIdx.x + r * 256;
        const int row = wide ? e / 32 : e % 64, k = wide ? e % 32 : e / 64;
        const int column = flat ? e % 64 : e / 32, l = flat ? e / 64 : e % 32;
        left[k][row] = top + row < g.m && k < g.k ? a[(top + row) * g.a_row + k * g.a_column] : T(0);
        right[l][column] = start + column < g.n && l < g.k ? b[l * g.b_row + (start + column) * g.b_column] : T(0);
    }
    __syncthreads();
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    T sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = 0;
#pragma unroll 8
    for (int k = 0; k < TS_PANEL; k++) {
        T x[4], y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = left[k][ty + i * 16], y[i] = right[k][tx + i * 16];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] = ts_fma(x[i], y[j], sum[i][j]);
    }
    T* c = g.c + blockIdx.x * g.c_batch;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const ts_i64 row = top + ty + i * 16, column = start + tx + j * 16;
            if (row < g.m && column < g.n) c[row * g.c_row + column * g.c_column] -= sum[i][j];
        }
}

// The triangle of n rows in shared memory, filled up with ones on the diagonal.
TS_FN void ts_bring_triangle(T (*to)[TS_PANEL + 1], const T* a, ts_i64 row, ts_i64 column, int n) {
    const bool wide = ts_dense(column);
    for (int e = threadIdx.x; e < TS_PANEL * TS_PANEL; e += blockDim.x) {
        const int r = wide ? e / TS_PANEL : e % TS_PANEL, c = wide ? e % TS_PANEL : e / TS_PANEL;
        to[r][c] = c <= r && r < n ? a[r * row + c * column] : T(r == c);
    }
}
// The lower (flag 0: k columns, ones on the diagonal) or upper (flag 1: k rows) triangle of a, m by n and column after
// column, into c.
TS_KERNEL void __launch_bounds__(256) ts_factor(const __grid_constant__ Args g) {
    const ts_i64 rows = g.flag ? g.k : g.m, columns = g.flag ? g.n : g.k;
    const T* a = g.a + blockIdx.x * g.a_batch;
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < rows * columns; i += (ts_i64)gridDim.y * 256) {
        const ts_i64 r = i / columns, c = i % columns;
        const bool kept = g.flag ? c >= r : c < r;
        g.c[blockIdx.x * rows * columns + i] = kept ? a[r + c * g.a_column] : T(r == c);
    }
}
