// QR decomposition by reflections, in panels. T: linalg/panel.cuh.
//
// The reflections of a panel together are I - V T V' with T^-1 = diag(1 / tau) + the strict upper triangle of V' V, so that
// products with T and T' are triangular systems (Puglisi, 1992).
#include "linalg/panel.cuh"

TS_FN double ts_over_warp(double v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
TS_FN float ts_over_warp(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

// LAPACK's geqr2 over the n columns, at most 32, from column `first` on, of a matrix of m rows that lies column after column.
// b: the vectors with their ones and zeros; c: the factors.
TS_KERNEL void __launch_bounds__(1024) ts_reflect(const __grid_constant__ Args g) {
    __shared__ double parts[32];
    const int t = threadIdx.x, step = blockDim.x, lane = t % 32, warp = t / 32, warps = step / 32;
    const int m = (int)g.m, width = (int)g.n, first = (int)g.first;
    T *panel = g.a + blockIdx.x * g.a_batch + first * g.a_column, *factors = g.c + blockIdx.x * g.c_batch;
    for (int j = 0; j < width; j++) {
        const int row = first + j;
        T* v = panel + j * g.a_column;
        double below = 0;
        for (int i = row + 1 + t; i < m; i += step) below += (double)v[i] * (double)v[i];
        below = ts_over_warp(below);
        if (lane == 0) parts[warp] = below;
        __syncthreads();
        below = 0;
        for (int w = 0; w < warps; w++) below += parts[w];
        const double head = v[row], beta = below != 0 ? -copysign(sqrt(head * head + below), head) : head;
        const T factor = below != 0 ? (T)((beta - head) / beta) : T(0), scale = (T)(1.0 / (head - beta));
        // Everybody has seen the head.
        __syncthreads();
        for (int i = row + 1 + t; i < m && below != 0; i += step) v[i] *= scale;
        if (t == 0) v[row] = (T)beta, factors[row] = factor;
        __syncthreads();
        // A warp has a column.
        for (int c = j + 1 + warp; c < width; c += warps) {
            T *x = panel + c * g.a_column, dot = lane == 0 ? x[row] : T(0);
            for (int i = row + 1 + lane; i < m; i += 32) dot = ts_fma(v[i], x[i], dot);
            dot = ts_over_warp(dot) * factor;
            if (lane == 0) x[row] -= dot;
            for (int i = row + 1 + lane; i < m; i += 32) x[i] = ts_fma(-v[i], dot, x[i]);
        }
        __syncthreads();
    }
    for (int c = warp; c < width; c += warps)
        for (int i = first + lane; i < m; i += 32) {
            const T x = panel[c * g.a_column + i];
            g.b[blockIdx.x * g.b_batch + (first + c) * g.b_column + i] = i > first + c ? x : T(i == first + c);
        }
}

// c = a' b, of m rows, at most 32, and n columns, over k.
TS_KERNEL void __launch_bounds__(128) ts_inner(const __grid_constant__ Args g) {
    __shared__ T left[32][33];
    __shared__ T right[32][33];
    const ts_i64 start = (ts_i64)blockIdx.y * 32;
    const T *a = g.a + blockIdx.x * g.a_batch, *b = g.b + blockIdx.x * g.b_batch;
    const bool tall = ts_dense(g.a_row), flat = ts_dense(g.b_column);
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    T sum[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = 0;
    for (ts_i64 from = 0; from < g.k; from += 32) {
#pragma unroll
        for (int r = 0; r < 8; r++) {
            const int e = threadIdx.x + r * 128;
            const int k = tall ? e % 32 : e / 32, i = tall ? e / 32 : e % 32;
            const int l = flat ? e / 32 : e % 32, j = flat ? e % 32 : e / 32;
            left[k][i] = from + k < g.k && i < g.m ? a[(from + k) * g.a_row + i * g.a_column] : T(0);
            right[l][j] = from + l < g.k && start + j < g.n ? b[(from + l) * g.b_row + (start + j) * g.b_column] : T(0);
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 32; k++)
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] = ts_fma(left[k][ty + i * 16], right[k][tx + j * 8], sum[i][j]);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const ts_i64 row = ty + i * 16, column = start + tx + j * 8;
            if (row < g.m && column < g.n)
                g.c[blockIdx.x * g.c_batch + row * g.c_row + column * g.c_column] = sum[i][j];
        }
}

// b = T' b, in place, for k columns: a is V' V, of n rows, at most 32, and c has the factors. Counted from the end: T b.
TS_KERNEL void __launch_bounds__(128) ts_weigh(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    __shared__ T factors[TS_PANEL];
    const int n = (int)g.n;
    ts_bring_triangle(triangle, g.a + blockIdx.x * g.a_batch, g.a_row, g.a_column, n);
    if (threadIdx.x < TS_PANEL) factors[threadIdx.x] = threadIdx.x < n ? g.c[blockIdx.x * g.c_batch + threadIdx.x * g.c_row] : T(0);
    __syncthreads();
    const ts_i64 column = (ts_i64)blockIdx.y * blockDim.x + threadIdx.x;
    if (column >= g.k) return;
    T *at = g.b + blockIdx.x * g.b_batch + column * g.b_column, x[TS_PANEL];
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++) x[r] = r < n ? at[r * g.b_row] : T(0);
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++) {
        T v = x[r];
#pragma unroll
        for (int p = 0; p < r; p++) v = ts_fma(-triangle[r][p], x[p], v);
        x[r] = v * factors[r];
    }
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++)
        if (r < n) at[r * g.b_row] = x[r];
}

// The first k columns of the identity of m rows.
TS_KERNEL void __launch_bounds__(256) ts_identity(const __grid_constant__ Args g) {
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.m * g.k; i += (ts_i64)gridDim.y * 256)
        g.c[blockIdx.x * g.c_batch + i] = T(i / g.k == i % g.k);
}
