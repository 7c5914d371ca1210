// randperm: the permutation of the host's shuffle (kernel/random/host.rs), found in parallel. T: memory type of the result.
//
// The shuffle exchanges entry i with entry j(i) <= i, from the last i to the first, and entry i has its value then. So the
// value at i is the one that entry j(i) had at that time: that of the next larger i' with the same j, when its turn came, or
// j(i) itself if there is none. And the value of an entry i' when its turn comes is in turn that of the smallest i'' > i' with
// j(i'') = i', its parent, or i' if there is none. Chains of parents have one step on average, and O(log n) at most with high
// probability (Shun et al., Sequential random permutation, list contraction and tree contraction are highly parallel, 2015).
// A stable sort of the i by j(i) tells the next larger ones.
#include "common/base.cuh"
#include "random/philox.cuh"
#include "random/permutation_args.cuh"

// targets[i] = j(i). A thread has the four entries of a counter.
TS_KERNEL void __launch_bounds__(256) ts_exchange_targets(const __grid_constant__ PermutationArgs g) {
    const ts_u64 counter = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (counter * 4 >= (ts_u64)g.n) return;
    const ts_philox_words high = ts_philox(g.seed, g.offset + counter), low = ts_philox(g.seed ^ TS_SECOND, g.offset + counter);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const ts_u64 i = counter * 4 + k, word = (ts_u64)high.x[k] << 32 | low.x[k];
        if (i < (ts_u64)g.n) g.targets[i] = (ts_i32)__umul64hi(word, i + 1);
    }
}

// sorted: the targets in order; from: their i, ascending where targets are equal. The next i with the same target as place k,
// or 0.
TS_FN ts_u32 ts_next_of_target(const PermutationArgs& g, ts_i64 k) {
    return k + 1 < g.n && g.sorted[k + 1] == g.sorted[k] ? g.from[k + 1] : 0;
}
// parents: of each entry, or 0, as which they are before.
TS_KERNEL void __launch_bounds__(256) ts_permutation_parents(const __grid_constant__ PermutationArgs g) {
    const ts_i64 k = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (k >= g.n) return;
    const ts_i32 target = g.sorted[k];
    if (k > 0 && g.sorted[k - 1] == target) return;
    // An entry that is exchanged with itself is the first with this target.
    g.parents[target] = g.from[k] == (ts_u32)target ? ts_next_of_target(g, k) : g.from[k];
}
TS_KERNEL void __launch_bounds__(256) ts_permute(const __grid_constant__ PermutationArgs g) {
    const ts_i64 k = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (k >= g.n) return;
    ts_u32 value = ts_next_of_target(g, k);
    if (!value) value = (ts_u32)g.sorted[k];
    else
        while (const ts_u32 parent = g.parents[value]) value = parent;
    g.y[g.from[k]] = ts_downcast<T>((ts_i64)value);
}
