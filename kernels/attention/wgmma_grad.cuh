// The gradient of `attention/wgmma.cuh`: the two kernels of `attention/mma_grad.cuh`, computed by warpgroups with
// wgmma.
#include "attention/wgmma_tile.cuh"

// A block: 64 queries of one head. Computes dQ, and writes delta = dot(dO, O) of each query.
TS_KERNEL void __launch_bounds__(128, W > 64 ? 2 : 3) ts_attention_dq_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    const ts_u32 row_tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / row_tiles;
    const HeadIndex head_index(g, head);
    const int query_start = (int)(row_tiles - 1 - blockIdx.x % row_tiles) * 64, keys = (int)g.keys;
    const int warp_query = query_start + threadIdx.x / 32 * 16, query = warp_query + threadIdx.x % 32 / 4,
        column = threadIdx.x % 4 * 2;
    const int key_end = g.causal && query_start + 64 < keys ? query_start + 64 : keys,
        unmasked_end = g.causal && warp_query + 1 < keys ? warp_query + 1 : keys;
    TilePipeline tiles(smem, head_index.ptr(g.k), g.k.row_stride, head_index.ptr(g.v), g.v.row_stride, keys);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    const float scale = (float)g.scale * ts_log2e(), log2_scale = MASKED ? 1.0f : scale;
    ts_u32 q[W / 16][4], dout[W / 16][4], ds[4][4];
    float dq[W / 8][4], score[8][4], dp[8][4], delta[2];
    if (key_end > 0) tiles.load(0);
    ts_load_operand_a(q, head_index.ptr(g.o), g.o.row_stride, warp_query, g.queries);
    ts_load_operand_a(dout, head_index.ptr(g.dout), g.dout.row_stride, warp_query, g.queries);
    ts_dot_do_o(delta, g, head, q, dout, query);
    ts_load_operand_a(q, head_index.ptr(g.q), g.q.row_stride, warp_query, g.queries);
    const float neg_lse[2] = {ts_neg_lse(g, head, query), ts_neg_lse(g, head, query + 8)};
    ts_clear<W>(dq);
    if (key_end > 0) {
        int key_start = 0;
        do {
            tiles.advance();
            if (key_start + 64 < key_end) tiles.load(key_start + 64);
            ts_wgmma_nt(score, q, tiles.operand0());
            ts_wgmma_nt(dp, dout, tiles.operand1());
            ts_wgmma_wait_group<0>();
            ts_fence_operand<64>(score);
            ts_fence_operand<64>(dp);
            ts_fence_operand<W>(dq);
            if (key_start + 64 > unmasked_end) ts_mask_tile(g, score, query, key_start, dp, delta);
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float x = score[n][i];
                    if (MASKED) x = ts_masked_score(g, mask, query + i / 2 * 8, key_start + n * 8 + column + i % 2, x, scale);
                    dp[n][i] = ts_exp2_approx(fmaf(x, log2_scale, neg_lse[i / 2])) * (dp[n][i] - delta[i / 2]);
                }
            ts_acc_to_operand_a<64>(ds, dp);
            // Not overlapped with the next iteration: that takes more registers than three warpgroups have.
            ts_wgmma_nn(dq, ds, tiles.operand0());
            ts_wgmma_wait_group<0>();
            ts_fence_operand<W>(dq);
            key_start += 64;
        } while (key_start < key_end);
    }
    const float softmax_scale[2] = {(float)g.scale, (float)g.scale};
    ts_store_rows(g.dq + (ts_i64)head * g.queries * W, dq, warp_query, g.queries, softmax_scale);
}

// A block: 64 keys of one head; computes dK and dV. Rows of the scores are keys, columns are queries. Runs after the first
// kernel, which writes `delta`.
TS_KERNEL void __launch_bounds__(128, 2) ts_attention_dk_dv_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    const ts_u32 row_tiles = (ts_u32)((g.keys + 63) / 64), head = blockIdx.x / row_tiles;
    const HeadIndex head_index(g, head);
    const int key_start = (int)(blockIdx.x % row_tiles) * 64, warp_key = key_start + threadIdx.x / 32 * 16,
        queries = (int)g.queries;
    const int key = warp_key + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    const float scale = (float)g.scale * ts_log2e(), log2_scale = MASKED ? 1.0f : scale;
    int query_start = g.causal ? key_start : 0;
    TilePipeline tiles(smem, head_index.ptr(g.q) + query_start * g.q.row_stride, g.q.row_stride,
        head_index.ptr(g.dout) + query_start * g.dout.row_stride, g.dout.row_stride, queries);
    // -lse and delta of the queries of each stage.
    float(*query_stats)[2][64] = (float(*)[2][64])(smem + 3 * STAGE_BYTES);
    const auto load = [&](int query_start) {
        tiles.load(query_start);
        if (threadIdx.x >= 64) return;
        const int query = query_start + threadIdx.x;
        float(*stats)[64] = query_stats[tiles.next_stage / STAGE_BYTES];
        stats[0][threadIdx.x] = ts_neg_lse(g, head, query);
        stats[1][threadIdx.x] = query < queries ? g.delta[(ts_i64)head * g.queries + query] : 0.0f;
    };
    ts_u32 k[W / 16][4], v[W / 16][4], p_operand[4][4], ds_operand[4][4];
    float dk[W / 8][4], dv[W / 8][4], score[8][4], dp[8][4];
    if (query_start < queries) load(query_start);
    ts_load_operand_a(k, head_index.ptr(g.k), g.k.row_stride, warp_key, g.keys);
    ts_load_operand_a(v, head_index.ptr(g.v), g.v.row_stride, warp_key, g.keys);
    ts_clear<W>(dk);
    ts_clear<W>(dv);
    if (query_start < queries) {
        do {
            tiles.advance();
            if (query_start + 64 < queries) load(query_start + 64);
            ts_wgmma_nt(score, k, tiles.operand0());
            ts_wgmma_nt(dp, v, tiles.operand1());
            ts_wgmma_wait_group<1>();
            ts_fence_operand<64>(score);
            ts_fence_operand<W>(dk);
            ts_fence_operand<W>(dv);
            const float(*stats)[64] = query_stats[tiles.stage / STAGE_BYTES];
            if (g.causal && query_start < warp_key + 15) {
                // Causal: queries before a key do not attend to it.
                const int visible_from[2] = {key - query_start, key + 8 - query_start};
#pragma unroll
                for (int n = 0; n < 8; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (n * 8 + column + i % 2 < visible_from[i / 2]) score[n][i] = ts_neg_inf();
            }
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int at = n * 8 + column + i % 2;
                    float x = score[n][i];
                    if (MASKED) x = ts_masked_score(g, mask, query_start + at, key + i / 2 * 8, x, scale);
                    score[n][i] = ts_exp2_approx(fmaf(x, log2_scale, stats[0][at]));
                }
            ts_acc_to_operand_a<64>(p_operand, score);
            ts_wgmma_nn(dv, p_operand, tiles.operand1());
            ts_wgmma_wait_group<1>();
            ts_fence_operand<64>(dp);
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    dp[n][i] = score[n][i] * (dp[n][i] - stats[1][n * 8 + column + i % 2]);
            ts_acc_to_operand_a<64>(ds_operand, dp);
            // Overlapped with the next iteration.
            ts_wgmma_nn(dk, ds_operand, tiles.operand0());
            query_start += 64;
        } while (query_start < queries);
        ts_wgmma_wait_group<0>();
        ts_fence_operand<W>(dk);
        ts_fence_operand<W>(dv);
    }
    const float softmax_scale[2] = {(float)g.scale, (float)g.scale}, one[2] = {1.0f, 1.0f};
    ts_store_rows(g.dk + (ts_i64)head * g.keys * W, dk, warp_key, g.keys, softmax_scale);
    ts_store_rows(g.dv + (ts_i64)head * g.keys * W, dv, warp_key, g.keys, one);
}
