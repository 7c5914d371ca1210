// What a library of Fourier transforms does not do: factors, sizes that are cut or filled up with zeros, conjugates, mirror
// images, copies. T: f32 or f64. Numbers are real, or complex with their parts anywhere.

struct alignas(2 * sizeof(T)) Pair { T re, im; };

#include "fft/move_args.cuh"

TS_FN Pair ts_load(const Move& g, ts_i64 at) {
    if (g.from_whole) return *(const Pair*)(g.from + at);
    return Pair{g.from[at], g.from_pairs ? g.from[at + g.from_second] : (T)0};
}

TS_FN void ts_save(const Move& g, ts_i64 at, Pair z) {
    if (g.to_whole) {
        *(Pair*)(g.to + at) = z;
    } else {
        g.to[at] = z.re;
        if (g.to_pairs) g.to[at + g.to_second] = z.im;
    }
}

// Where a number is, where its mirror image is, and its place in the half spectrum. Division of 32-bit numbers is fast.
struct Place { ts_i64 from, from_mirror, to, to_mirror, k; bool inside, inside_mirror; };

template <typename I> TS_FN Place ts_place(const Move& g, I rest) {
    Place p = {0, 0, 0, 0, 0, true, true};
    for (int d = (int)g.rank - 1; d >= 0; d--) {
        const I size = (I)g.sizes[d], left = rest / size;
        const ts_i64 c = (ts_i64)(rest - left * size);
        rest = left;
        // Along the half dim the library's other half mirrors it, along the other transformed ones the signal repeats.
        ts_i64 m = c, t = c;
        if (d == (int)g.half) {
            p.k = c;
            t = g.lengths[d] - c;
        } else if (g.lengths[d]) {
            m = c ? g.lengths[d] - c : 0;
            t = m;
        }
        p.from += c * g.from_strides[d];
        p.from_mirror += m * g.from_strides[d];
        p.to += c * g.to_strides[d];
        p.to_mirror += t * g.to_strides[d];
        p.inside = p.inside && c < g.given[d];
        p.inside_mirror = p.inside_mirror && m < g.given[d];
    }
    return p;
}

TS_FN bool ts_find(const Move& g, Place& p) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.count) return false;
    p = g.count >> 31 ? ts_place<ts_i64>(g, i) : ts_place<unsigned>(g, (unsigned)i);
    return true;
}

// The number at place k of half a spectrum, with its factor; real ones have no conjugate.
TS_FN Pair ts_weighted(const Move& g, Pair z, bool has_mirror) {
    const T weight = (T)(has_mirror ? g.scale * g.middle : g.scale);
    return Pair{z.re * weight, g.conjugate ? (T)0 - z.im * weight : z.im * weight};
}

TS_FN bool ts_has_mirror(const Move& g, ts_i64 k) {
    return g.half >= 0 && k > 0 && 2 * k < g.lengths[(int)g.half];
}

// Copies; zeros beyond what is given. In place where both are the same.
TS_KERNEL void __launch_bounds__(256) ts_fft_move(const __grid_constant__ Move g) {
    Place p;
    if (!ts_find(g, p)) return;
    const Pair z = p.inside ? ts_load(g, p.from) : Pair{0, 0};
    ts_save(g, p.to, ts_weighted(g, z, ts_has_mirror(g, p.k)));
}

// Half spectra as a library takes them: real signals have them. What is not is left out: the imaginary parts that the first
// and the middle place would have after the transform of the other dims.
TS_KERNEL void __launch_bounds__(256) ts_fft_halves(const __grid_constant__ Move g) {
    Place p;
    if (!ts_find(g, p)) return;
    Pair z = p.inside ? ts_load(g, p.from) : Pair{0, 0};
    const bool has_mirror = ts_has_mirror(g, p.k);
    if (!has_mirror) {
        const Pair o = p.inside_mirror ? ts_load(g, p.from_mirror) : Pair{0, 0};
        z = Pair{(z.re + o.re) * (T)0.5, (z.im - o.im) * (T)0.5};
    }
    ts_save(g, p.to, ts_weighted(g, z, has_mirror));
}

// The other halves of spectra of real signals, of which the first ones are there; from and to are the same.
TS_KERNEL void __launch_bounds__(256) ts_fft_mirror(const __grid_constant__ Move g) {
    Place p;
    if (!ts_find(g, p)) return;
    const Pair z = ts_weighted(g, ts_load(g, p.from), false);
    ts_save(g, p.to, z);
    if (ts_has_mirror(g, p.k)) ts_save(g, p.to_mirror, Pair{z.re, (T)0 - z.im});
}
