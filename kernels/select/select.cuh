// Elements that are not zero: how many, where, and those of another tensor. T: type of what is counted; B: bytes of an
// element that is copied. Blocks count their part, the counts are summed up in order, then each block knows where it writes.
#include "math/math.cuh"

template <int N> struct ts_bytes { typedef ts_u64 type; };
template <> struct ts_bytes<1> { typedef ts_u8 type; };
template <> struct ts_bytes<2> { typedef ts_i16 type; };
template <> struct ts_bytes<4> { typedef ts_u32 type; };
typedef typename ts_bytes<B>::type Cell;

struct Args {
    const T* flags;
    const Cell* x;
    Cell* y;
    ts_i64 *at, *counts;
    ts_i64 n, blocks, limit, ndim;
    // Of as many dims as a tensor may have.
    ts_i64 size[16];
    void* fault;
};

// 1024 elements a block, four neighbours a thread. Gives how many come before this thread's in the block; `all` is the sum.
TS_FN int ts_before_me(int mine, int& all) {
    __shared__ int shared[8];
    int total = mine;
    for (int d = 1; d < 32; d *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, total, d);
        if ((int)(threadIdx.x % 32) >= d) total += below;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 31) shared[threadIdx.x / 32] = total;
    __syncthreads();
    int before = total - mine;
    all = 0;
    for (int w = 0; w < 8; w++) {
        if (w < (int)(threadIdx.x / 32)) before += shared[w];
        all += shared[w];
    }
    return before;
}
TS_FN bool ts_set(const Args& g, ts_i64 i) { return i < g.n && ts_up(g.flags[i]) != 0; }

TS_KERNEL void __launch_bounds__(256) ts_count(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int mine = 0, all;
#pragma unroll
    for (int k = 0; k < 4; k++) mine += ts_set(g, first + k);
    ts_before_me(mine, all);
    if (threadIdx.x == 0) g.counts[blockIdx.x] = all;
}

// counts[b] becomes the sum of those before b, counts[blocks] that of all; by one block.
TS_KERNEL void __launch_bounds__(256) ts_count_sums(const __grid_constant__ Args g) {
    ts_i64 carry = 0;
    for (ts_i64 from = 0; from < g.blocks; from += 256) {
        const ts_i64 i = from + threadIdx.x;
        int all;
        const int mine = i < g.blocks ? (int)g.counts[i] : 0, before = ts_before_me(mine, all);
        if (i < g.blocks) g.counts[i] = carry + before;
        carry += all;
    }
    if (threadIdx.x == 0) {
        g.counts[g.blocks] = carry;
        if (g.at) g.at[0] = carry;
    }
}

// y: the elements of x, or at: coordinates, of what is set; at most `limit`.
TS_KERNEL void __launch_bounds__(256) ts_select(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int mine = 0, all;
#pragma unroll
    for (int k = 0; k < 4; k++) mine += ts_set(g, first + k);
    ts_i64 to = g.counts[blockIdx.x] + ts_before_me(mine, all);
    for (int k = 0; k < 4; k++) {
        if (!ts_set(g, first + k) || to >= g.limit) continue;
        if (g.y) g.y[to] = g.x[first + k];
        ts_i64 rest = first + k;
        if (g.at)
            for (int d = (int)g.ndim - 1; d >= 0; d--) {
                g.at[to * g.ndim + d] = rest % g.size[d];
                rest /= g.size[d];
            }
        to++;
    }
}

// at: how many are set up to each element, less one.
TS_KERNEL void __launch_bounds__(256) ts_ranks(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int mine = 0, all;
#pragma unroll
    for (int k = 0; k < 4; k++) mine += ts_set(g, first + k);
    ts_i64 rank = g.counts[blockIdx.x] + ts_before_me(mine, all) - 1;
    for (int k = 0; k < 4 && first + k < g.n; k++) {
        rank += ts_set(g, first + k);
        g.at[first + k] = rank;
    }
}

// y: the `limit` elements of x in order where something is set; where there are too few is told.
TS_KERNEL void __launch_bounds__(256) ts_put(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int mine = 0, all;
#pragma unroll
    for (int k = 0; k < 4; k++) mine += ts_set(g, first + k);
    ts_i64 rank = g.counts[blockIdx.x] + ts_before_me(mine, all);
    for (int k = 0; k < 4; k++) {
        if (!ts_set(g, first + k)) continue;
        if (rank < g.limit) g.y[first + k] = g.x[rank];
        else ts_fault(g.fault, TS_INDEX, 0, (ts_u64)(first + k), g.counts[g.blocks], g.limit);
        rank++;
    }
}
