// Cross products of vectors of three elements, `step` apart; a thread has a vector. T: memory type; WIDE: positions may be 2^31
// and more.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;
#if WIDE
typedef ts_i64 Int;
#else
typedef ts_i32 Int;
#endif

#include "linalg/cross_args.cuh"

// a b - c d; rounded as T after each operation.
TS_FN float ts_minor(float a, float b, float c, float d) { return ts_round_to<T>(a * b) - ts_round_to<T>(c * d); }
TS_FN double ts_minor(double a, double b, double c, double d) { return a * b - c * d; }
TS_FN ts_i64 ts_minor(ts_i64 a, ts_i64 b, ts_i64 c, ts_i64 d) {
    return (ts_i64)((ts_u64)ts_mul64(a, b) - (ts_u64)ts_mul64(c, d));
}

TS_KERNEL void __launch_bounds__(256) ts_cross(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Int step = (Int)g.step, outer = ts_quotient((Int)i, g.step, g.divide_step), at = (Int)i + 2 * outer * step;
    const C x0 = ts_upcast(g.x[at]), x1 = ts_upcast(g.x[at + step]), x2 = ts_upcast(g.x[at + 2 * step]);
    const C y0 = ts_upcast(g.y[at]), y1 = ts_upcast(g.y[at + step]), y2 = ts_upcast(g.y[at + 2 * step]);
    g.out[at] = ts_downcast<T>(ts_minor(x1, y2, x2, y1));
    g.out[at + step] = ts_downcast<T>(ts_minor(x2, y0, x0, y2));
    g.out[at + 2 * step] = ts_downcast<T>(ts_minor(x0, y1, x1, y0));
}
