// Batch normalization of [batch, channels, span]. T: memory type; W: that of weight and bias.
//
// Part p of channel c gives Welford statistics (count, mean, sum of squared deviations), or the two sums of the gradient;
// parts are merged in order.
#include "common/rows.cuh"

typedef typename ts_opmath<T>::type C;

#include "norm/batch_norm_args.cuh"

struct Welford {
    C count, mean, m2;
    TS_METHOD void add(C x) {
        count += 1;
        const C delta = x - mean;
        mean += delta / count;
        m2 += delta * (x - mean);
    }
    TS_METHOD void merge(const Welford& o) {
        const C total = count + o.count, delta = o.mean - mean;
        if (o.count == 0) return;
        mean += delta * (o.count / total);
        m2 += o.m2 + delta * delta * (count * (o.count / total));
        count = total;
    }
};
struct GradSums {
    C sum_dy, sum_dy_xmu;
    TS_METHOD void merge(const GradSums& o) {
        sum_dy += o.sum_dy;
        sum_dy_xmu += o.sum_dy_xmu;
    }
};

// Calls f(index in memory) for the elements of a channel's part that belong to this thread. WIDE 0: a block has 32 channels,
// adjacent in memory, and 8 threads for each; WIDE 1: a block has one channel.
template <class F> TS_FN void ts_for_each_of_channel(const BatchArgs& g, ts_i64 channel, F f) {
    const ts_i64 count = g.batch * g.span, chunk = (count + g.parts - 1) / g.parts;
    const ts_i64 begin = blockIdx.y * chunk, end = begin + chunk < count ? begin + chunk : count;
    if (channel >= g.channels) return;
    for (ts_i64 k = begin + (WIDE ? threadIdx.x : threadIdx.x / 32); k < end; k += WIDE ? 256 : 8)
        f((k / g.span * g.channels + channel) * g.span + k % g.span);
}

// Reduces over the threads of a channel; its first thread stores the part.
template <class A> TS_FN void ts_block_reduce_channel(const BatchArgs& g, ts_i64 channel, A acc) {
    __shared__ A shared[256];
    shared[threadIdx.x] = acc;
    __syncthreads();
    for (int step = 128; step >= (WIDE ? 1 : 32); step /= 2) {
        if ((int)threadIdx.x < step) {
            acc.merge(shared[threadIdx.x + step]);
            shared[threadIdx.x] = acc;
        }
        __syncthreads();
    }
    if (threadIdx.x < (WIDE ? 1 : 32) && channel < g.channels) ((A*)g.partials)[blockIdx.y * g.channels + channel] = acc;
}

TS_FN ts_i64 ts_channel() { return WIDE ? (ts_i64)blockIdx.x : (ts_i64)blockIdx.x * 32 + threadIdx.x % 32; }

TS_KERNEL void __launch_bounds__(256) ts_batch_norm_stats(const __grid_constant__ BatchArgs g) {
    Welford acc = {0, 0, 0};
    ts_for_each_of_channel(g, ts_channel(), [&](ts_i64 i) { acc.add(ts_upcast(g.x[i])); });
    ts_block_reduce_channel(g, ts_channel(), acc);
}
TS_KERNEL void __launch_bounds__(256) ts_batch_norm_grad_sums(const __grid_constant__ BatchArgs g) {
    GradSums acc = {0, 0};
    const C mean = ts_channel() < g.channels ? g.mean[ts_channel()] : C(0);
    ts_for_each_of_channel(g, ts_channel(), [&](ts_i64 i) {
        const C dy = ts_upcast(g.dy[i]);
        acc.sum_dy += dy;
        acc.sum_dy_xmu += dy * (ts_upcast(g.x[i]) - mean);
    });
    ts_block_reduce_channel(g, ts_channel(), acc);
}

TS_KERNEL void ts_batch_norm_stats_merge(const __grid_constant__ BatchArgs g) {
    const ts_i64 channel = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= g.channels) return;
    Welford all = {0, 0, 0};
    for (ts_i64 part = 0; part < g.parts; part++) all.merge(((const Welford*)g.partials)[part * g.channels + channel]);
    g.mean[channel] = all.mean;
    g.variance[channel] = all.m2 / all.count;
}
// Merges the parts into the first one; gradients of weight and bias.
TS_KERNEL void ts_batch_norm_grad_sums_merge(const __grid_constant__ BatchArgs g) {
    const ts_i64 channel = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= g.channels) return;
    GradSums all = {0, 0};
    for (ts_i64 part = 0; part < g.parts; part++) all.merge(((const GradSums*)g.partials)[part * g.channels + channel]);
    ((GradSums*)g.partials)[channel] = all;
    if (g.dw) g.dw[channel] = all.sum_dy_xmu * (C(1) / ts_sqrt(g.variance[channel] + (C)g.eps));
    if (g.db) g.db[channel] = all.sum_dy;
}

TS_KERNEL void ts_batch_norm_apply(const __grid_constant__ BatchArgs g) {
    const ts_i64 n = g.batch * g.channels * g.span;
    for (ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (ts_i64)gridDim.x * blockDim.x) {
        const ts_i64 c = i / g.span % g.channels;
        const C scale = (g.weight ? (C)ts_upcast(g.weight[c]) : C(1)) / ts_sqrt(g.variance[c] + (C)g.eps);
        g.y[i] = ts_downcast<T>((ts_upcast(g.x[i]) - g.mean[c]) * scale + (g.bias ? (C)ts_upcast(g.bias[c]) : C(0)));
    }
}
TS_KERNEL void ts_batch_norm_apply_grad(const __grid_constant__ BatchArgs g) {
    const ts_i64 n = g.batch * g.channels * g.span;
    const C count = (C)(g.batch * g.span);
    for (ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (ts_i64)gridDim.x * blockDim.x) {
        const ts_i64 c = i / g.span % g.channels;
        const C rstd = C(1) / ts_sqrt(g.variance[c] + (C)g.eps), scale = (g.weight ? (C)ts_upcast(g.weight[c]) : C(1)) * rstd;
        C dx = ts_upcast(g.dy[i]);
        if (g.training) {
            const GradSums all = ((const GradSums*)g.partials)[c];
            dx = dx - all.sum_dy / count - (ts_upcast(g.x[i]) - g.mean[c]) * (all.sum_dy_xmu * rstd * rstd / count);
        }
        g.y[i] = ts_downcast<T>(dx * scale);
    }
}
