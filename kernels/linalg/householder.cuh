// Blocked QR decomposition by Householder reflectors. T: linalg/panel.cuh.
//
// The product of a panel's reflectors is the block reflector I - V T V' with T^-1 = diag(1 / tau) + the strict upper triangle
// of V' V, so that products with T and T' are triangular solves (Puglisi, 1992).
#include "linalg/panel.cuh"

TS_FN double ts_warp_sum(double v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
TS_FN float ts_warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

// geqr2 over n <= 32 columns from column `panel_start` on, of a column-major matrix of m rows. b: the reflectors with their
// ones and zeros; c: tau.
TS_KERNEL void __launch_bounds__(1024) ts_geqr2(const __grid_constant__ Args g) {
    __shared__ double parts[32];
    const int t = threadIdx.x, step = blockDim.x, lane = t % 32, warp = t / 32, warps = step / 32;
    const int m = (int)g.m, width = (int)g.n, panel_start = (int)g.panel_start;
    T *panel = g.a + blockIdx.x * g.a_batch + panel_start * g.a_column, *tau = g.c + blockIdx.x * g.c_batch;
    for (int j = 0; j < width; j++) {
        const int row = panel_start + j;
        T* v = panel + j * g.a_column;
        double norm2 = 0;
        for (int i = row + 1 + t; i < m; i += step) norm2 += (double)v[i] * (double)v[i];
        norm2 = ts_warp_sum(norm2);
        if (lane == 0) parts[warp] = norm2;
        __syncthreads();
        norm2 = 0;
        for (int w = 0; w < warps; w++) norm2 += parts[w];
        const double alpha = v[row], beta = norm2 != 0 ? -copysign(sqrt(alpha * alpha + norm2), alpha) : alpha;
        const T factor = norm2 != 0 ? (T)((beta - alpha) / beta) : T(0), scale = (T)(1.0 / (alpha - beta));
        // All threads have read alpha.
        __syncthreads();
        for (int i = row + 1 + t; i < m && norm2 != 0; i += step) v[i] *= scale;
        if (t == 0) v[row] = (T)beta, tau[row] = factor;
        __syncthreads();
        // A warp updates a column.
        for (int c = j + 1 + warp; c < width; c += warps) {
            T *x = panel + c * g.a_column, dot = lane == 0 ? x[row] : T(0);
            for (int i = row + 1 + lane; i < m; i += 32) dot = ts_fma(v[i], x[i], dot);
            dot = ts_warp_sum(dot) * factor;
            if (lane == 0) x[row] -= dot;
            for (int i = row + 1 + lane; i < m; i += 32) x[i] = ts_fma(-v[i], dot, x[i]);
        }
        __syncthreads();
    }
    for (int c = warp; c < width; c += warps)
        for (int i = panel_start + lane; i < m; i += 32) {
            const T x = panel[c * g.a_column + i];
            g.b[blockIdx.x * g.b_batch + (panel_start + c) * g.b_column + i] = i > panel_start + c ? x : T(i == panel_start + c);
        }
}

// c = a' b with m <= 32 rows and n columns, over k.
TS_KERNEL void __launch_bounds__(128) ts_gemm_tn(const __grid_constant__ Args g) {
    __shared__ T a_tile[32][33];
    __shared__ T b_tile[32][33];
    const ts_i64 column_start = (ts_i64)blockIdx.y * 32;
    const T *a = g.a + blockIdx.x * g.a_batch, *b = g.b + blockIdx.x * g.b_batch;
    const bool a_column_major = ts_dense(g.a_row), b_row_major = ts_dense(g.b_column);
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    T acc[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] = 0;
    for (ts_i64 k_start = 0; k_start < g.k; k_start += 32) {
#pragma unroll
        for (int r = 0; r < 8; r++) {
            const int e = threadIdx.x + r * 128;
            const int k = a_column_major ? e % 32 : e / 32, i = a_column_major ? e / 32 : e % 32;
            const int l = b_row_major ? e / 32 : e % 32, j = b_row_major ? e % 32 : e / 32;
            a_tile[k][i] = k_start + k < g.k && i < g.m ? a[(k_start + k) * g.a_row + i * g.a_column] : T(0);
            b_tile[l][j] = k_start + l < g.k && column_start + j < g.n
                ? b[(k_start + l) * g.b_row + (column_start + j) * g.b_column] : T(0);
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 32; k++)
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] = ts_fma(a_tile[k][ty + i * 16], b_tile[k][tx + j * 8], acc[i][j]);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const ts_i64 row = ty + i * 16, column = column_start + tx + j * 8;
            if (row < g.m && column < g.n)
                g.c[blockIdx.x * g.c_batch + row * g.c_row + column * g.c_column] = acc[i][j];
        }
}

// b = T' b in place for k columns: a is V' V of n <= 32 rows, c is tau. With matrices counted from their end: b = T b.
TS_KERNEL void __launch_bounds__(128) ts_apply_block_factor(const __grid_constant__ Args g) {
    __shared__ T triangle[TS_PANEL][TS_PANEL + 1];
    __shared__ T tau[TS_PANEL];
    const int n = (int)g.n;
    ts_load_triangle(triangle, g.a + blockIdx.x * g.a_batch, g.a_row, g.a_column, n);
    if (threadIdx.x < TS_PANEL) tau[threadIdx.x] = threadIdx.x < n ? g.c[blockIdx.x * g.c_batch + threadIdx.x * g.c_row]
        : T(0);
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
        x[r] = v * tau[r];
    }
#pragma unroll
    for (int r = 0; r < TS_PANEL; r++)
        if (r < n) at[r * g.b_row] = x[r];
}

// The first k columns of the identity of m rows.
TS_KERNEL void __launch_bounds__(256) ts_eye(const __grid_constant__ Args g) {
    for (ts_i64 i = (ts_i64)blockIdx.y * 256 + threadIdx.x; i < g.m * g.k; i += (ts_i64)gridDim.y * 256)
        g.c[blockIdx.x * g.c_batch + i] = T(i / g.k == i % g.k);
}
