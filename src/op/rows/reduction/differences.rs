//! Derivatives of samples by finite differences: `gradient`.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::diag::Result;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, ex};
use crate::op::rows::reduction::scan::DIFF;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(gradient(input: Tensor, spacing: FloatsOrTensors = None, dim: Dims = None, edge_order: Int = 1));

pub static GRADIENT: Op = Op {
    name: "gradient",
    params: gradient::PARAMS,
    summary: "The derivative of samples along each dimension, by central differences and one-sided ones at the ends.",
    details: "`spacing` is the distance of neighbors: one number, a number for each dimension, or a tensor of coordinates for each. \
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
    /// Differences of neighboring coordinates.
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
        fail!(SHAPE, "a tensor without dimensions has no neighbors");
    }
    let sizes: Vec<usize> = dims.iter().map(|&dim| x.shape()[dim]).collect();
    if let Some(size) = sizes.iter().find(|&&size| size < order as usize + 1) {
        fail!(SHAPE, "dimensions must have size {} at least; one has {size}", order + 1);
    }
    let spacings = spacings(e, a, &sizes)?;
    dims.iter().zip(&spacings).map(|(&dim, spacing)| along(e, x, dim, spacing, order == 2)).collect()
}

fn along(e: &mut dyn Emit, x: &Tensor, dim: usize, spacing: &Spacing, second: bool) -> Result<Tensor> {
    let n = x.shape()[dim];
    let samples = Samples { n, dim: dim as i64, ndim: x.ndim() };
    compute(e, |c| {
        let x = c.of(x);
        let [left, inner, right] = match spacing {
            Spacing::Even(h) => samples.even(x, *h, second),
            Spacing::Uneven(steps) => samples.uneven(x, c.of(steps), second),
        };
        left.cat(inner, samples.dim).cat(right, samples.dim)
    })
}

/// The samples of one dimension: at each end, and between, the derivative has a rule of its own.
struct Samples {
    n: usize,
    dim: i64,
    ndim: usize,
}

impl Samples {
    fn even<'c>(&self, x: Expr<'c>, h: f64, second: bool) -> [Expr<'c>; 3] {
        let n = self.n;
        let inner = (x.slice(self.dim, 2, n) - x.slice(self.dim, 0, n - 2)) / (2.0 * h);
        if !second {
            return [self.step(x, 0) / h, inner, self.step(x, n - 2) / h];
        }
        let end = |at, weights: [f64; 3]| {
            let part = |k: usize| x.slice(self.dim, at + k, at + k + 1) * (weights[k] / h);
            part(0) + part(1) + part(2)
        };
        [end(0, [-1.5, 2.0, -0.5]), inner, end(n - 3, [0.5, -2.0, 1.5])]
    }

    fn uneven<'c>(&self, x: Expr<'c>, steps: Expr<'c>, second: bool) -> [Expr<'c>; 3] {
        let n = self.n;
        let step = |at: usize| steps.slice(0, at, at + 1);
        let inner = if n > 2 {
            self.weighted(x, 0, n - 2, weights(steps.slice(0, 0, n - 2), steps.slice(0, 1, n - 1), 1))
        } else {
            x.slice(self.dim, 0, 0)
        };
        if !second {
            let end = |at: usize| self.step(x, at) / self.shaped(step(at));
            return [end(0), inner, end(n - 2)];
        }
        let left = self.weighted(x, 0, 1, weights(step(0), step(1), 0));
        [left, inner, self.weighted(x, n - 3, 1, weights(step(n - 3), step(n - 2), 2))]
    }

    /// x[at + 1] - x[at].
    fn step<'c>(&self, x: Expr<'c>, at: usize) -> Expr<'c> {
        x.slice(self.dim, at + 1, at + 2) - x.slice(self.dim, at, at + 1)
    }

    /// The weighted sums of three neighbors, at `count` places from `at` on.
    fn weighted<'c>(&self, x: Expr<'c>, at: usize, count: usize, weights: [Expr<'c>; 3]) -> Expr<'c> {
        let part = |k: usize| x.slice(self.dim, at + k, at + k + count) * self.shaped(weights[k]);
        part(0) + part(1) + part(2)
    }

    /// A row of numbers along the dimension.
    fn shaped<'c>(&self, row: Expr<'c>) -> Expr<'c> {
        let mut shape: Ints = std::iter::repeat_n(1, self.ndim).collect();
        shape[self.dim as usize] = -1;
        row.call(&RESHAPE, args![shape])
    }
}

/// Weights of three neighbors at distances `p`, `q`, for the derivative at neighbor `at` of them: numerators over
/// p (p + q), p q and q (p + q).
fn weights<'c>(p: Expr<'c>, q: Expr<'c>, at: usize) -> [Expr<'c>; 3] {
    let both = p + q;
    let [first, middle, last] = match at {
        0 => [-(p + both), both, -p],
        1 => [-q, q - p, p],
        _ => [q, -both, q + both],
    };
    [first / (p * both), middle / (p * q), last / (q * both)]
}

pub static ROWS: &[&Op] = &[&GRADIENT];
