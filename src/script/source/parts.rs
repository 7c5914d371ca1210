//! What a pattern of `let`, `const` or `for` may be made of: names that differ, `_`, `[..]`, `#{name: ..}`, with commas
//! between, and a `..rest` at the end.

use super::lex::{Kind, LexError, Token};
use super::tree::{Run, is_keyword};
use std::ops::Range;

/// The first thing in a pattern that cannot be there.
pub fn check(src: &str, tokens: &[Token], pattern: Run) -> Result<(), LexError> {
    Reader { src, tokens, at: pattern.first as usize, names: Vec::new() }.pattern()
}

struct Reader<'a> {
    src: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// The names so far, by their tokens.
    names: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.src[token.range()])
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.text(self.at) == text;
        self.at += found as usize;
        found
    }

    fn pattern(&mut self) -> Result<(), LexError> {
        match self.text(self.at) {
            "[" => self.items(Self::pattern),
            "#{" => {
                // Each map has its own keys.
                let mut keys = Vec::new();
                self.items(|reader| reader.entry(&mut keys))
            }
            _ => self.name(),
        }
    }

    /// `x`, `x: pattern` or `"two words": pattern`.
    fn entry(&mut self, keys: &mut Vec<usize>) -> Result<(), LexError> {
        let key = self.at;
        let has_pattern = self.text(key + 1) == ":";
        let is_key = match self.tokens[key].kind {
            Kind::Word => true,
            // Bound: what the pattern can be written with inside of a string.
            Kind::Str => {
                let text = self.text(key);
                text.starts_with('"') && !text[1..text.len() - 1].contains(['"', '\'', '\\', '\n', '\r'])
            }
            _ => false,
        };
        if has_pattern && is_key {
            self.at += 2;
            self.pattern()?;
        } else {
            self.name()?;
        }
        match self.earlier(keys, key) {
            Some(first) => Err(self.twice("key", first, key)),
            None => {
                keys.push(key);
                Ok(())
            }
        }
    }

    fn name(&mut self) -> Result<(), LexError> {
        let name = self.at;
        let is_name = self.tokens[name].kind == Kind::Word && !is_keyword(self.text(name));
        if !is_name {
            let help = "patterns have names, `_`, `[..]`, `#{name: ..}`, and `..rest` at their end";
            let message = format!("this is no pattern: a name is expected, not `{}`", self.text(name));
            return Err(self.wrong(message, "here", name).with_help(help));
        }
        self.at += 1;
        if self.text(name) == "_" {
            return Ok(());
        }
        match self.earlier(&self.names, name) {
            Some(first) => Err(self.twice("name", first, name)),
            None => {
                self.names.push(name);
                Ok(())
            }
        }
    }

    /// What stands between the bracket here and its partner.
    fn items(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), LexError>) -> Result<(), LexError> {
        let end = self.tokens[self.at].partner as usize;
        self.at += 1;
        while self.at < end {
            let is_rest = self.eat("..");
            if !is_rest {
                item(self)?;
            } else if !matches!(self.text(self.at), "," | "]" | "}") {
                self.name()?;
            }
            if self.at < end && !self.eat(",") {
                let label = format!("found `{}` where `,` was expected", self.text(self.at));
                return Err(self.wrong("`,` is missing between the parts of a pattern".into(), &label, self.at));
            }
            if is_rest && self.at < end {
                return Err(self.wrong("`..` is the last part of a pattern".into(), "this comes behind it", self.at));
            }
        }
        self.at = end + 1;
        Ok(())
    }

    /// The one of these tokens that has the text of another.
    fn earlier(&self, tokens: &[usize], other: usize) -> Option<usize> {
        tokens.iter().copied().find(|&token| self.text(token) == self.text(other))
    }

    fn twice(&self, what: &str, first: usize, again: usize) -> LexError {
        let mut error = self.wrong(format!("the {what} `{}` is given twice", self.text(again)), "here again", again);
        error.labels.push((self.range(first), "first given here".into()));
        error.with_help("give each its own name")
    }

    fn wrong(&self, message: String, label: &str, at: usize) -> LexError {
        LexError { message, labels: vec![(self.range(at), label.into())], help: None, incomplete: false }
    }

    fn range(&self, at: usize) -> Range<usize> {
        self.tokens[at].range()
    }
}

impl LexError {
    fn with_help(self, help: &str) -> LexError {
        LexError { help: Some(help.into()), ..self }
    }
}
