// The gradient of `attention/tf32.cuh`: as in `attention/mma_grad.cuh` two kernels, which compute the scores again. The rows that
// a block keeps lie in shared memory, too: registers hold sums. N: rows of the other factor in a tile, a multiple of 32;
// STAGES: 2 where the next tile is copied while one is computed, or 1.
#include "attention/tf32_tile.cuh"

// delta = dot(dO, O) for queries `query` and `query + 8` of a head; also stored for the kernel of dK and dV.
TS_FN void ts_dot_do_o(float* delta, const Args& g, const HeadIndex& head_index, ts_u32 head, ts_i64 query) {
    typedef ts_vec<float, 4> Chunk;
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        const ts_i64 row = query + part * 8;
        const T *out = head_index.ptr(g.o) + row * g.o.row_stride, *dout = head_index.ptr(g.dout) + row * g.dout.row_stride;
        float dot = 0;
        for (int c = 4 * t; c < W && row < g.queries; c += 16) {
            const Chunk x = *(const Chunk*)(out + c), y = *(const Chunk*)(dout + c);
#pragma unroll
            for (int k = 0; k < 4; k++) dot = fmaf(x.x[k], y.x[k], dot);
        }
        dot += __shfl_xor_sync(0xffffffffu, dot, 1);
        dot += __shfl_xor_sync(0xffffffffu, dot, 2);
        if (t == 0 && row < g.queries) g.delta[(ts_i64)head * g.queries + row] = dot;
        delta[part] = dot;
    }
}
// Calls `compute` with each tile that `load` has copied, of those from `first` to `end`.
template <class Load, class Compute> TS_FN void ts_for_tiles(ts_i64 first, ts_i64 end, const Load& load, const Compute& compute) {
    int stage = 0;
    if (STAGES == 2 && first < end) load(0, first);
    for (; first < end; first += N) {
        if (STAGES == 1) {
            // Every warp has read the last tile.
            __syncthreads();
            load(0, first);
        }
        ts_cp_async_wait_all();
        __syncthreads();
        if (STAGES == 2 && first + N < end) load(stage ^ N, first + N);
        compute(stage, first);
        if (STAGES == 2) stage ^= N;
    }
}

// A block: 64 queries of one head. Computes dQ, and writes delta = dot(dO, O) of each query; says whether something of this
// thread is NaN.
template <bool INF> TS_FN bool ts_dq(const Args& g, SharedRow* queries) {
    SharedRow *douts = queries + 64, *keys = douts + 64, *values = keys + STAGES * N;
    const ts_u32 tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / tiles;
    const HeadIndex head_index(g, head);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const ts_i64 query_start = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64, warp_query = query_start + warp * 16;
    const T *k = head_index.ptr(g.k), *v = head_index.ptr(g.v);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    const ts_i64 key_end = g.causal && query_start + 64 < g.keys ? query_start + 64 : g.keys;
    ts_cp_async_tile<64>(queries, head_index.ptr(g.q), g.q.row_stride, query_start, g.queries);
    ts_cp_async_tile<64>(douts, head_index.ptr(g.dout), g.dout.row_stride, query_start, g.queries);
    float neg_lse[2], delta[2], dq[1][W / 8][4];
    ts_dot_do_o(delta, g, head_index, head, warp_query + group);
    for (int part = 0; part < 2; part++) neg_lse[part] = ts_neg_lse(g, head, warp_query + group + part * 8);
    ts_clear<W>(dq[0]);
    const float scale = (float)g.scale * ts_log2e(), log2_scale = MASKED ? 1.0f : scale;
    const auto load = [&](int stage, ts_i64 key_start) {
        ts_cp_async_tile<N>(keys + stage, k, g.k.row_stride, key_start, g.keys);
        ts_cp_async_tile<N>(values + stage, v, g.v.row_stride, key_start, g.keys);
    };
    ts_for_tiles(0, key_end, load, [&](int stage, ts_i64 key_start) {
        if (warp_query >= g.queries || (g.causal && key_start >= warp_query + 16)) return;
        float score[1][N / 8][4], dp[1][N / 8][4];
        ts_mma_nt<INF, 1, N>(score, TileRows{queries + warp * 16}, keys + stage);
        ts_mma_nt<INF, 1, N>(dp, TileRows{douts + warp * 16}, values + stage);
        if (key_start + N > g.keys || (g.causal && key_start + N - 1 > warp_query))
            ts_mask_tile<N>(g, score[0], warp_query + group, key_start, dp[0], delta);
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float x = score[0][n][i];
                if (MASKED) x = ts_masked_score(g, mask, warp_query + group + i / 2 * 8, key_start + n * 8 + 2 * t + i % 2, x,
                    scale);
                const float p = ts_exp2_approx(fmaf(x, log2_scale, neg_lse[i / 2]));
                dp[0][n][i] = p * (dp[0][n][i] - delta[i / 2]);
            }
        ts_mma_nn<INF, 1, N>(dq, dp, keys + stage);
    });
    const float softmax_scale[2] = {(float)g.scale, (float)g.scale};
    ts_store_rows(g.dq + (ts_i64)head * g.queries * W, dq[0], warp_query, g.queries, softmax_scale);
    return ts_any_nan<W>(dq[0]);
}

// By a call, so that it takes no registers from what most blocks do.
static __device__ __noinline__ void ts_dq_of_infinities(const Args& g, SharedRow* queries) { ts_dq<true>(g, queries); }

// As in the forward pass, infinite values are looked after where they made NaN.
TS_KERNEL void __launch_bounds__(128, BLOCKS) ts_attention_dq_tf32(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    if (__syncthreads_or(ts_dq<false>(g, (SharedRow*)smem))) ts_dq_of_infinities(g, (SharedRow*)smem);
}

// A block: 64 keys of one head; computes dK and dV, and says as `ts_dq` whether something is NaN. Rows of the scores are keys,
// columns are queries. The first number that pads a row of a tile is -lse of a query, or delta.
template <bool INF> TS_FN bool ts_dk_dv(const Args& g, SharedRow* keys) {
    SharedRow *values = keys + 64, *queries = values + 64, *douts = queries + STAGES * N;
    const ts_u32 tiles = (ts_u32)((g.keys + 63) / 64), head = blockIdx.x / tiles;
    const HeadIndex head_index(g, head);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const ts_i64 key_start = (ts_i64)(blockIdx.x % tiles) * 64, warp_key = key_start + warp * 16;
    const T *q = head_index.ptr(g.q), *dout = head_index.ptr(g.dout);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    ts_cp_async_tile<64>(keys, head_index.ptr(g.k), g.k.row_stride, key_start, g.keys);
    ts_cp_async_tile<64>(values, head_index.ptr(g.v), g.v.row_stride, key_start, g.keys);
    float dk[1][W / 8][4], dv[1][W / 8][4];
    ts_clear<W>(dk[0]);
    ts_clear<W>(dv[0]);
    const float scale = (float)g.scale * ts_log2e(), log2_scale = MASKED ? 1.0f : scale;
    const auto load = [&](int stage, ts_i64 query_start) {
        ts_cp_async_tile<N>(queries + stage, q, g.q.row_stride, query_start, g.queries);
        ts_cp_async_tile<N>(douts + stage, dout, g.dout.row_stride, query_start, g.queries);
        if (threadIdx.x < N) {
            const ts_i64 query = query_start + threadIdx.x;
            queries[stage + threadIdx.x].x[W] = ts_neg_lse(g, head, query);
            douts[stage + threadIdx.x].x[W] = query < g.queries ? g.delta[(ts_i64)head * g.queries + query] : 0.0f;
        }
    };
    ts_for_tiles(g.causal ? key_start / N * N : 0, g.queries, load, [&](int stage, ts_i64 query_start) {
        // Causal: queries before a key do not attend to it.
        if (warp_key >= g.keys || (g.causal && query_start + N <= warp_key)) return;
        float score[1][N / 8][4], dp[1][N / 8][4];
        ts_mma_nt<INF, 1, N>(score, TileRows{keys + warp * 16}, queries + stage);
        ts_mma_nt<INF, 1, N>(dp, TileRows{values + warp * 16}, douts + stage);
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
                const float p = ts_exp2_approx(fmaf(x, log2_scale, queries[stage + column].x[W]));
                const bool masked = needs_mask && column < (int)before[i / 2];
                score[0][n][i] = masked ? 0.0f : p;
                dp[0][n][i] = masked ? 0.0f : p * (dp[0][n][i] - douts[stage + column].x[W]);
            }
        ts_mma_nn<INF, 1, N>(dv, score, douts + stage);
        ts_mma_nn<INF, 1, N>(dk, dp, queries + stage);
    });
    const float softmax_scale[2] = {(float)g.scale, (float)g.scale}, one[2] = {1.0f, 1.0f};
    ts_store_rows(g.dk + (ts_i64)head * g.keys * W, dk[0], warp_key, g.keys, softmax_scale);
    ts_store_rows(g.dv + (ts_i64)head * g.keys * W, dv[0], warp_key, g.keys, one);
    return ts_any_nan<W>(dk[0]) || ts_any_nan<W>(dv[0]);
}
static __device__ __noinline__ void ts_dk_dv_of_infinities(const Args& g, SharedRow* keys) { ts_dk_dv<true>(g, keys); }

// Runs after the first kernel, which writes `delta`.
TS_KERNEL void __launch_bounds__(128, BLOCKS) ts_attention_dk_dv_tf32(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    if (__syncthreads_or(ts_dk_dv<false>(g, (SharedRow*)smem))) ts_dk_dv_of_infinities(g, (SharedRow*)smem);
}
