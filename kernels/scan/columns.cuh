// Scans along a dim that is not the last. V: columns of a vector; LANES: vectors of a tile; E: elements along the dim that a
// thread has; REVERSE: from the last element to the first. T, OP: scan/tile.cuh.
static const int THREADS = 256;
#include "scan/tile.cuh"

// A tile: V * LANES columns by THREADS / LANES * E elements along the dim.
TS_KERNEL void __launch_bounds__(THREADS, 4) ts_scan_columns(const __grid_constant__ Args g) {
    const ts_u32 strips = (ts_u32)(g.rows * g.column_tiles), strip = blockIdx.x % strips;
    const ts_i64 outer = strip / (ts_u32)g.column_tiles, column_tile = strip % (ts_u32)g.column_tiles,
        tile = blockIdx.x / strips;
    const ts_i64 column = (column_tile * LANES + threadIdx.x % LANES) * V;
    const ts_i64 first = (tile * (THREADS / LANES) + threadIdx.x / LANES) * E, left = column < g.inner ? g.n - first : 0;
    // The offset of this thread's first element, and the distance to the next.
    const ts_i64 base = (outer * g.n + (REVERSE ? g.n - 1 - first : first)) * g.inner + column;
    const ts_i64 step = REVERSE ? -g.inner : g.inner;
    ts_raw<T, V> raw[E];
#pragma unroll
    for (int e = 0; e < E; e++) {
        raw[e] = ts_raw<T, V>::zeros();
        if (e < left) raw[e].load(g.x + base + e * step);
    }
#pragma unroll
    for (int e = 0; e < E; e++) raw[e].keep_in_flight();
    State items[E][V], exclusive[V], warp_aggregate[V], prefix[V], aggregate[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            items[e][v].init((C)ts_upcast(raw[e].get().x[v]), (ts_i32)first + e);
            if (e > 0) items[e][v] = State::combine(items[e - 1][v], items[e][v]);
        }
        exclusive[v] = ts_warp_scan<32, LANES>(items[E - 1][v], warp_aggregate[v]);
    }
    ts_scan_warp_aggregates<THREADS / 32, LANES, V>(warp_aggregate, prefix, aggregate);
#pragma unroll
    for (int v = 0; v < V; v++) exclusive[v] = State::combine(prefix[v], exclusive[v]);
    if (g.tiles > 1) {
        ts_look_back<LANES, V>(g, strips, strip, tile, aggregate, prefix);
#pragma unroll
        for (int v = 0; v < V; v++) exclusive[v] = State::combine(prefix[v], exclusive[v]);
    }
#pragma unroll
    for (int e = 0; e < E; e++) {
        ts_vec<T, V> out;
        ts_vec<ts_i64, V> indices;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const State end = State::combine(exclusive[v], items[e][v]);
            out.x[v] = ts_downcast<T>(end.result());
            indices.x[v] = OP >= 3 ? (ts_i64)end.get() : 0;
        }
        if (e >= left) continue;
        ts_store(g.y + base + e * step, out);
        if (OP >= 3) ts_store(g.indices + base + e * step, indices);
    }
}
