// unique_dim: unique slices along a dim. T: memory type. A slice is m adjacent elements. Slices are ordered lexicographically
// (NaN last, all NaN and both zeros equal), and equal slices by index.
#include "math/math.cuh"

typedef typename ts_opmath<T>::type C;
#include "sort/unique_args.cuh"

TS_FN int ts_compare(C a, C b) { return a < b ? -1 : b < a ? 1 : a == b ? 0 : (a != a) - (b != b); }
// Whether slice a comes before slice b. Padding comes last.
TS_FN bool ts_slice_less(const Args& g, ts_i64 a, ts_i64 b) {
    if (a < g.n && b < g.n)
        for (ts_i64 i = 0; i < g.m; i++) {
            const int c = ts_compare(ts_upcast(g.x[a * g.m + i]), ts_upcast(g.x[b * g.m + i]));
            if (c) return c < 0;
        }
    return a < b;
}
// A step of a bitonic network (Batcher, 1968): compares and exchanges one pair of `order`, whose first entry has index
// `start` in the whole.
TS_FN void ts_compare_exchange(const Args& g, ts_i64* order, ts_i64 start, ts_i64 pair, ts_i64 run, ts_i64 step) {
    const ts_i64 low = pair / step * 2 * step + pair % step, a = order[low], b = order[low + step];
    if (ts_slice_less(g, b, a) != (((start + low) & run) == 0)) return;
    order[low] = b;
    order[low + step] = a;
}
// Sorts runs of from / 2 into runs of `to`, within tiles. from = 2 starts with the identity.
TS_KERNEL void __launch_bounds__(1024) ts_bitonic_sort_tile(const __grid_constant__ Args g) {
    __shared__ ts_i64 tile[TILE];
    const ts_i64 start = (ts_i64)blockIdx.x * TILE;
    for (int i = threadIdx.x; i < TILE; i += 1024) tile[i] = g.from == 2 ? start + i : g.order[start + i];
    for (ts_i64 run = g.from; run <= g.to; run *= 2)
        for (ts_i64 step = run / 2 < TILE / 2 ? run / 2 : TILE / 2; step > 0; step /= 2) {
            __syncthreads();
            ts_compare_exchange(g, tile, start, threadIdx.x, run, step);
        }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE; i += 1024) g.order[start + i] = tile[i];
}
// One step between tiles: from: the run, to: the step.
TS_KERNEL void __launch_bounds__(256) ts_bitonic_step(const __grid_constant__ Args g) {
    ts_compare_exchange(g, g.order, 0, (ts_i64)blockIdx.x * 256 + threadIdx.x, g.from, g.to);
}
TS_KERNEL void __launch_bounds__(256) ts_iota(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.size) g.order[i] = i;
}

// Whether each sorted slice differs from the one before it. NaN differs from everything.
TS_KERNEL void __launch_bounds__(256) ts_unique_dim_flags(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    bool same = i > 0;
    for (ts_i64 k = 0; k < g.m && same; k++)
        same = ts_upcast(g.x[g.order[i] * g.m + k]) == ts_upcast(g.x[g.order[i - 1] * g.m + k]);
    g.flags[i] = !same;
}
TS_KERNEL void __launch_bounds__(256) ts_unique_dim_inverse(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    g.inverse[g.order[i]] = g.ranks[i];
    if (g.flags[i]) g.run_starts[g.ranks[i]] = i;
}
TS_KERNEL void __launch_bounds__(256) ts_unique_dim_counts(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, unique = g.unique_count[0];
    if (i < unique) g.counts[i] = (i + 1 < unique ? g.run_starts[i + 1] : g.n) - g.run_starts[i];
}
// values: the first of each run of equal slices, along the dim, which has `inner` elements behind it.
TS_KERNEL void __launch_bounds__(256) ts_unique_dim_gather(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n * g.m) return;
    const ts_i64 place = i / g.inner % g.n, outer = i / g.inner / g.n;
    if (place < g.unique_count[0]) g.values[i] = g.x[g.order[g.run_starts[place]] * g.m + outer * g.inner + i % g.inner];
}
