// Padding (reflect, replicate, circular) and interpolation over up to three dims, and their gradients. In each dim, an output
// reads certain inputs; gradients gather from the outputs that read an input, so that the order of sums is fixed. T: memory
// type; WIDE: positions may be 2^31 and more; TAPS0, TAPS1, TAPS2: inputs that an output of interpolation reads in each dim;
// PLANES: planes of a thread of interpolation.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;
#if WIDE
typedef ts_i64 Int;
#else
typedef ts_i32 Int;
#endif
enum { REFLECT = 0, REPLICATE = 1, CIRCULAR = 2, NEAREST = 3, NEAREST_EXACT = 4, LINEAR = 5, CUBIC = 6 };

#include "resample/args.cuh"

// a modulo n; no division for the arguments that padding by less than n has.
TS_FN Int ts_modulo(Int a, Int n) {
    if (a >= 0 && a < n) return a;
    if (a < 0 && a >= -n) return a + n;
    const Int r = a % n;
    return r < 0 ? r + n : r;
}

TS_FN Int ts_pad_source(const Args& g, int d, Int o) {
    const Int n = (Int)g.input[d], i = o - (Int)g.pad_before[d];
    if (i >= 0 && i < n) return i;
    if (g.mode == CIRCULAR) return ts_modulo(i, n);
    if (g.mode == REPLICATE) return i < 0 ? 0 : n - 1;
    const Int period = n > 1 ? 2 * n - 2 : 1, r = ts_modulo(i, period);
    return r < n ? r : period - r;
}
TS_KERNEL void __launch_bounds__(256) ts_pad(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int o[3], at[3];
    const Int plane = ts_unravel_plane((Int)i, g.output, g.divide_output, o);
#pragma unroll
    for (int d = 0; d < 3; d++) at[d] = ts_pad_source(g, d, o[d]);
    g.y[i] = g.x[plane * (Int)ts_numel(g.input) + (at[0] * (Int)g.input[1] + at[1]) * (Int)g.input[2] + at[2]];
}

// The outputs of padding that read input i of a dim: first[p], first[p] + step, .. below end, for p below `count`.
struct PadOutputs {
    Int first[2], step, end;
    int count;
};
TS_FN PadOutputs ts_pad_outputs(const Args& g, int d, Int i) {
    const Int n = (Int)g.input[d], output = (Int)g.output[d], before = (Int)g.pad_before[d], at = i + before;
    PadOutputs m = {{at, 0}, 1, at + 1, 1};
    if (g.mode == REPLICATE) {
        if (i == 0) m.first[0] = 0;
        if (i == n - 1) m.end = output;
    } else {
        const Int period = g.mode == CIRCULAR ? n : n > 1 ? 2 * n - 2 : 1;
        m.first[0] = ts_modulo(at, period);
        m.first[1] = ts_modulo(before - i, period);
        m.count = g.mode == REFLECT && m.first[1] != m.first[0] ? 2 : 1;
        m.step = period;
        m.end = output;
    }
    m.end = m.end < output ? m.end : output;
    // Negative padding: outputs before the first do not exist. The last input is still replicated into outputs past it.
    if (m.first[0] < 0) m.first[0] = g.mode == REPLICATE && i == n - 1 ? 0 : m.end;
    return m;
}
// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_pad_grad(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int at[3];
    const T* x = g.x + ts_unravel_plane((Int)i, g.input, g.divide_input, at) * (Int)ts_numel(g.output);
    const PadOutputs m0 = ts_pad_outputs(g, 0, at[0]), m1 = ts_pad_outputs(g, 1, at[1]), m2 = ts_pad_outputs(g, 2, at[2]);
    C sum = 0;
    for (int p = 0; p < m0.count; p++)
        for (Int a = m0.first[p]; a < m0.end; a += m0.step)
            for (int q = 0; q < m1.count; q++)
                for (Int b = m1.first[q]; b < m1.end; b += m1.step)
                    for (int r = 0; r < m2.count; r++)
                        for (Int c = m2.first[r]; c < m2.end; c += m2.step)
                            sum += ts_upcast(x[(a * (Int)g.output[1] + b) * (Int)g.output[2] + c]);
    g.y[i] = ts_downcast<T>(sum);
}

struct Taps {
    Int at[4];
    C weight[4];
    int n;
};
TS_FN float ts_floor_of(float x) { return floorf(x); }
TS_FN double ts_floor_of(double x) { return floor(x); }
TS_FN ts_i64 ts_floor_of(ts_i64 x) { return x; }
TS_FN bool ts_floor_of(bool x) { return x; }
TS_FN C ts_source_index(const Args& g, int d, Int o) {
    const C scale = (C)g.scale[d];
    return g.align ? scale * (C)o : scale * ((C)o + (C)0.5) - (C)0.5;
}
// The first input at or below an output's source index; monotonic in the output.
TS_FN Int ts_source_floor(const Args& g, int d, Int o) {
    const Int last = (Int)g.input[d] - 1;
    if (g.unchanged[d]) return 0;
    Int index;
    if (g.mode == NEAREST || g.mode == NEAREST_EXACT) {
        // PyTorch computes this in float for every dtype.
        const float shift = g.mode == NEAREST ? 0.0f : 0.5f;
        index = (Int)floorf(((float)o + shift) * (float)g.nearest_scale[d]);
    } else {
        const C real = ts_source_index(g, d, o);
        index = g.mode == LINEAR && real < 0 ? 0 : (Int)ts_floor_of(real);
    }
    return index < last ? index : last;
}
TS_FN Taps ts_taps(const Args& g, int d, Int o) {
    const Int last = (Int)g.input[d] - 1, base = ts_source_floor(g, d, o);
    Taps t;
    t.n = 1;
    t.at[0] = base < 0 ? 0 : base;
    t.weight[0] = 1;
    if (g.unchanged[d] || g.mode == NEAREST || g.mode == NEAREST_EXACT) return t;
    C real = ts_source_index(g, d, o);
    if (g.mode == LINEAR) {
        real = real < 0 ? (C)0 : real;
        const C apart = real - (C)base, w = apart > 1 ? (C)1 : apart;
        t.n = 2;
        t.at[1] = base + 1 < last ? base + 1 : last;
        t.weight[0] = (C)1 - w;
        t.weight[1] = w;
        return t;
    }
    C w = real - (C)base;
    w = w < 0 ? (C)0 : w > 1 ? (C)1 : w;
    // Keys' cubic convolution at distances 1 + w, w, 1 - w, 2 - w.
    const C a = (C)-0.75;
    const C distance[4] = {w + 1, w, (C)1 - w, (C)2 - w};
    t.n = 4;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const Int at = base - 1 + k;
        const C x = distance[k];
        t.at[k] = at < 0 ? 0 : at < last ? at : last;
        t.weight[k] = k == 1 || k == 2 ? ((a + 2) * x - (a + 3)) * x * x + 1
                                       : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
    return t;
}

// The inputs and weights of an output cost once for its PLANES planes.
TS_KERNEL void __launch_bounds__(256) ts_interpolate(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int o[3];
    const Int group = ts_unravel_plane((Int)i, g.output, g.divide_output, o), inputs = (Int)ts_numel(g.input);
    const Int outputs = (Int)ts_numel(g.output), place = (Int)i - group * outputs, first = group * PLANES;
    const Taps t0 = ts_taps(g, 0, o[0]), t1 = ts_taps(g, 1, o[1]), t2 = ts_taps(g, 2, o[2]);
#pragma unroll 4
    for (int p = 0; p < PLANES; p++) {
        if (first + p >= (Int)g.planes) break;
        const T* x = g.x + (first + p) * inputs;
        C sum = 0;
#pragma unroll
        for (int a = 0; a < TAPS0; a++)
#pragma unroll
            for (int b = 0; b < TAPS1; b++) {
                const T* row = x + (t0.at[a] * (Int)g.input[1] + t1.at[b]) * (Int)g.input[2];
                C along = 0;
#pragma unroll
                for (int c = 0; c < TAPS2; c++) along += t2.weight[c] * ts_upcast(row[t2.at[c]]);
                sum += t0.weight[a] * t1.weight[b] * along;
            }
        g.y[(first + p) * outputs + place] = ts_downcast<T>(sum);
    }
}

// For the gradient: what the outputs read. `reads`: for each output of each dim, the first input that it reads and the
// weights of that and the next three; `readers`: for each input of each dim, the range of outputs that may read it.
struct Reads {
    Int first, unused;
    C weight[4];
};
struct Readers {
    Int first, end;
};

// The first output whose source floor is at least `base`.
TS_FN Int ts_first_output(const Args& g, int d, Int base) {
    Int low = 0, high = (Int)g.output[d];
    while (low < high) {
        const Int middle = low + (high - low) / 2;
        if (ts_source_floor(g, d, middle) >= base) high = middle;
        else low = middle + 1;
    }
    return low;
}
TS_FN Readers ts_readers(const Args& g, int d, Int i) {
    const bool one = g.unchanged[d] || g.mode == NEAREST || g.mode == NEAREST_EXACT;
    const Int reach_before = !one && g.mode == CUBIC ? 1 : 0, reach_after = one ? 0 : g.mode == CUBIC ? 2 : 1;
    Readers r;
    r.first = i == 0 ? 0 : ts_first_output(g, d, i - reach_after);
    r.end = i == (Int)g.input[d] - 1 ? (Int)g.output[d] : ts_first_output(g, d, i + reach_before + 1);
    return r;
}
TS_FN Reads ts_reads(const Args& g, int d, Int o) {
    const Taps t = ts_taps(g, d, o);
    Reads r = {t.at[0], 0, {0, 0, 0, 0}};
    for (int k = 0; k < t.n; k++) r.weight[t.at[k] - t.at[0]] += t.weight[k];
    return r;
}
// Threads: the outputs of each dim, then the inputs of each dim.
TS_KERNEL void __launch_bounds__(256) ts_interpolate_tables(const __grid_constant__ Args g) {
    ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x;
    Reads* reads = (Reads*)g.reads;
    Readers* readers = (Readers*)g.readers;
    for (int d = 0; d < 3; d++) {
        if (i < g.output[d]) {
            reads[i] = ts_reads(g, d, (Int)i);
            return;
        }
        i -= g.output[d];
        reads += g.output[d];
    }
    for (int d = 0; d < 3; d++) {
        if (i < g.input[d]) {
            readers[i] = ts_readers(g, d, (Int)i);
            return;
        }
        i -= g.input[d];
        readers += g.input[d];
    }
}

TS_FN C ts_weight_of(const Reads& r, Int i) {
    const Int k = i - r.first;
    return k == 0 ? r.weight[0] : k == 1 ? r.weight[1] : k == 2 ? r.weight[2] : k == 3 ? r.weight[3] : (C)0;
}
// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_interpolate_grad(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int at[3];
    const Int group = ts_unravel_plane((Int)i, g.input, g.divide_input, at), inputs = (Int)ts_numel(g.input);
    const Int outputs = (Int)ts_numel(g.output), place = (Int)i - group * inputs, first = group * PLANES;
    const T* x[PLANES];
    C sum[PLANES];
#pragma unroll
    for (int p = 0; p < PLANES; p++) {
        // Past the last plane it is the last again, whose sum is not stored twice.
        x[p] = g.x + (first + p < (Int)g.planes ? first + p : (Int)g.planes - 1) * outputs;
        sum[p] = 0;
    }
    const Reads *reads0 = (const Reads*)g.reads, *reads1 = reads0 + g.output[0], *reads2 = reads1 + g.output[1];
    const Readers* readers = (const Readers*)g.readers;
    const Readers r0 = readers[at[0]], r1 = readers[g.input[0] + at[1]], r2 = readers[g.input[0] + g.input[1] + at[2]];
    for (Int a = r0.first; a < r0.end; a++) {
        const C w0 = ts_weight_of(reads0[a], at[0]);
        if (w0 == 0) continue;
        for (Int b = r1.first; b < r1.end; b++) {
            const C w1 = w0 * ts_weight_of(reads1[b], at[1]);
            if (w1 == 0) continue;
            const Int row = (a * (Int)g.output[1] + b) * (Int)g.output[2];
            for (Int c = r2.first; c < r2.end; c++) {
                const C w2 = ts_weight_of(reads2[c], at[2]);
#pragma unroll
                for (int p = 0; p < PLANES; p++) sum[p] += ts_upcast(x[p][row + c]) * w1 * w2;
            }
        }
    }
#pragma unroll
    for (int p = 0; p < PLANES; p++)
        if (first + p < (Int)g.planes) g.y[(first + p) * inputs + place] = ts_downcast<T>(sum[p]);
}
