//! Steps of optimisers over lists of tensors, in place and outside the gradient graph. Written as formulas of one
//! element, so that all parameters are one node and one launch; rates and corrections are numbers, never part of a plan.
//!
//! Reached from the standard library, which owns the state and skips parameters without a gradient.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::cpu::elementwise as math;
use crate::kernel::program::ReduceKind;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::formula::{Formula, Value};
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, ReduceType};
use crate::op::rows::arith::{DIV, POW};
use crate::op::rows::blend::CLAMP;
use crate::op::rows::power::MAXIMUM;
use crate::op::rows::reduce::SUM;
use crate::op::rows::unary::{ABS, SQRT};
use crate::op::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

pub(super) const PARAMS: Param = Param::new("params", Kind::Tensors);
pub(super) const GRADS: Param = Param::new("grads", Kind::Tensors);
pub(super) const STEP: Param = Param::new("step", Kind::Float);
pub(super) const LR: Param = Param::new("lr", Kind::Float);
const EPS: Param = Param::opt("eps", Kind::Float, Default::Float(1e-8));
pub(super) const WEIGHT_DECAY: Param = Param::opt("weight_decay", Kind::Float, Default::Float(0.0));
pub(super) const MAXIMIZE: Param = Param::opt("maximize", Kind::Bool, Default::Bool(false));

pub(super) const fn number(name: &'static str, default: f64) -> Param {
    Param::opt(name, Kind::Float, Default::Float(default))
}

const fn flag(name: &'static str) -> Param {
    Param::opt(name, Kind::Bool, Default::Bool(false))
}

/// A list of state; empty where the optimiser keeps none.
pub(super) const fn state(name: &'static str) -> Param {
    Param::opt(name, Kind::Tensors, Default::None)
}

fn float(x: f64) -> Scalar {
    Scalar::Float(x)
}

/// The lists before argument `end`; each that is used has a tensor for each parameter, of its shape.
pub(super) fn lists<'a>(
    a: &'a Args,
    end: usize,
    used: impl Fn(usize) -> bool,
    op_params: &[Param],
) -> Result<SmallVec<[&'a [Tensor]; 6]>> {
    let params = a.tensor_list(0);
    let mut lists: SmallVec<[&[Tensor]; 6]> = smallvec![params];
    for (at, param) in op_params.iter().enumerate().take(end).skip(1) {
        let list = a.tensor_list(at);
        let name = param.name;
        if list.is_empty() && !params.is_empty() && used(at) && at > 1 {
            fail!(MISSING_ARGUMENT, "`{name}` is missing");
        }
        if list.len() != params.len() && !(list.is_empty() && at > 1) {
            fail!(VALUE, "`{name}` has {} tensors for {} parameters", list.len(), params.len());
        }
        for (p, t) in params.iter().zip(list) {
            if p.shape() != t.shape() {
                fail!(
                    SHAPE,
                    "`{name}` has shape {:?} for a parameter of shape {:?}",
                    t.shape().as_slice(),
                    p.shape().as_slice()
                );
            }
        }
        lists.push(list);
    }
    Ok(lists)
}

/// Runs a formula over lists of tensors.
pub(super) fn each(
    e: &mut dyn Emit,
    lists: &[&[Tensor]],
    mut formula: impl FnMut(&mut Formula),
) -> Result<Vec<Tensor>> {
    e.each(lists, &mut formula)?;
    Ok(Vec::new())
}

/// Operands of every formula.
pub(super) const P: usize = 0;
const G: usize = 1;

/// `x + factor * y`.
pub(super) fn plus(f: &mut Formula, x: Value, y: Value, factor: f64) -> Value {
    let scaled = f.with(&math::MUL, y, factor);
    f.of_two(&math::ADD, x, scaled)
}

/// Adds `factor * value` to an operand.
pub(super) fn add_scaled(f: &mut Formula, to: usize, value: Value, factor: f64) {
    let old = f.get(to);
    let new = plus(f, old, value, factor);
    f.set(to, new);
}

/// The gradient that is descended: turned over when maximising, with weight decay.
pub(super) fn descent(f: &mut Formula, maximize: bool, decay: f64) -> Value {
    let mut g = f.get(G);
    if maximize {
        g = f.of(&math::NEG, g);
    }
    if decay == 0.0 {
        return g;
    }
    let p = f.get(P);
    plus(f, g, p, decay)
}

/// `p *= factor`: weight decay apart from the gradient. Gives the parameter.
fn shrunk(f: &mut Formula, factor: f64) -> Value {
    let p = f.get(P);
    if factor == 1.0 { p } else { f.with(&math::MUL, p, factor) }
}

/// `old += (1 - beta) * (new - old)`.
fn average(f: &mut Formula, at: usize, new: Value, beta: f64) -> Value {
    let old = f.get(at);
    let change = f.of_two(&math::SUB, new, old);
    let value = plus(f, old, change, 1.0 - beta);
    f.set(at, value);
    f.get(at)
}

/// `old = beta * old + (1 - beta) * g²`.
fn average_square(f: &mut Formula, at: usize, g: Value, beta: f64) -> Value {
    let square = f.of_two(&math::MUL, g, g);
    let old = f.get(at);
    let kept = f.with(&math::MUL, old, beta);
    let value = plus(f, kept, square, 1.0 - beta);
    f.set(at, value);
    f.get(at)
}

/// `p += factor * m / d`, given p.
fn step_over(f: &mut Formula, p: Value, m: Value, d: Value, factor: f64) {
    let scaled = f.with(&math::MUL, m, factor);
    let step = f.of_two(&math::DIV, scaled, d);
    let new = f.of_two(&math::ADD, p, step);
    f.set(P, new);
}

/// `sqrt(v) / scale + eps`.
fn root(f: &mut Formula, v: Value, scale: f64, eps: f64) -> Value {
    let mut root = f.of(&math::SQRT, v);
    if scale != 1.0 {
        root = f.with(&math::DIV, root, scale);
    }
    f.with(&math::ADD, root, eps)
}

pub(super) const fn step(name: &'static str, params: &'static [Param], summary: &'static str, lower: Lower) -> Op {
    Op {
        name,
        params,
        summary,
        lower,
        grad: Grad::Stop("optimiser steps are not differentiated"),
        call: CallForm::Function,
        guarded: true,
        ..Op::BASE
    }
}

const SGD_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("momentum_buffer"),
    LR,
    number("momentum", 0.0),
    number("dampening", 0.0),
    WEIGHT_DECAY,
    flag("nesterov"),
    MAXIMIZE,
    flag("first"),
];

/// `first`: the momenta hold nothing yet and become the gradients.
static SGD: Op = step(
    "_sgd_step",
    SGD_PARAMS,
    "A step of stochastic gradient descent.",
    Lower::Steps(|e, a| {
        let (lr, momentum, dampening) = (a.float(3), a.float(4), a.float(5));
        let lists = lists(a, 3, |at| at < 2 || momentum != 0.0, SGD_PARAMS)?;
        each(e, &lists, |f| {
            let mut d = descent(f, a.flag(8), a.float(6));
            if momentum != 0.0 {
                if !a.flag(9) {
                    let old = f.get(2);
                    let old = f.with(&math::MUL, old, momentum);
                    let new = plus(f, old, d, 1.0 - dampening);
                    f.set(2, new);
                } else {
                    f.set(2, d);
                }
                let new = f.get(2);
                d = if a.flag(7) { plus(f, d, new, momentum) } else { new };
            }
            add_scaled(f, P, d, -lr);
        })
    }),
);

const ADAM_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("exp_avg"),
    state("exp_avg_sq"),
    state("max_exp_avg_sq"),
    STEP,
    LR,
    number("beta1", 0.9),
    number("beta2", 0.999),
    EPS,
    WEIGHT_DECAY,
    flag("amsgrad"),
    flag("decoupled"),
    MAXIMIZE,
];

/// `step` counts from 1 and is the same for all parameters of the call; `decoupled` is AdamW's weight decay.
static ADAM: Op = step(
    "_adam_step",
    ADAM_PARAMS,
    "A step of Adam, AMSGrad or AdamW.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 5, |at| at < 4 || a.flag(11), ADAM_PARAMS)?;
        let (step, lr, beta1, beta2, eps) = (a.float(5), a.float(6), a.float(7), a.float(8), a.float(9));
        let (decay, decoupled) = (a.float(10), a.flag(12));
        let correction1 = 1.0 - beta1.powf(step);
        let correction2 = (1.0 - beta2.powf(step)).sqrt();
        each(e, &lists, |f| {
            let g = descent(f, a.flag(13), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled && decay != 0.0 { 1.0 - lr * decay } else { 1.0 });
            let m = average(f, 2, g, beta1);
            let mut spread = average_square(f, 3, g, beta2);
            if a.flag(11) {
                let most = f.get(4);
                let most = f.of_two(&math::MAXIMUM, most, spread);
                f.set(4, most);
                spread = f.get(4);
            }
            let d = root(f, spread, correction2, eps);
            step_over(f, p, m, d, -lr / correction1);
        })
    }),
);

const RMSPROP_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("square_avg"),
    state("grad_avg"),
    state("momentum_buffer"),
    LR,
    number("alpha", 0.99),
    EPS,
    WEIGHT_DECAY,
    number("momentum", 0.0),
    flag("centered"),
    MAXIMIZE,
];

static RMSPROP: Op = step(
    "_rmsprop_step",
    RMSPROP_PARAMS,
    "A step of RMSprop.",
    Lower::Steps(|e, a| {
        let (lr, alpha, eps, momentum) = (a.float(5), a.float(6), a.float(7), a.float(9));
        let used = |at| at < 3 || at == 3 && a.flag(10) || at == 4 && momentum > 0.0;
        let lists = lists(a, 5, used, RMSPROP_PARAMS)?;
        each(e, &lists, |f| {
            let g = descent(f, a.flag(11), a.float(8));
            let v = average_square(f, 2, g, alpha);
            let mut spread = v;
            if a.flag(10) {
                let mean = average(f, 3, g, alpha);
                let square = f.of_two(&math::MUL, mean, mean);
                spread = f.of_two(&math::SUB, v, square);
            }
            let d = root(f, spread, 1.0, eps);
            let p = f.get(P);
            if momentum > 0.0 {
                let old = f.get(4);
                let old = f.with(&math::MUL, old, momentum);
                let step = f.of_two(&math::DIV, g, d);
                let new = f.of_two(&math::ADD, old, step);
                f.set(4, new);
                let m = f.get(4);
                add_scaled(f, P, m, -lr);
            } else {
                step_over(f, p, g, d, -lr);
            }
        })
    }),
);

const ADAGRAD_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("sum"),
    STEP,
    LR,
    number("lr_decay", 0.0),
    number("eps", 1e-10),
    WEIGHT_DECAY,
    MAXIMIZE,
    number("initial_accumulator_value", 0.0),
];

/// `step` counts from 1; at the first the sums begin with `initial_accumulator_value`.
static ADAGRAD: Op = step(
    "_adagrad_step",
    ADAGRAD_PARAMS,
    "A step of Adagrad.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 3, |_| true, ADAGRAD_PARAMS)?;
        let lr = a.float(4) / (1.0 + (a.float(3) - 1.0) * a.float(5));
        let begins = if a.float(3) == 1.0 { a.float(9) } else { 0.0 };
        each(e, &lists, |f| {
            let g = descent(f, a.flag(8), a.float(7));
            let square = f.of_two(&math::MUL, g, g);
            let mut sum = f.get(2);
            if begins != 0.0 {
                sum = f.with(&math::ADD, sum, begins);
            }
            let sum = f.of_two(&math::ADD, sum, square);
            f.set(2, sum);
            let sum = f.get(2);
            let d = root(f, sum, 1.0, a.float(6));
            let p = f.get(P);
            step_over(f, p, g, d, -lr);
        })
    }),
);

const LION_PARAMS: &[Param] =
    &[PARAMS, GRADS, state("exp_avg"), LR, number("beta1", 0.9), number("beta2", 0.99), WEIGHT_DECAY, MAXIMIZE];

/// Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023).
static LION: Op = step(
    "_lion_step",
    LION_PARAMS,
    "A step of Lion.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 3, |_| true, LION_PARAMS)?;
        let (lr, beta1, beta2) = (a.float(3), a.float(4), a.float(5));
        each(e, &lists, |f| {
            let g = descent(f, a.flag(7), 0.0);
            let old = f.get(2);
            let old = f.with(&math::MUL, old, beta1);
            let direction = plus(f, old, g, 1.0 - beta1);
            let direction = f.of(&math::SIGN, direction);
            let p = f.get(P);
            let kept = f.with(&math::MUL, p, 1.0 - lr * a.float(6));
            let new = plus(f, kept, direction, -lr);
            f.set(P, new);
            average(f, 2, g, beta2);
        })
    }),
);

const ADAMAX_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("exp_avg"),
    state("exp_inf"),
    STEP,
    LR,
    number("beta1", 0.9),
    number("beta2", 0.999),
    EPS,
    WEIGHT_DECAY,
    MAXIMIZE,
];

/// Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2014), section 7.
static ADAMAX: Op = step(
    "_adamax_step",
    ADAMAX_PARAMS,
    "A step of Adamax.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, ADAMAX_PARAMS)?;
        let (step, lr, beta1, beta2, eps) = (a.float(4), a.float(5), a.float(6), a.float(7), a.float(8));
        each(e, &lists, |f| {
            let g = descent(f, a.flag(10), a.float(9));
            let m = average(f, 2, g, beta1);
            let most = f.get(3);
            let most = f.with(&math::MUL, most, beta2);
            let size = f.of(&math::ABS, g);
            let size = f.with(&math::ADD, size, eps);
            let most = f.of_two(&math::MAXIMUM, most, size);
            f.set(3, most);
            let most = f.get(3);
            let p = f.get(P);
            step_over(f, p, m, most, -lr / (1.0 - beta1.powf(step)));
        })
    }),
);

const ADADELTA_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("square_avg"),
    state("acc_delta"),
    LR,
    number("rho", 0.9),
    number("eps", 1e-6),
    WEIGHT_DECAY,
    MAXIMIZE,
];

/// Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012).
static ADADELTA: Op = step(
    "_adadelta_step",
    ADADELTA_PARAMS,
    "A step of Adadelta.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, ADADELTA_PARAMS)?;
        let (lr, rho, eps) = (a.float(4), a.float(5), a.float(6));
        each(e, &lists, |f| {
            let g = descent(f, a.flag(8), a.float(7));
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

const NADAM_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("exp_avg"),
    state("exp_avg_sq"),
    state("mu_product"),
    STEP,
    LR,
    number("beta1", 0.9),
    number("beta2", 0.999),
    EPS,
    WEIGHT_DECAY,
    number("momentum_decay", 4e-3),
    flag("decoupled_weight_decay"),
    MAXIMIZE,
];

/// `mu_product` is filled with the product of all factors so far. Source: Dozat, "Incorporating Nesterov Momentum into
/// Adam" (2016).
static NADAM: Op = step(
    "_nadam_step",
    NADAM_PARAMS,
    "A step of NAdam.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 5, |_| true, NADAM_PARAMS)?;
        let (step, lr, beta1, beta2, eps) = (a.float(5), a.float(6), a.float(7), a.float(8), a.float(9));
        let (decay, momentum_decay, decoupled) = (a.float(10), a.float(11), a.flag(12));
        let factor = |step: f64| beta1 * (1.0 - 0.5 * 0.96f64.powf(step * momentum_decay));
        let (mu, next) = (factor(step), factor(step + 1.0));
        each(e, &lists, |f| {
            let g = descent(f, a.flag(13), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled { 1.0 - lr * decay } else { 1.0 });
            let old = f.get(4);
            // Nothing was multiplied before the first step: there is 0.
            let product = f.with(if step == 1.0 { &math::ADD } else { &math::MUL }, old, mu);
            f.set(4, product);
            let product = f.get(4);
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let v = f.with(&math::DIV, v, 1.0 - beta2.powf(step));
            let d = root(f, v, 1.0, eps);
            let rest = f.before(&math::SUB, 1.0, product);
            let part = f.with(&math::MUL, g, lr * (1.0 - mu));
            let part = f.of_two(&math::DIV, part, rest);
            let part = f.of_two(&math::DIV, part, d);
            let p = f.of_two(&math::SUB, p, part);
            let ahead = f.with(&math::MUL, product, next);
            let rest = f.before(&math::SUB, 1.0, ahead);
            let part = f.with(&math::MUL, m, lr * next);
            let part = f.of_two(&math::DIV, part, rest);
            let part = f.of_two(&math::DIV, part, d);
            let p = f.of_two(&math::SUB, p, part);
            f.set(P, p);
        })
    }),
);

const RADAM_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    state("exp_avg"),
    state("exp_avg_sq"),
    STEP,
    LR,
    number("beta1", 0.9),
    number("beta2", 0.999),
    EPS,
    WEIGHT_DECAY,
    flag("decoupled_weight_decay"),
    MAXIMIZE,
];

/// Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond" (2019).
static RADAM: Op = step(
    "_radam_step",
    RADAM_PARAMS,
    "A step of RAdam.",
    Lower::Steps(|e, a| {
        let lists = lists(a, 4, |_| true, RADAM_PARAMS)?;
        let (step, lr, beta1, beta2, eps) = (a.float(4), a.float(5), a.float(6), a.float(7), a.float(8));
        let (decay, decoupled) = (a.float(9), a.flag(10));
        let beta = beta2.powf(step);
        let most = 2.0 / (1.0 - beta2) - 1.0;
        let length = most - 2.0 * step * beta / (1.0 - beta);
        each(e, &lists, |f| {
            let g = descent(f, a.flag(11), if decoupled { 0.0 } else { decay });
            let p = shrunk(f, if decoupled { 1.0 - lr * decay } else { 1.0 });
            let m = average(f, 2, g, beta1);
            let v = average_square(f, 3, g, beta2);
            let mut step = f.with(&math::MUL, m, lr / (1.0 - beta1.powf(step)));
            if length > 5.0 {
                let even = (length - 4.0) * (length - 2.0) * most / ((most - 4.0) * (most - 2.0) * length);
                step = f.with(&math::MUL, step, even.sqrt() * (1.0 - beta).sqrt());
                let d = root(f, v, 1.0, eps);
                step = f.of_two(&math::DIV, step, d);
            }
            let p = f.of_two(&math::SUB, p, step);
            f.set(P, p);
        })
    }),
);

/// The largest of everything; never differentiated.
static LARGEST: Op = Op {
    name: "_clip_grad_norm",
    params: &[PARAMS, Param::opt("dim", Kind::Dims, Default::None)],
    summary: "The largest element.",
    lower: Lower::Reduce { kind: ReduceKind::Max, dtype: ReduceType::Same },
    grad: Grad::Stop("optimiser steps are not differentiated"),
    call: CallForm::Internal,
    ..Op::BASE
};

/// The p-norm of all elements of all tensors, of no dimensions; f32 at least.
fn total_norm(e: &mut dyn Emit, grads: &[Tensor], p: f64) -> Result<Option<Tensor>> {
    let mut total: Option<Tensor> = None;
    for g in grads.iter().filter(|g| g.numel() > 0) {
        let wide = if g.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let g = e.cast(g, wide)?;
        let size = if p == 2.0 { e.mul(&g, &g)? } else { e.call(&ABS, args![&g])? };
        let own = match p {
            f64::INFINITY => e.call(&LARGEST, args![&size])?,
            1.0 | 2.0 => e.call(&SUM, args![&size])?,
            _ => {
                let power = e.call(&POW, args![&size, float(p)])?;
                e.call(&SUM, args![&power])?
            }
        };
        total = Some(match total {
            None => own,
            Some(total) if p == f64::INFINITY => e.call(&MAXIMUM, args![&total, &own])?,
            Some(total) => e.add(&total, &own)?,
        });
    }
    let Some(total) = total else { return Ok(None) };
    Ok(Some(match p {
        f64::INFINITY | 1.0 => total,
        2.0 => e.call(&SQRT, args![&total])?,
        _ => e.call(&POW, args![&total, float(1.0 / p)])?,
    }))
}

/// Scales the gradients so that their common norm is at most `max_norm`; gives the norm before.
static CLIP_NORM: Op = step(
    "_clip_grad_norm",
    &[GRADS, Param::new("max_norm", Kind::Float), number("norm_type", 2.0)],
    "Clips gradients by their common norm.",
    Lower::Steps(|e, a| {
        let (grads, p) = (a.tensor_list(0), a.float(2));
        if p <= 0.0 || p.is_nan() {
            fail!(VALUE, "`norm_type` must be positive, not {p}");
        }
        let Some(total) = total_norm(e, grads, p)? else {
            let (dtype, device) = (e.default_float(), e.default_device());
            return Ok(vec![e.source(crate::op::row::Source::Fill(float(0.0)), &[], dtype, device)?]);
        };
        let safe = e.add(&total, float(1e-6))?;
        let factor = e.rev(&DIV, float(a.float(1)), &safe)?;
        let factor = e.call(&CLAMP, args![&factor, (), float(1.0)])?;
        let factors = grads.iter().map(|g| e.cast(&factor, g.dtype())).collect::<Result<Vec<Tensor>>>()?;
        each(e, &[grads, &factors], |f| {
            let (g, factor) = (f.get(0), f.get(1));
            let scaled = f.of_two(&math::MUL, g, factor);
            f.set(0, scaled);
        })?;
        Ok(vec![total])
    }),
);

/// Holds every element of the gradients between -value and value.
static CLIP_VALUE: Op = step(
    "_clip_grad_value",
    &[GRADS, Param::new("clip_value", Kind::Float)],
    "Clips gradients element by element.",
    Lower::Steps(|e, a| {
        let value = a.float(1);
        each(e, &[a.tensor_list(0)], |f| {
            let g = f.get(0);
            let held = f.with_two(&math::CLAMP, g, [-value, value]);
            f.set(0, held);
        })
    }),
);

pub static ROWS: &[&Op] =
    &[&SGD, &ADAM, &RMSPROP, &ADAGRAD, &LION, &ADAMAX, &ADADELTA, &NADAM, &RADAM, &LARGEST, &CLIP_NORM, &CLIP_VALUE];
