//! Distinct elements, counts of values, and places in sorted sequences.

use crate::args;
use crate::base::attr::Attr;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::search;
use crate::kernel::sort;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{Grad, Lower, Op, ex};
use crate::op::rows::indexing::index::TAKE;
use crate::op::rows::ordering::sort::SORT;
use crate::op::rows::pointwise::blend::CLAMP_MAX;
use crate::op::rows::pointwise::compare::{EQ, LOGICAL_NOT};
use crate::op::rows::pointwise::value_checks::FINITE;
use crate::op::rows::reduction::reduce::ANY;
use crate::op::rows::shape::view::{CLONE, RESHAPE, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

const NO_GRADIENT: &str = "which elements are distinct has no gradient";

/// Values, and when asked for where each element went and how many went there.
fn unique(
    e: &mut dyn Emit,
    x: &Tensor,
    dim: Option<i64>,
    consecutive: bool,
    expected: [bool; 2],
) -> Result<Vec<Tensor>> {
    let dim = dim.map(|dim| infer::dim(dim, x.ndim())).transpose()?;
    // A tensor of no dimensions has no slices to compare.
    let dim = dim.filter(|_| x.ndim() > 0);
    let shape = x.shape();
    let (size, values_shape, inverse_shape) = match dim {
        None => (x.numel(), Shape::from_slice(&[x.numel()]), shape.clone()),
        Some(dim) => (shape[dim], shape.clone(), Shape::from_slice(&[shape[dim]])),
    };
    if let Some(dim) = dim
        && (0..shape.len()).any(|d| d != dim && shape[d] == 0)
        && size > 0
    {
        fail!(SHAPE, "slices without elements cannot be compared: the tensor has shape {:?}", shape.as_slice());
    }
    let along = dim.map_or(Attr::None, |dim| Attr::Int(dim as i64));
    let call = KernelCall::new("unique", &sort::UNIQUE).input(x).attr(along).flag(consecutive);
    // Of elements, what is not asked for is not written.
    let wanted = |which: usize| dim.is_some() || expected[which];
    let inverse_shape = if wanted(0) { inverse_shape } else { Shape::from_slice(&[0]) };
    let call = call.output(&values_shape, x.dtype()).output(&inverse_shape, DType::I64);
    let call = call.output(&[if wanted(1) { size } else { 0 }], DType::I64);
    let mut results = e.kernel(call.output(&[1], DType::I64))?;
    let number = e.read(&results[3])?.first().map_or(0, |n| n.to_i64().max(0) as usize);
    let part = |e: &mut dyn Emit, t: &Tensor, dim: usize| -> Result<Tensor> {
        let layout = t.view().layout.slice(dim, 0, 1, number.min(size));
        let valid = e.alias(t, layout);
        e.call(&CLONE, args![&valid])
    };
    let mut out = vec![part(e, &results[0], dim.unwrap_or(0))?];
    if expected[0] {
        out.push(results.swap_remove(1));
        // `swap_remove` put the number in its place; the counts stay third.
    }
    if expected[1] {
        out.push(part(e, &results[2], 0)?);
    }
    Ok(out)
}

signature!(unique_args(
    input: Tensor, sorted: Bool = true, return_inverse: Bool = false, return_counts: Bool = false, dim: Dim = None,
));

pub static UNIQUE: Op = Op {
    name: "unique",
    params: unique_args::PARAMS,
    summary: "The distinct elements in order, or the distinct slices along `dim`.",
    details: "With `return_inverse` and `return_counts` an array: the values, where each element went, how many \
              went there. Waits. Each NaN is distinct.",
    examples: &[
        ex("tensor([3, 1, 3]).unique()", "tensor([1, 3])"),
        ex("tensor([3, 1, 3]).unique(#{return_counts: true})", "[tensor([1, 3]), tensor([1, 2])]"),
        ex("ones([2]).unique(#{dim: 1})", "E0209"),
        ex("zeros([2, 0]).unique(#{dim: 0})", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        unique(
            e,
            a.input(),
            a.opt_int(unique_args::dim),
            false,
            [a.flag(unique_args::return_inverse), a.flag(unique_args::return_counts)],
        )
    }),
    grad: Grad::Stop(NO_GRADIENT),
    ..Op::BASE
};

signature!(unique_consecutive(
    input: Tensor, return_inverse: Bool = false, return_counts: Bool = false, dim: Dim = None,
));

pub static UNIQUE_CONSECUTIVE: Op = Op {
    name: "unique_consecutive",
    params: unique_consecutive::PARAMS,
    summary: "The elements without repetitions of their neighbor before, or so the slices along `dim`.",
    details: "With `return_inverse` and `return_counts` an array, as `unique`. Waits.",
    examples: &[
        ex("tensor([1, 1, 2, 1]).unique_consecutive()", "tensor([1, 2, 1])"),
        ex("ones([2]).unique_consecutive(#{dim: 1})", "E0209"),
        ex("zeros([2, 0]).unique_consecutive(#{dim: 0})", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        unique(
            e,
            a.input(),
            a.opt_int(unique_consecutive::dim),
            true,
            [a.flag(unique_consecutive::return_inverse), a.flag(unique_consecutive::return_counts)],
        )
    }),
    grad: Grad::Stop(NO_GRADIENT),
    ..Op::BASE
};

signature!(bincount(input: Tensor, weights: Tensor = None, minlength: Int = 0));

pub static BINCOUNT: Op = Op {
    name: "bincount",
    params: bincount::PARAMS,
    summary: "How often each of 0, 1, .. occurs in a list of integers, or the sum of its weights.",
    details: "Waits for the largest. A negative value is an error found while computing.",
    examples: &[
        ex("tensor([1, 3, 1]).bincount()", "tensor([0, 2, 0, 1])"),
        ex("tensor([1, 1]).bincount(tensor([0.5, 1.0]))", "tensor([0.0000, 1.5000])"),
        ex("tensor([[1]]).bincount()", "E0201"),
        ex("tensor([1.0]).bincount()", "E0202"),
        ex("tensor([1]).bincount((), -1)", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let (x, minlength) = (a.input(), a.int(bincount::minlength));
        if x.ndim() != 1 {
            fail!(SHAPE, "one dimension is expected, not {}", x.ndim());
        }
        if !x.dtype().is_int() {
            fail!(DTYPE, "integers are expected, not {}", x.dtype());
        }
        if minlength < 0 {
            fail!(VALUE, "`minlength` must not be negative, and is {minlength}");
        }
        let weights = match a.opt_tensor(bincount::weights) {
            Some(weights) if weights.shape() != x.shape() => {
                fail!(
                    SHAPE,
                    "`weights` has shape {:?}, the tensor {:?}",
                    weights.shape().as_slice(),
                    x.shape().as_slice()
                )
            }
            Some(weights) if weights.dtype() == DType::F32 => Some(weights.clone()),
            Some(weights) => Some(e.cast(weights, DType::F64)?),
            None => None,
        };
        let call = KernelCall::new("bincount", &search::BINCOUNT_SIZE).input(x).int(minlength).output(&[1], DType::I64);
        let size = e.kernel(call)?.swap_remove(0);
        let n = e.read(&size)?.first().map_or(0, |n| n.to_i64().max(minlength).max(0) as usize);
        let dtype = weights.as_ref().map_or(DType::I64, Tensor::dtype);
        let call = KernelCall::new("bincount", &search::BINCOUNT).input(x).inputs(&weights);
        e.kernel(call.output(&[n], dtype))
    }),
    grad: Grad::Stop("a count has no gradient"),
    ..Op::BASE
};

signature!(histc(input: Tensor, bins: Int = 100, min: Number = 0, max: Number = 0));

pub static HISTC: Op = Op {
    name: "histc",
    params: histc::PARAMS,
    summary: "How many elements lie in each of `bins` equal parts of `[min, max]`; both 0: of the range of the data.",
    details: "What lies outside, and NaN, is not counted; where the range is that of the data, NaN and infinity are an error \
              found while computing.",
    examples: &[
        ex("tensor([1.0, 2.0, 1.0]).histc(2, 0, 4)", "tensor([2., 1.])"),
        ex("tensor([1]).histc(2)", "E0202"),
        ex("ones([2]).histc(0)", "E0206"),
        ex("ones([2]).histc(2, 3, 1)", "E0206"),
        ex("tensor([NAN, 1.0]).histc(2)", "E0411"),
    ],
    lower: Lower::Kernel(|e, a| {
        let (x, bins, min, max) = (a.input(), a.int(histc::bins), a.float(histc::min), a.float(histc::max));
        if !x.dtype().is_float() {
            fail!(DTYPE, "a floating-point tensor is expected, not {}", x.dtype());
        }
        if bins < 1 {
            fail!(VALUE, "`bins` must be positive, and is {bins}");
        }
        if max < min || !min.is_finite() || !max.is_finite() {
            fail!(VALUE, "the range from {min} to {max} cannot be divided into bins");
        }
        let x = if min == max { &e.call(&FINITE, args![x])? } else { x };
        let call = KernelCall::new("histc", &search::HISTC).input(x).int(bins).float(min).float(max);
        Ok(call.output(&[bins as usize], x.dtype()))
    }),
    grad: Grad::Stop("a count has no gradient"),
    ..Op::BASE
};

/// Places of `values` in `sorted`, the dtypes made one.
fn search(
    e: &mut dyn Emit,
    sorted: &Tensor,
    values: &Tensor,
    sorter: Option<&Tensor>,
    right: bool,
    narrow: bool,
) -> Result<KernelCall> {
    if sorted.dtype() == DType::Bool || values.dtype() == DType::Bool {
        fail!(DTYPE, "bool tensors are not supported");
    }
    let common = sorted.dtype().promote(values.dtype());
    let (sorted, values) = (e.cast(sorted, common)?, e.cast(values, common)?);
    let out = if narrow { DType::I32 } else { DType::I64 };
    let shape = values.shape();
    let call = KernelCall::new("searchsorted", &search::SEARCHSORTED).input(&sorted).input(&values).inputs(sorter);
    Ok(call.flag(right).output(&shape, out))
}

/// A tensor, or a number as one of no dimensions.
fn values(e: &mut dyn Emit, arg: &Arg, a: &Args, at: usize, like: &Tensor) -> Result<Tensor> {
    if let Arg::Tensor(values) = arg {
        return Ok(values.clone());
    }
    let value = a.scalar(at).unwrap_or(Scalar::Int(0));
    let dtype = match value {
        Scalar::Float(_) if !like.dtype().is_float() => e.default_float(),
        _ => like.dtype(),
    };
    e.full(&[], value, &Meta { dtype, ..Meta::of(like) })
}

signature!(searchsorted(
    sorted_sequence: Tensor, input: Operand, out_int32: Bool = false, right: Bool = false,
    side: Str(&["left", "right"]) = None, sorter: Tensor = None,
));

pub static SEARCHSORTED: Op = Op {
    name: "searchsorted",
    params: searchsorted::PARAMS,
    summary: "Where each value would be inserted into a sorted sequence, before equal elements or (`right`) after them.",
    examples: &[
        ex("searchsorted(tensor([1, 3, 5]), tensor([3, 6]))", "tensor([1, 3])"),
        ex("searchsorted(tensor([1, 3, 5]), 3, #{right: true})", "tensor(2)"),
        ex("searchsorted(ones([2, 3]), ones([3]))", "E0201"),
        ex("searchsorted(tensor([true]), tensor([true]))", "E0202"),
        ex("searchsorted(ones([2]), 1.0, #{side: \"left\", right: true})", "E0206"),
    ],
    lower: Lower::Kernel(|e, a| {
        let sorted = a.tensor(searchsorted::sorted_sequence);
        let values = values(e, a.get(searchsorted::input), a, 1, sorted)?;
        check_sequence(sorted, &values)?;
        if a.text(searchsorted::side) == "left" && a.flag(searchsorted::right) {
            fail!(VALUE, "`side` \"left\" and `right: true` contradict each other");
        }
        let sorter = a.opt_tensor(searchsorted::sorter);
        if let Some(sorter) = sorter {
            if sorter.dtype() != DType::I64 {
                fail!(DTYPE, "`sorter` must hold i64, not {}", sorter.dtype());
            }
            if sorter.shape() != sorted.shape() {
                fail!(
                    SHAPE,
                    "`sorter` has shape {:?}, the sequence {:?}",
                    sorter.shape().as_slice(),
                    sorted.shape().as_slice()
                );
            }
        }
        search(
            e,
            sorted,
            &values,
            sorter,
            a.flag(searchsorted::right) || a.text(searchsorted::side) == "right",
            a.flag(searchsorted::out_int32),
        )
    }),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

fn check_sequence(sorted: &Tensor, values: &Tensor) -> Result<()> {
    let (have, want) = (sorted.shape(), values.shape());
    if have.is_empty() {
        fail!(SHAPE, "the sorted sequence has no dimensions");
    }
    let rows = have.len() == want.len() && have[..have.len() - 1] == want[..want.len() - 1];
    if have.len() > 1 && !rows {
        return Err(Diag::error(
            code::SHAPE,
            format!(
                "the sorted sequence has shape {:?}, the values {:?}; they must agree but for the last dimension",
                have.as_slice(),
                want.as_slice()
            ),
        )
        .help("a sequence of one dimension takes values of any shape"));
    }
    Ok(())
}

signature!(bucketize(input: Operand, boundaries: Tensor, out_int32: Bool = false, right: Bool = false));

pub static BUCKETIZE: Op = Op {
    name: "bucketize",
    params: bucketize::PARAMS,
    summary: "The number of the interval between sorted boundaries that each value lies in.",
    examples: &[
        ex("bucketize(tensor([0, 3, 9]), tensor([1, 3, 5]))", "tensor([0, 1, 3])"),
        ex("bucketize(ones([2]), ones([2, 2]))", "E0201"),
        ex("bucketize(tensor([true]), tensor([true]))", "E0202"),
    ],
    lower: Lower::Kernel(|e, a| {
        let boundaries = a.tensor(bucketize::boundaries);
        if boundaries.ndim() != 1 {
            fail!(SHAPE, "`boundaries` must have one dimension, not {}", boundaries.ndim());
        }
        let values = values(e, a.get(bucketize::input), a, 0, boundaries)?;
        search(e, boundaries, &values, None, a.flag(bucketize::right), a.flag(bucketize::out_int32))
    }),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

/// Up to so many values are compared with each element.
const FEW: usize = 16;

/// Whether each element is one of `tests`, by looking for its place among them in order.
fn found_sorted(e: &mut dyn Emit, elements: &Tensor, tests: &Tensor) -> Result<Tensor> {
    let sorted = e.apply(&SORT, args![tests])?.swap_remove(0);
    let place = e.call(&SEARCHSORTED, args![&sorted, elements])?;
    // Past the last there is nothing; the last itself is smaller then.
    let place = e.call(&CLAMP_MAX, args![&place, tests.numel() - 1])?;
    let there = e.call(&TAKE, args![&sorted, &place])?;
    e.call(&EQ, args![elements, &there])
}

signature!(isin(elements: Operand, test_elements: Operand, assume_unique: Bool = false, invert: Bool = false));

pub static ISIN: Op = Op {
    name: "isin",
    params: isin::PARAMS,
    summary: "Whether each element is one of `test_elements`.",
    examples: &[
        ex("isin(tensor([1, 2, 3]), tensor([3, 1]))", "tensor([ true, false,  true])"),
        ex("isin(1, 2)", "E0204"),
    ],
    lower: Lower::Steps(|e, a| {
        let Some(like) = a.opt_tensor(isin::elements).or(a.opt_tensor(isin::test_elements)) else {
            fail!(ARGUMENT_TYPE, "one of the two must be a tensor");
        };
        let (elements, tests) =
            (values(e, a.get(isin::elements), a, 0, like)?, values(e, a.get(isin::test_elements), a, 1, like)?);
        let tests = e.call(&RESHAPE, args![&tests, &[-1i64][..]])?;
        if tests.numel() > FEW && tests.dtype() == elements.dtype() && elements.dtype() != DType::Bool {
            let found = found_sorted(e, &elements, &tests)?;
            return Ok(vec![if a.flag(isin::invert) { e.call(&LOGICAL_NOT, args![&found])? } else { found }]);
        }
        let column = e.call(&UNSQUEEZE, args![&elements, -1])?;
        let equal = e.call(&EQ, args![&column, &tests])?;
        let found = e.call(&ANY, args![&equal, -1])?;
        Ok(vec![if a.flag(isin::invert) { e.call(&LOGICAL_NOT, args![&found])? } else { found }])
    }),
    grad: Grad::Stop("the result is bool"),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&UNIQUE, &UNIQUE_CONSECUTIVE, &BINCOUNT, &HISTC, &SEARCHSORTED, &BUCKETIZE, &ISIN];
