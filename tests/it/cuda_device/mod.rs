//! The CUDA device on real hardware. Active when `TSCRIPT_TEST_DEVICES` names `cuda`; then a missing GPU is a failure.
//! Run with `--nocapture` to read the costs that are printed: they are told, never tested.

mod convolutions;
mod custom;
mod factorizations;
mod faults;
mod kernels;
mod memory;
mod processes;
mod products;
mod spectra;
mod streams;
mod transforms;

use crate::scripts::program;
use half::{bf16, f16};
use parking_lot::{Mutex, MutexGuard};
use std::ffi::c_void;
use std::process::Command;
use std::time::Instant;
use tscript::internals::device::cache::RawMemory;
use tscript::internals::device::cuda::blas::{Element, Precision};
use tscript::internals::device::cuda::memory::DeviceMemory;
use tscript::internals::device::cuda::{Context, DriverError, Shape, Stream, Text, hash, open};

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

/// Keeps the others away: many tests look at what is under way or at how much memory is free, and freeing memory waits for
/// all that is under way.
static ALONE: Mutex<()> = Mutex::new(());

/// The first GPU, when the run is about GPUs.
fn gpu() -> Option<(MutexGuard<'static, ()>, &'static Context)> {
    if !std::env::var("TSCRIPT_TEST_DEVICES").is_ok_and(|devices| devices.contains("cuda")) {
        eprintln!("TSCRIPT_TEST_DEVICES does not name cuda: nothing was tested");
        return None;
    }
    let driver = open().unwrap_or_else(|missing| panic!("{missing}; {}", missing.remedy()));
    Some((ALONE.lock(), driver.devices()[0].context()))
}

/// What the program prints for a script, what it complains of, and its exit status. Each run is a process of its own.
fn run(words: &[&str], environment: &[(&str, &str)], script: &str) -> (String, String, i32) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.rhai");
    std::fs::write(&path, script).expect("written");
    let mut command = Command::new(program());
    command.arg("run").args(words).arg(&path).env("NO_COLOR", "1").envs(environment.iter().copied());
    let _alone = ALONE.lock();
    let done = command.output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&done.stdout), text(&done.stderr), done.status.code().unwrap_or(-1))
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

fn rate(what: &str, bytes: usize, stream: &Stream, mut queue: impl FnMut() -> Result<(), DriverError>) {
    let mut run = || {
        queue().expect("queued");
        stream.wait().expect("its end");
    };
    run();
    eprintln!("{what}: {:.1} GB/s", bytes as f64 / cost(3, run));
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
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

const KINDS: &[(Element, Element, Precision)] = &[
    (Element::F32, Element::F32, Precision::Full),
    (Element::F32, Element::F32, Precision::Tf32),
    (Element::F16, Element::F16, Precision::Full),
    (Element::Bf16, Element::Bf16, Precision::Full),
    (Element::Bf16, Element::F32, Precision::Full),
    (Element::F64, Element::F64, Precision::Full),
];
