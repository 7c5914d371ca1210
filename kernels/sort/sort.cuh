// Stable sort of rows, topk, kthvalue, median, mode and unique: a bitonic sort of tiles in shared memory, then merges of
// adjacent runs. T: memory type; WIDE: 1 where a key has 64 bits. An entry is a key and an index. Keys are unsigned integers
// that order as the values do: NaN last, all NaN equal, both zeros equal.
#include "math/math.cuh"

struct ts_pair {
    ts_u64 key, index;
};
TS_FN bool ts_entry_less(ts_u64 a, ts_u64 b) { return a < b; }
TS_FN bool ts_entry_less(const ts_pair& a, const ts_pair& b) { return a.key < b.key || (a.key == b.key && a.index < b.index); }
template <int W> struct ts_entry { typedef ts_u64 type; };
template <> struct ts_entry<1> { typedef ts_pair type; };
typedef typename ts_entry<WIDE>::type Entry;

TS_FN ts_u64 ts_sort_key(float x) {
    const ts_u32 b = x != x ? 0xffffffffu : __float_as_uint(x == 0 ? 0.0f : x);
    return x != x ? b : b ^ ((ts_i32)b < 0 ? 0xffffffffu : 0x80000000u);
}
TS_FN ts_u64 ts_sort_key(double x) {
    const ts_u64 b = (ts_u64)__double_as_longlong(x == 0 ? 0.0 : x);
    return x != x ? ~0ULL : b ^ ((ts_i64)b < 0 ? ~0ULL : 1ULL << 63);
}
TS_FN ts_u64 ts_sort_key(ts_i64 x) { return WIDE ? (ts_u64)x ^ 1ULL << 63 : (ts_u64)(ts_u32)(ts_i32)x ^ 0x80000000u; }
TS_FN ts_u64 ts_sort_key(bool x) { return x; }
TS_FN void ts_make_entry(ts_u64 key, ts_u64 index, ts_u64& to) { to = key << 32 | index; }
TS_FN void ts_make_entry(ts_u64 key, ts_u64 index, ts_pair& to) { to = ts_pair{key, index}; }
TS_FN ts_u64 ts_entry_index(ts_u64 e) { return e & 0xffffffffu; }
TS_FN ts_u64 ts_entry_index(const ts_pair& e) { return e.index; }

TS_FN ts_u64 ts_entry_key(ts_u64 e) { return e >> 32; }
TS_FN ts_u64 ts_entry_key(const ts_pair& e) { return e.key; }

#include "sort/args.cuh"

// The entry that pads a tile: it sorts after every other, by its index.
TS_FN void ts_padding_entry(Entry& to) { ts_make_entry(WIDE ? ~0ULL : 0xffffffffULL, WIDE ? ~0ULL : 0xffffffffULL, to); }
TS_FN void ts_load_entry(const Args& g, const T* row, ts_i64 k, Entry& to) {
    ts_u64 key = ts_sort_key(ts_upcast(row[k]));
    if (g.descending) key = ~key;
    ts_make_entry(WIDE ? key : key & 0xffffffffu, (ts_u64)k, to);
}

// Sorts 1024 entries by a bitonic network of 512 threads. Equal keys stay in order, since indices differ.
TS_FN void ts_bitonic_sort(Entry* tile) {
    for (int size = 2; size <= 1024; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            const int low = threadIdx.x / step * 2 * step + threadIdx.x % step, high = low + step;
            const bool up = (low & size) == 0;
            const Entry a = tile[low], b = tile[high];
            if (ts_entry_less(b, a) == up) {
                tile[low] = b;
                tile[high] = a;
            }
        }
    __syncthreads();
}

// A block: sorts one tile of 1024 entries of a row.
TS_KERNEL void __launch_bounds__(512) ts_block_sort(const __grid_constant__ Args g) {
    __shared__ Entry tile[1024];
    const ts_i64 row = blockIdx.x / g.tiles, first = blockIdx.x % g.tiles * 1024;
    for (int k = threadIdx.x; k < 1024; k += 512) {
        if (first + k < g.n) ts_load_entry(g, g.x + row * g.n, first + k, tile[k]);
        else ts_padding_entry(tile[k]);
    }
    ts_bitonic_sort(tile);
    for (int k = threadIdx.x; k < 1024; k += 512)
        if (first + k < g.n) g.to[row * g.n + first + k] = tile[k];
}

// A block: the first `topk` entries of one tile of 1024, either of the n elements of a row or of the n entries (`from`) that
// an earlier pass selected. Each tile writes `topk` entries; past the end they are padding.
TS_KERNEL void __launch_bounds__(512) ts_block_topk(const __grid_constant__ Args g) {
    __shared__ Entry tile[1024];
    const ts_i64 row = blockIdx.x / g.tiles, first = blockIdx.x % g.tiles * 1024;
    for (int k = threadIdx.x; k < 1024; k += 512) {
        if (first + k >= g.n) ts_padding_entry(tile[k]);
        else if (g.from) tile[k] = g.from[row * g.n + first + k];
        else ts_load_entry(g, g.x + row * g.n, first + k, tile[k]);
    }
    ts_bitonic_sort(tile);
    for (int k = threadIdx.x; k < g.topk; k += 512) g.to[(ts_i64)blockIdx.x * g.topk + k] = tile[k];
}

// Merges pairs of runs of `run` entries: the place of an entry is its index in its own run plus its rank in the other.
TS_KERNEL void __launch_bounds__(256) ts_merge_runs(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const ts_i64 row = i / g.n, k = i - row * g.n, pair = k / (2 * g.run) * 2 * g.run;
    const Entry* from = g.from + row * g.n;
    const Entry entry = from[k];
    const bool left = k < pair + g.run;
    ts_i64 low = left ? pair + g.run : pair, high = left ? pair + 2 * g.run : pair + g.run;
    low = low < g.n ? low : g.n;
    high = high < g.n ? high : g.n;
    const ts_i64 start = low;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (ts_entry_less(from[middle], entry)) low = middle + 1;
        else high = middle;
    }
    g.to[row * g.n + pair + (k - (left ? pair : pair + g.run)) + (low - start)] = entry;
}

// Values and indices of the first `topk` of each row of `tiles` entries.
TS_KERNEL void __launch_bounds__(256) ts_gather_sorted(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.topk) return;
    const ts_i64 row = i / g.topk;
    const ts_i64 index = (ts_i64)ts_entry_index(g.from[row * g.tiles + (i - row * g.topk)]);
    if (g.values) g.values[i] = g.x[row * g.n + index];
    if (g.indices) g.indices[i] = index;
}

// Binary search in a sorted row: the first entry whose key is at least `key` (lower bound), or above it (upper bound).
TS_FN ts_i64 ts_search_bound(const Entry* row, ts_i64 n, ts_u64 key, bool above) {
    ts_i64 low = 0, high = n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        const ts_u64 found = ts_entry_key(row[middle]);
        if (above ? found > key : found >= key) high = middle;
        else low = middle + 1;
    }
    return low;
}
TS_FN ts_u64 ts_max_key() { return WIDE ? ~0ULL : 0xffffffffULL; }

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

// One element of each sorted row (`from`): the k-th (k in `run`) if `topk` is 0; the lower median if it is 1 (a NaN is the
// median where there is one) or 2 (NaN is ignored). tiles: whether there are NaN. descending: rows up to this length select
// among equal elements as PyTorch does, using `to` as scratch.
TS_KERNEL void __launch_bounds__(256) ts_select_kth(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= g.rows) return;
    const Entry* sorted = g.from + row * g.n;
    const ts_i64 not_nan = g.tiles ? ts_search_bound(sorted, g.n, ts_max_key(), false) : g.n;
    ts_i64 k = (g.n - 1) / 2;
    if (g.topk == 0) k = g.run < g.n ? g.run : g.n - 1;
    else if (g.topk == 2 && not_nan > 0) k = (not_nan - 1) / 2;
    else if (not_nan < g.n) k = not_nan;
    ts_i64 index = (ts_i64)ts_entry_index(sorted[k]);
    const ts_u64 key = ts_entry_key(sorted[k]);
    const bool ties = (k > 0 && ts_entry_key(sorted[k - 1]) == key) || (k + 1 < g.n && ts_entry_key(sorted[k + 1]) == key);
    if (g.topk == 0 && ties && g.n <= g.descending) {
        Entry* unsorted = g.to + row * g.n;
        for (ts_i64 i = 0; i < g.n; i++)
            ts_make_entry(ts_entry_key(sorted[i]), ts_entry_index(sorted[i]), unsorted[ts_entry_index(sorted[i])]);
        ts_quickselect(unsorted, g.n, k);
        index = (ts_i64)ts_entry_index(unsorted[k]);
    }
    g.values[row] = g.x[row * g.n + index];
    if (g.indices) g.indices[row] = index;
}

// The longest run of equal elements of each sorted row, the first of those of equal length: its length and, inverted, its
// start, packed for atomicMax. Each NaN is a run of its own.
TS_KERNEL void __launch_bounds__(256) ts_longest_runs(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const ts_i64 row = i / g.n, k = i - row * g.n;
    const Entry* sorted = g.from + row * g.n;
    const ts_u64 key = ts_entry_key(sorted[k]);
    const bool nan = g.tiles && key == ts_max_key();
    if (!nan && k > 0 && ts_entry_key(sorted[k - 1]) == key) return;
    const ts_i64 length = nan ? 1 : ts_search_bound(sorted, g.n, key, true) - k;
    atomicMax((ts_u64*)g.to + row, (ts_u64)length << 32 | (0xffffffffULL - (ts_u64)k));
}
TS_KERNEL void __launch_bounds__(256) ts_mode(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= g.rows) return;
    const ts_u64 best = ((const ts_u64*)g.to)[row];
    const ts_i64 k = (ts_i64)(0xffffffffULL - (best & 0xffffffffULL)) + (ts_i64)(best >> 32) - 1;
    const ts_i64 index = (ts_i64)ts_entry_index(g.from[row * g.n + k]);
    g.values[row] = g.x[row * g.n + index];
    if (g.indices) g.indices[row] = index;
}

// to: bytes, 1 where an element of x differs from the one before it.
TS_KERNEL void __launch_bounds__(256) ts_unique_flags(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const typename ts_opmath<T>::type value = ts_upcast(g.x[i]);
    ((ts_u8*)g.to)[i] = i == 0 || value != value || ts_sort_key(value) != ts_sort_key(ts_upcast(g.x[i - 1]));
}
// Scatters unique elements. x: n sorted elements; `indices`: their original indices (null: identity); `from`: the rank of each
// among the unique ones; `values`: the unique elements; `to`: the inverse indices, then `run`: where each run starts.
TS_KERNEL void __launch_bounds__(256) ts_unique_scatter(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i64* rank = (const ts_i64*)g.from;
    ts_i64 *inverse = (ts_i64*)g.to, *run_starts = (ts_i64*)g.run;
    inverse[g.indices ? g.indices[i] : i] = rank[i];
    if (i > 0 && rank[i - 1] == rank[i]) return;
    g.values[rank[i]] = g.x[i];
    run_starts[rank[i]] = i;
}
// to: the count of each unique element, from the starts of runs (`run`); indices[0]: the number of unique elements.
TS_KERNEL void __launch_bounds__(256) ts_unique_counts(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, unique = g.indices[0];
    if (i >= unique) return;
    const ts_i64* run_starts = (const ts_i64*)g.run;
    ((ts_i64*)g.to)[i] = (i + 1 < unique ? run_starts[i + 1] : g.n) - run_starts[i];
}
