//! The size of elements taken together: norms by PyTorch's old signature, limits on them, log-sum-exp.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::expr::compute;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::linalg::norms::{MATRIX_NORM, vector_norm};
use crate::op::rows::pointwise::arith::{DIV, masked};
use crate::op::rows::pointwise::compare::{GT, ISFINITE, WHERE};
use crate::op::rows::pointwise::unary::{EXP, LOG};
use crate::op::rows::reduction::reduce::{AMAX, SUM, restored};
use crate::op::rows::shape::view::RESHAPE;
use crate::signature;

fn float_only(dtype: DType, what: &str) -> Result<()> {
    if !dtype.is_inexact() {
        return Err(Diag::error(code::DTYPE, format!("{what} must be a floating-point dtype, not {dtype}"))
            .help("convert first, for example with `.float()`"));
    }
    Ok(())
}

signature!(norm(
    input: Tensor, p: NumberOrText = "fro", dim: Dims = None, keepdim: Bool = false, dtype: DType = None,
));

pub static NORM: Op = Op {
    name: "norm",
    params: norm::PARAMS,
    summary: "The norm over all, one or several dims: of order 2, or of order `p`.",
    details: "`p` is any number, also `INF`, `-INF` and 0 (the number of elements that are not 0), \"fro\", which is 2, or \"nuc\", the sum of a matrix's singular values.",
    examples: &[
        ex("tensor([3.0, 4.0]).norm()", "tensor(5.)"),
        ex("tensor([[3.0, -4.0], [1.0, 0.0]]).norm(1, 1)", "tensor([7., 1.])"),
        ex("tensor([3.0, -4.0]).norm(INF)", "tensor(4.)"),
        ex("tensor([1, 2]).norm()", "E0202"),
        ex("ones([2]).norm(2, 1)", "E0209"),
        ex("ones([2]).norm(2, [0, 0])", "E0206"),
        ex("ones([2]).norm(\"two\")", "E0206"),
        ex("zeros([0]).norm(INF)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        float_only(x.dtype(), "the tensor's dtype")?;
        let mut x = x.clone();
        if let Some(dtype) = a.dtype(norm::dtype) {
            float_only(dtype, "`dtype`")?;
            if dtype.size_bytes() < x.dtype().size_bytes() {
                fail!(DTYPE, "`dtype` {dtype} is narrower than the tensor's {}", x.dtype());
            }
            x = e.cast(&x, dtype)?;
        }
        let ord = match a.attr(norm::p) {
            Attr::Str(word) if &**word == "fro" => 2.0,
            Attr::Str(word) if &**word == "nuc" => {
                let dims = a.get(norm::dim).clone();
                return e.apply(&MATRIX_NORM, args![&x, "nuc", dims, a.flag(norm::keepdim)]);
            }
            Attr::Str(word) => fail!(VALUE, "the order of a norm is a number, \"fro\" or \"nuc\", not \"{word}\""),
            _ => a.opt_float(norm::p).unwrap_or(2.0),
        };
        Ok(vec![vector_norm(e, &x, ord, a.ints(norm::dim), a.flag(norm::keepdim))?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(renorm(input: Tensor, p: Number, dim: Dim, maxnorm: Number));

pub static RENORM: Op = Op {
    name: "renorm",
    params: renorm::PARAMS,
    summary: "Scales the slices along `dim` whose norm of order `p` is above `maxnorm` down to it.",
    examples: &[
        ex(
            "renorm(tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)",
            "tensor([[0.6000, 0.8000],\n        [0.3000, 0.4000]])",
        ),
        ex("renorm(ones([2]), 2, 0, 1.0)", "E0201"),
        ex("renorm(ones([2, 2]), 2, 3, 1.0)", "E0209"),
        ex("renorm(ones([2, 2]), 0, 0, 1.0)", "E0206"),
        ex("renorm(ones([2, 2]), 2, 0, -1.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, p, maxnorm) = (a.input(), a.float(renorm::p), a.float(renorm::maxnorm));
        if x.ndim() < 2 {
            fail!(SHAPE, "at least 2 dimensions are expected, not {}", x.ndim());
        }
        if p <= 0.0 || maxnorm < 0.0 {
            fail!(VALUE, "`p` must be positive and `maxnorm` not negative, not {p} and {maxnorm}");
        }
        let along = infer::dim(a.int(renorm::dim), x.ndim())?;
        float_only(x.dtype(), "the tensor's dtype")?;
        let dims: Ints = (0..x.ndim()).filter(|&dim| dim != along).map(|dim| dim as i64).collect();
        let norm = vector_norm(e, x, p, Some(dims), true)?;
        let floor = e.add(&norm, 1e-7)?;
        let factor = e.rev(&DIV, Scalar::Float(maxnorm), &floor)?;
        let large = e.call(&GT, args![&norm, maxnorm])?;
        let factor = e.call(&WHERE, args![&large, &factor, 1.0])?;
        Ok(vec![e.mul(x, &factor)?])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(logsumexp_of(input: Tensor, dim: Dims = None, keepdim: Bool = false));

/// Arguments: `x, dim, keepdim`, x a float tensor.
pub static LOGSUMEXP_OF: Op = Op {
    name: "logsumexp",
    params: logsumexp_of::PARAMS,
    summary: "The logarithm of a sum of exponentials.",
    lower: Lower::Steps(|e, a| {
        let dtype = a.input().dtype();
        let x = e.cast(a.input(), dtype.compute())?;
        let dim = a.get(logsumexp_of::dim);
        if x.numel() == 0 {
            let powers = e.call(&EXP, args![&x])?;
            let sum = e.call(&SUM, args![&powers, dim.clone(), a.flag(logsumexp_of::keepdim)])?;
            let log = e.call(&LOG, args![&sum])?;
            return Ok(vec![e.cast(&log, dtype)?]);
        }
        let largest = e.call(&AMAX, args![&x, dim.clone(), true])?;
        let finite = e.call(&ISFINITE, args![&largest])?;
        let shift = masked(e, &finite, &largest)?;
        let below = e.sub(&x, &shift)?;
        let powers = e.call(&EXP, args![&below])?;
        let sum = e.call(&SUM, args![&powers, dim.clone(), a.flag(logsumexp_of::keepdim)])?;
        let log = e.call(&LOG, args![&sum])?;
        let shape = log.shape();
        let shift = e.call(&RESHAPE, args![&shift, shape.as_slice()])?;
        let total = e.add(&log, &shift)?;
        Ok(vec![e.cast(&total, dtype)?])
    }),
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let y = restored(e, v, v.result())?;
        let g = restored(e, v, v.g())?;
        Ok(vec![Some(compute(e, |c| c.of(&g) * (c.of(v.input()) - &y).exp())?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(logsumexp(input: Tensor, dim: Dims, keepdim: Bool = false));

pub static LOGSUMEXP: Op = Op {
    name: "logsumexp",
    params: logsumexp::PARAMS,
    summary: "The logarithm of the sum of exponentials over one or several dims, without overflow.",
    examples: &[
        ex("tensor([1000.0, 1000.0]).logsumexp(0)", "tensor(1000.6932)"),
        ex("tensor([-INF, -INF]).logsumexp(0)", "tensor(-inf)"),
        ex("ones([2]).logsumexp(1)", "E0209"),
        ex("ones([2]).logsumexp([0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let x = if x.dtype().is_inexact() { x.clone() } else { e.cast(x, e.default_float())? };
        e.apply(&LOGSUMEXP_OF, args![&x, a.get(logsumexp::dim).clone(), a.flag(logsumexp::keepdim)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&NORM, &RENORM, &LOGSUMEXP_OF, &LOGSUMEXP];
