// The flags of a tile of elements, with the number of those before each. Item k of lane l of warp w is element
// (w * TS_FLAG_ITEMS + k) * 32 + l of the tile.
#pragma once
#include "common/reduce.cuh"

static const int TS_FLAG_THREADS = 256, TS_FLAG_ITEMS = 16, TS_FLAG_TILE = TS_FLAG_THREADS * TS_FLAG_ITEMS;

struct ts_flag_tile {
    ts_u32 lanes[TS_FLAG_ITEMS];
    // Flags of earlier warps, and of the tile.
    int before, count;

    TS_METHOD static int index(int k) {
        return ((int)threadIdx.x / 32 * TS_FLAG_ITEMS + k) * 32 + (int)threadIdx.x % 32;
    }
    TS_METHOD bool is_set(int k) const { return lanes[k] >> threadIdx.x % 32 & 1; }
    // The flags before item k.
    TS_METHOD int rank(int k) const {
        int sum = before + __popc(lanes[k] & ((1u << threadIdx.x % 32) - 1));
#pragma unroll
        for (int j = 0; j < TS_FLAG_ITEMS; j++)
            if (j < k) sum += __popc(lanes[j]);
        return sum;
    }
    // flag(index in the tile) for each item. Once in a kernel; every thread of the block calls it.
    template <class F> TS_METHOD void load(F flag) {
        load_items([&](int k) { return flag(index(k)); });
    }
    // The same with the number of the item.
    template <class F> TS_METHOD void load_items(F flag) {
        __shared__ int sums[TS_FLAG_THREADS / 32];
        bool set[TS_FLAG_ITEMS];
#pragma unroll
        for (int k = 0; k < TS_FLAG_ITEMS; k++) set[k] = flag(k);
        int own = 0;
#pragma unroll
        for (int k = 0; k < TS_FLAG_ITEMS; k++) {
            lanes[k] = __ballot_sync(0xffffffffu, set[k]);
            own += __popc(lanes[k]);
        }
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = own;
        __syncthreads();
        before = count = 0;
#pragma unroll
        for (int w = 0; w < TS_FLAG_THREADS / 32; w++) {
            if (w < (int)threadIdx.x / 32) before += sums[w];
            count += sums[w];
        }
    }
};
