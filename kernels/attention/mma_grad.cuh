// The gradient of `attention/mma.cuh`: FlashAttention-2's backward pass (Dao, 2023) as two kernels, of which each computes the
// scores again, so that no sum is made by atomics and results are the same in each run. N: queries of a tile of the second.
#include "attention/tile.cuh"

// A block: 64 queries of one head. Writes the gradient of q, and for each query the product of its gradient and its output.
TS_KERNEL void __launch_bounds__(128) ts_attention_queries_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    Row *keys = (Row*)memory, *values = keys + 128;
    const ts_u32 tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / tiles;
    const Head here(g, head);
    const ts_i64 top = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64, mine = top + threadIdx.x / 32 * 16;
    const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const T *k = here.of(g.k), *v = here.of(g.v);
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    const ts_i64 seen = g.causal && top + 64 < g.keys ? top + 64 : g.keys;
    if (seen > 0) {
        ts_bring<64>(keys, k, g.k.row, 0, g.keys);
        ts_bring<64>(values, v, g.v.row, 0, g.keys);
    }
    ts_u32 q[1][W / 16][4], grad[1][W / 16][4];
    float taken[2], dots[2], sum[1][W / 8][4];
    ts_operand(q[0], here.of(g.out), g.out.row, mine, g.queries);
    ts_operand(grad[0], here.of(g.grad), g.grad.row, mine, g.queries);
    ts_row_dots(dots, g, head, q[0], grad[0], mine + group);
    ts_operand(q[0], here.of(g.q), g.q.row, mine, g.queries);
    for (int part = 0; part < 2; part++) taken[part] = ts_taken(g, head, mine + group + part * 8);
    ts_clear<W>(sum[0]);
    const float scale = (float)g.scale * ts_log2_e(), times = MASKED ? 1.0f : scale;
    int half = 0;
    for (ts_i64 first = 0; first < seen; first += 64, half ^= 64) {
        ts_brought();
        __syncthreads();
        if (first + 64 < seen) {
            ts_bring<64>(keys + (half ^ 64), k, g.k.row, first + 64, g.keys);
            ts_bring<64>(values + (half ^ 64), v, g.v.row, first + 64, g.keys);
        }
        float score[1][8][4], change[1][8][4];
        ts_clear<64>(score[0]);
        ts_clear<64>(change[0]);
        ts_by_rows<1, 64>(score, q, keys + half);
        ts_by_rows<1, 64>(change, grad, values + half);
        if (first + 64 > g.keys || (g.causal && first + 63 > mine)) ts_hide(g, score[0], mine + group, first, change[0], dots);
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float x = score[0][n][i];
                if (MASKED) x = ts_seen(g, mask, mine + group + i / 2 * 8, first + n * 8 + 2 * t + i % 2, x, scale);
                const float share = ts_exp2_near(fmaf(x, times, taken[i / 2]));
                change[0][n][i] = share * (change[0][n][i] - dots[i / 2]);
            }
        ts_u32 slope[1][4][4];
        ts_as_operand<64>(slope[0], change[0]);
        ts_by_columns<1, 64>(sum, slope, keys + half);
    }
    const float by[2] = {(float)g.scale, (float)g.scale};
    ts_put(g.dq + (ts_i64)head * g.queries * W, sum[0], mine, g.queries, by);
}

// A block: 64 keys of one head. Rows of scores are keys, columns queries. After the first kernel, which leaves `dots`.
TS_KERNEL void __launch_bounds__(128) ts_attention_keys_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    Row *queries = (Row*)memory, *grads = queries + 2 * N;
    float *taken = (float*)(grads + 2 * N), *dots = taken + 2 * N;
    const ts_u32 tiles = (ts_u32)((g.keys + 63) / 64), head = blockIdx.x / tiles;
    const Head here(g, head);
    const ts_i64 left = (ts_i64)(blockIdx.x % tiles) * 64, mine = left + threadIdx.x / 32 * 16;
    const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const T *q = here.of(g.q), *grad = here.of(g.grad);
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    ts_u32 k[1][W / 16][4], v[1][W / 16][4];
    float dk[1][W / 8][4], dv[1][W / 8][4];
    const float scale = (float)g.scale * ts_log2_e(), times = MASKED ? 1.0f : scale;
    const auto bring = [&](int half, ts_i64 first) {
        ts_bring<N>(queries + half, q, g.q.row, first, g.queries);
        ts_bring<N>(grads + half, grad, g.grad.row, first, g.queries);
        if (threadIdx.x < N) {
            const ts_i64 query = first + threadIdx.x;
            taken[half + threadIdx.x] = ts_taken(g, head, query);
            dots[half + threadIdx.x] = query < g.queries ? g.dots[(ts_i64)head * g.queries + query] : 0.0f;
        }
    };
    ts_i64 first = g.causal ? left / N * N : 0;
    int half = 0;
    if (first < g.queries) bring(0, first);
    ts_operand(k[0], here.of(g.k), g.k.row, mine, g.keys);
    ts_operand(v[0], here.of(g.v), g.v.row, mine, g.keys);
    ts_clear<W>(dk[0]);
    ts_clear<W>(dv[0]);
    for (; first < g.queries; first += N, half ^= N) {
        ts_brought();
        __syncthreads();
        if (first + N < g.queries) bring(half ^ N, first + N);
        float score[1][N / 8][4], change[1][N / 8][4];
        ts_clear<N>(score[0]);
        ts_clear<N>(change[0]);
        ts_by_rows<1, N>(score, k, queries + half);
        ts_by_rows<1, N>(change, v, grads + half);
        // Queries before the key: they come first.
        const ts_i64 before[2] = {g.causal ? mine + group - first : 0, g.causal ? mine + group + 8 - first : 0};
        const bool edge = g.causal && first < mine + 15;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = n * 8 + 2 * t + i % 2;
                float x = score[0][n][i];
                if (MASKED) x = ts_seen(g, mask, first + column, mine + group + i / 2 * 8, x, scale);
                const float share = ts_exp2_near(fmaf(x, times, taken[half + column]));
                const bool hidden = edge && column < (int)before[i / 2];
                score[0][n][i] = hidden ? 0.0f : share;
                change[0][n][i] = hidden ? 0.0f : share * (change[0][n][i] - dots[half + column]);
            }
        ts_u32 shares[1][N / 16][4], slopes[1][N / 16][4];
        ts_as_operand<N>(shares[0], score[0]);
        ts_by_columns<1, N>(dv, shares, grads + half);
        ts_as_operand<N>(slopes[0], change[0]);
        ts_by_columns<1, N>(dk, slopes, queries + half);
    }
    const float by[2] = {(float)g.scale, (float)g.scale}, one[2] = {1.0f, 1.0f};
    ts_put(g.dk + (ts_i64)head * g.keys * W, dk[0], mine, g.keys, by);
    ts_put(g.dv + (ts_i64)head * g.keys * W, dv[0], mine, g.keys, one);
}
