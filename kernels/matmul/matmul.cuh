// Matrix products of any type and any strides, for what the vendor's library does not take.
//
// T: type of the matrices. A block makes a 64 x 64 tile of c; k is walked in steps of 16 through shared memory.
#include "math/math.cuh"

template <class C> struct ts_accumulator { typedef C type; };
template <> struct ts_accumulator<ts_i64> { typedef ts_u64 type; };
TS_FN float ts_mad(float a, float b, float c) { return fmaf(a, b, c); }
TS_FN double ts_mad(double a, double b, double c) { return fma(a, b, c); }
TS_FN ts_u64 ts_mad(ts_u64 a, ts_u64 b, ts_u64 c) { return a * b + c; }

struct Args {
    ts_i64 m, n, k;
    ts_i64 a_row, a_column, a_batch, b_row, b_column, b_batch, c_row, c_column, c_batch;
    const T *a, *b, *bias;
    T* c;
    ts_u64 beta, activation;
};

TS_KERNEL void __launch_bounds__(256) ts_matmul(const __grid_constant__ Args g) {
    typedef typename ts_accumulator<typename ts_of<T>::cls>::type A;
    __shared__ A left[16][65];
    __shared__ A right[16][65];
    const ts_i64 top = (ts_i64)blockIdx.x * 64, start = (ts_i64)blockIdx.y * 64, batch = blockIdx.z;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    A sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = 0;
    for (ts_i64 from = 0; from < g.k; from += 16) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            // Neighbouring threads read along whichever dim is dense.
            int e = threadIdx.x + r * 256;
            int row = g.a_column == 1 ? e / 16 : e % 64, k = g.a_column == 1 ? e % 16 : e / 64;
            bool in = top + row < g.m && from + k < g.k;
            left[k][row] = in ? (A)ts_up(g.a[batch * g.a_batch + (top + row) * g.a_row + (from + k) * g.a_column]) : (A)0;
            int column = g.b_column == 1 ? e % 64 : e / 16, l = g.b_column == 1 ? e / 64 : e % 16;
            in = start + column < g.n && from + l < g.k;
            right[l][column] = in ? (A)ts_up(g.b[batch * g.b_batch + (from + l) * g.b_row + (start + column) * g.b_column]) : (A)0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            A x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) x[i] = left[k][ty + i * 16], y[i] = right[k][tx + i * 16];
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] = ts_mad(x[i], y[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            ts_i64 row = top + ty + i * 16, column = start + tx + j * 16;
            if (row >= g.m || column >= g.n) continue;
            T* at = g.c + batch * g.c_batch + row * g.c_row + column * g.c_column;
            typename ts_of<T>::cls value = (typename ts_of<T>::cls)sum[i][j];
            if (g.beta) value = value + ts_up(*at);
            if (g.bias) value = value + ts_up(g.bias[column]);
            *at = ts_down<T>(value);
        }
}
