//! Decompositions of matrices that are close to few dimensions, by random projections.
//! Source of the algorithm: Halko, Martinsson, Tropp, "Finding structure with randomness" (2009), 5.1.

use crate::args;
use crate::base::diag::Result;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, ex};
use crate::op::rows::linalg::matmul::MATMUL;
use crate::op::rows::linalg::svd::{QR, SVD};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::random::distributions::RANDN;
use crate::op::rows::reduction::moments::MEAN;
use crate::op::rows::shape::rearrange::transposed;
use crate::op::tensor::Tensor;
use crate::signature;

const NAMES: Returns = Returns::Named(&["U", "S", "V"]);

fn product(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    e.call(&MATMUL, args![a, b])
}

/// An orthonormal basis of the columns.
fn basis(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    Ok(e.apply(&QR, args![x])?.swap_remove(0))
}

fn few(e: &mut dyn Emit, a: &Tensor, q: i64, rounds: i64) -> Result<Vec<Tensor>> {
    float_only(a, "A")?;
    let shape = a.shape();
    let [.., m, n] = shape[..] else { fail!(SHAPE, "a matrix is expected; the shape is {:?}", shape.as_slice()) };
    if q < 0 || q > m.min(n) as i64 {
        fail!(VALUE, "`q` is {q}, and a matrix of {m} rows and {n} columns has at most {} singular values", m.min(n));
    }
    if rounds < 0 {
        fail!(VALUE, "`niter` must not be negative, and is {rounds}");
    }
    let across = transposed(e, a)?;
    let drawn = e.call(&RANDN, args![[n as i64, q].as_slice(), a.dtype(), a.device()])?;
    let first = product(e, a, &drawn)?;
    let mut left = basis(e, &first)?;
    for _ in 0..rounds {
        let right = product(e, &across, &left)?;
        let right = basis(e, &right)?;
        let next = product(e, a, &right)?;
        left = basis(e, &next)?;
    }
    let turned = transposed(e, &left)?;
    let small = product(e, &turned, a)?;
    let mut found = e.apply(&SVD, args![&small, false])?;
    found[0] = product(e, &left, &found[0])?;
    found[2] = transposed(e, &found[2])?;
    Ok(found)
}

signature!(svd_lowrank(A: Tensor, q: Int = 6, niter: Int = 2, M: Tensor = None));

pub static SVD_LOWRANK: Op = Op {
    name: "svd_lowrank",
    params: svd_lowrank::PARAMS,
    summary: "The `q` largest singular values of a large matrix, and their vectors, nearly: A = U @ diag(S) @ V.mT.",
    details: "A basis of the columns is found from random products; `niter` rounds make it more exact. `M` is taken from `A` first. \
              `svd(A)` is exact.",
    examples: &[
        ex("svd_lowrank(ones([3, 3]), 1).S", "tensor([3.0000])"),
        ex("svd_lowrank(ones([3, 3]), 4)", "E0206"),
        ex("svd_lowrank(ones([3]))", "E0201"),
        ex("svd_lowrank(tensor([[1]]), 1)", "E0202"),
    ],
    lower: Lower::Compose(|e, a: &Args| {
        let centered = match a.opt_tensor(svd_lowrank::M) {
            Some(mean) => e.sub(a.input(), mean)?,
            None => a.input().clone(),
        };
        few(e, &centered, a.int(svd_lowrank::q), a.int(svd_lowrank::niter))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    results: NAMES,
    ..Op::BASE
};

signature!(pca_lowrank(A: Tensor, q: Int = None, center: Bool = true, niter: Int = 2));

pub static PCA_LOWRANK: Op = Op {
    name: "pca_lowrank",
    params: pca_lowrank::PARAMS,
    summary: "Principal components: `svd_lowrank` of the rows less their mean; the columns of `V` are the directions.",
    details: "`q` is 6, or the smaller side of the matrix if that is less; without `center` the mean stays.",
    examples: &[
        ex("pca_lowrank(tensor([[1.0, 0.0], [3.0, 0.0]]), 1).S", "tensor([1.4142])"),
        ex("pca_lowrank(ones([3, 3]), 4)", "E0206"),
        ex("pca_lowrank(ones([3]))", "E0201"),
        ex("pca_lowrank(tensor([[1]]), 1)", "E0202"),
    ],
    lower: Lower::Compose(|e, a: &Args| {
        let x = a.input();
        float_only(x, "A")?;
        let shape = x.shape();
        let [.., m, n] = shape[..] else { fail!(SHAPE, "a matrix is expected; the shape is {:?}", shape.as_slice()) };
        let q = a.opt_int(pca_lowrank::q).unwrap_or(m.min(n).min(6) as i64);
        if !a.flag(pca_lowrank::center) {
            return few(e, x, q, a.int(pca_lowrank::niter));
        }
        let mean = e.call(&MEAN, args![x, [-2i64].as_slice(), true])?;
        let centered = e.sub(x, &mean)?;
        few(e, &centered, q, a.int(pca_lowrank::niter))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    results: NAMES,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&SVD_LOWRANK, &PCA_LOWRANK];
