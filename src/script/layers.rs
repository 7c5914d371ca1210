//! What every module of `nn` can do: a module is a map of tensors, modules, arrays of them and closures; the
//! methods here walk it. Knows no layer by name.
//!
//! A tensor of a module is a parameter unless its name stands in the map's `_buffers`. Names that begin with
//! `_` are not walked. `training` holds a `cell`, which all copies of the map share.

use super::bind::{Natives, raw};
use super::convert;
use super::host::{Host, Native};
use super::properties;
use super::value::{Cell, Tensor};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use crate::op::args::Arg;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Wanted};
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bound: modules inside modules; a map that reaches itself through a shared variable ends here.
const MAX_DEPTH: usize = 128;

/// A tensor of a module.
struct Member {
    name: String,
    tensor: Tensor,
    buffer: bool,
}

/// All tensors of a module in the order of their names, those that appear twice included.
fn members(value: &Dynamic) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    collect(value, "", false, 0, &mut found)?;
    Ok(found)
}

fn collect(value: &Dynamic, name: &str, buffer: bool, depth: usize, found: &mut Vec<Member>) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    let path = |part: &str| if name.is_empty() { part.to_string() } else { format!("{name}.{part}") };
    if let Some(tensor) = value.read_lock::<Tensor>() {
        found.push(Member { name: name.to_string(), tensor: tensor.clone(), buffer });
    } else if let Some(map) = value.read_lock::<Map>() {
        let buffers = map.get("_buffers").and_then(|names| names.read_lock::<Array>().map(|names| names.clone()));
        let is_buffer = |part: &str| {
            let named = |item: &Dynamic| item.read_lock::<ImmutableString>().is_some_and(|item| item.as_str() == part);
            buffers.as_ref().is_some_and(|names| names.iter().any(named))
        };
        for (part, item) in map.iter().filter(|(part, _)| !part.starts_with('_')) {
            collect(item, &path(part), is_buffer(part), depth + 1, found)?;
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for (at, item) in array.iter().enumerate() {
            collect(item, &path(&at.to_string()), buffer, depth + 1, found)?;
        }
    }
    Ok(())
}

/// The members of one kind, each tensor once.
fn distinct(value: &Dynamic, buffers: bool) -> Result<Vec<Member>> {
    let mut kept: Vec<Member> = Vec::new();
    for member in members(value)?.into_iter().filter(|member| member.buffer == buffers) {
        if !kept.iter().any(|other| other.tensor.same(&member.tensor)) {
            kept.push(member);
        }
    }
    Ok(kept)
}

/// Sets every `training` cell below.
fn set_training(value: &Dynamic, on: bool, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(map) = value.read_lock::<Map>() {
        if let Some(cell) = map.get("training").and_then(|cell| cell.read_lock::<Cell>().map(|cell| cell.clone())) {
            cell.set(Dynamic::from_bool(on));
        }
        for (_, item) in map.iter().filter(|(part, _)| !part.starts_with('_')) {
            set_training(item, on, depth + 1)?;
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for item in array.iter() {
            set_training(item, on, depth + 1)?;
        }
    }
    Ok(())
}

/// Registers a method of maps.
fn method(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arity: usize,
    run: impl Fn(&Host, &NativeCallContext, &Dynamic, &mut [&mut Dynamic]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let host = host.clone();
    module.names.insert(name.to_string());
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let Some((first, rest)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
        let result = if first.read_lock::<Map>().is_some_and(|map| map.contains_key("training")) {
            run(&host, &context, first, rest)
        } else {
            Err(Diag::error(code::ARGUMENT_TYPE, format!("`{name}` belongs to modules; this map is none"))
                .help("make a module of a map with `nn::module(#{...})`"))
        };
        result.map_err(|diag| host.raise(&context, diag, ""))
    };
    let mut types = vec![TypeId::of::<Dynamic>(); arity];
    types[0] = TypeId::of::<Map>();
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
    FuncRegistration::new(name).in_global_namespace().set_into_module_raw(&mut module.module, types, func);
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    listing(module, host);
    states(module, host);
    moving(module, host);
    modes(module, host);
    checks(module, host);
}

fn listing(module: &mut Natives, host: &Arc<Host>) {
    for (plain, named, buffers) in [("parameters", "named_parameters", false), ("buffers", "named_buffers", true)] {
        method(module, host, plain, 1, move |_, _, this, _| {
            Ok(distinct(this, buffers)?
                .into_iter()
                .map(|member| Dynamic::from(member.tensor))
                .collect::<Array>()
                .into())
        });
        method(module, host, named, 1, move |_, _, this, _| {
            let pair = |member: Member| Dynamic::from(vec![member.name.into(), Dynamic::from(member.tensor)] as Array);
            Ok(distinct(this, buffers)?.into_iter().map(pair).collect::<Array>().into())
        });
    }
}

fn states(module: &mut Natives, host: &Arc<Host>) {
    method(module, host, "state_dict", 1, |host, context, this, _| {
        let engine = host.engine(context);
        let entry = |member: Member| (member.name.into(), Dynamic::from(engine.tensor(member.tensor.view())));
        Ok(members(this)?.into_iter().map(entry).collect::<Map>().into())
    });
    for arity in 2..=3 {
        method(module, host, "load_state_dict", arity, |host, context, this, rest| {
            let strict = match rest.get(1) {
                None => true,
                Some(value) => match value.read_lock::<Map>() {
                    Some(map) => map.get("strict").is_none_or(|strict| strict.as_bool().unwrap_or(true)),
                    None => value.as_bool().unwrap_or(true),
                },
            };
            load(&mut host.engine(context), this, rest[0], strict)
        });
    }
}

/// Copies a state into the module's own tensors, all or nothing.
fn load(engine: &mut Engine, this: &Dynamic, state: &Dynamic, strict: bool) -> Result<Dynamic> {
    let Some(state) = state.read_lock::<Map>().map(|map| map.clone()) else {
        fail!(ARGUMENT_TYPE, "a state is a map of tensors, not {}", convert::type_name(state));
    };
    let own = members(this)?;
    let named: BTreeMap<&str, &Tensor> = own.iter().map(|member| (member.name.as_str(), &member.tensor)).collect();
    let missing: Vec<&str> = named.keys().copied().filter(|name| !state.contains_key(*name)).collect();
    let unexpected: Vec<&str> = state.keys().map(|name| name.as_str()).filter(|n| !named.contains_key(n)).collect();
    if strict && !(missing.is_empty() && unexpected.is_empty()) {
        let mut diag = Diag::error(code::VALUE, "the state does not fit the module");
        if !missing.is_empty() {
            diag = diag.note(format!("missing in the state: {}", missing.join(", ")));
        }
        if !unexpected.is_empty() {
            diag = diag.note(format!("unknown to the module: {}", unexpected.join(", ")));
        }
        return Err(diag.help("`#{strict: false}` takes what fits"));
    }
    let mut copies = Vec::new();
    for (name, tensor) in &named {
        let Some(value) = state.get(*name) else { continue };
        let Some(given) = value.read_lock::<Tensor>().map(|given| given.clone()) else {
            fail!(ARGUMENT_TYPE, "`{name}` in the state is no tensor but {}", convert::type_name(value));
        };
        if given.shape() != tensor.shape() {
            let (a, b) = (tensor.shape(), given.shape());
            fail!(SHAPE, "`{name}` has shape {:?} in the module and {:?} in the state", a.as_slice(), b.as_slice());
        }
        copies.push((tensor.view(), given, tensor.device()));
    }
    for (view, given, device) in copies {
        let given = movement::to(engine, &given, Wanted { device: Some(device), ..Wanted::default() })?;
        engine.copy_into(&view, &Arg::Tensor(engine.tensor(given.view())))?;
    }
    let list = |names: Vec<&str>| names.into_iter().map(|name| name.to_string().into()).collect::<Array>().into();
    Ok(Map::from_iter([("missing_keys".into(), list(missing)), ("unexpected_keys".into(), list(unexpected))]).into())
}

fn moving(module: &mut Natives, host: &Arc<Host>) {
    for arity in 2..=4 {
        method(module, host, "to", arity, |host, context, this, rest| {
            let mut found = Wanted::default();
            for value in rest.iter() {
                match value.read_lock::<Map>() {
                    Some(map) => properties::wanted_keywords(host, &map, &mut found)?,
                    None => properties::wanted(host, value, &mut found)?,
                }
            }
            relocate(&mut host.engine(context), this, found)
        });
    }
    for arity in 1..=2 {
        method(module, host, "cuda", arity, |host, context, this, rest| {
            let device = match rest.first() {
                Some(value) => convert::device(host, value)?,
                None => host.rt.current_cuda()?,
            };
            relocate(&mut host.engine(context), this, Wanted { device: Some(device), ..Wanted::default() })
        });
    }
    method(module, host, "cpu", 1, |host, context, this, _| {
        let found = Wanted { device: Some(DeviceId::Cpu), ..Wanted::default() };
        relocate(&mut host.engine(context), this, found)
    });
    let casts = [("half", DType::F16), ("bfloat16", DType::BF16), ("float", DType::F32), ("double", DType::F64)];
    for (name, dtype) in casts {
        method(module, host, name, 1, move |host, context, this, _| {
            relocate(&mut host.engine(context), this, Wanted { dtype: Some(dtype), ..Wanted::default() })
        });
    }
}

/// Moves every tensor in place, gradients too; a dtype is for floating-point tensors only. Returns the module.
fn relocate(engine: &mut Engine, this: &Dynamic, wanted: Wanted) -> Result<Dynamic> {
    if wanted.dtype.is_some_and(|dtype| !dtype.is_float()) {
        fail!(DTYPE, "a module is moved to a floating-point dtype only");
    }
    let all = distinct(this, false)?.into_iter().chain(distinct(this, true)?);
    for Member { tensor, .. } in all {
        let wanted = Wanted { dtype: wanted.dtype.filter(|_| tensor.dtype().is_float()), ..wanted };
        let grad = tensor.0.auto.lock().grad.clone();
        for slot in std::iter::once(tensor).chain(grad) {
            let plain = engine.tensor(slot.view());
            let moved = engine.quietly(|engine| movement::to(engine, &plain, wanted))?;
            slot.set_view(moved.view());
        }
    }
    Ok(this.clone())
}

/// `train()` and `eval()`; the source pass turns the second name into `__evaluate`.
fn modes(module: &mut Natives, host: &Arc<Host>) {
    for (name, most) in [("train", 2), ("__evaluate", 1)] {
        for arity in 1..=most {
            method(module, host, name, arity, move |_, _, this, rest| {
                let on = match rest.first() {
                    Some(value) => value.as_bool().map_err(|_| {
                        Diag::error(
                            code::ARGUMENT_TYPE,
                            format!("true or false is wanted, not {}", convert::type_name(value)),
                        )
                    })?,
                    None => name == "train",
                };
                set_training(this, on, 0)?;
                Ok(this.clone())
            });
        }
    }
    method(module, host, "zero_grad", 1, |_, _, this, _| {
        for member in members(this)? {
            member.tensor.0.auto.lock().grad = None;
        }
        Ok(Dynamic::UNIT)
    });
    for arity in 1..=2 {
        method(module, host, "requires_grad_", arity, |_, _, this, rest| {
            let on = rest.first().is_none_or(|value| value.as_bool().unwrap_or(true));
            for member in distinct(this, false)? {
                properties::set_requires_grad(&member.tensor, on)?;
            }
            Ok(this.clone())
        });
    }
}

/// What the library's own checks need: `_options(name, defaults, given)` and `_fail(code, message)`.
fn checks(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_options", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let name = values[0].clone().into_string().unwrap_or_default();
        options(&name, values[1], values[2]).map_err(|diag| shared.raise(&context, diag, ""))
    });
    let shared = host.clone();
    raw(module, "_fail", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let code = values[0].clone().into_string().ok().and_then(|text| code::Code::parse(&text));
        let message = values[1].clone().into_string().unwrap_or_default();
        Err(shared.raise(&context, Diag::error(code.unwrap_or(code::ASSERTION), message), ""))
    });
}

/// The defaults with what was given put over them; an unknown name is an error with a suggestion.
fn options(name: &str, defaults: &Dynamic, given: &Dynamic) -> Result<Dynamic> {
    let mut merged = defaults.read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
    let Some(given) = given.read_lock::<Map>().map(|map| map.clone()) else {
        let text = format!("`{name}`: options are a map, as in `#{{...}}`, not {}", convert::type_name(given));
        return Err(Diag::error(code::ARGUMENT_TYPE, text));
    };
    for (key, value) in given {
        let Some(default) = merged.get(&key) else {
            let none = crate::base::span::Origin::NONE;
            let diag = Diag::error(code::UNKNOWN_KEYWORD, format!("`{name}`: unknown keyword `{key}`")).keyword(
                none,
                &key,
                "not a keyword here",
            );
            let known = || merged.keys().map(|key| key.as_str());
            return Err(match crate::base::suggest::nearest(&key, known()) {
                Some(found) => diag.help(format!("did you mean `{found}`?")),
                None => diag.help(format!("the keywords are: {}", known().collect::<Vec<_>>().join(", "))),
            });
        };
        let fits = if default.is_bool() {
            value.is_bool()
        } else if default.is_float() {
            value.is_float() || value.is_int()
        } else if default.is_int() {
            value.is_int() || value.is_array() || value.is_string()
        } else {
            !default.is_string() || value.is_string()
        };
        if !fits {
            let text = format!("`{name}`: `{key}` cannot be {}", convert::type_name(&value));
            return Err(Diag::error(code::ARGUMENT_TYPE, text));
        }
        // A whole number stands for a float.
        let value = match (default.is_float(), value.as_int()) {
            (true, Ok(i)) => Dynamic::from_float(i as f64),
            _ => value,
        };
        merged.insert(key, value);
    }
    Ok(merged.into())
}
