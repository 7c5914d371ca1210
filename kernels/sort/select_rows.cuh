// topk, kthvalue and median of rows that fit into a block's registers: radix select, digit by digit from the highest. Of equal
// elements the earlier ones are selected: the digits of positions follow those of keys. T: memory type; THREADS, ITEMS: of a
// block, which has a row.
#include "sort/rank.cuh"
#include "sort/winners.cuh"

// Copies of the bins, side by side.
static const int COPIES = 4;

TS_KERNEL void __launch_bounds__(THREADS) ts_select_rows(const __grid_constant__ SelectArgs g) {
    __shared__ ts_u32 bins[DIGITS * COPIES], sums[DIGITS / 32], nans, taken, digit, rank, count;
    __shared__ Entry list[MAX_WINNERS];
    const ts_i64 row = blockIdx.x;
    const T* x = g.x + row * g.n;
    const int n = (int)g.n;
    Key keys[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = i * THREADS + threadIdx.x;
        keys[i] = at < n ? ts_key(x[at], g.descending) : MAX_KEY;
    }
    ts_prefix wanted = {};
    if (threadIdx.x == 0) nans = taken = 0;
    __syncthreads();
    if (IS_FLOAT && (g.mode == MEDIAN || g.mode == NANMEDIAN)) {
        ts_u32 mine = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) mine += i * THREADS + (int)threadIdx.x < n && keys[i] == MAX_KEY;
        if (mine) atomicAdd(&nans, mine);
        __syncthreads();
    }
    wanted.rank = ts_wanted_rank(g, nans);
    bool of_key = true;
    for (int shift = KEY_BITS - 8;; shift -= 8) {
        if (shift < 0) {
            if (!of_key) break;
            of_key = false;
            shift = ((31 - __clz(n)) / 8) * 8;
        }
        for (int b = threadIdx.x; b < DIGITS * COPIES; b += THREADS) bins[b] = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const ts_u32 at = i * THREADS + threadIdx.x;
            if (at >= n || !wanted.has(keys[i], at)) continue;
            const ts_u32 found = of_key ? ts_digit(keys[i], shift) : at >> shift & 0xff;
            atomicAdd(&bins[found * COPIES + threadIdx.x % COPIES], 1u);
        }
        __syncthreads();
        ts_u32 here = 0;
        if (threadIdx.x < DIGITS)
#pragma unroll
            for (int c = 0; c < COPIES; c++) here += bins[threadIdx.x * COPIES + c];
        const ts_u32 before = ts_scan_digits(here, sums);
        if (threadIdx.x < DIGITS && before <= wanted.rank && wanted.rank < before + here) {
            digit = threadIdx.x;
            rank = wanted.rank - before;
            count = here;
        }
        __syncthreads();
        wanted.take(digit, of_key, shift, 8);
        wanted.rank = rank;
        if (ts_decides(g, count, rank)) break;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const ts_u32 at = i * THREADS + threadIdx.x;
        if (at >= n) continue;
        if (g.mode != TOPK) {
            if (wanted.has(keys[i], at)) ts_store_winner(g, row, row, keys[i], at);
        } else if (wanted.reaches(keys[i], at)) {
            ts_make_entry(keys[i], at, list[atomicAdd(&taken, 1u)]);
        }
    }
    if (g.mode != TOPK) return;
    __syncthreads();
    ts_store_winners<THREADS>(g, row, list);
}
