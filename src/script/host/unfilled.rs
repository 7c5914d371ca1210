//! `"Hello ${name}"`: in double quotes `${..}` stands for itself. Warns before the text runs (E0120) where a string in double
//! quotes has a `${name}` whose name the text uses as a variable.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::script::host::Host;
use crate::script::source::Source;
use crate::script::source::lex::{Kind, Token, tokens_of};
use std::ops::Range;

/// The warning for a `${..}` in double quotes.
pub fn warning(hole: &str, at: Origin) -> Box<Diag> {
    let count = u16::try_from(hole.chars().count()).unwrap_or(u16::MAX);
    Diag::warning(code::UNFILLED, format!("`{hole}` stands for itself in double quotes"))
        .label(at, Focus::Characters(count), "no value is put in here")
        .help("write the text in backticks: `` `x is ${x}` ``")
}

/// Warns of such strings in a new text.
pub fn warn(host: &Host, source: &Source) {
    for bytes in places(&source.text, None) {
        host.rt.warn(warning(&source.text[bytes.clone()], Origin::at(source.site(bytes.start))));
    }
}

/// Where such a `${..}` is, the first one of each string.
pub fn places(text: &str, tokens: Option<&[Token]>) -> Vec<Range<usize>> {
    if !text.lines().any(|line| line.find('"').is_some_and(|at| line[at..].contains("${"))) {
        return Vec::new();
    }
    let tokens = tokens_of(text, tokens);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token| &text[token.range()]);
    let declares = |at: usize| matches!(word(at.wrapping_sub(1)), "let" | "const" | "for" | "|" | "(" | "," | "[");
    let is_variable =
        |name: &str| (1..tokens.len()).any(|at| tokens[at].kind == Kind::Word && word(at) == name && declares(at));
    let hole = |token: &Token| {
        let range = token.range();
        let string = &text[range.clone()];
        let from = string.find("${").filter(|_| token.kind == Kind::Str && string.starts_with('"'))?;
        let inside = &string[from + 2..];
        let end = inside.find('}')?;
        let name = inside[..end].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && is_variable(name);
        is_name.then(|| range.start + from..range.start + from + 2 + end + 1)
    };
    tokens.iter().filter_map(hole).collect()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn a_string_that_asks_for_a_value_is_found() {
        for text in [
            "let x = 1; print(\"x is ${x}\");",
            "fn f(name) { \"Hello ${name}!\" }",
            "for x in xs { print(\"${x:.2f}\"); }",
            "let m = #{a: 1}; print(\"${m.a}\");",
        ] {
            assert_eq!(places(text, None).len(), 1, "{text}");
        }
        for text in [
            "let x = 1; print(`x is ${x}`);",
            "print(\"${name}\");",
            "let x = 1; print(\"cost: ${}\", \"$x\", \"{x}\");",
            "let x = 1; // \"${x}\"",
        ] {
            assert!(places(text, None).is_empty(), "{text}");
        }
    }
}
