// Sampling with probabilities that come as data. T: memory type; weights of categories are f64.
#include "math/math.cuh"
#include "random/philox.cuh"

struct Args {
    const T* x;
    T* y;
    double *sums, *keys;
    ts_i64 *picked, *last;
    void* fault;
    ts_i64 rows, n, samples, replaced;
    ts_u64 seed, offset;
};

// sums: the running sums of each row's n weights, in order; last: its last positive category, -1 where nothing can be drawn,
// which is told. A thread does a row: the sums must be those of the host.
TS_KERNEL void __launch_bounds__(32) ts_cumulate(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 32 + threadIdx.x;
    if (row >= g.rows) return;
    double sum = 0;
    ts_i64 positive = 0, last = -1, bad = -1;
    for (ts_i64 c = 0; c < g.n; c++) {
        const double p = (double)ts_up(g.x[row * g.n + c]);
        if (bad < 0 && !(p >= 0 && p < ts_inf(0.0))) bad = c;
        if (p > 0) {
            positive++;
            last = c;
        }
        sum += p;
        g.sums[row * g.n + c] = sum;
    }
    const bool fails = bad >= 0 || positive == 0 || (!g.replaced && positive < g.samples);
    if (fails) ts_fault(g.fault, TS_PROBABILITY, 0, (ts_u64)(row * g.n + (bad < 0 ? 0 : bad)), 0, 0);
    g.last[row] = fails ? -1 : last;
}

// picked: where the running sum passes u times all of it.
TS_KERNEL void __launch_bounds__(256) ts_draw(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.samples) return;
    const ts_i64 row = i / g.samples, last = g.last[row];
    const double* sums = g.sums + row * g.n;
    const double at = ts_draw_uniform_f64(g.seed, g.offset, (ts_u64)i) * sums[g.n - 1];
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (sums[middle] <= at) low = middle + 1;
        else high = middle;
    }
    // Rounding can bring the product up to the sum itself.
    g.picked[i] = last < 0 ? 0 : low < last ? low : last;
}

// keys: those whose smallest win without replacement; categories that cannot be drawn come last.
TS_KERNEL void __launch_bounds__(256) ts_keys(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const double p = (double)ts_up(g.x[i]);
    g.keys[i] = p > 0 ? -log1p(-ts_draw_uniform_f64(g.seed, g.offset, (ts_u64)i)) / p : ts_nan(0.0);
}
TS_KERNEL void __launch_bounds__(256) ts_clear_failed(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.rows * g.samples && g.last[i / g.samples] < 0) g.picked[i] = 0;
}
