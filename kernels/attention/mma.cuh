// Attention of 16-bit floats on tensor cores: FlashAttention-2's forward pass (Dao, 2023). Q: tiles of 16 queries that a warp
// has. A block has four warps and iterates over tiles of 64 keys; the next tile is copied while one is computed (two stages).
#include "attention/tile.cuh"

// Limits registers so that two blocks fit on a multiprocessor, or three where a warp holds less.
TS_KERNEL void __launch_bounds__(128, Q == 2 || W > 64 ? 2 : 3) ts_attention_forward_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    SharedRow *keys = (SharedRow*)smem, *values = keys + 128;
    const ts_u32 tiles = (ts_u32)((g.queries + 64 * Q - 1) / (64 * Q)), head = blockIdx.x / tiles;
    const HeadIndex head_index(g, head);
    // With a causal mask, later tiles have more keys: they start first.
    const ts_i64 query_start = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64 * Q,
        warp_query = query_start + threadIdx.x / 32 * 16 * Q;
    const int group = threadIdx.x % 32 / 4;
    const T *k = head_index.ptr(g.k), *v = head_index.ptr(g.v);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    ts_u32 q[Q][W / 16][4];
    float acc[Q][W / 8][4], row_max[Q][2], row_sum[Q][2];
#pragma unroll
    for (int r = 0; r < Q; r++) {
        ts_load_operand_a(q[r], head_index.ptr(g.q), g.q.row_stride, warp_query + 16 * r, g.queries);
        ts_clear<W>(acc[r]);
        row_max[r][0] = row_max[r][1] = ts_neg_inf();
        row_sum[r][0] = row_sum[r][1] = 0;
    }
    const float scale = (float)g.scale * ts_log2e();
    const ts_i64 key_end = g.causal && query_start + 64 * Q < g.keys ? query_start + 64 * Q : g.keys;
    int stage = 0;
    if (key_end > 0) {
        ts_cp_async_tile<64>(keys, k, g.k.row_stride, 0, g.keys);
        ts_cp_async_tile<64>(values, v, g.v.row_stride, 0, g.keys);
    }
    for (ts_i64 key_start = 0; key_start < key_end; key_start += 64, stage ^= 64) {
        ts_cp_async_wait_all();
        __syncthreads();
        if (key_start + 64 < key_end) {
            ts_cp_async_tile<64>(keys + (stage ^ 64), k, g.k.row_stride, key_start + 64, g.keys);
            ts_cp_async_tile<64>(values + (stage ^ 64), v, g.v.row_stride, key_start + 64, g.keys);
        }
        if (g.causal && key_start >= warp_query + 16 * Q) continue;
        float score[Q][8][4];
#pragma unroll
        for (int r = 0; r < Q; r++) ts_clear<64>(score[r]);
        ts_mma_nt<Q, 64>(score, q, keys + stage);
        const bool needs_mask = key_start + 64 > g.keys || (g.causal && key_start + 63 > warp_query);
        ts_u32 p[Q][4][4];
#pragma unroll
        for (int r = 0; r < Q; r++) {
            float rescale[2];
            ts_online_softmax(g, mask, score[r], row_max[r], row_sum[r], rescale, warp_query + 16 * r + group, key_start,
                needs_mask, scale);
            ts_acc_to_operand_a<64>(p[r], score[r]);
            ts_rescale<W>(acc[r], rescale);
        }
        ts_mma_nn<Q, 64>(acc, p, values + stage);
    }
#pragma unroll
    for (int r = 0; r < Q; r++) {
        ts_softmax_finish(g, head, row_max[r], row_sum[r], warp_query + 16 * r + group, scale);
        ts_store_rows(g.out + (ts_i64)head * g.queries * W, acc[r], warp_query + 16 * r, g.queries, row_sum[r]);
    }
}
