// tril and triu. B: bytes of an element; LOWER: 1 for tril, 0 for triu.
#include "common/base.cuh"

typedef typename ts_bytes<B>::type Cell;

#include "copy/tril_triu_args.cuh"

TS_KERNEL void __launch_bounds__(256) ts_tril_triu(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i64 row = i / g.columns, offset = i - row * g.columns - row % g.rows;
    const bool keep = LOWER ? offset <= g.diagonal : offset >= g.diagonal;
    g.y[i] = keep ? g.x[i] : Cell(0);
}
