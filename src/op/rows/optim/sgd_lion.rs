//! Steps of SGD and Lion, and of those that a script computes.

use crate::op::formula::{Formula, Value};
use crate::op::row::{Lower, Op};
use crate::op::rows::optim::step::{G, P, average, descent, each_and_count, each_counted, lists, step};
use crate::signature;

signature!(sgd(
    params: Tensors, grads: Tensors, momentum_buffer: Tensors = None, lr: Float, momentum: Float = 0.0,
    dampening: Float = 0.0, weight_decay: Float = 0.0, nesterov: Bool = false, maximize: Bool = false, step: Tensor,
));

/// At the first step the momenta are 0 and become the gradients.
static SGD: Op = step(
    "_sgd_step",
    sgd::PARAMS,
    "A step of stochastic gradient descent.",
    Lower::Steps(|e, a| {
        let (lr, momentum, dampening) = (a.float(sgd::lr), a.float(sgd::momentum), a.float(sgd::dampening));
        let lists = lists(a, 3, |at| at < 2 || momentum != 0.0, sgd::PARAMS)?;
        let formula = |f: &Formula| {
            let mut d = descent(f, a.flag(sgd::maximize), a.float(sgd::weight_decay));
            if momentum != 0.0 {
                let new = if dampening == 0.0 { d } else { d * d.number(3) };
                let new = f.set(2, f.get(2) * momentum + new);
                d = if a.flag(sgd::nesterov) { d + new * momentum } else { new };
            }
            f.set(P, f.get(P) + d * -lr);
        };
        if momentum == 0.0 || dampening == 0.0 {
            return each_and_count(e, &lists, a.tensor(sgd::step), formula);
        }
        // Not at the first step.
        let numbers = |f: &Formula, step: Value<'_>| _ = f.set(1, 1.0 - (step - 1.0).min(1.0) * dampening);
        each_counted(e, &lists, a.tensor(sgd::step), 1, numbers, formula)
    }),
);

signature!(stored(params: Tensors, grads: Tensors, step: Tensor));

/// The second list has the new values of the first.
pub static STORED: Op = step(
    "_stored_step",
    stored::PARAMS,
    "A step whose results were computed before.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 2, |_| true, stored::PARAMS)?;
        each_and_count(e, &lists, a.tensor(stored::step), |f: &Formula| _ = f.set(P, f.get(G)))
    }),
);

signature!(lion(
    params: Tensors, grads: Tensors, exp_avg: Tensors = None, lr: Float, beta1: Float = 0.9, beta2: Float = 0.99,
    weight_decay: Float = 0.0, maximize: Bool = false, step: Tensor,
));

/// Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023).
static LION: Op = step(
    "_lion_step",
    lion::PARAMS,
    "A step of Lion.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 3, |_| true, lion::PARAMS)?;
        let (lr, beta1, beta2) = (a.float(lion::lr), a.float(lion::beta1), a.float(lion::beta2));
        each_and_count(e, &lists, a.tensor(lion::step), |f| {
            let g = descent(f, a.flag(lion::maximize), 0.0);
            let direction = (f.get(2) * beta1 + g * (1.0 - beta1)).sign();
            f.set(P, f.get(P) * (1.0 - lr * a.float(lion::weight_decay)) + direction * -lr);
            average(f, 2, g, beta2);
        })
    }),
);

pub static ROWS: &[&Op] = &[&SGD, &STORED, &LION];
