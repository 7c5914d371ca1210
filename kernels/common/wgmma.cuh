// Tensor core products by a warpgroup (PTX wgmma of sm_90a): four warps, the first of which is a multiple of four, compute
// c[64 x 64] += a[64 x 16] b[16 x 64] of 16-bit floats, accumulated in float, asynchronously. A warp has 16 rows of `a` and
// `c`, with fragments as in `ts_mma`. `b` is in shared memory, in tiles whose rows have 64 elements (128 bytes). Chunk c of
// 16 bytes of a row is stored at chunk c ^ (row % 8) (PTX's 128-byte swizzle), so that eight rows of one column are in
// different banks.
//
// Between `ts_wgmma_fence` and the `ts_wgmma_wait_group` that covers a product, nothing may read or write its c and a;
// `ts_fence_operand` keeps the compiler from doing so.
#pragma once
#include "common/mma.cuh"

#if !defined(TS_HOST) && defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "wgmma is an instruction of sm_90a only"
#endif

// The address of a 16-byte chunk of a tile with rows of 64 elements. The tile is aligned to 1024 bytes.
TS_FN char* ts_swizzled_chunk(char* desc, int row, int chunk) { return desc + row * 128 + ((chunk ^ row % 8) << 4); }

#ifdef TS_HOST
template <class T, class In> TS_FN void ts_wgmma_emulated(float (*c)[4], const ts_u32* a, In element) {
    static ts_u32 as[32][32][4];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) as[w][lane][k] = a[k];
    __syncwarp();
    for (int n = 0; n < 8; n++)
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 16; k++) {
                const ts_u32 pair = as[w][group * 4 + k % 8 / 2][i / 2 + k / 8 * 2];
                const T b = *(const T*)element(n * 8 + 2 * t + i % 2, k);
                c[n][i] += (k % 2 ? ts_high(pair, T()) : ts_low(pair, T())) * ts_upcast(b);
            }
    __syncwarp();
}
typedef char* ts_smem_desc;
TS_FN ts_smem_desc ts_make_smem_desc(char* at) { return at; }
TS_FN ts_smem_desc ts_advance_desc(ts_smem_desc desc, int bytes) { return desc + bytes; }
template <class T, bool ZERO_ACC> TS_FN void ts_wgmma_k_major(float (*c)[4], const ts_u32* a, ts_smem_desc desc, int s) {
    for (int n = 0; ZERO_ACC && n < 8; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
    ts_wgmma_emulated<T>(c, a, [=](int n, int k) { return ts_swizzled_chunk(desc, n, s * 2 + k / 8) + k % 8 * 2; });
}
template <class T> TS_FN void ts_wgmma_mn_major(float (*c)[4], const ts_u32* a, ts_smem_desc desc, int s) {
    ts_wgmma_emulated<T>(c, a, [=](int n, int k) { return ts_swizzled_chunk(desc, s * 16 + k, n / 8) + n % 8 * 2; });
}
TS_FN void ts_fence_proxy_async() {}
TS_FN void ts_wgmma_fence() {}
TS_FN void ts_wgmma_commit_group() {}
template <int PENDING> TS_FN void ts_wgmma_wait_group() {}
template <int N> TS_FN void ts_fence_operand(float (*)[4]) {}
#else
// The matrix descriptor of a tile: its address, a stride of 1024 bytes for eight rows, and the swizzle mode.
typedef ts_u64 ts_smem_desc;
TS_FN ts_smem_desc ts_make_smem_desc(const char* at) {
    return ((ts_u32)__cvta_generic_to_shared(at) & 0x3ffff) >> 4 | 1ULL << 16 | 64ULL << 32 | 1ULL << 62;
}
TS_FN ts_smem_desc ts_advance_desc(ts_smem_desc desc, int bytes) { return desc + bytes / 16; }
#define TS_WGMMA(KIND, TRANS_B)                                                                                       \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                        \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." KIND "." KIND " {"                                    \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "                  \
                 "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "                           \
                 "{%32, %33, %34, %35}, %36, p, 1, 1, " TRANS_B ";\n}\n"                                              \
                 : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),         \
                   "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),         \
                   "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),         \
                   "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),         \
                   "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),         \
                   "+f"(c[7][2]), "+f"(c[7][3])                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(SCALE_D))
template <class T> struct ts_wgmma_atom {};
template <> struct ts_wgmma_atom<ts_bf16> {
    template <int SCALE_D> TS_FN void k_major(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("bf16", "0"); }
    template <int SCALE_D> TS_FN void mn_major(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("bf16", "1"); }
};
template <> struct ts_wgmma_atom<ts_f16> {
    template <int SCALE_D> TS_FN void k_major(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("f16", "0"); }
    template <int SCALE_D> TS_FN void mn_major(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("f16", "1"); }
};
#undef TS_WGMMA
// c += a b' for columns 16 s to 16 s + 15 of a tile with 64 rows (K-major b). ZERO_ACC: c = a b'.
template <class T, bool ZERO_ACC> TS_FN void ts_wgmma_k_major(float (*c)[4], const ts_u32* a, ts_smem_desc desc, int s) {
    ts_wgmma_atom<T>::template k_major<!ZERO_ACC>(c, a, ts_advance_desc(desc, s * 32));
}
// c += a b for rows 16 s to 16 s + 15 of a tile (MN-major b).
template <class T> TS_FN void ts_wgmma_mn_major(float (*c)[4], const ts_u32* a, ts_smem_desc desc, int s) {
    ts_wgmma_atom<T>::template mn_major<1>(c, a, ts_advance_desc(desc, s * 2048));
}
// Makes this thread's writes to shared memory visible to wgmma. A barrier must follow.
TS_FN void ts_fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TS_FN void ts_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// The products since the last commit form a group.
TS_FN void ts_wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most the last PENDING groups are still running.
template <int PENDING> TS_FN void ts_wgmma_wait_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING)
    : "memory"); }
// A barrier for the compiler: c is in registers here, and is neither read earlier nor written later. Needed before a product
// begins and after the wait for it.
template <int N> TS_FN void ts_fence_operand(float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) asm volatile("" : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])::"memory");
}
#endif
