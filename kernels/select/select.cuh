// count_nonzero, nonzero, masked_select and masked_scatter, by stream compaction in one pass. T: type of the flags; B: bytes of
// an element that is copied.
#include "math/math.cuh"
#include "common/flags.cuh"
#include "common/look_back.cuh"

typedef typename ts_bytes<B>::type Cell;

#include "select/args.cuh"

TS_FN bool ts_flag(const Args& g, ts_i64 i) { return i < g.n && ts_upcast(g.flags[i]) != 0; }

// total: the number of flags; 0 before the launch.
TS_KERNEL void __launch_bounds__(256) ts_count_flags(const __grid_constant__ Args g) {
    __shared__ int sums[8];
    const ts_i64 step = (ts_i64)gridDim.x * 256;
    int count = 0;
    for (ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x; i < g.n; i += 8 * step)
#pragma unroll
        for (int k = 0; k < 8; k++) count += ts_flag(g, i + k * step);
#pragma unroll
    for (int d = 16; d > 0; d /= 2) count += __shfl_xor_sync(0xffffffffu, count, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x > 0) return;
    ts_u64 sum = 0;
    for (int w = 0; w < 8; w++) sum += (ts_u64)sums[w];
    if (sum) atomicAdd((ts_u64*)g.total, sum);
}

// The flagged elements of a tile, in order: the number of those in earlier tiles, and the places of its own.
struct ts_flagged {
    ts_i64 first, before;
    int count;
    unsigned short* places;
};
TS_FN ts_flagged ts_flagged_of_tile(const Args& g) {
    __shared__ unsigned short places[TS_FLAG_TILE];
    const ts_i64 tile = ts_next_tile(g.ticket), first = tile * TS_FLAG_TILE;
    ts_flag_tile flags;
    flags.load([&](int at) { return ts_flag(g, first + at); });
#pragma unroll
    for (int k = 0; k < TS_FLAG_ITEMS; k++)
        if (flags.is_set(k)) places[flags.rank(k)] = (unsigned short)flags.index(k);
    const ts_i64 before = ts_look_back_sum(g.states, tile, flags.count);
    return ts_flagged{first, before, flags.count, places};
}

// y: the flagged elements of x, `limit` at most.
TS_KERNEL void __launch_bounds__(TS_FLAG_THREADS) ts_select_flagged(const __grid_constant__ Args g) {
    const ts_flagged f = ts_flagged_of_tile(g);
    for (int j = threadIdx.x; j < f.count && f.before + j < g.limit; j += TS_FLAG_THREADS)
        g.y[f.before + j] = g.x[f.first + f.places[j]];
}

// The coordinates of a position; I: an integer that holds it.
template <class I> TS_FN void ts_store_coordinates(const Args& g, I position, ts_i64* to) {
    for (int d = (int)g.ndim - 1; d > 0; d--) {
        const I size = (I)g.size[d], line = position / size;
        to[d] = (ts_i64)(position - line * size);
        position = line;
    }
    to[0] = (ts_i64)position;
}
// indices: the coordinates of the flagged elements, `limit` at most.
TS_KERNEL void __launch_bounds__(TS_FLAG_THREADS) ts_flagged_indices(const __grid_constant__ Args g) {
    const ts_flagged f = ts_flagged_of_tile(g);
    for (int j = threadIdx.x; j < f.count && f.before + j < g.limit; j += TS_FLAG_THREADS) {
        const ts_i64 position = f.first + f.places[j];
        ts_i64* to = g.indices + (f.before + j) * g.ndim;
        if (g.ndim == 0) continue;
        if (g.n <= 0xffffffffLL) ts_store_coordinates<ts_u32>(g, (ts_u32)position, to);
        else ts_store_coordinates<ts_i64>(g, position, to);
    }
}

// indices: the rank of each element: flagged elements up to it, minus one; total: of all.
TS_KERNEL void __launch_bounds__(TS_FLAG_THREADS) ts_flag_ranks(const __grid_constant__ Args g) {
    const ts_i64 tile = ts_next_tile(g.ticket), first = tile * TS_FLAG_TILE;
    ts_flag_tile flags;
    flags.load([&](int at) { return ts_flag(g, first + at); });
    const ts_i64 before = ts_look_back_sum(g.states, tile, flags.count);
#pragma unroll
    for (int k = 0; k < TS_FLAG_ITEMS; k++) {
        const ts_i64 i = first + flags.index(k);
        if (i < g.n) g.indices[i] = before + flags.rank(k) + flags.is_set(k) - 1;
    }
    if (threadIdx.x == 0 && first + TS_FLAG_TILE >= g.n) g.total[0] = before + flags.count;
}

// masked_scatter. y: takes elements of x, `limit` of them, in order where flagged; it is a fault if there are too few. total: the
// number of flags.
TS_KERNEL void __launch_bounds__(TS_FLAG_THREADS) ts_masked_scatter(const __grid_constant__ Args g) {
    const ts_flagged f = ts_flagged_of_tile(g);
    for (int j = threadIdx.x; j < f.count; j += TS_FLAG_THREADS) {
        const ts_i64 to = f.first + f.places[j], rank = f.before + j;
        if (rank < g.limit) g.y[to] = g.x[rank];
        else ts_fault(g.fault, TS_INDEX, 0, (ts_u64)to, g.total[0], g.limit);
    }
}
