// Places that index tensors name: reading, writing and adding, one thread for each element of the dense side.
//
// The dense side is walked over at most 8 merged dims. Each of `count` index tensors moves the other side by its value.
// B: bytes of an element (copies); ADD: the type that is added to; FROM: the type of what is added; FOLD: 1 for products, 2
// for the smallest, 3 for the largest.
#include "math/math.cuh"

template <int N> struct ts_bytes { typedef ts_vec<ts_u64, 2> type; };
template <> struct ts_bytes<1> { typedef ts_u8 type; };
template <> struct ts_bytes<2> { typedef ts_i16 type; };
template <> struct ts_bytes<4> { typedef ts_u32 type; };
template <> struct ts_bytes<8> { typedef ts_u64 type; };
typedef typename ts_bytes<B>::type Cell;

struct Args {
    char *x, *other;
    ts_u64* winner;
    void* fault;
    ts_u64 n, dims, count, wraps, kind, skips, skipped;
    double factor;
    ts_u64 size[8];
    // Steps along each dim: of the dense side, of the other side, of the position in the index, of the winner's cell.
    ts_i64 other_step[8], x_step[8], position_step[8], cell_step[8];
    ts_i64 index_step[8][8];
    const ts_i64* index[8];
    // For each index: its bound, how far its value moves the other side and the cell, and the dim that a fault names.
    ts_i64 bound[8], value_step[8], value_cell[8], dim[8];
};

struct Place {
    ts_i64 x, other, cell;
    ts_u64 position;
    bool good;
};

// TELL: report bad indices.
TS_FN Place ts_place(const Args& g, ts_u64 i, bool tell) {
    Place p = {0, 0, 0, 0, true};
    ts_i64 at[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int d = (int)g.dims - 1; d >= 0; d--) {
        ts_i64 c;
        if (d == 0) c = (ts_i64)i;
        else if (i >> 32) c = i % g.size[d], i /= g.size[d];
        else c = (ts_u32)i % (ts_u32)g.size[d], i = (ts_u32)i / (ts_u32)g.size[d];
        p.other += c * g.other_step[d];
        p.x += c * g.x_step[d];
        p.position += c * g.position_step[d];
        p.cell += c * g.cell_step[d];
        for (int k = 0; k < (int)g.count; k++) at[k] += c * g.index_step[k][d];
    }
    for (int k = 0; k < (int)g.count; k++) {
        const ts_i64 written = g.index[k][at[k]], size = g.bound[k];
        if (k == 0 && g.skips && written == (ts_i64)g.skipped) {
            p.good = false;
            continue;
        }
        const ts_i64 value = written < 0 && g.wraps ? written + size : written;
        if (value < 0 || value >= size) {
            if (tell) ts_fault(g.fault, (ts_u32)g.kind, (ts_u32)g.dim[k], p.position, written, size);
            p.good = false;
            continue;
        }
        p.x += value * g.value_step[k];
        p.cell += value * g.value_cell[k];
    }
    return p;
}

TS_KERNEL void __launch_bounds__(256) ts_read(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Place p = ts_place(g, i, true);
    ((Cell*)g.other)[p.other] = p.good ? ((const Cell*)g.x)[p.x] : Cell{};
}

// Of several entries that name one place the last stays: entries vote with their positions, and the winner writes.
TS_KERNEL void __launch_bounds__(256) ts_vote(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Place p = ts_place(g, i, true);
    if (p.good) atomicMax(g.winner + p.cell, p.position + 1);
}
TS_KERNEL void __launch_bounds__(256) ts_write(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Place p = ts_place(g, i, false);
    if (p.good && g.winner[p.cell] == p.position + 1) ((Cell*)g.x)[p.x] = ((const Cell*)g.other)[p.other];
}

TS_FN void ts_add_to(float* to, float x) { atomicAdd(to, x); }
TS_FN void ts_add_to(double* to, double x) { atomicAdd(to, x); }
TS_FN void ts_add_to(ts_i32* to, ts_i64 x) { atomicAdd((ts_u32*)to, (ts_u32)x); }
TS_FN void ts_add_to(ts_i64* to, ts_i64 x) { atomicAdd((ts_u64*)to, (ts_u64)x); }

TS_KERNEL void __launch_bounds__(256) ts_add(const __grid_constant__ Args g) {
    typedef typename ts_of<ADD>::cls C;
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Place p = ts_place(g, i, true);
    if (!p.good) return;
    const C x = (C)ts_up(((const FROM*)g.other)[p.other]);
    ts_add_to((ADD*)g.x + p.x, g.factor == 1.0 ? x : (C)(x * (C)g.factor));
}

template <int N> struct ts_cell { typedef ts_u64 type; };
template <> struct ts_cell<4> { typedef ts_u32 type; };
typedef typename ts_cell<(int)sizeof(ADD)>::type Bits;

TS_KERNEL void __launch_bounds__(256) ts_fold(const __grid_constant__ Args g) {
    typedef typename ts_of<ADD>::cls C;
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const Place p = ts_place(g, i, true);
    if (!p.good) return;
    const C x = (C)ts_up(((const FROM*)g.other)[p.other]);
    Bits* at = (Bits*)((ADD*)g.x + p.x);
    Bits seen = *(volatile Bits*)at;
    for (;;) {
        union { Bits bits; ADD value; } was, next;
        was.bits = seen;
        const C old = ts_up(was.value);
        // NaN stays, and wins.
        const C folded = FOLD == 1 ? old * x : old != old ? old : x != x ? x : (FOLD == 2 ? x < old : x > old) ? x : old;
        next.value = ts_down<ADD>(folded);
        if (next.bits == seen) return;
        const Bits got = atomicCAS(at, seen, next.bits);
        if (got == seen) return;
        seen = got;
    }
}

// x: sums, n of them; winner: how many each is of (32 bits), a number for `count` neighbours. Means, those of integers
// rounded down.
TS_KERNEL void __launch_bounds__(256) ts_mean(const __grid_constant__ Args g) {
    typedef typename ts_of<ADD>::cls C;
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    const ts_i32 count = ((const ts_i32*)g.winner)[i / g.count];
    if (count < 2) return;
    const C sum = ts_up(((ADD*)g.x)[i]);
    const bool whole = (C)0.5 == (C)0;
    const C low = (C)((ts_int(sum) - (ts_int(sum) < 0 ? count - 1 : 0)) / count);
    ((ADD*)g.x)[i] = ts_down<ADD>(whole ? low : (C)((double)sum / count));
}
