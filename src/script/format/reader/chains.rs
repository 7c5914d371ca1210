//! Values with their properties, indexers and calls. A chain that does not fit has each call of a method on its own line.

use super::super::doc::Choice;
use super::lists::{ARGUMENTS, List};
use super::{Doc, Docs, Expr, Reader, Shape};
use crate::script::source::lex::Kind;
use crate::script::source::tree::calls_a_value;

/// Bound: characters of a name that stands on one line with its first method.
const SHORT: usize = 4;

/// `.name(args)` and what follows it up to the next call.
struct Link {
    name: Doc,
    arguments: List,
    after: Vec<Doc>,
}

impl Reader<'_> {
    pub(super) fn chain(&mut self) -> Expr {
        let first = self.at;
        let root = self.primary();
        let is_short = self.at == first + 1 && self.word(first).len() <= SHORT;
        let (mut roots, mut links) = (vec![root.doc], Vec::<Link>::new());
        loop {
            let after = match self.peek() {
                "[" | "?[" => self.indices(),
                "(" if calls_a_value(self.src, self.tokens, first, self.at) => {
                    self.list(ARGUMENTS, Self::expression).doc
                }
                "." | "?." => {
                    let comments = self.trailing();
                    links.last_mut().map_or(&mut roots, |link| &mut link.after).push(comments);
                    let dot = self.token();
                    if self.kind() != Some(Kind::Word) {
                        links.last_mut().map_or(&mut roots, |link| &mut link.after).push(dot);
                        break;
                    }
                    let word = self.token();
                    let name = self.docs.concat(&[dot, word]);
                    if self.peek() == "(" {
                        let arguments = self.arguments_of("");
                        links.push(Link { name, arguments, after: Vec::new() });
                        continue;
                    }
                    name
                }
                _ => break,
            };
            links.last_mut().map_or(&mut roots, |link| &mut link.after).push(after);
        }
        if links.is_empty() && roots.len() == 1 {
            return root;
        }
        let is_short = is_short && roots.len() == 2 && roots[1] == Docs::NOTHING;
        let root_doc = self.docs.concat(&roots);
        self.of_links(root_doc, is_short, links)
    }

    fn of_links(&mut self, root: Doc, is_short: bool, links: Vec<Link>) -> Expr {
        let Some((last, before)) = links.split_last() else { return Expr::other(root) };
        let hugs = !last.arguments.is_empty && last.after.is_empty();
        let is_short = is_short && !self.docs.is_forced(links[0].name);
        let after = self.docs.concat(&last.after);
        if before.is_empty() {
            let doc = self.docs.concat(&[root, last.name, last.arguments.doc, after]);
            return Expr::new(doc, if hugs { Shape::Chain } else { Shape::Other });
        }
        let calls: Vec<Doc> = links.iter().map(|link| self.of_link(link)).collect();
        let hugs = hugs && matches!(self.docs.node(last.arguments.doc), super::super::doc::Node::Choice(_));
        let mut lines = Vec::new();
        for &call in &calls[is_short as usize..] {
            lines.push(self.docs.soft(false));
            lines.push(call);
        }
        let lines = self.docs.concat(&lines);
        let lines = self.docs.indent(lines);
        // Behind a value of several lines a chain that fits stands in the last one.
        let lines = self.docs.group(lines);
        let begin = if is_short { self.docs.concat(&[root, calls[0]]) } else { root };
        let broken = self.docs.concat(&[begin, lines]);
        let mut head = vec![root];
        head.extend(&calls[..before.len()]);
        head.push(last.name);
        let head = self.docs.concat(&head);
        let choice = Choice { head, last: last.arguments.doc, tail: after, hugs, is_chain: true, broken };
        Expr::new(self.docs.choice(choice), if hugs { Shape::Chain } else { Shape::Other })
    }

    fn of_link(&mut self, link: &Link) -> Doc {
        let mut parts = vec![link.name, link.arguments.doc];
        parts.extend(&link.after);
        self.docs.concat(&parts)
    }
}
