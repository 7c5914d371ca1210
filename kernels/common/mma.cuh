// Tensor core products by a warp (PTX mma.sync.m16n8k16): c[16 x 8] += a[16 x 16] b[16 x 8] of 16-bit floats, accumulated in
// float; the same of TF32 (m16n8k8); and the loads of their operands: asynchronous copies (cp.async) and 8 x 8 matrices from shared memory (ldmatrix).
//
// Fragments, with group = lane / 4 and t = lane % 4 (PTX's groupID and threadID_in_group): a: rows group (a[0], a[2]) and
// group + 8 (a[1], a[3]), columns 2t, 2t + 1 (a[0], a[1]) and 2t + 8, 2t + 9; b: column group, rows 2t, 2t + 1 (b[0]) and 2t
// + 8, 2t + 9 (b[1]); c: rows group (c[0], c[1]) and group + 8, columns 2t, 2t + 1. Of TF32, a[16 x 8]: rows group (a[0], a[2])
// and group + 8 (a[1], a[3]), columns t (a[0], a[1]) and t + 4; b[8 x 8]: column group, rows t (b[0]) and t + 4 (b[1]).
#pragma once
#include "common/base.cuh"

TS_FN float ts_low(ts_u32 pack2, ts_bf16) { return __uint_as_float(pack2 << 16); }
TS_FN float ts_high(ts_u32 pack2, ts_bf16) { return __uint_as_float(pack2 & 0xffff0000u); }
TS_FN float ts_low(ts_u32 pack2, ts_f16) { return ts_upcast(ts_f16{(unsigned short)pack2}); }
TS_FN float ts_high(ts_u32 pack2, ts_f16) { return ts_upcast(ts_f16{(unsigned short)(pack2 >> 16)}); }

// Clears accumulators of N columns.
template <int N> TS_FN void ts_clear(float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}

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
// The lower 13 bits of factors do not count.
TS_FN void ts_mma_tf32(float* c, const float* a, const float* b) {
    static float as[32][32][4], bs[32][32][2];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) as[w][lane][k] = __uint_as_float(__float_as_uint(a[k]) & 0xffffe000u);
    for (int k = 0; k < 2; k++) bs[w][lane][k] = __uint_as_float(__float_as_uint(b[k]) & 0xffffe000u);
    __syncwarp();
    for (int r = 0; r < 2; r++)
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 8; k++)
                c[2 * r + n] += as[w][group * 4 + k % 4][r + 2 * (k / 4)] * bs[w][(2 * t + n) * 4 + k % 4][k / 4];
    __syncwarp();
}
// `row`: row lane % 8 of matrix lane / 8. r[m]: row group and columns 2t, 2t + 1 of matrix m.
TS_FN void ts_ldmatrix_x4(ts_u32* r, const void* row) {
    static const void* rows[32][32];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    rows[w][lane] = row;
    __syncwarp();
    for (int m = 0; m < 4; m++) r[m] = ((const ts_u32*)rows[w][m * 8 + lane / 4])[lane % 4];
    __syncwarp();
}
// Transposed: r[m] has rows 2t, 2t + 1 and column group of matrix m.
TS_FN void ts_ldmatrix_x4_trans(ts_u32* r, const void* row) {
    static const unsigned short* rows[32][32];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, row0 = lane % 4 * 2;
    rows[w][lane] = (const unsigned short*)row;
    __syncwarp();
    for (int m = 0; m < 4; m++)
        r[m] = rows[w][m * 8 + row0][lane / 4] | (ts_u32)rows[w][m * 8 + row0 + 1][lane / 4] << 16;
    __syncwarp();
}
TS_FN void ts_cp_async_16(void* to, const void* from, bool valid) {
    if (valid) memcpy(to, from, 16);
    else memset(to, 0, 16);
}
TS_FN void ts_cp_async_wait_all() {}
template <class T> TS_FN ts_u32 ts_pack2(float low, float high) {
    return ts_downcast<T>(low).bits | (ts_u32)ts_downcast<T>(high).bits << 16;
}
TS_FN float ts_exp2_approx(float x) { return exp2f(x); }
#else
template <class T> struct ts_mma_atom {};
template <> struct ts_mma_atom<ts_bf16> {
    TS_FN void mma(float* c, const ts_u32* a, const ts_u32* b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    TS_FN ts_u32 pack2(float low, float high) {
        ts_u32 packed;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
        return packed;
    }
};
template <> struct ts_mma_atom<ts_f16> {
    TS_FN void mma(float* c, const ts_u32* a, const ts_u32* b) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    TS_FN ts_u32 pack2(float low, float high) {
        ts_u32 packed;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
        return packed;
    }
};
template <class T> TS_FN void ts_mma(float* c, const ts_u32* a, const ts_u32* b) { ts_mma_atom<T>::mma(c, a, b); }
// The lower 13 bits of factors do not count.
TS_FN void ts_mma_tf32(float* c, const float* a, const float* b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
// Two floats rounded to nearest and packed; the first is the lower half.
template <class T> TS_FN ts_u32 ts_pack2(float low, float high) { return ts_mma_atom<T>::pack2(low, high); }
// `row`: row lane % 8 of matrix lane / 8. r[m]: row group and columns 2t, 2t + 1 of matrix m.
TS_FN void ts_ldmatrix_x4(ts_u32* r, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((ts_u32)__cvta_generic_to_shared(row))
                 : "memory");
}
// Transposed: r[m] has rows 2t, 2t + 1 and column group of matrix m.
TS_FN void ts_ldmatrix_x4_trans(ts_u32* r, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((ts_u32)__cvta_generic_to_shared(row))
                 : "memory");
}
// Copies 16 bytes from global to shared memory asynchronously; writes zeros where `valid` is false.
TS_FN void ts_cp_async_16(void* to, const void* from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((ts_u32)__cvta_generic_to_shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(valid ? 16 : 0)
                 : "memory");
}
// Waits for this thread's asynchronous copies. A barrier must follow before other threads read them.
TS_FN void ts_cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// 2^x within 2 ulp. Subnormal results are flushed to zero.
TS_FN float ts_exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif
