// Exponentials of small matrices, a block for each: Taylor's series of the matrix halved until its 1-norm is at most 0.5,
// then squared as often. T: float or double.
#include "math/math.cuh"

struct Args {
    const T* x;
    // The result, and room for two more matrices each.
    T *y, *scaled, *next;
    ts_i64 n;
};

// to = a b, of n rows and columns; a thread has four rows of a column at once.
TS_FN void ts_times(const T* a, const T* b, T* to, int n) {
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
            if (row + i < n) to[(row + i) * n + column] = sum[i];
    }
    __syncthreads();
}

TS_KERNEL void __launch_bounds__(512) ts_exponential(const __grid_constant__ Args g) {
    // Columns, of which there are no more than threads.
    __shared__ double sums[512];
    const int n = (int)g.n, t = threadIdx.x;
    const ts_i64 at = blockIdx.x * g.n * g.n;
    const T* x = g.x + at;
    T *y = g.y + at, *scaled = g.scaled + at, *next = g.next + at;
    if (t < n) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += fabs((double)x[i * n + t]);
        sums[t] = sum;
    }
    __syncthreads();
    double norm = 0, factor = 1;
    for (int i = 0; i < n; i++) norm = sums[i] > norm ? sums[i] : norm;
    int halvings = 0;
    for (; norm > 0.5 && norm < ts_inf(double()); halvings++) norm *= 0.5, factor *= 0.5;
    for (int e = t; e < n * n; e += 512) {
        scaled[e] = (T)((double)x[e] * factor);
        y[e] = T(e / n == e % n);
    }
    __syncthreads();
    // Horner: I + A (I + A/2 (I + A/3 (..))). 0.5^19 / 19! is 2e-23.
    for (int term = 18; term > 0; term--) {
        const T share = T(1) / T(term);
        ts_times(scaled, y, next, n);
        for (int e = t; e < n * n; e += 512) y[e] = next[e] * share + T(e / n == e % n);
        __syncthreads();
    }
    for (int h = 0; h < halvings; h++) {
        ts_times(y, y, next, n);
        for (int e = t; e < n * n; e += 512) y[e] = next[e];
        __syncthreads();
    }
}
