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
    /// The missing call, to be inserted before the later access. `variable` gives the script's expression for a stream,
    /// if it has one.
    pub fn missing_call(&self, variable: impl Fn(StreamName) -> Option<String>) -> String {
        let waiter = variable(self.later.stream).unwrap_or_else(|| "current_stream()".to_string());
        let waited = self.earlier.stream;
        let other_device = waited.device != self.later.stream.device;
        let waited = variable(waited).unwrap_or_else(|| match waited {
            StreamName { device: DeviceId::Cuda(index), number: 0 } if other_device => {
                format!("default_stream({index})")
            }
            StreamName { number: 0, .. } => "default_stream()".to_string(),
            StreamName { number, .. } => format!("stream_{number}"),
        });
        format!("{waiter}.wait_stream({waited});")
    }

    /// The warning E0501; the caller turns it into an error where the session is set so. The later access is the
    /// primary label.
    pub fn diagnose(
        &self,
        variable: impl Fn(StreamName) -> Option<String>,
        line: impl Fn(Site) -> Option<usize>,
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
        let call = self.missing_call(variable);
        match line(later.origin.user) {
            Some(line) => diag.help(format!("before line {line}, write `{call}`")),
            None => diag.help(format!("before it, write `{call}`")),
        }
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
