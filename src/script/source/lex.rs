//! Tokens of a script with byte spans, cut as Rhai cuts them, and the check that delimiters match.
//!
//! Rhai's own lexer gives the start of a token but no end, and needs its parser for interpolated text; this one is
//! complete and fails only on text that no script can contain. It does not know the grammar: `tree.rs` decides what a
//! `|` means.

use super::tree::is_keyword;
use std::borrow::Cow;
use std::ops::Range;

/// The kind of a token. Reserved words are `Word`s like any other name; the grammar decides which are keywords.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A name or keyword.
    Word,
    Number,
    /// `"..."`, `#"..."#`, or a backtick text without interpolation.
    Str,
    Char,
    /// A piece of backtick text that is followed by an interpolation `{ ... }`.
    TextOpen,
    /// The last piece of a text that had interpolations.
    TextEnd,
    /// An operator or a delimiter.
    Symbol,
    /// A character that no script contains; Rhai reports it.
    Unknown,
}

/// One token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
    /// For a delimiter: the index of its partner. Otherwise its own index.
    pub partner: u32,
}

impl Token {
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Why a text cannot be cut into tokens.
#[derive(Clone, PartialEq, Debug)]
pub struct LexError {
    pub message: String,
    /// Byte ranges with labels, the primary one first.
    pub labels: Vec<(Range<usize>, String)>,
    pub help: Option<String>,
    /// More text could make it valid: the REPL requests another line.
    pub incomplete: bool,
}

/// Longest first within a first character.
const SYMBOLS: &[&str] = &[
    "**=", "===", "!==", "..=", "...", "<<=", ">>=", "::<", "#{", "()", "+=", "++", "-=", "->", "--", "**", "*=", "/=",
    "..", "==", "=>", "::", ":=", "<=", "<-", "<<", "<|", ">=", ">>", "!=", "||", "|=", "|>", "&&", "&=", "^=", "%=",
    "?.", "??", "?[",
];

pub(super) struct Lexer<'a> {
    pub(super) src: &'a str,
    pub(super) at: usize,
    pub(super) tokens: Vec<Token>,
    /// Open delimiters: token index.
    pub(super) open: Vec<u32>,
}

/// Cuts `src` into tokens; `from` is its first byte of script (after a byte order mark or a `#!` line).
pub fn lex(src: &str, from: usize) -> Result<Vec<Token>, LexError> {
    let mut lexer = Lexer { src, at: from, tokens: Vec::with_capacity(src.len() / 4), open: Vec::new() };
    while lexer.skip_trivia()? {
        lexer.token()?;
    }
    match lexer.open.last() {
        None => Ok(lexer.tokens),
        Some(&open) => Err(lexer.never_closed(open)),
    }
}

/// The tokens that a caller has of a text, or those that are read now.
pub fn tokens_of<'t>(text: &str, known: Option<&'t [Token]>) -> Cow<'t, [Token]> {
    known.map_or_else(|| Cow::Owned(lex_partial(text).0), Cow::Borrowed)
}

/// The tokens of an unfinished text: all up to the first problem, and the problem. Delimiters without a partner are
/// their own partner.
pub fn lex_partial(src: &str) -> (Vec<Token>, Option<LexError>) {
    let mut lexer = Lexer { src, at: script_start(src), tokens: Vec::new(), open: Vec::new() };
    let problem = loop {
        match lexer.skip_trivia() {
            Ok(true) => {}
            Ok(false) => break lexer.open.last().map(|&open| lexer.never_closed(open)),
            Err(error) => break Some(error),
        }
        if let Err(error) = lexer.token() {
            break Some(error);
        }
    };
    (lexer.tokens, problem)
}

/// Byte at which the script starts: after a byte order mark and a `#!` line.
pub fn script_start(src: &str) -> usize {
    let mut at = if src.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    if src[at..].starts_with("#!") {
        at += src[at..].find('\n').unwrap_or(src.len() - at);
    }
    at
}

impl<'a> Lexer<'a> {
    pub(super) fn byte(&self, device_prefetch: usize) -> u8 {
        self.src.as_bytes().get(self.at + device_prefetch).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a str {
        &self.src[self.at..]
    }

    pub(super) fn text(&self, token: u32) -> &'a str {
        &self.src[self.tokens[token as usize].range()]
    }

    pub(super) fn push(&mut self, kind: Kind, start: usize) {
        let index = self.tokens.len() as u32;
        self.tokens.push(Token { kind, start: start as u32, end: self.at as u32, partner: index });
    }

    /// Skips blanks and comments; false at the end of the text.
    pub(super) fn skip_trivia(&mut self) -> Result<bool, LexError> {
        loop {
            match self.byte(0) {
                0 if self.at >= self.src.len() => return Ok(false),
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                b'/' if self.byte(1) == b'*' => self.block_comment()?,
                _ => return Ok(true),
            }
        }
    }

    fn block_comment(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let mut level = 0usize;
        while self.at < self.src.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => (level, self.at) = (level + 1, self.at + 2),
                (b'*', b'/') => (level, self.at) = (level - 1, self.at + 2),
                _ => self.at += 1,
            }
            if level == 0 {
                return Ok(());
            }
        }
        Err(LexError {
            message: "a comment is never closed".into(),
            labels: vec![(start..start + 2, "opened here".into())],
            help: Some("close it with `*/`; comments nest, so each `/*` inside needs its own".into()),
            incomplete: true,
        })
    }

    pub(super) fn token(&mut self) -> Result<(), LexError> {
        let start = self.at;
        match self.byte(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let length = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
                self.at += length;
                self.push(Kind::Word, start);
            }
            b'0'..=b'9' => {
                self.number();
                self.fits(start)?;
                self.push(Kind::Number, start);
            }
            b'"' => self.string()?,
            b'\'' => self.character()?,
            b'`' => {
                self.at += 1;
                self.backtick(start)?;
            }
            b'#' if matches!(self.byte(1), b'"' | b'#') => self.raw_string()?,
            _ => self.symbol()?,
        }
        Ok(())
    }

    /// As in Rhai: `1.` before a name or another dot is a number and a dot.
    fn number(&mut self) {
        let digits = |lexer: &mut Self, radix: u32| {
            while lexer.byte(0) == b'_' || (lexer.byte(0) as char).is_digit(radix) {
                lexer.at += 1;
            }
        };
        if self.byte(0) == b'0'
            && let radix @ (2 | 8 | 16) = match self.byte(1) {
                b'x' | b'X' => 16,
                b'o' | b'O' => 8,
                b'b' | b'B' => 2,
                _ => 0,
            }
        {
            self.at += 2;
            return digits(self, radix);
        }
        digits(self, 10);
        if self.byte(0) == b'.' && self.at + 1 < self.src.len() {
            match self.byte(1) {
                b'0'..=b'9' => self.at += 1,
                b'_' | b'.' | b'a'..=b'z' | b'A'..=b'Z' => return,
                _ => self.at += 1,
            }
            digits(self, 10);
        }
        if matches!(self.byte(0), b'e' | b'E') && matches!(self.byte(1), b'0'..=b'9' | b'+' | b'-') {
            self.at += 2;
            digits(self, 10);
        }
    }

    /// Whether the number that began at a byte is no integer beyond 64 bits, which Rhai makes a float.
    fn fits(&self, start: usize) -> Result<(), LexError> {
        let written = &self.src[start..self.at];
        let digits = written.replace('_', "");
        let fits = |digits: &str| digits.parse::<i64>().is_ok();
        // Bound: no integer of so few digits is beyond.
        if written.len() < 19 || !digits.bytes().all(|digit| digit.is_ascii_digit()) || fits(&digits) {
            return Ok(());
        }
        if self.has_sign(start) && fits(&format!("-{digits}")) {
            return Ok(());
        }
        Err(LexError {
            message: format!("`{written}` is beyond the integers, which have 64 bits"),
            labels: vec![(start..self.at, "at most 9223372036854775807".into())],
            help: Some(format!("a float reaches further: `{written}.0`, `1e20`")),
            incomplete: false,
        })
    }

    /// Whether a `-` stands right before the number that begins at a byte, and subtracts nothing: to Rhai it is a part of it.
    fn has_sign(&self, start: usize) -> bool {
        let [before @ .., sign] = &*self.tokens else { return false };
        let ends_value = |token: &Token| match (token.kind, &self.src[token.range()]) {
            (Kind::Word, word) => !is_keyword(word) || matches!(word, "true" | "false"),
            (Kind::Symbol, symbol) => matches!(symbol, ")" | "]" | "}"),
            _ => true,
        };
        sign.end as usize == start && &self.src[sign.range()] == "-" && !before.last().is_some_and(ends_value)
    }

    fn string(&mut self) -> Result<(), LexError> {
        let start = self.at;
        self.at += 1;
        while self.at < self.src.len() {
            match self.byte(0) {
                b'"' if self.byte(1) == b'"' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    self.push(Kind::Str, start);
                    return Ok(());
                }
                // A backslash before the end of the line continues the string on the next.
                b'\\' if self.rest().starts_with("\\\r\n") => self.at += 3,
                b'\\' => {
                    self.at += 1;
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                b'\n' => break,
                _ => self.at += 1,
            }
        }
        let end = self.at.min(start + self.src[start..].lines().next().map_or(0, str::len)).max(start + 1);
        Err(LexError {
            message: "a string is never closed".into(),
            labels: vec![(start..end, "opened here, and its line ends without a `\"`".into())],
            help: Some("close it with `\"`; text over several lines goes between backticks".into()),
            incomplete: self.at >= self.src.len() && self.src[start..].ends_with('\\'),
        })
    }

    fn character(&mut self) -> Result<(), LexError> {
        let start = self.at;
        self.at += 1;
        self.label(start)?;
        while self.at < self.src.len() {
            match self.byte(0) {
                b'\'' => {
                    self.at += 1;
                    self.push(Kind::Char, start);
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                b'\n' => break,
                _ => self.at += 1,
            }
        }
        Err(LexError {
            message: "a character literal is never closed".into(),
            labels: vec![(start..start + 1, "opened here".into())],
            help: Some("single quotes hold one character, `'a'`; a string has double quotes, `\"text\"`".into()),
            incomplete: false,
        })
    }

    /// Whether no label of a loop begins here, which would be a character up to the next quote: `'outer: for x in xs`.
    fn label(&self, start: usize) -> Result<(), LexError> {
        let rest = self.rest();
        let name = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let word =
            rest[name..].strip_prefix(':').map_or("", |rest| rest.trim_start().split([' ', '{']).next().unwrap_or(""));
        if name == 0 || !matches!(word, "for" | "while" | "loop" | "do") {
            return Ok(());
        }
        Err(LexError {
            message: "loops have no labels".into(),
            labels: vec![(start..self.at + name + 1, "a label".into())],
            help: Some(
                "a function around the loops ends both: `fn find(xs) { for x in xs { for y in x { return y; } } }`"
                    .into(),
            ),
            incomplete: false,
        })
    }

    fn raw_string(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let hashes = self.rest().bytes().take_while(|b| *b == b'#').count();
        self.at += hashes;
        if self.byte(0) != b'"' {
            self.push(Kind::Unknown, start);
            return Ok(());
        }
        self.at += 1;
        let closing = format!("\"{}", "#".repeat(hashes));
        match self.rest().find(&closing) {
            Some(found) => {
                self.at += found + closing.len();
                self.push(Kind::Str, start);
                Ok(())
            }
            None => Err(LexError {
                message: "a raw string is never closed".into(),
                labels: vec![(start..start + hashes + 1, "opened here".into())],
                help: Some(format!("close it with `{closing}`")),
                incomplete: true,
            }),
        }
    }

    /// The text from here to its closing backtick or to the next `${`, of which the `{` becomes a token.
    fn backtick(&mut self, start: usize) -> Result<(), LexError> {
        let resumed = !self.src[start..].starts_with('`') || self.at == start;
        while self.at < self.src.len() {
            match self.byte(0) {
                b'$' if self.byte(1) == b'{' => {
                    self.at += 1;
                    self.push(Kind::TextOpen, start);
                    let brace = self.at;
                    self.at += 1;
                    self.open.push(self.tokens.len() as u32);
                    self.push(Kind::Symbol, brace);
                    return Ok(());
                }
                b'\\' if self.rest().starts_with("\\${") => self.at += 3,
                b'`' if self.byte(1) == b'`' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    self.push(if resumed { Kind::TextEnd } else { Kind::Str }, start);
                    return Ok(());
                }
                _ => self.at += 1,
            }
        }
        let opening = if resumed { self.text_start() } else { start };
        Err(LexError {
            message: "a text between backticks is never closed".into(),
            labels: vec![(opening..opening + 1, "opened here".into())],
            help: Some("close it with a backtick".into()),
            incomplete: true,
        })
    }

    /// Where the backtick text began whose interpolation has just ended.
    fn text_start(&self) -> usize {
        let mut index = self.tokens.len();
        while index > 0 {
            index -= 1;
            let token = self.tokens[index];
            match token.kind {
                Kind::Symbol if self.text(index as u32) == "}" => index = token.partner as usize,
                Kind::TextOpen if self.src[token.range()].starts_with('`') => return token.start as usize,
                _ => {}
            }
        }
        0
    }

    fn symbol(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let rest = self.rest();
        // `!in` is an operator unless the name goes on.
        let not_in = rest.starts_with("!in")
            && !rest[3..].bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        let symbol = if not_in {
            "!in"
        } else {
            // Most symbols are single: other second characters need no search.
            let continues = b"*=.<{)+>-:|&?[".contains(&self.byte(1));
            let found = SYMBOLS.iter().filter(|symbol| continues && symbol.as_bytes()[0] == self.byte(0));
            found.copied().find(|symbol| rest.starts_with(*symbol)).unwrap_or_else(|| {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                &rest[..first]
            })
        };
        match symbol {
            "()" => {
                self.at += 1;
                self.open.push(self.tokens.len() as u32);
                self.push(Kind::Symbol, start);
                self.at += 1;
                return self.close(start + 1);
            }
            "(" | "[" | "{" | "#{" | "?[" => {
                self.at += symbol.len();
                self.open.push(self.tokens.len() as u32);
                self.push(Kind::Symbol, start);
            }
            ")" | "]" | "}" => {
                self.at += 1;
                return self.close(start);
            }
            _ => {
                self.at += symbol.len();
                let known = not_in || symbol.bytes().all(|b| b.is_ascii_punctuation());
                self.push(if known { Kind::Symbol } else { Kind::Unknown }, start);
            }
        }
        Ok(())
    }

    /// A closing delimiter was passed: finds its partner, and continues the text that it interrupted.
    fn close(&mut self, start: usize) -> Result<(), LexError> {
        let closing = &self.src[start..self.at];
        let Some(open) = self.open.pop() else {
            return Err(LexError {
                message: format!("`{closing}` closes nothing"),
                labels: vec![(start..self.at, "nothing is open here".into())],
                help: None,
                incomplete: false,
            });
        };
        let wanted = closing_of(self.text(open));
        if wanted != closing {
            let opening = self.tokens[open as usize].range();
            return Err(LexError {
                message: format!("`{}` is closed by `{closing}`", self.text(open)),
                labels: vec![
                    (start..self.at, format!("a `{wanted}` was expected")),
                    (opening, "this is what is open".into()),
                ],
                help: None,
                incomplete: false,
            });
        }
        let index = self.tokens.len() as u32;
        self.push(Kind::Symbol, start);
        self.tokens[index as usize].partner = open;
        self.tokens[open as usize].partner = index;
        let interpolation = open > 0 && self.tokens[open as usize - 1].kind == Kind::TextOpen;
        if interpolation { self.backtick(self.at) } else { Ok(()) }
    }

    fn never_closed(&self, open: u32) -> LexError {
        let opening = self.text(open);
        let closing = closing_of(opening);
        // For `f(a // b)`.
        let line = self.src[self.tokens[open as usize].end as usize..].lines().next().unwrap_or("");
        let in_comment = line.split_once("//").is_some_and(|(_, comment)| comment.contains(closing));
        let help = match in_comment {
            true => format!("add the missing `{closing}`, unless `//` was to divide: it begins a comment"),
            false => format!("add the missing `{closing}`"),
        };
        LexError {
            message: format!("`{opening}` is never closed"),
            labels: vec![(self.tokens[open as usize].range(), "opened here".into())],
            help: Some(help),
            incomplete: true,
        }
    }
}

pub(super) fn closing_of(opening: &str) -> &'static str {
    match opening {
        "(" => ")",
        "[" | "?[" => "]",
        _ => "}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(src: &str) -> Vec<&str> {
        lex(src, 0).unwrap().iter().map(|t| &src[t.range()]).collect()
    }

    #[test]
    fn cuts_as_rhai_does() {
        assert_eq!(words("x[1..3]"), ["x", "[", "1", "..", "3", "]"]);
        assert_eq!(words("a!in b != !inner"), ["a", "!in", "b", "!=", "!", "inner"]);
        assert_eq!(words("1.5e-3.abs() 2.pow 0xFFu"), ["1.5e-3", ".", "abs", "(", ")", "2", ".", "pow", "0xFF", "u"]);
        assert_eq!(words("/* a /* b */ c */ x // y\n z"), ["x", "z"]);
        assert_eq!(words(r##"#"a"b"# "c""d\"" 'x' '\''"##), [r##"#"a"b"#"##, r#""c""d\"""#, "'x'", r"'\''"]);
    }

    /// The check before the table lookup must accept all of its symbols.
    #[test]
    fn every_symbol_is_found() {
        for symbol in SYMBOLS.iter().filter(|symbol| !matches!(**symbol, "()" | "#{" | "?[")) {
            assert_eq!(words(&format!("a{symbol}b")), ["a", *symbol, "b"]);
        }
        assert_eq!(words("a?[1] #{} f()"), ["a", "?[", "1", "]", "#{", "}", "f", "(", ")"]);
    }

    #[test]
    fn interpolation_nests() {
        assert_eq!(
            words("`a ${ `b ${c}` + #{d: 1} } \\${ e` f"),
            ["`a $", "{", "`b $", "{", "c", "}", "`", "+", "#{", "d", ":", "1", "}", "}", " \\${ e`", "f"]
        );
    }

    #[test]
    fn delimiters_name_their_opening() {
        let error = lex("f(a[1)", 0).unwrap_err();
        assert_eq!(error.message, "`[` is closed by `)`");
        assert_eq!((error.labels[0].0.clone(), error.labels[1].0.clone()), (5..6, 3..4));
        let error = lex("fn f() { if x {", 0).unwrap_err();
        assert_eq!((error.message.as_str(), error.labels[0].0.clone()), ("`{` is never closed", 14..15));
        assert!(error.incomplete);
        assert_eq!(lex("a)", 0).unwrap_err().message, "`)` closes nothing");
        assert_eq!(lex("x `a ${b} c", 0).unwrap_err().labels[0].0, 2..3);
    }
}
