//! Steps of ASGD and Rprop, as those of the other optimizers in `optimizers.rs`.

use crate::kernel::elementwise as math;
use crate::op::row::{Lower, Op};
use crate::op::rows::optim::optimizers::{P, add_scaled, count, descent, each, each_and_count, lists, plus, step};
use crate::signature;

/// Where the numbers of ASGD stand among its lists.
const ETA: usize = 3;
const MU: usize = 4;

signature!(asgd(
    params: Tensors, grads: Tensors, ax: Tensors = None, eta: Tensors = None, mu: Tensors = None, step: Tensor,
    lr: Float, lambd: Float = 1e-4, alpha: Float = 0.75, t0: Float = 1e6, weight_decay: Float = 0.0,
    maximize: Bool = false,
));

/// The rate and the weight of the average that a step uses were worked out at the end of the one before, with its
/// settings, as in PyTorch: `eta` begins with `lr`, `mu` with 1. Each is one number for a parameter.
/// Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992); Bottou's schedule.
static ASGD: Op = step(
    "_asgd_step",
    asgd::PARAMS,
    "A step of averaged stochastic gradient descent.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 5, |_| true, asgd::PARAMS)?;
        let (lr, lambd, alpha, t0) = (a.float(asgd::lr), a.float(asgd::lambd), a.float(asgd::alpha), a.float(asgd::t0));
        each_and_count(e, &lists, a.tensor(asgd::step), |f| {
            let g = descent(f, a.flag(asgd::maximize), a.float(asgd::weight_decay));
            let p = f.get(P);
            let eta = f.number_of(ETA, p);
            let decay = f.with(&math::MUL, eta, -lambd);
            let kept = f.with(&math::ADD, decay, 1.0);
            let kept = f.of_two(&math::MUL, p, kept);
            let step = f.of_two(&math::MUL, g, eta);
            let new = f.of_two(&math::SUB, kept, step);
            f.set(P, new);
            let p = f.get(P);
            // Exactly the parameter while its weight is 1.
            let old = f.get(2);
            let mu = f.number_of(MU, p);
            let rest = f.before(&math::SUB, 1.0, mu);
            let rest = f.of_two(&math::MUL, old, rest);
            let part = f.of_two(&math::MUL, p, mu);
            let average = f.of_two(&math::ADD, rest, part);
            f.set(2, average);
        })?;
        let done = [count(e, a.tensor(asgd::step))?];
        each(e, &[lists[ETA], lists[MU], &done], |f| {
            let step = f.get(2);
            let slower = f.with(&math::MUL, step, lambd * lr);
            let slower = f.with(&math::ADD, slower, 1.0);
            let slower = f.with(&math::POW, slower, alpha);
            let eta = f.before(&math::DIV, lr, slower);
            f.set(0, eta);
            let averaged = f.with(&math::SUB, step, t0);
            let averaged = f.with(&math::MAXIMUM, averaged, 1.0);
            let mu = f.of(&math::RECIPROCAL, averaged);
            f.set(1, mu);
        })
    }),
);

signature!(rprop(
    params: Tensors, grads: Tensors, prev: Tensors = None, step_size: Tensors = None, eta_minus: Float = 0.5,
    eta_plus: Float = 1.2, step_size_min: Float = 1e-6, step_size_max: Float = 50.0, maximize: Bool = false, step: Tensor,
));

/// The sizes begin with the rate. Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993).
static RPROP: Op = step(
    "_rprop_step",
    rprop::PARAMS,
    "A step of resilient backpropagation.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, rprop::PARAMS)?;
        let (minus, plus_) = (a.float(rprop::eta_minus), a.float(rprop::eta_plus));
        each_and_count(e, &lists, a.tensor(rprop::step), |f| {
            let g = descent(f, a.flag(rprop::maximize), 0.0);
            let old = f.get(2);
            // 1 where the gradient kept its sign, -1 where it changed it.
            let turn = f.of_two(&math::MUL, g, old);
            let turn = f.of(&math::SIGN, turn);
            let kept = f.with(&math::MAXIMUM, turn, 0.0);
            let turned = f.of(&math::NEG, turn);
            let turned = f.with(&math::MAXIMUM, turned, 0.0);
            let size = f.get(3);
            let grown = f.with(&math::MUL, kept, plus_ - 1.0);
            let grown = f.with(&math::ADD, grown, 1.0);
            let factor = plus(f, grown, turned, minus - 1.0);
            let size = f.of_two(&math::MUL, size, factor);
            let size = f.with(&math::MAXIMUM, size, a.float(rprop::step_size_min));
            let size = f.with(&math::MINIMUM, size, a.float(rprop::step_size_max));
            f.set(3, size);
            // After a change of sign nothing moves.
            let zero = f.of_two(&math::MUL, g, turned);
            let g = f.of_two(&math::SUB, g, zero);
            f.set(2, g);
            let direction = f.of(&math::SIGN, g);
            let size = f.get(3);
            let way = f.of_two(&math::MUL, direction, size);
            add_scaled(f, P, way, -1.0);
        })
    }),
);

pub static ROWS: &[&Op] = &[&ASGD, &RPROP];
