//! Steps of Adagrad, Adadelta and RMSprop.

use crate::op::formula::{Formula, Value};
use crate::op::row::{Lower, Op};
use crate::op::rows::optim::step::{
    P, average, average_square, descent, each_and_count, each_counted, lists, root, step,
};
use crate::signature;

signature!(adagrad(
    params: Tensors, grads: Tensors, sum: Tensors = None, step: Tensor, lr: Float, lr_decay: Float = 0.0,
    eps: Float = 1e-10, weight_decay: Float = 0.0, maximize: Bool = false,
));

static ADAGRAD: Op = step(
    "_adagrad_step",
    adagrad::PARAMS,
    "A step of Adagrad.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 3, |_| true, adagrad::PARAMS)?;
        let (lr, lr_decay) = (a.float(adagrad::lr), a.float(adagrad::lr_decay));
        let numbers = |f: &Formula, step: Value<'_>| _ = f.set(1, -lr / ((step - 1.0) * lr_decay + 1.0));
        each_counted(e, &lists, a.tensor(adagrad::step), 1, numbers, |f| {
            let g = descent(f, a.flag(adagrad::maximize), a.float(adagrad::weight_decay));
            let sum = f.set(2, f.get(2) + g * g);
            f.set(P, f.get(P) + g * g.number(3) / root(sum, a.float(adagrad::eps)));
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
            let delta = (f.get(3) + eps).sqrt() / (v + eps).sqrt() * g;
            average_square(f, 3, delta, rho);
            f.set(P, f.get(P) + delta * -lr);
        })
    }),
);

signature!(rmsprop(
    params: Tensors, grads: Tensors, square_avg: Tensors = None, grad_avg: Tensors = None,
    momentum_buffer: Tensors = None, lr: Float, alpha: Float = 0.99, eps: Float = 1e-8, weight_decay: Float = 0.0,
    momentum: Float = 0.0, centered: Bool = false, maximize: Bool = false, step: Tensor,
));

static RMSPROP: Op = step(
    "_rmsprop_step",
    rmsprop::PARAMS,
    "A step of RMSprop.",
    Lower::Steps(|e, a| {
        let (lr, alpha, eps, momentum) =
            (a.float(rmsprop::lr), a.float(rmsprop::alpha), a.float(rmsprop::eps), a.float(rmsprop::momentum));
        let used = |at| at < 3 || at == 3 && a.flag(rmsprop::centered) || at == 4 && momentum > 0.0;
        let lists = lists(a, 5, used, rmsprop::PARAMS)?;
        each_and_count(e, &lists, a.tensor(rmsprop::step), |f| {
            let g = descent(f, a.flag(rmsprop::maximize), a.float(rmsprop::weight_decay));
            let v = average_square(f, 2, g, alpha);
            let variance = if a.flag(rmsprop::centered) {
                let mean = average(f, 3, g, alpha);
                v - mean * mean
            } else {
                v
            };
            let d = root(variance, eps);
            let p = f.get(P);
            let p = if momentum > 0.0 { p + f.set(4, f.get(4) * momentum + g / d) * -lr } else { p + g * -lr / d };
            f.set(P, p);
        })
    }),
);

pub static ROWS: &[&Op] = &[&ADAGRAD, &ADADELTA, &RMSPROP];
