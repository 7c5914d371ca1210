//! Modules as collections: named children; `apply`; and length, `for` and `append` of lists such as `nn::sequential`.
//! Does not treat any layer specially.

use crate::base::diag::Result;
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::module_methods::{MAX_DEPTH, is_flat, method, names};
use crate::script::values::module::{ModuleValue, fields, holds_itself, is_own, list, module as module_of};
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Array, Dynamic, FnPtr, FuncRegistration, Map, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    method(module, host, "children", 1, |_, _, this, _| {
        Ok(children(this)?.into_iter().map(|(_, child)| child).collect::<Array>().into())
    });
    method(module, host, "named_children", 1, |_, _, this, _| Ok(pairs(children(this)?)));
    method(module, host, "named_modules", 1, |_, _, this, _| {
        let mut found = vec![(String::new(), this.flatten_clone())];
        below(this, "", 0, &mut found)?;
        Ok(pairs(found))
    });
    applied(module, host);
    lists(module, host);
}

fn pairs(found: Vec<(String, Dynamic)>) -> Dynamic {
    found.into_iter().map(|(name, item)| Dynamic::from(vec![name.into(), item] as Array)).collect::<Array>().into()
}

/// The direct children of a module, with their names, in order.
fn children(this: &Dynamic) -> Result<Vec<(String, Dynamic)>> {
    let mut found = Vec::new();
    if let Some(map) = fields(this) {
        for name in names(&map) {
            let flat = is_flat(&map, &name);
            gather(&map[name.as_str()], if flat { "" } else { &name }, 0, &mut found)?;
        }
    }
    Ok(found)
}

/// A value that is a module, or an array or plain map that contains some.
fn gather(value: &Dynamic, name: &str, depth: usize, found: &mut Vec<(String, Dynamic)>) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    let path = |part: &str| if name.is_empty() { part.to_string() } else { format!("{name}.{part}") };
    if let Some(map) = fields(value) {
        if value.is::<ModuleValue>() {
            found.push((name.to_string(), value.flatten_clone()));
            return Ok(());
        }
        for part in names(&map) {
            gather(&map[part.as_str()], &path(&part), depth + 1, found)?;
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for (at, item) in array.iter().enumerate() {
            gather(item, &path(&at.to_string()), depth + 1, found)?;
        }
    }
    Ok(())
}

fn below(this: &Dynamic, name: &str, depth: usize, found: &mut Vec<(String, Dynamic)>) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    for (part, child) in children(this)? {
        let path = if name.is_empty() { part } else { format!("{name}.{part}") };
        found.push((path.clone(), child.clone()));
        below(&child, &path, depth + 1, found)?;
    }
    Ok(())
}

/// `model.apply(f)`: calls `f` with every module, children before their parents; returns the module.
fn applied(module: &mut Natives, host: &Arc<Host>) {
    let host = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let this = values[0].flatten_clone();
        let order = visited(&this, values[1]).map_err(|diag| host.raise(&context, diag, ""))?;
        let (closure, order) = order;
        for item in order {
            drop(closure.call_raw(&context, None, [item])?);
        }
        Ok(this)
    };
    add(module, "apply", 2, call);
}

fn visited(this: &Dynamic, closure: &Dynamic) -> Result<(FnPtr, Vec<Dynamic>)> {
    if !this.is::<ModuleValue>() {
        fail!(ARGUMENT_TYPE, "`apply` belongs to modules; this map is none");
    }
    let Some(closure) = closure.clone().try_cast::<FnPtr>() else {
        fail!(ARGUMENT_TYPE, "`apply` expects a closure of a module, not {}", type_names::of_value(closure));
    };
    let mut found = Vec::new();
    inner_first(this, 0, &mut found)?;
    Ok((closure, found))
}

fn inner_first(this: &Dynamic, depth: usize, found: &mut Vec<Dynamic>) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    for (_, child) in children(this)? {
        inner_first(&child, depth + 1, found)?;
    }
    found.push(this.flatten_clone());
    Ok(())
}

fn items(map: &Map) -> Option<Array> {
    list(map).and_then(|name| map[name.as_str()].read_lock::<Array>().map(|items| items.clone()))
}

fn lists(module: &mut Natives, host: &Arc<Host>) {
    // Over the layers of a list; over the names of the fields of any other module.
    crate::script::values::panics::place_iterator(&mut module.module, TypeId::of::<ModuleValue>(), |value| {
        let found = module_of(&value).map_or_else(Array::new, |module| elements(&module.read()));
        Box::new(found.into_iter().map(Ok))
    });
    crate::script::values::panics::place_iterator(&mut module.module, TypeId::of::<Map>(), |value| {
        let map = value.try_cast::<Map>().unwrap_or_default();
        Box::new(map.into_keys().map(|key| Ok(key.as_str().into())))
    });
    add(module, "len", 1, |_, values| {
        let count = match module_of(values[0]) {
            Some(module) => elements(&module.read()).len(),
            None => values[0].read_lock::<Map>().map_or(0, |map| map.len()),
        };
        Ok(Dynamic::from_int(count as i64))
    });
    let host = host.clone();
    add(module, "append", 2, move |context, values| {
        let context = context.expect("registered with a context");
        push(values[0], values[1]).map_err(|diag| host.raise(&context, diag, ""))
    });
}

/// What a loop over a module goes over.
fn elements(map: &Map) -> Array {
    let names = || map.keys().filter(|name| !is_own(name)).map(|name| name.as_str().into()).collect();
    items(map).unwrap_or_else(names)
}

fn push(this: &Dynamic, item: &Dynamic) -> Result<Dynamic> {
    let list = module_of(this).and_then(|module| Some((list(&module.read())?, module)));
    let Some((name, module)) = list else {
        let kind = type_names::of_value(this);
        fail!(ARGUMENT_TYPE, "`append` belongs to arrays and to modules that are lists; this is {kind} that is none");
    };
    if !item.is::<ModuleValue>() {
        fail!(ARGUMENT_TYPE, "`append`: a module is expected, not {}", type_names::of_value(item));
    }
    if module.is_within(item) {
        return Err(holds_itself());
    }
    let added = module.change(|fields| {
        let mut items = fields.get_mut(name.as_str())?.write_lock::<Array>()?;
        items.push(item.flatten_clone());
        Some(())
    });
    match added.flatten() {
        Some(()) => Ok(Dynamic::UNIT),
        None => fail!(VALUE, "`append`: the module is being read"),
    }
}

/// Of modules; and of maps, where Rhai has its own functions, which would take precedence over one for any type, or for
/// the message.
fn add(
    module: &mut Natives,
    name: &str,
    count: usize,
    call: impl Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native + Send + Sync + 'static,
) {
    module.note(name);
    let is_pure = name == "len";
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure, is_volatile: true };
    let mut types = vec![TypeId::of::<Dynamic>(); count];
    for kind in [TypeId::of::<ModuleValue>(), TypeId::of::<Map>()] {
        types[0] = kind;
        let own = FuncRegistration::new(name).in_global_namespace();
        own.place_raw_in(&mut module.module, &types, func.clone());
    }
}
