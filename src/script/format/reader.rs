//! Reads tokens and writes documents. Comments come along with the tokens behind them, or before the end of a line.
//!
//! As `source/tree.rs` it accepts every text that is cut into tokens; what it does not know it leaves in its order.

use super::comments::Comment;
use super::doc::{Doc, Docs};
use crate::script::source::lex::{Kind, Token};
use std::ops::Range;

mod chains;
mod expressions;
mod flow;
mod lists;
mod statements;

/// Bound: nesting that is formatted; the parser refuses less.
const DEPTH: usize = 400;

pub struct Reader<'a> {
    pub src: &'a str,
    pub tokens: &'a [Token],
    pub comments: &'a [Comment],
    pub docs: Docs,
    at: usize,
    /// The first comment that has no document yet.
    comment: usize,
    /// In the head of a statement, where a `{` begins its body.
    head: bool,
    /// In the cases of a `switch`, where `|` stands between them.
    pattern: bool,
    depth: usize,
    pub is_too_deep: bool,
    /// All statements.
    pub places: Vec<Place>,
    /// Blocks so far, which give `Place::block`.
    blocks: u32,
}

/// Where a statement stands.
#[derive(Clone, Debug)]
pub struct Place {
    /// Which block, or the text, has it.
    pub block: u32,
    pub bytes: Range<usize>,
}

/// An expression, and what it is where it stands last in a call.
#[derive(Clone, Copy)]
struct Expr {
    doc: Doc,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One token, or a text with interpolations.
    Atom,
    Number,
    Array,
    Map,
    /// A function with arguments in parentheses, which can be broken.
    Call,
    /// A chain of methods of which the last one's arguments can be broken alone.
    Chain,
    /// A closure with a body that can be broken alone.
    Closure,
    /// A `{`, or a construct that ends in a block.
    Block,
    /// Not in a group yet.
    Binary,
    Other,
}

impl<'a> Reader<'a> {
    pub fn new(src: &'a str, tokens: &'a [Token], comments: &'a [Comment]) -> Reader<'a> {
        let docs = Docs::new(tokens.len());
        Reader {
            src,
            tokens,
            comments,
            docs,
            at: 0,
            comment: 0,
            head: false,
            pattern: false,
            depth: 0,
            is_too_deep: false,
            places: Vec::new(),
            blocks: 0,
        }
    }

    /// The document of the whole text.
    pub fn text(&mut self) -> Doc {
        let body = self.statements(self.tokens.len()).doc;
        let end = self.docs.end(false);
        self.docs.concat(&[body, end])
    }

    fn word(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &self.src[token.range()])
    }

    /// The current token if it is a word or symbol, so that a string `"if"` is not a keyword.
    fn peek(&self) -> &'a str {
        match self.kind() {
            Some(Kind::Word | Kind::Symbol) => self.word(self.at),
            _ => "",
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    /// The partner of the bracket here.
    fn partner(&self) -> usize {
        self.tokens[self.at].partner as usize
    }

    /// Where the token here begins, or the text ends.
    fn start(&self) -> usize {
        self.tokens.get(self.at).map_or(self.src.len(), |token| token.start as usize)
    }

    /// Where the next comment or token begins.
    fn next_start(&self) -> usize {
        let comment = self.pending().map(|comment| comment.start as usize);
        comment.unwrap_or(self.start())
    }

    /// The next comment before the token here.
    fn pending(&self) -> Option<Comment> {
        self.comments.get(self.comment).copied().filter(|comment| (comment.start as usize) < self.start())
    }

    /// Whether lines without text stand before a byte.
    fn is_blank_before(&self, at: usize) -> bool {
        self.blanks_before(at).filter(|&byte| byte == b'\n').nth(1).is_some()
    }

    /// Whether a line ends before a byte.
    fn begins_line(&self, at: usize) -> bool {
        self.blanks_before(at).any(|byte| byte == b'\n')
    }

    fn blanks_before(&self, at: usize) -> impl Iterator<Item = u8> {
        self.src.as_bytes()[..at].iter().rev().copied().take_while(u8::is_ascii_whitespace)
    }

    /// The token here, behind its comments.
    fn token(&mut self) -> Doc {
        let Some(token) = self.tokens.get(self.at) else { return Docs::NOTHING };
        let range = token.range();
        let text = self.docs.source(range.start, range.end);
        if self.pending().is_none() {
            self.at += 1;
            return text;
        }
        let before = self.leading();
        self.at += 1;
        self.docs.concat(&[before, text])
    }

    /// The comments before the token here. In front of a statement or item they stand outside of its groups.
    fn leading(&mut self) -> Doc {
        let mut parts = Vec::new();
        while let Some(comment) = self.pending() {
            parts.push(self.next_comment());
            let next = self.next_start();
            parts.push(match comment.ends_line {
                true => self.docs.end(self.is_blank_before(next)),
                false => self.docs.space(),
            });
        }
        self.docs.concat(&parts)
    }

    fn next_comment(&mut self) -> Doc {
        let index = self.comment;
        self.comment += 1;
        self.docs.comment(index, self.comments[index].ends_line)
    }

    /// The comments here that stand on the line of what was read last.
    fn trailing(&mut self) -> Doc {
        let mut parts = Vec::new();
        while self.pending().is_some_and(|comment| comment.trails) {
            parts.push(self.next_comment());
        }
        self.docs.concat(&parts)
    }

    /// The same, unless what follows on the line is what they are about; `end` is the bracket that ends the list.
    fn trailing_to(&mut self, end: usize) -> Doc {
        let rest = &self.comments[self.comment.min(self.comments.len())..];
        let here = rest.iter().take_while(|comment| comment.trails && (comment.start as usize) < self.start());
        if self.at == end || here.last().is_some_and(|comment| comment.ends_line) {
            return self.trailing();
        }
        Docs::NOTHING
    }

    /// The comments before the token here, each on its own line.
    fn comment_lines(&mut self, parts: &mut Vec<Doc>, is_first: bool) {
        let mut is_first = is_first;
        while let Some(comment) = self.pending() {
            if !is_first {
                parts.push(self.docs.end(self.is_blank_before(comment.start as usize)));
            }
            parts.push(self.next_comment());
            is_first = false;
        }
    }

    /// A blank and the token here.
    fn spaced(&mut self, parts: &mut Vec<Doc>) {
        parts.push(self.docs.space());
        parts.push(self.token());
    }

    /// The rest before a token, where the grammar knows none.
    fn leftovers(&mut self, end: usize, parts: &mut Vec<Doc>) {
        while self.at < end {
            self.spaced(parts);
        }
    }

    /// Reads a nested level; what is too deep is left as it is.
    fn nested<T>(&mut self, end: usize, read: impl FnOnce(&mut Self) -> T, skip: impl FnOnce(Doc) -> T) -> T {
        self.depth += 1;
        let found = if self.depth < DEPTH {
            read(self)
        } else {
            self.is_too_deep = true;
            let mut parts = vec![self.token()];
            self.leftovers(end, &mut parts);
            skip(self.docs.concat(&parts))
        };
        self.depth -= 1;
        found
    }

    /// Reads with the state of the beginning of a text.
    fn afresh<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        let found = read(self);
        (self.head, self.pattern) = outer;
        found
    }
}

impl Expr {
    fn new(doc: Doc, shape: Shape) -> Expr {
        Expr { doc, shape }
    }

    fn other(doc: Doc) -> Expr {
        Expr { doc, shape: Shape::Other }
    }
}
