// Products of small matrices by a warp: c[16 x 8] += a[16 x 16] b[16 x 8] of 16-bit floats, summed in float (PTX mma.sync),
// and what brings their operands: copies in the background and loads of 8 x 8 matrices from shared memory (ldmatrix).
//
// With group = lane / 4 and t = lane % 4 a lane holds a: rows group (a[0], a[2]) and group + 8 (a[1], a[3]), columns 2t, 2t + 1
// (a[0], a[1]) and 2t + 8, 2t + 9; b: column group, rows 2t, 2t + 1 (b[0]) and 2t + 8, 2t + 9 (b[1]); c: rows group (c[0], c[1])
// and group + 8, columns 2t, 2t + 1.
#pragma once
#include "common/base.cuh"

TS_FN float ts_low(ts_u32 two, ts_bf16) { return __uint_as_float(two << 16); }
TS_FN float ts_high(ts_u32 two, ts_bf16) { return __uint_as_float(two & 0xffff0000u); }
TS_FN float ts_low(ts_u32 two, ts_f16) { return ts_up(ts_f16{(unsigned short)two}); }
TS_FN float ts_high(ts_u32 two, ts_f16) { return ts_up(ts_f16{(unsigned short)(two >> 16)}); }

#ifdef TS_HOST
template <class T> TS_FN void ts_mma(float* c, const ts_u32* a, const ts_u32* b) {
    static ts_u32 as[32][32][4], bs[32][32][2];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) as[w][lane][k] = a[k];
    for (int k = 0; k < 2; k++) bs[w][lane][k] = b[k];
    __syncwarp();
    for (int r = 0; r < 2; r++)
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 8; k++) {
                const ts_u32 x = as[w][group * 4 + k % 4][r + 2 * (k / 4)], y = bs[w][(2 * t + n) * 4 + k % 4][k / 4];
                c[2 * r + n] += ts_low(x, T()) * ts_low(y, T());
                c[2 * r + n] += ts_high(x, T()) * ts_high(y, T());
            }
    __syncwarp();
}
// Row lane % 8 of matrix lane / 8 begins at `row`; r[m]: of matrix m row group and columns 2t, 2t + 1.
TS_FN void ts_load4(ts_u32* r, const void* row) {
    static const void* rows[32][32];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    rows[w][lane] = row;
    __syncwarp();
    for (int m = 0; m < 4; m++) r[m] = ((const ts_u32*)rows[w][m * 8 + lane / 4])[lane % 4];
    __syncwarp();
}
// r[m]: of matrix m rows 2t, 2t + 1 and column group.
TS_FN void ts_load4_turned(ts_u32* r, const void* row) {
    static const unsigned short* rows[32][32];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, first = lane % 4 * 2;
    rows[w][lane] = (const unsigned short*)row;
    __syncwarp();
    for (int m = 0; m < 4; m++)
        r[m] = rows[w][m * 8 + first][lane / 4] | (ts_u32)rows[w][m * 8 + first + 1][lane / 4] << 16;
    __syncwarp();
}
TS_FN void ts_bring16(void* to, const void* from, bool there) {
    if (there) memcpy(to, from, 16);
    else memset(to, 0, 16);
}
TS_FN void ts_brought() {}
template <class T> TS_FN ts_u32 ts_two(float low, float high) {
    return ts_down<T>(low).bits | (ts_u32)ts_down<T>(high).bits << 16;
}
TS_FN float ts_exp2_near(float x) { return exp2f(x); }
#else
template <class T> struct ts_mma_of {};
template <> struct ts_mma_of<ts_bf16> {
    TS_FN void run(float* c, const ts_u32* a, const ts_u32* b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    TS_FN ts_u32 two(float low, float high) {
        ts_u32 both;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }
};
template <> struct ts_mma_of<ts_f16> {
    TS_FN void run(float* c, const ts_u32* a, const ts_u32* b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    TS_FN ts_u32 two(float low, float high) {
        ts_u32 both;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    }
};
template <class T> TS_FN void ts_mma(float* c, const ts_u32* a, const ts_u32* b) { ts_mma_of<T>::run(c, a, b); }
// Two floats rounded to the nearest of T, the first in the lower half.
template <class T> TS_FN ts_u32 ts_two(float low, float high) { return ts_mma_of<T>::two(low, high); }
// Row lane % 8 of matrix lane / 8 begins at `row`; r[m]: of matrix m row group and columns 2t, 2t + 1.
TS_FN void ts_load4(ts_u32* r, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((ts_u32)__cvta_generic_to_shared(row))
                 : "memory");
}
// r[m]: of matrix m rows 2t, 2t + 1 and column group.
TS_FN void ts_load4_turned(ts_u32* r, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((ts_u32)__cvta_generic_to_shared(row))
                 : "memory");
}
// 16 bytes from global to shared memory in the background; zeros where there is nothing.
TS_FN void ts_bring16(void* to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((ts_u32)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
                 : "memory");
}
// What this thread asked for is there; a barrier tells the others.
TS_FN void ts_brought() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// 2^x within 2 ulp; results below the smallest normal float are zero.
TS_FN float ts_exp2_near(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif
