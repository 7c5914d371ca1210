//! What a string consists of: `isdigit`, `isalpha`, `isspace` and the others.

use super::call::method;
use super::cases::{is_cased, is_title};
use super::unicode;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    type Class = fn(char) -> bool;
    let classes: [(&str, Class); 6] = [
        ("isalpha", unicode::is_alphabetic),
        ("isalnum", |c| unicode::is_alphabetic(c) || unicode::is_numeric(c)),
        ("isdecimal", unicode::is_decimal),
        ("isdigit", unicode::is_digit),
        ("isnumeric", unicode::is_numeric),
        ("isspace", unicode::is_space),
    ];
    for (name, class) in classes {
        method(natives, host, name, move |_, text, []| Ok((!text.is_empty() && text.chars().all(class)).into()));
    }
    method(natives, host, "isascii", |_, text, []| Ok(text.is_ascii().into()));
    method(natives, host, "isprintable", |_, text, []| Ok(text.chars().all(unicode::is_printable).into()));
    method(natives, host, "isupper", |_, text, []| {
        Ok((text.chars().any(char::is_uppercase) && !text.chars().any(|c| c.is_lowercase() || is_title(c))).into())
    });
    method(natives, host, "islower", |_, text, []| {
        Ok((text.chars().any(char::is_lowercase) && !text.chars().any(|c| c.is_uppercase() || is_title(c))).into())
    });
    method(natives, host, "istitle", |_, text, []| Ok(is_titled(text).into()));
    method(natives, host, "isidentifier", |_, text, []| {
        let mut chars = text.chars();
        let starts = chars.next().is_some_and(unicode::starts_identifier);
        Ok((starts && chars.all(unicode::continues_identifier)).into())
    });
}

/// Whether capitals begin words, and small letters follow them.
fn is_titled(text: &str) -> bool {
    let (mut inside, mut any) = (false, false);
    for c in text.chars() {
        let starts = c.is_uppercase() || is_title(c);
        if is_cased(c) && starts == inside {
            return false;
        }
        inside = is_cased(c);
        any |= inside;
    }
    any
}
