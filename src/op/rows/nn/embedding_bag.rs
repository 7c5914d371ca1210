//! Sums, means and maxima of table rows by bags: `embedding_bag`.

use crate::args;
use crate::base::attr::Attr;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::index;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::indexing::gather::{GATHER, SCATTER_REDUCE};
use crate::op::rows::indexing::index_select::INDEX_ADD;
use crate::op::rows::nn::embedding::{EMBEDDING, ROWS_GRAD};
use crate::op::rows::nn::loss::widened;
use crate::op::rows::ordering::distinct::BUCKETIZE;
use crate::op::rows::pointwise::arith::SUB_ALPHA;
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::compare::{EQ, ISNAN, LOGICAL_OR, WHERE};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SLICE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

signature!(embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor = None, max_norm: Float = None, norm_type: Float = 2.0,
    scale_grad_by_freq: Bool = false, mode: Str(&["sum", "mean", "max"]) = "mean", sparse: Bool = false,
    per_sample_weights: Tensor = None, include_last_offset: Bool = false, padding_idx: Int = None,
));

pub static EMBEDDING_BAG: Op = Op {
    name: "embedding_bag",
    params: embedding_bag::PARAMS,
    summary: "Looks up rows of a table by number and reduces them by bags: to their sum, mean or maximum.",
    details: "`input` [B, n] holds B bags of n numbers; or it is one list and `offsets` says where each bag begins. The \
result is [B, d]; an empty bag gives zeros. The row `padding_idx` does not take part. `per_sample_weights`, with the sum alone, \
multiplies each row. With `sparse`, sums and means give a table that is a leaf a sparse `.grad` of the rows that were looked up. \
`offsets` are read, which waits.",
    examples: &[
        ex("embedding_bag(tensor([[0, 1]]), tensor([[1.0, 2.0], [3.0, 4.0]]))", "tensor([[2., 3.]])"),
        ex(
            "embedding_bag(tensor([0, 1, 1]), tensor([[1.0], [3.0]]), tensor([0, 1]), #{mode: \"sum\"})",
            "tensor([[1.],\n        [6.]])",
        ),
        ex(
            "let w = zeros([4, 2], #{requires_grad: true}); embedding_bag(tensor([[3, 1]]), w, #{sparse: true}).sum().backward(); \
w.grad.coalesce().indices()",
            "tensor([[1, 3]])",
        ),
        ex("embedding_bag(tensor([[0]]), ones([2, 2]), #{mode: \"max\", sparse: true})", "E0206"),
        ex("embedding_bag(tensor([0, 1]), ones([2, 2]))", "E0205"),
        ex("embedding_bag(tensor([[[0]]]), ones([2, 2]))", "E0201"),
        ex("embedding_bag(tensor([0]), ones([2, 2]), tensor([1]))", "E0206"),
        ex("embedding_bag(tensor([[0.0]]), ones([2, 2]))", "E0202"),
    ],
    lower: Lower::Compose(embedding_bag),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// The numbers as one list, the bag of each, and how many bags there are.
fn bags(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, Tensor, usize)> {
    let input = a.input();
    let shape = input.shape();
    let (n, device) = (input.numel() as i64, input.device());
    match (shape.len(), a.opt_tensor(embedding_bag::offsets)) {
        (2, None) => {
            let bags = e.call(
                &ARANGE,
                args![Scalar::Int(0), Scalar::Int(shape[0] as i64), Scalar::Int(1), DType::I64, device],
            )?;
            let bags = e.call(&RESHAPE, args![&bags, [shape[0], 1].as_slice()])?;
            let bags = e.call(&EXPAND, args![&bags, shape.as_slice()])?;
            let flat = e.call(&RESHAPE, args![input, [n].as_slice()])?;
            Ok((flat, e.call(&RESHAPE, args![&bags, [n].as_slice()])?, shape[0]))
        }
        (2, Some(_)) => {
            fail!(VALUE, "`offsets` go with an `input` of one dimension; this one has shape {:?}", shape.as_slice())
        }
        (1, None) => fail!(MISSING_ARGUMENT, "an `input` of one dimension needs `offsets`"),
        (1, Some(offsets)) => {
            if !offsets.dtype().is_int() {
                return Err(Diag::error(code::DTYPE, format!("`offsets` must hold integers, not {}", offsets.dtype()))
                    .help("convert with `.long()`"));
            }
            if offsets.ndim() != 1 {
                fail!(SHAPE, "`offsets` must have one dimension; it has shape {:?}", offsets.shape().as_slice());
            }
            let starts: Vec<i64> = e.read(offsets)?.iter().map(|start| start.to_i64()).collect();
            let last = a.flag(embedding_bag::include_last_offset);
            if last && starts.is_empty() {
                fail!(VALUE, "with `include_last_offset` there must be at least one offset");
            }
            if let Some(&first) = starts.first().filter(|&&first| first != 0) {
                fail!(VALUE, "the first bag begins at 0, not at {first}");
            }
            if starts.windows(2).any(|pair| pair[0] > pair[1]) {
                fail!(VALUE, "`offsets` must not descend");
            }
            if let Some(&end) = starts.last().filter(|&&end| end > n) {
                fail!(VALUE, "offset {end} is beyond the {n} numbers of `input`");
            }
            let count = starts.len() - last as usize;
            let own = e.call(&SLICE, args![offsets, 0, 0, count, 1])?;
            let at = e.call(&ARANGE, args![Scalar::Int(0), Scalar::Int(n), Scalar::Int(1), DType::I64, device])?;
            let own = e.cast(&own, DType::I64)?;
            let after = e.call(&BUCKETIZE, args![&at, &own, false, true])?;
            let bags = e.call(&SUB_ALPHA, args![&after, Scalar::Int(1)])?;
            Ok((input.clone(), bags, count))
        }
        _ => fail!(SHAPE, "`input` must have 1 or 2 dimensions; it has shape {:?}", shape.as_slice()),
    }
}

fn embedding_bag(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (input, weight, mode) = (a.input(), a.tensor(embedding_bag::weight), a.text(embedding_bag::mode));
    if !input.dtype().is_int() {
        return Err(Diag::error(code::DTYPE, format!("`input` must hold integers, not {}", input.dtype()))
            .help("convert with `.long()`"));
    }
    if weight.ndim() != 2 {
        fail!(SHAPE, "`weight` must have 2 dimensions; it has shape {:?}", weight.shape().as_slice());
    }
    if mode == "max" && a.flag(embedding_bag::sparse) {
        fail!(VALUE, "`sparse` goes with the modes `sum` and `mean`, not with `max`");
    }
    let factors = a.opt_tensor(embedding_bag::per_sample_weights);
    if let Some(factors) = factors {
        if mode != "sum" {
            fail!(VALUE, "`per_sample_weights` go with the mode `sum` alone, not with `{mode}`");
        }
        if factors.shape() != input.shape() {
            fail!(
                SHAPE,
                "`per_sample_weights` has shape {:?}, `input` {:?}; they must be equal",
                factors.shape().as_slice(),
                input.shape().as_slice()
            );
        }
        if factors.dtype() != weight.dtype() {
            fail!(DTYPE, "`per_sample_weights` is {}, but `weight` is {}", factors.dtype(), weight.dtype());
        }
    }
    let is_even = input.ndim() == 2 && a.opt_tensor(embedding_bag::offsets).is_none();
    if is_even && mode != "max" && a.is_none(embedding_bag::padding_idx) {
        return of_one_size(e, a);
    }
    let (flat, mut bag, count) = bags(e, a)?;
    let (n, d) = (flat.numel() as i64, weight.shape()[1]);
    let rows = looked_up(e, a, &flat)?;
    // 16-bit floats are rounded once, at the end.
    let wide = widened(rows.dtype());
    let mut wider = e.cast(&rows, wide)?;
    if let Some(factors) = factors {
        let column = e.call(&RESHAPE, args![factors, [n, 1].as_slice()])?;
        let column = e.cast(&column, wide)?;
        wider = e.mul(&wider, &column)?;
    }
    if let Some(at) = a.opt_int(embedding_bag::padding_idx) {
        // What does not take part goes into a bag behind the last.
        let at = if at < 0 { at + weight.shape()[0] as i64 } else { at };
        let out = e.call(&EQ, args![&flat, Scalar::Int(at)])?;
        bag = e.call(&WHERE, args![&out, Scalar::Int(count as i64), &bag])?;
    }
    let meta =
        Meta { shape: crate::base::layout::Shape::from_slice(&[count + 1, d]), dtype: wide, device: rows.device() };
    let zeros = e.zeros_like(&meta)?;
    let reduced = if mode == "max" {
        largest(e, &wider, &bag, &zeros)?
    } else {
        e.call(&INDEX_ADD, args![&zeros, 0, &bag, &wider])?
    };
    let reduced = if mode == "mean" {
        let one = e.full(&[n as usize], Scalar::Int(1), &meta)?;
        let none = e.full(&[count + 1], Scalar::Int(0), &meta)?;
        let sizes = e.call(&INDEX_ADD, args![&none, 0, &bag, &one])?;
        let sizes = e.call(&CLAMP_MIN, args![&sizes, Scalar::Int(1)])?;
        let sizes = e.call(&RESHAPE, args![&sizes, [count + 1, 1].as_slice()])?;
        e.div(&reduced, &sizes)?
    } else {
        reduced
    };
    let kept = e.call(&SLICE, args![&reduced, 0, 0, count, 1])?;
    Ok(vec![e.cast(&kept, rows.dtype())?])
}

/// The rows that `input` numbers.
fn looked_up(e: &mut dyn Emit, a: &Args, input: &Tensor) -> Result<Tensor> {
    let padding = match a.opt_int(embedding_bag::padding_idx) {
        Some(at) => Attr::Int(at),
        None => Attr::None,
    };
    let (max_norm, order) = (a.attr(embedding_bag::max_norm).clone(), a.float(embedding_bag::norm_type));
    let (by_frequency, sparse) = (a.flag(embedding_bag::scale_grad_by_freq), a.flag(embedding_bag::sparse));
    e.call(&EMBEDDING, args![input, a.tensor(embedding_bag::weight), padding, max_norm, order, by_frequency, sparse])
}

signature!(bag_sums(weight: Tensor, input: Tensor, divisor: Int, scale_grad_by_freq: Bool = false));

/// Sums of the table's rows that each row of `input` numbers, over a number: arguments `weight, input, divisor,
/// scale_grad_by_freq`. What is looked up takes no memory.
static BAG_SUMS: Op = Op {
    name: "embedding_bag",
    params: bag_sums::PARAMS,
    summary: "Sums of rows of a table.",
    lower: Lower::Kernel(|_, a| {
        let (weight, input) = (a.tensor(bag_sums::weight), a.tensor(bag_sums::input));
        let shape = [input.shape()[0], weight.shape()[1]];
        let call = KernelCall::new("embedding_bag", &index::EMBEDDING_BAG).input(weight).input(input);
        Ok(call.int(a.int(bag_sums::divisor)).output(&shape, weight.dtype()))
    }),
    saves: &[Save::In(bag_sums::input)],
    grad: Grad::Rule(|e, v| {
        let (input, rows) = (v.saved(bag_sums::input), v.meta(bag_sums::weight).shape[0]);
        let (bags, n) = (input.shape()[0], input.shape()[1]);
        let g = match v.args.int(bag_sums::divisor) {
            1 => v.g().clone(),
            divisor => e.div(v.g(), Scalar::Int(divisor))?,
        };
        let d = g.shape()[1];
        let g = e.call(&RESHAPE, args![&g, [bags, 1, d].as_slice()])?;
        let g = e.call(&EXPAND, args![&g, [bags, n, d].as_slice()])?;
        let by_frequency = v.args.flag(bag_sums::scale_grad_by_freq);
        Ok(vec![Some(e.call(&ROWS_GRAD, args![&g, input, rows, Attr::None, by_frequency])?)])
    }),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// Sums or means of bags that are the rows of a matrix: without a place for each number.
fn of_one_size(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (input, weight) = (a.input(), a.tensor(embedding_bag::weight));
    let (bags, n) = (input.shape()[0], input.shape()[1]);
    let is_mean = a.text(embedding_bag::mode) == "mean";
    let is_plain = a.is_none(embedding_bag::per_sample_weights) && a.is_none(embedding_bag::max_norm);
    let is_plain = is_plain && !a.flag(embedding_bag::sparse);
    if is_plain && weight.dtype().is_float() {
        let divisor = if is_mean { n.max(1) } else { 1 };
        return e.apply(&BAG_SUMS, args![weight, input, divisor, a.flag(embedding_bag::scale_grad_by_freq)]);
    }
    let rows = looked_up(e, a, input)?;
    // 16-bit floats are rounded once, at the end.
    let wide = widened(rows.dtype());
    let mut wider = e.cast(&rows, wide)?;
    if let Some(factors) = a.opt_tensor(embedding_bag::per_sample_weights) {
        let column = e.call(&RESHAPE, args![factors, [bags, n, 1].as_slice()])?;
        let column = e.cast(&column, wide)?;
        wider = e.mul(&wider, &column)?;
    }
    let mut sums = e.call(&SUM, args![&wider, 1])?;
    if is_mean {
        sums = e.div(&sums, Scalar::Int(n.max(1) as i64))?;
    }
    Ok(vec![e.cast(&sums, rows.dtype())?])
}

/// The largest row of each bag, column by column; 0 for an empty one. Of equal rows the first has the gradient, as in
/// PyTorch, where a reduction by `amax` would share it.
fn largest(e: &mut dyn Emit, rows: &Tensor, bag: &Tensor, zeros: &Tensor) -> Result<Tensor> {
    let (n, shape) = (rows.shape()[0], rows.shape());
    if n == 0 {
        return e.call(&INDEX_ADD, args![zeros, 0, bag, rows]);
    }
    let column = e.call(&RESHAPE, args![bag, [n as i64, 1].as_slice()])?;
    let places = e.call(&EXPAND, args![&column, shape.as_slice()])?;
    let values = e.detach(rows);
    let top = e.call(&SCATTER_REDUCE, args![zeros, 0, &places, &values, "amax", false])?;
    let top = e.call(&GATHER, args![&top, 0, &places])?;
    let (equal, nan) = (e.call(&EQ, args![&values, &top])?, e.call(&ISNAN, args![&values])?);
    let chosen = e.call(&LOGICAL_OR, args![&equal, &nan])?;
    let numbers =
        e.call(&ARANGE, args![Scalar::Int(0), Scalar::Int(n as i64), Scalar::Int(1), DType::I64, rows.device()])?;
    let numbers = e.call(&RESHAPE, args![&numbers, [n as i64, 1].as_slice()])?;
    let numbers = e.call(&WHERE, args![&chosen, &numbers, Scalar::Int(n as i64)])?;
    let none = Meta { shape: zeros.shape(), dtype: DType::I64, device: rows.device() };
    let none = e.full(&none.shape.clone(), Scalar::Int(n as i64), &none)?;
    let first = e.call(&SCATTER_REDUCE, args![&none, 0, &places, &numbers, "amin", true])?;
    let empty = e.call(&EQ, args![&first, Scalar::Int(n as i64)])?;
    let first = e.call(&WHERE, args![&empty, Scalar::Int(0), &first])?;
    let picked = e.call(&GATHER, args![rows, 0, &first])?;
    e.call(&WHERE, args![&empty, Scalar::Int(0), &picked])
}

pub static ROWS: &[&Op] = &[&BAG_SUMS, &EMBEDDING_BAG];
