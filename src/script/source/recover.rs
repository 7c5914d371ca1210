//! Tokens of a text that is being typed. Cuts every text: what `lex` refuses is mended, so that what stands around the
//! place keeps its structure. Mended places are tokens without characters.
//!
//! - An open bracket is closed before a bracket that closes an outer one, and before a line that begins with a word
//!   that begins only statements; a block before a line of the first column that defines a function.
//! - A closing bracket that closes nothing is a token that nothing knows.
//! - A string ends with its line at the latest.
//! - A dot without a name gets an empty one.

use super::lex::{Kind, Lexer, Token, closing_of, script_start};

/// The tokens of a text, whatever is wrong with it.
pub fn recover(src: &str) -> Vec<Token> {
    let mut lexer = Lexer { src, at: script_start(src), tokens: Vec::with_capacity(src.len() / 4), open: Vec::new() };
    // A comment that never ends is the end, too.
    while let Ok(true) = lexer.skip_trivia() {
        if lexer.mend() {
            continue;
        }
        let start = lexer.at;
        if lexer.token().is_err() {
            lexer.end_literal(start);
        }
    }
    lexer.name_after_dot();
    while let Some(open) = lexer.open.pop() {
        lexer.close_unwritten(open);
    }
    lexer.tokens
}

/// Words that begin statements and never stand in an expression.
const STATEMENTS: &[&str] = &["let", "const", "fn", "private", "import", "export"];

impl<'a> Lexer<'a> {
    /// Mends what the token that comes next shows to be missing. True if that token is taken by this.
    fn mend(&mut self) -> bool {
        let word = self.word_here();
        let (first_of_line, column) = self.place();
        // `#{ import: 1 }`
        let is_key = self.src[self.at + word.len()..].trim_start().starts_with(':');
        if first_of_line && STATEMENTS.contains(&word) && !is_key {
            self.name_after_dot();
            let outermost = column == 0 && matches!(word, "fn" | "private" | "import");
            while let Some(&open) = self.open.last()
                && (outermost || self.text(open) != "{")
            {
                self.open.pop();
                self.close_unwritten(open);
            }
        } else if word.is_empty() {
            self.name_after_dot();
        }
        let closing = match self.byte(0) {
            b')' => ")",
            b']' => "]",
            b'}' => "}",
            _ => return false,
        };
        let Some(level) = self.open.iter().rposition(|&open| closing_of(self.text(open)) == closing) else {
            let start = self.at;
            self.at += 1;
            self.push(Kind::Unknown, start);
            return true;
        };
        for open in self.open.split_off(level + 1).into_iter().rev() {
            self.close_unwritten(open);
        }
        false
    }

    /// The word that begins here.
    fn word_here(&self) -> &'a str {
        let rest = &self.src[self.at..];
        let end = rest.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(rest.len());
        &rest[..end]
    }

    /// Whether the text here is the first of its line, and how many bytes stand before it there.
    fn place(&self) -> (bool, usize) {
        let line = self.src[..self.at].rfind('\n').map_or(0, |end| end + 1);
        (self.src[line..self.at].trim_matches([' ', '\t', '\u{feff}']).is_empty(), self.at - line)
    }

    /// Closes a bracket by a token without characters.
    fn close_unwritten(&mut self, open: u32) {
        let (index, at) = (self.tokens.len() as u32, self.tokens.last().map_or(0, |token| token.end));
        self.tokens.push(Token { kind: Kind::Symbol, start: at, end: at, partner: open });
        self.tokens[open as usize].partner = index;
    }

    /// An empty name after a dot that has none.
    fn name_after_dot(&mut self) {
        let last = self.tokens.len().wrapping_sub(1) as u32;
        if self.tokens.last().is_some_and(|token| token.kind == Kind::Symbol)
            && matches!(self.text(last), "." | "?." | "::")
        {
            let (index, at) = (last + 1, self.tokens[last as usize].end);
            self.tokens.push(Token { kind: Kind::Word, start: at, end: at, partner: index });
        }
    }

    /// A literal that never ends, or a bracket that the lexer refuses: up to the end of its line.
    fn end_literal(&mut self, start: usize) {
        let line = self.src[start..].find(['\n', '\r']).map_or(self.src.len(), |end| start + end);
        let kind = match self.src.as_bytes().get(start) {
            Some(b'"' | b'`' | b'#') => Kind::Str,
            Some(b'}') => Kind::TextEnd,
            Some(b'\'') => Kind::Char,
            _ => Kind::Unknown,
        };
        // A text goes on after `}`: the brace is a token already.
        let start = self.tokens.last().map_or(start, |token| start.max(token.end as usize));
        self.at = match kind {
            Kind::Char => (start + 1).min(self.src.len()),
            _ => line.max(start),
        };
        if self.at > start {
            self.push(kind, start);
        } else if self.at < self.src.len() {
            // The end of a line.
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::source::lex::lex;

    /// The tokens as texts; one without characters as `~`.
    fn cut(src: &str) -> Vec<&str> {
        recover(src).iter().map(|token| if token.range().is_empty() { "~" } else { &src[token.range()] }).collect()
    }

    #[test]
    fn whole_texts_are_cut_as_by_the_lexer() {
        for text in
            ["", "let x = f(1, #{a: [2]}).g;", "`a${b + `c${d}`}e`", "#!/bin/x\nx", "/* /* */ */ 'a' \"b\"\"c\""]
        {
            assert_eq!(recover(text), lex(text, script_start(text)).expect(text));
        }
    }

    #[test]
    fn broken_texts_keep_what_stands_around() {
        assert_eq!(cut("f(1\nlet x = 2;"), ["f", "(", "1", "~", "let", "x", "=", "2", ";"]);
        assert_eq!(cut("{ f(1 }"), ["{", "f", "(", "1", "~", "}"]);
        assert_eq!(cut("x.\nlet y"), ["x", ".", "~", "let", "y"]);
        assert_eq!(cut("x. )"), ["x", ".", "~", ")"]);
        assert_eq!(cut("let s = \"ab\nlet t"), ["let", "s", "=", "\"ab", "let", "t"]);
        assert_eq!(
            cut("fn f() {\n if a {\nfn g() { }"),
            ["fn", "f", "(", ")", "{", "if", "a", "{", "~", "~", "fn", "g", "(", ")", "{", "}"]
        );
        assert_eq!(cut("a ) b"), ["a", ")", "b"]);
        assert_eq!(cut("a )"), ["a", ")"]);
    }

    #[test]
    fn every_prefix_is_cut_and_brackets_are_pairs() {
        let text = "fn f(x) { `a${x.b[1]}c`; g(#{a: 'c', b: \"d\"}, |y| y) /* z */ } # é \u{1f600} ";
        let ends = (0..=text.len()).filter(|&end| text.is_char_boundary(end));
        for part in ends.flat_map(|end| [&text[..end], &text[end..]]) {
            let tokens = recover(part);
            for (at, token) in tokens.iter().enumerate() {
                assert_eq!(tokens[token.partner as usize].partner as usize, at, "{part}");
                assert!(part.get(token.range()).is_some(), "{part}");
            }
            assert!(tokens.windows(2).all(|pair| pair[0].end <= pair[1].start), "{part}");
        }
    }
}
