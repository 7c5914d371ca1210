// Stable sorts of rows: tiles in shared memory, then merges of neighbouring runs. T: memory type; WIDE: 1 where a key has
// 64 bits. An entry is a key and a position; keys order as the values do, NaN after everything, all NaN and both zeros alike.
#include "math/math.cuh"

struct ts_pair {
    ts_u64 key, at;
};
TS_FN bool ts_before(ts_u64 a, ts_u64 b) { return a < b; }
TS_FN bool ts_before(const ts_pair& a, const ts_pair& b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
template <int W> struct ts_entry { typedef ts_u64 type; };
template <> struct ts_entry<1> { typedef ts_pair type; };
typedef typename ts_entry<WIDE>::type Entry;

TS_FN ts_u64 ts_key(float x) {
    const ts_u32 b = x != x ? 0xffffffffu : __float_as_uint(x == 0 ? 0.0f : x);
    return x != x ? b : b ^ ((ts_i32)b < 0 ? 0xffffffffu : 0x80000000u);
}
TS_FN ts_u64 ts_key(double x) {
    const ts_u64 b = (ts_u64)__double_as_longlong(x == 0 ? 0.0 : x);
    return x != x ? ~0ULL : b ^ ((ts_i64)b < 0 ? ~0ULL : 1ULL << 63);
}
TS_FN ts_u64 ts_key(ts_i64 x) { return WIDE ? (ts_u64)x ^ 1ULL << 63 : (ts_u64)(ts_u32)(ts_i32)x ^ 0x80000000u; }
TS_FN ts_u64 ts_key(bool x) { return x; }
TS_FN void ts_make(ts_u64 key, ts_u64 at, ts_u64& to) { to = key << 32 | at; }
TS_FN void ts_make(ts_u64 key, ts_u64 at, ts_pair& to) { to = ts_pair{key, at}; }
TS_FN ts_u64 ts_position(ts_u64 e) { return e & 0xffffffffu; }
TS_FN ts_u64 ts_position(const ts_pair& e) { return e.at; }

TS_FN ts_u64 ts_key_of(ts_u64 e) { return e >> 32; }
TS_FN ts_u64 ts_key_of(const ts_pair& e) { return e.key; }

struct Args {
    const T* x;
    T* values;
    ts_i64* at;
    Entry *from, *to;
    ts_i64 rows, n, run, kept, descending, tiles;
};

// What lies past the end comes last: its position is beyond every other.
TS_FN void ts_past(Entry& to) { ts_make(WIDE ? ~0ULL : 0xffffffffULL, WIDE ? ~0ULL : 0xffffffffULL, to); }
TS_FN void ts_read_entry(const Args& g, const T* row, ts_i64 k, Entry& to) {
    ts_u64 key = ts_key(ts_up(row[k]));
    if (g.descending) key = ~key;
    ts_make(WIDE ? key : key & 0xffffffffu, (ts_u64)k, to);
}

// 1024 entries by a bitonic network of 512 threads; equal keys stay in order, as positions differ.
TS_FN void ts_network(Entry* tile) {
    for (int size = 2; size <= 1024; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            const int low = threadIdx.x / step * 2 * step + threadIdx.x % step, high = low + step;
            const bool up = (low & size) == 0;
            const Entry a = tile[low], b = tile[high];
            if (ts_before(b, a) == up) {
                tile[low] = b;
                tile[high] = a;
            }
        }
    __syncthreads();
}

// A block: one tile of 1024 entries of a row, sorted.
TS_KERNEL void __launch_bounds__(512) ts_sort_tiles(const __grid_constant__ Args g) {
    __shared__ Entry tile[1024];
    const ts_i64 row = blockIdx.x / g.tiles, first = blockIdx.x % g.tiles * 1024;
    for (int k = threadIdx.x; k < 1024; k += 512) {
        if (first + k < g.n) ts_read_entry(g, g.x + row * g.n, first + k, tile[k]);
        else ts_past(tile[k]);
    }
    ts_network(tile);
    for (int k = threadIdx.x; k < 1024; k += 512)
        if (first + k < g.n) g.to[row * g.n + first + k] = tile[k];
}

// A block: the first `kept` of one tile of 1024, of the n elements of a row or of the n entries (`from`) that an earlier
// pass kept of it. Each tile leaves `kept` entries, past the end those that come last.
TS_KERNEL void __launch_bounds__(512) ts_best_of_tiles(const __grid_constant__ Args g) {
    __shared__ Entry tile[1024];
    const ts_i64 row = blockIdx.x / g.tiles, first = blockIdx.x % g.tiles * 1024;
    for (int k = threadIdx.x; k < 1024; k += 512) {
        if (first + k >= g.n) ts_past(tile[k]);
        else if (g.from) tile[k] = g.from[row * g.n + first + k];
        else ts_read_entry(g, g.x + row * g.n, first + k, tile[k]);
    }
    ts_network(tile);
    for (int k = threadIdx.x; k < g.kept; k += 512) g.to[(ts_i64)blockIdx.x * g.kept + k] = tile[k];
}

// Merges pairs of runs of `run` entries: each entry's place is its own index plus its rank in the other run.
TS_KERNEL void __launch_bounds__(256) ts_sort_merge(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const ts_i64 row = i / g.n, k = i - row * g.n, pair = k / (2 * g.run) * 2 * g.run;
    const Entry* from = g.from + row * g.n;
    const Entry mine = from[k];
    const bool left = k < pair + g.run;
    ts_i64 low = left ? pair + g.run : pair, high = left ? pair + 2 * g.run : pair + g.run;
    low = low < g.n ? low : g.n;
    high = high < g.n ? high : g.n;
    const ts_i64 start = low;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (ts_before(from[middle], mine)) low = middle + 1;
        else high = middle;
    }
    g.to[row * g.n + pair + (k - (left ? pair : pair + g.run)) + (low - start)] = mine;
}

// The first `kept` of each row of `tiles` entries: values and positions.
TS_KERNEL void __launch_bounds__(256) ts_sort_results(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.kept) return;
    const ts_i64 row = i / g.kept;
    const ts_i64 at = (ts_i64)ts_position(g.from[row * g.tiles + (i - row * g.kept)]);
    if (g.values) g.values[i] = g.x[row * g.n + at];
    if (g.at) g.at[i] = at;
}

// The first entry of a sorted row whose key is at least `key`, or above it.
TS_FN ts_i64 ts_bound(const Entry* row, ts_i64 n, ts_u64 key, bool above) {
    ts_i64 low = 0, high = n;
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        const ts_u64 found = ts_key_of(row[middle]);
        if (above ? found > key : found >= key) high = middle;
        else low = middle + 1;
    }
    return low;
}
TS_FN ts_u64 ts_top() { return WIDE ? ~0ULL : 0xffffffffULL; }

// PyTorch's quickselect, which decides which of equal elements is the k-th.
TS_FN void ts_swap_entries(Entry* x, ts_i64 a, ts_i64 b) {
    const Entry kept = x[a];
    x[a] = x[b];
    x[b] = kept;
}
TS_FN bool ts_less(const Entry& a, const Entry& b) { return ts_key_of(a) < ts_key_of(b); }
static __device__ void ts_quick_select(Entry* x, ts_i64 n, ts_i64 k) {
    ts_i64 left = 0, right = n - 1;
    while (right > left) {
        if (right == left + 1) {
            if (ts_less(x[right], x[left])) ts_swap_entries(x, left, right);
            return;
        }
        ts_swap_entries(x, left + (right - left) / 2, left + 1);
        if (ts_less(x[right], x[left + 1])) ts_swap_entries(x, left + 1, right);
        if (ts_less(x[right], x[left])) ts_swap_entries(x, left, right);
        if (ts_less(x[left], x[left + 1])) ts_swap_entries(x, left + 1, left);
        const Entry pivot = x[left];
        ts_i64 i = left + 1, j = right;
        for (;;) {
            do i++; while (ts_less(x[i], pivot));
            do j--; while (ts_less(pivot, x[j]));
            if (j < i) break;
            ts_swap_entries(x, i, j);
        }
        ts_swap_entries(x, left, j);
        if (j <= k) left = i;
        if (j >= k) right = j - 1;
    }
}

// One element of each sorted row (from): its k-th (run), or the lower of the middle ones (kept: 1 where NaN counts, 2 where it
// does not). tiles: whether there is NaN. descending: rows up to this long choose among equals as PyTorch does, by way of `to`.
TS_KERNEL void __launch_bounds__(256) ts_pick(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= g.rows) return;
    const Entry* sorted = g.from + row * g.n;
    const ts_i64 numbers = g.tiles ? ts_bound(sorted, g.n, ts_top(), false) : g.n;
    ts_i64 k = (g.n - 1) / 2;
    if (g.kept == 0) k = g.run < g.n ? g.run : g.n - 1;
    else if (g.kept == 2 && numbers > 0) k = (numbers - 1) / 2;
    else if (numbers < g.n) k = numbers;
    ts_i64 at = (ts_i64)ts_position(sorted[k]);
    const ts_u64 key = ts_key_of(sorted[k]);
    const bool ties = (k > 0 && ts_key_of(sorted[k - 1]) == key) || (k + 1 < g.n && ts_key_of(sorted[k + 1]) == key);
    if (g.kept == 0 && ties && g.n <= g.descending) {
        Entry* again = g.to + row * g.n;
        for (ts_i64 i = 0; i < g.n; i++) ts_make(ts_key_of(sorted[i]), ts_position(sorted[i]), again[ts_position(sorted[i])]);
        ts_quick_select(again, g.n, k);
        at = (ts_i64)ts_position(again[k]);
    }
    g.values[row] = g.x[row * g.n + at];
    if (g.at) g.at[row] = at;
}

// The longest run of equals of each sorted row, the first of equally long ones: its length and, inverted, its beginning. Each
// NaN is a run of its own.
TS_KERNEL void __launch_bounds__(256) ts_runs(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const ts_i64 row = i / g.n, k = i - row * g.n;
    const Entry* sorted = g.from + row * g.n;
    const ts_u64 key = ts_key_of(sorted[k]);
    const bool nan = g.tiles && key == ts_top();
    if (!nan && k > 0 && ts_key_of(sorted[k - 1]) == key) return;
    const ts_i64 length = nan ? 1 : ts_bound(sorted, g.n, key, true) - k;
    atomicMax((ts_u64*)g.to + row, (ts_u64)length << 32 | (0xffffffffULL - (ts_u64)k));
}
TS_KERNEL void __launch_bounds__(256) ts_modes(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= g.rows) return;
    const ts_u64 best = ((const ts_u64*)g.to)[row];
    const ts_i64 k = (ts_i64)(0xffffffffULL - (best & 0xffffffffULL)) + (ts_i64)(best >> 32) - 1;
    const ts_i64 at = (ts_i64)ts_position(g.from[row * g.n + k]);
    g.values[row] = g.x[row * g.n + at];
    if (g.at) g.at[row] = at;
}

// to: bytes, 1 where the n elements of x begin something new.
TS_KERNEL void __launch_bounds__(256) ts_firsts(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const typename ts_of<T>::cls mine = ts_up(g.x[i]);
    ((ts_u8*)g.to)[i] = i == 0 || mine != mine || ts_key(mine) != ts_key(ts_up(g.x[i - 1]));
}
// Of n elements x in order, of which `at` tells the positions (null: their own) and `from` the numbers of what is distinct:
// `values` what is distinct, `to` (after n numbers of where each position belongs) where each begins.
TS_KERNEL void __launch_bounds__(256) ts_distinct(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i64* rank = (const ts_i64*)g.from;
    ts_i64 *inverse = (ts_i64*)g.to, *begins = (ts_i64*)g.run;
    inverse[g.at ? g.at[i] : i] = rank[i];
    if (i > 0 && rank[i - 1] == rank[i]) return;
    g.values[rank[i]] = g.x[i];
    begins[rank[i]] = i;
}
// to: how many there are of each distinct element, from where each begins (run); at[0]: how many are distinct.
TS_KERNEL void __launch_bounds__(256) ts_distinct_counts(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, distinct = g.at[0];
    if (i >= distinct) return;
    const ts_i64* begins = (const ts_i64*)g.run;
    ((ts_i64*)g.to)[i] = (i + 1 < distinct ? begins[i + 1] : g.n) - begins[i];
}
