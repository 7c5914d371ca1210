//! Whether two texts have the same tokens and comments, but for commas before closing brackets: what a formatter must
//! never change, compared after the fact.

use super::comments::{Comment, comments};
use crate::script::source::lex::{Token, lex, script_start};

pub fn is_same(before: &Cut, after: &str) -> bool {
    let Some(after) = Cut::of(after) else { return false };
    before.src[..before.from] == after.src[..after.from]
        && words(before.src, &before.tokens).eq(words(after.src, &after.tokens))
        && remarks(before).eq(remarks(&after))
}

/// A text, cut into tokens and comments.
pub struct Cut<'a> {
    pub src: &'a str,
    /// Its first byte of script.
    pub from: usize,
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
}

impl<'a> Cut<'a> {
    /// None if it cannot be cut.
    pub fn of(src: &'a str) -> Option<Cut<'a>> {
        let from = script_start(src);
        let tokens = lex(src, from).ok()?;
        let comments = comments(src, &tokens, from);
        Some(Cut { src, from, tokens, comments })
    }
}

/// All tokens that count.
fn words<'a>(text: &'a str, tokens: &'a [Token]) -> impl Iterator<Item = &'a str> {
    let word = move |at: usize| tokens.get(at).map_or("", |token: &Token| &text[token.range()]);
    let counts = move |at: &usize| word(*at) != "," || !matches!(word(at + 1), ")" | "]" | "}");
    (0..tokens.len()).filter(counts).map(word)
}

/// The lines of all comments, without the blanks around them.
fn remarks<'a>(cut: &'a Cut) -> impl Iterator<Item = &'a str> {
    cut.comments.iter().flat_map(|comment| cut.src[comment.range()].lines().map(str::trim))
}
