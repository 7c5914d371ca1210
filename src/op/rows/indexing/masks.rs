//! What depends on which elements are true: their positions, and reading and writing by masks.
//!
//! Results have as many elements as are true, so these rows wait for their number.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::select;
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::pointwise::arith::unmasked;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SELECT};
use crate::op::rows::signatures::unary;
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// The number of elements that are not 0. Waits.
fn count(e: &mut dyn Emit, inputs: &[&Tensor]) -> Result<usize> {
    let call = KernelCall::new("count", &select::COUNT).inputs(inputs.iter().copied()).output(&[1], DType::I64);
    let n = e.kernel(call)?.swap_remove(0);
    Ok(e.read(&n)?.first().map_or(0, |n| n.to_i64().max(0) as usize))
}

/// The positions of elements that are not 0, one in each row. Waits.
fn positions(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let n = count(e, &[x])?;
    let call = KernelCall::new("nonzero", &select::NONZERO).input(x).output(&[n, x.ndim()], DType::I64);
    Ok(e.kernel(call)?.swap_remove(0))
}

/// The same, one index tensor for each dimension.
pub fn position_lists(e: &mut dyn Emit, x: &Tensor) -> Result<Vec<Tensor>> {
    let found = positions(e, x)?;
    (0..x.ndim()).map(|dim| e.call(&SELECT, args![&found, 1, dim])).collect()
}

signature!(nonzero(input: Tensor, as_tuple: Bool = false));

pub static NONZERO: Op = Op {
    name: "nonzero",
    params: nonzero::PARAMS,
    summary: "Where elements are not 0: one row of indices for each, or `as_tuple` an array with a list for each dim.",
    details: "Waits for their number.",
    examples: &[
        ex("tensor([0, 3, 4]).nonzero()", "tensor([[1],\n        [2]])"),
        ex("tensor([0, 3, 4]).nonzero(#{as_tuple: true})", "[tensor([1, 2])]"),
    ],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        if !a.flag(nonzero::as_tuple) {
            return Ok(vec![positions(e, x)?]);
        }
        let line = if x.ndim() == 0 { e.call(&RESHAPE, args![x, &[1i64][..]])? } else { x.clone() };
        position_lists(e, &line)
    }),
    grad: Grad::Stop("positions have no gradient"),
    results: Returns::ListIf("as_tuple"),
    ..Op::BASE
};

signature!(nonzero_static(input: Tensor, size: Int, fill_value: Int = (-1)));

pub static NONZERO_STATIC: Op = Op {
    name: "nonzero_static",
    params: nonzero_static::PARAMS,
    summary: "As `nonzero`, with exactly `size` rows: the rest is left out, or filled with `fill_value`.",
    examples: &[
        ex("tensor([0, 3, 4]).nonzero_static(3)", "tensor([[ 1],\n        [ 2],\n        [-1]])"),
        ex("tensor([0, 3]).nonzero_static(-1)", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let (x, size) = (a.input(), a.int(nonzero_static::size));
        if size < 0 {
            fail!(VALUE, "`size` must not be negative, and is {size}");
        }
        let found = positions(e, x)?;
        let kept = found.shape()[0].min(size as usize);
        let layout = found.view().layout.slice(0, 0, 1, kept);
        let found = e.alias(&found, layout);
        let rest = e.full(
            &[size as usize - kept, x.ndim()],
            Scalar::Int(a.int(nonzero_static::fill_value)),
            &Meta::of(&found),
        )?;
        Ok(vec![e.call(&CAT, args![vec![found, rest], 0])?])
    }),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

pub static ARGWHERE: Op = Op {
    name: "argwhere",
    params: unary::PARAMS,
    summary: "Where elements are not 0, one row of indices for each.",
    details: "Waits for their number.",
    examples: &[ex("tensor([[0, 3], [4, 0]]).argwhere()", "tensor([[0, 1],\n        [1, 0]])")],
    lower: Lower::Steps(|e, a| Ok(vec![positions(e, a.input())?])),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

fn check_bool(mask: &Tensor) -> Result<()> {
    if mask.dtype() != DType::Bool {
        fail!(DTYPE, "the mask must be `bool`, not {}", mask.dtype());
    }
    Ok(())
}

signature!(masked_select_of(input: Tensor, mask: Tensor));

/// Operands of one shape.
static MASKED_SELECT_OF: Op = Op {
    name: "masked_select",
    params: masked_select_of::PARAMS,
    summary: "The elements where the mask is true.",
    lower: Lower::Steps(|e, a| {
        let (x, mask) = (a.input(), a.tensor(masked_select_of::mask));
        let n = count(e, &[x, mask])?;
        let call = KernelCall::new("masked_select", &select::MASKED_SELECT).input(x).input(mask);
        e.kernel(call.output(&[n], x.dtype()))
    }),
    saves: &[Save::In(masked_select_of::mask)],
    grad: Grad::Rule(|e, v| {
        let zeros = e.zeros_like(v.meta(masked_select_of::input))?;
        Ok(vec![Some(e.call(&MASKED_SCATTER_OF, args![&zeros, v.saved(masked_select_of::mask), v.g()])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static MASKED_SELECT: Op = Op {
    name: "masked_select",
    params: masked_select_of::PARAMS,
    summary: "The elements where the mask is true, in row-major order; tensor and mask are broadcast.",
    details: "Waits for their number.",
    examples: &[
        ex("tensor([1, 2, 3]).masked_select(tensor([true, false, true]))", "tensor([1, 3])"),
        ex("ones([2]).masked_select(tensor([true, false, true]))", "E0201"),
        ex("ones([2]).masked_select(tensor([1, 0]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, mask) = (a.input(), a.tensor(masked_select_of::mask));
        check_bool(mask)?;
        let shape = infer::broadcast_all([x.shape().as_slice(), mask.shape().as_slice()])?;
        let x = e.call(&EXPAND, args![x, shape.as_slice()])?;
        let mask = e.call(&EXPAND, args![mask, shape.as_slice()])?;
        e.apply(&MASKED_SELECT_OF, args![&x, &mask])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(masked_scatter_of(input: Tensor, mask: Tensor, source: Tensor));

/// The mask has the tensor's shape.
static MASKED_SCATTER_OF: Op = Op {
    name: "masked_scatter",
    params: masked_scatter_of::PARAMS,
    summary: "Writes elements in order where the mask is true.",
    lower: Lower::Kernel(|_, a| {
        let (x, mask, source) = (a.input(), a.tensor(masked_scatter_of::mask), a.tensor(masked_scatter_of::source));
        let call = KernelCall::new("masked_scatter", &select::MASKED_SCATTER).input(x).input(mask).input(source);
        Ok(call.output(&x.shape(), x.dtype()).writes_input())
    }),
    saves: &[Save::In(masked_scatter_of::mask)],
    grad: Grad::Rule(|e, v| {
        let mask = v.saved(masked_scatter_of::mask);
        let mut grads = vec![None, None, None];
        if v.needs(masked_scatter_of::input) {
            grads[0] = Some(unmasked(e, mask, v.g())?);
        }
        if v.needs(masked_scatter_of::source) {
            let meta = v.meta(masked_scatter_of::source).clone();
            let picked = e.call(&MASKED_SELECT_OF, args![v.g(), mask])?;
            let rest = meta.shape.iter().product::<usize>().saturating_sub(picked.numel());
            let zeros = e.full(&[rest], Scalar::Int(0), &Meta { shape: Shape::new(), ..meta.clone() })?;
            let all = e.call(&CAT, args![vec![picked, zeros], 0])?;
            grads[2] = Some(e.call(&RESHAPE, args![&all, meta.shape.as_slice()])?);
        }
        Ok(grads)
    }),
    inplace: true,
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[masked_scatter_of::input, masked_scatter_of::source]),
    ..Op::BASE
};

pub static MASKED_SCATTER: Op = Op {
    name: "masked_scatter",
    params: masked_scatter_of::PARAMS,
    summary: "Puts the elements of `source` in order where the mask is true; tensor and mask are broadcast.",
    details: "Too few elements in `source` are an error found while computing.",
    examples: &[
        ex("zeros([3]).masked_scatter(tensor([true, false, true]), tensor([5.0, 6.0]))", "tensor([5., 0., 6.])"),
        ex("zeros([3]).masked_scatter(tensor([true, false]), ones([3]))", "E0201"),
        ex("zeros([3]).masked_scatter(tensor([true, false, true]), tensor([5, 6]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, mask, source) = (a.input(), a.tensor(masked_scatter_of::mask), a.tensor(masked_scatter_of::source));
        check_bool(mask)?;
        infer::same_dtype(&[("input", x), ("source", source)])?;
        let shape = infer::broadcast_all([x.shape().as_slice(), mask.shape().as_slice()])?;
        let x = e.call(&EXPAND, args![x, shape.as_slice()])?;
        let mask = e.call(&EXPAND, args![mask, shape.as_slice()])?;
        e.apply(&MASKED_SCATTER_OF, args![&x, &mask, source])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&NONZERO, &NONZERO_STATIC, &ARGWHERE, &MASKED_SELECT_OF, &MASKED_SELECT, &MASKED_SCATTER_OF, &MASKED_SCATTER];
