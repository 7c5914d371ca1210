// Attention of 16-bit floats on Hopper: a warpgroup has 64 queries and walks over 64 keys at a time, of which the next ones
// come while it computes. As in FlashAttention-3's forward pass (Shah et al., 2024) softmax runs beside the product of the last
// powers and values; other warpgroups of the multiprocessor fill what is left. W is a multiple of 64.
#include "ts_wgmma.cuh"
#include "ts_attention.cuh"

// Bytes of a tile, 64 rows of 64 elements, and of a slot, which has W / 64 tiles of keys and as many of values. There are
// three slots: one is filled while products read the other two.
static const int TILE = 64 * 128, SLOT = W / 64 * TILE * 2;

// Brings rows of a head, 64 at a time: a thread has a chunk of every PASS rows, which are `step` bytes apart.
struct Bringer {
    static const int PASS = 128 / (W / 8);
    const char* at;
    ts_u32 step;
    __device__ __forceinline__ Bringer(const T* head, ts_i64 row) : step((ts_u32)row * 2 * PASS) {
        at = (const char*)(head + threadIdx.x / (W / 8) * row + threadIdx.x % (W / 8) * 8);
    }
    // Asks for the next 64 rows, of which there are `count`, and for zeros after them. `to`: where the thread's chunk goes.
    __device__ __forceinline__ void bring(char* to, int count) {
#pragma unroll
        for (int r = 0; r < 64 / PASS; r++)
            ts_bring16(to + r * PASS * 128, at + (ts_u64)step * r, (int)threadIdx.x / (W / 8) + r * PASS < count);
        at += (ts_u64)step * (64 / PASS);
    }
};
// score = a keys', in the background.
TS_FN void ts_begin_scores(float (*score)[4], const ts_u32 (*a)[4], ts_tile keys) {
    ts_hold<64>(score);
    ts_wgmma_begin();
    ts_wgmma_rows<T, true>(score, a[0], keys, 0);
#pragma unroll
    for (int s = 1; s < W / 16; s++) ts_wgmma_rows<T, false>(score, a[s], ts_tile_after(keys, s / 4 * TILE), s % 4);
    ts_wgmma_end();
}
// out += p values, in the background.
TS_FN void ts_begin_output(float (*out)[4], const ts_u32 (*p)[4], ts_tile values) {
    ts_hold<W>(out);
    ts_wgmma_begin();
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int w = 0; w < W / 64; w++) ts_wgmma_columns<T>(out + w * 8, p[s], ts_tile_after(values, w * TILE), s);
    ts_wgmma_end();
}

// Registers for as many warpgroups of a multiprocessor as their slots fit.
TS_KERNEL void __launch_bounds__(128, W > 64 ? 2 : MASKED ? 3 : 4) ts_attention_wgmma(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    const ts_u32 tiles = (ts_u32)((g.queries + 63) / 64), head = blockIdx.x / tiles;
    const Head here(g, head);
    // Later queries see more keys: they start first.
    const int top = (int)(tiles - 1 - blockIdx.x % tiles) * 64, keys = (int)g.keys;
    const int mine = top + threadIdx.x / 32 * 16, query = mine + threadIdx.x % 32 / 4;
    // Keys that some query of the block sees, and those that all queries of the warp see.
    const int seen = g.causal && top + 64 < keys ? top + 64 : keys, all = g.causal && mine + 1 < keys ? mine + 1 : keys;
    Bringer k(here.of(g.k), g.k.row), v(here.of(g.v), g.v.row);
    char* to = ts_chunk(memory + threadIdx.x % (W / 8) / 8 * TILE, threadIdx.x / (W / 8), threadIdx.x % 8);
    const ts_tile slots = ts_tile_of(memory);
    const M* mask = g.mask + (MASKED ? here.offset(g.mask_step) : 0);
    const float scale = (float)g.scale * ts_log2_e();
    ts_u32 a[W / 16][4], p[4][4];
    float out[W / 8][4], score[8][4], most[2] = {ts_nothing(), ts_nothing()}, sum[2] = {0, 0}, rescale[2];
    int slot = 0, next = 0, first = 0;
    const auto bring = [&](int first) {
        if (first >= seen) return;
        k.bring(to + next, keys - first);
        v.bring(to + next + SLOT / 2, keys - first);
    };
    // Waits for the keys from `first` on in `slot`, and asks for the next ones.
    const auto step = [&]() {
        slot = next;
        next = slot == 2 * SLOT ? 0 : slot + SLOT;
        ts_brought();
        ts_tiles_written();
        __syncthreads();
        bring(first + 64);
    };
    const auto soften = [&]() {
        ts_hold<64>(score);
        ts_soften(g, mask, score, most, sum, rescale, query, first, first + 64 > all, scale);
    };
    bring(0);
    ts_operand(a, here.of(g.q), g.q.row, mine, g.queries);
    ts_clear<W>(out);
    if (seen > 0) {
        step();
        ts_begin_scores(score, a, slots);
        ts_wgmma_wait<0>();
        soften();
        ts_as_operand<64>(p, score);
        for (first = 64; first < seen; first += 64) {
            const ts_tile values = ts_tile_after(slots, slot + SLOT / 2);
            step();
            ts_begin_scores(score, a, ts_tile_after(slots, slot));
            ts_begin_output(out, p, values);
            ts_wgmma_wait<1>();
            soften();
            // Sums are never below zero: asking keeps the compiler from moving the wait for the output before the softmax.
            if (__any_sync(0xffffffffu, rescale[0] != 1 || rescale[1] != 1 || !(sum[0] + sum[1] >= 0))) {
                ts_wgmma_wait<0>();
                ts_hold<W>(out);
                ts_times<W>(out, rescale);
            }
            ts_wgmma_wait<0>();
            ts_hold<W>(out);
            ts_as_operand<64>(p, score);
        }
        ts_begin_output(out, p, ts_tile_after(slots, slot + SLOT / 2));
        ts_wgmma_wait<0>();
        ts_hold<W>(out);
    }
    ts_softened(g, head, most, sum, query, scale);
    ts_put(g.to + (ts_i64)head * g.queries * W, out, mine, g.queries, sum);
}
