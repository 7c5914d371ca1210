//! Reading and writing by index tensors, and by positions in the whole tensor.
//!
//! `x[...]` arrives here as one optional index tensor for each dimension. Masks become index tensors first,
//! which waits for the number of their true elements.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{self, Shape};
use crate::fail;
use crate::kernel::index;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::indexing::gather::check_index;
use crate::op::rows::indexing::masks::position_lists;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::expanded::core;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SLICE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;
use smallvec::SmallVec;

/// Bound: index tensors of one `x[...]`.
const MAX_INDICES: usize = 8;

/// An index of `x[...]` worked out: its tensors have one shape.
struct Places {
    indices: Vec<Tensor>,
    dims: Vec<i64>,
    /// Where the indices' shape goes among the dims that are not indexed.
    place: usize,
    shape: Shape,
}

/// Masks as index tensors, and all index tensors broadcast to one shape.
fn places(e: &mut dyn Emit, x: &Tensor, list: &[Option<Tensor>]) -> Result<Places> {
    let mut by_dim: Vec<Option<Tensor>> = Vec::new();
    for item in list {
        match item {
            Some(mask) if matches!(mask.dtype(), DType::Bool | DType::U8) => {
                check_mask(mask, &x.shape(), by_dim.len())?;
                if mask.ndim() == 0 {
                    fail!(INDEX, "a mask of no dimensions is not an index of one dimension");
                }
                by_dim.extend(position_lists(e, mask)?.into_iter().map(Some));
            }
            Some(index) => {
                check_index(index, true)?;
                by_dim.push(Some(index.clone()));
            }
            None => by_dim.push(None),
        }
    }
    if by_dim.len() > x.ndim() {
        return Err(infer::too_many_indices(by_dim.len(), x.ndim()));
    }
    let given: Vec<(usize, Tensor)> =
        by_dim.into_iter().enumerate().filter_map(|(dim, index)| Some((dim, index?))).collect();
    if given.is_empty() {
        fail!(INDEX, "at least one index tensor is expected");
    }
    if given.len() > MAX_INDICES {
        fail!(VALUE, "{} index tensors are more than the {MAX_INDICES} that one index takes", given.len());
    }
    let mut common = Shape::new();
    for (dim, index) in &given {
        common = layout::broadcast(&common, &index.shape()).ok_or_else(|| {
            Diag::error(
                code::SHAPE,
                format!(
                    "the index of dimension {dim} has shape {:?}, which does not broadcast with {:?} of the others",
                    index.shape().as_slice(),
                    common.as_slice()
                ),
            )
        })?;
    }
    let sizes = x.shape();
    let picks = common.iter().product::<usize>();
    if let Some((dim, _)) = given.iter().find(|(dim, _)| sizes[*dim] == 0 && picks > 0) {
        fail!(INDEX, "no index is in range for dimension {dim}, whose size is 0");
    }
    let indices = given
        .iter()
        .map(|(_, index)| {
            let layout = index.view().layout.broadcast_to(&common);
            e.alias(index, layout)
        })
        .collect();
    let dims: Vec<i64> = given.iter().map(|(dim, _)| *dim as i64).collect();
    let adjacent = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let place = if adjacent { dims[0] as usize } else { 0 };
    let mut shape: Shape =
        (0..sizes.len()).filter(|&dim| !dims.contains(&(dim as i64))).map(|dim| sizes[dim]).collect();
    shape.insert_from_slice(place, &common);
    Ok(Places { indices, dims, place, shape })
}

fn check_mask(mask: &Tensor, sizes: &[usize], dim: usize) -> Result<()> {
    for (at, &n) in mask.shape().iter().enumerate() {
        if sizes.get(dim + at) != Some(&n) {
            let have = sizes.get(dim + at).map_or("no such dimension".to_string(), |n| format!("size {n}"));
            fail!(SHAPE, "the mask has size {n} in its dimension {at}, the tensor's dimension {} has {have}", dim + at);
        }
    }
    Ok(())
}

impl Places {
    /// Arguments of the rows below: `x`, the index tensors (8 places), then these.
    fn arguments(&self, x: &Tensor, rest: impl IntoIterator<Item = Arg>) -> Args {
        let mut list: SmallVec<[Arg; 6]> = SmallVec::new();
        list.push(x.into());
        list.extend(self.indices.iter().map(Arg::from));
        list.resize(1 + MAX_INDICES, Arg::None);
        list.push(self.dims.as_slice().into());
        list.push(self.place.into());
        list.extend(rest);
        Args(list)
    }
}

fn index_list(a: &Args) -> Vec<Option<Tensor>> {
    match a.get(index_args::indices) {
        Arg::OptTensors(list) => list.clone(),
        Arg::Tensors(list) => list.iter().cloned().map(Some).collect(),
        Arg::Tensor(one) => vec![Some(one.clone())],
        _ => Vec::new(),
    }
}

const SAVE_INDICES: &[Save] = &[
    Save::In(index_at::index0),
    Save::In(index_at::index1),
    Save::In(index_at::index2),
    Save::In(index_at::index3),
    Save::In(index_at::index4),
    Save::In(index_at::index5),
    Save::In(index_at::index6),
    Save::In(index_at::index7),
];

/// The arguments of a saved node up to `place`, with the tensor replaced.
fn saved_arguments(v: &crate::op::emit::Backward<'_>, x: &Tensor, rest: impl IntoIterator<Item = Arg>) -> Args {
    let mut list: SmallVec<[Arg; 6]> = SmallVec::new();
    list.push(x.into());
    list.extend((1..=MAX_INDICES).map(|at| v.opt_input(at).into()));
    list.push(v.args.get(index_at::dims).clone());
    list.push(v.args.get(index_at::place).clone());
    list.extend(rest);
    Args(list)
}

signature!(index_at(
    input: Tensor, index0: Tensor = None, index1: Tensor = None, index2: Tensor = None, index3: Tensor = None, index4: Tensor = None, index5: Tensor = None, index6: Tensor = None, index7: Tensor = None, dims: Ints, place: Int,
));

/// `x[i, .., j]` with index tensors of one shape.
static INDEX_AT: Op = Op {
    name: "index",
    params: index_at::PARAMS,
    summary: "Reads the places that index tensors name.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let indices: Vec<&Tensor> = (1..=MAX_INDICES).filter_map(|at| a.opt_tensor(at)).collect();
        let dims = a.ints(index_at::dims).unwrap_or_default();
        let place = a.int(index_at::place).max(0) as usize;
        let mut shape: Shape =
            x.shape().iter().enumerate().filter(|(d, _)| !dims.contains(&(*d as i64))).map(|(_, &n)| n).collect();
        if let Some(index) = indices.first() {
            shape.insert_from_slice(place, &index.shape());
        }
        let call = KernelCall::new("index", &index::INDEX_GET).input(x).inputs(indices);
        Ok(call.ints(&dims).int(place as i64).output(&shape, x.dtype()))
    }),
    saves: SAVE_INDICES,
    grad: Grad::Rule(|e, v| {
        let zeros = e.zeros_like(v.meta(index_at::input))?;
        let arguments = saved_arguments(v, &zeros, [v.g().into(), true.into()]);
        Ok(vec![Some(e.call(&INDEX_PUT_AT, arguments)?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(index_put_at(
    input: Tensor, index0: Tensor = None, index1: Tensor = None, index2: Tensor = None, index3: Tensor = None, index4: Tensor = None, index5: Tensor = None, index6: Tensor = None, index7: Tensor = None, dims: Ints, place: Int,
    values: Tensor, accumulate: Bool = false,
));

/// `x[i, .., j] = values`, or added, with index tensors of one shape.
static INDEX_PUT_AT: Op = Op {
    name: "index_put",
    params: index_put_at::PARAMS,
    summary: "Writes the places that index tensors name.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let indices = (1..=MAX_INDICES).filter_map(|at| a.opt_tensor(at));
        let call = KernelCall::new("index_put", &index::INDEX_PUT)
            .input(x)
            .input(a.tensor(index_put_at::values))
            .inputs(indices);
        let call = call
            .ints(&a.ints(index_at::dims).unwrap_or_default())
            .int(a.int(index_at::place))
            .flag(a.flag(index_put_at::accumulate));
        Ok(call.output(&x.shape(), x.dtype()).writes_input())
    }),
    saves: SAVE_INDICES,
    grad: Grad::Rule(|e, v| {
        let mut grads = vec![None; MAX_INDICES + 2];
        let last = MAX_INDICES + 1;
        if v.needs(index_put_at::input) {
            grads[0] = Some(if v.args.flag(index_put_at::accumulate) {
                v.g().clone()
            } else {
                let meta = v.slot_meta(last).clone();
                let zero = e.full(&[], Scalar::Int(0), &meta)?;
                let zeros = e.call(&EXPAND, args![&zero, meta.shape.as_slice()])?;
                let arguments = saved_arguments(v, v.g(), [zeros.into(), false.into()]);
                e.call(&INDEX_PUT_AT, arguments)?
            });
        }
        if v.needs_slot(last) {
            grads[last] = Some(e.call(&INDEX_AT, saved_arguments(v, v.g(), []))?);
        }
        Ok(grads)
    }),
    inplace: true,
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[index_put_at::input, index_put_at::values]),
    ..Op::BASE
};

/// Where the rows behind `index` and `index_put` have the indexed dims, the place of the indices' shape, and the values.
pub const INDEX_ARGUMENTS: [usize; 3] = [index_put_at::dims, index_put_at::place, index_put_at::values];

signature!(index_args(input: Tensor, indices: OptTensors));

/// `x[i, None, j]`: one entry for each dimension, absent where the whole dimension stays.
pub static INDEX: Op = Op {
    name: "index",
    params: index_args::PARAMS,
    summary: "The elements that index tensors name, broadcast against each other; masks pick where they are true.",
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let places = places(e, x, &index_list(a))?;
        e.apply(&INDEX_AT, places.arguments(x, []))
    }),
    grad: Grad::Composed,
    call: CallForm::Internal,
    ..Op::BASE
};

/// What `index_put_` writes into an expanded tensor: each place in memory once, with the last of the values for it.
fn shared_places(e: &mut dyn Emit, x: &Tensor, places: &mut Places, values: Tensor, sum: bool) -> Result<Tensor> {
    let mut values = values;
    let ndim = places.indices.first().map_or(0, Tensor::ndim);
    let unnamed: Vec<usize> = (0..x.ndim()).filter(|&dim| !places.dims.contains(&(dim as i64))).collect();
    for dim in x.view().layout.repeated() {
        if let Some(at) = places.dims.iter().position(|&named| named == dim as i64) {
            // All are the first; one that is out of range still says so.
            let first = Meta { shape: Shape::from_slice(&[x.shape()[dim]]), dtype: DType::I64, device: x.device() };
            let first = e.zeros_like(&first)?;
            places.indices[at] = e.call(&INDEX, args![&first, vec![Some(places.indices[at].clone())]])?;
        } else if let Some(at) = unnamed.iter().position(|&other| other == dim) {
            let at = if at < places.place { at } else { at + ndim };
            values = match sum {
                true => e.call(&SUM, args![&values, &[at as i64][..], true])?,
                false => e.call(&SLICE, args![&values, at, -1, Arg::None, 1])?,
            };
        }
    }
    Ok(values)
}

/// The arguments of `INDEX_PUT_AT` for `x[indices] = values`.
fn put_arguments(e: &mut dyn Emit, a: &Args, in_place: bool) -> Result<Args> {
    let (x, values) = (a.input(), a.tensor(put::values));
    if values.dtype() != x.dtype() {
        return Err(Diag::error(
            code::DTYPE,
            format!("`values` is {}, the tensor {}; both must be of one dtype", values.dtype(), x.dtype()),
        )
        .help(format!("convert with `.to(\"{}\")`", x.dtype())));
    }
    let mut places = places(e, x, &index_list(a))?;
    if layout::broadcast(&values.shape(), &places.shape).as_ref() != Some(&places.shape) {
        fail!(
            SHAPE,
            "values of shape {:?} do not broadcast to {:?}, the shape of what the indices name",
            values.shape().as_slice(),
            places.shape.as_slice()
        );
    }
    let shape = places.shape.clone();
    let values = e.call(&EXPAND, args![values, shape.as_slice()])?;
    if in_place && x.view().layout.repeated().next().is_some() {
        let values = shared_places(e, x, &mut places, values, a.flag(put::accumulate))?;
        let core = core(e, x)?;
        return Ok(places.arguments(&core, [values.into(), a.flag(put::accumulate).into()]));
    }
    Ok(places.arguments(x, [values.into(), a.flag(put::accumulate).into()]))
}

signature!(put(input: Tensor, indices: OptTensors, values: Tensor, accumulate: Bool = false));

/// `x[i, None, j] = value`, or added when `accumulate`.
pub static INDEX_PUT: Op = Op {
    name: "index_put",
    params: put::PARAMS,
    summary: "A copy with `values` at the places that index tensors name, one for each dim; `accumulate` adds.",
    details: "Of several values for one element the last stays, or all are added in order. A mask picks where it \
              is true. `x[i] = y` and `x.index_put_([i], y)` write in place.",
    examples: &[
        ex("zeros([3]).index_put([tensor([2, 0])], tensor([5.0, 6.0]))", "tensor([6., 0., 5.])"),
        ex("zeros([3]).index_put([tensor([1, 1])], tensor([5.0, 6.0]), true)", "tensor([ 0., 11.,  0.])"),
        ex("zeros([3]).index_put([tensor([1, 1])], ones([3]))", "E0201"),
        ex("zeros([3]).index_put([tensor([1])], tensor([5]))", "E0202"),
        ex("zeros([3]).index_put([tensor([0]), tensor([0])], tensor([5.0]))", "E0207"),
    ],
    lower: Lower::Compose(|e, a| {
        let arguments = put_arguments(e, a, false)?;
        e.apply(&INDEX_PUT_AT, arguments)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// The same in the tensor itself: only the named places are touched.
pub static INDEX_PUT_INTO: Op = Op {
    name: "index_put_",
    params: put::PARAMS,
    summary: "Writes `values` to the places that index tensors name, one for each dim; `accumulate` adds.",
    examples: &[
        ex("zeros([3]).index_put_([tensor([2, 0])], tensor([5.0, 6.0]))", "tensor([6., 0., 5.])"),
        ex("zeros([3]).index_put_([tensor([1, 1])], ones([3]))", "E0201"),
        ex("zeros([3]).index_put_([tensor([1])], tensor([5]))", "E0202"),
        ex("zeros([3]).index_put_([tensor([0]), tensor([0])], tensor([5.0]))", "E0207"),
    ],
    lower: Lower::Compose(|e, a| {
        let arguments = put_arguments(e, a, true)?;
        e.apply_inplace(&INDEX_PUT_AT, arguments)?;
        Ok(vec![a.input().clone()])
    }),
    grad: Grad::Composed,
    call: CallForm::Method,
    ..Op::BASE
};

signature!(take(input: Tensor, index: Tensor));

pub static TAKE: Op = Op {
    name: "take",
    params: take::PARAMS,
    summary: "The elements at positions in the flattened tensor, in the shape of the index.",
    details: "Negative positions count from the end; one out of range is an error found while computing.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).take(tensor([0, -1]))", "tensor([1, 4])"),
        ex("ones([2]).take(tensor([0.0]))", "E0202"),
        ex("zeros([0]).take(tensor([0]))", "E0207"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, index) = (a.input(), a.tensor(take::index));
        check_index(index, false)?;
        if x.numel() == 0 && index.numel() > 0 {
            fail!(INDEX, "no position is in range of a tensor without elements");
        }
        Ok(KernelCall::new("take", &index::TAKE).input(x).input(index).output(&index.shape(), x.dtype()))
    }),
    saves: &[Save::In(take::index)],
    grad: Grad::Rule(|e, v| {
        let zeros = e.zeros_like(v.meta(take::input))?;
        Ok(vec![Some(e.call(&PUT_AT, args![&zeros, v.saved(take::index), v.g(), true])?)])
    }),
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(put_at(input: Tensor, index: Tensor, source: Tensor, accumulate: Bool = false));

/// `put`.
pub static PUT_AT: Op = Op {
    name: "put",
    params: put_at::PARAMS,
    summary: "Writes (or adds) the elements of `source` at positions in the flattened tensor.",
    examples: &[
        ex("zeros([2, 2]).put(tensor([3, 0]), tensor([5.0, 6.0]))", "tensor([[6., 0.],\n        [0., 5.]])"),
        ex("zeros([3]).put(tensor([0, 1]), ones([1]))", "E0201"),
        ex("zeros([3]).put(tensor([0]), tensor([1]))", "E0202"),
        ex("zeros([0]).put(tensor([0]), ones([1]))", "E0207"),
    ],
    lower: Lower::Kernel(|e, a| {
        let (x, index, source) = (a.input(), a.tensor(put_at::index), a.tensor(put_at::source));
        check_index(index, false)?;
        infer::same_dtype(&[("input", x), ("source", source)])?;
        if index.numel() != source.numel() {
            fail!(SHAPE, "`source` has {} elements, the index {}", source.numel(), index.numel());
        }
        if x.numel() == 0 && index.numel() > 0 {
            fail!(INDEX, "no position is in range of a tensor without elements");
        }
        let shape = index.shape();
        let source = e.call(&RESHAPE, args![source, shape.as_slice()])?;
        let call =
            KernelCall::new("put", &index::PUT).input(x).input(&source).input(index).flag(a.flag(put_at::accumulate));
        Ok(call.output(&x.shape(), x.dtype()).writes_input())
    }),
    saves: &[Save::In(put_at::index)],
    grad: Grad::Rule(|e, v| {
        let index = v.saved(put_at::index);
        let mut grads = vec![None, None, None];
        if v.needs(put_at::input) {
            grads[0] = Some(if v.args.flag(put_at::accumulate) {
                v.g().clone()
            } else {
                let zeros = e.zeros_like(v.meta(put_at::source))?;
                e.call(&PUT_AT, args![v.g(), index, &zeros, false])?
            });
        }
        if v.needs(put_at::source) {
            let g = e.call(&TAKE, args![v.g(), index])?;
            let shape = v.meta(put_at::source).shape.clone();
            grads[2] = Some(e.call(&RESHAPE, args![&g, shape.as_slice()])?);
        }
        Ok(grads)
    }),
    inplace: true,
    forward: crate::op::row::Forward::Linear(&[put_at::input, put_at::source]),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&INDEX_AT, &INDEX_PUT_AT, &INDEX, &INDEX_PUT, &INDEX_PUT_INTO, &TAKE, &PUT_AT];
