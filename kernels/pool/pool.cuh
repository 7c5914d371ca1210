// Max and average pooling over windows of up to three dims, and their gradients. A thread for each output, or a warp where
// windows are large; in the gradient of average pooling a thread for each input, which gathers from the windows that contain
// it. T: memory type; WIDE: positions may be 2^31 and more; K0, K1, K2: sizes of the windows, 0 if the arguments have them.
#include "math/math.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;
#if WIDE
typedef ts_i64 Int;
#else
typedef ts_i32 Int;
#endif

#include "pool/args.cuh"

// Positions first, first + step, .. below end; `counted` is the size of the window including padding.
struct Window {
    Int first, end, step, counted;
};
TS_FN Int ts_kernel_size(const Args& g, int d) {
    const int sizes[3] = {K0, K1, K2};
    return sizes[d] ? (Int)sizes[d] : (Int)g.kernel[d];
}
TS_FN Window ts_window(const Args& g, int d, Int o) {
    const Int input = (Int)g.input[d], output = (Int)g.output[d];
    Window w;
    if (g.adaptive) {
        w.first = ts_quotient(o * input, g.output[d], g.divide_output[d]);
        w.end = ts_quotient((o + 1) * input + output - 1, g.output[d], g.divide_output[d]);
        w.step = 1;
        w.counted = w.end - w.first;
        return w;
    }
    w.step = (Int)g.dilation[d];
    const Int begin = o * (Int)g.stride[d] - (Int)g.padding[d], stop = begin + (ts_kernel_size(g, d) - 1) * w.step + 1;
    const Int padded = stop < input + (Int)g.padding[d] ? stop : input + (Int)g.padding[d];
    w.counted = padded > begin ? padded - begin : 0;
    w.first = begin >= 0 ? begin : w.step == 1 ? 0 : begin + (-begin + w.step - 1) / w.step * w.step;
    w.end = stop < input ? stop : input;
    return w;
}
TS_FN C ts_divisor(const Args& g, const Window* w) {
    if (g.divisor != 0) return (C)g.divisor;
    C all = 1;
    for (int d = 0; d < 3; d++) {
        const Int inside = w[d].end > w[d].first ? w[d].end - w[d].first : 0;
        all *= (C)(g.counted ? w[d].counted : inside);
    }
    return all;
}
// The windows of output i; returns the first element of its plane.
TS_FN Int ts_windows(const Args& g, Int i, Window* w) {
    Int o[3];
    const Int plane = ts_unravel_plane(i, g.output, g.divide_output, o);
#pragma unroll
    for (int d = 0; d < 3; d++) w[d] = ts_window(g, d, o[d]);
    return plane * (Int)ts_numel(g.input);
}

// A largest value and where it is. Of NaN the last counts, of equal values the first.
struct Largest {
    C value;
    Int at;
};
TS_FN Largest ts_larger(const Largest& a, const Largest& b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan && b_nan ? (a.at > b.at ? a : b) : a_nan ? a : b;
    if (a.value != b.value) return a.value > b.value ? a : b;
    return a.at < b.at ? a : b;
}
TS_FN Int ts_first_position(const Args& g, const Window* w) {
    Int start[3];
    for (int d = 0; d < 3; d++) start[d] = w[d].first < (Int)g.input[d] - 1 ? w[d].first : (Int)g.input[d] - 1;
    return (start[0] * (Int)g.input[1] + start[1]) * (Int)g.input[2] + start[2];
}

TS_KERNEL void __launch_bounds__(256) ts_max_pool(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Window w[3];
    const T* x = g.x + ts_windows(g, (Int)i, w);
    Largest max = {-ts_inf(C()), ts_first_position(g, w)};
    for (Int a = w[0].first; a < w[0].end; a += w[0].step)
        for (Int b = w[1].first; b < w[1].end; b += w[1].step) {
            const Int row = (a * (Int)g.input[1] + b) * (Int)g.input[2];
            for (Int c = w[2].first; c < w[2].end; c += w[2].step) {
                const C v = ts_upcast(x[row + c]);
                if (v > max.value || v != v) max = {v, row + c};
            }
        }
    g.y[i] = ts_downcast<T>(max.value);
    g.indices[i] = max.at;
}

// The positions of a window without dilation as rows of adjacent elements: all of them where the window is a whole plane.
struct Rows {
    Int first, rows, length, columns;
};
TS_FN Rows ts_rows(const Args& g, const Window* w) {
    Int n[3];
    for (int d = 0; d < 3; d++) n[d] = w[d].end > w[d].first ? w[d].end - w[d].first : 0;
    const bool whole2 = n[2] == (Int)g.input[2], whole1 = whole2 && n[1] == (Int)g.input[1];
    Rows r;
    r.first = (w[0].first * (Int)g.input[1] + w[1].first) * (Int)g.input[2] + w[2].first;
    r.columns = whole1 ? 1 : n[1];
    r.length = whole1 ? n[0] * n[1] * n[2] : n[2];
    r.rows = whole1 ? (n[0] > 0) : n[0] * n[1];
    return r;
}
// The place of element t of a window, counted from its first.
TS_FN Int ts_place(const Args& g, const Rows& r, Int t) {
    if (r.rows == 1) return t;
    const Int row = t / r.length, a = row / r.columns;
    return (a * (Int)g.input[1] + (row - a * r.columns)) * (Int)g.input[2] + (t - row * r.length);
}

TS_KERNEL void __launch_bounds__(256) ts_max_pool_warp(const __grid_constant__ Args g) {
    const ts_u64 i = ((ts_u64)blockIdx.x * 256 + threadIdx.x) / 32;
    if (i >= g.n) return;
    Window w[3];
    const T* x = g.x + ts_windows(g, (Int)i, w);
    const Rows r = ts_rows(g, w);
    Largest max = {-ts_inf(C()), r.first};
    for (Int t = threadIdx.x % 32; t < r.rows * r.length; t += 32) {
        const Int at = r.first + ts_place(g, r, t);
        const C v = ts_upcast(x[at]);
        if (v > max.value || v != v) max = {v, at};
    }
    for (int step = 16; step > 0; step /= 2) {
        const Largest other = {__shfl_xor_sync(0xffffffffu, max.value, step), __shfl_xor_sync(0xffffffffu, max.at, step)};
        max = ts_larger(max, other);
    }
    if (threadIdx.x % 32 == 0) {
        g.y[i] = ts_downcast<T>(max.value);
        g.indices[i] = max.at;
    }
}

// x: gradient of the outputs; grad_in: gradient of the inputs, zeroed before the launch.
TS_KERNEL void __launch_bounds__(256) ts_max_pool_grad(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int o[3];
    const Int plane = ts_unravel_plane((Int)i, g.output, g.divide_output, o);
    const ts_i64 index = g.indices[i], inputs = ts_numel(g.input);
    if (index >= 0 && index < inputs) atomicAdd(g.grad_in + plane * inputs + index, (C)ts_upcast(g.x[i]));
}

TS_KERNEL void __launch_bounds__(256) ts_avg_pool(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Window w[3];
    const T* x = g.x + ts_windows(g, (Int)i, w);
    C sum = 0;
    for (Int a = w[0].first; a < w[0].end; a++)
        for (Int b = w[1].first; b < w[1].end; b++) {
            const Int row = (a * (Int)g.input[1] + b) * (Int)g.input[2];
            for (Int c = w[2].first; c < w[2].end; c++) sum += ts_upcast(x[row + c]);
        }
    g.y[i] = ts_downcast<T>(sum / ts_divisor(g, w));
}

TS_KERNEL void __launch_bounds__(256) ts_avg_pool_warp(const __grid_constant__ Args g) {
    const ts_u64 i = ((ts_u64)blockIdx.x * 256 + threadIdx.x) / 32;
    if (i >= g.n) return;
    Window w[3];
    const T* x = g.x + ts_windows(g, (Int)i, w);
    const Rows r = ts_rows(g, w);
    C sum = 0;
    for (Int t = threadIdx.x % 32; t < r.rows * r.length; t += 32) sum += ts_upcast(x[r.first + ts_place(g, r, t)]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) g.y[i] = ts_downcast<T>(sum / ts_divisor(g, w));
}

// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_avg_pool_grad(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int p[3], from[3], to[3];
    const Int plane = ts_unravel_plane((Int)i, g.input, g.divide_input, p);
    const T* x = g.x + plane * (Int)ts_numel(g.output);
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const Int input = (Int)g.input[d], output = (Int)g.output[d];
        if (g.adaptive) {
            from[d] = ts_quotient(p[d] * output, g.input[d], g.divide_input[d]);
            to[d] = ts_quotient((p[d] + 1) * output + input - 1, g.input[d], g.divide_input[d]);
        } else {
            const Int at = p[d] + (Int)g.padding[d], q = at - ts_kernel_size(g, d);
            from[d] = q < 0 ? 0 : ts_quotient(q, g.stride[d], g.divide_stride[d]) + 1;
            to[d] = ts_quotient(at, g.stride[d], g.divide_stride[d]) + 1;
        }
        to[d] = to[d] < output ? to[d] : output;
    }
    C sum = 0;
    Window w[3];
    for (Int a = from[0]; a < to[0]; a++) {
        w[0] = ts_window(g, 0, a);
        for (Int b = from[1]; b < to[1]; b++) {
            w[1] = ts_window(g, 1, b);
            const Int row = (a * (Int)g.output[1] + b) * (Int)g.output[2];
            for (Int c = from[2]; c < to[2]; c++) {
                w[2] = ts_window(g, 2, c);
                sum += ts_upcast(x[row + c]) / ts_divisor(g, w);
            }
        }
    }
    g.y[i] = ts_downcast<T>(sum);
}
