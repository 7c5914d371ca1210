// Products of small matrices by a warp: c[16 x 8] += a[16 x 16] b[16 x 8] of 16-bit floats, summed in float (PTX mma.sync).
//
// With group = lane / 4 and t = lane % 4 a lane holds a: rows group (a[0], a[2]) and group + 8 (a[1], a[3]), columns 2t, 2t + 1
// (a[0], a[1]) and 2t + 8, 2t + 9; b: column group, rows 2t, 2t + 1 (b[0]) and 2t + 8, 2t + 9 (b[1]); c: rows group (c[0], c[1])
// and group + 8, columns 2t, 2t + 1.
#pragma once
#include "ts_base.cuh"

TS_FN ts_u32 ts_two(ts_f16 low, ts_f16 high) { return low.bits | (ts_u32)high.bits << 16; }
TS_FN ts_u32 ts_two(ts_bf16 low, ts_bf16 high) { return low.bits | (ts_u32)high.bits << 16; }

#ifdef TS_HOST
template <class T> TS_FN float ts_half_of(ts_u32 two, int which) {
    T x;
    x.bits = (unsigned short)(which ? two >> 16 : two);
    return ts_up(x);
}
template <class T> TS_FN void ts_mma(float* c, const ts_u32* a, const ts_u32* b) {
    static ts_u32 as[32][32][4], bs[32][32][2];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) as[w][lane][k] = a[k];
    for (int k = 0; k < 2; k++) bs[w][lane][k] = b[k];
    __syncwarp();
    for (int r = 0; r < 2; r++)
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 16; k++) {
                const float x = ts_half_of<T>(as[w][group * 4 + k % 8 / 2][r + 2 * (k / 8)], k % 2);
                c[2 * r + n] += x * ts_half_of<T>(bs[w][(2 * t + n) * 4 + k % 8 / 2][k / 8], k % 2);
            }
    __syncwarp();
}
#else
template <class T> struct ts_mma_of {};
template <> struct ts_mma_of<ts_bf16> {
    TS_FN void run(float* c, const ts_u32* a, const ts_u32* b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};
template <> struct ts_mma_of<ts_f16> {
    TS_FN void run(float* c, const ts_u32* a, const ts_u32* b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};
template <class T> TS_FN void ts_mma(float* c, const ts_u32* a, const ts_u32* b) { ts_mma_of<T>::run(c, a, b); }
#endif
