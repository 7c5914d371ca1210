//! Errors of the driver and of CUDA's libraries: values that name the call. Does not know what the call was for.

use cudarc::driver::sys;
use std::ffi::{CStr, c_char};
use std::fmt;

/// A call that CUDA refused, or that reported an earlier asynchronous failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverError {
    pub call: &'static str,
    pub code: u32,
    /// The name of the code, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: &'static str,
    /// The library's description of the code.
    pub text: &'static str,
}

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u32 = 2;
/// `CUDA_ERROR_NOT_READY`. Not an error: the work is still running.
pub(super) const NOT_READY: u32 = 600;

/// Sticky errors: after one of them the context returns it from every call. Of kernels: 700, 702, 710, 714 to 719, 721.
/// Of the hardware: 214, 220, 226. Of the context itself: 709, and 999 (unknown).
const DEAD: &[u32] = &[214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999];

impl DriverError {
    /// An error that this crate reports in the form of the driver's.
    pub(super) const fn refused(call: &'static str, text: &'static str) -> DriverError {
        DriverError { call, code: 1, name: "CUDA_ERROR_INVALID_VALUE", text }
    }

    /// Whether the context is lost: its memory and streams are unusable until the process ends; other GPUs continue.
    pub fn is_dead(&self) -> bool {
        self.name.starts_with("CUDA_ERROR") && DEAD.contains(&self.code)
    }

    pub fn is_out_of_memory(&self) -> bool {
        self.name.starts_with("CUDA_ERROR") && self.code == OUT_OF_MEMORY
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}, {})", self.call, self.text, self.name, self.code)
    }
}

impl std::error::Error for DriverError {}

/// Calls a function of the driver and names it in the error. The caller writes the `unsafe` and its reason.
macro_rules! driver {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::device::cuda::error::check(stringify!($name), cudarc::driver::sys::$name($($argument),*))
    };
}
pub(super) use driver;

pub(super) fn check(call: &'static str, result: sys::CUresult) -> Result<(), DriverError> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(describe(call, result)) }
}

#[cold]
fn describe(call: &'static str, result: sys::CUresult) -> DriverError {
    let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the library is loaded, since it has just answered; both calls write one pointer to a constant.
    unsafe {
        let _ = sys::cuGetErrorName(result, &mut name);
        let _ = sys::cuGetErrorString(result, &mut text);
        DriverError {
            call,
            code: result as u32,
            name: constant(name).unwrap_or("CUDA_ERROR, a code without a name"),
            text: constant(text).unwrap_or("an error that this driver has no words for"),
        }
    }
}

/// A library's constant string.
///
/// # Safety
/// `text` is null, or a string that ends in 0 and is never changed or freed.
pub(super) unsafe fn constant(text: *const c_char) -> Option<&'static str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the string.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_contexts_are_told_from_refused_calls() {
        let error = |code, name| DriverError { call: "cuStreamSynchronize", code, name, text: "an illegal access" };
        assert!(error(700, "CUDA_ERROR_ILLEGAL_ADDRESS").is_dead());
        assert!(error(719, "CUDA_ERROR_LAUNCH_FAILED").is_dead());
        assert!(!error(2, "CUDA_ERROR_OUT_OF_MEMORY").is_dead());
        assert!(error(2, "CUDA_ERROR_OUT_OF_MEMORY").is_out_of_memory());
        assert!(!error(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES").is_dead());
        assert!(!error(999, "CUBLAS_STATUS_OF_THAT_NUMBER").is_dead());
        let said = error(700, "CUDA_ERROR_ILLEGAL_ADDRESS").to_string();
        assert_eq!(said, "cuStreamSynchronize: an illegal access (CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
    }
}
