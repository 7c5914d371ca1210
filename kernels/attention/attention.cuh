// Attention without tensor cores, for the calls that `attention/mma.cuh` and `attention/tf32.cuh` do not support, and its
// gradient: an online softmax in tiles of 32 queries by 32 keys; the matrix of scores is never stored (Dao,
// "FlashAttention-2", 2023). T: memory type; M: type of the mask (ts_b8, or the compute type of T); D: columns of q and k,
// or of v, that a lane holds: those of a head divided by 32, rounded up.
#include "common/rows.cuh"

typedef typename ts_opmath<T>::type C;

#include "attention/args.cuh"

// Loads 32 rows of `width` elements from row `first` on into a tile whose rows are padded by one element; rows from `rows` on
// are zero.
TS_FN void ts_load_tile(C* to, const T* from, ts_i64 first, ts_i64 rows, ts_i64 width) {
    for (ts_i64 i = threadIdx.x; i < 32 * width; i += 256) {
        const ts_i64 r = i / width, c = i - r * width;
        to[r * (width + 1) + c] = first + r < rows ? (C)ts_upcast(from[(first + r) * width + c]) : C(0);
    }
}
TS_FN ts_i64 ts_mask_offset(const Args& g, ts_i64 head) {
    ts_i64 at = 0;
    for (int d = 3; d >= 0; d--) {
        at += head % g.size[d] * g.mask_stride[d];
        head /= g.size[d];
    }
    return at;
}
TS_FN C ts_apply_mask(const Args& g, ts_b8 m, C score) { return m.byte ? score : -ts_inf(C()); }
TS_FN C ts_apply_mask(const Args& g, C m, C score) { return score + m; }
// The scaled and masked score of a query and a key; -inf where the query does not attend to the key.
TS_FN C ts_score(const Args& g, ts_i64 mask, ts_i64 query, ts_i64 key, C dot) {
    if (query >= g.queries || key >= g.keys || (g.causal && key > query)) return -ts_inf(C());
    C score = dot * (C)g.scale;
    return g.mask ? ts_apply_mask(g, g.mask[mask + query * g.mask_row_stride + key * g.mask_column_stride], score) : score;
}
TS_FN C ts_dot(const C* a, const C* b, ts_i64 n) {
    C sum = 0;
    for (ts_i64 e = 0; e < n; e++) sum = ts_fma(a[e], b[e], sum);
    return sum;
}
TS_FN C ts_warp_all_reduce(C v, bool is_max) {
    for (int d = 16; d > 0; d /= 2) {
        const C other = __shfl_xor_sync(0xffffffffu, v, d);
        v = is_max ? ts_maximum(v, other) : v + other;
    }
    return v;
}

// A block: one tile of queries of one head. A warp has rows ty, ty + 8, ..; a lane has one key of the scores and D columns of
// the output.
TS_KERNEL void __launch_bounds__(256) ts_attention_forward(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    C *q = (C*)smem, *k = q + 32 * (g.head_dim + 1), *v = k + 32 * (g.head_dim + 1), *p_tile = v + 32 * (g.value_dim + 1);
    const ts_i64 tiles = (g.queries + 31) / 32, head = blockIdx.x / tiles, query_start = blockIdx.x % tiles * 32;
    const ts_i64 mask = ts_mask_offset(g, head);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    C row_max[4], row_sum[4], acc[4][D];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        row_max[r] = -ts_inf(C());
        row_sum[r] = 0;
#pragma unroll
        for (int c = 0; c < D; c++) acc[r][c] = 0;
    }
    ts_load_tile(q, g.q + head * g.queries * g.head_dim, query_start, g.queries, g.head_dim);
    const ts_i64 key_end = g.causal && query_start + 32 < g.keys ? query_start + 32 : g.keys;
    for (ts_i64 key_start = 0; key_start < key_end; key_start += 32) {
        __syncthreads();
        ts_load_tile(k, g.k + head * g.keys * g.head_dim, key_start, g.keys, g.head_dim);
        ts_load_tile(v, g.v + head * g.keys * g.value_dim, key_start, g.keys, g.value_dim);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = ty + 8 * r;
            const C score = ts_score(g, mask, query_start + row, key_start + tx,
                                     ts_dot(q + row * (g.head_dim + 1), k + tx * (g.head_dim + 1), g.head_dim));
            const C new_max = ts_maximum(ts_warp_all_reduce(score, true), row_max[r]);
            const bool all_masked = new_max == -ts_inf(C());
            const C prob = all_masked ? C(0) : ts_exp(score - new_max),
                rescale = all_masked ? C(1) : ts_exp(row_max[r] - new_max);
            row_sum[r] = row_sum[r] * rescale + ts_warp_all_reduce(prob, false);
            row_max[r] = new_max;
            p_tile[row * 33 + tx] = prob;
#pragma unroll
            for (int c = 0; c < D; c++) acc[r][c] *= rescale;
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 column = tx + 32 * c;
            if (column < g.value_dim)
                for (int j = 0; j < 32; j++) {
                    const C value = v[j * (g.value_dim + 1) + column];
#pragma unroll
                    for (int r = 0; r < 4; r++) acc[r][c] = ts_fma(p_tile[(ty + 8 * r) * 33 + j], value, acc[r][c]);
                }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const ts_i64 query = query_start + ty + 8 * r;
        if (query >= g.queries) continue;
        const C scale = row_sum[r] == 0 ? C(0) : C(1) / row_sum[r];
        if (tx == 0) g.lse[head * g.queries + query] = row_sum[r] == 0 ? -ts_inf(C()) : row_max[r] + ts_log(row_sum[r]);
#pragma unroll
        for (int c = 0; c < D; c++)
            if (tx + 32 * c < g.value_dim)
                g.dv[(head * g.queries + query) * g.value_dim + tx + 32 * c] = ts_downcast<T>(acc[r][c] * scale);
    }
}

// delta[query] = dot(dO, O); a warp for each query.
TS_KERNEL void __launch_bounds__(256) ts_attention_dot_do_o(const __grid_constant__ Args g) {
    const ts_i64 query = (ts_i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (query >= g.heads * g.queries) return;
    C dot = 0;
    for (ts_i64 c = threadIdx.x % 32; c < g.value_dim; c += 32)
        dot += (C)ts_upcast(g.dout[query * g.value_dim + c]) * (C)ts_upcast(g.o[query * g.value_dim + c]);
    dot = ts_warp_all_reduce(dot, false);
    if (threadIdx.x % 32 == 0) g.delta[query] = dot;
}

// Recomputes the probability of a score from lse; ds: the gradient of the unscaled score.
TS_FN void ts_score_grad(const Args& g, ts_i64 head, ts_i64 mask, ts_i64 query, ts_i64 key, C dot, C dp, C& prob, C& ds) {
    const C score = ts_score(g, mask, query, key, dot);
    const C lse = query < g.queries ? g.lse[head * g.queries + query] : C(0);
    prob = score == -ts_inf(C()) || lse == -ts_inf(C()) ? C(0) : ts_exp(score - lse);
    ds = prob == 0 ? C(0) : prob * (dp - g.delta[head * g.queries + query]) * (C)g.scale;
}

// A block: one tile of queries; computes dQ.
TS_KERNEL void __launch_bounds__(256) ts_attention_dq(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    C *q = (C*)smem, *k = q + 32 * (g.head_dim + 1), *v = k + 32 * (g.head_dim + 1), *dout = v + 32 * (g.value_dim + 1);
    C* ds_tile = dout + 32 * (g.value_dim + 1);
    const ts_i64 tiles = (g.queries + 31) / 32, head = blockIdx.x / tiles, query_start = blockIdx.x % tiles * 32;
    const ts_i64 mask = ts_mask_offset(g, head);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    C dq[4][D];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++) dq[r][c] = 0;
    ts_load_tile(q, g.q + head * g.queries * g.head_dim, query_start, g.queries, g.head_dim);
    ts_load_tile(dout, g.dout + head * g.queries * g.value_dim, query_start, g.queries, g.value_dim);
    const ts_i64 key_end = g.causal && query_start + 32 < g.keys ? query_start + 32 : g.keys;
    for (ts_i64 key_start = 0; key_start < key_end; key_start += 32) {
        __syncthreads();
        ts_load_tile(k, g.k + head * g.keys * g.head_dim, key_start, g.keys, g.head_dim);
        ts_load_tile(v, g.v + head * g.keys * g.value_dim, key_start, g.keys, g.value_dim);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = ty + 8 * r;
            C prob, ds;
            ts_score_grad(g, head, mask, query_start + row, key_start + tx,
                ts_dot(q + row * (g.head_dim + 1), k + tx * (g.head_dim + 1), g.head_dim),
                     ts_dot(dout + row * (g.value_dim + 1), v + tx * (g.value_dim + 1), g.value_dim), prob, ds);
            ds_tile[row * 33 + tx] = ds;
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 column = tx + 32 * c;
            if (column < g.head_dim)
                for (int j = 0; j < 32; j++) {
                    const C value = k[j * (g.head_dim + 1) + column];
#pragma unroll
                    for (int r = 0; r < 4; r++) dq[r][c] = ts_fma(ds_tile[(ty + 8 * r) * 33 + j], value, dq[r][c]);
                }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++)
            if (query_start + ty + 8 * r < g.queries && tx + 32 * c < g.head_dim)
                g.dq[(head * g.queries + query_start + ty + 8 * r) * g.head_dim + tx + 32 * c] = ts_downcast<T>(dq[r][c]);
}

// A block: one tile of keys; computes dK and dV. Rows of the tile of scores are keys, lanes are queries.
TS_KERNEL void __launch_bounds__(256) ts_attention_dk_dv(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(smem);
    C *q = (C*)smem, *k = q + 32 * (g.head_dim + 1), *v = k + 32 * (g.head_dim + 1), *dout = v + 32 * (g.value_dim + 1);
    C *p_tile = dout + 32 * (g.value_dim + 1), *ds_tile = p_tile + 32 * 33;
    const ts_i64 tiles = (g.keys + 31) / 32, head = blockIdx.x / tiles, key_start = blockIdx.x % tiles * 32;
    const ts_i64 mask = ts_mask_offset(g, head);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    C dk[4][D], dv[4][D];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++) dk[r][c] = dv[r][c] = 0;
    ts_load_tile(k, g.k + head * g.keys * g.head_dim, key_start, g.keys, g.head_dim);
    ts_load_tile(v, g.v + head * g.keys * g.value_dim, key_start, g.keys, g.value_dim);
    for (ts_i64 query_start = g.causal ? key_start : 0; query_start < g.queries; query_start += 32) {
        __syncthreads();
        ts_load_tile(q, g.q + head * g.queries * g.head_dim, query_start, g.queries, g.head_dim);
        ts_load_tile(dout, g.dout + head * g.queries * g.value_dim, query_start, g.queries, g.value_dim);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = ty + 8 * r;
            C prob, ds;
            ts_score_grad(g, head, mask, query_start + tx, key_start + row,
                ts_dot(k + row * (g.head_dim + 1), q + tx * (g.head_dim + 1), g.head_dim),
                     ts_dot(v + row * (g.value_dim + 1), dout + tx * (g.value_dim + 1), g.value_dim), prob, ds);
            p_tile[row * 33 + tx] = prob;
            ds_tile[row * 33 + tx] = ds;
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 column = tx + 32 * c;
            for (int j = 0; j < 32; j++) {
                const C query = column < g.head_dim ? q[j * (g.head_dim + 1) + column] : C(0);
                const C grad = column < g.value_dim ? dout[j * (g.value_dim + 1) + column] : C(0);
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    dk[r][c] = ts_fma(ds_tile[(ty + 8 * r) * 33 + j], query, dk[r][c]);
                    dv[r][c] = ts_fma(p_tile[(ty + 8 * r) * 33 + j], grad, dv[r][c]);
                }
            }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 key = key_start + ty + 8 * r, column = tx + 32 * c;
            if (key >= g.keys) continue;
            if (column < g.head_dim) g.dk[(head * g.keys + key) * g.head_dim + column] = ts_downcast<T>(dk[r][c]);
            if (column < g.value_dim) g.dv[(head * g.keys + key) * g.value_dim + column] = ts_downcast<T>(dv[r][c]);
        }
}
