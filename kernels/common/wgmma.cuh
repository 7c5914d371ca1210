// Products of matrices by a warpgroup, four warps that begin at a multiple of four: c[64 x 64] += a[64 x 16] b[16 x 64] of
// 16-bit floats, summed in float (PTX wgmma of sm_90a). They run in the background. A warp has 16 rows of `a` and `c`, laid out
// as those of `ts_mma`; `b` lies in shared memory, in tiles of rows of 64 elements, 128 bytes, of which chunk c of 16 bytes is
// where chunk c ^ (row % 8) would be: eight rows of one column lie in different banks (PTX's 128-byte swizzle).
//
// From `ts_wgmma_begin` to the `ts_wgmma_wait` that covers a product nobody may touch its c and a; `ts_hold` tells the compiler.
#pragma once
#include "common/mma.cuh"

#if !defined(TS_HOST) && defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "wgmma is an instruction of sm_90a only"
#endif

// A chunk of a tile of rows of 64 elements. The tile begins at a multiple of 1024 bytes.
TS_FN char* ts_chunk(char* tile, int row, int chunk) { return tile + row * 128 + ((chunk ^ row % 8) << 4); }

#ifdef TS_HOST
template <class T, class In> TS_FN void ts_wgmma_any(float (*c)[4], const ts_u32* a, In in_tile) {
    static ts_u32 as[32][32][4];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) as[w][lane][k] = a[k];
    __syncwarp();
    for (int n = 0; n < 8; n++)
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 16; k++) {
                const ts_u32 two = as[w][group * 4 + k % 8 / 2][i / 2 + k / 8 * 2];
                const T b = *(const T*)in_tile(n * 8 + 2 * t + i % 2, k);
                c[n][i] += (k % 2 ? ts_high(two, T()) : ts_low(two, T())) * ts_up(b);
            }
    __syncwarp();
}
typedef char* ts_tile;
TS_FN ts_tile ts_tile_of(char* at) { return at; }
TS_FN ts_tile ts_tile_after(ts_tile tile, int bytes) { return tile + bytes; }
template <class T, bool FIRST> TS_FN void ts_wgmma_rows(float (*c)[4], const ts_u32* a, ts_tile tile, int s) {
    for (int n = 0; FIRST && n < 8; n++) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
    ts_wgmma_any<T>(c, a, [=](int n, int k) { return ts_chunk(tile, n, s * 2 + k / 8) + k % 8 * 2; });
}
template <class T> TS_FN void ts_wgmma_columns(float (*c)[4], const ts_u32* a, ts_tile tile, int s) {
    ts_wgmma_any<T>(c, a, [=](int n, int k) { return ts_chunk(tile, s * 16 + k, n / 8) + n % 8 * 2; });
}
TS_FN void ts_tiles_written() {}
TS_FN void ts_wgmma_begin() {}
TS_FN void ts_wgmma_end() {}
template <int LATER> TS_FN void ts_wgmma_wait() {}
template <int N> TS_FN void ts_hold(float (*)[4]) {}
#else
// What products need to know of a tile: where it begins, that eight rows are 1024 bytes, and the swizzle.
typedef ts_u64 ts_tile;
TS_FN ts_tile ts_tile_of(const char* at) {
    return ((ts_u32)__cvta_generic_to_shared(at) & 0x3ffff) >> 4 | 1ULL << 16 | 64ULL << 32 | 1ULL << 62;
}
TS_FN ts_tile ts_tile_after(ts_tile tile, int bytes) { return tile + bytes / 16; }
#define TS_WGMMA(KIND, TURNED)                                                                                       \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                                        \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." KIND "." KIND " {"                                    \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "                  \
                 "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "                           \
                 "{%32, %33, %34, %35}, %36, p, 1, 1, " TURNED ";\n}\n"                                              \
                 : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),         \
                   "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),         \
                   "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),         \
                   "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),         \
                   "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),         \
                   "+f"(c[7][2]), "+f"(c[7][3])                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADD))
template <class T> struct ts_wgmma_of {};
template <> struct ts_wgmma_of<ts_bf16> {
    template <int ADD> TS_FN void rows(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("bf16", "0"); }
    template <int ADD> TS_FN void columns(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("bf16", "1"); }
};
template <> struct ts_wgmma_of<ts_f16> {
    template <int ADD> TS_FN void rows(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("f16", "0"); }
    template <int ADD> TS_FN void columns(float (*c)[4], const ts_u32* a, ts_u64 b) { TS_WGMMA("f16", "1"); }
};
#undef TS_WGMMA
// c += a b' for columns 16 s to 16 s + 15 of a tile's 64 rows; the FIRST product begins at zero.
template <class T, bool FIRST> TS_FN void ts_wgmma_rows(float (*c)[4], const ts_u32* a, ts_tile tile, int s) {
    ts_wgmma_of<T>::template rows<!FIRST>(c, a, ts_tile_after(tile, s * 32));
}
// c += a b for rows 16 s to 16 s + 15 of a tile.
template <class T> TS_FN void ts_wgmma_columns(float (*c)[4], const ts_u32* a, ts_tile tile, int s) {
    ts_wgmma_of<T>::template columns<1>(c, a, ts_tile_after(tile, s * 2048));
}
// What this thread wrote to tiles is to be seen by products; a barrier comes after it.
TS_FN void ts_tiles_written() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TS_FN void ts_wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// The products since the last end are one group.
TS_FN void ts_wgmma_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// All groups but the LATER last ones are done.
template <int LATER> TS_FN void ts_wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LATER) : "memory"); }
// Before a product begins and after the wait for it: c is as it stands here.
template <int N> TS_FN void ts_hold(float (*c)[4]) {
#pragma unroll
    for (int n = 0; n < N / 8; n++) asm volatile("" : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])::"memory");
}
#endif
