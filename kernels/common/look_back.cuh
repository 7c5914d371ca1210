// Sums over the tiles before one, in one pass: decoupled look-back (Merrill and Garland, 2016). A tile publishes its count, sums
// the counts of earlier tiles back to one that knows all before it, and publishes that sum. A count and its state are one
// 64-bit word, so that no memory order is needed. The words and the ticket are 0 before the launch.
#pragma once
#include "common/base.cuh"

// The next tile. Tiles are given out in order, so that all earlier ones are held by blocks that run.
TS_FN ts_u32 ts_next_tile(ts_u32* ticket) {
    __shared__ ts_u32 tile;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1u);
    __syncthreads();
    return tile;
}

// The sum of the counts of earlier tiles. Once in a kernel; every thread of the block calls it.
TS_FN ts_i64 ts_look_back_sum(volatile ts_u64* states, ts_i64 tile, ts_i64 count) {
    const ts_u64 own = (ts_u64)1 << 62, all = (ts_u64)2 << 62;
    __shared__ ts_i64 before;
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x;
        ts_i64 sum = 0;
        if (lane == 0 && tile > 0) states[tile] = own | (ts_u64)count;
        for (ts_i64 at = tile - 1 - lane;; at -= 32) {
            ts_u64 found = all;
            if (at >= 0)
                do found = states[at];
                while (found >> 62 == 0);
            const ts_u32 ends = __ballot_sync(0xffffffffu, found >> 62 == 2);
            const int last = ends ? __ffs((int)ends) - 1 : 31;
            ts_i64 part = lane <= last ? (ts_i64)(found & (own - 1)) : 0;
#pragma unroll
            for (int d = 16; d > 0; d /= 2) part += __shfl_xor_sync(0xffffffffu, part, d);
            sum += part;
            if (ends) break;
        }
        if (lane == 0) {
            states[tile] = all | (ts_u64)(sum + count);
            before = sum;
        }
    }
    __syncthreads();
    return before;
}
