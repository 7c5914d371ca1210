// Matrices turned round: y[cols][rows] of x[rows][cols], `outer` times, with a number added to each row of y on the way.
// T: memory type of 2 or 4 bytes. Rows and cols are multiples of V, so that all of memory is touched in words.
// A tile goes through shared memory, a row of which has one word more than there are banks.
#include "common/base.cuh"

static const int V = 4 / (int)sizeof(T);
typedef ts_vec<T, V> Word;

struct Args {
    const T *x, *bias;
    T* y;
    ts_i64 rows, cols, down, across;
};

TS_KERNEL void __launch_bounds__(256) ts_turn(const __grid_constant__ Args g) {
    // Row r of the tile is t[r % V][r / V].
    __shared__ Word t[V][64 / V][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const ts_i64 tile = blockIdx.x / g.across, top = tile % g.down * 64, matrix = tile / g.down * g.rows * g.cols;
    const ts_i64 left = blockIdx.x % g.across * (32 * V);
    if (left + lane * V < g.cols) {
        const T* from = g.x + matrix + (top + warp) * g.cols + left + lane * V;
        Word r[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (top + warp + k * 8 < g.rows) r[k] = *(const Word*)(from + k * 8 * g.cols);
#pragma unroll
        for (int k = 0; k < 8; k++) t[(warp + k * 8) % V][(warp + k * 8) / V][lane] = r[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int j = warp + k * 8;
        const ts_i64 col = left + j * V;
        if (col >= g.cols) break;
#pragma unroll
        for (int h = 0; h < 2 / V; h++) {
            const int at = lane + h * 32;
            if (top + at * V >= g.rows) break;
            Word in[V];
#pragma unroll
            for (int v = 0; v < V; v++) in[v] = t[v][at][j];
#pragma unroll
            for (int u = 0; u < V; u++) {
                Word out;
#pragma unroll
                for (int v = 0; v < V; v++)
                    out.x[v] = g.bias ? ts_down<T>(ts_up(in[v].x[u]) + ts_up(g.bias[col + u])) : in[v].x[u];
                *(Word*)(g.y + matrix + (col + u) * g.rows + top + at * V) = out;
            }
        }
    }
}
