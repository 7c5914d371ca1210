// Running sums and their like along a dim that is not the last. V: columns of a vector; LANES: vectors of a tile; E: elements
// of a dim that a thread has; REVERSE: from the last element to the first. T, OP: ts_scan.cuh.
static const int THREADS = 256;
#include "ts_scan.cuh"

// A tile: V * LANES columns, THREADS / LANES * E elements of each.
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_columns(const __grid_constant__ Args g) {
    const ts_u32 strips = blockIdx.x / (ts_u32)g.across, across = blockIdx.x % (ts_u32)g.across;
    const ts_i64 outer = strips / (ts_u32)g.chunks, c = strips % (ts_u32)g.chunks;
    const ts_i64 column = ((ts_i64)across * LANES + threadIdx.x % LANES) * V;
    const ts_i64 first = (c * (THREADS / LANES) + threadIdx.x / LANES) * E, left = column < g.inner ? g.n - first : 0;
    // Where the first of this thread's elements is, and how far it is to the next.
    const ts_i64 base = (outer * g.n + (REVERSE ? g.n - 1 - first : first)) * g.inner + column;
    const ts_i64 step = REVERSE ? -g.inner : g.inner;
    ts_vec<T, V> raw[E];
#pragma unroll
    for (int e = 0; e < E; e++) {
        raw[e] = ts_vec<T, V>();
        if (e < left) raw[e] = *(const ts_vec<T, V>*)(g.x + base + e * step);
    }
    State mine[E][V], before[V], warp[V], prior[V], all[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            mine[e][v].v = (C)ts_up(raw[e].x[v]);
            mine[e][v].set((ts_i32)first + e);
            if (e > 0) mine[e][v] = State::join(mine[e - 1][v], mine[e][v]);
        }
        before[v] = ts_scan_lanes<32, LANES>(mine[E - 1][v], warp[v]);
    }
    ts_scan_warps<THREADS / 32, LANES, V>(warp, prior, all);
    if (g.chunks > 1) {
        const ts_i64 strip = outer * g.across + across;
        State earlier[V];
        ts_scan_tiles_before<LANES, V>(g, strip, c, all, earlier);
#pragma unroll
        for (int v = 0; v < V; v++) prior[v] = State::join(earlier[v], prior[v]);
    }
#pragma unroll
    for (int v = 0; v < V; v++) before[v] = State::join(prior[v], before[v]);
#pragma unroll
    for (int e = 0; e < E; e++) {
        ts_vec<T, V> out;
        ts_vec<ts_i64, V> places;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const State end = State::join(before[v], mine[e][v]);
            out.x[v] = ts_down<T>(end.v);
            places.x[v] = end.get();
        }
        if (e >= left) continue;
        *(ts_vec<T, V>*)(g.y + base + e * step) = out;
        if (OP >= 3) *(ts_vec<ts_i64, V>*)(g.at + base + e * step) = places;
    }
}
