//! Strings in pieces: `splitlines`, `rsplit`, `partition`, `strip`.

use super::call::{integer, method, pieces, text};
use super::unicode::is_space;
use crate::base::diag::Result;
use crate::fail;
use crate::script::bind::native::flag;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::ascii;
use crate::script::values::panics::Place;
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString};
use std::sync::Arc;

/// `sub_string`, as Rhai has it, which looks at the whole text each time. Of a range: `ranged.rs`.
fn parts(natives: &mut Natives) {
    fn part(text: ImmutableString, start: i64, count: i64) -> ImmutableString {
        let length = ascii::length(&text) as i64;
        let start = if start < 0 { start.saturating_add(length).max(0) } else { start.min(length) };
        let end = start.saturating_add(count.max(0)).min(length);
        ascii::part(&text, start as usize..end as usize)
    }
    let of = || FuncRegistration::new("sub_string").in_global_namespace().with_purity(true);
    let module = &mut natives.module;
    of().place_in(module, part);
    of().place_in(module, |text: ImmutableString, start: i64| part(text, start, i64::MAX));
}

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    // Rhai's is walked over once, and has no length.
    let chars = |text: ImmutableString| -> Array { text.chars().map(Dynamic::from_char).collect() };
    natives.note("chars");
    FuncRegistration::new("chars").in_global_namespace().with_purity(true).place_in(&mut natives.module, chars);
    parts(natives);
    method(natives, host, "splitlines", |host, text, [keeps]| {
        let keeps = flag("keepends", keeps)?;
        pieces(host, lines(text).map(|(line, end)| if keeps { end } else { line }))
    });
    // Without keywords: `growth.rs`.
    method(natives, host, "split", |host, whole, [sep, most]| {
        let most = usize::try_from(integer("maxsplit", most)?).unwrap_or(usize::MAX);
        match sep.is_unit() {
            true => pieces(host, words(whole, most).into_iter()),
            false => pieces(host, whole.splitn(most.saturating_add(1), &separator(sep)?[..])),
        }
    });
    method(natives, host, "rsplit", |host, whole, [sep, most]| {
        let most = usize::try_from(integer("maxsplit", most)?).unwrap_or(usize::MAX);
        let mut found =
            if sep.is_unit() { words_from_end(whole, most) } else { from_end(whole, &separator(sep)?, most) };
        found.reverse();
        pieces(host, found.into_iter())
    });
    for (name, from_end) in [("partition", false), ("rpartition", true)] {
        method(natives, host, name, move |host, whole, [sep]| {
            let sep = separator(sep)?;
            let at = if from_end { whole.rfind(&sep[..]) } else { whole.find(&sep[..]) };
            pieces(
                host,
                match at {
                    Some(at) => [&whole[..at], &whole[at..at + sep.len()], &whole[at + sep.len()..]],
                    None if from_end => ["", "", whole],
                    None => [whole, "", ""],
                }
                .into_iter(),
            )
        });
    }
    for (name, left, right) in [("strip", true, true), ("lstrip", true, false), ("rstrip", false, true)] {
        method(natives, host, name, move |_, whole, [characters]| {
            let chars: Option<Vec<char>> = match characters.is_unit() {
                true => None,
                false => Some(text("characters", characters)?.chars().collect()),
            };
            let cut = |c: char| chars.as_ref().map_or_else(|| is_space(c), |chars| chars.contains(&c));
            let whole = if left { whole.trim_start_matches(cut) } else { whole };
            Ok(if right { whole.trim_end_matches(cut) } else { whole }.into())
        });
    }
}

/// What separates pieces.
fn separator(sep: &Dynamic) -> Result<ImmutableString> {
    let sep = text("sep", sep)?;
    if sep.is_empty() {
        fail!(VALUE, "`sep` is empty; `list(text)` gives the characters");
    }
    Ok(sep)
}

/// Lines without and with their ends.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find(ends).unwrap_or(rest.len());
        let end = match &rest[at..] {
            after if after.starts_with("\r\n") => at + 2,
            after => at + after.chars().next().map_or(0, char::len_utf8),
        };
        let line = (&rest[..at], &rest[..end]);
        rest = &rest[end..];
        Some(line)
    })
}

/// Pieces between separators, the last one first.
fn from_end<'a>(text: &'a str, sep: &str, most: usize) -> Vec<&'a str> {
    text.rsplitn(most.saturating_add(1), sep).collect()
}

/// Words between blanks; what is left is the last one.
fn words(text: &str, most: usize) -> Vec<&str> {
    let (mut rest, mut found) = (text.trim_start_matches(is_space), Vec::new());
    while !rest.is_empty() {
        let end = if found.len() == most { rest.len() } else { rest.find(is_space).unwrap_or(rest.len()) };
        found.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    found
}

/// Words between blanks, the last one first.
fn words_from_end(text: &str, most: usize) -> Vec<&str> {
    let (mut rest, mut found) = (text.trim_end_matches(is_space), Vec::new());
    while !rest.is_empty() {
        if found.len() == most {
            found.push(rest);
            break;
        }
        let start = rest.rfind(is_space).map_or(0, |at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
        found.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    found
}
