// Max and average pooling over windows of up to three dims, and their gradients. A thread for each output, or a warp where
// windows are large; in the gradient of average pooling a thread for each input, which gathers from the windows that contain
// it, each in PLANES planes, so that what a window is costs once. T: memory type; WIDE: positions may be 2^31 and more; K0, K1,
// K2: sizes of the windows, 0 if the arguments have them; LANES: threads of a large window, a warp or a block.
#include "common/reduce.cuh"
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
// The windows of output i of all planes, of which each `each` are counted as one; returns the first of its planes.
TS_FN Int ts_windows(const Args& g, Int i, Window* w, Int each) {
    Int o[3];
    const Int group = ts_unravel_plane(i, g.output, g.divide_output, o);
#pragma unroll
    for (int d = 0; d < 3; d++) w[d] = ts_window(g, d, o[d]);
    return group * each;
}
// The planes of a thread from `first` on. Past the last they are the last again, whose result is not stored twice.
template <class Element> struct Planes {
    Element* at[PLANES];
    __device__ __forceinline__ Planes(Element* x, const Args& g, Int first, Int size) {
#pragma unroll
        for (int p = 0; p < PLANES; p++) at[p] = x + (first + p < (Int)g.planes ? first + p : (Int)g.planes - 1) * size;
    }
};

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
    const Int first = ts_windows(g, (Int)i, w, PLANES), outputs = (Int)ts_numel(g.output);
    const Int place = (Int)i - first / PLANES * outputs;
    const Planes<const T> x(g.x, g, first, (Int)ts_numel(g.input));
    Largest max[PLANES];
#pragma unroll
    for (int p = 0; p < PLANES; p++) max[p] = {-ts_inf(C()), ts_first_position(g, w)};
    for (Int a = w[0].first; a < w[0].end; a += w[0].step)
        for (Int b = w[1].first; b < w[1].end; b += w[1].step) {
            const Int row = (a * (Int)g.input[1] + b) * (Int)g.input[2];
            for (Int c = w[2].first; c < w[2].end; c += w[2].step)
#pragma unroll
                for (int p = 0; p < PLANES; p++) {
                    const C v = ts_upcast(x.at[p][row + c]);
                    if (v > max[p].value || v != v) max[p] = {v, row + c};
                }
        }
#pragma unroll
    for (int p = 0; p < PLANES; p++) {
        if (first + p >= (Int)g.planes) break;
        g.y[(first + p) * outputs + place] = ts_downcast<T>(max[p].value);
        g.indices[(first + p) * outputs + place] = max[p].at;
    }
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
// visit(position, value) for the elements of a window that are this lane's, positions rising. Vectors of 16 bytes where they are
// one row; else lanes lie side by side in a row as far as it goes, and below one another, so that nothing is divided.
template <class F> TS_FN void ts_for_window(const Args& g, const T* x, const Rows& r, F visit) {
    const Int lane = threadIdx.x % LANES;
    const int V = 16 / (int)sizeof(T);
    if (r.rows <= 1) {
        if (r.rows == 0) return;
        const T* from = x + r.first;
        if ((size_t)from % 16 == 0 && r.length % V == 0) {
#pragma unroll 4
            for (Int t = lane * V; t < r.length; t += LANES * V) {
                const ts_vec<T, V> values = *(const ts_vec<T, V>*)(from + t);
#pragma unroll
                for (int v = 0; v < V; v++) visit(r.first + t + v, ts_upcast(values.x[v]));
            }
        } else {
#pragma unroll 4
            for (Int t = lane; t < r.length; t += LANES) visit(r.first + t, ts_upcast(from[t]));
        }
        return;
    }
    int side = LANES;
    while (side > 1 && side / 2 >= r.length) side /= 2;
    const Int across = lane & (side - 1), down = lane / side, rows = LANES / side, depth = r.rows / r.columns;
    for (Int a = 0; a < depth; a++) {
        const Int plane = r.first + a * (Int)g.input[1] * (Int)g.input[2];
        if (r.length <= side) {
            if (across < r.length)
#pragma unroll 4
                for (Int b = down; b < r.columns; b += rows) {
                    const Int at = plane + b * (Int)g.input[2] + across;
                    visit(at, ts_upcast(x[at]));
                }
        } else {
            for (Int b = down; b < r.columns; b += rows)
                for (Int c = across; c < r.length; c += side) {
                    const Int at = plane + b * (Int)g.input[2] + c;
                    visit(at, ts_upcast(x[at]));
                }
        }
    }
}

struct Maximum {
    Largest best;
    TS_METHOD void merge(const Maximum& other) { best = ts_larger(best, other.best); }
};
TS_KERNEL void __launch_bounds__(256) ts_max_pool_warp(const __grid_constant__ Args g) {
    __shared__ Maximum shared[8];
    const ts_u64 i = ((ts_u64)blockIdx.x * 256 + threadIdx.x) / LANES;
    Maximum max = {{-ts_inf(C()), 0}};
    if (i < g.n) {
        Window w[3];
        const Int plane = ts_windows(g, (Int)i, w, 1);
        const Rows r = ts_rows(g, w);
        max.best.at = r.first;
        ts_for_window(g, g.x + plane * (Int)ts_numel(g.input), r, [&](Int at, C v) {
            if (v > max.best.value || v != v) max.best = {v, at};
        });
    }
    ts_group_reduce(max, LANES, shared);
    if (i < g.n && threadIdx.x % LANES == 0) {
        g.y[i] = ts_downcast<T>(max.best.value);
        g.indices[i] = max.best.at;
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
    const Int first = ts_windows(g, (Int)i, w, PLANES), outputs = (Int)ts_numel(g.output);
    const Int place = (Int)i - first / PLANES * outputs;
    const Planes<const T> x(g.x, g, first, (Int)ts_numel(g.input));
    C sum[PLANES];
#pragma unroll
    for (int p = 0; p < PLANES; p++) sum[p] = 0;
    for (Int a = w[0].first; a < w[0].end; a++)
        for (Int b = w[1].first; b < w[1].end; b++) {
            const Int row = (a * (Int)g.input[1] + b) * (Int)g.input[2];
            for (Int c = w[2].first; c < w[2].end; c++)
#pragma unroll
                for (int p = 0; p < PLANES; p++) sum[p] += ts_upcast(x.at[p][row + c]);
        }
    const C divisor = ts_divisor(g, w);
#pragma unroll
    for (int p = 0; p < PLANES; p++)
        if (first + p < (Int)g.planes) g.y[(first + p) * outputs + place] = ts_downcast<T>(sum[p] / divisor);
}

TS_KERNEL void __launch_bounds__(256) ts_avg_pool_warp(const __grid_constant__ Args g) {
    __shared__ ts_sum<C> shared[8];
    const ts_u64 i = ((ts_u64)blockIdx.x * 256 + threadIdx.x) / LANES;
    Window w[3];
    ts_sum<C> sum = {0};
    if (i < g.n) {
        const Int plane = ts_windows(g, (Int)i, w, 1);
        ts_for_window(g, g.x + plane * (Int)ts_numel(g.input), ts_rows(g, w), [&](Int at, C v) { sum.add(v, at); });
    }
    ts_group_reduce(sum, LANES, shared);
    if (i < g.n && threadIdx.x % LANES == 0) g.y[i] = ts_downcast<T>(sum.v / ts_divisor(g, w));
}

// x: gradient of the outputs; y: gradient of the inputs.
TS_KERNEL void __launch_bounds__(256) ts_avg_pool_grad(const __grid_constant__ Args g) {
    const ts_u64 i = (ts_u64)blockIdx.x * 256 + threadIdx.x;
    if (i >= g.n) return;
    Int p[3], from[3], to[3];
    const Int first = ts_unravel_plane((Int)i, g.input, g.divide_input, p) * PLANES, inputs = (Int)ts_numel(g.input);
    const Int place = (Int)i - first / PLANES * inputs;
    const Planes<const T> x(g.x, g, first, (Int)ts_numel(g.output));
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
    C sum[PLANES];
#pragma unroll
    for (int q = 0; q < PLANES; q++) sum[q] = 0;
    Window w[3];
    for (Int a = from[0]; a < to[0]; a++) {
        w[0] = ts_window(g, 0, a);
        for (Int b = from[1]; b < to[1]; b++) {
            w[1] = ts_window(g, 1, b);
            const Int row = (a * (Int)g.output[1] + b) * (Int)g.output[2];
            for (Int c = from[2]; c < to[2]; c++) {
                w[2] = ts_window(g, 2, c);
                const C divisor = ts_divisor(g, w);
#pragma unroll
                for (int q = 0; q < PLANES; q++) sum[q] += ts_upcast(x.at[q][row + c]) / divisor;
            }
        }
    }
#pragma unroll
    for (int q = 0; q < PLANES; q++)
        if (first + q < (Int)g.planes) g.y[(first + q) * inputs + place] = ts_downcast<T>(sum[q]);
}
