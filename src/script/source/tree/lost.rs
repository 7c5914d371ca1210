//! Changes of parameters that nobody sees: a function gets copies of arrays and maps, so that a change of one that is
//! neither returned nor read afterwards is lost (E0114). Found by names; what the values are is known when they run.

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

/// What the body of a function does with its parameters.
#[derive(Default)]
pub(super) struct Uses {
    /// The parameters, by their places among the visible variables.
    params: std::ops::Range<usize>,
    events: Vec<Event>,
    /// Loops of the body.
    loops: Vec<Run>,
}

struct Event {
    param: usize,
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
    pub(super) fn of(params: std::ops::Range<usize>) -> Uses {
        Uses { params, ..Uses::default() }
    }

    /// The names at which changes begin that are lost.
    fn lost(&self) -> impl Iterator<Item = u32> {
        self.events.iter().filter_map(|change| {
            let What::Change(until) = change.what else { return None };
            let seen = self.events.iter().any(|event| {
                let together =
                    |run: &Run| [change.token, event.token].iter().all(|at| (run.first..=run.last).contains(at));
                event.param == change.param
                    && match event.what {
                        What::Change(_) => false,
                        What::Anytime => true,
                        What::Read => event.token > until || self.loops.iter().any(together),
                    }
            });
            (!seen).then_some(change.token)
        })
    }
}

impl Reader<'_> {
    /// Notes the use of a name, if it is that of a parameter of a function around.
    pub(super) fn note_use(&mut self, token: usize) {
        let name = self.text_at(token);
        let Some(param) = self.visible.iter().rposition(|visible| *visible == name) else { return };
        let inner = self.methods.len();
        let Some(at) = self.methods.iter().rposition(|method| method.uses.params.contains(&param)) else { return };
        let what = if at + 1 == inner { What::Read } else { What::Anytime };
        self.methods[at].uses.events.push(Event { param, token: token as u32, what });
    }

    /// Notes a statement that ends here and began at a token: one that changes a parameter does not read it there.
    pub(super) fn note_change(&mut self, first: usize) {
        let last = self.at.saturating_sub(1);
        if !self.only_changes(first, last) {
            return;
        }
        let Some(method) = self.methods.last_mut() else { return };
        if let Some(event) = method.uses.events.iter_mut().rev().find(|event| event.token as usize == first)
            && event.what == What::Read
        {
            event.what = What::Change(last as u32);
        }
    }

    pub(super) fn note_loop(&mut self, run: Run) {
        if let Some(method) = self.methods.last_mut() {
            method.uses.loops.push(run);
        }
    }

    pub(super) fn lost_of(&mut self, uses: &Uses) {
        self.tree.lost.extend(uses.lost());
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
