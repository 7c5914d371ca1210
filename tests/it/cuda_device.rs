//! The CUDA device on real hardware. Active when `TSCRIPT_TEST_DEVICES` names `cuda`; then a missing GPU is a failure.
//! Run with `--test-threads=1 --nocapture` to read the costs that are printed: they are told, never tested.

use half::{bf16, f16};
use std::ffi::c_void;
use std::time::Instant;
use tscript::device::cache::{Cache, RawMemory};
use tscript::device::cuda::blas::{
    Blas, Element, Epilogue, Factor, Outcome, Precision, Product, Stored, Target, WORKSPACE_BYTES, Workspace,
};
use tscript::device::cuda::cache::Cubins;
use tscript::device::cuda::memory::{DeviceMemory, Mapped, PinnedMemory};
use tscript::device::cuda::nvrtc::compile;
use tscript::device::cuda::staging::Staging;
use tscript::device::cuda::{
    Context, DriverError, Event, KernelError, Kernels, Shape, Stream, Text, Timeline, Timing, Waited, hash, open,
};

const TEXT: &str = r#"
#include "twice.cuh"
extern "C" __global__ void add(float *z, const float *x, const float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = twice(x[i]) + y[i];
}
extern "C" __global__ void spin(unsigned long long ns, unsigned *flag, unsigned value) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - start < ns);
    *flag = value;
}
extern "C" __global__ void increment(unsigned *at, unsigned by) { atomicAdd(at, by); }
extern "C" __global__ void nothing() {}
extern "C" __global__ void slot(unsigned long long *slot, unsigned long long value) { *slot = value; __threadfence_system(); }
extern "C" __global__ void shared(float *out, unsigned words) {
    extern __shared__ float memory[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) memory[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) *out = memory[words - 1];
}
extern "C" __global__ void broken(unsigned *at) { at[1ull << 40] = 1; }
"#;
const HEADERS: &[(&str, &str)] = &[("twice.cuh", "__device__ inline float twice(float x) { return x + x; }")];

fn text() -> Text<'static> {
    Text { name: "test.cu", text: TEXT, headers: HEADERS, options: &[], key: hash::hash(TEXT.as_bytes()) }
}

/// The first GPU, when the run is about GPUs.
fn gpu() -> Option<&'static Context> {
    if !std::env::var("TSCRIPT_TEST_DEVICES").is_ok_and(|devices| devices.contains("cuda")) {
        eprintln!("TSCRIPT_TEST_DEVICES does not name cuda: nothing was tested");
        return None;
    }
    let driver = open().unwrap_or_else(|missing| panic!("{missing}; {}", missing.remedy()));
    Some(driver.devices()[0].context().expect("a context"))
}

/// Device memory that goes at the end.
struct Buffer {
    memory: DeviceMemory,
    address: u64,
    bytes: usize,
}

impl Buffer {
    fn new(context: &'static Context, bytes: usize) -> Buffer {
        let mut memory = DeviceMemory::new(context);
        let address = memory.reserve(bytes.max(4)).expect("memory");
        Buffer { memory, address, bytes }
    }

    fn of<T: Copy>(stream: &Stream, content: &[T]) -> Buffer {
        let buffer = Buffer::new(stream.context(), size_of_val(content));
        // SAFETY: the slice outlives the wait.
        unsafe { stream.copy_from_host(buffer.address, content.as_ptr().cast(), buffer.bytes) }.expect("a copy");
        stream.wait().expect("the copy");
        buffer
    }

    fn read<T: Copy + Default>(&self, stream: &Stream) -> Vec<T> {
        let mut content = vec![T::default(); self.bytes / size_of::<T>()];
        // SAFETY: the vector outlives the wait.
        unsafe { stream.copy_to_host(content.as_mut_ptr().cast(), self.address, self.bytes) }.expect("a copy");
        stream.wait().expect("the copy");
        content
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.memory.release(self.address, self.bytes);
    }
}

fn pointer<T>(value: &mut T) -> *mut c_void {
    (value as *mut T).cast()
}

/// `launch_packed` with parameters of 8 and 4 bytes, in C's places.
fn packed(parameters: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for parameter in parameters {
        bytes.resize(bytes.len().next_multiple_of(parameter.len()), 0);
        bytes.extend_from_slice(parameter);
    }
    bytes
}

fn spin(stream: &Stream, ms: u64, flag: u64, value: u32) {
    let function = stream.context().kernels().function(&text(), "spin").expect("a kernel");
    let parameters = packed(&[&(ms * 1_000_000).to_ne_bytes(), &flag.to_ne_bytes(), &value.to_ne_bytes()]);
    stream.launch_packed(function, &Shape::line(1, 1), &parameters).expect("a launch");
}

/// Nanoseconds of one call, the least of five rounds.
fn cost<T>(calls: u32, mut call: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..calls).for_each(|_| drop(std::hint::black_box(call())));
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    (0..5).map(round).fold(f64::INFINITY, f64::min)
}

/// Needs no GPU, only NVRTC.
#[test]
fn the_kernels_of_these_tests_compile() {
    match compile(&text(), (9, 0)) {
        Ok(_) => {}
        Err(KernelError::Compiler { .. }) => eprintln!("NVRTC is not installed: nothing was compiled"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn devices_say_what_they_are() {
    let Some(context) = gpu() else { return };
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
    let Some(context) = gpu() else { return };
    let (one, two) = (Stream::new(context, 0).expect("a stream"), Stream::new(context, 0).expect("a stream"));
    let flag = Buffer::of(&one, &[0u32, 0]);
    let (start, end) = (Event::new(context, Timing::On).expect("an event"), Event::new(context, Timing::On).expect(""));
    assert!(end.is_done().expect("an answer"), "an event that was never recorded is done");
    start.record(&one).expect("");
    spin(&one, 20, flag.address, 7);
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
    assert!((19.0..60.0).contains(&ms), "{ms} ms of 20");
    let untimed = Event::new(context, Timing::Off).expect("");
    untimed.record(&one).expect("");
    assert!(start.elapsed_ms(&untimed).is_err());
    drop((start, end, untimed));
    let again = Event::new(context, Timing::On).expect("");
    assert!(!again.is_recorded(), "a handle from the pool is a new event");
}

#[test]
fn kernels_take_their_parameters_in_both_ways() {
    let Some(context) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let kernels = context.kernels();
    let add = kernels.function(&text(), "add").expect("a kernel");
    assert_eq!(add.parameters(), [(0, 8), (8, 8), (16, 8), (24, 4)]);
    assert!(std::ptr::eq(add, kernels.known(text().key, "add").expect("the same")));
    let n = 100_003u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let (x, y) = (Buffer::of(&stream, &x), Buffer::of(&stream, &y));
    let z = Buffer::new(context, x.bytes);
    let shape = Shape::line(n.div_ceil(256), 256);
    let check = |z: &Buffer| {
        for (i, value) in z.read::<f32>(&stream).into_iter().enumerate() {
            assert_eq!(value, 2.0 * i as f32 + (i % 7) as f32);
        }
        stream.fill(z.address, 0xff, z.bytes).expect("a fill");
    };
    let (mut a, mut b, mut c, mut d) = (z.address, x.address, y.address, n);
    let mut parameters = [pointer(&mut a), pointer(&mut b), pointer(&mut c), pointer(&mut d)];
    // SAFETY: the parameters are those of the kernel.
    unsafe { stream.launch(add, &shape, &mut parameters) }.expect("a launch");
    check(&z);
    let addresses = [z.address.to_ne_bytes(), x.address.to_ne_bytes(), y.address.to_ne_bytes()];
    let bytes = packed(&[&addresses[0], &addresses[1], &addresses[2], &n.to_ne_bytes()]);
    stream.launch_packed(add, &shape, &bytes).expect("a launch");
    check(&z);
    // SAFETY: it is refused before a parameter is read.
    let refused = unsafe { stream.launch(add, &shape, &mut parameters[..3]) };
    assert!(refused.is_err() && stream.launch_packed(add, &shape, &bytes[..24]).is_err());
    assert!(matches!(kernels.function(&text(), "nope"), Err(KernelError::Entry { .. })));
    let nothing = kernels.function(&text(), "nothing").expect("a kernel");
    stream.launch_packed(nothing, &Shape::line(1, 1), &[]).expect("no parameters");
    let wide = Shape::line(1, 4096);
    let error = stream.launch_packed(nothing, &wide, &[]).expect_err("blocks have 1024 threads");
    assert!(!error.is_dead(), "{error}");

    let shared = kernels.function(&text(), "shared").expect("a kernel");
    let words = context.facts().shared_bytes_per_block / 4;
    let shape = Shape { shared_bytes: words * 4, ..Shape::line(1, 256) };
    let bytes = packed(&[&z.address.to_ne_bytes(), &words.to_ne_bytes()]);
    stream.launch_packed(shared, &shape, &bytes).expect("all of the shared memory");
    assert_eq!(z.read::<f32>(&stream)[0], (words - 1) as f32);
    assert!(shared.blocks_per_multiprocessor(256, words * 4).expect("a number") >= 1);
}

#[test]
fn timelines_tell_how_far_a_stream_is() {
    let Some(context) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let flag = Buffer::of(&stream, &[0u32]);
    let mut timeline = Timeline::new();
    assert!(timeline.is_finished(0).expect(""));
    spin(&stream, 5, flag.address, 1);
    let first = timeline.mark(&stream).expect("a mark");
    spin(&stream, 30, flag.address, 2);
    let second = timeline.mark(&stream).expect("a mark");
    assert_eq!((first, second, timeline.submitted()), (1, 2, 2));
    assert!(!timeline.is_finished(first).expect("") && !timeline.is_finished(9).expect(""));
    assert_eq!(timeline.wait(first, &mut || false).expect("a wait"), Waited::Done);
    assert!(!timeline.is_finished(second).expect(""), "30 ms of work are left");
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
fn memory_serves_the_caching_allocator() {
    let Some(context) = gpu() else { return };
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
    // SAFETY: as above.
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
fn ordinary_memory_goes_through_staging() {
    let Some(context) = gpu() else { return };
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
    spin(&stream, 50, there.address, 0);
    let start = Instant::now();
    (0..1000).for_each(|at| staging.upload(&stream, there.address + at * 100, &[at as u8; 100]).expect("an upload"));
    eprintln!("a small upload: {:.2} µs", start.elapsed().as_secs_f64() * 1e3);
    assert!(!stream.is_idle().expect("an answer"), "50 ms of work were before them");
    let mut back = vec![0; 100_000];
    staging.download(&stream, &mut back, there.address).expect("a download");
    assert!(back.chunks(100).enumerate().all(|(at, piece)| piece == [at as u8; 100]));
}

fn rate(what: &str, bytes: usize, stream: &Stream, mut queue: impl FnMut() -> Result<(), DriverError>) {
    let mut run = || {
        queue().expect("queued");
        stream.wait().expect("its end");
    };
    run();
    eprintln!("{what}: {:.1} GB/s", bytes as f64 / cost(3, run));
}

#[test]
fn mapped_words_are_seen_by_both_sides() {
    let Some(context) = gpu() else { return };
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
fn compiled_kernels_are_kept_and_repaired() {
    let Some(context) = gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let fresh = || Kernels::new(context, Cubins::at(folder.path()));
    let counts = |kernels: &Kernels| (kernels.counts().compiled, kernels.counts().read_from_disk);
    let timed = |what: &str| {
        let (kernels, start) = (fresh(), Instant::now());
        kernels.function(&text(), "add").expect("a kernel");
        eprintln!("{what}: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
        kernels.function(&text(), "increment").expect("a kernel");
        counts(&kernels)
    };
    assert_eq!(timed("compiled"), (1, 0));
    assert_eq!(timed("read from disk"), (0, 1));
    let path = Cubins::at(folder.path()).path(&text(), context.facts().capability).expect("a path");
    let whole = std::fs::read(&path).expect("the file");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    std::fs::write(&path, damaged).expect("written");
    assert_eq!(timed("damaged"), (1, 0));
    assert_eq!(timed("repaired"), (0, 1));
    // Whole by its checksum, and not what this driver takes.
    assert!(Cubins::at(folder.path()).store(&path, b"\x7fELF that is none"));
    assert_eq!(timed("refused by the driver"), (1, 0));
    assert_eq!(timed("repaired"), (0, 1));

    std::fs::remove_file(&path).expect("removed");
    let (one, two) = (fresh(), fresh());
    std::thread::scope(|scope| {
        for kernels in [&one, &two, &one, &two] {
            scope.spawn(|| {
                for entry in ["add", "nothing", "increment"] {
                    kernels.function(&text(), entry).expect("a kernel");
                }
            });
        }
    });
    assert_eq!(std::fs::read(&path).expect("the file").len(), whole.len());
    assert!(std::ptr::eq(one.function(&text(), "add").expect(""), one.function(&text(), "add").expect("")));

    let below_a_file = Kernels::new(context, Cubins::at(path.join("nowhere")));
    below_a_file.function(&text(), "add").expect("a folder that cannot be written is no error");
    let wrong = Text { text: "extern \"C\" __global__ void f() {\n  nope();\n}", key: 1, ..text() };
    let said = below_a_file.function(&wrong, "f").err().expect("a wrong text").to_string();
    assert!(said.contains("test.cu:2:   nope();"), "{said}");
}

#[test]
fn many_kernels_are_prepared_at_once() {
    let Some(context) = gpu() else { return };
    let texts: Vec<String> = (0..16).map(|at| TEXT.replace("now - start", &format!("now - start + {at}"))).collect();
    let texts: Vec<Text<'_>> =
        texts.iter().map(|text| Text { text, key: hash::hash(text.as_bytes()), ..self::text() }).collect();
    let kernels = [Kernels::new(context, Cubins::none()), Kernels::new(context, Cubins::none())];
    let start = Instant::now();
    for text in &texts {
        kernels[0].function(text, "add").expect("a kernel");
    }
    let alone = start.elapsed();
    let wrong = Text { text: "no text", key: 1, ..text() };
    let wanted: Vec<_> = texts.iter().map(|&text| (text, "add")).chain([(wrong, "add")]).collect();
    let start = Instant::now();
    kernels[1].prepare(&wanted);
    eprintln!("16 kernels one by one in {:.0} ms, at once in {:.0} ms", ms(alone), ms(start.elapsed()));
    assert!(texts.iter().all(|text| kernels[1].known(text.key, "add").is_some()));
    assert_eq!((kernels[1].counts().compiled, kernels[1].known(1, "add").is_none()), (16, true));
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[test]
fn graphs_repeat_what_was_recorded() {
    let Some(context) = gpu() else { return };
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
    let Some(context) = gpu() else { return };
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

/// Numbers between -1 and 1 that 16-bit floats hold exactly enough.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) % 257) as f64 / 128.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn upload(stream: &Stream, element: Element, values: &[f64]) -> Buffer {
    match element {
        Element::F16 => Buffer::of(stream, &values.iter().map(|&v| f16::from_f64(v)).collect::<Vec<_>>()),
        Element::Bf16 => Buffer::of(stream, &values.iter().map(|&v| bf16::from_f64(v)).collect::<Vec<_>>()),
        Element::F32 => Buffer::of(stream, &values.iter().map(|&v| v as f32).collect::<Vec<_>>()),
        Element::F64 => Buffer::of(stream, values),
    }
}

fn download(stream: &Stream, element: Element, buffer: &Buffer) -> Vec<f64> {
    match element {
        Element::F16 => buffer.read::<f16>(stream).into_iter().map(f64::from).collect(),
        Element::Bf16 => buffer.read::<bf16>(stream).into_iter().map(f64::from).collect(),
        Element::F32 => buffer.read::<f32>(stream).into_iter().map(f64::from).collect(),
        Element::F64 => buffer.read::<f64>(stream),
    }
}

/// The same rounding that the upload did.
fn rounded(element: Element, values: &[f64]) -> Vec<f64> {
    let round = |&v: &f64| match element {
        Element::F16 => f16::from_f64(v).to_f64(),
        Element::Bf16 => bf16::from_f64(v).to_f64(),
        Element::F32 => f64::from(v as f32),
        Element::F64 => v,
    };
    values.iter().map(round).collect()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (GELU * (x + 0.044715 * x * x * x)).tanh())
}

const GELU: f64 = 0.797_884_560_802_865_4;

fn gelu_slope(x: f64) -> f64 {
    let t = (GELU * (x + 0.044715 * x * x * x)).tanh();
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * GELU * (1.0 + 3.0 * 0.044715 * x * x)
}

/// Sizes, dtype and everything else of one product on the device.
struct Case<'a> {
    stream: &'a Stream,
    workspace: Workspace,
    sizes: [usize; 3],
    batch: usize,
    element: Element,
    result: Element,
    precision: Precision,
    stored: (Stored, Stored),
    /// Elements between the end of a row and the next row.
    gap: usize,
}

/// What the host computes: A and B as the device has them, z (m, n) for each of the batch.
struct Expected {
    a: Vec<f64>,
    b: Vec<f64>,
    z: Vec<f64>,
}

impl Case<'_> {
    fn factor(&self, rows: usize, columns: usize, stored: Stored, address: u64) -> (Factor, usize) {
        let (down, across) = if stored == Stored::Plain { (rows, columns) } else { (columns, rows) };
        let stride = across + self.gap;
        (Factor { address, stored, row_stride: stride as u64, batch_stride: (down * stride) as u64 }, down * stride)
    }

    fn at(factor: &Factor, batch: usize, row: usize, column: usize) -> usize {
        let (row, column) = if factor.stored == Stored::Plain { (row, column) } else { (column, row) };
        batch * factor.batch_stride as usize + row * factor.row_stride as usize + column
    }

    /// Runs it; `None`: the library has no way.
    fn run(
        &self,
        blas: &mut Blas,
        (alpha, beta): (f64, f64),
        epilogue: Epilogue,
        bias: &Buffer,
        auxiliary: Target,
    ) -> Option<(Vec<f64>, Expected)> {
        let [m, n, k] = self.sizes;
        let (mut a, elements_a) = self.factor(m, k, self.stored.0, 0);
        let (mut b, elements_b) = self.factor(k, n, self.stored.1, 0);
        let (va, vb) = (numbers(self.batch * elements_a, 1), numbers(self.batch * elements_b, 2));
        let vc = numbers(self.batch * m * n, 3);
        let buffers = [upload(self.stream, self.element, &va), upload(self.stream, self.element, &vb)];
        let c = upload(self.stream, self.result, &vc);
        (a.address, b.address) = (buffers[0].address, buffers[1].address);
        let product = Product {
            m: m as u64,
            n: n as u64,
            k: k as u64,
            batch: self.batch as u32,
            element: self.element,
            result: self.result,
            precision: self.precision,
            a,
            b,
            c: Target { address: c.address, row_stride: n as u64, batch_stride: (m * n) as u64 },
            alpha,
            beta,
            epilogue,
            bias: bias.address,
            auxiliary,
        };
        let outcome = blas.matmul(&product, self.stream, self.workspace).unwrap_or_else(|error| panic!("{error}"));
        if outcome == Outcome::Unsupported {
            return None;
        }
        let found = download(self.stream, self.result, &c);
        let (va, vb, vc) = (rounded(self.element, &va), rounded(self.element, &vb), rounded(self.result, &vc));
        let mut z = Vec::with_capacity(found.len());
        for batch in 0..self.batch {
            for row in 0..m {
                for column in 0..n {
                    let term = |i| va[Self::at(&a, batch, row, i)] * vb[Self::at(&b, batch, i, column)];
                    z.push(alpha * (0..k).map(term).sum::<f64>() + beta * vc[(batch * m + row) * n + column]);
                }
            }
        }
        let dense = |factor: &Factor, values: &[f64], rows: usize, columns: usize| {
            let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            places.map(|(row, column)| values[Self::at(factor, 0, row, column)]).collect()
        };
        let expected = Expected { a: dense(&a, &va, m, k), b: dense(&b, &vb, k, n), z };
        Some((found, expected))
    }

    /// What a result of this dtype may be off.
    fn tolerance(&self) -> f64 {
        match (self.element, self.result, self.precision) {
            (_, Element::F16, _) => 2e-2,
            (_, Element::Bf16, _) => 1.5e-1,
            (Element::F32, _, Precision::Tf32) => 5e-2,
            (Element::F64, ..) => 1e-12,
            _ => 1e-4,
        }
    }

    fn check(&self, what: &str, found: &[f64], expected: &[f64]) {
        let worst = found.iter().zip(expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
        assert_eq!(found.len(), expected.len());
        let kind = (self.element, self.result, self.precision, self.stored);
        assert!(worst <= self.tolerance() && worst.is_finite(), "{what}, {kind:?}, {:?}: off by {worst:e}", self.sizes);
    }
}

const KINDS: &[(Element, Element, Precision)] = &[
    (Element::F32, Element::F32, Precision::Full),
    (Element::F32, Element::F32, Precision::Tf32),
    (Element::F16, Element::F16, Precision::Full),
    (Element::Bf16, Element::Bf16, Precision::Full),
    (Element::Bf16, Element::F32, Precision::Full),
    (Element::F64, Element::F64, Precision::Full),
];

#[test]
fn products_are_those_of_the_host() {
    let Some(context) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let start = Instant::now();
    let mut blas = Blas::open(context).expect("no error").expect("cuBLASLt");
    eprintln!("cuBLASLt opened in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let scratch = Buffer::new(context, WORKSPACE_BYTES);
    let workspace = Workspace { address: scratch.address, bytes: WORKSPACE_BYTES };
    let none = Buffer::new(context, 4);
    let both = [Stored::Plain, Stored::Transposed];
    for &(element, result, precision) in KINDS {
        for stored in both.into_iter().flat_map(|a| both.map(|b| (a, b))) {
            for (sizes, batch, gap) in
                [([48, 40, 64], 1, 0), ([33, 17, 29], 1, 0), ([16, 24, 32], 3, 8), ([1, 5, 7], 1, 3), ([5, 1, 1], 2, 0)]
            {
                let case = Case { stream: &stream, workspace, sizes, batch, element, result, precision, stored, gap };
                for scales in [(1.0, 0.0), (0.5, -2.0)] {
                    let run = case.run(&mut blas, scales, Epilogue::None, &none, Target::default());
                    match run {
                        Some((found, expected)) => case.check("a product", &found, &expected.z),
                        None => eprintln!("unsupported: {element:?} {precision:?} {stored:?} {sizes:?} × {batch}"),
                    }
                }
            }
        }
    }
    eprintln!("{} plans", blas.plans());
    let [x, y] = [(); 2].map(|()| Buffer::new(context, 4096 * 4096 * 4));
    let big = Product {
        m: 4096,
        n: 4096,
        k: 4096,
        batch: 1,
        element: Element::F32,
        result: Element::F32,
        precision: Precision::Full,
        a: Factor { address: x.address, stored: Stored::Plain, row_stride: 4096, batch_stride: 0 },
        b: Factor { address: x.address, stored: Stored::Plain, row_stride: 4096, batch_stride: 0 },
        c: Target { address: y.address, row_stride: 4096, batch_stride: 0 },
        alpha: 1.0,
        beta: 0.0,
        epilogue: Epilogue::None,
        bias: 0,
        auxiliary: Target::default(),
    };
    stream.fill(x.address, 0x3c, x.bytes).expect("a fill");
    for &(element, result, precision) in KINDS {
        let product = Product { element, result, precision, ..big };
        // f64 matrices would not fit: a quarter of each.
        let side = if element == Element::F64 { 2048 } else { 4096 };
        let product = Product { m: side, n: side, k: side, ..product };
        let ns = cost(5, || {
            for _ in 0..4 {
                blas.matmul(&product, &stream, workspace).expect("a product");
            }
            stream.wait().expect("its end");
        });
        let flops = 2.0 * (side as f64).powi(3) * 4.0;
        eprintln!("{side}³ {element:?} {precision:?} → {result:?}: {:.1} TFLOP/s", flops / ns / 1e3);
    }
    let small = Product { m: 64, n: 64, k: 64, ..big };
    let ns = cost(200, || blas.matmul(&small, &stream, workspace).expect("a product"));
    stream.wait().expect("its end");
    eprintln!("a small known product: {:.2} µs of the host's time", ns / 1e3);
}

#[test]
fn epilogues_are_those_of_the_host() {
    let Some(context) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mut blas = Blas::open(context).expect("no error").expect("cuBLASLt");
    let scratch = Buffer::new(context, WORKSPACE_BYTES);
    let workspace = Workspace { address: scratch.address, bytes: WORKSPACE_BYTES };
    let sizes @ [m, n, k] = [32, 48, 64];
    let both = [Stored::Plain, Stored::Transposed];
    let mut lacking = Vec::new();
    for &(element, result, precision) in KINDS {
        for stored in both.into_iter().flat_map(|a| both.map(|b| (a, b))) {
            let case = Case { stream: &stream, workspace, sizes, batch: 1, element, result, precision, stored, gap: 0 };
            let bias = rounded(result, &numbers(n, 5));
            let vector = upload(&stream, result, &bias);
            let forward: [Forward; 5] = [
                (Epilogue::Bias, |z, b| z + b),
                (Epilogue::Relu, |z, _| z.max(0.0)),
                (Epilogue::ReluBias, |z, b| (z + b).max(0.0)),
                (Epilogue::Gelu, |z, _| gelu(z)),
                (Epilogue::GeluBias, |z, b| gelu(z + b)),
            ];
            for (epilogue, apply) in forward {
                match case.run(&mut blas, (1.0, 0.0), epilogue, &vector, Target::default()) {
                    Some((found, expected)) => {
                        let z = expected.z.iter().enumerate().map(|(at, &z)| apply(z, bias[at % n]));
                        case.check(&format!("{epilogue:?}"), &found, &z.collect::<Vec<_>>());
                    }
                    None => lacking.push((epilogue, element, precision, stored)),
                }
            }
            sums(&case, &mut blas, &mut lacking, m, n, k);
            slopes(&case, &mut blas, &mut lacking, &vector, &bias);
        }
    }
    let usual = |e: &Epilogue| matches!(e, Epilogue::Bias | Epilogue::ReluBias | Epilogue::GeluBias);
    for line in &lacking {
        eprintln!("unsupported: {line:?}");
    }
    let wrong: Vec<_> = lacking.iter().filter(|(e, element, ..)| usual(e) && *element != Element::F64).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// An epilogue and what it makes of z and the bias.
type Forward = (Epilogue, fn(f64, f64) -> f64);
type Lacking = Vec<(Epilogue, Element, Precision, (Stored, Stored))>;

/// Sums of the factors beside the product.
fn sums(case: &Case, blas: &mut Blas, lacking: &mut Lacking, m: usize, n: usize, k: usize) {
    for (epilogue, length) in [(Epilogue::RowSumsOfA, m), (Epilogue::ColumnSumsOfB, n)] {
        let vector = upload(case.stream, case.result, &vec![0.0; length]);
        let Some((found, expected)) = case.run(blas, (1.0, 0.0), epilogue, &vector, Target::default()) else {
            lacking.push((epilogue, case.element, case.precision, case.stored));
            continue;
        };
        case.check(&format!("{epilogue:?}"), &found, &expected.z);
        let of_a = |row: usize| (0..k).map(|i| expected.a[row * k + i]).sum::<f64>();
        let of_b = |column: usize| (0..k).map(|i| expected.b[i * n + column]).sum::<f64>();
        let host = (0..length).map(|at| if epilogue == Epilogue::RowSumsOfA { of_a(at) } else { of_b(at) });
        let vector = download(case.stream, case.result, &vector);
        case.check(&format!("the vector of {epilogue:?}"), &vector[..length], &host.collect::<Vec<_>>());
    }
}

/// What the forward pass leaves behind, and the backward pass takes up.
fn slopes(case: &Case, blas: &mut Blas, lacking: &mut Lacking, vector: &Buffer, bias: &[f64]) {
    let [m, n, _] = case.sizes;
    let buffer = Buffer::new(case.stream.context(), m * 128 * 8);
    let target = |row_stride: usize| Target {
        address: buffer.address,
        row_stride: row_stride as u64,
        batch_stride: (m * row_stride) as u64,
    };
    let passes = [
        (Epilogue::ReluBiasAuxiliary, [Epilogue::ReluSlope, Epilogue::ReluSlopeColumnSums], target(128)),
        (Epilogue::GeluBiasAuxiliary, [Epilogue::GeluSlope, Epilogue::GeluSlopeColumnSums], target(n)),
    ];
    for (forward, backward, auxiliary) in passes {
        let Some((found, expected)) = case.run(blas, (1.0, 0.0), forward, vector, auxiliary) else {
            lacking.push((forward, case.element, case.precision, case.stored));
            continue;
        };
        let before: Vec<f64> = expected.z.iter().enumerate().map(|(at, z)| z + bias[at % n]).collect();
        let is_relu = forward == Epilogue::ReluBiasAuxiliary;
        let after = before.iter().map(|&z| if is_relu { z.max(0.0) } else { gelu(z) });
        case.check(&format!("{forward:?}"), &found, &after.collect::<Vec<_>>());
        for epilogue in backward {
            let sums = upload(case.stream, case.result, &vec![0.0; n]);
            let Some((found, expected)) = case.run(blas, (1.0, 0.0), epilogue, &sums, auxiliary) else {
                lacking.push((epilogue, case.element, case.precision, case.stored));
                continue;
            };
            let slope = |z: f64| if is_relu { f64::from(z > 0.0) } else { gelu_slope(z) };
            let z: Vec<f64> = expected.z.iter().zip(&before).map(|(z, &at)| z * slope(at)).collect();
            // A slope is as wrong as its rounded argument makes it, times z.
            let loose = |found: &[f64], expected: &[f64], what: &str| {
                for (f, e) in found.iter().zip(expected) {
                    assert!((f - e).abs() <= case.tolerance() * (3.0 + e.abs()), "{what} {:?}: {f} {e}", case.element);
                }
            };
            loose(&found, &z, &format!("{epilogue:?}"));
            if matches!(epilogue, Epilogue::ReluSlopeColumnSums | Epilogue::GeluSlopeColumnSums) {
                let host: Vec<f64> = (0..n).map(|column| (0..m).map(|row| z[row * n + column]).sum()).collect();
                loose(&download(case.stream, case.result, &sums)[..n], &host, &format!("the vector of {epilogue:?}"));
            }
        }
    }
}

#[test]
fn two_devices_reach_each_other() {
    if gpu().is_none() {
        return;
    }
    let devices = open().expect("a driver").devices();
    let [first, second, ..] = devices else { return eprintln!("one GPU: nothing between devices was tested") };
    let contexts = [first.context().expect("a context"), second.context().expect("a context")];
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
    if first.can_access(second).expect("an answer") {
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

/// Runs one test of this binary in a process of its own, with the mark that lets it do its part.
fn child(test: &str, settings: &[(&str, &str)]) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(MARK, test);
    let output = command.envs(settings.iter().copied()).output().expect("a process");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    said
}

const MARK: &str = "TSCRIPT_TEST_CHILD";

fn is_child(test: &str) -> bool {
    std::env::var(MARK).is_ok_and(|mark| mark == test)
}

#[test]
fn a_dead_context_is_told_apart() {
    const NAME: &str = "cuda_device::a_dead_context_is_told_apart";
    let Some(context) = gpu() else { return };
    if !is_child(NAME) {
        eprintln!("{}", child(NAME, &[]));
        return;
    }
    let stream = Stream::new(context, 0).expect("a stream");
    let kept = Buffer::new(context, 1 << 20);
    let broken = context.kernels().function(&text(), "broken").expect("a kernel");
    stream.launch_packed(broken, &Shape::line(1, 1), &kept.address.to_ne_bytes()).expect("a launch");
    let error = stream.wait().expect_err("an address that is nobody's");
    assert!(error.is_dead(), "{error}");
    assert_eq!(context.death(), Some(&error));
    let later =
        [stream.wait().err(), stream.is_idle().err(), context.memory_info().err(), Stream::new(context, 0).err()];
    assert_eq!(later, [Some(error); 4], "all calls tell the first error");
    assert!(DeviceMemory::new(context).reserve(1024).is_none());
    if let Some(other) = open().expect("a driver").device(1) {
        let stream = Stream::new(other.context().expect("a context"), 0).expect("the other device lives");
        assert_eq!(Buffer::of(&stream, &[1u32, 2]).read::<u32>(&stream), [1, 2]);
    }
    eprintln!("it died of: {error}");
}

#[test]
fn a_second_start_compiles_nothing() {
    const NAME: &str = "cuda_device::a_second_start_compiles_nothing";
    if std::env::var(MARK).is_err() && gpu().is_some() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().to_str().expect("a path");
        for (start, said) in [("first", "compiled: 1,"), ("second", "compiled: 0,"), ("third", "compiled: 0,")] {
            let told = child(NAME, &[("XDG_CACHE_HOME", home)]);
            assert!(told.contains(said), "{told}");
            eprintln!("{start} start: {told}");
        }
        return;
    }
    if !is_child(NAME) {
        return;
    }
    let start = Instant::now();
    let ms = || start.elapsed().as_secs_f64() * 1e3;
    let driver = open().expect("a driver");
    let opened = ms();
    let context = driver.devices()[0].context().expect("a context");
    let (made, stream) = (ms(), Stream::new(context, 0).expect("a stream"));
    let function = context.kernels().function(&text(), "nothing").expect("a kernel");
    let loaded = ms();
    stream.launch_packed(function, &Shape::line(1, 1), &[]).expect("a launch");
    stream.wait().expect("its end");
    eprintln!(
        "driver {opened:.0} ms, context {made:.0} ms, kernel {loaded:.0} ms, done {:.0} ms, {:?}",
        ms(),
        context.kernels().counts()
    );
}
