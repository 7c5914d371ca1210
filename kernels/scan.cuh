// Running sums, products, log-sum-exps, maxima and minima along a dim. T: memory type; OP: 0 sum, 1 product, 2 log-sum-exp,
// 3 maximum, 4 minimum; V, E, THREADS: ts_rows.cuh. Which threads join what is fixed by sizes, so results do not depend
// on timing.
#include "ts_reduce.cuh"

typedef typename ts_of<T>::cls Class;
template <class A> struct ts_wide { typedef A type; };
template <> struct ts_wide<bool> { typedef ts_i64 type; };
typedef typename ts_wide<Class>::type C;

struct Args {
    const T* x;
    T* y;
    ts_i64* at;
    void* totals;
    ts_i64 rows, n, inner, chunk, chunks, reverse, lanes;
};

TS_FN C ts_log_join(C a, C b) {
    const double x = (double)a, y = (double)b, low = x < y ? x : y, high = x < y ? y : x;
    if (x != x || y != y) return (C)ts_nan(x);
    return (C)(low == high && ts_isinf(high) ? high : high + log1p(exp(low - high)));
}

struct State {
    C v;
    ts_i64 at;
    TS_METHOD void start() {
        v = OP == 1 ? C(1) : OP == 2 ? ts_least(C()) : C(0);
        at = -1;
    }
    // Of equal elements the later one; NaN stays once seen.
    TS_METHOD static State join(const State& l, const State& r) {
        State s = l;
        if (OP == 0) s.v = ts_plus(l.v, r.v);
        if (OP == 1) s.v = ts_times(l.v, r.v);
        if (OP == 2) s.v = ts_log_join(l.v, r.v);
        if (OP >= 3) {
            if (r.at < 0) return l;
            const bool passes = OP == 3 ? r.v >= l.v : r.v <= l.v;
            if (l.at < 0 || r.v != r.v || (l.v == l.v && passes)) return r;
        }
        return s;
    }
};

// The state of another lane of a group of `width`: the one `distance` below, or lane `from`.
TS_FN State ts_from_below(const State& mine, int distance, int width) {
    State other;
    other.v = __shfl_up_sync(0xffffffffu, mine.v, distance, width);
    other.at = OP >= 3 ? __shfl_up_sync(0xffffffffu, mine.at, distance, width) : 0;
    return other;
}
TS_FN State ts_from_lane(const State& mine, int from, int width) {
    State other;
    other.v = __shfl_sync(0xffffffffu, mine.v, from, width);
    other.at = OP >= 3 ? __shfl_sync(0xffffffffu, mine.at, from, width) : 0;
    return other;
}
// Joins each lane's state with those of all lanes below it in its group; gives what was before this lane.
TS_FN State ts_scan_lanes(State& mine, int width) {
    const int lane = threadIdx.x % width;
    for (int d = 1; d < width; d *= 2) {
        const State below = ts_from_below(mine, d, width);
        if (lane >= d) mine = State::join(below, mine);
    }
    State before = ts_from_below(mine, 1, width);
    if (lane == 0) before.start();
    return before;
}

// Scans n elements with 256 threads, four at a time: element(i) gives a state, result(i, state) takes one. Gives the last.
template <class L, class S> TS_FN State ts_scan_span(ts_i64 n, State carry, L element, S result) {
    __shared__ State shared[8];
    for (ts_i64 from = 0; from < n; from += 1024) {
        State mine[4];
        const ts_i64 first = from + threadIdx.x * 4;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            mine[k].start();
            if (first + k < n) mine[k] = element(first + k);
            if (k > 0) mine[k] = State::join(mine[k - 1], mine[k]);
        }
        State total = mine[3], before = ts_scan_lanes(total, 32);
        __syncthreads();
        if (threadIdx.x % 32 == 31) shared[threadIdx.x / 32] = total;
        __syncthreads();
        State warps = carry;
        for (int w = 0; w < 8; w++) {
            if (w == (int)(threadIdx.x / 32)) before = State::join(warps, before);
            warps = State::join(warps, shared[w]);
        }
        carry = warps;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (first + k < n) result(first + k, State::join(before, mine[k]));
    }
    return carry;
}

TS_FN ts_i64 ts_at(const Args& g, ts_i64 row, ts_i64 i) { return row * g.n + (g.reverse ? g.n - 1 - i : i); }
TS_FN State ts_element(const Args& g, ts_i64 row, ts_i64 i) {
    State s;
    s.v = (C)ts_up(g.x[ts_at(g, row, i)]);
    s.at = i;
    return s;
}

// A block: chunk blockIdx.y of row blockIdx.x; with several chunks, after what `totals` says of those before.
TS_KERNEL void __launch_bounds__(256) ts_scan(const __grid_constant__ Args g) {
    const ts_i64 row = blockIdx.x, c = blockIdx.y, first = c * g.chunk;
    State carry;
    carry.start();
    if (c > 0) carry = ((const State*)g.totals)[row * g.chunks + c - 1];
    ts_scan_span(g.n - first < g.chunk ? g.n - first : g.chunk, carry,
        [&](ts_i64 i) { return ts_element(g, row, first + i); },
        [&](ts_i64 i, const State& s) {
            g.y[ts_at(g, row, first + i)] = ts_down<T>(s.v);
            if (OP >= 3) g.at[ts_at(g, row, first + i)] = s.at;
        });
}
TS_KERNEL void __launch_bounds__(256) ts_scan_totals(const __grid_constant__ Args g) {
    const ts_i64 row = blockIdx.x, c = blockIdx.y, first = c * g.chunk;
    State carry;
    carry.start();
    carry = ts_scan_span(g.n - first < g.chunk ? g.n - first : g.chunk, carry,
        [&](ts_i64 i) { return ts_element(g, row, first + i); }, [&](ts_i64, const State&) {});
    if (threadIdx.x == 0) ((State*)g.totals)[row * g.chunks + c] = carry;
}
TS_KERNEL void __launch_bounds__(256) ts_scan_chunks(const __grid_constant__ Args g) {
    State* totals = (State*)g.totals + blockIdx.x * g.chunks;
    State carry;
    carry.start();
    ts_scan_span(g.chunks, carry, [&](ts_i64 i) { return totals[i]; }, [&](ts_i64 i, const State& s) { totals[i] = s; });
}

// Rows that fit into the registers of `lanes` neighbouring threads, in slabs of lanes * V elements.
TS_KERNEL void __launch_bounds__(THREADS) ts_scan_rows(const __grid_constant__ Args g) {
    const int SLABS = E > 0 ? E : 1;
    __shared__ State shared[SLABS * THREADS / 32];
    const int lanes = (int)g.lanes, lane = threadIdx.x % lanes, width = lanes < 32 ? lanes : 32;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes, n = row < g.rows ? g.n : 0;
    State mine[SLABS][V], total[SLABS], before[SLABS];
    // All of the row is asked for before anything is computed.
#pragma unroll
    for (int e = 0; e < SLABS; e++) {
        const ts_i64 i = (ts_i64)(e * lanes + lane) * V;
        ts_vec<T, V> raw;
        if (i < n) raw = *(const ts_vec<T, V>*)(g.x + row * n + (g.reverse ? n - V - i : i));
#pragma unroll
        for (int v = 0; v < V; v++) {
            mine[e][v].start();
            if (i >= n) continue;
            mine[e][v].v = (C)ts_up(g.reverse ? raw.x[V - 1 - v] : raw.x[v]);
            mine[e][v].at = i + v;
        }
    }
#pragma unroll
    for (int e = 0; e < SLABS; e++) {
#pragma unroll
        for (int v = 1; v < V; v++) mine[e][v] = State::join(mine[e][v - 1], mine[e][v]);
        total[e] = mine[e][V - 1];
        before[e] = ts_scan_lanes(total[e], width);
    }
    // What comes before a slab's warp: all earlier slabs, and the warps below it in its own.
    const int warps = lanes / width, warp = lane / width, count = warps * SLABS;
    State* parts = shared + threadIdx.x / lanes * count;
    State carry;
    carry.start();
    if (warps > 1) {
        if (lane % width == width - 1)
#pragma unroll
            for (int e = 0; e < SLABS; e++) parts[e * warps + warp] = total[e];
        __syncthreads();
        for (int k = lane; warp == 0 && k - lane < count; k += width) {
            State part;
            part.start();
            if (k < count) part = parts[k];
            const State prior = ts_scan_lanes(part, width);
            if (k < count) parts[k] = State::join(carry, prior);
            carry = State::join(carry, ts_from_lane(part, width - 1, width));
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < SLABS; e++) {
        const ts_i64 i = (ts_i64)(e * lanes + lane) * V;
        const State prior = State::join(warps > 1 ? parts[e * warps + warp] : carry, before[e]);
        if (warps == 1) carry = State::join(carry, ts_from_lane(total[e], width - 1, width));
        ts_vec<ts_i64, V> at;
#pragma unroll
        for (int v = 0; v < V; v++) {
            mine[e][v] = State::join(prior, mine[e][v]);
            at.x[v] = mine[e][v].at;
        }
        ts_vec<T, V> raw;
#pragma unroll
        for (int v = 0; v < V; v++) raw.x[v] = ts_down<T>(g.reverse ? mine[e][V - 1 - v].v : mine[e][v].v);
        if (i >= n) continue;
        *(ts_vec<T, V>*)(g.y + row * n + (g.reverse ? n - V - i : i)) = raw;
        if (OP >= 3) *(ts_vec<ts_i64, V>*)(g.at + row * n + i) = at;
    }
}

// A dim that is not the last: a thread for each column.
TS_KERNEL void ts_scan_columns(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.rows * g.inner) return;
    const ts_i64 base = i / g.inner * g.n * g.inner + i % g.inner;
    State carry;
    carry.start();
    for (ts_i64 k = 0; k < g.n; k++) {
        const ts_i64 at = base + (g.reverse ? g.n - 1 - k : k) * g.inner;
        State s;
        s.v = (C)ts_up(g.x[at]);
        s.at = k;
        carry = State::join(carry, s);
        g.y[at] = ts_down<T>(carry.v);
        if (OP >= 3) g.at[at] = carry.at;
    }
}
