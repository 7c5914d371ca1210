//! Matrix products: `matmul` with PyTorch's rules of rank, its strict relatives, `linear`.
//!
//! Transposed operands go to the kernel as strided views; broadcast batches as stride 0. Contractions named by
//! letters or axes are in `einsum.rs`.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape, broadcast};
use crate::fail;
use crate::kernel::matmul;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::rearrange::{SQUEEZE, TRANSPOSE, transposed};
use crate::op::rows::shape::view::{CONTIGUOUS, EXPAND, RESHAPE, UNSQUEEZE};
use crate::op::rows::signatures::two_tensors;
use crate::op::tensor::Tensor;
use crate::signature;

/// One dtype, and not `bool`.
pub fn check_dtypes(tensors: &[(&str, &Tensor)]) -> Result<DType> {
    let dtype = infer::same_dtype(tensors)?;
    if dtype == DType::Bool {
        return Err(Diag::error(code::DTYPE, "bool tensors are not supported")
            .help("convert first, for example with `.float()`"));
    }
    Ok(dtype)
}

#[cold]
pub fn inner_mismatch(a: &[usize], b: &[usize], k: usize, l: usize) -> Box<Diag> {
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

/// Whether two tensors have a product.
pub fn check(a: &Layout, b: &Layout) -> Result<()> {
    plan(a, b).map(drop)
}

fn matmul(e: &mut dyn Emit, args: &Args) -> Result<Vec<Tensor>> {
    let dtype = check_dtypes(&[("input", args.input()), ("other", args.tensor(two_tensors::other))])?;
    matmul_in(e, args, dtype)
}

/// With a result of `dtype`: that of the operands, or f32 of 16-bit floats.
fn matmul_in(e: &mut dyn Emit, args: &Args, dtype: DType) -> Result<Vec<Tensor>> {
    let (a, b) = (args.input(), args.tensor(two_tensors::other));
    let (view_a, view_b) = (a.view(), b.view());
    let product = plan(&view_a.layout, &view_b.layout)?;
    let operand = |e: &mut dyn Emit, x: &Tensor, own: &Layout, expected: Layout| {
        if *own == expected { x.clone() } else { e.alias(x, expected) }
    };
    let left = operand(e, a, &view_a.layout, product.a);
    let right = operand(e, b, &view_b.layout, product.b);
    let out = match by_elements(e, &left, &right, &product.dense, dtype)? {
        Some(out) => out,
        None => {
            let call = KernelCall::new("matmul", &matmul::MATMUL).input(&left).input(&right);
            e.kernel(call.output(&product.dense, dtype))?.swap_remove(0)
        }
    };
    if product.seen == product.dense {
        return Ok(vec![out]);
    }
    // A pass over elements lays its result as its operands lie.
    let seen = out.view().layout.view(&product.seen).expect("dims of size 1 are left out");
    Ok(vec![e.alias(&out, seen)])
}

/// Length from which a product of two vectors is a fused reduction.
const LONG: usize = 4096;

/// Products that the fused kernels compute as fast as memory allows: of a column and a row, and of two long vectors. 16-bit
/// floats are multiplied and added in f32, and rounded once.
fn by_elements(e: &mut dyn Emit, a: &Tensor, b: &Tensor, dense: &Shape, dtype: DType) -> Result<Option<Tensor>> {
    let k = a.shape()[a.ndim() - 1];
    // Integers sum to i64.
    let is_long = dense.as_slice() == [1, 1] && k >= LONG && dtype.is_float();
    if k != 1 && !is_long {
        return Ok(None);
    }
    let wide = if dtype.is_float() { dtype.compute() } else { dtype };
    // The view comes before the cast, so that the cast is part of the one pass.
    let b = if k == 1 { b.clone() } else { e.call(&RESHAPE, args![b, &[1, k][..]])? };
    let (a, b) = (e.cast(a, wide)?, e.cast(&b, wide)?);
    let out = if k == 1 {
        e.mul(&a, &b)?
    } else {
        let products = e.mul(&a, &b)?;
        e.call(&SUM, args![&products, -1, true])?
    };
    e.cast(&out, dtype).map(Some)
}

/// `g @ b^T` and `a^T @ g`; the engine sums over broadcast batches. A right operand that is one matrix gets its
/// gradient from one tall product instead of a sum of many.
fn matmul_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let (m, n) = (v.meta(two_tensors::input).shape.len(), v.meta(two_tensors::other).shape.len());
    let mut g = e.cast(v.g(), v.meta(two_tensors::input).dtype)?;
    if m == 1 {
        g = e.call(&UNSQUEEZE, args![&g, if n == 1 { -1 } else { -2 }])?;
    }
    if n == 1 {
        g = e.call(&UNSQUEEZE, args![&g, -1])?;
    }
    let left = if v.needs(two_tensors::input) {
        let b = v.saved(two_tensors::other);
        let b = if n == 1 { e.call(&UNSQUEEZE, args![b, 0])? } else { transposed(e, b)? };
        let left = product(e, &g, &b)?;
        Some(if m == 1 && left.ndim() == 2 { e.call(&RESHAPE, args![&left, &[-1i64][..]])? } else { left })
    } else {
        None
    };
    let right = if v.needs(two_tensors::other) {
        let a = v.input();
        let right = if m > 2 && n <= 2 {
            let k = v.meta(two_tensors::input).shape[m - 1];
            let shape = g.shape();
            let (width, rows) = (shape[m - 1], shape[..m - 1].iter().product::<usize>());
            let a = e.call(&RESHAPE, args![a, &[rows, k][..]])?;
            let g = e.call(&RESHAPE, args![&g, &[rows, width][..]])?;
            let a = transposed(e, &a)?;
            product(e, &a, &g)?
        } else {
            let a = if m == 1 { e.call(&UNSQUEEZE, args![a, 1])? } else { transposed(e, a)? };
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
    params: two_tensors::PARAMS,
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
    saves: &[Save::For(two_tensors::input, two_tensors::other), Save::For(two_tensors::other, two_tensors::input)],
    grad: Grad::Rule(matmul_grad),
    forward: crate::op::row::Forward::Product(0, 1, None),
    ..Op::BASE
};

/// The product of 16-bit floats before it is rounded, for sums of which it is a part.
pub static WIDE_MATMUL: Op = Op {
    name: "_wide_matmul",
    params: two_tensors::PARAMS,
    summary: "Matrix product of 16-bit floats in f32.",
    lower: Lower::Steps(|e, args| {
        check_dtypes(&[("input", args.input()), ("other", args.tensor(two_tensors::other))])?;
        matmul_in(e, args, args.input().dtype().compute())
    }),
    saves: &[Save::For(two_tensors::input, two_tensors::other), Save::For(two_tensors::other, two_tensors::input)],
    grad: Grad::Rule(matmul_grad),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Product(0, 1, None),
    ..Op::BASE
};

/// `a @ b`, not rounded to 16 bits.
pub fn wide_product(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let is_narrow = a.dtype().is_float() && a.dtype().size_bytes() < 4;
    e.call(if is_narrow { &WIDE_MATMUL } else { &MATMUL }, args![a, b])
}

/// `a @ b`.
pub fn product(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    e.call(&MATMUL, args![a, b])
}

/// Wanted numbers of dimensions, by name.
pub fn ranks(expected: &[(&str, &Tensor, usize)]) -> Result<()> {
    for (name, tensor, ndim) in expected {
        if tensor.ndim() != *ndim {
            let what = ["a number", "a vector", "a matrix", "a batch of matrices"][*ndim];
            return Err(Diag::error(
                code::SHAPE,
                format!("`{name}` has shape {:?}; {what} ({ndim} dimensions) is expected", tensor.shape().as_slice()),
            )
            .help("`matmul` takes operands of any rank"));
        }
    }
    Ok(())
}

signature!(int_mm(input: Tensor, mat2: Tensor));

/// Rows of bytes by rows of bytes: `[m, k]` and `[n, k]`, contiguous.
static INT_MM_ROWS: Op = Op {
    name: "_int_mm",
    params: int_mm::PARAMS,
    summary: "Products of rows of bytes.",
    lower: Lower::Kernel(|_, a| {
        let (x, y) = (a.tensor(int_mm::input), a.tensor(int_mm::mat2));
        let call = KernelCall::new("int_mm", &matmul::INT_MM).input(x).input(y);
        Ok(call.output(&[x.shape()[0], y.shape()[0]], DType::I32))
    }),
    grad: Grad::Stop("products of integers have no gradient"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static INT_MM: Op = Op {
    name: "_int_mm",
    params: int_mm::PARAMS,
    summary: "The product of two matrices of `i8`, added up in `i32`: [m, k] and [k, n] give [m, n].",
    details: "The second matrix is read by columns: without a copy if it is the transpose of a contiguous one.",
    examples: &[
        ex(
            "_int_mm(tensor([[100, 100]], #{dtype: \"i8\"}), tensor([[100], [-1]], #{dtype: \"i8\"}))",
            "tensor([[9900]], dtype=i32)",
        ),
        ex("_int_mm(ones([2, 3]).to(\"i8\"), ones([2, 3]).to(\"i8\"))", "E0201"),
        ex("_int_mm(ones([2, 3]), ones([3, 2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y) = (a.tensor(int_mm::input), a.tensor(int_mm::mat2));
        ranks(&[("input", x, 2), ("mat2", y, 2)])?;
        if let Some(other) = [x.dtype(), y.dtype()].into_iter().find(|dtype| *dtype != DType::I8) {
            fail!(DTYPE, "both matrices must be i8, not {other}");
        }
        let (a, b) = (x.shape(), y.shape());
        if a[1] != b[0] {
            return Err(inner_mismatch(&a, &b, a[1], b[0]));
        }
        let rows = e.call(&TRANSPOSE, args![y, 0, 1])?;
        let (rows, x) = (e.call(&CONTIGUOUS, args![&rows])?, e.call(&CONTIGUOUS, args![x])?);
        e.apply(&INT_MM_ROWS, args![&x, &rows])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// Refuses batches of different numbers of matrices.
pub fn same_count(a: &Tensor, b: &Tensor) -> Result<()> {
    let (left, right) = (a.shape()[0], b.shape()[0]);
    if left != right {
        fail!(SHAPE, "the batches have {left} and {right} matrices; `matmul` broadcasts");
    }
    Ok(())
}

macro_rules! strict {
    ($NAME:ident, $name:literal, [$($alias:literal),*], $list:ident($first:ident: $rank:literal, $second:ident: $other:literal),
     $summary:literal, $good:literal, $result:literal, $bad:literal) => {
        signature!($list($first: Tensor, $second: Tensor));

        pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: $list::PARAMS,
            summary: $summary,
            examples: &[ex($good, $result), ex($bad, "E0201")],
            lower: Lower::Compose(|e, a| {
                let (x, y) = (a.tensor($list::$first), a.tensor($list::$second));
                ranks(&[(stringify!($first), x, $rank), (stringify!($second), y, $other)])?;
                if $rank == 3 {
                    same_count(x, y)?;
                }
                e.apply(&MATMUL, a.clone())
            }),
            grad: Grad::Composed,
            ..Op::BASE
        };
    };
}
strict!(
    MM,
    "mm",
    [],
    mm(input: 2, mat2: 2),
    "Product of two matrices.",
    "mm(ones([2, 3]), ones([3, 1]))",
    "tensor([[3.],\n        [3.]])",
    "mm(ones([2]), ones([2, 2]))"
);
strict!(
    BMM,
    "bmm",
    [],
    bmm(input: 3, mat2: 3),
    "Products of two batches of matrices, one by one.",
    "bmm(ones([1, 1, 2]), ones([1, 2, 1]))",
    "tensor([[[2.]]])",
    "bmm(ones([2, 1, 1]), ones([3, 1, 1]))"
);
strict!(
    MV,
    "mv",
    [],
    mv(input: 2, vec: 1),
    "Product of a matrix and a vector.",
    "mv(ones([2, 3]), ones([3]))",
    "tensor([3., 3.])",
    "mv(ones([2]), ones([2]))"
);
strict!(
    DOT,
    "dot",
    [],
    dot(input: 1, tensor: 1),
    "Product of two vectors: one number.",
    "dot(tensor([1, 2]), tensor([3, 4]))",
    "tensor(11)",
    "dot(ones([2]), ones([3]))"
);
strict!(
    VDOT,
    "vdot",
    [],
    vdot(input: 1, other: 1),
    "Product of two vectors: one number. Another name of `dot`.",
    "vdot(tensor([1, 2]), tensor([3, 4]))",
    "tensor(11)",
    "vdot(ones([2]), ones([3]))"
);

signature!(linear_kernel(input: Tensor, weight: Tensor, bias: Tensor = None));

/// Internal: `linear` of floats, in one kernel that starts from the bias.
static LINEAR_KERNEL: Op = Op {
    name: "linear",
    params: linear_kernel::PARAMS,
    summary: "`input @ weight.T + bias`.",
    lower: Lower::Kernel(|_, a| {
        let (x, weight) = (a.input(), a.tensor(linear_kernel::weight));
        let mut shape = x.shape();
        let last = shape.len() - 1;
        shape[last] = weight.shape()[0];
        let call = KernelCall::new("linear", &matmul::LINEAR).input(x).input(weight);
        Ok(call.inputs(a.opt_tensor(linear_kernel::bias)).output(&shape, x.dtype()))
    }),
    saves: &[
        Save::For(linear_kernel::input, linear_kernel::weight),
        Save::For(linear_kernel::weight, linear_kernel::input),
    ],
    grad: Grad::Rule(|e, v| {
        let (k, width) = (v.meta(linear_kernel::weight).shape[1], v.meta(linear_kernel::weight).shape[0]);
        let left =
            if v.needs(linear_kernel::input) { Some(product(e, v.g(), v.saved(linear_kernel::weight))?) } else { None };
        let rows = v.g().numel() / width.max(1);
        let right = if v.needs(linear_kernel::weight) && rows > 0 {
            let (mut g, mut x) = (v.g().clone(), v.input().clone());
            if v.meta(linear_kernel::input).shape.len() != 2 {
                g = e.call(&RESHAPE, args![&g, &[rows, width][..]])?;
                x = e.call(&RESHAPE, args![&x, &[rows, k][..]])?;
            }
            let g = transposed(e, &g)?;
            Some(product(e, &g, &x)?)
        } else if v.needs(linear_kernel::weight) {
            Some(e.zeros_like(v.meta(linear_kernel::weight))?)
        } else {
            None
        };
        Ok(vec![left, right, v.needs(linear_kernel::bias).then(|| v.g().clone())])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Product(0, 1, Some(2)),
    ..Op::BASE
};

fn linear(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, weight, bias) = (a.input(), a.tensor(linear_kernel::weight), a.opt_tensor(linear_kernel::bias));
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
    let weight = if w.len() == 2 { transposed(e, weight)? } else { weight.clone() };
    let y = product(e, x, &weight)?;
    Ok(vec![match bias {
        Some(bias) => e.add(&y, bias)?,
        None => y,
    }])
}

pub static LINEAR: Op = Op {
    name: "linear",
    params: linear_kernel::PARAMS,
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
    ..Op::BASE
};

signature!(bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor = None));

pub static BILINEAR: Op = Op {
    name: "bilinear",
    params: bilinear::PARAMS,
    summary: "`input1 @ weight[o] @ input2 + bias[o]` for every output `o`.",
    details: "Shapes: input1 [.., n], input2 [.., m], weight [out, n, m], bias [out]; result [.., out].",
    examples: &[
        ex("bilinear(ones([1, 2]), ones([1, 3]), ones([1, 2, 3]))", "tensor([[6.]])"),
        ex("bilinear(ones([1, 2]), ones([1, 3]), ones([1, 3, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y, w) = (a.tensor(bilinear::input1), a.tensor(bilinear::input2), a.tensor(bilinear::weight));
        check_dtypes(&[("input1", x), ("input2", y), ("weight", w)])?;
        let (s, t, u) = (x.shape(), y.shape(), w.shape());
        let fits = u.len() == 3 && !s.is_empty() && s.len() == t.len() && s[..s.len() - 1] == t[..t.len() - 1];
        if !fits || s[s.len() - 1] != u[1] || t[t.len() - 1] != u[2] {
            fail!(SHAPE, "shapes {:?}, {:?} and weight {:?} do not fit", s.as_slice(), t.as_slice(), u.as_slice());
        }
        // One product [.., n] @ [n, out * m]; its rows of m are multiplied with those of `input2`.
        let columns = e.call(&TRANSPOSE, args![w, 0, 1])?;
        let columns = e.call(&RESHAPE, args![&columns, &[u[1], u[0] * u[2]][..]])?;
        let rows = product(e, x, &columns)?;
        let shape: Shape = s[..s.len() - 1].iter().copied().chain([u[0], u[2]]).collect();
        let rows = e.call(&RESHAPE, args![&rows, shape.as_slice()])?;
        let wide = if x.dtype().is_float() { x.dtype().compute() } else { x.dtype() };
        let (rows, y) = (e.cast(&rows, wide)?, e.cast(y, wide)?);
        let y = e.call(&UNSQUEEZE, args![&y, -2])?;
        let products = e.mul(&rows, &y)?;
        let out = e.call(&SUM, args![&products, -1])?;
        let out = e.cast(&out, x.dtype())?;
        Ok(vec![match a.opt_tensor(bilinear::bias) {
            Some(bias) if bias.shape().as_slice() != [u[0]] => {
                fail!(SHAPE, "`bias` has shape {:?}, [{}] is expected", bias.shape().as_slice(), u[0])
            }
            Some(bias) => e.add(&out, bias)?,
            None => out,
        }])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
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

pub static ROWS: &[&Op] =
    &[&INT_MM_ROWS, &INT_MM, &MATMUL, &WIDE_MATMUL, &MM, &BMM, &MV, &DOT, &VDOT, &LINEAR_KERNEL, &LINEAR, &BILINEAR];
