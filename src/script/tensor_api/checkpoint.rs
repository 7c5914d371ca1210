//! Nested maps in a file that holds one flat list of tensors: a checkpoint as in PyTorch, with states, numbers and
//! names. Nested names are joined by dots, which other readers of `.safetensors` see; the file's metadata records
//! what was a map, a number or a text, so that `load` returns what `save` got.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::DType;
use crate::base::span::Origin;
use crate::fail;
use crate::files::{Array, Named};
use crate::script::host::Host;
use crate::script::tensor_api::storage::array;
use crate::script::values::module::ModuleValue;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Dynamic, ImmutableString, Map};
use std::collections::{BTreeMap, BTreeSet};

/// Keys of the metadata; the lists have one name a line.
const MAPS: &str = "tscript.maps";
const NUMBERS: &str = "tscript.numbers";
const TEXT: &str = "tscript.text.";
/// Bound: nesting of maps; recursion is as deep, including that of dropping what was loaded.
const DEPTH: usize = 16;

#[derive(Default)]
struct Flat {
    arrays: Vec<(String, Array)>,
    maps: Vec<String>,
    numbers: Vec<String>,
    texts: Vec<(String, String)>,
}

/// Flattens a map.
pub fn to_named(host: &Host, map: &Map) -> Result<Named> {
    let mut flat = Flat::default();
    flat.gather(host, map, "", 0)?;
    let mut named = Named::new(flat.arrays);
    for (key, names) in [(MAPS, flat.maps), (NUMBERS, flat.numbers)] {
        if !names.is_empty() {
            named.metadata.push((key.to_string(), names.join("\n")));
        }
    }
    named.metadata.extend(flat.texts.into_iter().map(|(name, text)| (format!("{TEXT}{name}"), text)));
    Ok(named)
}

impl Flat {
    fn gather(&mut self, host: &Host, map: &Map, within: &str, depth: usize) -> Result<()> {
        if map.values().any(Dynamic::is_fnptr) {
            return Err(has_code(within));
        }
        if depth > DEPTH {
            fail!(VALUE, "maps are nested more than {DEPTH} deep");
        }
        for (key, value) in map.iter() {
            let name = if within.is_empty() { key.to_string() } else { format!("{within}.{key}") };
            if let Some(tensor) = value.read_lock::<Tensor>() {
                self.arrays.push((name, array(host, &tensor)?));
                continue;
            }

            self.plain(host, value, key, name, depth)?;
            // `model.weight` next to a map `model` would become a part of it.
            let start = format!("{key}.");
            if value.is_map() && map.keys().any(|other| other.starts_with(&start)) {
                fail!(VALUE, "the map `{key}` and an entry whose name begins with `{start}` cannot be distinguished");
            }
        }
        Ok(())
    }

    fn plain(&mut self, host: &Host, value: &Dynamic, key: &str, name: String, depth: usize) -> Result<()> {
        if name.contains('\n') {
            fail!(VALUE, "the name {name:?} has a line feed");
        }
        if value.is::<ModuleValue>() {
            return Err(has_code(&name));
        }
        if let Some(inner) = value.read_lock::<Map>() {
            self.maps.push(name.clone());
            return self.gather(host, &inner, &name, depth + 1);
        }
        if let Some(text) = value.read_lock::<ImmutableString>() {
            self.texts.push((name, text.to_string()));
            return Ok(());
        }
        let (dtype, bytes) = match (value.as_int(), value.as_float(), value.as_bool()) {
            (Ok(i), ..) => (DType::I64, i.to_le_bytes().to_vec()),
            (_, Ok(x), _) => (DType::F64, x.to_le_bytes().to_vec()),
            (.., Ok(on)) => (DType::Bool, vec![on as u8]),
            _ => {
                return Err(refused(
                    &format!("the entry `{key}` must be a tensor, a number, a string or a map of them"),
                    value,
                ));
            }
        };
        self.arrays.push((name.clone(), Array::new(dtype, Vec::new(), bytes)?));
        self.numbers.push(name);
        Ok(())
    }
}

/// A module or an optimizer in place of its tensors; `name` is its entry, empty for the whole.
pub fn has_code(name: &str) -> Box<Diag> {
    let what = if name.is_empty() { "what is saved".to_string() } else { format!("the entry `{name}`") };
    Diag::error(code::ARGUMENT_TYPE, format!("{what} holds functions, which no file can"))
        .label(Origin::NONE, Focus::Argument(1), "cannot be saved")
        .help("a module or optimizer is saved by its state: `save(path, model.state_dict())`")
}

/// A value that no file holds.
pub fn refused(expected: &str, value: &Dynamic) -> Box<Diag> {
    let text = format!("{expected}, not {}", type_names::of_value(value));
    let diag = Diag::error(code::ARGUMENT_TYPE, text).label(Origin::NONE, Focus::Argument(1), "cannot be saved");
    diag.help("make a tensor of it first, for example `tensor(value)`")
}

/// The nested map of a file's flat list; `tensor` converts entries that are not plain numbers.
pub fn from_named(named: Named, mut tensor: impl FnMut(Array) -> Result<Dynamic>) -> Result<Dynamic> {
    let list = |key: &str| named.metadata.iter().find(|(known, _)| known == key).map_or("", |(_, text)| text);
    let maps: BTreeSet<&str> = list(MAPS).split('\n').filter(|name| !name.is_empty()).collect();
    let numbers: BTreeSet<&str> = list(NUMBERS).split('\n').collect();
    // The entries of each map; the empty name is the outermost one.
    let mut inside: BTreeMap<&str, Map> = maps.iter().map(|&name| (name, Map::new())).collect();
    inside.insert("", Map::new());
    let put = |inside: &mut BTreeMap<&str, Map>, name: &str, value: Dynamic| {
        let (within, key) = split(&maps, name);
        if let Some(map) = inside.get_mut(within) {
            map.insert(key.into(), value);
        }
    };
    for (name, text) in &named.metadata {
        if let Some(name) = name.strip_prefix(TEXT) {
            put(&mut inside, name, text.clone().into());
        }
    }
    for (name, array) in named.arrays.iter() {
        let plain = if numbers.contains(name.as_str()) { number(array) } else { None };
        let value = match plain {
            Some(value) => value,
            None => tensor(array.clone())?,
        };
        put(&mut inside, name, value);
    }
    // The innermost first, so that each is complete when it is put into the next.
    let mut order: Vec<(usize, &str)> = maps.iter().map(|&name| (depth(&maps, name), name)).collect();
    order.sort_unstable();
    if order.last().is_some_and(|(depth, _)| *depth > DEPTH) {
        fail!(FILE_FORMAT, "maps are nested more than {DEPTH} deep");
    }
    for (_, name) in order.into_iter().rev() {
        let whole = inside.remove(name).unwrap_or_default();
        put(&mut inside, name, whole.into());
    }
    Ok(inside.remove("").unwrap_or_default().into())
}

/// The map that contains a name, and its name there.
fn split<'a>(maps: &BTreeSet<&str>, name: &'a str) -> (&'a str, &'a str) {
    let dots = name.rmatch_indices('.').map(|(at, _)| (&name[..at], &name[at + 1..]));
    let mut dots = dots;
    dots.find(|(within, _)| maps.contains(within)).unwrap_or(("", name))
}

/// The nesting depth of a map, limited.
fn depth(maps: &BTreeSet<&str>, name: &str) -> usize {
    let (mut name, mut count) = (name, 0);
    while !name.is_empty() && count <= DEPTH {
        name = split(maps, name).0;
        count += 1;
    }
    count
}

fn number(array: &Array) -> Option<Dynamic> {
    if !array.shape().is_empty() {
        return None;
    }
    let eight = || array.bytes().try_into().ok();
    match array.dtype() {
        DType::I64 => Some(Dynamic::from_int(i64::from_le_bytes(eight()?))),
        DType::F64 => Some(Dynamic::from_float(f64::from_le_bytes(eight()?))),
        DType::Bool => Some(Dynamic::from_bool(*array.bytes().first()? != 0)),
        _ => None,
    }
}
