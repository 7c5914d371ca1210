//! Sparse tensors as buffers of modules: they are moved, copied and loaded as a whole, since places and values belong
//! together.

use crate::base::diag::Result;
use crate::fail;
use crate::script::nn::module_methods::{MAX_DEPTH, is_flat};
use crate::script::values::module::{fields, module};
use crate::script::values::sparse::{self, Sparse};
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, Map};

/// What is to stand in the place of a sparse tensor of this path; none where it stays.
pub type Change<'a> = &'a mut dyn FnMut(&str, &Sparse) -> Result<Option<Sparse>>;

/// Puts others in the places of a module's sparse tensors.
pub fn change(this: &Dynamic, work: Change) -> Result<()> {
    if sparse::seen() {
        let new = walk(this, "", 0, work)?;
        debug_assert!(new.is_none(), "a module is changed in place");
    }
    Ok(())
}

/// A sparse tensor elsewhere; a dtype is for its values.
pub fn moved(e: &mut Engine, s: &Sparse, target: Target) -> Result<Sparse> {
    let places = Target { dtype: None, format: None, ..target };
    let mut part = |x: &Tensor, target: Target| {
        let plain = e.tensor(x.view());
        e.without_recording(|e| movement::to(e, &plain, target))
    };
    let dtype = target.dtype.filter(|_| s.values.dtype().is_float());
    let values = part(&s.values, Target { dtype, ..places })?;
    let indices = part(&s.indices, places)?;
    let crow = s.crow.as_ref().map(|crow| part(crow, places)).transpose()?;
    Ok(Sparse { values, indices, crow, ..s.clone() })
}

/// Changes the modules below a value; gives the value itself anew where it holds tensors that are others.
fn walk(value: &Dynamic, path: &str, depth: usize, work: Change) -> Result<Option<Dynamic>> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(s) = value.read_lock::<Sparse>().map(|s| s.clone()) {
        return Ok(work(path, &s)?.map(Dynamic::from));
    }
    let below = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
    if let Some(map) = fields(value).map(|map| map.clone()) {
        let mut changed = Vec::new();
        for (name, item) in map.iter().filter(|(name, _)| !name.starts_with('_')) {
            let path = if is_flat(&map, name) { path.to_string() } else { below(name) };
            changed.extend(walk(item, &path, depth + 1, work)?.map(|new| (name.clone(), new)));
        }
        let Some(module) = module(value) else {
            let mut map: Map = map;
            let any = !changed.is_empty();
            map.extend(changed);
            return Ok(any.then(|| map.into()));
        };
        if !changed.is_empty() && module.change(|fields| fields.extend(changed)).is_none() {
            fail!(VALUE, "the module is being read");
        }
        return Ok(None);
    }
    if let Some(mut items) = value.read_lock::<Array>().map(|items| items.clone()) {
        let mut any = false;
        for (at, item) in items.iter_mut().enumerate() {
            if let Some(new) = walk(item, &below(&at.to_string()), depth + 1, work)? {
                *item = new;
                any = true;
            }
        }
        return Ok(any.then(|| items.into()));
    }
    Ok(None)
}
