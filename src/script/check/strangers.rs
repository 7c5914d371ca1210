//! Methods that a value of a known type has not, although others have them.

use super::flow::Flow;
use super::value::Value;
use crate::op::table;
use crate::script::error::members_of;
use crate::script::manual::{self, Form, Native};
use std::collections::BTreeMap;

impl Flow<'_> {
    /// Whether a method is known of other plain values alone than of those of a type. The interpreter lists many with a
    /// first parameter of any type.
    pub(super) fn is_of_others(&mut self, name: &str, of: &str) -> bool {
        let owners: &[&str] = match of {
            "array" => &["xs"],
            "string" => &["text"],
            "i64" | "f64" => &["n"],
            _ => return false,
        };
        let is_other = |native: &Native| match native.form {
            Form::Of(owner) => ["xs", "text", "m", "set", "n"].contains(&owner) && !owners.contains(&owner),
            _ => false,
        };
        let mut named = manual::natives().filter(|native| native.name == name).peekable();
        named.peek().is_some()
            && named.all(is_other)
            && !self.world.is_open
            && !self.is_own(name)
            && !members_of(of).iter().any(|member| member.strip_suffix('(') == Some(name))
            && !(0..4).any(|count| self.world.takes_first(name, count, of))
    }

    /// `m.b()` where the map has no such entry, or one that cannot be called.
    pub(super) fn entry_is_no_method(&mut self, map: &BTreeMap<String, Value>, name: &str, count: usize) -> bool {
        let entry_is_none = map.get(name).is_none_or(|entry| {
            matches!(entry, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::Array(_))
        });
        let is_known = || members_of("map").iter().any(|member| member.strip_suffix('(') == Some(name));
        entry_is_none
            && !self.world.is_open
            && !self.is_own(name)
            && !is_known()
            && table::called(name).is_none()
            && manual::native(name).is_none()
            && !self.world.takes_first(name, count, "?")
            && !self.world.takes_first(name, count, "map")
    }
}
