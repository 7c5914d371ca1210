//! Semantic tokens: what each word of the text is, as five numbers a token; whole, of a range, and as a difference to
//! the last answer.

use super::meaning::{Meaning, meaning};
use super::view::View;
use crate::base::order;
use crate::script::edit::comments::comments;
use crate::script::edit::names::SymbolKind;
use crate::script::manual;
use crate::script::source::lex::Kind;
use crate::script::source::tree::is_keyword;
use serde_json::{Value, json};
use std::ops::Range;

/// The types, in the order of their numbers.
pub const TYPES: [&str; 11] = [
    "namespace",
    "parameter",
    "variable",
    "property",
    "function",
    "method",
    "keyword",
    "comment",
    "string",
    "number",
    "operator",
];
const NAMESPACE: u32 = 0;
const PARAMETER: u32 = 1;
const VARIABLE: u32 = 2;
const PROPERTY: u32 = 3;
const FUNCTION: u32 = 4;
const METHOD: u32 = 5;
const KEYWORD: u32 = 6;
const COMMENT: u32 = 7;
const STRING: u32 = 8;
const NUMBER: u32 = 9;
const OPERATOR: u32 = 10;

/// The modifiers, in the order of their bits.
pub const MODIFIERS: [&str; 3] = ["declaration", "readonly", "defaultLibrary"];
const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const LIBRARY: u32 = 4;

/// All tokens of a text, or those that touch a range of bytes.
pub fn tokens(view: &View, within: Option<Range<usize>>) -> Vec<u32> {
    let is_asked = |range: &Range<usize>| {
        within.as_ref().is_none_or(|within| range.start < within.end && range.end > within.start)
    };
    let comments = comments(&view.reading).into_iter().filter(is_asked);
    let mut found: Vec<(Range<usize>, u32, u32)> = comments.map(|range| (range, COMMENT, 0)).collect();
    for at in 0..view.reading.tokens.len() {
        let range = view.reading.tokens[at].range();
        if is_asked(&range)
            && let Some((kind, modifiers)) = classified(view, at)
        {
            found.push((range, kind, modifiers));
        }
    }
    order::by_key(&mut found, |(range, ..)| range.start);
    encoded(view, &found)
}

/// The five numbers of each token; one of several lines is one for each line.
fn encoded(view: &View, found: &[(Range<usize>, u32, u32)]) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(found.len() * 5);
    let mut last = (0, 0);
    for (range, kind, modifiers) in found {
        let mut start = range.start;
        for line in view.text()[range.clone()].split_inclusive(['\n', '\r']) {
            let text = line.trim_end_matches(['\n', '\r']);
            let (row, column) = view.lines.place(view.text(), start);
            start += line.len();
            if text.is_empty() {
                continue;
            }
            let across = if row == last.0 { column - last.1 } else { column };
            let length = view.lines.encoding.length(text);
            numbers.extend([(row - last.0) as u32, across as u32, length as u32, *kind, *modifiers]);
            last = (row, column);
        }
    }
    numbers
}

fn classified(view: &View, at: usize) -> Option<(u32, u32)> {
    let token = &view.reading.tokens[at];
    if token.range().is_empty() {
        return None;
    }
    match token.kind {
        Kind::Number => Some((NUMBER, 0)),
        Kind::Str | Kind::Char | Kind::TextOpen | Kind::TextEnd => Some((STRING, 0)),
        Kind::Symbol => {
            let bracket = matches!(view.word(at), "(" | ")" | "[" | "]" | "{" | "}" | "#{" | "?[" | "," | ";");
            (!bracket).then_some((OPERATOR, 0))
        }
        Kind::Unknown => None,
        Kind::Word => Some(of_word(view, at)),
    }
}

fn of_word(view: &View, at: usize) -> (u32, u32) {
    let word = view.word(at);
    let is_call = view.word(at + 1) == "(";
    match meaning(view, at) {
        Some(Meaning::Symbol(symbol)) => {
            let symbol = &view.names.symbols[symbol];
            let declares = if symbol.token as usize == at { DECLARATION } else { 0 };
            match symbol.kind {
                SymbolKind::Import => (NAMESPACE, declares),
                SymbolKind::Function => (FUNCTION, declares),
                SymbolKind::Constant => (VARIABLE, declares | READONLY),
                SymbolKind::Parameter => (PARAMETER, declares),
                SymbolKind::Variable => (VARIABLE, declares),
            }
        }
        Some(Meaning::Member(_)) if is_call => (METHOD, if manual::has_page(word) { LIBRARY } else { 0 }),
        Some(Meaning::Member(_) | Meaning::Keyword(..)) => (PROPERTY, 0),
        Some(Meaning::Module(_)) => (NAMESPACE, 0),
        Some(Meaning::InModule(module, _)) => (FUNCTION, if super::meaning::is_library(&module) { LIBRARY } else { 0 }),
        _ if is_keyword(word) => (KEYWORD, 0),
        _ if view.word(at + 1) == ":" => (PROPERTY, 0),
        Some(Meaning::Native(name)) if is_call || view.word(at + 1) == "{" => {
            (FUNCTION, if manual::has_page(&name) { LIBRARY } else { 0 })
        }
        _ => (VARIABLE, 0),
    }
}

/// The last answer for a text, to which the next one is compared.
#[derive(Clone, Default)]
pub struct Sent {
    pub id: u64,
    pub numbers: Vec<u32>,
}

/// The one difference between two lists of numbers.
pub fn difference(before: &[u32], after: &[u32]) -> Value {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let same = |(a, b): &(&u32, &u32)| a == b;
    let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(same).count();
    if start == before.len() && start == after.len() {
        return json!([]);
    }
    json!([{
        "start": start,
        "deleteCount": before.len() - end - start,
        "data": &after[start..after.len() - end],
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_leads_from_one_list_to_the_other() {
        for (before, after) in
            [(vec![1, 2, 3], vec![1, 9, 3]), (vec![], vec![1]), (vec![1, 1], vec![1]), (vec![1], vec![1, 1, 1])]
        {
            let edits = difference(&before, &after);
            let mut edited = before.clone();
            let number = |name: &str| edits[0][name].as_u64().expect("a number") as usize;
            let data =
                edits[0]["data"].as_array().expect("a list").iter().map(|n| n.as_u64().expect("a number") as u32);
            edited.splice(number("start")..number("start") + number("deleteCount"), data);
            assert_eq!(edited, after);
        }
        assert_eq!(difference(&[1, 2], &[1, 2]), json!([]));
    }
}
