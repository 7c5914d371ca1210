// multinomial. T: memory type; weights are added as f64, in the order of the host (`kernel/random/multinomial`): a thread has a
// leaf of 8, SIDE leaves are a group, SIDE groups a block. Each of them adds what it holds one by one, so that cumulative weights
// never fall.
#include "math/math.cuh"
#include "random/philox.cuh"

#include "random/multinomial_args.cuh"

enum { LEAF = 8, SIDE = 16, THREADS = SIDE * SIDE, BLOCK = LEAF * THREADS };

// What is known of some weights: how many are positive; the last that is, and the first that is none: its place, or -1.
struct Seen {
    ts_i32 positive, last, bad;
};
TS_FN void ts_see(Seen& seen, const Seen& after) {
    seen.positive += after.positive;
    seen.last = after.last > seen.last ? after.last : seen.last;
    seen.bad = seen.bad >= 0 && (after.bad < 0 || seen.bad < after.bad) ? seen.bad : after.bad;
}
TS_FN void ts_see(Seen& seen, double p, ts_i32 place) {
    if (p > 0) {
        seen.positive++;
        seen.last = place;
    }
    if (seen.bad < 0 && !(p >= 0 && p < ts_inf(0.0))) seen.bad = place;
}
// What became of a row: its last category of positive weight, or -1, with a fault, where none can be drawn.
TS_FN void ts_judge(const Args& g, ts_i64 row, const Seen& seen) {
    const bool fails = seen.bad >= 0 || seen.positive == 0 || (!g.replacement && seen.positive < g.samples);
    if (fails) ts_fault(g.fault, TS_PROBABILITY, 0, (ts_u64)(row * g.n + (seen.bad < 0 ? 0 : seen.bad)), 0, 0);
    g.last[row] = fails ? -1 : seen.last;
}

// cumsum: cumulative weights within each block of a row's n categories; starts: those of the blocks; seen: what is known of
// each. `blocks` of a row.
TS_KERNEL void __launch_bounds__(THREADS) ts_block_weights(const __grid_constant__ Args g) {
    __shared__ double leaves[SIDE][SIDE + 1], groups[SIDE];
    __shared__ Seen warps[THREADS / 32];
    const int t = threadIdx.x;
    const ts_u32 row = blockIdx.x / (ts_u32)g.blocks, block = blockIdx.x - row * (ts_u32)g.blocks;
    const ts_i32 first = (ts_i32)block * BLOCK, n = (ts_i32)g.n - first;
    const T* x = g.x + (ts_i64)row * g.n + first;
    double p[LEAF], sum = 0;
    Seen seen = {0, -1, -1};
#pragma unroll
    for (int k = 0; k < LEAF; k++) {
        const bool exists = t * LEAF + k < n;
        p[k] = exists ? (double)ts_upcast(x[t * LEAF + k]) : 0;
        if (exists) ts_see(seen, p[k], first + t * LEAF + k);
        sum += p[k];
        p[k] = sum;
    }
    leaves[t / SIDE][t % SIDE] = sum;
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) {
        const Seen after = {__shfl_down_sync(0xffffffffu, seen.positive, lane), __shfl_down_sync(0xffffffffu, seen.last, lane),
            __shfl_down_sync(0xffffffffu, seen.bad, lane)};
        if (t % 32 + lane < 32) ts_see(seen, after);
    }
    if (t % 32 == 0) warps[t / 32] = seen;
    __syncthreads();
    if (t < SIDE) {
        double start = 0;
        for (int k = 0; k < SIDE; k++) {
            const double leaf = leaves[t][k];
            leaves[t][k] = start;
            start += leaf;
        }
        groups[t] = start;
    }
    __syncthreads();
    if (t == 0) {
        double start = 0;
        for (int k = 0; k < SIDE; k++) {
            const double group = groups[k];
            groups[k] = start;
            start += group;
        }
        g.starts[row * (g.blocks + 1) + block + 1] = start;
        for (int w = 1; w < THREADS / 32; w++) ts_see(seen, warps[w]);
        ((Seen*)g.seen)[blockIdx.x] = seen;
    }
    __syncthreads();
    if (!g.sums) return;
    double* cumsum = g.cumsum + (ts_i64)row * g.n + first;
    const double leaf = leaves[t / SIDE][t % SIDE], group = groups[t / SIDE];
#pragma unroll
    for (int k = 0; k < LEAF; k++)
        if (t * LEAF + k < n) cumsum[t * LEAF + k] = group + (leaf + p[k]);
}

// starts: from the sum of each block to the sum of all before it, and behind them the row's. A block of threads has a row.
TS_KERNEL void __launch_bounds__(THREADS) ts_block_starts(const __grid_constant__ Args g) {
    __shared__ double sums[THREADS];
    __shared__ Seen all[THREADS];
    const int t = threadIdx.x, blocks = (int)g.blocks;
    double *starts = g.starts + (ts_i64)blockIdx.x * (blocks + 1), start = 0;
    const Seen* given = (const Seen*)g.seen + (ts_i64)blockIdx.x * blocks;
    Seen seen = {0, -1, -1};
    if (t == 0) starts[0] = 0;
    for (int first = 0; first < blocks; first += THREADS) {
        const bool exists = first + t < blocks;
        if (exists) {
            sums[t] = starts[first + t + 1];
            ts_see(seen, given[first + t]);
        }
        __syncthreads();
        if (t == 0)
            for (int k = 0; k < THREADS && first + k < blocks; k++) sums[k] = start += sums[k];
        __syncthreads();
        if (exists) starts[first + t + 1] = sums[t];
        __syncthreads();
    }
    all[t] = seen;
    __syncthreads();
    if (t > 0) return;
    for (int k = 1; k < THREADS && k < blocks; k++) ts_see(seen, all[k]);
    ts_judge(g, blockIdx.x, seen);
}

// Both for rows of a group at most: a thread has a row.
TS_KERNEL void __launch_bounds__(THREADS) ts_short_rows(const __grid_constant__ Args g) {
    const ts_i64 row = (ts_i64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= g.rows) return;
    const T* x = g.x + row * g.n;
    double start = 0, sum = 0;
    Seen seen = {0, -1, -1};
    for (int c = 0; c < (int)g.n; c++) {
        if (c % LEAF == 0) {
            start += sum;
            sum = 0;
        }
        const double p = ts_upcast(x[c]);
        ts_see(seen, p, c);
        sum += p;
        if (g.sums) g.cumsum[row * g.n + c] = start + sum;
    }
    g.starts[2 * row] = 0;
    g.starts[2 * row + 1] = start + sum;
    ts_judge(g, row, seen);
}

// With replacement. sampled: the first category whose cumulative weight exceeds u times the total.
TS_KERNEL void __launch_bounds__(256) ts_multinomial_search(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.samples) return;
    const ts_i64 row = i <= 0xffffffffll ? (ts_i64)ts_fast_div((ts_u32)i, g.divide_samples) : i / g.samples;
    const ts_i64 last = g.last[row];
    const double *starts = g.starts + row * (g.blocks + 1), *cumsum = g.cumsum + row * g.n;
    const double threshold = ts_draw_uniform_f64(g.seed, g.offset, (ts_u64)i) * starts[g.blocks];
    int block = 0, end = (int)g.blocks;
    while (block < end) {
        const int middle = (block + end) / 2;
        if (starts[middle + 1] <= threshold) block = middle + 1;
        else end = middle;
    }
    int low = block * BLOCK, high = low + BLOCK < (int)g.n ? low + BLOCK : (int)g.n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (starts[block] + cumsum[middle] <= threshold) low = middle + 1;
        else high = middle;
    }
    // Rounding can make the product equal to the total.
    g.sampled[i] = last < 0 ? 0 : low < last ? low : last;
}

// Without replacement: the categories with the smallest exponential keys are sampled; those of weight 0 come last (NaN).
TS_KERNEL void __launch_bounds__(256) ts_exponential_keys(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.rows * g.n) return;
    const double p = (double)ts_upcast(g.x[i]);
    g.keys[i] = p > 0 ? -log1p(-ts_draw_uniform_f64(g.seed, g.offset, (ts_u64)i)) / p : ts_nan(0.0);
}
TS_KERNEL void __launch_bounds__(256) ts_clear_failed_rows(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.rows * g.samples && g.last[i / g.samples] < 0) g.sampled[i] = 0;
}
