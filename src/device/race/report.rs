//! The report about a race, each once.

use super::clock::StreamName;
use super::history::Kind;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus};
use crate::base::span::{Origin, Site};
use std::collections::BTreeSet;

/// One of two accesses that nothing orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    pub kind: Kind,
    pub stream: StreamName,
    pub origin: Origin,
    pub op: &'static str,
}

/// Two accesses to a common element, one of them a write, that nothing orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The one that was queued first.
    pub earlier: Side,
    pub later: Side,
}

impl Conflict {
    /// What orders the two: a call before the later access. `variable` gives the script's expression for a stream, if it
    /// has one there, and `line` the line of a place as the user counts; `is_inside` says that the block in which the
    /// later access has its stream begins on its line.
    pub fn advice(
        &self,
        variable: impl Fn(StreamName) -> Option<String>,
        line: impl Fn(Site) -> Option<usize>,
        is_inside: bool,
    ) -> String {
        let (earlier, later) = (self.earlier, self.later);
        let has_other_device = earlier.stream.device != later.stream.device;
        // `default_stream()` is that of the current device, which need not be the one of the access.
        let index = |stream: StreamName| match stream.device {
            DeviceId::Cuda(index) if index != 0 || has_other_device => index.to_string(),
            _ => String::new(),
        };
        let name = variable(later.stream);
        let is_unnamed = name.is_none() && later.stream.number != 0;
        let waiter = name.unwrap_or_else(|| match is_unnamed {
            true => "current_stream()".to_string(),
            false => format!("current_stream({})", index(later.stream)),
        });
        let place = match (line(later.origin.user), is_unnamed && is_inside) {
            (Some(line), false) => format!("before line {line}"),
            (Some(line), true) => format!("before it, inside the `with_stream` of line {line}"),
            (None, false) => "before it".to_string(),
            (None, true) => "before it, inside its `with_stream`".to_string(),
        };
        let of_line = line(earlier.origin.user).map(|line| format!("the stream of line {line}"));
        let of_line = of_line.unwrap_or_else(|| earlier.stream.to_string());
        let (waited, which) = match variable(earlier.stream) {
            Some(name) if name != waiter => (name, String::new()),
            // A variable that has held several streams: the one of an earlier round of a loop is to be kept.
            name if name.is_some() || (waiter == "s" && earlier.stream.number != 0) => {
                ("before".to_string(), format!(", where `before` is {of_line} as it was then, kept in a variable"))
            }
            _ if earlier.stream.number == 0 => (format!("default_stream({})", index(earlier.stream)), String::new()),
            _ => ("s".to_string(), format!(", where `s` is {of_line}")),
        };
        format!("{place}, write `{waiter}.wait_stream({waited});`{which}")
    }

    /// The warning E0501; the caller turns it into an error where the session is set so. The later access is the
    /// primary label.
    pub fn diagnose(
        &self,
        variable: impl Fn(StreamName) -> Option<String>,
        line: impl Fn(Site) -> Option<usize>,
        is_inside: bool,
    ) -> Box<Diag> {
        let (earlier, later) = (self.earlier, self.later);
        let does = match later.kind {
            Kind::Read => "reads",
            Kind::Write => "writes",
        };
        let doing = match earlier.kind {
            Kind::Read => "reading",
            Kind::Write => "writing",
        };
        let done = |side: Side| match side.kind {
            Kind::Read => format!("read here, on {}", side.stream),
            Kind::Write => format!("written here, on {}", side.stream),
        };
        let message = format!("`{}` {does} memory that `{}` may still be {doing}", later.op, earlier.op);
        let diag = Diag::warning(code::RACE, message)
            .label(later.origin, Focus::Call, format!("{}, with nothing ordering the two", done(later)))
            .label(earlier.origin, Focus::Call, done(earlier));
        diag.help(self.advice(variable, line, is_inside))
    }
}

/// Pairs of lines that were reported.
#[derive(Default)]
pub struct Reported(BTreeSet<(u16, u16)>);

impl Reported {
    /// True once for each pair of lines, in either order; always for accesses without a line.
    pub fn is_new(&mut self, conflict: &Conflict) -> bool {
        let lines = [conflict.earlier, conflict.later].map(|side| side.origin.user.line());
        lines == [0, 0] || self.0.insert((lines[0].min(lines[1]), lines[0].max(lines[1])))
    }
}
