// Products of rows of bytes with sign, added up in 32 bits: c[i][j] = sum over l of a[i][l] * b[j][l].
//
// A block computes a 16 x 16 tile of c; rows go through shared memory, 64 bytes at a time, four to a word.
#include "common/base.cuh"

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
