// Softmax and its logarithm along a dim, and their gradients. T: memory type; LOG: 1 for the logarithm; V, E, LANES: common/rows.cuh.
#include "common/rows.cuh"

static const int THREADS = LANES > 256 ? LANES : 256;

typedef typename ts_of<T>::cls C;

struct Args {
    const T *a, *b;
    T* y;
    ts_i64 rows, n, inner;
};

// Rows that are dense. a: x.
TS_KERNEL void __launch_bounds__(THREADS) ts_softmax(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    ts_row<T, V, E> x;
    x.open(g.a + row * g.n, row < g.rows ? g.n : 0, threadIdx.x % lanes, lanes);
    C most = ts_least(C()), sum = 0;
    x.each([&](ts_i64, C v) { most = ts_maximum(v, most); });
    most = ts_all_lanes(most, lanes, ts_max_op());
    if (LOG) {
        x.each([&](ts_i64, C v) { sum += ts_exp(v - most); });
        const C shift = most + ts_log(ts_all_lanes(sum, lanes, ts_add_op()));
        x.store(g.y + row * g.n, [&](ts_i64, C v) { return v - shift; });
    } else {
#pragma unroll
        for (int e = 0; e < E; e++)
#pragma unroll
            for (int v = 0; v < V; v++) x.x[e][v] = ts_exp(x.x[e][v] - most);
        x.each([&](ts_i64, C v) { sum += E > 0 ? v : ts_exp(v - most); });
        const C scale = C(1) / ts_all_lanes(sum, lanes, ts_add_op());
        x.store(g.y + row * g.n, [&](ts_i64, C v) { return (E > 0 ? v : ts_exp(v - most)) * scale; });
    }
}

// a: gradient of the result, b: the result.
TS_KERNEL void __launch_bounds__(THREADS) ts_softmax_grad(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes, n = row < g.rows ? g.n : 0;
    ts_row<T, V, E> grad, y;
    grad.open(g.a + row * g.n, n, threadIdx.x % lanes, lanes);
    y.open(g.b + row * g.n, n, threadIdx.x % lanes, lanes);
    C sum = 0;
    grad.each_with(y, [&](ts_i64, C d, C v) { sum += LOG ? d : d * v; });
    sum = ts_all_lanes(sum, lanes, ts_add_op());
    grad.store_with(y, g.y + row * g.n, [&](ts_i64, C d, C v) { return LOG ? d - ts_exp(v) * sum : v * (d - sum); });
}

// A dim that is not the last: a thread for each column, neighbours next to each other in memory.
TS_KERNEL void ts_softmax_columns(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.rows * g.inner) return;
    const ts_i64 at = i / g.inner * g.n * g.inner + i % g.inner;
    C most = ts_least(C()), sum = 0;
    for (ts_i64 k = 0; k < g.n; k++) most = ts_maximum(ts_up(g.a[at + k * g.inner]), most);
    for (ts_i64 k = 0; k < g.n; k++) sum += ts_exp(ts_up(g.a[at + k * g.inner]) - most);
    const C shift = most + (LOG ? ts_log(sum) : C(0)), scale = C(1) / sum;
    for (ts_i64 k = 0; k < g.n; k++) {
        C v = ts_up(g.a[at + k * g.inner]) - shift;
        g.y[at + k * g.inner] = ts_down<T>(LOG ? v : ts_exp(v) * scale);
    }
}

TS_KERNEL void ts_softmax_columns_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.rows * g.inner) return;
    const ts_i64 at = i / g.inner * g.n * g.inner + i % g.inner;
    C sum = 0;
    for (ts_i64 k = 0; k < g.n; k++) {
        C d = ts_up(g.a[at + k * g.inner]);
        sum += LOG ? d : d * ts_up(g.b[at + k * g.inner]);
    }
    for (ts_i64 k = 0; k < g.n; k++) {
        C d = ts_up(g.a[at + k * g.inner]), v = ts_up(g.b[at + k * g.inner]);
        g.y[at + k * g.inner] = ts_down<T>(LOG ? d - ts_exp(v) * sum : v * (d - sum));
    }
}
