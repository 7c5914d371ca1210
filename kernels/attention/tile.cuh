// What the attention kernels for 16-bit floats share. T: ts_f16 or ts_bf16; W: the head dim, a multiple of 16 up to 128; M:
// memory type of the mask (ts_b8 or ts_f32); MASKED: whether there is a mask.
//
// A warp holds 16 rows of one factor in registers as operand A; tiles of rows of the other factor go through shared memory.
// There, rows are padded by 16 bytes, so that eight rows of one column are in different banks.
#pragma once
#include "common/mma.cuh"

#include "attention/tile_args.cuh"

struct SharedRow {
    T x[W + 8];
};

// The index of a head over the leading dims.
struct HeadIndex {
    ts_u32 at[4];
    __device__ __forceinline__ HeadIndex(const Args& g, ts_u32 head) {
#pragma unroll
        for (int d = 3; d > 0; d--) {
            const ts_u32 size = (ts_u32)g.size[d], rest = head / size;
            at[d] = head - rest * size;
            head = rest;
        }
        at[0] = head;
    }
    __device__ __forceinline__ ts_i64 offset(const ts_i64* stride) const {
        return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2] + at[3] * stride[3];
    }
    __device__ __forceinline__ const T* ptr(const TensorRef& rows) const { return rows.ptr + offset(rows.stride); }
};

// Copies rows `first` to `first + N` of a head asynchronously; rows from `count` on are zero. A thread copies one chunk of
// every PASS-th row.
template <int N> TS_FN void ts_cp_async_tile(SharedRow* to, const T* from, ts_i64 row_stride, ts_i64 first, ts_i64 count) {
    const int PASS = 128 / (W / 8), thread_row = threadIdx.x / (W / 8), column = threadIdx.x % (W / 8) * 8;
    const int valid = count - first < N ? (int)(count - first) : N;
    const T* at = from + (first + thread_row) * row_stride + column;
#pragma unroll
    for (int r = 0; r < N; r += PASS, at += PASS * row_stride)
        if (PASS * (W / 8) == 128 && N % PASS == 0 || thread_row < PASS && thread_row + r < N)
            ts_cp_async_16(&to[thread_row + r].x[column], thread_row + r < valid ? at : from, thread_row + r < valid);
}
// Loads 16 rows from `first` on as operand A.
TS_FN void ts_load_operand_a(ts_u32 (*a)[4], const T* from, ts_i64 row_stride, ts_i64 first, ts_i64 count) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        const ts_i64 r = first + lane / 4 + part % 2 * 8;
#pragma unroll
        for (int s = 0; s < W / 16; s++)
            a[s][part] = r < count ? *(const ts_u32*)(from + r * row_stride + s * 16 + part / 2 * 8 + lane % 4 * 2) : 0;
    }
}
// c[r] += a[r] b' for N rows of b, as in S = Q K'.
template <int R, int N> TS_FN void ts_mma_nt(float (*c)[N / 8][4], const ts_u32 (*a)[W / 16][4], const SharedRow* rows) {
    const int lane = threadIdx.x % 32;
    const SharedRow* row = rows + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int s = 0; s < W / 16; s++)
#pragma unroll
        for (int n = 0; n < N / 8; n += 2) {
            ts_u32 b[4];
            ts_ldmatrix_x4(b, &row[n * 8].x[s * 16 + lane / 8 % 2 * 8]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                ts_mma<T>(c[r][n], a[r][s], b);
                ts_mma<T>(c[r][n + 1], a[r][s], b + 2);
            }
        }
}
// c[r] += a[r] b for N rows of b, as in O = P V.
template <int R, int N> TS_FN void ts_mma_nn(float (*c)[W / 8][4], const ts_u32 (*a)[N / 16][4], const SharedRow* rows) {
    const int lane = threadIdx.x % 32;
    const SharedRow* row = rows + lane % 16;
#pragma unroll
    for (int s = 0; s < N / 16; s++)
#pragma unroll
        for (int n = 0; n < W / 8; n += 2) {
            ts_u32 b[4];
            ts_ldmatrix_x4_trans(b, &row[s * 16].x[n * 8 + lane / 16 * 8]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                ts_mma<T>(c[r][n], a[r][s], b);
                ts_mma<T>(c[r][n + 1], a[r][s], b + 2);
            }
        }
}
// Accumulators, 16 by N, as operand A of the next product: the layouts agree.
template <int N> TS_FN void ts_acc_to_operand_a(ts_u32 (*a)[4], const float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        a[n / 2][n % 2 * 2] = ts_pack2<T>(c[n][0], c[n][1]);
        a[n / 2][n % 2 * 2 + 1] = ts_pack2<T>(c[n][2], c[n][3]);
    }
}
template <int N> TS_FN void ts_clear(float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}
// Stores rows `first` + group and `first` + group + 8 of [count, W], times `factor`.
TS_FN void ts_store_rows(T* to, const float (*c)[4], ts_i64 first, ts_i64 count, const float* factor) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        const ts_i64 row = first + lane / 4 + part * 8;
        if (row >= count) continue;
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            *(ts_u32*)(to + row * W + n * 8 + lane % 4 * 2) =
                ts_pack2<T>(c[n][2 * part] * factor[part], c[n][2 * part + 1] * factor[part]);
    }
}

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
// How many of the 64 keys from `first` on a query attends to: not past the end, and no later ones if causal.
TS_FN int ts_visible_keys(const Args& g, ts_i64 query, ts_i64 first) {
    ts_i64 count = g.keys - first;
    if (g.causal && query + 1 - first < count) count = query + 1 - first;
    return count < 64 ? (int)count : 64;
}
// Sets the scores of keys that queries `query` and `query + 8` do not attend to, to -inf. dP of such scores becomes `delta`,
// so that dS is 0 and not NaN.
TS_FN void ts_mask_tile(const Args& g, float (*score)[4], ts_i64 query, ts_i64 first, float (*dp)[4] = 0,
    const float* delta = 0) {
    const int visible[2] = {ts_visible_keys(g, query, first), ts_visible_keys(g, query + 8, first)};
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (n * 8 + (int)threadIdx.x % 4 * 2 + i % 2 >= visible[i / 2]) {
                score[n][i] = ts_neg_inf();
                if (dp) dp[n][i] = delta[i / 2];
            }
}
// A step of the online softmax over the scores of 64 keys from `first` on, for queries `query` and `query + 8`. Scores become
// exp2(score - row_max) with the new maximum; `row_sum` is this lane's part of the sum; earlier sums and outputs must be
// multiplied by `rescale`. `needs_mask`: some query does not attend to all of these keys.
TS_FN void ts_online_softmax(const Args& g, const M* mask, float (*score)[4], float* row_max, float* row_sum, float* rescale,
    ts_i64 query,
                     ts_i64 first, bool needs_mask, float scale) {
    // exp2 is cheaper than exp. Without a mask, scores are multiplied by `scale` in the fused multiply-add of the exponent.
    const float factor = MASKED ? 1.0f : scale;
    float new_max[2] = {row_max[0], row_max[1]};
    if (needs_mask) ts_mask_tile(g, score, query, first);
#pragma unroll
    for (int n = 0; n < 8; n++)
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
    for (int n = 0; n < 8; n++)
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
template <int N> TS_FN void ts_rescale(float (*c)[4], const float* rescale) {
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[n][i] *= rescale[i / 2];
}
// -lse of a query in log2 units, to be added to its scores; -inf where every key is masked, so that all probabilities are 0.
TS_FN float ts_neg_lse(const Args& g, ts_u32 head, ts_i64 query) {
    const float lse = query < g.queries ? g.lse[(ts_i64)head * g.queries + query] : ts_neg_inf();
    return lse == ts_neg_inf() ? lse : -lse * ts_log2e();
}
// delta = dot(dO, O) for queries `query` and `query + 8` of a head; also stored for the kernel of dK and dV.
TS_FN void ts_dot_do_o(float* delta, const Args& g, ts_u32 head, const ts_u32 (*out)[4], const ts_u32 (*dout)[4], ts_i64 query) {
    delta[0] = delta[1] = 0;
#pragma unroll
    for (int s = 0; s < W / 16; s++)
#pragma unroll
        for (int part = 0; part < 4; part++) {
            const ts_u32 x = out[s][part], y = dout[s][part];
            delta[part % 2] = fmaf(ts_low(x, T()), ts_low(y, T()), delta[part % 2]);
            delta[part % 2] = fmaf(ts_high(x, T()), ts_high(y, T()), delta[part % 2]);
        }
#pragma unroll
    for (int part = 0; part < 2; part++) {
        delta[part] += __shfl_xor_sync(0xffffffffu, delta[part], 1);
        delta[part] += __shfl_xor_sync(0xffffffffu, delta[part], 2);
        const ts_i64 row = query + part * 8;
        if (threadIdx.x % 4 == 0 && row < g.queries) g.delta[(ts_i64)head * g.queries + row] = delta[part];
    }
}
