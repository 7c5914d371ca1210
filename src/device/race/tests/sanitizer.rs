//! PyTorch's `test/test_cuda_sanitizer.py`, each behavior by its name, written anew.

use super::*;

/// Streams, tensors and events by number, made when first named.
#[derive(Default)]
struct Program {
    clocks: Clocks,
    lanes: Vec<Lane>,
    tensors: Vec<BufferClock>,
    events: Vec<Option<EventClock>>,
}

impl Program {
    fn lane(&mut self, number: usize) -> Lane {
        while self.lanes.len() <= number {
            self.lanes.push(self.clocks.stream(stream(self.lanes.len() as u32)));
        }
        self.lanes[number]
    }

    /// Launches a kernel and returns the number of races.
    fn launch(&mut self, on: usize, reads: &[usize], writes: &[usize]) -> usize {
        let lane = self.lane(on);
        let layout = Layout::contiguous(&[4]);
        let mut races = 0;
        for (kind, tensors) in [(Kind::Read, reads), (Kind::Write, writes)] {
            for &tensor in tensors {
                self.tensors.resize_with(self.tensors.len().max(tensor + 1), || BufferClock::new(16));
                let access = whole(kind, &layout);
                let asked = self.clocks.conflict(&mut self.tensors[tensor], lane, &access);
                let reported = self.clocks.access(&mut self.tensors[tensor], lane, &access);
                assert_eq!(asked, reported);
                races += usize::from(reported.is_some());
            }
        }
        races
    }

    fn good(&mut self, on: usize, reads: &[usize], writes: &[usize]) {
        assert_eq!(self.launch(on, reads, writes), 0);
    }

    fn bad(&mut self, on: usize, reads: &[usize], writes: &[usize]) {
        assert_ne!(self.launch(on, reads, writes), 0);
    }

    fn record(&mut self, event: usize, on: usize) {
        let lane = self.lane(on);
        self.events.resize(self.events.len().max(event + 1), None);
        self.events[event] = Some(self.clocks.record(lane));
    }

    fn wait(&mut self, event: usize, on: usize) {
        let lane = self.lane(on);
        if let Some(Some(event)) = self.events.get(event) {
            self.clocks.wait(lane, event);
        }
    }
}

fn check(run: impl Fn(&mut Program)) {
    run(&mut Program::default());
}

#[test]
fn test_empty_kernel_launch() {
    check(|p| p.good(0, &[], &[]));
}

#[test]
fn test_simple_passing() {
    check(|p| {
        p.good(1, &[1], &[]);
        p.good(2, &[1], &[]);
    });
}

#[test]
fn test_simple_error() {
    check(|p| {
        p.good(1, &[1], &[]);
        p.bad(2, &[], &[1]);
    });
}

#[test]
fn test_simple_sync() {
    check(|p| {
        p.good(1, &[1], &[]);
        p.record(0, 1);
        p.wait(0, 2);
        p.good(2, &[], &[1]);
    });
}

/// Not only the first read after a write is checked against it.
#[test]
fn test_reads_check_last_write() {
    check(|p| {
        p.good(1, &[], &[1]);
        p.record(0, 1);
        p.wait(0, 2);
        p.good(2, &[1], &[]);
        p.bad(3, &[1], &[]);
    });
}

/// Two streams may read after both waited for a third, and may not write without more.
#[test]
fn test_branch_sync() {
    check(|p| {
        p.good(1, &[], &[1]);
        p.record(0, 1);
        p.wait(0, 2);
        p.wait(0, 3);
        p.good(2, &[1], &[]);
        p.good(3, &[1], &[]);
        p.bad(2, &[], &[1]);
    });
}

#[test]
fn test_chain_sync() {
    check(|p| {
        p.good(0, &[1], &[]);
        for i in 0..10 {
            p.record(i, i);
            p.wait(i, i + 1);
        }
        p.good(10, &[], &[1]);
    });
}

#[test]
fn test_expired_record() {
    check(|p| {
        p.good(1, &[1], &[]);
        p.record(0, 1);
        p.good(1, &[1], &[]);
        p.wait(0, 2);
        p.bad(2, &[], &[1]);
    });
}

/// An event that went, or was made anew, has no record.
#[test]
fn test_deleted_record() {
    check(|p| {
        p.good(1, &[1], &[]);
        p.record(0, 1);
        p.events[0] = None;
        p.wait(0, 2);
        p.bad(2, &[], &[1]);
    });
}

#[test]
fn test_all_reads_checked_failing() {
    check(|p| {
        for i in 1..=10 {
            p.good(i, &[1], &[]);
            p.record(i, i);
        }
        for i in 1..10 {
            p.wait(i, 0);
        }
        p.bad(0, &[], &[1]);
    });
}

#[test]
fn test_all_reads_checked_passing() {
    check(|p| {
        for i in 1..10 {
            p.good(i, &[1], &[]);
            p.record(i, i);
        }
        for i in 1..10 {
            p.wait(i, 0);
        }
        p.good(0, &[], &[1]);
    });
}

#[test]
fn test_multiple_errors() {
    let all: Vec<usize> = (0..10).collect();
    check(|p| {
        p.good(0, &[], &all);
        assert_eq!(p.launch(1, &[], &all), 10);
    });
}

/// A wait sets the stream's clock to the pointwise maximum of its own and the event's.
#[test]
fn test_correct_state_merging() {
    check(|p| {
        p.good(1, &[], &[1]);
        p.good(2, &[], &[2]);
        p.record(1, 1);
        p.record(2, 2);
        p.good(1, &[], &[1]);
        p.good(2, &[], &[2]);
        p.wait(1, 2);
        p.wait(2, 1);
        p.record(3, 2);
        p.wait(3, 1);
        p.good(1, &[], &[1, 2]);
    });
}

#[test]
fn test_record_override() {
    check(|p| {
        p.good(1, &[1], &[]);
        p.good(2, &[2], &[]);
        p.record(1, 1);
        p.record(1, 2);
        p.wait(1, 3);
        p.bad(3, &[], &[1]);
    });
}

#[test]
fn test_multiple_wait() {
    check(|p| {
        p.good(1, &[], &[1]);
        p.record(1, 1);
        p.wait(1, 2);
        p.wait(1, 3);
        p.good(2, &[1], &[]);
        p.good(3, &[1], &[]);
    });
}
