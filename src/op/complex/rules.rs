//! Which rows take complex operands, and how. What stands in no list refuses them.

use super::{Forward, Rule, arithmetic as a, functions as f, loses_imaginary, refused};
use crate::base::diag::Result;
use crate::op::args::Args;
use crate::op::row::{Lower, Op};
use crate::op::rows::linalg::matmul::MATMUL;
use crate::op::rows::pointwise::arith::{ADD, CAST, COPY, DIV, MOVE, MUL, NEG, POW, SUB};
use crate::op::rows::pointwise::compare::{EQ, ISFINITE, ISINF, ISNAN, ISREAL, NE, WHERE};
use crate::op::rows::pointwise::complex_parts::{ANGLE, CONJ, CONJ_PHYSICAL};
use crate::op::rows::pointwise::power::SQUARE;
use crate::op::rows::pointwise::unary as u;
use crate::op::rows::pointwise::{blend, complex};
use crate::op::rows::reduction::{moments, reduce};
use crate::op::rows::shape::rearrange::{ADJOINT, MATRIX_H};
use crate::op::rows::spectral;

/// Analytic functions.
static ANALYTIC: &[(&Op, Forward)] = &[
    (&ADD, a::add),
    (&SUB, a::sub),
    (&MUL, a::mul),
    (&DIV, a::div),
    (&MATMUL, a::matmul),
    (&u::RECIPROCAL, a::reciprocal),
    (&u::SQRT, f::sqrt),
    (&u::RSQRT, f::rsqrt),
    (&u::EXP, f::exp),
    (&u::EXPM1, f::expm1),
    (&u::LOG, f::log),
    (&u::LOG2, f::log2),
    (&u::LOG10, f::log10),
    (&u::LOG1P, f::log1p),
    (&u::SIN, f::sin),
    (&u::COS, f::cos),
    (&u::TAN, f::tan),
    (&u::SINH, f::sinh),
    (&u::COSH, f::cosh),
    (&u::TANH, f::tanh),
    (&u::ASIN, f::asin),
    (&u::ACOS, f::acos),
    (&u::ATAN, f::atan),
    (&u::ASINH, f::asinh),
    (&u::ATANH, f::atanh),
    (&u::SIGMOID, f::sigmoid),
];

/// Written with other rows.
static COMPOSED: &[(&Op, Forward)] = &[
    (&POW, a::pow),
    (&SQUARE, a::square),
    (&u::ACOSH, a::acosh),
    (&EQ, a::eq),
    (&NE, a::ne),
    (&ISNAN, a::any_part),
    (&ISINF, a::any_part),
    (&ISFINITE, a::both_parts),
    (&ISREAL, a::is_real),
    (&complex::REAL, a::real),
    (&CONJ, a::conj),
    (&CONJ_PHYSICAL, a::conj),
    (&ADJOINT, a::adjoint),
    (&MATRIX_H, a::adjoint),
    (&ANGLE, f::angle),
    (&u::SGN, f::sgn),
    (&u::TANH_GRAD, f::tanh_grad),
    (&u::SIGMOID_GRAD, f::sigmoid_grad),
    (&blend::LERP, a::lerp),
    (&blend::ADDCMUL, a::addcmul),
    (&blend::ADDCDIV, a::addcdiv),
    (&moments::VAR, a::var),
    (&moments::STD, a::std),
    (&reduce::ANY, a::of_nonzero),
    (&reduce::ALL, a::of_nonzero),
    (&reduce::COUNT_NONZERO, a::of_nonzero),
];

/// Rows written with rows that have rules, by name.
static PLAIN: &[&str] = &[
    "zeros",
    "ones",
    "empty",
    "full",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "new_zeros",
    "new_ones",
    "new_empty",
    "new_full",
    "add",
    "sub",
    "rsub",
    "div",
    "true_divide",
    "zero",
    "fill",
    "isclose",
    "allclose",
    "equal",
    "where",
    "masked_fill",
    "positive",
    "is_signed",
    "is_same_size",
    "resolve_conj",
    "resolve_neg",
    "type",
    "type_as",
    "cumsum",
    "mean",
    "sum_to_size",
    "diff",
    "tile",
    "rot90",
    "diag",
    "diagflat",
    "trace",
    "alias_copy",
    "concatenate",
    "stack",
    "column_stack",
    "t",
    "T",
    "movedim",
    "flatten",
    "ravel",
    "unflatten",
    "broadcast_to",
    "broadcast_tensors",
    "split",
    "split_with_sizes",
    "chunk",
    "tensor_split",
    "unbind",
    "reshape",
    "contiguous",
    "as_strided",
    "outer",
    "mm",
    "bmm",
    "mv",
    "dot",
    "index",
    "masked_select",
    "clone",
    "_unsafe_view",
    "swapaxes",
    "swapdims",
    "view_as",
    "expand_as",
    "reshape_as",
    "roll",
    "hstack",
    "vstack",
    "dstack",
    "numpy_T",
    "mT",
    "unsafe_chunk",
    "unsafe_split",
    "take_along_dim",
    "is_nonzero",
    "pad",
    "fold",
];

/// Rows that are the same function of real and of imaginary parts, by name, with the positions of the operands.
static PARTS: &[(&str, &[usize])] = &[
    ("sum", &[0]),
    ("mean", &[0]),
    ("cumsum", &[0]),
    ("flip", &[0]),
    ("roll", &[0]),
    ("repeat", &[0]),
    ("diag_embed", &[0]),
    ("tril", &[0]),
    ("triu", &[0]),
    ("index_select", &[0]),
    ("gather", &[0]),
    ("take", &[0]),
    ("index", &[0]),
    ("masked_select", &[0]),
    ("strided_add", &[0]),
    ("cat", &[0]),
    ("index_add", &[0, 3]),
    ("index_copy", &[0, 3]),
    ("select_scatter", &[0, 1]),
    ("diagonal_scatter", &[0, 1]),
    ("slice_scatter", &[0, 1]),
    ("constant_pad_nd", &[0, 2]),
    ("pad", &[0]),
];

fn find(list: &[(&Op, Forward)], op: &'static Op) -> Option<Forward> {
    list.iter().find(|(other, _)| std::ptr::eq(*other, op)).map(|(_, forward)| *forward)
}

/// Whether the row's gradient is that of an analytic function.
pub fn is_analytic(op: &'static Op) -> bool {
    find(ANALYTIC, op).is_some()
}

/// The rule of a row, for a call with complex operands.
pub fn rule(op: &'static Op, args: &Args) -> Result<Rule> {
    let is = |other: &'static Op| op.is(other);
    if is(&CAST) || is(&MOVE) {
        let asked = args.0.iter().enumerate().find_map(|(at, _)| args.dtype(at));
        return match asked {
            Some(to) if args.input().dtype().is_complex() && !to.is_complex() => Err(loses_imaginary(to)),
            _ => Ok(Rule::Plain),
        };
    }
    if spectral::takes_complex(op)
        || op.reinterprets
        || is(&COPY)
        || is(&complex::IMAG)
        || matches!(op.lower, Lower::View(_))
    {
        return Ok(Rule::Plain);
    }
    if let Some(forward) = find(ANALYTIC, op) {
        return Ok(Rule::Analytic(forward));
    }
    if let Some(forward) = find(COMPOSED, op) {
        return Ok(Rule::Compose(forward));
    }
    if is(&u::ABS) {
        return Ok(Rule::Tracked(f::abs));
    }
    if is(&WHERE) {
        return Ok(Rule::Parts(&[1, 2]));
    }
    if is(&NEG) {
        return Ok(Rule::Parts(&[0]));
    }
    let parts = PARTS.iter().find(|(name, _)| *name == op.name).map(|(_, at)| *at);
    match op.lower {
        Lower::Kernel(_) | Lower::Reduce { .. } => parts.map(Rule::Parts),
        Lower::Steps(_) if parts.is_some() => parts.map(Rule::Parts),
        Lower::Compose(_) | Lower::Steps(_) => PLAIN.contains(&op.name).then_some(Rule::Plain),
        _ => None,
    }
    .ok_or_else(|| refused(op.name))
}
