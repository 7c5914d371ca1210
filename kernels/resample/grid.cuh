// Sampling of images at given places (grid_sample), and the gradients of the image and of the places. A thread takes a place and
// a group of channels, which share positions and weights. T: memory type; DIMS: spatial dims, 2 or 3; BETWEEN: 0 linear,
// 1 nearest, 2 cubic; WIDE: positions may be 2^31 and more; GRAD_X, GRAD_GRID: the gradients that are made.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;
#if WIDE
typedef ts_i64 Int;
#else
typedef ts_i32 Int;
#endif
enum { LINEAR = 0, NEAREST = 1, CUBIC = 2, ZEROS = 0, BORDER = 1, REFLECTION = 2 };
enum { TAPS = BETWEEN == LINEAR ? 2 : BETWEEN == NEAREST ? 1 : 4, OUTER_TAPS = DIMS == 3 ? TAPS : 1 };

#include "resample/grid_args.cuh"

// Rounds as T does; cubic weights are worked out in float at least.
TS_FN C ts_narrowed(C x) { return BETWEEN == CUBIC ? x : ts_round_to<T>(x); }

// A position in pixels, and its derivative by the place.
struct Spot {
    C at, turn;
};
TS_FN Spot ts_pixel(const Args& g, int d, C place) {
    const C step = (C)(g.align ? g.input[d] - 1 : g.input[d]) * (C)0.5, x = ts_narrowed(ts_narrowed(place + 1) * step);
    return {g.align ? x : ts_narrowed(x - (C)0.5), step};
}
// Held or mirrored into the image. NaN becomes 0.
TS_FN Spot ts_inside(const Args& g, int d, Spot s) {
    const C last = (C)(g.input[d] - 1);
    if (g.outside == ZEROS) return s;
    if (g.outside == REFLECTION) {
        const C shift = g.align ? (C)0 : (C)0.5, span = last + shift + shift, twice = span + span;
        if (span == 0) return {0, 0};
        C x = ts_narrowed(s.at + shift);
        if (x < 0) {
            x = -x;
            s.turn = -s.turn;
        }
        x = x - ts_floor(x / twice) * twice;
        if (x > span) {
            x = ts_narrowed(twice - x);
            s.turn = -s.turn;
        }
        s.at = ts_narrowed(x - shift);
    }
    if (!(s.at > 0)) return {0, 0};
    if (s.at >= last) return {last, 0};
    return s;
}
// A position far from all images, where there is none among the integers.
TS_FN C ts_tame(C x) { return x < (C)2147483520.0 && x > (C)-2147483520.0 ? x : (C)-100; }
// The index of a whole position; -1 outside.
TS_FN Int ts_index(const Args& g, int d, C x) { return x >= 0 && x <= (C)(g.input[d] - 1) ? (Int)x : (Int)-1; }

// What a place reads along a dim: indices, weights, and the derivatives of these by the place.
struct Line {
    Int at[TAPS];
    C weight[TAPS], slope[TAPS];
};

// Keys' kernel with a = -3/4, between the inner two of the four taps and outside of them, and the derivatives.
TS_FN C ts_near(C x) { return ((C)1.25 * x - (C)2.25) * x * x + 1; }
TS_FN C ts_far(C x) { return (((C)-0.75 * x + (C)3.75) * x - 6) * x + 3; }
TS_FN C ts_near_slope(C x) { return ((C)3.75 * x - (C)4.5) * x; }
TS_FN C ts_far_slope(C x) { return ((C)-2.25 * x + (C)7.5) * x - 6; }

TS_FN Line ts_line(const Args& g, int d, C place) {
    Line l;
    Spot s = ts_pixel(g, d, place);
    if (BETWEEN != CUBIC) {
        s = ts_inside(g, d, s);
        s.at = ts_tame(s.at);
    }
    if (BETWEEN == NEAREST) {
        l.at[0] = ts_index(g, d, ts_round(s.at));
        l.weight[0] = 1;
        l.slope[0] = 0;
        return l;
    }
    const C low = ts_floor(s.at), t = s.at - low;
    const C weight[4] = {BETWEEN == CUBIC ? ts_far(t + 1) : 1 - t, BETWEEN == CUBIC ? ts_near(t) : t, ts_near(1 - t), ts_far(2 - t)};
    const C slope[4] = {BETWEEN == CUBIC ? ts_far_slope(t + 1) : (C)-1, BETWEEN == CUBIC ? ts_near_slope(t) : (C)1,
        -ts_near_slope(1 - t), -ts_far_slope(2 - t)};
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        const C x = low + (C)(BETWEEN == CUBIC ? k - 1 : k);
        l.at[k] = ts_index(g, d, BETWEEN == CUBIC ? ts_inside(g, d, {x, 0}).at : x);
        l.weight[k] = weight[k];
        l.slope[k] = slope[k] * s.turn;
    }
    return l;
}
// One tap, for a dim that is not there.
TS_FN Line ts_no_line() {
    Line l;
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        l.at[k] = 0;
        l.weight[k] = 1;
        l.slope[k] = 0;
    }
    return l;
}

// A thread's place, and its channels: first, first + 1, .. below end, counted over all samples.
struct Work {
    Int place, sample, first, end;
    Line a, b, c;
};
TS_FN Work ts_work(const Args& g, Int i) {
    Work w;
    const Int group = ts_quotient(i, g.places, g.divide_places);
    w.place = i - group * (Int)g.places;
    w.sample = ts_quotient(group, g.groups, g.divide_groups);
    const Int channel = (group - w.sample * (Int)g.groups) * (Int)g.each, left = (Int)g.channels - channel;
    w.first = w.sample * (Int)g.channels + channel;
    w.end = w.first + (left < (Int)g.each ? left : (Int)g.each);
    const T* grid = g.grid + (w.sample * (Int)g.places + w.place) * DIMS;
    w.a = DIMS == 3 ? ts_line(g, 0, ts_upcast(grid[DIMS - 1])) : ts_no_line();
    w.b = ts_line(g, 1, ts_upcast(grid[1]));
    w.c = ts_line(g, 2, ts_upcast(grid[0]));
    return w;
}
// The index in the plane of three taps; -1 outside.
TS_FN Int ts_place(const Args& g, const Work& w, int i, int j, int k) {
    const Int a = w.a.at[i], b = w.b.at[j], c = w.c.at[k];
    return (a | b | c) < 0 ? (Int)-1 : (a * (Int)g.input[1] + b) * (Int)g.input[2] + c;
}

TS_KERNEL void __launch_bounds__(256) ts_grid_sample(const __grid_constant__ Args g) {
    const ts_u64 thread = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (thread >= g.n) return;
    const Work w = ts_work(g, (Int)thread);
    const Int plane = (Int)ts_numel(g.input);
    const T* x = g.x + w.first * plane;
    T* y = g.y + w.first * (Int)g.places + w.place;
#pragma unroll 2
    for (Int c = w.first; c < w.end; c++, x += plane, y += g.places) {
        C sum = 0;
#pragma unroll
        for (int i = 0; i < OUTER_TAPS; i++)
#pragma unroll
            for (int j = 0; j < TAPS; j++)
#pragma unroll
                for (int k = 0; k < TAPS; k++) {
                    const Int at = ts_place(g, w, i, j, k);
                    const C value = at < 0 ? (C)0 : (C)ts_upcast(x[at]);
                    sum += value * (w.c.weight[k] * w.b.weight[j] * w.a.weight[i]);
                }
        *y = ts_downcast<T>(sum);
    }
}

// y: gradient of the output. Gradients of x are added to zeros; those of the places too, where channels are in groups.
TS_KERNEL void __launch_bounds__(256) ts_grid_sample_grad(const __grid_constant__ Args g) {
    const ts_u64 thread = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (thread >= g.n) return;
    const Work w = ts_work(g, (Int)thread);
    const Int plane = (Int)ts_numel(g.input);
    const T* x = g.x + w.first * plane;
    const T* y = g.y + w.first * (Int)g.places + w.place;
    C* dx = (C*)g.dx + w.first * plane;
    C slope_a = 0, slope_b = 0, slope_c = 0;
    for (Int c = w.first; c < w.end; c++, x += plane, dx += plane, y += g.places) {
        const C grad = ts_upcast(*y);
#pragma unroll
        for (int i = 0; i < OUTER_TAPS; i++)
#pragma unroll
            for (int j = 0; j < TAPS; j++)
#pragma unroll
                for (int k = 0; k < TAPS; k++) {
                    const Int at = ts_place(g, w, i, j, k);
                    const C wa = w.a.weight[i], wb = w.b.weight[j], wc = w.c.weight[k];
                    if (GRAD_X && at >= 0) atomicAdd(dx + at, grad * (wc * wb * wa));
                    if (GRAD_GRID && BETWEEN != NEAREST) {
                        const C share = at < 0 ? (C)0 : grad * (C)ts_upcast(x[at]);
                        slope_c += share * (w.c.slope[k] * wb * wa);
                        slope_b += share * (w.b.slope[j] * wc * wa);
                        if (DIMS == 3) slope_a += share * (w.a.slope[i] * wc * wb);
                    }
                }
    }
    if (!GRAD_GRID) return;
    C* dgrid = (C*)g.dgrid + (w.sample * (Int)g.places + w.place) * DIMS;
    if (g.groups > 1) {
        atomicAdd(dgrid, slope_c);
        atomicAdd(dgrid + 1, slope_b);
        if (DIMS == 3) atomicAdd(dgrid + (DIMS - 1), slope_a);
        return;
    }
    dgrid[0] = slope_c;
    dgrid[1] = slope_b;
    if (DIMS == 3) dgrid[DIMS - 1] = slope_a;
}
