// Stable sorts of rows: tiles in shared memory, then merges of neighbouring runs. T: memory type; WIDE: 1 where a key has
// 64 bits. An entry is a key and a position; keys order as the values do, NaN after everything, all NaN and both zeros alike.
#include "ts_math.cuh"

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

struct Args {
    const T* x;
    T* values;
    ts_i64* at;
    Entry *from, *to;
    ts_i64 rows, n, run, kept, descending, tiles;
};

// A block: one tile of 1024 entries of a row, sorted by a bitonic network; equal keys stay in order, as positions differ.
TS_KERNEL void __launch_bounds__(512) ts_sort_tiles(const __grid_constant__ Args g) {
    __shared__ Entry tile[1024];
    const ts_i64 row = blockIdx.x / g.tiles, first = blockIdx.x % g.tiles * 1024;
    for (int k = threadIdx.x; k < 1024; k += 512) {
        // What lies past the end comes last: its position is beyond every other.
        ts_u64 key = ~0ULL, at = 0xffffffffu;
        if (first + k < g.n) {
            key = ts_key(ts_up(g.x[row * g.n + first + k]));
            if (g.descending) key = ~key;
            at = first + k;
        }
        ts_make(WIDE ? key : key & 0xffffffffu, WIDE && first + k >= g.n ? ~0ULL : at, tile[k]);
    }
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
    for (int k = threadIdx.x; k < 1024; k += 512)
        if (first + k < g.n) g.to[row * g.n + first + k] = tile[k];
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

// The first `kept` of each row: values and positions.
TS_KERNEL void __launch_bounds__(256) ts_sort_results(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.kept) return;
    const ts_i64 row = i / g.kept;
    const ts_i64 at = (ts_i64)ts_position(g.from[row * g.n + (i - row * g.kept)]);
    if (g.values) g.values[i] = g.x[row * g.n + at];
    if (g.at) g.at[i] = at;
}
