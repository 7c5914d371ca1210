// Reading, writing and adding through index tensors (index, index_put, index_add, gather, scatter, embedding), one thread for
// each element of the dense side.
//
// The dense side (the result of a read, the source of a write) is iterated over at most 8 merged dims. Each of `count` index
// tensors adds its value times a stride to the offset in the indexed tensor. B: bytes of an element (copies); ADD: the type
// that is added to; FROM: the type of what is added; FOLD: scatter_reduce's 1 prod, 2 amin, 3 amax.
#include "math/math.cuh"

typedef typename ts_bytes<B>::type Cell;

#include "index/args.cuh"

struct Location {
    ts_i64 indexed, dense, cell;
    ts_u64 position;
    bool valid;
};

// `report`: whether indices out of range are reported.
TS_FN Location ts_locate(const Args& g, ts_u64 i, bool report) {
    Location p = {0, 0, 0, 0, true};
    ts_i64 at[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int d = (int)g.dims - 1; d >= 0; d--) {
        ts_i64 c;
        if (d == 0) c = (ts_i64)i;
        else if (i >> 32) c = i % g.size[d], i /= g.size[d];
        else c = (ts_u32)i % (ts_u32)g.size[d], i = (ts_u32)i / (ts_u32)g.size[d];
        p.dense += c * g.dense_stride[d];
        p.indexed += c * g.indexed_stride[d];
        p.position += c * g.position_stride[d];
        p.cell += c * g.cell_stride[d];
        for (int k = 0; k < (int)g.count; k++) at[k] += c * g.index_stride[k][d];
    }
    for (int k = 0; k < (int)g.count; k++) {
        const ts_i64 written = g.index[k][at[k]], size = g.bound[k];
        if (k == 0 && g.has_skipped && written == (ts_i64)g.skipped) {
            p.valid = false;
            continue;
        }
        const ts_i64 value = written < 0 && g.wrap_negative ? written + size : written;
        if (value < 0 || value >= size) {
            if (report) ts_fault(g.fault, (ts_u32)g.kind, (ts_u32)g.dim[k], p.position, written, size);
            p.valid = false;
            continue;
        }
        p.indexed += value * g.value_stride[k];
        p.cell += value * g.value_cell_stride[k];
    }
    return p;
}

TS_KERNEL void __launch_bounds__(256) ts_index_get(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Location p = ts_locate(g, i, true);
    ((Cell*)g.dense)[p.dense] = p.valid ? ((const Cell*)g.indexed)[p.indexed] : Cell{};
}

// index_put with duplicate indices: the last entry wins. Entries elect the highest position by atomicMax, and the winner
// writes.
TS_KERNEL void __launch_bounds__(256) ts_elect_last(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Location p = ts_locate(g, i, true);
    if (p.valid) atomicMax(g.winner + p.cell, p.position + 1);
}
TS_KERNEL void __launch_bounds__(256) ts_index_put(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Location p = ts_locate(g, i, false);
    if (p.valid && g.winner[p.cell] == p.position + 1) ((Cell*)g.indexed)[p.indexed] = ((const Cell*)g.dense)[p.dense];
}

TS_FN void ts_atomic_add(float* to, float x) { atomicAdd(to, x); }
TS_FN void ts_atomic_add(double* to, double x) { atomicAdd(to, x); }
TS_FN void ts_atomic_add(ts_i32* to, ts_i64 x) { atomicAdd((ts_u32*)to, (ts_u32)x); }
TS_FN void ts_atomic_add(ts_i64* to, ts_i64 x) { atomicAdd((ts_u64*)to, (ts_u64)x); }

TS_KERNEL void __launch_bounds__(256) ts_index_add(const __grid_constant__ Args g) {
    typedef typename ts_opmath<ADD>::type C;
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Location p = ts_locate(g, i, true);
    if (!p.valid) return;
    const C x = (C)ts_upcast(((const FROM*)g.dense)[p.dense]);
    ts_atomic_add((ADD*)g.indexed + p.indexed, g.factor == 1.0 ? x : (C)(x * (C)g.factor));
}

template <int N> struct ts_atomic_word { typedef ts_u64 type; };
template <> struct ts_atomic_word<4> { typedef ts_u32 type; };
typedef typename ts_atomic_word<(int)sizeof(ADD)>::type Bits;

TS_KERNEL void __launch_bounds__(256) ts_scatter_reduce(const __grid_constant__ Args g) {
    typedef typename ts_opmath<ADD>::type C;
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Location p = ts_locate(g, i, true);
    if (!p.valid) return;
    const C x = (C)ts_upcast(((const FROM*)g.dense)[p.dense]);
    Bits* at = (Bits*)((ADD*)g.indexed + p.indexed);
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
