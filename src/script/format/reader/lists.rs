//! What stands between two brackets with commas: arguments, arrays, maps, parameters, patterns, the cases of a `switch`.

use super::super::doc::Choice;
use super::{Doc, Docs, Expr, Reader, Shape};
use crate::script::source::lex::Kind;

/// Bound: characters of a number, name or string of which several stand on a line.
const SHORT: usize = 12;

#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// A comma stands behind the last item if each has its own line.
    pub trailing: bool,
    /// Broken where it was written with its first item on a line of its own.
    pub literal: bool,
    /// The last item may be broken alone.
    pub hugs: bool,
    /// With blanks inside of the brackets.
    pub padded: bool,
    /// The cases of a `switch`: commas may be missing.
    pub is_switch: bool,
}

pub(super) const ARGUMENTS: Rules =
    Rules { trailing: true, literal: false, hugs: true, padded: false, is_switch: false };
const LITERAL: Rules = Rules { literal: true, hugs: false, ..ARGUMENTS };
const NAMES: Rules = Rules { hugs: false, ..ARGUMENTS };
const INDICES: Rules = Rules { trailing: false, hugs: false, ..ARGUMENTS };

pub(super) struct List {
    pub doc: Doc,
    pub is_empty: bool,
}

struct Item {
    doc: Doc,
    shape: Shape,
    comma: Option<Doc>,
    /// Comments behind it.
    comments: Doc,
    blank: bool,
    /// Comments stand before it.
    has_comments: bool,
    /// Whether it is one token of few characters.
    is_short: bool,
    /// A string, or a text with interpolations.
    is_text: bool,
}

impl Reader<'_> {
    pub(super) fn array(&mut self) -> Doc {
        self.list(LITERAL, Self::expression).doc
    }

    pub(super) fn map(&mut self) -> Doc {
        self.list(LITERAL, Self::entry).doc
    }

    pub(super) fn indices(&mut self) -> Doc {
        self.list(INDICES, Self::expression).doc
    }

    /// Names between parentheses.
    pub(super) fn names(&mut self, trailing: bool) -> Doc {
        self.list(Rules { trailing, ..NAMES }, |reader| Expr::other(reader.token())).doc
    }

    /// `name`, `(a, b)`, `[a, ..rest]` or `#{a: b}`, of what is declared.
    pub(super) fn binding(&mut self) -> Doc {
        match self.peek() {
            "(" => self.names(false),
            "[" | "#{" => self.list(INDICES, Self::part).doc,
            _ => self.token(),
        }
    }

    /// A part of a pattern.
    fn part(&mut self) -> Expr {
        let mut parts = Vec::new();
        if self.peek() == ".." {
            parts.push(self.token());
        }
        if !matches!(self.peek(), "," | "]" | "}") {
            parts.push(self.binding());
        }
        if self.peek() == ":" {
            parts.push(self.token());
            parts.push(self.docs.space());
            parts.push(self.binding());
        }
        Expr::other(self.docs.concat(&parts))
    }

    /// `key: value`
    fn entry(&mut self) -> Expr {
        if self.word(self.at + 1) != ":" {
            return self.expression();
        }
        let parts = [self.token(), self.token(), self.docs.space(), self.expression().doc];
        Expr::other(self.docs.concat(&parts))
    }

    /// The list that begins with the bracket here.
    pub(super) fn list(&mut self, rules: Rules, read: fn(&mut Self) -> Expr) -> List {
        let end = self.partner();
        let open = self.token();
        if self.at == end && self.pending().is_none() {
            let close = self.token();
            return List { doc: self.docs.concat(&[open, close]), is_empty: true };
        }
        let begins_line = self.begins_line(self.next_start());
        let comments = self.trailing_to(end);
        let items = self.afresh(|reader| {
            reader.nested(end, |reader| reader.items(end, rules, read), |doc| vec![Item::of(Expr::other(doc))])
        });
        let mut below = Vec::new();
        self.comment_lines(&mut below, false);
        let below = self.docs.concat(&below);
        let close = self.token();
        let is_broken = rules.literal && begins_line;
        let broken = self.lines(rules, [open, comments, below, close], &items);
        let outside = [comments, below].iter().any(|&doc| self.docs.is_forced(doc));
        let doc = match items.split_last() {
            // A comment alone stays between the brackets: with a line behind it, it would be one that ends its line.
            None if !outside && below == Docs::NOTHING => self.docs.concat(&[open, comments, close]),
            // Nothing is gained by a line of its own for a text that is the only argument.
            Some((last, []))
                if rules.hugs && last.is_text && !outside && !last.has_comments && last.comments == Docs::NOTHING =>
            {
                self.docs.concat(&[open, last.doc, close])
            }
            Some((last, before)) if rules.hugs && !outside && can_hug(last, before) => {
                let head = self.head_of(open, before);
                let tail = self.docs.concat(&[last.comments, close]);
                self.docs.choice(Choice { head, last: last.doc, tail, hugs: true, is_chain: false, broken })
            }
            _ => self.docs.broken_if(broken, is_broken),
        };
        List { doc, is_empty: items.is_empty() }
    }

    fn items(&mut self, end: usize, rules: Rules, read: fn(&mut Self) -> Expr) -> Vec<Item> {
        let mut items = Vec::new();
        while self.at < end {
            let blank = self.is_blank_before(self.next_start());
            let leading = self.leading();
            let (before, first) = (self.at, self.start());
            let is_text = matches!(self.kind(), Some(Kind::Str | Kind::TextOpen));
            let found = if self.peek() == "," { Expr::other(Docs::NOTHING) } else { read(self) };
            let mut parts = vec![leading, found.doc];
            // Syntax that is unknown here.
            while self.at < end && self.peek() != "," && (self.at == before || !rules.is_switch) {
                self.spaced(&mut parts);
            }
            let length = self.tokens[self.at - 1].end as usize - first.min(self.tokens[self.at - 1].end as usize);
            let mut item = Item::of(Expr::new(self.docs.concat(&parts), found.shape));
            item.has_comments = leading != Docs::NOTHING;
            item.is_short = matches!(found.shape, Shape::Number | Shape::Atom) && length <= SHORT;
            item.is_text = is_text && found.shape == Shape::Atom;
            item.blank = blank;
            if self.peek() == "," && self.at < end {
                // A comment that ends the line comes behind the comma.
                if self.pending().is_some_and(|comment| comment.trails && !comment.ends_line) {
                    let comment = self.next_comment();
                    item.doc = self.docs.concat(&[item.doc, comment]);
                }
                let range = self.tokens[self.at].range();
                self.at += 1;
                if !(self.at == end && rules.trailing && item.takes_comma(rules)) {
                    item.comma = Some(self.docs.source(range.start, range.end));
                }
            }
            item.comments = self.trailing_to(end);
            items.push(item);
        }
        items
    }

    /// Each item on its own line; short ones of an array fill their lines.
    fn lines(&mut self, rules: Rules, [open, comments, below, close]: [Doc; 4], items: &[Item]) -> Doc {
        let fills = rules.literal && !rules.is_switch && items.len() > 1 && items.iter().all(|item| item.is_short);
        let edge = |docs: &mut Docs| if rules.padded { docs.line(false) } else { docs.soft(false) };
        let mut inside = Vec::with_capacity(4 * items.len() + 2);
        for (at, item) in items.iter().enumerate() {
            let line = match at {
                0 => edge(&mut self.docs),
                _ => self.docs.line(item.blank),
            };
            let comma = item.comma.unwrap_or(Docs::NOTHING);
            let added = at + 1 == items.len() && rules.trailing && item.comma.is_none() && item.takes_comma(rules);
            let added = if added { self.docs.if_broken(",") } else { Docs::NOTHING };
            if fills && at > 0 {
                // The line ends before an item that does not fit.
                let filled = self.docs.concat(&[line, item.doc, comma]);
                inside.extend([self.docs.group(filled), added]);
            } else {
                inside.extend([line, item.doc, comma, added]);
            }
            inside.push(item.comments);
        }
        inside.push(below);
        let inside = self.docs.concat(&inside);
        let inside = self.docs.indent(inside);
        let last = edge(&mut self.docs);
        self.docs.concat(&[open, comments, inside, last, close])
    }

    /// The bracket and all items but the last on one line.
    fn head_of(&mut self, open: Doc, items: &[Item]) -> Doc {
        let mut parts = vec![open];
        for item in items {
            parts.extend([item.doc, item.comma.unwrap_or(Docs::NOTHING), item.comments]);
            parts.push(self.docs.space());
        }
        self.docs.concat(&parts)
    }

    /// Whether the parenthesis here belongs to a function that the engine's own syntax makes, without a comma at the end.
    pub(super) fn arguments_of(&mut self, name: &str) -> List {
        let is_syntax = crate::script::source::hooks::is_block_word(name) || name == "eval";
        self.list(Rules { trailing: !is_syntax, ..ARGUMENTS }, Self::expression)
    }

    pub(super) fn is_number(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Number)
    }
}

impl Item {
    fn of(found: Expr) -> Item {
        let Expr { doc, shape } = found;
        Item {
            doc,
            shape,
            comma: None,
            comments: Docs::NOTHING,
            blank: false,
            has_comments: false,
            is_short: false,
            is_text: false,
        }
    }

    /// A case of a `switch` that ends in a block needs none.
    fn takes_comma(&self, rules: Rules) -> bool {
        !(rules.is_switch && self.shape == Shape::Block)
    }
}

/// Whether the last item may be broken alone: it is a literal or closure and the one before it is none of the kind, or
/// it is a call or block and stands alone.
fn can_hug(last: &Item, before: &[Item]) -> bool {
    let is_alone = before.is_empty();
    match last.shape {
        _ if last.has_comments => false,
        Shape::Array | Shape::Map | Shape::Closure => before.last().is_none_or(|item| item.shape != last.shape),
        Shape::Call | Shape::Chain | Shape::Block => is_alone,
        _ => false,
    }
}
