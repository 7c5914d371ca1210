//! Steps of Adamax, Adadelta, NAdam and RAdam, as those of the other optimizers in `optimizers.rs`.

use crate::kernel::elementwise as math;
use crate::op::formula::{Formula, Value};
use crate::op::row::{Lower, Op};
use crate::op::rows::optim::optimizers::{
    P, add_scaled, average, average_square, correction, descent, each_and_count, each_counted, lists, root, shrunk,
    step, step_by,
};
use crate::signature;

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
        let numbers = |f: &mut Formula, step: Value| {
            let first = correction(f, beta1, step);
            let rate = f.before(&math::DIV, -lr, first);
            f.set(1, rate);
        };
        each_counted(e, &lists, a.tensor(adamax::step), 1, numbers, |f| {
            let g = descent(f, a.flag(adamax::maximize), a.float(adamax::weight_decay));
            let m = average(f, 2, g, beta1);
            let most = f.get(3);
            let most = f.with(&math::MUL, most, beta2);
            let size = f.of(&math::ABS, g);
            let size = f.with(&math::ADD, size, eps);
            let most = f.of_two(&math::MAXIMUM, most, size);
            f.set(3, most);
            let most = f.get(3);
            let p = f.get(P);
            step_by(f, p, m, most, 4);
        })
    }),
);

signature!(adadelta(
    params: Tensors, grads: Tensors, square_avg: Tensors = None, acc_delta: Tensors = None, lr: Float,
    rho: Float = 0.9, eps: Float = 1e-6, weight_decay: Float = 0.0, maximize: Bool = false, step: Tensor,
));

/// Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012).
static ADADELTA: Op = step(
    "_adadelta_step",
    adadelta::PARAMS,
    "A step of Adadelta.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, adadelta::PARAMS)?;
        let (lr, rho, eps) = (a.float(adadelta::lr), a.float(adadelta::rho), a.float(adadelta::eps));
        each_and_count(e, &lists, a.tensor(adadelta::step), |f| {
            let g = descent(f, a.flag(adadelta::maximize), a.float(adadelta::weight_decay));
            let v = average_square(f, 2, g, rho);
            let v = f.with(&math::ADD, v, eps);
            let v = f.of(&math::SQRT, v);
            let sum = f.get(3);
            let size = f.with(&math::ADD, sum, eps);
            let size = f.of(&math::SQRT, size);
            let delta = f.of_two(&math::DIV, size, v);
            let delta = f.of_two(&math::MUL, delta, g);
            average_square(f, 3, delta, rho);
            add_scaled(f, P, delta, -lr);
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
        let factor = |f: &mut Formula, step: Value| {
            let power = f.with(&math::MUL, step, momentum_decay);
            let power = f.before(&math::POW, 0.96, power);
            let rest = f.with(&math::MUL, power, -0.5);
            let rest = f.with(&math::ADD, rest, 1.0);
            f.with(&math::MUL, rest, beta1)
        };
        let numbers = |f: &mut Formula, step: Value| {
            let mu = factor(f, step);
            f.set(1, mu);
            let after = f.with(&math::ADD, step, 1.0);
            let next = factor(f, after);
            f.set(2, next);
            let rest = f.before(&math::SUB, 1.0, mu);
            let rate = f.with(&math::MUL, rest, lr);
            f.set(3, rate);
            let rate = f.with(&math::MUL, next, lr);
            f.set(4, rate);
            let second = correction(f, beta2, step);
            f.set(5, second);
        };
        const NUMBERS: usize = 5;
        each_counted(e, &lists, a.tensor(nadam::step), 5, numbers, |f| {
            let g = descent(f, a.flag(nadam::maximize), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled { 1.0 - lr * decay } else { 1.0 });
            let old = f.get(4);
            let mu = f.number_of(NUMBERS, old);
            let product = f.of_two(&math::MUL, old, mu);
            f.set(4, product);
            let product = f.get(4);
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let second = f.number_of(NUMBERS + 4, v);
            let v = f.of_two(&math::DIV, v, second);
            let d = root(f, v, eps);
            let rest = f.before(&math::SUB, 1.0, product);
            let rate = f.number_of(NUMBERS + 2, g);
            let part = f.of_two(&math::MUL, g, rate);
            let part = f.of_two(&math::DIV, part, rest);
            let part = f.of_two(&math::DIV, part, d);
            let p = f.of_two(&math::SUB, p, part);
            let next = f.number_of(NUMBERS + 1, product);
            let ahead = f.of_two(&math::MUL, product, next);
            let rest = f.before(&math::SUB, 1.0, ahead);
            let rate = f.number_of(NUMBERS + 3, m);
            let part = f.of_two(&math::MUL, m, rate);
            let part = f.of_two(&math::DIV, part, rest);
            let part = f.of_two(&math::DIV, part, d);
            let p = f.of_two(&math::SUB, p, part);
            f.set(P, p);
        })
    }),
);

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
        let numbers = |f: &mut Formula, step: Value| {
            let first = correction(f, beta1, step);
            let rate = f.before(&math::DIV, lr, first);
            if !adapts {
                return f.set(1, rate);
            }
            let power = f.before(&math::POW, beta2, step);
            let rest = f.before(&math::SUB, 1.0, power);
            let less = f.of_two(&math::MUL, step, power);
            let less = f.with(&math::MUL, less, 2.0);
            let less = f.of_two(&math::DIV, less, rest);
            let length = f.before(&math::SUB, most, less);
            // 1 once the length is above 5, 0 before.
            let beyond = f.with(&math::SUB, length, 5.0);
            let beyond = f.of(&math::SIGN, beyond);
            let used = f.with(&math::MAXIMUM, beyond, 0.0);
            let unused = f.before(&math::SUB, 1.0, used);
            let length = f.with(&math::MAXIMUM, length, 5.0);
            let four = f.with(&math::SUB, length, 4.0);
            let two = f.with(&math::SUB, length, 2.0);
            let even = f.of_two(&math::MUL, four, two);
            let even = f.of_two(&math::DIV, even, length);
            let even = f.with(&math::MUL, even, most / ((most - 4.0) * (most - 2.0)));
            let even = f.of_two(&math::MUL, even, rest);
            let even = f.of(&math::SQRT, even);
            let even = f.of_two(&math::MUL, even, used);
            let even = f.of_two(&math::ADD, even, unused);
            let rate = f.of_two(&math::MUL, rate, even);
            f.set(1, rate);
            // The variance is not above this, and the root of it plus that divides: by 1 where it is not used.
            let bound = f.of_two(&math::DIV, used, unused);
            f.set(2, bound);
            let added = f.with(&math::MUL, used, eps);
            let added = f.of_two(&math::ADD, added, unused);
            f.set(3, added);
        };
        const NUMBERS: usize = 4;
        each_counted(e, &lists, a.tensor(radam::step), if adapts { 3 } else { 1 }, numbers, |f| {
            let g = descent(f, a.flag(radam::maximize), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled { 1.0 - lr * decay } else { 1.0 });
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let rate = f.number_of(NUMBERS, m);
            let mut step = f.of_two(&math::MUL, m, rate);
            if adapts {
                let bound = f.number_of(NUMBERS + 1, v);
                let v = f.of_two(&math::MINIMUM, v, bound);
                let root = f.of(&math::SQRT, v);
                let added = f.number_of(NUMBERS + 2, root);
                let d = f.of_two(&math::ADD, root, added);
                step = f.of_two(&math::DIV, step, d);
            }
            let p = f.of_two(&math::SUB, p, step);
            f.set(P, p);
        })
    }),
);

pub static ROWS: &[&Op] = &[&ADAMAX, &ADADELTA, &NADAM, &RADAM];
