//! A module whose tensors are others for the time of a call (`func::functional_call`).

use super::module_methods::{MAX_DEPTH, is_flat, names};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::values::module::{ModuleValue, fields, module};
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::collections::BTreeMap;

/// The fields as they were; put back when this is dropped.
pub struct Swapped(Vec<(ModuleValue, ImmutableString, Dynamic)>);

impl Drop for Swapped {
    fn drop(&mut self) {
        for (module, name, before) in self.0.drain(..).rev() {
            let dropped = module.change(|fields| fields.insert((&*name).into(), before));
            drop(dropped);
        }
    }
}

/// The walk over a module.
struct Walk<'a> {
    tensors: &'a BTreeMap<String, Tensor>,
    /// The new tensor of each old one that has several names, with `tie_weights`.
    tied: Vec<(Tensor, Tensor)>,
    swapped: Swapped,
}

impl Swapped {
    /// Puts tensors in the places of these names. `ties`: also in other places of the tensor that was there. `strict`: all
    /// tensors of the module must be given.
    pub fn new(module: &Dynamic, tensors: &BTreeMap<String, Tensor>, ties: bool, strict: bool) -> Result<Swapped> {
        let mut walk = Walk { tensors, tied: Vec::new(), swapped: Swapped(Vec::new()) };
        let mut known = Vec::new();
        list(module, "", 0, &mut known)?;
        for (name, old) in &known {
            let Some(new) = tensors.get(name) else { continue };
            if let Some((_, other)) = walk.tied.iter().find(|(tied, _)| ties && tied.same(old)) {
                if !other.same(new) {
                    let text = format!("`{name}` is a tensor with several names, and gets different values by them");
                    return Err(
                        Diag::error(code::TRANSFORM, text).help("give it by one of its names; or `tie_weights: false`")
                    );
                }
                continue;
            }
            walk.tied.push((old.clone(), new.clone()));
        }
        if let Some(name) = tensors.keys().find(|name| !known.iter().any(|(known, _)| known == *name)) {
            return Err(Diag::error(code::TRANSFORM, format!("the module has no tensor `{name}`"))
                .help(format!("it has {}", listed(&known))));
        }
        if strict
            && let Some((name, _)) = known.iter().find(|(name, old)| {
                let is_tied = ties && walk.tied.iter().any(|(tied, _)| tied.same(old));
                !is_tied && !tensors.contains_key(name)
            })
        {
            return Err(Diag::error(code::TRANSFORM, format!("with `strict`, `{name}` must be given, too")));
        }
        if !ties {
            walk.tied.clear();
        }
        walk.swap(module, "")?;
        Ok(walk.swapped)
    }
}

fn listed(known: &[(String, Tensor)]) -> String {
    let names: Vec<String> = known.iter().take(8).map(|(name, _)| format!("`{name}`")).collect();
    let more = if known.len() > 8 { ", ..." } else { "" };
    if names.is_empty() { "none".into() } else { format!("{}{more}", names.join(", ")) }
}

fn path(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_string() } else { format!("{name}.{part}") }
}

/// Parts of a value that may hold tensors, with the names of these.
fn parts(value: &Dynamic, name: &str) -> Vec<(ImmutableString, Dynamic, String)> {
    if let Some(map) = fields(value) {
        let below = |part: &ImmutableString| if is_flat(&map, part) { name.to_string() } else { path(name, part) };
        return names(&map).into_iter().map(|part| (part.clone(), map[part.as_str()].clone(), below(&part))).collect();
    }
    let items = value.read_lock::<Array>().map_or(Array::new(), |items| items.clone());
    let named =
        |(at, item): (usize, Dynamic)| (ImmutableString::from(at.to_string()), item, path(name, &at.to_string()));
    items.into_iter().enumerate().map(named).collect()
}

fn tensor(value: &Dynamic) -> Option<Tensor> {
    value.read_lock::<Tensor>().map(|tensor| tensor.clone())
}

fn list(value: &Dynamic, name: &str, depth: usize, found: &mut Vec<(String, Tensor)>) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    for (_, part, below) in parts(value, name) {
        match tensor(&part) {
            Some(x) => found.push((below, x)),
            None => list(&part, &below, depth + 1, found)?,
        }
    }
    Ok(())
}

impl Walk<'_> {
    fn new_of(&self, name: &str, old: &Tensor) -> Option<Tensor> {
        let tied = || self.tied.iter().find(|(tied, _)| tied.same(old)).map(|(_, new)| new.clone());
        self.tensors.get(name).cloned().or_else(tied)
    }

    /// Changes the modules below a value; gives the value itself anew where it holds tensors that are others.
    fn swap(&mut self, value: &Dynamic, name: &str) -> Result<Option<Dynamic>> {
        let mut changed: Vec<(ImmutableString, Dynamic)> = Vec::new();
        for (part, item, below) in parts(value, name) {
            let new = match tensor(&item) {
                Some(old) => self.new_of(&below, &old).map(Dynamic::from),
                None => self.swap(&item, &below)?,
            };
            changed.extend(new.map(|new| (part, new)));
        }
        if changed.is_empty() {
            return Ok(None);
        }
        if let Some(module) = module(value) {
            for (part, new) in changed {
                let Some(Some(before)) = module.change(|fields| fields.insert((&*part).into(), new)) else {
                    fail!(INTERNAL, "the fields of a module are in use");
                };
                self.swapped.0.push((module.clone(), part, before));
            }
            return Ok(None);
        }
        if let Some(map) = value.read_lock::<Map>() {
            let mut map = map.clone();
            changed.into_iter().for_each(|(part, new)| _ = map.insert((&*part).into(), new));
            return Ok(Some(map.into()));
        }
        let mut items = value.read_lock::<Array>().map_or(Array::new(), |items| items.clone());
        for (part, new) in changed {
            if let Ok(at) = part.parse::<usize>() {
                items[at] = new;
            }
        }
        Ok(Some(items.into()))
    }
}
