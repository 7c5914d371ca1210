// searchsorted, bincount, histc and repeat_interleave. T: memory type.
#include "math/math.cuh"

typedef typename ts_opmath<T>::type C;

#include "search/args.cuh"

// searchsorted. y: the insertion point of each of `count` values b in its row of a (n entries; `row_values` values a row);
// after equal entries if `flag`. `sorter`: if given, the indices that sort a row.
TS_KERNEL void __launch_bounds__(256) ts_searchsorted(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const T* row = g.a + i / g.row_values * g.n;
    const ts_i64* sorter = g.sorter ? g.sorter + i / g.row_values * g.n : g.sorter;
    const C value = ts_upcast(g.b[i]);
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        ts_i64 place = middle;
        if (sorter) {
            place = sorter[middle];
            place = place >= 0 && place < g.n ? place : 0;
        }
        const C found = ts_upcast(row[place]);
        if (g.flag ? found > value : found >= value) high = middle;
        else low = middle + 1;
    }
    g.y[i] = low;
}

// y[0] = max(y[0], 1 + max(a)) for `count` integers a.
TS_KERNEL void __launch_bounds__(256) ts_bincount_size(const __grid_constant__ Args g) {
    ts_i64 max = -1;
    for (ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x; i < g.count; i += (ts_i64)gridDim.x * 256) {
        const ts_i64 value = ts_int(ts_upcast(g.a[i]));
        max = value > max ? value : max;
    }
    for (int d = 16; d > 0; d /= 2) {
        const ts_i64 other = __shfl_xor_sync(0xffffffffu, max, d);
        max = other > max ? other : max;
    }
    if (threadIdx.x % 32 == 0 && max >= 0) atomicMax(g.y, max == 0x7fffffffffffffffLL ? max : max + 1);
}

// Minimum and maximum of a block's elements, then of all, as the range of histc.
TS_FN void ts_block_minmax(double& low, double& high) {
    __shared__ double lows[8], highs[8];
    for (int d = 16; d > 0; d /= 2) {
        const double l = __shfl_xor_sync(0xffffffffu, low, d), h = __shfl_xor_sync(0xffffffffu, high, d);
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    if (threadIdx.x % 32 == 0) {
        lows[threadIdx.x / 32] = low;
        highs[threadIdx.x / 32] = high;
    }
    __syncthreads();
    for (int w = 0; w < 8; w++) {
        low = lows[w] < low ? lows[w] : low;
        high = highs[w] > high ? highs[w] : high;
    }
}
TS_KERNEL void __launch_bounds__(256) ts_histc_minmax(const __grid_constant__ Args g) {
    double low = ts_inf(0.0), high = -ts_inf(0.0);
    for (ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x; i < g.count; i += (ts_i64)gridDim.x * 256) {
        const double value = (double)ts_upcast(g.a[i]);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    ts_block_minmax(low, high);
    if (threadIdx.x == 0) {
        g.range[2 + 2 * blockIdx.x] = low;
        g.range[3 + 2 * blockIdx.x] = high;
    }
}
TS_KERNEL void __launch_bounds__(256) ts_histc_range(const __grid_constant__ Args g) {
    double low = ts_inf(0.0), high = -ts_inf(0.0);
    for (ts_i64 i = threadIdx.x; i < g.row_values; i += 256) {
        const double l = g.range[2 + 2 * i], h = g.range[3 + 2 * i];
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    ts_block_minmax(low, high);
    if (low > high) low = high = 0;
    if (low == high) {
        low -= 1;
        high += 1;
    }
    if (threadIdx.x == 0) {
        g.range[0] = low;
        g.range[1] = high;
    }
}
// Rounds to the elements' type: the edges of bins depend on it.
TS_FN double ts_round_to_type(double x) { return (double)ts_upcast(ts_downcast<T>(x)); }
TS_KERNEL void __launch_bounds__(256) ts_histc(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const double low = ts_round_to_type(g.range ? g.range[0] : g.low), high = ts_round_to_type(g.range ? g.range[1] : g.high);
    const double value = (double)ts_upcast(g.a[i]);
    if (!(value >= low && value <= high)) return;
    const double parts = ts_round_to_type((double)g.n), span = ts_round_to_type(high - low);
    const double bin = ts_round_to_type(ts_round_to_type(ts_round_to_type(value - low) * parts) / span);
    const ts_i64 at = bin >= (double)(g.n - 1) ? g.n - 1 : bin > 0 ? (ts_i64)bin : 0;
    atomicAdd((ts_u64*)g.y + at, 1ULL);
}

// y: the counts a, clamped at 0; a negative one is reported.
TS_KERNEL void __launch_bounds__(256) ts_repeat_counts(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const ts_i64 value = ts_int(ts_upcast(g.a[i]));
    if (value < 0 && g.fault) ts_fault(g.fault, TS_INDEX, 0, (ts_u64)i, value, 0x7fffffffffffffffLL);
    g.y[i] = value < 0 ? 0 : value;
}
// y[k]: the first entry whose cumulative sum (`sorter`, n entries) is above k.
TS_KERNEL void __launch_bounds__(256) ts_repeat_interleave(const __grid_constant__ Args g) {
    const ts_i64 k = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (k >= g.count) return;
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (g.sorter[middle] > k) high = middle;
        else low = middle + 1;
    }
    g.y[k] = low;
}
