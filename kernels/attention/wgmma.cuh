// Attention of 16-bit floats on Hopper: a warpgroup has 64 queries and iterates over tiles of 64 keys, which are copied while
// it computes. As in FlashAttention-3's forward pass (Shah et al., 2024), the softmax of one tile runs while the product of
// the previous probabilities and values does; other warpgroups of the multiprocessor fill the remaining gaps.
#include "attention/wgmma_tile.cuh"

// Limits registers so that as many warpgroups fit on a multiprocessor as shared memory has room for their stages.
TS_KERNEL void __launch_bounds__(128, W > 64 ? 2 : MASKED ? 3 : 4) ts_attention_forward_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    const ts_u32 query_tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / query_tiles;
    const HeadIndex head_index(g, head);
    // With a causal mask, later queries have more keys: they start first.
    const int query_start = (int)(query_tiles - 1 - blockIdx.x % query_tiles) * 64, keys = (int)g.keys;
    const int warp_query = query_start + threadIdx.x / 32 * 16, query = warp_query + threadIdx.x % 32 / 4;
    // End of the keys that some query of the block attends to, and of those that all queries of the warp attend to.
    const int key_end = g.causal && query_start + 64 < keys ? query_start + 64 : keys,
        unmasked_end = g.causal && warp_query + 1 < keys ? warp_query + 1 : keys;
    TilePipeline tiles(smem, head_index.ptr(g.k), g.k.row_stride, head_index.ptr(g.v), g.v.row_stride, keys);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    const float scale = (float)g.scale * ts_log2e();
    ts_u32 q[W / 16][4], p[4][4];
    float acc[W / 8][4], score[8][4], row_max[2] = {ts_neg_inf(), ts_neg_inf()}, row_sum[2] = {0, 0}, rescale[2];
    int key_start = 0;
    const auto advance = [&]() {
        tiles.advance();
        if (key_start + 64 < key_end) tiles.load(key_start + 64);
    };
    const auto softmax = [&]() {
        ts_fence_operand<64>(score);
        ts_online_softmax(g, mask, score, row_max, row_sum, rescale, query, key_start, key_start + 64 > unmasked_end, scale);
    };
    if (key_end > 0) tiles.load(0);
    ts_load_operand_a(q, head_index.ptr(g.q), g.q.row_stride, warp_query, g.queries);
    ts_clear<W>(acc);
    if (key_end > 0) {
        advance();
        ts_wgmma_nt(score, q, tiles.operand0());
        ts_wgmma_wait_group<0>();
        softmax();
        ts_acc_to_operand_a<64>(p, score);
        for (key_start = 64; key_start < key_end; key_start += 64) {
            const ts_smem_desc values = tiles.operand1();
            advance();
            ts_wgmma_nt(score, q, tiles.operand0());
            ts_wgmma_nn(acc, p, values);
            ts_wgmma_wait_group<1>();
            softmax();
            // Sums are never negative: the last condition only keeps the compiler from moving the wait for the output
            // before the softmax.
            if (__any_sync(0xffffffffu, rescale[0] != 1 || rescale[1] != 1 || !(row_sum[0] + row_sum[1] >= 0))) {
                ts_wgmma_wait_group<0>();
                ts_fence_operand<W>(acc);
                ts_rescale<W>(acc, rescale);
            }
            ts_wgmma_wait_group<0>();
            ts_fence_operand<W>(acc);
            ts_acc_to_operand_a<64>(p, score);
        }
        ts_wgmma_nn(acc, p, tiles.operand1());
        ts_wgmma_wait_group<0>();
        ts_fence_operand<W>(acc);
    }
    ts_softmax_finish(g, head, row_max, row_sum, query, scale);
    ts_store_rows(g.out + (ts_i64)head * g.queries * W, acc, warp_query, g.queries, row_sum);
}
