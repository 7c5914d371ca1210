// Pooling over windows of up to three dims, and gradients. T: memory type. A thread for each output, or each input where
// a gradient gathers what its windows got.
#include "math/math.cuh"
#include "common/volume.cuh"

typedef typename ts_of<T>::cls C;

struct Args {
    const T* x;
    T* y;
    ts_i64* at;
    C* sums;
    ts_i64 planes, adaptive, counted;
    double divisor;
    ts_i64 in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};


// Positions first, first + step, .. below end; `counted` includes the padding.
struct Window {
    ts_i64 first, end, step, counted;
};
TS_FN Window ts_window(const Args& g, int d, ts_i64 o) {
    Window w;
    if (g.adaptive) {
        w.first = o * g.in[d] / g.out[d];
        w.end = ((o + 1) * g.in[d] + g.out[d] - 1) / g.out[d];
        w.step = 1;
        w.counted = w.end - w.first;
        return w;
    }
    w.step = g.dilation[d];
    const ts_i64 begin = o * g.stride[d] - g.padding[d], stop = begin + (g.kernel[d] - 1) * w.step + 1;
    const ts_i64 padded = stop < g.in[d] + g.padding[d] ? stop : g.in[d] + g.padding[d];
    w.counted = padded > begin ? padded - begin : 0;
    w.first = begin < 0 ? begin + (-begin + w.step - 1) / w.step * w.step : begin;
    w.end = stop < g.in[d] ? stop : g.in[d];
    return w;
}
TS_FN C ts_divisor(const Args& g, const Window* w) {
    if (g.divisor != 0) return (C)g.divisor;
    C all = 1;
    for (int d = 0; d < 3; d++) {
        const ts_i64 inside = w[d].end > w[d].first ? w[d].end - w[d].first : 0;
        all *= (C)(g.counted ? w[d].counted : inside);
    }
    return all;
}

TS_KERNEL void __launch_bounds__(256) ts_max_pool(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outs = ts_volume(g.out);
    if (i >= g.planes * outs) return;
    const T* x = g.x + i / outs * ts_volume(g.in);
    ts_i64 o[3], start[3];
    ts_split(i % outs, g.out, o);
    Window w[3];
    for (int d = 0; d < 3; d++) {
        w[d] = ts_window(g, d, o[d]);
        start[d] = w[d].first < g.in[d] - 1 ? w[d].first : g.in[d] - 1;
    }
    C most = -ts_inf(C());
    ts_i64 at = (start[0] * g.in[1] + start[1]) * g.in[2] + start[2];
    for (ts_i64 a = w[0].first; a < w[0].end; a += w[0].step)
        for (ts_i64 b = w[1].first; b < w[1].end; b += w[1].step)
            for (ts_i64 c = w[2].first; c < w[2].end; c += w[2].step) {
                const ts_i64 p = (a * g.in[1] + b) * g.in[2] + c;
                const C v = ts_up(x[p]);
                if (v > most || v != v) {
                    most = v;
                    at = p;
                }
            }
    g.y[i] = ts_down<T>(most);
    g.at[i] = at;
}

// x: gradient of the outputs; sums (zero before): gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_max_pool_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outs = ts_volume(g.out), ins = ts_volume(g.in);
    if (i >= g.planes * outs) return;
    const ts_i64 at = g.at[i];
    if (at >= 0 && at < ins) atomicAdd(g.sums + i / outs * ins + at, (C)ts_up(g.x[i]));
}

TS_KERNEL void __launch_bounds__(256) ts_avg_pool(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outs = ts_volume(g.out);
    if (i >= g.planes * outs) return;
    const T* x = g.x + i / outs * ts_volume(g.in);
    ts_i64 o[3];
    ts_split(i % outs, g.out, o);
    Window w[3];
    for (int d = 0; d < 3; d++) w[d] = ts_window(g, d, o[d]);
    C sum = 0;
    for (ts_i64 a = w[0].first; a < w[0].end; a++)
        for (ts_i64 b = w[1].first; b < w[1].end; b++)
            for (ts_i64 c = w[2].first; c < w[2].end; c++) sum += ts_up(x[(a * g.in[1] + b) * g.in[2] + c]);
    g.y[i] = ts_down<T>(sum / ts_divisor(g, w));
}

// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_avg_pool_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outs = ts_volume(g.out), ins = ts_volume(g.in);
    if (i >= g.planes * ins) return;
    const T* x = g.x + i / ins * outs;
    ts_i64 p[3], from[3], to[3];
    ts_split(i % ins, g.in, p);
    for (int d = 0; d < 3; d++) {
        if (g.adaptive) {
            from[d] = p[d] * g.out[d] / g.in[d];
            to[d] = ((p[d] + 1) * g.out[d] + g.in[d] - 1) / g.in[d];
        } else {
            const ts_i64 q = p[d] + g.padding[d] - g.kernel[d];
            from[d] = q < 0 ? 0 : q / g.stride[d] + 1;
            to[d] = (p[d] + g.padding[d]) / g.stride[d] + 1;
        }
        to[d] = to[d] < g.out[d] ? to[d] : g.out[d];
    }
    C sum = 0;
    Window w[3];
    for (ts_i64 a = from[0]; a < to[0]; a++) {
        w[0] = ts_window(g, 0, a);
        for (ts_i64 b = from[1]; b < to[1]; b++) {
            w[1] = ts_window(g, 1, b);
            for (ts_i64 c = from[2]; c < to[2]; c++) {
                w[2] = ts_window(g, 2, c);
                sum += ts_up(x[(a * g.out[1] + b) * g.out[2] + c]) / ts_divisor(g, w);
            }
        }
    }
    g.y[i] = ts_down<T>(sum);
}
