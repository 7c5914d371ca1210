//! The gradient of all steps: one kernel, or where it must have a gradient itself, the steps and the walk back through them as
//! rows.

use super::{settings, steps};
use crate::args;
use crate::base::diag::Result;
use crate::kernel::recurrent::RECURRENT_GRAD;
use crate::kernel::recurrent::layer::Mode;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{Expr, Terms, derive};
use crate::op::rows::shape::join::STACK;
use crate::op::rows::shape::view::{RESHAPE, SELECT};
use crate::op::tensor::Tensor;

pub fn of_steps(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    if e.grad_enabled() || !v.args.flag(steps::keeps) {
        return composed(e, v);
    }
    let cell = v.opt_input(steps::cx);
    let biases: Vec<usize> =
        [steps::bias_ih, steps::bias_hh].into_iter().filter(|&at| v.opt_input(at).is_some()).collect();
    let mut arrived = Vec::new();
    for at in [0, 2].into_iter().chain(cell.map(|_| 3)) {
        arrived.push(match &v.grads[at] {
            Some(grad) => grad.clone(),
            None => e.zeros_like(&v.outputs[at])?,
        });
    }
    let given = [steps::input, steps::weight_ih, steps::weight_hh, steps::hx];
    let call = KernelCall::new("recurrent_grad", &RECURRENT_GRAD)
        .inputs(given.map(|at| v.saved(at)))
        .inputs(cell)
        .inputs([v.output(0), v.output(1)])
        .inputs(&arrived);
    let slots = given.into_iter().chain(cell.map(|_| steps::cx)).chain(biases);
    let slots: Vec<usize> = slots.collect();
    let call = slots.iter().fold(settings(call, v.args), |call, &at| {
        let meta = v.meta(at);
        let unused = at == steps::input && !v.needs(at);
        call.output(if unused { &[0] } else { &meta.shape }, meta.dtype)
    });
    let mut grads = vec![None; steps::bias_hh + 1];
    for (at, made) in slots.into_iter().zip(e.kernel(call)?) {
        grads[at] = v.needs(at).then_some(made);
    }
    Ok(grads)
}

/// One step, computed again.
struct Step<'c> {
    /// State and cell before it.
    state: Expr<'c>,
    cell: Option<Expr<'c>>,
    /// Its gates after their functions.
    gates: Vec<Expr<'c>>,
    /// LSTM: tanh of the cell. GRU: what the state adds to the third gate. Else the state that it gives.
    third: Expr<'c>,
}

/// The sizes that a rule works with.
#[derive(Clone, Copy)]
struct Sizes {
    mode: Mode,
    hidden: usize,
    /// The dim of the steps, and how many there are.
    time: i64,
    steps: usize,
    reverse: bool,
}

impl Sizes {
    fn of(v: &Backward<'_>) -> Sizes {
        let time = v.args.flag(steps::batch_first) as usize;
        Sizes {
            mode: Mode::of(v.args.int(steps::mode)),
            hidden: v.meta(steps::hx).shape[1],
            time: time as i64,
            steps: v.meta(steps::input).shape[time],
            reverse: v.args.flag(steps::reverse),
        }
    }

    /// The step that is computed as the `i`th.
    fn step(self, i: usize) -> usize {
        if self.reverse { self.steps - 1 - i } else { i }
    }

    /// One step of a tensor over all.
    fn select<'c>(self, x: Expr<'c>, i: usize) -> Expr<'c> {
        x.call(&SELECT, args![self.time, self.step(i)])
    }

    /// One gate of several.
    fn gate<'c>(self, x: Expr<'c>, gate: usize) -> Expr<'c> {
        x.slice(1, gate * self.hidden, (gate + 1) * self.hidden)
    }

    /// Steps in the order in which they were computed, as rows `[steps * batch, width]`; which order rows have does not matter.
    fn rows<'c>(self, t: Terms<'c>, each: &[Expr<'c>]) -> Expr<'c> {
        flat(stacked(t, each.to_vec(), 0))
    }
}

fn stacked<'c>(t: Terms<'c>, each: Vec<Expr<'c>>, dim: i64) -> Expr<'c> {
    t.make(|e| {
        let tensors = each.iter().map(|x| x.tensor()).collect::<Result<Vec<Tensor>>>()?;
        e.call(&STACK, args![tensors, dim])
    })
}

/// The last dim stays.
fn flat(x: Expr<'_>) -> Expr<'_> {
    x.then(|e, x| e.call(&RESHAPE, args![x, [-1, x.shape()[x.ndim() - 1] as i64].as_slice()]))
}

/// The state, and the cell, after a step.
fn forward<'c>(
    s: Sizes,
    of_input: Expr<'c>,
    of_state: Expr<'c>,
    state: Expr<'c>,
    cell: Option<Expr<'c>>,
) -> (Step<'c>, [Expr<'c>; 2]) {
    let step = |gates, third| Step { state, cell, gates, third };
    match (s.mode, cell) {
        (Mode::Lstm, Some(cell)) => {
            let sum = of_input + of_state;
            let gate = |n: usize| if n == 2 { s.gate(sum, n).tanh() } else { s.gate(sum, n).sigmoid() };
            let [i, f, g, o] = [gate(0), gate(1), gate(2), gate(3)];
            let next = f * cell + i * g;
            let squashed = next.tanh();
            (step(vec![i, f, g, o], squashed), [o * squashed, next])
        }
        (Mode::Gru, _) => {
            let both = |n: usize| (s.gate(of_input, n) + s.gate(of_state, n)).sigmoid();
            let (r, z, added) = (both(0), both(1), s.gate(of_state, 2));
            let new = (s.gate(of_input, 2) + r * added).tanh();
            let next = (1.0 - z) * new + z * state;
            (step(vec![r, z, new], added), [next, next])
        }
        _ => {
            let sum = of_input + of_state;
            let next = if s.mode == Mode::Relu { sum.of(&crate::op::rows::nn::activation::RELU) } else { sum.tanh() };
            (step(Vec::new(), next), [next, next])
        }
    }
}

/// Gradients of what input and state add to the gates, of the state before the step beside that, and of the cell before it.
struct Gradients<'c> {
    of_input: Expr<'c>,
    of_state: Expr<'c>,
    state: Option<Expr<'c>>,
    cell: Option<Expr<'c>>,
}

fn backward<'c>(s: Sizes, step: &Step<'c>, g: Expr<'c>, cell: Option<Expr<'c>>) -> Gradients<'c> {
    let joined = |parts: &[Expr<'c>]| parts[1..].iter().fold(parts[0], |all, part| all.cat(*part, 1));
    match (s.mode, &step.gates[..]) {
        (Mode::Lstm, &[i, f, new, o]) => {
            let squashed = step.third;
            let inner = g * o * (1.0 - squashed * squashed);
            let to_cell = cell.map_or(inner, |cell| cell + inner);
            let before = step.cell.unwrap_or(step.state);
            let sums = joined(&[
                to_cell * new * i * (1.0 - i),
                to_cell * before * f * (1.0 - f),
                to_cell * i * (1.0 - new * new),
                g * squashed * o * (1.0 - o),
            ]);
            Gradients { of_input: sums, of_state: sums, state: None, cell: Some(to_cell * f) }
        }
        (Mode::Gru, &[r, z, new]) => {
            let to_new = g * (1.0 - z) * (1.0 - new * new);
            let to_r = to_new * step.third * r * (1.0 - r);
            let to_z = g * (step.state - new) * z * (1.0 - z);
            Gradients {
                of_input: joined(&[to_r, to_z, to_new]),
                of_state: joined(&[to_r, to_z, to_new * r]),
                state: Some(g * z),
                cell: None,
            }
        }
        _ => {
            let y = step.third;
            let sums = match s.mode {
                // Depends on the output, with a gradient of 0.
                Mode::Relu => g.zero_unless(y.greater(0.0)) + y.sgn() * 0.0,
                _ => g * (1.0 - y * y),
            };
            Gradients { of_input: sums, of_state: sums, state: None, cell: None }
        }
    }
}

/// With a bias, if there is one.
fn plus<'c>(x: Expr<'c>, bias: Option<Expr<'c>>) -> Expr<'c> {
    bias.map_or(x, |bias| x + bias)
}

/// The gradient as rows, which have gradients themselves.
fn composed(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let s = Sizes::of(v);
    let has = |at: usize| v.opt_input(at).is_some();
    derive(e, v, |t| {
        let arg = |at: usize| has(at).then(|| t.arg(at));
        let [x, weight_ih, weight_hh] = [steps::input, steps::weight_ih, steps::weight_hh].map(|at| t.arg(at));
        let of_input = plus(x.matmul(weight_ih.mt()), arg(steps::bias_ih));
        let (mut state, mut cell) = (t.arg(steps::hx), arg(steps::cx));
        let mut done = Vec::new();
        for i in 0..s.steps {
            let of_state = plus(state.matmul(weight_hh.mt()), arg(steps::bias_hh));
            let (step, next) = forward(s, s.select(of_input, i), of_state, state, cell);
            done.push(step);
            (state, cell) = (next[0], cell.map(|_| next[1]));
        }
        let (mut to_state, mut to_cell) = (t.grad(2), if has(steps::cx) { t.grad(3) } else { None });
        let (mut inputs, mut states) = (Vec::new(), Vec::new());
        for i in (0..s.steps).rev() {
            let arrived = t.grad(0).map(|all| s.select(all, i));
            let g = match (arrived, to_state) {
                (Some(a), Some(b)) => a + b,
                (a, b) => a.or(b).unwrap_or_else(|| t.zeros_like(steps::hx)),
            };
            let made = backward(s, &done[i], g, to_cell);
            let through = made.of_state.matmul(weight_hh);
            to_state = Some(made.state.map_or(through, |direct| through + direct));
            to_cell = made.cell;
            inputs.push(made.of_input);
            states.push(made.of_state);
        }
        // As the steps were computed.
        inputs.reverse();
        states.reverse();
        let before: Vec<Expr<'_>> = done.iter().map(|step| step.state).collect();
        let sums = s.rows(t, &states);
        let mut in_order = inputs;
        if s.reverse {
            in_order.reverse();
        }
        let all = stacked(t, in_order, s.time);
        [
            t.if_needed(steps::input, || all.matmul(weight_ih)),
            t.if_needed(steps::weight_ih, || flat(all).mt().matmul(flat(x))),
            t.if_needed(steps::weight_hh, || sums.mt().matmul(s.rows(t, &before))),
            t.if_needed(steps::hx, || to_state.unwrap_or_else(|| t.zeros_like(steps::hx))),
            if has(steps::cx) {
                t.if_needed(steps::cx, || to_cell.unwrap_or_else(|| t.zeros_like(steps::cx)))
            } else {
                None
            },
            if has(steps::bias_ih) { t.if_needed(steps::bias_ih, || flat(all).sum(0)) } else { None },
            if has(steps::bias_hh) { t.if_needed(steps::bias_hh, || sums.sum(0)) } else { None },
        ]
    })
}
