//! Pooling: the maximum, the mean or a power mean of windows, fixed or adaptive.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::index;
use crate::kernel::pool;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::row::{CallForm, Example, Grad, Lower, Op, Param, Save, ex};
use crate::op::rows::nn::windows::{as_float, sizes_or_own, spatial, tuple, tuple_or, window_count};
use crate::op::rows::pointwise::arith::CAST;
use crate::op::rows::reduction::moments::MEAN;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::tensor::Tensor;
use crate::signature;

fn list(a: &Args, at: usize) -> Ints {
    a.ints(at).unwrap_or_default()
}

/// The shape of `x` with its last dims replaced.
fn with_last(x: &Tensor, last: &[i64]) -> Shape {
    let mut shape = x.shape();
    let lead = shape.len() - last.len();
    shape.truncate(lead);
    shape.extend(last.iter().map(|&size| size as usize));
    shape
}

signature!(max(
    input: Tensor, kernel_size: Ints, stride: Ints = None, padding: Ints = 0, dilation: Ints = 1,
    ceil_mode: Bool = false, return_indices: Bool = false,
));
signature!(avg(
    input: Tensor, kernel_size: Ints, stride: Ints = None, padding: Ints = 0, ceil_mode: Bool = false,
    count_include_pad: Bool = true, divisor_override: Int = None,
));
signature!(avg1d(
    input: Tensor, kernel_size: Ints, stride: Ints = None, padding: Ints = 0, ceil_mode: Bool = false,
    count_include_pad: Bool = true,
));
signature!(adaptive(input: Tensor, output_size: OptInts, return_indices: Bool = false));
signature!(adaptive_mean(input: Tensor, output_size: OptInts));
signature!(lp(input: Tensor, norm_type: Float, kernel_size: Ints, stride: Ints = None, ceil_mode: Bool = false));
signature!(unpool(
    input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints = None, padding: Ints = 0,
    output_size: Ints = None,
));

// ---- the largest ----

signature!(max_pool(
    input: Tensor, kernel_size: Ints, stride: Ints = None, padding: Ints = 0, dilation: Ints, size: Ints,
));

/// Largest elements and their positions in the plane, for fixed windows. Arguments after `input`: kernel, stride,
/// padding, dilation, sizes of the result.
static MAX_POOL: Op = Op {
    name: "max_pool",
    params: max_pool::PARAMS,
    summary: "Largest elements of windows, and where they are.",
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let shape = with_last(x, &list(a, max_pool::size));
        let call = KernelCall::new("max_pool", &pool::MAX_POOL).input(x);
        let call = (max_pool::kernel_size..max_pool::size).fold(call, |call, at| call.ints(&list(a, at)));
        Ok(call.output(&shape, x.dtype()).output(&shape, DType::I64))
    }),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(|e, v| {
        let n = list(v.args, max_pool::size).len();
        Ok(vec![
            v.grads[0].as_ref().map(|g| put_back(e, g, v.output(1), &v.meta(max_pool::input).shape, n)).transpose()?,
        ])
    }),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Rule(tangent_of_windows),
    ..Op::BASE
};

signature!(adaptive_max(input: Tensor, size: Ints));

static ADAPTIVE_MAX: Op = Op {
    name: "adaptive_max_pool",
    params: adaptive_max::PARAMS,
    summary: "Largest elements of windows that cover the plane evenly, and where they are.",
    lower: Lower::Kernel(|_, a| {
        let (x, size) = (a.input(), list(a, adaptive_max::size));
        let shape = with_last(x, &size);
        let call = KernelCall::new("adaptive_max_pool", &pool::ADAPTIVE_MAX_POOL).input(x).int(size.len() as i64);
        Ok(call.output(&shape, x.dtype()).output(&shape, DType::I64))
    }),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(|e, v| {
        let n = list(v.args, adaptive_max::size).len();
        Ok(vec![
            v.grads[0]
                .as_ref()
                .map(|g| put_back(e, g, v.output(1), &v.meta(adaptive_max::input).shape, n))
                .transpose()?,
        ])
    }),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Rule(tangent_of_windows),
    ..Op::BASE
};

/// The last `n` dims as one.
fn flat(e: &mut dyn Emit, x: &Tensor, n: usize) -> Result<Tensor> {
    let shape = x.shape();
    let (lead, plane) = shape.split_at(shape.len() - n);
    let mut to = Shape::from_slice(lead);
    to.push(plane.iter().product());
    e.call(&RESHAPE, args![x, to.as_slice()])
}

/// Elements of windows at the places that they came from; zero elsewhere, summed where windows share a place.
fn put_back(e: &mut dyn Emit, g: &Tensor, at: &Tensor, shape: &[usize], n: usize) -> Result<Tensor> {
    let (g, at) = (flat(e, g, n)?, flat(e, at, n)?);
    let plane: usize = shape[shape.len() - n..].iter().product();
    let y = e.call(&PUT, args![&g, &at, plane])?;
    e.call(&RESHAPE, args![&y, shape])
}

/// The tangents of the elements that were the largest.
fn tangent_of_windows(e: &mut dyn Emit, v: &crate::op::emit::Backward<'_>) -> Result<Option<Tensor>> {
    let last = v.op.params.len() - 1;
    let n = list(v.args, last).len();
    let (x, at) = (flat(e, v.tangent(), n)?, flat(e, v.output(1), n)?);
    let picked = e.call(&PICK, args![&x, &at])?;
    e.call(&RESHAPE, args![&picked, v.outputs[0].shape.as_slice()]).map(Some)
}

signature!(put(input: Tensor, indices: Tensor, size: Int));

/// `[.., o]` and positions to `[.., size]`.
static PUT: Op = Op {
    name: "max_pool",
    params: put::PARAMS,
    summary: "Elements at places of a line; their sum where places meet.",
    lower: Lower::Kernel(|_, a| {
        let shape = with_last(a.input(), &[a.int(put::size)]);
        let call = KernelCall::new("max_pool_grad", &pool::MAX_POOL_GRAD)
            .input(a.input())
            .input(a.tensor(put::indices))
            .int(1);
        Ok(call.output(&shape, a.input().dtype()))
    }),
    saves: &[Save::In(put::indices)],
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.call(&PICK, args![v.g(), v.saved(put::indices)])?)])),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(pick(input: Tensor, indices: Tensor));

/// `[.., size]` and positions to `[.., o]`.
static PICK: Op = Op {
    name: "max_pool",
    params: pick::PARAMS,
    summary: "Elements of places of a line.",
    lower: Lower::Kernel(|_, a| {
        let (x, at) = (a.input(), a.tensor(pick::indices));
        let call = KernelCall::new("gather", &index::GATHER).input(x).input(at).int(x.ndim() as i64 - 1);
        Ok(call.output(&at.shape(), x.dtype()))
    }),
    saves: &[Save::In(pick::indices)],
    grad: Grad::Rule(|e, v| {
        let size = v.meta(pick::input).shape.last().copied().unwrap_or(1);
        Ok(vec![Some(e.call(&PUT, args![v.g(), v.saved(pick::indices), size])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// The same for positions that a script gave: they are checked while computing, and the last one stays.
static UNPOOL: Op = Op {
    name: "max_unpool",
    params: put::PARAMS,
    summary: "Elements at places of a line.",
    lower: Lower::Steps(|e, a| {
        let (x, at) = (a.input(), a.tensor(put::indices));
        let shape = with_last(x, &[a.int(put::size)]);
        let zeros =
            e.source(crate::op::row::Source::Fill(crate::base::dtype::Scalar::Int(0)), &shape, x.dtype(), x.device())?;
        let call = KernelCall::new("scatter", &index::SCATTER).input(&zeros).input(at).input(x);
        e.kernel(call.int(x.ndim() as i64 - 1).output(&shape, x.dtype()))
    }),
    saves: &[Save::In(put::indices)],
    grad: Grad::Rule(|e, v| Ok(vec![Some(e.call(&PICK, args![v.g(), v.saved(put::indices)])?)])),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

// ---- the mean: linear, so that the gradient of each row is the other ----

/// Attributes of a mean over fixed windows: kernel, stride, padding, count_include_pad, divisor_override.
fn averaging(call: KernelCall, a: &Args) -> KernelCall {
    let call = call
        .input(a.input())
        .ints(&list(a, average::kernel_size))
        .ints(&list(a, average::stride))
        .ints(&list(a, average::padding))
        .flag(a.flag(average::count_include_pad));
    let call = call.attr(a.opt_int(average::divisor_override).map_or(Attr::None, Attr::Int));
    call.output(&with_last(a.input(), &list(a, average::size)), a.input().dtype())
}

signature!(average(
    input: Tensor, size: Ints, kernel_size: Ints, stride: Ints = None, padding: Ints = 0, count_include_pad: Bool,
    divisor_override: Int = None,
));

/// Applies the other row of a linear pair to the gradient.
fn other(e: &mut dyn Emit, v: &crate::op::emit::Backward<'_>, op: &'static Op) -> Result<Vec<Option<Tensor>>> {
    let n = list(v.args, average::size).len();
    let shape = &v.meta(average::input).shape;
    let size: Ints = shape[shape.len() - n..].iter().map(|&size| size as i64).collect();
    let mut args = args![v.g(), size];
    args.0.extend((average::kernel_size..op.params.len()).map(|at| v.args.get(at).clone()));
    Ok(vec![Some(e.call(op, args)?)])
}

static AVG_POOL: Op = Op {
    name: "avg_pool",
    params: average::PARAMS,
    summary: "Means of windows.",
    lower: Lower::Kernel(|_, a| Ok(averaging(KernelCall::new("avg_pool", &pool::AVG_POOL), a))),
    grad: Grad::Rule(|e, v| other(e, v, &AVG_SPREAD)),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

static AVG_SPREAD: Op = Op {
    name: "avg_pool",
    params: average::PARAMS,
    summary: "The transpose of `avg_pool`.",
    lower: Lower::Kernel(|_, a| Ok(averaging(KernelCall::new("avg_pool_grad", &pool::AVG_POOL_GRAD), a))),
    grad: Grad::Rule(|e, v| other(e, v, &AVG_POOL)),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

fn adaptive_call(call: KernelCall, a: &Args) -> KernelCall {
    let (x, size) = (a.input(), list(a, adaptive_max::size));
    call.input(x).int(size.len() as i64).output(&with_last(x, &size), x.dtype())
}

static ADAPTIVE_AVG: Op = Op {
    name: "adaptive_avg_pool",
    params: adaptive_max::PARAMS,
    summary: "Means of windows that cover the plane evenly.",
    lower: Lower::Kernel(|_, a| Ok(adaptive_call(KernelCall::new("adaptive_avg_pool", &pool::ADAPTIVE_AVG_POOL), a))),
    grad: Grad::Rule(|e, v| other(e, v, &ADAPTIVE_AVG_SPREAD)),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

static ADAPTIVE_AVG_SPREAD: Op = Op {
    name: "adaptive_avg_pool",
    params: adaptive_max::PARAMS,
    summary: "The transpose of `adaptive_avg_pool`.",
    lower: Lower::Kernel(|_, a| {
        Ok(adaptive_call(KernelCall::new("adaptive_avg_pool_grad", &pool::ADAPTIVE_AVG_POOL_GRAD), a))
    }),
    grad: Grad::Rule(|e, v| other(e, v, &ADAPTIVE_AVG)),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

// ---- what scripts call ----

/// `[C, d..]` or `[N, C, d..]`, of which only a batch may be empty.
fn check_planes(x: &Tensor, n: usize, empty_channels: bool) -> Result<()> {
    let shape = x.shape();
    if shape.len() != n + 1 && shape.len() != n + 2 {
        fail!(
            SHAPE,
            "`input` must have {} dimensions, or {} without a batch; it has shape {:?}",
            n + 2,
            n + 1,
            shape.as_slice()
        );
    }
    let images = shape.len() - n - if empty_channels { 0 } else { 1 };
    if shape[images..].contains(&0) {
        fail!(SHAPE, "only the batch of `input` may be empty; it has shape {:?}", shape.as_slice());
    }
    Ok(())
}

struct Windows {
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    size: Ints,
}

fn windows(a: &Args, n: usize, dilation: Option<usize>, padding: Option<usize>, ceil: bool) -> Result<Windows> {
    let x = a.input();
    let kernel = tuple(a, max::kernel_size, n, "kernel_size", 1)?;
    let stride = tuple_or(a, max::stride, n, "stride", 1, &kernel)?;
    let padding = padding.map_or(Ok(Ints::from_elem(0, n)), |at| tuple(a, at, n, "padding", 0))?;
    let dilation = dilation.map_or(Ok(Ints::from_elem(1, n)), |at| tuple(a, at, n, "dilation", 1))?;
    let from = spatial(x, n);
    let reach = |i: usize| dilation[i] * (kernel[i] - 1) + 1;
    for i in 0..n {
        if padding[i] > reach(i) / 2 {
            fail!(
                VALUE,
                "`padding` may be at most half of the window: {} for a window over {} elements",
                padding[i],
                reach(i)
            );
        }
    }
    let size: Ints =
        (0..n).map(|i| window_count(from[i], kernel[i], stride[i], padding[i], dilation[i], ceil)).collect();
    if let Some(i) = size.iter().position(|&size| size < 1) {
        fail!(SHAPE, "a window over {} elements does not fit into {}", reach(i), from[i] + 2 * padding[i]);
    }
    Ok(Windows { kernel, stride, padding, dilation, size })
}

/// Values in the operand's dtype, and positions where they are asked for.
fn results(e: &mut dyn Emit, mut made: Vec<Tensor>, dtype: DType, positions: bool) -> Result<Vec<Tensor>> {
    made[0] = e.call(&CAST, args![&made[0], dtype])?;
    made.truncate(1 + positions as usize);
    Ok(made)
}

fn max_pool(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    check_planes(a.input(), n, false)?;
    let w = windows(a, n, Some(max::dilation), Some(max::padding), a.flag(max::ceil_mode))?;
    let x = as_float(e, a.input())?;
    let made = e.apply(&MAX_POOL, args![&x, w.kernel, w.stride, w.padding, w.dilation, w.size])?;
    results(e, made, a.input().dtype(), a.flag(max::return_indices))
}

fn avg_pool(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    check_planes(a.input(), n, false)?;
    if a.opt_int(avg::divisor_override) == Some(0) {
        fail!(VALUE, "`divisor_override` must not be 0");
    }
    let w = windows(a, n, None, Some(avg::padding), a.flag(avg::ceil_mode))?;
    let x = as_float(e, a.input())?;
    let y = e.call(
        &AVG_POOL,
        args![
            &x,
            w.size,
            w.kernel,
            w.stride,
            w.padding,
            a.flag(avg::count_include_pad),
            a.attr(avg::divisor_override).clone()
        ],
    )?;
    results(e, vec![y], a.input().dtype(), false)
}

fn adaptive(e: &mut dyn Emit, a: &Args, n: usize, op: &'static Op) -> Result<Vec<Tensor>> {
    check_planes(a.input(), n, true)?;
    let x = as_float(e, a.input())?;
    let shape = x.shape();
    let size = sizes_or_own(a, adaptive::output_size, &shape[shape.len() - n..], "output_size")?;
    if std::ptr::eq(op, &ADAPTIVE_AVG) && size.iter().all(|&size| size == 1) {
        let dims: Vec<i64> = (-(n as i64)..0).collect();
        let mean = e.call(&MEAN, args![&x, dims.as_slice(), true])?;
        return results(e, vec![mean], a.input().dtype(), false);
    }
    let made = e.apply(op, args![&x, size.as_slice()])?;
    results(e, made, a.input().dtype(), a.flag(adaptive::return_indices))
}

/// The sum of powers is the mean times how many.
fn lp_pool(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    use crate::op::rows::nn::activation::RELU;
    use crate::op::rows::pointwise::arith::POW;
    use crate::op::rows::pointwise::unary::{ABS, SIGN};
    let x = a.input();
    check_planes(x, n, false)?;
    let p = a.float(lp::norm_type);
    if p == 0.0 {
        fail!(VALUE, "`norm_type` must not be 0");
    }
    let moved =
        Args(smallvec::smallvec![a.get(lp::input).clone(), a.get(lp::kernel_size).clone(), a.get(lp::stride).clone()]);
    let w = windows(&moved, n, None, None, a.flag(lp::ceil_mode))?;
    let taps: i64 = w.kernel.iter().product();
    let powers = e.call(&POW, args![x, p])?;
    let mean = e.call(&AVG_POOL, args![&powers, w.size, w.kernel, w.stride, w.padding, true])?;
    let (sign, size) = (e.call(&SIGN, args![&mean])?, e.call(&ABS, args![&mean])?);
    let size = e.call(&RELU, args![&size])?;
    let sum = e.mul(&sign, &size)?;
    let sum = e.mul(&sum, taps)?;
    Ok(vec![e.call(&POW, args![&sum, 1.0 / p])?])
}

fn max_unpool(e: &mut dyn Emit, a: &Args, n: usize) -> Result<Vec<Tensor>> {
    let (x, at) = (a.input(), a.tensor(unpool::indices));
    check_planes(x, n, false)?;
    if at.dtype() != DType::I64 {
        fail!(DTYPE, "`indices` must be i64, not {}", at.dtype());
    }
    if at.shape() != x.shape() {
        fail!(SHAPE, "`indices` has shape {:?}, `input` {:?}", at.shape().as_slice(), x.shape().as_slice());
    }
    let kernel = tuple(a, unpool::kernel_size, n, "kernel_size", 1)?;
    let (stride, padding) =
        (tuple_or(a, unpool::stride, n, "stride", 1, &kernel)?, tuple(a, unpool::padding, n, "padding", 0)?);
    let from = spatial(x, n);
    let usual: Ints = (0..n).map(|i| (from[i] - 1) * stride[i] - 2 * padding[i] + kernel[i]).collect();
    let size: Ints = match a.ints(unpool::output_size) {
        None => usual.clone(),
        // PyTorch takes the whole shape too.
        Some(given) if given.len() == n || given.len() == x.ndim() => given[given.len() - n..].into(),
        Some(given) => fail!(VALUE, "`output_size` has {} numbers; {n} are expected", given.len()),
    };
    for i in 0..n {
        let (least, most) = (usual[i] - stride[i] + 1, usual[i] + stride[i] - 1);
        if !(least..=most).contains(&size[i]) {
            let given = size[i];
            fail!(
                VALUE,
                "`output_size` of dimension {i} lies between {least} and {most} for this input, and is {given}"
            );
        }
    }
    if size.iter().any(|&size| size < 1) {
        fail!(SHAPE, "the result would have sizes {:?}", size.as_slice());
    }
    let (values, places) = (flat(e, x, n)?, flat(e, at, n)?);
    let y = e.call(&UNPOOL, args![&values, &places, size.iter().product::<i64>()])?;
    Ok(vec![e.call(&RESHAPE, args![&y, with_last(x, &size).as_slice()])?])
}

const fn row(
    name: &'static str,
    params: &'static [Param],
    words: [&'static str; 2],
    examples: &'static [Example],
    lower: Lower,
) -> Op {
    let [summary, details] = words;
    Op { name, params, summary, details, examples, lower, grad: Grad::Composed, ..Op::BASE }
}

const MAX: &str = "The largest element of every window; with `return_indices` also where it is.";
const MAX_DETAILS: &str = "`input` is [N, C, d..] or [C, d..]; the stride is the kernel's size unless given. Padding never \
wins. Indices are positions in the plane d.., row by row. NaN wins.";
const AVG: &str = "The mean of every window.";
const AVG_DETAILS: &str = "`input` is [N, C, d..] or [C, d..]; the stride is the kernel's size unless given. Padding counts \
as zeros unless `count_include_pad` is false; `divisor_override` divides the sum instead.";
const EVEN_DETAILS: &str =
    "Window i goes from floor(i d / o) to ceil((i + 1) d / o). `()` in `output_size` keeps a size.";
const LP: &str = "The p-norm of every window: (sum of x^p)^(1/p).";
const LP_DETAILS: &str = "As PyTorch: powers keep their sign, and a window that sums to 0 gives 0.";
const UNPOOL_DETAILS: &str =
    "`indices` are those of `max_pool`; one that lies outside is an error while computing (E0401).";

/// One row for each number of dims: NAME "name" n, parameters, words, examples.
macro_rules! pools {
    ($($NAME:ident $name:literal $params:expr, $summary:expr, $details:expr, $run:expr, [$($example:expr),*];)*) => {
        $(pub static $NAME: Op =
            row($name, $params, [$summary, $details], &[$($example),*], Lower::Compose($run));)*
        pub static ROWS: &[&Op] = &[
            &MAX_POOL, &ADAPTIVE_MAX, &PUT, &PICK, &UNPOOL, &AVG_POOL, &AVG_SPREAD, &ADAPTIVE_AVG, &ADAPTIVE_AVG_SPREAD,
            $(&$NAME),*
        ];
    };
}

pools! {
    MAX_POOL1D "max_pool1d" max::PARAMS, MAX, MAX_DETAILS, |e, a| max_pool(e, a, 1), [
        ex("max_pool1d(tensor([[1.0, 3.0, 2.0, 5.0]]), 2)", "tensor([[3., 5.]])"),
        ex("max_pool1d(tensor([[1.0, 3.0, 2.0, 5.0]]), 2, #{return_indices: true})[1]", "tensor([[1, 3]])"),
        ex("max_pool1d(ones([1, 2]), 3)", "E0201"),
        ex("max_pool1d(ones([1, 2]), 2, #{padding: 2})", "E0206"),
        ex("max_pool1d(ones([1, 2]) > 0, 2)", "E0202")
    ];
    MAX_POOL2D "max_pool2d" max::PARAMS, MAX, MAX_DETAILS, |e, a| max_pool(e, a, 2), [
        ex("max_pool2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)", "tensor([[[4.]]])"),
        ex("max_pool2d(ones([2, 2]), 2)", "E0201"),
        ex("max_pool2d(ones([1, 2, 2]), 0)", "E0206")
    ];
    MAX_POOL3D "max_pool3d" max::PARAMS, MAX, MAX_DETAILS, |e, a| max_pool(e, a, 3), [
        ex("max_pool3d(ones([1, 2, 2, 2]), 2)", "tensor([[[[1.]]]])"),
        ex("max_pool3d(ones([2, 2, 2]), 2)", "E0201"),
        ex("max_pool3d(ones([1, 2, 2, 2]), [2, 2])", "E0206")
    ];
    AVG_POOL1D "avg_pool1d" avg1d::PARAMS, AVG, AVG_DETAILS, |e, a| avg_pool(e, a, 1), [
        ex("avg_pool1d(tensor([[1.0, 3.0, 2.0, 5.0]]), 2)", "tensor([[2.0000, 3.5000]])"),
        ex("avg_pool1d(ones([1, 2]), 3)", "E0201"),
        ex("avg_pool1d(ones([1, 2]), 2, #{stride: -1})", "E0206")
    ];
    AVG_POOL2D "avg_pool2d" avg::PARAMS, AVG, AVG_DETAILS, |e, a| avg_pool(e, a, 2), [
        ex("avg_pool2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)", "tensor([[[2.5000]]])"),
        ex("avg_pool2d(ones([2, 2]), 2)", "E0201"),
        ex("avg_pool2d(ones([1, 2, 2]), 2, #{divisor_override: 0})", "E0206")
    ];
    AVG_POOL3D "avg_pool3d" avg::PARAMS, AVG, AVG_DETAILS, |e, a| avg_pool(e, a, 3), [
        ex("avg_pool3d(ones([1, 2, 2, 2]), 2)", "tensor([[[[1.]]]])"),
        ex("avg_pool3d(ones([2, 2, 2]), 2)", "E0201"),
        ex("avg_pool3d(ones([1, 2, 2, 2]), 2, #{padding: 2})", "E0206")
    ];
    ADAPTIVE_MAX_POOL1D "adaptive_max_pool1d" adaptive::PARAMS, MAX, EVEN_DETAILS,
    |e, a| adaptive(e, a, 1, &ADAPTIVE_MAX), [
        ex("adaptive_max_pool1d(tensor([[1.0, 3.0, 2.0, 5.0]]), 2)", "tensor([[3., 5.]])"),
        ex("adaptive_max_pool1d(ones([2]), 2)", "E0201"),
        ex("adaptive_max_pool1d(ones([1, 2]), -1)", "E0206")
    ];
    ADAPTIVE_MAX_POOL2D "adaptive_max_pool2d" adaptive::PARAMS, MAX, EVEN_DETAILS,
    |e, a| adaptive(e, a, 2, &ADAPTIVE_MAX), [
        ex("adaptive_max_pool2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), [1, ()])", "tensor([[[3., 4.]]])"),
        ex("adaptive_max_pool2d(ones([2, 2]), 1)", "E0201"),
        ex("adaptive_max_pool2d(ones([1, 2, 2]), [1, 1, 1])", "E0206")
    ];
    ADAPTIVE_MAX_POOL3D "adaptive_max_pool3d" adaptive::PARAMS, MAX, EVEN_DETAILS,
    |e, a| adaptive(e, a, 3, &ADAPTIVE_MAX), [
        ex("adaptive_max_pool3d(ones([1, 2, 2, 2]), 1)", "tensor([[[[1.]]]])"),
        ex("adaptive_max_pool3d(ones([2, 2, 2]), 1)", "E0201"),
        ex("adaptive_max_pool3d(ones([1, 2, 2, 2]), -1)", "E0206")
    ];
    ADAPTIVE_AVG_POOL1D "adaptive_avg_pool1d" adaptive_mean::PARAMS, AVG, EVEN_DETAILS,
    |e, a| adaptive(e, a, 1, &ADAPTIVE_AVG), [
        ex("adaptive_avg_pool1d(tensor([[1.0, 3.0, 2.0, 5.0]]), 2)", "tensor([[2.0000, 3.5000]])"),
        ex("adaptive_avg_pool1d(ones([2]), 2)", "E0201"),
        ex("adaptive_avg_pool1d(ones([1, 2]), -1)", "E0206")
    ];
    ADAPTIVE_AVG_POOL2D "adaptive_avg_pool2d" adaptive_mean::PARAMS, AVG, EVEN_DETAILS,
    |e, a| adaptive(e, a, 2, &ADAPTIVE_AVG), [
        ex("adaptive_avg_pool2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), 1)", "tensor([[[2.5000]]])"),
        ex("adaptive_avg_pool2d(ones([2, 2]), 1)", "E0201"),
        ex("adaptive_avg_pool2d(ones([1, 2, 2]), -1)", "E0206")
    ];
    ADAPTIVE_AVG_POOL3D "adaptive_avg_pool3d" adaptive_mean::PARAMS, AVG, EVEN_DETAILS,
    |e, a| adaptive(e, a, 3, &ADAPTIVE_AVG), [
        ex("adaptive_avg_pool3d(ones([1, 2, 2, 2]), 1)", "tensor([[[[1.]]]])"),
        ex("adaptive_avg_pool3d(ones([2, 2, 2]), 1)", "E0201"),
        ex("adaptive_avg_pool3d(ones([1, 2, 2, 2]), -1)", "E0206")
    ];
    LP_POOL1D "lp_pool1d" lp::PARAMS, LP, LP_DETAILS, |e, a| lp_pool(e, a, 1), [
        ex("lp_pool1d(tensor([[3.0, 4.0]]), 2, 2)", "tensor([[5.]])"),
        ex("lp_pool1d(ones([1, 2]), 2, 3)", "E0201"),
        ex("lp_pool1d(ones([1, 2]), 0, 2)", "E0206")
    ];
    LP_POOL2D "lp_pool2d" lp::PARAMS, LP, LP_DETAILS, |e, a| lp_pool(e, a, 2), [
        ex("lp_pool2d(tensor([[[3.0, 4.0]]]), 2, [1, 2])", "tensor([[[5.]]])"),
        ex("lp_pool2d(ones([1, 2, 2]), 2, 3)", "E0201"),
        ex("lp_pool2d(ones([1, 2, 2]), 0, 2)", "E0206")
    ];
    LP_POOL3D "lp_pool3d" lp::PARAMS, LP, LP_DETAILS, |e, a| lp_pool(e, a, 3), [
        ex("lp_pool3d(tensor([[[[3.0, 4.0]]]]), 2, [1, 1, 2])", "tensor([[[[5.]]]])"),
        ex("lp_pool3d(ones([1, 2, 2, 2]), 2, 3)", "E0201"),
        ex("lp_pool3d(ones([1, 2, 2, 2]), 0, 2)", "E0206")
    ];
    MAX_UNPOOL1D "max_unpool1d" unpool::PARAMS, "Puts the results of `max_pool1d` back where they were.", UNPOOL_DETAILS,
    |e, a| max_unpool(e, a, 1), [
        ex("max_unpool1d(tensor([[3.0, 5.0]]), tensor([[1, 3]]), 2)", "tensor([[0., 3., 0., 5.]])"),
        ex("max_unpool1d(ones([1, 2]), tensor([[1]]), 2)", "E0201"),
        ex("max_unpool1d(ones([1, 2]), ones([1, 2]), 2)", "E0202"),
        ex("max_unpool1d(ones([1, 2]), tensor([[0, 1]]), 2, #{output_size: [1, 2, 3]})", "E0206"),
        ex("max_unpool1d(ones([1, 2]), tensor([[0, 1]]), 2, #{output_size: [6]})", "E0206")
    ];
    MAX_UNPOOL2D "max_unpool2d" unpool::PARAMS, "Puts the results of `max_pool2d` back where they were.", UNPOOL_DETAILS,
    |e, a| max_unpool(e, a, 2), [
        ex("max_unpool2d(tensor([[[4.0]]]), tensor([[[3]]]), 2)", "tensor([[[0., 0.],\n         [0., 4.]]])"),
        ex("max_unpool2d(ones([1, 1, 2]), tensor([[[1]]]), 2)", "E0201"),
        ex("max_unpool2d(ones([1, 1, 1]), ones([1, 1, 1]), 2)", "E0202"),
        ex("max_unpool2d(ones([1, 1, 1]), tensor([[[0]]]), 0)", "E0206")
    ];
    MAX_UNPOOL3D "max_unpool3d" unpool::PARAMS, "Puts the results of `max_pool3d` back where they were.", UNPOOL_DETAILS,
    |e, a| max_unpool(e, a, 3), [
        ex("max_unpool3d(tensor([[[[4.0]]]]), tensor([[[[1]]]]), [1, 1, 2])", "tensor([[[[0., 4.]]]])"),
        ex("max_unpool3d(ones([1, 1, 1, 2]), tensor([[[[1]]]]), 2)", "E0201"),
        ex("max_unpool3d(ones([1, 1, 1, 1]), ones([1, 1, 1, 1]), 2)", "E0202"),
        ex("max_unpool3d(ones([1, 1, 1, 1]), tensor([[[[0]]]]), 0)", "E0206")
    ];
}
