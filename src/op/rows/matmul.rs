//! Matrix products and what is made of one: `matmul` with PyTorch's rules of rank, its strict relatives, the
//! scaled sums (`addmm` and kin), `linear`.
//!
//! Transposed operands go to the kernel as strided views; broadcast batches as stride 0. Contractions named by
//! letters or axes are in `contract.rs`.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Layout, Shape, broadcast};
use crate::fail;
use crate::kernel::cpu::matmul as kernel;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Save, ex};
use crate::op::rows::compare::WHERE;
use crate::op::rows::reduce::SUM;
use crate::op::rows::shape::{SQUEEZE, adjoint, at_least};
use crate::op::rows::view::{EXPAND, RESHAPE, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};

const INPUT: Param = Param::new("input", Kind::Tensor);
const OTHER: Param = Param::new("other", Kind::Tensor);

/// One dtype, and not `bool`.
pub fn check_dtypes(tensors: &[(&str, &Tensor)]) -> Result<DType> {
    let dtype = infer::same_dtype(tensors)?;
    if dtype == DType::Bool {
        return Err(
            Diag::error(code::DTYPE, "`bool` is not supported").help("convert first, for example with `.float()`")
        );
    }
    Ok(dtype)
}

#[cold]
fn inner_mismatch(a: &[usize], b: &[usize], k: usize, l: usize) -> Box<Diag> {
    let diag = Diag::error(code::SHAPE, format!("shapes {a:?} and {b:?} do not fit: the inner sizes are {k} and {l}"));
    let transposed = match b {
        [.., n] if b.len() >= 2 => *n == k,
        _ => false,
    };
    if transposed { diag.help("did you mean the transposed right operand, `.mT`?") } else { diag }
}

/// Operands of a product as matrices over one batch, and the shape of its result.
struct Product {
    a: Layout,
    b: Layout,
    /// Shape that the kernel writes, and the one that the script sees.
    dense: Shape,
    seen: Shape,
}

fn plan(a: &Layout, b: &Layout) -> Result<Product> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return Err(
            Diag::error(code::SHAPE, "both operands need at least 1 dimension").help("`*` multiplies by a number")
        );
    }
    let row = if a.ndim() == 1 { a.unsqueeze(0) } else { a.clone() };
    let column = if b.ndim() == 1 { b.unsqueeze(1) } else { b.clone() };
    let (m, k) = (row.shape[row.ndim() - 2], row.shape[row.ndim() - 1]);
    let (l, n) = (column.shape[column.ndim() - 2], column.shape[column.ndim() - 1]);
    if k != l {
        return Err(inner_mismatch(&a.shape, &b.shape, k, l));
    }
    let (lead_a, lead_b) = (&row.shape[..row.ndim() - 2], &column.shape[..column.ndim() - 2]);
    let batch = match lead_a == lead_b {
        true => Shape::from_slice(lead_a),
        false => broadcast(lead_a, lead_b).ok_or_else(|| infer::broadcast_error(lead_a, lead_b))?,
    };
    let with = |last: &[usize]| batch.iter().chain(last).copied().collect::<Shape>();
    let (shape_a, shape_b, dense) = (with(&[m, k]), with(&[l, n]), with(&[m, n]));
    let mut seen = batch;
    if a.ndim() > 1 {
        seen.push(m);
    }
    if b.ndim() > 1 {
        seen.push(n);
    }
    let widened =
        |layout: Layout, shape: &Shape| if layout.shape == *shape { layout } else { layout.broadcast_to(shape) };
    Ok(Product { a: widened(row, &shape_a), b: widened(column, &shape_b), dense, seen })
}

fn matmul(e: &mut dyn Emit, args: &Args) -> Result<Vec<Tensor>> {
    let (a, b) = (args.tensor(0), args.tensor(1));
    let dtype = check_dtypes(&[("input", a), ("other", b)])?;
    let (view_a, view_b) = (a.view(), b.view());
    let product = plan(&view_a.layout, &view_b.layout)?;
    let operand = |e: &mut dyn Emit, x: &Tensor, own: &Layout, wanted: Layout| {
        if *own == wanted { x.clone() } else { e.alias(x, wanted) }
    };
    let left = operand(e, a, &view_a.layout, product.a);
    let right = operand(e, b, &view_b.layout, product.b);
    let call = KernelCall::new("matmul", kernel::matmul).input(&left).input(&right).output(&product.dense, dtype);
    let out = e.kernel(call)?.swap_remove(0);
    if product.seen == product.dense {
        return Ok(vec![out]);
    }
    Ok(vec![e.alias(&out, Layout::contiguous(&product.seen))])
}

/// `g @ b^T` and `a^T @ g`; the engine sums over broadcast batches. A right operand that is one matrix gets its
/// gradient from one tall product instead of a sum of many.
fn matmul_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let (m, n) = (v.meta(0).shape.len(), v.meta(1).shape.len());
    let mut g = v.g().clone();
    if m == 1 {
        g = e.call(&UNSQUEEZE, args![&g, if n == 1 { -1 } else { -2 }])?;
    }
    if n == 1 {
        g = e.call(&UNSQUEEZE, args![&g, -1])?;
    }
    let left = if v.needs(0) {
        let b = v.input(1);
        let b = if n == 1 { e.call(&UNSQUEEZE, args![b, 0])? } else { adjoint(e, b)? };
        let left = product(e, &g, &b)?;
        Some(if m == 1 && left.ndim() == 2 { e.call(&RESHAPE, args![&left, &[-1i64][..]])? } else { left })
    } else {
        None
    };
    let right = if v.needs(1) {
        let a = v.input(0);
        let right = if m > 2 && n <= 2 {
            let k = v.meta(0).shape[m - 1];
            let shape = g.shape();
            let (width, rows) = (shape[m - 1], shape[..m - 1].iter().product::<usize>());
            let a = e.call(&RESHAPE, args![a, &[rows, k][..]])?;
            let g = e.call(&RESHAPE, args![&g, &[rows, width][..]])?;
            let a = adjoint(e, &a)?;
            product(e, &a, &g)?
        } else {
            let a = if m == 1 { e.call(&UNSQUEEZE, args![a, 1])? } else { adjoint(e, a)? };
            product(e, &a, &g)?
        };
        Some(if n == 1 { e.call(&SQUEEZE, args![&right, -1])? } else { right })
    } else {
        None
    };
    Ok(vec![left, right])
}

pub static MATMUL: Op = Op {
    name: "matmul",
    operator: "@",
    params: &[INPUT, OTHER],
    summary: "Matrix product, with vectors on either side and batches that broadcast.",
    details: "Shapes [.., m, k] and [.., k, n] give [.., m, n]. A vector on the left counts as one row, on the right \
              as one column, and that dimension goes away again; two vectors give a number. Both operands have one \
              dtype; integers wrap.",
    examples: &[
        ex("tensor([[1.0, 2.0], [3.0, 4.0]]) @ tensor([1.0, 1.0])", "tensor([3., 7.])"),
        ex("matmul(ones([2, 3]), ones([2, 3]))", "E0201"),
        ex("matmul(ones([2]), zeros([2], #{dtype: \"f64\"}))", "E0202"),
    ],
    lower: Lower::Steps(matmul),
    saves: &[Save::For(0, 1), Save::For(1, 0)],
    grad: Grad::Rule(matmul_grad),
    oracle: "torch.matmul(a, b)",
    ..Op::BASE
};

/// `a @ b`.
pub fn product(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    e.call(&MATMUL, args![a, b])
}

/// Wanted numbers of dimensions, by name.
fn ranks(wanted: &[(&str, &Tensor, usize)]) -> Result<()> {
    for (name, tensor, ndim) in wanted {
        if tensor.ndim() != *ndim {
            let what = ["a number", "a vector", "a matrix", "a batch of matrices"][*ndim];
            return Err(Diag::error(
                code::SHAPE,
                format!("`{name}` has shape {:?}; {what} ({ndim} dimensions) is wanted", tensor.shape().as_slice()),
            )
            .help("`matmul` takes operands of any rank"));
        }
    }
    Ok(())
}

macro_rules! strict {
    ($NAME:ident, $name:literal, [$($alias:literal),*], $first:literal, $rank:literal, $second:literal, $other:literal,
     $summary:literal, $good:literal, $result:literal, $bad:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: &[Param::new($first, Kind::Tensor), Param::new($second, Kind::Tensor)],
            summary: $summary,
            examples: &[ex($good, $result), ex($bad, "E0201")],
            lower: Lower::Compose(|e, a| {
                ranks(&[($first, a.tensor(0), $rank), ($second, a.tensor(1), $other)])?;
                if $rank == 3 && a.tensor(0).shape()[0] != a.tensor(1).shape()[0] {
                    let (left, right) = (a.tensor(0).shape()[0], a.tensor(1).shape()[0]);
                    fail!(SHAPE, "the batches have {left} and {right} matrices; `matmul` broadcasts");
                }
                e.apply(&MATMUL, a.clone())
            }),
            grad: Grad::Composed,
            oracle: concat!("torch.", $name, "(a, b)"),
            ..Op::BASE
        };
    };
}
strict!(
    MM,
    "mm",
    [],
    "input",
    2,
    "mat2",
    2,
    "Product of two matrices.",
    "mm(ones([2, 3]), ones([3, 1]))",
    "tensor([[3.],\n        [3.]])",
    "mm(ones([2]), ones([2, 2]))"
);
strict!(
    BMM,
    "bmm",
    [],
    "input",
    3,
    "mat2",
    3,
    "Products of two batches of matrices, one by one.",
    "bmm(ones([1, 1, 2]), ones([1, 2, 1]))",
    "tensor([[[2.]]])",
    "bmm(ones([2, 1, 1]), ones([3, 1, 1]))"
);
strict!(
    MV,
    "mv",
    [],
    "input",
    2,
    "vec",
    1,
    "Product of a matrix and a vector.",
    "mv(ones([2, 3]), ones([3]))",
    "tensor([3., 3.])",
    "mv(ones([2]), ones([2]))"
);
strict!(
    DOT,
    "dot",
    [],
    "input",
    1,
    "tensor",
    1,
    "Product of two vectors: one number.",
    "dot(tensor([1, 2]), tensor([3, 4]))",
    "tensor(11)",
    "dot(ones([2]), ones([3]))"
);
strict!(
    VDOT,
    "vdot",
    [],
    "input",
    1,
    "other",
    1,
    "Product of two vectors: one number. Another name of `dot`.",
    "vdot(tensor([1, 2]), tensor([3, 4]))",
    "tensor(11)",
    "vdot(ones([2]), ones([3]))"
);

const BETA: Param = Param::opt("beta", Kind::Number, Default::Int(1));
const ALPHA: Param = Param::opt("alpha", Kind::Number, Default::Int(1));

/// `beta * input + alpha * value`; with `beta` 0 the input is not read, not even NaN.
fn scaled_sum(
    e: &mut dyn Emit,
    a: &Args,
    value: fn(&mut dyn Emit, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let (input, left, right) = (a.tensor(0), a.tensor(1), a.tensor(2));
    let dtype = infer::same_dtype(&[("input", input), ("the left operand", left), ("the right operand", right)])?;
    // 16-bit floats are rounded once, at the end.
    let wide = if dtype.is_float() && dtype.size_bytes() < 4 { DType::F32 } else { dtype };
    let (left, right) = (e.cast(left, wide)?, e.cast(right, wide)?);
    let mut value = value(e, &left, &right)?;
    let factor = |at: usize| {
        let factor = a.scalar(at).unwrap_or(Scalar::Int(1));
        if dtype.is_float() { factor } else { Scalar::Int(factor.to_i64()) }
    };
    let (beta, alpha) = (factor(3), factor(4));
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

macro_rules! scaled {
    ($NAME:ident, $name:literal, $first:literal, $second:literal, $value:expr, $summary:literal, $good:literal, $result:literal, $bad:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: &[INPUT, Param::new($first, Kind::Tensor), Param::new($second, Kind::Tensor), BETA, ALPHA],
            summary: $summary,
            examples: &[ex($good, $result), ex($bad, "E0201")],
            lower: Lower::Compose(|e, a| scaled_sum(e, a, $value)),
            grad: Grad::Composed,
            inplace: true,
            oracle: concat!("torch.", $name, "(c, a, b)"),
            ..Op::BASE
        };
    };
}
scaled!(
    ADDMM,
    "addmm",
    "mat1",
    "mat2",
    |e, a, b| e.call(&MM, args![a, b]),
    "`beta * input + alpha * (mat1 @ mat2)`.",
    "addmm(ones([1, 1]), ones([1, 2]), ones([2, 1]))",
    "tensor([[3.]])",
    "addmm(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    ADDMV,
    "addmv",
    "mat",
    "vec",
    |e, a, b| e.call(&MV, args![a, b]),
    "`beta * input + alpha * (mat @ vec)`.",
    "addmv(ones([1]), ones([1, 2]), ones([2]))",
    "tensor([3.])",
    "addmv(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    BADDBMM,
    "baddbmm",
    "batch1",
    "batch2",
    |e, a, b| e.call(&BMM, args![a, b]),
    "`beta * input + alpha * (batch1 @ batch2)`, matrix by matrix.",
    "baddbmm(ones([1, 1, 1]), ones([1, 1, 2]), ones([1, 2, 1]))",
    "tensor([[[3.]]])",
    "baddbmm(ones([1]), ones([2]), ones([2]))"
);
scaled!(
    ADDBMM,
    "addbmm",
    "batch1",
    "batch2",
    |e, a, b| {
        let all = e.call(&BMM, args![a, b])?;
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
    "vec1",
    "vec2",
    |e, a, b| outer(e, "vec1", a, "vec2", b),
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

pub static OUTER: Op = Op {
    name: "outer",
    aliases: &["ger"],
    params: &[INPUT, Param::new("vec2", Kind::Tensor)],
    summary: "Every product of an element of one vector and one of another.",
    examples: &[
        ex("outer(tensor([1, 2]), tensor([3, 4]))", "tensor([[3, 4],\n        [6, 8]])"),
        ex("outer(ones([2, 2]), ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![outer(e, "input", a.tensor(0), "vec2", a.tensor(1))?])),
    grad: Grad::Composed,
    oracle: "torch.outer(a, b)",
    ..Op::BASE
};

pub static INNER: Op = Op {
    name: "inner",
    params: &[INPUT, OTHER],
    summary: "Sums of products over the last dimension of both operands; a number multiplies.",
    examples: &[
        ex("inner(tensor([1, 2]), tensor([[3, 4], [5, 6]]))", "tensor([11, 17])"),
        ex("inner(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y) = (a.tensor(0), a.tensor(1));
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
        let second = adjoint(e, &second)?;
        let out = product(e, &first, &second)?;
        let shape: Shape = left[..left.len() - 1].iter().chain(&right[..right.len() - 1]).copied().collect();
        e.apply(&RESHAPE, args![&out, shape.as_slice()])
    }),
    grad: Grad::Composed,
    oracle: "torch.inner(a, b)",
    ..Op::BASE
};

/// Internal: `linear` of floats, in one kernel that starts from the bias.
static LINEAR_KERNEL: Op = Op {
    name: "linear",
    params: &[INPUT, Param::new("weight", Kind::Tensor), Param::opt("bias", Kind::Tensor, Default::None)],
    summary: "`input @ weight.T + bias`.",
    lower: Lower::Kernel(|_, a| {
        let (x, weight) = (a.tensor(0), a.tensor(1));
        let mut shape = x.shape();
        let last = shape.len() - 1;
        shape[last] = weight.shape()[0];
        let call = KernelCall::new("linear", kernel::linear).input(x).input(weight);
        Ok(call.inputs(a.opt_tensor(2)).output(&shape, x.dtype()))
    }),
    saves: &[Save::For(0, 1), Save::For(1, 0)],
    grad: Grad::Rule(|e, v| {
        let (k, width) = (v.meta(1).shape[1], v.meta(1).shape[0]);
        let left = if v.needs(0) { Some(product(e, v.g(), v.input(1))?) } else { None };
        let rows = v.g().numel() / width.max(1);
        let right = if v.needs(1) && rows > 0 {
            let g = e.call(&RESHAPE, args![v.g(), &[rows, width][..]])?;
            let x = e.call(&RESHAPE, args![v.input(0), &[rows, k][..]])?;
            let g = adjoint(e, &g)?;
            Some(product(e, &g, &x)?)
        } else if v.needs(1) {
            Some(e.zeros_like(v.meta(1))?)
        } else {
            None
        };
        Ok(vec![left, right, v.needs(2).then(|| v.g().clone())])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

fn linear(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, weight, bias) = (a.tensor(0), a.tensor(1), a.opt_tensor(2));
    let dtype = check_dtypes(&[("input", x), ("weight", weight), ("bias", bias.unwrap_or(x))])?;
    let (shape, w) = (x.shape(), weight.shape());
    if !(1..=2).contains(&w.len()) || shape.is_empty() {
        fail!(SHAPE, "`weight` of shape {:?} and `input` of {:?} make no linear map", w.as_slice(), shape.as_slice());
    }
    let (k, l) = (shape[shape.len() - 1], w[w.len() - 1]);
    if k != l {
        fail!(SHAPE, "the last dimension of `input` has size {k}, of `weight` {l}");
    }
    if let Some(bias) = bias {
        let fits = match bias.ndim() {
            0 => true,
            1 => w.len() == 2 && (bias.numel() == w[0] || bias.numel() == 1),
            _ => false,
        };
        if !fits {
            fail!(
                SHAPE,
                "`bias` of shape {:?} does not go with `weight` of {:?}",
                bias.shape().as_slice(),
                w.as_slice()
            );
        }
    }
    let whole = bias.is_none_or(|bias| bias.ndim() == 1 && bias.numel() == w[0]);
    if dtype.is_float() && w.len() == 2 && whole {
        return e.apply(&LINEAR_KERNEL, args![x, weight, bias]);
    }
    let weight = if w.len() == 2 { adjoint(e, weight)? } else { weight.clone() };
    let y = product(e, x, &weight)?;
    Ok(vec![match bias {
        Some(bias) => e.add(&y, bias)?,
        None => y,
    }])
}

pub static LINEAR: Op = Op {
    name: "linear",
    params: &[INPUT, Param::new("weight", Kind::Tensor), Param::opt("bias", Kind::Tensor, Default::None)],
    summary: "`input @ weight.T + bias`.",
    details: "Shapes: input [.., in], weight [out, in] (or [in]), bias [out]; result [.., out].",
    examples: &[
        ex("linear(ones([2]), ones([1, 2]), ones([1]))", "tensor([3.])"),
        ex("linear(ones([2]), ones([1, 3]))", "E0201"),
        ex("linear(ones([2]), zeros([1, 2], #{dtype: \"f64\"}))", "E0202"),
    ],
    lower: Lower::Compose(linear),
    grad: Grad::Composed,
    call: CallForm::Function,
    oracle: "torch.nn.functional.linear(a, b, c)",
    ..Op::BASE
};

pub static BILINEAR: Op = Op {
    name: "bilinear",
    params: &[
        Param::new("input1", Kind::Tensor),
        Param::new("input2", Kind::Tensor),
        Param::new("weight", Kind::Tensor),
        Param::opt("bias", Kind::Tensor, Default::None),
    ],
    summary: "`input1 @ weight[o] @ input2 + bias[o]` for every output `o`.",
    details: "Shapes: input1 [.., n], input2 [.., m], weight [out, n, m], bias [out]; result [.., out].",
    examples: &[
        ex("bilinear(ones([1, 2]), ones([1, 3]), ones([1, 2, 3]))", "tensor([[6.]])"),
        ex("bilinear(ones([1, 2]), ones([1, 3]), ones([1, 3, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y, w) = (a.tensor(0), a.tensor(1), a.tensor(2));
        check_dtypes(&[("input1", x), ("input2", y), ("weight", w)])?;
        let (s, t, u) = (x.shape(), y.shape(), w.shape());
        let fits = u.len() == 3 && !s.is_empty() && s.len() == t.len() && s[..s.len() - 1] == t[..t.len() - 1];
        if !fits || s[s.len() - 1] != u[1] || t[t.len() - 1] != u[2] {
            fail!(SHAPE, "shapes {:?}, {:?} and weight {:?} do not fit", s.as_slice(), t.as_slice(), u.as_slice());
        }
        // [.., 1, n] @ [out, n, m] summed with [.., 1, m]
        let x = e.call(&UNSQUEEZE, args![x, -2])?;
        let x = e.call(&UNSQUEEZE, args![&x, -2])?;
        let rows = product(e, &x, w)?;
        let rows = e.call(&SQUEEZE, args![&rows, -2])?;
        let y = e.call(&UNSQUEEZE, args![y, -1])?;
        let out = product(e, &rows, &y)?;
        let out = e.call(&SQUEEZE, args![&out, -1])?;
        Ok(vec![match a.opt_tensor(3) {
            Some(bias) if bias.shape().as_slice() != [u[0]] => {
                fail!(SHAPE, "`bias` has shape {:?}, [{}] is wanted", bias.shape().as_slice(), u[0])
            }
            Some(bias) => e.add(&out, bias)?,
            None => out,
        }])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    oracle: "torch.nn.functional.bilinear(a, b, c)",
    ..Op::BASE
};

/// Matrices over one batch: leading dims of both expanded to their common shape.
pub fn same_batch(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let (s, t) = (a.shape(), b.shape());
    let (lead_a, lead_b) = (&s[..s.len() - 2], &t[..t.len() - 2]);
    if lead_a == lead_b {
        return Ok((a.clone(), b.clone()));
    }
    let batch = broadcast(lead_a, lead_b).ok_or_else(|| infer::broadcast_error(lead_a, lead_b))?;
    let widen = |e: &mut dyn Emit, x: &Tensor, own: &Shape| {
        let shape: Shape = batch.iter().chain(&own[own.len() - 2..]).copied().collect();
        e.call(&EXPAND, args![x, shape.as_slice()])
    };
    Ok((widen(e, a, &s)?, widen(e, b, &t)?))
}

pub static CHAIN_MATMUL: Op = Op {
    name: "chain_matmul",
    params: &[Param::new("matrices", Kind::Tensors)],
    summary: "Product of several matrices, in the order that takes the fewest multiplications.",
    examples: &[
        ex("chain_matmul(ones([1, 2]), ones([2, 2]), ones([2, 1]))", "tensor([[4.]])"),
        ex("chain_matmul(ones([1, 2]), ones([3, 2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(0);
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
    oracle: "torch.chain_matmul(a, b, c)",
    ..Op::BASE
};

pub static MULTI_DOT: Op = Op {
    name: "multi_dot",
    params: &[Param::new("tensors", Kind::Tensors)],
    summary: "Product of several matrices in the cheapest order; the first and the last may be vectors.",
    examples: &[
        ex("multi_dot([ones([2]), ones([2, 2]), ones([2])])", "tensor(4.)"),
        ex("multi_dot([ones([2, 2])])", "E0206"),
        ex("multi_dot([ones([2, 2]), ones([3])])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(0);
        let last = list.len().saturating_sub(1);
        if last == 0 {
            fail!(VALUE, "at least 2 tensors are wanted");
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
                n => fail!(SHAPE, "tensor {at} has {n} dimensions; matrices are wanted, vectors only at the ends"),
            }
        }
        let out = chain(e, &matrices)?;
        e.apply(&RESHAPE, args![&out, shape.as_slice()])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    oracle: "torch.linalg.multi_dot([a, b, c])",
    ..Op::BASE
};

/// The classic dynamic programme over where to cut (Cormen et al., "Matrix-chain multiplication").
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

pub static ROWS: &[&Op] = &[
    &MATMUL,
    &MM,
    &BMM,
    &MV,
    &DOT,
    &VDOT,
    &ADDMM,
    &ADDMV,
    &BADDBMM,
    &ADDBMM,
    &ADDR,
    &OUTER,
    &INNER,
    &LINEAR_KERNEL,
    &LINEAR,
    &BILINEAR,
    &CHAIN_MATMUL,
    &MULTI_DOT,
];
