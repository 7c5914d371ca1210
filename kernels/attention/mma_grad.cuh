// The gradient of `attention/mma.cuh`: FlashAttention-2's backward pass (Dao, 2023) as two kernels. Each recomputes the
// scores: so dQ needs no atomic sums, and results are the same in each run. N: queries of a tile of the second kernel.
// The other backward passes: `attention/wgmma_grad.cuh` does the same with wgmma on Hopper, `attention/tf32_grad.cuh` for f32;
// `ts_attention_dq` and `ts_attention_dk_dv` in `attention/attention.cuh` are for f64 and other head dims, without tensor cores.
#include "attention/tile.cuh"

// A block: 64 queries of one head. Computes dQ, and writes delta = dot(dO, O) of each query.
TS_KERNEL void __launch_bounds__(128) ts_attention_dq_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    SharedRow *keys = (SharedRow*)smem, *values = keys + 128;
    const ts_u32 tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / tiles;
    const HeadIndex head_index(g, head);
    const ts_i64 query_start = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64, warp_query = query_start + threadIdx.x / 32 * 16;
    const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const T *k = head_index.ptr(g.k), *v = head_index.ptr(g.v);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    const ts_i64 key_end = g.causal && query_start + 64 < g.keys ? query_start + 64 : g.keys;
    if (key_end > 0) {
        ts_cp_async_tile<64>(keys, k, g.k.row_stride, 0, g.keys);
        ts_cp_async_tile<64>(values, v, g.v.row_stride, 0, g.keys);
    }
    ts_u32 q[1][W / 16][4], dout[1][W / 16][4];
    float neg_lse[2], delta[2], dq[1][W / 8][4];
    ts_load_operand_a(q[0], head_index.ptr(g.o), g.o.row_stride, warp_query, g.queries);
    ts_load_operand_a(dout[0], head_index.ptr(g.dout), g.dout.row_stride, warp_query, g.queries);
    ts_dot_do_o(delta, g, head, q[0], dout[0], warp_query + group);
    ts_load_operand_a(q[0], head_index.ptr(g.q), g.q.row_stride, warp_query, g.queries);
    for (int part = 0; part < 2; part++) neg_lse[part] = ts_neg_lse(g, head, warp_query + group + part * 8);
    ts_clear<W>(dq[0]);
    const float scale = (float)g.scale * ts_log2e(), log2_scale = MASKED ? 1.0f : scale;
    int stage = 0;
    for (ts_i64 key_start = 0; key_start < key_end; key_start += 64, stage ^= 64) {
        ts_cp_async_wait_all();
        __syncthreads();
        if (key_start + 64 < key_end) {
            ts_cp_async_tile<64>(keys + (stage ^ 64), k, g.k.row_stride, key_start + 64, g.keys);
            ts_cp_async_tile<64>(values + (stage ^ 64), v, g.v.row_stride, key_start + 64, g.keys);
        }
        float score[1][8][4], dp[1][8][4];
        ts_clear<64>(score[0]);
        ts_clear<64>(dp[0]);
        ts_mma_nt<1, 64>(score, q, keys + stage);
        ts_mma_nt<1, 64>(dp, dout, values + stage);
        if (key_start + 64 > g.keys || (g.causal && key_start + 63 > warp_query)) ts_mask_tile(g, score[0],
            warp_query + group, key_start, dp[0], delta);
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float x = score[0][n][i];
                if (MASKED) x = ts_masked_score(g, mask, warp_query + group + i / 2 * 8, key_start + n * 8 + 2 * t + i % 2, x,
                    scale);
                const float p = ts_exp2_approx(fmaf(x, log2_scale, neg_lse[i / 2]));
                dp[0][n][i] = p * (dp[0][n][i] - delta[i / 2]);
            }
        ts_u32 ds[1][4][4];
        ts_acc_to_operand_a<64>(ds[0], dp[0]);
        ts_mma_nn<1, 64>(dq, ds, keys + stage);
    }
    const float softmax_scale[2] = {(float)g.scale, (float)g.scale};
    ts_store_rows(g.dq + (ts_i64)head * g.queries * W, dq[0], warp_query, g.queries, softmax_scale);
}

// A block: 64 keys of one head; computes dK and dV. Rows of the scores are keys, columns are queries. Runs after the first
// kernel, which writes `delta`.
TS_KERNEL void __launch_bounds__(128) ts_attention_dk_dv_mma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    SharedRow *queries = (SharedRow*)smem, *douts = queries + 2 * N;
    float *neg_lse = (float*)(douts + 2 * N), *delta = neg_lse + 2 * N;
    const ts_u32 tiles = (ts_u32)((g.keys + 63) / 64), head = blockIdx.x / tiles;
    const HeadIndex head_index(g, head);
    const ts_i64 key_start = (ts_i64)(blockIdx.x % tiles) * 64, warp_key = key_start + threadIdx.x / 32 * 16;
    const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const T *q = head_index.ptr(g.q), *dout = head_index.ptr(g.dout);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    ts_u32 k[1][W / 16][4], v[1][W / 16][4];
    float dk[1][W / 8][4], dv[1][W / 8][4];
    const float scale = (float)g.scale * ts_log2e(), log2_scale = MASKED ? 1.0f : scale;
    const auto load = [&](int stage, ts_i64 query_start) {
        ts_cp_async_tile<N>(queries + stage, q, g.q.row_stride, query_start, g.queries);
        ts_cp_async_tile<N>(douts + stage, dout, g.dout.row_stride, query_start, g.queries);
        if (threadIdx.x < N) {
            const ts_i64 query = query_start + threadIdx.x;
            neg_lse[stage + threadIdx.x] = ts_neg_lse(g, head, query);
            delta[stage + threadIdx.x] = query < g.queries ? g.delta[(ts_i64)head * g.queries + query] : 0.0f;
        }
    };
    ts_i64 query_start = g.causal ? key_start / N * N : 0;
    int stage = 0;
    if (query_start < g.queries) load(0, query_start);
    ts_load_operand_a(k[0], head_index.ptr(g.k), g.k.row_stride, warp_key, g.keys);
    ts_load_operand_a(v[0], head_index.ptr(g.v), g.v.row_stride, warp_key, g.keys);
    ts_clear<W>(dk[0]);
    ts_clear<W>(dv[0]);
    for (; query_start < g.queries; query_start += N, stage ^= N) {
        ts_cp_async_wait_all();
        __syncthreads();
        if (query_start + N < g.queries) load(stage ^ N, query_start + N);
        float score[1][N / 8][4], dp[1][N / 8][4];
        ts_clear<N>(score[0]);
        ts_clear<N>(dp[0]);
        ts_mma_nt<1, N>(score, k, queries + stage);
        ts_mma_nt<1, N>(dp, v, douts + stage);
        // Causal: queries before a key do not attend to it.
        const ts_i64 before[2] = {g.causal ? warp_key + group - query_start : 0,
            g.causal ? warp_key + group + 8 - query_start : 0};
        const bool needs_mask = g.causal && query_start < warp_key + 15;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = n * 8 + 2 * t + i % 2;
                float x = score[0][n][i];
                if (MASKED) x = ts_masked_score(g, mask, query_start + column, warp_key + group + i / 2 * 8, x, scale);
                const float p = ts_exp2_approx(fmaf(x, log2_scale, neg_lse[stage + column]));
                const bool masked = needs_mask && column < (int)before[i / 2];
                score[0][n][i] = masked ? 0.0f : p;
                dp[0][n][i] = masked ? 0.0f : p * (dp[0][n][i] - delta[stage + column]);
            }
        ts_u32 p_operand[1][N / 16][4], ds_operand[1][N / 16][4];
        ts_acc_to_operand_a<N>(p_operand[0], score[0]);
        ts_mma_nn<1, N>(dv, p_operand, douts + stage);
        ts_acc_to_operand_a<N>(ds_operand[0], dp[0]);
        ts_mma_nn<1, N>(dk, ds_operand, queries + stage);
    }
    const float softmax_scale[2] = {(float)g.scale, (float)g.scale}, one[2] = {1.0f, 1.0f};
    ts_store_rows(g.dk + (ts_i64)head * g.keys * W, dk[0], warp_key, g.keys, softmax_scale);
    ts_store_rows(g.dv + (ts_i64)head * g.keys * W, dv[0], warp_key, g.keys, one);
}
