// Products of rows of bytes with sign, added up in 32 bits: c[i][j] = sum over l of a[i][l] * b[j][l].
//
// By tensor cores (PTX mma.sync.m16n8k32) a block computes a 128 x 128 tile of c, each of its eight warps 64 x 32. Rows go
// through shared memory, 64 bytes at a time, the next ones while these are multiplied; they lie 80 bytes apart there, so that
// the words of a fragment are in 32 banks. Without tensor cores for bytes a block computes 16 x 16.
#include "common/base.cuh"
#include "common/mma.cuh"

#include "matmul/int_args.cuh"

// Adds the four products of two words of four bytes.
TS_FN int ts_dot4(int x, int y, int sum) {
#if !defined(TS_HOST) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
    return __dp4a(x, y, sum);
#else
    for (int s = 0; s < 32; s += 8) sum += (int)(ts_i8)(x >> s) * (int)(ts_i8)(y >> s);
    return sum;
#endif
}

// Four bytes of a row of `k`, from `at` on, zeros behind its end.
TS_FN int ts_word(const ts_i8* row, ts_i64 at, ts_i64 k) {
    unsigned word = 0;
    for (int i = 0; i < 4; i++)
        if (at + i < k) word |= (unsigned)(unsigned char)row[at + i] << (8 * i);
    return (int)word;
}

// c[16 x 8] += a[16 x 32] b[32 x 8], with group = lane / 4 and t = lane % 4: a: rows group (a[0], a[2]) and group + 8 (a[1],
// a[3]), columns 4t to 4t + 3 (a[0], a[1]) and 16 more; b: column group, the same rows; c: rows group (c[0], c[1]) and group
// + 8, columns 2t, 2t + 1.
TS_FN void ts_mma_bytes(int* c, const ts_u32* a, const ts_u32* b) {
#ifdef TS_HOST
    static ts_u32 as[32][32][4], bs[32][32][2];
    const int w = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    for (int k = 0; k < 4; k++) as[w][lane][k] = a[k];
    for (int k = 0; k < 2; k++) bs[w][lane][k] = b[k];
    __syncwarp();
    for (int r = 0; r < 2; r++)
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 8; k++)
                c[2 * r + n] = ts_dot4((int)as[w][group * 4 + k % 4][r + 2 * (k / 4)],
                                       (int)bs[w][(2 * t + n) * 4 + k % 4][k / 4], c[2 * r + n]);
    __syncwarp();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

const int TS_INT_TILE = 128, TS_INT_DEPTH = 64, TS_INT_STRIDE = 80;

// Bytes `at` to `at` + 63 of 128 rows of x from `first` on; zeros beyond its ends.
TS_FN void ts_int_rows(ts_i8* tile, const ts_i8* x, ts_i64 first, ts_i64 rows, ts_i64 k, ts_i64 at, bool aligned) {
    for (int i = 0; i < 2; i++) {
        const int part = threadIdx.x + 256 * i, row = part / 4, column = part % 4 * 16;
        ts_i8* to = tile + row * TS_INT_STRIDE + column;
        const bool inside = first + row < rows;
        const ts_i8* from = x + (inside ? first + row : 0) * k;
        if (aligned) {
            const bool valid = inside && at + column < k;
            ts_cp_async_16(to, valid ? from + at + column : x, valid);
        } else {
            for (int w = 0; w < 4; w++) ((int*)to)[w] = inside ? ts_word(from, at + column + 4 * w, k) : 0;
        }
    }
}

TS_KERNEL void __launch_bounds__(256) ts_int_mm_tiles(const __grid_constant__ IntArgs g) {
    __shared__ __align__(16) ts_i8 a_tile[2][TS_INT_TILE * TS_INT_STRIDE];
    __shared__ __align__(16) ts_i8 b_tile[2][TS_INT_TILE * TS_INT_STRIDE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, t = lane % 4;
    const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
    const ts_i64 row_start = (ts_i64)blockIdx.x * TS_INT_TILE, column_start = (ts_i64)blockIdx.y * TS_INT_TILE;
    int c[4][4][4] = {};
    auto load = [&](int stage, ts_i64 at) {
        ts_int_rows(a_tile[stage], g.a, row_start, g.m, g.k, at, g.aligned);
        ts_int_rows(b_tile[stage], g.b, column_start, g.n, g.k, at, g.aligned);
    };
    load(0, 0);
    int stage = 0;
    for (ts_i64 start = 0; start < g.k; start += TS_INT_DEPTH, stage ^= 1) {
        ts_cp_async_wait_all();
        __syncthreads();
        if (start + TS_INT_DEPTH < g.k) load(stage ^ 1, start + TS_INT_DEPTH);
#pragma unroll
        for (int depth = 0; depth < TS_INT_DEPTH; depth += 32) {
            ts_u32 a[4][4], b[4][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const ts_i8* at = a_tile[stage] + (warp_row + i * 16 + group) * TS_INT_STRIDE + depth + 4 * t;
                const ts_i8* below = at + 8 * TS_INT_STRIDE;
                a[i][0] = *(const ts_u32*)at, a[i][1] = *(const ts_u32*)below;
                a[i][2] = *(const ts_u32*)(at + 16), a[i][3] = *(const ts_u32*)(below + 16);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const ts_i8* at = b_tile[stage] + (warp_column + j * 8 + group) * TS_INT_STRIDE + depth + 4 * t;
                b[j][0] = *(const ts_u32*)at, b[j][1] = *(const ts_u32*)(at + 16);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) ts_mma_bytes(c[i][j], a[i], b[j]);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            for (int r = 0; r < 4; r++) {
                const ts_i64 row = row_start + warp_row + i * 16 + group + r / 2 * 8;
                const ts_i64 column = column_start + warp_column + j * 8 + 2 * t + r % 2;
                if (row < g.m && column < g.n) g.c[row * g.n + column] = c[i][j][r];
            }
}

TS_KERNEL void __launch_bounds__(256) ts_int_mm(const __grid_constant__ IntArgs g) {
    __shared__ int a_tile[16][17];
    __shared__ int b_tile[16][17];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const ts_i64 row_start = (ts_i64)blockIdx.x * 16, column_start = (ts_i64)blockIdx.y * 16;
    const ts_i64 row = row_start + y, column = column_start + y;
    int sum = 0;
    for (ts_i64 start = 0; start < g.k; start += 64) {
        a_tile[y][x] = row < g.m ? ts_word(g.a + row * g.k, start + 4 * x, g.k) : 0;
        b_tile[y][x] = column < g.n ? ts_word(g.b + column * g.k, start + 4 * x, g.k) : 0;
        __syncthreads();
#pragma unroll
        for (int l = 0; l < 16; l++) sum = ts_dot4(a_tile[y][l], b_tile[x][l], sum);
        __syncthreads();
    }
    if (row < g.m && column_start + x < g.n) g.c[row * g.n + column_start + x] = sum;
}
