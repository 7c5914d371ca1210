//! The functions of cuFFT that are used, by pointers, as its header declares them. Knows no shapes.

use super::super::error::DriverError;
use super::super::library::functions;
use std::ffi::c_void;

/// `cufftResult`.
pub type Status = u32;
/// `cufftHandle`.
pub type Handle = i32;
/// A device address.
pub type Place = *mut c_void;

const SUCCESS: Status = 0;
/// Statuses of a plan that the library does not make: its memory, its sizes, or parts of it that are missing. Our own
/// kernels need none of these.
const REFUSED: [Status; 9] = [0x2, 0x3, 0x4, 0x8, 0xe, 0x10, 0x11, 0x12, 0x13];

functions! {
    Fft;
    create = "cufftCreate": fn(*mut Handle) -> Status;
    destroy = "cufftDestroy": fn(Handle) -> Status;
    set_auto_allocation = "cufftSetAutoAllocation": fn(Handle, i32) -> Status;
    // Plan, rank, sizes; of the operand its embedding sizes, the stride of a number, and the distance of two signals; the
    // same of the result; type, number of signals; then the bytes of scratch memory.
    make_plan = "cufftMakePlanMany64": fn(Handle, i32, *mut i64, *mut i64, i64, i64, *mut i64, i64, i64, u32, i64,
        *mut usize) -> Status;
    set_stream = "cufftSetStream": fn(Handle, *mut c_void) -> Status;
    set_work_area = "cufftSetWorkArea": fn(Handle, Place) -> Status;
    // Plan, operand, result; a direction where both are complex.
    c2c = "cufftExecC2C": fn(Handle, Place, Place, i32) -> Status;
    z2z = "cufftExecZ2Z": fn(Handle, Place, Place, i32) -> Status;
    r2c = "cufftExecR2C": fn(Handle, Place, Place) -> Status;
    d2z = "cufftExecD2Z": fn(Handle, Place, Place) -> Status;
    c2r = "cufftExecC2R": fn(Handle, Place, Place) -> Status;
    z2d = "cufftExecZ2D": fn(Handle, Place, Place) -> Status;
}

/// The error of a call.
pub fn check(call: &'static str, status: Status) -> Result<(), DriverError> {
    let (name, text) = match status {
        SUCCESS => return Ok(()),
        0x1 => ("CUFFT_INVALID_PLAN", "there is no such plan"),
        0x2 => ("CUFFT_ALLOC_FAILED", "the library could not allocate memory"),
        0x3 => ("CUFFT_INVALID_TYPE", "the type of the transform is not allowed"),
        0x4 => ("CUFFT_INVALID_VALUE", "an argument is not allowed"),
        0x5 => ("CUFFT_INTERNAL_ERROR", "an internal operation of the library failed"),
        0x6 => ("CUFFT_EXEC_FAILED", "a kernel of the library failed"),
        0x7 => ("CUFFT_SETUP_FAILED", "the library could not be initialized"),
        0x8 => ("CUFFT_INVALID_SIZE", "a size is not allowed"),
        0x9 => ("CUFFT_UNALIGNED_DATA", "an address is not aligned"),
        0xb => ("CUFFT_INVALID_DEVICE", "the plan is for another GPU"),
        0xd => ("CUFFT_NO_WORKSPACE", "there is no scratch memory"),
        0xe => ("CUFFT_NOT_IMPLEMENTED", "the library does not have this"),
        0x10 => ("CUFFT_NOT_SUPPORTED", "the library does not support this"),
        0x11 => ("CUFFT_MISSING_DEPENDENCY", "a library that it needs is missing"),
        0x12 => ("CUFFT_NVRTC_FAILURE", "the library could not compile a kernel"),
        0x13 => ("CUFFT_NVJITLINK_FAILURE", "the library could not link a kernel"),
        _ => ("CUFFT, a code without a name", "an error that this library has no words for"),
    };
    Err(DriverError { call, code: status, name, text })
}

/// Whether the library does not make such a plan; nothing was queued.
pub fn is_refused(error: &DriverError) -> bool {
    error.name.starts_with("CUFFT") && REFUSED.contains(&error.code)
}
