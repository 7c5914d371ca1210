//! Means, variances and standard deviations.
//!
//! Variances take two passes, the mean first and then the squares of what is left, which fuse with what
//! surrounds them. 16-bit floats are computed in f32 and rounded once at the end.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit};
use crate::op::expr::compute;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Save, ex};
use crate::op::rows::pointwise::compare::{ISNAN, LOGICAL_NOT};
use crate::op::rows::pointwise::power::SQUARE;
use crate::op::rows::pointwise::unary::SQRT;
use crate::op::rows::reduction::reduce::{SUM, reduced_count, restored, spread, without_nan};
use crate::op::rows::shape::rearrange::NARROW;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::tensor::Tensor;
use crate::signature;

/// How many elements each result of a reduction of `v`'s first operand is made from.
fn count(v: &Backward<'_>) -> Result<usize> {
    let shape = &v.meta(mean::input).shape;
    let dims = infer::dims(v.args.ints(mean::dim).as_ref(), shape.len())?;
    Ok(reduced_count(shape, &dims))
}

/// The mean in the dtype of computation.
fn mean_of(e: &mut dyn Emit, x: &Tensor, dim: &Arg, keepdim: bool) -> Result<Tensor> {
    let shape = x.shape();
    let list = Args(smallvec::smallvec![dim.clone()]).ints(0);
    let dims = infer::dims(list.as_ref(), shape.len())?;
    let sum = e.call(&SUM, args![x, dim.clone(), keepdim, x.dtype().compute()])?;
    e.div(&sum, reduced_count(&shape, &dims) as f64)
}

fn float_only(dtype: DType) -> Result<()> {
    if !dtype.is_inexact() {
        return Err(crate::base::diag::Diag::error(
            crate::base::code::DTYPE,
            format!("a floating-point tensor is expected, not {dtype}"),
        )
        .help("convert first, for example with `.float()`, or give `dtype` where it is taken"));
    }
    Ok(())
}

signature!(mean(input: Tensor, dim: Dims = None, keepdim: Bool = false, dtype: DType = None));

pub static MEAN: Op = Op {
    name: "mean",
    params: mean::PARAMS,
    summary: "The mean over all, one or several dims; NaN of nothing.",
    examples: &[
        ex("tensor([1.0, 2.0, 6.0]).mean()", "tensor(3.)"),
        ex("tensor([[1, 2], [3, 4]]).mean(0, #{dtype: \"f32\"})", "tensor([2., 3.])"),
        ex("tensor([1, 2]).mean()", "E0202"),
        ex("ones([2]).mean(1)", "E0209"),
        ex("ones([2]).mean([0, 0])", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let dtype = a.dtype(mean::dtype).unwrap_or(a.input().dtype());
        float_only(dtype)?;
        let x = e.cast(a.input(), dtype)?;
        let mean = mean_of(e, &x, a.get(mean::dim), a.flag(mean::keepdim))?;
        Ok(vec![e.cast(&mean, dtype)?])
    }),
    grad: Grad::Rule(|e, v| {
        let share = e.div(v.g(), count(v)? as f64)?;
        Ok(vec![Some(spread(e, v, &share)?)])
    }),
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static NANMEAN: Op = Op {
    name: "nanmean",
    params: mean::PARAMS,
    summary: "The mean of the elements that are not NaN, over all, one or several dims.",
    examples: &[
        ex("tensor([1.0, NAN, 5.0]).nanmean()", "tensor(3.)"),
        ex("tensor([1, 2]).nanmean()", "E0202"),
        ex("ones([2]).nanmean(1)", "E0209"),
        ex("ones([2]).nanmean([0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, dim, keepdim) = (a.input(), a.get(mean::dim), a.flag(mean::keepdim));
        float_only(x.dtype())?;
        let dtype = a.dtype(mean::dtype).unwrap_or(x.dtype());
        float_only(dtype)?;
        let missing = e.call(&ISNAN, args![x])?;
        let there = e.call(&LOGICAL_NOT, args![&missing])?;
        let count = e.call(&SUM, args![&there, dim.clone(), keepdim])?;
        let known = without_nan(e, x)?;
        let sum = e.call(&SUM, args![&known, dim.clone(), keepdim, dtype.compute()])?;
        let mean = e.div(&sum, &count)?;
        Ok(vec![e.cast(&mean, dtype)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Bound: of this many parts of a long dim one is looked at for `near_mean`.
const PARTS: usize = 32;

/// The mean of a part of the elements, to be subtracted from all of them before they are squared: all are read once.
///
/// Wherever the part lies, a mean of one of k parts is at most sqrt(k - 1) standard deviations from the mean of all, so that the
/// correction of the squares' sum is at most k - 1 times what remains of it: five bits for 32 parts.
fn near_mean(e: &mut dyn Emit, x: &Tensor, dim: &Arg, dims: &[usize]) -> Result<Tensor> {
    let shape = x.shape();
    let long = dims.iter().copied().find(|&dim| shape[dim] >= PARTS);
    let part = match long {
        Some(dim) => e.call(&NARROW, args![x, dim as i64, 0, (shape[dim] / PARTS) as i64])?,
        None => x.clone(),
    };
    // Converted behind the cut: 16-bit elements are read where they are.
    let part = e.cast(&part, x.dtype().compute())?;
    mean_of(e, &part, dim, true)
}

/// What the mean follows from: that of a part of the elements, and how far all are from it.
struct Apart {
    near: Tensor,
    /// The sum of the differences from that, of so many elements.
    rest: Tensor,
    count: f64,
}

impl Apart {
    fn mean(&self, e: &mut dyn Emit) -> Result<Tensor> {
        let near = e.call(&RESHAPE, args![&self.near, self.rest.shape().as_slice()])?;
        let share = e.div(&self.rest, self.count)?;
        e.add(&near, &share)
    }
}

signature!(of_sums(squares: Tensor, rest: Tensor, count: Number, freedom: Number));

/// A variance from the sums of the squares and of the differences, not below 0. One operation, since a call costs as much as a
/// small reduction.
static OF_SUMS: Op = Op {
    name: "var",
    params: of_sums::PARAMS,
    summary: "The variance of so many elements from two sums.",
    lower: Lower::Map { function: &f::VARIANCE, promote: Promote::FloatOnly },
    call: CallForm::Internal,
    ..Op::BASE
};

/// Variance with its correction as a number, of squares in `wide`. Arguments: `x, dim, keepdim, correction`.
fn moments(e: &mut dyn Emit, a: &Args, wide: DType) -> Result<(Tensor, Apart)> {
    let x = a.input();
    let shape = x.shape();
    let dims = infer::dims(a.ints(variance::dim).as_ref(), shape.len())?;
    let near = near_mean(e, x, a.get(variance::dim), &dims)?;
    let x = e.cast(x, x.dtype().compute())?;
    let apart = e.sub(&x, &near)?;
    let apart = e.cast(&apart, wide)?;
    let squares = e.call(&SQUARE, args![&apart])?;
    let sum = e.call(&SUM, args![&squares, a.get(variance::dim).clone(), a.flag(variance::keepdim)])?;
    // What the differences sum to says how far from them the mean is: that corrects the sum of squares (Chan, Golub and
    // LeVeque, "Algorithms for computing the sample variance", 1983).
    let rest = e.call(&SUM, args![&apart, a.get(variance::dim).clone(), a.flag(variance::keepdim)])?;
    let count = reduced_count(&shape, &dims) as f64;
    let freedom = (count - a.float(variance::correction)).max(0.0);
    let variance = e.call(&OF_SUMS, args![&sum, &rest, count, freedom])?;
    Ok((variance, Apart { near, rest, count }))
}

/// The same as standard deviation. Squares of what f32 holds may be beyond it where their root is not; those of f16 are not.
fn root_moments(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, Apart)> {
    let wide = if a.input().dtype() == DType::F16 { DType::F32 } else { DType::F64 };
    let (variance, apart) = moments(e, a, wide)?;
    Ok((e.call(&SQRT, args![&variance])?, apart))
}

/// Both in the dtype of the operand.
fn rounded(e: &mut dyn Emit, a: &Args, (spread, apart): (Tensor, Apart)) -> Result<Vec<Tensor>> {
    let (dtype, mean) = (a.input().dtype(), apart.mean(e)?);
    Ok(vec![e.cast(&spread, dtype)?, e.cast(&mean, dtype)?])
}

/// The gradient of a variance, given `g` of its shape.
fn variance_grad(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Tensor> {
    let x = e.cast(v.input(), v.meta(variance::input).dtype.compute())?;
    let mean = e.call(&MEAN, args![&x, v.args.get(variance::dim).clone(), true])?;
    let g = restored(e, v, g)?;
    let freedom = count(v)? as f64 - v.args.float(variance::correction);
    if freedom <= 0.0 {
        return compute(e, |c| c.of(&g) * f64::INFINITY * (c.of(&x) - &mean));
    }
    compute(e, |c| c.of(&g) * (2.0 / freedom) * (c.of(&x) - &mean))
}

signature!(variance(input: Tensor, dim: Dims = None, keepdim: Bool = false, correction: Float));

pub static VARIANCE: Op = Op {
    name: "var",
    params: variance::PARAMS,
    summary: "The variance.",
    lower: Lower::Steps(|e, a| {
        let (variance, _) = moments(e, a, a.input().dtype().compute())?;
        Ok(vec![e.cast(&variance, a.input().dtype())?])
    }),
    saves: &[Save::INPUT],
    grad: Grad::Rule(|e, v| Ok(vec![Some(variance_grad(e, v, v.g())?)])),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static DEVIATION: Op = Op {
    name: "std",
    params: variance::PARAMS,
    summary: "The standard deviation.",
    lower: Lower::Steps(|e, a| {
        let (root, _) = root_moments(e, a)?;
        Ok(vec![e.cast(&root, a.input().dtype())?])
    }),
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let g = root_grad(e, v, v.g())?;
        Ok(vec![Some(variance_grad(e, v, &g)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// The gradient of the variance below a root; 0 where all elements are equal.
fn root_grad(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Tensor> {
    compute(e, |c| {
        let root = c.of(v.result());
        (c.of(g) / (root * 2.0)).zero_where(root.equals(0))
    })
}

/// The gradient of a variance and a mean, of which one may be missing.
fn moments_grad(e: &mut dyn Emit, v: &Backward<'_>, variance: Option<Tensor>) -> Result<Vec<Option<Tensor>>> {
    let of_variance = variance.map(|g| variance_grad(e, v, &g)).transpose()?;
    let Some(g) = v.grads[1].as_ref() else { return Ok(vec![of_variance]) };
    let share = e.div(g, count(v)? as f64)?;
    let of_mean = spread(e, v, &share)?;
    Ok(vec![Some(match of_variance {
        Some(of_variance) => e.add(&of_variance, &of_mean)?,
        None => of_mean,
    })])
}

/// Both of one reading of the operand.
static VARIANCE_AND_MEAN: Op = Op {
    name: "var_mean",
    params: variance::PARAMS,
    summary: "The variance and the mean.",
    lower: Lower::Steps(|e, a| {
        let both = moments(e, a, a.input().dtype().compute())?;
        rounded(e, a, both)
    }),
    saves: &[Save::INPUT],
    grad: Grad::Rule(|e, v| moments_grad(e, v, v.grads[0].clone())),
    call: CallForm::Internal,
    ..Op::BASE
};

static DEVIATION_AND_MEAN: Op = Op {
    name: "std_mean",
    params: variance::PARAMS,
    summary: "The standard deviation and the mean.",
    lower: Lower::Steps(|e, a| {
        let both = root_moments(e, a)?;
        rounded(e, a, both)
    }),
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let variance = v.grads[0].as_ref().map(|g| root_grad(e, v, g)).transpose()?;
        moments_grad(e, v, variance)
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Both of PyTorch's signatures: `(dim, unbiased, keepdim)` and `(dim, correction: , keepdim: )`, and `(unbiased)`
/// alone. Gives the arguments of the rows above.
fn spread_arguments(a: &Args) -> Result<Args> {
    let x = a.input();
    float_only(x.dtype())?;
    let mut dim = a.get(var::dim).clone();
    let mut unbiased = match a.attr(var::unbiased) {
        Attr::Bool(flag) => Some(*flag),
        _ => None,
    };
    if let Attr::Bool(flag) = *a.attr(var::dim) {
        if unbiased.is_some() {
            fail!(ARGUMENT_TYPE, "`unbiased` is given twice");
        }
        (unbiased, dim) = (Some(flag), Arg::None);
    }
    let correction = match (unbiased, a.opt_float(var::correction)) {
        (Some(_), Some(_)) => fail!(EXTRA_ARGUMENT, "`unbiased` and `correction` exclude each other"),
        (Some(unbiased), None) => unbiased as u8 as f64,
        (None, correction) => correction.unwrap_or(1.0),
    };
    Ok(args![x, dim, a.flag(var::keepdim), correction])
}

signature!(var(
    input: Tensor, dim: DimsOrFlag = None, unbiased: Bool = None, keepdim: Bool = false, correction: Number = None,
));

const SPREAD_DETAILS: &str = "Squares are divided by the number of elements less `correction`, which is 1 unless \
                              given; `unbiased: false` means 0. `var(x, dim, unbiased, keepdim)` and \
                              `var(x, unbiased)` are taken too.";

pub static VAR: Op = Op {
    name: "var",
    params: var::PARAMS,
    summary: "The variance over all, one or several dims.",
    details: SPREAD_DETAILS,
    examples: &[
        ex("tensor([1.0, 2.0, 3.0]).var()", "tensor(1.)"),
        ex("tensor([1.0, 3.0]).var(0, #{correction: 0})", "tensor(1.)"),
        ex("tensor([1.0, 3.0]).var(false)", "tensor(1.)"),
        ex("tensor([1, 2]).var()", "E0202"),
        ex("ones([2]).var(1)", "E0209"),
        ex("ones([2]).var([0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| e.apply(&VARIANCE, spread_arguments(a)?)),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static STD: Op = Op {
    name: "std",
    params: var::PARAMS,
    summary: "The standard deviation over all, one or several dims.",
    details: SPREAD_DETAILS,
    examples: &[
        ex("tensor([1.0, 2.0, 3.0]).std()", "tensor(1.)"),
        ex("tensor([2e20, -1e20, 1e20]).std()", "tensor(1.5275e+20)"),
        ex("tensor([1.0, 3.0]).std(#{correction: 0})", "tensor(1.)"),
        ex("tensor([1, 2]).std()", "E0202"),
        ex("ones([2]).std(1)", "E0209"),
        ex("ones([2]).std([0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| e.apply(&DEVIATION, spread_arguments(a)?)),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Both by one reading; of complex numbers, whose parts are summed up apart, by two.
fn with_mean(e: &mut dyn Emit, both: &'static Op, spread: &'static Op, a: Args) -> Result<Vec<Tensor>> {
    if !a.input().dtype().is_complex() {
        return e.apply(both, a);
    }
    let mean = e.call(&MEAN, args![a.input(), a.get(variance::dim).clone(), a.flag(variance::keepdim)])?;
    Ok(vec![e.call(spread, a)?, mean])
}

pub static VAR_MEAN: Op = Op {
    name: "var_mean",
    params: var::PARAMS,
    summary: "The variance and the mean over all, one or several dims, in an array.",
    details: SPREAD_DETAILS,
    examples: &[
        ex("var_mean(tensor([1.0, 2.0, 3.0]))", "[tensor(1.), tensor(2.)]"),
        ex("var_mean(tensor([1, 2]))", "E0202"),
        ex("var_mean(ones([2]), 1)", "E0209"),
        ex("var_mean(ones([2]), [0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| with_mean(e, &VARIANCE_AND_MEAN, &VARIANCE, spread_arguments(a)?)),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static STD_MEAN: Op = Op {
    name: "std_mean",
    params: var::PARAMS,
    summary: "The standard deviation and the mean over all, one or several dims, in an array.",
    details: SPREAD_DETAILS,
    examples: &[
        ex("std_mean(tensor([1.0, 2.0, 3.0]))", "[tensor(1.), tensor(2.)]"),
        ex("std_mean(tensor([1, 2]))", "E0202"),
        ex("std_mean(ones([2]), 1)", "E0209"),
        ex("std_mean(ones([2]), [0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| with_mean(e, &DEVIATION_AND_MEAN, &DEVIATION, spread_arguments(a)?)),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &MEAN,
    &NANMEAN,
    &OF_SUMS,
    &VARIANCE,
    &DEVIATION,
    &VARIANCE_AND_MEAN,
    &DEVIATION_AND_MEAN,
    &VAR,
    &STD,
    &VAR_MEAN,
    &STD_MEAN,
];
