//! Eigenvalues of general matrices, which are complex numbers.

use crate::args;
use crate::base::diag::Result;
use crate::op::complex::linalg;
use crate::op::emit::{Backward, Emit};
use crate::op::expr::derive;
use crate::op::row::{Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::einsum::identity_like;
use crate::op::rows::linalg::solve::solve;
use crate::op::rows::linalg::svd::values;
use crate::op::rows::pointwise::complex::REAL;
use crate::op::rows::pointwise::complex_parts::CONJ;
use crate::op::rows::shape::copies::DIAG_EMBED;
use crate::op::rows::shape::rearrange::DIAGONAL;
use crate::op::tensor::Tensor;

pub static EIG: Op = Op {
    name: "eig",
    params: values::PARAMS,
    summary: "Eigenvalues and eigenvectors of square matrices: complex numbers, in no order.",
    details: "Eigenvectors are the columns, of length 1, determined up to a factor of size 1. Computed on the CPU in 64 bits; a \
              tensor of a GPU is copied there and back.",
    examples: &[
        ex("eig(tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.abs()", "tensor([1., 1.])"),
        ex("eig(ones([2, 3]))", "E0201"),
        ex("eig(tensor([[1]]))", "E0202"),
    ],
    lower: Lower::Steps(|e, a| linalg::eig(e, &EIG, a)),
    saves: &[Save::Out(0), Save::Out(1)],
    grad: Grad::Rule(eig_grad),
    results: Returns::Named(&["eigenvalues", "eigenvectors"]),
    ..Op::BASE
};

/// `V⁻ᴴ (diag(gL) + (Vᴴ gV - Vᴴ V diag(re(Vᴴ gV))) / conj(E)) Vᴴ` with E_jk = L_k - L_j (PyTorch's `linalg_eig_backward`).
fn eig_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    derive(e, v, |t| {
        let (values, vectors) = (t.output(0), t.output(1));
        let vh = vectors.mh();
        let mut middle = t.grad(0).map(|g| g.of(&DIAG_EMBED));
        if let Some(g) = t.grad(1) {
            let vhg = vh.matmul(g);
            let along = vhg.call(&DIAGONAL, args![0, -2, -1]).of(&REAL).unsqueeze(-2);
            let apart = vhg - vh.matmul(vectors) * along;
            let gaps = values.unsqueeze(-2) - values.unsqueeze(-1);
            let gaps = (gaps + gaps.then(|e, gaps| identity_like(e, gaps))).of(&CONJ);
            let outside = 1 - gaps.then(|e, gaps| identity_like(e, gaps));
            let turned = apart / gaps * outside;
            middle = Some(middle.map_or(turned, |middle| middle + turned));
        }
        [middle.map(|middle| vh.then_with(middle.matmul(vh), |e, vh, right| solve(e, vh, right)))]
    })
}

pub static EIGVALS: Op = Op {
    name: "eigvals",
    params: values::PARAMS,
    summary: "Eigenvalues of square matrices: complex numbers, in no order.",
    details: "Computed on the CPU in 64 bits; a tensor of a GPU is copied there and back.",
    examples: &[
        ex("eigvals(tensor([[2.0, 0.0], [0.0, 2.0]]))", "tensor([2.+0.j, 2.+0.j])"),
        ex("eigvals(ones([2, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![e.apply(&EIG, args![a.input()])?.swap_remove(0)])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&EIG, &EIGVALS];
