//! Reading and writing slices along one dim by a list of positions: `index_select` and its writing forms.
//!
//! The writing rows work in place when called so: only the named slices are touched. Positions are checked by
//! the kernels, so a bad one is found while computing; shapes and dtypes are judged here.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::index;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{Grad, Lower, Op, Save, ex};
use crate::op::rows::indexing::gather::{SCATTER_REDUCE, at_least_1d, check_index, same_dtype, wrapped};
use crate::op::rows::pointwise::arith::{element_of, masked};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::expanded;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// The rules of a list of positions beside a tensor; the dim and how many there are.
fn check_list(x: &Tensor, dim: i64, index: &Tensor, narrow: bool) -> Result<(usize, usize)> {
    let at = infer::dim(dim, x.ndim())?;
    check_index(index, narrow)?;
    if index.ndim() > 1 {
        fail!(SHAPE, "the index has {} dimensions, and must have one at most", index.ndim());
    }
    Ok((at, index.numel()))
}

signature!(index_select(input: Tensor, dim: Dim, index: Tensor));

pub static INDEX_SELECT: Op = Op {
    name: "index_select",
    params: index_select::PARAMS,
    summary: "The slices along `dim` that a list of positions names, in its order.",
    details: "A position out of range is an error found while computing.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).index_select(0, tensor([1, 1]))", "tensor([[3, 4],\n        [3, 4]])"),
        ex("ones([2]).index_select(1, tensor([0]))", "E0209"),
        ex("ones([2]).index_select(0, tensor([[0]]))", "E0201"),
        ex("ones([2]).index_select(0, tensor([0.0]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, index) = (a.input(), a.tensor(index_select::index));
        let (dim, n) = check_list(x, a.int(index_select::dim), index, true)?;
        let mut shape = x.shape();
        match shape.get_mut(dim) {
            Some(size) => *size = n,
            None if n != 1 => fail!(SHAPE, "a tensor of no dimensions takes one position, not {n}"),
            None => {}
        }
        let call = KernelCall::new("index_select", &index::INDEX_SELECT).input(x).input(index).int(dim as i64);
        Ok(call.output(&shape, x.dtype()))
    }),
    saves: &[Save::In(index_select::index)],
    grad: Grad::Rule(|e, v| {
        let zeros = e.zeros_like(v.meta(index_select::input))?;
        Ok(vec![Some(
            e.call(&INDEX_ADD, args![&zeros, v.args.int(index_select::dim), v.saved(index_select::index), v.g()])?,
        )])
    }),
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// The source of a writing form: as the tensor, with a slice for each position.
fn check_source(x: &Tensor, dim: usize, n: usize, source: &Tensor) -> Result<()> {
    same_dtype(x, source, "source")?;
    let (sizes, given) = (at_least_1d(&x.shape()), at_least_1d(&source.shape()));
    let fits =
        sizes.len() == given.len() && given[dim] == n && (0..sizes.len()).all(|d| d == dim || sizes[d] == given[d]);
    if !fits {
        let mut expected = sizes;
        expected[dim] = n;
        fail!(
            SHAPE,
            "`source` has shape {:?}, and {n} positions along dimension {dim} need {:?}",
            source.shape().as_slice(),
            expected.as_slice()
        );
    }
    Ok(())
}

/// What of `g` came from the source: its slices at the positions.
fn source_grad(e: &mut dyn Emit, v: &Backward<'_>, index: &Tensor) -> Result<Tensor> {
    let picked = e.call(&INDEX_SELECT, args![v.g(), v.args.int(index_add::dim), index])?;
    let shape = v.meta(index_add::source).shape.clone();
    e.call(&RESHAPE, args![&picked, shape.as_slice()])
}

fn write_call(name: &'static str, kernel: &'static Kernel, a: &Args, dim: usize) -> KernelCall {
    let x = a.input();
    let call = KernelCall::new(name, kernel)
        .input(x)
        .input(a.tensor(index_add::index))
        .input(a.tensor(index_add::source))
        .int(dim as i64);
    call.output(&x.shape(), x.dtype()).writes_input()
}

signature!(index_add(input: Tensor, dim: Dim, index: Tensor, source: Tensor, alpha: Number = 1));

pub static INDEX_ADD: Op = Op {
    name: "index_add",
    params: index_add::PARAMS,
    summary: "Adds `alpha` times the slices of `source` at the positions that `index` lists along `dim`.",
    examples: &[
        ex("zeros([3]).index_add(0, tensor([2, 2]), tensor([5.0, 6.0]))", "tensor([ 0.,  0., 11.])"),
        ex("zeros([3]).index_add(0, tensor([0]), ones([2]))", "E0201"),
        ex("zeros([3]).index_add(1, tensor([0]), ones([1]))", "E0209"),
        ex("zeros([3]).index_add(0, tensor([0]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, source) = (a.input(), a.tensor(index_add::source));
        let (dim, n) = check_list(x, a.int(index_add::dim), a.tensor(index_add::index), true)?;
        check_source(x, dim, n, source)?;
        let alpha = element_of(a.scalar(index_add::alpha).unwrap_or(Scalar::Int(1)), x.dtype())?;
        Ok(write_call("index_add", &index::INDEX_ADD, a, dim).attr(Attr::Scalar(alpha)))
    }),
    saves: &[Save::For(index_add::index, index_add::source)],
    grad: Grad::Rule(|e, v| {
        let mut grads = vec![Some(v.g().clone()), None, None];
        if v.needs(index_add::source) {
            let g = source_grad(e, v, v.saved(index_add::index))?;
            grads[2] = Some(e.mul(&g, v.args.scalar(index_add::alpha).unwrap_or(Scalar::Int(1)))?);
        }
        Ok(grads)
    }),
    inplace: true,
    forward: crate::op::row::Forward::Linear(&[index_add::input, index_add::source]),
    ..Op::BASE
};

signature!(index_copy(input: Tensor, dim: Dim, index: Tensor, source: Tensor));

pub static INDEX_COPY: Op = Op {
    name: "index_copy",
    params: index_copy::PARAMS,
    summary: "Writes the slices of `source` to the positions that `index` lists along `dim`; the last of several stays, on a GPU the last with `use_deterministic_algorithms(true)` and else any.",
    examples: &[
        ex("zeros([3]).index_copy(0, tensor([2, 0]), tensor([5.0, 6.0]))", "tensor([6., 0., 5.])"),
        ex("zeros([3]).index_copy(0, tensor([0]), ones([2]))", "E0201"),
        ex("zeros([3]).index_copy(1, tensor([0]), ones([1]))", "E0209"),
        ex("zeros([3]).index_copy(0, tensor([0]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let (dim, n) = check_list(x, a.int(index_copy::dim), a.tensor(index_copy::index), false)?;
        check_source(x, dim, n, a.tensor(index_copy::source))?;
        Ok(write_call("index_copy", &index::INDEX_COPY, a, dim))
    }),
    saves: &[Save::In(index_copy::index)],
    grad: Grad::Rule(|e, v| {
        let index = v.saved(index_copy::index);
        let mut grads = vec![None, None, None];
        if v.needs(index_copy::input) {
            grads[0] = Some(e.call(&INDEX_FILL, args![v.g(), v.args.int(index_copy::dim), index, Scalar::Int(0)])?);
        }
        if v.needs(index_copy::source) {
            grads[2] = Some(source_grad(e, v, index)?);
        }
        Ok(grads)
    }),
    inplace: true,
    forward: crate::op::row::Forward::Linear(&[index_copy::input, index_copy::source]),
    ..Op::BASE
};

signature!(index_fill(input: Tensor, dim: Dim, index: Tensor, value: Operand));

pub static INDEX_FILL: Op = Op {
    name: "index_fill",
    params: index_fill::PARAMS,
    summary: "Writes one value to the slices at the positions that `index` lists along `dim`.",
    examples: &[
        ex("zeros([3]).index_fill(0, tensor([2, 0]), 5)", "tensor([5., 0., 5.])"),
        ex("zeros([3]).index_fill(0, tensor([[0]]), 5)", "E0201"),
        ex("zeros([3]).index_fill(1, tensor([0]), 5)", "E0209"),
        ex("zeros([3]).index_fill(0, tensor([0.0]), 5)", "E0202"),
    ],
    lower: Lower::Kernel(|e, a| {
        let (x, index) = (a.input(), a.tensor(index_fill::index));
        let (dim, _) = check_list(x, a.int(index_fill::dim), index, false)?;
        // Alone of its family it counts negative positions from the end.
        let index = wrapped(e, index, *x.shape().get(dim).unwrap_or(&1))?;
        let call = KernelCall::new("index_fill", &index::INDEX_FILL).input(x).input(&index);
        let call = match a.get(index_fill::value) {
            Arg::Tensor(value) => {
                if value.ndim() > 0 {
                    fail!(SHAPE, "`value` is a number or a tensor of no dimensions, not of {}", value.ndim());
                }
                let value = e.cast(value, x.dtype())?;
                call.input(&value).int(dim as i64)
            }
            _ => {
                let value = element_of(a.scalar(index_fill::value).unwrap_or(Scalar::Int(0)), x.dtype())?;
                call.int(dim as i64).attr(Attr::Scalar(value))
            }
        };
        Ok(call.output(&x.shape(), x.dtype()).writes_input())
    }),
    saves: &[Save::In(index_fill::index)],
    grad: Grad::Rule(|e, v| {
        let (dim, index) = (v.args.int(index_fill::dim), v.saved(index_fill::index));
        let mut grads = vec![None, None, None];
        if v.needs(index_fill::input) {
            grads[0] = Some(e.call(&INDEX_FILL, args![v.g(), dim, index, Scalar::Int(0)])?);
        }
        if v.needs(index_fill::value) {
            // A slice that is named twice counts once.
            let none = e.zeros_like(&Meta { dtype: DType::Bool, ..v.meta(index_fill::input).clone() })?;
            let filled = e.call(&INDEX_FILL, args![&none, dim, index, Scalar::Bool(true)])?;
            let theirs = masked(e, &filled, v.g())?;
            grads[2] = Some(e.call(&SUM, args![&theirs])?);
        }
        Ok(grads)
    }),
    inplace: true,
    expanded: Some(|e, a| {
        let x = a.input();
        let none = e.zeros_like(&expanded::mask_like(x))?;
        let named =
            e.call(&INDEX_FILL, args![&none, a.int(index_fill::dim), a.tensor(index_fill::index), Scalar::Bool(true)])?;
        expanded::fill_where(e, x, &named, a.get(index_fill::value).clone())
    }),
    forward: crate::op::row::Forward::Linear(&[index_fill::input, index_fill::value]),
    ..Op::BASE
};

signature!(index_reduce(
    input: Tensor, dim: Dim, index: Tensor, source: Tensor, reduce: Str(&["prod", "mean", "amax", "amin"]),
    include_self: Bool = true,
));

pub static INDEX_REDUCE: Op = Op {
    name: "index_reduce",
    params: index_reduce::PARAMS,
    summary: "Combines the slices of `source` at the positions that `index` lists along `dim`, by product, mean or extreme.",
    examples: &[
        ex("ones([3]).index_reduce(0, tensor([2, 2]), tensor([5.0, 6.0]), \"prod\")", "tensor([ 1.,  1., 30.])"),
        ex("ones([3]).index_reduce(0, tensor([0]), ones([2]), \"prod\")", "E0201"),
        ex("ones([3]).index_reduce(1, tensor([0]), ones([1]), \"prod\")", "E0209"),
        ex("ones([3]).index_reduce(0, tensor([0]), tensor([1]), \"prod\")", "E0202"),
        ex("ones([3]).index_reduce(0, tensor([0]), ones([1]), \"sum\")", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, index, source) = (a.input(), a.tensor(index_reduce::index), a.tensor(index_reduce::source));
        let (dim, n) = check_list(x, a.int(index_reduce::dim), index, true)?;
        check_source(x, dim, n, source)?;
        let mut shape = Shape::from_elem(1, source.ndim());
        if let Some(size) = shape.get_mut(dim) {
            *size = n;
        }
        let index = e.call(&RESHAPE, args![index, shape.as_slice()])?;
        let sizes = source.shape();
        let index = e.call(&EXPAND, args![&index, sizes.as_slice()])?;
        e.apply(
            &SCATTER_REDUCE,
            args![x, dim, &index, source, a.attr(index_reduce::reduce).clone(), a.flag(index_reduce::include_self)],
        )
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&INDEX_SELECT, &INDEX_ADD, &INDEX_COPY, &INDEX_FILL, &INDEX_REDUCE];
