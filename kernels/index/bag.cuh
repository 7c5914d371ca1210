// Sums of rows of a table by bags of as many numbers, in order. T: memory type; V: adjacent elements of a thread.
#include "math/math.cuh"
#include "index/bag_args.cuh"

enum { ROWS_AT_ONCE = 4 };

// y [bags, width * V]: the rows that the n numbers of a bag name, divided by `divisor`. A number outside of the table is reported
// and adds nothing.
TS_KERNEL void __launch_bounds__(256) ts_embedding_bag(const __grid_constant__ BagArgs g) {
    typedef typename ts_opmath<T>::type C;
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.bags * g.width) return;
    const bool narrow = (ts_u64)(g.bags * g.width) >> 32 == 0;
    const ts_i64 bag = narrow ? (ts_i64)((ts_u32)i / (ts_u32)g.width) : i / g.width, column = i - bag * g.width;
    const ts_i64* numbers = g.numbers + bag * g.n;
    C sum[V];
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] = 0;
    for (ts_i64 k = 0; k < g.n; k += ROWS_AT_ONCE) {
        ts_vec<T, V> rows[ROWS_AT_ONCE];
        bool valid[ROWS_AT_ONCE];
#pragma unroll
        for (int e = 0; e < ROWS_AT_ONCE; e++) {
            const ts_i64 number = k + e < g.n ? numbers[k + e] : 0;
            valid[e] = k + e < g.n && number >= 0 && number < g.rows;
            if (valid[e]) rows[e] = ((const ts_vec<T, V>*)g.table)[number * g.width + column];
            else if (k + e < g.n && column == 0) ts_fault(g.fault, TS_INDEX, 0, (ts_u64)(bag * g.n + k + e), number, g.rows);
        }
#pragma unroll
        for (int e = 0; e < ROWS_AT_ONCE; e++)
            if (valid[e])
#pragma unroll
                for (int v = 0; v < V; v++) sum[v] += (C)ts_upcast(rows[e].x[v]);
    }
    ts_vec<T, V> y;
#pragma unroll
    for (int v = 0; v < V; v++) y.x[v] = ts_downcast<T>(sum[v] / (C)g.divisor);
    ts_store(g.y + i * V, y);
}
