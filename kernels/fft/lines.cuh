#pragma once
// Elements of the lines of Fourier transforms, as `src/kernel/fft/host` defines them. T: f32 or f64.
//
// Tensors are contiguous, [outer, size, inner] around the dim: a line is a pair of an outer and an inner place. Complex
// numbers are pairs. All transforms are forward ones: for the inverse, real and imaginary parts are exchanged before and after.

struct alignas(2 * sizeof(T)) Pair { T re, im; };

#include "fft/args.cuh"

// Values of `Args::kind`.
#define TS_TO_HALF 1
#define TS_FROM_HALF 2

TS_FN Pair ts_product(Pair a, Pair b) { return Pair{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
TS_FN Pair ts_swapped(Pair a) { return Pair{a.im, a.re}; }
// e^(-pi i k / n), computed in double.
TS_FN Pair ts_turn(ts_i64 k, ts_i64 n) {
    double s, c;
    sincospi((double)k / (double)n, &s, &c);
    return Pair{(T)c, (T)-s};
}
// e^(-pi i j^2 / n).
TS_FN Pair ts_chirp(ts_i64 j, ts_i64 n) { return ts_turn(j * j % (2 * n), n); }

// Where a line begins, and how far apart its elements are.
struct Line { ts_i64 start, apart; };

TS_FN Line ts_line(ts_i64 line, ts_i64 size, ts_i64 inner) {
    if (inner == 1) return Line{line * size, 1};
    return Line{line / inner * size * inner + line % inner, inner};
}

TS_FN Pair ts_element(const Args& g, Line line, ts_i64 k) {
    if (k >= g.from_size) return Pair{0, 0};
    const ts_i64 at = line.start + k * line.apart;
    if (g.from_pairs) return ((const Pair*)g.from)[at];
    return Pair{g.from[at], 0};
}

// The lines of the operand and of the result.
TS_FN Line ts_source(const Args& g, ts_i64 line) { return ts_line(line, g.from_size, g.from_inner); }
TS_FN Line ts_target(const Args& g, ts_i64 line) { return ts_line(line, g.to_size, g.to_inner); }

// Element k of the line that is transformed.
TS_FN Pair ts_get(const Args& g, Line line, ts_i64 k) {
    Pair z;
    if (g.kind == TS_FROM_HALF) {
        const bool mirrored = 2 * k > g.n, real = k == 0 || 2 * k == g.n;
        z = ts_element(g, line, mirrored ? g.n - k : k);
        const T weight = real ? (T)1 : (T)g.middle;
        z = Pair{z.re * weight, real ? (T)0 : z.im * (mirrored != (g.conjugate != 0) ? -weight : weight)};
    } else {
        z = ts_element(g, line, k);
    }
    return g.swap_in ? ts_swapped(z) : z;
}

// Stores element k of a result.
TS_FN void ts_put(const Args& g, Line line, ts_i64 k, Pair z) {
    if (g.swap_out) z = ts_swapped(z);
    T weight = (T)g.scale;
    if (g.kind == TS_TO_HALF) {
        const bool mirrored = k > 0 && 2 * k < g.n;
        if (mirrored) weight = (T)(g.scale * g.middle);
        z.im = mirrored ? (g.conjugate ? -z.im : z.im) : (T)0;
    }
    const bool inside = k < (g.kind == TS_TO_HALF ? g.n / 2 + 1 : g.n);
    z = inside ? Pair{z.re * weight, z.im * weight} : Pair{0, 0};
    const ts_i64 at = line.start + k * line.apart;
    if (g.to_pairs) ((Pair*)g.to)[at] = z;
    else g.to[at] = z.re;
}
