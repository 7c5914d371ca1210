// count_nonzero, nonzero, masked_select and masked_scatter, by stream compaction. T: type of the flags; B: bytes of an
// element that is copied. Blocks count their part, the counts are scanned, then each block knows where it writes.
#include "math/math.cuh"

typedef typename ts_bytes<B>::type Cell;

#include "select/args.cuh"

// An exclusive scan over the 256 threads of a block, each of which has the count of four adjacent elements.
TS_FN int ts_block_exclusive_scan(int count, int& block_sum) {
    __shared__ int shared[8];
    int total = count;
    for (int d = 1; d < 32; d *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, total, d);
        if ((int)(threadIdx.x % 32) >= d) total += below;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 31) shared[threadIdx.x / 32] = total;
    __syncthreads();
    int before = total - count;
    block_sum = 0;
    for (int w = 0; w < 8; w++) {
        if (w < (int)(threadIdx.x / 32)) before += shared[w];
        block_sum += shared[w];
    }
    return before;
}
TS_FN bool ts_flag(const Args& g, ts_i64 i) { return i < g.n && ts_upcast(g.flags[i]) != 0; }

TS_KERNEL void __launch_bounds__(256) ts_block_counts(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int count = 0, block_sum;
#pragma unroll
    for (int k = 0; k < 4; k++) count += ts_flag(g, first + k);
    ts_block_exclusive_scan(count, block_sum);
    if (threadIdx.x == 0) g.counts[blockIdx.x] = block_sum;
}

// An exclusive scan of the counts of blocks; counts[blocks] becomes the total. One block.
TS_KERNEL void __launch_bounds__(256) ts_scan_block_counts(const __grid_constant__ Args g) {
    ts_i64 carry = 0;
    for (ts_i64 from = 0; from < g.blocks; from += 256) {
        const ts_i64 i = from + threadIdx.x;
        int block_sum;
        const int count = i < g.blocks ? (int)g.counts[i] : 0, before = ts_block_exclusive_scan(count, block_sum);
        if (i < g.blocks) g.counts[i] = carry + before;
        carry += block_sum;
    }
    if (threadIdx.x == 0) {
        g.counts[g.blocks] = carry;
        if (g.indices) g.indices[0] = carry;
    }
}

// y: the flagged elements of x; indices: their coordinates; `limit` at most.
TS_KERNEL void __launch_bounds__(256) ts_select_flagged(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int count = 0, block_sum;
#pragma unroll
    for (int k = 0; k < 4; k++) count += ts_flag(g, first + k);
    ts_i64 to = g.counts[blockIdx.x] + ts_block_exclusive_scan(count, block_sum);
    for (int k = 0; k < 4; k++) {
        if (!ts_flag(g, first + k) || to >= g.limit) continue;
        if (g.y) g.y[to] = g.x[first + k];
        ts_i64 rest = first + k;
        if (g.indices)
            for (int d = (int)g.ndim - 1; d >= 0; d--) {
                g.indices[to * g.ndim + d] = rest % g.size[d];
                rest /= g.size[d];
            }
        to++;
    }
}

// indices: the rank of each element: flagged elements up to it, minus one.
TS_KERNEL void __launch_bounds__(256) ts_flag_ranks(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int count = 0, block_sum;
#pragma unroll
    for (int k = 0; k < 4; k++) count += ts_flag(g, first + k);
    ts_i64 rank = g.counts[blockIdx.x] + ts_block_exclusive_scan(count, block_sum) - 1;
    for (int k = 0; k < 4 && first + k < g.n; k++) {
        rank += ts_flag(g, first + k);
        g.indices[first + k] = rank;
    }
}

// masked_scatter. y: takes elements of x, `limit` of them, in order where flagged; it is a fault if there are too few.
TS_KERNEL void __launch_bounds__(256) ts_masked_scatter(const __grid_constant__ Args g) {
    const ts_i64 first = (ts_i64)blockIdx.x * 1024 + threadIdx.x * 4;
    int count = 0, block_sum;
#pragma unroll
    for (int k = 0; k < 4; k++) count += ts_flag(g, first + k);
    ts_i64 rank = g.counts[blockIdx.x] + ts_block_exclusive_scan(count, block_sum);
    for (int k = 0; k < 4; k++) {
        if (!ts_flag(g, first + k)) continue;
        if (rank < g.limit) g.y[first + k] = g.x[rank];
        else ts_fault(g.fault, TS_INDEX, 0, (ts_u64)(first + k), g.counts[g.blocks], g.limit);
        rank++;
    }
}
