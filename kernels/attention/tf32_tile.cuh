// Operands of the attention kernels for f32 on tensor cores. A product of f32 is three products of TF32, which has 10 bits of
// fraction ("3xTF32", as in CUTLASS): x = big + small, and x y = big big + big small + small big, without small small. W: the
// head dim, a multiple of 8 up to 128.
//
// Tiles lie in shared memory as f32, and each warp splits what it reads: tensor cores take longer than that. They round sums
// toward zero. So the sum over a tile is apart from that of its small products, and both are added to earlier tiles by
// additions that round to nearest.
#pragma once
#include "attention/online_softmax.cuh"

// Accumulators, of 8 columns each, that are computed at once.
static const int AT_ONCE = W % 32 == 0 ? 4 : W % 16 == 0 ? 2 : 1;

// Values as parts in TF32. With INF, infinite values give what they give in f32: `factor`, what is multiplied by small parts,
// is finite, and `small` has the infinity. Without, they give NaN.
template <bool INF, int K> struct Parts {
    float big[K], factor[K], small[K];
    __device__ __forceinline__ void set(int k, float x) {
        const float most = __uint_as_float(0x7f7fe000u);
        big[k] = factor[k] = __uint_as_float(__float_as_uint(x) & 0xffffe000u);
        if (INF) factor[k] = fminf(fmaxf(big[k], -most), most);
        small[k] = x - factor[k];
    }
};
// c + rest += a b, where b is elements k and k + 1.
template <bool INF, int K>
TS_FN void ts_mma_parts(float* c, float* rest, const Parts<INF, 4>& a, const Parts<INF, K>& b, int k) {
    ts_mma_tf32(rest, a.small, b.factor + k);
    ts_mma_tf32(rest, a.factor, b.small + k);
    ts_mma_tf32(c, a.big, b.big + k);
}
// Loads 16 rows from `first` on as operand A.
TS_FN void ts_load_rows(float (*a)[4], const T* from, ts_i64 row_stride, ts_i64 first, ts_i64 count) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        const ts_i64 r = first + lane / 4 + part % 2 * 8;
#pragma unroll
        for (int s = 0; s < W / 8; s++)
            a[s][part] = r < count ? from[r * row_stride + s * 8 + part / 2 * 4 + lane % 4] : 0.0f;
    }
}
// The same value, of which the compiler does not know that: it splits it again where it is used again, and keeps no parts.
TS_FN float ts_split_again(float x) {
#ifndef TS_HOST
    asm volatile("" : "+f"(x));
#endif
    return x;
}
// Operand A in registers: R times 16 rows.
struct HeldRows {
    const float (*x)[W / 8][4];
    __device__ __forceinline__ void load(float* a, int r, int s) const {
#pragma unroll
        for (int k = 0; k < 4; k++) a[k] = ts_split_again(x[r][s][k]);
    }
};
// Operand A in shared memory: 16 rows.
struct TileRows {
    const SharedRow* rows;
    __device__ __forceinline__ void load(float* a, int, int s) const {
        const int lane = threadIdx.x % 32;
        ts_u32 x[4];
        ts_ldmatrix_x4(x, &rows[lane % 16].x[s * 8 + lane / 16 * 4]);
#pragma unroll
        for (int k = 0; k < 4; k++) a[k] = __uint_as_float(x[k]);
    }
};
// c[r] = a[r] b' for N rows of b, as in S = Q K'.
template <bool INF, int R, int N, class A> TS_FN void ts_mma_nt(float (*c)[N / 8][4], const A& a, const SharedRow* rows) {
    const int lane = threadIdx.x % 32;
    const SharedRow* row = rows + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int first = 0; first < N / 8; first += 4) {
        float rest[R][4][4];
#pragma unroll
        for (int r = 0; r < R; r++) {
            ts_clear<32>(c[r] + first);
            ts_clear<32>(rest[r]);
        }
        // What is rarely run shall not take long to compile.
#pragma unroll INF ? 1 : W / 8
        for (int s = 0; s < W / 8; s++) {
            Parts<INF, 4> as[R];
#pragma unroll
            for (int r = 0; r < R; r++) {
                float x[4];
                a.load(x, r, s);
#pragma unroll
                for (int k = 0; k < 4; k++) as[r].set(k, x[k]);
            }
#pragma unroll
            for (int n = 0; n < 4; n += 2) {
                ts_u32 x[4];
                ts_ldmatrix_x4(x, &row[(first + n) * 8].x[s * 8 + lane / 8 % 2 * 4]);
                Parts<INF, 4> b;
#pragma unroll
                for (int k = 0; k < 4; k++) b.set(k, __uint_as_float(x[k]));
#pragma unroll
                for (int r = 0; r < R; r++) {
                    ts_mma_parts(c[r][first + n], rest[r][n], as[r], b, 0);
                    ts_mma_parts(c[r][first + n + 1], rest[r][n + 1], as[r], b, 2);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) c[r][first + n][i] += rest[r][n][i];
    }
}
// c[r] = c[r] * rescale[r] + p[r] b for N rows of b, as in O = P V; p: accumulators.
//
// The layout of accumulators is that of operand A if the even ones of 8 columns of p come first, and so the even rows of b.
template <bool INF, int R, int N>
TS_FN void ts_mma_nn(float (*c)[W / 8][4], const float (*p)[N / 8][4], const SharedRow* rows, const float (*rescale)[2] = 0) {
    const int lane = threadIdx.x % 32;
    const SharedRow* row = rows + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < W / 8; n += AT_ONCE) {
        float sum[R][AT_ONCE][4], rest[R][AT_ONCE][4];
#pragma unroll
        for (int r = 0; r < R; r++) {
            ts_clear<8 * AT_ONCE>(sum[r]);
            ts_clear<8 * AT_ONCE>(rest[r]);
        }
#pragma unroll
        for (int s = 0; s < N / 8; s++) {
            Parts<INF, 4> a[R];
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int k = 0; k < 4; k++) a[r].set(k, ts_split_again(p[r][s][k % 2 * 2 + k / 2]));
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                Parts<INF, 2> b;
#pragma unroll
                for (int k = 0; k < 2; k++) b.set(k, row[s * 8 + k].x[(n + j) * 8 + lane / 4]);
#pragma unroll
                for (int r = 0; r < R; r++) ts_mma_parts(sum[r][j], rest[r][j], a[r], b, 0);
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float x = sum[r][j][i] + rest[r][j][i];
                    c[r][n + j][i] = rescale ? fmaf(c[r][n + j][i], rescale[r][i / 2], x) : c[r][n + j][i] + x;
                }
    }
}
// Whether one of N columns of accumulators is NaN.
template <int N> TS_FN bool ts_any_nan(const float (*c)[4]) {
    bool any = false;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) any |= c[n][i] != c[n][i];
    return any;
}
// Stores rows `first` + group and `first` + group + 8 of [count, W], times `factor`.
TS_FN void ts_store_rows(T* to, const float (*c)[4], ts_i64 first, ts_i64 count, const float* factor) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        const ts_i64 row = first + lane / 4 + part * 8;
        if (row >= count) continue;
#pragma unroll
        for (int n = 0; n < W / 8; n++) {
            const ts_vec<float, 2> x = {c[n][2 * part] * factor[part], c[n][2 * part + 1] * factor[part]};
            ts_store<float, 2>(to + row * W + n * 8 + lane % 4 * 2, x);
        }
    }
}
