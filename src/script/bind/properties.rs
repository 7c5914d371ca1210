//! Properties of tensors, and methods that are not operations: `x.shape`, `x.item()`, `x.backward()`.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::base::layout::MemoryFormat;
use crate::base::suggest::unknown_keyword;
use crate::op::emit::Emit;
use crate::op::row::Op;
use crate::op::rows::pointwise::complex::{IMAG, REAL};
use crate::op::rows::shape::view::UNSQUEEZE;
use crate::script::bind::array_order::{self, Difference};
use crate::script::bind::compare::{compare, values_equal};
use crate::script::bind::convert;
use crate::script::bind::index;
use crate::script::bind::native::{self, flag, given};
use crate::script::bind::rows::Natives;
use crate::script::bind::rows::raw;
use crate::script::host::Host;
use crate::script::manual;
use crate::script::values::ascii::text_of;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::{DTypeValue, DeviceValue, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::history::MadeBy;
use crate::tensor::index::Item;
use crate::tensor::movement::{self, Target};
use crate::tensor::{grad, history, observe, row_grads};
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

/// A number as a script value.
pub fn number(value: Scalar) -> Dynamic {
    match value {
        Scalar::Bool(b) => Dynamic::from_bool(b),
        Scalar::Int(i) => Dynamic::from_int(i),
        Scalar::Float(x) => Dynamic::from_float(x),
    }
}

/// A comparison of plain values, or an operator that Rhai does not have for them (`"a" - 1`).
pub fn plain_operator(host: &Host, context: &NativeCallContext, symbol: &str, values: &mut [&mut Dynamic]) -> Native {
    if let [a, b] = &values[..]
        && matches!(symbol, "==" | "!=")
    {
        return Ok(Dynamic::from_bool(values_equal(host, context, a, b)? == (symbol == "==")));
    }
    if let [a, b] = &values[..]
        && let Some(result) = compare(symbol, a, b)
    {
        return Ok(Dynamic::from_bool(result));
    }
    if let [a, b] = &mut values[..]
        && let Some(parts) = array_order::first_difference(host, context, symbol, a, b)?
    {
        return match parts {
            Difference::Lengths(result) => Ok(Dynamic::from_bool(result)),
            Difference::Elements(mut a, mut b) => plain_operator(host, context, symbol, &mut [&mut a, &mut b]),
        };
    }
    if let [a, b] = &values[..]
        && let Some(result) = mixed(symbol, a, b)
    {
        return Ok(Dynamic::from_float(result));
    }
    if let [a, b] = &values[..]
        && (joins(symbol, a, b) || joins(symbol, b, a))
    {
        let mut texts = [a, b].map(|value| as_text(value));
        let [a, b] = &mut texts;
        return context.call_native_fn_raw(symbol, true, &mut [a, b]);
    }
    let text = match &values[..] {
        [a] => format!("`{symbol}` does not work on {}", type_names::of_value(a)),
        [a, b] => {
            format!("`{symbol}` does not work between {} and {}", type_names::of_value(a), type_names::of_value(b))
        }
        _ => format!("`{symbol}` does not work on these values"),
    };
    let types: Vec<&str> = values.iter().map(|value| value.type_name()).collect();
    let mut diag = Diag::error(code::TYPE, text);
    diag.help = crate::script::error::operator_help(symbol, &types).map(str::to_string);
    Err(host.raise(context, diag, ""))
}

/// Whether a character stands for its string beside a value, as in `text[0] + 1` and `text[0] * 3`.
fn joins(symbol: &str, character: &Dynamic, other: &Dynamic) -> bool {
    let is_plain = other.is_int() || other.is_float() || other.is_bool() || other.is_unit();
    character.is_char() && ((symbol == "+" && is_plain) || (symbol == "*" && other.is_int()))
}

fn as_text(value: &Dynamic) -> Dynamic {
    value.as_char().map_or_else(|_| value.clone(), |character| text_of(character).into())
}

/// An integer and a float give a float, in compound assignment too: `total += loss.item()`.
fn mixed(symbol: &str, a: &Dynamic, b: &Dynamic) -> Option<f64> {
    let (a, b) = match (a.as_int(), a.as_float(), b.as_int(), b.as_float()) {
        (Ok(a), _, _, Ok(b)) => (a as f64, b),
        (_, Ok(a), Ok(b), _) => (a, b as f64),
        _ => return None,
    };
    Some(match symbol {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" => a % b,
        "**" => a.powf(b),
        _ => return None,
    })
}

/// Registers a function whose first argument is a tensor.
pub fn method(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    arity: usize,
    call: impl Fn(&Host, &NativeCallContext, &Tensor, &mut [&mut Dynamic]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let host = host.clone();
    let owned_name = name.trim_start_matches("get$").to_string();
    raw(module, name, arity, move |context, values| {
        let context = context.expect("registered with a context");
        let tensor = values[0].read_lock::<Tensor>().map(|tensor| tensor.clone());
        let result = match tensor {
            Some(tensor) => call(&host, &context, &tensor, &mut values[1..]),
            None => Err(no_tensor(&owned_name, values[0])),
        };
        result.map_err(|diag| host.raise(&context, diag, ""))
    });
}

#[cold]
pub(super) fn no_tensor(name: &str, value: &Dynamic) -> Box<Diag> {
    let text = format!("`{name}` belongs to tensors, not to {}", type_names::of_value(value));
    let diag = Diag::error(code::ARGUMENT_TYPE, text);
    match name {
        "len" if !value.is_unit() => {
            Diag::error(code::ARGUMENT_TYPE, format!("{} has no length", type_names::of_value(value)))
        }
        "size" if value.is_array() || value.is_map() || value.is_string() => diag.help("write `xs.len()`"),
        _ if value.is_unit() => {
            diag.help("the value before the dot is `()`: what gave it changes something in place, or has no value")
        }
        _ => diag,
    }
}

pub fn property(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    get: impl Fn(&Host, &Tensor) -> Result<Dynamic> + Send + Sync + 'static,
) {
    // Only tensors have these properties: maps and other types keep their own.
    let host = host.clone();
    getter(module, name, move |context, tensor| get(&host, tensor).map_err(|diag| host.raise(context, diag, "")));
}

fn getter(
    module: &mut Natives,
    name: &str,
    get: impl Fn(&NativeCallContext, &Tensor) -> Native + Send + Sync + 'static,
) {
    let call = GuardedCall::new(move |context, values| {
        let tensor = values[0].read_lock::<Tensor>().expect("registered for tensors").clone();
        get(&context.expect("registered with a context"), &tensor)
    });
    let types = [TypeId::of::<Tensor>()];
    rhai::FuncRegistration::new_getter(name).place_shared_in(&mut module.module, types, &call);
}

/// Rows whose alias starts with a dot: `x.T`.
fn computed(module: &mut Natives, host: &Arc<Host>) {
    for op in crate::op::table::all() {
        for name in op.aliases.iter().filter_map(|alias| alias.strip_prefix('.')) {
            let shared = host.clone();
            getter(module, name, move |context, x| {
                let result = shared.engine(context).call_row(op, crate::args![x]);
                if let (true, Ok(result)) = (op.conjugates, &result) {
                    history::note_conjugate(result);
                }
                result.map(Dynamic::from).map_err(|mut diag| {
                    diag.message = format!("`{name}`: {}", diag.message);
                    shared.raise(context, diag, "")
                })
            });
        }
    }
}

/// Every property that is not a row, for suggestions and completion.
pub const NAMES: &[&str] =
    &["shape", "ndim", "numel", "dtype", "device", "is_cuda", "is_pinned", "requires_grad", "is_leaf", "grad"];

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    properties(module, host);
    setters(module, host);
    movement(module, host);
    computed(module, host);
    observation(module, host);
    gradients(module, host);
}

fn properties(module: &mut Natives, host: &Arc<Host>) {
    property(module, host, "shape", |_, x| {
        Ok(Dynamic::from(x.shape().iter().map(|&n| Dynamic::from_int(n as i64)).collect::<Array>()))
    });
    property(module, host, "ndim", |_, x| Ok(Dynamic::from_int(x.ndim() as i64)));
    property(module, host, "numel", |_, x| Ok(Dynamic::from_int(x.numel() as i64)));
    property(module, host, "dtype", |_, x| Ok(Dynamic::from(DTypeValue(x.dtype()))));
    property(module, host, "device", |_, x| Ok(Dynamic::from(DeviceValue::from(x.device()))));
    property(module, host, "is_cuda", |_, x| Ok(Dynamic::from_bool(x.device().is_cuda())));
    property(module, host, "is_pinned", |_, x| Ok(Dynamic::from_bool(x.view().buffer.pinned)));
    property(module, host, "requires_grad", |_, x| Ok(Dynamic::from_bool(x.requires_grad())));
    property(module, host, "is_leaf", |_, x| Ok(Dynamic::from_bool(history::is_leaf(x))));
    property(module, host, "grad", |host, x| {
        if x.row_grads().is_empty() {
            return Ok(x.0.auto.lock().grad.clone().map_or(Dynamic::UNIT, Dynamic::from));
        }
        row_grad(host, x)
    });
}

/// The gradient of a table of which rows have one: sparse, unless a dense one was added too.
#[cold]
fn row_grad(host: &Host, x: &Tensor) -> Result<Dynamic> {
    let mut e = Engine::new(host.rt.clone(), x.0.made);
    let grad = x.0.auto.lock().grad.clone();
    if grad.is_some() {
        let sum = row_grads::dense(&mut e, x, grad)?;
        x.set_row_grads(Vec::new());
        x.0.auto.lock().grad = Some(sum.clone());
        return Ok(Dynamic::from(sum));
    }
    let rows = row_grads::joined(&mut e, x)?;
    let index = e.call_row(&UNSQUEEZE, crate::args![&rows.index, 0])?;
    Ok(Dynamic::from(Sparse::of_rows(index, rows.values, x.shape().to_vec())))
}

/// `x.shape` is a new array, so a change such as `x.shape[0] = 2` would be lost. Rhai passes the array back after
/// anything that may have changed it. A shorter array means that only its end was read: `x.shape.pop()`.
fn shape_setter(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    rhai::FuncRegistration::new_setter("shape").place_in(
        &mut module.module,
        move |context: NativeCallContext, x: &mut Tensor, value: Dynamic| -> Result<(), Box<rhai::EvalAltResult>> {
            let text = if shared.assignment(&context).is_some() {
                "the property `shape` of a tensor cannot be assigned"
            } else {
                let sizes = value.read_lock::<Array>();
                let Some(sizes) = sizes.filter(|sizes| sizes.len() >= x.ndim()) else { return Ok(()) };
                let has = |(size, n): (&Dynamic, usize)| size.as_int().is_ok_and(|size| size == n as i64);
                if sizes.len() == x.ndim() && sizes.iter().zip(x.shape()).all(has) {
                    return Ok(());
                }
                "`shape` is a copy, and its change would be lost"
            };
            let diag = Diag::error(code::UNKNOWN_PROPERTY, text)
                .help("`x.reshape(sizes)` gives a tensor of another shape; `let s = x.shape;` an array to work with");
            Err(shared.raise(&context, diag, "changed here"))
        },
    );
}

fn setters(module: &mut Natives, host: &Arc<Host>) {
    shape_setter(module, host);
    part_setter(module, host, "real", &REAL);
    part_setter(module, host, "imag", &IMAG);
    let shared = host.clone();
    rhai::FuncRegistration::new_setter("requires_grad").place_in(
        &mut module.module,
        move |context: NativeCallContext, x: &mut Tensor, on: Dynamic| -> Result<(), Box<rhai::EvalAltResult>> {
            if shared.assignment(&context).is_none() {
                return Ok(());
            }
            let wrong = |_| format!("`requires_grad` is true or false, not {}", type_names::of_value(&on));
            let on = on.as_bool().map_err(|kind| Diag::error(code::ARGUMENT_TYPE, wrong(kind)));
            on.and_then(|on| set_requires_grad(x, on)).map_err(|diag| shared.raise(&context, diag, ""))
        },
    );
    let shared = host.clone();
    rhai::FuncRegistration::new_setter("grad").place_in(
        &mut module.module,
        move |context: NativeCallContext, x: &mut Tensor, value: Dynamic| -> Result<(), Box<rhai::EvalAltResult>> {
            // A gradient that was changed through a handle needs no assignment: see `index.rs`.
            match shared.assignment(&context) {
                Some(_) => set_grad(x, &value).map_err(|diag| shared.raise(&context, diag, "")),
                None => Ok(()),
            }
        },
    );
}

/// `z.real = v`, `z.imag = v`: a copy into the parts.
fn part_setter(module: &mut Natives, host: &Arc<Host>, name: &'static str, part: &'static Op) {
    let shared = host.clone();
    rhai::FuncRegistration::new_setter(name).place_in(
        &mut module.module,
        move |context: NativeCallContext, x: &mut Tensor, value: Dynamic| -> Result<(), Box<rhai::EvalAltResult>> {
            if shared.assignment(&context).is_none() {
                return Ok(());
            }
            shared.call(&context, |engine| {
                let value = index::assigned(&value)?;
                let part = engine.call_row(part, crate::args![&*x])?;
                crate::tensor::index::set(engine, &part, vec![Item::Ellipsis], value)
            })
        },
    );
}

pub fn set_grad(x: &Tensor, value: &Dynamic) -> Result<()> {
    if value.is_unit() {
        x.drop_grad();
        return Ok(());
    }
    let Some(g) = value.read_lock::<Tensor>().map(|g| g.clone()) else {
        let text = format!("a gradient is a tensor or `()`, not {}", type_names::of_value(value));
        return Err(Diag::error(code::ARGUMENT_TYPE, text));
    };
    // After `x.grad += g`.
    if x.0.auto.lock().grad.as_ref().is_some_and(|old| old.same(&g)) {
        return Ok(());
    }
    if g.shape() != x.shape() || g.dtype() != x.dtype() || g.device() != x.device() {
        let text = format!("a gradient of {g:?} does not fit {x:?}");
        return Err(Diag::error(code::GRAD_SHAPE, text));
    }
    x.drop_grad();
    x.0.auto.lock().grad = Some(g);
    Ok(())
}

/// One positional argument of `to`: a dtype, a device, or a tensor whose dtype and device are taken.
pub fn to_argument(host: &Host, value: &Dynamic, target: &mut Target) -> Result<()> {
    if value.is_unit() {
        return Ok(());
    }
    if let Some(other) = value.read_lock::<Tensor>() {
        *target = Target { dtype: Some(other.dtype()), device: Some(other.device()), ..*target };
        return Ok(());
    }
    if let Some(dtype) = value.read_lock::<DTypeValue>() {
        target.dtype = Some(dtype.0);
        return Ok(());
    }
    let text = value.read_lock::<rhai::ImmutableString>().map(|text| text.to_string());
    if let Some(dtype) = text.as_deref().and_then(crate::base::dtype::DType::parse) {
        target.dtype = Some(dtype);
        return Ok(());
    }
    if let Some(text) = &text {
        let looks_like_device = text.starts_with("cu") || text.starts_with("cp") || text.contains(':');
        if !looks_like_device {
            target.dtype = Some(convert::dtype(value)?);
            return Ok(());
        }
    }
    target.device = Some(convert::device(host, value)?);
    Ok(())
}

pub fn to_keywords(host: &Host, map: &Map, target: &mut Target) -> Result<()> {
    let flag = |name: &str, value: &Dynamic| {
        value.as_bool().map_err(|_| Diag::error(code::ARGUMENT_TYPE, format!("`{name}` must be true or false")))
    };
    for (name, value) in map {
        match name.as_str() {
            "target" => to_argument(host, value, target)?,
            "dtype" | "device" if value.is_unit() => {}
            "dtype" => target.dtype = Some(convert::dtype(value)?),
            "device" => target.device = Some(convert::device(host, value)?),
            "copy" => target.copy = flag(name, value)?,
            // The old name, from before `async` became a keyword of Python.
            "non_blocking" | "async" => target.non_blocking = flag(name, value)?,
            "memory_format" => target.format = memory_format(value)?,
            _ => {
                let signature = manual::native("to").and_then(manual::Native::signature);
                let known: Vec<&str> = signature.iter().flat_map(|signature| signature.names()).collect();
                return Err(native::named("to")(unknown_keyword(name, &known)));
            }
        }
    }
    Ok(())
}

/// The order of elements that a `memory_format` asks for; none for that which they have.
fn memory_format(value: &Dynamic) -> Result<Option<MemoryFormat>> {
    let text = value.read_lock::<rhai::ImmutableString>();
    match text.as_ref().map(|text| (text.as_str(), MemoryFormat::parse(text))) {
        Some((_, Some(format))) => Ok(Some(format)),
        Some(("preserve_format", _)) => Ok(None),
        None if value.is_unit() => Ok(None),
        _ => {
            let known = "contiguous_format, preserve_format, channels_last, channels_last_3d";
            Err(Diag::error(code::VALUE, format!("`memory_format` is one of {known}")))
        }
    }
}

fn movement(module: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=6 {
        method(module, host, "to", arity, |host, context, x, rest| {
            if rest.is_empty() {
                let diag = Diag::error(code::MISSING_ARGUMENT, "a device or a dtype is missing");
                return Err(diag.help("call it as `x.to(\"cuda\")` or `x.to(\"f64\")`"));
            }
            let mut target = Target::default();
            let mut flags = 0;
            for value in rest.iter() {
                match (value.read_lock::<Map>(), value.as_bool()) {
                    (Some(map), _) => to_keywords(host, &map, &mut target)?,
                    // After dtype and device come `non_blocking` and `copy`, in this order.
                    (None, Ok(flag)) if flags < 2 => {
                        *(if flags == 0 { &mut target.non_blocking } else { &mut target.copy }) = flag;
                        flags += 1;
                    }
                    _ => to_argument(host, value, &mut target)?,
                }
            }
            movement::to(&mut host.engine(context), x, target).map(Dynamic::from)
        });
    }
    let shared = host.clone();
    native::method(module, host, "cuda", move |engine, x, [device, non_blocking]| {
        let device = match given(device) {
            None => shared.rt.current_cuda()?,
            Some(device) => convert::device(&shared, device)?,
        };
        if !device.is_cuda() {
            let diag = Diag::error(code::UNKNOWN_DEVICE, "a CUDA device is expected, not \"cpu\"");
            return Err(diag.help("write `x.cpu()`"));
        }
        let non_blocking = flag("non_blocking", non_blocking)?;
        let target = Target { device: Some(device), non_blocking, ..Target::default() };
        movement::to(engine, x, target).map(Dynamic::from)
    });
    method(module, host, "cpu", 1, |host, context, x, _| {
        let target = Target { device: Some(crate::base::device_id::DeviceId::Cpu), ..Target::default() };
        movement::to(&mut host.engine(context), x, target).map(Dynamic::from)
    });
    method(module, host, "pin_memory", 1, |host, context, x, _| {
        movement::pin(&mut host.engine(context), x).map(Dynamic::from)
    });
    native::method(module, host, "is_contiguous", |_, x, [format]| {
        let format = memory_format(format)?.unwrap_or(MemoryFormat::Contiguous);
        Ok(Dynamic::from_bool(format.is_of(&x.view().layout)))
    });
    method(module, host, "is_floating_point", 1, |_, _, x, _| Ok(Dynamic::from_bool(x.dtype().is_float())));
    method(module, host, "element_size", 1, |_, _, x, _| Ok(Dynamic::from_int(x.dtype().size_bytes() as i64)));
    method(module, host, "storage_offset", 1, |_, _, x, _| Ok(Dynamic::from_int(x.view().layout.offset as i64)));
    method(module, host, "data_ptr", 1, |host, _, x, _| {
        let view = observe::settle(&host.rt, x)?;
        Ok(Dynamic::from_int(view.ptr() as i64))
    });
    method(module, host, "len", 1, |_, _, x, _| match x.shape().first() {
        Some(&n) => Ok(Dynamic::from_int(n as i64)),
        None => Err(Diag::error(code::SHAPE, "a 0-dimensional tensor has no length")),
    });
}

fn observation(module: &mut Natives, host: &Arc<Host>) {
    method(module, host, "item", 1, |host, context, x, _| match x.dtype().is_complex() && x.numel() == 1 {
        true => Ok(complex_numbers(host, context, x)?.next().unwrap_or(Dynamic::UNIT)),
        false => observe::item(&host.rt, x).map(number),
    });
    for name in ["to_array", "tolist"] {
        method(module, host, name, 1, |host, context, x, _| {
            // Outer arrays exist even where they have no elements.
            let shape = x.shape();
            let outer = shape.split_last().map_or(&[][..], |(_, outer)| outer).iter();
            let (arrays, _) = outer.fold((1usize, 1usize), |(all, n), &size| {
                let n = n.saturating_mul(size);
                (all.saturating_add(n), n)
            });
            host.rt.host_room(x.numel().saturating_add(arrays.saturating_mul(3)).saturating_mul(ELEMENT))?;
            if x.dtype().is_complex() {
                return Ok(nested(&x.shape(), &mut complex_numbers(host, context, x)?));
            }
            let values = observe::scalars(&host.rt, x)?;
            Ok(nested(&x.shape(), &mut values.into_iter().map(number)))
        });
    }
}

/// Bytes of one array element.
const ELEMENT: usize = size_of::<Dynamic>();

/// Nested arrays of a tensor's elements.
/// The elements of a complex tensor, each as a tensor of no dimensions on the CPU: what a complex number is.
fn complex_numbers(
    host: &Host,
    context: &NativeCallContext,
    x: &Tensor,
) -> Result<impl Iterator<Item = Dynamic> + use<>> {
    let (bytes, dtype) = (observe::bytes(&host.rt, x)?, x.dtype());
    let mut engine = host.engine(context);
    let one = |chunk| Ok(Dynamic::from(Emit::upload(&mut engine, chunk, &[], dtype, DeviceId::Cpu)?));
    let numbers: Result<Vec<Dynamic>> = bytes.chunks_exact(dtype.size_bytes()).map(one).collect();
    Ok(numbers?.into_iter())
}

fn nested(shape: &[usize], values: &mut impl Iterator<Item = Dynamic>) -> Dynamic {
    match shape.split_first() {
        None => values.next().unwrap_or(Dynamic::UNIT),
        Some((&n, rest)) => Dynamic::from((0..n).map(|_| nested(rest, values)).collect::<Array>()),
    }
}

/// How gradients are computed; `()` means that another argument decides.
pub fn mode(retain: &Dynamic, create: &Dynamic, unused: &Dynamic, materialize: &Dynamic) -> Result<grad::Mode> {
    let create_graph = flag("create_graph", create)?;
    let materialize = flag("materialize_grads", materialize)?;
    let allowed = given(unused).map(|value| flag("allow_unused", value)).transpose()?;
    if materialize && allowed == Some(false) {
        return Err(Diag::error(
            code::VALUE,
            "`materialize_grads: true` goes with unused inputs, which are not allowed",
        ));
    }
    let retain_graph = given(retain).map_or(Ok(create_graph), |value| flag("retain_graph", value))?;
    Ok(grad::Mode { retain_graph, create_graph, allow_unused: allowed.unwrap_or(false), materialize })
}

/// The `inputs` of `backward`: a tensor, or an array of them.
fn inputs_of(value: &Dynamic) -> Result<Vec<Tensor>> {
    let wrong = |found: &Dynamic| {
        let text = format!("`inputs` is an array of tensors, not {}", type_names::of_value(found));
        Diag::error(code::ARGUMENT_TYPE, text)
    };
    let tensor = |value: &Dynamic| value.read_lock::<Tensor>().map(|x| x.clone()).ok_or_else(|| wrong(value));
    match value.read_lock::<Array>() {
        Some(list) => list.iter().map(tensor).collect(),
        None => Ok(vec![tensor(value)?]),
    }
}

/// Adds gradients to all leaves, or to `inputs` alone.
pub fn backward(
    engine: &mut Engine,
    ys: &[Tensor],
    gs: &[Option<Tensor>],
    how: grad::Mode,
    inputs: &Dynamic,
) -> Result<Dynamic> {
    match given(inputs) {
        Some(inputs) => grad::backward_to(engine, ys, gs, &inputs_of(inputs)?, how)?,
        None => grad::backward(engine, ys, gs, how)?,
    }
    Ok(Dynamic::UNIT)
}

fn gradients(module: &mut Natives, host: &Arc<Host>) {
    native::method(module, host, "backward", |engine, x, [gradient, retain, create, inputs]| {
        let g = gradient.read_lock::<Tensor>().map(|g| g.clone());
        if g.is_none() && !gradient.is_unit() {
            let text = format!("a gradient is a tensor, not {}", type_names::of_value(gradient));
            return Err(Diag::error(code::ARGUMENT_TYPE, text));
        }
        let how = mode(retain, create, &Dynamic::UNIT, &Dynamic::FALSE)?;
        backward(engine, std::slice::from_ref(x), &[g], how, inputs)
    });
    for arity in 1..=2 {
        method(module, host, "requires_grad_", arity, |_, _, x, rest| {
            let on = rest.first().is_none_or(|value| value.as_bool().unwrap_or(true));
            set_requires_grad(x, on)?;
            Ok(Dynamic::from(x.clone()))
        });
    }
    method(module, host, "retain_grad", 1, |host, context, x, _| {
        history::retain_grad(&mut host.engine(context), x)?;
        Ok(Dynamic::UNIT)
    });
    method(module, host, "detach", 1, |host, context, x, _| Ok(Dynamic::from(host.engine(context).detach(x))));
    method(module, host, "detach_", 1, |_, _, x, _| {
        history::detach_in_place(x)?;
        Ok(Dynamic::from(x.clone()))
    });
}

/// Sets whether a leaf requires gradients.
pub fn set_requires_grad(x: &Tensor, on: bool) -> Result<()> {
    if on && !x.dtype().is_differentiable() {
        return Err(Diag::error(
            code::DTYPE,
            format!("only tensors of floating-point or complex numbers can require gradients, not {}", x.dtype()),
        ));
    }
    if on && x.is_inference() {
        return Err(history::of_inference(x, "cannot require gradients"));
    }
    if history::is_leaf(x) {
        history::requires_grad(x, on)?;
        return Ok(());
    }
    if on {
        return Ok(());
    }
    Err(Diag::error(code::GRAD_LEAF, "only a leaf can stop requiring gradients")
        .help("use `.detach()` for the value outside the graph"))
}

/// The name of the operation that created a tensor, if a gradient flows through it: `ReluBackward0`.
pub fn grad_fn(x: &Tensor) -> Option<String> {
    match history::made_by(x) {
        MadeBy::Nothing => None,
        MadeBy::Row(name) => Some(format!("{}Backward0", camel(name))),
        MadeBy::CopySlices => Some("CopySlices".to_string()),
        MadeBy::View => Some("AsStridedBackward0".to_string()),
        MadeBy::Invalid => Some("Invalid".to_string()),
    }
}

/// `log_softmax` → `LogSoftmax`.
fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or(String::new(), |c| c.to_ascii_uppercase().to_string() + chars.as_str())
        })
        .collect()
}
