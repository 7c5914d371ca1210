// What a step of a recurrent layer does with each unit after its products, and its gradient. A thread for each unit of each
// sample. T: memory type; sums of gates, cells and gradients of states are of its compute type.
#include "math/math.cuh"

typedef typename ts_opmath<T>::type C;

#include "recurrent/args.cuh"

enum { RELU = 0, TANH = 1, LSTM = 2, GRU = 3 };

TS_FN C ts_gate(C x) { return C(1) / (C(1) + ts_exp(-x)); }

struct Unit {
    ts_i64 sample, unit;
    bool inside;
    __device__ __forceinline__ Unit(const Args& g) {
        const ts_i64 i = (ts_i64)blockIdx.x * blockDim.x + threadIdx.x;
        sample = i / g.hidden;
        unit = i % g.hidden;
        inside = sample < g.batch;
    }
    __device__ __forceinline__ ts_i64 at(const Args& g, ts_i64 row, int gate) const { return sample * row + gate * g.hidden + unit; }
};
TS_FN C ts_bias(const T* bias, const Args& g, const Unit& u, int gate) {
    return bias ? ts_upcast(bias[gate * g.hidden + u.unit]) : C(0);
}

TS_KERNEL void __launch_bounds__(256) ts_recurrent_step(const __grid_constant__ Args g) {
    const Unit u(g);
    if (!u.inside) return;
    C kept[4], next;
    if (g.mode == GRU) {
        C of_input[3], of_state[3];
#pragma unroll
        for (int k = 0; k < 3; k++) {
            of_input[k] = g.gates[u.at(g, g.gates_row, k)] + ts_bias(g.bias_ih, g, u, k);
            of_state[k] = g.from_state[u.at(g, 3 * g.hidden, k)] + ts_bias(g.bias_hh, g, u, k);
        }
        kept[0] = ts_gate(of_input[0] + of_state[0]);
        kept[1] = ts_gate(of_input[1] + of_state[1]);
        kept[2] = ts_tanh(of_input[2] + kept[0] * of_state[2]);
        kept[3] = of_state[2];
        next = (C(1) - kept[1]) * kept[2] + kept[1] * ts_upcast(g.before[u.at(g, g.before_row, 0)]);
    } else {
        C sum[4];
        const int gates = g.mode == LSTM ? 4 : 1;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k < gates)
                sum[k] = g.gates[u.at(g, g.gates_row, k)] + (ts_bias(g.bias_ih, g, u, k) + ts_bias(g.bias_hh, g, u, k));
        if (g.mode == LSTM) {
            kept[0] = ts_gate(sum[0]);
            kept[1] = ts_gate(sum[1]);
            kept[2] = ts_tanh(sum[2]);
            kept[3] = ts_gate(sum[3]);
            const C cell = kept[1] * g.cell_before[u.at(g, g.cell_before_row, 0)] + kept[0] * kept[2];
            g.cell[u.at(g, g.cell_row, 0)] = cell;
            next = kept[3] * ts_tanh(cell);
        } else {
            next = g.mode == TANH ? ts_tanh(sum[0]) : sum[0] < C(0) ? C(0) : sum[0];
        }
    }
    g.out[u.at(g, g.out_row, 0)] = ts_downcast<T>(next);
    if (!g.keeps) return;
#pragma unroll
    for (int k = 0; k < 4; k++) g.gates[u.at(g, g.gates_row, k)] = kept[k];
}

// `grad_state` becomes the part of the gradient of the state before that no product gives, `grad_cell` that of the cell before.
TS_KERNEL void __launch_bounds__(256) ts_recurrent_step_grad(const __grid_constant__ Args g) {
    const Unit u(g);
    if (!u.inside) return;
    const ts_i64 own = u.at(g, g.hidden, 0);
    const C grad = ts_upcast(g.grad_out[u.at(g, g.out_row, 0)]) + g.grad_state[own];
    T* to = g.to + u.at(g, g.to_row, 0);
    if (g.mode == LSTM) {
        const C i = g.gates[u.at(g, g.gates_row, 0)], f = g.gates[u.at(g, g.gates_row, 1)];
        const C n = g.gates[u.at(g, g.gates_row, 2)], o = g.gates[u.at(g, g.gates_row, 3)];
        const C cell = ts_tanh(g.cell[u.at(g, g.cell_row, 0)]);
        const C grad_cell = g.grad_cell[own] + grad * o * (C(1) - cell * cell);
        to[0] = ts_downcast<T>(grad_cell * n * i * (C(1) - i));
        to[g.hidden] = ts_downcast<T>(grad_cell * g.cell_before[u.at(g, g.cell_before_row, 0)] * f * (C(1) - f));
        to[2 * g.hidden] = ts_downcast<T>(grad_cell * i * (C(1) - n * n));
        to[3 * g.hidden] = ts_downcast<T>(grad * cell * o * (C(1) - o));
        g.grad_cell[own] = grad_cell * f;
    } else if (g.mode == GRU) {
        const C r = g.gates[u.at(g, g.gates_row, 0)], z = g.gates[u.at(g, g.gates_row, 1)];
        const C n = g.gates[u.at(g, g.gates_row, 2)], added = g.gates[u.at(g, g.gates_row, 3)];
        const C grad_n = grad * (C(1) - z) * (C(1) - n * n);
        to[0] = ts_downcast<T>(grad_n);
        to[g.hidden] = ts_downcast<T>(grad_n * added * r * (C(1) - r));
        to[2 * g.hidden] = ts_downcast<T>(grad * (ts_upcast(g.before[u.at(g, g.before_row, 0)]) - n) * z * (C(1) - z));
        to[3 * g.hidden] = ts_downcast<T>(grad_n * r);
        g.grad_state[own] = grad * z;
    } else {
        const C y = ts_upcast(g.out[u.at(g, g.out_row, 0)]);
        to[0] = ts_downcast<T>(g.mode == TANH ? grad * (C(1) - y * y) : y > C(0) ? grad : C(0));
    }
}
