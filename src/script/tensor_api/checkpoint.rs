//! Nested maps and arrays in a file that holds one flat list of tensors: a checkpoint as in PyTorch, with states, numbers
//! and names. Nested names are joined by dots, which other readers of `.safetensors` see, and elements of arrays are named
//! by their numbers; the file's metadata records what was a map, an array, a number, a text or `()`, so that `load`
//! returns what `save` got. An array of numbers of one kind is one tensor in the file.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::DType;
use crate::base::span::Origin;
use crate::fail;
use crate::files::{Array, Named};
use crate::script::host::Host;
use crate::script::tensor_api::storage::array;
use crate::script::values::module::ModuleValue;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Dynamic, ImmutableString, Map};
use std::collections::{BTreeMap, BTreeSet};

/// Keys of the metadata; the lists have one name a line.
const MAPS: &str = "tscript.maps";
/// Arrays whose elements have their own entries.
const ARRAYS: &str = "tscript.arrays";
const NUMBERS: &str = "tscript.numbers";
/// Arrays that are one tensor.
const LISTS: &str = "tscript.lists";
const UNITS: &str = "tscript.units";
const TEXT: &str = "tscript.text.";
/// Bound: nesting of maps and arrays; recursion is as deep, including that of dropping what was loaded.
const DEPTH: usize = 16;

#[derive(Default)]
struct Flat {
    arrays: Vec<(String, Array)>,
    maps: Vec<String>,
    parts: Vec<String>,
    numbers: Vec<String>,
    lists: Vec<String>,
    units: Vec<String>,
    texts: Vec<(String, String)>,
}

/// Flattens a map.
pub fn to_named(host: &Host, map: &Map) -> Result<Named> {
    let mut flat = Flat::default();
    flat.gather(host, map, "", 0)?;
    let mut named = Named::new(flat.arrays);
    let kinds = [flat.maps, flat.parts, flat.numbers, flat.lists, flat.units];
    for (key, names) in [MAPS, ARRAYS, NUMBERS, LISTS, UNITS].into_iter().zip(kinds) {
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
        for (key, value) in map.iter() {
            let name = if within.is_empty() { key.to_string() } else { format!("{within}.{key}") };
            self.entry(host, value, name, depth)?;
            // `model.weight` next to a map `model` would become a part of it.
            let start = format!("{key}.");
            if is_nested(value) && map.keys().any(|other| other.starts_with(&start)) {
                let what = type_names::of_value(value);
                fail!(VALUE, "`{key}`, {what}, and an entry whose name begins with `{start}` cannot be distinguished");
            }
        }
        Ok(())
    }

    /// What is in a map or an array, and has a name in the file.
    fn entry(&mut self, host: &Host, value: &Dynamic, name: String, depth: usize) -> Result<()> {
        if let Some(tensor) = value.read_lock::<Tensor>() {
            self.arrays.push((name, array(host, &tensor)?));
            return Ok(());
        }
        if name.contains('\n') {
            fail!(VALUE, "the name {name:?} has a line feed");
        }
        if value.is::<ModuleValue>() || value.is_fnptr() {
            return Err(has_code(&name));
        }
        if name.is_empty() {
            fail!(VALUE, "only a tensor can have the empty name in a file, not {}", type_names::of_value(value));
        }
        if depth >= DEPTH && is_nested(value) {
            fail!(VALUE, "maps and arrays are nested more than {DEPTH} deep");
        }
        if let Some(inner) = value.read_lock::<Map>() {
            self.maps.push(name.clone());
            return self.gather(host, &inner, &name, depth + 1);
        }
        if let Some(inner) = value.read_lock::<rhai::Array>() {
            if let Some(list) = list(&inner)? {
                self.lists.push(name.clone());
                self.arrays.push((name, list));
                return Ok(());
            }
            self.parts.push(name.clone());
            let mut elements = inner.iter().enumerate();
            return elements.try_for_each(|(at, value)| self.entry(host, value, format!("{name}.{at}"), depth + 1));
        }
        self.plain(value, name)
    }

    fn plain(&mut self, value: &Dynamic, name: String) -> Result<()> {
        if value.is_unit() {
            self.units.push(name);
            return Ok(());
        }
        if let Some(text) = value.read_lock::<ImmutableString>() {
            self.texts.push((name, text.to_string()));
            return Ok(());
        }
        let Some((dtype, bytes)) = number_bytes(value) else {
            let expected =
                format!("the entry `{name}` must be a tensor, a number, a string, `()`, or an array or a map of them");
            return Err(refused(&expected, value));
        };
        self.arrays.push((name.clone(), Array::new(dtype, Vec::new(), bytes)?));
        self.numbers.push(name);
        Ok(())
    }
}

fn is_nested(value: &Dynamic) -> bool {
    value.read_lock::<Map>().is_some() || value.read_lock::<rhai::Array>().is_some()
}

/// An integer, a float or a truth value as the file has it: exactly.
fn number_bytes(value: &Dynamic) -> Option<(DType, Vec<u8>)> {
    match (value.as_int(), value.as_float(), value.as_bool()) {
        (Ok(i), ..) => Some((DType::I64, i.to_le_bytes().to_vec())),
        (_, Ok(x), _) => Some((DType::F64, x.to_le_bytes().to_vec())),
        (.., Ok(on)) => Some((DType::Bool, vec![on as u8])),
        _ => None,
    }
}

/// The numbers of an array, if all are of one kind. An array without elements is one.
fn list(elements: &[Dynamic]) -> Result<Option<Array>> {
    let mut all = Vec::new();
    let mut kind = DType::I64;
    for (at, value) in elements.iter().enumerate() {
        match number_bytes(value) {
            Some((dtype, bytes)) if at == 0 || dtype == kind => {
                kind = dtype;
                all.extend(bytes);
            }
            _ => return Ok(None),
        }
    }
    Array::new(kind, vec![elements.len()], all).map(Some)
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
    if value.is::<Sparse>() {
        return diag.help("write `s.to_dense()`, or its parts: `#{i: s.indices(), v: s.values()}`, for `sparse_coo_tensor(i, v, size)`");
    }
    diag.help("make a tensor of it first, for example `tensor(value)`")
}

/// What a name stands for, while its parts are gathered: keys are names in a map, or numbers in an array.
type Parts<'a> = BTreeMap<&'a str, Map>;

/// The nested map of a file's flat list; `tensor` converts entries that are not plain numbers.
pub fn from_named(named: Named, mut tensor: impl FnMut(Array) -> Result<Dynamic>) -> Result<Dynamic> {
    let names_of = |key: &str| -> BTreeSet<&str> {
        let text = named.metadata.iter().find(|(known, _)| known == key).map_or("", |(_, text)| text);
        text.split('\n').filter(|name| !name.is_empty()).collect()
    };
    let (maps, arrays) = (names_of(MAPS), names_of(ARRAYS));
    let (numbers, lists, units) = (names_of(NUMBERS), names_of(LISTS), names_of(UNITS));
    let nested: BTreeSet<&str> = crate::base::order::set(maps.union(&arrays).copied());
    // The empty name is the outermost map.
    let mut inside: Parts = nested.iter().chain(&[""]).map(|&name| (name, Map::new())).collect();
    let put = |inside: &mut Parts, name: &str, value: Dynamic| {
        let (within, key) = split(&nested, name);
        if let Some(map) = inside.get_mut(within) {
            map.insert(key.into(), value);
        }
    };
    for name in units {
        put(&mut inside, name, Dynamic::UNIT);
    }
    for (name, text) in &named.metadata {
        if let Some(name) = name.strip_prefix(TEXT) {
            put(&mut inside, name, text.clone().into());
        }
    }
    for (name, array) in named.arrays.iter() {
        let plain = match name.as_str() {
            name if numbers.contains(name) && array.shape().is_empty() => {
                elements(array).and_then(|all| all.into_iter().next())
            }
            name if lists.contains(name) && array.shape().len() == 1 => elements(array).map(Dynamic::from),
            _ => None,
        };
        let value = plain.map_or_else(|| tensor(array.clone()), Ok)?;
        put(&mut inside, name, value);
    }
    // The innermost first, so that each is complete when it is put into the next.
    let mut order: Vec<(usize, &str)> = nested.iter().map(|&name| (depth(&nested, name), name)).collect();
    crate::base::order::by(&mut order, Ord::cmp);
    if order.last().is_some_and(|(depth, _)| *depth > DEPTH) {
        fail!(FILE_FORMAT, "maps and arrays are nested more than {DEPTH} deep");
    }
    for (_, name) in order.into_iter().rev() {
        let parts = inside.remove(name).unwrap_or_default();
        let whole = if arrays.contains(name) { in_order(name, parts)? } else { parts.into() };
        put(&mut inside, name, whole);
    }
    Ok(inside.remove("").unwrap_or_default().into())
}

/// The elements of an array by their numbers.
fn in_order(name: &str, parts: Map) -> Result<Dynamic> {
    let mut elements: Vec<Dynamic> = vec![Dynamic::UNIT; parts.len()];
    let mut found = vec![false; parts.len()];
    for (key, value) in parts {
        match key.parse::<usize>().ok().filter(|&at| at < found.len() && !found[at]) {
            Some(at) => (elements[at], found[at]) = (value, true),
            None => fail!(FILE_FORMAT, "the array `{name}` has elements missing, or one named `{key}`"),
        }
    }
    Ok(elements.into())
}

/// The map or array that contains a name, and its name there.
fn split<'a>(nested: &BTreeSet<&str>, name: &'a str) -> (&'a str, &'a str) {
    let mut dots = name.rmatch_indices('.').map(|(at, _)| (&name[..at], &name[at + 1..]));
    dots.find(|(within, _)| nested.contains(within)).unwrap_or(("", name))
}

/// The nesting depth of a map, limited.
fn depth(nested: &BTreeSet<&str>, name: &str) -> usize {
    let (mut name, mut count) = (name, 0);
    while !name.is_empty() && count <= DEPTH {
        name = split(nested, name).0;
        count += 1;
    }
    count
}

/// Numbers as the script has them, if the array's dtype is that of one of its kinds.
fn elements(array: &Array) -> Option<rhai::Array> {
    let eights = || array.bytes().chunks_exact(8).filter_map(|eight| eight.try_into().ok());
    match array.dtype() {
        DType::I64 => Some(eights().map(|eight| Dynamic::from_int(i64::from_le_bytes(eight))).collect()),
        DType::F64 => Some(eights().map(|eight| Dynamic::from_float(f64::from_le_bytes(eight))).collect()),
        DType::Bool => Some(array.bytes().iter().map(|&byte| Dynamic::from_bool(byte != 0)).collect()),
        _ => None,
    }
}
