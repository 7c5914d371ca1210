//! Derivatives of samples by finite differences: `gradient`.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, ex};
use crate::op::rows::reduction::scan::DIFF;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::view::{RESHAPE, SLICE};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(gradient(input: Tensor, spacing: FloatsOrTensors = None, dim: Dims = None, edge_order: Int = 1));

pub static GRADIENT: Op = Op {
    name: "gradient",
    params: gradient::PARAMS,
    summary: "The derivative of samples along each dimension, by central differences and one-sided ones at the ends.",
    details: "`spacing` is the distance of neighbours: one number, a number for each dimension, or a tensor of coordinates for each. \
At the ends the differences are of order `edge_order`, 1 or 2. Gives an array, a tensor for each dimension.",
    examples: &[
        ex("gradient(tensor([1.0, 4.0, 9.0]))", "[tensor([3., 4., 5.])]"),
        ex("gradient(tensor([1.0, 4.0, 9.0]), #{spacing: 2.0, edge_order: 2})", "[tensor([1., 2., 3.])]"),
        ex("gradient(ones([1]))", "E0201"),
        ex("gradient(ones([3]), #{edge_order: 3})", "E0206"),
        ex("gradient(ones([3]), #{dim: 1})", "E0209"),
    ],
    lower: Lower::Compose(gradient),
    grad: Grad::Composed,
    call: CallForm::Function,
    results: Returns::List,
    ..Op::BASE
};

/// Distances along one dimension.
enum Spacing {
    Even(f64),
    /// Differences of neighbouring coordinates.
    Uneven(Tensor),
}

fn spacings(e: &mut dyn Emit, a: &Args, sizes: &[usize]) -> Result<Vec<Spacing>> {
    match (a.get(gradient::spacing), a.attr(gradient::spacing)) {
        (Arg::Tensors(list), _) => {
            if list.len() != sizes.len() {
                fail!(VALUE, "`spacing` has {} tensors for {} dimensions", list.len(), sizes.len());
            }
            let mut found = Vec::new();
            for (coordinates, &size) in list.iter().zip(sizes) {
                if coordinates.shape()[..] != [size] {
                    fail!(
                        SHAPE,
                        "coordinates of shape {:?} for a dimension of size {size}",
                        coordinates.shape().as_slice()
                    );
                }
                found.push(Spacing::Uneven(e.call(&DIFF, args![coordinates])?));
            }
            Ok(found)
        }
        (_, Attr::Floats(list)) if list.len() == sizes.len() => Ok(list.iter().map(|&h| Spacing::Even(h)).collect()),
        (_, Attr::Floats(list)) => fail!(VALUE, "`spacing` has {} numbers for {} dimensions", list.len(), sizes.len()),
        _ => {
            let h = a.opt_float(gradient::spacing).unwrap_or(1.0);
            Ok(sizes.iter().map(|_| Spacing::Even(h)).collect())
        }
    }
}

fn gradient(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, order) = (a.input(), a.int(gradient::edge_order));
    if !(1..=2).contains(&order) {
        fail!(VALUE, "`edge_order` is 1 or 2, not {order}");
    }
    let dims = infer::dims(a.ints(gradient::dim).as_ref(), x.ndim())?;
    if x.ndim() == 0 {
        fail!(SHAPE, "a tensor without dimensions has no neighbours");
    }
    let sizes: Vec<usize> = dims.iter().map(|&dim| x.shape()[dim]).collect();
    if let Some(size) = sizes.iter().find(|&&size| size < order as usize + 1) {
        fail!(SHAPE, "dimensions must have size {} at least; one has {size}", order + 1);
    }
    let spacings = spacings(e, a, &sizes)?;
    dims.iter().zip(&spacings).map(|(&dim, spacing)| along(e, x, dim, spacing, order == 2)).collect()
}

/// Samples `from..to` of a dimension.
fn part(e: &mut dyn Emit, x: &Tensor, dim: usize, from: usize, to: usize) -> Result<Tensor> {
    e.call(&SLICE, args![x, dim, from, to, 1])
}

fn along(e: &mut dyn Emit, x: &Tensor, dim: usize, spacing: &Spacing, second: bool) -> Result<Tensor> {
    let n = x.shape()[dim];
    let (left, inner, right) = match spacing {
        Spacing::Even(h) => {
            let (up, down) = (part(e, x, dim, 2, n)?, part(e, x, dim, 0, n - 2)?);
            let inner = e.sub(&up, &down)?;
            let inner = e.div(&inner, Scalar::Float(2.0 * h))?;
            let ends = if second {
                let ends = [[-1.5, 2.0, -0.5], [0.5, -2.0, 1.5]]
                    .map(|weights| weights.map(|w| Arg::from(Scalar::Float(w / h))));
                let [left, right] = ends;
                [three(e, x, dim, 0, &left)?, three(e, x, dim, n - 3, &right)?]
            } else {
                [one(e, x, dim, 0, Scalar::Float(*h).into())?, one(e, x, dim, n - 2, Scalar::Float(*h).into())?]
            };
            let [left, right] = ends;
            (left, inner, right)
        }
        Spacing::Uneven(steps) => {
            let inner = if n > 2 {
                let (p, q) = (part(e, steps, 0, 0, n - 2)?, part(e, steps, 0, 1, n - 1)?);
                let weights = weights(e, x, dim, &p, &q, 1)?;
                three_wide(e, x, dim, n - 2, &weights)?
            } else {
                part(e, x, dim, 0, 0)?
            };
            let step = |e: &mut dyn Emit, at: usize| part(e, steps, 0, at, at + 1);
            let ends = if second {
                let (s0, s1) = (step(e, 0)?, step(e, 1)?);
                let left = weights(e, x, dim, &s0, &s1, 0)?;
                let (s0, s1) = (step(e, n - 3)?, step(e, n - 2)?);
                let right = weights(e, x, dim, &s0, &s1, 2)?;
                [three(e, x, dim, 0, &left)?, three(e, x, dim, n - 3, &right)?]
            } else {
                let (first, last) = (step(e, 0)?, step(e, n - 2)?);
                let (first, last) = (shaped(e, &first, x, dim)?, shaped(e, &last, x, dim)?);
                [one(e, x, dim, 0, Arg::Tensor(first))?, one(e, x, dim, n - 2, Arg::Tensor(last))?]
            };
            let [left, right] = ends;
            (left, inner, right)
        }
    };
    e.call(&CAT, args![vec![left, inner, right], dim])
}

/// (x[at + 1] - x[at]) / h.
fn one(e: &mut dyn Emit, x: &Tensor, dim: usize, at: usize, h: Arg) -> Result<Tensor> {
    let (low, high) = (part(e, x, dim, at, at + 1)?, part(e, x, dim, at + 1, at + 2)?);
    let change = e.sub(&high, &low)?;
    e.div(&change, h)
}

/// The weighted sum of three neighbours.
fn three(e: &mut dyn Emit, x: &Tensor, dim: usize, at: usize, weights: &[Arg; 3]) -> Result<Tensor> {
    sum(e, weights, |e, k| part(e, x, dim, at + k, at + k + 1))
}

/// The same at `count` places from the first on.
fn three_wide(e: &mut dyn Emit, x: &Tensor, dim: usize, count: usize, weights: &[Arg; 3]) -> Result<Tensor> {
    sum(e, weights, |e, k| part(e, x, dim, k, k + count))
}

fn sum(e: &mut dyn Emit, weights: &[Arg; 3], part: impl Fn(&mut dyn Emit, usize) -> Result<Tensor>) -> Result<Tensor> {
    let first = part(e, 0)?;
    let mut sum = e.mul(&first, weights[0].clone())?;
    for (k, weight) in weights.iter().enumerate().skip(1) {
        let next = part(e, k)?;
        let next = e.mul(&next, weight.clone())?;
        sum = e.add(&sum, &next)?;
    }
    Ok(sum)
}

/// A row of numbers along one dimension of `x`.
fn shaped(e: &mut dyn Emit, row: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let mut shape: Ints = std::iter::repeat_n(1, x.ndim()).collect();
    shape[dim] = row.numel() as i64;
    e.call(&RESHAPE, args![row, shape])
}

/// Weights of three neighbours at distances `p`, `q`, for the derivative at neighbour `at` of them.
fn weights(e: &mut dyn Emit, x: &Tensor, dim: usize, p: &Tensor, q: &Tensor, at: usize) -> Result<[Arg; 3]> {
    let both = e.add(p, q)?;
    let (outer_p, outer_q, inner) = (e.mul(p, &both)?, e.mul(q, &both)?, e.mul(p, q)?);
    // Numerators over p (p + q), p q and q (p + q).
    let (first, middle, last) = match at {
        0 => {
            let first = e.add(p, &both)?;
            (e.neg(&first)?, both, e.neg(p)?)
        }
        1 => (e.neg(q)?, e.sub(q, p)?, p.clone()),
        _ => {
            let last = e.add(q, &both)?;
            (q.clone(), e.neg(&both)?, last)
        }
    };
    let mut found = Vec::new();
    for (top, bottom) in [(first, outer_p), (middle, inner), (last, outer_q)] {
        let weight = e.div(&top, &bottom)?;
        found.push(Arg::Tensor(shaped(e, &weight, x, dim)?));
    }
    match <[Arg; 3]>::try_from(found) {
        Ok(weights) => Ok(weights),
        Err(_) => fail!(INTERNAL, "three weights are made"),
    }
}

pub static ROWS: &[&Op] = &[&GRADIENT];
