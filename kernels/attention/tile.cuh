// What the attention kernels of 16-bit floats share. T: ts_f16 or ts_bf16; W: columns of a head, a multiple of 16 up to 128;
// M: memory type of the mask (ts_b8 or ts_f32); MASKED: is there one?
//
// A warp has 16 rows of one factor in registers as operands; the other factor comes in tiles of rows through shared memory.
// Rows are 16 bytes apart from a multiple of 128 bytes, so that eight of them lie in different banks.
#pragma once
#include "common/mma.cuh"

// [leading dims, rows, W], of which the last is dense.
struct Rows {
    const T* at;
    ts_i64 row, step[4];
};
struct Args {
    Rows q, k, v, grad, out;
    T *to, *dq, *dk, *dv;
    float *lse, *dots;
    const M* mask;
    ts_i64 mask_query, mask_key, mask_step[4];
    ts_i64 size[4], queries, keys, causal;
    double scale;
};
struct Row {
    T x[W + 8];
};

// Where a head is among the leading dims.
struct Head {
    ts_u32 at[4];
    __device__ __forceinline__ Head(const Args& g, ts_u32 head) {
#pragma unroll
        for (int d = 3; d > 0; d--) {
            const ts_u32 size = (ts_u32)g.size[d], rest = head / size;
            at[d] = head - rest * size;
            head = rest;
        }
        at[0] = head;
    }
    __device__ __forceinline__ ts_i64 offset(const ts_i64* step) const {
        return at[0] * step[0] + at[1] * step[1] + at[2] * step[2] + at[3] * step[3];
    }
    __device__ __forceinline__ const T* of(const Rows& rows) const { return rows.at + offset(rows.step); }
};

// Asks for rows `first` to `first + N` of a head; those past `count` are zero. A thread has one column of every PASS rows.
template <int N> TS_FN void ts_bring(Row* to, const T* from, ts_i64 row, ts_i64 first, ts_i64 count) {
    const int PASS = 128 / (W / 8), mine = threadIdx.x / (W / 8), column = threadIdx.x % (W / 8) * 8;
    const int there = count - first < N ? (int)(count - first) : N;
    const T* at = from + (first + mine) * row + column;
#pragma unroll
    for (int r = 0; r < N; r += PASS, at += PASS * row)
        if (PASS * (W / 8) == 128 && N % PASS == 0 || mine < PASS && mine + r < N)
            ts_bring16(&to[mine + r].x[column], mine + r < there ? at : from, mine + r < there);
}
// 16 rows from `first` on as operands of products.
TS_FN void ts_operand(ts_u32 (*a)[4], const T* from, ts_i64 row, ts_i64 first, ts_i64 count) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        const ts_i64 r = first + lane / 4 + part % 2 * 8;
#pragma unroll
        for (int s = 0; s < W / 16; s++)
            a[s][part] = r < count ? *(const ts_u32*)(from + r * row + s * 16 + part / 2 * 8 + lane % 4 * 2) : 0;
    }
}
// c[r] += a[r] rows', for N rows and R operands.
template <int R, int N> TS_FN void ts_by_rows(float (*c)[N / 8][4], const ts_u32 (*a)[W / 16][4], const Row* rows) {
    const int lane = threadIdx.x % 32;
    const Row* row = rows + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int s = 0; s < W / 16; s++)
#pragma unroll
        for (int n = 0; n < N / 8; n += 2) {
            ts_u32 b[4];
            ts_load4(b, &row[n * 8].x[s * 16 + lane / 8 % 2 * 8]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                ts_mma<T>(c[r][n], a[r][s], b);
                ts_mma<T>(c[r][n + 1], a[r][s], b + 2);
            }
        }
}
// c[r] += a[r] rows, for operands of 16 by N.
template <int R, int N> TS_FN void ts_by_columns(float (*c)[W / 8][4], const ts_u32 (*a)[N / 16][4], const Row* rows) {
    const int lane = threadIdx.x % 32;
    const Row* row = rows + lane % 16;
#pragma unroll
    for (int s = 0; s < N / 16; s++)
#pragma unroll
        for (int n = 0; n < W / 8; n += 2) {
            ts_u32 b[4];
            ts_load4_turned(b, &row[s * 16].x[n * 8 + lane / 16 * 8]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                ts_mma<T>(c[r][n], a[r][s], b);
                ts_mma<T>(c[r][n + 1], a[r][s], b + 2);
            }
        }
}
// Results of a product, 16 by N, as operands of the next one: their layouts agree.
template <int N> TS_FN void ts_as_operand(ts_u32 (*a)[4], const float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        a[n / 2][n % 2 * 2] = ts_two<T>(c[n][0], c[n][1]);
        a[n / 2][n % 2 * 2 + 1] = ts_two<T>(c[n][2], c[n][3]);
    }
}
template <int N> TS_FN void ts_clear(float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}
// Rows `first` + group and + 8 of [count, W], times `times`.
TS_FN void ts_put(T* to, const float (*c)[4], ts_i64 first, ts_i64 count, const float* times) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        const ts_i64 row = first + lane / 4 + part * 8;
        if (row >= count) continue;
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            *(ts_u32*)(to + row * W + n * 8 + lane % 4 * 2) =
                ts_two<T>(c[n][2 * part] * times[part], c[n][2 * part + 1] * times[part]);
    }
}

// The score of what is not seen.
TS_FN float ts_nothing() { return __uint_as_float(0xff800000u); }
TS_FN float ts_log2_e() { return 1.4426950408889634f; }
// What the mask makes of a score that counts powers of two.
TS_FN float ts_masked(float score, ts_b8 m) { return m.byte ? score : ts_nothing(); }
TS_FN float ts_masked(float score, float m) { return score + m * ts_log2_e(); }
// A score as a power of two: of `dot` where there is no mask, times `scale` and masked where there is one.
TS_FN float ts_seen(const Args& g, const M* mask, ts_i64 query, ts_i64 key, float dot, float scale) {
    if (!MASKED || query >= g.queries || key >= g.keys) return dot;
    return ts_masked(dot * scale, mask[query * g.mask_query + key * g.mask_key]);
}
// How many of 64 keys from `first` on a query sees: those that there are, and no later ones where attention is causal.
TS_FN int ts_sees(const Args& g, ts_i64 query, ts_i64 first) {
    ts_i64 most = g.keys - first;
    if (g.causal && query + 1 - first < most) most = query + 1 - first;
    return most < 64 ? (int)most : 64;
}
// Takes away what queries `query` and `query + 8` do not see of scores of 64 keys. Changes of such scores become the queries'
// `dots`, so that they have no slope.
TS_FN void ts_hide(const Args& g, float (*score)[4], ts_i64 query, ts_i64 first, float (*change)[4] = 0, const float* dots = 0) {
    const int sees[2] = {ts_sees(g, query, first), ts_sees(g, query + 8, first)};
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (n * 8 + (int)threadIdx.x % 4 * 2 + i % 2 >= sees[i / 2]) {
                score[n][i] = ts_nothing();
                if (change) change[n][i] = dots[i / 2];
            }
}
// A step of softmax over scores of 64 keys from `first` on, of queries `query` and `query + 8`: scores become powers of two, by
// what is now the maximum; this lane's `sum` goes on with them, and older sums and outputs are worth `rescale` of themselves.
// `edge`: some query does not see all these keys.
TS_FN void ts_soften(const Args& g, const M* mask, float (*score)[4], float* most, float* sum, float* rescale, ts_i64 query,
                     ts_i64 first, bool edge, float scale) {
    // Powers of two are cheaper than those of e. Without a mask the product with `scale` waits until the maximum is known.
    const float times = MASKED ? 1.0f : scale;
    float now[2] = {most[0], most[1]};
    if (edge) ts_hide(g, score, query, first);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float& x = score[n][i];
            if (MASKED) x = ts_seen(g, mask, query + i / 2 * 8, first + n * 8 + threadIdx.x % 4 * 2 + i % 2, x, scale);
            now[i / 2] = fmaxf(x, now[i / 2]);
        }
#pragma unroll
    for (int part = 0; part < 2; part++) {
        now[part] = fmaxf(now[part], __shfl_xor_sync(0xffffffffu, now[part], 1));
        now[part] = fmaxf(now[part], __shfl_xor_sync(0xffffffffu, now[part], 2));
        const bool none = now[part] == ts_nothing();
        rescale[part] = none ? 1.0f : ts_exp2_near((most[part] - now[part]) * times);
        most[part] = now[part];
        sum[part] *= rescale[part];
        now[part] = none ? 0.0f : -now[part] * times;
    }
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            score[n][i] = ts_exp2_near(fmaf(score[n][i], times, now[i / 2]));
            sum[i / 2] += score[n][i];
        }
}
// Ends softmax for queries `query` and `query + 8` of a head: writes the logarithms of the sums, and leaves one over the sums.
TS_FN void ts_softened(const Args& g, ts_u32 head, const float* most, float* sum, ts_i64 query, float scale) {
#pragma unroll
    for (int part = 0; part < 2; part++) {
        float& all = sum[part];
        all += __shfl_xor_sync(0xffffffffu, all, 1);
        all += __shfl_xor_sync(0xffffffffu, all, 2);
        const ts_i64 row = query + part * 8;
        if (threadIdx.x % 4 == 0 && row < g.queries)
            g.lse[(ts_i64)head * g.queries + row] =
                all == 0 ? ts_nothing() : most[part] * (MASKED ? 1.0f : scale) * 0.6931471805599453f + logf(all);
        all = all == 0 ? 0.0f : 1.0f / all;
    }
}
template <int N> TS_FN void ts_times(float (*c)[4], const float* times) {
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[n][i] *= times[i / 2];
}
// The logarithm of the sum of a query's exponentials, as a power of two to be taken away; all is taken where it saw no key.
TS_FN float ts_taken(const Args& g, ts_u32 head, ts_i64 query) {
    const float lse = query < g.queries ? g.lse[(ts_i64)head * g.queries + query] : ts_nothing();
    return lse == ts_nothing() ? lse : -lse * ts_log2_e();
}
// The products of rows of the output and of its gradient, queries `query` and `query + 8` of a head; writes them too.
TS_FN void ts_row_dots(float* dots, const Args& g, ts_u32 head, const ts_u32 (*out)[4], const ts_u32 (*grad)[4], ts_i64 query) {
    dots[0] = dots[1] = 0;
#pragma unroll
    for (int s = 0; s < W / 16; s++)
#pragma unroll
        for (int part = 0; part < 4; part++) {
            const ts_u32 x = out[s][part], y = grad[s][part];
            dots[part % 2] = fmaf(ts_low(x, T()), ts_low(y, T()), dots[part % 2]);
            dots[part % 2] = fmaf(ts_high(x, T()), ts_high(y, T()), dots[part % 2]);
        }
#pragma unroll
    for (int part = 0; part < 2; part++) {
        dots[part] += __shfl_xor_sync(0xffffffffu, dots[part], 1);
        dots[part] += __shfl_xor_sync(0xffffffffu, dots[part], 2);
        const ts_i64 row = query + part * 8;
        if (threadIdx.x % 4 == 0 && row < g.queries) g.dots[(ts_i64)head * g.queries + row] = dots[part];
    }
}
