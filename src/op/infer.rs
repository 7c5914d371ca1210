//! Shapes and dtypes of results, checked at the call. Messages do not name the operation: the binder does.

use super::args::{Arg, Args};
use super::row::{Promote, ReduceType};
use super::tensor::{Tensor, View};
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{Category, DType, ResultType, Scalar};
use crate::base::layout::{self, Shape};
use crate::base::limits::MAX_DIMS;
use crate::fail;
use smallvec::SmallVec;
use std::sync::Arc;

/// An operand of an element-wise node: a tensor or a number.
pub enum Operand<'a> {
    /// With its view, which is looked up once.
    Tensor(&'a Tensor, Arc<View>),
    Number(Scalar),
}

impl<'a> Operand<'a> {
    pub fn of(tensor: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(tensor, tensor.view())
    }

    pub fn view(&self) -> Option<&Arc<View>> {
        match self {
            Operand::Tensor(_, view) => Some(view),
            Operand::Number(_) => None,
        }
    }
}

/// The dtypes of an element-wise node.
pub struct MapPlan {
    /// dtype each operand is cast to.
    pub args: SmallVec<[DType; 4]>,
    pub result: DType,
    /// The function is not applied: operands pass unchanged (`floor` of integers).
    pub identity: bool,
}

/// More indices than a tensor has dimensions.
pub fn too_many_indices(given: usize, ndim: usize) -> Box<Diag> {
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let text =
        format!("{} for a tensor of {}", count(given, "index", "indices"), count(ndim, "dimension", "dimensions"));
    Diag::error(code::INDEX, text)
}

/// The operands of a `Map` row, in order.
pub fn operands<'a>(args: &'a Args, count: usize) -> Result<SmallVec<[Operand<'a>; 4]>> {
    let mut list = SmallVec::new();
    for at in 0..args.0.len() {
        if list.len() == count {
            break;
        }
        match args.get(at) {
            Arg::Tensor(tensor) => list.push(Operand::of(tensor)),
            Arg::Attr(_) => match args.scalar(at) {
                Some(scalar) => list.push(Operand::Number(scalar)),
                None => fail!(ARGUMENT_TYPE, "argument {} is neither a tensor nor a number", at + 1),
            },
            _ => fail!(MISSING_ARGUMENT, "argument {} is missing", at + 1),
        }
    }
    Ok(list)
}

/// PyTorch's result type of the operands.
pub fn result_type(operands: &[Operand<'_>], default: DType) -> DType {
    let mut result = ResultType::default();
    for operand in operands {
        match operand {
            Operand::Tensor(_, view) => result.tensor(view.dtype, view.layout.ndim()),
            Operand::Number(scalar) => result.number(*scalar),
        }
    }
    result.get(default)
}

pub fn map(promote: Promote, operands: &[Operand<'_>], default: DType) -> Result<MapPlan> {
    let all = |dtype: DType, result: DType| {
        Ok(MapPlan { args: SmallVec::from_elem(dtype, operands.len()), result, identity: false })
    };
    let common = || result_type(operands, default);
    match promote {
        Promote::Same => {
            let dtype = common();
            all(dtype, dtype)
        }
        Promote::NoBool | Promote::Difference => {
            let dtype = common();
            let bools = operands.iter().any(|operand| match operand {
                Operand::Tensor(_, view) => view.dtype == DType::Bool,
                Operand::Number(scalar) => matches!(scalar, Scalar::Bool(_)),
            });
            if dtype == DType::Bool || (bools && promote == Promote::Difference) {
                let help = match promote {
                    Promote::Difference => {
                        "where masks differ is `a ^ b` or `logical_xor`; a mask is inverted by `!a`; `.to(\"i64\")` makes numbers"
                    }
                    _ => "a mask is inverted by `!a` or `logical_not`; `.to(\"i64\")` makes numbers",
                };
                return Err(Diag::error(code::DTYPE, "bool tensors are not supported").help(help));
            }
            all(dtype, dtype)
        }
        Promote::Float => {
            let dtype = common();
            let dtype = if dtype.is_float() { dtype } else { default };
            all(dtype, dtype)
        }
        Promote::Compare => all(common(), DType::Bool),
        Promote::Predicate => all(common(), DType::Bool),
        Promote::Logical => all(DType::Bool, DType::Bool),
        Promote::Bits | Promote::IntsOnly => {
            let dtype = common();
            let refused = dtype.is_float() || (promote == Promote::IntsOnly && dtype == DType::Bool);
            if refused {
                let diag = Diag::error(code::DTYPE, format!("integers are expected, not {dtype}"));
                return Err(match promote {
                    Promote::Bits => diag.help(
                        "`&`, `|` and `^` bind tighter than comparisons, as in Python: `(x > 1) & (x < 4)`; a power is `x ** 2`",
                    ),
                    _ => diag,
                });
            }
            all(dtype, dtype)
        }
        Promote::FloatOnly => {
            // Numbers do not make an integer tensor float here.
            let tensors = operands.iter().filter_map(|operand| match operand {
                Operand::Tensor(tensor, view) => Some(Operand::Tensor(tensor, view.clone())),
                Operand::Number(_) => None,
            });
            let dtype = result_type(&tensors.collect::<SmallVec<[Operand<'_>; 4]>>(), default);
            if !dtype.is_float() {
                return Err(Diag::error(code::DTYPE, format!("a floating-point tensor is expected, not {dtype}"))
                    .help("convert first, for example with `.float()`"));
            }
            all(dtype, dtype)
        }
        Promote::RoundLike => {
            let dtype = common();
            if dtype == DType::Bool {
                fail!(DTYPE, "bool tensors are not supported");
            }
            let mut plan = all(dtype, dtype)?;
            plan.identity = dtype.is_int();
            Ok(plan)
        }
        Promote::Where => {
            let dtype = result_type(&operands[1..], default);
            let mut plan = all(dtype, dtype)?;
            plan.args[0] = DType::Bool;
            Ok(plan)
        }
        Promote::Scaled => Ok(with_exact_scalars(map(Promote::Same, operands, default)?, operands)),
        Promote::ScaledNoBool => Ok(with_exact_scalars(map(Promote::NoBool, operands, default)?, operands)),
        Promote::ScaledFloat => Ok(with_exact_scalars(map(Promote::Float, operands, default)?, operands)),
        Promote::Copy => unreachable!("copies are planned by the engine"),
    }
}

/// 16-bit floats are computed in f32, which a wider 0-dimensional operand enters as it is.
fn with_exact_scalars(mut plan: MapPlan, operands: &[Operand<'_>]) -> MapPlan {
    if !matches!(plan.result, DType::F16 | DType::BF16) {
        return plan;
    }
    for (dtype, operand) in plan.args.iter_mut().zip(operands) {
        if operand.view().is_some_and(|view| view.layout.ndim() == 0 && matches!(view.dtype, DType::F32 | DType::F64)) {
            *dtype = DType::F32;
        }
    }
    plan
}

/// The shape of all operands where they have the same one; numbers have none.
pub fn same_shape<'a>(operands: &'a [Operand<'_>]) -> Option<&'a [usize]> {
    let mut shapes = operands.iter().filter_map(Operand::view).map(|view| view.shape());
    let first = shapes.next()?;
    shapes.all(|shape| shape == first).then_some(first)
}

/// The shape that all operands broadcast to.
pub fn broadcast_all<'a>(shapes: impl IntoIterator<Item = &'a [usize]>) -> Result<Shape> {
    let mut shapes = shapes.into_iter();
    let mut result = shapes.next().map_or_else(Shape::new, Shape::from_slice);
    for shape in shapes {
        if result.as_slice() == shape {
            continue;
        }
        result = match layout::broadcast(&result, shape) {
            Some(wider) => wider,
            None => return Err(broadcast_error(&result, shape)),
        };
    }
    Ok(result)
}

#[cold]
pub fn broadcast_error(a: &[usize], b: &[usize]) -> Box<Diag> {
    let ndim = a.len().max(b.len());
    let size = |shape: &[usize], dim: usize| (dim + shape.len()).checked_sub(ndim).map_or(1, |dim| shape[dim]);
    let dim = (0..ndim).rev().find(|&dim| size(a, dim) != size(b, dim) && size(a, dim) != 1 && size(b, dim) != 1);
    let mut diag = Diag::error(code::SHAPE, format!("shapes {a:?} and {b:?} do not broadcast"));
    if let Some(dim) = dim {
        diag = diag.note(format!(
            "dimension {} (from the end) has sizes {} and {}; they must be equal, or one of them 1",
            dim as i64 - ndim as i64,
            size(a, dim),
            size(b, dim)
        ));
    }
    if a.len() + b.len() == 3 && a.iter().rev().zip(b.iter()).all(|(x, y)| x == y) {
        diag = diag.help("`.unsqueeze(1)` turns a vector into a column");
    }
    diag
}

/// A dimension counted from the end when negative; `ndim` 0 counts as 1, as in PyTorch.
pub fn dim(value: i64, ndim: usize) -> Result<usize> {
    let n = ndim.max(1) as i64;
    if value < -n || value >= n {
        let tensor = if ndim == 1 { "1 dimension".to_string() } else { format!("{ndim} dimensions") };
        return Err(Diag::error(code::DIM, format!("dimension {value} is out of range for a tensor of {tensor}"))
            .help(format!("dimensions go from {} to {}", -n, n - 1)));
    }
    Ok((if value < 0 { value + n } else { value }) as usize)
}

/// Several dims, each at most once; `None` or an empty list means all of them.
pub fn dims(values: Option<&Ints>, ndim: usize) -> Result<SmallVec<[usize; 6]>> {
    let values = match values {
        Some(values) if !values.is_empty() => values,
        _ => return Ok((0..ndim).collect()),
    };
    let mut seen = SmallVec::<[usize; 6]>::new();
    for &value in values {
        let at = dim(value, ndim)?;
        if seen.contains(&at) {
            fail!(VALUE, "dimension {at} appears twice in the list of dims");
        }
        seen.push(at);
    }
    // The one dimension that a tensor without dimensions is asked for is not there.
    seen.truncate(ndim);
    Ok(seen)
}

/// Sizes given by the script as a shape.
pub fn shape(sizes: &[i64]) -> Result<Shape> {
    if sizes.len() > MAX_DIMS {
        fail!(VALUE, "{} dimensions are more than the {MAX_DIMS} that a tensor may have", sizes.len());
    }
    for (at, &size) in sizes.iter().enumerate() {
        if size < 0 {
            fail!(VALUE, "size {size} of dimension {at} is negative");
        }
    }
    Ok(sizes.iter().map(|&size| size as usize).collect())
}

/// Bytes of a tensor; an error when the arithmetic overflows.
pub fn size_bytes(shape: &[usize], dtype: DType) -> Result<usize> {
    if shape.len() > MAX_DIMS {
        fail!(VALUE, "{} dimensions are more than the {MAX_DIMS} that a tensor may have", shape.len());
    }
    layout::numel(shape)
        .and_then(|n| n.checked_mul(dtype.size_bytes()))
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or_else(|| {
            Diag::error(
                code::TOO_LARGE,
                format!("a tensor of shape {shape:?} and dtype {dtype} is too large to address"),
            )
        })
}

/// Shape of a reduction's result.
pub fn reduced_shape(shape: &[usize], dims: &[usize], keepdim: bool) -> Shape {
    let mut out = Shape::new();
    for (dim, &size) in shape.iter().enumerate() {
        match (dims.contains(&dim), keepdim) {
            (true, true) => out.push(1),
            (true, false) => {}
            (false, _) => out.push(size),
        }
    }
    out
}

/// dtype of a reduction's result and of its accumulation.
pub fn reduce_type(rule: ReduceType, input: DType, asked: Option<DType>) -> DType {
    match rule {
        ReduceType::Sum => asked.unwrap_or(if input.category() >= Category::Float { input } else { DType::I64 }),
        ReduceType::Same => input,
        ReduceType::Index => DType::I64,
        ReduceType::Bool => DType::Bool,
    }
}

/// All tensors must be of one dtype (matrix products, convolutions).
pub fn same_dtype(tensors: &[(&str, &Tensor)]) -> Result<DType> {
    let (first_name, first) = tensors[0];
    let dtype = first.dtype();
    for (name, tensor) in &tensors[1..] {
        if tensor.dtype() != dtype {
            return Err(Diag::error(
                code::DTYPE,
                format!("`{first_name}` is {dtype} but `{name}` is {}; both must be of one dtype", tensor.dtype()),
            )
            .help(format!("convert with `.to(\"{dtype}\")`")));
        }
    }
    Ok(dtype)
}

#[cold]
pub fn expanded() -> Box<Diag> {
    Diag::error(code::VALUE, "an expanded tensor cannot be written: several elements share one memory location")
        .help("make a copy first with `.clone()`")
}
