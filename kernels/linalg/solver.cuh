// Around decompositions by a library. T: float or double; complex numbers are pairs of them. blockIdx.x is a matrix of the batch.
#include "math/math.cuh"

#include "linalg/solver_args.cuh"

// Libraries may not return from numbers that are not finite: such matrices become zeros, and info says so.
TS_KERNEL void __launch_bounds__(256) ts_take_finite(const __grid_constant__ Args g) {
    T* x = g.x + (ts_i64)blockIdx.x * g.x_size;
    bool not_finite = false;
    for (ts_i64 i = threadIdx.x; i < g.x_size; i += 256) not_finite |= !(fabs((double)x[i]) < ts_inf(double()));
    not_finite = __syncthreads_or(not_finite);
    if (threadIdx.x == 0) g.info[blockIdx.x] = 0, g.not_finite[blockIdx.x] = not_finite;
    if (!not_finite) return;
    for (ts_i64 i = threadIdx.x; i < g.x_size; i += 256) x[i] = 0;
}
// Results of matrices that did not converge are zeros, and a fault.
TS_KERNEL void __launch_bounds__(256) ts_report(const __grid_constant__ Args g) {
    if (g.info[blockIdx.x] == 0 && g.not_finite[blockIdx.x] == 0) return;
    T* const results[3] = {g.x, g.y, g.z};
    const ts_i64 sizes[3] = {g.x_size, g.y_size, g.z_size};
    for (int r = 0; r < 3; r++)
        for (ts_i64 i = threadIdx.x; results[r] && i < sizes[r]; i += 256) results[r][blockIdx.x * sizes[r] + i] = 0;
    if (threadIdx.x == 0) ts_fault(g.fault, TS_NO_CONVERGENCE, 0, blockIdx.x, 0, 0);
}
// Conjugates the complex numbers of x.
TS_KERNEL void __launch_bounds__(256) ts_conjugate(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.x_size) g.x[2 * i + 1] = -g.x[2 * i + 1];
}
// Multiplies row j of x, n rows of `columns` dense numbers, by the inverse of singular value j in y; by 0 where the value is not
// above `relative` times the largest.
TS_KERNEL void __launch_bounds__(256) ts_divide_by_values(const __grid_constant__ Args g) {
    const T *values = g.y + blockIdx.x * g.y_size, limit = values[0] * (T)g.relative;
    T* x = g.x + (ts_i64)blockIdx.x * g.x_size;
    for (ts_i64 i = threadIdx.x + (ts_i64)blockIdx.y * 256; i < g.x_size; i += (ts_i64)gridDim.y * 256) {
        const T value = values[i / g.columns];
        x[i] = value > limit ? x[i] * (T(1) / value) : T(0);
    }
}
// The unit lower (flag 0) or the upper triangle of x, dense columns of `rows` complex numbers, as y_size numbers of rows of
// `columns` complex ones.
TS_KERNEL void __launch_bounds__(256) ts_complex_triangle(const __grid_constant__ Args g) {
    const T* x = g.x + (ts_i64)blockIdx.x * g.x_size;
    T* y = g.y + (ts_i64)blockIdx.x * g.y_size;
    for (ts_i64 i = threadIdx.x + (ts_i64)blockIdx.y * 256; 2 * i < g.y_size; i += (ts_i64)gridDim.y * 256) {
        const ts_i64 r = i / g.columns, c = i % g.columns, from = 2 * (r + c * g.rows);
        const bool keep = g.flag ? c >= r : c < r, one = !g.flag && r == c;
        y[2 * i] = keep ? x[from] : T(one);
        y[2 * i + 1] = keep ? x[from + 1] : T(0);
    }
}
// The permutation P of A = P L U, `rows` rows of complex numbers in y, which is zero, from `columns` pivots.
TS_KERNEL void __launch_bounds__(32) ts_permutation(const __grid_constant__ Args g) {
    if (threadIdx.x != 0) return;
    int* rows = g.info + (ts_i64)blockIdx.x * g.rows;
    for (int i = 0; i < g.rows; i++) rows[i] = i;
    for (ts_i64 i = 0; i < g.columns; i++) {
        const ts_i64 other = g.pivots[blockIdx.x * g.columns + i] - 1;
        const int kept = rows[i];
        rows[i] = rows[other];
        rows[other] = kept;
    }
    for (ts_i64 i = 0; i < g.rows; i++) g.y[blockIdx.x * g.y_size + 2 * (rows[i] * g.rows + i)] = T(1);
}
