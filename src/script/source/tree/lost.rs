//! Changes of copies that nobody sees: a function, the variable of a `for` and a `let` that takes a part of another value
//! get copies of arrays and maps, so that a change of one that is neither returned nor read afterwards is lost (E0114);
//! so is one of what a call gives. Found by names; what the values are is known when they run.

use super::uses::{Event, Uses, What};
use super::{Reader, Run};
use crate::script::source::lex::Kind;
use crate::script::source::tree::{is_assignment, is_keyword};

/// Methods that change an array, a map or a set and return nothing.
const CHANGE: [&str; 19] = [
    "push",
    "append",
    "insert",
    "extend",
    "clear",
    "sort",
    "sort_by",
    "sort_desc",
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
    /// What a `let` took from another value.
    Part,
    /// What no variable holds: the result of a call, or a slice.
    Result,
}

/// A name at which a change begins that nobody sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    pub token: u32,
    pub of: CopyOf,
    /// The variable is one of the top level, which later texts of a session see.
    pub outlives: bool,
    /// The method that changes it: one that the text defines.
    pub by: Option<u32>,
}

/// Methods that give a part of what they are called on, as it stands there.
const GIVE_PART: [&str; 5] = ["get", "find", "values", "first", "last"];

impl Reader<'_> {
    /// Reads a body in which the visible variables from `first` on are copies.
    pub(super) fn with_copies<R>(&mut self, of: CopyOf, first: usize, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.copies.len();
        self.copy_begins(of, first, false);
        let result = body(self);
        self.copies_end(outer);
        result
    }

    fn copy_begins(&mut self, of: CopyOf, first: usize, outlives: bool) {
        let (names, depth) = (first..self.visible.len(), self.methods.len());
        if !names.is_empty() {
            self.copies.push(Uses { of, names, depth, outlives, events: Vec::new() });
        }
    }

    /// The variables of a block are gone: all copies but the first `outer` ones.
    pub(super) fn copies_end(&mut self, outer: usize) {
        for uses in self.copies.drain(outer.min(self.copies.len())..) {
            self.tree.lost.extend(uses.lost(&self.loops));
        }
    }

    /// The visible variables from `first` on have been given this value by a `let`.
    pub(super) fn note_part(&mut self, first: usize, value: Run) {
        if first < self.visible.len() && self.is_part(value) {
            let outlives = self.blocks == 0 && self.methods.is_empty();
            self.copy_begins(CopyOf::Part, first, outlives);
        }
    }

    /// `grid[0]`, `m.rows`, `m.get("k", [])`, `m.k ?? []`, `other`: what something else holds as well.
    fn is_part(&self, value: Run) -> bool {
        let (first, last) = (value.first as usize, value.last as usize);
        if self.tokens[first].kind != Kind::Word || is_keyword(self.text_at(first)) {
            return false;
        }
        let mut at = first + 1;
        while at <= last {
            match self.text_at(at) {
                "[" | "?[" => at = self.tokens[at].partner as usize + 1,
                "." | "?." if self.text_at(at + 2) != "(" => at += 2,
                "." | "?." if GIVE_PART.contains(&self.text_at(at + 1)) => {
                    at = self.tokens[at + 2].partner as usize + 1;
                }
                symbol => return symbol == "??" && at > first + 1,
            }
        }
        // Constants are changed nowhere.
        last > first || self.visible.contains(self.text_at(first))
    }

    /// The text may use every variable: `eval`.
    pub(super) fn note_all(&mut self, token: usize) {
        for uses in &mut self.copies {
            let all = uses.names.clone();
            uses.events.extend(all.map(|name| Event { name, token: token as u32, what: What::Anytime }));
        }
    }

    /// Notes the use of a name, if it is that of a copy.
    pub(super) fn note_use(&mut self, token: usize) {
        let depth = self.methods.len();
        let Some((name, uses)) = self.uses_of(token) else { return };
        let what = if uses.depth == depth { What::Read } else { What::Anytime };
        uses.events.push(Event { name, token: token as u32, what });
    }

    /// The variable that a token names and what is noted of it, if it is a copy.
    fn uses_of(&mut self, token: usize) -> Option<(usize, &mut Uses)> {
        let name = self.visible.place(self.text_at(token))?;
        // Each body's variables stand behind those of the bodies around it.
        let at = self.copies.partition_point(|uses| uses.names.start <= name).checked_sub(1)?;
        let uses = self.copies.get_mut(at).filter(|uses| uses.names.contains(&name))?;
        Some((name, uses))
    }

    /// Notes a statement that ends here and began at a token: one that changes a copy does not read it there.
    pub(super) fn note_change(&mut self, first: usize) {
        let last = self.at.saturating_sub(1);
        if let Some(token) = self.changed_result(first, last) {
            // A method of the text's own, or one of arrays, maps and sets that a map may have, too.
            let by = (!self.changes_alone(token)).then_some(token as u32);
            self.tree.lost.push(Lost { token: token as u32, of: CopyOf::Result, outlives: false, by });
        }
        let what = if self.only_changes(first, last) {
            self.changes_this(first);
            What::Change(last as u32)
        } else if let Some(method) = self.calls_method(first, last) {
            What::Call(method, last as u32)
        } else {
            return;
        };
        let Some((_, uses)) = self.uses_of(first) else { return };
        let mut own = uses.events.iter_mut().rev().take_while(|event| event.token as usize >= first);
        if let Some(event) = own.find(|event| event.token as usize == first)
            && event.what == What::Read
        {
            event.what = what;
        }
    }

    /// Notes the method at a token of what begins at another one: `let v = this.items.pop();` changes `this`.
    pub(super) fn note_changer(&mut self, first: usize, method: usize) {
        let name = self.text_at(method);
        if CHANGE.contains(&name) || TAKE_OUT.contains(&name) {
            self.changes_this(first);
        }
    }

    /// The function here changes its `this`, if that is what a token names.
    fn changes_this(&mut self, first: usize) {
        if self.text_at(first) == "this"
            && let Some(method) = self.methods.last()
        {
            self.changers.extend(method.name);
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
                    return ends && method.is_some_and(|name| name + 1 == at && self.changes_alone(name));
                }
                _ => return false,
            }
        }
        false
    }

    /// `m.f(x);`, `m.a.f(x)`: the name of the method.
    fn calls_method(&self, first: usize, last: usize) -> Option<u32> {
        let mut at = first + 1;
        while at <= last {
            match self.text_at(at) {
                "[" => at = self.tokens[at].partner as usize + 1,
                "." if self.text_at(at + 2) == "(" => {
                    let ends = self.tokens[at + 2].partner as usize == last;
                    return ends.then_some(at as u32 + 1);
                }
                "." => at += 2,
                _ => return None,
            }
        }
        None
    }

    /// Leaves out changes by methods of which the text does not show that they change `this`.
    pub(super) fn settle_lost(&mut self) {
        let (src, tokens, changers) = (self.src, self.tokens, &self.changers);
        let changes = |method: u32| changers.contains(&&src[tokens[method as usize].range()]);
        self.tree.lost.retain(|lost| lost.by.is_none_or(changes));
    }

    /// Whether the method that a token names does nothing but change what it is called on, in a statement that ends here.
    fn changes_alone(&self, name: usize) -> bool {
        let thrown_away = self.peek() == ";";
        CHANGE.contains(&self.text_at(name)) || (thrown_away && TAKE_OUT.contains(&self.text_at(name)))
    }

    /// `xs.filter(f).push(1)`, `sorted(xs).clear()`, `xs[0..2].push(1)`, `(m.k ?? []).push(1)`, `o.add(2).add(3)`: the name of the
    /// method, which may be one of the text's own.
    fn changed_result(&self, first: usize, last: usize) -> Option<usize> {
        if self.text_at(last) != ")" {
            return None;
        }
        let name = (self.tokens[last].partner as usize).checked_sub(1).filter(|name| *name >= first + 2)?;
        let is_method = matches!(self.text_at(name - 1), "." | "?.") && self.tokens[name].kind == Kind::Word;
        let thrown_away = self.peek() == ";";
        let may_change = self.changes_alone(name) || thrown_away;
        (is_method && may_change && self.is_result(first, name - 2)).then_some(name)
    }

    /// Whether what stands between two tokens is a value that no variable holds.
    fn is_result(&self, first: usize, last: usize) -> bool {
        let mut at = first;
        match self.text_at(first) {
            "(" => {
                let close = self.tokens[first].partner as usize;
                let inner = first + 1..close;
                let is_operation = || inner.clone().any(|at| matches!(self.text_at(at), "??" | "+" | "*"));
                if close > last || inner.is_empty() {
                    return false;
                }
                if self.is_result(first + 1, close - 1) || is_operation() {
                    return true;
                }
                at = close + 1;
            }
            "[" | "#{" => return true,
            word if self.tokens[first].kind != Kind::Word || is_keyword(word) => return false,
            _ => at += 1,
        }
        while at <= last {
            match self.text_at(at) {
                "(" => return true,
                "[" | "?[" => {
                    let close = self.tokens[at].partner as usize;
                    if self.is_range(at + 1, close) {
                        return true;
                    }
                    at = close + 1;
                }
                "." | "?." | "::" => at += 2,
                _ => return false,
            }
        }
        false
    }

    /// Whether an operator between two tokens makes a range.
    fn is_range(&self, first: usize, close: usize) -> bool {
        let mut at = first;
        while at < close {
            if matches!(self.text_at(at), ".." | "..=") {
                return true;
            }
            at = (self.tokens[at].partner as usize).max(at) + 1;
        }
        false
    }
}
