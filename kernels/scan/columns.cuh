// Running sums and their like along a dim that is not the last. V: columns of a vector; LANES: vectors of a tile; E: elements
// of a dim that a thread has; REVERSE: from the last element to the first. T, OP: scan/tile.cuh.
static const int THREADS = 256;
#include "scan/tile.cuh"

// A tile: V * LANES columns, THREADS / LANES * E elements of each.
TS_KERNEL void __launch_bounds__(THREADS, 4) ts_scan_columns(const __grid_constant__ Args g) {
    const ts_u32 strips = (ts_u32)(g.rows * g.across), strip = blockIdx.x % strips;
    const ts_i64 outer = strip / (ts_u32)g.across, across = strip % (ts_u32)g.across, c = blockIdx.x / strips;
    const ts_i64 column = (across * LANES + threadIdx.x % LANES) * V;
    const ts_i64 first = (c * (THREADS / LANES) + threadIdx.x / LANES) * E, left = column < g.inner ? g.n - first : 0;
    // Where the first of this thread's elements is, and how far it is to the next.
    const ts_i64 base = (outer * g.n + (REVERSE ? g.n - 1 - first : first)) * g.inner + column;
    const ts_i64 step = REVERSE ? -g.inner : g.inner;
    ts_raw<T, V> raw[E];
#pragma unroll
    for (int e = 0; e < E; e++) {
        raw[e] = ts_raw<T, V>::none();
        if (e < left) raw[e].read(g.x + base + e * step);
    }
#pragma unroll
    for (int e = 0; e < E; e++) raw[e].asked();
    State mine[E][V], before[V], warp[V], prior[V], all[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            mine[e][v].element((C)ts_up(raw[e].get().x[v]), (ts_i32)first + e);
            if (e > 0) mine[e][v] = State::join(mine[e - 1][v], mine[e][v]);
        }
        before[v] = ts_scan_lanes<32, LANES>(mine[E - 1][v], warp[v]);
    }
    ts_scan_warps<THREADS / 32, LANES, V>(warp, prior, all);
#pragma unroll
    for (int v = 0; v < V; v++) before[v] = State::join(prior[v], before[v]);
    if (g.chunks > 1) {
        ts_before_tile<LANES, V>(g, strips, strip, c, all, prior);
#pragma unroll
        for (int v = 0; v < V; v++) before[v] = State::join(prior[v], before[v]);
    }
#pragma unroll
    for (int e = 0; e < E; e++) {
        ts_vec<T, V> out;
        ts_vec<ts_i64, V> places;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const State end = State::join(before[v], mine[e][v]);
            out.x[v] = ts_down<T>(end.result());
            places.x[v] = OP >= 3 ? (ts_i64)end.get() : 0;
        }
        if (e >= left) continue;
        ts_store(g.y + base + e * step, out);
        if (OP >= 3) ts_store(g.at + base + e * step, places);
    }
}
