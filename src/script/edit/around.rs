//! The call whose parentheses are around a place, and the argument that is written there.

use crate::script::check::reading::Reading;
use crate::script::source::lex::Kind;
use crate::script::source::tree::is_keyword;

/// A call that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// The token of its name.
    pub name: usize,
    /// `nn` of `nn::linear`.
    pub space: Option<String>,
    pub is_method: bool,
    /// The number of arguments before the place.
    pub position: usize,
    /// The keyword whose value is there: `dim` in `x.sum(#{dim: `.
    pub keyword: Option<String>,
    /// Between the braces of `#{ }`: the keywords that are given.
    pub given: Option<Vec<String>>,
}

/// The number of tokens that end at a byte or before.
pub fn tokens_before(reading: &Reading, offset: usize) -> usize {
    reading.tokens.partition_point(|token| token.end as usize <= offset)
}

/// The token at a byte: the one that contains it, or a name that ends there.
pub fn token_at(reading: &Reading, offset: usize) -> Option<usize> {
    let after = reading.tokens.partition_point(|token| token.end as usize <= offset);
    let here = |at: usize| {
        reading.tokens.get(at).is_some_and(|token| token.start as usize <= offset && !token.range().is_empty())
    };
    if here(after) && reading.tokens[after].kind == Kind::Word {
        return Some(after);
    }
    let before = (0..after).rev().find(|&at| !reading.tokens[at].range().is_empty());
    let ends_here =
        before.filter(|&at| reading.tokens[at].end as usize == offset && reading.tokens[at].kind == Kind::Word);
    ends_here.or(here(after).then_some(after))
}

/// The innermost bracket that is open at a byte.
fn opening(reading: &Reading, offset: usize, before: usize) -> Option<usize> {
    (0..before).rev().find(|&at| {
        let (token, partner) = (&reading.tokens[at], reading.tokens[at].partner as usize);
        let is_open = matches!(reading.word(at), "(" | "[" | "{" | "#{" | "?[") && token.kind == Kind::Symbol;
        is_open && token.end as usize <= offset && partner > at && closes_after(reading, partner, offset)
    })
}

/// Whether a closing bracket stands behind a byte; one that is not written, before the next token.
fn closes_after(reading: &Reading, close: usize, offset: usize) -> bool {
    let token = &reading.tokens[close];
    if !token.range().is_empty() {
        return token.start as usize >= offset;
    }
    let mut rest = reading.tokens[close..].iter();
    rest.find(|token| !token.range().is_empty()).is_none_or(|next| next.start as usize >= offset)
}

/// The call around a byte.
pub fn around(reading: &Reading, offset: usize) -> Option<Around> {
    let mut open = opening(reading, offset, reading.tokens.len())?;
    let mut map = None;
    while matches!(reading.word(open), "#{" | "[") {
        if reading.word(open) == "#{" {
            map = Some(open);
        }
        open = opening(reading, offset, open)?;
    }
    let name = open.checked_sub(1)?;
    if reading.word(open) != "(" || reading.tokens[name].kind != Kind::Word || is_keyword(reading.word(name)) {
        return None;
    }
    let before = name.checked_sub(1).map_or("", |at| reading.word(at));
    // `fn f(` declares.
    if before == "fn" {
        return None;
    }
    let space = (before == "::").then(|| path_before(reading, name)).flatten();
    let end = map.unwrap_or_else(|| tokens_before(reading, offset));
    let position = commas(reading, open, end);
    let (keyword, given) = match map {
        Some(map) => keywords(reading, map, offset),
        None => (None, None),
    };
    Some(Around { name, space, is_method: matches!(before, "." | "?."), position, keyword, given })
}

/// What stands before the `::` before a token: `signal::windows`.
pub fn path_before(reading: &Reading, name: usize) -> Option<String> {
    let mut head = name;
    while head >= 2 && reading.word(head - 1) == "::" {
        head -= 2;
    }
    let (from, to) = (reading.tokens[head].start as usize, reading.tokens[name.checked_sub(2)?].end as usize);
    reading.text.get(from..to).map(str::to_string)
}

/// Commas between a bracket and a token, outside of further brackets.
fn commas(reading: &Reading, open: usize, end: usize) -> usize {
    let (mut at, mut found) = (open + 1, 0);
    while at < end {
        found += (reading.word(at) == ",") as usize;
        at = (reading.tokens[at].partner as usize).max(at) + 1;
    }
    found
}

/// The keyword of a map whose value is at a byte, and all keywords that are given.
fn keywords(reading: &Reading, map: usize, offset: usize) -> (Option<String>, Option<Vec<String>>) {
    let close = reading.tokens[map].partner as usize;
    let (mut at, mut given, mut here) = (map + 1, Vec::new(), None);
    while at < close {
        if reading.word(at + 1) == ":" && reading.tokens[at].kind != Kind::Symbol {
            let keyword = reading.word(at).trim_matches('"').to_string();
            if reading.tokens[at + 1].end as usize <= offset {
                here = Some(keyword.clone());
            }
            given.push(keyword);
        } else if reading.word(at) == "," && reading.tokens[at].end as usize <= offset {
            here = None;
        }
        at = (reading.tokens[at].partner as usize).max(at) + 1;
    }
    (here, Some(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, position and keyword at the `|` of a text.
    fn at(text: &str) -> Option<(String, usize, Option<String>)> {
        let offset = text.find('|').expect("a cursor");
        let reading = Reading::of_text(&text.replacen('|', "", 1));
        let found = around(&reading, offset)?;
        let space = found.space.map_or(String::new(), |space| format!("{space}::"));
        Some((format!("{space}{}", reading.word(found.name)), found.position, found.keyword))
    }

    #[test]
    fn the_call_around_a_place_is_found() {
        let some = |name: &str, position: usize| Some((name.to_string(), position, None));
        assert_eq!(at("f(|"), some("f", 0));
        assert_eq!(at("f(1, |"), some("f", 1));
        assert_eq!(at("f(1, g(2, 3), |\nlet x = 1;"), some("f", 2));
        assert_eq!(at("f(1, [2, |])"), some("f", 1));
        assert_eq!(at("nn::linear(2, |)"), some("nn::linear", 1));
        assert_eq!(at("x.sum(#{dim: |})"), Some(("sum".into(), 0, Some("dim".into()))));
        assert_eq!(at("x.sum(1, #{dim: 2, k|})"), some("sum", 1));
        assert_eq!(at("f(1)|"), None);
        assert_eq!(at("if (|"), None);
        assert_eq!(at("fn f(|"), None);
    }
}
