//! Whether two texts have the same tokens and comments, but for commas before closing brackets: what a formatter must
//! never change, compared after the fact.

use super::comments::comments;
use crate::script::source::lex::{Token, lex, script_start};

pub fn is_same(before: &str, after: &str) -> bool {
    let [(Some(old), old_start), (Some(new), new_start)] = [before, after].map(|text| {
        let start = script_start(text);
        (lex(text, start).ok(), start)
    }) else {
        return false;
    };
    before[..old_start] == after[..new_start]
        && words(before, &old).eq(words(after, &new))
        && remarks(before, &old, old_start).eq(remarks(after, &new, new_start))
}

/// All tokens that count.
fn words<'a>(text: &'a str, tokens: &'a [Token]) -> impl Iterator<Item = &'a str> {
    let word = move |at: usize| tokens.get(at).map_or("", |token: &Token| &text[token.range()]);
    let counts = move |at: &usize| word(*at) != "," || !matches!(word(at + 1), ")" | "]" | "}");
    (0..tokens.len()).filter(counts).map(word)
}

/// The lines of all comments, without the blanks around them.
fn remarks<'a>(text: &'a str, tokens: &[Token], from: usize) -> impl Iterator<Item = &'a str> {
    let inside = |at: u32| {
        let after = tokens.partition_point(|token| token.start <= at);
        after > 0 && tokens[after - 1].end > at
    };
    let found: Vec<_> = comments(text, tokens, from).into_iter().filter(|comment| !inside(comment.start)).collect();
    found.into_iter().flat_map(|comment| text[comment.range()].lines().map(str::trim))
}
