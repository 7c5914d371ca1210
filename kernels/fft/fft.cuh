// Fourier transforms along a dim: passes in shared memory, and what longer lines and other lengths are made of.
#include "fft/lines.cuh"

// The n-th roots of one.
TS_KERNEL void __launch_bounds__(256) ts_fft_roots(const __grid_constant__ Args g) {
    const ts_i64 k = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (k < g.n) ((Pair*)g.to)[k] = ts_turn(2 * k, g.n);
}

template <int R> TS_FN void ts_butterfly(Pair (&v)[R], const Pair* roots, int turn) {
    Pair y[R];
#pragma unroll
    for (int k = 0; k < R; k++) {
        y[k] = v[0];
#pragma unroll
        for (int j = 1; j < R; j++) {
            const Pair x = ts_product(v[j], roots[j * k % R * turn]);
            y[k] = Pair{y[k].re + x.re, y[k].im + x.im};
        }
    }
#pragma unroll
    for (int k = 0; k < R; k++) v[k] = y[k];
}
TS_FN void ts_butterfly(Pair (&v)[2], const Pair*, int) {
    const Pair a = v[0], b = v[1];
    v[0] = Pair{a.re + b.re, a.im + b.im};
    v[1] = Pair{a.re - b.re, a.im - b.im};
}
TS_FN void ts_butterfly(Pair (&v)[4], const Pair*, int) {
    const Pair e = {v[0].re + v[2].re, v[0].im + v[2].im}, o = {v[1].re + v[3].re, v[1].im + v[3].im};
    const Pair f = {v[0].re - v[2].re, v[0].im - v[2].im}, h = {v[1].re - v[3].re, v[1].im - v[3].im};
    v[0] = Pair{e.re + o.re, e.im + o.im};
    v[1] = Pair{f.re + h.im, f.im - h.re};
    v[2] = Pair{e.re - o.re, e.im - o.im};
    v[3] = Pair{f.re - h.im, f.im + h.re};
}

// One pass of Stockham's transform over the block's lines, which lie `pitch` apart; `step` is the product of the radices
// of the passes before.
template <int R>
TS_FN void ts_pass(const Pair* from, Pair* to, const Pair* roots, int n, int step, int lanes, int pitch) {
    const int each = n / R, groups = each / step;
    for (int b = threadIdx.x; b < each * lanes; b += 256) {
        const int lane = b / each, place = b % each, p = place / step, q = place % step;
        const Pair* x = from + lane * pitch + q;
        Pair* y = to + lane * pitch + q;
        Pair v[R];
#pragma unroll
        for (int j = 0; j < R; j++) v[j] = x[step * (p + groups * j)];
        ts_butterfly(v, roots, each);
        y[step * R * p] = v[0];
#pragma unroll
        for (int k = 1; k < R; k++) y[step * (R * p + k)] = ts_product(v[k], roots[p * k * step]);
    }
}

// Whole lines in shared memory, `lanes` in a block. With `turn`, result k of the line at inner place i is multiplied by the
// (i k)-th power of the turn-th root of one.
TS_KERNEL void __launch_bounds__(256) ts_fft_lines(const __grid_constant__ Args g) {
    TS_DYNAMIC_SHARED(memory);
    const int n = (int)g.n, pitch = n + 1, room = (int)g.lanes * pitch;
    const ts_i64 first = (ts_i64)blockIdx.x * g.lanes;
    const int lanes = (int)(g.lines - first < g.lanes ? g.lines - first : g.lanes);
    Pair *a = (Pair*)memory, *b = a + room;
    for (int i = threadIdx.x; i < n * lanes; i += 256) {
        // Neighboring threads read neighboring elements.
        const int lane = g.from_inner == 1 ? i / n : i % lanes, k = g.from_inner == 1 ? i % n : i / lanes;
        a[lane * pitch + k] = ts_get(g, ts_source(g, first + lane), k);
    }
    __syncthreads();
    int step = 1;
    for (int pass = 0; pass < (int)g.passes; pass++) {
        const int radix = (int)g.radices[pass];
        switch (radix) {
            case 2: ts_pass<2>(a, b, g.roots, n, step, lanes, pitch); break;
            case 3: ts_pass<3>(a, b, g.roots, n, step, lanes, pitch); break;
            case 4: ts_pass<4>(a, b, g.roots, n, step, lanes, pitch); break;
            case 5: ts_pass<5>(a, b, g.roots, n, step, lanes, pitch); break;
            case 7: ts_pass<7>(a, b, g.roots, n, step, lanes, pitch); break;
            case 11: ts_pass<11>(a, b, g.roots, n, step, lanes, pitch); break;
            default: ts_pass<13>(a, b, g.roots, n, step, lanes, pitch); break;
        }
        step *= radix;
        Pair* other = a;
        a = b;
        b = other;
        __syncthreads();
    }
    const int size = (int)g.to_size;
    for (int i = threadIdx.x; i < size * lanes; i += 256) {
        const int lane = g.to_inner == 1 ? i / size : i % lanes, k = g.to_inner == 1 ? i % size : i / lanes;
        Pair z = k < n ? a[lane * pitch + k] : Pair{0, 0};
        if (g.turn) z = ts_product(z, ts_turn(2 * ((first + lane) % g.to_inner * k % g.turn), g.turn));
        ts_put(g, ts_target(g, first + lane), k, z);
    }
}

// Lines as rows of n pairs.
TS_KERNEL void __launch_bounds__(256) ts_fft_gather(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i < g.lines * g.n) ((Pair*)g.to)[i] = ts_get(g, ts_source(g, i / g.n), i % g.n);
}

// The line and the place in it of element i of the result.
TS_FN void ts_result(const Args& g, ts_i64 i, ts_i64& line, ts_i64& k) {
    const ts_i64 row = i / g.to_inner;
    k = row % g.to_size;
    line = row / g.to_size * g.to_inner + i % g.to_inner;
}

// From rows of n pairs, `work`.
TS_KERNEL void __launch_bounds__(256) ts_fft_store(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.lines * g.to_size) return;
    ts_i64 line, k;
    ts_result(g, i, line, k);
    ts_put(g, ts_target(g, line), k, k < g.n ? g.work[line * g.n + k] : Pair{0, 0});
}

// Bluestein: a transform of any length n as a convolution with a chirp, by transforms of length `long_n`. The lines times
// the chirp, and zeros.
TS_KERNEL void __launch_bounds__(256) ts_fft_chirp(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.lines * g.long_n) return;
    const ts_i64 line = i / g.long_n, j = i % g.long_n;
    ((Pair*)g.to)[i] = j < g.n ? ts_product(ts_get(g, ts_source(g, line), j), ts_chirp(j, g.n)) : Pair{0, 0};
}

// The other chirp, for differences from 1 - n to n - 1, divided by the length of the transforms.
TS_KERNEL void __launch_bounds__(256) ts_fft_response(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.long_n) return;
    const ts_i64 j = i < g.n ? i : g.long_n - i;
    const Pair z = ts_chirp(j < g.n ? j : 0, g.n);
    const T weight = j < g.n ? (T)(1.0 / (double)g.long_n) : (T)0;
    ((Pair*)g.to)[i] = Pair{z.re * weight, -z.im * weight};
}

// Spectra times that of the response, with their parts exchanged for the inverse transform.
TS_KERNEL void __launch_bounds__(256) ts_fft_convolve(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.lines * g.long_n) return;
    ((Pair*)g.to)[i] = ts_swapped(ts_product(((const Pair*)g.to)[i], g.work[i % g.long_n]));
}

// The results, from rows of `long_n` pairs with their parts exchanged.
TS_KERNEL void __launch_bounds__(256) ts_fft_unchirp(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.lines * g.to_size) return;
    ts_i64 line, k;
    ts_result(g, i, line, k);
    const Pair z = k < g.n ? ts_product(ts_swapped(g.work[line * g.long_n + k]), ts_chirp(k, g.n)) : Pair{0, 0};
    ts_put(g, ts_target(g, line), k, z);
}
