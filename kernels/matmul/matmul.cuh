// Matrix products of any type and any strides, for what cuBLASLt does not support.
//
// T: type of the matrices. A block computes a 64 x 64 tile of c; k is iterated in steps of 16 through shared memory.
#include "math/math.cuh"

template <class C> struct ts_accumulate_type { typedef C type; };
template <> struct ts_accumulate_type<ts_i64> { typedef ts_u64 type; };
TS_FN float ts_fma_acc(float a, float b, float c) { return fmaf(a, b, c); }
TS_FN double ts_fma_acc(double a, double b, double c) { return fma(a, b, c); }
TS_FN ts_u64 ts_fma_acc(ts_u64 a, ts_u64 b, ts_u64 c) { return a * b + c; }

#include "matmul/args.cuh"

TS_KERNEL void __launch_bounds__(256) ts_matmul(const __grid_constant__ Args g) {
    typedef typename ts_accumulate_type<typename ts_opmath<T>::type>::type A;
    __shared__ A a_tile[16][65];
    __shared__ A b_tile[16][65];
    const ts_i64 row_start = (ts_i64)blockIdx.x * 64, column_start = (ts_i64)blockIdx.y * 64, batch = blockIdx.z;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    A acc[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] = 0;
    for (ts_i64 k_start = 0; k_start < g.k; k_start += 16) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            // Adjacent threads read along whichever dim is dense.
            int e = threadIdx.x + r * 256;
            int row = g.a_column == 1 ? e / 16 : e % 64, k = g.a_column == 1 ? e % 16 : e / 64;
            bool valid = row_start + row < g.m && k_start + k < g.k;
            a_tile[k][row] = valid
                ? (A)ts_upcast(g.a[batch * g.a_batch + (row_start + row) * g.a_row + (k_start + k) * g.a_column])
                : (A)0;
            int column = g.b_column == 1 ? e % 64 : e / 16, l = g.b_column == 1 ? e / 64 : e % 16;
            valid = column_start + column < g.n && k_start + l < g.k;
            b_tile[l][column] = valid
                ? (A)ts_upcast(g.b[batch * g.b_batch + (k_start + l) * g.b_row + (column_start + column) * g.b_column])
                : (A)0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            A x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) x[i] = a_tile[k][ty + i * 16], y[i] = b_tile[k][tx + i * 16];
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] = ts_fma_acc(x[i], y[j], acc[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            ts_i64 row = row_start + ty + i * 16, column = column_start + tx + j * 16;
            if (row >= g.m || column >= g.n) continue;
            T* to = g.c + batch * g.c_batch + row * g.c_row + column * g.c_column;
            typename ts_opmath<T>::type value = (typename ts_opmath<T>::type)acc[i][j];
            if (g.beta) value = value + ts_upcast(*to);
            if (g.bias) value = value + ts_upcast(g.bias[column]);
            *to = ts_downcast<T>(value);
        }
}
