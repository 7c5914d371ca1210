// States of running sums, products, log-sum-exps, maxima and minima, and how the threads of a block join theirs in order.
//
// T: memory type; OP: 0 sum, 1 product, 2 log-sum-exp, 3 maximum, 4 minimum; THREADS: of a block. Which states are joined
// with which is fixed by sizes, so results do not depend on timing.
#pragma once
#include "ts_reduce.cuh"

template <class A> struct ts_wide { typedef A type; };
template <> struct ts_wide<bool> { typedef ts_i64 type; };
typedef typename ts_wide<typename ts_of<T>::cls>::type C;

// x, y, at: operands; at: of maxima and minima. A strip is what is scanned from its first tile to its last: a row, or
// some neighbouring columns; `flags` and `parts` have two sets of places for each tile (ts_publish).
struct Args {
    const T* x;
    T* y;
    ts_i64* at;
    ts_u32* flags;
    void* parts;
    ts_i64 rows, n, inner, chunks, across, tiles;
};

static __device__ __noinline__ double ts_log_join(double x, double y) {
    const double low = x < y ? x : y, high = x < y ? y : x;
    if (x != x || y != y) return ts_nan(x);
    return low == high && ts_isinf(high) ? high : high + log1p(exp(low - high));
}

// Maxima and minima know where their element is; a dim of 2^31 elements is none of this kernel's.
template <bool PLACED> struct ts_place {
    ts_i32 at;
    TS_METHOD ts_i32 get() const { return at; }
    TS_METHOD void set(ts_i32 to) { at = to; }
};
template <> struct ts_place<false> {
    TS_METHOD ts_i32 get() const { return 0; }
    TS_METHOD void set(ts_i32) {}
};
struct State : ts_place<(OP >= 3)> {
    C v;
    TS_METHOD void start() {
        v = OP == 1 ? C(1) : OP == 2 ? ts_least(C()) : C(0);
        set(-1);
    }
    // Of equal elements the later one; NaN stays once seen.
    TS_METHOD static State join(const State& l, const State& r) {
        State s = l;
        if (OP == 0) s.v = ts_plus(l.v, r.v);
        if (OP == 1) s.v = ts_times(l.v, r.v);
        if (OP == 2) s.v = (C)ts_log_join((double)l.v, (double)r.v);
        if (OP >= 3) {
            const bool passes = OP == 3 ? r.v >= l.v : r.v <= l.v;
            if (r.get() >= 0 && (l.get() < 0 || r.v != r.v || (l.v == l.v && passes))) s = r;
        }
        return s;
    }
};

// The state of another lane of a group of `width`: the one `distance` below, or lane `from`.
TS_FN State ts_from_below(const State& mine, int distance, int width) {
    State other = mine;
    other.v = __shfl_up_sync(0xffffffffu, mine.v, distance, width);
    if (OP >= 3) other.set(__shfl_up_sync(0xffffffffu, mine.get(), distance, width));
    return other;
}
TS_FN State ts_from_lane(const State& mine, int from, int width) {
    State other = mine;
    other.v = __shfl_sync(0xffffffffu, mine.v, from, width);
    if (OP >= 3) other.set(__shfl_sync(0xffffffffu, mine.get(), from, width));
    return other;
}

// Joins states across groups of `width` lanes, of which every STEP-th belong together. Gives what comes before this
// lane, and in `all` what the whole group has.
template <int WIDTH, int STEP> TS_FN State ts_scan_lanes(State mine, State& all) {
    const int lane = threadIdx.x % WIDTH;
#pragma unroll
    for (int d = STEP; d < WIDTH; d *= 2) {
        const State below = ts_from_below(mine, d, WIDTH);
        if (lane >= d) mine = State::join(below, mine);
    }
    all = STEP < WIDTH ? ts_from_lane(mine, WIDTH - STEP + lane % STEP, WIDTH) : mine;
    State before = STEP < WIDTH ? ts_from_below(mine, STEP, WIDTH) : mine;
    if (lane < STEP) before.start();
    return before;
}

// Joins what warps have, in groups of WARPS: N states in each of L lanes. Gives what comes before this warp and what all
// of its group have. Every thread of the block calls it.
template <int WARPS, int L, int N> TS_FN void ts_scan_warps(const State* mine, State* before, State* all) {
    __shared__ State shared[THREADS / 32 * N * L];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / WARPS * WARPS;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (lane < L) shared[(warp * N + k) * L + lane] = mine[k];
        all[k].start();
        before[k].start();
    }
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++)
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (first + w == warp) before[k] = all[k];
            all[k] = State::join(all[k], shared[((first + w) * N + k) * L + lane % L]);
        }
}

// A place for N states of a lane, told to other blocks by its flag. Set 0: of a tile alone; set 1: of all tiles of its
// strip up to the last of a group.
template <int L, int N> TS_FN void ts_publish(const Args& g, int set, ts_i64 tile, const State* states) {
    const ts_i64 slot = (set * g.tiles + tile) * L + threadIdx.x % L;
    volatile ts_u32* to = (volatile ts_u32*)((State*)g.parts + slot * N);
#pragma unroll
    for (int k = 0; k < (int)(N * sizeof(State) / 4); k++) to[k] = ((const ts_u32*)states)[k];
    __threadfence();
    *(volatile ts_u32*)(g.flags + slot) = 1;
}
template <int L, int N> TS_FN void ts_await(const Args& g, int set, ts_i64 tile, State* states) {
    const ts_i64 slot = (set * g.tiles + tile) * L + threadIdx.x % L;
    while (*(volatile ts_u32*)(g.flags + slot) == 0) {}
    __threadfence();
    const volatile ts_u32* from = (const volatile ts_u32*)((const State*)g.parts + slot * N);
#pragma unroll
    for (int k = 0; k < (int)(N * sizeof(State) / 4); k++) ((ts_u32*)states)[k] = from[k];
}

// What comes before tile c of a strip, given what this tile has. Tiles before it were begun before it, since blocks are
// begun in order. Within a group of tiles each block joins what the tiles say, in order; between groups the last tile
// tells the sum.
template <int L, int N> TS_FN void ts_scan_tiles_before(const Args& g, ts_i64 strip, ts_i64 c, const State* mine, State* before) {
    const int group = THREADS / L, step = threadIdx.x / L;
    const ts_i64 base = c / group * group, tile = strip * g.chunks + c;
    if (step == 0 && c + 1 < g.chunks) ts_publish<L, N>(g, 0, tile, mine);
    State all[N], none[N];
#pragma unroll
    for (int k = 0; k < N; k++) all[k].start();
    if (base + step < c) ts_await<L, N>(g, 0, strip * g.chunks + base + step, all);
#pragma unroll
    for (int k = 0; k < N; k++) ts_scan_lanes<32, L>(all[k], all[k]);
    State warp[N];
#pragma unroll
    for (int k = 0; k < N; k++) warp[k] = all[k];
    ts_scan_warps<THREADS / 32, L, N>(warp, none, before);
    if (base > 0) {
        ts_await<L, N>(g, 1, strip * g.chunks + base - 1, all);
#pragma unroll
        for (int k = 0; k < N; k++) before[k] = State::join(all[k], before[k]);
    }
    if (step == 0 && c + 1 < g.chunks && c % group == group - 1) {
#pragma unroll
        for (int k = 0; k < N; k++) all[k] = State::join(before[k], mine[k]);
        ts_publish<L, N>(g, 1, tile, all);
    }
}
