// Ranks of the keys of a tile by a digit of 8 bits, in order where digits are equal. A tile belongs to a block of at least 256
// threads: item i of lane l of warp w is element (w * ITEMS + i) * 32 + l.
#pragma once
#include "sort/keys.cuh"

static const int DIGITS = 256;

template <int THREADS> struct ts_digit_counts {
    // For each warp the count of each digit, then the number of those in earlier warps.
    ts_u32 of_warp[THREADS / 32][DIGITS];
    // Where the digits of the tile start when it is sorted.
    ts_u32 start[DIGITS];
    ts_u32 sums[DIGITS / 32];
};

TS_FN ts_u32 ts_digit(Key key, int shift) { return (ts_u32)(key >> shift) & 0xff; }
template <int ITEMS> TS_FN int ts_tile_index(int i) { return ((int)threadIdx.x / 32 * ITEMS + i) * 32 + (int)threadIdx.x % 32; }

// The lanes of the warp that have the same digit.
TS_FN ts_u32 ts_peers(ts_u32 digit) {
    ts_u32 peers = 0xffffffffu;
#pragma unroll
    for (int b = 0; b < 8; b++) {
        const bool set = digit >> b & 1;
        const ts_u32 lanes = __ballot_sync(0xffffffffu, set);
        peers &= set ? lanes : ~lanes;
    }
    return peers;
}

// An exclusive scan of the values of the first 256 threads, one warp's sums at a time. Every thread of the block calls it.
TS_FN ts_u32 ts_scan_digits(ts_u32 count, ts_u32* sums) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    ts_u32 total = count;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const ts_u32 below = __shfl_up_sync(0xffffffffu, total, d);
        if (lane >= d) total += below;
    }
    __syncthreads();
    if (lane == 31 && warp < DIGITS / 32) sums[warp] = total;
    __syncthreads();
    ts_u32 before = total - count;
#pragma unroll
    for (int w = 0; w < DIGITS / 32; w++)
        if (w < warp) before += sums[w];
    return before;
}

// First half: the rank of each key among those of its warp with its digit. Returns how many keys of the tile have the digit
// threadIdx.x.
template <int THREADS, int ITEMS>
TS_FN ts_u32 ts_count_digits(const Key* keys, int shift, ts_digit_counts<THREADS>& shared, ts_u32* ranks) {
    const int lane = threadIdx.x % 32;
    ts_u32* mine = shared.of_warp[threadIdx.x / 32];
    __syncwarp();
#pragma unroll
    for (int d = 0; d < DIGITS; d += 32) mine[d + lane] = 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const ts_u32 digit = ts_digit(keys[i], shift), peers = ts_peers(digit);
        const int leader = 31 - __clz((int)peers);
        ts_u32 before = 0;
        if (lane == leader) before = atomicAdd(&mine[digit], (ts_u32)__popc(peers));
        ranks[i] = __shfl_sync(0xffffffffu, before, leader) + (ts_u32)__popc(peers & ((1u << lane) - 1));
    }
    __syncthreads();
    ts_u32 count = 0;
    if (threadIdx.x < DIGITS)
#pragma unroll
        for (int w = 0; w < THREADS / 32; w++) {
            const ts_u32 of_warp = shared.of_warp[w][threadIdx.x];
            shared.of_warp[w][threadIdx.x] = count;
            count += of_warp;
        }
    return count;
}
// Second half: the rank of each key in the tile.
template <int THREADS, int ITEMS>
TS_FN void ts_finish_ranks(const Key* keys, int shift, ts_u32 count, ts_digit_counts<THREADS>& shared, ts_u32* ranks) {
    const ts_u32 start = ts_scan_digits(count, shared.sums);
    if (threadIdx.x < DIGITS) shared.start[threadIdx.x] = start;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const ts_u32 digit = ts_digit(keys[i], shift);
        ranks[i] += shared.of_warp[threadIdx.x / 32][digit] + shared.start[digit];
    }
}
