// The gradient of `attention/wgmma.cuh`: the two kernels of `attention/mma_grad.cuh` by warpgroups.
#include "attention/wgmma_tile.cuh"

// A block: 64 queries of one head. Writes the gradient of q, and for each query the product of its gradient and its output.
TS_KERNEL void __launch_bounds__(128, W > 64 ? 2 : 3) ts_attention_queries_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    const ts_u32 tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / tiles;
    const Head here(g, head);
    const int top = (int)(tiles - 1 - blockIdx.x % tiles) * 64, keys = (int)g.keys;
    const int mine = top + threadIdx.x / 32 * 16, query = mine + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    const int seen = g.causal && top + 64 < keys ? top + 64 : keys, all = g.causal && mine + 1 < keys ? mine + 1 : keys;
    Walk walk(memory, here.of(g.k), g.k.row, here.of(g.v), g.v.row, keys);
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    const float scale = (float)g.scale * ts_log2_e(), times = MASKED ? 1.0f : scale;
    ts_u32 q[W / 16][4], grad[W / 16][4], slope[4][4];
    float sum[W / 8][4], score[8][4], change[8][4], dots[2];
    if (seen > 0) walk.bring(0);
    ts_operand(q, here.of(g.out), g.out.row, mine, g.queries);
    ts_operand(grad, here.of(g.grad), g.grad.row, mine, g.queries);
    ts_row_dots(dots, g, head, q, grad, query);
    ts_operand(q, here.of(g.q), g.q.row, mine, g.queries);
    const float taken[2] = {ts_taken(g, head, query), ts_taken(g, head, query + 8)};
    ts_clear<W>(sum);
    if (seen > 0) {
        int first = 0;
        do {
            walk.step();
            if (first + 64 < seen) walk.bring(first + 64);
            ts_begin_rows(score, q, walk.first());
            ts_begin_rows(change, grad, walk.second());
            ts_wgmma_wait<0>();
            ts_hold<64>(score);
            ts_hold<64>(change);
            ts_hold<W>(sum);
            if (first + 64 > all) ts_hide(g, score, query, first, change, dots);
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float x = score[n][i];
                    if (MASKED) x = ts_seen(g, mask, query + i / 2 * 8, first + n * 8 + column + i % 2, x, scale);
                    change[n][i] = ts_exp2_near(fmaf(x, times, taken[i / 2])) * (change[n][i] - dots[i / 2]);
                }
            ts_as_operand<64>(slope, change);
            // Not beside the next step: that takes more registers than three warpgroups have.
            ts_begin_columns(sum, slope, walk.first());
            ts_wgmma_wait<0>();
            ts_hold<W>(sum);
            first += 64;
        } while (first < seen);
    }
    const float by[2] = {(float)g.scale, (float)g.scale};
    ts_put(g.dq + (ts_i64)head * g.queries * W, sum, mine, g.queries, by);
}

// A block: 64 keys of one head. Rows of scores are keys, columns queries. After the first kernel, which leaves `dots`.
TS_KERNEL void __launch_bounds__(128, 2) ts_attention_keys_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    const ts_u32 tiles = (ts_u32)((g.keys + 63) / 64), head = blockIdx.x / tiles;
    const Head here(g, head);
    const int left = (int)(blockIdx.x % tiles) * 64, mine = left + threadIdx.x / 32 * 16, queries = (int)g.queries;
    const int key = mine + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    const float scale = (float)g.scale * ts_log2_e(), times = MASKED ? 1.0f : scale;
    int first = g.causal ? left : 0;
    Walk walk(memory, here.of(g.q) + first * g.q.row, g.q.row, here.of(g.grad) + first * g.grad.row, g.grad.row, queries);
    // What is known of the queries of each slot: what their exponentials are divided by, and their dots.
    float(*known)[2][64] = (float(*)[2][64])(memory + 3 * SLOT);
    const auto bring = [&](int first) {
        walk.bring(first);
        if (threadIdx.x >= 64) return;
        const int query = first + threadIdx.x;
        float(*of)[64] = known[walk.next / SLOT];
        of[0][threadIdx.x] = ts_taken(g, head, query);
        of[1][threadIdx.x] = query < queries ? g.dots[(ts_i64)head * g.queries + query] : 0.0f;
    };
    ts_u32 k[W / 16][4], v[W / 16][4], shares[4][4], slopes[4][4];
    float dk[W / 8][4], dv[W / 8][4], score[8][4], change[8][4];
    if (first < queries) bring(first);
    ts_operand(k, here.of(g.k), g.k.row, mine, g.keys);
    ts_operand(v, here.of(g.v), g.v.row, mine, g.keys);
    ts_clear<W>(dk);
    ts_clear<W>(dv);
    if (first < queries) {
        do {
            walk.step();
            if (first + 64 < queries) bring(first + 64);
            ts_begin_rows(score, k, walk.first());
            ts_begin_rows(change, v, walk.second());
            ts_wgmma_wait<1>();
            ts_hold<64>(score);
            ts_hold<W>(dk);
            ts_hold<W>(dv);
            const float(*of)[64] = known[walk.slot / SLOT];
            if (g.causal && first < mine + 15) {
                // Queries before the key do not see it.
                const int before[2] = {key - first, key + 8 - first};
#pragma unroll
                for (int n = 0; n < 8; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (n * 8 + column + i % 2 < before[i / 2]) score[n][i] = ts_nothing();
            }
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int at = n * 8 + column + i % 2;
                    float x = score[n][i];
                    if (MASKED) x = ts_seen(g, mask, first + at, key + i / 2 * 8, x, scale);
                    score[n][i] = ts_exp2_near(fmaf(x, times, of[0][at]));
                }
            ts_as_operand<64>(shares, score);
            ts_begin_columns(dv, shares, walk.second());
            ts_wgmma_wait<1>();
            ts_hold<64>(change);
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    change[n][i] = score[n][i] * (change[n][i] - of[1][n * 8 + column + i % 2]);
            ts_as_operand<64>(slopes, change);
            // Run beside the next step.
            ts_begin_columns(dk, slopes, walk.first());
            first += 64;
        } while (first < queries);
        ts_wgmma_wait<0>();
        ts_hold<W>(dk);
        ts_hold<W>(dv);
    }
    const float by[2] = {(float)g.scale, (float)g.scale}, one[2] = {1.0f, 1.0f};
    ts_put(g.dk + (ts_i64)head * g.keys * W, dk, mine, g.keys, by);
    ts_put(g.dv + (ts_i64)head * g.keys * W, dv, mine, g.keys, one);
}
