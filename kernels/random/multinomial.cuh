// multinomial. T: memory type; weights of categories are f64.
#include "math/math.cuh"
#include "random/philox.cuh"

#include "random/multinomial_args.cuh"

// cumsum: the cumulative weights of each row's n categories; last: its last category of positive weight, or -1, with a fault,
// where none can be drawn. A warp has a row: it loads 32 weights at once, and every lane adds all of them one by one, in the
// order of the host, so that sums agree.
TS_KERNEL void __launch_bounds__(32) ts_cumulative_weights(const __grid_constant__ Args g) {
    __shared__ double weights[2][32];
    const int lane = threadIdx.x;
    const ts_i64 row = blockIdx.x;
    const T* x = g.x + row * g.n;
    double sum = 0, next = lane < g.n ? (double)ts_upcast(x[lane]) : 0;
    ts_i64 positive = 0, last = -1, bad = -1;
    for (ts_i64 c = 0; c < g.n; c += 32) {
        const bool exists = c + lane < g.n;
        const double p = next, *loaded = weights[c / 32 % 2];
        weights[c / 32 % 2][lane] = p;
        next = c + 32 + lane < g.n ? (double)ts_upcast(x[c + 32 + lane]) : 0;
        const ts_u32 above = __ballot_sync(0xffffffffu, exists && p > 0);
        const ts_u32 wrong = __ballot_sync(0xffffffffu, exists && !(p >= 0 && p < ts_inf(0.0)));
        positive += __popc(above);
        if (above) last = c + 31 - __clz((int)above);
        if (bad < 0 && wrong) bad = c + __ffs((int)wrong) - 1;
        __syncwarp();
        double own = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            sum += loaded[k];
            if (lane == k) own = sum;
        }
        if (exists) g.cumsum[row * g.n + c + lane] = own;
    }
    if (lane > 0) return;
    const bool fails = bad >= 0 || positive == 0 || (!g.replacement && positive < g.samples);
    if (fails) ts_fault(g.fault, TS_PROBABILITY, 0, (ts_u64)(row * g.n + (bad < 0 ? 0 : bad)), 0, 0);
    g.last[row] = fails ? -1 : last;
}

// With replacement. sampled: the first category whose cumulative weight exceeds u times the total.
TS_KERNEL void __launch_bounds__(256) ts_multinomial_search(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.samples) return;
    const ts_i64 row = i / g.samples, last = g.last[row];
    const double* cumsum = g.cumsum + row * g.n;
    const double threshold = ts_draw_uniform_f64(g.seed, g.offset, (ts_u64)i) * cumsum[g.n - 1];
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (cumsum[middle] <= threshold) low = middle + 1;
        else high = middle;
    }
    // Rounding can make the product equal to the total.
    g.sampled[i] = last < 0 ? 0 : low < last ? low : last;
}

// Without replacement: the categories with the smallest exponential keys are sampled; those of weight 0 come last (NaN).
TS_KERNEL void __launch_bounds__(256) ts_exponential_keys(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const double p = (double)ts_upcast(g.x[i]);
    g.keys[i] = p > 0 ? -log1p(-ts_draw_uniform_f64(g.seed, g.offset, (ts_u64)i)) / p : ts_nan(0.0);
}
TS_KERNEL void __launch_bounds__(256) ts_clear_failed_rows(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.rows * g.samples && g.last[i / g.samples] < 0) g.sampled[i] = 0;
}
