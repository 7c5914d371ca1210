// topk, kthvalue and median of long rows: radix select by all multiprocessors. A launch for each digit, from the highest: blocks
// count the digits of those elements that have the digits found so far, and the last block of a row finds the next one. The
// digits of positions follow those of keys, so that of equal elements the earlier ones are selected; launches for which
// nothing is left to decide return at once. T: memory type.
#include "sort/winners.cuh"

static const int BINS = 2048, COPIES = 2, THREADS = 256;

// What is known of a row; all 0 at first.
struct ts_selection {
    ts_prefix wanted;
    ts_u32 nans, arrived, decided, taken;
    ts_u32 bins[BINS];
};
static_assert(sizeof(ts_selection) <= SELECTION_BYTES, "as the launch allocates it");
TS_FN ts_selection* ts_selection_of(const SelectArgs& g, ts_i64 row) {
    return (ts_selection*)((char*)g.selections + row * SELECTION_BYTES);
}

// visit(key, position) for each element of this block's part of a row.
template <class F> TS_FN void ts_each_key(const SelectArgs& g, ts_i64 row, F visit) {
    const ts_i64 from = blockIdx.x % (ts_u32)g.chunks * g.chunk, to = from + g.chunk < g.n ? from + g.chunk : g.n;
    const T* x = g.x + row * g.n;
    for (ts_i64 i = from + threadIdx.x; i < to; i += THREADS * 4) {
        T found[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + THREADS * k < to) found[k] = x[i + THREADS * k];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + THREADS * k < to) visit(ts_key(found[k], g.descending), (ts_u32)(i + THREADS * k));
    }
}

// The digit of the wanted element, from the counts of all; clears them for the next launch. One block.
TS_FN void ts_find_digit(const SelectArgs& g, ts_selection* s) {
    __shared__ ts_u32 sums[THREADS / 32];
    const int each = BINS / THREADS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    ts_u32 counts[each], mine = 0;
#pragma unroll
    for (int b = 0; b < each; b++) {
        counts[b] = __ldcg(&s->bins[threadIdx.x * each + b]);
        mine += counts[b];
        s->bins[threadIdx.x * each + b] = 0;
    }
    ts_u32 before = mine;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const ts_u32 below = __shfl_up_sync(0xffffffffu, before, d);
        if (lane >= d) before += below;
    }
    if (lane == 31) sums[warp] = before;
    ts_prefix wanted = s->wanted;
    if (g.first) wanted.rank = ts_wanted_rank(g, __ldcg(&s->nans));
    __syncthreads();
    before -= mine;
    for (int w = 0; w < warp; w++) before += sums[w];
#pragma unroll
    for (int b = 0; b < each; b++) {
        if (before <= wanted.rank && wanted.rank < before + counts[b]) {
            ts_prefix next = wanted;
            next.rank = wanted.rank - before;
            next.take(threadIdx.x * each + b, g.of_key, (int)g.shift, (int)g.bits);
            s->wanted = next;
            s->decided = ts_decides(g, counts[b], next.rank);
        }
        before += counts[b];
    }
    if (threadIdx.x == 0) s->arrived = 0;
}

TS_KERNEL void __launch_bounds__(THREADS) ts_select_digit(const __grid_constant__ SelectArgs g) {
    __shared__ ts_u32 bins[BINS * COPIES], last;
    const ts_i64 row = blockIdx.x / (ts_u32)g.chunks;
    ts_selection* s = ts_selection_of(g, row);
    if (s->decided) return;
    for (int b = threadIdx.x; b < BINS * COPIES; b += THREADS) bins[b] = 0;
    __syncthreads();
    const ts_prefix wanted = s->wanted;
    const ts_u32 mask = (1u << g.bits) - 1;
    ts_u32 nans = 0;
    ts_each_key(g, row, [&](Key key, ts_u32 position) {
        if (IS_FLOAT) nans += key == MAX_KEY;
        if (!wanted.has(key, position)) return;
        const ts_u32 digit = (ts_u32)(g.of_key ? (ts_u64)key >> g.shift : position >> g.shift) & mask;
        atomicAdd(&bins[digit * COPIES + threadIdx.x % COPIES], 1u);
    });
    if (g.first && nans) atomicAdd(&s->nans, nans);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += THREADS) {
        ts_u32 sum = 0;
#pragma unroll
        for (int c = 0; c < COPIES; c++) sum += bins[b * COPIES + c];
        if (sum) atomicAdd(&s->bins[b], sum);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&s->arrived, 1u) + 1 == (ts_u32)g.chunks;
    __syncthreads();
    if (!last) return;
    __threadfence();
    ts_find_digit(g, s);
}

// Stores the element that is looked for, or collects the winners of topk in any order.
TS_KERNEL void __launch_bounds__(THREADS) ts_collect_winners(const __grid_constant__ SelectArgs g) {
    const ts_i64 row = blockIdx.x / (ts_u32)g.chunks;
    ts_selection* s = ts_selection_of(g, row);
    const ts_prefix wanted = s->wanted;
    ts_each_key(g, row, [&](Key key, ts_u32 position) {
        if (g.mode != TOPK) {
            if (wanted.has(key, position)) ts_store_winner(g, row, row, key, position);
        } else if (wanted.reaches(key, position)) {
            Entry entry;
            ts_make_entry(key, position, entry);
            ((Entry*)g.winners)[row * g.k + atomicAdd(&s->taken, 1u)] = entry;
        }
    });
}
TS_KERNEL void __launch_bounds__(THREADS) ts_sort_winners(const __grid_constant__ SelectArgs g) {
    __shared__ Entry list[MAX_WINNERS];
    const ts_i64 row = blockIdx.x;
    for (int i = threadIdx.x; i < g.k; i += THREADS) list[i] = ((const Entry*)g.winners)[row * g.k + i];
    ts_store_winners<THREADS>(g, row, list);
}
