// What the attention kernels of Hopper's warpgroups share: tiles of 64 rows that come while others are multiplied. W is a
// multiple of 64.
#pragma once
#include "common/wgmma.cuh"
#include "attention/tile.cuh"

// Bytes of a tile, 64 rows of 64 elements; of W / 64 of them, a panel; and of a slot, which has a panel of each of two factors.
static const int TILE = 64 * 128, PANEL = W / 64 * TILE, SLOT = 2 * PANEL;

// Brings rows of a head, 64 at a time: a thread has a chunk of every PASS rows, which are `step` bytes apart.
struct Bringer {
    static const int PASS = 128 / (W / 8);
    const char* at;
    ts_u32 step;
    __device__ __forceinline__ Bringer(const T* from, ts_i64 row) : step((ts_u32)row * 2 * PASS) {
        at = (const char*)(from + threadIdx.x / (W / 8) * row + threadIdx.x % (W / 8) * 8);
    }
    // Asks for the next 64 rows, of which there are `count`, and for zeros after them. `to`: where the thread's chunk goes.
    __device__ __forceinline__ void bring(char* to, int count) {
#pragma unroll
        for (int r = 0; r < 64 / PASS; r++)
            ts_bring16(to + r * PASS * 128, at + (ts_u64)step * r, (int)threadIdx.x / (W / 8) + r * PASS < count);
        at += (ts_u64)step * (64 / PASS);
    }
};
// Two factors that a block walks over, 64 rows at a time. There are three slots: one is filled while products read two.
struct Walk {
    Bringer one, two;
    char* to;
    ts_tile tiles;
    int rows, slot = 0, next = 0;
    __device__ __forceinline__ Walk(char* memory, const T* a, ts_i64 a_row, const T* b, ts_i64 b_row, ts_i64 rows)
        : one(a, a_row), two(b, b_row), tiles(ts_tile_of(memory)), rows((int)rows) {
        to = ts_chunk(memory + threadIdx.x % (W / 8) / 8 * TILE, threadIdx.x / (W / 8), threadIdx.x % 8);
    }
    // Asks for the rows from `first` on.
    __device__ __forceinline__ void bring(int first) {
        one.bring(to + next, rows - first);
        two.bring(to + next + PANEL, rows - first);
    }
    // Waits for what was asked for.
    __device__ __forceinline__ void step() {
        slot = next;
        next = slot == 2 * SLOT ? 0 : slot + SLOT;
        ts_brought();
        ts_tiles_written();
        __syncthreads();
    }
    // Panels of the factors.
    __device__ __forceinline__ ts_tile first() const { return ts_tile_after(tiles, slot); }
    __device__ __forceinline__ ts_tile second() const { return ts_tile_after(tiles, slot + PANEL); }
};
// c = a rows', in the background.
TS_FN void ts_begin_rows(float (*c)[4], const ts_u32 (*a)[4], ts_tile rows) {
    ts_hold<64>(c);
    ts_wgmma_begin();
    ts_wgmma_rows<T, true>(c, a[0], rows, 0);
#pragma unroll
    for (int s = 1; s < W / 16; s++) ts_wgmma_rows<T, false>(c, a[s], ts_tile_after(rows, s / 4 * TILE), s % 4);
    ts_wgmma_end();
}
// c += a rows, in the background.
TS_FN void ts_begin_columns(float (*c)[4], const ts_u32 (*a)[4], ts_tile rows) {
    ts_hold<W>(c);
    ts_wgmma_begin();
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int w = 0; w < W / 64; w++) ts_wgmma_columns<T>(c + w * 8, a[s], ts_tile_after(rows, w * TILE), s);
    ts_wgmma_end();
}
