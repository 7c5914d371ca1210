//! A set of values. Elements stay in the order in which they came, so that a script gives the same each time. A set is a
//! value, as an array is: copies are apart.

use crate::base::arithmetic::whole;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::values::ascii::text_of;
use crate::script::values::type_names;
use crate::script::values::types::{DTypeValue, DeviceValue, Tensor};
use rhai::{Array, Dynamic, ImmutableString};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// A set. Cloning shares the elements until one of the two changes.
#[derive(Clone, Default)]
pub struct Set(Arc<Entries>);

#[derive(Clone, Default)]
struct Entries {
    /// In the order in which they came; those that were taken out leave a gap.
    values: Vec<Option<Dynamic>>,
    /// Before it there are gaps alone.
    first: usize,
    places: HashMap<Key, usize, foldhash::fast::RandomState>,
}

/// Bound: nesting of arrays in a set, and so the depth of the recursion.
const DEPTH: usize = 100;

/// What two equal elements have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    Unit,
    Bool(bool),
    Int(i64),
    /// A float that is no integer, by its bits.
    Float(u64),
    Text(ImmutableString),
    List(Vec<Key>),
    Other(&'static str, String),
}

impl Key {
    pub fn of(value: &Dynamic) -> Result<Key> {
        Key::within(value, 0)
    }

    fn within(value: &Dynamic, depth: usize) -> Result<Key> {
        if value.is_shared() {
            return Key::within(&value.flatten_clone(), depth);
        }
        // Rhai's `as_int` and its kin look for the name of the type where they fail.
        let key = if value.is_int() {
            value.as_int().ok().map(Key::Int)
        } else if value.is_float() {
            value.as_float().ok().map(|x| whole(x).map_or(Key::Float(x.to_bits()), Key::Int))
        } else if value.is_bool() {
            value.as_bool().ok().map(Key::Bool)
        } else if value.is_char() {
            value.as_char().ok().map(|c| Key::Text(text_of(c)))
        } else {
            value.is_unit().then_some(Key::Unit)
        };
        key.map_or_else(|| Key::of_other(value, depth), Ok)
    }

    fn of_other(value: &Dynamic, depth: usize) -> Result<Key> {
        if let Some(text) = value.read_lock::<ImmutableString>() {
            return Ok(Key::Text(text.clone()));
        }
        if let Some(all) = value.read_lock::<Array>() {
            if depth == DEPTH {
                crate::fail!(VALUE, "an array that is nested more than {DEPTH} deep cannot be in a set");
            }
            return all.iter().map(|value| Key::within(value, depth + 1)).collect::<Result<_>>().map(Key::List);
        }
        if let Some(dtype) = value.read_lock::<DTypeValue>() {
            return Ok(Key::Other("dtype", dtype.0.to_string()));
        }
        if let Some(device) = value.read_lock::<DeviceValue>() {
            return Ok(Key::Other("device", device.0.to_string()));
        }
        let diag = Diag::error(code::ARGUMENT_TYPE, format!("{} cannot be in a set", type_names::of_value(value)));
        Err(match value.is::<Tensor>() {
            true => diag.help("`x.item()` is the number of a tensor with one element"),
            false => diag.help("numbers, strings, bools and arrays of these can"),
        })
    }
}

impl Set {
    pub fn iter(&self) -> impl Iterator<Item = &Dynamic> {
        self.0.values.iter().flatten()
    }

    pub fn len(&self) -> usize {
        self.0.places.len()
    }

    pub fn is_disjoint(&self, other: &Set) -> bool {
        !self.0.places.keys().any(|key| other.has(key))
    }

    pub fn has(&self, key: &Key) -> bool {
        self.0.places.contains_key(key)
    }

    /// The elements with their keys, in order.
    pub fn entries(&self) -> Vec<(&Key, &Dynamic)> {
        let mut entries: Vec<(usize, &Key)> = self.0.places.iter().map(|(key, at)| (*at, key)).collect();
        entries.sort_unstable_by_key(|(at, _)| *at);
        entries.into_iter().filter_map(|(at, key)| Some((key, self.0.values[at].as_ref()?))).collect()
    }

    pub fn put(&mut self, key: Key, value: Dynamic) {
        let entries = Arc::make_mut(&mut self.0);
        let at = entries.values.len();
        if let Entry::Vacant(free) = entries.places.entry(key) {
            free.insert(at);
            entries.values.push(Some(value));
        }
    }

    pub fn add(&mut self, value: Dynamic) -> Result<()> {
        let key = Key::of(&value)?;
        self.put(key, value);
        Ok(())
    }

    pub fn take(&mut self, key: &Key) -> Option<Dynamic> {
        if !self.has(key) {
            return None;
        }
        let entries = Arc::make_mut(&mut self.0);
        let taken = entries.places.remove(key).and_then(|at| entries.values[at].take());
        if entries.values.len() > 16 && entries.places.len() * 2 < entries.values.len() {
            *self = self.entries().into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        taken
    }

    /// Takes out the element that came first.
    pub fn take_first(&mut self) -> Option<Dynamic> {
        let Entries { values, first, .. } = &*self.0;
        let at = *first + values[*first..].iter().position(Option::is_some)?;
        let key = Key::of(values[at].as_ref()?).ok()?;
        Arc::make_mut(&mut self.0).first = at;
        self.take(&key)
    }

    /// The elements for which a question about their keys is answered by yes.
    fn those(&self, asks: impl Fn(&Key) -> bool) -> Set {
        let entries = self.entries().into_iter().filter(|(key, _)| asks(key));
        entries.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub fn is_within(&self, other: &Set) -> bool {
        self.0.places.keys().all(|key| other.has(key))
    }

    /// Takes the elements of another set in.
    pub fn unite(&mut self, other: &Set) {
        other.entries().into_iter().for_each(|(key, value)| self.put(key.clone(), value.clone()));
    }

    pub fn combined(&self, how: Combine, other: &Set) -> Set {
        match how {
            Combine::Union => {
                let mut all = self.clone();
                other.entries().into_iter().for_each(|(key, value)| all.put(key.clone(), value.clone()));
                all
            }
            Combine::Intersection => self.those(|key| other.has(key)),
            Combine::Difference => self.those(|key| !other.has(key)),
            Combine::Symmetric => {
                self.those(|key| !other.has(key)).combined(Combine::Union, &other.those(|key| !self.has(key)))
            }
        }
    }
}

impl FromIterator<(Key, Dynamic)> for Set {
    fn from_iter<I: IntoIterator<Item = (Key, Dynamic)>>(entries: I) -> Set {
        let mut set = Set::default();
        entries.into_iter().for_each(|(key, value)| set.put(key, value));
        set
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Set) -> bool {
        self.len() == other.len() && self.is_within(other)
    }
}

#[derive(Clone, Copy)]
pub enum Combine {
    Union,
    Intersection,
    Difference,
    Symmetric,
}
