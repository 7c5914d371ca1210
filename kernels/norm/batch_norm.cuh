// Batch normalisation of [batch, channels, span]. T: memory type; W: that of weight and bias.
//
// Statistics: part p of channel c gives (count, mean, sum of squared deviations) or two sums; parts are merged in order.
#include "common/rows.cuh"

typedef typename ts_of<T>::cls C;

struct Args {
    const T *a, *x;
    const W *weight, *bias;
    T* y;
    C *mean, *variance, *sums, *dw, *db;
    ts_i64 batch, channels, span, parts, training;
    double eps;
};

struct Moments {
    C count, mean, m2;
    TS_METHOD void add(C x) {
        count += 1;
        const C d = x - mean;
        mean += d / count;
        m2 += d * (x - mean);
    }
    TS_METHOD void merge(const Moments& o) {
        const C all = count + o.count, d = o.mean - mean;
        if (o.count == 0) return;
        mean += d * (o.count / all);
        m2 += o.m2 + d * d * (count * (o.count / all));
        count = all;
    }
};
struct Sums {
    C sum, dot;
    TS_METHOD void merge(const Sums& o) {
        sum += o.sum;
        dot += o.dot;
    }
};

// visit(index in memory) for elements of a channel's part that belong to this thread. With WIDE 0 a block has 32 channels,
// neighbours in memory, and 8 threads for each; otherwise one channel.
template <class F> TS_FN void ts_visit(const Args& g, ts_i64 channel, F visit) {
    const ts_i64 all = g.batch * g.span, chunk = (all + g.parts - 1) / g.parts;
    const ts_i64 begin = blockIdx.y * chunk, end = begin + chunk < all ? begin + chunk : all;
    if (channel >= g.channels) return;
    for (ts_i64 k = begin + (WIDE ? threadIdx.x : threadIdx.x / 32); k < end; k += WIDE ? 256 : 8)
        visit((k / g.span * g.channels + channel) * g.span + k % g.span);
}

// The threads of a channel merge; the first keeps the part.
template <class A> TS_FN void ts_keep(const Args& g, ts_i64 channel, A mine) {
    __shared__ A shared[256];
    shared[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 128; step >= (WIDE ? 1 : 32); step /= 2) {
        if ((int)threadIdx.x < step) {
            mine.merge(shared[threadIdx.x + step]);
            shared[threadIdx.x] = mine;
        }
        __syncthreads();
    }
    if (threadIdx.x < (WIDE ? 1 : 32) && channel < g.channels) ((A*)g.sums)[blockIdx.y * g.channels + channel] = mine;
}

TS_FN ts_i64 ts_channel() { return WIDE ? (ts_i64)blockIdx.x : (ts_i64)blockIdx.x * 32 + threadIdx.x % 32; }

TS_KERNEL void __launch_bounds__(256) ts_batch_moments(const __grid_constant__ Args g) {
    Moments mine = {0, 0, 0};
    ts_visit(g, ts_channel(), [&](ts_i64 i) { mine.add(ts_up(g.x[i])); });
    ts_keep(g, ts_channel(), mine);
}
TS_KERNEL void __launch_bounds__(256) ts_batch_sums(const __grid_constant__ Args g) {
    Sums mine = {0, 0};
    const C mean = ts_channel() < g.channels ? g.mean[ts_channel()] : C(0);
    ts_visit(g, ts_channel(), [&](ts_i64 i) {
        const C d = ts_up(g.a[i]);
        mine.sum += d;
        mine.dot += d * (ts_up(g.x[i]) - mean);
    });
    ts_keep(g, ts_channel(), mine);
}

TS_KERNEL void ts_batch_moments_parts(const __grid_constant__ Args g) {
    const ts_i64 channel = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= g.channels) return;
    Moments all = {0, 0, 0};
    for (ts_i64 part = 0; part < g.parts; part++) all.merge(((const Moments*)g.sums)[part * g.channels + channel]);
    g.mean[channel] = all.mean;
    g.variance[channel] = all.m2 / all.count;
}
// The first part becomes the sum of all; gradients of weight and bias.
TS_KERNEL void ts_batch_sums_parts(const __grid_constant__ Args g) {
    const ts_i64 channel = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= g.channels) return;
    Sums all = {0, 0};
    for (ts_i64 part = 0; part < g.parts; part++) all.merge(((const Sums*)g.sums)[part * g.channels + channel]);
    ((Sums*)g.sums)[channel] = all;
    if (g.dw) g.dw[channel] = all.dot * (C(1) / ts_sqrt(g.variance[channel] + (C)g.eps));
    if (g.db) g.db[channel] = all.sum;
}

TS_KERNEL void ts_batch_apply(const __grid_constant__ Args g) {
    const ts_i64 n = g.batch * g.channels * g.span;
    for (ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (ts_i64)gridDim.x * blockDim.x) {
        const ts_i64 c = i / g.span % g.channels;
        const C scale = (g.weight ? (C)ts_up(g.weight[c]) : C(1)) / ts_sqrt(g.variance[c] + (C)g.eps);
        g.y[i] = ts_down<T>((ts_up(g.x[i]) - g.mean[c]) * scale + (g.bias ? (C)ts_up(g.bias[c]) : C(0)));
    }
}
TS_KERNEL void ts_batch_apply_grad(const __grid_constant__ Args g) {
    const ts_i64 n = g.batch * g.channels * g.span;
    const C count = (C)(g.batch * g.span);
    for (ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (ts_i64)gridDim.x * blockDim.x) {
        const ts_i64 c = i / g.span % g.channels;
        const C rstd = C(1) / ts_sqrt(g.variance[c] + (C)g.eps), scale = (g.weight ? (C)ts_up(g.weight[c]) : C(1)) * rstd;
        C d = ts_up(g.a[i]);
        if (g.training) {
            const Sums all = ((const Sums*)g.sums)[c];
            d = d - all.sum / count - (ts_up(g.x[i]) - g.mean[c]) * (all.dot * rstd * rstd / count);
        }
        g.y[i] = ts_down<T>(d * scale);
    }
}
