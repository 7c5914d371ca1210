// Softmax and log-softmax along a dim, and their gradients. T: memory type; LOG: 1 for log-softmax; V, E, LANES:
// common/rows.cuh.
#include "common/rows.cuh"

static const int THREADS = LANES > 256 ? LANES : 256;

typedef typename ts_opmath<T>::type C;

#include "softmax/args.cuh"

// Along the last dim: rows are dense.
TS_KERNEL void __launch_bounds__(THREADS) ts_softmax(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    ts_row<T, V, E> x;
    x.init(g.input + row * g.n, row < g.rows ? g.n : 0, threadIdx.x % lanes, lanes);
    C row_max = ts_lowest(C()), row_sum = 0;
    x.for_each([&](ts_i64, C v) { row_max = ts_maximum(v, row_max); });
    row_max = ts_group_all_reduce(row_max, lanes, ts_max_op());
    if (LOG) {
        x.for_each([&](ts_i64, C v) { row_sum += ts_exp(v - row_max); });
        const C shift = row_max + ts_log(ts_group_all_reduce(row_sum, lanes, ts_add_op()));
        x.store(g.y + row * g.n, [&](ts_i64, C v) { return v - shift; });
    } else {
#pragma unroll
        for (int e = 0; e < E; e++)
#pragma unroll
            for (int v = 0; v < V; v++) x.x[e][v] = ts_exp(x.x[e][v] - row_max);
        x.for_each([&](ts_i64, C v) { row_sum += E > 0 ? v : ts_exp(v - row_max); });
        const C scale = C(1) / ts_group_all_reduce(row_sum, lanes, ts_add_op());
        x.store(g.y + row * g.n, [&](ts_i64, C v) { return (E > 0 ? v : ts_exp(v - row_max)) * scale; });
    }
}

// y: gradient of the input.
TS_KERNEL void __launch_bounds__(THREADS) ts_softmax_grad(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes, n = row < g.rows ? g.n : 0;
    ts_row<T, V, E> grad, y;
    grad.init(g.input + row * g.n, n, threadIdx.x % lanes, lanes);
    y.init(g.result + row * g.n, n, threadIdx.x % lanes, lanes);
    C sum = 0;
    grad.for_each_with(y, [&](ts_i64, C dy, C v) { sum += LOG ? dy : dy * v; });
    sum = ts_group_all_reduce(sum, lanes, ts_add_op());
    grad.store_with(y, g.y + row * g.n, [&](ts_i64, C dy, C v) { return LOG ? dy - ts_exp(v) * sum : v * (dy - sum); });
}

// Along another dim: a thread for each column; adjacent threads read adjacent memory.
TS_KERNEL void ts_softmax_columns(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.rows * g.inner) return;
    const ts_i64 at = i / g.inner * g.n * g.inner + i % g.inner;
    C row_max, row_sum;
    ts_exp_sum_apart(g.input + at, g.n, g.inner, row_max, row_sum);
    const C shift = row_max + (LOG ? ts_log(row_sum) : C(0)), scale = C(1) / row_sum;
    ts_store_apart(g.input + at, g.y + at, g.n, g.inner,
        [&](ts_i64, C v) { return LOG ? v - shift : ts_exp(v - shift) * scale; });
}

TS_KERNEL void ts_softmax_columns_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.rows * g.inner) return;
    const ts_i64 at = i / g.inner * g.n * g.inner + i % g.inner;
    C sum = 0;
    for (ts_i64 k = 0; k < g.n; k++) {
        C dy = ts_upcast(g.input[at + k * g.inner]);
        sum += LOG ? dy : dy * ts_upcast(g.result[at + k * g.inner]);
    }
    for (ts_i64 k = 0; k < g.n; k++) {
        C dy = ts_upcast(g.input[at + k * g.inner]), v = ts_upcast(g.result[at + k * g.inner]);
        g.y[at + k * g.inner] = ts_downcast<T>(LOG ? dy - ts_exp(v) * sum : v * (dy - sum));
    }
}
