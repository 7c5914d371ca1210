// Convolutions of up to three dims. T: memory type. With one group: im2col to a matrix [channels * taps][images][outputs],
// then a matrix product. With several groups: direct convolution, a thread for each result.
#include "common/rows.cuh"
#include "common/unravel.cuh"

typedef typename ts_opmath<T>::type C;

#include "conv/geometry.cuh"
#include "conv/args.cuh"

// The offset in the input that tap `tap` of output `o` reads, or -1 in the padding.
TS_FN ts_i64 ts_input_offset(const Geometry& g, const ts_i64* o, const ts_i64* tap) {
    ts_i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const ts_i64 i = o[d] * g.stride[d] - g.padding[d] + tap[d] * g.dilation[d];
        if (i < 0 || i >= g.input[d]) return -1;
        at = at * g.input[d] + i;
    }
    return at;
}
// The offset of the output that reads input `i` through tap `tap`, or -1.
TS_FN ts_i64 ts_output_offset(const Geometry& g, const ts_i64* i, const ts_i64* tap) {
    ts_i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const ts_i64 o = i[d] + g.padding[d] - tap[d] * g.dilation[d];
        if (o < 0 || o % g.stride[d] != 0 || o / g.stride[d] >= g.output[d]) return -1;
        at = at * g.output[d] + o / g.stride[d];
    }
    return at;
}

// im2col. y: columns of images first .. first + images; blockIdx.y is the row (channel and tap).
TS_KERNEL void __launch_bounds__(256) ts_im2col(const __grid_constant__ Args args) {
    const Geometry& g = args.geometry;
    const ts_i64 plane = ts_numel(g.output), i = (ts_i64)blockIdx.x * 256 + threadIdx.x, taps = ts_numel(g.kernel);
    if (i >= args.images * plane) return;
    const ts_i64 image = i / plane;
    ts_i64 o[3], tap[3];
    ts_unravel32(i - image * plane, g.output, o);
    for (ts_i64 row = blockIdx.y; row < g.channels * taps; row += gridDim.y) {
        const ts_i64 channel = row / taps;
        ts_unravel32(row - channel * taps, g.kernel, tap);
        const ts_i64 at = ts_input_offset(g, o, tap);
        args.y[row * args.images * plane + i] =
            at < 0 ? ts_downcast<T>(C(0)) : args.x[((args.first + image) * g.channels + channel) * ts_numel(g.input) + at];
    }
}

// col2im. x: gradient of the columns, in the compute type; y: gradient of these images; each element sums over the taps that
// read it.
TS_KERNEL void __launch_bounds__(256) ts_col2im(const __grid_constant__ Args args) {
    const Geometry& g = args.geometry;
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_numel(g.input), taps = ts_numel(g.kernel);
    if (i >= args.images * g.channels * plane) return;
    const ts_i64 image = i / (g.channels * plane), channel = i / plane % g.channels, outs = ts_numel(g.output);
    ts_i64 at[3], tap[3];
    ts_unravel32(i % plane, g.input, at);
    C sum = 0;
    for (ts_i64 t = 0; t < taps; t++) {
        ts_unravel32(t, g.kernel, tap);
        const ts_i64 o = ts_output_offset(g, at, tap);
        if (o >= 0) sum += ((const C*)args.x)[((channel * taps + t) * args.images + image) * outs + o];
    }
    args.y[args.first * g.channels * plane + i] = ts_downcast<T>(sum);
}

// Elements of the input's gradient from its phases x [batch * channels][phases][outputs]: element i of a dim, `padding` further,
// is of phase i % stride. w: bias of each channel, or null.
TS_KERNEL void __launch_bounds__(256) ts_phases_side_by_side(const __grid_constant__ Args args) {
    const Geometry& g = args.geometry;
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_numel(g.input);
    if (i >= g.batch * g.groups * g.channels * plane) return;
    const ts_i64 image = i / plane;
    ts_i64 o[3];
    ts_unravel32(i - image * plane, g.input, o);
    ts_i64 phase = 0, at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const ts_u32 moved = (ts_u32)(o[d] + g.padding[d]), stride = (ts_u32)g.stride[d], quotient = moved / stride;
        phase = phase * stride + (moved - quotient * stride);
        at = at * g.output[d] + quotient;
    }
    const C x = ts_upcast(args.x[(image * ts_numel(g.stride) + phase) * ts_numel(g.output) + at]);
    args.y[i] = ts_downcast<T>(args.w ? x + ts_upcast(args.w[image % (g.groups * g.channels)]) : x);
}

// Grouped forward convolution: a thread for each output.
TS_KERNEL void __launch_bounds__(256) ts_conv_forward(const __grid_constant__ Args args) {
    const Geometry& g = args.geometry;
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_numel(g.output), taps = ts_numel(g.kernel);
    const ts_i64 out_channels = g.groups * g.filters;
    if (i >= g.batch * out_channels * plane) return;
    const ts_i64 filter = i / plane % out_channels, image = i / (plane * out_channels), group = filter / g.filters;
    ts_i64 o[3], tap[3];
    ts_unravel32(i % plane, g.output, o);
    C sum = 0;
    for (ts_i64 t = 0; t < taps; t++) {
        ts_unravel32(t, g.kernel, tap);
        const ts_i64 at = ts_input_offset(g, o, tap);
        if (at < 0) continue;
        for (ts_i64 c = 0; c < g.channels; c++)
            sum += ts_upcast(args.x[((image * g.groups + group) * g.channels + c) * ts_numel(g.input) + at])
                * ts_upcast(args.w[(filter * g.channels + c) * taps + t]);
    }
    args.y[i] = ts_downcast<T>(sum);
}

// Grouped gradient of the input (dgrad). x: gradient of the output; y: gradient of the input.
TS_KERNEL void __launch_bounds__(256) ts_conv_dgrad(const __grid_constant__ Args args) {
    const Geometry& g = args.geometry;
    const ts_i64 i = (ts_i64)blockIdx.x * 256 + threadIdx.x, plane = ts_numel(g.input), taps = ts_numel(g.kernel);
    const ts_i64 in_channels = g.groups * g.channels, outs = ts_numel(g.output);
    if (i >= g.batch * in_channels * plane) return;
    const ts_i64 channel = i / plane % in_channels, image = i / (plane * in_channels), group = channel / g.channels;
    ts_i64 at[3], tap[3];
    ts_unravel32(i % plane, g.input, at);
    C sum = 0;
    for (ts_i64 t = 0; t < taps; t++) {
        ts_unravel32(t, g.kernel, tap);
        const ts_i64 o = ts_output_offset(g, at, tap);
        if (o < 0) continue;
        for (ts_i64 f = 0; f < g.filters; f++) {
            const ts_i64 filter = group * g.filters + f;
            sum += ts_upcast(args.x[(image * g.groups * g.filters + filter) * outs + o])
                * ts_upcast(args.w[(filter * g.channels + channel % g.channels) * taps + t]);
        }
    }
    args.y[i] = ts_downcast<T>(sum);
}

// Grouped gradient of the weight (wgrad). x: input; w: gradient of the output; y: gradient of the weight; a block for each
// element.
TS_KERNEL void __launch_bounds__(256) ts_conv_wgrad(const __grid_constant__ Args args) {
    const Geometry& g = args.geometry;
    const ts_i64 taps = ts_numel(g.kernel), outs = ts_numel(g.output), i = blockIdx.x;
    const ts_i64 filter = i / (g.channels * taps), c = i / taps % g.channels, group = filter / g.filters;
    ts_i64 o[3], tap[3];
    ts_unravel32(i % taps, g.kernel, tap);
    C sum = 0;
    for (ts_i64 k = threadIdx.x; k < g.batch * outs; k += 256) {
        const ts_i64 image = k / outs;
        ts_unravel32(k - image * outs, g.output, o);
        const ts_i64 at = ts_input_offset(g, o, tap);
        if (at >= 0)
            sum += ts_upcast(args.x[((image * g.groups + group) * g.channels + c) * ts_numel(g.input) + at])
                * ts_upcast(args.w[(image * g.groups * g.filters + filter) * outs + (k - image * outs)]);
    }
    sum = ts_group_all_reduce(sum, 256, ts_add_op());
    if (threadIdx.x == 0) args.y[i] = ts_downcast<T>(sum);
}
