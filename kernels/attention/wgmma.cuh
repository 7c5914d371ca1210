// Attention of 16-bit floats on Hopper: a warpgroup has 64 queries and walks over 64 keys at a time, of which the next ones
// come while it computes. As in FlashAttention-3's forward pass (Shah et al., 2024) softmax runs beside the product of the last
// powers and values; other warpgroups of the multiprocessor fill what is left.
#include "attention/wgmma_tile.cuh"

// Registers for as many warpgroups of a multiprocessor as their slots fit.
TS_KERNEL void __launch_bounds__(128, W > 64 ? 2 : MASKED ? 3 : 4) ts_attention_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    const ts_u32 tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / tiles;
    const Head here(g, head);
    // Later queries see more keys: they start first.
    const int top = (int)(tiles - 1 - blockIdx.x % tiles) * 64, keys = (int)g.keys;
    const int mine = top + threadIdx.x / 32 * 16, query = mine + threadIdx.x % 32 / 4;
    // Keys that some query of the block sees, and those that all queries of the warp see.
    const int seen = g.causal && top + 64 < keys ? top + 64 : keys, all = g.causal && mine + 1 < keys ? mine + 1 : keys;
    Walk walk(memory, here.of(g.k), g.k.row, here.of(g.v), g.v.row, keys);
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    const float scale = (float)g.scale * ts_log2_e();
    ts_u32 a[W / 16][4], p[4][4];
    float out[W / 8][4], score[8][4], most[2] = {ts_nothing(), ts_nothing()}, sum[2] = {0, 0}, rescale[2];
    int first = 0;
    const auto step = [&]() {
        walk.step();
        if (first + 64 < seen) walk.bring(first + 64);
    };
    const auto soften = [&]() {
        ts_hold<64>(score);
        ts_soften(g, mask, score, most, sum, rescale, query, first, first + 64 > all, scale);
    };
    if (seen > 0) walk.bring(0);
    ts_operand(a, here.of(g.q), g.q.row, mine, g.queries);
    ts_clear<W>(out);
    if (seen > 0) {
        step();
        ts_begin_rows(score, a, walk.first());
        ts_wgmma_wait<0>();
        soften();
        ts_as_operand<64>(p, score);
        for (first = 64; first < seen; first += 64) {
            const ts_tile values = walk.second();
            step();
            ts_begin_rows(score, a, walk.first());
            ts_begin_columns(out, p, values);
            ts_wgmma_wait<1>();
            soften();
            // Sums are never below zero: asking keeps the compiler from moving the wait for the output before the softmax.
            if (__any_sync(0xffffffffu, rescale[0] != 1 || rescale[1] != 1 || !(sum[0] + sum[1] >= 0))) {
                ts_wgmma_wait<0>();
                ts_hold<W>(out);
                ts_times<W>(out, rescale);
            }
            ts_wgmma_wait<0>();
            ts_hold<W>(out);
            ts_as_operand<64>(p, score);
        }
        ts_begin_columns(out, p, walk.second());
        ts_wgmma_wait<0>();
        ts_hold<W>(out);
    }
    ts_softened(g, head, most, sum, query, scale);
    ts_put(g.to + (ts_i64)head * g.queries * W, out, mine, g.queries, sum);
}
