//! How `print` shows a module or an optimizer. Of a module: its kind, its plain settings, the shapes of its tensors, and its children.

use crate::script::nn::module_methods;
use crate::script::values::module as values;
use crate::script::values::sparse::Sparse;
use crate::script::values::types::{Cell, Tensor};
use rhai::{Array, Dynamic, FnPtr, ImmutableString, Map};
use std::fmt::Write;

/// Bound: nesting of modules that is shown.
const MAX_DEPTH: usize = 16;

/// The text of a module; none for any other value.
pub fn module(value: &Dynamic) -> Option<String> {
    let map = values::module(value)?.read();
    Some(show(&kind(&map), &map, 0))
}

/// What a module is called in its text.
pub fn kind(map: &Map) -> String {
    let kind = map.get("_name").and_then(|kind| kind.read_lock::<ImmutableString>().map(|kind| kind.to_string()));
    kind.unwrap_or_else(|| "module".to_string())
}

/// The shapes of its own tensors, and its plain settings.
pub fn settings(map: &Map) -> String {
    let mut plain: Vec<String> = Vec::new();
    for name in module_methods::names(map) {
        let Some(value) = map.get(name.as_str()) else { continue };
        if let Some(tensor) = value.read_lock::<Tensor>() {
            plain.push(format!("{name} {:?}", tensor.shape().as_slice()));
        } else if let Some(sparse) = value.read_lock::<Sparse>() {
            plain.push(format!("{name} {:?} {}", sparse.size, sparse.layout()));
        }
    }
    for (name, value) in map.iter() {
        let hidden = name.starts_with('_') || name == "training" || value.is_unit();
        let shown = !hidden && (value.is_int() || value.is_float() || value.is_bool() || value.is_string());
        let sizes = value.read_lock::<Array>().is_some_and(|array| array.iter().all(|item| item.is_int()));
        if shown || (sizes && !hidden) {
            plain.push(format!("{name}={value}"));
        }
    }
    plain.join(", ")
}

fn show(kind: &str, map: &Map, depth: usize) -> String {
    let mut inner: Vec<(String, String)> = Vec::new();
    for name in module_methods::names(map) {
        let Some(value) = map.get(name.as_str()).filter(|value| !value.is::<Tensor>()) else { continue };
        children(&name, value, depth, &mut inner, module_methods::is_flat(map, &name));
    }
    let mut text = format!("{kind}({}", settings(map));
    if !inner.is_empty() {
        let pad = "  ".repeat(depth + 1);
        text.push('\n');
        for (name, part) in inner {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{pad}({name}): {part}");
        }
        text.push_str(&"  ".repeat(depth));
    }
    text.push(')');
    text
}

/// The modules below a value, with their names.
fn children(name: &str, value: &Dynamic, depth: usize, found: &mut Vec<(String, String)>, flat: bool) {
    if depth >= MAX_DEPTH {
        return;
    }
    if let Some(module) = values::module(value) {
        let map = module.read();
        found.push((name.to_string(), show(&kind(&map), &map, depth + 1)));
    } else if let Some(array) = value.read_lock::<Array>() {
        for (at, item) in array.iter().enumerate().filter(|(_, item)| item.read_lock::<FnPtr>().is_none()) {
            let name = if flat { at.to_string() } else { format!("{name}.{at}") };
            children(&name, item, depth, found, false);
        }
    }
}

/// The name of an optimizer, and the settings of its groups; none for any other map.
pub fn optimizer(map: &Map) -> Option<(String, Vec<Map>)> {
    map.get("_own")?;
    let name = map.get("name")?.read_lock::<ImmutableString>()?.to_string();
    let groups = map.get("groups")?.read_lock::<Cell>()?.get();
    let settings = |group: &Dynamic| {
        let group = group.read_lock::<Map>()?;
        group.get("settings")?.read_lock::<Cell>()?.get().try_cast::<Map>()
    };
    let groups: Option<Vec<Map>> = groups.read_lock::<Array>()?.iter().map(settings).collect();
    Some((name, groups?))
}
