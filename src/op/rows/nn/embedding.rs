//! Embeddings (rows of a table by index), and one-hot vectors.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::index;
use crate::op::emit::KernelCall;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::nn::distance::length;
use crate::op::rows::pointwise::arith::{COPY, DIV};
use crate::op::rows::pointwise::compare::{GT, LOGICAL_AND, WHERE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

signature!(rows_of(weight: Tensor, input: Tensor, padding_idx: Int = None, scale_grad_by_freq: Bool = false));

/// `weight` `[v, ..]` and indices of any shape.
static ROWS_OF: Op = Op {
    name: "embedding",
    params: rows_of::PARAMS,
    summary: "Rows of a table.",
    lower: Lower::Kernel(|_, a| {
        let (weight, index) = (a.tensor(rows_of::weight), a.tensor(rows_of::input));
        let mut shape = index.shape();
        shape.extend_from_slice(&weight.shape()[1..]);
        Ok(KernelCall::new("embedding", &index::EMBEDDING).input(weight).input(index).output(&shape, weight.dtype()))
    }),
    saves: &[Save::In(rows_of::input)],
    grad: Grad::Rule(|e, v| {
        let (rows, padding, by_freq) = (
            v.meta(rows_of::weight).shape[0],
            v.args.attr(rows_of::padding_idx).clone(),
            v.args.flag(rows_of::scale_grad_by_freq),
        );
        Ok(vec![Some(e.call(&ROWS_GRAD, args![v.g(), v.saved(rows_of::input), rows, padding, by_freq])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(rows_grad(
    grad: Tensor, input: Tensor, rows: Int, padding_idx: Int = None, scale_grad_by_freq: Bool = false,
));

/// The table's gradient: `[rows, ..]`.
pub static ROWS_GRAD: Op = Op {
    name: "embedding",
    params: rows_grad::PARAMS,
    summary: "Gradient of a table.",
    lower: Lower::Kernel(|_, a| {
        let (g, index) = (a.tensor(rows_grad::grad), a.tensor(rows_grad::input));
        let mut shape = Shape::from_slice(&[a.int(rows_grad::rows) as usize]);
        shape.extend_from_slice(&g.shape()[index.ndim()..]);
        let padding = a.opt_int(rows_grad::padding_idx).map_or(Attr::None, Attr::Int);
        let call = KernelCall::new("embedding_grad", &index::EMBEDDING_GRAD).input(g).input(index).attr(padding);
        Ok(call.flag(a.flag(rows_grad::scale_grad_by_freq)).output(&shape, g.dtype()))
    }),
    saves: &[Save::In(rows_grad::input)],
    grad: Grad::Rule(|e, v| {
        if !v.args.is_none(rows_grad::padding_idx) || v.args.flag(rows_grad::scale_grad_by_freq) {
            fail!(GRAD_STOP, "no second gradient is known with `padding_idx` or `scale_grad_by_freq`");
        }
        Ok(vec![Some(e.call(&ROWS_OF, args![v.g(), v.saved(rows_grad::input)])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(shorten(weight: Tensor, input: Tensor, max_norm: Float, norm_type: Float));

/// Shortens rows of a table in place: arguments `weight, input, max_norm, norm_type`.
/// Cost: a pass over the whole table.
static SHORTEN: Op = Op {
    name: "embedding",
    params: shorten::PARAMS,
    summary: "Shortens rows of a table.",
    lower: Lower::Steps(|e, a| {
        let (weight, index, most) = (a.tensor(shorten::weight), a.tensor(shorten::input), a.float(shorten::max_norm));
        let mut shape = index.shape();
        shape.push(1);
        let ones = e.full(&shape, Scalar::Int(1), &Meta::of(weight))?;
        let seen = e.call(&ROWS_GRAD, args![&ones, index, weight.shape()[0]])?;
        let seen = e.call(&GT, args![&seen, Scalar::Int(0)])?;
        let size = length(e, weight, a.float(shorten::norm_type), Ints::from_slice(&[1]))?;
        let long = e.call(&GT, args![&size, Scalar::Float(most)])?;
        let both = e.call(&LOGICAL_AND, args![&seen, &long])?;
        let size = e.add(&size, Scalar::Float(1e-7))?;
        let scale = e.rev(&DIV, Scalar::Float(most), &size)?;
        let short = e.mul(weight, &scale)?;
        let new = e.call(&WHERE, args![&both, &short, weight])?;
        e.apply_inplace(&COPY, args![weight, &new])?;
        Ok(Vec::new())
    }),
    grad: Grad::Stop("rows are shortened in place"),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(embedding(
    input: Tensor, weight: Tensor, padding_idx: Int = None, max_norm: Float = None, norm_type: Float = 2.0,
    scale_grad_by_freq: Bool = false, sparse: Bool = false,
));

pub static EMBEDDING: Op = Op {
    name: "embedding",
    params: embedding::PARAMS,
    summary: "Looks up rows of a table by number.",
    details: "`input` holds integers, `weight` is [v, d]; the result has the input's shape with d behind it. The row \
`padding_idx` gets no gradient; with `scale_grad_by_freq` a row's gradient is divided by how often it was looked up. With `max_norm`, \
rows that are looked up and longer than it are first shortened in place. With `sparse`, backward gives a table that is \
a leaf a sparse `.grad` of the rows that were looked up. A \
number that is not in 0..v is an error while computing (E0401).",
    examples: &[
        ex("embedding(tensor([1, 0]), tensor([[1.0, 2.0], [3.0, 4.0]]))", "tensor([[3., 4.],\n        [1., 2.]])"),
        ex(
            "let w = zeros([4, 2], #{requires_grad: true}); embedding(tensor([3, 1]), w, #{sparse: true}).sum().backward(); \
             w.grad.to_dense()[3]",
            "tensor([1., 1.])",
        ),
        ex("embedding(tensor([1.0]), ones([2, 2]))", "E0202"),
        ex(
            "embedding(tensor([1]), ones([2, 2], #{requires_grad: true}), #{sparse: true, scale_grad_by_freq: true})",
            "E0206",
        ),
        ex("embedding(tensor([1]), ones([2]))", "E0201"),
        ex("embedding(tensor([1]), ones([2, 2]), #{padding_idx: 2})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (index, weight) = (a.input(), a.tensor(embedding::weight));
        if !index.dtype().is_int() {
            return Err(Diag::error(code::DTYPE, format!("`input` must hold integers, not {}", index.dtype()))
                .help("convert with `.long()`"));
        }
        let shape = weight.shape();
        if shape.len() != 2 {
            fail!(SHAPE, "`weight` must have 2 dimensions; it has shape {:?}", shape.as_slice());
        }
        let rows = shape[0] as i64;
        let padding = match a.opt_int(embedding::padding_idx) {
            None => Attr::None,
            Some(at) if at < -rows || at >= rows => fail!(VALUE, "`padding_idx` {at} is no row of a table of {rows}"),
            Some(at) => Attr::Int(if at < 0 { at + rows } else { at }),
        };
        if let Some(most) = a.opt_float(embedding::max_norm) {
            e.apply(&SHORTEN, args![weight, index, most, a.float(embedding::norm_type)])?;
        }
        let by_freq = a.flag(embedding::scale_grad_by_freq);
        if !a.flag(embedding::sparse) {
            return e.apply(&ROWS_OF, args![weight, index, padding, by_freq]);
        }
        if by_freq && e.grad_enabled() && weight.requires_grad() {
            fail!(VALUE, "`scale_grad_by_freq` does not go with `sparse`");
        }
        let table = e.detach(weight);
        let rows = e.call(&ROWS_OF, args![&table, index])?;
        let padding = if let Attr::Int(at) = padding { Some(at) } else { None };
        Ok(vec![e.with_row_grads(weight, index, padding, rows)?])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(one_hot_as(input: Tensor, num_classes: Int, dtype: DType));

/// 1 at the label, 0 elsewhere, in any dtype: arguments `input, classes, dtype`.
pub static ONE_HOT_AS: Op = Op {
    name: "one_hot",
    params: one_hot_as::PARAMS,
    summary: "Labels as vectors.",
    lower: Lower::Kernel(|_, a| {
        let mut shape = a.input().shape();
        shape.push(a.int(one_hot_as::num_classes) as usize);
        let dtype = a.dtype(one_hot_as::dtype).unwrap_or(DType::I64);
        Ok(KernelCall::new("one_hot", &index::ONE_HOT).input(a.input()).output(&shape, dtype))
    }),
    grad: Grad::Stop("labels are integers"),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(one_hot(tensor: Tensor, num_classes: Int = (-1)));

pub static ONE_HOT: Op = Op {
    name: "one_hot",
    params: one_hot::PARAMS,
    summary: "Labels as vectors of integers: 1 at the label, 0 elsewhere.",
    details: "Without `num_classes` there are as many classes as the largest label asks for, which waits for the labels. A \
label outside of them is an error while computing (E0402).",
    examples: &[
        ex("one_hot(tensor([0, 2]), 3)", "tensor([[1, 0, 0],\n        [0, 0, 1]])"),
        ex("one_hot(tensor([0, 1]))", "tensor([[1, 0],\n        [0, 1]])"),
        ex("one_hot(tensor([0.0]), 3)", "E0202"),
        ex("one_hot(tensor([0]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (labels, classes) = (a.tensor(one_hot::tensor), a.int(one_hot::num_classes));
        if labels.dtype() != DType::I64 {
            fail!(DTYPE, "labels must be i64, not {}", labels.dtype());
        }
        let classes = match classes {
            // What follows from the largest number is refused for its size.
            -1 => largest(&e.read(labels)?)?.saturating_add(1),
            1.. => classes,
            _ => fail!(VALUE, "`num_classes` must be positive, not {classes}"),
        };
        e.apply(&ONE_HOT_AS, args![labels, classes, DType::I64])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

fn largest(labels: &[Scalar]) -> Result<i64> {
    let labels = || labels.iter().map(|label| label.to_i64());
    if let Some(bad) = labels().find(|&label| label < 0) {
        fail!(VALUE, "a label must not be negative, but one is {bad}");
    }
    match labels().max() {
        Some(largest) => Ok(largest),
        None => fail!(VALUE, "`num_classes` is needed where there are no labels"),
    }
}

/// Labels of classes as the loss kernels want them.
pub fn class_labels(target: &Tensor) -> Result<()> {
    if matches!(target.dtype(), DType::I64 | DType::U8) {
        return Ok(());
    }
    Err(crate::base::diag::Diag::error(
        crate::base::code::DTYPE,
        format!("class labels must be i64, not {}", target.dtype()),
    )
    .help("convert with `.to(\"i64\")`"))
}

pub static ROWS: &[&Op] = &[&ROWS_OF, &ROWS_GRAD, &SHORTEN, &EMBEDDING, &ONE_HOT_AS, &ONE_HOT];
