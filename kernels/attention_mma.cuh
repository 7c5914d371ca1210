// Attention of 16-bit floats by matrix instructions: FlashAttention-2's forward pass (Dao, 2023). Q: sixteens of queries that
// a warp has. A block has four warps and walks over 64 keys at a time, of which the next ones come while it computes.
#include "ts_attention.cuh"

// Registers for two blocks of a multiprocessor, or three where a warp has less to keep.
TS_KERNEL void __launch_bounds__(128, Q == 2 || W > 64 ? 2 : 3) ts_attention_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    Row *keys = (Row*)memory, *values = keys + 128;
    const ts_u32 tiles = (ts_u32)((g.queries + 64 * Q - 1) / (64 * Q)), head = blockIdx.x / tiles;
    const Head here(g, head);
    // Later tiles see more keys: they start first.
    const ts_i64 top = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64 * Q, mine = top + threadIdx.x / 32 * 16 * Q;
    const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
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
    // Powers of two are cheaper than those of e. Without a mask the product with `scale` waits until the maximum is known.
    const float scale = (float)g.scale * ts_log2_e(), times = MASKED ? 1.0f : scale;
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
            if (edge) ts_hide(g, score[r], mine + 16 * r + group, first);
            float now[2] = {most[r][0], most[r][1]}, rescale[2];
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float& x = score[r][n][i];
                    if (MASKED) x = ts_seen(g, mask, mine + 16 * r + group + i / 2 * 8, first + n * 8 + 2 * t + i % 2, x, scale);
                    now[i / 2] = fmaxf(x, now[i / 2]);
                }
#pragma unroll
            for (int part = 0; part < 2; part++) {
                now[part] = fmaxf(now[part], __shfl_xor_sync(0xffffffffu, now[part], 1));
                now[part] = fmaxf(now[part], __shfl_xor_sync(0xffffffffu, now[part], 2));
                const bool none = now[part] == ts_nothing();
                rescale[part] = none ? 1.0f : ts_exp2_near((most[r][part] - now[part]) * times);
                most[r][part] = now[part];
                sum[r][part] *= rescale[part];
                now[part] = none ? 0.0f : -now[part] * times;
            }
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    score[r][n][i] = ts_exp2_near(fmaf(score[r][n][i], times, now[i / 2]));
                    sum[r][i / 2] += score[r][n][i];
                }
            ts_as_operand<64>(p[r], score[r]);
#pragma unroll
            for (int n = 0; n < W / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) out[r][n][i] *= rescale[i / 2];
        }
        ts_by_columns<Q, 64>(out, p, values + half);
    }
#pragma unroll
    for (int r = 0; r < Q; r++) {
        float share[2];
#pragma unroll
        for (int part = 0; part < 2; part++) {
            float& all = sum[r][part];
            all += __shfl_xor_sync(0xffffffffu, all, 1);
            all += __shfl_xor_sync(0xffffffffu, all, 2);
            share[part] = all == 0 ? 0.0f : 1.0f / all;
            const ts_i64 row = mine + 16 * r + group + part * 8;
            if (t == 0 && row < g.queries)
                g.lse[(ts_i64)head * g.queries + row] = all == 0 ? ts_nothing()
                                                         : most[r][part] * times * 0.6931471805599453f + logf(all);
        }
        ts_put(g.to + (ts_i64)head * g.queries * W, out[r], mine + 16 * r, g.queries, share);
    }
}
