// Cross entropy and negative log-likelihood of [outer, classes, inner], and their gradients. T: memory type; V, E, LANES:
// common/rows.cuh (classes of an element are a row where `inner` is 1).
#include "common/rows.cuh"

static const int THREADS = LANES > 256 ? LANES : 256;

typedef typename ts_of<T>::cls C;

struct Args {
    const T *a, *x;
    const ts_i64* target;
    const C *weight, *lse_in;
    T* y;
    C *loss, *lse, *weights;
    void* fault;
    ts_i64 outer, classes, inner, ignored;
    double smoothing;
};

// The class of an element, or -1 where it does not count.
TS_FN ts_i64 ts_label(const Args& g, ts_i64 element, bool tells) {
    const ts_i64 label = g.target[element];
    if (label == g.ignored) return -1;
    if (label < 0 || label >= g.classes) {
        if (tells) ts_fault(g.fault, TS_LABEL, 0, (ts_u64)element, label, g.classes);
        return -1;
    }
    return label;
}
TS_FN C ts_weight(const Args& g, ts_i64 k) { return g.weight ? g.weight[k] : C(1); }
TS_FN ts_i64 ts_start(const Args& g, ts_i64 element) { return element / g.inner * g.classes * g.inner + element % g.inner; }

// What an element's loss is, given its logsumexp, the sum of weights and the weighted sum of logits.
TS_FN void ts_finish_loss(const Args& g, ts_i64 element, C z, C total, C weighted) {
    const ts_i64 label = ts_label(g, element, true);
    const C e = (C)g.smoothing;
    C loss = 0, w = 0;
    if (label >= 0) {
        w = ts_weight(g, label);
        loss = (z - ts_up(g.x[ts_start(g, element) + label * g.inner])) * w;
        if (e != 0) loss = (C(1) - e) * loss + e / (C)g.classes * (z * total - weighted);
    }
    g.loss[element] = loss;
    g.lse[element] = z;
    g.weights[element] = w;
}

TS_KERNEL void __launch_bounds__(THREADS) ts_cross_entropy(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    ts_row<T, V, E> x;
    x.open(g.x + row * g.classes, row < g.outer ? g.classes : 0, threadIdx.x % lanes, lanes);
    C most = ts_least(C()), sum = 0, total = 0, weighted = 0;
    x.each([&](ts_i64, C v) { most = ts_maximum(v, most); });
    most = ts_all_lanes(most, lanes, ts_max_op());
    x.each([&](ts_i64, C v) { sum += ts_exp(v - most); });
    sum = ts_all_lanes(sum, lanes, ts_add_op());
    if (g.smoothing != 0) {
        x.each([&](ts_i64 k, C v) {
            total += ts_weight(g, k);
            weighted += ts_weight(g, k) * v;
        });
        total = ts_all_lanes(total, lanes, ts_add_op());
        weighted = ts_all_lanes(weighted, lanes, ts_add_op());
    }
    if (threadIdx.x % lanes == 0 && row < g.outer)
        ts_finish_loss(g, row, most == ts_least(C()) ? most : most + ts_log(sum), total, weighted);
}

TS_KERNEL void ts_cross_entropy_columns(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    const T* x = g.x + ts_start(g, i);
    C most = ts_least(C()), sum = 0, total = 0, weighted = 0;
    for (ts_i64 k = 0; k < g.classes; k++) most = ts_maximum((C)ts_up(x[k * g.inner]), most);
    for (ts_i64 k = 0; k < g.classes; k++) {
        const C v = ts_up(x[k * g.inner]);
        sum += ts_exp(v - most);
        total += ts_weight(g, k);
        weighted += ts_weight(g, k) * v;
    }
    ts_finish_loss(g, i, most == ts_least(C()) ? most : most + ts_log(sum), total, weighted);
}

// The gradient of a logit: softmax times all shares, less its own.
struct Share {
    ts_i64 label;
    C share, spread, all, z;
    TS_METHOD Share(const Args& g, ts_i64 element, C total) {
        label = ts_label(g, element, false);
        const C e = (C)g.smoothing, d = label >= 0 ? ts_up(g.a[element]) : C(0);
        share = label >= 0 ? (C(1) - e) * ts_weight(g, label) * d : C(0);
        spread = e / (C)g.classes * d;
        all = share + spread * total;
        z = g.lse_in[element];
    }
    TS_METHOD C of(const Args& g, ts_i64 k, C v) const {
        if (label < 0) return 0;
        C d = ts_exp(v - z) * all;
        if (k == label) d -= share;
        return spread != 0 ? d - spread * ts_weight(g, k) : d;
    }
};

TS_KERNEL void __launch_bounds__(THREADS) ts_cross_entropy_grad(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    const bool in = row < g.outer;
    ts_row<T, V, E> x;
    x.open(g.x + row * g.classes, in ? g.classes : 0, threadIdx.x % lanes, lanes);
    C total = 0;
    if (g.smoothing != 0) {
        x.each([&](ts_i64 k, C) { total += ts_weight(g, k); });
        total = ts_all_lanes(total, lanes, ts_add_op());
    }
    const Share share(g, in ? row : 0, total);
    x.store(g.y + row * g.classes, [&](ts_i64 k, C v) { return share.of(g, k, v); });
}

TS_KERNEL void ts_cross_entropy_columns_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    C total = 0;
    if (g.smoothing != 0)
        for (ts_i64 k = 0; k < g.classes; k++) total += ts_weight(g, k);
    const Share share(g, i, total);
    for (ts_i64 k = 0; k < g.classes; k++) {
        const ts_i64 at = ts_start(g, i) + k * g.inner;
        g.y[at] = ts_down<T>(share.of(g, k, ts_up(g.x[at])));
    }
}

TS_KERNEL void ts_nll(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    const ts_i64 label = ts_label(g, i, true);
    const C w = label < 0 ? C(0) : ts_weight(g, label);
    g.loss[i] = label < 0 ? C(0) : -ts_up(g.x[ts_start(g, i) + label * g.inner]) * w;
    g.weights[i] = w;
}
// y is zero before.
TS_KERNEL void ts_nll_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    const ts_i64 label = ts_label(g, i, true);
    if (label >= 0) g.y[ts_start(g, i) + label * g.inner] = ts_down<T>(-ts_up(g.a[i]) * ts_weight(g, label));
}

// lse = the sum of the weights of all elements, by one block.
TS_KERNEL void __launch_bounds__(1024) ts_total(const __grid_constant__ Args g) {
    C sum = 0;
    for (ts_i64 i = threadIdx.x; i < g.outer * g.inner; i += blockDim.x) sum += g.weights[i];
    sum = ts_all_lanes(sum, blockDim.x, ts_add_op());
    if (threadIdx.x == 0) *g.lse = sum;
}
