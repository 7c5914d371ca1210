//! Leaving a `try` block: what was queued inside is waited for, and its earliest fault is told. Knows a block by the
//! place in the order of queueing at which it began.

use crate::base::diag::{Diag, Result};
use crate::device::queues::Point;
use crate::sched::runtime::{Runtime, State};

impl Runtime {
    /// Waits for what was queued since `began`, and for nothing else; gives the earliest fault of it that comes before
    /// `left_by`, the place of the fault that is on its way out already. The block's later faults would never have been
    /// queued, and are spent. An interruption of the wait is an error.
    pub fn leave_block(&self, began: u64, left_by: u64) -> Result<Option<Box<Diag>>> {
        if self.place_in_order() == began {
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
        Ok(self.tell_block(state, began, left_by))
    }

    fn tell_block(&self, state: &mut State, began: u64, left_by: u64) -> Option<Box<Diag>> {
        let inside = state.ledger.untold.iter().filter(|untold| untold.order >= began);
        let first = inside.min_by_key(|untold| untold.order).map(|untold| (untold.order, untold.fault.clone()));
        while let Some(at) = state.ledger.untold.iter().position(|untold| untold.order >= began) {
            self.take_untold(state, at);
        }
        first.filter(|(order, _)| *order < left_by).map(|(_, fault)| Box::new((*fault).clone()))
    }
}
