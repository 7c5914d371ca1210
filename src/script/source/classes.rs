//! Classes of words for syntax coloring, of finished and unfinished text.

use super::lex::{Kind, Token, lex_partial};
use super::tree::is_keyword;
use std::ops::Range;

/// The class of a range of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Keyword,
    /// `true`, `false`.
    Constant,
    Name,
    /// The name of a call.
    Call,
    Number,
    Text,
    Comment,
    Symbol,
    /// Blanks.
    Nothing,
}

/// Covers every byte of a text with one range each, in order.
pub fn classes(text: &str) -> Vec<(Range<usize>, Class)> {
    let (tokens, problem) = lex_partial(text);
    let mut found = Vec::with_capacity(2 * tokens.len() + 1);
    let mut from = 0;
    for (index, token) in tokens.iter().enumerate() {
        let range = token.range();
        gap(text, from..range.start, &mut found);
        from = range.end;
        found.push((range, class(text, &tokens, index)));
    }
    // What is not cut into tokens is a text or a comment without its end.
    match problem.filter(|_| from < text.len() && !text[from..].trim().is_empty()) {
        Some(_) => {
            let start = from + text[from..].find(|c: char| !c.is_whitespace()).unwrap_or(0);
            gap(text, from..start, &mut found);
            let comment = text[start..].starts_with("/*") || text[start..].starts_with("//");
            found.push((start..text.len(), if comment { Class::Comment } else { Class::Text }));
        }
        None => gap(text, from..text.len(), &mut found),
    }
    found
}

fn class(text: &str, tokens: &[Token], index: usize) -> Class {
    let word = |index: usize| tokens.get(index).map_or("", |token| &text[token.range()]);
    match tokens[index].kind {
        Kind::Word => match word(index) {
            "true" | "false" => Class::Constant,
            name if is_keyword(name) => Class::Keyword,
            _ if word(index + 1) == "(" => Class::Call,
            _ => Class::Name,
        },
        Kind::Number => Class::Number,
        Kind::Str | Kind::Char | Kind::TextOpen | Kind::TextEnd => Class::Text,
        Kind::Symbol | Kind::Unknown => Class::Symbol,
    }
}

/// Blanks and comments between two tokens.
fn gap(text: &str, range: Range<usize>, found: &mut Vec<(Range<usize>, Class)>) {
    if range.is_empty() {
        return;
    }
    let class = if text[range.clone()].trim().is_empty() { Class::Nothing } else { Class::Comment };
    found.push((range, class));
}

/// The bracket at a byte, or right before it, and its partner.
pub fn brackets(text: &str, at: usize) -> Option<[Range<usize>; 2]> {
    let (tokens, _) = lex_partial(text);
    let bracket = |token: &&Token| token.kind == Kind::Symbol && tokens[token.partner as usize].start != token.start;
    let touched = |token: &&Token| token.start as usize == at || token.end as usize == at;
    let token = tokens.iter().filter(bracket).rfind(touched)?;
    Some([token.range(), tokens[token.partner as usize].range()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(&str, Class)> {
        classes(text).into_iter().map(|(range, class)| (&text[range], class)).collect()
    }

    #[test]
    fn words_have_classes_and_nothing_is_lost() {
        use Class::*;
        let expected = [("let", Keyword), (" ", Nothing), ("x", Name), (" ", Nothing), ("=", Symbol), (" ", Nothing)];
        assert_eq!(of("let x = f(1)")[..6], expected);
        assert_eq!(of("f(1)")[0], ("f", Call));
        assert_eq!(of("1 // a")[1], (" // a", Comment));
        assert_eq!(of("(\"ab").last(), Some(&("\"ab", Text)));
        assert_eq!(of("x /* ab").last(), Some(&("/* ab", Comment)));
        for text in ["", "é`${x}`", "a \"", "`${", "/*", "'", "#\"", "x = [1, (2 // c\n", "日本 🦀 'x", "\r\n\t"] {
            let whole: String = classes(text).into_iter().map(|(range, _)| &text[range]).collect();
            assert_eq!(whole, text);
        }
    }

    #[test]
    fn brackets_find_each_other() {
        assert_eq!(brackets("f(a[1])", 7), Some([6..7, 1..2]));
        assert_eq!(brackets("f(a[1])", 1), Some([1..2, 6..7]));
        assert_eq!(brackets("f(\")\"", 4), None);
        assert_eq!(brackets("f(", 2), None);
        assert_eq!(brackets("#{a: 1}", 0), Some([0..2, 6..7]));
    }
}
