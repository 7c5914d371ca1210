// Finding places in sorted rows, histograms, the largest of integers, and what counts say of repeats. T: memory type.
#include "math/math.cuh"

typedef typename ts_of<T>::cls C;

struct Args {
    const T *a, *b;
    const ts_i64* order;
    ts_i64* y;
    double* limits;
    void* fault;
    ts_i64 n, per, count, flag;
    double low, high;
};

// y: where each of `count` values b goes in its row of a (n entries; rows of `per` values), after equals when `flag`.
// `order`, if any, lists the ascending order of a row.
TS_KERNEL void __launch_bounds__(256) ts_search(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const T* row = g.a + i / g.per * g.n;
    const ts_i64* order = g.order ? g.order + i / g.per * g.n : g.order;
    const C value = ts_up(g.b[i]);
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        ts_i64 place = middle;
        if (order) {
            place = order[middle];
            place = place >= 0 && place < g.n ? place : 0;
        }
        const C found = ts_up(row[place]);
        if (g.flag ? found > value : found >= value) high = middle;
        else low = middle + 1;
    }
    g.y[i] = low;
}

// y[0], set before, becomes at least one more than the largest of `count` integers a.
TS_KERNEL void __launch_bounds__(256) ts_largest(const __grid_constant__ Args g) {
    ts_i64 most = -1;
    for (ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x; i < g.count; i += (ts_i64)gridDim.x * 256) {
        const ts_i64 value = ts_int(ts_up(g.a[i]));
        most = value > most ? value : most;
    }
    for (int d = 16; d > 0; d /= 2) {
        const ts_i64 other = __shfl_xor_sync(0xffffffffu, most, d);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0 && most >= 0) atomicMax(g.y, most == 0x7fffffffffffffffLL ? most : most + 1);
}

// The smallest and largest of what each block saw, then of all, as the limits of a histogram.
TS_FN void ts_narrow_limits(double& low, double& high) {
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
TS_KERNEL void __launch_bounds__(256) ts_limits(const __grid_constant__ Args g) {
    double low = ts_inf(0.0), high = -ts_inf(0.0);
    for (ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x; i < g.count; i += (ts_i64)gridDim.x * 256) {
        const double value = (double)ts_up(g.a[i]);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    ts_narrow_limits(low, high);
    if (threadIdx.x == 0) {
        g.limits[2 + 2 * blockIdx.x] = low;
        g.limits[3 + 2 * blockIdx.x] = high;
    }
}
TS_KERNEL void __launch_bounds__(256) ts_all_limits(const __grid_constant__ Args g) {
    double low = ts_inf(0.0), high = -ts_inf(0.0);
    for (ts_i64 i = threadIdx.x; i < g.per; i += 256) {
        const double l = g.limits[2 + 2 * i], h = g.limits[3 + 2 * i];
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    ts_narrow_limits(low, high);
    if (low > high) low = high = 0;
    if (low == high) {
        low -= 1;
        high += 1;
    }
    if (threadIdx.x == 0) {
        g.limits[0] = low;
        g.limits[1] = high;
    }
}
// In the arithmetic of the elements' type: edges would fall elsewhere in another.
TS_FN double ts_rounded(double x) { return (double)ts_up(ts_down<T>(x)); }
TS_KERNEL void __launch_bounds__(256) ts_histogram(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const double low = ts_rounded(g.limits ? g.limits[0] : g.low), high = ts_rounded(g.limits ? g.limits[1] : g.high);
    const double value = (double)ts_up(g.a[i]);
    if (!(value >= low && value <= high)) return;
    const double parts = ts_rounded((double)g.n), span = ts_rounded(high - low);
    const double bin = ts_rounded(ts_rounded(ts_rounded(value - low) * parts) / span);
    const ts_i64 at = bin >= (double)(g.n - 1) ? g.n - 1 : bin > 0 ? (ts_i64)bin : 0;
    atomicAdd((ts_u64*)g.y + at, 1ULL);
}

// y: the counts a, none below 0; a negative one is told.
TS_KERNEL void __launch_bounds__(256) ts_repeats(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const ts_i64 value = ts_int(ts_up(g.a[i]));
    if (value < 0 && g.fault) ts_fault(g.fault, TS_INDEX, 0, (ts_u64)i, value, 0x7fffffffffffffffLL);
    g.y[i] = value < 0 ? 0 : value;
}
// y[k]: the first entry whose running sum (order, n entries) is above k.
TS_KERNEL void __launch_bounds__(256) ts_spread(const __grid_constant__ Args g) {
    const ts_i64 k = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (k >= g.count) return;
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (g.order[middle] > k) high = middle;
        else low = middle + 1;
    }
    g.y[k] = low;
}
