//! Maxima over windows whose places are drawn: `fractional_max_pool2d` and `3d` (Graham, 2014).

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::indexing::gather::GATHER;
use crate::op::rows::nn::windows::{batched, float_only, tuple, unbatched};
use crate::op::rows::pointwise::compare::{EQ, WHERE};
use crate::op::rows::pointwise::unary::TRUNC;
use crate::op::rows::random::distributions::RAND;
use crate::op::rows::reduction::minmax::MAX;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SELECT, STRAIGHT};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(fractional_max_pool2d(
    input: Tensor, kernel_size: Ints, output_size: Ints = None, output_ratio: Floats = None,
    return_indices: Bool = false, _random_samples: Tensor = None,
));

const DETAILS: &str = "Gives `output_size` windows along each dimension, or `output_ratio` of the input's size; their distances are drawn, \
or follow from `_random_samples` [N, C, dims], numbers of [0, 1). With `return_indices` also the maxima's positions, in an array.";

/// Sizes of the output.
fn output(a: &Args, image: &[usize], kernel: &[i64]) -> Result<Ints> {
    let n = image.len();
    let sizes: Ints = match (a.ints(fractional_max_pool2d::output_size), a.attr(fractional_max_pool2d::output_ratio)) {
        (Some(_), Attr::Floats(_)) => fail!(VALUE, "`output_size` and `output_ratio` exclude each other"),
        (Some(_), _) => tuple(a, fractional_max_pool2d::output_size, n, "output_size", 1)?,
        (None, Attr::Floats(ratios)) => {
            if ratios.len() != n && ratios.len() != 1 {
                fail!(VALUE, "`output_ratio` has {} numbers for {n} dimensions", ratios.len());
            }
            let ratio = |i: usize| ratios[if ratios.len() == 1 { 0 } else { i }];
            if let Some(bad) = ratios.iter().find(|&&ratio| !(ratio > 0.0 && ratio < 1.0)) {
                fail!(VALUE, "a ratio lies between 0 and 1; {bad} does not");
            }
            (0..n).map(|i| (image[i] as f64 * ratio(i)) as i64).collect()
        }
        _ => fail!(MISSING_ARGUMENT, "`output_size` or `output_ratio` is expected"),
    };
    for i in 0..n {
        if sizes[i] + kernel[i] - 1 > image[i] as i64 {
            fail!(SHAPE, "{} windows of size {} do not fit into a dimension of size {}", sizes[i], kernel[i], image[i]);
        }
        if sizes[i] < 1 {
            fail!(VALUE, "an output of size {} is empty", sizes[i]);
        }
    }
    Ok(sizes)
}

/// Positions `[planes, out, kernel]` of the windows' elements along one dimension.
fn positions(e: &mut dyn Emit, sample: &Tensor, size: usize, kernel: i64, out: i64) -> Result<Tensor> {
    let (planes, device) = (sample.numel(), sample.device());
    let count = |e: &mut dyn Emit, n: i64| {
        e.call(&ARANGE, args![Scalar::Int(0), Scalar::Int(n), Scalar::Int(1), DType::I64, device])
    };
    let n = count(e, out)?;
    let last = Scalar::Int(size as i64 - kernel);
    let starts = if out == 1 {
        let zero = e.mul(&n, Scalar::Int(0))?;
        let start = e.add(&zero, last)?;
        e.call(&EXPAND, args![&start, [planes as i64, 1].as_slice()])?
    } else {
        let alpha = Scalar::Float((size as i64 - kernel) as f64 / (out - 1) as f64);
        let sample = e.call(&RESHAPE, args![sample, [planes as i64, 1].as_slice()])?;
        let at = e.add(&sample, &n)?;
        let at = e.mul(&at, alpha)?;
        let at = e.call(&TRUNC, args![&at])?;
        let first = e.mul(&sample, alpha)?;
        let first = e.call(&TRUNC, args![&first])?;
        let start = e.sub(&at, &first)?;
        let start = e.cast(&start, DType::I64)?;
        let end = e.call(&EQ, args![&n, Scalar::Int(out - 1)])?;
        e.call(&WHERE, args![&end, last, &start])?
    };
    let starts = e.call(&RESHAPE, args![&starts, [planes as i64, out, 1].as_slice()])?;
    let taps = count(e, kernel)?;
    e.add(&starts, &taps)
}

fn pool(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    float_only(a.input(), "input")?;
    let x = e.call(&STRAIGHT, args![a.input(), ()])?;
    let (x, was_batched) = batched(e, &x, n)?;
    let shape = x.shape();
    if shape[1..].contains(&0) {
        fail!(SHAPE, "an image of shape {:?} is empty", a.input().shape().as_slice());
    }
    let image = &shape[2..];
    let kernel = tuple(a, fractional_max_pool2d::kernel_size, n, "kernel_size", 1)?;
    let out = output(a, image, &kernel)?;
    let planes = shape[0] * shape[1];
    let samples = match a.get(fractional_max_pool2d::_random_samples) {
        Arg::Tensor(samples) => {
            infer::same_dtype(&[("input", &x), ("_random_samples", samples)])?;
            if samples.shape()[..] != [shape[0], shape[1], n] {
                fail!(SHAPE, "`_random_samples` must have shape {:?}", [shape[0], shape[1], n]);
            }
            samples.clone()
        }
        _ => e.call(&RAND, args![&[shape[0], shape[1], n][..], x.dtype(), x.device()])?,
    };
    let samples = e.detach(&samples);
    let samples = e.call(&RESHAPE, args![&samples, [planes, n].as_slice()])?;
    // Flat positions, with a dimension for each output and each kernel dimension.
    let mut flat: Option<Tensor> = None;
    for d in 0..n {
        // In two dimensions the first number is the width's.
        let number = if n == 2 { 1 - d } else { d };
        let sample = e.call(&SELECT, args![&samples, 1, number])?;
        let along = positions(e, &sample, image[d], kernel[d], out[d])?;
        let mut own: Ints = std::iter::repeat_n(1, 1 + 2 * n).collect();
        (own[0], own[1 + d], own[1 + n + d]) = (planes as i64, out[d], kernel[d]);
        let along = e.call(&RESHAPE, args![&along, own])?;
        flat = Some(match flat {
            None => along,
            Some(flat) => {
                let flat = e.mul(&flat, Scalar::Int(image[d] as i64))?;
                e.add(&flat, &along)?
            }
        });
    }
    let Some(flat) = flat else { fail!(INTERNAL, "no dimensions") };
    let (windows, taps): (i64, i64) = (out.iter().product(), kernel.iter().product());
    let flat = e.call(&RESHAPE, args![&flat, [planes as i64, windows * taps].as_slice()])?;
    let pixels = e.call(&RESHAPE, args![&x, [planes, image.iter().product()].as_slice()])?;
    let values = e.call(&GATHER, args![&pixels, 1, &flat])?;
    let values = e.call(&RESHAPE, args![&values, [planes as i64, windows, taps].as_slice()])?;
    let mut best = e.apply(&MAX, args![&values, 2])?;
    let tap = best.pop();
    let mut sizes: Ints = shape[..2].iter().map(|&n| n as i64).collect();
    sizes.extend_from_slice(&out);
    let y = e.call(&RESHAPE, args![&best[0], sizes.clone()])?;
    let y = unbatched(e, y, was_batched)?;
    let (true, Some(tap)) = (a.flag(fractional_max_pool2d::return_indices), tap) else { return Ok(vec![y]) };
    let flat = e.call(&RESHAPE, args![&flat, [planes as i64, windows, taps].as_slice()])?;
    let tap = e.call(&RESHAPE, args![&tap, [planes as i64, windows, 1].as_slice()])?;
    let index = e.call(&GATHER, args![&flat, 2, &tap])?;
    let index = e.call(&RESHAPE, args![&index, sizes])?;
    Ok(vec![y, unbatched(e, index, was_batched)?])
}

pub static FRACTIONAL_MAX_POOL2D: Op = Op {
    name: "fractional_max_pool2d",
    params: fractional_max_pool2d::PARAMS,
    summary: "Maxima over windows at drawn places of [N, C, H, W] (or [C, H, W]).",
    details: DETAILS,
    examples: &[
        ex("fractional_max_pool2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2, 1)", "tensor([[[4.]]])"),
        ex("fractional_max_pool2d(ones([1, 2, 2]), 2)", "E0205"),
        ex("fractional_max_pool2d(ones([1, 2, 2]), 2, 2)", "E0201"),
        ex("fractional_max_pool2d(ones([1, 2, 2]), 2, #{output_ratio: 2.0})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| pool(e, a, 2)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static FRACTIONAL_MAX_POOL3D: Op = Op {
    name: "fractional_max_pool3d",
    params: fractional_max_pool2d::PARAMS,
    summary: "Maxima over windows at drawn places of [N, C, D, H, W] (or [C, D, H, W]).",
    details: DETAILS,
    examples: &[
        ex("fractional_max_pool3d(tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), [1, 2, 2], 1)", "tensor([[[[4.]]]])"),
        ex("fractional_max_pool3d(ones([1, 2, 2, 2]), 2)", "E0205"),
        ex("fractional_max_pool3d(ones([1, 2, 2, 2]), 2, 2)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| pool(e, a, 3)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&FRACTIONAL_MAX_POOL2D, &FRACTIONAL_MAX_POOL3D];
