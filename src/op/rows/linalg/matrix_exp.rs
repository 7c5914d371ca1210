//! Exponentials of large matrices by products of whole matrices.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::emit::Emit;
use crate::op::expr::compute;
use crate::op::rows::linalg::einsum::identity_like;
use crate::op::rows::pointwise::blend::CLAMP;
use crate::op::rows::pointwise::compare::ISFINITE;
use crate::op::rows::pointwise::unary::{CEIL, EXP2, LOG2};
use crate::op::rows::reduction::reduce::AMAX;
use crate::op::tensor::Tensor;

/// Bound: rows of a matrix that one block or thread takes.
pub const SMALL: usize = 128;

/// The 1-norm at which the series is taken, and its degree: 0.5^17 / 17! is 2e-20.
const NORM: f64 = 0.5;
const DEGREE: usize = 16;
/// Bound: halvings of a matrix, all that exponents of f64 allow.
const HALVINGS: f64 = 1100.0;

/// Taylor's series of the matrix halved until its 1-norm is at most 0.5, in six products (Paterson and Stockmeyer, 1973), then
/// squared as often as it was halved. Reads how often, which waits.
pub fn by_products(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let halvings = halvings(e, x)?;
    let most = e.read(&halvings)?.iter().map(|n| n.to_f64()).fold(0.0, f64::max);
    let mut power = series(e, x, &halvings)?;
    let alone = halvings.numel() == 1;
    for done in 0..most as usize {
        power = compute(e, |c| {
            let y = c.of(&power);
            let squared = y.matmul(y);
            if alone { squared } else { c.of(&halvings).greater(done as f64).choose(squared, y) }
        })?;
    }
    Ok(power)
}

/// How often each matrix is halved, [.., 1, 1].
fn halvings(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    compute(e, |c| {
        let norm = c.of(x).abs().sum_keepdim(-2).call(&AMAX, args![-1, true]);
        let times = (norm / NORM).of(&LOG2).of(&CEIL).call(&CLAMP, args![Scalar::Float(0.0), Scalar::Float(HALVINGS)]);
        times.zero_unless(norm.of(&ISFINITE))
    })
}

fn series(e: &mut dyn Emit, x: &Tensor, halvings: &Tensor) -> Result<Tensor> {
    let one = identity_like(e, x)?;
    compute(e, |c| {
        let a = c.of(x) * (-c.of(halvings)).of(&EXP2);
        let square = a.matmul(a);
        let fourth = square.matmul(square);
        let powers = [c.of(&one), a, square, square.matmul(a)];
        // Four terms of the series, from that of degree `from` on.
        let terms = |from: usize| {
            let term = |k: usize| powers[k] * inverse_factorial(from + k);
            (1..4).fold(term(0), |sum, k| sum + term(k))
        };
        let last = terms(DEGREE - 4) + fourth * inverse_factorial(DEGREE);
        (0..DEGREE - 4).step_by(4).rev().fold(last, |sum, from| terms(from) + fourth.matmul(sum))
    })
}

fn inverse_factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product::<f64>().recip()
}
