//! Which rows take complex operands, and how. What stands in no list refuses them.

use super::Forward::{self, All, One};
use super::{
    Rule, arithmetic as a, functions as f, linalg as l, loses_imaginary, numbers as n, reductions as r, refused,
};
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::op::args::Args;
use crate::op::row::{Lower, Op};
use crate::op::rows::indexing::gather::same_dtype;
use crate::op::rows::indexing::masks::{ARGWHERE, NONZERO, NONZERO_STATIC};
use crate::op::rows::linalg::matmul::MATMUL;
use crate::op::rows::linalg::matmul::VDOT;
use crate::op::rows::linalg::norms::NORM;
use crate::op::rows::linalg::{eig, linalg_ex, lstsq_pinv, lu, qr, solve, svd};
use crate::op::rows::nn::activation::SILU;
use crate::op::rows::nn::conv::{CONV, CONV_INPUT, CONV_WEIGHT};
use crate::op::rows::pointwise::arith::{ADD, CAST, COPY, DIV, MOVE, MUL, NEG, POW, SUB};
use crate::op::rows::pointwise::compare::{
    EQ, ISFINITE, ISINF, ISNAN, ISREAL, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, LOGICAL_XOR, NE, WHERE,
};
use crate::op::rows::pointwise::complex_parts::{ANGLE, CONJ, CONJ_PHYSICAL};
use crate::op::rows::pointwise::power::LOGADDEXP;
use crate::op::rows::pointwise::power::SQUARE;
use crate::op::rows::pointwise::special::SINC;
use crate::op::rows::pointwise::unary as u;
use crate::op::rows::pointwise::{blend, complex};
use crate::op::rows::random::distributions::{NORMAL_, UNIFORM_};
use crate::op::rows::reduction::magnitude::LOGSUMEXP_OF;
use crate::op::rows::reduction::scan::{CUMPROD_ALONG, LOGCUMSUMEXP_ALONG};
use crate::op::rows::reduction::{moments, reduce};
use crate::op::rows::shape::copies::{AS_STRIDED_SCATTER, DIAGONAL_SCATTER, SELECT_SCATTER};
use crate::op::rows::shape::rearrange::{ADJOINT, MATRIX_H};
use crate::op::rows::shape::view::SLICE_SCATTER;
use crate::op::rows::spectral;

/// Analytic functions.
static ANALYTIC: &[(&Op, Forward)] = &[
    (&ADD, One(a::add)),
    (&SUB, One(a::sub)),
    (&MUL, One(a::mul)),
    (&DIV, One(a::div)),
    (&MATMUL, One(a::matmul)),
    (&solve::SOLVE_MATRICES, All(l::solve)),
    (&linalg_ex::SOLVE_QUIET, All(l::solve)),
    (&solve::TRIANGULAR, One(l::triangular)),
    (&solve::INV, All(l::of_whole)),
    (&linalg_ex::INV_QUIET, All(l::of_whole)),
    (&solve::DET, One(l::det)),
    (&lu::LU, All(l::lu)),
    (&svd::EXPONENTIAL, All(l::of_whole)),
    (&u::RECIPROCAL, One(a::reciprocal)),
    (&u::SQRT, One(f::sqrt)),
    (&u::RSQRT, One(f::rsqrt)),
    (&u::EXP, One(f::exp)),
    (&u::EXPM1, One(f::expm1)),
    (&u::LOG, One(f::log)),
    (&u::LOG2, One(f::log2)),
    (&u::LOG10, One(f::log10)),
    (&u::LOG1P, One(f::log1p)),
    (&u::SIN, One(f::sin)),
    (&u::COS, One(f::cos)),
    (&u::TAN, One(f::tan)),
    (&u::SINH, One(f::sinh)),
    (&u::COSH, One(f::cosh)),
    (&u::TANH, One(f::tanh)),
    (&u::ASIN, One(f::asin)),
    (&u::ACOS, One(f::acos)),
    (&u::ATAN, One(f::atan)),
    (&u::ASINH, One(f::asinh)),
    (&u::ATANH, One(f::atanh)),
    (&u::SIGMOID, One(f::sigmoid)),
];

/// Written with other rows.
static COMPOSED: &[(&Op, Forward)] = &[
    (&POW, One(a::pow)),
    (&SQUARE, One(a::square)),
    (&u::ACOSH, One(a::acosh)),
    (&EQ, One(a::eq)),
    (&NE, One(a::ne)),
    (&ISNAN, One(a::any_part)),
    (&ISINF, One(a::any_part)),
    (&ISFINITE, One(a::both_parts)),
    (&ISREAL, One(a::is_real)),
    (&complex::REAL, One(a::real)),
    (&CONJ, One(a::conj)),
    (&CONJ_PHYSICAL, One(a::conj)),
    (&ADJOINT, One(a::adjoint)),
    (&MATRIX_H, One(a::adjoint)),
    (&ANGLE, One(f::angle)),
    (&u::SGN, One(f::sgn)),
    (&u::TANH_GRAD, One(f::tanh_grad)),
    (&u::SIGMOID_GRAD, One(f::sigmoid_grad)),
    (&blend::LERP, One(a::lerp)),
    (&blend::ADDCMUL, One(a::addcmul)),
    (&blend::ADDCDIV, One(a::addcdiv)),
    (&u::EXP2, One(f::exp2)),
    (&SILU, One(f::silu)),
    (&SINC, One(f::sinc)),
    (&LOGADDEXP, One(f::logaddexp)),
    (&NORMAL_, One(n::drawn)),
    (&UNIFORM_, One(n::drawn)),
    (&LOGSUMEXP_OF, One(r::logsumexp)),
    (&NORM, One(r::norm)),
    (&reduce::PROD, One(r::prod)),
    (&CUMPROD_ALONG, One(r::cumprod)),
    (&LOGCUMSUMEXP_ALONG, One(r::logcumsumexp)),
    (&CONV, One(a::bilinear)),
    (&CONV_INPUT, One(a::bilinear)),
    (&CONV_WEIGHT, One(a::bilinear)),
    (&VDOT, One(a::vdot)),
    (&solve::CHOLESKY, All(l::cholesky)),
    (&linalg_ex::CHOLESKY_QUIET, All(l::cholesky)),
    (&solve::SLOGDET, All(l::slogdet)),
    (&svd::EIGENVALUES, One(l::eigenvalues)),
    (&svd::VALUES, One(l::singular_values)),
    (&lstsq_pinv::LEAST, One(l::least)),
    (&moments::VARIANCE, One(a::var)),
    (&moments::DEVIATION, One(a::std)),
    (&reduce::ANY, One(a::of_nonzero)),
    (&reduce::ALL, One(a::of_nonzero)),
    (&reduce::COUNT_NONZERO, One(a::of_nonzero)),
    (&NONZERO, All(a::places)),
    (&ARGWHERE, All(a::places)),
    (&NONZERO_STATIC, All(a::places)),
    (&LOGICAL_AND, One(a::of_nonzero)),
    (&LOGICAL_OR, One(a::of_nonzero)),
    (&LOGICAL_XOR, One(a::of_nonzero)),
    (&LOGICAL_NOT, One(a::of_nonzero)),
];

/// Whose own gradients are right for complex numbers.
static TRACKED: &[(&Op, Forward)] = &[
    (&u::ABS, One(f::abs)),
    (&qr::GEQRF, All(l::geqrf)),
    (&svd::FACTORS, All(l::qr)),
    (&svd::EIGH, All(l::eigh)),
    (&svd::SVD, All(l::svd)),
    (&eig::EIG, All(l::eig)),
];

/// Rows written with rows that have rules, by name, in order.
static PLAIN: &[&str] = &[
    "T",
    "_adadelta_step",
    "_adagrad_step",
    "_adam_step",
    "_adamax_step",
    "_asgd_step",
    "_clip_grad_norm",
    "_lion_step",
    "_nadam_step",
    "_radam_step",
    "_rmsprop_step",
    "_rprop_step",
    "_sgd_step",
    "_stored_step",
    "_unsafe_view",
    "add",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "alias_copy",
    "allclose",
    "alpha_dropout",
    "as_strided",
    "as_strided_",
    "as_strided_copy",
    "as_strided_scatter",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "baddbmm",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_tensors",
    "broadcast_to",
    "cartesian_prod",
    "cdouble",
    "cfloat",
    "cholesky_ex",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clone",
    "column_stack",
    "combinations",
    "concatenate",
    "cond",
    "constant_pad_nd",
    "contiguous",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "corrcoef",
    "cov",
    "cross",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "diag",
    "diagflat",
    "diagonal_copy",
    "diff",
    "dist",
    "div",
    "dot",
    "dropout",
    "dropout2d",
    "dropout3d",
    "dsplit",
    "dstack",
    "eigvals",
    "eigvalsh",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "expand_as",
    "expand_copy",
    "eye",
    "feature_alpha_dropout",
    "fill",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "fold",
    "full",
    "full_like",
    "gradient",
    "householder_product",
    "hsplit",
    "hstack",
    "index",
    "index_put",
    "index_put_",
    "inner",
    "inv_ex",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "isclose",
    "kron",
    "l1_loss",
    "ldexp",
    "linear",
    "linspace",
    "logcumsumexp",
    "logdet",
    "logsumexp",
    "lstsq",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "lu_unpack",
    "mT",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_sqrth",
    "mean",
    "meshgrid",
    "mm",
    "movedim",
    "multi_dot",
    "mv",
    "nan_to_num",
    "narrow_copy",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "norm",
    "normalize",
    "numpy_T",
    "ones",
    "ones_like",
    "ormqr",
    "outer",
    "pad",
    "pairwise_distance",
    "permute_copy",
    "pinv",
    "pinverse",
    "pixel_shuffle",
    "pixel_unshuffle",
    "positive",
    "prod",
    "put",
    "qr",
    "rand_like",
    "randn",
    "randn_like",
    "ravel",
    "renorm",
    "repeat_interleave",
    "reshape",
    "reshape_as",
    "resolve_conj",
    "resolve_neg",
    "roll",
    "rot90",
    "rsub",
    "scalar_tensor",
    "scatter",
    "sinc",
    "softsign",
    "solve",
    "solve_ex",
    "solve_triangular",
    "split",
    "split_with_sizes",
    "split_with_sizes_copy",
    "squeeze_",
    "squeeze_copy",
    "stack",
    "std",
    "std_mean",
    "sub",
    "sum_to_size",
    "svdvals",
    "swapaxes",
    "swapaxes_",
    "swapdims",
    "swapdims_",
    "t",
    "t_",
    "t_copy",
    "take_along_dim",
    "tanhshrink",
    "tensor_split",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "tile",
    "trace",
    "transpose_",
    "transpose_copy",
    "trapezoid",
    "triangular_solve",
    "triplet_margin_loss",
    "true_divide",
    "type",
    "type_as",
    "unbind",
    "unbind_copy",
    "unflatten",
    "unfold",
    "unfold_copy",
    "unsafe_chunk",
    "unsafe_split",
    "unsqueeze_",
    "unsqueeze_copy",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "vecdot",
    "vector_norm",
    "view_as",
    "view_copy",
    "vsplit",
    "vstack",
    "where",
    "zero",
    "zeros",
    "zeros_like",
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
    ("dropout", &[0]),
    ("fill_diagonal", &[0, 1]),
    ("index_fill", &[0, 3]),
    ("index_put", &[0, 11]),
    ("masked_scatter", &[0, 2]),
    ("put", &[0, 2]),
    ("scatter", &[0, 3, 4]),
    ("scatter_add", &[0, 3]),
    ("repeat_interleave", &[0]),
    ("pad", &[0, 2]),
    ("constant_pad_nd", &[0, 2]),
    ("as_strided_scatter", &[0, 1]),
    ("index_add", &[0, 3]),
    ("index_copy", &[0, 3]),
    ("select_scatter", &[0, 1]),
    ("diagonal_scatter", &[0, 1]),
    ("slice_scatter", &[0, 1]),
];

/// Rows that give their first operand with some elements replaced, in its dtype.
pub fn is_replaced(op: &'static Op) -> bool {
    [&SELECT_SCATTER, &DIAGONAL_SCATTER, &AS_STRIDED_SCATTER, &SLICE_SCATTER].iter().any(|row| op.is(row))
}

/// Rows that write elements of one tensor into another of the same dtype, as where both are real.
static WRITES: &[&str] = &["index_add", "index_copy", "put", "scatter", "scatter_add"];

/// Whether the operands at these positions may be written into the first operand.
pub fn check_written(op: &'static Op, args: &Args, at: &[usize]) -> Result<()> {
    let Some(x) = args.opt_tensor(0) else { return Ok(()) };
    let written = at.iter().filter(|&&place| place > 0);
    for (other, param) in written.filter_map(|&place| Some((args.opt_tensor(place)?, op.params.get(place)?))) {
        // Complex numbers are tensors without dims.
        let is_number = other.ndim() == 0 && x.dtype().is_complex() && op.name == "scatter";
        if WRITES.contains(&op.name) && !is_number {
            same_dtype(x, other, param.name)?;
        }
        if op.name == "index_fill" && other.dtype().is_complex() && !x.dtype().is_complex() {
            fail!(DTYPE, "a value of dtype {} does not go into a tensor of dtype {}", other.dtype(), x.dtype());
        }
    }
    Ok(())
}

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
    if n::any(op, args) {
        return n::rule(op).map(Rule::Compose);
    }
    if is(&CAST) || is(&MOVE) {
        let asked = args.0.iter().enumerate().find_map(|(at, _)| args.dtype(at));
        return match asked {
            Some(DType::Bool) if args.input().dtype().is_complex() && is(&CAST) => Ok(Rule::Compose(One(a::truth))),
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
    if is_replaced(op) && !args.input().dtype().is_complex() {
        return Ok(Rule::Compose(One(a::real_source)));
    }
    if let Some(forward) = find(ANALYTIC, op) {
        return Ok(Rule::Analytic(forward));
    }
    if let Some(forward) = find(COMPOSED, op) {
        return Ok(Rule::Compose(forward));
    }
    if let Some(forward) = find(TRACKED, op) {
        return Ok(Rule::Tracked(forward));
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
        Lower::Compose(_) | Lower::Steps(_) => PLAIN.binary_search(&op.name).is_ok().then_some(Rule::Plain),
        _ => None,
    }
    .ok_or_else(|| refused(op.name))
}

#[cfg(test)]
mod tests {
    use super::PLAIN;

    /// Names are searched by halving.
    #[test]
    fn names_are_in_order_and_stand_once() {
        assert!(PLAIN.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
