//! Convolutions and transposed convolutions of one to three dims. A gradient of one of the three inner rows is
//! another of them, so gradients of every order are known.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::conv::{CONV_FORWARD, CONV_GRAD_INPUT, CONV_GRAD_WEIGHT};
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::nn::windows::{as_float, batched, spatial, tuple, unbatched, window_count};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::{SLICE, SLICE_SCATTER};
use crate::op::tensor::Tensor;
use crate::signature;

// Of every inner row; `size` are the spatial sizes of what it makes.
signature!(inner(
    input: Tensor, weight: Tensor, bias: Tensor = None, size: Ints, stride: Ints = 1, padding: Ints = 0,
    dilation: Ints = 1, groups: Int = 1,
));

fn queue(call: KernelCall, a: &Args, lead: [usize; 2]) -> KernelCall {
    let mut shape = Shape::from_slice(&lead);
    shape.extend(a.ints(inner::size).unwrap_or_default().iter().map(|&size| size as usize));
    let dtype = a.input().dtype();
    let list = |at: usize| a.ints(at).unwrap_or_default();
    let call = call.input(a.input()).input(a.tensor(inner::weight)).inputs(a.opt_tensor(inner::bias));
    call.ints(&list(inner::stride))
        .ints(&list(inner::padding))
        .ints(&list(inner::dilation))
        .int(a.int(inner::groups))
        .output(&shape, dtype)
}

/// Another inner row with the geometry of this one.
fn other_convolution(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    op: &'static Op,
    x: &Tensor,
    w: &Tensor,
    like: usize,
) -> Result<Tensor> {
    let size: Ints = v.meta(like).shape[2..].iter().map(|&size| size as i64).collect();
    let mut args = args![x, w, (), size];
    args.0.extend((inner::stride..=inner::groups).map(|at| v.args.get(at).clone()));
    e.call(op, args)
}

/// Gradient of the bias: the sum over everything but channels.
fn over_channels(e: &mut dyn Emit, g: &Tensor) -> Result<Tensor> {
    let dims: Ints = (0..g.ndim() as i64).filter(|&dim| dim != 1).collect();
    e.call(&SUM, args![g, dims])
}

/// `input` `[N, C, d..]`, `weight` `[O, C / groups, k..]` to `[N, O, size..]`.
pub static CONV: Op = Op {
    name: "conv",
    params: inner::PARAMS,
    summary: "Convolution of a batch.",
    lower: Lower::Kernel(|_, a| {
        let lead = [a.input().shape()[0], a.tensor(inner::weight).shape()[0]];
        Ok(queue(KernelCall::new("conv", &CONV_FORWARD), a, lead))
    }),
    saves: &[Save::INPUT, Save::In(inner::weight)],
    grad: Grad::Rule(|e, v| {
        let x = if v.needs(inner::input) {
            Some(other_convolution(e, v, &CONV_INPUT, v.g(), v.saved(inner::weight), 0)?)
        } else {
            None
        };
        let w = if v.needs(inner::weight) {
            Some(other_convolution(e, v, &CONV_WEIGHT, v.g(), v.input(), 1)?)
        } else {
            None
        };
        let b = if v.needs(inner::bias) { Some(over_channels(e, v.g())?) } else { None };
        Ok(vec![x, w, b])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Product(inner::input, inner::weight, Some(inner::bias)),
    ..Op::BASE
};

/// The transposed map: `input` `[N, O, o..]`, `weight` `[O, C / groups, k..]` to `[N, C, size..]`.
pub static CONV_INPUT: Op = Op {
    name: "conv_transpose",
    params: inner::PARAMS,
    summary: "Transposed convolution of a batch.",
    lower: Lower::Kernel(|_, a| {
        let lead = [a.input().shape()[0], a.tensor(inner::weight).shape()[1] * a.int(inner::groups).max(1) as usize];
        Ok(queue(KernelCall::new("conv_transpose", &CONV_GRAD_INPUT), a, lead))
    }),
    saves: &[Save::INPUT, Save::In(inner::weight)],
    grad: Grad::Rule(|e, v| {
        let x = if v.needs(inner::input) {
            Some(other_convolution(e, v, &CONV, v.g(), v.saved(inner::weight), 0)?)
        } else {
            None
        };
        let w = if v.needs(inner::weight) {
            Some(other_convolution(e, v, &CONV_WEIGHT, v.input(), v.g(), 1)?)
        } else {
            None
        };
        let b = if v.needs(inner::bias) { Some(over_channels(e, v.g())?) } else { None };
        Ok(vec![x, w, b])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Product(inner::input, inner::weight, Some(inner::bias)),
    ..Op::BASE
};

/// The weight's gradient: `[N, O, o..]` and `[N, C, d..]` to `[O, C / groups, size..]`.
pub static CONV_WEIGHT: Op = Op {
    name: "conv_weight",
    params: inner::PARAMS,
    summary: "Gradient of a convolution's weight.",
    lower: Lower::Kernel(|_, a| {
        let lead = [a.input().shape()[1], a.tensor(inner::weight).shape()[1] / a.int(inner::groups).max(1) as usize];
        Ok(queue(KernelCall::new("conv_weight", &CONV_GRAD_WEIGHT), a, lead))
    }),
    saves: &[Save::INPUT, Save::In(inner::weight)],
    grad: Grad::Rule(|e, v| {
        let y = if v.needs(inner::input) {
            Some(other_convolution(e, v, &CONV, v.saved(inner::weight), v.g(), 0)?)
        } else {
            None
        };
        let x = if v.needs(inner::weight) {
            Some(other_convolution(e, v, &CONV_INPUT, v.input(), v.g(), 1)?)
        } else {
            None
        };
        Ok(vec![y, x])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Product(inner::input, inner::weight, None),
    ..Op::BASE
};

signature!(conv(
    input: Tensor, weight: Tensor, bias: Tensor = None, stride: Ints = 1, padding: IntsOr(&["same", "valid"]) = 0,
    dilation: Ints = 1, groups: Int = 1,
));
signature!(conv_transpose(
    input: Tensor, weight: Tensor, bias: Tensor = None, stride: Ints = 1, padding: Ints = 0,
    output_padding: Ints = 0, groups: Int = 1, dilation: Ints = 1,
));

/// What the public rows check alike. `channels` are the weight's: those that the input must have, and the bias.
fn check(a: &Args, n: usize, groups: i64, transposed: bool) -> Result<()> {
    let (x, w) = (a.input().shape(), a.tensor(conv::weight).shape());
    if w.len() != n + 2 {
        fail!(SHAPE, "`weight` must have {} dimensions; it has shape {:?}", n + 2, w.as_slice());
    }
    if x.len() != n + 1 && x.len() != n + 2 {
        let (most, least) = (n + 2, n + 1);
        fail!(
            SHAPE,
            "`input` must have {most} dimensions, or {least} without a batch; it has shape {:?}",
            x.as_slice()
        );
    }
    if groups < 1 {
        fail!(VALUE, "`groups` must be positive, not {groups}");
    }
    let groups = groups as usize;
    let (read, made) = if transposed { (w[0], w[1] * groups) } else { (w[1] * groups, w[0]) };
    if w[0] == 0 || w[0] % groups != 0 {
        fail!(SHAPE, "{} channels of `weight` (shape {:?}) do not split into {groups} groups", w[0], w.as_slice());
    }
    if w[2..].contains(&0) {
        fail!(SHAPE, "the kernel is empty: `weight` has shape {:?}", w.as_slice());
    }
    let channels = x[x.len() - n - 1];
    if channels != read {
        fail!(
            SHAPE,
            "`weight` of shape {:?} with {groups} groups takes {read} input channels, but `input` of shape {:?} has {channels}",
            w.as_slice(),
            x.as_slice()
        );
    }
    let mut operands = vec![("input", a.input()), ("weight", a.tensor(conv::weight))];
    if let Some(bias) = a.opt_tensor(conv::bias) {
        if bias.shape().as_slice() != [made] {
            fail!(
                SHAPE,
                "`bias` must have shape [{made}], one number an output channel, not {:?}",
                bias.shape().as_slice()
            );
        }
        operands.push(("bias", bias));
    }
    infer::same_dtype(&operands)?;
    Ok(())
}

/// `input` with zeros behind every dim: what `"same"` needs where its padding is uneven.
fn longer(e: &mut dyn Emit, x: &Tensor, more: &[i64]) -> Result<Tensor> {
    let mut x = x.clone();
    for (i, &more) in more.iter().enumerate().filter(|(_, more)| **more > 0) {
        let (mut shape, dim) = (x.shape(), i + 2);
        let old = shape[dim];
        shape[dim] += more as usize;
        let zeros = e.full(&shape, crate::base::dtype::Scalar::Int(0), &crate::op::tensor::Meta::of(&x))?;
        x = e.call(&SLICE_SCATTER, args![&zeros, &x, dim, 0, old, 1])?;
    }
    Ok(x)
}

/// Runs an inner row, by way of f64 for integers (exact below 2^53).
fn run(e: &mut dyn Emit, op: &'static Op, a: &Args, x: &Tensor, rest: [Arg; 5]) -> Result<Tensor> {
    let dtype = x.dtype();
    let (x, w) = (as_float(e, x)?, as_float(e, a.tensor(conv::weight))?);
    let bias = a.opt_tensor(conv::bias).map(|bias| as_float(e, bias)).transpose()?;
    let mut args = args![x, w, bias];
    args.0.extend(rest);
    let y = e.call(op, args)?;
    e.cast(&y, dtype)
}

fn convolution(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    let groups = a.int(conv::groups);
    check(a, n, groups, false)?;
    let stride = tuple(a, conv::stride, n, "stride", 1)?;
    let dilation = tuple(a, conv::dilation, n, "dilation", 1)?;
    let kernel = spatial(a.tensor(conv::weight), n);
    let (mut x, was_batched) = batched(e, a.input(), n)?;
    let padding = match a.text(conv::padding) {
        "valid" => Ints::from_elem(0, n),
        "same" => {
            if stride.iter().any(|&step| step != 1) {
                fail!(VALUE, "`padding: \"same\"` goes with stride 1 only, not {:?}", stride.as_slice());
            }
            let total: Ints = kernel.iter().zip(&dilation).map(|(k, d)| d * (k - 1)).collect();
            let odd: Ints = total.iter().map(|total| total % 2).collect();
            x = longer(e, &x, &odd)?;
            total.iter().map(|total| total / 2).collect()
        }
        _ => tuple(a, conv::padding, n, "padding", 0)?,
    };
    let from = spatial(&x, n);
    let size: Ints =
        (0..n).map(|i| window_count(from[i], kernel[i], stride[i], padding[i], dilation[i], false)).collect();
    if let Some(i) = size.iter().position(|&size| size < 1) {
        fail!(
            SHAPE,
            "the kernel reaches over {} elements, but dimension {i} of the image has {} with its padding",
            dilation[i] * (kernel[i] - 1) + 1,
            from[i] + 2 * padding[i]
        );
    }
    let mut y = run(e, &CONV, a, &x, [size.into(), stride.into(), padding.into(), dilation.into(), groups.into()])?;
    if x.shape()[1] == 0 {
        // PyTorch's rule: of no channels no channels are made, whatever the weight and the bias say.
        y = e.call(&SLICE, args![&y, 1, 0, 0, 1])?;
    }
    Ok(vec![unbatched(e, y, was_batched)?])
}

fn transposed(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    let groups = a.int(conv_transpose::groups);
    check(a, n, groups, true)?;
    let (stride, dilation) =
        (tuple(a, conv_transpose::stride, n, "stride", 1)?, tuple(a, conv_transpose::dilation, n, "dilation", 1)?);
    let (padding, extra) = (
        tuple(a, conv_transpose::padding, n, "padding", 0)?,
        tuple(a, conv_transpose::output_padding, n, "output_padding", 0)?,
    );
    let (x, was_batched) = batched(e, a.input(), n)?;
    let (from, kernel) = (spatial(&x, n), spatial(a.tensor(conv_transpose::weight), n));
    for i in 0..n {
        if extra[i] >= stride[i].max(dilation[i]) {
            fail!(
                VALUE,
                "`output_padding` must be smaller than the stride or the dilation: {} with stride {} and dilation {}",
                extra[i],
                stride[i],
                dilation[i]
            );
        }
    }
    let size: Ints = (0..n)
        .map(|i| (from[i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + extra[i] + 1)
        .collect();
    if size.iter().any(|&size| size < 1) {
        fail!(SHAPE, "an image of {:?} would become one of {:?}", from.as_slice(), size.as_slice());
    }
    let y = run(e, &CONV_INPUT, a, &x, [size.into(), stride.into(), padding.into(), dilation.into(), groups.into()])?;
    Ok(vec![unbatched(e, y, was_batched)?])
}

const DETAILS: &str = "`input` is [N, C, d..] or [C, d..], `weight` [O, C / groups, k..], `bias` [O]; the result is \
[N, O, o..] (no channels where C is 0) with o = floor((d + 2 padding - dilation (k - 1) - 1) / stride) + 1. `stride`, `padding` and `dilation` are \
one integer, or one for each spatial dimension; `padding` may be \"valid\" (none) or \"same\" (o = d, stride 1).";

const TRANSPOSED_DETAILS: &str = "`input` is [N, C, d..] or [C, d..], `weight` [C, O / groups, k..], `bias` [O]; the \
result is [N, O, o..] with o = (d - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.";

const fn plain(name: &'static str, examples: &'static [crate::op::row::Example], lower: Lower) -> Op {
    Op {
        name,
        params: conv::PARAMS,
        summary: "Slides filters over signals, images or volumes (cross-correlation).",
        details: DETAILS,
        examples,
        lower,
        grad: Grad::Composed,
        call: CallForm::Function,
        ..Op::BASE
    }
}

const fn flipped(name: &'static str, examples: &'static [crate::op::row::Example], lower: Lower) -> Op {
    Op {
        name,
        params: conv_transpose::PARAMS,
        summary: "Spreads every element over a window with filters: the transpose of a convolution.",
        details: TRANSPOSED_DETAILS,
        examples,
        lower,
        grad: Grad::Composed,
        call: CallForm::Function,
        ..Op::BASE
    }
}

pub static CONV1D: Op = plain(
    "conv1d",
    &[
        ex("conv1d(tensor([[1.0, 2.0, 3.0, 4.0]]), ones([1, 1, 2]))", "tensor([[3., 5., 7.]])"),
        ex("conv1d(ones([1, 2, 5]), ones([1, 3, 2]))", "E0201"),
        ex("conv1d(ones([1, 1, 5]), ones([1, 1, 2]), #{stride: 0})", "E0206"),
        ex("conv1d(ones([1, 1, 5]), ones([1, 1, 2], #{dtype: \"f64\"}))", "E0202"),
    ],
    Lower::Compose(|e, a| convolution(e, a, 1)),
);

pub static CONV2D: Op = plain(
    "conv2d",
    &[
        ex("conv2d(ones([1, 1, 3, 3]), ones([1, 1, 3, 3]), #{padding: \"same\"})[0, 0, 0]", "tensor([4., 6., 4.])"),
        ex("conv2d(ones([1, 1, 2, 2]), ones([1, 1, 3, 3]))", "E0201"),
        ex("conv2d(ones([1, 1, 5, 5]), ones([1, 1, 3, 3]), #{padding: -1})", "E0206"),
        ex("conv2d(ones([1, 1, 5, 5]), ones([1, 1, 3, 3], #{dtype: \"f64\"}))", "E0202"),
    ],
    Lower::Compose(|e, a| convolution(e, a, 2)),
);

pub static CONV3D: Op = plain(
    "conv3d",
    &[
        ex("conv3d(ones([1, 2, 2, 2]), ones([1, 1, 2, 2, 2]))", "tensor([[[[8.]]]])"),
        ex("conv3d(ones([1, 2, 2]), ones([1, 1, 2, 2, 2]))", "E0201"),
        ex("conv3d(ones([1, 2, 2, 2]), ones([1, 1, 2, 2, 2]), #{groups: 0})", "E0206"),
        ex("conv3d(ones([1, 2, 2, 2]), ones([1, 1, 2, 2, 2], #{dtype: \"f64\"}))", "E0202"),
    ],
    Lower::Compose(|e, a| convolution(e, a, 3)),
);

pub static CONV_TRANSPOSE1D: Op = flipped(
    "conv_transpose1d",
    &[
        ex("conv_transpose1d(tensor([[1.0, 2.0]]), ones([1, 1, 2]), #{stride: 2})", "tensor([[1., 1., 2., 2.]])"),
        ex("conv_transpose1d(ones([1, 2, 5]), ones([3, 1, 2]))", "E0201"),
        ex("conv_transpose1d(ones([1, 5]), ones([1, 1, 2]), #{output_padding: 1})", "E0206"),
        ex("conv_transpose1d(ones([1, 5]), ones([1, 1, 2], #{dtype: \"f64\"}))", "E0202"),
    ],
    Lower::Compose(|e, a| transposed(e, a, 1)),
);

pub static CONV_TRANSPOSE2D: Op = flipped(
    "conv_transpose2d",
    &[
        ex("conv_transpose2d(ones([1, 1, 1]), ones([1, 1, 2, 2]))", "tensor([[[1., 1.],\n         [1., 1.]]])"),
        ex("conv_transpose2d(ones([2, 1, 1]), ones([1, 1, 2, 2]))", "E0201"),
        ex("conv_transpose2d(ones([1, 1, 1]), ones([1, 1, 2, 2]), #{stride: 0})", "E0206"),
        ex("conv_transpose2d(ones([1, 1, 1]), ones([1, 1, 2, 2], #{dtype: \"f64\"}))", "E0202"),
    ],
    Lower::Compose(|e, a| transposed(e, a, 2)),
);

pub static CONV_TRANSPOSE3D: Op = flipped(
    "conv_transpose3d",
    &[
        ex("conv_transpose3d(ones([1, 1, 1, 1]), ones([1, 1, 1, 1, 2]))", "tensor([[[[1., 1.]]]])"),
        ex("conv_transpose3d(ones([2, 1, 1, 1]), ones([1, 1, 1, 1, 2]))", "E0201"),
        ex("conv_transpose3d(ones([1, 1, 1, 1]), ones([1, 1, 1, 1, 2]), #{stride: 0})", "E0206"),
        ex("conv_transpose3d(ones([1, 1, 1, 1]), ones([1, 1, 1, 1, 2], #{dtype: \"f64\"}))", "E0202"),
    ],
    Lower::Compose(|e, a| transposed(e, a, 3)),
);

pub static ROWS: &[&Op] = &[
    &CONV,
    &CONV_INPUT,
    &CONV_WEIGHT,
    &CONV1D,
    &CONV2D,
    &CONV3D,
    &CONV_TRANSPOSE1D,
    &CONV_TRANSPOSE2D,
    &CONV_TRANSPOSE3D,
];
