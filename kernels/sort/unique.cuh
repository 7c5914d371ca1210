// Distinct slices along a dim. T: memory type. A slice is m neighbours; slices order element by element, NaN after
// everything, all NaN and both zeros alike, and equal slices as they lie.
#include "math/math.cuh"

typedef typename ts_of<T>::cls C;
// Entries that a block sorts in shared memory, `TILE` on the host.
static const int TILE = 2048;

struct Args {
    const T* x;
    T* values;
    // Slices in order, `size` of them with those past the end; which distinct slice each is; where in the order a distinct
    // one begins; how many are equal to it; how many are distinct.
    ts_i64 *order, *inverse, *begins, *counts, *number;
    ts_u8* firsts;
    const ts_i64* ranks;
    ts_i64 n, m, size, inner, from, to;
};

TS_FN int ts_compare(C a, C b) { return a < b ? -1 : b < a ? 1 : a == b ? 0 : (a != a) - (b != b); }
// Does slice a come before slice b? Those past the end come last.
TS_FN bool ts_precedes(const Args& g, ts_i64 a, ts_i64 b) {
    if (a < g.n && b < g.n)
        for (ts_i64 i = 0; i < g.m; i++) {
            const int c = ts_compare(ts_up(g.x[a * g.m + i]), ts_up(g.x[b * g.m + i]));
            if (c) return c < 0;
        }
    return a < b;
}
// A step of a bitonic network (Batcher, 1968): one pair of entries of `order`, whose first is number `start` of all.
TS_FN void ts_exchange_pair(const Args& g, ts_i64* order, ts_i64 start, ts_i64 pair, ts_i64 run, ts_i64 step) {
    const ts_i64 low = pair / step * 2 * step + pair % step, a = order[low], b = order[low + step];
    if (ts_precedes(g, b, a) != (((start + low) & run) == 0)) return;
    order[low] = b;
    order[low + step] = a;
}
// Runs of from / 2 to runs of `to`, as far as tiles go. Those of 2 are made of what is in no order.
TS_KERNEL void __launch_bounds__(1024) ts_sort_tile(const __grid_constant__ Args g) {
    __shared__ ts_i64 tile[TILE];
    const ts_i64 start = (ts_i64)blockIdx.x * TILE;
    for (int i = threadIdx.x; i < TILE; i += 1024) tile[i] = g.from == 2 ? start + i : g.order[start + i];
    for (ts_i64 run = g.from; run <= g.to; run *= 2)
        for (ts_i64 step = run / 2 < TILE / 2 ? run / 2 : TILE / 2; step > 0; step /= 2) {
            __syncthreads();
            ts_exchange_pair(g, tile, start, threadIdx.x, run, step);
        }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE; i += 1024) g.order[start + i] = tile[i];
}
// One step across tiles: from: the run, to: the step.
TS_KERNEL void __launch_bounds__(256) ts_sort_across(const __grid_constant__ Args g) {
    ts_exchange_pair(g, g.order, 0, (ts_i64)blockIdx.x * 256 + threadIdx.x, g.from, g.to);
}
TS_KERNEL void __launch_bounds__(256) ts_in_order(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.size) g.order[i] = i;
}

// Whether the slice of each rank is another than that before it; NaN is like nothing.
TS_KERNEL void __launch_bounds__(256) ts_first_slices(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    bool same = i > 0;
    for (ts_i64 k = 0; k < g.m && same; k++)
        same = ts_up(g.x[g.order[i] * g.m + k]) == ts_up(g.x[g.order[i - 1] * g.m + k]);
    g.firsts[i] = !same;
}
TS_KERNEL void __launch_bounds__(256) ts_number_slices(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    g.inverse[g.order[i]] = g.ranks[i];
    if (g.firsts[i]) g.begins[g.ranks[i]] = i;
}
TS_KERNEL void __launch_bounds__(256) ts_count_slices(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, distinct = g.number[0];
    if (i < distinct) g.counts[i] = (i + 1 < distinct ? g.begins[i + 1] : g.n) - g.begins[i];
}
// values: along the dim, which has `inner` elements behind it, the first of each that are distinct.
TS_KERNEL void __launch_bounds__(256) ts_copy_slices(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n * g.m) return;
    const ts_i64 place = i / g.inner % g.n, outer = i / g.inner / g.n;
    if (place < g.number[0]) g.values[i] = g.x[g.order[g.begins[place]] * g.m + outer * g.inner + i % g.inner];
}
