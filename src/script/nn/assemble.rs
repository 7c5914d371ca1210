//! `nn::module` from a map: which of its tensors are buffers, in which order its parts are listed; and independent
//! copies. What a module then can do is in `module_methods.rs`.
//!
//! Rhai's maps are sorted by name. PyTorch lists parameters in the order of their registration, which in a script is
//! the order of their creation; tensors have it by their buffers' numbers, modules by a number of their own.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::order;
use crate::fail;
use crate::script::bind::properties::set_requires_grad;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::nn::module_methods::MAX_DEPTH;
use crate::script::nn::row_modules;
use crate::script::nn::sparse_parts;
use crate::script::values::module::{ModuleValue, fields, module};
use crate::script::values::part;
use crate::script::values::raise::Native;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// `_module(kind, fields, order)`: `kind` is the printed name; `order` is an array of names or `()`.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    // Invariant: later modules have higher numbers; only their order counts.
    let serials = AtomicI64::new(0);
    raw(module, "_module", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let serial = serials.fetch_add(1, Ordering::Relaxed);
        if let Some(kind) = values[0].read_lock::<ImmutableString>() {
            let mut kinds = shared.kinds.lock();
            if !kinds.contains(kind.as_str()) {
                kinds.insert(kind.to_string());
            }
        }
        assemble(values[0], values[1], values[2], serial).map_err(|diag| shared.raise(&context, diag, ""))
    });
}

fn assemble(kind: &Dynamic, fields: &Dynamic, order: &Dynamic, serial: i64) -> Result<Dynamic> {
    let Some(mut map) = fields.read_lock::<Map>().map(|map| map.clone()) else {
        let text = format!("a module is made of a map, not of {}", type_names::of_value(fields));
        return Err(Diag::error(code::ARGUMENT_TYPE, text).help("write `nn::module(#{forward: |x| ...})`"));
    };
    let first = match order.read_lock::<Array>() {
        Some(names) => names.iter().map(name).collect::<Result<Vec<_>>>()?,
        None if order.is_unit() => Vec::new(),
        None => fail!(ARGUMENT_TYPE, "the order of a module's names is an array, not {}", type_names::of_value(order)),
    };
    let mut parts: Vec<(usize, i64, ImmutableString)> = Vec::new();
    // The order may name fields of the library's own, which are listed then.
    let is_part = |name: &str| !name.starts_with('_') || first.iter().any(|first| first == name);
    for (name, value) in map.iter().filter(|(name, _)| is_part(name)) {
        if let Some(order) = creation_order(value, 0)? {
            let position = first.iter().position(|first| first == name.as_str()).unwrap_or(usize::MAX);
            parts.push((position, order, name.as_str().into()));
        }
    }
    order::by_key(&mut parts, |(position, creation_order, _)| (*position, *creation_order));
    let buffers: Array =
        map.iter().filter(|(_, value)| part::is_buffer(value)).map(|(name, _)| name.as_str().into()).collect();
    map.insert("_order".into(), parts.into_iter().map(|(_, _, name)| name.into()).collect::<Array>().into());
    map.insert("_buffers".into(), buffers.into());
    map.insert("_serial".into(), serial.into());
    map.insert("_name".into(), kind.clone());
    row_modules::note(&mut map);
    map.insert("training".into(), Dynamic::from(Cell::new(Dynamic::TRUE)));
    Ok(Dynamic::from(ModuleValue::new(map)))
}

fn name(value: &Dynamic) -> Result<ImmutableString> {
    match value.read_lock::<ImmutableString>() {
        Some(text) => Ok(text.clone()),
        None => fail!(ARGUMENT_TYPE, "the order of a module's names has strings, not {}", type_names::of_value(value)),
    }
}

/// When a part of a module was created; none for a part without tensors or modules. Numbers of tensors are compared
/// only with those of tensors, since parameters, buffers and modules are listed separately.
fn creation_order(value: &Dynamic, depth: usize) -> Result<Option<i64>> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(Some(tensor.view().buffer.id as i64));
    }
    if let Some(sparse) = value.read_lock::<Sparse>() {
        return Ok(Some(sparse.values.view().buffer.id as i64));
    }
    let mut earliest: Option<i64> = None;
    let mut note = |found: Option<i64>| earliest = earliest.into_iter().chain(found).min();
    if let Some(map) = fields(value) {
        if let Some(serial) = map.get("_serial").and_then(|serial| serial.as_int().ok()) {
            return Ok(Some(serial));
        }
        for (_, item) in map.iter() {
            note(creation_order(item, depth + 1)?);
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for item in array.iter() {
            note(creation_order(item, depth + 1)?);
        }
    }
    Ok(earliest)
}

/// What was copied, with its copies.
#[derive(Default)]
struct Copies {
    tensors: Vec<(Tensor, Tensor)>,
    modules: Vec<(ModuleValue, ModuleValue)>,
}

/// An independent module: tensors and mode are copied. A tensor or module that occurs twice stays one.
pub fn copy(engine: &mut Engine, module: &Dynamic) -> Result<Dynamic> {
    duplicate(engine, module, 0, &mut Copies::default())
}

fn duplicate(engine: &mut Engine, value: &Dynamic, depth: usize, done: &mut Copies) -> Result<Dynamic> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) {
        if let Some((_, new)) = done.tensors.iter().find(|(old, _)| old.same(&tensor)) {
            return Ok(Dynamic::from(new.clone()));
        }
        let plain = engine.tensor(tensor.view());
        let new = engine
            .without_recording(|engine| movement::to(engine, &plain, Target { copy: true, ..Target::default() }))?;
        if tensor.requires_grad() {
            set_requires_grad(&new, true)?;
        }
        if part::is_parameter(&tensor) {
            part::mark(&new);
        }
        done.tensors.push((tensor, new.clone()));
        return Ok(Dynamic::from(new));
    }
    if let Some(sparse) = value.read_lock::<Sparse>().map(|sparse| sparse.clone()) {
        return sparse_parts::moved(engine, &sparse, Target { copy: true, ..Target::default() }).map(Dynamic::from);
    }
    if let Some(known) = module(value).and_then(|module| done.modules.iter().find(|(old, _)| old.same(&module))) {
        return Ok(Dynamic::from(known.1.clone()));
    }
    if let Some(map) = fields(value).map(|map| map.clone()) {
        let mut new = Map::new();
        for (name, item) in map {
            new.insert(name, duplicate(engine, &item, depth + 1, done)?);
        }
        let Some(old) = module(value) else { return Ok(new.into()) };
        let new = ModuleValue::new(new);
        done.modules.push((old, new.clone()));
        return Ok(Dynamic::from(new));
    }
    if let Some(array) = value.read_lock::<Array>().map(|array| array.clone()) {
        let items: Result<Array> = array.iter().map(|item| duplicate(engine, item, depth + 1, done)).collect();
        return Ok(items?.into());
    }
    if let Some(cell) = value.read_lock::<Cell>().map(|cell| cell.clone()) {
        let inside = duplicate(engine, &cell.get(), depth + 1, done)?;
        return Ok(Dynamic::from(Cell::new(inside)));
    }
    Ok(value.flatten_clone())
}
