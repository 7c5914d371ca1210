//! Gradients inside of `vmap`. The graph is that of all samples; a cotangent, an input and its gradient have the dims of
//! the levels in sight while the graph is walked, and hidden before and after.

use super::{active, all_samples, hide, levels, value};
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::span::Origin;
use crate::op::rows::shape::rearrange::PERMUTE;
use crate::op::rows::shape::view::CLONE;
use crate::op::tensor::{Levels, Tensor};
use crate::tensor::engine::Engine;

/// A tensor with samples at every active level, in memory of its own where it has none: what is done to one sample, and the
/// gradient for it, is that sample's alone.
pub fn lifted(e: &mut Engine, x: &Tensor) -> Result<Tensor> {
    let all: Levels = active(e).iter().map(|level| level.number).collect();
    spread(e, x, &all)
}

/// The same at some levels, among which are those of the tensor.
pub fn spread(e: &mut Engine, x: &Tensor, all: &Levels) -> Result<Tensor> {
    if *all == levels(x) {
        return Ok(x.clone());
    }
    let wide = all_samples(e, x, all)?;
    let own = e.call_row(&CLONE, args![&wide])?;
    Ok(hide(e, own, all))
}

/// The dims of some levels come into sight, before the others; `permuted` says in which order they stand then.
pub fn shown(e: &mut Engine, g: &Tensor, seen: &Levels) -> Result<Tensor> {
    let mut all = levels(g);
    all.extend(seen.iter().copied().filter(|level| !levels(g).contains(level)));
    all.sort_unstable();
    let whole = all_samples(e, g, &all)?;
    let hidden: Levels = all.iter().copied().filter(|level| !seen.contains(level)).collect();
    let order: Vec<u64> = hidden.iter().chain(seen).copied().collect();
    let whole = reordered(e, whole, &all, &order)?;
    Ok(hide(e, whole, &hidden))
}

/// The first dims, which are those of levels in one order, in another.
fn reordered(e: &mut Engine, x: Tensor, from: &[u64], to: &[u64]) -> Result<Tensor> {
    if from == to {
        return Ok(x);
    }
    let place = |level: &u64| from.iter().position(|other| other == level).unwrap_or(0);
    let dims: Vec<usize> = to.iter().map(place).chain(from.len()..x.ndim()).collect();
    e.call_row(&PERMUTE, args![&x, dims.as_slice()])
}

/// The outputs and the cotangents of `grad(ys, xs)` as the graph has them.
pub fn grads_inside(
    e: &mut Engine,
    ys: &[Tensor],
    xs: &[Tensor],
    gs: &[Option<Tensor>],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let mut weights = Vec::new();
    for (at, y) in ys.iter().enumerate() {
        let seen = levels(y);
        if let Some(x) = xs.iter().find(|x| seen.iter().any(|level| !levels(x).contains(level))) {
            return Err(Diag::error(code::VMAP, "inside of `vmap` all samples share an input that has no samples")
                .label(Origin::NONE, Focus::Call, "each sample would have a gradient for it")
                .label(x.0.made, Focus::Expression, "the input was made here")
                .help("`func::grad(f)(x)` and `func::vjp(f, x)` give each sample an input of its own"));
        }
        weights.push(match gs.get(at).cloned().flatten() {
            Some(g) if g.shape() != y.shape() => {
                return Err(Diag::error(
                    code::GRAD_SHAPE,
                    format!("the gradient has shape {:?}, the tensor {:?}", g.shape().as_slice(), y.shape().as_slice()),
                ));
            }
            Some(g) => Some(shown(e, &g, &seen)?),
            None if y.numel() == 1 && !seen.is_empty() => {
                let (all, one) = (value(y), crate::base::dtype::Scalar::Int(1));
                let fill = crate::op::row::Source::Fill(one);
                let ones = crate::op::emit::Emit::source(e, fill, &all.shape(), all.dtype(), all.device())?;
                Some(ones)
            }
            None => None,
        });
    }
    Ok((ys.iter().map(value).collect(), weights))
}

/// The gradients of inputs with the dims of the inputs' levels hidden again.
pub fn results_inside(e: &mut Engine, xs: &[Tensor], found: Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>> {
    let mut all = Vec::new();
    for (x, g) in xs.iter().zip(found) {
        let Some(g) = g else {
            all.push(None);
            continue;
        };
        all.push(Some(hidden_at(e, &g, &levels(x))?));
    }
    Ok(all)
}

/// The first dims in sight, which are those of some levels, are hidden again.
pub fn hidden_at(e: &mut Engine, g: &Tensor, seen: &Levels) -> Result<Tensor> {
    let order: Vec<u64> = levels(g).iter().chain(seen).copied().collect();
    let mut sorted = Levels::from_slice(&order);
    sorted.sort_unstable();
    let whole = reordered(e, value(g), &order, &sorted)?;
    Ok(hide(e, whole, &sorted))
}
