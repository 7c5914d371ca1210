//! Steps of ASGD and Rprop.

use crate::op::row::{Lower, Op};
use crate::op::rows::optim::step::{P, count, descent, each, each_and_count, lists, step};
use crate::signature;

/// Indices of ASGD's scalars among its lists.
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
            let eta = p.number(ETA);
            let p = f.set(P, p * (eta * -lambd + 1.0) - g * eta);
            // Exactly the parameter while its weight is 1.
            let mu = p.number(MU);
            f.set(2, f.get(2) * (1.0 - mu) + p * mu);
        })?;
        let done = [count(e, a.tensor(asgd::step))?];
        each(e, &[lists[ETA], lists[MU], &done], |f| {
            let step = f.get(2);
            f.set(0, lr / (step * (lambd * lr) + 1.0).pow(alpha));
            f.set(1, (step - t0).max(1.0).reciprocal());
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
        let (minus, plus) = (a.float(rprop::eta_minus), a.float(rprop::eta_plus));
        each_and_count(e, &lists, a.tensor(rprop::step), |f| {
            let g = descent(f, a.flag(rprop::maximize), 0.0);
            // 1 where the gradient kept its sign, -1 where it changed it.
            let sign = (g * f.get(2)).sign();
            let (kept, changed) = (sign.max(0.0), (-sign).max(0.0));
            let factor = kept * (plus - 1.0) + 1.0 + changed * (minus - 1.0);
            let size = (f.get(3) * factor).max(a.float(rprop::step_size_min)).min(a.float(rprop::step_size_max));
            let size = f.set(3, size);
            // After a change of sign nothing moves.
            let g = f.set(2, g - g * changed);
            f.set(P, f.get(P) + g.sign() * size * -1.0);
        })
    }),
);

pub static ROWS: &[&Op] = &[&ASGD, &RPROP];
