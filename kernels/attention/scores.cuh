// Attention of whole f32 and f64 by library products: a part of the matrix of scores at a time, of `block_heads` heads,
// `block_queries` queries and `block_keys` keys, is made by a product, turned into probabilities here and multiplied with the
// values. A warp for each row. E: scores of a row that a lane keeps in registers; 0: they are read again.
#include "attention/attention.cuh"

struct ScoreRow {
    ts_i64 head, query, mask;
    C *scores, *grads;
    bool inside;
};
TS_FN ScoreRow ts_score_row(const Args& g) {
    const ts_i64 row = (ts_i64)blockIdx.x * 8 + threadIdx.x / 32;
    ScoreRow r;
    r.inside = row < g.block_heads * g.block_queries;
    r.head = g.first_head + row / g.block_queries;
    r.query = g.first_query + row % g.block_queries;
    r.mask = r.inside && g.mask ? ts_mask_offset(g, r.head) : 0;
    r.scores = g.scores + row * g.block_keys;
    r.grads = g.score_grads + row * g.block_keys;
    return r;
}
TS_FN C ts_score_at(const Args& g, const ScoreRow& r, ts_i64 key) {
    return key < g.block_keys ? ts_score(g, r.mask, r.query, key, r.scores[key]) : -ts_inf(C());
}

// Scores become probabilities; writes their logsumexp.
TS_KERNEL void __launch_bounds__(256) ts_scores_softmax(const __grid_constant__ Args g) {
    const ScoreRow r = ts_score_row(g);
    if (!r.inside) return;
    const int lane = threadIdx.x % 32;
    const ts_i64 parts = E ? E : (g.block_keys + 31) / 32;
    C kept[E + 1];
    C max = -ts_inf(C()), sum = 0;
#pragma unroll
    for (int e = 0; e < E; e++) kept[e] = ts_score_at(g, r, lane + 32 * e);
#pragma unroll
    for (ts_i64 e = 0; e < parts; e++) max = ts_maximum(max, E ? kept[e] : ts_score_at(g, r, lane + 32 * e));
    max = ts_warp_all_reduce(max, true);
    const C base = max == -ts_inf(C()) ? C(0) : max;
#pragma unroll
    for (ts_i64 e = 0; e < parts; e++) {
        const C power = ts_exp((E ? kept[e] : ts_score_at(g, r, lane + 32 * e)) - base);
        if (E) kept[e] = power;
        sum += power;
    }
    sum = ts_warp_all_reduce(sum, false);
    const C scale = sum == 0 ? C(0) : C(1) / sum;
#pragma unroll
    for (ts_i64 e = 0; e < parts; e++) {
        const ts_i64 key = lane + 32 * e;
        if (key < g.block_keys) r.scores[key] = scale * (E ? kept[e] : ts_exp(ts_score_at(g, r, key) - base));
    }
    if (lane == 0) g.lse[r.head * g.queries + r.query] = sum == 0 ? -ts_inf(C()) : base + ts_log(sum);
}

// Scores become probabilities again, and the gradients of probabilities those of products of queries and keys.
TS_KERNEL void __launch_bounds__(256) ts_scores_grad(const __grid_constant__ Args g) {
    const ScoreRow r = ts_score_row(g);
    if (!r.inside) return;
#pragma unroll 4
    for (ts_i64 key = threadIdx.x % 32; key < g.block_keys; key += 32) {
        C prob, grad;
        ts_score_grad(g, r.head, r.mask, r.query, key, r.scores[key], r.grads[key], prob, grad);
        r.scores[key] = prob;
        r.grads[key] = grad;
    }
}
