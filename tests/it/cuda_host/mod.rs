//! CUDA text on a machine without a GPU: compiled by g++ against `shim.h` and compared with the host kernels.
//!
//! A `HostGpu` stands for the device; addresses are those of host memory. Absent a compiler the tests say so and pass,
//! unless `TSCRIPT_REQUIRE_GXX=1`.

mod attention;
mod custom;
pub mod each;
mod factors;
pub mod fused;
mod kernels;
mod layouts;
mod orders;
mod places;
mod recurrences;
mod scans;
mod spectra;
mod transforms;

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::abi::{Call, Faults, RawView, Threads};
use tscript::internals::kernel::conv;
use tscript::internals::kernel::cuda::{
    ConvCall, ConvOrder, ConvPart, FaultSlot, Gpu, GpuError, Hold, Launch, MatmulCall, RecurrentCall, RecurrentRoom,
    TransformCall, headers,
};
use tscript::internals::kernel::recurrent::layer::Layer;

type Kernel = unsafe extern "C" fn(*mut *mut c_void);
type Run = unsafe extern "C" fn(Kernel, *mut *mut c_void, *const u32, *const u32);

/// Loaded libraries by source key: handles of dlopen.
static LIBRARIES: Mutex<Option<HashMap<u128, usize>>> = Mutex::new(None);
/// Libraries have one block at a time.
static TURN: Mutex<()> = Mutex::new(());

pub struct HostGpu {
    scratch: Vec<Vec<u64>>,
    // Boxed: kernels hold addresses of slots while more are added.
    #[allow(clippy::vec_box)]
    pub slots: Vec<Box<FaultSlot>>,
    pub launches: usize,
    /// Blocks of the last launch.
    pub grid: [u32; 3],
    /// What says whether steps are skipped.
    pub hold: Hold,
    /// What blocks count in; empty where there is nothing.
    pub counters: Vec<u32>,
    pub capability: (u32, u32),
    /// There is a library for convolutions (the host's kernels stand for it), which likes this order.
    pub convolves: Option<ConvOrder>,
    /// That library leaves gradients of inputs that can be had forward.
    pub forward_only: bool,
    /// There is a library for recurrent layers; the host's kernels stand for it.
    pub recurs: bool,
    /// There is a library for Fourier transforms (the sums that define them stand for it).
    pub transforms: bool,
    /// The calls of that library.
    pub transformed: usize,
}

impl HostGpu {
    /// `None`, with a line on stderr, where there is no compiler.
    pub fn open() -> Option<HostGpu> {
        let found = cfg!(all(target_os = "linux", target_arch = "x86_64"))
            && std::process::Command::new("g++").arg("--version").output().is_ok();
        if !found {
            assert!(std::env::var_os("TSCRIPT_REQUIRE_GXX").is_none(), "no g++ on x86-64 Linux");
            eprintln!("not tested: CUDA text on the host needs g++ on x86-64 Linux");
            return None;
        }
        Some(HostGpu {
            scratch: Vec::new(),
            slots: Vec::new(),
            launches: 0,
            grid: [0; 3],
            hold: Hold::default(),
            counters: Vec::new(),
            capability: (9, 0),
            convolves: None,
            forward_only: false,
            recurs: false,
            transforms: false,
            transformed: 0,
        })
    }
}

/// Names of the kernels of a text and of what it includes.
fn entries(text: &str, found: &mut Vec<String>) {
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'))
            && let Some((_, header)) = headers().iter().find(|(other, _)| *other == name)
        {
            entries(header, found);
        }
        if let Some(rest) = line.trim_start().strip_prefix("TS_KERNEL void ") {
            let rest =
                rest.strip_prefix("__launch_bounds__(").map_or(rest, |r| r.split_once(')').unwrap_or(("", "")).1);
            let name: String = rest.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() && !found.contains(&name) {
                found.push(name);
            }
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cuda-host")
}

/// Hash of everything besides the source that a library depends on.
fn surroundings() -> u128 {
    let mut all = include_str!("shim.h").to_string();
    for (name, text) in headers() {
        all.push_str(name);
        all.push_str(text);
    }
    tscript::internals::kernel::cuda::Source::new(all).key
}

/// A folder with every header, also those that the library makes.
fn include() -> &'static PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = folder().join(format!("include-{:032x}", surroundings()));
        for (name, text) in headers() {
            let path = made.join(name);
            let own = path.with_extension(format!("{}", std::process::id()));
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
            std::fs::write(&own, text).expect("the header can be written");
            // Processes may write the same headers at once.
            std::fs::rename(&own, &path).expect("the header can be moved");
        }
        made
    })
}

fn library(source: &tscript::internals::kernel::cuda::Source) -> usize {
    let known = || LIBRARIES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(&handle) = known().get_or_insert_with(HashMap::new).get(&source.key) {
        return handle;
    }
    let base = folder().join(format!("{:032x}", source.key ^ surroundings()));
    let so = base.with_extension("so");
    if !so.exists() {
        std::fs::create_dir_all(folder()).expect("the folder can be made");
        let mut text = source.text.to_string();
        let mut names = Vec::new();
        entries(&text, &mut names);
        for name in names {
            text.push_str(&format!("\nextern \"C\" void call_{name}(void** args) {{ ts_call({name}, args); }}"));
        }
        // Threads may compile the same text at once: the last one wins.
        let mine = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
        let cpp = base.with_extension(format!("{mine}.cpp"));
        let made = base.with_extension(format!("{mine}.so"));
        std::fs::write(&cpp, text).expect("the text can be written");
        let here = super::scripts::root();
        let done = std::process::Command::new("g++")
            .args([
                "-std=c++17",
                "-O1",
                "-w",
                "-fwrapv",
                "-ffp-contract=off",
                "-fno-strict-aliasing",
                "-shared",
                "-fPIC",
            ])
            .args(["-mfma", "-DTS_HOST", "-include"])
            .arg(here.join("tests/it/cuda_host/shim.h"))
            .arg("-I")
            .arg(include())
            .args([&cpp, &PathBuf::from("-o"), &made])
            .output()
            .expect("g++ can be started");
        assert!(done.status.success(), "{}:\n{}", cpp.display(), String::from_utf8_lossy(&done.stderr));
        std::fs::rename(&made, &so).expect("the library can be moved");
    }
    let path = CString::new(so.to_str().expect("a path of UTF-8")).expect("no NUL in it");
    // SAFETY: the library is ours and has no constructors.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) } as usize;
    assert_ne!(handle, 0, "{}", so.display());
    known().get_or_insert_with(HashMap::new).insert(source.key, handle);
    handle
}

fn symbol(handle: usize, name: &str) -> *mut c_void {
    let name = CString::new(name).expect("no NUL in it");
    // SAFETY: the handle is that of a loaded library.
    let found = unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr()) };
    assert!(!found.is_null(), "{name:?} is not in the library");
    found
}

/// Whether it is a gradient that can be computed as a forward convolution.
fn as_forward(call: &ConvCall) -> bool {
    let g = &call.geometry;
    call.part == ConvPart::InputGradient && (g.has_forward_gradient() || g.has_phases())
}

fn convolve(call: &ConvCall) {
    let g = &call.geometry;
    let view = |ptr, [first, channels]: [usize; 2], sizes: [usize; 3]| {
        let shape = [first, channels, sizes[0], sizes[1], sizes[2]];
        let mut view = RawView::contiguous(ptr, call.dtype, &shape);
        if call.order == ConvOrder::ChannelsLast {
            let inner = [sizes[1] * sizes[2], sizes[2], 1].map(|n| (n * channels) as isize);
            view.strides = [view.strides[0], 1, inner[0], inner[1], inner[2]].into_iter().collect();
        }
        view
    };
    let x = view(call.x, [g.batch, g.groups * g.channels], g.input);
    let w = view(call.w, [g.groups * g.filters, g.channels], g.kernel);
    let y = view(call.y, [g.batch, g.groups * g.filters], g.output);
    let (kernel, inputs, output) = match call.part {
        ConvPart::Output => (&conv::CONV_FORWARD, [x, w], y),
        ConvPart::InputGradient => (&conv::CONV_GRAD_INPUT, [y, w], x),
        ConvPart::WeightGradient => (&conv::CONV_GRAD_WEIGHT, [y, x], w),
    };
    let sizes = |list: [usize; 3]| Attr::Ints(list.iter().map(|&n| n as i64).collect());
    let padding = Attr::Ints(g.padding.iter().map(|&n| n as i64).collect());
    let attrs = [sizes(g.stride), padding, sizes(g.dilation), Attr::Int(g.groups as i64)];
    let (outputs, faults, threads) = ([output], Faults::default(), &Threads::ONE);
    let call = Call { inputs: &inputs, outputs: &outputs, attrs: &attrs, threads, faults: &faults, seed: 0, offset: 0 };
    // SAFETY: the operands are as large as the caller says.
    unsafe { (kernel.host)(&call) };
}

impl Gpu for HostGpu {
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), GpuError> {
        self.launches += 1;
        self.grid = launch.grid;
        let handle = library(launch.source);
        assert!(launch.grid.iter().all(|&n| n > 0) && launch.grid[1] < 65_536 && launch.grid[2] < 65_536, "{launch:?}");
        let mut args: Vec<*mut c_void> = launch.args.iter().map(|arg| arg.address().cast_mut().cast()).collect();
        // SAFETY: the symbols have these types (shim.h); what the kernel does with memory is what is tested.
        unsafe {
            let kernel: Kernel = std::mem::transmute(symbol(handle, &format!("call_{}", launch.entry)));
            let run: Run = std::mem::transmute(symbol(handle, "ts_launch"));
            let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            run(kernel, args.as_mut_ptr(), launch.grid.as_ptr(), launch.block.as_ptr());
        }
        Ok(())
    }

    fn scratch(&mut self, bytes: usize) -> Result<*mut u8, GpuError> {
        let mut memory = vec![0xabab_abab_abab_ababu64; bytes / 8 + 33];
        let at = (memory.as_mut_ptr() as usize).next_multiple_of(256) as *mut u8;
        self.scratch.push(memory);
        Ok(at)
    }

    /// Of several writes the last stays, as on the host.
    fn deterministic(&self) -> bool {
        true
    }

    /// Blocks run one after the other.
    fn may_add_in_any_order(&self) -> Result<(), GpuError> {
        Ok(())
    }

    fn counters(&mut self, count: usize) -> *mut u8 {
        if count <= self.counters.len() { self.counters.as_mut_ptr().cast() } else { std::ptr::null_mut() }
    }

    fn fill_zero(&mut self, at: *mut u8, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller's memory.
        unsafe { at.write_bytes(0, bytes) };
        Ok(())
    }

    fn copy(&mut self, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller's memory.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
        Ok(())
    }

    fn matmul(&mut self, _: &MatmulCall) -> Result<bool, GpuError> {
        Ok(false)
    }

    fn convolve(&mut self, call: &ConvCall) -> Result<bool, GpuError> {
        let left = self.forward_only && as_forward(call);
        let order = self.convolves.filter(|_| !left);
        if let Some(order) = order {
            assert_eq!(call.order, order);
            convolve(call);
        }
        Ok(order.is_some())
    }

    fn convolves_transposed(&mut self, call: &ConvCall) -> Result<bool, GpuError> {
        assert_eq!(call.order, ConvOrder::ChannelsFirst);
        let left = self.forward_only && as_forward(call);
        Ok(!left && self.convolves == Some(ConvOrder::ChannelsLast))
    }

    fn recurrent_room(
        &mut self,
        layer: &Layer,
        dtype: tscript::DType,
        biased: bool,
    ) -> Result<Option<RecurrentRoom>, GpuError> {
        Ok(self.recurs.then(|| recurrences::room(layer, dtype, biased)))
    }

    fn recurrent(&mut self, call: &RecurrentCall) -> Result<(), GpuError> {
        assert!(self.recurs);
        recurrences::by_host(call);
        Ok(())
    }

    fn transforms(&mut self, _: &TransformCall) -> Result<bool, GpuError> {
        Ok(self.transforms)
    }

    fn transform(&mut self, call: &TransformCall) -> Result<(), GpuError> {
        self.transformed += 1;
        transforms::transform(call);
        Ok(())
    }

    fn multiprocessors(&self) -> u32 {
        4
    }

    fn capability(&self) -> (u32, u32) {
        self.capability
    }

    fn hold(&mut self, _blocks: u64) -> Result<Hold, GpuError> {
        Ok(self.hold)
    }

    fn fault_slot(&mut self, node: usize) -> Result<*mut u8, GpuError> {
        while self.slots.len() <= node {
            self.slots.push(Box::new(FaultSlot::EMPTY));
        }
        Ok((&raw mut *self.slots[node]).cast())
    }
}
