// Attention in tiles of 32 queries by 32 keys with an online softmax, and its gradient: no matrix of all queries by all
// keys ever exists (Dao, "FlashAttention-2", 2023). T: memory type; M: type of the mask (ts_b8, or the class of T); D: 32
// columns of q and k, or of v, that a thread keeps, at most.
#include "common/rows.cuh"

typedef typename ts_of<T>::cls C;

struct Args {
    const T *q, *k, *v, *g, *out;
    const M* mask;
    T *dq, *dk, *dv;
    C *lse, *dots;
    ts_i64 heads, queries, keys, width, value_width, causal;
    double scale;
    // The mask over four leading dims, queries and keys.
    ts_i64 size[4], step[4], row, column;
};

// `count` rows of `width` elements from row `first` on, of which those past `rows` are zero.
TS_FN void ts_bring(C* to, const T* from, ts_i64 first, ts_i64 rows, ts_i64 width) {
    for (ts_i64 i = threadIdx.x; i < 32 * width; i += 256) {
        const ts_i64 r = i / width, c = i - r * width;
        to[r * (width + 1) + c] = first + r < rows ? (C)ts_up(from[(first + r) * width + c]) : C(0);
    }
}
TS_FN ts_i64 ts_mask_start(const Args& g, ts_i64 head) {
    ts_i64 at = 0;
    for (int d = 3; d >= 0; d--) {
        at += head % g.size[d] * g.step[d];
        head /= g.size[d];
    }
    return at;
}
TS_FN C ts_masked(const Args& g, ts_b8 m, C score) { return m.byte ? score : -ts_inf(C()); }
TS_FN C ts_masked(const Args& g, C m, C score) { return score + m; }
// The score of a query and a key, minus infinity where the key is not seen.
TS_FN C ts_score(const Args& g, ts_i64 mask, ts_i64 query, ts_i64 key, C dot) {
    if (query >= g.queries || key >= g.keys || (g.causal && key > query)) return -ts_inf(C());
    C score = dot * (C)g.scale;
    return g.mask ? ts_masked(g, g.mask[mask + query * g.row + key * g.column], score) : score;
}
TS_FN C ts_dot(const C* a, const C* b, ts_i64 n) {
    C sum = 0;
    for (ts_i64 e = 0; e < n; e++) sum = ts_fma(a[e], b[e], sum);
    return sum;
}
TS_FN C ts_over_warp(C v, bool most) {
    for (int d = 16; d > 0; d /= 2) {
        const C other = __shfl_xor_sync(0xffffffffu, v, d);
        v = most ? ts_maximum(v, other) : v + other;
    }
    return v;
}

// A block: one tile of queries of one head. A warp has rows ty, ty + 8, ..; a lane one key, then some columns.
TS_KERNEL void __launch_bounds__(256) ts_attention(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    C *q = (C*)memory, *k = q + 32 * (g.width + 1), *v = k + 32 * (g.width + 1), *p = v + 32 * (g.value_width + 1);
    const ts_i64 tiles = (g.queries + 31) / 32, head = blockIdx.x / tiles, top = blockIdx.x % tiles * 32;
    const ts_i64 mask = ts_mask_start(g, head);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    C most[4], sum[4], out[4][D];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        most[r] = -ts_inf(C());
        sum[r] = 0;
#pragma unroll
        for (int c = 0; c < D; c++) out[r][c] = 0;
    }
    ts_bring(q, g.q + head * g.queries * g.width, top, g.queries, g.width);
    const ts_i64 seen = g.causal && top + 32 < g.keys ? top + 32 : g.keys;
    for (ts_i64 first = 0; first < seen; first += 32) {
        __syncthreads();
        ts_bring(k, g.k + head * g.keys * g.width, first, g.keys, g.width);
        ts_bring(v, g.v + head * g.keys * g.value_width, first, g.keys, g.value_width);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = ty + 8 * r;
            const C score = ts_score(g, mask, top + row, first + tx,
                                     ts_dot(q + row * (g.width + 1), k + tx * (g.width + 1), g.width));
            const C now = ts_maximum(ts_over_warp(score, true), most[r]);
            const bool none = now == -ts_inf(C());
            const C weight = none ? C(0) : ts_exp(score - now), rescale = none ? C(1) : ts_exp(most[r] - now);
            sum[r] = sum[r] * rescale + ts_over_warp(weight, false);
            most[r] = now;
            p[row * 33 + tx] = weight;
#pragma unroll
            for (int c = 0; c < D; c++) out[r][c] *= rescale;
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 column = tx + 32 * c;
            if (column < g.value_width)
                for (int j = 0; j < 32; j++) {
                    const C value = v[j * (g.value_width + 1) + column];
#pragma unroll
                    for (int r = 0; r < 4; r++) out[r][c] = ts_fma(p[(ty + 8 * r) * 33 + j], value, out[r][c]);
                }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const ts_i64 query = top + ty + 8 * r;
        if (query >= g.queries) continue;
        const C scale = sum[r] == 0 ? C(0) : C(1) / sum[r];
        if (tx == 0) g.lse[head * g.queries + query] = sum[r] == 0 ? -ts_inf(C()) : most[r] + ts_log(sum[r]);
#pragma unroll
        for (int c = 0; c < D; c++)
            if (tx + 32 * c < g.value_width)
                g.dv[(head * g.queries + query) * g.value_width + tx + 32 * c] = ts_down<T>(out[r][c] * scale);
    }
}

// dots[query] = sum of gradient times output; a warp for each.
TS_KERNEL void __launch_bounds__(256) ts_attention_dots(const __grid_constant__ Args g) {
    const ts_i64 query = (ts_i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (query >= g.heads * g.queries) return;
    C sum = 0;
    for (ts_i64 c = threadIdx.x % 32; c < g.value_width; c += 32)
        sum += (C)ts_up(g.g[query * g.value_width + c]) * (C)ts_up(g.out[query * g.value_width + c]);
    sum = ts_over_warp(sum, false);
    if (threadIdx.x % 32 == 0) g.dots[query] = sum;
}

// Probability and slope of a score from what the forward pass left.
TS_FN void ts_slope(const Args& g, ts_i64 head, ts_i64 mask, ts_i64 query, ts_i64 key, C dot, C change, C& weight, C& slope) {
    const C score = ts_score(g, mask, query, key, dot);
    const C lse = query < g.queries ? g.lse[head * g.queries + query] : C(0);
    weight = score == -ts_inf(C()) || lse == -ts_inf(C()) ? C(0) : ts_exp(score - lse);
    slope = weight == 0 ? C(0) : weight * (change - g.dots[head * g.queries + query]) * (C)g.scale;
}

// A block: one tile of queries; gradient of q.
TS_KERNEL void __launch_bounds__(256) ts_attention_queries(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    C *q = (C*)memory, *k = q + 32 * (g.width + 1), *v = k + 32 * (g.width + 1), *d = v + 32 * (g.value_width + 1);
    C* p = d + 32 * (g.value_width + 1);
    const ts_i64 tiles = (g.queries + 31) / 32, head = blockIdx.x / tiles, top = blockIdx.x % tiles * 32;
    const ts_i64 mask = ts_mask_start(g, head);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    C sum[4][D];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++) sum[r][c] = 0;
    ts_bring(q, g.q + head * g.queries * g.width, top, g.queries, g.width);
    ts_bring(d, g.g + head * g.queries * g.value_width, top, g.queries, g.value_width);
    const ts_i64 seen = g.causal && top + 32 < g.keys ? top + 32 : g.keys;
    for (ts_i64 first = 0; first < seen; first += 32) {
        __syncthreads();
        ts_bring(k, g.k + head * g.keys * g.width, first, g.keys, g.width);
        ts_bring(v, g.v + head * g.keys * g.value_width, first, g.keys, g.value_width);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = ty + 8 * r;
            C weight, slope;
            ts_slope(g, head, mask, top + row, first + tx, ts_dot(q + row * (g.width + 1), k + tx * (g.width + 1), g.width),
                     ts_dot(d + row * (g.value_width + 1), v + tx * (g.value_width + 1), g.value_width), weight, slope);
            p[row * 33 + tx] = slope;
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 column = tx + 32 * c;
            if (column < g.width)
                for (int j = 0; j < 32; j++) {
                    const C value = k[j * (g.width + 1) + column];
#pragma unroll
                    for (int r = 0; r < 4; r++) sum[r][c] = ts_fma(p[(ty + 8 * r) * 33 + j], value, sum[r][c]);
                }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++)
            if (top + ty + 8 * r < g.queries && tx + 32 * c < g.width)
                g.dq[(head * g.queries + top + ty + 8 * r) * g.width + tx + 32 * c] = ts_down<T>(sum[r][c]);
}

// A block: one tile of keys; gradients of k and v. Rows are keys, lanes queries.
TS_KERNEL void __launch_bounds__(256) ts_attention_keys(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    C *q = (C*)memory, *k = q + 32 * (g.width + 1), *v = k + 32 * (g.width + 1), *d = v + 32 * (g.value_width + 1);
    C *p = d + 32 * (g.value_width + 1), *s = p + 32 * 33;
    const ts_i64 tiles = (g.keys + 31) / 32, head = blockIdx.x / tiles, left = blockIdx.x % tiles * 32;
    const ts_i64 mask = ts_mask_start(g, head);
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    C dk[4][D], dv[4][D];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++) dk[r][c] = dv[r][c] = 0;
    ts_bring(k, g.k + head * g.keys * g.width, left, g.keys, g.width);
    ts_bring(v, g.v + head * g.keys * g.value_width, left, g.keys, g.value_width);
    for (ts_i64 first = g.causal ? left : 0; first < g.queries; first += 32) {
        __syncthreads();
        ts_bring(q, g.q + head * g.queries * g.width, first, g.queries, g.width);
        ts_bring(d, g.g + head * g.queries * g.value_width, first, g.queries, g.value_width);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = ty + 8 * r;
            C weight, slope;
            ts_slope(g, head, mask, first + tx, left + row, ts_dot(k + row * (g.width + 1), q + tx * (g.width + 1), g.width),
                     ts_dot(v + row * (g.value_width + 1), d + tx * (g.value_width + 1), g.value_width), weight, slope);
            p[row * 33 + tx] = weight;
            s[row * 33 + tx] = slope;
        }
        __syncwarp();
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 column = tx + 32 * c;
            for (int j = 0; j < 32; j++) {
                const C query = column < g.width ? q[j * (g.width + 1) + column] : C(0);
                const C grad = column < g.value_width ? d[j * (g.value_width + 1) + column] : C(0);
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    dk[r][c] = ts_fma(s[(ty + 8 * r) * 33 + j], query, dk[r][c]);
                    dv[r][c] = ts_fma(p[(ty + 8 * r) * 33 + j], grad, dv[r][c]);
                }
            }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < D; c++) {
            const ts_i64 key = left + ty + 8 * r, column = tx + 32 * c;
            if (key >= g.keys) continue;
            if (column < g.width) g.dk[(head * g.keys + key) * g.width + column] = ts_down<T>(dk[r][c]);
            if (column < g.value_width) g.dv[(head * g.keys + key) * g.value_width + column] = ts_down<T>(dv[r][c]);
        }
}
