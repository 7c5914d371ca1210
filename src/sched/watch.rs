//! Shows the race detector every access, and tells what it finds.

use super::node::Node;
use super::options::Races;
use super::race::{BufferClock, Conflict, Kind, StreamName, Use};
use super::runtime::{Runtime, State};
use crate::base::diag::{Diag, Result, Severity};
use crate::base::span::{Origin, Site};
use crate::op::tensor::{Buffer, View};
use std::any::Any;
use std::sync::Arc;

/// What a script calls things, for the calls that diagnostics propose.
pub trait Naming: Send + Sync {
    /// The expression for a stream that was made at this place.
    fn stream(&self, made: Origin) -> Option<String>;
    /// The line of a place as its user counts.
    fn line(&self, place: Site) -> Option<usize>;
}

/// Runs `work` on what is known about a buffer.
fn with_clock<R>(buffer: &Buffer, work: impl FnOnce(&mut BufferClock) -> R) -> R {
    let mut slot = buffer.clock.lock();
    let clock = slot.get_or_insert_with(|| Box::new(BufferClock::new(buffer.size_bytes)) as Box<dyn Any + Send>);
    work(clock.downcast_mut().expect("only this file fills it"))
}

fn accesses(node: &Node) -> impl Iterator<Item = (&Arc<View>, Kind)> {
    let reads = node.reads().map(|view| (view, Kind::Read));
    reads.chain(node.outputs.iter().map(|view| (view, Kind::Write)))
}

fn describe<'a>(node: &Node, view: &'a View, kind: Kind) -> Use<'a> {
    Use { kind, layout: &view.layout, elem_bytes: view.dtype.size_bytes(), origin: node.origin, op: node.name }
}

impl Runtime {
    /// The accesses of a node that is about to be queued on a stream. An error means that it must not be.
    pub(super) fn watch(&self, state: &mut State, slot: u32, node: &Node) -> Result<()> {
        if self.options.races == Races::Off || self.options.blocking {
            return Ok(());
        }
        let lane = state.streams[slot as usize].lane;
        if self.options.races == Races::Error {
            for (view, kind) in accesses(node) {
                let access = describe(node, view, kind);
                let found = with_clock(&view.buffer, |clock| state.clocks.conflict(clock, lane, &access));
                if let Some(conflict) = found {
                    let mut diag = self.tell(&conflict);
                    diag.severity = Severity::Error;
                    return Err(diag);
                }
            }
        }
        for (view, kind) in accesses(node) {
            let access = describe(node, view, kind);
            let found = with_clock(&view.buffer, |clock| state.clocks.access(clock, lane, &access));
            if let Some(conflict) = found
                && state.reported.is_new(&conflict)
            {
                (self.warnings.lock())(self.tell(&conflict));
            }
        }
        Ok(())
    }

    fn tell(&self, conflict: &Conflict) -> Box<Diag> {
        let naming = self.naming.lock();
        let made = self.made.lock();
        let variable = |name: StreamName| naming.as_ref()?.stream(*made.get(&name)?);
        let line = |site: Site| naming.as_ref()?.line(site);
        conflict.diagnose(variable, line)
    }

    /// The host has waited for whatever wrote these elements.
    pub(super) fn watch_host_read(&self, state: &mut State, view: &View) {
        if let Some(clock) = view.buffer.clock.lock().as_mut() {
            let clock: &mut BufferClock = clock.downcast_mut().expect("only this file fills it");
            state.clocks.host_read(clock, &view.layout, view.dtype.size_bytes());
        }
    }
}
