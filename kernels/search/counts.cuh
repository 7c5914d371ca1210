// bincount and histc. T: memory type. A block counts in shared memory, where each bin has `copies` places side by side, so that
// lanes with the same bin do not wait for each other; then it adds its counts to those of all. `copies` is 0 if there are too
// many bins for that.
#include "common/reduce.cuh"
#include "search/count_args.cuh"

typedef typename ts_opmath<T>::type C;
// Edges of bins are computed in a type in which one operation on elements is exact enough to be rounded once more.
template <class A> struct ts_edge { typedef double type; };
template <> struct ts_edge<float> { typedef float type; };
typedef typename ts_edge<C>::type Edge;

static const int THREADS = 512;

// visit(element, index) for each element.
template <class F> TS_FN void ts_each_element(const CountArgs& g, F visit) {
    const ts_i64 step = (ts_i64)gridDim.x * THREADS;
    for (ts_i64 i = (ts_i64)blockIdx.x * THREADS + threadIdx.x; i < g.count; i += 4 * step) {
        T found[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + k * step < g.count) found[k] = g.x[i + k * step];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + k * step < g.count) visit(ts_upcast(found[k]), i + k * step);
    }
}
// y: how many elements have each bin; bin(element, index) is negative for those that have none.
template <class F> TS_FN void ts_count_bins(const CountArgs& g, F bin) {
    __shared__ ts_u32 shared[SHARED_BINS];
    const int places = (int)(g.bins * g.copies);
    for (int b = threadIdx.x; b < places; b += THREADS) shared[b] = 0;
    __syncthreads();
    ts_each_element(g, [&](C value, ts_i64 i) {
        const ts_i64 at = bin(value, i);
        if (at < 0) return;
        if (g.copies) atomicAdd(&shared[at * g.copies + (threadIdx.x & (ts_u32)(g.copies - 1))], 1u);
        else atomicAdd(g.y + at, 1ULL);
    });
    __syncthreads();
    for (int b = threadIdx.x; b < places / (g.copies ? (int)g.copies : 1); b += THREADS) {
        ts_u64 sum = 0;
        for (int c = 0; c < (int)g.copies; c++) sum += shared[b * (int)g.copies + c];
        if (sum) atomicAdd(g.y + b, sum);
    }
}

// y[0] = max(y[0], 1 + max(x)).
TS_KERNEL void __launch_bounds__(THREADS) ts_bincount_size(const __grid_constant__ CountArgs g) {
    ts_i64 max = -1;
    ts_each_element(g, [&](C value, ts_i64) { max = ts_int(value) > max ? ts_int(value) : max; });
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        const ts_i64 other = __shfl_xor_sync(0xffffffffu, max, d);
        max = other > max ? other : max;
    }
    if (threadIdx.x % 32 == 0 && max >= 0) atomicMax((ts_i64*)g.y, max == 0x7fffffffffffffffLL ? max : max + 1);
}
// An element that is no bin is a fault.
TS_KERNEL void __launch_bounds__(THREADS) ts_bincount(const __grid_constant__ CountArgs g) {
    ts_count_bins(g, [&](C value, ts_i64 i) {
        const ts_i64 bin = ts_int(value);
        if (bin >= 0 && bin < g.bins) return bin;
        ts_fault(g.fault, TS_INDEX, 0, (ts_u64)i, bin, g.bins);
        return (ts_i64)-1;
    });
}

// Minimum and maximum of a block's elements.
TS_FN void ts_block_minmax(Edge& low, Edge& high) {
    __shared__ Edge lows[THREADS / 32], highs[THREADS / 32];
    for (int d = 16; d > 0; d /= 2) {
        const Edge l = __shfl_xor_sync(0xffffffffu, low, d), h = __shfl_xor_sync(0xffffffffu, high, d);
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    if (threadIdx.x % 32 == 0) {
        lows[threadIdx.x / 32] = low;
        highs[threadIdx.x / 32] = high;
    }
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) {
        low = lows[w] < low ? lows[w] : low;
        high = highs[w] > high ? highs[w] : high;
    }
}
// range: after two places for the whole, minimum and maximum of the elements of each block.
TS_KERNEL void __launch_bounds__(THREADS) ts_histc_minmax(const __grid_constant__ CountArgs g) {
    Edge low = ts_inf(Edge(0)), high = -ts_inf(Edge(0));
    ts_each_element(g, [&](C value, ts_i64) {
        low = (Edge)value < low ? (Edge)value : low;
        high = (Edge)value > high ? (Edge)value : high;
    });
    ts_block_minmax(low, high);
    if (threadIdx.x == 0) {
        g.range[2 + 2 * blockIdx.x] = low;
        g.range[3 + 2 * blockIdx.x] = high;
    }
}
// The whole range, of `parts` blocks. One block.
TS_KERNEL void __launch_bounds__(THREADS) ts_histc_range(const __grid_constant__ CountArgs g) {
    Edge low = ts_inf(Edge(0)), high = -ts_inf(Edge(0));
    for (ts_i64 i = threadIdx.x; i < g.parts; i += THREADS) {
        const Edge l = (Edge)g.range[2 + 2 * i], h = (Edge)g.range[3 + 2 * i];
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    ts_block_minmax(low, high);
    if (threadIdx.x > 0) return;
    double from = low, to = high;
    if (from > to) from = to = 0;
    if (from == to) {
        from -= 1;
        to += 1;
    }
    g.range[0] = from;
    g.range[1] = to;
}
// Rounds to the elements' type: the edges of bins depend on it.
TS_FN Edge ts_round_edge(Edge x) { return (Edge)ts_upcast(ts_downcast<T>(x)); }
TS_FN Edge ts_limit(double x) { return (Edge)ts_upcast(ts_downcast<T>(x)); }
TS_KERNEL void __launch_bounds__(THREADS) ts_histc(const __grid_constant__ CountArgs g) {
    const Edge low = ts_limit(g.range ? g.range[0] : g.low), high = ts_limit(g.range ? g.range[1] : g.high);
    const Edge parts = ts_limit((double)g.bins), span = ts_round_edge(high - low);
    ts_count_bins(g, [&](C found, ts_i64) {
        const Edge value = (Edge)found;
        if (!(value >= low && value <= high)) return (ts_i64)-1;
        const double bin = (double)ts_round_edge(ts_round_edge(ts_round_edge(value - low) * parts) / span);
        return bin >= (double)(g.bins - 1) ? g.bins - 1 : bin > 0 ? (ts_i64)bin : (ts_i64)0;
    });
}
