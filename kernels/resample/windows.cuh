// Weighted sums of windows along a dim: y[.., o, ..] = sum of weights[k, o] * x[.., first[o] + k, ..]; a thread has an element.
// T: memory type; WIDE: positions may be 2^31 and more.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;
#if WIDE
typedef ts_i64 Int;
#else
typedef ts_i32 Int;
#endif

#include "resample/windows_args.cuh"

TS_KERNEL void __launch_bounds__(256) ts_window_sums(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Int inner = (Int)g.inner, out = (Int)g.out, size = (Int)g.size, row = ts_quotient((Int)i, g.inner, g.divide_inner);
    const Int outer = ts_quotient(row, g.out, g.divide_out), o = row - outer * out, first = (Int)g.first[o];
    const T* x = g.x + (outer * size + first) * inner + ((Int)i - row * inner);
    const T* weight = g.weights + o;
    // Behind the last input weights are 0.
    const Int count = (Int)g.taps < size - first ? (Int)g.taps : size - first;
    C sum = 0;
#pragma unroll 4
    for (Int k = 0; k < count; k++) sum += (C)ts_upcast(weight[k * out]) * (C)ts_upcast(x[k * inner]);
    g.y[i] = ts_downcast<T>(sum);
}
