//! Leaving a `try` block: waits for work that was queued inside, and raises its earliest fault. A block is identified
//! by the queue number at its beginning.

use crate::base::diag::{Diag, Result};
use crate::device::queues::Point;
use crate::sched::runtime::{Runtime, State};

impl Runtime {
    /// Waits for work that was queued since `began`, and for nothing else; returns its earliest fault that comes
    /// before `left_by`, the queue number of the fault that is already being raised. The block's later faults would
    /// never have been queued, and are dropped. An interruption of the wait is an error.
    pub fn leave_block(&self, began: u64, left_by: u64) -> Result<Option<Box<Diag>>> {
        if self.current_queue_number() == began {
            return Ok(None);
        }
        let _waiting = self.waiting("leaving a `try`");
        let mut state = self.state.lock();
        let state = &mut *state;
        for slot in 0..state.windows.len() as u32 {
            if state.windows[slot as usize].last_number() >= began {
                self.run_window(state, slot);
            }
        }
        for slot in 1..state.streams.len() as u32 {
            let (number, sequence) = state.streams[slot as usize].last_work;
            if number >= began {
                self.wait_point(state, Point { stream: slot, sequence })?;
                self.host_came_after(state, slot, number);
            }
        }
        for slot in 1..state.streams.len() {
            if state.streams[slot].last_access >= began {
                let lane = state.streams[slot].lane;
                let position = state.clocks.position(lane);
                state.clocks.host_wait(lane, position);
            }
        }
        Ok(self.take_block_fault(state, began, left_by))
    }

    fn take_block_fault(&self, state: &mut State, began: u64, left_by: u64) -> Option<Box<Diag>> {
        let inside = state.ledger.unreported.iter().filter(|unreported| unreported.order >= began);
        let first = inside
            .min_by_key(|unreported| unreported.order)
            .map(|unreported| (unreported.order, unreported.fault.clone()));
        while let Some(at) = state.ledger.unreported.iter().position(|unreported| unreported.order >= began) {
            self.take_unreported(state, at);
        }
        first.filter(|(order, _)| *order < left_by).map(|(_, fault)| Box::new((*fault).clone()))
    }
}
