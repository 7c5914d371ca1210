//! Combinations of one or two matrix products: scaled sums (`addmm` and others), outer and inner products, chains.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Shape, broadcast};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::linalg::matmul::{check_dtypes, inner_mismatch, product, ranks, same_count, wide_product};
use crate::op::rows::pointwise::arith::element_of;
use crate::op::rows::pointwise::compare::WHERE;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::rearrange::{at_least, transposed};
use crate::op::rows::shape::view::{RESHAPE, UNSQUEEZE};
use crate::op::rows::signatures::two_tensors;
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// `beta * input + alpha * value`; with `beta` 0 the input is not read, not even NaN.
fn scaled_sum(
    e: &mut dyn Emit,
    a: &Args,
    value: fn(&mut dyn Emit, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let (input, left, right) = (a.input(), a.tensor(addmm::mat1), a.tensor(addmm::mat2));
    let dtype = infer::same_dtype(&[("input", input), ("the left operand", left), ("the right operand", right)])?;
    // 16-bit floats are rounded once, at the end.
    let wide = if dtype.is_float() && dtype.size_bytes() < 4 { DType::F32 } else { dtype };
    let mut value = value(e, left, right)?;
    let factor = |at: usize| {
        let factor = a.scalar(at).unwrap_or(Scalar::Int(1));
        if dtype.is_inexact() { Ok(factor) } else { element_of(factor, dtype) }
    };
    let (beta, alpha) = (factor(addmm::beta)?, factor(addmm::alpha)?);
    let shape = value.shape();
    if broadcast(&input.shape(), &shape).is_none_or(|all| all != shape) {
        fail!(SHAPE, "`input` of shape {:?} cannot be expanded to {:?}", input.shape().as_slice(), shape.as_slice());
    }
    if alpha.to_f64() != 1.0 {
        value = e.mul(&value, alpha)?;
    }
    if beta.to_f64() != 0.0 {
        let input = e.cast(input, wide)?;
        let input = if beta.to_f64() == 1.0 { input } else { e.mul(&input, beta)? };
        value = e.add(&input, &value)?;
    } else if e.grad_enabled() && input.requires_grad() {
        // Its gradient is 0, whatever it holds.
        let never = e.full(&[], Scalar::Bool(false), &Meta { dtype: DType::Bool, ..Meta::of(input) })?;
        let input = e.cast(input, wide)?;
        let nothing = e.call(&WHERE, args![&never, &input, 0])?;
        value = e.add(&nothing, &value)?;
    }
    Ok(vec![e.cast(&value, dtype)?])
}

/// The products of two batches of as many matrices.
fn matrix_by_matrix(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    ranks(&[("batch1", a, 3), ("batch2", b, 3)])?;
    same_count(a, b)?;
    wide_product(e, a, b)
}

macro_rules! scaled {
    ($NAME:ident, $name:literal, $list:ident($first:ident, $second:ident), $value:expr, $summary:literal, $good:literal, $result:literal, $bad:literal) => {
        signature!($list(input: Tensor, $first: Tensor, $second: Tensor, beta: Number = 1, alpha: Number = 1));

        pub static $NAME: Op = Op {
            name: $name,
            params: $list::PARAMS,
            summary: $summary,
            examples: &[ex($good, $result), ex($bad, "E0201")],
            lower: Lower::Compose(|e, a| scaled_sum(e, a, $value)),
            grad: Grad::Composed,
            inplace: true,
            ..Op::BASE
        };
    };
}
scaled!(
    ADDMM,
    "addmm",
    addmm(mat1, mat2),
    |e, a, b| {
        ranks(&[("mat1", a, 2), ("mat2", b, 2)])?;
        wide_product(e, a, b)
    },
    "`beta * input + alpha * (mat1 @ mat2)`.",
    "addmm(ones([1, 1]), ones([1, 2]), ones([2, 1]))",
    "tensor([[3.]])",
    "addmm(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    ADDMV,
    "addmv",
    addmv(mat, vec),
    |e, a, b| {
        ranks(&[("mat", a, 2), ("vec", b, 1)])?;
        wide_product(e, a, b)
    },
    "`beta * input + alpha * (mat @ vec)`.",
    "addmv(ones([1]), ones([1, 2]), ones([2]))",
    "tensor([3.])",
    "addmv(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    BADDBMM,
    "baddbmm",
    baddbmm(batch1, batch2),
    matrix_by_matrix,
    "`beta * input + alpha * (batch1 @ batch2)`, matrix by matrix.",
    "baddbmm(ones([1, 1, 1]), ones([1, 1, 2]), ones([1, 2, 1]))",
    "tensor([[[3.]]])",
    "baddbmm(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    ADDBMM,
    "addbmm",
    addbmm(batch1, batch2),
    |e, a, b| {
        let all = matrix_by_matrix(e, a, b)?;
        let dtype = all.dtype();
        let sum = e.call(&SUM, args![&all, 0])?;
        e.cast(&sum, dtype)
    },
    "`beta * input + alpha * sum(batch1 @ batch2)`, summed over the batch.",
    "addbmm(ones([1, 1]), ones([2, 1, 2]), ones([2, 2, 1]))",
    "tensor([[5.]])",
    "addbmm(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    ADDR,
    "addr",
    addr(vec1, vec2),
    |e, a, b| {
        let wide = if a.dtype().is_float() { a.dtype().compute() } else { a.dtype() };
        let (a, b) = (e.cast(a, wide)?, e.cast(b, wide)?);
        outer(e, "vec1", &a, "vec2", &b)
    },
    "`beta * input + alpha * outer(vec1, vec2)`.",
    "addr(ones([1, 1]), ones([1]), ones([1]))",
    "tensor([[2.]])",
    "addr(ones([1]), ones([2, 2]), ones([2]))"
);

fn outer(e: &mut dyn Emit, first: &str, a: &Tensor, second: &str, b: &Tensor) -> Result<Tensor> {
    ranks(&[(first, a, 1), (second, b, 1)])?;
    let column = e.call(&UNSQUEEZE, args![a, 1])?;
    e.mul(&column, b)
}

signature!(outer(input: Tensor, vec2: Tensor));

pub static OUTER: Op = Op {
    name: "outer",
    aliases: &["ger"],
    params: outer::PARAMS,
    summary: "Every product of an element of one vector and one of another.",
    examples: &[
        ex("outer(tensor([1, 2]), tensor([3, 4]))", "tensor([[3, 4],\n        [6, 8]])"),
        ex("outer(ones([2, 2]), ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![outer(e, "input", a.input(), "vec2", a.tensor(outer::vec2))?])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static INNER: Op = Op {
    name: "inner",
    params: two_tensors::PARAMS,
    summary: "Sums of products over the last dimension of both operands; a number multiplies.",
    examples: &[
        ex("inner(tensor([1, 2]), tensor([[3, 4], [5, 6]]))", "tensor([11, 17])"),
        ex("inner(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y) = (a.input(), a.tensor(two_tensors::other));
        if x.ndim() == 0 || y.ndim() == 0 {
            return Ok(vec![e.mul(x, y)?]);
        }
        let (left, right) = (x.shape(), y.shape());
        let (k, l) = (left[left.len() - 1], right[right.len() - 1]);
        if k != l {
            fail!(SHAPE, "the last sizes of shapes {:?} and {:?} differ", left.as_slice(), right.as_slice());
        }
        let rows = |e: &mut dyn Emit, x: &Tensor| {
            let n: usize = x.shape()[..x.ndim() - 1].iter().product();
            e.call(&RESHAPE, args![x, &[n, k][..]])
        };
        let (first, second) = (rows(e, x)?, rows(e, y)?);
        let second = transposed(e, &second)?;
        let out = product(e, &first, &second)?;
        let shape: Shape = left[..left.len() - 1].iter().chain(&right[..right.len() - 1]).copied().collect();
        e.apply(&RESHAPE, args![&out, shape.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(chain_matmul(matrices: Tensors));

pub static CHAIN_MATMUL: Op = Op {
    name: "chain_matmul",
    params: chain_matmul::PARAMS,
    summary: "Product of several matrices, in the order that takes the fewest multiplications.",
    examples: &[
        ex("chain_matmul(ones([1, 2]), ones([2, 2]), ones([2, 1]))", "tensor([[4.]])"),
        ex("chain_matmul(ones([1, 2]), ones([3, 2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(chain_matmul::matrices);
        if list.is_empty() {
            fail!(VALUE, "the list of matrices is empty");
        }
        for x in list {
            ranks(&[("matrices", x, 2)])?;
        }
        Ok(vec![chain(e, list)?])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(multi_dot(tensors: Tensors));

pub static MULTI_DOT: Op = Op {
    name: "multi_dot",
    params: multi_dot::PARAMS,
    summary: "Product of several matrices in the cheapest order; the first and the last may be vectors.",
    examples: &[
        ex("multi_dot([ones([2]), ones([2, 2]), ones([2])])", "tensor(4.)"),
        ex("multi_dot([ones([2, 2])])", "E0206"),
        ex("multi_dot([ones([2, 2]), ones([3])])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(multi_dot::tensors);
        let last = list.len().saturating_sub(1);
        if last == 0 {
            fail!(VALUE, "at least 2 tensors are expected");
        }
        let mut shape = Shape::new();
        let mut matrices = Vec::with_capacity(list.len());
        for (at, x) in list.iter().enumerate() {
            let ends = at == 0 || at == last;
            match x.ndim() {
                1 if at == 0 => matrices.push(at_least(e, x, 2)?),
                1 if ends => matrices.push(e.call(&UNSQUEEZE, args![x, 1])?),
                2 => {
                    if ends {
                        shape.push(x.shape()[if at == 0 { 0 } else { 1 }]);
                    }
                    matrices.push(x.clone());
                }
                n => fail!(SHAPE, "tensor {at} has {n} dimensions; matrices are expected, vectors only at the ends"),
            }
        }
        let out = chain(e, &matrices)?;
        e.apply(&RESHAPE, args![&out, shape.as_slice()])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// The classic dynamic program over where to cut (Cormen et al., "Matrix-chain multiplication").
fn chain(e: &mut dyn Emit, list: &[Tensor]) -> Result<Tensor> {
    for pair in list.windows(2) {
        check_dtypes(&[("left", &pair[0]), ("right", &pair[1])])?;
        let (s, t) = (pair[0].shape(), pair[1].shape());
        if s[1] != t[0] {
            return Err(inner_mismatch(&s, &t, s[1], t[0]));
        }
    }
    let n = list.len();
    let size = |at: usize| if at == 0 { list[0].shape()[0] } else { list[at - 1].shape()[1] } as f64;
    let mut cost = vec![vec![0.0; n]; n];
    let mut cuts = vec![vec![0usize; n]; n];
    for len in 1..n {
        for from in 0..n - len {
            let to = from + len;
            cost[from][to] = f64::INFINITY;
            for cut in from..to {
                let total = cost[from][cut] + cost[cut + 1][to] + size(from) * size(cut + 1) * size(to + 1);
                if total < cost[from][to] {
                    (cost[from][to], cuts[from][to]) = (total, cut);
                }
            }
        }
    }
    chained(e, list, &cuts, 0, n - 1)
}

fn chained(e: &mut dyn Emit, list: &[Tensor], cuts: &[Vec<usize>], from: usize, to: usize) -> Result<Tensor> {
    if from == to {
        return Ok(list[from].clone());
    }
    let cut = cuts[from][to];
    let left = chained(e, list, cuts, from, cut)?;
    let right = chained(e, list, cuts, cut + 1, to)?;
    product(e, &left, &right)
}

pub static ROWS: &[&Op] = &[&ADDMM, &ADDMV, &BADDBMM, &ADDBMM, &ADDR, &OUTER, &INNER, &CHAIN_MATMUL, &MULTI_DOT];
