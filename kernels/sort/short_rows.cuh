// Stable sort of short rows: a bitonic network (Batcher, 1968) in the registers of LANES adjacent threads with E entries each;
// both are powers of two. T: memory type. Each row gives its first `kept` elements.
#include "sort/keys.cuh"
#include "sort/row_args.cuh"

static const int THREADS = 256, WIDTH = LANES * E;

TS_FN ts_u64 ts_exchange_entry(ts_u64 e, int lanes) { return __shfl_xor_sync(0xffffffffu, e, lanes); }
TS_FN ts_key_position ts_exchange_entry(const ts_key_position& e, int lanes) {
    const ts_u32 position = __shfl_xor_sync(0xffffffffu, (ts_u32)e.position, lanes);
    return ts_key_position{__shfl_xor_sync(0xffffffffu, e.key, lanes), position};
}

// One step: compares entries whose places in the row differ by STEP, in runs of SIZE that alternate in direction.
template <int SIZE, int STEP> TS_FN void ts_bitonic_step(Entry* entries, int place) {
#pragma unroll
    for (int e = 0; e < E; e++) {
        const bool up = ((place + e) & SIZE) == 0;
        if (STEP >= E) {
            const Entry mine = entries[e], other = ts_exchange_entry(mine, STEP / E > 0 ? STEP / E : 1);
            const bool keeps_lower = (((place + e) & STEP) == 0) == up;
            if (ts_entry_less(other, mine) == keeps_lower) entries[e] = other;
        } else if ((e & STEP) == 0) {
            const Entry low = entries[e], high = entries[(e | STEP) % E];
            if (ts_entry_less(high, low) == up) {
                entries[e] = high;
                entries[(e | STEP) % E] = low;
            }
        }
    }
    if constexpr (STEP > 1) ts_bitonic_step<SIZE, STEP / 2>(entries, place);
}
template <int SIZE> TS_FN void ts_bitonic_sort(Entry* entries, int place) {
    if constexpr (SIZE > 2) ts_bitonic_sort<SIZE / 2>(entries, place);
    ts_bitonic_step<SIZE, SIZE / 2>(entries, place);
}

TS_KERNEL void __launch_bounds__(THREADS) ts_sort_short_rows(const __grid_constant__ RowArgs g) {
    // A place is left free after each thread's entries, so that lanes use different banks.
    __shared__ Entry tile[THREADS * (E + 1)];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / 32;
    const ts_i64 row = (ts_i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const T* x = g.x + row * g.n;
    Entry entries[E];
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int at = e * LANES + lane;
        ts_padding_entry(entries[e]);
        if (row < g.rows && at < g.n) ts_make_entry(ts_key(x[at], g.descending), at, entries[e]);
    }
    if constexpr (WIDTH > 1) ts_bitonic_sort<WIDTH>(entries, lane * E);
#pragma unroll
    for (int e = 0; e < E; e++) tile[threadIdx.x * (E + 1) + e] = entries[e];
    __syncwarp();
    // A warp writes the results of its rows one after the other.
    const ts_i64 first = ((ts_i64)blockIdx.x * THREADS + warp * 32) / LANES;
    const ts_i64 rows = g.rows - first < 32 / LANES ? g.rows - first : 32 / LANES;
    const ts_u32 kept = (ts_u32)g.kept, count = rows > 0 ? (ts_u32)rows * kept : 0;
    for (ts_u32 k = threadIdx.x % 32; k < count; k += 32) {
        const ts_u32 r = k / kept, at = k - r * kept;
        const Entry entry = tile[(warp * 32 + r * LANES + at / E) * (E + 1) + at % E];
        const ts_u32 position = ts_entry_position(entry);
        const ts_i64 to = first * g.kept + k;
        if (g.values) g.values[to] = ts_element(ts_entry_key(entry), g.descending, g.x + (first + r) * g.n, position);
        if (g.indices) g.indices[to] = position;
        if (g.positions) g.positions[to] = position;
    }
}
