//! Activations of networks.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{Category, DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::kernel::program::Function;
use crate::op::emit::Emit;
use crate::op::expr::{Derivative, Expr, Terms};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::nn::activation_backward::{GELU_ERF_GRAD, GELU_TANH_GRAD, MISH_GRAD, SILU_GRAD, SOFTPLUS_GRAD};
use crate::op::rows::pointwise::arith::{DIV, MUL, SUB, element_of};
use crate::op::rows::pointwise::compare::{GT, WHERE};
use crate::op::rows::pointwise::unary::{ABS, SIGMOID, TANH};
use crate::op::rows::random::distributions;
use crate::op::rows::shape::expanded;
use crate::op::rows::shape::view::{RESHAPE, SLICE, STRAIGHT};
use crate::op::rows::signatures::unary;
use crate::op::tensor::Tensor;
use crate::signature;

/// A map over a float tensor: its numbers after the tensor are the function's.
const fn activation(
    name: &'static str,
    function: &'static Function,
    params: &'static [Param],
    gradient: &'static [Derivative],
) -> Op {
    Op {
        name,
        params,
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[Save::INPUT],
        grad: Grad::Of(gradient),
        inplace: true,
        ..Op::BASE
    }
}

signature!(relu(input: Tensor, inplace: Ignored = None));

pub static RELU: Op = Op {
    name: "relu",
    params: relu::PARAMS,
    summary: "Negative elements become 0; NaN stays.",
    examples: &[ex("relu(tensor([-1.0, 2.0]))", "tensor([0., 2.])"), ex("relu(tensor([true]))", "E0202")],
    lower: Lower::Map { function: &f::RELU, promote: Promote::NoBool },
    saves: &[Save::RESULT],
    grad: Grad::Of(&[|t| t.g.zero_where(t.result.less_equal(0))]),
    inplace: true,
    piecewise_linear: true,
    ..Op::BASE
};

signature!(hardtanh(input: Tensor, min_val: Number = (-1.0), max_val: Number = 1.0, inplace: Ignored = None));

pub static HARDTANH: Op = Op {
    name: "hardtanh",
    params: hardtanh::PARAMS,
    summary: "Holds elements between `min_val` and `max_val`; on a bound the gradient is 0.",
    examples: &[
        ex("hardtanh(tensor([-2.0, 0.5]))", "tensor([-1.0000,  0.5000])"),
        ex("hardtanh(tensor([1.0]), 2.0, 1.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let bound = |at: usize| a.scalar(at).unwrap_or(Scalar::Int(0));
        held(e, a.input(), bound(1), bound(2))
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

fn held(e: &mut dyn Emit, x: &Tensor, low: Scalar, high: Scalar) -> Result<Vec<Tensor>> {
    let dtype = x.dtype();
    if dtype == DType::Bool {
        fail!(DTYPE, "bool tensors are not supported");
    }
    if low.to_f64() > high.to_f64() {
        fail!(VALUE, "`min_val` {low} is larger than `max_val` {high}");
    }
    // What is below every element holds nothing.
    let low = if !dtype.is_signed() && low.to_f64() < 0.0 { Scalar::Int(0) } else { low };
    let (low, high) = (element_of(low, dtype)?, element_of(high, dtype)?);
    e.apply(&HELD, args![x, low, high])
}

signature!(held(input: Tensor, min_val: Number, max_val: Number));

/// `hardtanh` with bounds of the tensor's own kind.
static HELD: Op = Op {
    name: "hardtanh",
    params: held::PARAMS,
    summary: "Holds elements between two bounds.",
    lower: Lower::Map { function: &f::CLAMP, promote: Promote::NoBool },
    saves: &[Save::INPUT],
    // NaN is not outside.
    grad: Grad::Of(&[|t| {
        let outside = t.input.less_equal(t.float(held::min_val)).or(t.input.greater_equal(t.float(held::max_val)));
        t.g.zero_where(outside)
    }]),
    call: CallForm::Internal,
    piecewise_linear: true,
    ..Op::BASE
};

pub static RELU6: Op = Op {
    name: "relu6",
    params: relu::PARAMS,
    summary: "Holds elements between 0 and 6.",
    examples: &[ex("relu6(tensor([-1.0, 2.0, 8.0]))", "tensor([0., 2., 6.])")],
    lower: Lower::Compose(|e, a| held(e, a.input(), Scalar::Int(0), Scalar::Int(6))),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(leaky_relu(input: Tensor, negative_slope: Float = 0.01, inplace: Ignored = None));

pub static LEAKY_RELU: Op = Op {
    summary: "Negative elements times `negative_slope`.",
    examples: &[
        ex("leaky_relu(tensor([-1.0, 2.0]))", "tensor([-0.0100,  2.0000])"),
        ex("leaky_relu(tensor([1]))", "E0202"),
    ],
    piecewise_linear: true,
    ..activation(
        "leaky_relu",
        &f::LEAKY_RELU,
        leaky_relu::PARAMS,
        &[|t| t.input.greater(0).choose(t.g, t.g * t.float(leaky_relu::negative_slope))],
    )
};

/// The gradient of `scale · x` above 0 and `low · (e^(x / width) - 1)` below.
fn exponential(t: Terms<'_>, scale: f64, low: f64, width: f64) -> Expr<'_> {
    let stretched = if width == 1.0 { t.input } else { t.input / width };
    let below = t.g * (stretched.exp() * (low / width));
    let above = if scale == 1.0 { t.g } else { t.g * scale };
    t.input.less_equal(0).choose(below, above)
}

signature!(elu(input: Tensor, alpha: Float = 1.0, inplace: Ignored = None));

pub static ELU: Op = Op {
    summary: "Negative elements become alpha · (e^x - 1).",
    examples: &[ex("elu(tensor([-1.0, 2.0]))", "tensor([-0.6321,  2.0000])"), ex("elu(tensor([1]))", "E0202")],
    ..activation("elu", &f::ELU, elu::PARAMS, &[|t| exponential(t, 1.0, t.float(elu::alpha), 1.0)])
};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

pub static SELU: Op = Op {
    summary: "The self-normalizing form of `elu` (Klambauer et al., 2017).",
    examples: &[ex("selu(tensor([-1.0, 2.0]))", "tensor([-1.1113,  2.1014])"), ex("selu(tensor([1]))", "E0202")],
    ..activation("selu", &f::SELU, relu::PARAMS, &[|t| exponential(t, SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1.0)])
};

signature!(celu_map(input: Tensor, alpha: Float));

static CELU_MAP: Op = Op {
    inplace: false,
    call: CallForm::Internal,
    ..activation(
        "celu",
        &f::CELU,
        celu_map::PARAMS,
        &[|t| exponential(t, 1.0, t.float(celu_map::alpha), t.float(celu_map::alpha))],
    )
};

pub static CELU: Op = Op {
    name: "celu",
    params: elu::PARAMS,
    summary: "Negative elements become alpha · (e^(x / alpha) - 1).",
    examples: &[
        ex("celu(tensor([-1.0, 2.0]), 2.0)", "tensor([-0.7869,  2.0000])"),
        ex("celu(tensor([1.0]), 0.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        if a.float(elu::alpha) == 0.0 {
            fail!(VALUE, "`alpha` must not be 0");
        }
        e.apply(&CELU_MAP, args![a.input(), a.float(elu::alpha)])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static GELU_ERF: Op = Op {
    inplace: false,
    call: CallForm::Internal,
    ..activation("gelu", &f::GELU_ERF, unary::PARAMS, &[|t| t.g.with(&GELU_ERF_GRAD, t.input)])
};

static GELU_TANH: Op = Op {
    inplace: false,
    call: CallForm::Internal,
    ..activation("gelu", &f::GELU_TANH, unary::PARAMS, &[|t| t.g.with(&GELU_TANH_GRAD, t.input)])
};

signature!(gelu(input: Tensor, approximate: Str(&["none", "tanh"]) = "none"));

pub static GELU: Op = Op {
    name: "gelu",
    params: gelu::PARAMS,
    summary: "x · Φ(x) with the normal distribution Φ; `approximate: \"tanh\"` is the faster form.",
    examples: &[
        ex("gelu(tensor([-1.0, 2.0]))", "tensor([-0.1587,  1.9545])"),
        ex("gelu(tensor([1]))", "E0202"),
        ex("gelu(tensor([1.0]), \"erf\")", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        e.apply(if a.text(gelu::approximate) == "tanh" { &GELU_TANH } else { &GELU_ERF }, args![a.input()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static SILU: Op = Op {
    inplace: false,
    aliases: &["swish"],
    summary: "x · sigmoid(x).",
    examples: &[ex("silu(tensor([-1.0, 2.0]))", "tensor([-0.2689,  1.7616])"), ex("silu(tensor([1]))", "E0202")],
    ..activation("silu", &f::SILU, relu::PARAMS, &[|t| t.g.with(&SILU_GRAD, t.input)])
};

pub static MISH: Op = Op {
    inplace: false,
    summary: "x · tanh(softplus(x)).",
    examples: &[ex("mish(tensor([-1.0, 2.0]))", "tensor([-0.3034,  1.9440])"), ex("mish(tensor([1]))", "E0202")],
    ..activation("mish", &f::MISH, relu::PARAMS, &[|t| t.g.with(&MISH_GRAD, t.input)])
};

signature!(softplus(input: Tensor, beta: Float = 1.0, threshold: Float = 20.0));

pub static SOFTPLUS: Op = Op {
    inplace: false,
    summary: "ln(1 + e^(beta x)) / beta; x itself where beta x exceeds `threshold`.",
    examples: &[
        ex("softplus(tensor([0.0, 30.0]))", "tensor([ 0.6931, 30.0000])"),
        ex("softplus(tensor([1]))", "E0202"),
    ],
    ..activation(
        "softplus",
        &f::SOFTPLUS,
        softplus::PARAMS,
        &[|t| {
            let (beta, threshold) = (t.float(softplus::beta), t.float(softplus::threshold));
            t.g.call(&SOFTPLUS_GRAD, args![t.input.arg(), beta, threshold])
        }],
    )
};

pub static HARDSIGMOID: Op = Op {
    inplace: false,
    summary: "(x + 3) / 6, held between 0 and 1.",
    examples: &[
        ex("hardsigmoid(tensor([-4.0, 0.0]))", "tensor([0.0000, 0.5000])"),
        ex("hardsigmoid(tensor([1]))", "E0202"),
    ],
    ..activation(
        "hardsigmoid",
        &f::HARDSIGMOID,
        relu::PARAMS,
        &[|t| (t.g / 6.0).zero_unless(t.input.greater(-3).and(t.input.less(3)))],
    )
};

pub static HARDSWISH: Op = Op {
    inplace: false,
    summary: "x · hardsigmoid(x).",
    examples: &[
        ex("hardswish(tensor([-4.0, 1.0]))", "tensor([-0.0000, 0.6667])"),
        ex("hardswish(tensor([1]))", "E0202"),
    ],
    ..activation(
        "hardswish",
        &f::HARDSWISH,
        relu::PARAMS,
        &[|t| {
            let x = t.input;
            let g = x.less(3).choose(t.g * (x / 3.0 + 0.5), t.g);
            g.zero_where(x.less_equal(-3))
        }],
    )
};

pub static SOFTSIGN: Op = Op {
    name: "softsign",
    params: unary::PARAMS,
    summary: "x / (1 + |x|).",
    examples: &[
        ex("softsign(tensor([-1.0, 3.0]))", "tensor([-0.5000,  0.7500])"),
        ex("softsign(tensor([true]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let size = e.call(&ABS, args![a.input()])?;
        let sum = e.add(&size, Scalar::Int(1))?;
        e.apply(&DIV, args![a.input(), &sum])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static TANHSHRINK: Op = Op {
    name: "tanhshrink",
    params: unary::PARAMS,
    summary: "x - tanh(x).",
    examples: &[
        ex("tanhshrink(tensor([0.0, 2.0]))", "tensor([0.0000, 1.0360])"),
        ex("tanhshrink(tensor([true]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if x.dtype() == DType::Bool {
            fail!(DTYPE, "bool tensors are not supported");
        }
        let tanh = e.call(&TANH, args![x])?;
        e.apply(&SUB, args![x, &tanh])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static LOGSIGMOID: Op = Op {
    aliases: &["log_sigmoid"],
    inplace: false,
    summary: "ln(sigmoid(x)), without overflow.",
    examples: &[ex("logsigmoid(tensor([0.0]))", "tensor([-0.6931])"), ex("logsigmoid(tensor([1]))", "E0202")],
    ..activation("logsigmoid", &f::LOGSIGMOID, unary::PARAMS, &[|t| t.g * (-t.input).sigmoid()])
};

/// The gradient of what is flat between -lambd and lambd.
const SHRINK: &[Derivative] = &[|t| {
    // NaN is not inside.
    let (x, lambd) = (t.input, t.float(softshrink_map::lambd));
    t.g.zero_where(x.greater_equal(-lambd).and(x.less_equal(lambd)))
}];

signature!(softshrink_map(input: Tensor, lambd: Float = 0.5));

static SOFTSHRINK_MAP: Op = Op {
    inplace: false,
    piecewise_linear: true,
    call: CallForm::Internal,
    ..activation("softshrink", &f::SOFTSHRINK, softshrink_map::PARAMS, SHRINK)
};

pub static SOFTSHRINK: Op = Op {
    name: "softshrink",
    params: softshrink_map::PARAMS,
    summary: "Moves elements towards 0 by `lambd`; those within it become 0.",
    examples: &[
        ex("softshrink(tensor([-2.0, 0.1]))", "tensor([-1.5000,  0.0000])"),
        ex("softshrink(tensor([1.0]), -1.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        if a.float(softshrink_map::lambd) < 0.0 {
            fail!(VALUE, "`lambd` must not be negative, but is {}", a.float(softshrink_map::lambd));
        }
        e.apply(&SOFTSHRINK_MAP, args![a.input(), a.float(softshrink_map::lambd)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static HARDSHRINK: Op = Op {
    inplace: false,
    summary: "Elements within `lambd` of 0 become 0.",
    examples: &[ex("hardshrink(tensor([-2.0, 0.1]))", "tensor([-2.,  0.])"), ex("hardshrink(tensor([1]))", "E0202")],
    piecewise_linear: true,
    ..activation("hardshrink", &f::HARDSHRINK, softshrink_map::PARAMS, SHRINK)
};

signature!(threshold_map(input: Tensor, threshold: Number, value: Number));

static THRESHOLD_MAP: Op = Op {
    name: "threshold",
    params: threshold_map::PARAMS,
    summary: "Small elements replaced.",
    lower: Lower::Map { function: &f::THRESHOLD, promote: Promote::NoBool },
    saves: &[Save::INPUT],
    grad: Grad::Of(&[|t| t.g.zero_where(t.input.less_equal(t.float(threshold_map::threshold)))]),
    call: CallForm::Internal,
    piecewise_linear: true,
    ..Op::BASE
};

signature!(threshold(input: Tensor, threshold: Number, value: Number, inplace: Ignored = None));

pub static THRESHOLD: Op = Op {
    name: "threshold",
    params: threshold::PARAMS,
    summary: "Elements not above `threshold` become `value`.",
    examples: &[
        ex("threshold(tensor([1.0, 3.0]), 2, 0)", "tensor([0., 3.])"),
        ex("threshold(tensor([true]), 2, 0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if x.dtype().category() == Category::Bool {
            fail!(DTYPE, "bool tensors are not supported");
        }
        let bound = |at: usize| element_of(a.scalar(at).unwrap_or(Scalar::Int(0)), x.dtype());
        e.apply(&THRESHOLD_MAP, args![x, bound(1)?, bound(2)?])
    }),
    grad: Grad::Composed,
    inplace: true,
    expanded: Some(|e, a| expanded::each_place(e, &THRESHOLD, a)),
    ..Op::BASE
};

signature!(glu(input: Tensor, dim: Dim = (-1)));

pub static GLU: Op = Op {
    name: "glu",
    params: glu::PARAMS,
    summary: "The first half along `dim` times the sigmoid of the second.",
    examples: &[
        ex("glu(tensor([2.0, 0.0]))", "tensor([1.])"),
        ex("glu(ones([3]))", "E0201"),
        ex("glu(ones([2]), 4)", "E0209"),
        ex("glu(tensor([1, 2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if !x.dtype().is_float() {
            fail!(DTYPE, "a floating-point tensor is expected, not {}", x.dtype());
        }
        if x.ndim() == 0 {
            fail!(SHAPE, "a tensor of no dimensions has no halves");
        }
        let dim = infer::dim(a.int(glu::dim), x.ndim())?;
        let n = x.shape()[dim];
        if n % 2 != 0 {
            fail!(SHAPE, "dimension {dim} has the odd size {n}; it is split in halves");
        }
        let half = n / 2;
        let left = e.call(&SLICE, args![x, dim, 0, half])?;
        let right = e.call(&SLICE, args![x, dim, half, n])?;
        let gate = e.call(&SIGMOID, args![&right])?;
        e.apply(&MUL, args![&left, &gate])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(prelu(input: Tensor, weight: Tensor));

pub static PRELU: Op = Op {
    name: "prelu",
    params: prelu::PARAMS,
    summary: "Negative elements times a learned slope: one for all, or one for each channel (dimension 1).",
    examples: &[
        ex("prelu(tensor([-2.0, 3.0]), tensor([0.5]))", "tensor([-1.,  3.])"),
        ex("prelu(ones([2, 3]), ones([2]))", "E0201"),
        ex("prelu(ones([2]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, weight) = (a.input(), a.tensor(prelu::weight));
        infer::same_dtype(&[("input", x), ("weight", weight)])?;
        let (shape, n) = (x.shape(), weight.numel());
        if weight.ndim() > 1 {
            fail!(SHAPE, "`weight` must have one dimension, not shape {:?}", weight.shape().as_slice());
        }
        let channels = shape.get(1).copied().unwrap_or(1);
        if n != 1 && (n != channels || shape.is_empty()) {
            fail!(SHAPE, "`weight` has {n} slopes; 1 or {channels} (dimension 1 of `input`) are expected");
        }
        let mut sizes = vec![1usize; shape.len()];
        if n != 1 {
            sizes[1] = n;
        }
        let (x, weight) = (&e.call(&STRAIGHT, args![x, ()])?, e.call(&STRAIGHT, args![weight, ()])?);
        let weight = e.call(&RESHAPE, args![&weight, sizes.as_slice()])?;
        let up = e.call(&GT, args![x, Scalar::Int(0)])?;
        // An infinite element above 0 is no part of the slope's gradient.
        let below = e.call(&WHERE, args![&up, Scalar::Int(0), x])?;
        let sloped = e.mul(&weight, &below)?;
        e.apply(&WHERE, args![&up, x, &sloped])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(rrelu(
    input: Tensor, lower: Float = (1.0 / 8.0), upper: Float = (1.0 / 3.0), training: Bool = false,
    inplace: Ignored = None,
));

pub static RRELU: Op = Op {
    name: "rrelu",
    params: rrelu::PARAMS,
    summary: "Negative elements times a slope drawn from `lower` to `upper` when training, their mean otherwise.",
    examples: &[
        ex("rrelu(tensor([-48.0, 1.0]))", "tensor([-11.,   1.])"),
        ex("rrelu(tensor([1.0]), 2.0, 1.0)", "E0206"),
        ex("rrelu(tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, low, high) = (a.input(), a.float(rrelu::lower), a.float(rrelu::upper));
        if low > high || low.is_nan() || high.is_nan() {
            fail!(VALUE, "`lower` {low} is larger than `upper` {high}");
        }
        if !a.flag(rrelu::training) {
            return e.apply(&LEAKY_RELU, args![x, 0.5 * (low + high)]);
        }
        if !x.dtype().is_float() {
            fail!(DTYPE, "a floating-point tensor is expected, not {}", x.dtype());
        }
        let x = &e.call(&STRAIGHT, args![x, ()])?;
        let slope = distributions::between(e, &x.shape(), x.dtype(), x.device(), low, high)?;
        let sloped = e.mul(x, &slope)?;
        let up = e.call(&GT, args![x, Scalar::Int(0)])?;
        e.apply(&WHERE, args![&up, x, &sloped])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &RELU,
    &RELU6,
    &LEAKY_RELU,
    &ELU,
    &SELU,
    &CELU,
    &GELU,
    &SILU,
    &MISH,
    &SOFTPLUS,
    &HARDTANH,
    &HARDSIGMOID,
    &HARDSWISH,
    &SOFTSIGN,
    &TANHSHRINK,
    &LOGSIGMOID,
    &SOFTSHRINK,
    &HARDSHRINK,
    &THRESHOLD,
    &GLU,
    &PRELU,
    &RRELU,
    &HELD,
    &CELU_MAP,
    &GELU_ERF,
    &GELU_TANH,
    &SOFTSHRINK_MAP,
    &THRESHOLD_MAP,
];
