//! Normalization over trailing dims, groups of channels and batches, with running statistics.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::norm;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{Expr, compute, compute_all};
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::arith::{ADD, COPY, MUL};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::tensor::Tensor;
use crate::signature;

/// What statistics are kept in.
fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

fn mean_over<'c>(x: Expr<'c>, dims: &Ints, n: f64) -> Expr<'c> {
    x.call(&SUM, args![dims.clone(), true]) * (1.0 / n)
}

/// The gradients of a norm written as rows, for gradients of gradients: `x` normalized over `dims`, `weight` of a
/// shape that broadcasts. Gives those of x, weight and bias, the last two not yet summed.
fn composed(
    e: &mut dyn Emit,
    [g, x]: [&Tensor; 2],
    weight: Option<&Tensor>,
    dims: &Ints,
    eps: f64,
    centered: bool,
) -> Result<[Tensor; 3]> {
    let shape = x.shape();
    let n: f64 = dims.iter().map(|&dim| shape[dim as usize] as f64).product();
    compute_all(e, |c| {
        let (g, x) = (c.of(g), c.of(x));
        let x = if centered { x - mean_over(x, dims, n) } else { x };
        let rstd = (mean_over(x * x, dims, n) + eps).rsqrt();
        let y = x * rstd;
        let scaled = weight.map_or(g, |weight| g * weight);
        let mut dx = scaled - y * mean_over(scaled * y, dims, n);
        if centered {
            dx = dx - mean_over(scaled, dims, n);
        }
        [dx * rstd, g * y, g]
    })
}

/// Runs a gradient kernel: outputs for x, and for those of weight and bias that are there.
fn gradients(e: &mut dyn Emit, v: &Backward<'_>, call: KernelCall) -> Result<Vec<Option<Tensor>>> {
    let x = v.meta(layer_kernel::input);
    let mut call = call.output(&x.shape, x.dtype);
    let there = |slot: usize| v.inputs.get(slot).is_some_and(Option::is_some);
    // The kernel gives the bias's gradient after the weight's, so both are made when the bias's is wanted.
    let (weight, bias) = (there(1) || there(2), there(2));
    let shape = |slot: usize| v.inputs.get(slot).cloned().flatten();
    if let Some(meta) = shape(1).or_else(|| shape(2)) {
        call = call.output(&meta.shape, meta.dtype);
        if bias {
            call = call.output(&meta.shape, meta.dtype);
        }
    }
    let mut made = e.kernel(call)?.into_iter().map(Some);
    let dx = made.next().flatten();
    let dw = if weight { made.next().flatten() } else { None };
    let db = if bias { made.next().flatten() } else { None };
    Ok(vec![dx, dw.filter(|_| there(1)), db])
}

/// `weight` and `bias`, if any, and whether they are there.
fn affine(call: KernelCall, a: &Args) -> KernelCall {
    call.inputs(a.opt_tensor(layer_kernel::weight)).inputs(a.opt_tensor(layer_kernel::bias))
}

signature!(layer_kernel(input: Tensor, weight: Tensor = None, bias: Tensor = None, n: Int, eps: Float = 1e-5));

/// Arguments: input, weight, bias, number of trailing dims, eps. Results: y, mean and 1/std of each row.
static LAYER: Op = Op {
    name: "layer_norm",
    params: layer_kernel::PARAMS,
    summary: "Layer norm over a number of trailing dims.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let shape = x.shape();
        let rows = Shape::from_slice(&shape[..shape.len() - a.int(layer_kernel::n) as usize]);
        let call = affine(KernelCall::new("layer_norm", &norm::LAYER_NORM).input(x), a);
        let call = call
            .int(a.int(layer_kernel::n))
            .float(a.float(layer_kernel::eps))
            .flag(!a.is_none(layer_kernel::weight))
            .flag(!a.is_none(layer_kernel::bias));
        let stats = wide(x.dtype());
        Ok(call.output(&shape, x.dtype()).output(&rows, stats).output(&rows, stats))
    }),
    saves: &[Save::INPUT, Save::In(layer_kernel::weight), Save::Out(1), Save::Out(2)],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        let (x, weight, n) = (v.input(), v.opt_input(layer_kernel::weight), v.args.int(layer_kernel::n));
        if e.grad_enabled() {
            let ndim = x.ndim() as i64;
            let dims: Ints = (ndim - n..ndim).collect();
            return Ok(composed(e, [g, x], weight, &dims, v.args.float(layer_kernel::eps), true)?.map(Some).to_vec());
        }
        let call = KernelCall::new("layer_norm_grad", &norm::LAYER_NORM_GRAD);
        let call = call.input(g).input(x).input(v.output(1)).input(v.output(2)).inputs(weight);
        gradients(e, v, call.int(n).flag(weight.is_some()))
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Arguments: input, weight, bias, groups, eps. Results: y, mean and 1/std of each group.
pub static GROUP: Op = Op {
    name: "group_norm",
    params: layer_kernel::PARAMS,
    summary: "Group norm.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let (shape, stats) = (x.shape(), wide(x.dtype()));
        let rows = [shape[0], a.int(layer_kernel::n) as usize];
        let call = affine(KernelCall::new("group_norm", &norm::GROUP_NORM).input(x), a);
        let call = call
            .int(a.int(layer_kernel::n))
            .float(a.float(layer_kernel::eps))
            .flag(!a.is_none(layer_kernel::weight))
            .flag(!a.is_none(layer_kernel::bias));
        Ok(call.output(&shape, x.dtype()).output(&rows, stats).output(&rows, stats))
    }),
    saves: &[Save::INPUT, Save::In(layer_kernel::weight), Save::Out(1), Save::Out(2)],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        let (x, weight, groups) = (v.input(), v.opt_input(layer_kernel::weight), v.args.int(layer_kernel::n));
        if e.grad_enabled() {
            return grouped_twice(e, v, g);
        }
        let call = KernelCall::new("group_norm_grad", &norm::GROUP_NORM_GRAD);
        let call = call.input(g).input(x).input(v.output(1)).input(v.output(2)).inputs(weight);
        gradients(e, v, call.int(groups).flag(weight.is_some()))
    }),
    call: CallForm::Internal,
    piecewise_linear: true,
    ..Op::BASE
};

/// The group norm's gradients as rows: over `[N, groups, C / groups, d..]`.
fn grouped_twice(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Vec<Option<Tensor>>> {
    let (x, groups) = (v.input(), v.args.int(layer_kernel::n) as usize);
    let shape = x.shape();
    let per = shape[1] / groups;
    let mut split = Shape::from_slice(&[shape[0], groups, per]);
    split.push(shape[2..].iter().product());
    let fold = |e: &mut dyn Emit, t: &Tensor| e.call(&RESHAPE, args![t, split.as_slice()]);
    let (wide_g, wide_x) = (fold(e, g)?, fold(e, x)?);
    let weight = v
        .opt_input(layer_kernel::weight)
        .map(|w| e.call(&RESHAPE, args![w, [1, groups, per, 1].as_slice()]))
        .transpose()?;
    let dims = Ints::from_slice(&[2, 3]);
    let [dx, dw, db] = composed(e, [&wide_g, &wide_x], weight.as_ref(), &dims, v.args.float(layer_kernel::eps), true)?;
    let dx = e.call(&RESHAPE, args![&dx, shape.as_slice()])?;
    let over = |e: &mut dyn Emit, t: &Tensor| -> Result<Tensor> {
        let sum = e.call(&SUM, args![t, Ints::from_slice(&[0, 3])])?;
        e.call(&RESHAPE, args![&sum, [shape[1]].as_slice()])
    };
    Ok(vec![Some(dx), Some(over(e, &dw)?), Some(over(e, &db)?)])
}

signature!(rms(input: Tensor, weight: Tensor = None, n: Int, eps: Float = None));

/// Arguments: input, weight, number of trailing dims, eps or none. Results: y, 1/rms of each row.
static RMS: Op = Op {
    name: "rms_norm",
    params: rms::PARAMS,
    summary: "RMS norm over a number of trailing dims.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let shape = x.shape();
        let rows = Shape::from_slice(&shape[..shape.len() - a.int(rms::n) as usize]);
        let call = KernelCall::new("rms_norm", &norm::RMS_NORM).input(x).inputs(a.opt_tensor(rms::weight));
        let eps = a.opt_float(rms::eps).map_or(Attr::None, Attr::Float);
        let call = call.int(a.int(rms::n)).attr(eps).flag(!a.is_none(rms::weight));
        Ok(call.output(&shape, x.dtype()).output(&rows, wide(x.dtype())))
    }),
    saves: &[Save::INPUT, Save::In(rms::weight), Save::Out(1)],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        let (x, weight, n) = (v.input(), v.opt_input(rms::weight), v.args.int(rms::n));
        if e.grad_enabled() {
            let ndim = x.ndim() as i64;
            let dims: Ints = (ndim - n..ndim).collect();
            let own = if x.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
            let eps = v.args.opt_float(rms::eps).unwrap_or(own);
            let [dx, dw, _] = composed(e, [g, x], weight, &dims, eps, false)?;
            return Ok(vec![Some(dx), Some(dw)]);
        }
        let call = KernelCall::new("rms_norm_grad", &norm::RMS_NORM_GRAD);
        let call = call.input(g).input(x).input(v.output(1)).inputs(weight);
        gradients(e, v, call.int(n).flag(weight.is_some()))
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(batch_kernel(input: Tensor, weight: Tensor = None, bias: Tensor = None, eps: Float = 1e-5));

/// Arguments: input, weight, bias, eps. Results: y, mean and biased variance of each channel.
static BATCH: Op = Op {
    name: "batch_norm",
    params: batch_kernel::PARAMS,
    summary: "Batch norm with the batch's own statistics.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let (shape, stats) = (x.shape(), wide(x.dtype()));
        let call = affine(KernelCall::new("batch_norm", &norm::BATCH_NORM_TRAIN).input(x), a);
        let call = call
            .float(a.float(batch_kernel::eps))
            .flag(!a.is_none(batch_kernel::weight))
            .flag(!a.is_none(batch_kernel::bias));
        Ok(call.output(&shape, x.dtype()).output(&shape[1..2], stats).output(&shape[1..2], stats))
    }),
    saves: &[Save::INPUT, Save::In(batch_kernel::weight), Save::Out(1), Save::Out(2)],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        let (x, weight, eps) = (v.input(), v.opt_input(batch_kernel::weight), v.args.float(batch_kernel::eps));
        if e.grad_enabled() {
            let weight = weight.map(|w| per_channel(e, w, x.ndim())).transpose()?;
            let dims: Ints = (0..x.ndim() as i64).filter(|&dim| dim != 1).collect();
            let [dx, dw, db] = composed(e, [g, x], weight.as_ref(), &dims, eps, true)?;
            let (dw, db) = (e.call(&SUM, args![&dw, dims.clone()])?, e.call(&SUM, args![&db, dims])?);
            return Ok(vec![Some(dx), Some(dw), Some(db)]);
        }
        let call = KernelCall::new("batch_norm_grad", &norm::BATCH_NORM_GRAD);
        let call = call.input(g).input(x).input(v.output(1)).input(v.output(2)).inputs(weight);
        gradients(e, v, call.float(eps).flag(true).flag(weight.is_some()))
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `[C]` as `[C, 1, ..]`, which broadcasts over `[N, C, ..]`.
fn per_channel(e: &mut dyn Emit, w: &Tensor, ndim: usize) -> Result<Tensor> {
    let mut shape = Shape::from_elem(1, ndim.saturating_sub(1).max(1));
    shape[0] = w.numel();
    e.call(&RESHAPE, args![w, shape.as_slice()])
}

/// `weight` and `bias` have the shape that is wanted and a floating dtype.
fn check_affine(a: &Args, at: [usize; 2], shape: &[usize]) -> Result<()> {
    for (at, name) in at.into_iter().zip(["weight", "bias"]) {
        check_one(a, at, name, shape)?;
    }
    Ok(())
}

fn check_one(a: &Args, at: usize, name: &str, shape: &[usize]) -> Result<()> {
    let Some(tensor) = a.opt_tensor(at) else { return Ok(()) };
    if tensor.shape().as_slice() != shape {
        fail!(SHAPE, "`{name}` must have shape {shape:?}, not {:?}", tensor.shape().as_slice());
    }
    float_only(tensor, name)
}

/// Trailing dims that `normalized_shape` names.
fn trailing(a: &Args) -> Result<Shape> {
    let (x, expected) = (a.input().shape(), a.ints(layer_norm::normalized_shape).unwrap_or_default());
    if expected.is_empty() {
        fail!(VALUE, "`normalized_shape` must name at least one dimension");
    }
    let fits = x.len() >= expected.len()
        && x[x.len() - expected.len()..].iter().zip(&expected).all(|(&size, &expected)| size as i64 == expected);
    if !fits {
        fail!(SHAPE, "`input` of shape {:?} does not end in {:?}", x.as_slice(), expected.as_slice());
    }
    Ok(x[x.len() - expected.len()..].into())
}

signature!(layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor = None, bias: Tensor = None, eps: Float = 1e-5,
));

pub static LAYER_NORM: Op = Op {
    name: "layer_norm",
    params: layer_norm::PARAMS,
    summary: "Takes the mean away and divides by the standard deviation, over trailing dimensions.",
    details: "y = (x - mean) / sqrt(var + eps) · weight + bias with the biased variance; `weight` and `bias` have the shape \
`normalized_shape`, in which `input` ends.",
    examples: &[
        ex("layer_norm(tensor([1.0, 3.0]), [2])", "tensor([-1.0000,  1.0000])"),
        ex("layer_norm(ones([2, 3]), [2])", "E0201"),
        ex("layer_norm(tensor([1, 3]), [2])", "E0202"),
        ex("layer_norm(ones([2]), [])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        float_only(a.input(), "input")?;
        let shape = trailing(a)?;
        check_affine(a, [layer_norm::weight, layer_norm::bias], &shape)?;
        let (w, b) = (a.opt_tensor(layer_norm::weight), a.opt_tensor(layer_norm::bias));
        let mut made = e.apply(&LAYER, args![a.input(), w, b, shape.len(), a.float(layer_norm::eps)])?;
        made.truncate(1);
        Ok(made)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(rms_norm(input: Tensor, normalized_shape: Ints, weight: Tensor = None, eps: Float = None));

pub static RMS_NORM: Op = Op {
    name: "rms_norm",
    params: rms_norm::PARAMS,
    summary: "Divides by the root of the mean square, over trailing dimensions.",
    details: "y = x / sqrt(mean(x²) + eps) · weight; without `eps` the dtype's machine epsilon.",
    examples: &[
        ex("rms_norm(tensor([3.0, 3.0]), [2])", "tensor([1., 1.])"),
        ex("rms_norm(ones([2, 3]), [2])", "E0201"),
        ex("rms_norm(tensor([1, 3]), [2])", "E0202"),
        ex("rms_norm(ones([2]), [])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        float_only(a.input(), "input")?;
        let shape = trailing(a)?;
        check_one(a, 2, "weight", &shape)?;
        let mut made = e.apply(
            &RMS,
            args![a.input(), a.opt_tensor(rms_norm::weight), shape.len(), a.attr(rms_norm::eps).clone()],
        )?;
        made.truncate(1);
        Ok(made)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(group_norm(input: Tensor, num_groups: Int, weight: Tensor = None, bias: Tensor = None, eps: Float = 1e-5));

pub static GROUP_NORM: Op = Op {
    name: "group_norm",
    params: group_norm::PARAMS,
    summary: "Normalizes every sample over groups of channels.",
    details: "`input` is [N, C, ..], `weight` and `bias` [C]; C splits into `num_groups`.",
    examples: &[
        ex("group_norm(tensor([[1.0, 3.0]]), 1)", "tensor([[-1.0000,  1.0000]])"),
        ex("group_norm(ones([1, 3]), 2)", "E0201"),
        ex("group_norm(tensor([[1, 3]]), 1)", "E0202"),
        ex("group_norm(ones([1, 2]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, groups) = (a.input(), a.int(group_norm::num_groups));
        float_only(x, "input")?;
        let shape = x.shape();
        if shape.len() < 2 {
            fail!(SHAPE, "`input` must have at least 2 dimensions; it has shape {:?}", shape.as_slice());
        }
        if groups < 1 {
            fail!(VALUE, "`num_groups` must be positive, not {groups}");
        }
        if shape[1] == 0 || shape[1] as i64 % groups != 0 {
            fail!(SHAPE, "{} channels do not split into {groups} groups", shape[1]);
        }
        check_affine(a, [group_norm::weight, group_norm::bias], &shape[1..2])?;
        if shape[2..].contains(&0) {
            fail!(SHAPE, "only the batch of `input` may be empty; it has shape {:?}", shape.as_slice());
        }
        if shape.iter().product::<usize>() as i64 == groups {
            fail!(VALUE, "more than 1 value for each group is expected; `input` has shape {:?}", shape.as_slice());
        }
        let mut made = e.apply(
            &GROUP,
            args![
                x,
                a.opt_tensor(group_norm::weight),
                a.opt_tensor(group_norm::bias),
                groups,
                a.float(group_norm::eps)
            ],
        )?;
        made.truncate(1);
        Ok(made)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// `running = (1 - momentum) running + momentum stat`, in place and outside the gradient graph.
pub fn update(e: &mut dyn Emit, running: &Tensor, stat: &Tensor, momentum: f64) -> Result<()> {
    let stat = e.detach(stat);
    e.apply(&MOVE_AVERAGE, args![running, &stat, momentum]).map(drop)
}

signature!(move_average(running: Tensor, stat: Tensor, momentum: Float));

/// Held as a step of an optimizer is: a bad batch that is skipped leaves the statistics whole.
static MOVE_AVERAGE: Op = Op {
    name: "_move_average",
    params: move_average::PARAMS,
    summary: "Moves running statistics towards those of a batch.",
    lower: Lower::Steps(|e, a| {
        let (running, momentum) = (a.tensor(move_average::running), a.float(move_average::momentum));
        let old = e.mul(running, Scalar::Float(1.0 - momentum))?;
        let new = e.mul(a.tensor(move_average::stat), Scalar::Float(momentum))?;
        let sum = e.add(&old, &new)?;
        e.apply_inplace(&COPY, args![running, &sum])?;
        Ok(Vec::new())
    }),
    grad: Grad::Stop("running statistics are not differentiated"),
    call: CallForm::Function,
    guarded: true,
    ..Op::BASE
};

signature!(count_batch(count: Tensor, batch: Tensor));

/// `count += 1`, held where the running statistics of the same batch are.
static COUNT_BATCH: Op = Op {
    name: "_count_batch",
    params: count_batch::PARAMS,
    summary: "Counts a batch.",
    lower: Lower::Steps(|e, a| {
        e.apply_inplace(&ADD, args![a.tensor(count_batch::count), Scalar::Int(1)])?;
        Ok(Vec::new())
    }),
    grad: Grad::Stop("running statistics are not differentiated"),
    call: CallForm::Function,
    guarded: true,
    ..Op::BASE
};

/// The unbiased variance of `n` elements from the biased one.
pub fn unbiased(e: &mut dyn Emit, var: &Tensor, n: usize) -> Result<Tensor> {
    let var = e.detach(var);
    e.mul(&var, Scalar::Float(n as f64 / (n as f64 - 1.0)))
}

/// Elements of a channel.
fn per_channel_count(shape: &[usize]) -> usize {
    shape.iter().enumerate().filter(|(dim, _)| *dim != 1).map(|(_, &size)| size).product()
}

/// With given statistics: element-wise, so that it fuses with what follows.
fn evaluated(e: &mut dyn Emit, a: &Args, eps: f64) -> Result<Tensor> {
    let x = a.input();
    let (ndim, wide) = (x.ndim(), wide(x.dtype()));
    let stat = |e: &mut dyn Emit, t: &Tensor| -> Result<Tensor> {
        let t = e.cast(t, wide)?;
        per_channel(e, &t, ndim)
    };
    let (mean, var) = (e.detach(a.tensor(batch_norm::running_mean)), e.detach(a.tensor(batch_norm::running_var)));
    let (mean, var) = (stat(e, &mean)?, stat(e, &var)?);
    let weight = a.opt_tensor(batch_norm::weight).map(|w| stat(e, w)).transpose()?;
    let bias = a.opt_tensor(batch_norm::bias).map(|b| stat(e, b)).transpose()?;
    compute(e, |c| {
        // The channels' factors first: what is of their shape would part the pass over all elements.
        let mut scale = (c.of(&var) + eps).rsqrt();
        if let Some(weight) = &weight {
            scale = scale * weight;
        }
        let mut y = (c.of(x).cast(wide) - &mean) * scale;
        if let Some(bias) = &bias {
            y = y + bias;
        }
        y.cast(x.dtype())
    })
}

/// What batch and instance norm check alike: arguments `input, running_mean, running_var, weight, bias`.
fn check_channels(a: &Args) -> Result<()> {
    let x = a.input();
    float_only(x, "input")?;
    let shape = x.shape();
    if shape.len() < 2 {
        fail!(SHAPE, "`input` must have at least 2 dimensions; it has shape {:?}", shape.as_slice());
    }
    for (at, name) in [
        (batch_norm::running_mean, "running_mean"),
        (batch_norm::running_var, "running_var"),
        (batch_norm::weight, "weight"),
        (batch_norm::bias, "bias"),
    ] {
        check_one(a, at, name, &shape[1..2])?;
    }
    Ok(())
}

signature!(batch_norm(
    input: Tensor, running_mean: Tensor = None, running_var: Tensor = None, weight: Tensor = None,
    bias: Tensor = None, training: Bool = false, momentum: Float = 0.1, eps: Float = 1e-5,
));

pub static BATCH_NORM: Op = Op {
    name: "batch_norm",
    params: batch_norm::PARAMS,
    summary: "Normalizes every channel over the batch, or with running statistics.",
    details: "`input` is [N, C, ..], the others [C]. In training the statistics are the batch's, and the running ones move \
towards them in place: running = (1 - momentum) running + momentum new, with the unbiased variance. `()` for both \
running statistics keeps none.",
    examples: &[
        ex("batch_norm(tensor([[1.0], [3.0]]), (), (), #{training: true})", "tensor([[-1.0000],\n        [ 1.0000]])"),
        ex("batch_norm(tensor([[4.0]]), tensor([2.0]), tensor([1.0]), #{eps: 0.0})", "tensor([[2.]])"),
        ex("batch_norm(zeros([0, 3]), (), (), #{training: true}).shape", "[0, 3]"),
        ex("batch_norm(ones([2, 3]), zeros([2]), ones([2]))", "E0201"),
        ex("batch_norm(tensor([[1], [3]]), (), (), #{training: true})", "E0202"),
        ex("batch_norm(ones([1, 3]), (), (), #{training: true})", "E0206"),
        ex("batch_norm(ones([2, 3]), (), ())", "E0205"),
    ],
    lower: Lower::Compose(|e, a| {
        if a.input().shape().as_slice() == [0] {
            return Ok(vec![a.input().clone()]);
        }
        check_channels(a)?;
        let (x, eps) = (a.input(), a.float(batch_norm::eps));
        if !a.flag(batch_norm::training) {
            if a.is_none(batch_norm::running_mean) || a.is_none(batch_norm::running_var) {
                fail!(MISSING_ARGUMENT, "`running_mean` and `running_var` are needed outside training");
            }
            return Ok(vec![evaluated(e, a, eps)?]);
        }
        let n = per_channel_count(&x.shape());
        if n == 1 {
            fail!(
                VALUE,
                "training needs more than 1 value for each channel; `input` has shape {:?}",
                x.shape().as_slice()
            );
        }
        if n == 0 {
            return Ok(vec![nothing(e, a)?]);
        }
        let mut made =
            e.apply(&BATCH, args![x, a.opt_tensor(batch_norm::weight), a.opt_tensor(batch_norm::bias), eps])?;
        if let Some(running) = a.opt_tensor(batch_norm::running_mean) {
            update(e, running, &made[1], a.float(batch_norm::momentum))?;
        }
        if let Some(running) = a.opt_tensor(batch_norm::running_var) {
            let var = unbiased(e, &made[2], n)?;
            update(e, running, &var, a.float(batch_norm::momentum))?;
        }
        made.truncate(1);
        Ok(made)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// The batch norm of nothing: running statistics stay, the gradients of weight and bias are 0.
fn nothing(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let x = a.input();
    let mut own = Shape::from_elem(1, x.ndim());
    own[1] = x.shape()[1];
    let mut y = x.clone();
    for (at, op) in [(batch_norm::weight, &MUL), (batch_norm::bias, &ADD)] {
        if let Some(affine) = a.opt_tensor(at) {
            let affine = e.call(&RESHAPE, args![affine, own.as_slice()])?;
            y = e.call(op, args![&y, &affine])?;
        }
    }
    e.cast(&y, x.dtype())
}

/// A channel's number for every sample: `[C]` as `[N C]`.
fn each_sample(e: &mut dyn Emit, w: &Tensor, n: usize) -> Result<Tensor> {
    let c = w.numel();
    let wide = e.call(&EXPAND, args![w, [n, c].as_slice()])?;
    e.call(&RESHAPE, args![&wide, [n * c].as_slice()])
}

signature!(instance_norm(
    input: Tensor, running_mean: Tensor = None, running_var: Tensor = None, weight: Tensor = None,
    bias: Tensor = None, use_input_stats: Bool = true, momentum: Float = 0.1, eps: Float = 1e-5,
));

pub static INSTANCE_NORM: Op = Op {
    name: "instance_norm",
    params: instance_norm::PARAMS,
    summary: "Normalizes every channel of every sample.",
    details: "`input` is [N, C, d..], the others [C]. Running statistics move towards the samples' mean statistics in place.",
    examples: &[
        ex("instance_norm(tensor([[[1.0, 3.0]]]))", "tensor([[[-1.0000,  1.0000]]])"),
        ex("instance_norm(ones([1, 2, 3]), #{weight: ones([3])})", "E0201"),
        ex("instance_norm(tensor([[[1, 3]]]))", "E0202"),
        ex("instance_norm(ones([1, 2, 1]))", "E0206"),
        ex("instance_norm(ones([1, 2, 3]), #{use_input_stats: false})", "E0205"),
    ],
    lower: Lower::Compose(|e, a| {
        check_channels(a)?;
        let (x, eps) = (a.input(), a.float(instance_norm::eps));
        let shape = x.shape();
        if !a.flag(instance_norm::use_input_stats) {
            if a.is_none(instance_norm::running_mean) || a.is_none(instance_norm::running_var) {
                fail!(MISSING_ARGUMENT, "`running_mean` and `running_var` are needed without `use_input_stats`");
            }
            return Ok(vec![evaluated(e, a, eps)?]);
        }
        let (n, c, span) = (shape[0], shape[1], shape[2..].iter().product::<usize>());
        if span == 1 {
            fail!(VALUE, "more than 1 element for each channel is expected; `input` has shape {:?}", shape.as_slice());
        }
        let folded = e.call(&RESHAPE, args![x, [1, n * c, span].as_slice()])?;
        let weight = a.opt_tensor(instance_norm::weight).map(|w| each_sample(e, w, n)).transpose()?;
        let bias = a.opt_tensor(instance_norm::bias).map(|b| each_sample(e, b, n)).transpose()?;
        let made = e.apply(&BATCH, args![&folded, weight, bias, eps])?;
        for (at, stat) in [(instance_norm::running_mean, 1), (instance_norm::running_var, 2)] {
            let Some(running) = a.opt_tensor(at) else { continue };
            let stat =
                if at == instance_norm::running_var { unbiased(e, &made[stat], span)? } else { e.detach(&made[stat]) };
            let stat = e.call(&RESHAPE, args![&stat, [n, c].as_slice()])?;
            let mean = compute(e, |calc| {
                let mean = mean_over(calc.of(&stat), &Ints::from_slice(&[0]), n as f64);
                mean.call(&RESHAPE, args![[c].as_slice()])
            })?;
            update(e, running, &mean, a.float(instance_norm::momentum))?;
        }
        Ok(vec![e.call(&RESHAPE, args![&made[0], shape.as_slice()])?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &MOVE_AVERAGE,
    &COUNT_BATCH,
    &LAYER,
    &GROUP,
    &RMS,
    &BATCH,
    &LAYER_NORM,
    &RMS_NORM,
    &GROUP_NORM,
    &BATCH_NORM,
    &INSTANCE_NORM,
];
