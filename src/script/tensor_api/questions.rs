//! Queries of tensors and dtypes without computation: sizes, strides, kinds, promotion; and `as_tensor`, which
//! computes only if needed. The names are PyTorch's; most correspond to properties that tscript has, too.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout;
use crate::fail;
use crate::op::infer::{self, Operand};
use crate::script::bind::convert;
use crate::script::bind::native::{self, flag, given, named, native};
use crate::script::bind::properties::{method, property};
use crate::script::bind::rows::Natives;
use crate::script::bind::rows::raw;
use crate::script::host::Host;
use crate::script::tensor_api::literal;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::{DTypeValue, Tensor};
use crate::tensor::batch;
use crate::tensor::engine::Engine;
use crate::tensor::history;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// Properties that `register` adds.
pub const NAMES: &[&str] = &[
    "itemsize",
    "nbytes",
    "data",
    "retains_grad",
    "_version",
    "grad_fn",
    "is_cpu",
    "is_sparse",
    "is_sparse_csr",
    "layout",
];

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    sizes(module, host);
    kinds(module, host);
    detached(module, host);
    promotion(module, host);
    tables(module, host);
    as_tensor(module, host);
}

fn int(n: usize) -> Result<Dynamic> {
    Ok(Dynamic::from_int(n as i64))
}

fn list(values: impl Iterator<Item = i64>) -> Dynamic {
    values.map(Dynamic::from_int).collect::<Array>().into()
}

/// The index of a dimension argument.
fn place(value: &Dynamic, ndim: usize) -> Result<usize> {
    match value.as_int() {
        Ok(dim) if ndim == 0 => {
            Err(Diag::error(code::DIM, format!("there is no dimension {dim}: the tensor has none")))
        }
        Ok(dim) => infer::dim(dim, ndim),
        Err(_) => fail!(ARGUMENT_TYPE, "a dimension is an integer, not {}", type_names::of_value(value)),
    }
}

fn sizes(module: &mut Natives, host: &Arc<Host>) {
    native::method(module, host, "size", |_, x, [dim]| match given(dim) {
        Some(dim) => int(x.shape()[place(dim, x.ndim())?]),
        None => Ok(list(x.shape().iter().map(|&n| n as i64))),
    });
    native::method(module, host, "stride", |_, x, [dim]| match given(dim) {
        Some(dim) => Ok(Dynamic::from_int(x.view().layout.strides[place(dim, x.ndim())?] as i64)),
        None => Ok(list(x.view().layout.strides.iter().map(|&s| s as i64))),
    });
    for name in ["dim", "ndimension"] {
        method(module, host, name, 1, |_, _, x, _| int(x.ndim()));
    }
    for name in ["numel", "nelement"] {
        method(module, host, name, 1, |_, _, x, _| int(x.numel()));
    }
    property(module, host, "itemsize", |_, x| int(x.dtype().size_bytes()));
    property(module, host, "nbytes", |_, x| int(x.numel() * x.dtype().size_bytes()));
    // `-1` for a tensor on the CPU.
    method(module, host, "get_device", 1, |_, _, x, _| {
        Ok(Dynamic::from_int(match x.device() {
            DeviceId::Cpu => -1,
            DeviceId::Cuda(index) => i64::from(index),
        }))
    });
}

fn kinds(module: &mut Natives, host: &Arc<Host>) {
    property(module, host, "is_cpu", |_, x| Ok(Dynamic::from_bool(!x.device().is_cuda())));
    // Sparse tensors have their own: `script/sparse`.
    for name in ["is_sparse", "is_sparse_csr"] {
        property(module, host, name, |_, _| Ok(Dynamic::FALSE));
    }
    property(module, host, "layout", |_, _| Ok("strided".into()));
    method(module, host, "is_inference", 1, |_, _, x, _| Ok(Dynamic::from_bool(x.is_inference())));
    let shared = host.clone();
    raw(module, "is_inference_mode_enabled", 0, move |_, _| Ok(Dynamic::from_bool(shared.rt.is_inference())));
    method(module, host, "is_complex", 1, |_, _, x, _| Ok(Dynamic::from_bool(x.dtype().is_complex())));
    for name in ["is_conj", "is_neg"] {
        method(module, host, name, 1, |_, _, _, _| Ok(Dynamic::FALSE));
    }
    raw(module, "is_tensor", 1, |_, values| Ok(Dynamic::from_bool(values[0].read_lock::<Tensor>().is_some())));
}

/// `x.data`: the elements outside the gradient graph; assigning another tensor makes `x` use that one's memory.
fn detached(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    rhai::FuncRegistration::new_getter("data").place_in(
        &mut module.module,
        move |context: rhai::NativeCallContext, x: Tensor| -> Tensor {
            // As in PyTorch, the graph does not track writes through it.
            let mut engine = shared.engine(&context);
            let elements = engine.tensor(Arc::new(batch::value(&x).view().counted_apart(0)));
            batch::like(&mut engine, elements, &x)
        },
    );
    let shared = host.clone();
    rhai::FuncRegistration::new_setter("data").place_in(
        &mut module.module,
        move |context: rhai::NativeCallContext,
              x: &mut Tensor,
              value: Dynamic|
              -> std::result::Result<(), Box<rhai::EvalAltResult>> {
            // A change through `data` has already been made: see `index.rs`.
            if shared.assignment(&context).is_none() {
                return Ok(());
            }
            shared.call(&context, |engine| {
                let Some(new) = value.read_lock::<Tensor>().map(|new| new.clone()) else {
                    fail!(ARGUMENT_TYPE, "`data` is a tensor, not {}", type_names::of_value(&value));
                };
                let (old, view) = (x.view(), new.view());
                // After `x.data += y`.
                if old.buffer.id == view.buffer.id && old.layout == view.layout {
                    return Ok(());
                }
                history::assign_data(engine, x, &new)
            })
        },
    );
    property(module, host, "retains_grad", |_, x| Ok(Dynamic::from_bool(x.0.auto.lock().retain_grad)));
    // How often its memory was written, as far as the gradient graph sees.
    property(module, host, "_version", |_, x| int(x.view().version_since_made() as usize));
    // The name of the operation that created it, as printing shows it.
    property(module, host, "grad_fn", |_, x| {
        Ok(crate::script::bind::properties::grad_fn(x).map_or(Dynamic::UNIT, |name| name.into()))
    });
}

fn checked(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arity: usize,
    run: impl Fn(&Host, &[&mut Dynamic]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let host = host.clone();
    raw(module, name, arity, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        run(&host, values).map_err(|mut diag| {
            diag.message = format!("`{name}`: {}", diag.message);
            host.raise(&context, diag, "")
        })
    });
}

fn promotion(module: &mut Natives, host: &Arc<Host>) {
    checked(module, host, "promote_types", 2, |_, values| {
        Ok(Dynamic::from(DTypeValue(dtype(values[0])?.promote(dtype(values[1])?))))
    });
    checked(module, host, "can_cast", 2, |_, values| {
        Ok(Dynamic::from_bool(dtype(values[0])?.can_cast(dtype(values[1])?)))
    });
    checked(module, host, "result_type", 2, |host, values| {
        let tensors: Vec<Option<Tensor>> =
            values.iter().map(|value| value.read_lock::<Tensor>().map(|x| x.clone())).collect();
        let mut operands = Vec::new();
        for (tensor, value) in tensors.iter().zip(values) {
            operands.push(match (tensor, convert::scalar(value)) {
                (Some(tensor), _) => Operand::of(tensor),
                (None, Some(number)) => Operand::Number(number),
                (None, None) => {
                    fail!(ARGUMENT_TYPE, "tensors or numbers are expected, not {}", type_names::of_value(value))
                }
            });
        }
        Ok(Dynamic::from(DTypeValue(infer::result_type(&operands, host.rt.default_float()))))
    });
    for arity in 1..=8 {
        checked(module, host, "broadcast_shapes", arity, |_, values| {
            let mut result = layout::Shape::new();
            for value in values {
                let shape = shape(value)?;
                result = match layout::broadcast(&result, &shape) {
                    Some(shape) => shape,
                    None => return Err(infer::broadcast_error(&result, &shape)),
                };
            }
            Ok(list(result.iter().map(|&n| n as i64)))
        });
    }
}

/// `finfo(dtype)` and `iinfo(dtype)`: what numbers a dtype has.
fn tables(module: &mut Natives, host: &Arc<Host>) {
    checked(module, host, "finfo", 0, |host, _| finfo(host.rt.default_float()));
    checked(module, host, "finfo", 1, |_, values| finfo(dtype(values[0])?));
    checked(module, host, "iinfo", 1, |_, values| iinfo(dtype(values[0])?));
}

fn table(dtype: DType, entries: &[(&str, Dynamic)]) -> Dynamic {
    let mut map: Map = entries.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
    map.insert("bits".into(), Dynamic::from_int(8 * dtype.size_bytes() as i64));
    map.insert("dtype".into(), Dynamic::from(DTypeValue(dtype)));
    map.into()
}

fn finfo(dtype: DType) -> Result<Dynamic> {
    let dtype = dtype.real_part();
    if !dtype.is_float() {
        let diag = Diag::error(code::DTYPE, format!("a floating-point dtype is expected, not {dtype}"));
        return Err(if dtype.is_int() { diag.help("of integers: `iinfo(dtype)`") } else { diag });
    }
    let tiny = Dynamic::from_float(dtype.smallest_normal());
    let entries = [
        ("eps", Dynamic::from_float(dtype.epsilon())),
        ("max", Dynamic::from_float(dtype.largest())),
        ("min", Dynamic::from_float(-dtype.largest())),
        ("resolution", Dynamic::from_float(dtype.resolution())),
        ("smallest_normal", tiny.clone()),
        ("tiny", tiny),
    ];
    Ok(table(dtype, &entries))
}

fn iinfo(dtype: DType) -> Result<Dynamic> {
    match dtype.int_range().filter(|_| dtype.is_int()) {
        Some((low, high)) => Ok(table(dtype, &[("max", Dynamic::from_int(high)), ("min", Dynamic::from_int(low))])),
        None => {
            let diag = Diag::error(code::DTYPE, format!("a dtype of integers is expected, not {dtype}"));
            Err(if dtype == DType::Bool { diag } else { diag.help("of floating-point numbers: `finfo(dtype)`") })
        }
    }
}

/// A dtype, or that of a tensor.
fn dtype(value: &Dynamic) -> Result<DType> {
    match value.read_lock::<Tensor>() {
        Some(x) => Ok(x.dtype()),
        None => convert::dtype(value),
    }
}

fn shape(value: &Dynamic) -> Result<layout::Shape> {
    if let Ok(n) = value.as_int() {
        return infer::shape(&[n]);
    }
    let sizes: Option<Vec<i64>> =
        value.read_lock::<Array>().and_then(|array| array.iter().map(|item| item.as_int().ok()).collect());
    match sizes {
        Some(sizes) => infer::shape(&sizes),
        None => {
            fail!(ARGUMENT_TYPE, "a shape is an array of integers, not {}", type_names::of_value(value))
        }
    }
}

/// `as_tensor(data, dtype, device)`: a tensor unchanged if possible, anything else as by `tensor`.
fn as_tensor(module: &mut Natives, host: &Arc<Host>) {
    for name in ["as_tensor", "asarray"] {
        native(module, host, name, move |host, engine, [data, dtype, device, copy]| {
            let where_to = || {
                Ok(Target {
                    dtype: given(dtype).map(convert::dtype).transpose()?,
                    device: given(device).map(|device| convert::device(host, device)).transpose()?,
                    copy: flag("copy", copy)?,
                    ..Target::default()
                })
            };
            let unchanged_or_copy = where_to().and_then(|where_to| unchanged_or_copy(host, engine, data, where_to));
            unchanged_or_copy.map(Dynamic::from).map_err(named(name))
        });
    }
}

fn unchanged_or_copy(host: &Host, engine: &mut Engine, data: &Dynamic, where_to: Target) -> Result<Tensor> {
    let tensor = match data.read_lock::<Tensor>() {
        Some(tensor) => tensor.clone(),
        None => literal::from_value(engine, host, data, where_to.dtype, where_to.device)?,
    };
    movement::to(engine, &tensor, where_to)
}
