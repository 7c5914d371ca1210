// Running sums and their like along dense rows. V: elements of a vector; E: vectors of a thread; LANES: threads of a row, or
// of a tile of one; TILES: rows are cut into tiles; EDGES: rows that begin or end within a vector; REVERSE: from the last
// element to the first. T, OP: scan/tile.cuh.
#define TS_MAX(a, b) ((a) > (b) ? (a) : (b))
static const int THREADS = TS_MAX(LANES, 256);
#include "scan/tile.cuh"

// 512 threads with values of 64 bits: the compiler is asked for two blocks a multiprocessor, and would take more registers.
static const bool PAIRED = THREADS == 512 && sizeof(C) == 8 && OP != 2;

// A stretch of a row: `count` vectors, of which elements lo .. hi are the row's; `place` and `first` are where it begins in
// the row and in all.
struct ts_stretch {
    ts_i64 first, place;
    int count, lo, hi;
};
// Vectors of a row from `from` on in the order of scanning, `most` at most.
TS_FN ts_stretch ts_stretch_of(const Args& g, ts_i64 row, ts_i64 from, int most) {
    const int shift = EDGES ? (int)((ts_u64)(g.x + row * g.n) / sizeof(T) % V) : 0;
    const ts_i64 vectors = (g.n + shift + V - 1) / V, left = vectors - from;
    ts_stretch s;
    s.count = left < most ? (int)left : most;
    s.place = (REVERSE ? left - s.count : from) * V - shift;
    s.first = row * g.n + s.place;
    s.lo = s.place < 0 ? (int)-s.place : 0;
    s.hi = g.n - s.place < (ts_i64)s.count * V ? (int)(g.n - s.place) : s.count * V;
    return s;
}

struct ts_mine {
    ts_raw<T, V> raw[E];
    State of[E][V], before[E];

    // Where vector e of this thread is in the stretch; is it the row's, or a part of it.
    TS_METHOD static int at(const ts_stretch& s, int e) {
        const int width = LANES < 32 ? LANES : 32, lane = threadIdx.x % LANES;
        const int q = (lane / width * E + e) * width + lane % width;
        return REVERSE ? s.count - 1 - q : q;
    }
    TS_METHOD static bool some(const ts_stretch& s, int j) { return REVERSE ? j >= 0 : j < s.count; }
    TS_METHOD static bool whole(const ts_stretch& s, int j) { return !EDGES || (j * V >= s.lo && (j + 1) * V <= s.hi); }

    TS_METHOD void ask(const Args& g, const ts_stretch& s) {
        const T* from = g.x + s.first;
        // Vectors at edges have elements of neighbouring rows, but nothing outside of all rows is read.
        const ts_i64 end = g.rows * g.n - s.first;
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int j = at(s, e);
            raw[e] = ts_raw<T, V>::none();
            if (some(s, j) && (!EDGES || ((j > 0 || s.first >= 0) && (ts_i64)(j + 1) * V <= end)))
                raw[e].read(from + j * V);
        }
#pragma unroll
        for (int e = 0; e < E; e++) raw[e].asked();
        if (EDGES && (s.first < 0 || end < s.count * V)) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                const int j = at(s, e);
                if (some(s, j) && ((j == 0 && s.first < 0) || (j + 1) * V > end))
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (j * V + v >= s.lo && j * V + v < s.hi) ((T*)&raw[e])[v] = from[j * V + v];
            }
        }
    }
    TS_METHOD void take(const ts_stretch& s) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            const int j = at(s, e);
            const ts_vec<T, V> values = raw[e].get();
#pragma unroll
            for (int v = 0; v < V; v++) {
                const int u = REVERSE ? V - 1 - v : v;
                of[e][v].element((C)ts_up(values.x[u]), (ts_i32)s.place + j * V + u);
            }
            if (!whole(s, j))
#pragma unroll
                for (int v = 0; v < V; v++) {
                    const int i = j * V + (REVERSE ? V - 1 - v : v);
                    if (i < s.lo || i >= s.hi) of[e][v].start();
                }
        }
    }

    // Scans within warps; gives what the warp has.
    TS_METHOD State scan() {
        const int width = LANES < 32 ? LANES : 32;
        State slab[E];
#pragma unroll
        for (int e = 0; e < E; e++) {
#pragma unroll
            for (int v = 1; v < V; v++) of[e][v] = State::join(of[e][v - 1], of[e][v]);
            before[e] = ts_scan_lanes<width, 1>(of[e][V - 1], slab[e]);
        }
        State all = slab[0];
#pragma unroll
        for (int e = 1; e < E; e++) {
            before[e] = State::join(all, before[e]);
            all = State::join(all, slab[e]);
        }
        return all;
    }

    TS_METHOD void store(const Args& g, const ts_stretch& s, const State* prior) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            const State start = prior ? State::join(*prior, before[e]) : before[e];
            const int j = at(s, e), i = j * V;
            ts_vec<T, V> out;
            ts_vec<ts_i64, V> places;
#pragma unroll
            for (int v = 0; v < V; v++) {
                const State end = State::join(start, of[e][v]);
                out.x[REVERSE ? V - 1 - v : v] = ts_down<T>(end.result());
                places.x[v] = OP >= 3 ? (ts_i64)end.get() : 0;
            }
            if (!some(s, j)) continue;
            if (whole(s, j)) {
                ts_store(g.y + s.first + i, out);
                if (OP >= 3) ts_store(g.at + s.first + i, places);
            } else {
#pragma unroll
                for (int v = 0; v < V; v++) {
                    if (i + v < s.lo || i + v >= s.hi) continue;
                    g.y[s.first + i + v] = out.x[v];
                    if (OP >= 3) g.at[s.first + i + v] = places.x[v];
                }
            }
        }
    }
};

// Rows that fit into the registers of LANES neighbouring threads.
TS_FN void ts_rows(const Args& g) {
    const ts_i64 row = (ts_i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    ts_stretch s = ts_stretch_of(g, row < g.rows ? row : 0, 0, LANES * E);
    if (row >= g.rows) s.count = s.lo = s.hi = 0;
    ts_mine mine;
    mine.ask(g, s);
    mine.take(s);
    State all = mine.scan(), prior;
    if (LANES > 32) ts_scan_warps<TS_MAX(LANES / 32, 1), 1, 1>(&all, &prior, &all);
    mine.store(g, s, LANES > 32 ? &prior : 0);
}
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_rows(const __grid_constant__ Args g) {
    if (!TILES && !PAIRED) ts_rows(g);
}
TS_KERNEL void __launch_bounds__(THREADS, 2) ts_scan_rows_paired(const __grid_constant__ Args g) {
    if (!TILES && PAIRED) ts_rows(g);
}

// Rows that are cut into tiles: a block for each.
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_tiles(const __grid_constant__ Args g) {
    if (!TILES) return;
    const ts_i64 row = blockIdx.x % (ts_u32)g.rows, c = blockIdx.x / (ts_u32)g.rows;
    const ts_stretch s = ts_stretch_of(g, row, c * (LANES * E), LANES * E);
    // Where edges make some rows longer than others the last tile may be empty.
    if (s.count <= 0) return;
    ts_mine mine;
    mine.ask(g, s);
    mine.take(s);
    const State warp = mine.scan();
    State prior, all, before;
    ts_scan_warps<TS_MAX(LANES / 32, 1), 1, 1>(&warp, &prior, &all);
    ts_before_tile<1, 1>(g, g.rows, row, c, &all, &before);
    prior = State::join(before, prior);
    mine.store(g, s, &prior);
}
