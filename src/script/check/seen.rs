//! The values that the walk over a text came by, for editors: by the token at which an expression has its focus, and
//! of what stands before a dot by the token of the member's name.
//!
//! Parameters are not known where a function is read by itself; what they are in the calls of the text is known where
//! the function is analyzed again for these.

use super::value::Value;
use std::collections::HashMap;

/// Values by token.
#[derive(Default, Debug)]
pub struct Seen {
    values: ByToken,
    receivers: ByToken,
}

#[derive(Default, Debug)]
struct ByToken {
    /// Where the text is read from its beginning to its end.
    read: HashMap<u32, Value>,
    /// In functions that are analyzed again: what holds for all calls.
    called: HashMap<u32, Value>,
}

impl ByToken {
    fn note(&mut self, token: u32, value: &Value, again: bool) {
        let values = if again { &mut self.called } else { &mut self.read };
        values.entry(token).and_modify(|known| *known = known.join(value)).or_insert_with(|| value.clone());
    }

    fn at(&self, token: u32) -> &Value {
        let read = self.read.get(&token).filter(|value| !matches!(value, Value::Unknown));
        read.or_else(|| self.called.get(&token)).unwrap_or(&Value::Unknown)
    }
}

impl Seen {
    pub(super) fn note(&mut self, token: u32, value: &Value, again: bool) {
        self.values.note(token, value, again);
    }

    pub(super) fn note_receiver(&mut self, member: u32, value: &Value, again: bool) {
        self.receivers.note(member, value, again);
    }

    /// The value of an expression, or of a variable where it is declared.
    pub fn value(&self, token: u32) -> &Value {
        self.values.at(token)
    }

    /// The value before the dot of a member.
    pub fn receiver(&self, member: u32) -> &Value {
        self.receivers.at(member)
    }
}
