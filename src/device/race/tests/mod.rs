//! The detector against a brute-force oracle, PyTorch's sanitizer tests by name, and overlap by sets.

mod oracle;
mod regions;
mod sanitizer;

use super::*;
use crate::base::device_id::DeviceId;
use crate::base::layout::Layout;
use crate::base::span::{Origin, Site};

/// A small generator, so that a failing program can be run again.
pub(super) struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }
}

fn stream(number: u32) -> StreamName {
    StreamName { device: DeviceId::Cuda(0), number }
}

fn line(line: u16) -> Origin {
    Origin::at(Site::new(line, 1))
}

fn whole(kind: Kind, layout: &Layout) -> Use<'_> {
    Use { kind, layout, elem_bytes: 4, origin: line(1), op: "op" }
}

/// The usual mistake: `normal_` on the default stream, `sum` on another with nothing between.
#[test]
fn the_report_names_both_lines_and_the_missing_call() {
    let mut clocks = Clocks::new();
    let (main, side) = (clocks.stream(stream(0)), clocks.stream(stream(1)));
    let layout = Layout::contiguous(&[100, 100]);
    let mut buffer = BufferClock::new(40000);
    let normal = Use { origin: line(2), op: "normal_", ..whole(Kind::Write, &layout) };
    let sum = Use { origin: line(4), op: "sum", ..whole(Kind::Read, &layout) };
    assert_eq!(clocks.access(&mut buffer, main, &normal), None);
    assert_eq!(clocks.conflict(&mut buffer, main, &sum), None);
    let asked = clocks.conflict(&mut buffer, side, &sum);
    let reported = clocks.access(&mut buffer, side, &sum);
    assert_eq!(asked, reported);
    let conflict = reported.expect("a race");
    let diag =
        conflict.diagnose(|name| (name.number == 1).then(|| "s".to_string()), |site| Some(site.line() as usize), true);
    assert_eq!(diag.message, "`sum` reads memory that `normal_` may still be writing");
    assert_eq!(diag.labels[0].text, "read here, on cuda:0 stream 1, with nothing ordering the two");
    assert_eq!(diag.labels[1].text, "written here, on cuda:0 stream 0");
    assert_eq!(diag.help.as_deref(), Some("before line 4, write `s.wait_stream(default_stream());`"));
    // Streams that have no name: nothing outside of the block waits for the one of the later access.
    assert_eq!(
        conflict.advice(|_| None, |_| Some(4), true),
        "before it, inside the `with_stream` of line 4, write `current_stream().wait_stream(default_stream());`"
    );
    // Where no block begins on the line, its stream is current there; and one name for two streams names neither.
    assert_eq!(
        conflict.advice(|_| None, |_| Some(4), false),
        "before line 4, write `current_stream().wait_stream(default_stream());`"
    );
    let named = StreamName { device: DeviceId::Cuda(0), number: 2 };
    let again = Conflict { earlier: super::report::Side { stream: named, ..conflict.later }, later: conflict.later };
    assert_eq!(
        again.advice(|_| Some("s".to_string()), |_| Some(4), false),
        "before line 4, write `s.wait_stream(before);`, where `before` is the stream of line 4 as it was then, kept in a variable"
    );
    let turned = Conflict { earlier: conflict.later, later: conflict.earlier };
    assert_eq!(
        turned.advice(|_| None, |site| Some(site.line() as usize), false),
        "before line 2, write `current_stream().wait_stream(s);`, where `s` is the stream of line 4"
    );
    let mut reported = Reported::default();
    assert!(reported.is_new(&conflict));
    assert!(!reported.is_new(&Conflict { earlier: conflict.later, later: conflict.earlier }));
}

/// Missed by PyTorch's sanitizer: it gives the default streams of all devices one key.
#[test]
fn default_streams_of_two_devices_are_two() {
    let mut clocks = Clocks::new();
    let first = clocks.stream(stream(0));
    let second = clocks.stream(StreamName { device: DeviceId::Cuda(1), number: 0 });
    let layout = Layout::contiguous(&[4]);
    let mut buffer = BufferClock::new(16);
    assert!(clocks.access(&mut buffer, first, &whole(Kind::Write, &layout)).is_none());
    let conflict = clocks.access(&mut buffer, second, &whole(Kind::Read, &layout)).expect("a race");
    let advice = "before it, write `current_stream(1).wait_stream(default_stream(0));`";
    assert_eq!(conflict.advice(|_| None, |_| None, false), advice);
}

/// Missed by PyTorch's sanitizer: it knows a tensor by the address where it starts.
#[test]
fn views_at_other_offsets_overlap_or_not() {
    let rows = |start, len| Layout::contiguous(&[6, 4]).slice(0, start, 1, len);
    let race = |first: &Layout, second: &Layout| {
        let mut clocks = Clocks::new();
        let (a, b) = (clocks.stream(stream(1)), clocks.stream(stream(2)));
        let mut buffer = BufferClock::new(6 * 4 * 4);
        assert!(clocks.access(&mut buffer, a, &whole(Kind::Write, first)).is_none());
        clocks.access(&mut buffer, b, &whole(Kind::Read, second)).is_some()
    };
    assert!(race(&rows(0, 3), &rows(2, 2)));
    assert!(!race(&rows(0, 3), &rows(3, 3)));
    let column = |index, step, len| Layout::contiguous(&[6, 4]).slice(1, index, step, len);
    assert!(!race(&column(0, 2, 2), &column(1, 2, 2)));
    assert!(race(&column(0, 3, 2), &column(3, 1, 1)));
    assert!(!race(&rows(2, 0), &rows(0, 6)));
}

#[test]
fn a_retired_lane_serves_again_when_the_host_has_waited() {
    let mut clocks = Clocks::new();
    let layout = Layout::contiguous(&[4]);
    let mut buffer = BufferClock::new(16);
    let a = clocks.stream(stream(1));
    assert!(clocks.access(&mut buffer, a, &whole(Kind::Write, &layout)).is_none());
    clocks.retire(a);
    let b = clocks.stream(stream(2));
    assert_ne!(a, b);
    let conflict = clocks.access(&mut buffer, b, &whole(Kind::Write, &layout)).expect("a race");
    assert_eq!(conflict.earlier.stream, stream(1));
    clocks.host_sync(a);
    let c = clocks.stream(stream(3));
    assert_eq!((a, clocks.name(c)), (c, stream(3)));
    let conflict = clocks.access(&mut buffer, c, &whole(Kind::Write, &layout)).expect("a race with stream 2");
    assert_eq!(conflict.earlier.stream, stream(2));
}

/// Ten million operations on parts of a buffer keep a bounded list.
#[test]
fn memory_does_not_grow() {
    let mut clocks = Clocks::new();
    let lanes = [clocks.stream(stream(1)), clocks.stream(stream(2))];
    let mut buffer = BufferClock::new(4 << 20);
    let layout = Layout::contiguous(&[1 << 10, 1 << 10]);
    for step in 0..20_000 {
        let part = layout.select(0, step * 7919 % 1024).slice(0, 1 + step % 9, 1, 100);
        clocks.access(&mut buffer, lanes[step / 1000 % 2], &whole(Kind::Write, &part));
        if step % 10 == 0 {
            clocks.wait_stream(lanes[step / 10 % 2], lanes[1 - step / 10 % 2]);
        }
        assert!(buffer.remembered() <= 1024);
    }
}

/// Parts that one line touched are joined in the list, but not over a point that others have learnt of.
#[test]
fn a_wait_orders_what_came_before_and_nothing_after() {
    let mut clocks = Clocks::new();
    let (a, b) = (clocks.stream(stream(1)), clocks.stream(stream(2)));
    let rows = Layout::contiguous(&[64, 4]);
    let mut buffer = BufferClock::new(1024);
    assert!(clocks.access(&mut buffer, a, &whole(Kind::Write, &rows.select(0, 0))).is_none());
    clocks.wait_stream(b, a);
    for row in 1..64 {
        assert!(clocks.access(&mut buffer, a, &whole(Kind::Write, &rows.select(0, row))).is_none());
    }
    assert!(buffer.remembered() < 40, "joined");
    assert!(clocks.access(&mut buffer, b, &whole(Kind::Read, &rows.select(0, 0))).is_none());
    assert!(clocks.access(&mut buffer, b, &whole(Kind::Read, &rows.select(0, 1))).is_some());
}
