//! Operators, literals, closures and calls.

use super::{Doc, Docs, Expr, Reader, Shape};
use crate::script::source::lex::Kind;
use crate::script::source::tree::{binary_precedence, block_in_head, is_keyword, starts_expression};

impl Reader<'_> {
    pub(super) fn starts_expression(&self) -> bool {
        starts_expression(self.kind(), self.peek())
    }

    pub(super) fn expression(&mut self) -> Expr {
        if !self.starts_expression() {
            return Expr::other(Docs::NOTHING);
        }
        let end = self.tokens[self.at].partner as usize;
        self.nested(
            end,
            |reader| {
                let found = reader.binary(0);
                reader.grouped(found)
            },
            Expr::other,
        )
    }

    fn grouped(&mut self, expr: Expr) -> Expr {
        match expr.shape {
            Shape::Binary => Expr::other(self.docs.group(expr.doc)),
            _ => expr,
        }
    }

    /// Operands with operators that bind tighter than `minimum`; those of equal precedence are broken together.
    pub(super) fn binary(&mut self, minimum: u8) -> Expr {
        let mut left = if matches!(self.peek(), ".." | "..=") { Expr::other(Docs::NOTHING) } else { self.unary() };
        let mut is_open = left.doc == Docs::NOTHING;
        while let Some(power) = self.operator(minimum, is_open) {
            is_open = false;
            let first = self.grouped(left).doc;
            if matches!(self.peek(), ".." | "..=") {
                let (operator, end) = (self.token(), self.right(power, true));
                left = Expr::other(self.docs.concat(&[first, operator, end]));
                continue;
            }
            if matches!(self.peek(), "in" | "!in") {
                let mut parts = vec![first];
                self.spaced(&mut parts);
                parts.extend([self.docs.space(), self.right(power, false)]);
                left = Expr::other(self.docs.concat(&parts));
                continue;
            }
            let mut rest = Vec::new();
            while self.operator(minimum, false) == Some(power) {
                rest.push(self.trailing());
                rest.push(self.docs.line(false));
                rest.push(self.token());
                rest.push(self.docs.space());
                rest.push(self.right(power, false));
            }
            let rest = self.docs.concat(&rest);
            let rest = self.docs.indent(rest);
            left = Expr::new(self.docs.concat(&[first, rest]), Shape::Binary);
        }
        left
    }

    /// The precedence of the operator here, if it belongs to the expression.
    fn operator(&self, minimum: u8, is_open: bool) -> Option<u8> {
        let symbol = self.peek();
        binary_precedence(symbol).filter(|&power| (power > minimum || is_open) && !(self.pattern && symbol == "|"))
    }

    /// The right operand; a range may have none, and in a head a `{` behind it is the body.
    fn right(&mut self, power: u8, is_range: bool) -> Doc {
        if matches!(self.peek(), "break" | "continue" | "return" | "throw") {
            return self.statement().doc;
        }
        let is_body = is_range && self.head && self.peek() == "{";
        if !self.starts_expression() || is_body {
            return Docs::NOTHING;
        }
        let end = self.tokens[self.at].partner as usize;
        self.nested(
            end,
            |reader| {
                let found = reader.binary(power);
                reader.grouped(found).doc
            },
            |doc| doc,
        )
    }

    fn unary(&mut self) -> Expr {
        if !matches!(self.peek(), "-" | "+" | "!") {
            return self.power();
        }
        let is_number = self.is_number(self.at + 1);
        // `-5.abs()` takes the sign with the number, `- 5.abs()` does not.
        let is_apart = is_number && {
            let gap = &self.src[self.tokens[self.at].range().end..self.tokens[self.at + 1].range().start];
            !gap.is_empty() && gap.trim().is_empty()
        };
        let sign = self.token();
        let end = self.tokens.get(self.at).map_or(self.at, |token| token.partner as usize);
        let operand = self.nested(end, Self::unary, Expr::other);
        let gap = if is_apart { self.docs.space() } else { Docs::NOTHING };
        let doc = self.docs.concat(&[sign, gap, operand.doc]);
        let shape = if is_number && operand.shape == Shape::Number { Shape::Number } else { Shape::Other };
        Expr::new(doc, shape)
    }

    fn power(&mut self) -> Expr {
        let base = self.chain();
        if self.peek() != "**" {
            return base;
        }
        let mut parts = vec![base.doc];
        self.spaced(&mut parts);
        parts.push(self.docs.space());
        if self.starts_expression() {
            let end = self.tokens[self.at].partner as usize;
            parts.push(self.nested(end, Self::unary, Expr::other).doc);
        }
        Expr::other(self.docs.concat(&parts))
    }

    pub(super) fn primary(&mut self) -> Expr {
        match self.kind() {
            None | Some(Kind::TextEnd) => Expr::other(Docs::NOTHING),
            Some(Kind::Number) => Expr::new(self.token(), Shape::Number),
            Some(Kind::Str | Kind::Char | Kind::Unknown) => Expr::new(self.token(), Shape::Atom),
            Some(Kind::TextOpen) => Expr::new(self.interpolated(), Shape::Atom),
            Some(Kind::Word) => self.name(),
            Some(Kind::Symbol) => match self.peek() {
                "(" => Expr::other(self.parenthesized()),
                "[" => Expr::new(self.array(), Shape::Array),
                "#{" => Expr::new(self.map(), Shape::Map),
                "{" => Expr::new(self.block(), Shape::Block),
                "|" | "||" => self.closure(),
                _ => Expr::other(self.token()),
            },
        }
    }

    fn parenthesized(&mut self) -> Doc {
        let end = self.partner();
        let mut parts = vec![self.token()];
        self.afresh(|reader| {
            parts.push(reader.expression().doc);
            reader.leftovers(end, &mut parts);
        });
        parts.push(self.token());
        self.docs.concat(&parts)
    }

    /// A text with its interpolations, as it is.
    fn interpolated(&mut self) -> Doc {
        let first = self.start();
        let mut last = self.at;
        while self.tokens.get(last).is_some_and(|token| token.kind == Kind::TextOpen) {
            last = self.tokens.get(last + 1).map_or(last, |brace| brace.partner as usize) + 1;
        }
        let last = last.min(self.tokens.len() - 1);
        let end = self.tokens[last].end as usize;
        // With the comments before it.
        let opening = self.token();
        let rest = self.docs.source(self.tokens[self.at - 1].end as usize, end);
        self.at = last + 1;
        debug_assert!(first < end);
        while self.comments.get(self.comment).is_some_and(|comment| (comment.start as usize) < end) {
            self.comment += 1;
        }
        self.docs.concat(&[opening, rest])
    }

    fn closure(&mut self) -> Expr {
        let mut parts = vec![self.token()];
        if self.word(self.at - 1) == "|" {
            while self.at < self.tokens.len() && self.peek() != "|" {
                let is_comma = self.peek() == ",";
                parts.push(self.token());
                if is_comma && self.peek() != "|" {
                    parts.push(self.docs.space());
                }
            }
            parts.push(self.token());
        }
        parts.push(self.docs.space());
        let body = self.afresh(|reader| {
            let end = reader.tokens.get(reader.at).map_or(reader.at, |token| token.partner as usize);
            reader.nested(end, Self::statement, Expr::other)
        });
        parts.push(body.doc);
        let shape = match body.shape {
            Shape::Block | Shape::Array | Shape::Map => Shape::Closure,
            Shape::Call | Shape::Chain => Shape::Call,
            _ => Shape::Other,
        };
        Expr::new(self.docs.concat(&parts), shape)
    }

    /// A name, a call, or a construct that begins with a word.
    pub(super) fn name(&mut self) -> Expr {
        let word = self.peek();
        match word {
            "if" | "while" | "loop" | "do" | "for" | "switch" | "try" => return self.flow(),
            "return" | "throw" | "break" => return self.leaves(),
            "true" | "false" => return Expr::new(self.token(), Shape::Atom),
            _ if is_keyword(word) => return Expr::other(self.token()),
            _ => {}
        }
        let first = self.at;
        let mut parts = vec![self.token()];
        let mut is_plain = true;
        while self.peek() == "::" && self.tokens.get(self.at + 1).is_some_and(|next| next.kind == Kind::Word) {
            parts.push(self.token());
            parts.push(self.token());
            is_plain = false;
        }
        let touches = |reader: &Self| reader.tokens[reader.at].start == reader.tokens[reader.at - 1].end;
        if self.peek() == "!" && self.word(self.at + 1) == "(" && touches(self) {
            parts.push(self.token());
        }
        let mut shape = Shape::Atom;
        if self.peek() == "(" {
            let arguments = self.arguments_of(if is_plain { word } else { "" });
            parts.push(arguments.doc);
            shape = if arguments.is_empty { Shape::Other } else { Shape::Call };
            if self.peek() == "{" && !self.is_body(first) {
                self.attached(&mut parts);
                shape = Shape::Block;
            }
        } else if self.peek() == "{" && !self.is_body(first) && !self.pattern {
            self.attached(&mut parts);
            shape = Shape::Block;
        }
        Expr::new(self.docs.concat(&parts), shape)
    }

    /// Whether the `{` here, behind a word, begins the body of the statement whose head this is.
    fn is_body(&self, word: usize) -> bool {
        self.head && !block_in_head(self.src, self.tokens, word, self.at)
    }

    /// The block of `with_device(d) { .. }`.
    fn attached(&mut self, parts: &mut Vec<Doc>) {
        parts.push(self.docs.space());
        parts.push(self.block());
    }
}
