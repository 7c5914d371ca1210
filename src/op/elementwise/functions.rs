//! The functions and operators of these texts, as rows of the op table.

use crate::base::suggest::nearest;
use crate::op::chapter::Chapter;
use crate::op::row::{CallForm, Kind, Lower, Op, Promote};
use crate::op::rows::pointwise::{arith, compare};
use crate::op::{rows, table};

/// Rows that are composed of others and compute element by element.
const COMPOSED: &[&str] = &[
    "addcdiv",
    "addcmul",
    "add",
    "celu",
    "clamp",
    "clamp_max",
    "clamp_min",
    "div",
    "float_power",
    "floor_divide",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "heaviside",
    "isclose",
    "isreal",
    "ldexp",
    "lerp",
    "logit",
    "logsigmoid",
    "mish",
    "nan_to_num",
    "polygamma",
    "positive",
    "pow",
    "relu6",
    "round",
    "rsub",
    "sgn",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "square",
    "sub",
    "tanhshrink",
    "threshold",
    "true_divide",
    "xlogy",
    "where",
];

/// C's names, and those of reductions that have an element-wise form.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("max", "maximum"),
    ("min", "minimum"),
    ("fabs", "abs"),
    ("rint", "round"),
    ("powf", "pow"),
    ("expf", "exp"),
    ("logf", "log"),
    ("sqrtf", "sqrt"),
    ("sinf", "sin"),
    ("cosf", "cos"),
    ("tanhf", "tanh"),
    ("fabsf", "abs"),
];

/// The row of a function's name.
pub fn named(name: &str) -> Option<&'static Op> {
    let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, row)| row);
    table::find(name).filter(|op| is_elementwise(op, name))
}

fn is_elementwise(op: &Op, name: &str) -> bool {
    let is_map = matches!(op.lower, Lower::Map { promote, .. } if promote != Promote::Copy);
    let is_part = matches!(op.call, CallForm::Internal | CallForm::InPlace | CallForm::Method);
    !is_part && (is_map || COMPOSED.contains(&name) || COMPOSED.contains(&op.name))
}

/// How many arguments a row takes here: those that are tensors or numbers.
pub fn counts(op: &Op) -> (usize, usize) {
    let taken = |kind: Kind| matches!(kind, Kind::Tensor | Kind::Operand | Kind::Number | Kind::Float | Kind::Int);
    let params: Vec<_> = op.params.iter().take_while(|param| taken(param.kind)).collect();
    let required = params.iter().filter(|param| param.default == crate::op::row::Default::Required).count();
    // `where` chooses between two values here; its row can also list positions.
    if op.is(&compare::CHOOSE) { (3, 3) } else { (required, params.len()) }
}

/// The names that this one may have meant.
pub fn similar(name: &str) -> Option<&'static str> {
    let chapters =
        rows::FAMILIES.iter().filter(|(chapter, _)| matches!(chapter, Chapter::Pointwise | Chapter::Activation));
    let names = chapters.flat_map(|(_, rows)| rows.iter()).filter(|op| is_elementwise(op, op.name)).map(|op| op.name);
    nearest(name, names)
}

/// An operator of two operands: how tightly it binds, as in C, and its row.
pub fn binary(symbol: &str) -> Option<(u8, &'static Op)> {
    Some(match symbol {
        "||" => (1, &compare::LOGICAL_OR),
        "&&" => (2, &compare::LOGICAL_AND),
        "|" => (3, &compare::BITWISE_OR),
        "^" => (4, &compare::BITWISE_XOR),
        "&" => (5, &compare::BITWISE_AND),
        "==" => (6, &compare::EQ),
        "!=" => (6, &compare::NE),
        "<" => (7, &compare::LT),
        "<=" => (7, &compare::LE),
        ">" => (7, &compare::GT),
        ">=" => (7, &compare::GE),
        "<<" => (8, &compare::BITWISE_LEFT_SHIFT),
        ">>" => (8, &compare::BITWISE_RIGHT_SHIFT),
        "+" => (9, &arith::ADD),
        "-" => (9, &arith::SUB),
        "*" => (10, &arith::MUL),
        "/" => (10, &arith::DIV),
        "%" => (10, &arith::REMAINDER),
        _ => return None,
    })
}

/// The comparison with its operands exchanged.
pub fn mirrored(op: &'static Op) -> Option<&'static Op> {
    let pairs: [(&'static Op, &'static Op); 6] = [
        (&compare::EQ, &compare::EQ),
        (&compare::NE, &compare::NE),
        (&compare::LT, &compare::GT),
        (&compare::LE, &compare::GE),
        (&compare::GT, &compare::LT),
        (&compare::GE, &compare::LE),
    ];
    pairs.into_iter().find(|(from, _)| op.is(from)).map(|(_, to)| to)
}
