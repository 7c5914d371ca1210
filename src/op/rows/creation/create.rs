//! Creation of tensors: constants, ranges, grids, and new tensors with the properties of another.

use crate::args;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::dtype::{Category, DType, Scalar};
use crate::base::layout::MemoryFormat;
use crate::fail;
use crate::kernel::copy;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Source, ex};
use crate::op::rows::pointwise::arith::{ADD, MUL, POW, SUB, element_of, filling};
use crate::op::rows::pointwise::compare::{EQ, LT, WHERE};
use crate::op::rows::shape::view::{EXPAND, RESHAPE, formatted};
use crate::op::tensor::{Tensor, Tracked};
use crate::signature;

/// Sets `requires_grad` on a new tensor when the arguments say so.
pub fn leaf(a: &Args, at: usize, tensor: Tensor) -> Result<Vec<Tensor>> {
    if a.flag(at) {
        if !tensor.dtype().is_differentiable() {
            let dtype = tensor.dtype();
            fail!(DTYPE, "only tensors of floating-point or complex numbers can require gradients, not {dtype}");
        }
        tensor.0.auto.lock().requires_grad = true;
        tensor.set_tracked(Tracked::Yes);
    }
    Ok(vec![tensor])
}

/// dtype that a number would have.
fn dtype_of(e: &dyn Emit, value: Scalar) -> DType {
    match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => e.default_float(),
    }
}

/// A new tensor with elements that are all alike, in an order of memory that is asked for.
fn in_format(e: &mut dyn Emit, tensor: Tensor, format: MemoryFormat) -> Result<Tensor> {
    let layout = formatted(format, &tensor.shape())?;
    let is_plain = tensor.samples().is_some() || tensor.with_view(|view| view.layout == layout);
    Ok(if is_plain { tensor } else { e.alias(&tensor, layout) })
}

/// A tensor filled with one value; arguments `dtype, device, requires_grad` from `at` on. After the fashion
/// of argument 0 when that is a tensor.
fn filled(e: &mut dyn Emit, a: &Args, size: Option<usize>, value: Option<Scalar>, at: usize) -> Result<Vec<Tensor>> {
    let like = a.opt_tensor(full_like::input).cloned();
    let shape = match (size, &like) {
        (Some(size), _) => infer::shape(&a.ints(size).unwrap_or_default())?,
        (None, Some(like)) => like.shape(),
        (None, None) => infer::shape(&[])?,
    };
    let dtype = a.dtype(at).unwrap_or_else(|| match &like {
        Some(like) => like.dtype(),
        None => dtype_of(e, value.unwrap_or(Scalar::Float(0.0))),
    });
    let device = a.device(at + 1).unwrap_or_else(|| like.as_ref().map_or_else(|| e.default_device(), Tensor::device));
    let tensor = match value {
        Some(value) => e.source(Source::Fill(filling(value, dtype)?), &shape, dtype, device)?,
        None => e.empty(&shape, dtype, device)?,
    };
    let tensor = match MemoryFormat::parse(a.text(at + 3)) {
        Some(format) if like.is_some() => in_format(e, tensor, format)?,
        _ => tensor,
    };
    leaf(a, at + 2, tensor)
}

signature!(constants(size: Sizes, dtype: DType = None, device: Device = None, requires_grad: Bool = false));

signature!(constants_like(
    input: Tensor, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
    memory_format: Str(&["preserve_format", "contiguous_format", "channels_last", "channels_last_3d"]) = "preserve_format",
));

signature!(new_constants(
    input: Tensor, size: Sizes, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
));

/// `zeros`, `zeros_like` and `new_zeros`, and the same for ones and `empty`.
macro_rules! constants {
    ($($NAME:ident $LIKE:ident $NEW:ident $name:literal $like:literal $new:literal $value:expr, $what:literal $code:literal => $result:literal)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: constants::PARAMS,
            summary: concat!("Makes a tensor of ", $what, "."),
            examples: &[ex(concat!($name, $code), $result), ex(concat!($name, "([-1])"), "E0206")],
            lower: Lower::Compose(|e, a| filled(e, a, Some(constants::size), $value, constants::dtype)),
            grad: Grad::Composed,
            call: CallForm::Function,
            leaves_unset: is_unset($value),
            ..Op::BASE
        };
        pub static $LIKE: Op = Op {
            name: $like,
            params: constants_like::PARAMS,
            summary: concat!("Makes a tensor of ", $what, " with the shape, dtype and device of another."),
            examples: &[ex(concat!("ones([2]).", $like, "().shape == [2]"), "true")],
            lower: Lower::Compose(|e, a| filled(e, a, None, $value, constants_like::dtype)),
            grad: Grad::Composed,
            leaves_unset: is_unset($value),
            ..Op::BASE
        };
        pub static $NEW: Op = Op {
            name: $new,
            params: new_constants::PARAMS,
            summary: concat!("Makes a tensor of ", $what, " with the dtype and device of another."),
            examples: &[ex(concat!("ones([2]).", $new, "([3]).shape == [3]"), "true"), ex(concat!("ones([2]).", $new, "([-1])"), "E0206")],
            lower: Lower::Compose(|e, a| filled(e, a, Some(new_constants::size), $value, new_constants::dtype)),
            grad: Grad::Composed,
            call: CallForm::Method,
            leaves_unset: is_unset($value),
            ..Op::BASE
        };)*
    };
}

/// No value: the result is uninitialized memory.
const fn is_unset(value: Option<Scalar>) -> bool {
    value.is_none()
}

constants! {
    ZEROS ZEROS_LIKE NEW_ZEROS "zeros" "zeros_like" "new_zeros" Some(Scalar::Float(0.0)), "zeros" "([2])" => "tensor([0., 0.])"
    ONES ONES_LIKE NEW_ONES "ones" "ones_like" "new_ones" Some(Scalar::Float(1.0)), "ones" "([2])" => "tensor([1., 1.])"
    EMPTY EMPTY_LIKE NEW_EMPTY "empty" "empty_like" "new_empty" None, "arbitrary elements" "([2]).shape == [2]" => "true"
}

signature!(full(
    size: Sizes, fill_value: Number, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
));

pub static FULL: Op = Op {
    name: "full",
    params: full::PARAMS,
    summary: "Makes a tensor filled with one value; its dtype follows the value unless given.",
    examples: &[ex("full([2], 7)", "tensor([7, 7])"), ex("full([-1], 7)", "E0206")],
    lower: Lower::Compose(|e, a| filled(e, a, Some(full::size), a.scalar(full::fill_value), full::dtype)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(full_like(
    input: Tensor, fill_value: Number, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
    memory_format: Str(&["preserve_format", "contiguous_format", "channels_last", "channels_last_3d"]) = "preserve_format",
));

pub static FULL_LIKE: Op = Op {
    name: "full_like",
    params: full_like::PARAMS,
    summary: "Makes a tensor filled with one value, with the shape, dtype and device of another.",
    examples: &[ex("full_like(ones([2]), 7)", "tensor([7., 7.])"), ex("full_like(tensor([1]), INF)", "E0206")],
    lower: Lower::Compose(|e, a| filled(e, a, None, a.scalar(full_like::fill_value), full_like::dtype)),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(new_full(
    input: Tensor, size: Sizes, fill_value: Number, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false,
));

pub static NEW_FULL: Op = Op {
    name: "new_full",
    params: new_full::PARAMS,
    summary: "Makes a tensor filled with one value, with the dtype and device of another.",
    examples: &[ex("ones([2]).new_full([1], 7)", "tensor([7.])"), ex("ones([2]).new_full([-1], 7)", "E0206")],
    lower: Lower::Compose(|e, a| filled(e, a, Some(new_full::size), a.scalar(new_full::fill_value), new_full::dtype)),
    grad: Grad::Composed,
    call: CallForm::Method,
    ..Op::BASE
};

signature!(scalar_tensor(s: Number, dtype: DType = None, device: Device = None, requires_grad: Bool = false));

pub static SCALAR_TENSOR: Op = Op {
    name: "scalar_tensor",
    params: scalar_tensor::PARAMS,
    summary: "A tensor of no dimensions that holds one number, of the default float type unless given.",
    examples: &[ex("scalar_tensor(3)", "tensor(3.)")],
    lower: Lower::Compose(|e, a| {
        let dtype = a.dtype(scalar_tensor::dtype).unwrap_or_else(|| e.default_float());
        let value = element_of(a.scalar(scalar_tensor::s).unwrap_or(Scalar::Int(0)), dtype)?;
        let device = a.device(scalar_tensor::device).unwrap_or_else(|| e.default_device());
        let tensor = e.source(Source::Fill(value), &[], dtype, device)?;
        leaf(a, 3, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// dtype and device of a new tensor from arguments `dtype, device` at `at`.
fn place(e: &dyn Emit, a: &Args, at: usize, default: DType) -> (DType, crate::base::device_id::DeviceId) {
    (a.dtype(at).unwrap_or(default), a.device(at + 1).unwrap_or_else(|| e.default_device()))
}

signature!(arange(
    start: Number = None, end: Number = None, step: Number = 1, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false,
));

pub static ARANGE: Op = Op {
    name: "arange",
    params: arange::PARAMS,
    summary: "Numbers from `start` (0) up to but not with `end`, in steps of `step`; `arange(end)` too.",
    details: "ceil((end - start) / step) numbers, element i being start + i · step. i64 when all three are \
              integers, otherwise the default float type.",
    examples: &[
        ex("arange(4)", "tensor([0, 1, 2, 3])"),
        ex("arange(1, 2, 0.25)", "tensor([1.0000, 1.2500, 1.5000, 1.7500])"),
        ex("arange(5, 0, -2)", "tensor([5, 3, 1])"),
        ex("arange(0, 5, 0)", "E0206"),
        ex("arange(0, 5, -1)", "E0206"),
        ex("arange()", "E0205"),
    ],
    lower: Lower::Compose(arange),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

fn arange(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (start, end) = match (a.scalar(arange::start), a.scalar(arange::end)) {
        (Some(start), Some(end)) => (start, end),
        (Some(end), None) | (None, Some(end)) => (Scalar::Int(0), end),
        (None, None) => fail!(MISSING_ARGUMENT, "argument `end` is missing"),
    };
    let step = a.scalar(arange::step).unwrap_or(Scalar::Int(1));
    let whole = [start, end, step].iter().all(|s| s.category() < Category::Float);
    let natural = if whole { DType::I64 } else { e.default_float() };
    let (dtype, device) = place(e, a, 3, natural);
    let count = count(start, end, step, whole)?;
    let position = e.source(Source::Position, &[count], DType::I64, device)?;
    // Integers count in integers, even where the step is a fraction.
    let tensor = if !dtype.is_inexact() {
        line(e, &position, Scalar::Int(start.to_i64()), Scalar::Int(step.to_i64()))?
    } else {
        // In f64 for every dtype: element i is start + i * step with one rounding.
        let position = e.cast(&position, DType::F64)?;
        line(e, &position, Scalar::Float(start.to_f64()), Scalar::Float(step.to_f64()))?
    };
    let tensor = e.cast(&tensor, dtype)?;
    leaf(a, 5, tensor)
}

/// `start + position * step`.
fn line(e: &mut dyn Emit, position: &Tensor, start: Scalar, step: Scalar) -> Result<Tensor> {
    let scaled = e.call(&MUL, args![position, step])?;
    e.call(&ADD, args![&scaled, start])
}

/// How many steps lead from start to end.
fn count(start: Scalar, end: Scalar, step: Scalar, whole: bool) -> Result<usize> {
    let (low, high, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    if by == 0.0 {
        fail!(VALUE, "the step must not be 0");
    }
    if !low.is_finite() || !high.is_finite() || by.is_nan() {
        fail!(VALUE, "the range from {start} to {end} is not finite");
    }
    if (by > 0.0 && high < low) || (by < 0.0 && high > low) {
        fail!(VALUE, "a step of {step} does not lead from {start} to {end}");
    }
    let n = if whole {
        let (span, by) = (end.to_i64() as i128 - start.to_i64() as i128, step.to_i64() as i128);
        // Rounded away from 0 towards the end; both have one sign.
        ((span.abs() + by.abs() - 1) / by.abs()) as f64
    } else {
        ((high - low) / by).ceil()
    };
    if n >= (1u64 << 60) as f64 {
        fail!(TOO_LARGE, "a range of {n} numbers is too large to address");
    }
    Ok(n as usize)
}

signature!(linspace(
    start: Number, end: Number, steps: Int, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
));

pub static LINSPACE: Op = Op {
    name: "linspace",
    params: linspace::PARAMS,
    summary: "`steps` numbers from `start` to `end`, both included, evenly spaced.",
    examples: &[
        ex("linspace(0, 1, 3)", "tensor([0.0000, 0.5000, 1.0000])"),
        ex("linspace(0, 1, -1)", "E0206"),
        ex("linspace(0, 300, 3, #{dtype: \"u8\"})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (dtype, device) = place(e, a, 3, e.default_float());
        for end in [a.float(linspace::start), a.float(linspace::end)] {
            element_of(Scalar::Float(end), dtype)?;
        }
        let spaced = spaced(e, end_of(a, 0, dtype), end_of(a, 1, dtype), a.int(linspace::steps), device)?;
        let tensor = e.cast(&spaced, dtype)?;
        leaf(a, 5, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// An end of a range: whole when the result is; of several numbers, rounded to 16 bits when they are.
fn end_of(a: &Args, at: usize, dtype: DType) -> f64 {
    let end = a.float(at);
    match dtype {
        _ if !dtype.is_inexact() => end.trunc(),
        DType::F16 if a.int(linspace::steps) != 1 => half::f16::from_f64(end).to_f64(),
        DType::BF16 if a.int(linspace::steps) != 1 => half::bf16::from_f64(end).to_f64(),
        _ => end,
    }
}

/// Evenly spaced numbers in f64, counted from the nearer end so that both ends are exact.
fn spaced(
    e: &mut dyn Emit,
    start: f64,
    end: f64,
    steps: i64,
    device: crate::base::device_id::DeviceId,
) -> Result<Tensor> {
    if steps < 0 {
        fail!(VALUE, "`steps` must not be negative, but is {steps}");
    }
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    let position = e.source(Source::Position, &[steps as usize], DType::I64, device)?;
    let whole = e.cast(&position, DType::F64)?;
    let low = line(e, &whole, Scalar::Float(start), Scalar::Float(step))?;
    let left = e.call(&SUB, args![&whole, (steps - 1) as f64])?;
    let high = line(e, &left, Scalar::Float(end), Scalar::Float(step))?;
    let near = e.call(&LT, args![&position, Scalar::Int((steps / 2).max(1))])?;
    e.call(&WHERE, args![&near, &low, &high])
}

signature!(logspace(
    start: Number, end: Number, steps: Int, base: Float = 10.0, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false,
));

pub static LOGSPACE: Op = Op {
    name: "logspace",
    params: logspace::PARAMS,
    summary: "`steps` powers of `base`, the exponents evenly spaced from `start` to `end`.",
    examples: &[ex("logspace(0, 2, 3)", "tensor([  1.,  10., 100.])"), ex("logspace(0, 1, -1)", "E0206")],
    lower: Lower::Compose(|e, a| {
        let (dtype, device) = place(e, a, 4, e.default_float());
        let exponents = spaced(e, end_of(a, 0, dtype), end_of(a, 1, dtype), a.int(logspace::steps), device)?;
        let powers = e.call(&POW, args![a.float(logspace::base), &exponents])?;
        let tensor = e.cast(&powers, dtype)?;
        leaf(a, 6, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(eye(n: Int, m: Int = None, dtype: DType = None, device: Device = None, requires_grad: Bool = false));

pub static EYE: Op = Op {
    name: "eye",
    params: eye::PARAMS,
    summary: "A matrix of `n` rows and `m` (n) columns with ones on the diagonal.",
    examples: &[ex("eye(2)", "tensor([[1., 0.],\n        [0., 1.]])"), ex("eye(-1)", "E0206")],
    lower: Lower::Compose(|e, a| {
        let (n, m) = (a.int(eye::n), a.opt_int(eye::m).unwrap_or(a.int(eye::n)));
        let shape = infer::shape(&[n, m])?;
        let (dtype, device) = place(e, a, 2, e.default_float());
        let rows = e.source(Source::Position, &[shape[0], 1], DType::I64, device)?;
        let columns = e.source(Source::Position, &[1, shape[1]], DType::I64, device)?;
        let on = e.call(&EQ, args![&rows, &columns])?;
        let tensor = e.cast(&on, dtype)?;
        leaf(a, 4, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(tril_indices(row: Int, col: Int, offset: Int = 0, dtype: DType = None, device: Device = None));

pub static TRIL_INDICES: Op = Op {
    name: "tril_indices",
    params: tril_indices::PARAMS,
    summary: "Rows and columns of the elements on and below a diagonal, as a tensor of shape [2, n].",
    examples: &[
        ex("tril_indices(2, 2)", "tensor([[0, 1, 1],\n        [0, 0, 1]])"),
        ex("tril_indices(-1, 2)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| triangle(e, a, true)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static TRIU_INDICES: Op = Op {
    name: "triu_indices",
    params: tril_indices::PARAMS,
    summary: "Rows and columns of the elements on and above a diagonal, as a tensor of shape [2, n].",
    examples: &[
        ex("triu_indices(2, 2)", "tensor([[0, 0, 1],\n        [0, 1, 1]])"),
        ex("triu_indices(-1, 2)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| triangle(e, a, false)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// The sum of `clamp(row + shift, 0, most)` over `row` in `0..rows`.
fn clamped_sum(rows: i64, shift: i64, most: i64) -> i128 {
    let (rows, shift, most) = (rows as i128, shift as i128, most as i128);
    let rising = (-shift).clamp(0, rows)..(most - shift).clamp(0, rows);
    let count = (rising.end - rising.start).max(0);
    count * (rising.start + shift) + count * (count - 1) / 2 + (rows - rising.end.max(rising.start)) * most
}

fn triangle(e: &mut dyn Emit, a: &Args, lower: bool) -> Result<Vec<Tensor>> {
    let (rows, cols, offset) = (a.int(tril_indices::row), a.int(tril_indices::col), a.int(tril_indices::offset));
    infer::size_bytes(&infer::shape(&[rows, cols])?, DType::I64)?;
    let (dtype, device) = place(e, a, 3, DType::I64);
    if dtype.is_float() || dtype == DType::Bool {
        fail!(DTYPE, "indices are integers, not {dtype}");
    }
    let below = clamped_sum(rows, if lower { offset.saturating_add(1) } else { offset }, cols);
    let n = if lower { below } else { rows as i128 * cols as i128 - below };
    let shape = [2, usize::try_from(n).unwrap_or(usize::MAX)];
    infer::size_bytes(&shape, DType::I64)?;
    // The longer side of the diagonal is counted from the element where it begins.
    let indices = if n == 0 {
        e.empty(&shape, DType::I64, device)?
    } else if lower {
        let row = offset.saturating_neg().clamp(0, rows);
        triangle_indices(
            e,
            n as usize,
            row,
            row.saturating_add(offset).saturating_add(1).min(cols),
            cols,
            false,
            device,
        )?
    } else {
        let row = cols.saturating_sub(offset).clamp(0, rows) - 1;
        let first = cols - row.saturating_add(offset).clamp(0, cols);
        triangle_indices(e, n as usize, row, first, cols, true, device)?
    };
    Ok(vec![e.cast(&indices, dtype)?])
}

/// Rows and columns, `[2, n]`, of a matrix' elements from row `start` on: `first` of that row, one more of each other, up to `cols`.
/// `reversed`: back from the last element of row `start`, and of each before it, in the same order as ever.
pub fn triangle_indices(
    e: &mut dyn Emit,
    n: usize,
    start: i64,
    first: i64,
    cols: i64,
    reversed: bool,
    device: DeviceId,
) -> Result<Tensor> {
    let mut call = KernelCall::new("triangle_indices", &copy::TRIANGLE_INDICES);
    call.device = Some(device);
    let call = call.int(start).int(first).int(cols).flag(reversed).output(&[2, n], DType::I64);
    Ok(e.kernel(call)?.swap_remove(0))
}

signature!(meshgrid(tensors: Tensors, indexing: Str(&["ij", "xy"]) = "ij"));

pub static MESHGRID: Op = Op {
    name: "meshgrid",
    params: meshgrid::PARAMS,
    summary: "Grids of coordinates from vectors: one tensor for each, in an array.",
    examples: &[
        ex("meshgrid([tensor([1, 2]), tensor([3, 4])])[1]", "tensor([[3, 4],\n        [3, 4]])"),
        ex("meshgrid([ones([2, 2])])", "E0201"),
        ex("meshgrid([ones([2]), tensor([1])])", "E0202"),
        ex("meshgrid([ones([2])], #{indexing: \"yx\"})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(meshgrid::tensors);
        if list.is_empty() {
            fail!(VALUE, "at least one tensor is expected");
        }
        for (at, tensor) in list.iter().enumerate() {
            if tensor.ndim() > 1 {
                fail!(SHAPE, "tensor {at} has shape {:?}; vectors are expected", tensor.shape().as_slice());
            }
            if tensor.dtype() != list[0].dtype() {
                fail!(
                    DTYPE,
                    "tensor {at} is {}, the first {}; all must be of one dtype",
                    tensor.dtype(),
                    list[0].dtype()
                );
            }
        }
        let mut order: Vec<usize> = (0..list.len()).collect();
        if a.text(meshgrid::indexing) == "xy" && list.len() > 1 {
            order.swap(0, 1);
        }
        let shape: Vec<usize> = order.iter().map(|&at| list[at].numel()).collect();
        let mut grids = Vec::new();
        for (at, tensor) in list.iter().enumerate() {
            let dim = order.iter().position(|&of| of == at).unwrap_or(at);
            let mut sizes = vec![1usize; list.len()];
            sizes[dim] = tensor.numel();
            let column = e.call(&RESHAPE, args![tensor, sizes.as_slice()])?;
            grids.push(e.call(&EXPAND, args![&column, shape.as_slice()])?);
        }
        Ok(grids)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    results: Returns::List,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &ZEROS,
    &ONES,
    &FULL,
    &EMPTY,
    &ZEROS_LIKE,
    &ONES_LIKE,
    &FULL_LIKE,
    &EMPTY_LIKE,
    &NEW_ZEROS,
    &NEW_ONES,
    &NEW_FULL,
    &NEW_EMPTY,
    &SCALAR_TENSOR,
    &ARANGE,
    &LINSPACE,
    &LOGSPACE,
    &EYE,
    &TRIL_INDICES,
    &TRIU_INDICES,
    &MESHGRID,
];
