//! Creates gates of steps that are recorded, and tracks what the host has waited for.

use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::device::queues::Point;
use crate::op::tensor::{Buffer, View};
use crate::sched::fault::poison;
use crate::sched::order::gate::{Gate, writer};
use crate::sched::order::points::HOST;
use crate::sched::runtime::{Runtime, State};
use smallvec::SmallVec;
use std::sync::Arc;

impl Runtime {
    /// The gate of the step that is recorded next: it changes tensors on these devices, and reads these views. Waits
    /// only if the host is one of several devices.
    pub fn gate(&self, devices: &[DeviceId], reads: &dyn Fn() -> Vec<Arc<View>>) -> Result<Arc<Gate>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut slots: SmallVec<[u32; 4]> = devices.iter().map(|&device| self.slot_of(device)).collect();
        slots.sort_unstable();
        slots.dedup();
        let together = slots.len() > 1;
        if together || state.ledger.suspects.is_on() {
            // Faults of work that was not submitted yet are not among the suspects.
            self.flush_all(state);
        }
        if together {
            self.synchronize_slots(state, &slots)?;
        }
        self.forget_reported(state);
        let number = self.current_queue_number();
        let mut past = state.host_past.clone();
        for &slot in &slots {
            past.join(state.streams[slot as usize].past_log.now());
            past.raise(slot, number - 1);
        }
        let gate =
            Arc::new(Gate::new(number, devices, past, state.ledger.suspects.of_all(reads), state.ledger.log.clone()));
        if together && slots.contains(&HOST) {
            gate.is_held();
        }
        Ok(gate)
    }

    /// Faults that were reported before all work that is under way hold nothing any more.
    pub(in crate::sched) fn forget_reported(&self, state: &State) {
        let recorded = state.windows.iter().filter_map(|window| window.nodes.first());
        let under_way = state.ledger.entries.iter().filter_map(|entry| entry.nodes.first());
        let oldest = recorded.chain(under_way).map(|node| node.number).min();
        state.ledger.log.forget_reported(oldest.unwrap_or(u64::MAX));
    }

    /// Each stream of a step over several devices continues when all have reached this point. Not an order that the
    /// script requested.
    fn synchronize_slots(&self, state: &mut State, slots: &[u32]) -> Result<()> {
        let tip = |state: &State, slot: u32| Point { stream: slot, sequence: state.streams[slot as usize].submitted };
        let tips: SmallVec<[Point; 4]> =
            slots.iter().filter(|&&slot| slot != HOST).map(|&slot| tip(state, slot)).collect();
        if slots.contains(&HOST) {
            return tips.into_iter().try_for_each(|point| self.wait_point(state, point));
        }
        for &slot in slots {
            for &point in tips.iter().filter(|point| point.stream != slot && point.sequence > 0) {
                if state.streams[point.stream as usize].is_done(point.sequence) {
                    continue;
                }
                let waits = &mut state.streams[slot as usize].waits;
                match waits.iter_mut().find(|known| known.stream == point.stream) {
                    Some(known) => known.sequence = known.sequence.max(point.sequence),
                    None => waits.push(point),
                }
            }
        }
        Ok(())
    }

    /// The host has waited for the work of a stream with this queue number, as the script requested.
    pub(in crate::sched) fn host_came_after(&self, state: &mut State, slot: u32, number: u64) {
        if slot == HOST || number == 0 {
            return;
        }
        let State { streams, host_past, .. } = state;
        host_past.join(streams[slot as usize].past_log.at(number));
        host_past.raise(slot, number);
    }

    /// Work of a slot comes after a copy from the host or to it. If a fault has reached what was copied, the work comes
    /// after the fault as well, and after all that the host has waited for.
    pub(in crate::sched) fn follow_poison(&self, state: &mut State, slot: u32, copied: &View) {
        let Some((number, _)) = poison::of(copied) else { return };
        let mut past = state.host_past.clone();
        past.raise(HOST, number);
        state.streams[slot as usize].past_log.join(self.current_queue_number(), &past);
    }

    /// The host has waited for the last write of the buffer.
    pub(in crate::sched) fn host_came_after_writer(&self, state: &mut State, buffer: &Buffer) {
        let (slot, number) = writer(buffer);
        self.host_came_after(state, slot, number);
    }
}
