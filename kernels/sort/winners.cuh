// What a selection gives: the sorted winners of topk, or one element.
#pragma once
#include "sort/keys.cuh"
#include "sort/select_args.cuh"

// MODE: the element of rank `k`; the lower median (a NaN where there is one); the median of what is not NaN; the first k.
enum { KTH = 0, MEDIAN = 1, NANMEDIAN = 2, TOPK = 3 };

// The elements that are still looked at: those whose key and position have these bits, of which one has rank `rank`.
struct ts_prefix {
    ts_u64 key, key_mask;
    ts_u32 position, position_mask, rank;
    TS_METHOD bool has(ts_u64 k, ts_u32 p) const {
        return ((k ^ key) & key_mask) == 0 && ((p ^ position) & position_mask) == 0;
    }
    // Whether the element comes before those, or is one of them.
    TS_METHOD bool reaches(ts_u64 k, ts_u32 p) const {
        const ts_u64 high = k & key_mask;
        return high < key || (high == key && (p & position_mask) <= position);
    }
    TS_METHOD void take(ts_u32 digit, bool of_key, int shift, int bits) {
        const ts_u64 mask = ((ts_u64)1 << bits) - 1;
        if (of_key) {
            key |= (ts_u64)digit << shift;
            key_mask |= mask << shift;
        } else {
            position |= digit << shift;
            position_mask |= (ts_u32)mask << shift;
        }
    }
};
// The rank that is looked for in a row with `nans` NaN.
TS_FN ts_u32 ts_wanted_rank(const SelectArgs& g, ts_u32 nans) {
    const ts_u32 n = (ts_u32)g.n, numbers = n - nans;
    if (g.mode == KTH) return g.k < g.n ? (ts_u32)g.k : n - 1;
    if (g.mode == TOPK) return (ts_u32)g.k - 1;
    // NaN are last: this is the first of them.
    if (nans > 0 && (g.mode == MEDIAN || numbers == 0)) return numbers;
    return (numbers - 1) / 2;
}
// Whether a digit decides: `count` elements have it, `rank` of which come first. Of topk all of them may be winners.
TS_FN bool ts_decides(const SelectArgs& g, ts_u32 count, ts_u32 rank) {
    return g.mode == TOPK ? rank + 1 == count : count == 1;
}

TS_FN void ts_store_winner(const SelectArgs& g, ts_i64 row, ts_i64 to, Key key, ts_u32 position) {
    if (g.values) g.values[to] = ts_element(key, g.descending, g.x + row * g.n, position);
    if (g.indices) g.indices[to] = position;
}
// Sorts the winners of a row in shared memory by a bitonic network (Batcher, 1968) and stores them. `list`: k entries in any
// order, and room for the next power of two. Every thread of the block calls it.
template <int THREADS> TS_FN void ts_store_winners(const SelectArgs& g, ts_i64 row, Entry* list) {
    int width = 1;
    while (width < g.k) width *= 2;
    for (int i = (int)g.k + threadIdx.x; i < width; i += THREADS) ts_padding_entry(list[i]);
    for (int size = 2; size <= width; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < width / 2; i += THREADS) {
                const int low = i / step * 2 * step + i % step, high = low + step;
                const Entry a = list[low], b = list[high];
                if (ts_entry_less(b, a) != ((low & size) == 0)) continue;
                list[low] = b;
                list[high] = a;
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < g.k; i += THREADS)
        ts_store_winner(g, row, row * g.k + i, ts_entry_key(list[i]), ts_entry_position(list[i]));
}
