// Rows and columns of the elements of a triangle of a matrix, in order: `rows` rows, the first of `first` elements and each of one
// more, up to `columns`. REVERSED: counted from the last row and element back.
#include "common/base.cuh"

#include "copy/triangle_args.cuh"

TS_KERNEL void __launch_bounds__(256) ts_triangle_indices(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i64 at = REVERSED ? g.n - 1 - i : i;
    ts_i64 row, column;
    if (at < g.slope) {
        // row first + row (row - 1) / 2 elements lie before a row; the root is put right where it was rounded.
        const double b = 2.0 * (double)g.first - 1;
        row = (ts_i64)((sqrt(b * b + 8.0 * (double)at) - b) / 2);
        while (row > 0 && row * g.first + row * (row - 1) / 2 > at) row--;
        while ((row + 1) * g.first + row * (row + 1) / 2 <= at) row++;
        column = at - (row * g.first + row * (row - 1) / 2);
    } else {
        const ts_i64 left = at - g.slope;
        row = left <= 0xffffffffll ? (ts_i64)ts_fast_div((ts_u32)left, g.divide_columns) : left / g.columns;
        column = left - row * g.columns;
        row += g.columns - g.first;
    }
    g.y[i] = g.start + (REVERSED ? -row : row);
    g.y[g.n + i] = REVERSED ? g.columns - 1 - column : column;
}
