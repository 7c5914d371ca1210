// Accumulators of reductions: each has `init`, `add` (a value and its position) and `merge` (with the accumulator of a later
// part).
//
// The order of merges depends on shapes only, never on timing, so that results repeat bit for bit. Sizes are multiples of 4
// bytes, for shuffles.
#pragma once
#include "math/math.cuh"

TS_FN float ts_plus(float a, float b) { return a + b; }
TS_FN double ts_plus(double a, double b) { return a + b; }
TS_FN ts_i64 ts_plus(ts_i64 a, ts_i64 b) { return (ts_i64)((ts_u64)a + (ts_u64)b); }
TS_FN float ts_times(float a, float b) { return a * b; }
TS_FN double ts_times(double a, double b) { return a * b; }
TS_FN ts_i64 ts_times(ts_i64 a, ts_i64 b) { return ts_mul64(a, b); }
TS_FN float ts_lowest(float a) { return -ts_inf(a); }
TS_FN double ts_lowest(double a) { return -ts_inf(a); }
TS_FN ts_i64 ts_lowest(ts_i64) { return (ts_i64)0x8000000000000000ULL; }
TS_FN float ts_highest(float a) { return ts_inf(a); }
TS_FN double ts_highest(double a) { return ts_inf(a); }
TS_FN ts_i64 ts_highest(ts_i64) { return 0x7fffffffffffffffLL; }

#define TS_METHOD __device__ __forceinline__
template <class A> struct ts_sum {
    A v;
    TS_METHOD void init() { v = 0; }
    TS_METHOD void add(A x, ts_i64) { v = ts_plus(v, x); }
    TS_METHOD void merge(const ts_sum& o) { v = ts_plus(v, o.v); }
    TS_METHOD A result() const { return v; }
};
template <class A> struct ts_prod {
    A v;
    TS_METHOD void init() { v = 1; }
    TS_METHOD void add(A x, ts_i64) { v = ts_times(v, x); }
    TS_METHOD void merge(const ts_prod& o) { v = ts_times(v, o.v); }
    TS_METHOD A result() const { return v; }
};
template <class A> struct ts_min {
    A v;
    TS_METHOD void init() { v = ts_highest(A()); }
    TS_METHOD void add(A x, ts_i64) { v = x < v || x != x ? x : v; }
    TS_METHOD void merge(const ts_min& o) { add(o.v, 0); }
    TS_METHOD A result() const { return v; }
};
template <class A> struct ts_max {
    A v;
    TS_METHOD void init() { v = ts_lowest(A()); }
    TS_METHOD void add(A x, ts_i64) { v = x > v || x != x ? x : v; }
    TS_METHOD void merge(const ts_max& o) { add(o.v, 0); }
    TS_METHOD A result() const { return v; }
};
struct ts_any {
    ts_u32 v;
    TS_METHOD void init() { v = 0; }
    TS_METHOD void add(bool x, ts_i64) { v |= x; }
    TS_METHOD void merge(const ts_any& o) { v |= o.v; }
    TS_METHOD bool result() const { return v != 0; }
};
struct ts_all {
    ts_u32 v;
    TS_METHOD void init() { v = 1; }
    TS_METHOD void add(bool x, ts_i64) { v &= x; }
    TS_METHOD void merge(const ts_all& o) { v &= o.v; }
    TS_METHOD bool result() const { return v != 0; }
};
// argmin (S = -1) or argmax (S = 1): the first position of the extreme value, of type I. NaN counts as the extreme. Without
// branches: where a warp's threads would take different ones, three quarters of the time goes. Positions are added in rising
// order, so that equal values change nothing; where all are the value of `init`, the first position is the result.
template <class A, int S, class I> struct ts_arg {
    A v;
    I index;
    static TS_METHOD bool beats(A x, A y) { return (S < 0 ? x < y : x > y) | ((x != x) & (y == y)); }
    TS_METHOD void init() {
        v = S < 0 ? ts_highest(A()) : ts_lowest(A());
        index = (I)(~0ULL >> 1);
    }
    TS_METHOD void add(A x, ts_i64 i) {
        const bool better = beats(x, v);
        v = better ? x : v;
        index = better ? (I)i : index;
    }
    TS_METHOD void merge(const ts_arg& o) {
        const bool better = beats(o.v, v) | (!beats(v, o.v) & (o.index < index));
        v = better ? o.v : v;
        index = better ? o.index : index;
    }
    TS_METHOD ts_i64 result() const { return index == (I)(~0ULL >> 1) ? 0 : (ts_i64)index; }
};

// The accumulator of the lane `distance` above, within segments of `width` lanes (__shfl_down_sync).
template <class A> TS_FN A ts_shfl_down(const A& mine, int distance, int width) {
    A other;
    const ts_u32* words = (const ts_u32*)&mine;
    ts_u32* to = (ts_u32*)&other;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(A) / 4); k++) to[k] = __shfl_down_sync(0xffffffffu, words[k], distance, width);
    return other;
}

// Loads an accumulator that another block has written; past L1, which is not coherent.
template <class A> TS_FN A ts_load_partial(const A* words) {
    A acc;
    ts_u32* to = (ts_u32*)&acc;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(A) / 4); k++) to[k] = __ldcg((const ts_u32*)words + k);
    return acc;
}

// Reduces the accumulators of `lanes` adjacent threads (a power of two; whole warps beyond 32) into the first thread's. Every
// thread of the block calls it; `shared` has an entry for each warp of the block.
template <class A> TS_FN void ts_group_reduce(A& acc, int lanes, A* shared) {
    int width = lanes < 32 ? lanes : 32;
    for (int d = width / 2; d > 0; d /= 2) acc.merge(ts_shfl_down(acc, d, width));
    if (lanes > 32) {
        int warp = threadIdx.x / 32, warps = lanes / 32;
        __syncthreads();
        if (threadIdx.x % 32 == 0) shared[warp] = acc;
        __syncthreads();
        if (threadIdx.x % lanes == 0)
            for (int k = 1; k < warps; k++) acc.merge(shared[warp + k]);
    }
}
