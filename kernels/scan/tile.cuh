// States of running sums, products, log-sum-exps, maxima and minima, and how the threads of a block join theirs in order.
//
// T: memory type; OP: 0 sum, 1 product, 2 log-sum-exp, 3 maximum, 4 minimum; THREADS: of a block. Which states are joined
// with which is fixed by sizes, so results do not depend on timing.
#pragma once
#include "common/reduce.cuh"

template <class A> struct ts_wide { typedef A type; };
template <> struct ts_wide<bool> { typedef ts_i64 type; };
typedef typename ts_wide<typename ts_of<T>::cls>::type C;

// A strip is what is scanned from its first tile to its last: a row, or some neighbouring columns; `told`: ts_told.
struct Args {
    const T* x;
    T* y;
    ts_i64* at;
    ts_u64* told;
    ts_i64 rows, n, inner, chunks, across;
};

// Log-sum-exps are of floats.
TS_FN ts_i64 ts_exp(ts_i64 x) { return x; }
TS_FN ts_i64 ts_log(ts_i64 x) { return x; }

// What a state has beside its value: nothing, a place (a dim of 2^31 elements is none of these kernels'), or a sum.
template <int KIND> struct ts_beside {
    TS_METHOD int get() const { return 0; }
    TS_METHOD void set(int) {}
};
template <> struct ts_beside<1> {
    ts_i32 with;
    TS_METHOD ts_i32 get() const { return with; }
    TS_METHOD void set(ts_i32 to) { with = to; }
};
template <> struct ts_beside<2> {
    C with;
    TS_METHOD C get() const { return with; }
    TS_METHOD void set(C to) { with = to; }
};

// A log-sum-exp is kept as a maximum m and the sum of exp(x - m).
struct State : ts_beside<(OP >= 3 ? 1 : OP == 2 ? 2 : 0)> {
    C v;
    TS_METHOD void start() {
        v = OP == 1 ? C(1) : OP == 2 ? ts_least(C()) : C(0);
        set(OP >= 3 ? -1 : 0);
    }
    TS_METHOD void element(C x, ts_i32 place) {
        v = x;
        set(OP >= 3 ? place : 1);
    }
    TS_METHOD C result() const { return OP == 2 ? v + ts_log((C)get()) : v; }
    // Of equal elements the later one; NaN stays once seen.
    TS_METHOD static State join(const State& l, const State& r) {
        State s = l;
        if (OP == 0) s.v = ts_plus(l.v, r.v);
        if (OP == 1) s.v = ts_times(l.v, r.v);
        if (OP == 2) {
            const bool less = l.v < r.v;
            const C high = less ? r.v : l.v, low = less ? l.v : r.v;
            // Equal infinities have no difference.
            const C shrink = high == low ? C(1) : ts_exp(low - high);
            s.v = high;
            s.set(less ? r.get() + l.get() * shrink : l.get() + r.get() * shrink);
        }
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
    if (OP >= 2) other.set(__shfl_up_sync(0xffffffffu, mine.get(), distance, width));
    return other;
}
TS_FN State ts_from_lane(const State& mine, int from, int width) {
    State other = mine;
    other.v = __shfl_sync(0xffffffffu, mine.v, from, width);
    if (OP >= 2) other.set(__shfl_sync(0xffffffffu, mine.get(), from, width));
    return other;
}

// Joins states across groups of WIDTH lanes, of which every STEP-th belong together. Gives what comes before this
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
    for (int k = 0; k < N; k++)
        if (lane < L) shared[(warp * N + k) * L + lane] = mine[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) {
        all[k].start();
        before[k].start();
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (first + w == warp) before[k] = all[k];
            all[k] = State::join(all[k], shared[((first + w) * N + k) * L + lane % L]);
        }
    }
}

// N states in each of L lanes that a tile tells later ones. Each 32-bit word goes with a mark in one access, so no other
// order of accesses matters; what is told is 0 before.
template <int L, int N> struct ts_told {
    static const int WORDS = N * sizeof(State) / 4;
    TS_METHOD static volatile ts_u64* place(const Args& g, ts_i64 slot) {
        return (volatile ts_u64*)g.told + slot * (L * WORDS) + threadIdx.x % L;
    }
    TS_METHOD static void tell(const Args& g, ts_i64 slot, const State* states) {
        ts_u32 words[WORDS];
        memcpy(words, states, sizeof(words));
#pragma unroll
        for (int k = 0; k < WORDS; k++) place(g, slot)[k * L] = (ts_u64)1 << 32 | words[k];
    }
    TS_METHOD static void wait(const Args& g, ts_i64 slot, State* states) {
        ts_u64 found[WORDS];
        ts_u32 words[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) found[k] = place(g, slot)[k * L];
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            while (found[k] >> 32 == 0) found[k] = place(g, slot)[k * L];
            words[k] = (ts_u32)found[k];
        }
        memcpy(states, words, sizeof(words));
    }
};

// What comes before tile c of a strip, of which this tile has `all`. Blocks are begun in order, so tiles before this one
// were begun before it, those of one strip as far apart as there are strips. A block joins what the earlier tiles of its
// group told, in order; the last tile of a group tells what all have so far.
template <int L, int N>
TS_FN void ts_before_tile(const Args& g, ts_i64 strips, ts_i64 strip, ts_i64 c, const State* all, State* before) {
    const int group = THREADS / L, step = threadIdx.x / L;
    const ts_i64 base = c / group * group;
    // Places of groups come after those of tiles.
    const ts_i64 sums = (g.chunks + c / group) * strips + strip;
    const bool tells = step == 0 && c + 1 < g.chunks, last = c % group == group - 1;
    if (tells && !last) ts_told<L, N>::tell(g, c * strips + strip, all);
    State told[N], none[N];
#pragma unroll
    for (int k = 0; k < N; k++) told[k].start();
    if (base + step < c) ts_told<L, N>::wait(g, (base + step) * strips + strip, told);
#pragma unroll
    for (int k = 0; k < N; k++) ts_scan_lanes<32, L>(told[k], told[k]);
    ts_scan_warps<THREADS / 32, L, N>(told, none, before);
    if (base > 0) {
        ts_told<L, N>::wait(g, sums - strips, told);
#pragma unroll
        for (int k = 0; k < N; k++) before[k] = State::join(told[k], before[k]);
    }
    if (tells && last) {
#pragma unroll
        for (int k = 0; k < N; k++) told[k] = State::join(before[k], all[k]);
        ts_told<L, N>::tell(g, sums, told);
    }
}
