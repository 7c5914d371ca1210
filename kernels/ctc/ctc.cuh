// CTC loss (connectionist temporal classification) and its gradient. T: float or double; alpha and beta, the
// log-probabilities of all paths into and from a state, are double.
#include "common/rows.cuh"

typedef typename ts_opmath<T>::type C;

#include "ctc/args.cuh"

TS_FN double ts_log_add(double a, double b) {
    const double high = a < b ? b : a, low = a < b ? a : b;
    return high == -ts_inf(double()) ? high : high + log1p(exp(low - high));
}
struct ts_log_add_op {
    TS_METHOD double operator()(double a, double b) const { return ts_log_add(a, b); }
};

struct Sample {
    const ts_i64* labels;
    ts_i64 steps, length, states, blank;
    double* memory;
    TS_METHOD Sample(const Args& g, int i)
        : labels(g.labels + g.sizes[3 * i + 2]), steps(g.sizes[3 * i]), length(g.sizes[3 * i + 1]), states(2 * length + 1),
          blank(g.blank), memory(g.alpha_beta + i * g.sample_doubles) {}
    // The extended label sequence has a blank before, between and after the labels.
    TS_METHOD ts_i64 label(ts_i64 state) const { return state % 2 ? labels[state / 2] : blank; }
    // Whether a path may go from the previous label to this one without the blank between them.
    TS_METHOD bool can_skip_blank(ts_i64 state) const { return state % 2 && state > 1 && label(state) != label(state - 2); }
    TS_METHOD double loss(const double* ends) const {
        if (steps == 0) return length ? ts_inf(double()) : 0.0;
        return -(length ? ts_log_add(ends[states - 1], ends[states - 2]) : ends[states - 1]);
    }
};

// alpha for blockIdx.y 0, beta for 1; blockIdx.x is a sample. `rolling`: only the last two steps are kept, for the loss
// alone.
TS_KERNEL void __launch_bounds__(256) ts_ctc_alpha_beta(const __grid_constant__ Args g) {
    const Sample s(g, blockIdx.x);
    const bool backward = blockIdx.y > 0, reports = threadIdx.x == 0 && !backward;
    const ts_i64 n = g.first + blockIdx.x;
    bool invalid = false;
    for (ts_i64 i = threadIdx.x; i < s.length; i += 256) {
        const ts_i64 label = s.labels[i];
        if (label >= 0 && label < g.classes) continue;
        invalid = true;
        if (!backward) ts_fault(g.fault, TS_LABEL, 0, (ts_u64)(s.labels + i - g.labels), label, g.classes);
    }
    if (__syncthreads_or(invalid)) {
        if (reports) s.memory[1] = 1;
        if (reports && g.rolling) g.y[n] = 0;
        return;
    }
    double* rows = s.memory + 2 + (backward ? s.steps * s.states : 0);
    double* cur = rows;
    for (ts_i64 k = 0; k < s.steps; k++) {
        const ts_i64 step = backward ? s.steps - 1 - k : k;
        const double* prev = cur;
        cur = rows + (g.rolling ? k % 2 : step) * s.states;
        const T* log_probs = g.log_probs + (step * g.samples + n) * g.classes;
        for (ts_i64 state = threadIdx.x; state < s.states; state += 256) {
            const ts_i64 distance = backward ? s.states - 1 - state : state, neighbor = backward ? state + 1 : state - 1;
            double sum = distance < 2 ? 0.0 : -ts_inf(double());
            if (k > 0) {
                sum = prev[state];
                if (distance > 0) sum = ts_log_add(sum, prev[neighbor]);
                if (distance > 1 && s.can_skip_blank(backward ? state + 2 : state))
                    sum = ts_log_add(sum, prev[backward ? state + 2 : state - 2]);
            }
            cur[state] = sum + (double)ts_upcast(log_probs[s.label(state)]);
        }
        __syncthreads();
    }
    if (reports) {
        s.memory[0] = s.loss(cur);
        s.memory[1] = 0;
        if (g.rolling) g.y[n] = ts_downcast<T>(s.memory[0]);
    }
}

// The gradient for step blockIdx.x of sample blockIdx.y. y is zeroed before the launch.
TS_KERNEL void __launch_bounds__(256) ts_ctc_grad(const __grid_constant__ Args g) {
    const Sample s(g, blockIdx.y);
    const ts_i64 step = blockIdx.x, n = g.first + blockIdx.y, row = (step * g.samples + n) * g.classes;
    const C dy = ts_upcast(g.dy[n]);
    if (step >= s.steps || dy == 0 || s.memory[1] != 0) return;
    const double *alpha = s.memory + 2 + step * s.states, *beta = alpha + s.steps * s.states, loss = s.memory[0];
    const T* log_probs = g.log_probs + row;
    T* y = g.y + row;
    // Classes that no label names get the gradient of the softmax alone; a loss that is NaN or infinite makes them NaN.
    for (ts_i64 k = threadIdx.x; k < g.classes; k += 256) {
        const C log = ts_upcast(log_probs[k]);
        const double share = -ts_inf(double()) + loss - (double)log;
        y[k] = ts_downcast<T>((ts_exp(log) - (share != share ? ts_nan(C()) : C(0))) * dy);
    }
    double sum = -ts_inf(double());
    for (ts_i64 state = threadIdx.x; state < s.states; state += 256)
        if (s.label(state) == s.blank) sum = ts_log_add(sum, alpha[state] + beta[state]);
    // The barriers of this reduction also order the stores above before those below.
    sum = ts_group_all_reduce(sum, 256, ts_log_add_op());
    const auto store_grad = [&](ts_i64 label, double sum) {
        const double log = ts_upcast(log_probs[label]);
        y[label] = ts_downcast<T>((exp(log) - exp(sum + loss - log)) * (double)dy);
    };
    if (threadIdx.x == 0) store_grad(s.blank, sum);
    // The first of several equal labels adds up all of them.
    for (ts_i64 i = threadIdx.x; i < s.length; i += 256) {
        const ts_i64 label = s.labels[i];
        bool first = label != s.blank;
        for (ts_i64 j = 0; j < i && first; j++) first = s.labels[j] != label;
        if (!first) continue;
        double sum = -ts_inf(double());
        for (ts_i64 j = i; j < s.length; j++)
            if (s.labels[j] == label) sum = ts_log_add(sum, alpha[2 * j + 1] + beta[2 * j + 1]);
        store_grad(label, sum);
    }
}
