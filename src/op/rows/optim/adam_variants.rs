//! Steps of Adam, AdamW, AMSGrad, Adamax, NAdam and RAdam.

use crate::op::formula::{Formula, Value, power};
use crate::op::row::{Lower, Op};
use crate::op::rows::optim::step::{
    P, average, average_square, correction, descent, each_counted, lists, root, shrunk, step,
};
use crate::signature;

signature!(adam(
    params: Tensors, grads: Tensors, exp_avg: Tensors = None, exp_avg_sq: Tensors = None,
    max_exp_avg_sq: Tensors = None, step: Tensor, lr: Float, beta1: Float = 0.9, beta2: Float = 0.999,
    eps: Float = 1e-8, weight_decay: Float = 0.0, amsgrad: Bool = false, decoupled_weight_decay: Bool = false,
    maximize: Bool = false,
));

/// `decoupled_weight_decay` is AdamW's.
static ADAM: Op = step(
    "_adam_step",
    adam::PARAMS,
    "A step of Adam, AMSGrad or AdamW.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 5, |at| at < 4 || a.flag(adam::amsgrad), adam::PARAMS)?;
        let (lr, beta1, beta2, eps) =
            (a.float(adam::lr), a.float(adam::beta1), a.float(adam::beta2), a.float(adam::eps));
        let (decay, decoupled) = (a.float(adam::weight_decay), a.flag(adam::decoupled_weight_decay));
        let numbers = |f: &Formula, step: Value<'_>| {
            f.set(1, -lr / correction(beta1, step));
            f.set(2, correction(beta2, step).sqrt());
        };
        each_counted(e, &lists, a.tensor(adam::step), 2, numbers, |f| {
            let g = descent(f, a.flag(adam::maximize), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled && decay != 0.0 { 1.0 - lr * decay } else { 1.0 });
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let root = if a.flag(adam::amsgrad) { f.set(4, f.get(4).max(v)) } else { v }.sqrt();
            f.set(P, p + m * m.number(5) / (root / root.number(6) + eps));
        })
    }),
);

signature!(adamax(
    params: Tensors, grads: Tensors, exp_avg: Tensors = None, exp_inf: Tensors = None, step: Tensor, lr: Float,
    beta1: Float = 0.9, beta2: Float = 0.999, eps: Float = 1e-8, weight_decay: Float = 0.0, maximize: Bool = false,
));

/// Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2014), section 7.
static ADAMAX: Op = step(
    "_adamax_step",
    adamax::PARAMS,
    "A step of Adamax.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, adamax::PARAMS)?;
        let (lr, beta1, beta2, eps) =
            (a.float(adamax::lr), a.float(adamax::beta1), a.float(adamax::beta2), a.float(adamax::eps));
        let numbers = |f: &Formula, step: Value<'_>| _ = f.set(1, -lr / correction(beta1, step));
        each_counted(e, &lists, a.tensor(adamax::step), 1, numbers, |f| {
            let g = descent(f, a.flag(adamax::maximize), a.float(adamax::weight_decay));
            let m = average(f, 2, g, beta1);
            let most = f.set(3, (f.get(3) * beta2).max(g.abs() + eps));
            f.set(P, f.get(P) + m * m.number(4) / most);
        })
    }),
);

signature!(nadam(
    params: Tensors, grads: Tensors, exp_avg: Tensors = None, exp_avg_sq: Tensors = None,
    mu_product: Tensors = None, step: Tensor, lr: Float, beta1: Float = 0.9, beta2: Float = 0.999,
    eps: Float = 1e-8, weight_decay: Float = 0.0, momentum_decay: Float = 4e-3,
    decoupled_weight_decay: Bool = false, maximize: Bool = false,
));

/// `mu_product` is filled with the product of all factors so far, 1 before the first. Source: Dozat, "Incorporating Nesterov Momentum into
/// Adam" (2016).
static NADAM: Op = step(
    "_nadam_step",
    nadam::PARAMS,
    "A step of NAdam.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 5, |_| true, nadam::PARAMS)?;
        let (lr, beta1, beta2, eps) =
            (a.float(nadam::lr), a.float(nadam::beta1), a.float(nadam::beta2), a.float(nadam::eps));
        let (decay, momentum_decay, decoupled) =
            (a.float(nadam::weight_decay), a.float(nadam::momentum_decay), a.flag(nadam::decoupled_weight_decay));
        let numbers = |f: &Formula, step: Value<'_>| {
            let mu = f.set(1, momentum_at(step, momentum_decay, beta1));
            let next = f.set(2, momentum_at(step + 1.0, momentum_decay, beta1));
            f.set(3, (1.0 - mu) * lr);
            f.set(4, next * lr);
            f.set(5, correction(beta2, step));
        };
        const NUMBERS: usize = 5;
        each_counted(e, &lists, a.tensor(nadam::step), 5, numbers, |f| {
            let g = descent(f, a.flag(nadam::maximize), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled { 1.0 - lr * decay } else { 1.0 });
            let old = f.get(4);
            let product = f.set(4, old * old.number(NUMBERS));
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let d = root(v / v.number(NUMBERS + 4), eps);
            let p = p - g * g.number(NUMBERS + 2) / (1.0 - product) / d;
            let ahead = product * product.number(NUMBERS + 1);
            f.set(P, p - m * m.number(NUMBERS + 3) / (1.0 - ahead) / d);
        })
    }),
);

/// The momentum of a step, from 1.
fn momentum_at(step: Value<'_>, decay: f64, beta1: f64) -> Value<'_> {
    (power(0.96, step * decay) * -0.5 + 1.0) * beta1
}

signature!(radam(
    params: Tensors, grads: Tensors, exp_avg: Tensors = None, exp_avg_sq: Tensors = None, step: Tensor, lr: Float,
    beta1: Float = 0.9, beta2: Float = 0.999, eps: Float = 1e-8, weight_decay: Float = 0.0,
    decoupled_weight_decay: Bool = false, maximize: Bool = false,
));

/// Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2019).
static RADAM: Op = step(
    "_radam_step",
    radam::PARAMS,
    "A step of RAdam.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, radam::PARAMS)?;
        let (lr, beta1, beta2, eps) =
            (a.float(radam::lr), a.float(radam::beta1), a.float(radam::beta2), a.float(radam::eps));
        let (decay, decoupled) = (a.float(radam::weight_decay), a.flag(radam::decoupled_weight_decay));
        let most = 2.0 / (1.0 - beta2) - 1.0;
        // The length never exceeds `most`: the variance may never be used.
        let adapts = most > 5.0;
        let numbers = |f: &Formula, step: Value<'_>| {
            let rate = lr / correction(beta1, step);
            if !adapts {
                f.set(1, rate);
                return;
            }
            let power = power(beta2, step);
            let rest = 1.0 - power;
            let length = most - step * power * 2.0 / rest;
            // 1 once the length is above 5, 0 before.
            let used = (length - 5.0).sign().max(0.0);
            let unused = 1.0 - used;
            let length = length.max(5.0);
            let rectified = (length - 4.0) * (length - 2.0) / length * (most / ((most - 4.0) * (most - 2.0)));
            f.set(1, rate * ((rectified * rest).sqrt() * used + unused));
            // The variance is not above this, and the root of it plus that divides: by 1 where it is not used.
            f.set(2, used / unused);
            f.set(3, used * eps + unused);
        };
        const NUMBERS: usize = 4;
        each_counted(e, &lists, a.tensor(radam::step), if adapts { 3 } else { 1 }, numbers, |f| {
            let g = descent(f, a.flag(radam::maximize), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled { 1.0 - lr * decay } else { 1.0 });
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let mut step = m * m.number(NUMBERS);
            if adapts {
                let root = v.min(v.number(NUMBERS + 1)).sqrt();
                step = step / (root + root.number(NUMBERS + 2));
            }
            f.set(P, p - step);
        })
    }),
);

pub static ROWS: &[&Op] = &[&ADAM, &ADAMAX, &NADAM, &RADAM];
