// Fourier transforms of 2^LOG_N elements: each of the threads of a line holds 16 of them, and transforms these in registers by
// the largest radix that is left; between two passes they go through shared memory (Stockham's order). Radices up to 16, so
// 256 elements are read once, exchanged once and written once.
#include "fft/lines.cuh"

static const int N = 1 << LOG_N;
// Elements of a thread.
static const int E = 16;
static const int THREADS = sizeof(T) == 8 ? 128 : 256;
// Threads of a line, and lines of a block.
static const int SPAN = N / E;
static const int LANES = THREADS / SPAN;

// A row of 16 pairs is followed by a free place, so that rows begin in different banks.
TS_FN int ts_padded(int i) { return i + i / 16; }
static const int PITCH = N + N / 16;

TS_FN Pair ts_sum(Pair a, Pair b) { return Pair{a.re + b.re, a.im + b.im}; }
TS_FN Pair ts_difference(Pair a, Pair b) { return Pair{a.re - b.re, a.im - b.im}; }
// Times -i.
TS_FN Pair ts_quarter(Pair a) { return Pair{a.im, -a.re}; }

// Transforms of R elements that lie S apart in v, from `at` on.
template <int R, int S> struct Transform {};
template <int S> struct Transform<2, S> {
    TS_FN void run(Pair* v) {
        const Pair a = v[0], b = v[S];
        v[0] = ts_sum(a, b);
        v[S] = ts_difference(a, b);
    }
};
template <int S> struct Transform<4, S> {
    TS_FN void run(Pair* v) {
        const Pair e = ts_sum(v[0], v[2 * S]), f = ts_difference(v[0], v[2 * S]);
        const Pair o = ts_sum(v[S], v[3 * S]), h = ts_quarter(ts_difference(v[S], v[3 * S]));
        v[0] = ts_sum(e, o);
        v[S] = ts_sum(f, h);
        v[2 * S] = ts_difference(e, o);
        v[3 * S] = ts_difference(f, h);
    }
};
// By two transforms of the even and the odd elements.
template <int S> struct Transform<8, S> {
    TS_FN void run(Pair* v) {
        const T half = (T)0.70710678118654752440;
        Transform<4, 2 * S>::run(v);
        Transform<4, 2 * S>::run(v + S);
        Pair e[4], o[4];
#pragma unroll
        for (int k = 0; k < 4; k++) e[k] = v[2 * S * k], o[k] = v[2 * S * k + S];
        o[1] = Pair{half * (o[1].re + o[1].im), half * (o[1].im - o[1].re)};
        o[2] = ts_quarter(o[2]);
        o[3] = Pair{half * (o[3].im - o[3].re), -half * (o[3].re + o[3].im)};
#pragma unroll
        for (int k = 0; k < 4; k++) v[S * k] = ts_sum(e[k], o[k]), v[S * (k + 4)] = ts_difference(e[k], o[k]);
    }
};
template <int S> struct Transform<16, S> {
    TS_FN void run(Pair* v) {
        const T c = (T)0.92387953251128675613, s = (T)0.38268343236508977173, half = (T)0.70710678118654752440;
        Transform<8, 2 * S>::run(v);
        Transform<8, 2 * S>::run(v + S);
        Pair e[8], o[8];
#pragma unroll
        for (int k = 0; k < 8; k++) e[k] = v[2 * S * k], o[k] = v[2 * S * k + S];
        o[1] = ts_product(o[1], Pair{c, -s});
        o[2] = ts_product(o[2], Pair{half, -half});
        o[3] = ts_product(o[3], Pair{s, -c});
        o[4] = ts_quarter(o[4]);
        o[5] = ts_product(o[5], Pair{-s, -c});
        o[6] = ts_product(o[6], Pair{-half, -half});
        o[7] = ts_product(o[7], Pair{-c, -s});
#pragma unroll
        for (int k = 0; k < 8; k++) v[S * k] = ts_sum(e[k], o[k]), v[S * (k + 8)] = ts_difference(e[k], o[k]);
    }
};

// The radix of the pass after passes whose radices have this product.
TS_FN constexpr int ts_radix(int step) { return N / step >= 16 ? 16 : N / step; }

// The passes from the one on before which the product of radices is STEP. v[e] is element `place + e * SPAN` of the line in the
// order that this pass reads.
template <int STEP> struct Passes {
    TS_FN void run(const Args& g, Pair* v, Pair* memory, int place) {
        constexpr int R = ts_radix(STEP), BUTTERFLIES = E / R;
#pragma unroll
        for (int b = 0; b < BUTTERFLIES; b++) {
            // Butterfly `place + b * SPAN` takes every N / R-th element: those of this thread that are BUTTERFLIES apart.
            Transform<R, BUTTERFLIES>::run(v + b);
            const int butterfly = place + b * SPAN, p = butterfly / STEP;
            if (STEP * R < N) {
#pragma unroll
                for (int k = 1; k < R; k++)
                    v[b + k * BUTTERFLIES] = ts_product(v[b + k * BUTTERFLIES], g.roots[p * k * STEP]);
            }
        }
        if (STEP * R == N) return;
        if (STEP > 1) __syncthreads();
#pragma unroll
        for (int b = 0; b < BUTTERFLIES; b++) {
            const int butterfly = place + b * SPAN, p = butterfly / STEP, q = butterfly % STEP;
#pragma unroll
            for (int k = 0; k < R; k++) memory[ts_padded(q + STEP * (R * p + k))] = v[b + k * BUTTERFLIES];
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < E; e++) v[e] = memory[ts_padded(place + e * SPAN)];
        Passes<STEP * R>::run(g, v, memory, place);
    }
};
template <> struct Passes<N> {
    TS_FN void run(const Args&, Pair*, Pair*, int) {}
};

TS_KERNEL void __launch_bounds__(THREADS) ts_fft_power_of_two(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    // Neighboring threads read neighboring elements, and write such.
    const bool reads_along = g.from_inner == 1, writes_along = g.to_inner == 1;
    int lane = reads_along ? threadIdx.x / SPAN : threadIdx.x % LANES;
    int place = reads_along ? threadIdx.x % SPAN : threadIdx.x / LANES;
    ts_i64 number = (ts_i64)blockIdx.x * LANES + lane;
    const Line from = ts_source(g, number);
    Pair v[E];
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = number < g.lines ? ts_get(g, from, place + e * SPAN) : Pair{0, 0};
    Passes<1>::run(g, v, (Pair*)memory + lane * PITCH, place);
    if (reads_along != writes_along) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < E; e++) ((Pair*)memory)[lane * PITCH + ts_padded(place + e * SPAN)] = v[e];
        __syncthreads();
        lane = writes_along ? threadIdx.x / SPAN : threadIdx.x % LANES;
        place = writes_along ? threadIdx.x % SPAN : threadIdx.x / LANES;
        number = (ts_i64)blockIdx.x * LANES + lane;
#pragma unroll
        for (int e = 0; e < E; e++) v[e] = ((Pair*)memory)[lane * PITCH + ts_padded(place + e * SPAN)];
    }
    if (number >= g.lines) return;
    const Line to = ts_target(g, number);
#pragma unroll
    for (int e = 0; e < E; e++) {
        // The last pass leaves element k of a butterfly where the butterfly is, N / R apart: in order.
        const int k = place + e * SPAN;
        Pair z = v[e];
        if (g.turn) z = ts_product(z, ts_turn(2 * (number % g.to_inner * k % g.turn), g.turn));
        if (k < g.to_size) ts_put(g, to, k, z);
    }
    for (ts_i64 k = N + place; k < g.to_size; k += SPAN) ts_put(g, to, k, Pair{0, 0});
}
