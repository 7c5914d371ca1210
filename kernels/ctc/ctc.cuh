// Connectionist temporal classification: losses of sequences of labels without an alignment, and their gradient. T: float
// or double; sums over paths are logarithms in double.
#include "common/rows.cuh"

typedef typename ts_of<T>::cls C;

// Samples of one launch, `CTC_SAMPLES` on the host.
#define TS_SAMPLES 96

struct Args {
    const T* logs;
    const ts_i64* labels;
    const T* g;
    T* y;
    // For each sample of the launch `slot` numbers: loss, whether it is left out, sums of the paths into each state at each
    // step, and from there.
    double* paths;
    void* fault;
    ts_i64 samples, classes, blank, first, slot, ring;
    // Steps, labels, and where the labels begin, for each sample of the launch.
    ts_i64 sizes[3 * TS_SAMPLES];
};

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
    double* slot;
    TS_METHOD Sample(const Args& g, int i)
        : labels(g.labels + g.sizes[3 * i + 2]), steps(g.sizes[3 * i]), length(g.sizes[3 * i + 1]), states(2 * length + 1),
          blank(g.blank), slot(g.paths + i * g.slot) {}
    // Labels stand between blanks.
    TS_METHOD ts_i64 label(ts_i64 state) const { return state % 2 ? labels[state / 2] : blank; }
    // May the blank before this state be left out?
    TS_METHOD bool skips(ts_i64 state) const { return state % 2 && state > 1 && label(state) != label(state - 2); }
    TS_METHOD double loss(const double* ends) const {
        if (steps == 0) return length ? ts_inf(double()) : 0.0;
        return -(length ? ts_log_add(ends[states - 1], ends[states - 2]) : ends[states - 1]);
    }
};

// Sums over paths, forward for blockIdx.y 0 and backward for 1; blockIdx.x is a sample. Of a `ring` only the last step stays.
TS_KERNEL void __launch_bounds__(256) ts_ctc_paths(const __grid_constant__ Args g) {
    const Sample s(g, blockIdx.x);
    const bool back = blockIdx.y > 0, tells = threadIdx.x == 0 && !back;
    const ts_i64 n = g.first + blockIdx.x;
    bool bad = false;
    for (ts_i64 i = threadIdx.x; i < s.length; i += 256) {
        const ts_i64 label = s.labels[i];
        if (label >= 0 && label < g.classes) continue;
        bad = true;
        if (!back) ts_fault(g.fault, TS_LABEL, 0, (ts_u64)(s.labels + i - g.labels), label, g.classes);
    }
    if (__syncthreads_or(bad)) {
        if (tells) s.slot[1] = 1;
        if (tells && g.ring) g.y[n] = 0;
        return;
    }
    double* rows = s.slot + 2 + (back ? s.steps * s.states : 0);
    double* now = rows;
    for (ts_i64 k = 0; k < s.steps; k++) {
        const ts_i64 step = back ? s.steps - 1 - k : k;
        const double* before = now;
        now = rows + (g.ring ? k % 2 : step) * s.states;
        const T* logs = g.logs + (step * g.samples + n) * g.classes;
        for (ts_i64 state = threadIdx.x; state < s.states; state += 256) {
            const ts_i64 left = back ? s.states - 1 - state : state, near = back ? state + 1 : state - 1;
            double sum = left < 2 ? 0.0 : -ts_inf(double());
            if (k > 0) {
                sum = before[state];
                if (left > 0) sum = ts_log_add(sum, before[near]);
                if (left > 1 && s.skips(back ? state + 2 : state))
                    sum = ts_log_add(sum, before[back ? state + 2 : state - 2]);
            }
            now[state] = sum + (double)ts_up(logs[s.label(state)]);
        }
        __syncthreads();
    }
    if (tells) {
        s.slot[0] = s.loss(now);
        s.slot[1] = 0;
        if (g.ring) g.y[n] = ts_down<T>(s.slot[0]);
    }
}

// The gradient for one step, blockIdx.x, of one sample, blockIdx.y. y is zero before.
TS_KERNEL void __launch_bounds__(256) ts_ctc_grad(const __grid_constant__ Args g) {
    const Sample s(g, blockIdx.y);
    const ts_i64 step = blockIdx.x, n = g.first + blockIdx.y, row = (step * g.samples + n) * g.classes;
    const C d = ts_up(g.g[n]);
    if (step >= s.steps || d == 0 || s.slot[1] != 0) return;
    const double *into = s.slot + 2 + step * s.states, *from = into + s.steps * s.states, loss = s.slot[0];
    const T* logs = g.logs + row;
    T* y = g.y + row;
    // What passes through no state of a class is nothing, but a loss that is no number shows everywhere.
    for (ts_i64 k = threadIdx.x; k < g.classes; k += 256) {
        const C log = ts_up(logs[k]);
        const double share = -ts_inf(double()) + loss - (double)log;
        y[k] = ts_down<T>((ts_exp(log) - (share != share ? ts_nan(C()) : C(0))) * d);
    }
    double sum = -ts_inf(double());
    for (ts_i64 state = threadIdx.x; state < s.states; state += 256)
        if (s.label(state) == s.blank) sum = ts_log_add(sum, into[state] + from[state]);
    // Its barriers also stand between the values above and those below.
    sum = ts_all_lanes(sum, 256, ts_log_add_op());
    const auto put = [&](ts_i64 label, double sum) {
        const double log = ts_up(logs[label]);
        y[label] = ts_down<T>((exp(log) - exp(sum + loss - log)) * (double)d);
    };
    if (threadIdx.x == 0) put(s.blank, sum);
    // The first of equal labels adds up for all of them.
    for (ts_i64 i = threadIdx.x; i < s.length; i += 256) {
        const ts_i64 label = s.labels[i];
        bool first = label != s.blank;
        for (ts_i64 j = 0; j < i && first; j++) first = s.labels[j] != label;
        if (!first) continue;
        double sum = -ts_inf(double());
        for (ts_i64 j = i; j < s.length; j++)
            if (s.labels[j] == label) sum = ts_log_add(sum, into[2 * j + 1] + from[2 * j + 1]);
        put(label, sum);
    }
}
