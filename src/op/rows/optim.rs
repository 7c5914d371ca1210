//! Steps of optimisers over lists of tensors, in place and outside the gradient graph. Written as element-wise
//! rows, so that each parameter is one fused loop; rates and corrections are numbers, never part of a plan.
//!
//! Reached from the standard library, which owns the state and skips parameters without a gradient.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::program::ReduceKind;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, ReduceType};
use crate::op::rows::arith::{ADD, COPY, DIV, MUL, POW};
use crate::op::rows::blend::CLAMP;
use crate::op::rows::power::MAXIMUM;
use crate::op::rows::reduce::SUM;
use crate::op::rows::unary::{ABS, SIGN, SQRT};
use crate::op::tensor::Tensor;

const PARAMS: Param = Param::new("params", Kind::Tensors);
const GRADS: Param = Param::new("grads", Kind::Tensors);
const LR: Param = Param::new("lr", Kind::Float);
const EPS: Param = Param::opt("eps", Kind::Float, Default::Float(1e-8));
const WEIGHT_DECAY: Param = Param::opt("weight_decay", Kind::Float, Default::Float(0.0));
const MAXIMIZE: Param = Param::opt("maximize", Kind::Bool, Default::Bool(false));

const fn number(name: &'static str, default: f64) -> Param {
    Param::opt(name, Kind::Float, Default::Float(default))
}

const fn flag(name: &'static str) -> Param {
    Param::opt(name, Kind::Bool, Default::Bool(false))
}

/// A list of state; empty where the optimiser keeps none.
const fn state(name: &'static str) -> Param {
    Param::opt(name, Kind::Tensors, Default::None)
}

fn float(x: f64) -> Scalar {
    Scalar::Float(x)
}

/// Every list that is not empty has a tensor for each parameter, of its shape.
fn check(a: &Args, lists: std::ops::Range<usize>, op_params: &[Param]) -> Result<usize> {
    let params = a.tensor_list(0);
    for at in lists {
        let list = a.tensor_list(at);
        let name = op_params[at].name;
        if list.is_empty() && at > 1 {
            continue;
        }
        if list.len() != params.len() {
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
    }
    Ok(params.len())
}

/// The `i`-th tensor of a list of state that the settings ask for.
fn kept<'a>(a: &'a Args, at: usize, i: usize, op_params: &[Param]) -> Result<&'a Tensor> {
    match a.tensor_list(at).get(i) {
        Some(tensor) => Ok(tensor),
        None => fail!(MISSING_ARGUMENT, "`{}` is missing", op_params[at].name),
    }
}

fn write(e: &mut dyn Emit, to: &Tensor, value: &Tensor) -> Result<()> {
    e.apply_inplace(&COPY, args![to, value])?;
    Ok(())
}

fn add_into(e: &mut dyn Emit, to: &Tensor, value: &Tensor) -> Result<()> {
    e.apply_inplace(&ADD, args![to, value])?;
    Ok(())
}

/// `to += factor * value`.
fn add_scaled(e: &mut dyn Emit, to: &Tensor, value: &Tensor, factor: f64) -> Result<()> {
    let scaled = e.mul(value, float(factor))?;
    add_into(e, to, &scaled)
}

/// `x + factor * y`.
fn plus(e: &mut dyn Emit, x: &Tensor, y: &Tensor, factor: f64) -> Result<Tensor> {
    let scaled = e.mul(y, float(factor))?;
    e.add(x, &scaled)
}

/// The gradient that is descended: turned over when maximising, with weight decay.
fn descent(e: &mut dyn Emit, p: &Tensor, g: &Tensor, maximize: bool, decay: f64) -> Result<Tensor> {
    let g = if maximize { e.neg(g)? } else { g.clone() };
    if decay == 0.0 { Ok(g) } else { plus(e, &g, p, decay) }
}

/// `old += (1 - beta) * (new - old)`; gives the old handle, which reads the new values.
fn average(e: &mut dyn Emit, old: &Tensor, new: &Tensor, beta: f64) -> Result<()> {
    let d = e.sub(new, old)?;
    add_scaled(e, old, &d, 1.0 - beta)
}

/// `old = beta * old + (1 - beta) * g²`.
fn average_square(e: &mut dyn Emit, old: &Tensor, g: &Tensor, beta: f64) -> Result<()> {
    let square = e.mul(g, g)?;
    let kept = e.mul(old, float(beta))?;
    let new = plus(e, &kept, &square, 1.0 - beta)?;
    write(e, old, &new)
}

/// `p += factor * m / d`.
fn step_over(e: &mut dyn Emit, p: &Tensor, m: &Tensor, d: &Tensor, factor: f64) -> Result<()> {
    let scaled = e.mul(m, float(factor))?;
    let step = e.call(&DIV, args![&scaled, d])?;
    add_into(e, p, &step)
}

/// `sqrt(v) / scale + eps`.
fn root(e: &mut dyn Emit, v: &Tensor, scale: f64, eps: f64) -> Result<Tensor> {
    let mut root = e.call(&SQRT, args![v])?;
    if scale != 1.0 {
        root = e.div(&root, float(scale))?;
    }
    e.add(&root, float(eps))
}

const fn step(name: &'static str, params: &'static [Param], summary: &'static str, lower: Lower) -> Op {
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
    state("momenta"),
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
        let n = check(a, 1..3, SGD_PARAMS)?;
        let (lr, momentum, dampening) = (a.float(3), a.float(4), a.float(5));
        for i in 0..n {
            let (p, g) = (&a.tensor_list(0)[i], &a.tensor_list(1)[i]);
            let mut d = descent(e, p, g, a.flag(8), a.float(6))?;
            if momentum != 0.0 {
                let m = kept(a, 2, i, SGD_PARAMS)?;
                let new = if a.flag(9) {
                    d.clone()
                } else {
                    let old = e.mul(m, float(momentum))?;
                    plus(e, &old, &d, 1.0 - dampening)?
                };
                write(e, m, &new)?;
                d = if a.flag(7) { plus(e, &d, &new, momentum)? } else { new };
            }
            add_scaled(e, p, &d, -lr)?;
        }
        Ok(Vec::new())
    }),
);

const ADAM_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    Param::new("exp_avgs", Kind::Tensors),
    Param::new("exp_avg_sqs", Kind::Tensors),
    state("max_exp_avg_sqs"),
    Param::new("step", Kind::Float),
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
        let n = check(a, 1..5, ADAM_PARAMS)?;
        let (step, lr, beta1, beta2, eps) = (a.float(5), a.float(6), a.float(7), a.float(8), a.float(9));
        let (decay, decoupled) = (a.float(10), a.flag(12));
        let correction1 = 1.0 - beta1.powf(step);
        let correction2 = (1.0 - beta2.powf(step)).sqrt();
        for i in 0..n {
            let (p, g) = (&a.tensor_list(0)[i], &a.tensor_list(1)[i]);
            let (m, v) = (kept(a, 2, i, ADAM_PARAMS)?, kept(a, 3, i, ADAM_PARAMS)?);
            let g = descent(e, p, g, a.flag(13), if decoupled { 0.0 } else { decay })?;
            if decoupled && decay != 0.0 {
                e.apply_inplace(&MUL, args![p, float(1.0 - lr * decay)])?;
            }
            average(e, m, &g, beta1)?;
            average_square(e, v, &g, beta2)?;
            let mut spread = v.clone();
            if a.flag(11) {
                let most = kept(a, 4, i, ADAM_PARAMS)?;
                e.apply_inplace(&MAXIMUM, args![most, v])?;
                spread = most.clone();
            }
            let d = root(e, &spread, correction2, eps)?;
            step_over(e, p, m, &d, -lr / correction1)?;
        }
        Ok(Vec::new())
    }),
);

const RMSPROP_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    Param::new("square_avgs", Kind::Tensors),
    state("grad_avgs"),
    state("momenta"),
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
        let n = check(a, 1..5, RMSPROP_PARAMS)?;
        let (lr, alpha, eps, momentum) = (a.float(5), a.float(6), a.float(7), a.float(9));
        for i in 0..n {
            let (p, g) = (&a.tensor_list(0)[i], &a.tensor_list(1)[i]);
            let v = kept(a, 2, i, RMSPROP_PARAMS)?;
            let g = descent(e, p, g, a.flag(11), a.float(8))?;
            average_square(e, v, &g, alpha)?;
            let mut spread = v.clone();
            if a.flag(10) {
                let mean = kept(a, 3, i, RMSPROP_PARAMS)?;
                average(e, mean, &g, alpha)?;
                let square = e.mul(mean, mean)?;
                spread = e.sub(v, &square)?;
            }
            let d = root(e, &spread, 1.0, eps)?;
            if momentum > 0.0 {
                let m = kept(a, 4, i, RMSPROP_PARAMS)?;
                let old = e.mul(m, float(momentum))?;
                let step = e.call(&DIV, args![&g, &d])?;
                let new = e.add(&old, &step)?;
                write(e, m, &new)?;
                add_scaled(e, p, m, -lr)?;
            } else {
                step_over(e, p, &g, &d, -lr)?;
            }
        }
        Ok(Vec::new())
    }),
);

const ADAGRAD_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    Param::new("sums", Kind::Tensors),
    Param::new("step", Kind::Float),
    LR,
    number("lr_decay", 0.0),
    number("eps", 1e-10),
    WEIGHT_DECAY,
    MAXIMIZE,
];

/// `step` counts from 1.
static ADAGRAD: Op = step(
    "_adagrad_step",
    ADAGRAD_PARAMS,
    "A step of Adagrad.",
    Lower::Steps(|e, a| {
        let n = check(a, 1..3, ADAGRAD_PARAMS)?;
        let lr = a.float(4) / (1.0 + (a.float(3) - 1.0) * a.float(5));
        for i in 0..n {
            let (p, g) = (&a.tensor_list(0)[i], &a.tensor_list(1)[i]);
            let sum = kept(a, 2, i, ADAGRAD_PARAMS)?;
            let g = descent(e, p, g, a.flag(8), a.float(7))?;
            let square = e.mul(&g, &g)?;
            add_into(e, sum, &square)?;
            let d = root(e, sum, 1.0, a.float(6))?;
            step_over(e, p, &g, &d, -lr)?;
        }
        Ok(Vec::new())
    }),
);

const LION_PARAMS: &[Param] = &[
    PARAMS,
    GRADS,
    Param::new("exp_avgs", Kind::Tensors),
    LR,
    number("beta1", 0.9),
    number("beta2", 0.99),
    WEIGHT_DECAY,
    MAXIMIZE,
];

/// Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023).
static LION: Op = step(
    "_lion_step",
    LION_PARAMS,
    "A step of Lion.",
    Lower::Steps(|e, a| {
        let n = check(a, 1..3, LION_PARAMS)?;
        let (lr, beta1, beta2) = (a.float(3), a.float(4), a.float(5));
        for i in 0..n {
            let (p, g) = (&a.tensor_list(0)[i], &a.tensor_list(1)[i]);
            let m = kept(a, 2, i, LION_PARAMS)?;
            let g = descent(e, p, g, a.flag(7), 0.0)?;
            let old = e.mul(m, float(beta1))?;
            let direction = plus(e, &old, &g, 1.0 - beta1)?;
            let direction = e.call(&SIGN, args![&direction])?;
            let shrunk = e.mul(p, float(1.0 - lr * a.float(6)))?;
            let new = plus(e, &shrunk, &direction, -lr)?;
            write(e, p, &new)?;
            average(e, m, &g, beta2)?;
        }
        Ok(Vec::new())
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
        let size = e.call(&ABS, args![&g])?;
        let own = match p {
            f64::INFINITY => e.call(&LARGEST, args![&size])?,
            2.0 => {
                let square = e.mul(&g, &g)?;
                e.call(&SUM, args![&square])?
            }
            1.0 => e.call(&SUM, args![&size])?,
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
        for g in grads {
            let factor = e.cast(&factor, g.dtype())?;
            e.apply_inplace(&MUL, args![g, &factor])?;
        }
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
        for g in a.tensor_list(0) {
            let held = e.call(&CLAMP, args![g, float(-value), float(value)])?;
            write(e, g, &held)?;
        }
        Ok(Vec::new())
    }),
);

pub static ROWS: &[&Op] = &[&SGD, &ADAM, &RMSPROP, &ADAGRAD, &LION, &LARGEST, &CLIP_NORM, &CLIP_VALUE];
