//! Modules as collections: named children; `apply`; and length, `for` and `append` of lists such as `nn::sequential`.
//! Does not treat any layer specially.

use crate::base::diag::Result;
use crate::fail;
use crate::script::bind::convert::integer;
use crate::script::bind::native::{flag, text};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::fields::{registered, write};
use crate::script::nn::module_methods::{MAX_DEPTH, MemberKind, is_flat, is_same, keyed, method, names};
use crate::script::values::calling;
use crate::script::values::module::{ModuleValue, fields, holds_itself, is_own, list, module as module_of, steps};
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, FnPtr, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    method(module, host, "children", 1, |_, _, this, _| {
        Ok(distinct(children(this)?).into_iter().map(|(_, child)| child).collect::<Array>().into())
    });
    method(module, host, "named_children", 1, |_, _, this, _| Ok(pairs(distinct(children(this)?))));
    keyed(module, host, "named_modules", |_, _, this, [memo, prefix, remove_duplicate]| {
        let known = memo_of(memo)?;
        let prefix = text("prefix", prefix)?;
        let path = |name: String| match (prefix.is_empty(), name.is_empty()) {
            (true, _) => name,
            (_, true) => prefix.clone(),
            _ => format!("{prefix}.{name}"),
        };
        let mut found = named_modules(this, flag("remove_duplicate", remove_duplicate)?)?;
        found.retain(|(_, module)| !known.iter().any(|known| is_same(known, module)));
        Ok(pairs(found.into_iter().map(|(name, module)| (path(name), module)).collect()))
    });
    applied(module, host);
    lists(module, host);
}

/// The modules that `named_modules` leaves out.
fn memo_of(memo: &Dynamic) -> Result<Array> {
    match memo.read_lock::<Array>() {
        Some(known) => Ok(known.clone()),
        None if memo.is_unit() => Ok(Array::new()),
        None => fail!(ARGUMENT_TYPE, "`memo` is an array of modules, not {}", type_names::of_value(memo)),
    }
}

/// A module and all that are inside, with their paths, outer ones first; each once, or once for each path.
pub fn named_modules(this: &Dynamic, once: bool) -> Result<Vec<(String, Dynamic)>> {
    let mut found = vec![(String::new(), this.flatten_clone())];
    below(this, "", 0, &mut found)?;
    Ok(if once { distinct(found) } else { found })
}

/// The first of each module.
fn distinct(all: Vec<(String, Dynamic)>) -> Vec<(String, Dynamic)> {
    let mut kept: Vec<(String, Dynamic)> = Vec::with_capacity(all.len());
    for (name, module) in all {
        if !kept.iter().any(|(_, known)| is_same(known, &module)) {
            kept.push((name, module));
        }
    }
    kept
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
            drop(calling::call(&context, &closure, None, vec![item])?);
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
    let changes: [(&'static str, usize, Change); 4] = [
        ("append", 2, |values| push(values[0], values[1]).map(|()| values[0].flatten_clone())),
        ("extend", 2, |values| extend(values[0], values[1]).map(|()| values[0].flatten_clone())),
        ("+=", 2, |values| extend(values[0], values[1]).map(|()| Dynamic::UNIT)),
        ("insert", 3, |values| insert(values[0], values[1], values[2]).map(|()| values[0].flatten_clone())),
    ];
    for (name, count, change) in changes {
        let host = host.clone();
        let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| {
            let context = context.expect("registered with a context");
            change(values).map_err(|diag| host.raise(&context, diag, ""))
        };
        if name == "append" {
            add(module, name, count, call);
        } else {
            module.place_on(TypeId::of::<ModuleValue>(), name, count..=count, &GuardedCall::new(call));
        }
    }
    let shared = host.clone();
    let update = GuardedCall::new(move |context, values| {
        let context = context.expect("registered with a context");
        update(values[0], values[1]).map(|()| Dynamic::UNIT).map_err(|diag| shared.raise(&context, diag, ""))
    });
    module.place_on(TypeId::of::<ModuleValue>(), "update", 2..=2, &update);
}

type Change = fn(&mut [&mut Dynamic]) -> Result<Dynamic>;

/// What a loop over a module goes over.
fn elements(map: &Map) -> Array {
    let names = || map.keys().filter(|name| !is_own(name)).map(|name| name.as_str().into()).collect();
    let steps = || {
        let names = steps(map)?;
        Some(names.iter().filter_map(|name| map.get(name.as_str()).map(Dynamic::flatten_clone)).collect())
    };
    items(map).or_else(steps).unwrap_or_else(names)
}

/// A list module, and the name of its array; none for one whose layers are fields.
fn list_of(this: &Dynamic, method: &str) -> Result<(ModuleValue, Option<ImmutableString>)> {
    let found = module_of(this).and_then(|module| {
        let (list, has_steps) = (list(&module.read()), module.read().contains_key("_steps"));
        (list.is_some() || has_steps).then_some((module, list))
    });
    let kind = || type_names::of_value(this);
    match found {
        Some(found) => Ok(found),
        None => {
            fail!(
                ARGUMENT_TYPE,
                "`{method}` belongs to arrays and to modules that are lists; this is {} that is none",
                kind()
            )
        }
    }
}

/// What may stand in a list: tensors in a list of parameters, modules in others.
fn check_item(module: &ModuleValue, list: Option<&str>, item: &Dynamic, method: &str) -> Result<()> {
    let (fits, expected) = match list {
        Some("items") => (item.is::<Tensor>(), "a tensor"),
        _ => (item.is::<ModuleValue>(), "a module"),
    };
    if !fits {
        fail!(ARGUMENT_TYPE, "`{method}`: {expected} is expected, not {}", type_names::of_value(item));
    }
    if module.is_within(item) { Err(holds_itself()) } else { Ok(()) }
}

/// Puts an item at a place of a list, or at its end.
fn put(this: &Dynamic, item: &Dynamic, at: Option<i64>, method: &str) -> Result<()> {
    let (module, list) = list_of(this, method)?;
    check_item(&module, list.as_deref(), item, method)?;
    let Some(list) = list else {
        if at.is_some() {
            fail!(VALUE, "`{method}`: the layers of this sequence have names; `add_module(name, layer)` adds one");
        }
        let count = steps(&module.read()).map_or(0, |names| names.len());
        return add_step(&module, &count.to_string(), item.flatten_clone());
    };
    let added = module.change(|fields| {
        let mut items = fields.get_mut(list.as_str())?.write_lock::<Array>()?;
        let count = items.len();
        let at = at.map_or(count, |at| (if at < 0 { at + count as i64 } else { at }).clamp(0, count as i64) as usize);
        items.insert(at, item.flatten_clone());
        Some(())
    });
    match added.flatten() {
        Some(()) => Ok(()),
        None => fail!(VALUE, "`{method}`: the module is being read"),
    }
}

fn push(this: &Dynamic, item: &Dynamic) -> Result<()> {
    put(this, item, None, "append")
}

fn insert(this: &Dynamic, at: &Dynamic, item: &Dynamic) -> Result<()> {
    match integer(at) {
        Some(at) => put(this, item, Some(at), "insert"),
        None => fail!(ARGUMENT_TYPE, "`insert`: a place is an integer, not {}", type_names::of_value(at)),
    }
}

fn extend(this: &Dynamic, items: &Dynamic) -> Result<()> {
    let all = match (items.read_lock::<Array>(), module_of(items)) {
        (Some(items), _) => items.clone(),
        (None, Some(other)) => elements(&other.read()),
        _ => fail!(ARGUMENT_TYPE, "`extend`: an array of modules is expected, not {}", type_names::of_value(items)),
    };
    let (module, list) = list_of(this, "extend")?;
    all.iter().try_for_each(|item| check_item(&module, list.as_deref(), item, "extend"))?;
    all.iter().try_for_each(|item| put(this, item, None, "extend"))
}

/// `m.update(#{name: module})`, of `nn::module_dict` and its kin.
fn update(this: &Dynamic, other: &Dynamic) -> Result<()> {
    let module = module_of(this).expect("registered for modules");
    let Some(other) = fields(other).map(|other| other.clone()) else {
        fail!(ARGUMENT_TYPE, "`update`: a map of modules is expected, not {}", type_names::of_value(other));
    };
    for (name, value) in other.iter().filter(|(name, _)| !is_own(name)) {
        write(&module, name, value.flatten_clone())?;
    }
    Ok(())
}

/// A layer with a name at the end of a sequence. Layers that were numbered become fields, named by their numbers.
pub fn add_step(module: &ModuleValue, name: &str, layer: Dynamic) -> Result<()> {
    let numbered = list(&module.read());
    if let Some(list) = numbered {
        let by_name = module.get("_by_name");
        let layers = module.change(|fields| {
            fields.remove("_flat");
            if let Some(forward) = by_name {
                fields.insert("forward".into(), forward);
            }
            fields.insert("_steps".into(), Array::new().into());
            fields.remove(list.as_str())
        });
        for (at, layer) in
            layers.flatten().and_then(|layers| layers.into_array().ok()).into_iter().flatten().enumerate()
        {
            add_step(module, &at.to_string(), layer)?;
        }
    }
    registered(module, name, layer, MemberKind::Parameter)?;
    module.change(|fields| {
        if let Some(mut names) = fields.get_mut("_steps").and_then(|names| names.write_lock::<Array>())
            && !names.iter().any(|known| known.read_lock::<ImmutableString>().is_some_and(|known| *known == *name))
        {
            names.push(name.into());
        }
    });
    Ok(())
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
