// Max and average pooling over windows of up to three dims, and their gradients. T: memory type. A thread for each output; in
// the gradient of average pooling, one for each input, which gathers from the windows that contain it.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;

#include "pool/args.cuh"


// Positions first, first + step, .. below end; `counted` is the size of the window including padding.
struct Window {
    ts_i64 first, end, step, counted;
};
TS_FN Window ts_window(const Args& g, int d, ts_i64 o) {
    Window w;
    if (g.adaptive) {
        w.first = o * g.input[d] / g.output[d];
        w.end = ((o + 1) * g.input[d] + g.output[d] - 1) / g.output[d];
        w.step = 1;
        w.counted = w.end - w.first;
        return w;
    }
    w.step = g.dilation[d];
    const ts_i64 begin = o * g.stride[d] - g.padding[d], stop = begin + (g.kernel[d] - 1) * w.step + 1;
    const ts_i64 padded = stop < g.input[d] + g.padding[d] ? stop : g.input[d] + g.padding[d];
    w.counted = padded > begin ? padded - begin : 0;
    w.first = begin < 0 ? begin + (-begin + w.step - 1) / w.step * w.step : begin;
    w.end = stop < g.input[d] ? stop : g.input[d];
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
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outputs = ts_numel(g.output);
    if (i >= g.planes * outputs) return;
    const T* x = g.x + i / outputs * ts_numel(g.input);
    ts_i64 o[3], start[3];
    ts_unravel(i % outputs, g.output, o);
    Window w[3];
    for (int d = 0; d < 3; d++) {
        w[d] = ts_window(g, d, o[d]);
        start[d] = w[d].first < g.input[d] - 1 ? w[d].first : g.input[d] - 1;
    }
    C max = -ts_inf(C());
    ts_i64 index = (start[0] * g.input[1] + start[1]) * g.input[2] + start[2];
    for (ts_i64 a = w[0].first; a < w[0].end; a += w[0].step)
        for (ts_i64 b = w[1].first; b < w[1].end; b += w[1].step)
            for (ts_i64 c = w[2].first; c < w[2].end; c += w[2].step) {
                const ts_i64 p = (a * g.input[1] + b) * g.input[2] + c;
                const C v = ts_upcast(x[p]);
                if (v > max || v != v) {
                    max = v;
                    index = p;
                }
            }
    g.y[i] = ts_downcast<T>(max);
    g.indices[i] = index;
}

// x: gradient of the outputs; grad_in: gradient of the inputs, zeroed before the launch.
TS_KERNEL void __launch_bounds__(256) ts_max_pool_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outputs = ts_numel(g.output), inputs = ts_numel(g.input);
    if (i >= g.planes * outputs) return;
    const ts_i64 index = g.indices[i];
    if (index >= 0 && index < inputs) atomicAdd(g.grad_in + i / outputs * inputs + index, (C)ts_upcast(g.x[i]));
}

TS_KERNEL void __launch_bounds__(256) ts_avg_pool(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outputs = ts_numel(g.output);
    if (i >= g.planes * outputs) return;
    const T* x = g.x + i / outputs * ts_numel(g.input);
    ts_i64 o[3];
    ts_unravel(i % outputs, g.output, o);
    Window w[3];
    for (int d = 0; d < 3; d++) w[d] = ts_window(g, d, o[d]);
    C sum = 0;
    for (ts_i64 a = w[0].first; a < w[0].end; a++)
        for (ts_i64 b = w[1].first; b < w[1].end; b++)
            for (ts_i64 c = w[2].first; c < w[2].end; c++) sum += ts_upcast(x[(a * g.input[1] + b) * g.input[2] + c]);
    g.y[i] = ts_downcast<T>(sum / ts_divisor(g, w));
}

// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_avg_pool_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, outputs = ts_numel(g.output), inputs = ts_numel(g.input);
    if (i >= g.planes * inputs) return;
    const T* x = g.x + i / inputs * outputs;
    ts_i64 p[3], from[3], to[3];
    ts_unravel(i % inputs, g.input, p);
    for (int d = 0; d < 3; d++) {
        if (g.adaptive) {
            from[d] = p[d] * g.output[d] / g.input[d];
            to[d] = ((p[d] + 1) * g.output[d] + g.input[d] - 1) / g.input[d];
        } else {
            const ts_i64 q = p[d] + g.padding[d] - g.kernel[d];
            from[d] = q < 0 ? 0 : q / g.stride[d] + 1;
            to[d] = (p[d] + g.padding[d]) / g.stride[d] + 1;
        }
        to[d] = to[d] < g.output[d] ? to[d] : g.output[d];
    }
    C sum = 0;
    Window w[3];
    for (ts_i64 a = from[0]; a < to[0]; a++) {
        w[0] = ts_window(g, 0, a);
        for (ts_i64 b = from[1]; b < to[1]; b++) {
            w[1] = ts_window(g, 1, b);
            for (ts_i64 c = from[2]; c < to[2]; c++) {
                w[2] = ts_window(g, 2, c);
                sum += ts_upcast(x[(a * g.output[1] + b) * g.output[2] + c]) / ts_divisor(g, w);
            }
        }
    }
    g.y[i] = ts_downcast<T>(sum);
}
