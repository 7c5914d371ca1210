// unique: numbers the distinct elements of a sorted sequence in one pass, and counts each. T: memory type.
#include "sort/keys.cuh"
#include "common/look_back.cuh"
#include "common/flags.cuh"
#include "sort/distinct_args.cuh"

// What a key is exchanged as.
typedef typename ts_unsigned<(sizeof(Key) > 4 ? 8 : 4)>::type Word;

// x: n sorted elements, from `positions` (null: in their own order). Scatters the number of each element (`inverse`) and stores
// the first of equal ones (`values`) with its place (`starts`); each where it is wanted. Each NaN is distinct.
TS_KERNEL void __launch_bounds__(TS_FLAG_THREADS) ts_number_distinct(const __grid_constant__ DistinctArgs g) {
    const ts_i64 tile = ts_next_tile(g.ticket), first = tile * TS_FLAG_TILE;
    T x[TS_FLAG_ITEMS];
#pragma unroll
    for (int k = 0; k < TS_FLAG_ITEMS; k++) {
        const ts_i64 i = first + ts_flag_tile::index(k);
        x[k] = g.x[i < g.n ? i : g.n - 1];
    }
    ts_flag_tile flags;
    flags.load_items([&](int k) {
        const ts_i64 i = first + ts_flag_tile::index(k);
        const Key key = ts_key(x[k], false);
        Word last = __shfl_up_sync(0xffffffffu, (Word)key, 1);
        if (threadIdx.x % 32 == 0 && i > 0 && i < g.n) last = ts_key(g.x[i - 1], false);
        return i < g.n && (i == 0 || (IS_FLOAT && key == MAX_KEY) || key != (Key)last);
    });
    const ts_i64 before = ts_look_back_sum(g.states, tile, flags.count);
#pragma unroll
    for (int k = 0; k < TS_FLAG_ITEMS; k++) {
        const ts_i64 i = first + flags.index(k);
        if (i >= g.n) continue;
        const ts_i64 number = before + flags.rank(k) + flags.is_set(k) - 1;
        if (g.inverse) g.inverse[g.positions ? g.positions[i] : i] = number;
        if (!flags.is_set(k)) continue;
        g.values[number] = x[k];
        if (g.starts) g.starts[number] = (ts_u32)i;
    }
    if (threadIdx.x == 0 && first + TS_FLAG_TILE >= g.n) g.number[0] = before + flags.count;
}
// counts: how many elements are equal to each distinct one.
TS_KERNEL void __launch_bounds__(256) ts_count_distinct(const __grid_constant__ DistinctArgs g) {
    const ts_i64 number = g.number[0];
    for (ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x; i < number; i += (ts_i64)gridDim.x * 256)
        g.counts[i] = (i + 1 < number ? g.starts[i + 1] : g.n) - g.starts[i];
}
