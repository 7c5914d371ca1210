//! Memory and copies: allocating, pinned and ordinary host memory, mapped words, between devices.

use super::*;
use tscript::internals::device::cache::Cache;
use tscript::internals::device::cuda::expandable::ExpandableMemory;
use tscript::internals::device::cuda::memory::{Mapped, PinnedMemory};
use tscript::internals::device::cuda::staging::Staging;
use tscript::internals::device::cuda::{Event, Timing};

#[test]
fn memory_serves_the_caching_allocator() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mut device = Cache::new(DeviceMemory::new(context));
    let mut pinned = Cache::new(PinnedMemory::new(context));
    assert!(device.alloc(1 << 50, 0, 0).is_err(), "a petabyte");
    assert_eq!(device.raw_mut().take_failure(), None, "running out is no failure");
    let bytes = 256 << 20;
    let there = [device.alloc(bytes, 0, 0).expect("memory"), device.alloc(bytes, 0, 0).expect("memory")];
    let here = pinned.alloc(bytes, 0, 0).expect("memory");
    // SAFETY: the block has `bytes` bytes and is nobody else's.
    let host = unsafe { std::slice::from_raw_parts_mut(here.address() as *mut u8, bytes) };
    host.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
    let pageable = host.to_vec();
    // SAFETY: both buffers outlive the waits.
    unsafe {
        rate("host to device, pinned", bytes, &stream, || {
            stream.copy_from_host(there[0].address(), host.as_ptr(), bytes)
        });
        rate("host to device, pageable", bytes, &stream, || {
            stream.copy_from_host(there[0].address(), pageable.as_ptr(), bytes)
        });
    }
    rate("device to device (read and written)", 2 * bytes, &stream, || {
        stream.copy(there[1].address(), there[0].address(), bytes)
    });
    host.fill(0);
    // SAFETY: the buffer outlives the wait.
    rate("device to host, pinned", bytes, &stream, || unsafe {
        stream.copy_to_host(host.as_mut_ptr(), there[1].address(), bytes)
    });
    let start = Instant::now();
    assert!(host == pageable, "the bytes came back");
    eprintln!("the host compares 2 × 256 MB, one of them pinned, in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    rate("fill", bytes, &stream, || stream.fill(there[0].address(), 0x5a, bytes));
    // SAFETY: `host` has more bytes, and outlives the wait below.
    unsafe { stream.copy_to_host(host.as_mut_ptr(), there[0].address(), 1000) }.expect("a copy");
    stream.wait().expect("its end");
    assert!(host[..1000].iter().all(|&byte| byte == 0x5a));
    there.into_iter().for_each(|block| device.free(block));
    pinned.free(here);
    device.empty_cache();
    assert_eq!(device.statistics().reserved_bytes[0].current, 0);
    let big = cost(1, || Buffer::new(context, 64 << 20).bytes = 0);
    eprintln!("cuMemAlloc and cuMemFree of 64 MiB: {:.0} µs", big / 1e3);
}

#[test]
fn segments_grow_in_place() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let (before, _) = context.memory_info().expect("memory");
    let mut cache = Cache::new(ExpandableMemory::new(context).expect("virtual memory"));
    let blocks: Vec<_> = [100, 3, 1, 50, 700].map(|mib| cache.alloc(mib << 20, 0, 0).expect("memory")).into();
    assert_eq!(cache.statistics().segment[0].current, 2, "one for small blocks, one for large");
    for (at, block) in blocks.iter().enumerate() {
        stream.fill(block.address(), at as u8 + 1, block.size_bytes()).expect("a fill");
    }
    let mut back = [0u8; 64];
    for (at, block) in blocks.iter().enumerate() {
        let end = block.address() + block.size_bytes() as u64;
        // SAFETY: the buffer outlives the wait.
        unsafe { stream.copy_to_host(back.as_mut_ptr(), end - 64, 64) }.expect("a copy");
        stream.wait().expect("the copy");
        assert_eq!(back, [at as u8 + 1; 64]);
    }
    assert!(cache.alloc(context.facts().memory_bytes, 0, 0).is_err(), "more than there is");
    assert_eq!(cache.raw_mut().take_failure(), None, "running out is no failure");
    let mut blocks = blocks.into_iter();
    let first = blocks.next().expect("the first");
    blocks.for_each(|block| cache.free(block));
    cache.empty_cache();
    assert_eq!(cache.statistics().reserved_bytes[0].current, 100 << 20, "what is free at the end goes back");
    stream.fill(first.address(), 9, first.size_bytes()).expect("a fill");
    let again = cache.alloc(300 << 20, 0, 0).expect("memory");
    assert_eq!(again.address(), first.address() + (100 << 20), "behind what is there");
    stream.fill(again.address(), 9, again.size_bytes()).expect("a fill");
    stream.wait().expect("its end");
    let grow = cost(1, || {
        let block = cache.alloc(64 << 20, 0, 0).expect("memory");
        cache.free(block);
        cache.empty_cache();
    });
    eprintln!("growing by 64 MiB and back: {:.0} µs", grow / 1e3);
    cache.free(first);
    cache.free(again);
    drop(cache);
    let (after, _) = context.memory_info().expect("memory");
    assert!(after + (64 << 20) >= before, "{before} bytes were free, now {after}");
}

#[test]
fn ordinary_memory_goes_through_staging() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mut staging = Staging::new(context);
    let there = Buffer::new(context, 256 << 20);
    let bytes: Vec<u8> = (0..there.bytes).map(|at| (at % 251) as u8).collect();
    for (from, to) in
        [(0, 0), (3, 4), (5, 100_000), (1, (2 << 20) + 2), (7, 9 << 20), (0, 33_333_333), (0, there.bytes)]
    {
        stream.fill(there.address, 0xee, there.bytes).expect("a fill");
        staging.upload(&stream, there.address + from as u64, &bytes[from..to]).expect("an upload");
        let mut back = vec![0; to - from + 1];
        let whole = (back.len() + from).min(there.bytes) - from;
        staging.download(&stream, &mut back[..whole], there.address + from as u64).expect("a download");
        assert!(back[..to - from] == bytes[from..to], "{from} to {to}");
        assert!(whole <= to - from || back[to - from] == 0xee, "nothing behind {to} was written");
    }
    rate("host to device, ordinary memory, staged", bytes.len(), &stream, || {
        staging.upload(&stream, there.address, &bytes)
    });
    let mut back = vec![0; bytes.len()];
    rate("device to host, ordinary memory, staged", bytes.len(), &stream, || {
        staging.download(&stream, &mut back, there.address)
    });
    assert!(back == bytes);
    // Small uploads do not wait for the stream.
    spin(&stream, 300, there.address, 0);
    let start = Instant::now();
    (0..1000).for_each(|at| staging.upload(&stream, there.address + at * 100, &[at as u8; 100]).expect("an upload"));
    eprintln!("a small upload: {:.2} µs", start.elapsed().as_secs_f64() * 1e3);
    assert!(!stream.is_idle().expect("an answer"), "300 ms of work were before them");
    let mut back = vec![0; 100_000];
    staging.download(&stream, &mut back, there.address).expect("a download");
    assert!(back.chunks(100).enumerate().all(|(at, piece)| piece == [at as u8; 100]));
}

#[test]
fn mapped_words_are_seen_by_both_sides() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mapped = Mapped::new(context, 4).expect("memory");
    assert_eq!(mapped.read(3), 0);
    mapped.write(1, 5);
    let slot = context.kernels().function(&text(), "slot").expect("a kernel");
    let bytes = packed(&[&(mapped.device_address() + 16).to_ne_bytes(), &0x1234_5678_9abc_def0u64.to_ne_bytes()]);
    stream.launch_packed(slot, &Shape::line(1, 1), &bytes).expect("a launch");
    stream.wait().expect("its end");
    assert_eq!([0, 1, 2, 3].map(|at| mapped.read(at)), [0, 5, 0x1234_5678_9abc_def0, 0]);
    eprintln!(
        "a poll of a mapped word: {:.2} ns",
        cost(10_000, || assert_eq!(std::hint::black_box(&mapped).read(3), 0))
    );
}

#[test]
fn two_devices_reach_each_other() {
    let Some((_alone, _)) = gpu() else { return };
    let devices = open().expect("a driver").devices();
    let [first, second, ..] = devices else { return eprintln!("one GPU: nothing between devices was tested") };
    let contexts = [first.context(), second.context()];
    let streams = contexts.map(|context| Stream::new(context, 0).expect("a stream"));
    let values: Vec<u32> = (0..1 << 20).collect();
    let here = Buffer::of(&streams[0], &values);
    let there = Buffer::new(contexts[1], here.bytes);
    // By the second device's stream, after an event of the first.
    let event = Event::new(contexts[0], Timing::Off).expect("an event");
    event.record(&streams[0]).expect("");
    streams[1].wait_for(&event).expect("");
    let copy = || streams[1].copy_between((contexts[1], there.address), (contexts[0], here.address), here.bytes);
    copy().expect("a copy");
    assert!(there.read::<u32>(&streams[1]) == values);
    let connected = first.can_access(second).expect("an answer");
    assert_eq!([contexts[0].reaches(contexts[1]), contexts[1].reaches(contexts[0])], [connected; 2]);
    if connected {
        contexts[0].enable_peer(contexts[1]).expect("peers");
        contexts[0].enable_peer(contexts[1]).expect("twice is no error");
        let increment = contexts[0].kernels().function(&text(), "increment").expect("a kernel");
        let bytes = packed(&[&there.address.to_ne_bytes(), &9u32.to_ne_bytes()]);
        streams[0].launch_packed(increment, &Shape::line(1, 1), &bytes).expect("a launch");
        streams[0].wait().expect("its end");
        assert_eq!(there.read::<u32>(&streams[1])[0], 9);
        contexts[1].enable_peer(contexts[0]).expect("peers");
    }
    let (x, y) = (Buffer::new(contexts[0], 256 << 20), Buffer::new(contexts[1], 256 << 20));
    rate("device to device", x.bytes, &streams[1], || {
        streams[1].copy_between((contexts[1], y.address), (contexts[0], x.address), x.bytes)
    });
}
