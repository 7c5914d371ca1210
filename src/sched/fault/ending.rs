//! How a run, a session and the runtime come to their end: what is queued then is left out, or seen to its end by a
//! thread, and nobody waits for it. When that is so, and how kernels hear of it, is for others to know (`device/stop.rs`,
//! `ward.rs`).

use crate::device::queues::Point;
use crate::device::stop::Stop;
use crate::sched::runtime::Runtime;
use crate::sched::window::node::Node;
use std::time::Duration;

/// Bound: how long a session that goes waits for its GPUs before it leaves them and their memory to a thread.
const LAST_WAIT: Duration = Duration::from_millis(500);

impl Runtime {
    /// The run at hand has to end: what it put off is left out, and nobody waits for what it queued.
    pub fn leave_out(&self) {
        let mut state = self.state.lock();
        self.flush_all(&mut state);
        if let Some(gpus) = self.gpus_if_opened() {
            gpus.queues.hurry();
        }
        for stream in &mut state.streams {
            stream.left_at = stream.submitted;
        }
    }

    /// The session is gone. What it put off is left out, unless somebody outside holds a result; what its devices do is
    /// seen to the end by a thread, since work that is queued holds the runtime.
    pub fn session_ends(&self) {
        let mut state = self.state.lock();
        let live = |node: &Node| node.outputs.iter().any(|output| output.buffer.is_live());
        let pending = state.windows.iter().flat_map(|window| &window.nodes);
        let under_way = state.ledger.entries.iter().flat_map(|entry| &entry.nodes);
        let is_wanted = pending.chain(under_way).any(live);
        if !is_wanted {
            self.options.stop.drop_queued();
            self.flush_all(&mut state);
        }
        self.options.stop.begin(None);
        let Some(gpus) = self.gpus_if_opened() else { return };
        if !is_wanted {
            gpus.queues.hurry();
        }
        self.harvest(&mut state);
        if !state.ledger.entries.is_empty() {
            let runtime = self.shared();
            drop(state);
            std::thread::spawn(move || runtime.see_to_the_end());
        }
    }

    fn see_to_the_end(&self) {
        let Some(gpus) = self.gpus_if_opened() else { return };
        let points: Vec<Point> = self.state.lock().ledger.entries.iter().map(|entry| entry.point).collect();
        points.iter().for_each(|point| _ = gpus.queues.wait(point.stream, point.sequence, &Stop::default()));
        self.harvest(&mut self.state.lock());
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.options.stop.close();
        // Queues end before the memory under them goes. Whoever drops a session does not wait for what GPUs have queued:
        // nothing takes it back.
        if let Some(gpus) = self.opened.take().flatten()
            && !gpus.queues.stop(&Stop::after(LAST_WAIT))
        {
            std::thread::spawn(move || {
                let gpus = gpus;
                gpus.queues.stop(&Stop::default())
            });
        }
    }
}
