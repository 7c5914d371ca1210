//! Diagnostics of a lost device: a kernel that used an illegal address, hardware that failed.
//!
//! The driver says that the device is lost, but not why. All work that was queued there and did not finish is
//! suspected: a single operation is named, of several the first few; with `--blocking` there is one at a time.

use super::ledger::Entry;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::order;
use crate::sched::runtime::{Runtime, State};
use crate::sched::window::node::Node;
use std::sync::Arc;

/// Bound: suspects that are labeled; more lines do not help.
const SHOWN: usize = 4;

/// The note of each loss.
pub const WHAT_IS_LEFT: &str = "its memory is lost; other devices and the session still work";

impl Runtime {
    pub(in crate::sched) fn is_lost(&self, device: DeviceId) -> bool {
        device.is_cuda() && self.gpus().is_some_and(|gpus| gpus.is_lost(device))
    }

    /// An error where the device was lost: that of the work that was under way, which is then reported.
    pub(in crate::sched) fn check_device(&self, state: &mut State, device: DeviceId) -> Result<()> {
        if self.is_lost(device) { Err(self.loss(state, device)) } else { Ok(()) }
    }

    #[cold]
    fn loss(&self, state: &mut State, device: DeviceId) -> Box<Diag> {
        let Some((_, report)) = state.ledger.loss_of(device) else {
            return Diag::error(code::DEVICE_LOST, format!("{device} was lost")).note(WHAT_IS_LEFT);
        };
        self.report_with_repeats(state, &report);
        Box::new((*report).clone())
    }

    /// The diagnostic of work that was lost with its device, with its queue number; none if the work finished.
    /// Created by the first caller, with all work in flight as suspects.
    pub(in crate::sched) fn lost_with(
        &self,
        state: &mut State,
        entry: &Entry,
        device: DeviceId,
    ) -> Option<(u64, Arc<Diag>)> {
        let DeviceId::Cuda(index) = device else { return None };
        let backend = &self.gpus()?.backend;
        let death = backend.death(index)?;
        if backend.has_run(entry.point) {
            return None;
        }
        if let Some(known) = state.ledger.loss_of(device) {
            return Some(known);
        }
        self.lose(device);
        let others = state.ledger.entries.iter().filter(|other| {
            state.streams[other.point.stream as usize].name.device == device && !backend.has_run(other.point)
        });
        let mut suspects: Vec<&Node> = entry.nodes.iter().chain(others.flat_map(|other| &other.nodes)).collect();
        order::by_key(&mut suspects, |node| node.number);
        let report = self.suspicion(device, &suspects).note(death);
        let report = report.note(WHAT_IS_LEFT);
        let call_chain = if let [only] = suspects[..] { only.call_chain } else { 0 };
        let order = suspects.first().map_or(0, |node| node.number);
        let report = self.late(report, order, call_chain);
        state.ledger.note_loss(device, order, report.clone());
        Some((order, report))
    }

    fn suspicion(&self, device: DeviceId, suspects: &[&Node]) -> Box<Diag> {
        let diag = match suspects {
            [] => return Diag::error(code::DEVICE_LOST, format!("{device} was lost")),
            [only] => Diag::error(code::DEVICE_LOST, format!("{device} was lost while it ran `{}`", only.name)),
            many => {
                let text = format!("{device} was lost while it ran one of {} operations", many.len());
                Diag::error(code::DEVICE_LOST, text).help("`--blocking` runs them one by one and names the one")
            }
        };
        let of_several = suspects.len() > 1;
        let diag = suspects.iter().take(SHOWN).fold(diag, |diag, node| {
            let name = if of_several { format!("`{}`, ", node.name) } else { String::new() };
            diag.label(node.origin, Focus::Expression, format!("{name}queued here, on {device}"))
        });
        if suspects.len() > SHOWN { diag.note("the first of them are shown") } else { diag }
    }
}
