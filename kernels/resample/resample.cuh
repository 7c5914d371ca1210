// Padding (reflect, replicate, circular) and interpolation over up to three dims, and their gradients. T: memory type. In
// each dim, an output reads certain inputs; gradients gather from the outputs that read an input, so that the order of sums
// is fixed.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;
enum { REFLECT = 0, REPLICATE = 1, CIRCULAR = 2, NEAREST = 3, NEAREST_EXACT = 4, LINEAR = 5, CUBIC = 6 };

#include "resample/args.cuh"

TS_FN ts_i64 ts_modulo(ts_i64 a, ts_i64 n) {
    const ts_i64 r = a % n;
    return r < 0 ? r + n : r;
}

TS_FN ts_i64 ts_pad_source(const Args& g, int d, ts_i64 o) {
    const ts_i64 n = g.input[d], i = o - g.pad_before[d];
    if (g.mode == CIRCULAR) return ts_modulo(i, n);
    if (g.mode == REPLICATE) return i < 0 ? 0 : i < n ? i : n - 1;
    const ts_i64 period = n > 1 ? 2 * n - 2 : 1, r = ts_modulo(i, period);
    return r < n ? r : period - r;
}
TS_KERNEL void __launch_bounds__(256) ts_pad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outputs = ts_numel(g.output);
    if (i >= g.planes * outputs) return;
    ts_i64 o[3];
    ts_unravel(i % outputs, g.output, o);
    const ts_i64 at = (ts_pad_source(g, 0, o[0]) * g.input[1] + ts_pad_source(g, 1, o[1])) * g.input[2] + ts_pad_source(g, 2, o[2]);
    g.y[i] = g.x[i / outputs * ts_numel(g.input) + at];
}

// The outputs of padding that read input i of a dim: first[p], first[p] + step, .. below end, for p below `count`.
struct PadOutputs {
    ts_i64 first[2], step, end;
    int count;
};
TS_FN PadOutputs ts_pad_outputs(const Args& g, int d, ts_i64 i) {
    const ts_i64 n = g.input[d], at = i + g.pad_before[d];
    PadOutputs m = {{at, 0}, 1, at + 1, 1};
    if (g.mode == REPLICATE) {
        if (i == 0) m.first[0] = 0;
        if (i == n - 1) m.end = g.output[d];
    } else {
        const ts_i64 period = g.mode == CIRCULAR ? n : n > 1 ? 2 * n - 2 : 1;
        m.first[0] = ts_modulo(at, period);
        m.first[1] = ts_modulo(g.pad_before[d] - i, period);
        m.count = g.mode == REFLECT && m.first[1] != m.first[0] ? 2 : 1;
        m.step = period;
        m.end = g.output[d];
    }
    m.end = m.end < g.output[d] ? m.end : g.output[d];
    // Negative padding: outputs before the first do not exist. The last input is still replicated into outputs past it.
    if (m.first[0] < 0) m.first[0] = g.mode == REPLICATE && i == n - 1 ? 0 : m.end;
    return m;
}
// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_pad_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, inputs = ts_numel(g.input);
    if (i >= g.planes * inputs) return;
    const T* x = g.x + i / inputs * ts_numel(g.output);
    ts_i64 at[3];
    ts_unravel(i % inputs, g.input, at);
    const PadOutputs m0 = ts_pad_outputs(g, 0, at[0]), m1 = ts_pad_outputs(g, 1, at[1]), m2 = ts_pad_outputs(g, 2, at[2]);
    C sum = 0;
    for (int p = 0; p < m0.count; p++)
        for (ts_i64 a = m0.first[p]; a < m0.end; a += m0.step)
            for (int q = 0; q < m1.count; q++)
                for (ts_i64 b = m1.first[q]; b < m1.end; b += m1.step)
                    for (int r = 0; r < m2.count; r++)
                        for (ts_i64 c = m2.first[r]; c < m2.end; c += m2.step)
                            sum += ts_upcast(x[(a * g.output[1] + b) * g.output[2] + c]);
    g.y[i] = ts_downcast<T>(sum);
}

struct Taps {
    ts_i64 at[4];
    C weight[4];
    int n;
};
template <class F> TS_FN F ts_scale(const Args& g, int d, bool align) {
    if (align) return g.output[d] > 1 ? (F)(g.input[d] - 1) / (F)(g.output[d] - 1) : (F)0;
    return g.scale_factor[d] > 0 ? (F)(1.0 / g.scale_factor[d]) : (F)g.input[d] / (F)g.output[d];
}
TS_FN C ts_source_index(const Args& g, int d, ts_i64 o) {
    const C scale = ts_scale<C>(g, d, g.align);
    return g.align ? scale * (C)o : scale * ((C)o + (C)0.5) - (C)0.5;
}
// The first input at or below an output's source index; monotonic in the output.
TS_FN ts_i64 ts_source_floor(const Args& g, int d, ts_i64 o) {
    const ts_i64 last = g.input[d] - 1;
    if (g.unchanged[d]) return 0;
    ts_i64 index;
    if (g.mode == NEAREST || g.mode == NEAREST_EXACT) {
        // PyTorch computes this in float for every dtype.
        const float shift = g.mode == NEAREST ? 0.0f : 0.5f;
        index = (ts_i64)floorf(((float)o + shift) * ts_scale<float>(g, d, false));
    } else {
        const C real = ts_source_index(g, d, o);
        index = g.mode == LINEAR && real < 0 ? 0 : (ts_i64)floor((double)real);
    }
    return index < last ? index : last;
}
TS_FN Taps ts_taps(const Args& g, int d, ts_i64 o) {
    const ts_i64 last = g.input[d] - 1, base = ts_source_floor(g, d, o);
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
        const ts_i64 at = base - 1 + k;
        const C x = distance[k];
        t.at[k] = at < 0 ? 0 : at < last ? at : last;
        t.weight[k] = k == 1 || k == 2 ? ((a + 2) * x - (a + 3)) * x * x + 1
                                       : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
    return t;
}

TS_KERNEL void __launch_bounds__(256) ts_interpolate(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outputs = ts_numel(g.output);
    if (i >= g.planes * outputs) return;
    const T* x = g.x + i / outputs * ts_numel(g.input);
    ts_i64 o[3];
    ts_unravel(i % outputs, g.output, o);
    const Taps t0 = ts_taps(g, 0, o[0]), t1 = ts_taps(g, 1, o[1]), t2 = ts_taps(g, 2, o[2]);
    C sum = 0;
    for (int a = 0; a < t0.n; a++)
        for (int b = 0; b < t1.n; b++) {
            const T* row = x + (t0.at[a] * g.input[1] + t1.at[b]) * g.input[2];
            C along = 0;
            for (int c = 0; c < t2.n; c++) along += t2.weight[c] * ts_upcast(row[t2.at[c]]);
            sum += t0.weight[a] * t1.weight[b] * along;
        }
    g.y[i] = ts_downcast<T>(sum);
}

// The first output whose source floor is at least `base`.
TS_FN ts_i64 ts_first_output(const Args& g, int d, ts_i64 base) {
    ts_i64 low = 0, high = g.output[d];
    while (low < high) {
        const ts_i64 middle = low + (high - low) / 2;
        if (ts_source_floor(g, d, middle) >= base) high = middle;
        else low = middle + 1;
    }
    return low;
}
struct Range {
    ts_i64 first, end;
};
// The range of outputs that may read input i.
TS_FN Range ts_output_range(const Args& g, int d, ts_i64 i) {
    const bool one = g.unchanged[d] || g.mode == NEAREST || g.mode == NEAREST_EXACT;
    const ts_i64 reach_before = !one && g.mode == CUBIC ? 1 : 0, reach_after = one ? 0 : g.mode == CUBIC ? 2 : 1;
    Range r;
    r.first = i == 0 ? 0 : ts_first_output(g, d, i - reach_after);
    r.end = i == g.input[d] - 1 ? g.output[d] : ts_first_output(g, d, i + reach_before + 1);
    return r;
}
TS_FN C ts_weight_of(const Args& g, int d, ts_i64 o, ts_i64 i) {
    const Taps t = ts_taps(g, d, o);
    C sum = 0;
    for (int k = 0; k < t.n; k++)
        if (t.at[k] == i) sum += t.weight[k];
    return sum;
}
// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_interpolate_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, inputs = ts_numel(g.input);
    if (i >= g.planes * inputs) return;
    const T* x = g.x + i / inputs * ts_numel(g.output);
    ts_i64 at[3];
    ts_unravel(i % inputs, g.input, at);
    const Range r0 = ts_output_range(g, 0, at[0]), r1 = ts_output_range(g, 1, at[1]), r2 = ts_output_range(g, 2, at[2]);
    C sum = 0;
    for (ts_i64 a = r0.first; a < r0.end; a++) {
        const C w0 = ts_weight_of(g, 0, a, at[0]);
        if (w0 == 0) continue;
        for (ts_i64 b = r1.first; b < r1.end; b++) {
            const C w1 = w0 * ts_weight_of(g, 1, b, at[1]);
            if (w1 == 0) continue;
            for (ts_i64 c = r2.first; c < r2.end; c++)
                sum += ts_upcast(x[(a * g.output[1] + b) * g.output[2] + c]) * w1 * ts_weight_of(g, 2, c, at[2]);
        }
    }
    g.y[i] = ts_downcast<T>(sum);
}
