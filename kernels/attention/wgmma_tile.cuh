// What the attention kernels for Hopper's warpgroups share: a pipeline of tiles of 64 rows, copied while others are
// multiplied. W is a multiple of 64.
#pragma once
#include "common/wgmma.cuh"
#include "attention/tile.cuh"

// Bytes of a tile of 64 rows by 64 elements; of an operand, W / 64 tiles; and of a stage, which holds both operands.
static const int TILE_BYTES = 64 * 128, OPERAND_BYTES = W / 64 * TILE_BYTES, STAGE_BYTES = 2 * OPERAND_BYTES;

// Copies rows of a head, 64 at a time. A thread copies a chunk of every PASS-th row; `row_step` is PASS rows in bytes.
struct TileLoader {
    static const int PASS = 128 / (W / 8);
    const char* src;
    ts_u32 row_step;
    __device__ __forceinline__ TileLoader(const T* from, ts_i64 row_stride) : row_step((ts_u32)row_stride * 2 * PASS) {
        src = (const char*)(from + threadIdx.x / (W / 8) * row_stride + threadIdx.x % (W / 8) * 8);
    }
    // Starts to copy the next 64 rows, of which `count` exist; the rest becomes zero. `dst`: where the thread's chunk goes.
    __device__ __forceinline__ void load(char* dst, int count) {
#pragma unroll
        for (int r = 0; r < 64 / PASS; r++)
            ts_cp_async_16(dst + r * PASS * 128, src + (ts_u64)row_step * r, (int)threadIdx.x / (W / 8) + r * PASS < count);
        src += (ts_u64)row_step * (64 / PASS);
    }
};
// The two operands that a block iterates over, 64 rows at a time, in three stages: one is filled while products read two.
struct TilePipeline {
    TileLoader loader0, loader1;
    char* dst;
    ts_smem_desc desc;
    int rows, stage = 0, next_stage = 0;
    __device__ __forceinline__ TilePipeline(char* smem, const T* a, ts_i64 a_row_stride, const T* b, ts_i64 b_row_stride,
        ts_i64 rows)
        : loader0(a, a_row_stride), loader1(b, b_row_stride), desc(ts_make_smem_desc(smem)), rows((int)rows) {
        dst = ts_swizzled_chunk(smem + threadIdx.x % (W / 8) / 8 * TILE_BYTES, threadIdx.x / (W / 8), threadIdx.x % 8);
    }
    // Starts to copy the rows from `first` on.
    __device__ __forceinline__ void load(int first) {
        loader0.load(dst + next_stage, rows - first);
        loader1.load(dst + next_stage + OPERAND_BYTES, rows - first);
    }
    // Waits for the next stage.
    __device__ __forceinline__ void advance() {
        stage = next_stage;
        next_stage = stage == 2 * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
        ts_cp_async_wait_all();
        ts_fence_proxy_async();
        __syncthreads();
    }
    // Descriptors of the operands in the current stage.
    __device__ __forceinline__ ts_smem_desc operand0() const { return ts_advance_desc(desc, stage); }
    __device__ __forceinline__ ts_smem_desc operand1() const { return ts_advance_desc(desc, stage + OPERAND_BYTES); }
};
// c = a b', asynchronously, as in S = Q K'.
TS_FN void ts_wgmma_nt(float (*c)[4], const ts_u32 (*a)[4], ts_smem_desc rows) {
    ts_fence_operand<64>(c);
    ts_wgmma_fence();
    ts_wgmma_k_major<T, true>(c, a[0], rows, 0);
#pragma unroll
    for (int s = 1; s < W / 16; s++) ts_wgmma_k_major<T, false>(c, a[s], ts_advance_desc(rows, s / 4 * TILE_BYTES), s % 4);
    ts_wgmma_commit_group();
}
// c += a b, asynchronously, as in O = P V.
TS_FN void ts_wgmma_nn(float (*c)[4], const ts_u32 (*a)[4], ts_smem_desc rows) {
    ts_fence_operand<W>(c);
    ts_wgmma_fence();
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int w = 0; w < W / 64; w++) ts_wgmma_mn_major<T>(c + w * 8, a[s], ts_advance_desc(rows, w * TILE_BYTES), s);
    ts_wgmma_commit_group();
}
