//! Passes every access to the race detector, and reports what it finds.

use crate::base::diag::{Diag, Result, Severity};
use crate::base::span::{Origin, Site};
use crate::device::keyed::Key;
use crate::device::race::{BufferClock, Clocks, Conflict, Kind, Lane, StreamName, Touches, Use};
use crate::op::tensor::{Buffer, View};
use crate::sched::options::Races;
use crate::sched::runtime::{Runtime, State};
use crate::sched::window::node::Node;
use std::sync::Arc;

/// How a script names things, for calls that diagnostics suggest.
pub trait Naming: Send + Sync {
    /// The expression for a stream that was created at this position, where the line of a place can use it.
    fn stream(&self, made: Origin, place: Origin) -> Option<String>;
    /// The line of a position as the user counts.
    fn line(&self, place: Site) -> Option<usize>;
    /// Whether the block in which its stream is current begins before a place on the same line.
    fn begins_behind_block(&self, place: Site) -> bool;
}

/// The records of a buffer that several streams, or parts, have accessed.
fn history<'a>(touches: &'a mut Touches, buffer: &Buffer) -> &'a mut BufferClock {
    if touches.history.is_none() {
        touches.history = Some(Box::new(BufferClock::resume(buffer.size_bytes, touches)));
    }
    touches.history.as_mut().expect("just made")
}

/// Records an access; takes the fast path where possible.
#[inline]
fn access(clocks: &mut Clocks, key: &mut Key, lane: Lane, node: &Node, view: &View, kind: Kind) -> Option<Conflict> {
    // A tensor of another session is refused elsewhere.
    let touches = view.buffer.touches.open(key)?;
    let is_whole = view.covers_buffer();
    if is_whole && clocks.touch(touches, lane, kind, node.origin, node.name) {
        return None;
    }
    clocks.access_known(history(touches, &view.buffer), lane, &describe(node, view, kind), is_whole)
}

/// As `access`, but does not record.
fn conflict(clocks: &Clocks, key: &mut Key, lane: Lane, view: &View, access: &Use) -> Option<Conflict> {
    let touches = view.buffer.touches.open(key)?;
    if clocks.is_alone(touches, lane) {
        return None;
    }
    clocks.conflict(history(touches, &view.buffer), lane, access)
}

fn accesses(node: &Node) -> impl Iterator<Item = (&Arc<View>, Kind)> {
    let reads = node.reads().map(|view| (view, Kind::Read));
    reads.chain(node.outputs.iter().map(|view| (view, Kind::Write)))
}

fn describe<'a>(node: &Node, view: &'a View, kind: Kind) -> Use<'a> {
    Use { kind, layout: &view.layout, elem_bytes: view.dtype.size_bytes(), origin: node.origin, op: node.name }
}

impl Runtime {
    /// Checks the accesses of a node that is about to be queued on a stream. An error means that it must not be
    /// queued.
    pub(in crate::sched) fn watch(&self, state: &mut State, slot: u32, node: &Node) -> Result<()> {
        state.streams[slot as usize].last_access = node.number;
        if self.options.races == Races::Off || self.options.blocking {
            return Ok(());
        }
        let lane = state.streams[slot as usize].lane;
        if self.options.races == Races::Error {
            for (view, kind) in accesses(node) {
                let asked = conflict(&state.clocks, &mut state.key, lane, view, &describe(node, view, kind));
                if let Some(conflict) = asked {
                    let mut diag = self.report_conflict(&conflict);
                    diag.severity = Severity::Error;
                    return Err(diag);
                }
            }
        }
        for (view, kind) in accesses(node) {
            let found = access(&mut state.clocks, &mut state.key, lane, node, view, kind);
            if let Some(conflict) = found
                && state.reported.is_new(&conflict)
            {
                (self.warnings.lock())(self.report_conflict(&conflict));
            }
        }
        Ok(())
    }

    fn report_conflict(&self, conflict: &Conflict) -> Box<Diag> {
        let naming = self.naming.lock();
        let made = self.made.lock();
        let place = conflict.later.origin;
        let variable = |name: StreamName| naming.as_ref()?.stream(*made.get(&name)?, place);
        let line = |site: Site| naming.as_ref()?.line(site);
        let is_inside = naming.as_ref().is_some_and(|naming| naming.begins_behind_block(place.user));
        conflict.diagnose(variable, line, is_inside)
    }

    /// The host has waited for the last write of these elements.
    pub(in crate::sched) fn watch_host_read(&self, state: &mut State, view: &View) {
        let Some(touches) = view.buffer.touches.open(&mut state.key) else { return };
        if touches.history.is_none() {
            state.clocks.host_read_alone(touches);
        } else {
            state.clocks.host_read(history(touches, &view.buffer), &view.layout, view.dtype.size_bytes());
        }
    }
}
