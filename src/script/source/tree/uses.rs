//! What a body does with the variables that hold copies, and which of its changes nobody sees.

use super::Run;
use super::lost::{CopyOf, Lost};
use std::collections::HashMap;

/// What the body of a function or of a `for` does with the variables that begin there.
pub(super) struct Uses {
    pub of: CopyOf,
    /// The variables, by their places among the visible ones.
    pub names: std::ops::Range<usize>,
    /// How many functions and closures the body stands in.
    pub depth: usize,
    pub outlives: bool,
    pub events: Vec<Event>,
}

pub(super) struct Event {
    pub name: usize,
    pub token: u32,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum What {
    Read,
    /// In a closure, which may run at any time.
    Anytime,
    /// A statement that calls a method, whose name is at the first token, with its last one.
    Call(u32, u32),
    /// A statement that only changes it, with its last token.
    Change(u32),
}

/// Where a variable is looked at.
#[derive(Default)]
struct Looks {
    at_any_time: bool,
    /// In order.
    tokens: Vec<u32>,
}

impl Looks {
    fn within(&self, run: Run) -> usize {
        let before = |bound: u32| self.tokens.partition_point(|token| *token < bound);
        before(run.last + 1) - before(run.first)
    }
}

impl Uses {
    /// The changes that nobody sees; `loops` has the outermost ones.
    pub(super) fn lost(&self, loops: &Loops) -> Vec<Lost> {
        let looks = self.looks();
        let changes = self.events.iter().filter_map(|event| match event.what {
            What::Change(until) => Some((event, until, None)),
            What::Call(method, until) => Some((event, until, Some(method))),
            _ => None,
        });
        let unseen = changes.filter(|(change, until, by)| {
            let Some(looks) = looks.get(&change.name) else { return true };
            // A call looks at what it changes.
            let own = by.is_some() as usize;
            let again = || loops.around(change.token).is_some_and(|run| looks.within(run) > own);
            !looks.at_any_time && looks.tokens.last().is_none_or(|last| last <= until) && !again()
        });
        unseen.map(|(change, _, by)| Lost { token: change.token, of: self.of, outlives: self.outlives, by }).collect()
    }

    fn looks(&self) -> HashMap<usize, Looks> {
        let mut looks: HashMap<usize, Looks> = HashMap::new();
        if !self.events.iter().any(|event| matches!(event.what, What::Change(_) | What::Call(..))) {
            return looks;
        }
        for event in &self.events {
            match event.what {
                What::Change(_) => {}
                What::Anytime => looks.entry(event.name).or_default().at_any_time = true,
                What::Read | What::Call(..) => looks.entry(event.name).or_default().tokens.push(event.token),
            }
        }
        looks.values_mut().for_each(|looks| looks.tokens.sort_unstable());
        looks
    }
}

/// The loops that have ended, in order, without those inside of others.
#[derive(Default)]
pub(super) struct Loops(Vec<Run>);

impl Loops {
    pub(super) fn push(&mut self, run: Run) {
        while self.0.last().is_some_and(|inner| inner.first >= run.first) {
            self.0.pop();
        }
        self.0.push(run);
    }

    fn around(&self, token: u32) -> Option<Run> {
        let at = self.0.partition_point(|run| run.last < token);
        self.0.get(at).copied().filter(|run| run.first <= token)
    }
}
