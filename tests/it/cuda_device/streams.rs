//! Devices, streams, events, timelines, graphs, and what the calls cost.

use super::*;
use tscript::internals::device::cuda::{Event, Timeline, Timing, Waited};

#[test]
fn devices_say_what_they_are() {
    let Some((_alone, context)) = gpu() else { return };
    let facts = context.facts();
    eprintln!("{facts:?}");
    assert!(facts.capability >= (5, 0) && facts.multiprocessors > 0 && facts.memory_bytes > 1 << 28);
    assert!(!facts.name.is_empty() && facts.uuid != [0; 16]);
    let (free, total) = context.memory_info().expect("memory");
    assert!(free <= total && total <= facts.memory_bytes + (1 << 30));
    let (least, greatest) = context.priorities().expect("priorities");
    assert!(greatest <= least);
    let urgent = Stream::new(context, greatest - 100).expect("a stream");
    assert_eq!(urgent.priority(), greatest, "clamped to what there is");
    eprintln!("priorities {least} to {greatest}");
}

#[test]
fn streams_run_beside_each_other_and_wait_for_events() {
    let Some((_alone, context)) = gpu() else { return };
    let (one, two) = (Stream::new(context, 0).expect("a stream"), Stream::new(context, 0).expect("a stream"));
    let flag = Buffer::of(&one, &[0u32, 0]);
    let (start, end) = (Event::new(context, Timing::On).expect("an event"), Event::new(context, Timing::On).expect(""));
    assert!(end.is_done().expect("an answer"), "an event that was never recorded is done");
    start.record(&one).expect("");
    spin(&one, 200, flag.address, 7);
    end.record(&one).expect("");
    assert!(!end.is_done().expect("an answer") && !one.is_idle().expect("an answer"));
    // The second stream is free, then it waits.
    spin(&two, 1, flag.address + 4, 8);
    two.wait().expect("its end");
    assert!(!one.is_idle().expect("an answer"), "the other stream is still busy");
    two.wait_for(&end).expect("");
    let increment = context.kernels().function(&text(), "increment").expect("a kernel");
    let parameters = packed(&[&flag.address.to_ne_bytes(), &5u32.to_ne_bytes()]);
    two.launch_packed(increment, &Shape::line(1, 1), &parameters).expect("a launch");
    two.wait().expect("its end");
    assert_eq!(flag.read::<u32>(&two), [12, 8], "after the 7 of the first stream");
    let ms = start.elapsed_ms(&end).expect("a time");
    assert!((199.0..600.0).contains(&ms), "{ms} ms of 200");
    let untimed = Event::new(context, Timing::Off).expect("");
    untimed.record(&one).expect("");
    assert!(start.elapsed_ms(&untimed).is_err());
    drop((start, end, untimed));
    let again = Event::new(context, Timing::On).expect("");
    assert!(!again.is_recorded(), "a handle from the pool is a new event");
}

#[test]
fn timelines_show_the_progress_of_a_stream() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let flag = Buffer::of(&stream, &[0u32]);
    let mut timeline = Timeline::new();
    assert!(timeline.is_finished(0).expect(""));
    spin(&stream, 20, flag.address, 1);
    let first = timeline.mark(&stream).expect("a mark");
    spin(&stream, 300, flag.address, 2);
    let second = timeline.mark(&stream).expect("a mark");
    assert_eq!((first, second, timeline.submitted()), (1, 2, 2));
    assert!(!timeline.is_finished(first).expect("") && !timeline.is_finished(9).expect(""));
    assert_eq!(timeline.wait(first, &mut || false).expect("a wait"), Waited::Done);
    assert!(!timeline.is_finished(second).expect(""), "300 ms of work are left");
    assert_eq!(timeline.wait(second, &mut || true).expect("a wait"), Waited::Interrupted);
    assert_eq!(timeline.finished().expect(""), 1);
    assert_eq!(timeline.wait(second, &mut || false).expect("a wait"), Waited::Done);
    assert_eq!(flag.read::<u32>(&stream), [2]);
    for _ in 0..100 {
        timeline.mark(&stream).expect("a mark");
    }
    assert_eq!(timeline.wait(u64::MAX, &mut || false).expect("a wait"), Waited::Done);
    assert_eq!((timeline.seen_finished(), timeline.submitted()), (102, 102));
    eprintln!("is_finished, seen: {:.1} ns", cost(1000, || assert!(timeline.is_finished(50).expect(""))));
}

#[test]
fn graphs_repeat_what_was_recorded() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let increment = context.kernels().function(&text(), "increment").expect("a kernel");
    let counters = Buffer::of(&stream, &[0u32, 0]);
    let record = |address: u64, times: usize| {
        stream.begin_recording().expect("a recording");
        assert!(stream.is_recording().expect(""));
        for by in 0..times as u32 {
            let bytes = packed(&[&address.to_ne_bytes(), &by.to_ne_bytes()]);
            stream.launch_packed(increment, &Shape::line(1, 1), &bytes).expect("recorded");
        }
        let recording = stream.end_recording().expect("a recording");
        assert_eq!(recording.nodes().expect("a number"), times);
        recording
    };
    let recording = record(counters.address, 100);
    assert_eq!(counters.read::<u32>(&stream), [0, 0], "recorded, not done");
    let start = Instant::now();
    let mut graph = recording.instantiate().expect("a graph");
    eprintln!("instantiate 100 kernels: {:.0} µs", start.elapsed().as_secs_f64() * 1e6);
    graph.upload(&stream).expect("an upload");
    (0..3).for_each(|_| graph.launch(&stream).expect("a launch"));
    assert_eq!(counters.read::<u32>(&stream), [3 * 4950, 0]);
    assert!(graph.update(&record(counters.address + 4, 100)).expect("the same shape"));
    graph.launch(&stream).expect("a launch");
    assert_eq!(counters.read::<u32>(&stream), [3 * 4950, 4950]);
    assert!(!graph.update(&record(counters.address, 3)).expect("another shape"), "another shape");
    graph.launch(&stream).expect("as it was");
    assert_eq!(counters.read::<u32>(&stream), [3 * 4950, 2 * 4950]);
    let whole = cost(20, || {
        graph.launch(&stream).expect("a launch");
        stream.wait().expect("its end");
    });
    eprintln!("replay of 100 kernels and wait: {:.1} µs", whole / 1e3);
    assert!(stream.end_recording().is_err(), "nothing is recorded");
    stream.wait().expect("the stream lives on");
}

#[test]
fn what_calls_cost() {
    let Some((_alone, context)) = gpu() else { return };
    let (stream, other) = (Stream::new(context, 0).expect("a stream"), Stream::new(context, 0).expect("a stream"));
    let nothing = context.kernels().function(&text(), "nothing").expect("a kernel");
    let add = context.kernels().function(&text(), "add").expect("a kernel");
    let shape = Shape::line(1, 32);
    let (mut a, mut n) = (0u64, 0u32);
    let mut b = a;
    let mut c = a;
    let mut parameters = [pointer(&mut a), pointer(&mut b), pointer(&mut c), pointer(&mut n)];
    let bytes = [0u8; 28];
    let line = |what: &str, ns: f64| eprintln!("{what}: {:.3} µs", ns / 1e3);
    // SAFETY: the parameters are those of the kernel, which reads nothing for n = 0.
    line("launch with pointers", cost(500, || unsafe { stream.launch(add, &shape, &mut parameters) }.expect("")));
    stream.wait().expect("");
    line("launch packed", cost(500, || stream.launch_packed(add, &shape, &bytes).expect("")));
    stream.wait().expect("");
    line("launch without parameters", cost(500, || stream.launch_packed(nothing, &shape, &[]).expect("")));
    stream.wait().expect("");
    line(
        "launch and wait",
        cost(200, || {
            stream.launch_packed(nothing, &shape, &[]).expect("");
            stream.wait().expect("");
        }),
    );
    let mut timeline = Timeline::new();
    line(
        "launch, mark and wait by the timeline",
        cost(200, || {
            stream.launch_packed(nothing, &shape, &[]).expect("");
            let n = timeline.mark(&stream).expect("");
            timeline.wait(n, &mut || false).expect("");
        }),
    );
    let event = Event::new(context, Timing::Off).expect("");
    line(
        "record and wait_for",
        cost(500, || {
            event.record(&stream).expect("");
            other.wait_for(&event).expect("");
        }),
    );
    line("an event from the pool and back", cost(500, || Event::new(context, Timing::Off).expect("")));
    line("a mark", cost(100, || timeline.mark(&stream).expect("")));
    line("make_current", cost(1000, || context.make_current().expect("")));
    let key = text().key;
    line("a known kernel", cost(1000, || context.kernels().known(key, "add")));
    line("a query of an idle stream", cost(500, || stream.is_idle().expect("")));
}
