//! Changes of copies that nobody sees: a function and the variable of a `for` get copies of arrays and maps, so that a
//! change of one that is neither returned nor read afterwards is lost (E0114). Found by names; what the values are is
//! known when they run.

use super::{Reader, Run};
use crate::script::source::lex::Kind;
use crate::script::source::tree::is_assignment;

/// Methods that change an array, a map or a set and return nothing.
const CHANGE: [&str; 17] = [
    "push",
    "append",
    "insert",
    "extend",
    "clear",
    "sort",
    "reverse",
    "truncate",
    "pad",
    "dedup",
    "chop",
    "mixin",
    "fill_with",
    "set",
    "add",
    "discard",
    "update",
];
/// Those that also give what they took out: a change alone where that is thrown away.
const TAKE_OUT: [&str; 6] = ["pop", "shift", "remove", "drain", "retain", "splice"];

/// What a variable that holds a copy is a copy of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyOf {
    /// What the caller of a function gave.
    Argument,
    /// An element that a `for` walks over.
    Element,
}

/// A name at which a change begins that nobody sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    pub token: u32,
    pub of: CopyOf,
}

/// What the body of a function or of a `for` does with the variables that begin there.
pub(super) struct Uses {
    of: CopyOf,
    /// The variables, by their places among the visible ones.
    names: std::ops::Range<usize>,
    /// How many functions and closures the body stands in.
    depth: usize,
    events: Vec<Event>,
    /// Loops of the body.
    loops: Vec<Run>,
}

struct Event {
    name: usize,
    token: u32,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Read,
    /// In a closure, which may run at any time.
    Anytime,
    /// A statement that only changes it, with its last token.
    Change(u32),
}

impl Uses {
    fn lost(&self) -> impl Iterator<Item = Lost> {
        self.events.iter().filter_map(|change| {
            let What::Change(until) = change.what else { return None };
            let seen = self.events.iter().any(|event| {
                let together =
                    |run: &Run| [change.token, event.token].iter().all(|at| (run.first..=run.last).contains(at));
                event.name == change.name
                    && match event.what {
                        What::Change(_) => false,
                        What::Anytime => true,
                        What::Read => event.token > until || self.loops.iter().any(together),
                    }
            });
            (!seen).then_some(Lost { token: change.token, of: self.of })
        })
    }
}

impl Reader<'_> {
    /// Reads a body in which the visible variables from `first` on are copies.
    pub(super) fn with_copies<R>(&mut self, of: CopyOf, first: usize, body: impl FnOnce(&mut Self) -> R) -> R {
        let (names, depth) = (first..self.visible.len(), self.methods.len());
        self.copies.push(Uses { of, names, depth, events: Vec::new(), loops: Vec::new() });
        let result = body(self);
        let uses = self.copies.pop();
        self.tree.lost.extend(uses.iter().flat_map(Uses::lost));
        result
    }

    /// Notes the use of a name, if it is that of a copy.
    pub(super) fn note_use(&mut self, token: usize) {
        let text = self.text_at(token);
        let Some(name) = self.visible.iter().rposition(|visible| *visible == text) else { return };
        let Some(uses) = self.copies.iter_mut().rev().find(|uses| uses.names.contains(&name)) else { return };
        let what = if uses.depth == self.methods.len() { What::Read } else { What::Anytime };
        uses.events.push(Event { name, token: token as u32, what });
    }

    /// Notes a statement that ends here and began at a token: one that changes a copy does not read it there.
    pub(super) fn note_change(&mut self, first: usize) {
        let last = self.at.saturating_sub(1);
        if !self.only_changes(first, last) {
            return;
        }
        let events = self.copies.iter_mut().rev().flat_map(|uses| uses.events.iter_mut().rev());
        if let Some(event) = events.into_iter().find(|event| event.token as usize == first)
            && event.what == What::Read
        {
            event.what = What::Change(last as u32);
        }
    }

    pub(super) fn note_loop(&mut self, run: Run) {
        let depth = self.methods.len();
        for uses in self.copies.iter_mut().filter(|uses| uses.depth == depth) {
            uses.loops.push(run);
        }
    }

    /// `xs[0] = v`, `m.a.b += v`, `xs.push(v)`, `m.list.pop();`
    fn only_changes(&self, first: usize, last: usize) -> bool {
        let mut at = first + 1;
        let mut method = None;
        while at <= last {
            match self.text_at(at) {
                "[" | "?[" => at = self.tokens[at].partner as usize + 1,
                "." | "?." if self.tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Word) => {
                    method = Some(at + 1);
                    at += 2;
                }
                // `xs = v` gives the name another value, and nobody misses a change.
                symbol if is_assignment(symbol) => return at > first + 1 || symbol != "=",
                "(" => {
                    let ends = self.tokens[at].partner as usize == last;
                    let name = method.filter(|name| name + 1 == at).map_or("", |name| self.text_at(name));
                    let thrown_away = self.peek() == ";";
                    return ends && (CHANGE.contains(&name) || (thrown_away && TAKE_OUT.contains(&name)));
                }
                _ => return false,
            }
        }
        false
    }
}
