// Scans along dense rows. V: elements of a vector; E: vectors of a thread; LANES: threads of a row, or of a tile of one;
// TILES: rows are cut into tiles; EDGES: rows start or end within a vector; REVERSE: from the last element to the first. T,
// OP: scan/tile.cuh.
#define TS_MAX(a, b) ((a) > (b) ? (a) : (b))
static const int THREADS = TS_MAX(LANES, 256);
#include "scan/tile.cuh"

// With 512 threads and 64-bit values the compiler would use too many registers for two blocks on a multiprocessor;
// `__launch_bounds__` limits them.
static const bool TWO_BLOCKS = THREADS == 512 && sizeof(C) == 8 && OP != 2;

// A tile of a row: `count` vectors, of which elements lo .. hi belong to the row; `position` and `first`: its start in the
// row, and in the tensor.
struct ts_row_tile {
    ts_i64 first, position;
    int count, lo, hi;
};
// The tile that starts at vector `from` in scan order, of `limit` vectors at most.
TS_FN ts_row_tile ts_make_row_tile(const Args& g, ts_i64 row, ts_i64 from, int limit) {
    const int shift = EDGES ? (int)((ts_u64)(g.x + row * g.n) / sizeof(T) % V) : 0;
    const ts_i64 vectors = (g.n + shift + V - 1) / V, left = vectors - from;
    ts_row_tile s;
    s.count = left < limit ? (int)left : limit;
    s.position = (REVERSE ? left - s.count : from) * V - shift;
    s.first = row * g.n + s.position;
    s.lo = s.position < 0 ? (int)-s.position : 0;
    s.hi = g.n - s.position < (ts_i64)s.count * V ? (int)(g.n - s.position) : s.count * V;
    return s;
}

struct ts_thread_items {
    ts_raw<T, V> raw[E];
    State items[E][V], exclusive[E];

    // The index in the tile of this thread's vector e; whether that is in the tile; whether all of it belongs to the row.
    TS_METHOD static int vector_index(const ts_row_tile& s, int e) {
        const int width = LANES < 32 ? LANES : 32, lane = threadIdx.x % LANES;
        const int q = (lane / width * E + e) * width + lane % width;
        return REVERSE ? s.count - 1 - q : q;
    }
    TS_METHOD static bool in_tile(const ts_row_tile& s, int j) { return REVERSE ? j >= 0 : j < s.count; }
    TS_METHOD static bool is_whole(const ts_row_tile& s, int j) { return !EDGES || (j * V >= s.lo && (j + 1) * V <= s.hi); }

    TS_METHOD void load(const Args& g, const ts_row_tile& s) {
        const T* from = g.x + s.first;
        // Vectors at the edges contain elements of adjacent rows, but nothing outside of the tensor is read.
        const ts_i64 end = g.rows * g.n - s.first;
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int j = vector_index(s, e);
            raw[e] = ts_raw<T, V>::zeros();
            if (in_tile(s, j) && (!EDGES || ((j > 0 || s.first >= 0) && (ts_i64)(j + 1) * V <= end)))
                raw[e].load(from + j * V);
        }
#pragma unroll
        for (int e = 0; e < E; e++) raw[e].keep_in_flight();
        if (EDGES && (s.first < 0 || end < s.count * V)) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                const int j = vector_index(s, e);
                if (in_tile(s, j) && ((j == 0 && s.first < 0) || (j + 1) * V > end))
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (j * V + v >= s.lo && j * V + v < s.hi) ((T*)&raw[e])[v] = from[j * V + v];
            }
        }
    }
    TS_METHOD void unpack(const ts_row_tile& s) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int j = vector_index(s, e);
            const ts_vec<T, V> values = raw[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const int u = REVERSE ? V - 1 - v : v;
                items[e][v].init((C)ts_upcast(values.x[u]), (ts_i32)s.position + j * V + u);
            }
            if (!is_whole(s, j))
#pragma unroll
                for (int v = 0; v < V; v++) {
                    const int i = j * V + (REVERSE ? V - 1 - v : v);
                    if (i < s.lo || i >= s.hi) items[e][v].set_identity();
                }
        }
    }

    // Scans within a warp; returns the warp's aggregate.
    TS_METHOD State scan() {
        const int width = LANES < 32 ? LANES : 32;
        State aggregates[E];
#pragma unroll
        for (int e = 0; e < E; e++) {
#pragma unroll
            for (int v = 1; v < V; v++) items[e][v] = State::combine(items[e][v - 1], items[e][v]);
            exclusive[e] = ts_warp_scan<width, 1>(items[e][V - 1], aggregates[e]);
        }
        State aggregate = aggregates[0];
#pragma unroll
        for (int e = 1; e < E; e++) {
            exclusive[e] = State::combine(aggregate, exclusive[e]);
            aggregate = State::combine(aggregate, aggregates[e]);
        }
        return aggregate;
    }

    TS_METHOD void store(const Args& g, const ts_row_tile& s, const State* prefix) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            const State start = prefix ? State::combine(*prefix, exclusive[e]) : exclusive[e];
            const int j = vector_index(s, e), i = j * V;
            ts_vec<T, V> out;
            ts_vec<ts_i64, V> indices;
#pragma unroll
            for (int v = 0; v < V; v++) {
                const State end = State::combine(start, items[e][v]);
                out.x[REVERSE ? V - 1 - v : v] = ts_downcast<T>(end.result());
                indices.x[v] = OP >= 3 ? (ts_i64)end.get() : 0;
            }
            if (!in_tile(s, j)) continue;
            if (is_whole(s, j)) {
                ts_store(g.y + s.first + i, out);
                if (OP >= 3) ts_store(g.indices + s.first + i, indices);
            } else {
#pragma unroll
                for (int v = 0; v < V; v++) {
                    if (i + v < s.lo || i + v >= s.hi) continue;
                    g.y[s.first + i + v] = out.x[v];
                    if (OP >= 3) g.indices[s.first + i + v] = indices.x[v];
                }
            }
        }
    }
};

// Rows that fit into the registers of LANES adjacent threads.
TS_FN void ts_scan_row(const Args& g) {
    const ts_i64 row = (ts_i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    ts_row_tile s = ts_make_row_tile(g, row < g.rows ? row : 0, 0, LANES * E);
    if (row >= g.rows) s.count = s.lo = s.hi = 0;
    ts_thread_items thread;
    thread.load(g, s);
    thread.unpack(s);
    State aggregate = thread.scan(), prefix;
    if (LANES > 32) ts_scan_warp_aggregates<TS_MAX(LANES / 32, 1), 1, 1>(&aggregate, &prefix, &aggregate);
    thread.store(g, s, LANES > 32 ? &prefix : 0);
}
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_rows(const __grid_constant__ Args g) {
    if (!TILES && !TWO_BLOCKS) ts_scan_row(g);
}
TS_KERNEL void __launch_bounds__(THREADS, 2) ts_scan_rows_two_blocks(const __grid_constant__ Args g) {
    if (!TILES && TWO_BLOCKS) ts_scan_row(g);
}

// Rows that are cut into tiles: a block for each tile.
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_row_tiles(const __grid_constant__ Args g) {
    if (!TILES) return;
    const ts_i64 row = blockIdx.x % (ts_u32)g.rows, tile = blockIdx.x / (ts_u32)g.rows;
    const ts_row_tile s = ts_make_row_tile(g, row, tile * (LANES * E), LANES * E);
    // The last tile may be empty: with EDGES some rows have more vectors than others.
    if (s.count <= 0) return;
    ts_thread_items thread;
    thread.load(g, s);
    thread.unpack(s);
    const State warp_aggregate = thread.scan();
    State prefix, aggregate, exclusive;
    ts_scan_warp_aggregates<TS_MAX(LANES / 32, 1), 1, 1>(&warp_aggregate, &prefix, &aggregate);
    ts_look_back<1, 1>(g, g.rows, row, tile, &aggregate, &exclusive);
    prefix = State::combine(exclusive, prefix);
    thread.store(g, s, &prefix);
}
