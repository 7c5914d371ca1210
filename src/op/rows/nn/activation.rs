//! Activations of networks.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{Category, DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::kernel::program::Function;
use crate::op::emit::{Backward, Emit};
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, GradRule, Kind, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::nn::activation_backward::{GELU_ERF_GRAD, GELU_TANH_GRAD, MISH_GRAD, SILU_GRAD, SOFTPLUS_GRAD};
use crate::op::rows::pointwise::arith::{DIV, MUL, SUB, X, element_of, masked, unmasked};
use crate::op::rows::pointwise::compare::{GT, LE, LOGICAL_AND, LOGICAL_OR, LT, WHERE};
use crate::op::rows::pointwise::unary::{ABS, EXP, SIGMOID, TANH};
use crate::op::rows::random::distributions;
use crate::op::rows::shape::expanded;
use crate::op::rows::shape::view::{RESHAPE, SLICE, STRAIGHT};
use crate::op::tensor::Tensor;

const IN: Save = Save::In(0);
const TRAINING: Param = Param::opt("training", Kind::Bool, Default::Bool(false));
/// PyTorch's functions take it; the in-place form is `name_`.
const INPLACE: Param = Param::opt("inplace", Kind::Ignored, Default::None);

/// A map over a float tensor: its numbers after the tensor are the function's.
const fn activation(name: &'static str, function: &'static Function, params: &'static [Param], rule: GradRule) -> Op {
    Op {
        name,
        params,
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[IN],
        grad: Grad::Rule(rule),
        inplace: true,
        ..Op::BASE
    }
}

type Grads = Result<Vec<Option<Tensor>>>;

pub static RELU: Op = Op {
    name: "relu",
    params: &[X, INPLACE],
    summary: "Negative elements become 0; NaN stays.",
    examples: &[ex("relu(tensor([-1.0, 2.0]))", "tensor([0., 2.])"), ex("relu(tensor([true]))", "E0202")],
    lower: Lower::Map { function: &f::RELU, promote: Promote::NoBool },
    saves: &[Save::Out(0)],
    grad: Grad::Rule(|e, v| {
        let flat = e.call(&LE, args![v.output(0), Scalar::Int(0)])?;
        Ok(vec![Some(unmasked(e, &flat, v.g())?)])
    }),
    inplace: true,
    straight: true,
    ..Op::BASE
};

pub static HARDTANH: Op = Op {
    name: "hardtanh",
    params: &[
        X,
        Param::opt("min_val", Kind::Number, Default::Float(-1.0)),
        Param::opt("max_val", Kind::Number, Default::Float(1.0)),
        INPLACE,
    ],
    summary: "Holds elements between `min_val` and `max_val`; on a bound the gradient is 0.",
    examples: &[
        ex("hardtanh(tensor([-2.0, 0.5]))", "tensor([-1.0000,  0.5000])"),
        ex("hardtanh(tensor([1.0]), 2.0, 1.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let bound = |at: usize| a.scalar(at).unwrap_or(Scalar::Int(0));
        held(e, a.tensor(0), bound(1), bound(2))
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

fn held(e: &mut dyn Emit, x: &Tensor, low: Scalar, high: Scalar) -> Result<Vec<Tensor>> {
    let dtype = x.dtype();
    if dtype == DType::Bool {
        fail!(DTYPE, "`bool` is not supported");
    }
    if low.to_f64() > high.to_f64() {
        fail!(VALUE, "`min_val` {low} is larger than `max_val` {high}");
    }
    // What is below every element holds nothing.
    let low = if dtype == DType::U8 && low.to_f64() < 0.0 { Scalar::Int(0) } else { low };
    let (low, high) = (element_of(low, dtype)?, element_of(high, dtype)?);
    e.apply(&HELD, args![x, low, high])
}

/// `hardtanh` with bounds of the tensor's own kind.
static HELD: Op = Op {
    name: "hardtanh",
    params: &[X, Param::new("min_val", Kind::Number), Param::new("max_val", Kind::Number)],
    summary: "Holds elements between two bounds.",
    lower: Lower::Map { function: &f::CLAMP, promote: Promote::NoBool },
    saves: &[IN],
    grad: Grad::Rule(|e, v| {
        let (x, low, high) = (v.input(0), v.args.float(1), v.args.float(2));
        // NaN is not inside.
        let (over, under) = (e.call(&GT, args![x, low])?, e.call(&LT, args![x, high])?);
        let inside = e.call(&LOGICAL_AND, args![&over, &under])?;
        Ok(vec![Some(masked(e, &inside, v.g())?)])
    }),
    call: CallForm::Internal,
    straight: true,
    ..Op::BASE
};

pub static RELU6: Op = Op {
    name: "relu6",
    params: &[X, INPLACE],
    summary: "Holds elements between 0 and 6.",
    examples: &[ex("relu6(tensor([-1.0, 2.0, 8.0]))", "tensor([0., 2., 6.])")],
    lower: Lower::Compose(|e, a| held(e, a.tensor(0), Scalar::Int(0), Scalar::Int(6))),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static LEAKY_RELU: Op = Op {
    summary: "Negative elements times `negative_slope`.",
    examples: &[
        ex("leaky_relu(tensor([-1.0, 2.0]))", "tensor([-0.0100,  2.0000])"),
        ex("leaky_relu(tensor([1]))", "E0202"),
    ],
    straight: true,
    ..activation(
        "leaky_relu",
        &f::LEAKY_RELU,
        &[X, Param::opt("negative_slope", Kind::Float, Default::Float(0.01)), INPLACE],
        |e, v| leak(e, v, v.args.float(1)),
    )
};

/// The gradient of a line with another slope below 0.
fn leak(e: &mut dyn Emit, v: &Backward<'_>, slope: f64) -> Grads {
    let less = e.mul(v.g(), slope)?;
    let up = e.call(&GT, args![v.input(0), Scalar::Int(0)])?;
    Ok(vec![Some(e.call(&WHERE, args![&up, v.g(), &less])?)])
}

/// The gradient of `scale · x` above 0 and `low · (e^(x / width) - 1)` below.
fn exponential(e: &mut dyn Emit, v: &Backward<'_>, scale: f64, low: f64, width: f64) -> Grads {
    let x = v.input(0);
    let stretched = if width == 1.0 { x.clone() } else { e.div(x, width)? };
    let growth = e.call(&EXP, args![&stretched])?;
    let slope = e.mul(&growth, low / width)?;
    let below = e.mul(v.g(), &slope)?;
    let above = if scale == 1.0 { v.g().clone() } else { e.mul(v.g(), scale)? };
    let flat = e.call(&LE, args![x, Scalar::Int(0)])?;
    Ok(vec![Some(e.call(&WHERE, args![&flat, &below, &above])?)])
}

pub static ELU: Op = Op {
    summary: "Negative elements become alpha · (e^x - 1).",
    examples: &[ex("elu(tensor([-1.0, 2.0]))", "tensor([-0.6321,  2.0000])"), ex("elu(tensor([1]))", "E0202")],
    ..activation("elu", &f::ELU, &[X, Param::opt("alpha", Kind::Float, Default::Float(1.0)), INPLACE], |e, v| {
        exponential(e, v, 1.0, v.args.float(1), 1.0)
    })
};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

pub static SELU: Op = Op {
    summary: "The self-normalising form of `elu` (Klambauer et al., 2017).",
    examples: &[ex("selu(tensor([-1.0, 2.0]))", "tensor([-1.1113,  2.1014])"), ex("selu(tensor([1]))", "E0202")],
    ..activation("selu", &f::SELU, &[X, INPLACE], |e, v| exponential(e, v, SELU_SCALE, SELU_SCALE * SELU_ALPHA, 1.0))
};

static CELU_MAP: Op = Op {
    inplace: false,
    call: CallForm::Internal,
    ..activation("celu", &f::CELU, &[X, Param::new("alpha", Kind::Float)], |e, v| {
        exponential(e, v, 1.0, v.args.float(1), v.args.float(1))
    })
};

pub static CELU: Op = Op {
    name: "celu",
    params: &[X, Param::opt("alpha", Kind::Float, Default::Float(1.0)), INPLACE],
    summary: "Negative elements become alpha · (e^(x / alpha) - 1).",
    examples: &[
        ex("celu(tensor([-1.0, 2.0]), 2.0)", "tensor([-0.7869,  2.0000])"),
        ex("celu(tensor([1.0]), 0.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        if a.float(1) == 0.0 {
            fail!(VALUE, "`alpha` must not be 0");
        }
        e.apply(&CELU_MAP, args![a.tensor(0), a.float(1)])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static GELU_ERF: Op = Op {
    inplace: false,
    call: CallForm::Internal,
    ..activation("gelu", &f::GELU_ERF, &[X], |e, v| Ok(vec![Some(e.call(&GELU_ERF_GRAD, args![v.g(), v.input(0)])?)]))
};

static GELU_TANH: Op = Op {
    inplace: false,
    call: CallForm::Internal,
    ..activation("gelu", &f::GELU_TANH, &[X], |e, v| Ok(vec![Some(e.call(&GELU_TANH_GRAD, args![v.g(), v.input(0)])?)]))
};

pub static GELU: Op = Op {
    name: "gelu",
    params: &[X, Param::opt("approximate", Kind::Str(&["none", "tanh"]), Default::Str("none"))],
    summary: "x · Φ(x) with the normal distribution Φ; `approximate: \"tanh\"` is the faster form.",
    examples: &[
        ex("gelu(tensor([-1.0, 2.0]))", "tensor([-0.1587,  1.9545])"),
        ex("gelu(tensor([1]))", "E0202"),
        ex("gelu(tensor([1.0]), \"erf\")", "E0206"),
    ],
    lower: Lower::Compose(|e, a| e.apply(if a.text(1) == "tanh" { &GELU_TANH } else { &GELU_ERF }, args![a.tensor(0)])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static SILU: Op = Op {
    inplace: false,
    aliases: &["swish"],
    summary: "x · sigmoid(x).",
    examples: &[ex("silu(tensor([-1.0, 2.0]))", "tensor([-0.2689,  1.7616])"), ex("silu(tensor([1]))", "E0202")],
    ..activation("silu", &f::SILU, &[X, INPLACE], |e, v| Ok(vec![Some(e.call(&SILU_GRAD, args![v.g(), v.input(0)])?)]))
};

pub static MISH: Op = Op {
    inplace: false,
    summary: "x · tanh(softplus(x)).",
    examples: &[ex("mish(tensor([-1.0, 2.0]))", "tensor([-0.3034,  1.9440])"), ex("mish(tensor([1]))", "E0202")],
    ..activation("mish", &f::MISH, &[X, INPLACE], |e, v| Ok(vec![Some(e.call(&MISH_GRAD, args![v.g(), v.input(0)])?)]))
};

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
        &[
            X,
            Param::opt("beta", Kind::Float, Default::Float(1.0)),
            Param::opt("threshold", Kind::Float, Default::Float(20.0)),
        ],
        |e, v| {
            let (beta, threshold) = (v.args.float(1), v.args.float(2));
            Ok(vec![Some(e.call(&SOFTPLUS_GRAD, args![v.g(), v.input(0), beta, threshold])?)])
        },
    )
};

pub static HARDSIGMOID: Op = Op {
    inplace: false,
    summary: "(x + 3) / 6, held between 0 and 1.",
    examples: &[
        ex("hardsigmoid(tensor([-4.0, 0.0]))", "tensor([0.0000, 0.5000])"),
        ex("hardsigmoid(tensor([1]))", "E0202"),
    ],
    ..activation("hardsigmoid", &f::HARDSIGMOID, &[X, INPLACE], |e, v| {
        let x = v.input(0);
        let (above, below) = (e.call(&GT, args![x, Scalar::Int(-3)])?, e.call(&LT, args![x, Scalar::Int(3)])?);
        let inside = e.call(&LOGICAL_AND, args![&above, &below])?;
        let sixth = e.div(v.g(), 6.0)?;
        Ok(vec![Some(masked(e, &inside, &sixth)?)])
    })
};

pub static HARDSWISH: Op = Op {
    inplace: false,
    summary: "x · hardsigmoid(x).",
    examples: &[
        ex("hardswish(tensor([-4.0, 1.0]))", "tensor([-0.0000, 0.6667])"),
        ex("hardswish(tensor([1]))", "E0202"),
    ],
    ..activation("hardswish", &f::HARDSWISH, &[X, INPLACE], |e, v| {
        let x = v.input(0);
        let third = e.div(x, 3.0)?;
        let slope = e.add(&third, 0.5)?;
        let middle = e.mul(v.g(), &slope)?;
        let low = e.call(&LE, args![x, Scalar::Int(-3)])?;
        let inside = e.call(&LT, args![x, Scalar::Int(3)])?;
        let g = e.call(&WHERE, args![&inside, &middle, v.g()])?;
        Ok(vec![Some(unmasked(e, &low, &g)?)])
    })
};

pub static SOFTSIGN: Op = Op {
    name: "softsign",
    params: &[X],
    summary: "x / (1 + |x|).",
    examples: &[
        ex("softsign(tensor([-1.0, 3.0]))", "tensor([-0.5000,  0.7500])"),
        ex("softsign(tensor([true]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let size = e.call(&ABS, args![a.tensor(0)])?;
        let sum = e.add(&size, Scalar::Int(1))?;
        e.apply(&DIV, args![a.tensor(0), &sum])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static TANHSHRINK: Op = Op {
    name: "tanhshrink",
    params: &[X],
    summary: "x - tanh(x).",
    examples: &[
        ex("tanhshrink(tensor([0.0, 2.0]))", "tensor([0.0000, 1.0360])"),
        ex("tanhshrink(tensor([true]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        if x.dtype() == DType::Bool {
            fail!(DTYPE, "`bool` is not supported");
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
    ..activation("logsigmoid", &f::LOGSIGMOID, &[X], |e, v| {
        let negative = e.neg(v.input(0))?;
        let slope = e.call(&SIGMOID, args![&negative])?;
        Ok(vec![Some(e.mul(v.g(), &slope)?)])
    })
};

/// The gradient of what is flat between -lambd and lambd.
const SHRINK: GradRule = |e, v| {
    let (x, lambd) = (v.input(0), v.args.float(1));
    // NaN is not outside.
    let (above, below) = (e.call(&GT, args![x, lambd])?, e.call(&LT, args![x, -lambd])?);
    let outside = e.call(&LOGICAL_OR, args![&above, &below])?;
    Ok(vec![Some(masked(e, &outside, v.g())?)])
};

const LAMBD: Param = Param::opt("lambd", Kind::Float, Default::Float(0.5));

static SOFTSHRINK_MAP: Op = Op {
    inplace: false,
    straight: true,
    call: CallForm::Internal,
    ..activation("softshrink", &f::SOFTSHRINK, &[X, LAMBD], SHRINK)
};

pub static SOFTSHRINK: Op = Op {
    name: "softshrink",
    params: &[X, LAMBD],
    summary: "Moves elements towards 0 by `lambd`; those within it become 0.",
    examples: &[
        ex("softshrink(tensor([-2.0, 0.1]))", "tensor([-1.5000,  0.0000])"),
        ex("softshrink(tensor([1.0]), -1.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        if a.float(1) < 0.0 {
            fail!(VALUE, "`lambd` must not be negative, but is {}", a.float(1));
        }
        e.apply(&SOFTSHRINK_MAP, args![a.tensor(0), a.float(1)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static HARDSHRINK: Op = Op {
    inplace: false,
    summary: "Elements within `lambd` of 0 become 0.",
    examples: &[ex("hardshrink(tensor([-2.0, 0.1]))", "tensor([-2.,  0.])"), ex("hardshrink(tensor([1]))", "E0202")],
    straight: true,
    ..activation("hardshrink", &f::HARDSHRINK, &[X, LAMBD], SHRINK)
};

static THRESHOLD_MAP: Op = Op {
    name: "threshold",
    params: &[X, Param::new("threshold", Kind::Number), Param::new("value", Kind::Number)],
    summary: "Small elements replaced.",
    lower: Lower::Map { function: &f::THRESHOLD, promote: Promote::NoBool },
    saves: &[IN],
    grad: Grad::Rule(|e, v| {
        let flat = e.call(&LE, args![v.input(0), v.args.float(1)])?;
        Ok(vec![Some(unmasked(e, &flat, v.g())?)])
    }),
    call: CallForm::Internal,
    straight: true,
    ..Op::BASE
};

pub static THRESHOLD: Op = Op {
    name: "threshold",
    params: &[X, Param::new("threshold", Kind::Number), Param::new("value", Kind::Number), INPLACE],
    summary: "Elements not above `threshold` become `value`.",
    examples: &[
        ex("threshold(tensor([1.0, 3.0]), 2, 0)", "tensor([0., 3.])"),
        ex("threshold(tensor([true]), 2, 0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        if x.dtype().category() == Category::Bool {
            fail!(DTYPE, "`bool` is not supported");
        }
        let bound = |at: usize| element_of(a.scalar(at).unwrap_or(Scalar::Int(0)), x.dtype());
        e.apply(&THRESHOLD_MAP, args![x, bound(1)?, bound(2)?])
    }),
    grad: Grad::Composed,
    inplace: true,
    expanded: Some(|e, a| expanded::each_place(e, &THRESHOLD, a)),
    ..Op::BASE
};

pub static GLU: Op = Op {
    name: "glu",
    params: &[X, Param::opt("dim", Kind::Dim, Default::Int(-1))],
    summary: "The first half along `dim` times the sigmoid of the second.",
    examples: &[
        ex("glu(tensor([2.0, 0.0]))", "tensor([1.])"),
        ex("glu(ones([3]))", "E0201"),
        ex("glu(ones([2]), 4)", "E0209"),
        ex("glu(tensor([1, 2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        if !x.dtype().is_float() {
            fail!(DTYPE, "a floating-point tensor is wanted, not {}", x.dtype());
        }
        if x.ndim() == 0 {
            fail!(SHAPE, "a tensor of no dimensions has no halves");
        }
        let dim = infer::dim(a.int(1), x.ndim())?;
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

pub static PRELU: Op = Op {
    name: "prelu",
    params: &[X, Param::new("weight", Kind::Tensor)],
    summary: "Negative elements times a learned slope: one for all, or one for each channel (dimension 1).",
    examples: &[
        ex("prelu(tensor([-2.0, 3.0]), tensor([0.5]))", "tensor([-1.,  3.])"),
        ex("prelu(ones([2, 3]), ones([2]))", "E0201"),
        ex("prelu(ones([2]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, weight) = (a.tensor(0), a.tensor(1));
        infer::same_dtype(&[("input", x), ("weight", weight)])?;
        let (shape, n) = (x.shape(), weight.numel());
        if weight.ndim() > 1 {
            fail!(SHAPE, "`weight` must have one dimension, not shape {:?}", weight.shape().as_slice());
        }
        let channels = shape.get(1).copied().unwrap_or(1);
        if n != 1 && (n != channels || shape.is_empty()) {
            fail!(SHAPE, "`weight` has {n} slopes; 1 or {channels} (dimension 1 of `input`) are wanted");
        }
        let mut sizes = vec![1usize; shape.len()];
        if n != 1 {
            sizes[1] = n;
        }
        let (x, weight) = (&e.call(&STRAIGHT, args![x, ()])?, e.call(&STRAIGHT, args![weight, ()])?);
        let weight = e.call(&RESHAPE, args![&weight, sizes.as_slice()])?;
        let sloped = e.mul(&weight, x)?;
        let up = e.call(&GT, args![x, Scalar::Int(0)])?;
        e.apply(&WHERE, args![&up, x, &sloped])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static RRELU: Op = Op {
    name: "rrelu",
    params: &[
        X,
        Param::opt("lower", Kind::Float, Default::Float(1.0 / 8.0)),
        Param::opt("upper", Kind::Float, Default::Float(1.0 / 3.0)),
        TRAINING,
        INPLACE,
    ],
    summary: "Negative elements times a slope drawn from `lower` to `upper` when training, their mean otherwise.",
    examples: &[
        ex("rrelu(tensor([-48.0, 1.0]))", "tensor([-11.,   1.])"),
        ex("rrelu(tensor([1.0]), 2.0, 1.0)", "E0206"),
        ex("rrelu(tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, low, high) = (a.tensor(0), a.float(1), a.float(2));
        if low > high || low.is_nan() || high.is_nan() {
            fail!(VALUE, "`lower` {low} is larger than `upper` {high}");
        }
        if !a.flag(3) {
            return e.apply(&LEAKY_RELU, args![x, 0.5 * (low + high)]);
        }
        if !x.dtype().is_float() {
            fail!(DTYPE, "a floating-point tensor is wanted, not {}", x.dtype());
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
