// Reading, writing and adding through index tensors (index, index_put, index_add, gather, scatter, embedding).
//
// The dense side (the result of a read, the source of a write) is iterated over DIMS merged dims, ITEMS elements for each
// thread, whose loads are in flight together. Each of COUNT index tensors adds its value times a stride to the offset in the
// indexed tensor. WIDE: offsets may be 2^31 and more. B: bytes of an element (copies); ADD: the type that is added to; FROM:
// the type of what is added; V: adjacent elements that have the same index and are added together; FOLD: scatter_reduce's
// 1 prod, 2 amin, 3 amax.
#include "math/math.cuh"

typedef typename ts_bytes<B>::type Cell;
#if WIDE
typedef ts_i64 Int;
typedef ts_u64 Winner;
#else
typedef ts_i32 Int;
typedef ts_u32 Winner;
#endif

#include "index/args.cuh"

enum { ITEMS = 4 };

struct Location {
    Int indexed, dense, cell;
    Winner position;
    bool valid;
};

// The element of the dense side at position i, and the elements of the index tensors for it.
struct Cursor {
    Location at;
    Int index[COUNT + 1];
};
TS_FN Cursor ts_cursor(const Args& g, Int i) {
    Cursor c = {{0, 0, 0, 0, true}, {0}};
    Int left = i;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; d--) {
        Int along = left;
        if (d > 0) {
            left = WIDE ? left / (Int)g.size[d] : (Int)ts_fast_div((ts_u32)left, g.divide[d]);
            along -= left * (Int)g.size[d];
        }
        c.at.dense += along * (Int)g.dense_stride[d];
        c.at.indexed += along * (Int)g.indexed_stride[d];
        c.at.position += (Winner)(along * (Int)g.position_stride[d]);
        c.at.cell += along * (Int)g.cell_stride[d];
#pragma unroll
        for (int k = 0; k < COUNT; k++) c.index[k] += along * (Int)g.index_stride[k][d];
    }
    return c;
}

// `report`: whether indices out of range are reported.
TS_FN Location ts_locate(const Args& g, const Cursor& c, const ts_i64* written, bool report) {
    Location p = c.at;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const ts_i64 size = g.bound[k];
        if (k == 0 && g.has_skipped && written[k] == (ts_i64)g.skipped) {
            p.valid = false;
            continue;
        }
        const ts_i64 value = written[k] < 0 && g.wrap_negative ? written[k] + size : written[k];
        if (value < 0 || value >= size) {
            if (report) ts_fault(g.fault, (ts_u32)g.kind, (ts_u32)g.dim[k], p.position, written[k], size);
            p.valid = false;
            continue;
        }
        p.indexed += (Int)value * (Int)g.value_stride[k];
        p.cell += (Int)value * (Int)g.value_cell_stride[k];
    }
    return p;
}

// The locations of a thread's elements; those past the end are not valid.
TS_FN void ts_locate_all(const Args& g, Location* p, bool report) {
    const ts_u64 first = (ts_u64)blockIdx.x * (256 * ITEMS) + threadIdx.x;
    Cursor c[ITEMS];
    ts_i64 written[ITEMS][COUNT + 1];
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        const ts_u64 i = first + 256 * e;
        c[e] = ts_cursor(g, (Int)(i < g.n ? i : 0));
#pragma unroll
        for (int k = 0; k < COUNT; k++) written[e][k] = g.index[k][c[e].index[k]];
    }
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        if (first + 256 * e < g.n) p[e] = ts_locate(g, c[e], written[e], report);
        else p[e].valid = false;
    }
}

TS_KERNEL void __launch_bounds__(256) ts_index_get(const __grid_constant__ Args g) {
    Location p[ITEMS];
    Cell cells[ITEMS];
    const ts_u64 first = (ts_u64)blockIdx.x * (256 * ITEMS) + threadIdx.x;
    ts_locate_all(g, p, true);
#pragma unroll
    for (int e = 0; e < ITEMS; e++) cells[e] = p[e].valid ? ((const Cell*)g.indexed)[p[e].indexed] : Cell{};
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (first + 256 * e < g.n) ((Cell*)g.dense)[p[e].dense] = cells[e];
}

// index_put with duplicate indices: with `winner` the last entry stays. Entries elect the highest position by atomicMax, and
// the winner writes. Without it all write, in no order.
TS_KERNEL void __launch_bounds__(256) ts_elect_last(const __grid_constant__ Args g) {
    Location p[ITEMS];
    ts_locate_all(g, p, true);
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (p[e].valid) atomicMax((Winner*)g.winner + p[e].cell, p[e].position + 1);
}
TS_KERNEL void __launch_bounds__(256) ts_index_put(const __grid_constant__ Args g) {
    Location p[ITEMS];
    ts_locate_all(g, p, !g.winner);
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (p[e].valid && g.winner) p[e].valid = ((const Winner*)g.winner)[p[e].cell] == p[e].position + 1;
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (p[e].valid) ((Cell*)g.indexed)[p[e].indexed] = ((const Cell*)g.dense)[p[e].dense];
}

TS_FN void ts_atomic_add(float* to, float x) { atomicAdd(to, x); }
TS_FN void ts_atomic_add(double* to, double x) { atomicAdd(to, x); }
TS_FN void ts_atomic_add(ts_i32* to, ts_i64 x) { atomicAdd((ts_u32*)to, (ts_u32)x); }
TS_FN void ts_atomic_add(ts_i64* to, ts_i64 x) { atomicAdd((ts_u64*)to, (ts_u64)x); }

// Adds V adjacent elements. Hopper adds four floats by one instruction.
template <class TO, class C> TS_FN void ts_atomic_add_all(TO* to, const C* x) {
#pragma unroll
    for (int v = 0; v < V; v++) ts_atomic_add(to + v, x[v]);
}
#if !defined(TS_HOST) && V == 4 && __CUDA_ARCH__ >= 900
TS_FN void ts_atomic_add_all(float* to, const float* x) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(x[0]), "f"(x[1]),
        "f"(x[2]), "f"(x[3])
        : "memory");
}
#endif

TS_KERNEL void __launch_bounds__(256) ts_index_add(const __grid_constant__ Args g) {
    typedef typename ts_opmath<ADD>::type C;
    Location p[ITEMS];
    ts_vec<FROM, V> from[ITEMS];
    ts_locate_all(g, p, true);
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (p[e].valid) from[e] = ((const ts_vec<FROM, V>*)g.dense)[p[e].dense];
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        if (!p[e].valid) continue;
        C x[V];
#pragma unroll
        for (int v = 0; v < V; v++) {
            x[v] = (C)ts_upcast(from[e].x[v]);
            if (g.factor != 1.0) x[v] = (C)(x[v] * (C)g.factor);
        }
        ts_atomic_add_all((ADD*)g.indexed + (ts_i64)p[e].indexed * V, x);
    }
}

template <int N> struct ts_atomic_word { typedef ts_u64 type; };
template <> struct ts_atomic_word<4> { typedef ts_u32 type; };
typedef typename ts_atomic_word<(int)sizeof(ADD)>::type Bits;

TS_FN void ts_fold(ADD* to, FROM from) {
    typedef typename ts_opmath<ADD>::type C;
    const C x = (C)ts_upcast(from);
    Bits* at = (Bits*)to;
    Bits expected = *(volatile Bits*)at;
    for (;;) {
        union { Bits bits; ADD value; } old_bits, new_bits;
        old_bits.bits = expected;
        const C old = ts_upcast(old_bits.value);
        // NaN propagates.
        const C reduced = FOLD == 1 ? old * x : old != old ? old : x != x ? x : (FOLD == 2 ? x < old : x > old) ? x : old;
        new_bits.value = ts_downcast<ADD>(reduced);
        if (new_bits.bits == expected) return;
        const Bits previous = atomicCAS(at, expected, new_bits.bits);
        if (previous == expected) return;
        expected = previous;
    }
}

TS_KERNEL void __launch_bounds__(256) ts_scatter_reduce(const __grid_constant__ Args g) {
    Location p[ITEMS];
    ts_locate_all(g, p, true);
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (p[e].valid) ts_fold((ADD*)g.indexed + p[e].indexed, ((const FROM*)g.dense)[p[e].dense]);
}

// scatter_reduce's mean. x: n sums; winner: the counts (32 bits), one for `count` adjacent elements. Integer means round
// down.
TS_KERNEL void __launch_bounds__(256) ts_scatter_mean(const __grid_constant__ Args g) {
    typedef typename ts_opmath<ADD>::type C;
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i32 count = ((const ts_i32*)g.winner)[i / g.count];
    if (count < 2) return;
    const C sum = ts_upcast(((ADD*)g.indexed)[i]);
    const bool is_integer = (C)0.5 == (C)0;
    const C floored = (C)((ts_int(sum) - (ts_int(sum) < 0 ? count - 1 : 0)) / count);
    ((ADD*)g.indexed)[i] = ts_downcast<ADD>(is_integer ? floored : (C)((double)sum / count));
}
