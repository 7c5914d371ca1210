// searchsorted and repeat_interleave. T: memory type.
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
