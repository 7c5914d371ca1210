// Layer, group and RMS normalization, and their gradients. T: memory type; W: that of weight and bias; WEIGHTS: 0 none, 1 V
// adjacent ones can be loaded as a vector, 2 any, 3 one for all elements of a vector; V, E, LANES: common/rows.cuh.
//
// Group norm is layer norm of rows [channels of the group, positions] whose weights are per channel: `span` adjacent elements
// share a weight, and the weights repeat after `period` rows. RMS norm has no mean (`center` 0).
#include "common/rows.cuh"

static const int THREADS = LANES > 256 ? LANES : 256;

typedef typename ts_opmath<T>::type C;

#include "norm/layer_norm_args.cuh"

// The index of the weight of element i of a row.
TS_FN ts_i64 ts_weight_index(const LayerArgs& g, ts_i64 row, ts_i64 i) {
    if (WEIGHTS < 3 && g.span == 1 && g.period == 1) return i;
    const ts_u32 first = (ts_u32)i & (WEIGHTS == 3 ? ~(ts_u32)(V - 1) : ~0u);
    return row % g.period * (g.n / g.span) + (ts_i64)ts_fast_div(first, g.span_word);
}

// V adjacent weights, or biases, from element i of a row on.
struct ts_weights { C of[V]; };
TS_FN ts_weights ts_load_weights(const LayerArgs& g, const W* from, ts_i64 row, ts_i64 i) {
    ts_weights w;
    ts_vec<W, V> raw;
    if (WEIGHTS == 1) raw = *(const ts_vec<W, V>*)(from + i);
#pragma unroll
    for (int v = 0; v < V; v++) w.of[v] = ts_upcast(WEIGHTS == 1 ? raw.x[v] : from[ts_weight_index(g, row, i + v)]);
    return w;
}

TS_KERNEL void __launch_bounds__(THREADS) ts_layer_norm(const __grid_constant__ LayerArgs g) {
    const ts_i64 row = (ts_i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    ts_row<T, V, E> x;
    x.init(g.x + row * g.n, row < g.rows ? g.n : 0, threadIdx.x % LANES, LANES);
    C mean = 0, sum = 0;
    if (g.center) {
        x.for_each([&](ts_i64, C v) { sum += v; });
        mean = ts_group_all_reduce(sum, LANES, ts_add_op()) / (C)g.n;
        sum = 0;
    }
    x.for_each([&](ts_i64, C v) { sum += (v - mean) * (v - mean); });
    const C rstd = C(1) / ts_sqrt(ts_group_all_reduce(sum, LANES, ts_add_op()) / (C)g.n + (C)g.eps);
    x.store_vectors(g.y + row * g.n, [&](ts_i64 i, C* h) {
#pragma unroll
        for (int v = 0; v < V; v++) h[v] = (h[v] - mean) * rstd;
        if (WEIGHTS && g.weight) {
            const ts_weights w = ts_load_weights(g, g.weight, row, i);
#pragma unroll
            for (int v = 0; v < V; v++) h[v] *= w.of[v];
        }
        if (WEIGHTS && g.bias) {
            const ts_weights w = ts_load_weights(g, g.bias, row, i);
#pragma unroll
            for (int v = 0; v < V; v++) h[v] += w.of[v];
        }
    });
    if (row < g.rows && threadIdx.x % LANES == 0) {
        if (g.mean) g.mean[row] = mean;
        g.rstd[row] = rstd;
    }
}

// With h = (x - mean) rstd and g' = dy weight: dx = rstd (g' - mean(g') - h mean(g' h)).
TS_KERNEL void __launch_bounds__(THREADS) ts_layer_norm_grad(const __grid_constant__ LayerArgs g) {
    const ts_i64 row = (ts_i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, n = row < g.rows ? g.n : 0;
    ts_row<T, V, E> grad, x;
    grad.init(g.dy + row * g.n, n, threadIdx.x % LANES, LANES);
    x.init(g.x + row * g.n, n, threadIdx.x % LANES, LANES);
    const C mean = n && g.center ? g.mean[row] : C(0), rstd = n ? g.rstd[row] : C(0);
    C sum = 0, dot = 0;
    const auto weighted = [&](ts_i64 i, C d) {
        return WEIGHTS && g.weight ? d * (C)ts_upcast(g.weight[WEIGHTS == 1 ? i : ts_weight_index(g, row, i)]) : d;
    };
    grad.for_each_with(x, [&](ts_i64 i, C d, C v) {
        const C w = weighted(i, d);
        sum += w;
        dot += w * (v - mean);
    });
    sum = g.center ? ts_group_all_reduce(sum, LANES, ts_add_op()) / (C)g.n : C(0);
    dot = ts_group_all_reduce(dot, LANES, ts_add_op()) * rstd / (C)g.n;
    grad.store_with(x, g.y + row * g.n, [&](ts_i64 i, C d, C v) {
        return rstd * (weighted(i, d) - sum - (v - mean) * rstd * dot);
    });
}

// Gradients of weight and bias where each element of a row has its own: partial sums [part][2][n], each over some rows.
TS_KERNEL void ts_layer_norm_weight_grad(const __grid_constant__ LayerArgs g) {
    __shared__ C shared[2][8][33];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const ts_i64 column = (ts_i64)blockIdx.x * 32 + x, chunk = (g.rows + g.parts - 1) / g.parts;
    const ts_i64 begin = blockIdx.y * chunk, end = begin + chunk < g.rows ? begin + chunk : g.rows;
    C dw = 0, db = 0;
    if (column < g.n)
#pragma unroll 4
        for (ts_i64 row = begin + y; row < end; row += 8) {
            const C d = ts_upcast(g.dy[row * g.n + column]), mean = g.center ? g.mean[row] : C(0);
            dw += d * (ts_upcast(g.x[row * g.n + column]) - mean) * g.rstd[row];
            db += d;
        }
    shared[0][y][x] = dw;
    shared[1][y][x] = db;
    __syncthreads();
    if (y < 2 && column < g.n) {
        C total = 0;
        for (int k = 0; k < 8; k++) total += shared[y][k][x];
        g.partials[(blockIdx.y * 2 + y) * g.n + column] = total;
    }
}

// The same where `span` adjacent elements share a weight (group norm): gridDim.x weights, in gridDim.y parts of their elements.
// N: elements of a vector, a divisor of the span.
template <int N> TS_FN void ts_channel_grad(const LayerArgs& g, C& dw, C& db) {
    const ts_u32 channel = blockIdx.x, width = gridDim.x, of_group = (ts_u32)(g.n / g.span), along = (ts_u32)(g.span / N);
    const ts_u32 count = (ts_u32)(g.rows / g.period) * along, chunk = (count + gridDim.y - 1) / gridDim.y;
    const ts_u32 begin = blockIdx.y * chunk, end = begin + chunk < count ? begin + chunk : count;
#pragma unroll 2
    for (ts_u32 k = begin + threadIdx.x; k < end; k += 256) {
        const ts_u32 sample = k / along;
        const ts_i64 row = (ts_i64)sample * g.period + channel / of_group;
        const ts_i64 at = ((ts_i64)sample * width + channel) * g.span + (k - sample * along) * N;
        const ts_vec<T, N> dy = *(const ts_vec<T, N>*)(g.dy + at), x = *(const ts_vec<T, N>*)(g.x + at);
        const C mean = g.center ? g.mean[row] : C(0), rstd = g.rstd[row];
#pragma unroll
        for (int v = 0; v < N; v++) {
            dw += ts_upcast(dy.x[v]) * (ts_upcast(x.x[v]) - mean) * rstd;
            db += ts_upcast(dy.x[v]);
        }
    }
}
TS_KERNEL void __launch_bounds__(256) ts_group_norm_weight_grad(const __grid_constant__ LayerArgs g) {
    C dw = 0, db = 0;
    if (WEIGHTS == 3) ts_channel_grad<V>(g, dw, db);
    else ts_channel_grad<1>(g, dw, db);
    dw = ts_group_all_reduce(dw, 256, ts_add_op());
    db = ts_group_all_reduce(db, 256, ts_add_op());
    if (threadIdx.x == 0) {
        g.partials[blockIdx.y * 2 * gridDim.x + blockIdx.x] = dw;
        g.partials[(blockIdx.y * 2 + 1) * gridDim.x + blockIdx.x] = db;
    }
}

// Sums the partials in order into partials[0]. n here is 2 n.
TS_KERNEL void ts_norm_merge_partials(const __grid_constant__ LayerArgs g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.n) return;
    C total = 0;
    for (ts_i64 part = 0; part < g.parts; part++) total += g.partials[part * g.n + i];
    g.partials[i] = total;
}
