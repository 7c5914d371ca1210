// Operands of the attention kernels for 16-bit floats. T: ts_f16 or ts_bf16; W: a multiple of 16 up to 128.
//
// A warp holds 16 rows of one factor in registers as operand A; tiles of rows of the other factor go through shared memory.
#pragma once
#include "attention/online_softmax.cuh"

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
template <int N> TS_FN void ts_rescale(float (*c)[4], const float* rescale) {
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[n][i] *= rescale[i / 2];
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
