//! Single tasks on streams, outside of windows.

use crate::sched::backend::task::{Enqueued, Stamp, Task, Wish};
use crate::sched::profile::timeline::Part;
use crate::sched::runtime::{Runtime, State};

impl Runtime {
    /// Queues a task on a stream, after what the stream waits for; a trace shows it as `part`.
    pub(in crate::sched) fn enqueue_watched(&self, state: &mut State, slot: u32, task: Task, part: Part) -> Enqueued {
        let trace = self.timeline.as_ref().map(|trace| (part, trace.clock));
        let enqueued = self.enqueue(state, slot, task, Wish { ran: true, trace, ..Wish::default() });
        state.streams[slot as usize].last_work = (part.number, enqueued.sequence);
        enqueued
    }

    /// As `enqueue_watched`, for tasks that no trace shows; keeps the time of its end if requested.
    pub(in crate::sched) fn enqueue_timed(
        &self,
        state: &mut State,
        slot: u32,
        task: Task,
        timed: bool,
    ) -> Option<Stamp> {
        self.enqueue(state, slot, task, Wish { stamp: timed, ..Wish::default() }).stamp
    }

    fn enqueue(&self, state: &mut State, slot: u32, task: Task, wish: Wish) -> Enqueued {
        let gpus = self.gpus().expect("streams are of devices");
        let stream = &mut state.streams[slot as usize];
        let after = std::mem::take(&mut stream.waits);
        let enqueued = gpus.backend.enqueue(slot, after, task, wish);
        stream.submitted = stream.submitted.max(enqueued.sequence);
        enqueued
    }
}
