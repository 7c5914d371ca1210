// tril and triu. B: bytes of an element; LOWER: 1 for tril, 0 for triu; V: elements of a vector, which divides the columns. A
// thread writes a vector, and reads it if something of it is kept.
#include "common/base.cuh"

typedef typename ts_bytes<B>::type Cell;

#include "copy/tril_triu_args.cuh"

TS_KERNEL void __launch_bounds__(256) ts_tril_triu(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    ts_i64 vector, row_of_matrix;
    if (g.n <= 0x7fffffff) {
        const ts_u32 at = ts_fast_div((ts_u32)i, g.divide_vectors);
        vector = (ts_u32)i - at * (ts_u32)g.vectors;
        row_of_matrix = at - ts_fast_div(at, g.divide_rows) * (ts_u32)g.rows;
    } else {
        const ts_i64 row = i / g.vectors;
        vector = i - row * g.vectors;
        row_of_matrix = row % g.rows;
    }
    const ts_i64 offset = vector * V - row_of_matrix;
    ts_vec<Cell, V> values;
#pragma unroll
    for (int v = 0; v < V; v++) values.x[v] = Cell(0);
    if (LOWER ? offset <= g.diagonal : offset + V - 1 >= g.diagonal) {
        values = ((const ts_vec<Cell, V>*)g.x)[i];
#pragma unroll
        for (int v = 0; v < V; v++)
            if (LOWER ? offset + v > g.diagonal : offset + v < g.diagonal) values.x[v] = Cell(0);
    }
    ((ts_vec<Cell, V>*)g.y)[i] = values;
}
