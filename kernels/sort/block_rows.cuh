// Stable sort of rows that fit into a block: an LSD radix sort in registers and shared memory. T: memory type; ITEMS: elements
// of each of 256 threads. Each row gives its first `kept` elements.
#include "sort/rank.cuh"
#include "sort/row_args.cuh"

static const int THREADS = 256, TILE = THREADS * ITEMS;

TS_KERNEL void __launch_bounds__(THREADS, KEY_BITS > 32 ? 2 : 3) ts_sort_block_row(const __grid_constant__ RowArgs g) {
    __shared__ ts_digit_counts<THREADS> counts;
    __shared__ union {
        Key keys[TILE];
        ts_u16 positions[TILE];
    } sorted;
    const ts_i64 row = blockIdx.x;
    const T* x = g.x + row * g.n;
    Key keys[ITEMS];
    ts_u16 positions[ITEMS];
    ts_u32 ranks[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = ts_tile_index<ITEMS>(i);
        positions[i] = (ts_u16)at;
        keys[i] = at < g.n ? ts_key(x[at], g.descending) : MAX_KEY;
    }
    for (int shift = 0; shift < KEY_BITS; shift += 8) {
        const ts_u32 count = ts_count_digits<THREADS, ITEMS>(keys, shift, counts, ranks);
        const ts_u32 padding = threadIdx.x == DIGITS - 1 ? TILE - (ts_u32)g.n : 0;
        // A digit that all keys have changes nothing.
        if (__syncthreads_or(count - padding == (ts_u32)g.n)) continue;
        ts_finish_ranks<THREADS, ITEMS>(keys, shift, count, counts, ranks);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) sorted.keys[ranks[i]] = keys[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) keys[i] = sorted.keys[ts_tile_index<ITEMS>(i)];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) sorted.positions[ranks[i]] = positions[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) positions[i] = sorted.positions[ts_tile_index<ITEMS>(i)];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = ts_tile_index<ITEMS>(i);
        if (at >= g.kept) continue;
        const ts_i64 to = row * g.kept + at;
        if (g.values) g.values[to] = ts_element(keys[i], g.descending, x, positions[i]);
        if (g.indices) g.indices[to] = positions[i];
        if (g.positions) g.positions[to] = positions[i];
    }
}
