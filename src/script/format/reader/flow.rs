//! `if`, loops, `switch` and `try`, as statements or as expressions. All blocks of one are on one line, or none.

use super::lists::Rules;
use super::{Doc, Expr, Reader, Shape};

impl Reader<'_> {
    pub(super) fn flow(&mut self) -> Expr {
        let word = self.peek();
        let mut parts = vec![self.token()];
        let mut is_broken = false;
        match word {
            "if" => {
                self.body_with_head(&mut parts, &mut is_broken);
                while self.peek() == "else" {
                    self.spaced(&mut parts);
                    if self.peek() != "if" {
                        self.body(&mut parts, &mut is_broken);
                        break;
                    }
                    self.spaced(&mut parts);
                    self.body_with_head(&mut parts, &mut is_broken);
                }
            }
            "while" => self.body_with_head(&mut parts, &mut is_broken),
            "loop" => self.body(&mut parts, &mut is_broken),
            "do" => {
                self.body(&mut parts, &mut is_broken);
                if matches!(self.peek(), "while" | "until") {
                    self.spaced(&mut parts);
                    parts.push(self.docs.space());
                    parts.push(self.expression().doc);
                }
            }
            "for" => {
                parts.push(self.docs.space());
                parts.push(self.binding());
                if self.peek() == "in" {
                    self.spaced(&mut parts);
                }
                self.body_with_head(&mut parts, &mut is_broken);
            }
            "switch" => {
                parts.push(self.docs.space());
                parts.push(self.head_expression());
                if self.peek() == "{" {
                    parts.push(self.arms());
                }
                return Expr::new(self.docs.concat(&parts), Shape::Block);
            }
            _ => {
                self.body(&mut parts, &mut is_broken);
                if self.peek() == "catch" {
                    self.spaced(&mut parts);
                    if self.peek() == "(" {
                        parts.push(self.docs.space());
                        parts.push(self.names(false));
                    }
                    self.body(&mut parts, &mut is_broken);
                }
            }
        }
        let doc = self.docs.concat(&parts);
        Expr::new(self.docs.broken_if(doc, is_broken), Shape::Block)
    }

    /// A blank and a block.
    fn body(&mut self, parts: &mut Vec<Doc>, is_broken: &mut bool) {
        parts.push(self.docs.space());
        let (block, broken) = self.braces();
        parts.push(block);
        *is_broken |= broken;
    }

    /// What stands before a block, and the block.
    fn body_with_head(&mut self, parts: &mut Vec<Doc>, is_broken: &mut bool) {
        parts.push(self.docs.space());
        parts.push(self.head_expression());
        let (block, broken) = self.braces();
        parts.push(block);
        *is_broken |= broken;
    }

    /// The expression of a head, with the blank before its `{`, or the end of a line if the expression is broken
    /// between its operands.
    fn head_expression(&mut self) -> Doc {
        let head = std::mem::replace(&mut self.head, true);
        let found = if self.starts_expression() { Some(self.binary(0)) } else { None };
        self.head = head;
        let Some(found) = found else { return super::Docs::NOTHING };
        if found.shape == Shape::Binary {
            let line = self.docs.line(false);
            let doc = self.docs.concat(&[found.doc, line]);
            return self.docs.group(doc);
        }
        let space = self.docs.space();
        self.docs.concat(&[found.doc, space])
    }

    /// `{ a | b if guard => statement, .. }`
    fn arms(&mut self) -> Doc {
        let rules = Rules { trailing: true, literal: true, hugs: false, padded: true, is_switch: true };
        self.list(rules, Self::arm).doc
    }

    fn arm(&mut self) -> Expr {
        let before = self.at;
        let mut parts = Vec::new();
        self.pattern = true;
        parts.push(self.expression().doc);
        while self.peek() == "|" {
            self.spaced(&mut parts);
            parts.push(self.docs.space());
            parts.push(self.expression().doc);
        }
        self.pattern = false;
        if self.peek() == "if" {
            self.spaced(&mut parts);
            parts.push(self.docs.space());
            parts.push(self.expression().doc);
        }
        let mut shape = Shape::Other;
        if self.peek() == "=>" {
            self.spaced(&mut parts);
            parts.push(self.docs.space());
            let statement = self.statement();
            parts.push(statement.doc);
            shape = statement.shape;
        }
        if self.at == before {
            parts.push(self.token());
        }
        let shape = if shape == Shape::Block { Shape::Block } else { Shape::Other };
        Expr::new(self.docs.concat(&parts), shape)
    }
}
