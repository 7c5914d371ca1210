// Cross entropy and negative log-likelihood of [outer, classes, inner], and their gradients. T: memory type; V, E, LANES:
// common/rows.cuh (where `inner` is 1, the classes of an element are a row).
#include "common/rows.cuh"

static const int THREADS = LANES > 256 ? LANES : 256;

typedef typename ts_opmath<T>::type C;

#include "loss/args.cuh"

// The class of an element, or -1 where it is ignored.
TS_FN ts_i64 ts_label(const Args& g, ts_i64 element, bool report) {
    const ts_i64 label = g.target[element];
    if (label == g.ignored) return -1;
    if (label < 0 || label >= g.classes) {
        if (report) ts_fault(g.fault, TS_LABEL, 0, (ts_u64)element, label, g.classes);
        return -1;
    }
    return label;
}
TS_FN C ts_weight(const Args& g, ts_i64 k) { return g.weight ? g.weight[k] : C(1); }
TS_FN ts_i64 ts_offset(const Args& g, ts_i64 element) {
    const bool narrow = ((ts_u64)element | (ts_u64)g.inner) >> 32 == 0;
    const ts_i64 row = narrow ? (ts_i64)((ts_u32)element / (ts_u32)g.inner) : element / g.inner;
    return row * (g.classes - 1) * g.inner + element;
}

// Stores an element's loss, given its logsumexp, the sum of weights and the weighted sum of logits (both for label
// smoothing).
TS_FN void ts_store_loss(const Args& g, ts_i64 element, C lse, C weight_sum, C weighted_sum) {
    const ts_i64 label = ts_label(g, element, true);
    const C e = (C)g.smoothing;
    C loss = 0, w = 0;
    if (label >= 0) {
        w = ts_weight(g, label);
        loss = (lse - ts_upcast(g.x[ts_offset(g, element) + label * g.inner])) * w;
        if (e != 0) loss = (C(1) - e) * loss + e / (C)g.classes * (lse * weight_sum - weighted_sum);
    }
    g.loss[element] = loss;
    g.lse[element] = lse;
    g.weights[element] = w;
}

TS_KERNEL void __launch_bounds__(THREADS) ts_cross_entropy(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    ts_row<T, V, E> x;
    x.init(g.x + row * g.classes, row < g.outer ? g.classes : 0, threadIdx.x % lanes, lanes);
    C row_max = ts_lowest(C()), row_sum = 0, weight_sum = 0, weighted_sum = 0;
    x.for_each([&](ts_i64, C v) { row_max = ts_maximum(v, row_max); });
    row_max = ts_group_all_reduce(row_max, lanes, ts_max_op());
    x.for_each([&](ts_i64, C v) { row_sum += ts_exp(v - row_max); });
    row_sum = ts_group_all_reduce(row_sum, lanes, ts_add_op());
    if (g.smoothing != 0) {
        x.for_each([&](ts_i64 k, C v) {
            weight_sum += ts_weight(g, k);
            weighted_sum += ts_weight(g, k) * v;
        });
        weight_sum = ts_group_all_reduce(weight_sum, lanes, ts_add_op());
        weighted_sum = ts_group_all_reduce(weighted_sum, lanes, ts_add_op());
    }
    if (threadIdx.x % lanes == 0 && row < g.outer)
        ts_store_loss(g, row, row_max == ts_lowest(C()) ? row_max : row_max + ts_log(row_sum), weight_sum, weighted_sum);
}

TS_KERNEL void ts_cross_entropy_columns(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    const T* x = g.x + ts_offset(g, i);
    C row_max, row_sum, weight_sum = 0, weighted_sum = 0;
    ts_exp_sum_apart(x, g.classes, g.inner, row_max, row_sum);
    for (ts_i64 k = 0; g.smoothing != 0 && k < g.classes; k++) {
        weight_sum += ts_weight(g, k);
        weighted_sum += ts_weight(g, k) * (C)ts_upcast(x[k * g.inner]);
    }
    ts_store_loss(g, i, row_max == ts_lowest(C()) ? row_max : row_max + ts_log(row_sum), weight_sum, weighted_sum);
}

// The gradient of a logit k: softmax(k) * softmax_grad, minus the parts of the label and of label smoothing.
struct LogitGrad {
    ts_i64 label;
    C label_grad, smoothing_grad, softmax_grad, lse;
    TS_METHOD LogitGrad(const Args& g, ts_i64 element, C weight_sum) {
        label = ts_label(g, element, false);
        const C e = (C)g.smoothing, d = label >= 0 ? ts_upcast(g.dy[element]) : C(0);
        label_grad = label >= 0 ? (C(1) - e) * ts_weight(g, label) * d : C(0);
        smoothing_grad = e / (C)g.classes * d;
        softmax_grad = label_grad + smoothing_grad * weight_sum;
        lse = g.lse_in[element];
    }
    TS_METHOD C of(const Args& g, ts_i64 k, C v) const {
        if (label < 0) return 0;
        C d = ts_exp(v - lse) * softmax_grad;
        if (k == label) d -= label_grad;
        return smoothing_grad != 0 ? d - smoothing_grad * ts_weight(g, k) : d;
    }
};

TS_KERNEL void __launch_bounds__(THREADS) ts_cross_entropy_grad(const __grid_constant__ Args g) {
    const int lanes = LANES;
    const ts_i64 row = (ts_i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    const bool in = row < g.outer;
    ts_row<T, V, E> x;
    x.init(g.x + row * g.classes, in ? g.classes : 0, threadIdx.x % lanes, lanes);
    C weight_sum = 0;
    if (g.smoothing != 0) {
        x.for_each([&](ts_i64 k, C) { weight_sum += ts_weight(g, k); });
        weight_sum = ts_group_all_reduce(weight_sum, lanes, ts_add_op());
    }
    const LogitGrad grad(g, in ? row : 0, weight_sum);
    x.store(g.y + row * g.classes, [&](ts_i64 k, C v) { return grad.of(g, k, v); });
}

TS_KERNEL void ts_cross_entropy_columns_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    C weight_sum = 0;
    if (g.smoothing != 0)
        for (ts_i64 k = 0; k < g.classes; k++) weight_sum += ts_weight(g, k);
    const LogitGrad grad(g, i, weight_sum);
    const ts_i64 at = ts_offset(g, i);
    ts_store_apart(g.x + at, g.y + at, g.classes, g.inner, [&](ts_i64 k, C v) { return grad.of(g, k, v); });
}

TS_KERNEL void ts_nll(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    const ts_i64 label = ts_label(g, i, true);
    const C w = label < 0 ? C(0) : ts_weight(g, label);
    g.loss[i] = label < 0 ? C(0) : -ts_upcast(g.x[ts_offset(g, i) + label * g.inner]) * w;
    g.weights[i] = w;
}
// y is zeroed before the launch.
TS_KERNEL void ts_nll_grad(const __grid_constant__ Args g) {
    const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.outer * g.inner) return;
    const ts_i64 label = ts_label(g, i, true);
    if (label >= 0) g.y[ts_offset(g, i) + label * g.inner] = ts_downcast<T>(-ts_upcast(g.dy[i]) * ts_weight(g, label));
}
