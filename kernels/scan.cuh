// Running sums and their like along dense rows. V: elements of a vector; E: vectors of a thread; LANES: threads of a row;
// EDGES: rows that begin or end within a vector; REVERSE: from the last element to the first. T, OP: ts_scan.cuh.
#define TS_MAX(a, b) ((a) > (b) ? (a) : (b))
static const int THREADS = TS_MAX(LANES, 256);
#include "ts_scan.cuh"

// A stretch of a row, in vectors: elements lo .. hi counted from `first`, which is where a vector begins.
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
    State of[E][V], before[E];

    // Where vector e of this thread is in the stretch.
    TS_METHOD static int at(const ts_stretch& s, int e) {
        const int width = LANES < 32 ? LANES : 32, lane = threadIdx.x % LANES;
        const int q = (lane / width * E + e) * width + lane % width;
        return REVERSE ? s.count - 1 - q : q;
    }
    TS_METHOD static bool whole(const ts_stretch& s, int j) {
        return EDGES ? j * V >= s.lo && (j + 1) * V <= s.hi : REVERSE ? j >= 0 : j < s.count;
    }
    TS_METHOD static bool inside(const ts_stretch& s, int i) { return !EDGES || (i >= s.lo && i < s.hi); }

    TS_METHOD void load(const Args& g, const ts_stretch& s) {
        ts_vec<T, V> raw[E];
        const T* from = g.x + s.first;
        // All is asked for before anything is computed.
#pragma unroll
        for (int e = 0; e < E; e++) {
            raw[e] = ts_vec<T, V>();
            if (whole(s, at(s, e))) raw[e] = *(const ts_vec<T, V>*)(from + at(s, e) * V);
        }
        if (EDGES) {
#pragma unroll
            for (int e = 0; e < E; e++) {
                const int i = at(s, e) * V;
                if (!whole(s, at(s, e)) && i + V > s.lo && i < s.hi)
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (inside(s, i + v)) raw[e].x[v] = from[i + v];
            }
        }
#pragma unroll
        for (int e = 0; e < E; e++)
#pragma unroll
            for (int v = 0; v < V; v++) {
                const int u = REVERSE ? V - 1 - v : v, i = at(s, e) * V + u;
                of[e][v].start();
                if (!inside(s, i)) continue;
                of[e][v].v = (C)ts_up(raw[e].x[u]);
                of[e][v].set((ts_i32)s.place + i);
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

    TS_METHOD void store(const Args& g, const ts_stretch& s, const State& prior, bool first) {
#pragma unroll
        for (int e = 0; e < E; e++) {
            const State start = first ? before[e] : State::join(prior, before[e]);
            const int j = at(s, e), i = j * V;
            ts_vec<T, V> raw;
            ts_vec<ts_i64, V> places;
#pragma unroll
            for (int v = 0; v < V; v++) {
                const State end = State::join(start, of[e][v]);
                raw.x[REVERSE ? V - 1 - v : v] = ts_down<T>(end.v);
                places.x[v] = end.get();
            }
            if (whole(s, j)) {
                *(ts_vec<T, V>*)(g.y + s.first + i) = raw;
                if (OP >= 3) *(ts_vec<ts_i64, V>*)(g.at + s.first + i) = places;
            } else if (EDGES && i + V > s.lo && i < s.hi) {
#pragma unroll
                for (int v = 0; v < V; v++) {
                    if (!inside(s, i + v)) continue;
                    g.y[s.first + i + v] = raw.x[v];
                    if (OP >= 3) g.at[s.first + i + v] = places.x[v];
                }
            }
        }
    }
};

// Rows that fit into the registers of LANES neighbouring threads.
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_rows(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    ts_stretch s = ts_stretch_of(g, row < g.rows ? row : 0, 0, LANES * E);
    if (row >= g.rows) s.count = s.lo = s.hi = 0;
    ts_mine mine;
    mine.load(g, s);
    State all = mine.scan(), prior = all;
    if (LANES > 32) ts_scan_warps<TS_MAX(LANES / 32, 1), 1, 1>(&all, &prior, &all);
    mine.store(g, s, prior, LANES <= 32);
}

// Rows that are cut into tiles: a block for each.
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_tiles(const __grid_constant__ Args g) {
    if (LANES < THREADS) return;
    const ts_i64 row = blockIdx.x / (ts_u32)g.chunks, c = blockIdx.x % (ts_u32)g.chunks;
    const ts_stretch s = ts_stretch_of(g, row, c * (LANES * E), LANES * E);
    // Where edges make some rows longer than others the last tile may be empty.
    if (s.count <= 0) return;
    ts_mine mine;
    mine.load(g, s);
    const State warp = mine.scan();
    State prior, all, before;
    ts_scan_warps<TS_MAX(LANES / 32, 1), 1, 1>(&warp, &prior, &all);
    ts_scan_tiles_before<1, 1>(g, row, c, &all, &before);
    mine.store(g, s, State::join(before, prior), false);
}
