//! The scripts' names of Rust types. Rhai knows the names that were registered with an interpreter; errors are
//! reported where no interpreter is available, and of types that were not registered with this one.

use crate::script::values::sparse::Sparse;
use crate::script::values::types::Tensor;
use parking_lot::RwLock;
use rhai::Dynamic;
use std::any::type_name;
use std::collections::BTreeMap;

/// Names by the Rust paths of types. One table for the process: a type has one name.
static NAMES: RwLock<BTreeMap<&'static str, &'static str>> = RwLock::new(BTreeMap::new());

/// Registers the scripts' name of a type.
pub fn note<T: 'static>(name: &'static str) {
    note_path(type_name::<T>(), name);
}

/// The same of a type by its path.
pub fn note_path(path: &'static str, name: &'static str) {
    if NAMES.read().get(path) != Some(&name) {
        NAMES.write().insert(path, name);
    }
}

/// The scripts' name of a type of which Rhai knows only the path; the last part of the path if it was not registered.
pub fn of(path: &str) -> &str {
    match NAMES.read().get(path) {
        Some(name) => name,
        // Iterators that functions of Rhai return; `type_of` calls each of them a range.
        None if path.contains("ops::range::") || path.contains("packages::iter_basic::") => "range",
        None => {
            let plain = path.split('<').next().unwrap_or(path);
            plain.rsplit("::").next().unwrap_or(plain)
        }
    }
}

/// `an event`, `a device`.
pub fn with_article(word: &str) -> String {
    let article = if word.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']) { "an" } else { "a" };
    format!("{article} {word}")
}

/// How messages name a value.
pub fn of_value(value: &Dynamic) -> String {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return format!("a tensor of shape {:?}", tensor.shape().as_slice());
    }
    if let Some(sparse) = value.read_lock::<Sparse>() {
        return format!("a sparse tensor of size {:?}", sparse.size);
    }
    match value.type_name() {
        "i64" => "an integer".into(),
        "f64" => "a float".into(),
        "bool" => "a bool".into(),
        "string" => "a string".into(),
        "array" => "an array".into(),
        "map" => "a map".into(),
        "()" => "`()`".into(),
        "Fn" => "a function".into(),
        "char" => "a character".into(),
        other => with_article(of(other)),
    }
}
