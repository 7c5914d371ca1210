//! Comparisons, logic, bits, tests of single elements, and choosing between two tensors.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::kernel::program::ReduceKind;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, ReduceType, Returns, ex};
use crate::op::rows::pointwise::arith::{ZERO, element_of, masked, unmasked};
use crate::op::rows::shape::expanded;
use crate::op::rows::signatures::{binary, two_tensors, unary};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(compare(input: Tensor, other: Operand));

/// Comparisons: name, other name, operator, function, summary, example and its result.
macro_rules! compare {
    ($($NAME:ident $name:literal [$($alias:literal)?] $operator:literal $function:ident $summary:literal $code:literal => $result:literal)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias)?],
            operator: $operator,
            params: compare::PARAMS,
            summary: $summary,
            examples: &[ex($code, $result), ex(concat!("ones([2]) ", $operator, " ones([3])"), "E0201")],
            lower: Lower::Map { function: &f::$function, promote: Promote::Compare },
            grad: Grad::Rule(ZERO),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

compare! {
    EQ "eq" [] "==" EQ "Whether elements are equal." "tensor([1, 2]) == 2" => "tensor([false,  true])"
    NE "ne" ["not_equal"] "!=" NE "Whether elements differ." "tensor([1, 2]) != 2" => "tensor([ true, false])"
    LT "lt" ["less"] "<" LT "Whether the left element is smaller." "tensor([1, 2]) < 2" => "tensor([ true, false])"
    LE "le" ["less_equal"] "<=" LE "Whether the left element is smaller or equal." "tensor([1, 3]) <= 2" => "tensor([ true, false])"
    GT "gt" ["greater"] ">" GT "Whether the left element is larger." "tensor([1, 3]) > 2" => "tensor([false,  true])"
    GE "ge" ["greater_equal"] ">=" GE "Whether the left element is larger or equal." "tensor([1, 2]) >= 2" => "tensor([false,  true])"
}

/// Logic: any dtype counts as true where it is not 0.
macro_rules! logical {
    ($($NAME:ident $name:literal $params:expr, $function:ident $summary:literal $code:literal => $result:literal)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: $params,
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Logical },
            grad: Grad::Rule(ZERO),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

logical! {
    LOGICAL_AND "logical_and" two_tensors::PARAMS, LOGICAL_AND "Whether both elements are true (not 0)."
        "logical_and(tensor([1, 0]), tensor([2, 2]))" => "tensor([ true, false])"
    LOGICAL_OR "logical_or" two_tensors::PARAMS, LOGICAL_OR "Whether one of two elements is true (not 0)."
        "logical_or(tensor([1, 0]), tensor([0, 0]))" => "tensor([ true, false])"
    LOGICAL_XOR "logical_xor" two_tensors::PARAMS, LOGICAL_XOR "Whether exactly one of two elements is true (not 0)."
        "logical_xor(tensor([1, 0]), tensor([2, 2]))" => "tensor([false,  true])"
    LOGICAL_NOT "logical_not" unary::PARAMS, LOGICAL_NOT "Whether elements are false (0)."
        "logical_not(tensor([1, 0]))" => "tensor([false,  true])"
}

/// Bits of integers; logic of `bool` where `Bits`.
macro_rules! bits {
    ($($NAME:ident $name:literal $operator:literal $params:expr, $function:ident $promote:ident $summary:literal $code:literal => $result:literal, $bad:literal)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            operator: $operator,
            params: $params,
            summary: $summary,
            examples: &[ex($code, $result), ex($bad, "E0202")],
            lower: Lower::Map { function: &f::$function, promote: Promote::$promote },
            grad: Grad::Stop("bits have no gradient"),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

bits! {
    BITWISE_AND "bitwise_and" "&" binary::PARAMS, BIT_AND Bits "The bits that both have; logical and of `bool`."
        "tensor([5, 6]) & 3" => "tensor([1, 2])", "tensor([1.0]) & 1"
    BITWISE_OR "bitwise_or" "|" binary::PARAMS, BIT_OR Bits "The bits that one of the two has; logical or of `bool`."
        "tensor([true, false]) | tensor([false, false])" => "tensor([ true, false])", "tensor([1.0]) | 1"
    BITWISE_XOR "bitwise_xor" "^" binary::PARAMS, BIT_XOR Bits "The bits in which the two differ; exclusive or of `bool`."
        "tensor([5, 6]) ^ 3" => "tensor([6, 5])", "tensor([1.0]) ^ 1"
    BITWISE_NOT "bitwise_not" "!" unary::PARAMS, BIT_NOT Bits "Every bit inverted; logical not of `bool`."
        "bitwise_not(tensor([0, 5]))" => "tensor([-1, -6])", "bitwise_not(tensor([1.0]))"
    BITWISE_LEFT_SHIFT "bitwise_left_shift" "<<" binary::PARAMS, SHL IntsOnly "Bits moved up."
        "tensor([1, 2]) << 3" => "tensor([ 8, 16])", "tensor([true]) << tensor([true])"
    BITWISE_RIGHT_SHIFT "bitwise_right_shift" ">>" binary::PARAMS, SHR IntsOnly "Bits moved down; the sign stays."
        "tensor([-8, 16]) >> 2" => "tensor([-2,  4])", "tensor([1.0]) >> 1"
}

/// Tests of one element, of any dtype.
macro_rules! tests {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Predicate },
            grad: Grad::Rule(ZERO),
            ..Op::BASE
        };)*
    };
}

tests! {
    ISNAN "isnan" ISNAN "Whether elements are NaN." "tensor([1.0, NAN]).isnan()" => "tensor([false,  true])"
    ISINF "isinf" ISINF "Whether elements are infinite." "tensor([1.0, -INF]).isinf()" => "tensor([false,  true])"
    ISFINITE "isfinite" ISFINITE "Whether elements are neither infinite nor NaN."
        "tensor([1.0, INF]).isfinite()" => "tensor([ true, false])"
    ISPOSINF "isposinf" ISPOSINF "Whether elements are plus infinity." "tensor([INF, -INF]).isposinf()" => "tensor([ true, false])"
    ISNEGINF "isneginf" ISNEGINF "Whether elements are minus infinity." "tensor([INF, -INF]).isneginf()" => "tensor([false,  true])"
    SIGNBIT "signbit" SIGNBIT "Whether the sign bit is set; it is for -0.0." "tensor([-0.0, 1.0]).signbit()" => "tensor([ true, false])"
}

pub static ISREAL: Op = Op {
    name: "isreal",
    params: unary::PARAMS,
    summary: "Whether elements are real: always, unless they are complex with an imaginary part that is not 0.",
    examples: &[ex("tensor([1.0]).isreal()", "tensor([true])")],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let fill = crate::op::row::Source::Fill(Scalar::Bool(true));
        Ok(vec![e.source(fill, &x.shape(), DType::Bool, x.device())?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(isclose(input: Tensor, other: Tensor, rtol: Float = 1e-5, atol: Float = 1e-8, equal_nan: Bool = false));

pub static ISCLOSE: Op = Op {
    name: "isclose",
    params: isclose::PARAMS,
    summary: "Whether |input - other| ≤ atol + rtol · |other|, element-wise.",
    examples: &[
        ex("isclose(tensor([1.0, 2.0]), tensor([1.0, 2.1]))", "tensor([ true, false])"),
        ex("isclose(tensor([1.0]), tensor([1]))", "E0202"),
        ex("isclose(tensor([1.0]), tensor([1.0]), -1.0)", "E0206"),
    ],
    lower: Lower::Steps(|e, a| Ok(vec![close(e, a)?])),
    grad: Grad::Rule(ZERO),
    ..Op::BASE
};

fn close(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let (x, y) = (a.input(), a.tensor(isclose::other));
    infer::same_dtype(&[("input", x), ("other", y)])?;
    let (rtol, atol) = (a.float(isclose::rtol), a.float(isclose::atol));
    if rtol < 0.0 || atol < 0.0 {
        fail!(VALUE, "tolerances must not be negative: rtol {rtol}, atol {atol}");
    }
    let mut close = e.call(&EQ, args![x, y])?;
    if a.flag(isclose::equal_nan) && x.dtype().is_differentiable() {
        let (left, right) = (e.call(&ISNAN, args![x])?, e.call(&ISNAN, args![y])?);
        let both = e.call(&LOGICAL_AND, args![&left, &right])?;
        close = e.call(&LOGICAL_OR, args![&close, &both])?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(close);
    }
    let float = if x.dtype().is_differentiable() { x.dtype() } else { e.default_float() };
    let (x, y) = (e.cast(x, float)?, e.cast(y, float)?);
    let scaled = e.mul(&y, rtol)?;
    let size = e.call(&crate::op::rows::pointwise::unary::ABS, args![&scaled])?;
    let allowed = e.add(&size, atol)?;
    let difference = e.sub(&x, &y)?;
    let distance = e.call(&crate::op::rows::pointwise::unary::ABS, args![&difference])?;
    let within = e.call(&LE, args![&distance, &allowed])?;
    let finite = e.call(&ISFINITE, args![&distance])?;
    let near = e.call(&LOGICAL_AND, args![&within, &finite])?;
    e.call(&LOGICAL_OR, args![&close, &near])
}

signature!(all_true(input: Tensor, dim: Dims = None, keepdim: Bool = false));

/// `all` over everything, whatever the reductions' own row is.
static ALL_TRUE: Op = Op {
    name: "all",
    params: all_true::PARAMS,
    summary: "Whether all elements are true.",
    lower: Lower::Reduce { kind: ReduceKind::All, dtype: ReduceType::Bool },
    grad: Grad::Stop("the result is bool"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static ALLCLOSE: Op = Op {
    name: "allclose",
    params: ISCLOSE.params,
    summary: "Whether all elements are close, as a bool (see `isclose`).",
    details: "Waits for the result.",
    examples: &[
        ex("allclose(tensor([1.0]), tensor([1.000001]))", "true"),
        ex("allclose(tensor([1.0]), tensor([1]))", "E0202"),
        ex("allclose(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        let close = close(e, a)?;
        e.apply(&ALL_TRUE, args![&close])
    }),
    grad: Grad::Stop("the result is bool"),
    truth: true,
    ..Op::BASE
};

pub static EQUAL: Op = Op {
    name: "equal",
    params: two_tensors::PARAMS,
    summary: "Whether two tensors have the same shape and equal elements, as a bool.",
    details: "Waits for the result. NaN equals nothing.",
    examples: &[ex("equal(tensor([1, 2]), tensor([1, 2]))", "true"), ex("equal(tensor([1, 2]), tensor([1]))", "false")],
    lower: Lower::Steps(|e, a| {
        let (x, y) = (a.input(), a.tensor(two_tensors::other));
        if x.shape() != y.shape() {
            let no = crate::op::row::Source::Fill(Scalar::Bool(false));
            return Ok(vec![e.source(no, &[], DType::Bool, x.device())?]);
        }
        let same = e.call(&EQ, args![x, y])?;
        e.apply(&ALL_TRUE, args![&same])
    }),
    grad: Grad::Stop("the result is bool"),
    truth: true,
    ..Op::BASE
};

signature!(where_op(condition: Tensor, input: Operand, other: Operand));

/// The choice itself: what `where` and rules use. The condition is cast to `bool`.
pub static WHERE: Op = Op {
    name: "where",
    params: where_op::PARAMS,
    summary: "Chooses between two values, element-wise.",
    lower: Lower::Map { function: &f::WHERE, promote: Promote::Where },
    saves: &[crate::op::row::Save::In(where_op::condition)],
    grad: Grad::Rule(|e, v| {
        let left = if v.needs(where_op::input) { Some(masked(e, v.saved(where_op::condition), v.g())?) } else { None };
        let right =
            if v.needs(where_op::other) { Some(unmasked(e, v.saved(where_op::condition), v.g())?) } else { None };
        Ok(vec![None, left, right])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Refuses conditions that are neither `bool` nor (PyTorch's old habit) `u8`.
fn check_condition(condition: &Tensor, what: &str) -> Result<()> {
    if !matches!(condition.dtype(), DType::Bool | DType::U8) {
        fail!(DTYPE, "the {what} must be `bool`, not {}", condition.dtype());
    }
    Ok(())
}

signature!(choose(condition: Operand, input: Operand = None, other: Operand = None));

pub static CHOOSE: Op = Op {
    name: "where",
    params: choose::PARAMS,
    summary: "`input` where the condition holds, `other` elsewhere; `x.where(condition, other)` too.",
    details: "With the condition alone, of any dtype: the indices of its elements that are not 0, one tensor for each \
              dimension, in an array.",
    examples: &[
        ex("where(tensor([true, false]), tensor([1, 2]), 0)", "tensor([1, 0])"),
        ex("where(tensor([0.5, 0.0, 2.0]))", "[tensor([0, 2])]"),
        ex("tensor([1, 2]).where(tensor([true, false]), 9)", "tensor([1, 9])"),
        ex("where(tensor([1, 0]), 1, 2)", "E0202"),
        ex("where(tensor([true]), tensor([1], #{dtype: \"u8\"}), 300)", "E0206"),
        ex("where(tensor([true]), 1)", "E0205"),
    ],
    lower: Lower::Compose(|e, a| {
        let (mut condition, mut input) = (a.get(choose::condition).clone(), a.get(choose::input).clone());
        let is_mask = |arg: &Arg| matches!(arg, Arg::Tensor(t) if matches!(t.dtype(), DType::Bool | DType::U8));
        // The method form: `x.where(condition, other)`.
        if is_mask(&input) && !is_mask(&condition) {
            std::mem::swap(&mut condition, &mut input);
        }
        let Arg::Tensor(condition) = condition else { fail!(ARGUMENT_TYPE, "the condition must be a `bool` tensor") };
        match (a.is_none(choose::input), a.is_none(choose::other)) {
            (true, true) => e.apply(&crate::op::rows::indexing::masks::NONZERO, args![&condition, true]),
            (false, false) => {
                check_condition(&condition, "condition")?;
                let other = a.get(choose::other).clone();
                // A number beside integers is one of them, or refused.
                for (value, beside) in [(&input, &other), (&other, &input)] {
                    if let (Some(number), Arg::Tensor(beside)) =
                        (Args(smallvec::smallvec![value.clone()]).scalar(0), beside)
                        && beside.dtype().is_int()
                        && matches!(number, Scalar::Int(_))
                    {
                        element_of(number, beside.dtype())?;
                    }
                }
                e.apply(&WHERE, args![&condition, input, other])
            }
            _ => Err(Diag::error(code::MISSING_ARGUMENT, "`input` and `other` go together")
                .help("write `where(x > 0, x, 0.0)`; `where(x > 0)` alone gives the places")),
        }
    }),
    grad: Grad::Composed,
    results: Returns::ListWithout("input"),
    receiver: 1,
    ..Op::BASE
};

signature!(masked_fill(input: Tensor, mask: Tensor, value: Operand));

pub static MASKED_FILL: Op = Op {
    name: "masked_fill",
    params: masked_fill::PARAMS,
    summary: "`value` where the mask is true, the tensor's own elements elsewhere.",
    examples: &[
        ex("tensor([1, 2, 3]).masked_fill(tensor([true, false, true]), 0)", "tensor([0, 2, 0])"),
        ex("tensor([1, 2]).masked_fill(tensor([true, false]), tensor(7.5))", "tensor([7, 2])"),
        ex("tensor([1, 2]).masked_fill(tensor([1, 0]), 0)", "E0202"),
        ex("tensor([1, 2]).masked_fill(tensor([true, false]), ones([2]))", "E0201"),
        ex("tensor([1, 2]).masked_fill(tensor([true, false]), INF)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, mask) = (a.input(), a.tensor(masked_fill::mask));
        check_condition(mask, "mask")?;
        let value = match a.get(masked_fill::value) {
            Arg::Tensor(value) if value.ndim() > 0 => {
                fail!(
                    SHAPE,
                    "`value` must be a number or a tensor of no dimensions, not one of shape {:?}",
                    value.shape().as_slice()
                )
            }
            Arg::Tensor(value) => Arg::Tensor(e.cast(value, x.dtype())?),
            _ => element_of(a.scalar(masked_fill::value).unwrap_or(Scalar::Int(0)), x.dtype())?.into(),
        };
        e.apply(&WHERE, args![mask, value, x])
    }),
    grad: Grad::Composed,
    inplace: true,
    expanded: Some(|e, a| {
        check_condition(a.tensor(masked_fill::mask), "mask")?;
        expanded::fill_where(e, a.input(), a.tensor(masked_fill::mask), a.get(masked_fill::value).clone())
    }),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &EQ,
    &NE,
    &LT,
    &LE,
    &GT,
    &GE,
    &LOGICAL_AND,
    &LOGICAL_OR,
    &LOGICAL_XOR,
    &LOGICAL_NOT,
    &BITWISE_AND,
    &BITWISE_OR,
    &BITWISE_XOR,
    &BITWISE_NOT,
    &BITWISE_LEFT_SHIFT,
    &BITWISE_RIGHT_SHIFT,
    &ISNAN,
    &ISINF,
    &ISFINITE,
    &ISPOSINF,
    &ISNEGINF,
    &SIGNBIT,
    &ISREAL,
    &ISCLOSE,
    &ALLCLOSE,
    &EQUAL,
    &WHERE,
    &CHOOSE,
    &MASKED_FILL,
];
