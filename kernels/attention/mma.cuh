// Attention of 16-bit floats by matrix instructions: FlashAttention-2's forward pass (Dao, 2023). Q: sixteens of queries that
// a warp has. A block has four warps and walks over 64 keys at a time, of which the next ones come while it computes.
#include "attention/tile.cuh"

// Registers for two blocks of a multiprocessor, or three where a warp has less to keep.
TS_KERNEL void __launch_bounds__(128, Q == 2 || W > 64 ? 2 : 3) ts_attention_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    Row *keys = (Row*)memory, *values = keys + 128;
    const ts_u32 tiles = (ts_u32)((g.queries + 64 * Q - 1) / (64 * Q)), head = blockIdx.x / tiles;
    const Head here(g, head);
    // Later tiles see more keys: they start first.
    const ts_i64 top = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64 * Q, mine = top + threadIdx.x / 32 * 16 * Q;
    const int group = threadIdx.x % 32 / 4;
    const T *k = here.of(g.k), *v = here.of(g.v);
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    ts_u32 a[Q][W / 16][4];
    float out[Q][W / 8][4], most[Q][2], sum[Q][2];
#pragma unroll
    for (int r = 0; r < Q; r++) {
        ts_operand(a[r], here.of(g.q), g.q.row, mine + 16 * r, g.queries);
        ts_clear<W>(out[r]);
        most[r][0] = most[r][1] = ts_nothing();
        sum[r][0] = sum[r][1] = 0;
    }
    const float scale = (float)g.scale * ts_log2_e();
    const ts_i64 seen = g.causal && top + 64 * Q < g.keys ? top + 64 * Q : g.keys;
    int half = 0;
    if (seen > 0) {
        ts_bring<64>(keys, k, g.k.row, 0, g.keys);
        ts_bring<64>(values, v, g.v.row, 0, g.keys);
    }
    for (ts_i64 first = 0; first < seen; first += 64, half ^= 64) {
        ts_brought();
        __syncthreads();
        if (first + 64 < seen) {
            ts_bring<64>(keys + (half ^ 64), k, g.k.row, first + 64, g.keys);
            ts_bring<64>(values + (half ^ 64), v, g.v.row, first + 64, g.keys);
        }
        if (g.causal && first >= mine + 16 * Q) continue;
        float score[Q][8][4];
#pragma unroll
        for (int r = 0; r < Q; r++) ts_clear<64>(score[r]);
        ts_by_rows<Q, 64>(score, a, keys + half);
        const bool edge = first + 64 > g.keys || (g.causal && first + 63 > mine);
        ts_u32 p[Q][4][4];
#pragma unroll
        for (int r = 0; r < Q; r++) {
            float rescale[2];
            ts_soften(g, mask, score[r], most[r], sum[r], rescale, mine + 16 * r + group, first, edge, scale);
            ts_as_operand<64>(p[r], score[r]);
            ts_times<W>(out[r], rescale);
        }
        ts_by_columns<Q, 64>(out, p, values + half);
    }
#pragma unroll
    for (int r = 0; r < Q; r++) {
        ts_softened(g, head, most[r], sum[r], mine + 16 * r + group, scale);
        ts_put(g.to + (ts_i64)head * g.queries * W, out[r], mine + 16 * r, g.queries, sum[r]);
    }
}
