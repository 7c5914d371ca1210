//! Parts of a module by their paths: `get_submodule("encoder.0")` and its kin; and parts that are registered by name.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::suggest::nearest;
use crate::fail;
use crate::script::bind::native::{flag, text};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::containers::{add_step, named_modules};
use crate::script::nn::fields::{registered, write};
use crate::script::nn::module_methods::{Member, MemberKind, is_flat, keyed, members};
use crate::script::values::module::{ModuleValue, is_own, list, module as module_of};
use crate::script::values::part;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    keyed(natives, host, "get_submodule", |_, _, this, [target]| submodule(this, &text("target", target)?));
    for (name, what, buffer) in [("get_parameter", "parameter", false), ("get_buffer", "buffer", true)] {
        keyed(natives, host, name, move |_, _, this, [target]| {
            let path = text("target", target)?;
            let all: Vec<_> = members(this)?.into_iter().filter(|member| member.is_buffer() == buffer).collect();
            match all.iter().position(|member| member.name == path) {
                Some(at) => Ok(all.into_iter().nth(at).map_or(Dynamic::UNIT, Member::value)),
                None => Err(absent(what, &path, all.iter().map(|member| member.name.as_str()))),
            }
        });
    }
    keyed(natives, host, "set_submodule", |_, _, this, [target, module, strict]| {
        set_submodule(this, &text("target", target)?, module, flag("strict", strict)?)
    });
    for name in ["add_module", "register_module"] {
        keyed(natives, host, name, |_, _, this, [name, module]| {
            let own = part_name(this, name, |old| old.is::<ModuleValue>())?;
            if !module.is::<ModuleValue>() && !module.is_unit() {
                fail!(ARGUMENT_TYPE, "a module is expected, or `()`, not {}", type_names::of_value(module));
            }
            let in_order = own.0.read().contains_key("_steps") || is_list(&own.0);
            match in_order && !module.is_unit() {
                true => add_step(&own.0, &own.1, module.clone())?,
                false => registered(&own.0, &own.1, module.clone(), MemberKind::Parameter)?,
            }
            Ok(Dynamic::UNIT)
        });
    }
    keyed(natives, host, "register_parameter", |_, _, this, [name, param]| {
        tensor_part(this, name, param, MemberKind::Parameter)
    });
    keyed(natives, host, "register_buffer", |_, _, this, [name, tensor, persistent]| {
        let kind = if flag("persistent", persistent)? { MemberKind::Buffer } else { MemberKind::Transient };
        tensor_part(this, name, tensor, kind)
    });
}

#[cold]
fn absent<'a>(what: &str, path: &str, known: impl Iterator<Item = &'a str>) -> Box<Diag> {
    let diag = Diag::error(code::UNKNOWN_PROPERTY, format!("the module has no {what} \"{path}\""));
    match nearest(path, known) {
        Some(near) => diag.help(format!("did you mean \"{near}\"?")),
        None => diag,
    }
}

fn submodule(this: &Dynamic, path: &str) -> Result<Dynamic> {
    let all = named_modules(this, false)?;
    match all.iter().find(|(name, _)| name == path) {
        Some((_, found)) => Ok(found.clone()),
        None => Err(absent("module", path, all.iter().map(|(name, _)| name.as_str()))),
    }
}

/// The module, and the name that a part of it is to have.
fn part_name(this: &Dynamic, name: &Dynamic, replaces: fn(&Dynamic) -> bool) -> Result<(ModuleValue, String)> {
    let (module, name) = (module_of(this).expect("a module"), text("name", name)?);
    if name.is_empty() || name.contains('.') || is_own(&name) {
        fail!(VALUE, "the name of a part has no dots and does not begin with `_`, and is not \"{name}\"");
    }
    if module.get(&name).is_some_and(|old| !old.is_unit() && !replaces(&old)) {
        fail!(VALUE, "the module has a field `{name}` of another kind");
    }
    Ok((module, name))
}

/// Whether a module is a list of numbered modules.
fn is_list(module: &ModuleValue) -> bool {
    list(&module.read()).is_some_and(|name| name == "layers")
}

fn tensor_part(this: &Dynamic, name: &Dynamic, value: &Dynamic, kind: MemberKind) -> Result<Dynamic> {
    let (module, name) = part_name(this, name, part::is_tensor)?;
    if value.is::<Sparse>() && kind == MemberKind::Parameter {
        return Err(part::sparse_parameter(&name));
    }
    match value.read_lock::<Tensor>() {
        Some(tensor) if kind == MemberKind::Parameter && !crate::tensor::history::is_leaf(&tensor) => {
            let diag = Diag::error(code::GRAD_LEAF, format!("`{name}` is the result of an operation"));
            return Err(diag.help("a parameter is a leaf: `nn::parameter(x)`"));
        }
        None if !value.is_unit() && !value.is::<Sparse>() => {
            fail!(ARGUMENT_TYPE, "a tensor is expected, or `()`, not {}", type_names::of_value(value))
        }
        _ => {}
    }
    registered(&module, &name, value.clone(), kind)?;
    Ok(Dynamic::UNIT)
}

/// Puts a module in the place of another one.
fn set_submodule(this: &Dynamic, path: &str, new: &Dynamic, strict: bool) -> Result<Dynamic> {
    if path.is_empty() {
        fail!(VALUE, "the whole module is no part of itself");
    }
    if !new.is::<ModuleValue>() {
        fail!(ARGUMENT_TYPE, "a module is expected, not {}", type_names::of_value(new));
    }
    if strict {
        let _known = submodule(this, path)?;
    }
    // The innermost module that the path goes through.
    let outer = |name: &str| name.is_empty() || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let all = named_modules(this, false)?;
    let parent = all.iter().filter(|(name, _)| outer(name)).max_by_key(|(name, _)| name.len());
    let (name, parent) = parent.expect("a module holds itself");
    let rest = path[name.len()..].trim_start_matches('.');
    let module = module_of(parent).expect("a module");
    let mut steps: Vec<&str> = rest.split('.').collect();
    let flat = {
        let fields = module.read();
        fields.keys().find(|field| is_flat(&fields, field)).map(|field| field.to_string())
    };
    if let Some(flat) = flat.as_deref().filter(|_| module.get(steps[0]).is_none()) {
        steps.insert(0, flat);
    }
    let mut field = module.get(steps[0]).unwrap_or_default();
    if !put(&mut field, &steps[1..], new) {
        return Err(absent("module", path, all.iter().map(|(name, _)| name.as_str())));
    }
    write(&module, steps[0], field)?;
    Ok(Dynamic::UNIT)
}

/// Writes into arrays and maps of modules; false where there is no such place.
fn put(value: &mut Dynamic, steps: &[&str], new: &Dynamic) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        *value = new.clone();
        return true;
    };
    if let Some(mut list) = value.write_lock::<Array>() {
        return step.parse::<usize>().ok().and_then(|at| list.get_mut(at)).is_some_and(|item| put(item, rest, new));
    }
    match value.write_lock::<Map>() {
        Some(mut map) => put(map.entry((*step).into()).or_insert(Dynamic::UNIT), rest, new),
        None => false,
    }
}
