//! Tensors inside of `vmap`. Such a tensor has samples: a tensor of all of them, whose first dims are those of the levels,
//! and which alone is computed with and has a place in the gradient graph. The handle itself shows the first sample, so that
//! shapes, dtypes and layouts are those that each sample has.

mod call;
mod gradient;
mod indexing;
mod layers;
mod rules;
pub mod script_code;
mod slices;

pub use call::{called, changed};
pub use gradient::{grads_inside, lifted, results_inside, shown};
use gradient::{hidden_at, spread};
pub(super) use slices::node_slices;
pub use slices::{is_slice_wise, slice_wise};

use super::engine::Engine;
use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Layout, Shape};
use crate::base::span::Origin;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{Op, Source};
use crate::op::rows::shape::view::{EXPAND, VIEW};
use crate::op::tensor::{Levels, Samples, Tensor};
use crate::sched::samples::Level;
use smallvec::SmallVec;
use std::sync::Arc;

/// All samples of a tensor, or the tensor itself.
pub fn value(x: &Tensor) -> Tensor {
    x.samples().map_or_else(|| x.clone(), |samples| samples.value.clone())
}

/// The levels at which a tensor has samples.
pub fn levels(x: &Tensor) -> Levels {
    x.samples().map_or_else(Levels::new, |samples| Levels::from_slice(&samples.levels))
}

/// A tensor whose first dims are those of levels, as each sample sees it.
pub fn hide(e: &mut Engine, value: Tensor, levels: &Levels) -> Tensor {
    if levels.is_empty() {
        return value;
    }
    let view = value.view();
    let k = levels.len();
    let layout = &view.layout;
    let first = Layout { shape: layout.shape[k..].into(), strides: layout.strides[k..].into(), offset: layout.offset };
    let first = Arc::new(view.with_layout(first));
    Tensor::with_samples(first, Samples { value, levels: Levels::from_slice(levels) }, e.origin)
}

/// The same at the levels of another tensor.
pub fn like(e: &mut Engine, value: Tensor, x: &Tensor) -> Tensor {
    hide(e, value, &levels(x))
}

/// All levels of some tensors, ascending. A tensor of a level that has ended is an error.
pub fn levels_of<'a>(e: &Engine, tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Levels> {
    let mut all = Levels::new();
    for x in tensors {
        for &level in x.samples().iter().flat_map(|samples| &samples.levels) {
            if all.contains(&level) {
                continue;
            }
            if e.rt.samples.level(level).is_none() {
                return Err(escaped(x));
            }
            all.push(level);
        }
    }
    all.sort_unstable();
    Ok(all)
}

#[cold]
fn escaped(x: &Tensor) -> Box<Diag> {
    Diag::error(code::VMAP, "a tensor inside of a `vmap` that has ended")
        .label(Origin::NONE, Focus::Call, "used in this call")
        .label(x.0.made, Focus::Expression, "it was made here")
        .help("return it from the function that is mapped: `vmap` then gives it with all samples")
}

/// How many samples a level has.
fn samples(e: &Engine, level: u64) -> usize {
    e.rt.samples.level(level).map_or(1, |level| level.samples)
}

/// All samples in dims of the given levels, with size 1 where the tensor has none, and at least `rank` dims behind them.
fn aligned(e: &mut Engine, x: &Tensor, levels: &Levels, rank: usize) -> Result<Tensor> {
    let (value, own) = (value(x), self::levels(x));
    let sizes = value.shape();
    let mut shape: Vec<usize> = Vec::new();
    for level in levels {
        shape.push(own.iter().position(|other| other == level).map_or(1, |at| sizes[at]));
    }
    shape.resize(shape.len() + rank.saturating_sub(x.ndim()), 1);
    shape.extend_from_slice(&sizes[own.len()..]);
    if shape == sizes.as_slice() { Ok(value) } else { e.call_row(&VIEW, args![&value, shape.as_slice()]) }
}

/// All samples in dims of the given levels, repeated without copies where the tensor has none.
fn all_samples(e: &mut Engine, x: &Tensor, levels: &Levels) -> Result<Tensor> {
    ranked_samples(e, x, levels, 0)
}

/// The same with at least `rank` dims behind those of the levels.
fn ranked_samples(e: &mut Engine, x: &Tensor, levels: &Levels, rank: usize) -> Result<Tensor> {
    let own = aligned(e, x, levels, rank)?;
    let mut shape: Shape = levels.iter().map(|&level| samples(e, level)).collect();
    shape.extend_from_slice(&own.shape()[levels.len()..]);
    if own.shape() == shape { Ok(own) } else { e.call_row(&EXPAND, args![&own, shape.as_slice()]) }
}

/// The arguments with each tensor replaced.
fn mapped(args: &Args, mut map: impl FnMut(&Tensor) -> Result<Tensor>) -> Result<Args> {
    let mut all = Args::default();
    for arg in &args.0 {
        all.0.push(match arg {
            Arg::Tensor(x) => Arg::Tensor(map(x)?),
            Arg::Tensors(list) => Arg::Tensors(list.iter().map(&mut map).collect::<Result<_>>()?),
            Arg::OptTensors(list) => {
                let mut one = |x: &Option<Tensor>| x.as_ref().map(&mut map).transpose();
                Arg::OptTensors(list.iter().map(&mut one).collect::<Result<_>>()?)
            }
            other => other.clone(),
        });
    }
    Ok(all)
}

/// Zeros for each sample that a tensor has.
pub fn zeros_for(e: &mut Engine, x: &Tensor, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
    let all = levels(x);
    let sizes: Vec<usize> = all.iter().map(|&level| samples(e, level)).chain(shape.iter().copied()).collect();
    let zeros = e.source(Source::Fill(Scalar::Int(0)), &sizes, dtype, device)?;
    Ok(hide(e, zeros, &all))
}

/// The levels that are active, the outermost first.
fn active(e: &Engine) -> SmallVec<[Level; 2]> {
    e.rt.samples.active()
}

/// The error of what needs the one value that each sample has of its own.
#[cold]
pub fn needs_value(x: &Tensor) -> Box<Diag> {
    Diag::error(
        code::VMAP,
        "inside of `vmap` a tensor has a value for each sample, and none that the script could read",
    )
    .label(Origin::NONE, Focus::Call, "read here")
    .label(x.0.made, Focus::Expression, "it was made here")
    .help("`where(condition, a, b)` chooses for each sample; `item()`, `print` and `if` work outside of `vmap`")
}

/// The error of an operation that has no meaning for samples.
#[cold]
fn refused(op: &Op, why: &str) -> Box<Diag> {
    Diag::error(code::VMAP, format!("`{}` inside of `vmap`: {why}", op.name))
}
