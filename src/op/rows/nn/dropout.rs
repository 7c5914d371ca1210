//! Dropout: elements or whole channels set to 0 at random while training.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::base::layout::{self, Shape};
use crate::fail;
use crate::kernel::program::Draw;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, Source, ex};
use crate::op::rows::pointwise::compare::{GE, WHERE};
use crate::op::tensor::Tensor;
use crate::signature;

/// True with probability `1 - p`.
fn keep(e: &mut dyn Emit, x: &Tensor, shape: &[usize], p: f64) -> Result<Tensor> {
    let (seed, offset) = e.draw(layout::numel(shape).unwrap_or(0) as u64);
    let source = Source::Random { draw: Draw::Uniform, seed, offset };
    let unit = e.source(source, shape, crate::base::dtype::DType::F32, x.device())?;
    e.call(&GE, args![&unit, p])
}

signature!(drop(input: Tensor, mask: Tensor, scale: Float));

/// `x · mask · scale`; only the mask is kept for the gradient.
static DROP: Op = Op {
    name: "dropout",
    params: drop::PARAMS,
    summary: "Keeps what the mask says, scaled.",
    lower: Lower::Steps(|e, a| {
        let kept = e.mul(a.input(), a.tensor(drop::mask))?;
        Ok(vec![e.mul(&kept, a.float(drop::scale))?])
    }),
    saves: &[Save::In(drop::mask)],
    grad: Grad::Rule(|e, v| {
        Ok(vec![Some(e.call(&DROP, args![v.g(), v.saved(drop::mask), v.args.float(drop::scale)])?), None])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

fn check(a: &Args) -> Result<f64> {
    let p = a.float(dropout::p);
    if !(0.0..=1.0).contains(&p) {
        fail!(VALUE, "a probability lies between 0 and 1; {p} does not");
    }
    Ok(p)
}

/// One value for each channel (dimensions 0 and 1), or for each channel of one sample.
fn channels(x: &Tensor, batched: bool) -> Result<Shape> {
    let mut shape = x.shape();
    let kept = if batched { 2 } else { 1 };
    if shape.len() < kept {
        fail!(SHAPE, "dimensions of samples and channels are expected, not shape {:?}", shape.as_slice());
    }
    shape.iter_mut().skip(kept).for_each(|n| *n = 1);
    Ok(shape)
}

fn dropped(e: &mut dyn Emit, a: &Args, shape: &[usize]) -> Result<Vec<Tensor>> {
    let (x, p) = (a.input(), check(a)?);
    if !a.flag(dropout::training) || p == 0.0 {
        return Ok(vec![x.clone()]);
    }
    if !x.dtype().is_inexact() {
        fail!(DTYPE, "a floating-point tensor is expected, not {}", x.dtype());
    }
    let mask = keep(e, x, shape, p)?;
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    e.apply(&DROP, args![x, &mask, scale])
}

signature!(dropout(input: Tensor, p: Float = 0.5, training: Bool = true, inplace: Ignored = None));

pub static DROPOUT: Op = Op {
    name: "dropout",
    params: dropout::PARAMS,
    summary: "Sets elements to 0 with probability `p` while training, and scales the others by 1 / (1 - p).",
    examples: &[
        ex("dropout(ones([2]), 1.0)", "tensor([0., 0.])"),
        ex("dropout(ones([2]), 0.5, false)", "tensor([1., 1.])"),
        ex("dropout(ones([2]), 2.0)", "E0206"),
        ex("dropout(tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let shape = a.input().shape();
        dropped(e, a, &shape)
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// Whole channels: name, how many dimensions an unbatched input has.
macro_rules! by_channel {
    ($($NAME:ident $name:literal $unbatched:expr, $summary:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: dropout::PARAMS,
            summary: $summary,
            examples: &[
                ex(concat!($name, "(ones([1, 1, 1]), 0.5, false)"), "tensor([[[1.]]])"),
                ex(concat!($name, "(ones([1, 1, 1]), -1.0)"), "E0206"),
            ],
            lower: Lower::Compose(|e, a| {
                let x = a.input();
                let shape = channels(x, $unbatched != x.ndim())?;
                dropped(e, a, &shape)
            }),
            grad: Grad::Composed,
    inplace: true,
            ..Op::BASE
        };)*
    };
}

by_channel! {
    DROPOUT1D "dropout1d" 2usize, "Sets whole channels of [N, C, L] (or [C, L]) to 0 with probability `p` while training.";
    DROPOUT2D "dropout2d" 3usize, "Sets whole channels of [N, C, H, W] (or [C, H, W]) to 0 with probability `p` while training.";
    DROPOUT3D "dropout3d" 4usize, "Sets whole channels of [N, C, D, H, W] (or [C, D, H, W]) to 0 with probability `p` while training.";
    FEATURE_DROPOUT "feature_dropout" usize::MAX, "Sets whole channels (dimension 1) to 0 with probability `p` while training.";
}

/// What is dropped takes the value that `selu` has far below 0.
fn alpha(e: &mut dyn Emit, a: &Args, shape: &[usize]) -> Result<Vec<Tensor>> {
    let (x, p) = (a.input(), check(a)?);
    if !a.flag(alpha_dropout::training) || p == 0.0 {
        return Ok(vec![x.clone()]);
    }
    if !x.dtype().is_inexact() {
        fail!(DTYPE, "a floating-point tensor is expected, not {}", x.dtype());
    }
    if p == 1.0 {
        return Ok(vec![e.mul(x, Scalar::Int(0))?]);
    }
    const LOW: f64 = -1.758_099_340_847_376_6;
    let scale = 1.0 / ((LOW * LOW * p + 1.0) * (1.0 - p)).sqrt();
    let mask = keep(e, x, shape, p)?;
    let chosen = e.call(&WHERE, args![&mask, x, LOW])?;
    let scaled = e.mul(&chosen, scale)?;
    Ok(vec![e.add(&scaled, -scale * p * LOW)?])
}

signature!(alpha_dropout(input: Tensor, p: Float = 0.5, training: Bool = false, inplace: Ignored = None));

pub static ALPHA_DROPOUT: Op = Op {
    name: "alpha_dropout",
    params: alpha_dropout::PARAMS,
    summary: "Dropout that keeps the mean and variance of `selu` networks (Klambauer et al., 2017).",
    examples: &[
        ex("alpha_dropout(ones([2]), 0.5, false)", "tensor([1., 1.])"),
        ex("alpha_dropout(ones([2]), 2.0, true)", "E0206"),
        ex("alpha_dropout(tensor([1]), 0.5, true)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let shape = a.input().shape();
        alpha(e, a, &shape)
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static FEATURE_ALPHA_DROPOUT: Op = Op {
    name: "feature_alpha_dropout",
    params: alpha_dropout::PARAMS,
    summary: "`alpha_dropout` of whole channels (dimension 1).",
    examples: &[
        ex("feature_alpha_dropout(ones([1, 2]), 0.5, false)", "tensor([[1., 1.]])"),
        ex("feature_alpha_dropout(ones([1, 2]), 2.0, true)", "E0206"),
        ex("feature_alpha_dropout(ones([2]), 0.5, true)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let shape = if a.flag(alpha_dropout::training) { channels(a.input(), true)? } else { a.input().shape() };
        alpha(e, a, &shape)
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&DROPOUT, &DROPOUT1D, &DROPOUT2D, &DROPOUT3D, &FEATURE_DROPOUT, &ALPHA_DROPOUT, &FEATURE_ALPHA_DROPOUT, &DROP];
