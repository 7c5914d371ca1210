//! In-place forms for tensors of which several elements share one place in memory (`expand`): those that only put
//! values somewhere and read nothing, as in PyTorch. They write each place once, through a view without the repeated
//! dimensions, so that the result depends on no order. Everything else is refused by the engine.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::Op;
use crate::op::rows::pointwise::compare::MASKED_FILL;
use crate::op::rows::reduction::reduce::ANY;
use crate::op::rows::shape::view::{EXPAND, SLICE};
use crate::op::tensor::{Meta, Tensor};

/// Each place of the tensor's memory once.
pub fn core(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let mut core = x.clone();
    for dim in x.view().layout.repeated() {
        core = e.call(&SLICE, args![&core, dim, 0, 1, 1])?;
    }
    Ok(core)
}

/// The in-place form does to each place what it does to an element.
pub fn each_place(e: &mut dyn Emit, op: &'static Op, a: &Args) -> Result<()> {
    let mut args = a.clone();
    args.0[0] = core(e, a.input())?.into();
    e.apply_inplace(op, args).map(drop)
}

/// Puts a value wherever the mask, which broadcasts to the tensor, is true for one of the elements at a place.
pub fn fill_where(e: &mut dyn Emit, x: &Tensor, mask: &Tensor, value: impl Into<Arg>) -> Result<()> {
    let wide = e.call(&EXPAND, args![mask, x.shape().as_slice()])?;
    let dims: Vec<i64> = x.view().layout.repeated().map(|dim| dim as i64).collect();
    let some = e.call(&ANY, args![&wide, dims.as_slice(), true])?;
    let core = core(e, x)?;
    e.apply_inplace(&MASKED_FILL, args![&core, &some, value.into()]).map(drop)
}

/// Zeros where a row keeps the elements of a tensor of its shape: `tril_` puts zeros where `triu` has some.
pub fn zero_where(e: &mut dyn Emit, x: &Tensor, kept_by: &'static Op, diagonal: i64) -> Result<()> {
    let ones = e.full(&x.shape(), Scalar::Bool(true), &mask_like(x))?;
    let mask = e.call(kept_by, args![&ones, diagonal])?;
    fill_where(e, x, &mask, Scalar::Int(0))
}

/// A mask of the tensor's shape, on its device.
pub fn mask_like(x: &Tensor) -> Meta {
    Meta { dtype: DType::Bool, ..Meta::of(x) }
}
