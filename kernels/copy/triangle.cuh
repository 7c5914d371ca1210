// Triangles of matrices. B: bytes of an element; LOWER: 1 keeps what is on and below the diagonal, 0 on and above.
#include "common/base.cuh"

template <int N> struct ts_bytes { typedef ts_u64 type; };
template <> struct ts_bytes<1> { typedef ts_u8 type; };
template <> struct ts_bytes<2> { typedef ts_i16 type; };
template <> struct ts_bytes<4> { typedef ts_u32 type; };
typedef typename ts_bytes<B>::type Cell;

struct Args {
    const Cell* x;
    Cell* y;
    ts_i64 n, rows, columns, diagonal;
};

TS_KERNEL void __launch_bounds__(256) ts_triangle(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i64 line = i / g.columns, distance = i - line * g.columns - line % g.rows;
    const bool kept = LOWER ? distance <= g.diagonal : distance >= g.diagonal;
    g.y[i] = kept ? g.x[i] : Cell(0);
}
