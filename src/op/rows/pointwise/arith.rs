//! The four operations, divisions and remainders, powers, conversion and copying.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{Category, DType, Scalar};
use crate::base::layout;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit};
use crate::op::infer::{self, Operand};
use crate::op::row::{CallForm, Grad, GradRule, Lower, Op, Promote, Save, ex};
use crate::op::rows::pointwise::{compare, power};
use crate::op::rows::signatures::{binary, unary};
use crate::op::tensor::Tensor;
use crate::signature;

/// The gradient of a step function: zero for every operand that needs one.
pub const ZERO: GradRule = |e, v| {
    let mut grads = Vec::new();
    for slot in 0..v.needs.len() {
        grads.push(if v.needs_slot(slot) { Some(e.zeros_like(v.slot_meta(slot))?) } else { None });
    }
    Ok(grads)
};

/// One gradient for each of two operands, computed only if it is needed.
pub fn pair(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    left: impl FnOnce(&mut dyn Emit) -> Result<Tensor>,
    right: impl FnOnce(&mut dyn Emit) -> Result<Tensor>,
) -> Result<Vec<Option<Tensor>>> {
    let left = if v.needs(binary::input) { Some(left(e)?) } else { None };
    let right = if v.needs(binary::other) { Some(right(e)?) } else { None };
    Ok(vec![left, right])
}

/// Two operands that may both be numbers or tensors.
pub fn two(a: Arg, b: Arg) -> Args {
    Args(smallvec::smallvec![a, b])
}

/// `x + y` without `alpha`: what operators and rules use.
pub static ADD: Op = Op {
    name: "add",
    operator: "+",
    params: binary::PARAMS,
    summary: "Adds element-wise.",
    examples: &[ex("tensor([1.0, 2.0]) + 1", "tensor([2., 3.])")],
    lower: Lower::Map { function: &f::ADD, promote: Promote::Same },
    grad: Grad::Of(&[|t| t.g, |t| t.g]),
    inplace: true,
    call: CallForm::Internal,
    ..Op::BASE
};

pub static SUB: Op = Op {
    name: "sub",
    operator: "-",
    params: binary::PARAMS,
    summary: "Subtracts element-wise.",
    examples: &[ex("tensor([1.0, 2.0]) - 1", "tensor([0., 1.])"), ex("tensor([true]) - tensor([true])", "E0202")],
    lower: Lower::Map { function: &f::SUB, promote: Promote::Difference },
    grad: Grad::Of(&[|t| t.g, |t| -t.g]),
    inplace: true,
    call: CallForm::Internal,
    ..Op::BASE
};

pub static MUL: Op = Op {
    name: "mul",
    aliases: &["multiply"],
    operator: "*",
    params: binary::PARAMS,
    summary: "Multiplies element-wise.",
    examples: &[
        ex("tensor([1.0, 2.0]) * tensor([3.0, 4.0])", "tensor([3., 8.])"),
        ex("tensor([1.0, 2.0]) * tensor([1.0, 2.0, 3.0])", "E0201"),
    ],
    lower: Lower::Map { function: &f::MUL, promote: Promote::Scaled },
    saves: &[Save::For(binary::input, binary::other), Save::For(binary::other, binary::input)],
    grad: Grad::Of(&[|t| t.g * t.other, |t| t.g * t.input]),
    inplace: true,
    ..Op::BASE
};

/// True division; `div` with a rounding mode is composed from the rows below.
pub static DIV: Op = Op {
    name: "div",
    operator: "/",
    params: binary::PARAMS,
    summary: "Divides element-wise; integers give floats.",
    examples: &[
        ex("tensor([1, 3]) / 2", "tensor([0.5000, 1.5000])"),
        ex("tensor([64.0], #{dtype: \"f16\"}) / tensor(1e5)", "tensor([0.0006], dtype=f16)"),
    ],
    lower: Lower::Map { function: &f::DIV, promote: Promote::ScaledFloat },
    saves: &[Save::For(binary::input, binary::other), Save::In(binary::other)],
    grad: Grad::Of(&[|t| t.g / t.other, |t| -(t.g * (t.input / t.other) / t.other)]),
    inplace: true,
    call: CallForm::Internal,
    ..Op::BASE
};

pub static NEG: Op = Op {
    name: "neg",
    aliases: &["negative"],
    operator: "-",
    params: unary::PARAMS,
    summary: "Changes the sign of every element.",
    examples: &[ex("-tensor([1.0, -2.0])", "tensor([-1.,  2.])"), ex("neg(tensor([true]))", "E0202")],
    lower: Lower::Map { function: &f::NEG, promote: Promote::NoBool },
    grad: Grad::Of(&[|t| -t.g]),
    inplace: true,
    ..Op::BASE
};

signature!(add_alpha(input: Operand, other: Operand, alpha: Number = 1));

/// Adds a multiple: PyTorch's full signature.
pub static ADD_ALPHA: Op = Op {
    name: "add",
    params: add_alpha::PARAMS,
    summary: "Adds `alpha * other` element-wise, with broadcasting and type promotion.",
    examples: &[
        ex("tensor([1.0, 2.0]).add(tensor([3.0, 4.0]), #{alpha: 2})", "tensor([ 7., 10.])"),
        ex("tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])", "E0201"),
        ex("tensor([1]).add(1, #{alpha: 0.5})", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        with_alpha(e, &ADD, a.get(add_alpha::input).clone(), a.get(add_alpha::other).clone(), a)
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static SUB_ALPHA: Op = Op {
    name: "sub",
    aliases: &["subtract"],
    params: add_alpha::PARAMS,
    summary: "Subtracts `alpha * other` element-wise, with broadcasting and type promotion.",
    examples: &[ex("tensor([5.0]).sub(2)", "tensor([3.])"), ex("tensor([1]).sub(1, #{alpha: 0.5})", "E0202")],
    lower: Lower::Compose(|e, a| {
        with_alpha(e, &SUB, a.get(add_alpha::input).clone(), a.get(add_alpha::other).clone(), a)
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(rsub(input: Tensor, other: Operand, alpha: Number = 1));

pub static RSUB: Op = Op {
    name: "rsub",
    params: rsub::PARAMS,
    summary: "Subtracts the other way round: `other - alpha * input`.",
    examples: &[ex("tensor([5.0]).rsub(2)", "tensor([-3.])"), ex("tensor([true]).rsub(true)", "E0202")],
    lower: Lower::Compose(|e, a| with_alpha(e, &SUB, a.get(rsub::other).clone(), a.get(rsub::input).clone(), a)),
    grad: Grad::Composed,
    ..Op::BASE
};

fn with_alpha(e: &mut dyn Emit, op: &'static Op, x: Arg, y: Arg, a: &Args) -> Result<Vec<Tensor>> {
    let alpha = a.scalar(add_alpha::alpha).unwrap_or(Scalar::Int(1));
    if alpha == Scalar::Int(1) {
        return e.apply(op, two(x, y));
    }
    let result = common(e, &[&x, &y]);
    let refused = match alpha.category() {
        Category::Float | Category::Complex => result.is_integral(),
        Category::Bool => result != DType::Bool,
        Category::Int => false,
    };
    if refused {
        fail!(DTYPE, "`alpha` is {alpha}, but the operands are {result}");
    }
    let alpha = element_of(alpha, result)?;
    let scaled = match &y {
        // In the dtype of the result, as the sum.
        Arg::Tensor(tensor) => {
            let tensor = e.cast(tensor, result)?;
            Arg::Tensor(e.call(&MUL, two(Arg::Tensor(tensor), alpha.into()))?)
        }
        // A number stays one: it must not count as a tensor in promotion.
        _ => match (Args(smallvec::smallvec![y]).scalar(0), alpha) {
            (Some(Scalar::Float(y)), alpha) => Scalar::Float(y * alpha.to_f64()).into(),
            (Some(Scalar::Bool(y)), Scalar::Bool(alpha)) => Scalar::Bool(y & alpha).into(),
            (Some(y), Scalar::Float(alpha)) => Scalar::Float(y.to_f64() * alpha).into(),
            (Some(y), alpha) => Scalar::Int(y.to_i64().wrapping_mul(alpha.to_i64())).into(),
            (None, _) => Arg::None,
        },
    };
    e.apply(op, two(x, scaled))
}

signature!(divide(input: Operand, other: Operand, rounding_mode: Str(&["trunc", "floor"]) = None));

/// Division with PyTorch's rounding modes.
pub static DIVIDE: Op = Op {
    name: "div",
    aliases: &["divide"],
    params: divide::PARAMS,
    summary: "Divides element-wise; `rounding_mode` rounds towards zero (`trunc`) or down (`floor`).",
    examples: &[
        ex("tensor([-7, 7]).div(2, #{rounding_mode: \"floor\"})", "tensor([-4,  3])"),
        ex("tensor([-7, 7]).div(2, #{rounding_mode: \"trunc\"})", "tensor([-3,  3])"),
        ex("tensor([7]).div(2, #{rounding_mode: \"round\"})", "E0206"),
        ex("tensor([7]).div(0, #{rounding_mode: \"floor\"})", "E0214"),
    ],
    lower: Lower::Compose(|e, a| {
        let op = match a.text(divide::rounding_mode) {
            "floor" => &FLOOR_DIVIDE,
            "trunc" if matches!(common(e, &[a.get(divide::input), a.get(divide::other)]), DType::F16 | DType::BF16) => {
                // The quotient is rounded to 16 bits before its fraction goes, as in PyTorch.
                let quotient = e.call(&DIV, two(a.get(divide::input).clone(), a.get(divide::other).clone()))?;
                return e.apply(&crate::op::rows::pointwise::unary::TRUNC, args![&quotient]);
            }
            "trunc" => &TRUNC_DIVIDE,
            _ => &DIV,
        };
        e.apply(op, two(a.get(divide::input).clone(), a.get(divide::other).clone()))
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static TRUE_DIVIDE: Op = Op {
    name: "true_divide",
    params: binary::PARAMS,
    summary: "Divides element-wise; integers give floats.",
    examples: &[ex("true_divide(tensor([1, 3]), 2)", "tensor([0.5000, 1.5000])")],
    lower: Lower::Compose(|e, a| e.apply(&DIV, two(a.get(binary::input).clone(), a.get(binary::other).clone()))),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static FLOOR_DIVIDE: Op = Op {
    name: "floor_divide",
    params: binary::PARAMS,
    summary: "Divides element-wise and rounds down; integers stay integers.",
    details: "An integer division by a tensor that holds zero is a late error; by the number 0, an error at once.",
    examples: &[
        ex("floor_divide(tensor([-7, 7]), 2)", "tensor([-4,  3])"),
        ex("floor_divide(tensor([7]), 0)", "E0214"),
    ],
    lower: Lower::Map { function: &f::FLOOR_DIV, promote: Promote::ScaledNoBool },
    grad: Grad::Rule(ZERO),
    inplace: true,
    ..Op::BASE
};

pub static TRUNC_DIVIDE: Op = Op {
    name: "div",
    params: binary::PARAMS,
    summary: "Divides element-wise and rounds towards zero.",
    lower: Lower::Map { function: &f::TRUNC_DIV, promote: Promote::ScaledNoBool },
    grad: Grad::Rule(ZERO),
    inplace: true,
    call: CallForm::Internal,
    ..Op::BASE
};

pub static REMAINDER: Op = Op {
    name: "remainder",
    operator: "%",
    params: binary::PARAMS,
    summary: "The remainder of a division rounded down: it has the divisor's sign, as in Python.",
    examples: &[ex("tensor([-7, 7]) % 3", "tensor([2, 1])"), ex("tensor([7]) % 0", "E0214")],
    lower: Lower::Map { function: &f::REMAINDER, promote: Promote::NoBool },
    saves: &[Save::For(binary::input, binary::other), Save::For(binary::other, binary::other)],
    grad: Grad::Of(&[|t| t.g, |t| -(t.g * t.input.with(&FLOOR_DIVIDE, t.other))]),
    inplace: true,
    ..Op::BASE
};

signature!(fmod(input: Tensor, other: Operand));

pub static FMOD: Op = Op {
    name: "fmod",
    params: fmod::PARAMS,
    summary: "The remainder of a division rounded towards zero: it has the dividend's sign, as in C.",
    examples: &[ex("fmod(tensor([-7, 7]), 3)", "tensor([-1,  1])"), ex("fmod(tensor([7]), 0)", "E0214")],
    lower: Lower::Map { function: &f::FMOD, promote: Promote::NoBool },
    saves: &[Save::For(fmod::input, fmod::other), Save::For(fmod::other, fmod::other)],
    grad: Grad::Of(&[|t| t.g, |t| -(t.g * t.input.with(&TRUNC_DIVIDE, t.other))]),
    inplace: true,
    ..Op::BASE
};

signature!(pow(input: Operand, exponent: Operand));

pub static POW: Op = Op {
    name: "pow",
    operator: "**",
    params: pow::PARAMS,
    summary: "Raises to a power, element-wise; base and exponent are tensors or numbers.",
    examples: &[
        ex("tensor([1.0, 2.0, 3.0]) ** 2", "tensor([1., 4., 9.])"),
        ex("2 ** tensor([1, 2, 3])", "tensor([2, 4, 8])"),
        ex("tensor([2, 4]) ** -1", "E0206"),
        ex("tensor([true]) ** tensor([true])", "E0202"),
    ],
    lower: Lower::Compose(power::pow),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(cast(input: Tensor, dtype: DType));

/// Conversion to another dtype; the same tensor when it has it already.
pub static CAST: Op = Op {
    name: "cast",
    params: cast::PARAMS,
    summary: "Converts every element to another dtype.",
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let dtype = a.dtype(cast::dtype).unwrap_or(x.dtype());
        let mut out = e.empty(&x.shape(), dtype, x.device())?;
        let view = x.view();
        if !view.layout.is_contiguous() {
            // In memory as `x` lies, as the result of any map.
            out = e.alias(&out, layout::of_operands(view.shape(), [&view.layout].into_iter()));
        }
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.cast_gradient(v.g(), v.meta(cast::input).dtype)?)])),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(move_op(input: Tensor, device: Device, dtype: DType));

/// A copy on another device, converted on the way.
pub static MOVE: Op = Op {
    name: "to",
    params: move_op::PARAMS,
    summary: "Copies a tensor to another device.",
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let (device, dtype) =
            (a.device(move_op::device).unwrap_or(x.device()), a.dtype(move_op::dtype).unwrap_or(x.dtype()));
        let out = e.empty(&x.shape(), dtype, device)?;
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|e, v| {
        let (device, dtype) = (v.meta(move_op::input).device, v.meta(move_op::input).dtype);
        let g = e.cast_gradient(v.g(), dtype)?;
        Ok(vec![Some(e.call(&MOVE, args![&g, device, dtype])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(copy(input: Tensor, src: Operand, non_blocking: Bool = false));

/// `x.copy_(y)`.
pub static COPY: Op = Op {
    name: "copy",
    params: copy::PARAMS,
    summary: "Copies the elements of `src` into the tensor, converted to its dtype and broadcast to its shape.",
    examples: &[ex("zeros([2]).copy_(tensor([1, 2]))", "tensor([1., 2.])"), ex("zeros([2]).copy_(ones([3]))", "E0201")],
    lower: Lower::Map { function: &f::ADD, promote: Promote::Copy },
    grad: Grad::Rule(|e, v| {
        let old = if v.needs(copy::input) { Some(e.zeros_like(v.meta(copy::input))?) } else { None };
        Ok(vec![old, Some(v.g().clone())])
    }),
    inplace: true,
    call: CallForm::InPlace,
    ..Op::BASE
};

/// A number as an element of `dtype`: a float loses its fraction in an integer tensor, as in PyTorch.
pub fn element_of(value: Scalar, dtype: DType) -> Result<Scalar> {
    match (dtype.category(), value) {
        (Category::Bool, _) => Ok(Scalar::Bool(!value.is_zero())),
        (Category::Float | Category::Complex, _) => Ok(Scalar::Float(value.to_f64())),
        (Category::Int, _) => {
            let (low, high) = dtype.int_range().unwrap_or((i64::MIN, i64::MAX));
            let fits = match value {
                // Exclusive above: as a float, the greatest i64 is one too much.
                Scalar::Float(x) => x >= low as f64 && x.trunc() < high as f64 + 1.0,
                _ => (low..=high).contains(&value.to_i64()),
            };
            // PyTorch lets negative integers wrap in unsigned tensors; floats it refuses, `-0.5` too.
            let wraps = !dtype.is_signed() && matches!(value, Scalar::Int(n) if (-high..=high).contains(&n));
            if !fits && !wraps {
                fail!(VALUE, "{value} does not fit into {dtype}");
            }
            Ok(Scalar::Int(value.to_i64()))
        }
    }
}

/// As `element_of`, for a number that fills a tensor: one that is finite and would be infinite there is refused.
pub fn filling(value: Scalar, dtype: DType) -> Result<Scalar> {
    let most = match dtype {
        DType::F16 => half::f16::MAX.to_f64(),
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::F32 => f32::MAX as f64,
        _ => f64::INFINITY,
    };
    let number = value.to_f64();
    if dtype.is_float() && number.is_finite() && number.abs() > most {
        fail!(VALUE, "{value} does not fit into {dtype}");
    }
    element_of(value, dtype)
}

/// dtype that two operands promote to.
pub fn common(e: &dyn Emit, operands: &[&Arg]) -> DType {
    let list: Vec<Operand<'_>> = operands
        .iter()
        .filter_map(|arg| match arg {
            Arg::Tensor(tensor) => Some(Operand::of(tensor)),
            Arg::Attr(_) => Args(smallvec::smallvec![(*arg).clone()]).scalar(0).map(Operand::Number),
            _ => None,
        })
        .collect();
    infer::result_type(&list, e.default_float())
}

/// `g` where the condition holds, else 0.
pub fn masked(e: &mut dyn Emit, condition: &Tensor, g: &Tensor) -> Result<Tensor> {
    e.call(&compare::WHERE, args![condition, g, Scalar::Int(0)])
}

/// 0 where the condition holds, else `g`.
pub fn unmasked(e: &mut dyn Emit, condition: &Tensor, g: &Tensor) -> Result<Tensor> {
    e.call(&compare::WHERE, args![condition, Scalar::Int(0), g])
}

pub static ROWS: &[&Op] = &[
    &ADD,
    &SUB,
    &MUL,
    &DIV,
    &NEG,
    &ADD_ALPHA,
    &SUB_ALPHA,
    &RSUB,
    &DIVIDE,
    &TRUE_DIVIDE,
    &FLOOR_DIVIDE,
    &TRUNC_DIVIDE,
    &REMAINDER,
    &FMOD,
    &POW,
    &CAST,
    &MOVE,
    &COPY,
];
