//! Modules: kernels of a device, compiled or read from disk once and found again by key. They stay loaded as long as the
//! process, so a function may be stored and launched without another look-up. Does not know what they compute.

use super::context::Context;
use super::driver;
use super::error::{DriverError, driver};
use super::kernel_cache::Cubins;
use super::nvrtc::{self, KernelError, Text};
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The loaded kernels of one device.
pub struct Kernels {
    context: &'static Context,
    disk: Cubins,
    modules: RwLock<HashMap<u128, Module, BuildHasherDefault<LowHalf>>>,
    counts: [AtomicU64; 2],
}

/// Counts of kernels compiled and read from disk since the process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub compiled: u64,
    pub read_from_disk: u64,
}

struct Module {
    handle: sys::CUmodule,
    functions: Vec<(Box<str>, &'static Function)>,
}

// SAFETY: a module may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: for `Sync` as for `Send`: a module may be used from any thread.
unsafe impl Sync for Module {}

/// A kernel that can be launched.
pub struct Function {
    context: &'static Context,
    /// The key of its text, and its name in it.
    key: u128,
    entry: Box<str>,
    handle: sys::CUfunction,
    /// Offset and bytes of each parameter.
    parameters: Vec<(usize, usize)>,
    registers: u32,
    threads_max: u32,
    static_shared_bytes: u32,
    /// Dynamic shared memory that was enabled so far.
    allowed_shared_bytes: AtomicU32,
}

// SAFETY: a function may be used from any thread; what changes is atomic.
unsafe impl Send for Function {}
// SAFETY: for `Sync` as for `Send`: a function may be used from any thread; what changes is atomic.
unsafe impl Sync for Function {}

/// Shared memory that every block may have without opt-in.
const SHARED_BYTES_USUAL: u32 = 48 << 10;

impl Kernels {
    pub fn new(context: &'static Context, disk: Cubins) -> Kernels {
        Kernels { context, disk, modules: RwLock::default(), counts: Default::default() }
    }

    /// The kernel `entry` (an `extern "C"` name) of a text, if it is loaded. Cost: a lookup by number and a comparison
    /// of names.
    pub fn known(&self, key: u128, entry: &str) -> Option<&'static Function> {
        let modules = self.modules.read();
        modules.get(&key)?.functions.iter().find(|(name, _)| **name == *entry).map(|(_, function)| *function)
    }

    /// The kernel `entry` of a text: already loaded, read from disk, or compiled now.
    pub fn function(&self, text: &Text<'_>, entry: &str) -> Result<&'static Function, KernelError> {
        if let Some(function) = self.known(text.key, entry) {
            return Ok(function);
        }
        self.context.make_current()?;
        let loaded = self.modules.read().get(&text.key).map(|module| module.handle);
        // Not under the lock, so that other threads find their kernels meanwhile. Two threads may load the same text
        // twice.
        let handle = match loaded {
            Some(handle) => handle,
            None => self.load(text)?,
        };
        let mut modules = self.modules.write();
        let module = modules.entry(text.key).or_insert_with(|| Module { handle, functions: Vec::new() });
        if module.handle != handle && loaded.is_none() {
            // SAFETY: this thread loaded it a moment ago, and nothing refers to it.
            let _ = unsafe { driver!(cuModuleUnload(handle)) };
        }
        if let Some((_, function)) = module.functions.iter().find(|(name, _)| **name == *entry) {
            return Ok(function);
        }
        let function: &'static Function =
            Box::leak(Box::new(Function::find(self.context, module.handle, text, entry)?));
        module.functions.push((entry.into(), function));
        Ok(function)
    }

    /// Loads several kernels at once, compiling on all cores, so that later calls of [`Kernels::function`] find them. A
    /// failure is reported by those calls.
    pub fn prepare(&self, kernels: &[(Text<'_>, &str)]) {
        let missing: Vec<_> = kernels.iter().filter(|(text, entry)| self.known(text.key, entry).is_none()).collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((text, entry)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                let _ = self.function(text, entry);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..cores.min(missing.len()) {
                // If no thread can be started, the others, at least this one, do its part.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }

    pub fn counts(&self) -> Counts {
        let [compiled, read_from_disk] = [0, 1].map(|at: usize| self.counts[at].load(Ordering::Relaxed));
        Counts { compiled, read_from_disk }
    }

    fn load(&self, text: &Text<'_>) -> Result<sys::CUmodule, KernelError> {
        let capability = self.context.facts().capability;
        let path = self.disk.path(text, capability);
        if let Some(module) = path.as_deref().and_then(|path| self.read(path)) {
            self.counts[1].fetch_add(1, Ordering::Relaxed);
            return Ok(module);
        }
        let image = nvrtc::compile(text, capability)?;
        let module = load(self.context, &image).map_err(explained)?;
        self.counts[0].fetch_add(1, Ordering::Relaxed);
        if let Some(path) = &path {
            self.disk.store(path, &image);
        }
        Ok(module)
    }

    /// A module from disk. One that this driver rejects, for example after a downgrade, is compiled again.
    fn read(&self, path: &Path) -> Option<sys::CUmodule> {
        load(self.context, &self.disk.load(path)?).ok()
    }
}

/// The error for code that was just compiled and that the driver rejects, usually because it is older than the
/// compiler.
fn explained(error: DriverError) -> KernelError {
    // Invalid image, no binary for this GPU, invalid or unsupported PTX.
    const REFUSED: [u32; 4] = [200, 209, 218, 222];
    match (nvrtc::version(), driver::open()) {
        (Ok(compiler), Ok(driver)) if REFUSED.contains(&error.code) && compiler > driver.version() => {
            KernelError::Newer { compiler, driver: driver.version() }
        }
        _ => KernelError::Driver(error),
    }
}

fn load(context: &Context, image: &[u8]) -> Result<sys::CUmodule, DriverError> {
    let mut handle = std::ptr::null_mut();
    // PTX is a text and must end in 0; a cubin has its length inside, and one more 0 does no harm.
    let image: Vec<u8> = image.iter().copied().chain([0]).collect();
    // SAFETY: the context is current; the image is whole (its checksum, or NVRTC just made it) and outlives the call.
    context.note(unsafe { driver!(cuModuleLoadData(&mut handle, image.as_ptr().cast())) })?;
    Ok(handle)
}

impl Function {
    fn find(
        context: &'static Context,
        module: sys::CUmodule,
        text: &Text<'_>,
        entry: &str,
    ) -> Result<Function, KernelError> {
        const NOT_FOUND: u32 = 500;
        let missing = || KernelError::Entry { name: text.name.to_string(), entry: entry.to_string() };
        let name = CString::new(entry).map_err(|_| missing())?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends in 0, the call writes one pointer.
        match context.note(unsafe { driver!(cuModuleGetFunction(&mut handle, module, name.as_ptr())) }) {
            Err(error) if error.code == NOT_FOUND => return Err(missing()),
            result => result?,
        }
        let get = |attribute| number(context, handle, attribute);
        let static_shared_bytes = get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        Ok(Function {
            context,
            key: text.key,
            entry: entry.into(),
            handle,
            parameters: parameters(context, handle)?,
            registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            threads_max: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            static_shared_bytes,
            allowed_shared_bytes: AtomicU32::new(SHARED_BYTES_USUAL.saturating_sub(static_shared_bytes)),
        })
    }

    /// Whether this is the kernel `entry` of the text with that key.
    pub fn is(&self, key: u128, entry: &str) -> bool {
        self.key == key && *self.entry == *entry
    }

    pub(super) fn handle(&self) -> sys::CUfunction {
        self.handle
    }

    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// Offset and bytes of each parameter.
    pub fn parameters(&self) -> &[(usize, usize)] {
        &self.parameters
    }

    /// Bytes of all parameters with the gaps between them.
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |(offset, bytes)| offset + bytes)
    }

    /// Registers of a thread.
    pub fn registers(&self) -> u32 {
        self.registers
    }

    /// Threads that a block can have.
    pub fn threads_max(&self) -> u32 {
        self.threads_max
    }

    /// Shared memory that the kernel declares for each block.
    pub fn static_shared_bytes(&self) -> u32 {
        self.static_shared_bytes
    }

    /// Enables this much dynamic shared memory. Launches call it themselves.
    pub(super) fn allow_shared(&self, bytes: u32) -> Result<(), DriverError> {
        if bytes <= self.allowed_shared_bytes.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (attribute, value) = (Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32);
        // SAFETY: the function is loaded; the driver checks the value.
        self.context.note(unsafe { driver!(cuFuncSetAttribute(self.handle, attribute, value)) })?;
        self.allowed_shared_bytes.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Occupancy: blocks of this many threads that one multiprocessor runs at a time.
    pub fn blocks_per_multiprocessor(&self, threads: u32, shared_bytes: u32) -> Result<u32, DriverError> {
        self.context.make_current()?;
        self.allow_shared(shared_bytes)?;
        let mut blocks = 0;
        let (threads, shared) = (threads as i32, shared_bytes as usize);
        // SAFETY: the function is loaded; the call writes one number.
        self.context.note(unsafe {
            driver!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.handle, threads, shared))
        })?;
        Ok(blocks.max(0) as u32)
    }
}

fn number(context: &Context, function: sys::CUfunction, attribute: Attribute) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: the function is loaded; the call writes one number.
    context.note(unsafe { driver!(cuFuncGetAttribute(&mut value, attribute, function)) })?;
    Ok(value.max(0) as u32)
}

/// Offset and bytes of each parameter; the driver answers "invalid" past the last.
fn parameters(context: &Context, function: sys::CUfunction) -> Result<Vec<(usize, usize)>, DriverError> {
    const INVALID: u32 = 1;
    let mut found = Vec::new();
    loop {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: the function is loaded; the call writes two numbers.
        match unsafe { driver!(cuFuncGetParamInfo(function, found.len(), &mut offset, &mut bytes)) } {
            Ok(()) => found.push((offset, bytes)),
            Err(error) if error.code == INVALID => return Ok(found),
            Err(error) => return context.note(Err(error)),
        }
    }
}

/// Keys are hashes already: the hasher returns their low half.
#[derive(Default)]
struct LowHalf(u64);

impl Hasher for LowHalf {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |word, &byte| word.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
