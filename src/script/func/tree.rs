//! Nested arrays and maps of tensors, as function transforms take and give them (PyTorch's pytrees).

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, Map};

/// Bound: nesting of what a transform takes.
const DEPTH: usize = 64;

/// The tensor that a value is.
pub fn tensor(value: &Dynamic) -> Option<Tensor> {
    value.read_lock::<Tensor>().map(|tensor| tensor.clone())
}

/// All leaves, in order; those of a map by the order of its keys.
pub fn leaves(value: &Dynamic) -> Result<Vec<Dynamic>> {
    let mut found = Vec::new();
    collect(value, 0, &mut found)?;
    Ok(found)
}

fn collect(value: &Dynamic, depth: usize, found: &mut Vec<Dynamic>) -> Result<()> {
    if depth > DEPTH {
        return Err(Diag::error(code::VALUE, format!("arrays and maps are nested more than {DEPTH} deep")));
    }
    if let Some(items) = value.read_lock::<Array>() {
        return items.iter().try_for_each(|item| collect(item, depth + 1, found));
    }
    if let Some(map) = value.read_lock::<Map>() {
        return map.values().try_for_each(|item| collect(item, depth + 1, found));
    }
    found.push(value.flatten_clone());
    Ok(())
}

/// All leaves, which must be tensors; `what` names them in the message.
pub fn tensors(value: &Dynamic, what: &str) -> Result<Vec<Tensor>> {
    leaves(value)?
        .iter()
        .map(|leaf| {
            tensor(leaf).ok_or_else(|| {
                let found = type_names::of_value(leaf);
                let text = format!("{what} must be a tensor, or arrays and maps of tensors, and not hold {found}");
                Diag::error(code::TRANSFORM, text)
            })
        })
        .collect()
}

/// The same structure with other leaves.
pub fn rebuilt(value: &Dynamic, leaves: &mut dyn Iterator<Item = Dynamic>) -> Dynamic {
    if let Some(items) = value.read_lock::<Array>() {
        return items.iter().map(|item| rebuilt(item, leaves)).collect::<Array>().into();
    }
    if let Some(map) = value.read_lock::<Map>() {
        return Dynamic::from_map(crate::base::order::map(
            map.iter().map(|(key, item)| (key.clone(), rebuilt(item, leaves))),
        ));
    }
    leaves.next().unwrap_or_default()
}

/// The same structure with other tensors.
pub fn of_tensors(value: &Dynamic, tensors: Vec<Tensor>) -> Dynamic {
    rebuilt(value, &mut tensors.into_iter().map(Dynamic::from))
}

/// Whether two values have the same arrays and maps around their leaves.
pub fn is_alike(a: &Dynamic, b: &Dynamic) -> bool {
    if let (Some(a), Some(b)) = (a.read_lock::<Array>(), b.read_lock::<Array>()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_alike(a, b));
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Map>(), b.read_lock::<Map>()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && is_alike(a, b));
    }
    [a, b].iter().all(|x| !x.is_array() && !x.is_map())
}

/// The leaves of `values`, one for each leaf of `like`: a leaf of `values` stands for all that `like` has in its place.
pub fn spread(values: &Dynamic, like: &Dynamic, found: &mut Vec<Dynamic>) -> bool {
    if let Some(items) = like.read_lock::<Array>() {
        return match values.read_lock::<Array>() {
            Some(values) => {
                values.len() == items.len()
                    && values.iter().zip(items.iter()).all(|(value, item)| spread(value, item, found))
            }
            None => !values.is_map() && items.iter().all(|item| spread(values, item, found)),
        };
    }
    if let Some(map) = like.read_lock::<Map>() {
        return match values.read_lock::<Map>() {
            Some(values) => {
                values.len() == map.len()
                    && values.iter().zip(map.iter()).all(|((k, value), (l, item))| k == l && spread(value, item, found))
            }
            None => !values.is_array() && map.values().all(|item| spread(values, item, found)),
        };
    }
    found.push(values.clone());
    !values.is_array() && !values.is_map()
}
