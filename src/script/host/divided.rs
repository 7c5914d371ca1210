//! `x // 2` without a `;`: the comment ends the value before a `}`, a `)` or the end of the text, and the half is lost
//! without an error. Warns before the text runs (E0119).
//!
//! People write comments behind values, too: only what reads as a number or a term of the text's own names is one of
//! these. Not: behind a `;` or a comma.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::script::host::Host;
use crate::script::source::Source;
use crate::script::source::lex::{Kind, Token, lex_partial, tokens_of};
use crate::script::source::tree::is_keyword;
use std::ops::Range;

/// The warning for a comment at a place.
pub fn warning(comment: &str, at: Origin) -> Box<Diag> {
    let count = u16::try_from(comment.chars().count()).unwrap_or(u16::MAX);
    Diag::warning(code::DIVIDED, format!("`{comment}` is a comment, and divides nothing"))
        .label(at, Focus::Characters(count), "a comment")
        .help("division without a remainder is `a.floor_divide(b)`; a comment that is meant goes on a line of its own")
}

/// Warns of such comments in a new text.
pub fn warn(host: &Host, source: &Source) {
    for bytes in places(&source.text, None) {
        host.rt.warn(warning(&source.text[bytes.clone()], Origin::at(source.site(bytes.start))));
    }
}

/// Where such comments are. The tokens of the text are read where the caller has none, if a line looks like it.
pub fn places(text: &str, tokens: Option<&[Token]>) -> Vec<Range<usize>> {
    let mut candidates = candidates(text).peekable();
    if candidates.peek().is_none() {
        return Vec::new();
    }
    let tokens = tokens_of(text, tokens);
    candidates.filter(|comment| is_meant(text, &tokens, comment)).collect()
}

/// Comments behind what may be the end of a value, that begin like an operand.
fn candidates(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("//").filter_map(move |(at, _)| {
        let begins = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = text[begins..at].trim_end();
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        let comment = text[at + 2..end].trim_end();
        let operand = comment.strip_prefix(' ').unwrap_or(comment);
        let is_end = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']'));
        let begins_one = operand.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '('));
        (is_end && begins_one).then(|| at..at + 2 + comment.len())
    })
}

fn is_meant(text: &str, tokens: &[Token], comment: &Range<usize>) -> bool {
    let next = tokens.partition_point(|token| (token.start as usize) < comment.start);
    let Some(last) = next.checked_sub(1) else { return false };
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.range()]);
    // Inside of a string.
    if tokens[last].range().end > comment.start
        || tokens.get(next).is_some_and(|token| token.range().start < comment.end)
    {
        return false;
    }
    let is_number = tokens[last].kind == Kind::Number;
    let is_value =
        is_number || matches!(word(last), ")" | "]") || (tokens[last].kind == Kind::Word && !is_keyword(word(last)));
    // A call may be followed by what it gives: `xs.mean() // 2.5`.
    let opened = tokens[last].partner as usize;
    let is_call = matches!(word(last), ")" | "]")
        && opened
            .checked_sub(1)
            .is_some_and(|before| tokens[before].kind == Kind::Word || matches!(word(before), ")" | "]"));
    let ends = match word(next) {
        "" => !is_call,
        "}" => word(tokens[next].partner as usize) == "{",
        ")" | "]" => !is_number,
        _ => false,
    };
    let names: Vec<&str> =
        tokens[..next].iter().filter(|token| token.kind == Kind::Word).map(|token| &text[token.range()]).collect();
    is_value && ends && is_term(&text[comment.start + 2..comment.end], &names, is_call)
}

/// Whether a comment reads as a term of numbers and known names.
fn is_term(comment: &str, names: &[&str], is_call: bool) -> bool {
    let comment = comment.trim_end_matches([';', ',']);
    let (tokens, problem) = lex_partial(comment);
    let word = |at: usize| tokens.get(at).map_or("", |token| &comment[token.range()]);
    if problem.is_some() || (is_call && tokens.len() == 1 && word(0).contains('.')) {
        return false;
    }
    let mut at = 0;
    loop {
        match tokens.get(at).map(|token| token.kind) {
            Some(Kind::Number) => at += 1,
            Some(Kind::Word) if names.contains(&word(at)) && !is_keyword(word(at)) => at += 1,
            Some(Kind::Symbol) if word(at) == "(" => at = tokens[at].partner as usize + 1,
            _ => return false,
        }
        // What follows a name: `xs.len()`, `xs[0]`.
        while matches!(word(at), "." | "(" | "[") {
            at = if word(at) == "." { at + 2 } else { tokens[at].partner as usize + 1 };
        }
        match word(at) {
            "" => return at == tokens.len(),
            "+" | "-" | "*" | "/" | "%" | "**" => at += 1,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn a_division_is_told_from_a_comment() {
        for text in [
            "fn half(x) {\n    x // 2\n}",
            "fn mid(a, b) { return (a + b) // 2\n}",
            "if n > 3 {\n n = n // 2\n}",
            "if n > 3 {\n n = n // 2;\n}",
            "fn f(xs, k) {\n xs.len() // k\n}",
            "fn f(xs) {\n xs.len() // 2\n}",
            "let n = 7;\nn // 2",
            "fn f(a, b) {\n a // (b + 1)\n}",
            "fn f(a, b) {\n f(\n a // b\n)\n}",
            "fn f(a, b) {\n a // b.len() * 2\n}",
        ] {
            assert_eq!(places(text, None).len(), 1, "{text}");
        }
        for text in [
            "let x = 1; // 2",
            "fn f(x) {\n    x // the half\n}",
            "fn f(x) {\n    x // 2 of them\n}",
            "fn f(x) {\n    x // width\n}",
            "fn f(x) {\n    x.mean() // 2.5\n}",
            "let xs = [1, 2];\nxs.len() // 2",
            "let xs = [\n    1, // 2\n    2 // 3\n];",
            "let m = #{\n    lr: 0.1 // 0.01\n};",
            "fn f(x) {\n    x.shape // [2, 3]\n}",
            "let s = \"a // 2\";",
            "let s = `a // 2`;",
            "/* a // 2 */ let x = 1;",
            "let u = \"http://a.b\";",
            "loop { break // 2\n}",
        ] {
            assert!(places(text, None).is_empty(), "{text}");
        }
    }
}
