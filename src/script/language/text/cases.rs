//! Upper and lower case, and prefixes: `upper`, `title`, `casefold`, `removeprefix`, `translate`.

use super::call::{method, text, written};
use crate::base::diag::Result;
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::type_names;
use rhai::{Dynamic, Map};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    type Change = fn(&str) -> String;
    let changes: [(&str, Change); 6] = [
        ("upper", |text| text.to_uppercase()),
        ("lower", |text| text.to_lowercase()),
        ("title", title),
        ("capitalize", capitalized),
        ("swapcase", swapped),
        ("casefold", folded),
    ];
    for (name, change) in changes {
        method(natives, host, name, move |host, text, []| written(host, &change(text)));
    }
    method(natives, host, "removeprefix", |_, whole, [prefix]| {
        Ok(whole.strip_prefix(&text("prefix", prefix)?[..]).unwrap_or(whole).into())
    });
    method(natives, host, "removesuffix", |_, whole, [suffix]| {
        Ok(whole.strip_suffix(&text("suffix", suffix)?[..]).unwrap_or(whole).into())
    });
    method(natives, host, "translate", |host, text, [table]| translated(host, text, table));
}

/// The lower case of each character, where it stands: a sigma that ends a word has a form of its own.
fn lowered(text: &str) -> impl Iterator<Item = (char, String)> {
    let (lower, mut at) = (text.to_lowercase(), 0);
    text.chars().map(move |c| {
        let from = at;
        at += c.to_lowercase().map(char::len_utf8).sum::<usize>();
        (c, lower[from..at].to_string())
    })
}

/// The first letter of each word in title case, the others in lower case.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for (c, lower) in lowered(text) {
        if inside {
            out.push_str(&lower)
        } else {
            push_title(c, &mut out)
        }
        inside = is_cased(c);
    }
    out
}

/// The first character in title case, the others in lower case.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let mut out = String::with_capacity(text.len());
    if let Some(first) = chars.next() {
        push_title(first, &mut out);
        // Whole, so that a sigma at the end has its form.
        let lower = text.to_lowercase();
        out.push_str(&lower[first.to_lowercase().map(char::len_utf8).sum::<usize>()..]);
    }
    out
}

fn swapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (c, lower) in lowered(text) {
        match c {
            c if c.is_uppercase() => out.push_str(&lower),
            c if c.is_lowercase() => out.extend(c.to_uppercase()),
            c => out.push(c),
        }
    }
    out
}

/// Full case folding. Source: The Unicode Standard, 3.13, "Default Caseless Matching".
fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'a'..='z' => out.push(c),
            'ı' => out.push(c),
            // Cherokee folds to capitals.
            '\u{13a0}'..='\u{13f5}' => out.push(c),
            '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => out.extend(c.to_uppercase()),
            c => {
                let lower = c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
                out.extend(lower);
            }
        }
    }
    out
}

/// Whether a character has a case.
pub fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || is_title(c)
}

/// Whether a character is a digraph or ligature in title case.
pub fn is_title(c: char) -> bool {
    matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}' | '\u{1fa8}'..='\u{1faf}' | 'ᾼ' | 'ῌ' | 'ῼ')
}

/// A character in title case, where that is not its upper case. Source: the Unicode Character Database,
/// `UnicodeData.txt` and `SpecialCasing.txt`.
fn push_title(c: char, out: &mut String) {
    let shifted = |c: char, by: i32| char::from_u32((c as i32 + by) as u32).unwrap_or(c);
    match c {
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        // Georgian has capitals for whole words only.
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => out.push(c),
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => out.push(shifted(c, 8)),
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => out.push(shifted(c, 9)),
        c if is_title(c) => out.push(c),
        // With an iota below: the upper case of what stands before it, and the iota as it is.
        '\u{1fb2}' | '\u{1fb4}' | '\u{1fb7}' | '\u{1fc2}' | '\u{1fc4}' | '\u{1fc7}' | '\u{1ff2}' | '\u{1ff4}'
        | '\u{1ff7}' => {
            let upper: String = c.to_uppercase().collect();
            out.push_str(upper.strip_suffix('Ι').unwrap_or(&upper));
            out.push('\u{345}');
        }
        c => {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            // Ligatures: `ﬁ` is `Fi`. What is no letter, such as an accent, stays.
            let is_ligature = matches!(c, 'ß' | 'և' | '\u{fb00}'..='\u{fb06}' | '\u{fb13}'..='\u{fb17}');
            out.extend(
                upper.flat_map(|c| if is_ligature { Lower::Of(c.to_lowercase()) } else { Lower::Same(Some(c)) }),
            );
        }
    }
}

enum Lower {
    Of(std::char::ToLowercase),
    Same(Option<char>),
}

impl Iterator for Lower {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Lower::Of(chars) => chars.next(),
            Lower::Same(c) => c.take(),
        }
    }
}

/// Each character that a map has as a key replaced by its entry; `()` takes it out.
fn translated(host: &Host, text: &str, table: &Dynamic) -> Result<Dynamic> {
    let Some(table) = table.read_lock::<Map>() else {
        fail!(
            ARGUMENT_TYPE,
            "`table` is a map of characters, as in `#{{a: \"b\", c: ()}}`, not {}",
            type_names::of_value(table)
        );
    };
    let mut entries = std::collections::HashMap::new();
    for (key, value) in table.iter() {
        let mut chars = key.chars();
        let (Some(c), None) = (chars.next(), chars.next()) else {
            fail!(VALUE, "a key of `table` is one character, not \"{key}\"");
        };
        let value = if value.is_unit() { Default::default() } else { super::call::text("an entry of `table`", value)? };
        entries.insert(c, value);
    }
    let mut out = crate::script::language::growing::Growing::new(host);
    for c in text.chars() {
        match entries.get(&c) {
            Some(other) => out.push(other)?,
            None => out.push(c.encode_utf8(&mut [0; 4]))?,
        }
    }
    out.finish().map(Dynamic::from)
}
