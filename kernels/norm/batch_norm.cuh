// Batch normalization of [batch, channels, span]. T: memory type; W: that of weight and bias; V: elements of a vector; BIG:
// whether indices need more than 32 bits.
//
// Part p of channel c gives Welford statistics (count, mean, sum of squared deviations), or the two sums of the gradient;
// parts are merged in order. WIDE 1: a block has one channel, and vectors lie along its span. WIDE 0: a block has 32 vectors of
// adjacent channels, and 8 threads for each; a vector holds V channels (of span 1).
#include "common/rows.cuh"

typedef typename ts_opmath<T>::type C;

#include "norm/batch_norm_args.cuh"

struct Welford {
    C count, mean, m2;
    TS_METHOD void init() { count = mean = m2 = 0; }
    // A channel's elements of a vector, merged as a part of its own: a division for all of them.
    template <int N> TS_METHOD void add(const C (&x)[N]) {
        C sum = x[0], squares = 0;
#pragma unroll
        for (int v = 1; v < N; v++) sum += x[v];
        const C center = sum / C(N);
#pragma unroll
        for (int v = 0; v < N; v++) squares += (x[v] - center) * (x[v] - center);
        merge(Welford{C(N), center, squares});
    }
    TS_METHOD void merge(const Welford& o) {
        const C total = count + o.count, delta = o.mean - mean;
        if (o.count == 0) return;
        const C share = o.count / total;
        mean += delta * share;
        m2 += o.m2 + delta * delta * (count * share);
        count = total;
    }
};
struct GradSums {
    C sum_dy, sum_dy_xmu;
    TS_METHOD void init() { sum_dy = sum_dy_xmu = 0; }
    TS_METHOD void merge(const GradSums& o) {
        sum_dy += o.sum_dy;
        sum_dy_xmu += o.sum_dy_xmu;
    }
};

TS_FN ts_i64 ts_divided(ts_i64 n, ts_i64 d, ts_u64 word) { return BIG ? n / d : (ts_i64)ts_fast_div((ts_u32)n, word); }

// The accumulators of a thread: one for its channel, or one for each channel of its vector.
static const int CHANNELS = WIDE ? 1 : V;
// Elements of a channel in a vector.
static const int ALONG = WIDE ? V : 1;

TS_FN ts_i64 ts_channel() { return WIDE ? (ts_i64)blockIdx.x : ((ts_i64)blockIdx.x * 32 + threadIdx.x % 32) * V; }

// Calls f(index of a vector's first element) for the vectors of a channel's part that belong to this thread.
template <class F> TS_FN void ts_for_each_vector(const BatchArgs& g, ts_i64 channel, F f) {
    const ts_i64 vectors = g.batch * (g.span / ALONG), chunk = (vectors + g.parts - 1) / g.parts;
    const ts_i64 begin = blockIdx.y * chunk, end = begin + chunk < vectors ? begin + chunk : vectors;
    if (channel >= g.channels) return;
#pragma unroll 4
    for (ts_i64 k = begin + (WIDE ? threadIdx.x : threadIdx.x / 32); k < end; k += WIDE ? 256 : 8) {
        const ts_i64 row = ts_divided(k, g.span / ALONG, g.span_word);
        f((row * g.channels + channel) * g.span + (k - row * (g.span / ALONG)) * ALONG);
    }
}

// Reduces over the threads of each channel; the first of them stores the part.
template <class A> TS_FN void ts_store_part(const BatchArgs& g, ts_i64 channel, A (&acc)[CHANNELS]) {
    __shared__ A shared[256];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        __syncthreads();
        shared[threadIdx.x] = acc[c];
        __syncthreads();
        for (int step = 128; step >= (WIDE ? 1 : 32); step /= 2) {
            if ((int)threadIdx.x < step) {
                acc[c].merge(shared[threadIdx.x + step]);
                shared[threadIdx.x] = acc[c];
            }
            __syncthreads();
        }
        if (threadIdx.x < (WIDE ? 1 : 32) && channel + c < g.channels)
            ((A*)g.partials)[blockIdx.y * g.channels + channel + c] = acc[c];
    }
}

TS_KERNEL void __launch_bounds__(256) ts_batch_norm_stats(const __grid_constant__ BatchArgs g) {
    Welford acc[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) acc[c].init();
    ts_for_each_vector(g, ts_channel(), [&](ts_i64 i) {
        const ts_vec<T, V> raw = *(const ts_vec<T, V>*)(g.x + i);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            C x[ALONG];
#pragma unroll
            for (int v = 0; v < ALONG; v++) x[v] = ts_upcast(raw.x[c + v]);
            acc[c].add(x);
        }
    });
    ts_store_part(g, ts_channel(), acc);
}
TS_KERNEL void __launch_bounds__(256) ts_batch_norm_grad_sums(const __grid_constant__ BatchArgs g) {
    GradSums acc[CHANNELS];
    C mean[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        acc[c].init();
        mean[c] = ts_channel() + c < g.channels ? g.mean[ts_channel() + c] : C(0);
    }
    ts_for_each_vector(g, ts_channel(), [&](ts_i64 i) {
        const ts_vec<T, V> dy = *(const ts_vec<T, V>*)(g.dy + i), x = *(const ts_vec<T, V>*)(g.x + i);
#pragma unroll
        for (int v = 0; v < V; v++) {
            const int c = WIDE ? 0 : v;
            acc[c].sum_dy += ts_upcast(dy.x[v]);
            acc[c].sum_dy_xmu += ts_upcast(dy.x[v]) * (ts_upcast(x.x[v]) - mean[c]);
        }
    });
    ts_store_part(g, ts_channel(), acc);
}

TS_KERNEL void ts_batch_norm_stats_merge(const __grid_constant__ BatchArgs g) {
    const ts_i64 channel = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= g.channels) return;
    Welford all;
    all.init();
    for (ts_i64 part = 0; part < g.parts; part++) all.merge(((const Welford*)g.partials)[part * g.channels + channel]);
    g.mean[channel] = all.mean;
    g.variance[channel] = all.m2 / all.count;
}
// Merges the parts into the first one; gradients of weight and bias.
TS_KERNEL void ts_batch_norm_grad_sums_merge(const __grid_constant__ BatchArgs g) {
    const ts_i64 channel = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= g.channels) return;
    GradSums all;
    all.init();
    for (ts_i64 part = 0; part < g.parts; part++) all.merge(((const GradSums*)g.partials)[part * g.channels + channel]);
    ((GradSums*)g.partials)[channel] = all;
    if (g.dw) g.dw[channel] = all.sum_dy_xmu * (C(1) / ts_sqrt(g.variance[channel] + (C)g.eps));
    if (g.db) g.db[channel] = all.sum_dy;
}

// Calls f(index of a vector's first element, its channel) for the vectors of this thread.
template <class F> TS_FN void ts_for_each_of_all(const BatchArgs& g, F f) {
    const ts_i64 vectors = g.batch * g.channels * g.span / V;
#pragma unroll 2
    for (ts_i64 k = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x; k < vectors; k += (ts_i64)gridDim.x * blockDim.x) {
        const ts_i64 row = ts_divided(k, g.span / ALONG, g.span_word);
        const ts_i64 c = (row - ts_divided(row, g.channels / CHANNELS, g.channels_word) * (g.channels / CHANNELS)) * CHANNELS;
        f(k * V, c);
    }
}
TS_FN C ts_scale(const BatchArgs& g, ts_i64 c, C rstd) { return g.weight ? (C)ts_upcast(g.weight[c]) * rstd : rstd; }

TS_KERNEL void ts_batch_norm_apply(const __grid_constant__ BatchArgs g) {
    ts_for_each_of_all(g, [&](ts_i64 i, ts_i64 channel) {
        const ts_vec<T, V> x = *(const ts_vec<T, V>*)(g.x + i);
        C mean[CHANNELS], scale[CHANNELS], bias[CHANNELS];
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            mean[c] = g.mean[channel + c];
            scale[c] = ts_scale(g, channel + c, C(1) / ts_sqrt(g.variance[channel + c] + (C)g.eps));
            bias[c] = g.bias ? (C)ts_upcast(g.bias[channel + c]) : C(0);
        }
        ts_vec<T, V> y;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const int c = WIDE ? 0 : v;
            y.x[v] = ts_downcast<T>((ts_upcast(x.x[v]) - mean[c]) * scale[c] + bias[c]);
        }
        *(ts_vec<T, V>*)(g.y + i) = y;
    });
}
TS_KERNEL void ts_batch_norm_apply_grad(const __grid_constant__ BatchArgs g) {
    const C inverse_count = C(1) / (C)(g.batch * g.span);
    ts_for_each_of_all(g, [&](ts_i64 i, ts_i64 channel) {
        const ts_vec<T, V> dy = *(const ts_vec<T, V>*)(g.dy + i), x = *(const ts_vec<T, V>*)(g.x + i);
        C mean[CHANNELS], scale[CHANNELS], shift[CHANNELS], slope[CHANNELS];
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            const C rstd = C(1) / ts_sqrt(g.variance[channel + c] + (C)g.eps);
            scale[c] = ts_scale(g, channel + c, rstd);
            mean[c] = shift[c] = slope[c] = 0;
            if (g.training) {
                const GradSums all = ((const GradSums*)g.partials)[channel + c];
                mean[c] = g.mean[channel + c];
                shift[c] = all.sum_dy * inverse_count;
                slope[c] = all.sum_dy_xmu * rstd * rstd * inverse_count;
            }
        }
        ts_vec<T, V> dx;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const int c = WIDE ? 0 : v;
            dx.x[v] = ts_downcast<T>((ts_upcast(dy.x[v]) - shift[c] - (ts_upcast(x.x[v]) - mean[c]) * slope[c]) * scale[c]);
        }
        *(ts_vec<T, V>*)(g.y + i) = dx;
    });
}
