// Exponentials of small matrices by scaling and squaring, a block for each: the matrix is halved until its 1-norm is at most
// 0.5, its Taylor polynomial is computed, then squared as often. T: float or double.
#include "math/math.cuh"

#include "linalg/matrix_exp_args.cuh"

// out = a b, of n rows and columns; a thread computes four rows of a column at a time.
TS_FN void ts_block_matmul(const T* a, const T* b, T* out, int n) {
    for (int e = threadIdx.x; e < (n + 3) / 4 * n; e += 512) {
        const int column = e % n, row = e / n * 4;
        const T* from[4];
        T sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 4; i++) from[i] = a + (row + i < n ? row + i : n - 1) * n;
        for (int k = 0; k < n; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) sum[i] = ts_fma(from[i][k], b[k * n + column], sum[i]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (row + i < n) out[(row + i) * n + column] = sum[i];
    }
    __syncthreads();
}

TS_KERNEL void __launch_bounds__(512) ts_matrix_exp(const __grid_constant__ Args g) {
    // At most as many columns as threads.
    __shared__ double column_sums[512];
    const int n = (int)g.n, t = threadIdx.x;
    const ts_i64 offset = blockIdx.x * g.n * g.n;
    const T* x = g.x + offset;
    T *y = g.y + offset, *scaled = g.scaled + offset, *next = g.next + offset;
    if (t < n) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += fabs((double)x[i * n + t]);
        column_sums[t] = sum;
    }
    __syncthreads();
    double norm = 0, scale = 1;
    for (int i = 0; i < n; i++) norm = column_sums[i] > norm ? column_sums[i] : norm;
    int squarings = 0;
    for (; norm > 0.5 && norm < ts_inf(double()); squarings++) norm *= 0.5, scale *= 0.5;
    for (int e = t; e < n * n; e += 512) {
        scaled[e] = (T)((double)x[e] * scale);
        y[e] = T(e / n == e % n);
    }
    __syncthreads();
    // Horner: I + A (I + A/2 (I + A/3 (..))). 0.5^19 / 19! is 2e-23.
    for (int term = 18; term > 0; term--) {
        const T inverse = T(1) / T(term);
        ts_block_matmul(scaled, y, next, n);
        for (int e = t; e < n * n; e += 512) y[e] = next[e] * inverse + T(e / n == e % n);
        __syncthreads();
    }
    for (int h = 0; h < squarings; h++) {
        ts_block_matmul(y, y, next, n);
        for (int e = t; e < n * n; e += 512) y[e] = next[e];
        __syncthreads();
    }
}
