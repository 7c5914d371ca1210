// States of cumsum, cumprod, logcumsumexp, cummax and cummin, and scans of them over warps, blocks and tiles.
//
// T: memory type; OP: 0 sum, 1 product, 2 log-sum-exp, 3 maximum, 4 minimum; THREADS: of a block. The order of combinations
// depends on sizes only, so results do not depend on timing.
#pragma once
#include "common/reduce.cuh"

template <class A> struct ts_accumulate_type { typedef A type; };
template <> struct ts_accumulate_type<bool> { typedef ts_i64 type; };
typedef typename ts_accumulate_type<typename ts_opmath<T>::type>::type C;

// A strip is a sequence of tiles that are scanned one after the other: a row, or some adjacent columns. `tile_states`:
// memory of ts_tile_state.
#include "scan/args.cuh"

// logcumsumexp is never called for integers; these overloads only have to compile.
TS_FN ts_i64 ts_exp(ts_i64 x) { return x; }
TS_FN ts_i64 ts_log(ts_i64 x) { return x; }

// What a state has besides its value: nothing; an index (32 bits: longer dims are not scanned by these kernels); or a sum.
template <int KIND> struct ts_state_extra {
    TS_METHOD int get() const { return 0; }
    TS_METHOD void set(int) {}
};
template <> struct ts_state_extra<1> {
    ts_i32 extra;
    TS_METHOD ts_i32 get() const { return extra; }
    TS_METHOD void set(ts_i32 to) { extra = to; }
};
template <> struct ts_state_extra<2> {
    C extra;
    TS_METHOD C get() const { return extra; }
    TS_METHOD void set(C to) { extra = to; }
};

// A log-sum-exp is a maximum m and the sum of exp(x - m).
struct State : ts_state_extra<(OP >= 3 ? 1 : OP == 2 ? 2 : 0)> {
    C v;
    TS_METHOD void set_identity() {
        v = OP == 1 ? C(1) : OP == 2 ? ts_lowest(C()) : C(0);
        set(OP >= 3 ? -1 : 0);
    }
    TS_METHOD void init(C x, ts_i32 index) {
        v = x;
        set(OP >= 3 ? index : 1);
    }
    TS_METHOD C result() const { return OP == 2 ? v + ts_log((C)get()) : v; }
    // Of equal elements the later one is taken; after a NaN the result stays NaN.
    TS_METHOD static State combine(const State& l, const State& r) {
        State s = l;
        if (OP == 0) s.v = ts_plus(l.v, r.v);
        if (OP == 1) s.v = ts_times(l.v, r.v);
        if (OP == 2) {
            const bool less = l.v < r.v;
            const C high = less ? r.v : l.v, low = less ? l.v : r.v;
            // inf - inf would be NaN.
            const C scale = high == low ? C(1) : ts_exp(low - high);
            s.v = high;
            s.set(less ? r.get() + l.get() * scale : l.get() + r.get() * scale);
        }
        if (OP >= 3) {
            const bool later_wins = OP == 3 ? r.v >= l.v : r.v <= l.v;
            if (r.get() >= 0 && (l.get() < 0 || r.v != r.v || (l.v == l.v && later_wins))) s = r;
        }
        return s;
    }
};

// The state of another lane of a segment of `width`: `distance` lanes below, or lane `from`.
TS_FN State ts_shfl_up(const State& state, int distance, int width) {
    State other = state;
    other.v = __shfl_up_sync(0xffffffffu, state.v, distance, width);
    if (OP >= 2) other.set(__shfl_up_sync(0xffffffffu, state.get(), distance, width));
    return other;
}
TS_FN State ts_shfl(const State& state, int from, int width) {
    State other = state;
    other.v = __shfl_sync(0xffffffffu, state.v, from, width);
    if (OP >= 2) other.set(__shfl_sync(0xffffffffu, state.get(), from, width));
    return other;
}

// An exclusive scan over segments of WIDTH lanes, in which every STEP-th lane belongs to the same scan. `aggregate`: the
// combination of the whole segment.
template <int WIDTH, int STEP> TS_FN State ts_warp_scan(State state, State& aggregate) {
    const int lane = threadIdx.x % WIDTH;
#pragma unroll
    for (int d = STEP; d < WIDTH; d *= 2) {
        const State lower = ts_shfl_up(state, d, WIDTH);
        if (lane >= d) state = State::combine(lower, state);
    }
    aggregate = STEP < WIDTH ? ts_shfl(state, WIDTH - STEP + lane % STEP, WIDTH) : state;
    State exclusive = STEP < WIDTH ? ts_shfl_up(state, STEP, WIDTH) : state;
    if (lane < STEP) exclusive.set_identity();
    return exclusive;
}

// An exclusive scan over the aggregates of groups of WARPS warps: N states in each of L lanes. `aggregate`: of the whole
// group. Every thread of the block calls it.
template <int WARPS, int L, int N> TS_FN void ts_scan_warp_aggregates(const State* state, State* exclusive, State* aggregate) {
    __shared__ State shared[THREADS / 32 * N * L];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / WARPS * WARPS;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++)
        if (lane < L) shared[(warp * N + k) * L + lane] = state[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) {
        aggregate[k].set_identity();
        exclusive[k].set_identity();
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (first + w == warp) exclusive[k] = aggregate[k];
            aggregate[k] = State::combine(aggregate[k], shared[((first + w) * N + k) * L + lane % L]);
        }
    }
}

// The published states of tiles (as CUB's tile_state): N states in each of L lanes. Each 32-bit word is stored together with
// a flag in one access, so that no memory order is needed; the memory is zeroed before the launch.
template <int L, int N> struct ts_tile_state {
    static const int WORDS = N * sizeof(State) / 4;
    TS_METHOD static volatile ts_u64* address(const Args& g, ts_i64 slot) {
        return (volatile ts_u64*)g.tile_states + slot * (L * WORDS) + threadIdx.x % L;
    }
    TS_METHOD static void publish(const Args& g, ts_i64 slot, const State* states) {
        ts_u32 words[WORDS];
        memcpy(words, states, sizeof(words));
#pragma unroll
        for (int k = 0; k < WORDS; k++) address(g, slot)[k * L] = (ts_u64)1 << 32 | words[k];
    }
    TS_METHOD static void wait(const Args& g, ts_i64 slot, State* states) {
        ts_u64 found[WORDS];
        ts_u32 words[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; k++) found[k] = address(g, slot)[k * L];
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            while (found[k] >> 32 == 0) found[k] = address(g, slot)[k * L];
            words[k] = (ts_u32)found[k];
        }
        memcpy(states, words, sizeof(words));
    }
};

// The exclusive prefix of tile c of a strip, whose own aggregate is `aggregate`: a look-back over earlier tiles. Blocks start
// in order, so all earlier tiles have started; tiles of one strip are as many blocks apart as there are strips. A block
// combines, in order, the aggregates of the earlier tiles of its group; the last tile of a group publishes the prefix of the
// next group.
template <int L, int N>
TS_FN void ts_look_back(const Args& g, ts_i64 strips, ts_i64 strip, ts_i64 c, const State* aggregate, State* exclusive) {
    const int group = THREADS / L, step = threadIdx.x / L;
    const ts_i64 base = c / group * group;
    // Slots of groups follow those of tiles.
    const ts_i64 sums = (g.tiles + c / group) * strips + strip;
    const bool publishes = step == 0 && c + 1 < g.tiles, last = c % group == group - 1;
    if (publishes && !last) ts_tile_state<L, N>::publish(g, c * strips + strip, aggregate);
    State states[N], none[N];
#pragma unroll
    for (int k = 0; k < N; k++) states[k].set_identity();
    if (base + step < c) ts_tile_state<L, N>::wait(g, (base + step) * strips + strip, states);
#pragma unroll
    for (int k = 0; k < N; k++) ts_warp_scan<32, L>(states[k], states[k]);
    ts_scan_warp_aggregates<THREADS / 32, L, N>(states, none, exclusive);
    if (base > 0) {
        ts_tile_state<L, N>::wait(g, sums - strips, states);
#pragma unroll
        for (int k = 0; k < N; k++) exclusive[k] = State::combine(states[k], exclusive[k]);
    }
    if (publishes && last) {
#pragma unroll
        for (int k = 0; k < N; k++) states[k] = State::combine(exclusive[k], aggregate[k]);
        ts_tile_state<L, N>::publish(g, sums, states);
    }
}
