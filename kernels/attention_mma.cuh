// Attention of 16-bit floats by matrix instructions, without a mask but causal or not: FlashAttention-2's forward pass (Dao,
// 2023). T: ts_f16 or ts_bf16; W: columns of a head, a multiple of 16 up to 128.
//
// A block has 64 queries of a head, 16 a warp, and walks over 64 keys at a time. Scores become the operand of the second
// product where they are: the layouts of results and operands agree.
#include "ts_mma.cuh"
#include "ts_math.cuh"

struct Args {
    const T *q, *k, *v;
    T* out;
    float* lse;
    ts_i64 heads, queries, keys, causal;
    double scale;
};

TS_KERNEL void __launch_bounds__(128) ts_attention_mma(const __grid_constant__ Args g) {
    __shared__ __align__(16) T keys[64][W + 8];
    __shared__ __align__(16) T values[W][64 + 8];
    const ts_i64 tiles = (g.queries + 63) / 64, head = blockIdx.x / tiles;
    // Later tiles see more keys: they start first.
    const ts_i64 top = (tiles - 1 - blockIdx.x % tiles) * 64;
    const int lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const ts_i64 row0 = top + threadIdx.x / 32 * 16 + group, row1 = row0 + 8;
    const T *q = g.q + head * g.queries * W, *k = g.k + head * g.keys * W, *v = g.v + head * g.keys * W;
    ts_u32 a[W / 16][4];
#pragma unroll
    for (int s = 0; s < W / 16; s++)
#pragma unroll
        for (int part = 0; part < 4; part++) {
            const ts_i64 row = part & 1 ? row1 : row0;
            a[s][part] = row < g.queries ? *(const ts_u32*)(q + row * W + s * 16 + part / 2 * 8 + 2 * t) : 0;
        }
    float out[W / 8][4], most[2] = {-ts_inf(0.0f), -ts_inf(0.0f)}, sum[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) out[n][i] = 0;
    // Powers of two are cheaper than those of e.
    const float scale = (float)(g.scale * 1.4426950408889634);
    const ts_i64 seen = g.causal && top + 64 < g.keys ? top + 64 : g.keys;
    for (ts_i64 first = 0; first < seen; first += 64) {
        __syncthreads();
#pragma unroll
        for (int i = threadIdx.x; i < 64 * W / 8; i += 128) {
            const int row = i / (W / 8), column = i % (W / 8) * 8;
            ts_vec<T, 8> x = {}, y = {};
            if (first + row < g.keys) {
                x = *(const ts_vec<T, 8>*)(k + (first + row) * W + column);
                y = *(const ts_vec<T, 8>*)(v + (first + row) * W + column);
            }
            *(ts_vec<T, 8>*)&keys[row][column] = x;
#pragma unroll
            for (int e = 0; e < 8; e++) values[column + e][row] = y.x[e];
        }
        __syncthreads();
        float score[8][4];
#pragma unroll
        for (int n = 0; n < 8; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) score[n][i] = 0;
#pragma unroll
            for (int s = 0; s < W / 16; s++) {
                const ts_u32 b[2] = {*(const ts_u32*)&keys[n * 8 + group][s * 16 + 2 * t],
                                     *(const ts_u32*)&keys[n * 8 + group][s * 16 + 2 * t + 8]};
                ts_mma<T>(score[n], a[s], b);
            }
        }
        const bool edge = first + 64 > g.keys || (g.causal && first + 63 > top);
        float now[2] = {most[0], most[1]};
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const ts_i64 key = first + n * 8 + 2 * t + i % 2;
                score[n][i] *= scale;
                if (edge && (key >= g.keys || (g.causal && key > (i < 2 ? row0 : row1)))) score[n][i] = -ts_inf(0.0f);
                now[i / 2] = ts_maximum(score[n][i], now[i / 2]);
            }
        float rescale[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            now[r] = ts_maximum(now[r], __shfl_xor_sync(0xffffffffu, now[r], 1));
            now[r] = ts_maximum(now[r], __shfl_xor_sync(0xffffffffu, now[r], 2));
            const bool none = now[r] == -ts_inf(0.0f);
            rescale[r] = none ? 1.0f : exp2f(most[r] - now[r]);
            most[r] = now[r];
            sum[r] *= rescale[r];
            if (none) now[r] = 0;
        }
        ts_u32 p[4][4];
#pragma unroll
        for (int n = 0; n < 8; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                score[n][i] = exp2f(score[n][i] - now[i / 2]);
                sum[i / 2] += score[n][i];
            }
            p[n / 2][n % 2 * 2] = ts_two(ts_down<T>(score[n][0]), ts_down<T>(score[n][1]));
            p[n / 2][n % 2 * 2 + 1] = ts_two(ts_down<T>(score[n][2]), ts_down<T>(score[n][3]));
        }
#pragma unroll
        for (int n = 0; n < W / 8; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) out[n][i] *= rescale[i / 2];
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const ts_u32 b[2] = {*(const ts_u32*)&values[n * 8 + group][s * 16 + 2 * t],
                                     *(const ts_u32*)&values[n * 8 + group][s * 16 + 2 * t + 8]};
                ts_mma<T>(out[n], p[s], b);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
        const ts_i64 row = r ? row1 : row0;
        if (row >= g.queries) continue;
        const float times = sum[r] == 0 ? 0.0f : 1.0f / sum[r];
        if (t == 0)
            g.lse[head * g.queries + row] =
                sum[r] == 0 ? -ts_inf(0.0f) : most[r] * 0.6931471805599453f + logf(sum[r]);
#pragma unroll
        for (int n = 0; n < W / 8; n++)
            *(ts_u32*)(g.out + (head * g.queries + row) * W + n * 8 + 2 * t) =
                ts_two(ts_down<T>(out[n][2 * r] * times), ts_down<T>(out[n][2 * r + 1] * times));
    }
}
