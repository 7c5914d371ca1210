// searchsorted and repeat_interleave. T: memory type.
#include "math/math.cuh"

typedef typename ts_opmath<T>::type C;

#include "search/args.cuh"

// Values of a thread: their loads, of which each waits for the one before it, are in flight together.
enum { ITEMS = 4 };

// The row of value i.
TS_FN ts_i64 ts_search_row(const Args& g, ts_i64 i) {
    if (g.row_values >= g.count) return 0;
    const bool narrow = (ts_u64)g.count >> 32 == 0;
    return narrow ? (ts_i64)((ts_u32)i / (ts_u32)g.row_values) : i / g.row_values;
}
// Whether the insertion point of a value lies behind the entry `found`.
TS_FN bool ts_is_behind(const Args& g, C found, C value) { return !(g.flag ? found > value : found >= value); }

// The values from `first` on, 256 apart, by places of type I.
template <class I> TS_FN void ts_search(const Args& g, ts_i64 first) {
    const T* row[ITEMS];
    C value[ITEMS];
    I low[ITEMS], high[ITEMS];
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        const ts_i64 i = first + 256 * e;
        const bool inside = i < g.count;
        row[e] = g.a + ts_search_row(g, inside ? i : 0) * g.n;
        value[e] = ts_upcast(g.b[inside ? i : 0]);
        low[e] = 0;
        high[e] = inside ? (I)g.n : 0;
    }
    for (bool more = true; more;) {
        more = false;
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            if (low[e] >= high[e]) continue;
            const I middle = low[e] + (high[e] - low[e]) / 2;
            const bool behind = ts_is_behind(g, ts_upcast(row[e][middle]), value[e]);
            low[e] = behind ? middle + 1 : low[e];
            high[e] = behind ? high[e] : middle;
            more = more || low[e] < high[e];
        }
    }
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (first + 256 * e < g.count) g.y[first + 256 * e] = (ts_i64)low[e];
}

// searchsorted. y: the insertion point of each of `count` values b in its row of a (n entries; `row_values` values a row);
// after equal entries if `flag`.
TS_KERNEL void __launch_bounds__(256) ts_searchsorted(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * (256 * ITEMS) + threadIdx.x;
    if (g.n >> 31 == 0) ts_search<ts_u32>(g, first);
    else ts_search<ts_i64>(g, first);
}
// The same where `sorter` has the indices that sort a row.
TS_KERNEL void __launch_bounds__(256) ts_searchsorted_by(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return;
    const ts_i64 from = ts_search_row(g, i) * g.n;
    const C value = ts_upcast(g.b[i]);
    ts_i64 low = 0, high = g.n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2, written = g.sorter[from + middle];
        const ts_i64 place = written >= 0 && written < g.n ? written : 0;
        if (ts_is_behind(g, ts_upcast(g.a[from + place]), value)) low = middle + 1;
        else high = middle;
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
