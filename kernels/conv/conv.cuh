// Convolutions of up to three dims. T: memory type. Columns of an image are the inputs that each output sees, unfolded:
// [channels * taps][images][outputs]; with one group a convolution is a matrix product with them. Groups go directly.
#include "common/rows.cuh"

typedef typename ts_of<T>::cls C;

struct Args {
    const T *x, *w;
    T* y;
    ts_i64 batch, groups, channels, filters;
    ts_i64 in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    // First image of this launch and how many.
    ts_i64 first, images;
};

TS_FN ts_i64 ts_volume(const ts_i64* size) { return size[0] * size[1] * size[2]; }
TS_FN void ts_split(ts_i64 i, const ts_i64* size, ts_i64* at) {
    at[2] = (ts_u32)i % (ts_u32)size[2];
    i = (ts_u32)i / (ts_u32)size[2];
    at[1] = (ts_u32)i % (ts_u32)size[1];
    at[0] = (ts_u32)i / (ts_u32)size[1];
}
// Where tap `tap` of output `o` reads, or -1 in the padding.
TS_FN ts_i64 ts_source(const Args& g, const ts_i64* o, const ts_i64* tap) {
    ts_i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const ts_i64 i = o[d] * g.stride[d] - g.padding[d] + tap[d] * g.dilation[d];
        if (i < 0 || i >= g.in[d]) return -1;
        at = at * g.in[d] + i;
    }
    return at;
}
// The output that reads input `i` through a tap, or -1.
TS_FN ts_i64 ts_reader(const Args& g, const ts_i64* i, const ts_i64* tap) {
    ts_i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const ts_i64 o = i[d] + g.padding[d] - tap[d] * g.dilation[d];
        if (o < 0 || o % g.stride[d] != 0 || o / g.stride[d] >= g.out[d]) return -1;
        at = at * g.out[d] + o / g.stride[d];
    }
    return at;
}

// y: columns of images first .. first + images; blockIdx.y is the row (channel and tap).
TS_KERNEL void __launch_bounds__(256) ts_unfold(const __grid_constant__ Args g) {
    const ts_i64 plane = ts_volume(g.out), i = (ts_i64)blockIdx.x * 256 + threadIdx.x, taps = ts_volume(g.kernel);
    if (i >= g.images * plane) return;
    const ts_i64 image = i / plane;
    ts_i64 o[3], tap[3];
    ts_split(i - image * plane, g.out, o);
    for (ts_i64 row = blockIdx.y; row < g.channels * taps; row += gridDim.y) {
        const ts_i64 channel = row / taps;
        ts_split(row - channel * taps, g.kernel, tap);
        const ts_i64 at = ts_source(g, o, tap);
        g.y[row * g.images * plane + i] =
            at < 0 ? ts_down<T>(C(0)) : g.x[((g.first + image) * g.channels + channel) * ts_volume(g.in) + at];
    }
}

// x: gradients of columns, not rounded to 16 bits yet; y: gradients of the inputs of these images, each the sum over the taps that read it.
TS_KERNEL void __launch_bounds__(256) ts_fold(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_volume(g.in), taps = ts_volume(g.kernel);
    if (i >= g.images * g.channels * plane) return;
    const ts_i64 image = i / (g.channels * plane), channel = i / plane % g.channels, outs = ts_volume(g.out);
    ts_i64 at[3], tap[3];
    ts_split(i % plane, g.in, at);
    C sum = 0;
    for (ts_i64 t = 0; t < taps; t++) {
        ts_split(t, g.kernel, tap);
        const ts_i64 o = ts_reader(g, at, tap);
        if (o >= 0) sum += ((const C*)g.x)[((channel * taps + t) * g.images + image) * outs + o];
    }
    g.y[g.first * g.channels * plane + i] = ts_down<T>(sum);
}

// Groups: a thread for each output.
TS_KERNEL void __launch_bounds__(256) ts_conv(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_volume(g.out), taps = ts_volume(g.kernel);
    const ts_i64 all = g.groups * g.filters;
    if (i >= g.batch * all * plane) return;
    const ts_i64 filter = i / plane % all, image = i / (plane * all), group = filter / g.filters;
    ts_i64 o[3], tap[3];
    ts_split(i % plane, g.out, o);
    C sum = 0;
    for (ts_i64 t = 0; t < taps; t++) {
        ts_split(t, g.kernel, tap);
        const ts_i64 at = ts_source(g, o, tap);
        if (at < 0) continue;
        for (ts_i64 c = 0; c < g.channels; c++)
            sum += ts_up(g.x[((image * g.groups + group) * g.channels + c) * ts_volume(g.in) + at])
                * ts_up(g.w[(filter * g.channels + c) * taps + t]);
    }
    g.y[i] = ts_down<T>(sum);
}

// x: gradient of the output; y: gradient of the input.
TS_KERNEL void __launch_bounds__(256) ts_conv_input(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_volume(g.in), taps = ts_volume(g.kernel);
    const ts_i64 all = g.groups * g.channels, outs = ts_volume(g.out);
    if (i >= g.batch * all * plane) return;
    const ts_i64 channel = i / plane % all, image = i / (plane * all), group = channel / g.channels;
    ts_i64 at[3], tap[3];
    ts_split(i % plane, g.in, at);
    C sum = 0;
    for (ts_i64 t = 0; t < taps; t++) {
        ts_split(t, g.kernel, tap);
        const ts_i64 o = ts_reader(g, at, tap);
        if (o < 0) continue;
        for (ts_i64 f = 0; f < g.filters; f++) {
            const ts_i64 filter = group * g.filters + f;
            sum += ts_up(g.x[(image * g.groups * g.filters + filter) * outs + o])
                * ts_up(g.w[(filter * g.channels + channel % g.channels) * taps + t]);
        }
    }
    g.y[i] = ts_down<T>(sum);
}

// x: input, w: gradient of the output; y: gradient of the weight; a block for each of its elements.
TS_KERNEL void __launch_bounds__(256) ts_conv_weight(const __grid_constant__ Args g) {
    const ts_i64 taps = ts_volume(g.kernel), outs = ts_volume(g.out), i = blockIdx.x;
    const ts_i64 filter = i / (g.channels * taps), c = i / taps % g.channels, group = filter / g.filters;
    ts_i64 o[3], tap[3];
    ts_split(i % taps, g.kernel, tap);
    C sum = 0;
    for (ts_i64 k = threadIdx.x; k < g.batch * outs; k += 256) {
        const ts_i64 image = k / outs;
        ts_split(k - image * outs, g.out, o);
        const ts_i64 at = ts_source(g, o, tap);
        if (at >= 0)
            sum += ts_up(g.x[((image * g.groups + group) * g.channels + c) * ts_volume(g.in) + at])
                * ts_up(g.w[(image * g.groups * g.filters + filter) * outs + (k - image * outs)]);
    }
    sum = ts_all_lanes(sum, 256, ts_add_op());
    if (threadIdx.x == 0) g.y[i] = ts_down<T>(sum);
}
