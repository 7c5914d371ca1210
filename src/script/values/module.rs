//! A module, as `nn::module(#{..})` makes it: named fields behind a handle. Copies of the value are the same module, as in Python.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::values::types::{Cell, Tensor};
use parking_lot::RwLock;
use parking_lot::lock_api::ArcRwLockReadGuard;
use rhai::{Array, Dynamic, DynamicReadLock, EvalAltResult, FnPtr, ImmutableString, Map, Position};
use std::ops::Deref;
use std::sync::Arc;

/// A module. Nobody calls script code while the fields are locked, so that a lock that is taken means a fault of ours,
/// never of the script.
#[derive(Clone)]
pub struct ModuleValue(Arc<RwLock<Map>>);

/// What stands in a field whose value a closure of the module gives, each time anew that it is read. It is no tensor, so
/// that nothing lists, moves or saves it.
#[derive(Clone)]
pub struct Computed {
    pub get: FnPtr,
    /// What a value is given to that is written to the field.
    pub set: Option<FnPtr>,
}

/// The fields of a module or the entries of a map, for as long as they are read.
pub enum Fields<'a> {
    Map(DynamicReadLock<'a, Map>),
    Module(ArcRwLockReadGuard<parking_lot::RawRwLock, Map>),
}

impl Deref for Fields<'_> {
    type Target = Map;

    fn deref(&self) -> &Map {
        match self {
            Fields::Map(map) => map,
            Fields::Module(map) => map,
        }
    }
}

/// The error of a name that is no field, as Rhai carries it; its words come when it is told.
#[derive(Clone)]
pub struct MissingField {
    pub name: String,
    pub fields: Vec<String>,
    pub of: Missing,
}

/// Where a name is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    InModule,
    InMap,
    /// In a map whose entry is changed: `m.count += 1`.
    ChangedInMap,
}

/// Bound: keys of a map that are looked through for a name like the missing one.
const LISTED_KEYS: usize = 256;

/// The error of a key that a map has not, at the place where it is named.
#[cold]
pub fn missing_key(map: &Map, name: &str, of: Missing, at: Position) -> Box<EvalAltResult> {
    let few = if map.len() > LISTED_KEYS { 0 } else { map.len() };
    let fields = map.keys().take(few).map(|key| key.to_string()).collect();
    let missing = MissingField { name: name.to_string(), fields, of };
    Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(missing), at))
}

/// The entries of a map, or the fields of a module.
pub fn fields(value: &Dynamic) -> Option<Fields<'_>> {
    if let Some(map) = value.read_lock::<Map>() {
        return Some(Fields::Map(map));
    }
    Some(Fields::Module(value.read_lock::<ModuleValue>()?.read()))
}

/// The handle of a value that is a module.
pub fn module(value: &Dynamic) -> Option<ModuleValue> {
    value.read_lock::<ModuleValue>().map(|module| module.clone())
}

/// The field that says whether a module trains.
const MODE: &str = "training";

/// Whether a module trains, of the field that keeps it in a cell.
pub fn mode(name: &str, field: &Dynamic) -> Option<Dynamic> {
    if name == MODE { field.read_lock::<Cell>().map(|cell| cell.get()) } else { None }
}

/// The name of the array that a list module wraps.
pub fn list(fields: &Map) -> Option<ImmutableString> {
    let name = fields.get("_flat")?.read_lock::<ImmutableString>()?.clone();
    fields.get(name.as_str())?.is_array().then_some(name)
}

/// The names of the fields that are the layers of a sequence, in order: `nn::sequential([["fc", layer], ..])`.
pub fn steps(fields: &Map) -> Option<Vec<ImmutableString>> {
    let names = fields.get("_steps")?.read_lock::<Array>()?;
    Some(names.iter().filter_map(|name| name.read_lock::<ImmutableString>().map(|name| name.clone())).collect())
}

/// Bound: nesting of values in which a module looks for itself.
const DEPTH: usize = 128;

impl ModuleValue {
    pub fn new(fields: Map) -> ModuleValue {
        ModuleValue(Arc::new(RwLock::new(fields)))
    }

    /// The fields, for as long as the guard lives.
    pub fn read(&self) -> ArcRwLockReadGuard<parking_lot::RawRwLock, Map> {
        self.0.read_arc_recursive()
    }

    /// Changes the fields; none where they are being read.
    pub fn change<R>(&self, work: impl FnOnce(&mut Map) -> R) -> Option<R> {
        self.0.try_write().map(|mut fields| work(&mut fields))
    }

    /// Puts a value into a field; false where the fields are being read. The mode keeps its cell, by which a module is
    /// known: `m.training = false`.
    pub fn set(&self, name: &str, value: Dynamic) -> bool {
        let cell = || self.read().get(name).and_then(|cell| cell.read_lock::<Cell>().map(|cell| cell.clone()));
        if value.is_bool()
            && let Some(mode) = cell().filter(|_| name == MODE)
        {
            mode.set(value);
            return true;
        }
        // What was there is dropped outside the lock: it may hold this very module.
        self.change(|fields| fields.insert(name.into(), value)).is_some()
    }

    /// The error of a name that is no field, at the place where it is named.
    #[cold]
    pub fn missing(&self, name: &str, at: Position) -> Box<EvalAltResult> {
        let fields = self.read().keys().map(|key| key.to_string()).collect();
        let missing = MissingField { name: name.to_string(), fields, of: Missing::InModule };
        Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(missing), at))
    }

    /// The value of a field; none if there is no such field.
    pub fn get(&self, name: &str) -> Option<Dynamic> {
        self.read().get(name).map(|field| mode(name, field).unwrap_or_else(|| field.flatten_clone()))
    }

    /// The closure that gives the value of a field, where one does.
    pub fn computed(&self, name: &str) -> Option<FnPtr> {
        self.read().get(name)?.read_lock::<Computed>().map(|computed| computed.get.clone())
    }

    /// The closure that takes what is written to a computed field, where there is one.
    pub fn setter(&self, name: &str) -> Option<FnPtr> {
        self.read().get(name)?.read_lock::<Computed>()?.set.clone()
    }

    /// Whether two handles belong to one module.
    pub fn same(&self, other: &ModuleValue) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where a container such as `nn::sequential` has its layers, or `nn::parameter_list` its tensors.
    pub fn layers(&self) -> Option<ImmutableString> {
        let fields = self.read();
        let is_list = fields.get("layers").is_some_and(Dynamic::is_array);
        if is_list { Some("layers".into()) } else { list(&fields) }
    }

    /// The name of the field that an index means, where layers are fields.
    pub fn step(&self, index: i64) -> Option<ImmutableString> {
        let mut names = steps(&self.read())?;
        let at = if index < 0 { index + names.len() as i64 } else { index };
        let at = usize::try_from(at).ok().filter(|at| *at < names.len())?;
        Some(names.swap_remove(at))
    }

    /// A sequence like this one with the layers of these names, and a mode of its own.
    pub fn with_steps(&self, kept: Array) -> ModuleValue {
        let mut fields = self.read().clone();
        for name in steps(&fields).unwrap_or_default() {
            let stays = kept.iter().any(|kept| kept.read_lock::<ImmutableString>().is_some_and(|kept| *kept == name));
            if !stays {
                fields.remove(name.as_str());
            }
        }
        fields.insert("_steps".into(), kept.into());
        let own = ModuleValue::new(fields);
        let mode = own.get(MODE);
        if let Some(on) = mode {
            own.change(|fields| fields.insert(MODE.into(), Dynamic::from(Cell::new(on))));
        }
        own
    }

    /// A container like this one with other layers in its field of this name, and a mode of its own.
    pub fn with_layers(&self, name: &str, layers: Dynamic) -> ModuleValue {
        let mut fields = self.read().clone();
        fields.insert(name.into(), layers);
        if let Some(on) = fields.get(MODE).and_then(|field| mode(MODE, field)) {
            fields.insert(MODE.into(), Dynamic::from(Cell::new(on)));
        }
        ModuleValue::new(fields)
    }

    /// Whether a value is this module, or holds it in arrays, maps and further modules. What closures take along does not
    /// count: nothing that goes over the parts of a module goes there.
    pub fn is_within(&self, value: &Dynamic) -> bool {
        self.is_below(value, DEPTH)
    }

    fn is_below(&self, value: &Dynamic, left: usize) -> bool {
        if left == 0 || !may_hold_modules(value) {
            return false;
        }
        if module(value).is_some_and(|other| self.same(&other)) {
            return true;
        }
        if let Some(items) = value.read_lock::<Array>() {
            return items.iter().any(|item| self.is_below(item, left - 1));
        }
        fields(value).is_some_and(|fields| fields.values().any(|item| self.is_below(item, left - 1)))
    }
}

/// Whether a field is the library's own: it is not listed, but can be named.
pub fn is_own(name: &str) -> bool {
    name.starts_with('_') || name == MODE
}

/// The error of a write to a field that is computed.
#[cold]
pub fn is_computed(name: &str) -> Box<Diag> {
    Diag::error(code::VALUE, format!("the field `{name}` is computed from others each time it is read"))
        .help(format!("`m.remove(\"{name}\")` takes the computation out; what it is computed from can be written"))
}

/// The error of a module that would become a part of itself.
#[cold]
pub fn holds_itself() -> Box<Diag> {
    Diag::error(code::VALUE, "a module cannot be a part of itself")
        .help("a closure may use the module that it belongs to as `this`; a cell may hold any module: `cell(m)`")
}

/// Whether a value is a module or can hold one.
pub fn may_hold_modules(value: &Dynamic) -> bool {
    value.is_shared() || value.is_array() || value.is_map() || value.is::<ModuleValue>()
}

/// Whether a copy of a value is as good as the value itself: it is a handle, or nothing changes it in place.
pub fn is_handle(value: &Dynamic) -> bool {
    value.is_int()
        || value.is_float()
        || value.is_bool()
        || value.is_unit()
        || value.is_fnptr()
        || value.is::<ModuleValue>()
        || value.is::<Tensor>()
        || value.is::<Cell>()
}
