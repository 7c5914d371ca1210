// Transposes matrices: y[cols][rows] of x[rows][cols], for `outer` matrices, and adds a bias to each row of y. T: memory type
// of 2 or 4 bytes. Rows and cols are multiples of V, so that all accesses are words. A tile goes through shared memory, whose
// rows are padded by one word against bank conflicts.
#include "common/base.cuh"

static const int V = 4 / (int)sizeof(T);
typedef ts_vec<T, V> Word;

#include "copy/transpose_args.cuh"

TS_KERNEL void __launch_bounds__(256) ts_transpose(const __grid_constant__ Args g) {
    // Row r of the tile is smem[r % V][r / V].
    __shared__ Word smem[V][64 / V][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const ts_i64 tile = blockIdx.x / g.column_tiles, row_start = tile % g.row_tiles * 64,
        matrix = tile / g.row_tiles * g.rows * g.cols;
    const ts_i64 column_start = blockIdx.x % g.column_tiles * (32 * V);
    if (column_start + lane * V < g.cols) {
        const T* src = g.x + matrix + (row_start + warp) * g.cols + column_start + lane * V;
        Word r[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (row_start + warp + k * 8 < g.rows) r[k] = *(const Word*)(src + k * 8 * g.cols);
#pragma unroll
        for (int k = 0; k < 8; k++) smem[(warp + k * 8) % V][(warp + k * 8) / V][lane] = r[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int j = warp + k * 8;
        const ts_i64 col = column_start + j * V;
        if (col >= g.cols) break;
#pragma unroll
        for (int h = 0; h < 2 / V; h++) {
            const int at = lane + h * 32;
            if (row_start + at * V >= g.rows) break;
            Word words[V];
#pragma unroll
            for (int v = 0; v < V; v++) words[v] = smem[v][at][j];
#pragma unroll
            for (int u = 0; u < V; u++) {
                Word word;
#pragma unroll
                for (int v = 0; v < V; v++)
                    word.x[v] = g.bias ? ts_downcast<T>(ts_upcast(words[v].x[u]) + ts_upcast(g.bias[col + u])) : words[v].x[u];
                *(Word*)(g.y + matrix + (col + u) * g.rows + row_start + at * V) = word;
            }
        }
    }
}
