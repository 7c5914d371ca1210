//! The norms with their statistics as further results: PyTorch's `native_layer_norm`, `native_group_norm`,
//! `native_batch_norm`. Made of element-wise rows and sums, so that all three results have gradients.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::base::layout::Shape;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::nn::loss::widened;
use crate::op::rows::nn::norm::{unbiased, update};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::unary::RSQRT;
use crate::op::rows::reduction::moments::MEAN;
use crate::op::rows::shape::view::{RESHAPE, STRAIGHT};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// Mean and biased variance over dims, kept.
fn statistics(e: &mut dyn Emit, x: &Tensor, dims: &Ints) -> Result<[Tensor; 2]> {
    let mean = e.call(&MEAN, args![x, dims.clone(), true])?;
    let apart = e.sub(x, &mean)?;
    let square = e.mul(&apart, &apart)?;
    let var = e.call(&MEAN, args![&square, dims.clone(), true])?;
    Ok([mean, var])
}

/// (x - mean) rstd weight + bias, the last two in a shape that broadcasts.
fn normalized(
    e: &mut dyn Emit,
    x: &Tensor,
    [mean, rstd]: [&Tensor; 2],
    affine: [Option<&Tensor>; 2],
    shape: &[usize],
) -> Result<Tensor> {
    let y = e.sub(x, mean)?;
    let mut y = e.mul(&y, rstd)?;
    if let Some(weight) = affine[0] {
        let weight = e.call(&RESHAPE, args![weight, shape])?;
        y = e.mul(&y, &weight)?;
    }
    if let Some(bias) = affine[1] {
        let bias = e.call(&RESHAPE, args![bias, shape])?;
        y = e.add(&y, &bias)?;
    }
    Ok(y)
}

fn rstd_of(e: &mut dyn Emit, var: &Tensor, eps: f64) -> Result<Tensor> {
    let held = e.add(var, Scalar::Float(eps))?;
    e.call(&RSQRT, args![&held])
}

/// Weight and bias have `n` elements.
fn check_affine(a: &Args, at: [usize; 2], shape: &[usize]) -> Result<()> {
    for (at, name) in at.into_iter().zip(["weight", "bias"]) {
        if let Some(tensor) = a.opt_tensor(at).filter(|tensor| tensor.shape()[..] != *shape) {
            fail!(SHAPE, "`{name}` must have shape {shape:?}, not {:?}", tensor.shape().as_slice());
        }
    }
    Ok(())
}

fn all_cast(e: &mut dyn Emit, list: Vec<Tensor>, like: &Tensor) -> Result<Vec<Tensor>> {
    list.iter().map(|tensor| e.cast(tensor, like.dtype())).collect()
}

signature!(native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor = None, bias: Tensor = None, eps: Float,
));

pub static NATIVE_LAYER_NORM: Op = Op {
    name: "native_layer_norm",
    params: native_layer_norm::PARAMS,
    summary: "`layer_norm`, with the mean and the inverse standard deviation of each row: an array of three.",
    examples: &[
        ex("native_layer_norm(tensor([1.0, 3.0]), [2], (), (), 0.0)[1]", "tensor([2.])"),
        ex("native_layer_norm(ones([2, 3]), [2], (), (), 0.0)", "E0201"),
        ex("native_layer_norm(tensor([1, 3]), [2], (), (), 0.0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, expected) = (a.input(), a.ints(native_layer_norm::normalized_shape).unwrap_or_default());
        float_only(x, "input")?;
        let shape = x.shape();
        let lead = shape.len().checked_sub(expected.len());
        let fits =
            |lead: &usize| shape[*lead..].iter().zip(&expected).all(|(&size, &expected)| size as i64 == expected);
        let Some(lead) = lead.filter(fits).filter(|_| !expected.is_empty()) else {
            fail!(SHAPE, "`input` of shape {:?} does not end in {:?}", shape.as_slice(), expected.as_slice())
        };
        check_affine(a, [native_layer_norm::weight, native_layer_norm::bias], &shape[lead..])?;
        let wide = e.cast(x, widened(x.dtype()))?;
        let dims: Ints = (lead as i64..shape.len() as i64).collect();
        let [mean, var] = statistics(e, &wide, &dims)?;
        let rstd = rstd_of(e, &var, a.float(native_layer_norm::eps))?;
        let y = normalized(
            e,
            &wide,
            [&mean, &rstd],
            [a.opt_tensor(native_layer_norm::weight), a.opt_tensor(native_layer_norm::bias)],
            &shape[lead..],
        )?;
        all_cast(e, vec![y, mean, rstd], x)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(native_group_norm(
    input: Tensor, weight: Tensor = None, bias: Tensor = None, N: Int, C: Int, HxW: Int, group: Int, eps: Float,
));

pub static NATIVE_GROUP_NORM: Op = Op {
    name: "native_group_norm",
    params: native_group_norm::PARAMS,
    summary: "`group_norm`, with the mean and the inverse standard deviation of each group: an array of three.",
    details: "`N`, `C` and `HxW` repeat the sizes of `input`: samples, channels, and what is left.",
    examples: &[
        ex("native_group_norm(tensor([[1.0, 3.0]]), (), (), 1, 2, 1, 1, 0.0)[1]", "tensor([[2.]])"),
        ex("native_group_norm(ones([1, 2]), (), (), 1, 3, 1, 1, 0.0)", "E0201"),
        ex("native_group_norm(ones([1, 2]), (), (), 1, 2, 1, 0, 0.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, groups) = (a.input(), a.int(native_group_norm::group));
        float_only(x, "input")?;
        let shape = x.shape();
        let [n, c, rest] = [3, 4, 5].map(|at| a.int(at));
        let own = [0, 1].map(|at| shape.get(at).copied().unwrap_or(0) as i64);
        if own != [n, c] || shape.iter().skip(2).product::<usize>() as i64 != rest {
            fail!(SHAPE, "`input` has shape {:?}, not {n} samples of {c} channels of {rest}", shape.as_slice());
        }
        if groups < 1 || c % groups != 0 {
            fail!(VALUE, "{c} channels do not fall into {groups} groups");
        }
        check_affine(a, [native_group_norm::weight, native_group_norm::bias], &[c as usize])?;
        // All gradients are one function of all operands in PyTorch, that of `bias` too.
        let x = &e.call(&STRAIGHT, args![x, a.opt_tensor(native_group_norm::bias)])?;
        let wide = e.cast(x, widened(x.dtype()))?;
        let flat = e.call(&RESHAPE, args![&wide, [n, groups, c / groups * rest].as_slice()])?;
        let [mean, var] = statistics(e, &flat, &Ints::from_slice(&[2]))?;
        let rstd = rstd_of(e, &var, a.float(native_group_norm::eps))?;
        let y = normalized(e, &flat, [&mean, &rstd], [None, None], &[])?;
        let y = e.call(&RESHAPE, args![&y, shape.as_slice()])?;
        let mut channels = Shape::from_elem(1, shape.len() - 1);
        channels[0] = c as usize;
        let mut y = y;
        if let Some(weight) = a.opt_tensor(native_group_norm::weight) {
            let weight = e.call(&RESHAPE, args![weight, channels.as_slice()])?;
            y = e.mul(&y, &weight)?;
        }
        if let Some(bias) = a.opt_tensor(native_group_norm::bias) {
            let bias = e.call(&RESHAPE, args![bias, channels.as_slice()])?;
            y = e.add(&y, &bias)?;
        }
        let flat = [n, groups];
        let (mean, rstd) = (e.call(&RESHAPE, args![&mean, &flat[..]])?, e.call(&RESHAPE, args![&rstd, &flat[..]])?);
        all_cast(e, vec![y, mean, rstd], x)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(native_batch_norm(
    input: Tensor, weight: Tensor = None, bias: Tensor = None, running_mean: Tensor = None,
    running_var: Tensor = None, training: Bool, momentum: Float, eps: Float,
));

pub static NATIVE_BATCH_NORM: Op = Op {
    name: "native_batch_norm",
    params: native_batch_norm::PARAMS,
    summary: "`batch_norm`, with the mean and the inverse standard deviation of each channel: an array of three.",
    details: "Outside training the last two are empty.",
    examples: &[
        ex("native_batch_norm(tensor([[1.0], [3.0]]), (), (), (), (), true, 0.1, 0.0)[1]", "tensor([2.])"),
        ex("native_batch_norm(ones([2]), (), (), (), (), true, 0.1, 0.0)", "E0201"),
        ex("native_batch_norm(ones([2, 1]), (), (), (), (), false, 0.1, 0.0)", "E0205"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        float_only(x, "input")?;
        let shape = x.shape();
        if shape.len() < 2 {
            fail!(SHAPE, "`input` must have at least 2 dimensions; it has shape {:?}", shape.as_slice());
        }
        check_affine(a, [native_batch_norm::weight, native_batch_norm::bias], &shape[1..2])?;
        check_affine(a, [native_batch_norm::running_mean, native_batch_norm::running_var], &shape[1..2])?;
        let mut channels = Shape::from_elem(1, shape.len() - 1);
        channels[0] = shape[1];
        let wide = e.cast(x, widened(x.dtype()))?;
        let affine = [a.opt_tensor(native_batch_norm::weight), a.opt_tensor(native_batch_norm::bias)];
        if !a.flag(native_batch_norm::training) {
            let (Arg::Tensor(mean), Arg::Tensor(var)) =
                (a.get(native_batch_norm::running_mean), a.get(native_batch_norm::running_var))
            else {
                fail!(MISSING_ARGUMENT, "`running_mean` and `running_var` are needed outside training")
            };
            let (mean, var) = (e.detach(mean), e.detach(var));
            let (mean, var) = (e.cast(&mean, wide.dtype())?, e.cast(&var, wide.dtype())?);
            let rstd = rstd_of(e, &var, a.float(native_batch_norm::eps))?;
            let stats = [
                e.call(&RESHAPE, args![&mean, channels.as_slice()])?,
                e.call(&RESHAPE, args![&rstd, channels.as_slice()])?,
            ];
            let y = normalized(e, &wide, [&stats[0], &stats[1]], affine, &channels)?;
            let none = Meta { shape: Shape::from_slice(&[0]), dtype: x.dtype(), device: x.device() };
            return Ok(vec![e.cast(&y, x.dtype())?, e.zeros_like(&none)?, e.zeros_like(&none)?]);
        }
        let dims: Ints = (0..shape.len() as i64).filter(|&dim| dim != 1).collect();
        let [mean, var] = statistics(e, &wide, &dims)?;
        let rstd = rstd_of(e, &var, a.float(native_batch_norm::eps))?;
        let y = normalized(e, &wide, [&mean, &rstd], affine, &channels)?;
        let flat = |e: &mut dyn Emit, x: &Tensor| e.call(&RESHAPE, args![x, [shape[1]].as_slice()]);
        let (mean, rstd) = (flat(e, &mean)?, flat(e, &rstd)?);
        if let Some(running) = a.opt_tensor(native_batch_norm::running_mean) {
            let mean = e.detach(&mean);
            update(e, running, &mean, a.float(native_batch_norm::momentum))?;
        }
        if let Some(running) = a.opt_tensor(native_batch_norm::running_var) {
            let var = flat(e, &var)?;
            let var = e.detach(&var);
            let n = shape.iter().product::<usize>() / shape[1].max(1);
            let var = unbiased(e, &var, n)?;
            update(e, running, &var, a.float(native_batch_norm::momentum))?;
        }
        all_cast(e, vec![y, mean, rstd], x)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&NATIVE_LAYER_NORM, &NATIVE_GROUP_NORM, &NATIVE_BATCH_NORM];
