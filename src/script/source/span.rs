//! From one byte of a source to the bytes of an operation: the operator or call, the whole expression, an argument, a
//! keyword. Created only for diagnostics.

use super::lex::{self, Token};
use super::tree::{self, Earlier, Node, NodeKind, Run, Tree};
use crate::base::diag::Focus;
use std::ops::Range;

/// Tokens and operations of one original text; empty for a text that cannot be cut into tokens.
#[derive(Debug, Default)]
pub struct Spans {
    tokens: Vec<Token>,
    tree: Tree,
}

impl Spans {
    pub fn new(text: &str) -> Spans {
        let tokens = lex::lex(text, lex::script_start(text)).unwrap_or_default();
        let tree = tree::read(text, &tokens, &|_| true, &Earlier::NONE);
        Spans { tokens, tree }
    }

    fn bytes(&self, run: Run) -> Range<usize> {
        match (self.tokens.get(run.first as usize), self.tokens.get(run.last as usize)) {
            (Some(first), Some(last)) => first.start as usize..last.end as usize,
            _ => 0..0,
        }
    }

    fn text<'a>(&self, text: &'a str, token: u32) -> &'a str {
        self.tokens.get(token as usize).map_or("", |token| &text[token.range()])
    }

    /// The token that covers a byte, or the next one if it lies between tokens.
    fn token_at(&self, offset: usize) -> Option<u32> {
        let index = self.tokens.partition_point(|token| token.end as usize <= offset);
        (index < self.tokens.len()).then_some(index as u32)
    }

    /// The operation whose focus is this token.
    fn node(&self, token: u32) -> Option<&Node> {
        let index = self.tree.nodes.binary_search_by_key(&token, |node| node.focus).ok()?;
        self.tree.nodes.get(index)
    }

    /// Bytes of `focus` for the position `offset` that Rhai reports.
    pub fn find(&self, text: &str, offset: usize, focus: Focus, keyword: Option<&str>) -> Range<usize> {
        if let Focus::Characters(count) = focus {
            return characters(text, offset, count as usize);
        }
        let Some(token) = self.token_at(offset) else { return at_least_one(text, offset) };
        if self.tokens[token as usize].start as usize > offset && focus != Focus::Expression {
            // Between tokens: nothing there has a name.
            return at_least_one(text, offset);
        }
        // Errors of an indexer by name are at the dot, `group.lr = "a"`; the name is more useful.
        let dot = matches!(self.text(text, token), "." | "?.") && self.node(token + 1).is_some();
        let token = token + dot as u32;
        let Some(node) = self.node(token) else { return self.leaf(token, focus) };
        match focus {
            Focus::Call => self.bytes(node.call),
            Focus::Expression => self.bytes(node.whole),
            Focus::Argument(n) => node.args.get(n).map_or_else(|| self.bytes(node.call), |run| self.bytes(*run)),
            Focus::Keyword => self.keyword(text, node, keyword).unwrap_or_else(|| self.bytes(node.call)),
            Focus::Characters(_) => self.bytes(node.call),
        }
    }

    /// A name or literal: itself, or the largest expression that begins with it.
    fn leaf(&self, token: u32, focus: Focus) -> Range<usize> {
        let alone = Run { first: token, last: token };
        if focus != Focus::Expression {
            return self.bytes(alone);
        }
        let starts = self.tree.nodes.iter().filter(|node| node.whole.first == token);
        // Not an assignment, which is a statement and not a value.
        let chain = starts.filter(|node| matches!(node.kind, NodeKind::Call | NodeKind::Index | NodeKind::Property));
        self.bytes(chain.map(|node| node.whole).max_by_key(|whole| whole.last).unwrap_or(alone))
    }

    /// `dim: 1` in the map that ends the argument list.
    fn keyword(&self, text: &str, node: &Node, keyword: Option<&str>) -> Option<Range<usize>> {
        let (keyword, map) = (keyword?, node.args.last()?);
        if self.text(text, map.first) != "#{" {
            return None;
        }
        let mut at = map.first + 1;
        while at < map.last {
            // After the value: up to the next comma outside of delimiters.
            let mut end = at;
            while end < map.last && self.text(text, end) != "," {
                end = self.tokens[end as usize].partner.max(end) + 1;
            }
            if self.text(text, at).trim_matches('"') == keyword && end > at {
                return Some(self.bytes(Run { first: at, last: end - 1 }));
            }
            at = end + 1;
        }
        None
    }
}

/// So many characters from a byte on, at least one, and not beyond the line.
fn characters(text: &str, offset: usize, count: usize) -> Range<usize> {
    let start = at_least_one(text, offset).start;
    let mut line = text[start..].char_indices().take_while(|(_, c)| *c != '\n' && *c != '\r');
    let end = line.by_ref().take(count.max(1)).last().map_or(start, |(at, c)| start + at + c.len_utf8());
    start..end
}

/// The character at a byte, or the last one of the text.
fn at_least_one(text: &str, offset: usize) -> Range<usize> {
    let offset = offset.min(text.len());
    match text[offset..].chars().next() {
        Some(c) if c != '\n' && c != '\r' => offset..offset + c.len_utf8(),
        _ => offset..offset,
    }
}
