//! The context of a device: memory, streams and kernels of one GPU belong to it. Does not know who uses it.

use super::driver::Facts;
use super::error::{DriverError, driver};
use super::event::Pool;
use super::module::Kernels;
use cudarc::driver::sys;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The primary context of one device. It is created at the first use of the device, and lives as long as the process.
pub struct Context {
    device: sys::CUdevice,
    handle: OnceLock<Result<sys::CUcontext, DriverError>>,
    facts: Facts,
    death: OnceLock<DriverError>,
    pub(super) events: Pool,
    kernels: OnceLock<Kernels>,
    /// Bit masks of devices, by number: those to which peer access was requested, and those that granted it.
    tried_peers: AtomicU64,
    peers: AtomicU64,
}

// SAFETY: a context may be used from any thread that makes it current; the rest of the struct is Sync by itself.
unsafe impl Send for Context {}
// SAFETY: for `Sync` as for `Send`: a context may be used from any thread that makes it current; the rest of the struct
// is Sync by itself.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(device: sys::CUdevice, facts: &Facts) -> Context {
        let facts = facts.clone();
        let (handle, death, kernels) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (tried_peers, peers) = (AtomicU64::new(0), AtomicU64::new(0));
        Context { device, handle, facts, death, events: Pool::default(), kernels, tried_peers, peers }
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Cost: 100 ms the first time.
    pub(super) fn handle(&self) -> Result<sys::CUcontext, DriverError> {
        let retain = || {
            let mut handle = std::ptr::null_mut();
            // SAFETY: the device's handle comes from the driver; the call writes one pointer.
            unsafe { driver!(cuDevicePrimaryCtxRetain(&mut handle, self.device)) }?;
            Ok(handle)
        };
        *self.handle.get_or_init(retain)
    }

    /// Whether the device was used so far.
    pub fn is_open(&self) -> bool {
        self.handle.get().is_some()
    }

    /// Creates the context if there is none yet. Not later, because CUDA creates no context after another one of the
    /// process has failed.
    pub fn open(&self) {
        if !self.is_open() {
            // A failure is reported by the first call that needs the context.
            let _ = self.handle();
        }
    }

    /// The error that ended this context, if one did. All later calls return it.
    pub fn death(&self) -> Option<&DriverError> {
        self.death.get()
    }

    /// Returns the result; stores the first error that ends the context.
    pub(super) fn note<T>(&self, result: Result<T, DriverError>) -> Result<T, DriverError> {
        result.map_err(|error| if error.is_dead() { *self.death.get_or_init(|| error) } else { error })
    }

    /// Makes calls of this thread go to this context. Every method of this folder does it by itself: other users of
    /// CUDA in the process may have changed it in between.
    pub fn make_current(&self) -> Result<(), DriverError> {
        if let Some(death) = self.death.get() {
            return Err(*death);
        }
        let handle = self.handle()?;
        let mut current = std::ptr::null_mut();
        // SAFETY: the context is never released; the first call writes one pointer.
        unsafe {
            driver!(cuCtxGetCurrent(&mut current))?;
            if current == handle { Ok(()) } else { self.note(driver!(cuCtxSetCurrent(handle))) }
        }
    }

    /// Free and total bytes of the device, counting other processes.
    pub fn memory_info(&self) -> Result<(usize, usize), DriverError> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current; the call writes the two numbers that it is given.
        self.note(unsafe { driver!(cuMemGetInfo_v2(&mut free, &mut total)) })?;
        Ok((free, total))
    }

    /// The priorities of streams: the lowest urgency, then the highest (a smaller number), such as (0, -5).
    pub fn priorities(&self) -> Result<(i32, i32), DriverError> {
        self.make_current()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the context is current; the call writes the two numbers that it is given.
        self.note(unsafe { driver!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest)) })?;
        Ok((least, greatest))
    }

    /// Lets kernels of this device use the memory of `other`, also what is allocated later. May be repeated.
    pub fn enable_peer(&self, other: &Context) -> Result<(), DriverError> {
        const ALREADY: u32 = 704;
        let other = other.handle()?;
        self.make_current()?;
        // SAFETY: both contexts live as long as the process; 0 is the only flag.
        match self.note(unsafe { driver!(cuCtxEnablePeerAccess(other, 0)) }) {
            Err(error) if error.code == ALREADY => Ok(()),
            result => result,
        }
    }

    /// Enables access of this device to the memory of `other` if they are peers, so that copies between them are
    /// direct; otherwise they go through host memory. Tries once for each pair: later calls cost one load.
    pub(super) fn reach(&self, other: &Context) {
        let Some(bit) = 1u64.checked_shl(other.device as u32) else { return };
        if self.tried_peers.load(Ordering::Acquire) & bit != 0 || self.device == other.device {
            return;
        }
        let mut connected = 0;
        // SAFETY: both handles come from the driver; the call writes one number.
        let status = unsafe { driver!(cuDeviceCanAccessPeer(&mut connected, self.device, other.device)) };
        if status.is_ok() && connected != 0 && self.enable_peer(other).is_ok() {
            self.peers.fetch_or(bit, Ordering::Release);
        }
        self.tried_peers.fetch_or(bit, Ordering::Release);
    }

    /// Whether copies from `other` are direct.
    pub fn reaches(&self, other: &Context) -> bool {
        let bit = 1u64.checked_shl(other.device as u32).unwrap_or(0);
        self.peers.load(Ordering::Acquire) & bit != 0
    }

    /// Waits for all work of this process on the device, also of other users of CUDA in it.
    pub fn wait_idle(&self) -> Result<(), DriverError> {
        self.make_current()?;
        // SAFETY: the context was made current above, which is all that the call works on.
        self.note(unsafe { driver!(cuCtxSynchronize()) })
    }

    /// The kernels of this device; compiled code is stored in the user's cache.
    pub fn kernels(&'static self) -> &'static Kernels {
        self.kernels.get_or_init(|| Kernels::new(self, super::kernel_cache::Cubins::of_user()))
    }
}
