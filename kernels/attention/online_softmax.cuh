// The scores of a tile: masks, the online softmax, logsumexp. A lane has the scores of a warp's 16 queries, or keys, as
// accumulators of `ts_mma`.
#pragma once
#include "attention/head.cuh"

// The score of a masked key.
TS_FN float ts_neg_inf() { return __uint_as_float(0xff800000u); }
TS_FN float ts_log2e() { return 1.4426950408889634f; }
// Applies the mask to a score in log2 units.
TS_FN float ts_apply_mask(float score, ts_b8 m) { return m.byte ? score : ts_neg_inf(); }
TS_FN float ts_apply_mask(float score, float m) { return score + m * ts_log2e(); }
// The score in log2 units. Without a mask it is left unscaled: its scale is applied in the exponent.
TS_FN float ts_masked_score(const Args& g, const M* mask, ts_i64 query, ts_i64 key, float dot, float scale) {
    if (!MASKED || query >= g.queries || key >= g.keys) return dot;
    return ts_apply_mask(dot * scale, mask[query * g.mask_query + key * g.mask_key]);
}
// How many of the N keys from `first` on a query attends to: not past the end, and no later ones if causal.
template <int N> TS_FN int ts_visible_keys(const Args& g, ts_i64 query, ts_i64 first) {
    ts_i64 count = g.keys - first;
    if (g.causal && query + 1 - first < count) count = query + 1 - first;
    return count < N ? (int)count : N;
}
// Sets the scores of keys that queries `query` and `query + 8` do not attend to, to -inf. dP of such scores becomes `delta`,
// so that dS is 0 and not NaN.
template <int N = 64> TS_FN void ts_mask_tile(const Args& g, float (*score)[4], ts_i64 query, ts_i64 first,
    float (*dp)[4] = 0, const float* delta = 0) {
    const int visible[2] = {ts_visible_keys<N>(g, query, first), ts_visible_keys<N>(g, query + 8, first)};
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (n * 8 + (int)threadIdx.x % 4 * 2 + i % 2 >= visible[i / 2]) {
                score[n][i] = ts_neg_inf();
                if (dp) dp[n][i] = delta[i / 2];
            }
}
// A step of the online softmax over the scores of N keys from `first` on, for queries `query` and `query + 8`. Scores become
// exp2(score - row_max) with the new maximum; `row_sum` is this lane's part of the sum; earlier sums and outputs must be
// multiplied by `rescale`. `needs_mask`: some query does not attend to all of these keys.
template <int N = 64> TS_FN void ts_online_softmax(const Args& g, const M* mask, float (*score)[4], float* row_max,
    float* row_sum, float* rescale, ts_i64 query, ts_i64 first, bool needs_mask, float scale) {
    // exp2 is cheaper than exp. Without a mask, scores are multiplied by `scale` in the fused multiply-add of the exponent.
    const float factor = MASKED ? 1.0f : scale;
    float new_max[2] = {row_max[0], row_max[1]};
    if (needs_mask) ts_mask_tile<N>(g, score, query, first);
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float& x = score[n][i];
            if (MASKED) x = ts_masked_score(g, mask, query + i / 2 * 8, first + n * 8 + threadIdx.x % 4 * 2 + i % 2, x, scale);
            new_max[i / 2] = fmaxf(x, new_max[i / 2]);
        }
#pragma unroll
    for (int part = 0; part < 2; part++) {
        new_max[part] = fmaxf(new_max[part], __shfl_xor_sync(0xffffffffu, new_max[part], 1));
        new_max[part] = fmaxf(new_max[part], __shfl_xor_sync(0xffffffffu, new_max[part], 2));
        const bool all_masked = new_max[part] == ts_neg_inf();
        rescale[part] = all_masked ? 1.0f : ts_exp2_approx((row_max[part] - new_max[part]) * factor);
        row_max[part] = new_max[part];
        row_sum[part] *= rescale[part];
        new_max[part] = all_masked ? 0.0f : -new_max[part] * factor;
    }
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            score[n][i] = ts_exp2_approx(fmaf(score[n][i], factor, new_max[i / 2]));
            row_sum[i / 2] += score[n][i];
        }
}
// Finishes the softmax of queries `query` and `query + 8` of a head: writes lse and replaces the sums by their reciprocals.
TS_FN void ts_softmax_finish(const Args& g, ts_u32 head, const float* row_max, float* row_sum, ts_i64 query, float scale) {
#pragma unroll
    for (int part = 0; part < 2; part++) {
        float& all = row_sum[part];
        all += __shfl_xor_sync(0xffffffffu, all, 1);
        all += __shfl_xor_sync(0xffffffffu, all, 2);
        const ts_i64 row = query + part * 8;
        if (threadIdx.x % 4 == 0 && row < g.queries)
            g.lse[(ts_i64)head * g.queries + row] =
                all == 0 ? ts_neg_inf() : row_max[part] * (MASKED ? 1.0f : scale) * 0.6931471805599453f + logf(all);
        all = all == 0 ? 0.0f : 1.0f / all;
    }
}
// -lse of a query in log2 units, to be added to its scores; -inf where every key is masked, so that all probabilities are 0.
TS_FN float ts_neg_lse(const Args& g, ts_u32 head, ts_i64 query) {
    const float lse = query < g.queries ? g.lse[(ts_i64)head * g.queries + query] : ts_neg_inf();
    return lse == ts_neg_inf() ? lse : -lse * ts_log2e();
}
