//! The end of a run, of a session and of the runtime: queued work is dropped, or a thread waits for it, so that
//! nothing else has to. When this happens, and how kernels are stopped, is decided elsewhere (`device/stop.rs`,
//! `kernel_context.rs`).

use crate::device::queues::Point;
use crate::device::stop::Stop;
use crate::sched::runtime::Runtime;
use crate::sched::window::node::Node;
use std::time::Duration;

/// Bound: how long a session that ends waits for its GPUs before it leaves them and their memory to a thread.
const LAST_WAIT: Duration = Duration::from_millis(500);

impl Runtime {
    /// The current run has to end: recorded work is dropped, and nothing waits for what was queued.
    pub fn drop_recorded(&self) {
        let mut state = self.state.lock();
        self.flush_all(&mut state);
        if let Some(gpus) = self.gpus_if_opened() {
            gpus.queues.hurry();
        }
        for stream in &mut state.streams {
            stream.left_at = stream.submitted;
        }
    }

    /// The session ends. Recorded work is dropped, unless a result is held outside of it; a thread waits for the
    /// devices, since queued work holds the runtime.
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
            std::thread::spawn(move || runtime.wait_in_background());
        }
    }

    fn wait_in_background(&self) {
        let Some(gpus) = self.gpus_if_opened() else { return };
        let points: Vec<Point> = self.state.lock().ledger.entries.iter().map(|entry| entry.point).collect();
        points.iter().for_each(|point| _ = gpus.queues.wait(point.stream, point.sequence, &Stop::default()));
        self.harvest(&mut self.state.lock());
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.options.stop.close();
        // Queues end before their memory is freed. Dropping a session does not wait for work queued on GPUs: it
        // cannot be cancelled.
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
