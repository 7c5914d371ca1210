//! Statements and blocks.

use super::{Doc, Docs, Expr, Place, Reader, Shape};
use crate::script::source::lex::Kind;
use crate::script::source::tree::{block_statement, is_assignment};

/// The statements of a text or block.
pub(super) struct Statements {
    pub doc: Doc,
    pub count: usize,
}

impl Reader<'_> {
    /// Statements up to the token `end`, one a line, with the comments before it.
    pub(super) fn statements(&mut self, end: usize) -> Statements {
        self.afresh(|reader| {
            let mut parts = Vec::new();
            let mut count = 0;
            let block = reader.blocks;
            reader.blocks += 1;
            while reader.at < end {
                if count > 0 {
                    parts.push(reader.docs.end(reader.is_blank_before(reader.next_start())));
                }
                let before = reader.at;
                parts.push(reader.leading());
                let start = reader.start();
                parts.push(match block_statement(reader.src, reader.tokens, before) {
                    // It ends at its `}`.
                    Some(_) => reader.name().doc,
                    None => reader.statement().doc,
                });
                if reader.peek() == ";" && reader.at < end && reader.at > before {
                    parts.push(reader.token());
                }
                if reader.at == before {
                    parts.push(reader.token());
                }
                let last = reader.tokens[reader.at - 1];
                reader.places.push(Place { block, bytes: start..last.end as usize });
                parts.push(reader.trailing_to(end));
                count += 1;
            }
            reader.comment_lines(&mut parts, count == 0);
            Statements { doc: reader.docs.concat(&parts), count }
        })
    }

    /// `{ .. }` without a group around, and whether it must be broken: it has several statements, or its first one
    /// begins a line.
    pub(super) fn braces(&mut self) -> (Doc, bool) {
        if self.peek() != "{" {
            return (Docs::NOTHING, false);
        }
        let end = self.partner();
        let open = self.token();
        if self.at == end && self.pending().is_none() {
            let close = self.token();
            return (self.docs.concat(&[open, close]), false);
        }
        let begins_line = self.begins_line(self.next_start());
        let comments = self.trailing();
        if self.at == end && self.pending().is_none() {
            let (line, close) = (self.docs.line(false), self.token());
            return (self.docs.concat(&[open, comments, line, close]), begins_line);
        }
        let first = self.docs.line(false);
        let statements = self.nested(end, |reader| reader.statements(end), |doc| Statements { doc, count: 1 });
        let inside = self.docs.concat(&[first, statements.doc]);
        let inside = self.docs.indent(inside);
        let (last, close) = (self.docs.line(false), self.token());
        (self.docs.concat(&[open, comments, inside, last, close]), begins_line || statements.count > 1)
    }

    pub(super) fn block(&mut self) -> Doc {
        let (doc, is_broken) = self.braces();
        self.docs.broken_if(doc, is_broken)
    }

    pub(super) fn statement(&mut self) -> Expr {
        match self.peek() {
            ";" => Expr::other(self.token()),
            "fn" | "private" => self.function(),
            "let" | "const" => self.declaration(),
            "export" => {
                let mut parts = vec![self.token(), self.docs.space()];
                parts.push(self.statement().doc);
                Expr::other(self.docs.concat(&parts))
            }
            "import" => {
                let mut parts = vec![self.token(), self.docs.space(), self.expression().doc];
                self.alias(&mut parts);
                Expr::other(self.docs.concat(&parts))
            }
            "return" | "throw" | "break" => self.leaves(),
            // A block ends its statement.
            "if" | "while" | "loop" | "do" | "for" | "switch" | "try" => self.flow(),
            "{" => Expr::new(self.block(), Shape::Block),
            "continue" => Expr::other(self.token()),
            _ => {
                let target = self.expression();
                let mut parts = vec![target.doc];
                self.alias(&mut parts);
                if !is_assignment(self.peek()) {
                    return Expr::new(self.docs.concat(&parts), target.shape);
                }
                self.spaced(&mut parts);
                parts.push(self.assigned());
                Expr::other(self.docs.concat(&parts))
            }
        }
    }

    /// `as name`
    fn alias(&mut self, parts: &mut Vec<Doc>) {
        if self.peek() == "as" {
            self.spaced(parts);
            if self.kind() == Some(Kind::Word) {
                self.spaced(parts);
            }
        }
    }

    pub(super) fn leaves(&mut self) -> Expr {
        let word = self.token();
        if !self.starts_expression() {
            return Expr::other(word);
        }
        let (space, value) = (self.docs.space(), self.expression());
        Expr::other(self.docs.concat(&[word, space, value.doc]))
    }

    /// The value behind `=`, on the next line if it is one token that does not fit.
    fn assigned(&mut self) -> Doc {
        let behind = self.trailing();
        let has_comments = behind != Docs::NOTHING || self.pending().is_some_and(|comment| comment.ends_line);
        let value = self.expression();
        if has_comments || value.shape == Shape::Atom {
            let line = self.docs.line(false);
            let below = self.docs.concat(&[line, value.doc]);
            let below = self.docs.indent(below);
            let below = self.docs.concat(&[behind, below]);
            return self.docs.group(below);
        }
        let space = self.docs.space();
        self.docs.concat(&[space, value.doc])
    }

    fn declaration(&mut self) -> Expr {
        let mut parts = vec![self.token(), self.docs.space(), self.binding()];
        if self.peek() == "=" {
            self.spaced(&mut parts);
            parts.push(self.assigned());
        }
        Expr::other(self.docs.concat(&parts))
    }

    fn function(&mut self) -> Expr {
        let mut parts = vec![self.token()];
        if self.peek() == "fn" {
            self.spaced(&mut parts);
        }
        parts.push(self.docs.space());
        // `fn name`, or `fn type.name`.
        while self.at < self.tokens.len() && !matches!(self.peek(), "(" | "{" | ";" | "}") {
            parts.push(self.token());
        }
        if self.peek() == "(" {
            parts.push(self.names(true));
        }
        if self.peek() == "{" {
            parts.push(self.docs.space());
            parts.push(self.block());
        }
        Expr::new(self.docs.concat(&parts), Shape::Block)
    }
}
