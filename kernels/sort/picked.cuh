// kthvalue, median and mode from sorted rows. T: memory type. sorted: the elements of each row in order; `positions`: where they
// are in the row.
#include "sort/keys.cuh"
#include "sort/picked_args.cuh"

// Binary search in a sorted row: the first element whose key is at least `key`, or above it.
TS_FN ts_i64 ts_search_bound(const T* row, ts_i64 n, Key key, bool above) {
    ts_i64 low = 0, high = n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        const Key found = ts_key(row[middle], false);
        if (above ? found > key : found >= key) high = middle;
        else low = middle + 1;
    }
    return low;
}

// PyTorch's quickselect. It determines which of several equal elements is the k-th.
TS_FN void ts_swap_entries(Entry* x, ts_i64 a, ts_i64 b) {
    const Entry saved = x[a];
    x[a] = x[b];
    x[b] = saved;
}
TS_FN bool ts_key_less(const Entry& a, const Entry& b) { return ts_entry_key(a) < ts_entry_key(b); }
static __device__ void ts_quickselect(Entry* x, ts_i64 n, ts_i64 k) {
    ts_i64 left = 0, right = n - 1;
    while (right > left) {
        if (right == left + 1) {
            if (ts_key_less(x[right], x[left])) ts_swap_entries(x, left, right);
            return;
        }
        ts_swap_entries(x, left + (right - left) / 2, left + 1);
        if (ts_key_less(x[right], x[left + 1])) ts_swap_entries(x, left + 1, right);
        if (ts_key_less(x[right], x[left])) ts_swap_entries(x, left, right);
        if (ts_key_less(x[left], x[left + 1])) ts_swap_entries(x, left + 1, left);
        const Entry pivot = x[left];
        ts_i64 i = left + 1, j = right;
        for (;;) {
            do i++; while (ts_key_less(x[i], pivot));
            do j--; while (ts_key_less(pivot, x[j]));
            if (j < i) break;
            ts_swap_entries(x, i, j);
        }
        ts_swap_entries(x, left, j);
        if (j <= k) left = i;
        if (j >= k) right = j - 1;
    }
}

TS_FN void ts_store_picked(const PickedArgs& g, ts_i64 row, ts_u32 position) {
    g.values[row] = g.x[row * g.n + position];
    if (g.indices) g.indices[row] = position;
}

// One element of each row: the k-th if `mode` is 0; the lower median if it is 1 (a NaN is the median where there is one) or 2
// (NaN is ignored). `entries`: memory to select among equal elements as PyTorch does; null where rows are too long for that.
TS_KERNEL void __launch_bounds__(256) ts_select_kth(const __grid_constant__ PickedArgs g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= g.rows) return;
    const T* sorted = g.sorted + row * g.n;
    const ts_u32* positions = g.positions + row * g.n;
    const ts_i64 numbers = IS_FLOAT && g.mode != 0 ? ts_search_bound(sorted, g.n, MAX_KEY, false) : g.n;
    ts_i64 k = (g.n - 1) / 2;
    if (g.mode == 0) k = g.k < g.n ? g.k : g.n - 1;
    else if (g.mode == 2 && numbers > 0) k = (numbers - 1) / 2;
    else if (numbers < g.n) k = numbers;
    ts_u32 position = positions[k];
    const Key key = ts_key(sorted[k], false);
    const bool ties = (k > 0 && ts_key(sorted[k - 1], false) == key) || (k + 1 < g.n && ts_key(sorted[k + 1], false) == key);
    if (g.entries && ties) {
        Entry* unsorted = (Entry*)g.entries + row * g.n;
        for (ts_i64 i = 0; i < g.n; i++) ts_make_entry(ts_key(g.x[row * g.n + i], false), (ts_u32)i, unsorted[i]);
        ts_quickselect(unsorted, g.n, k);
        position = ts_entry_position(unsorted[k]);
    }
    ts_store_picked(g, row, position);
}

// The longest run of equal elements of each row, the first of those of equal length: its length and, inverted, its start,
// packed for atomicMax. Each NaN is a run of its own.
TS_KERNEL void __launch_bounds__(256) ts_longest_runs(const __grid_constant__ PickedArgs g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const ts_i64 row = i / g.n, k = i - row * g.n;
    const T* sorted = g.sorted + row * g.n;
    const Key key = ts_key(sorted[k], false);
    const bool nan = IS_FLOAT && key == MAX_KEY;
    if (!nan && k > 0 && ts_key(sorted[k - 1], false) == key) return;
    const ts_i64 length = nan ? 1 : ts_search_bound(sorted, g.n, key, true) - k;
    atomicMax((ts_u64*)g.runs + row, (ts_u64)length << 32 | (0xffffffffULL - (ts_u64)k));
}
TS_KERNEL void __launch_bounds__(256) ts_mode(const __grid_constant__ PickedArgs g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= g.rows) return;
    const ts_u64 best = g.runs[row];
    const ts_i64 k = (ts_i64)(0xffffffffULL - (best & 0xffffffffULL)) + (ts_i64)(best >> 32) - 1;
    ts_store_picked(g, row, g.positions[row * g.n + k]);
}
