// Attention of f32 on tensor cores: FlashAttention-2's forward pass (Dao, 2023), as `attention/mma.cuh` for 16-bit floats. Q:
// tiles of 16 queries that a warp has; N: keys of a tile, a multiple of 32. A block has four warps; the next tile is copied
// while one is computed (two stages).
#include "attention/tf32_tile.cuh"

// Computes the block's queries; says whether something of this thread is NaN.
template <bool INF> TS_FN bool ts_forward(const Args& g, SharedRow* keys) {
    SharedRow* values = keys + 2 * N;
    const ts_u32 tiles = (ts_u32)((g.queries + 64 * Q - 1) / (64 * Q)), head = blockIdx.x / tiles;
    const HeadIndex head_index(g, head);
    // With a causal mask, later tiles have more keys: they start first.
    const ts_i64 query_start = (ts_i64)(tiles - 1 - blockIdx.x % tiles) * 64 * Q,
        warp_query = query_start + threadIdx.x / 32 * 16 * Q;
    const int group = threadIdx.x % 32 / 4;
    const T *k = head_index.ptr(g.k), *v = head_index.ptr(g.v);
    const M* mask = g.mask + (MASKED ? head_index.offset(g.mask_stride) : 0);
    const ts_i64 key_end = g.causal && query_start + 64 * Q < g.keys ? query_start + 64 * Q : g.keys;
    const auto load = [&](int stage, ts_i64 key_start) {
        ts_cp_async_tile<N>(keys + stage, k, g.k.row_stride, key_start, g.keys);
        ts_cp_async_tile<N>(values + stage, v, g.v.row_stride, key_start, g.keys);
    };
    int stage = 0;
    if (key_end > 0) load(0, 0);
    float q[Q][W / 8][4], acc[Q][W / 8][4], row_max[Q][2], row_sum[Q][2];
#pragma unroll
    for (int r = 0; r < Q; r++) {
        ts_load_rows(q[r], head_index.ptr(g.q), g.q.row_stride, warp_query + 16 * r, g.queries);
        ts_clear<W>(acc[r]);
        row_max[r][0] = row_max[r][1] = ts_neg_inf();
        row_sum[r][0] = row_sum[r][1] = 0;
    }
    const float scale = (float)g.scale * ts_log2e();
    for (ts_i64 key_start = 0; key_start < key_end; key_start += N, stage ^= N) {
        ts_cp_async_wait_all();
        __syncthreads();
        if (key_start + N < key_end) load(stage ^ N, key_start + N);
        if (warp_query >= g.queries || (g.causal && key_start >= warp_query + 16 * Q)) continue;
        float score[Q][N / 8][4], rescale[Q][2];
        ts_mma_nt<INF, Q, N>(score, HeldRows{q}, keys + stage);
        const bool needs_mask = key_start + N > g.keys || (g.causal && key_start + N - 1 > warp_query);
#pragma unroll
        for (int r = 0; r < Q; r++)
            ts_online_softmax<N>(g, mask, score[r], row_max[r], row_sum[r], rescale[r], warp_query + 16 * r + group,
                key_start, needs_mask, scale);
        ts_mma_nn<INF, Q, N>(acc, score, values + stage, rescale);
    }
    bool any_nan = false;
#pragma unroll
    for (int r = 0; r < Q; r++) {
        ts_softmax_finish(g, head, row_max[r], row_sum[r], warp_query + 16 * r + group, scale);
        any_nan |= row_sum[r][0] != row_sum[r][0] || row_sum[r][1] != row_sum[r][1] || ts_any_nan<W>(acc[r]);
        ts_store_rows(g.out + (ts_i64)head * g.queries * W, acc[r], warp_query + 16 * r, g.queries, row_sum[r]);
    }
    return any_nan;
}

// By a call, so that it takes no registers from what most blocks do.
static __device__ __noinline__ void ts_forward_of_infinities(const Args& g, SharedRow* keys) { ts_forward<true>(g, keys); }

// Infinite values are looked after where they made NaN.
TS_KERNEL void __launch_bounds__(128, BLOCKS) ts_attention_forward_tf32(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    if (__syncthreads_or(ts_forward<false>(g, (SharedRow*)smem))) ts_forward_of_infinities(g, (SharedRow*)smem);
}
