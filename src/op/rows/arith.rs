//! Arithmetic, comparisons, powers: the element-wise rows with two operands, and the plain unary ones.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::kernel::cpu::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Promote, Save, ex};
use crate::op::tensor::Tensor;

const INPUT: Param = Param::new("input", Kind::Operand);
const OTHER: Param = Param::new("other", Kind::Operand);
const ALPHA: Param = Param::opt("alpha", Kind::Number, Default::Int(1));
const X: Param = Param::new("input", Kind::Tensor);

/// `x + y` without `alpha`: what operators and rules use.
pub static ADD: Op = Op {
    name: "add",
    operator: "+",
    params: &[INPUT, OTHER],
    summary: "Adds element-wise.",
    examples: &[ex("tensor([1.0, 2.0]) + 1", "tensor([2., 3.])")],
    lower: Lower::Map { function: &f::ADD, promote: Promote::Same },
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone()), Some(v.g().clone())])),
    inplace: true,
    call: CallForm::Internal,
    oracle: "torch.add(a, b)",
    ..Op::BASE
};

pub static SUB: Op = Op {
    name: "sub",
    operator: "-",
    params: &[INPUT, OTHER],
    summary: "Subtracts element-wise.",
    examples: &[ex("tensor([1.0, 2.0]) - 1", "tensor([0., 1.])")],
    lower: Lower::Map { function: &f::SUB, promote: Promote::NoBool },
    grad: Grad::Rule(|e, v| {
        let right = if v.needs(1) { Some(e.neg(v.g())?) } else { None };
        Ok(vec![Some(v.g().clone()), right])
    }),
    inplace: true,
    call: CallForm::Internal,
    oracle: "torch.sub(a, b)",
    ..Op::BASE
};

pub static MUL: Op = Op {
    name: "mul",
    aliases: &["multiply"],
    operator: "*",
    params: &[INPUT, OTHER],
    summary: "Multiplies element-wise.",
    examples: &[ex("tensor([1.0, 2.0]) * tensor([3.0, 4.0])", "tensor([3., 8.])")],
    lower: Lower::Map { function: &f::MUL, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let left = if v.needs(0) { Some(e.mul(v.g(), v.operand(1))?) } else { None };
        let right = if v.needs(1) { Some(e.mul(v.g(), v.operand(0))?) } else { None };
        Ok(vec![left, right])
    }),
    inplace: true,
    oracle: "torch.mul(a, b)",
    ..Op::BASE
};

/// True division; `div` with a rounding mode is composed from the rows below.
pub static DIV: Op = Op {
    name: "div",
    operator: "/",
    params: &[INPUT, OTHER],
    summary: "Divides element-wise; integers give floats.",
    examples: &[ex("tensor([1, 3]) / 2", "tensor([0.5000, 1.5000])")],
    lower: Lower::Map { function: &f::DIV, promote: Promote::Float },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let left = if v.needs(0) { Some(e.div(v.g(), v.operand(1))?) } else { None };
        let right = if v.needs(1) {
            // -g * (a / b) / b
            let quotient = e.call(&DIV, Args(smallvec::smallvec![v.operand(0), v.operand(1)]))?;
            let scaled = e.mul(v.g(), &quotient)?;
            let divided = e.div(&scaled, v.operand(1))?;
            Some(e.neg(&divided)?)
        } else {
            None
        };
        Ok(vec![left, right])
    }),
    inplace: true,
    call: CallForm::Internal,
    oracle: "torch.div(a, b)",
    ..Op::BASE
};

pub static NEG: Op = Op {
    name: "neg",
    aliases: &["negative"],
    operator: "-",
    params: &[X],
    summary: "Changes the sign of every element.",
    examples: &[ex("-tensor([1.0, -2.0])", "tensor([-1.,  2.])"), ex("neg(tensor([true]))", "E0202")],
    lower: Lower::Map { function: &f::NEG, promote: Promote::NoBool },
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.neg(v.g())?)])),
    inplace: true,
    oracle: "torch.neg(a)",
    ..Op::BASE
};

pub static EXP: Op = Op {
    name: "exp",
    params: &[X],
    summary: "Raises e to the power of every element.",
    examples: &[ex("tensor([0.0]).exp()", "tensor([1.])")],
    lower: Lower::Map { function: &f::EXP, promote: Promote::Float },
    saves: &[Save::Out(0)],
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.mul(v.g(), v.output(0))?)])),
    inplace: true,
    oracle: "torch.exp(a)",
    ..Op::BASE
};

/// Adds a multiple: PyTorch's full signature.
pub static ADD_ALPHA: Op = Op {
    name: "add",
    params: &[INPUT, OTHER, ALPHA],
    summary: "Adds `alpha * other` element-wise, with broadcasting and type promotion.",
    examples: &[
        ex("tensor([1.0, 2.0]).add(tensor([3.0, 4.0]), #{alpha: 2})", "tensor([ 7., 10.])"),
        ex("tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| with_alpha(e, &ADD, a)),
    grad: Grad::Composed,
    inplace: true,
    oracle: "torch.add(a, b, alpha=2)",
    ..Op::BASE
};

pub static SUB_ALPHA: Op = Op {
    name: "sub",
    aliases: &["subtract"],
    params: &[INPUT, OTHER, ALPHA],
    summary: "Subtracts `alpha * other` element-wise, with broadcasting and type promotion.",
    examples: &[ex("tensor([5.0]).sub(2)", "tensor([3.])")],
    lower: Lower::Compose(|e, a| with_alpha(e, &SUB, a)),
    grad: Grad::Composed,
    inplace: true,
    oracle: "torch.sub(a, b, alpha=2)",
    ..Op::BASE
};

fn with_alpha(e: &mut dyn Emit, op: &'static Op, a: &Args) -> Result<Vec<Tensor>> {
    let (x, mut y) = (a.get(0).clone(), a.get(1).clone());
    let alpha = a.scalar(2).unwrap_or(Scalar::Int(1));
    if alpha.to_f64() != 1.0 {
        y = Arg::Tensor(e.call(&MUL, args![y, alpha])?);
    }
    e.apply(op, args![x, y])
}

/// Conversion to another dtype; the same tensor when it has it already.
pub static CAST: Op = Op {
    name: "cast",
    params: &[X, Param::new("dtype", Kind::DType)],
    summary: "Converts every element to another dtype.",
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(0);
        let dtype = a.dtype(1).unwrap_or(x.dtype());
        let out = e.empty(&x.shape(), dtype, x.device())?;
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.cast(v.g(), v.meta(0).dtype)?)])),
    call: CallForm::Internal,
    ..Op::BASE
};

/// A copy on another device, converted on the way.
pub static MOVE: Op = Op {
    name: "to",
    params: &[X, Param::new("device", Kind::Device), Param::new("dtype", Kind::DType)],
    summary: "Copies a tensor to another device.",
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(0);
        let (device, dtype) = (a.device(1).unwrap_or(x.device()), a.dtype(2).unwrap_or(x.dtype()));
        let out = e.empty(&x.shape(), dtype, device)?;
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|e, v| {
        let (device, dtype) = (v.meta(0).device, v.meta(0).dtype);
        Ok(vec![Some(e.call(&MOVE, args![v.g(), device, dtype])?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `x.copy_(y)`.
pub static COPY: Op = Op {
    name: "copy",
    params: &[X, Param::new("src", Kind::Operand), Param::opt("non_blocking", Kind::Bool, Default::Bool(false))],
    summary: "Copies the elements of `src` into the tensor, converted to its dtype and broadcast to its shape.",
    lower: Lower::Map { function: &f::ADD, promote: Promote::Copy },
    grad: Grad::Rule(|_, v| Ok(vec![None, Some(v.g().clone())])),
    inplace: true,
    call: CallForm::InPlace,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&ADD, &SUB, &MUL, &DIV, &NEG, &EXP, &ADD_ALPHA, &SUB_ALPHA, &CAST, &MOVE, &COPY];
