//! Steps of ASGD and Rprop, as those of the other optimizers in `optim.rs`.

use super::optim::{
    GRADS, LR, MAXIMIZE, P, PARAMS, STEP, WEIGHT_DECAY, add_scaled, descent, each, lists, number, plus, state, step,
};
use crate::kernel::cpu::elementwise as math;
use crate::op::row::{Lower, Op, Param};

const ASGD_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("ax"),
    STEP,
    LR,
    number("lambd", 1e-4),
    number("alpha", 0.75),
    number("t0", 1e6),
    WEIGHT_DECAY,
    MAXIMIZE,
];

/// The rate and the weight of the average belong to the step before, as in PyTorch.
/// Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992); Bottou's schedule.
static ASGD: Op = step(
    "_asgd_step",
    ASGD_PARAMS,
    "A step of averaged stochastic gradient descent.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 3, |_| true, ASGD_PARAMS)?;
        let (before, lr, lambd) = (a.float(3) - 1.0, a.float(4), a.float(5));
        let eta = if before == 0.0 { lr } else { lr / (1.0 + lambd * lr * before).powf(a.float(6)) };
        let mu = 1.0 / (before - a.float(7)).max(1.0);
        each(e, &lists, |f| {
            let g = descent(f, a.flag(9), a.float(8));
            let p = f.get(P);
            let kept = f.with(&math::MUL, p, 1.0 - lambd * eta);
            let new = plus(f, kept, g, -eta);
            f.set(P, new);
            let p = f.get(P);
            if mu == 1.0 {
                f.set(2, p);
            } else {
                let old = f.get(2);
                let change = f.of_two(&math::SUB, p, old);
                add_scaled(f, 2, change, mu);
            }
        })
    }),
);

const RPROP_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("prev"),
    state("step_size"),
    STEP,
    LR,
    number("eta_minus", 0.5),
    number("eta_plus", 1.2),
    number("step_size_min", 1e-6),
    number("step_size_max", 50.0),
    MAXIMIZE,
];

/// Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993).
static RPROP: Op = step(
    "_rprop_step",
    RPROP_PARAMS,
    "A step of resilient backpropagation.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, RPROP_PARAMS)?;
        let (first, lr, minus, plus_) = (a.float(4) == 1.0, a.float(5), a.float(6), a.float(7));
        each(e, &lists, |f| {
            let g = descent(f, a.flag(10), 0.0);
            let old = f.get(2);
            // 1 where the gradient kept its sign, -1 where it changed it.
            let turn = f.of_two(&math::MUL, g, old);
            let turn = f.of(&math::SIGN, turn);
            let kept = f.with(&math::MAXIMUM, turn, 0.0);
            let turned = f.of(&math::NEG, turn);
            let turned = f.with(&math::MAXIMUM, turned, 0.0);
            let mut size = f.get(3);
            if first {
                // The sizes are zeros so far.
                size = f.with(&math::ADD, size, lr);
            }
            let grown = f.with(&math::MUL, kept, plus_ - 1.0);
            let grown = f.with(&math::ADD, grown, 1.0);
            let factor = plus(f, grown, turned, minus - 1.0);
            let size = f.of_two(&math::MUL, size, factor);
            let size = f.with(&math::MAXIMUM, size, a.float(8));
            let size = f.with(&math::MINIMUM, size, a.float(9));
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
