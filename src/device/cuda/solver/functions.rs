//! The functions of cuSOLVER's dense part that are used, by pointers: its 64-bit interface, which has one function for all
//! dtypes, and of the older one what that lacks. Knows no matrices.
//!
//! Not: cudarc's bindings. They would bring those of cuBLAS and cuSPARSE with them.

use super::super::error::DriverError;
use super::super::library::functions;
use std::ffi::c_void;

/// `cusolverStatus_t`.
pub type Status = u32;
/// A handle or a set of parameters of the library.
pub type Object = *mut c_void;
/// A device address.
pub type Place = *mut c_void;
/// `cudaDataType_t`.
pub type DataType = u32;

const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 3;
const NOT_SUPPORTED: Status = 9;

functions! {
    Solver;
    create = "cusolverDnCreate": fn(*mut Object) -> Status;
    destroy = "cusolverDnDestroy": fn(Object) -> Status;
    set_stream = "cusolverDnSetStream": fn(Object, *mut c_void) -> Status;
    create_params = "cusolverDnCreateParams": fn(*mut Object) -> Status;
    destroy_params = "cusolverDnDestroyParams": fn(Object) -> Status;
    create_jacobi = "cusolverDnCreateGesvdjInfo": fn(*mut Object) -> Status;
    destroy_jacobi = "cusolverDnDestroyGesvdjInfo": fn(Object) -> Status;
    // Handle, params, jobz, uplo, n, type of A, A, lda, type of W, W, compute type; then the sizes of the scratch memory
    // on the device and on the host, or that memory; results; for batches their count.
    syev_batched_size = "cusolverDnXsyevBatched_bufferSize": fn(Object, Object, u32, u32, i64, DataType, Place, i64,
        DataType, Place, DataType, *mut usize, *mut usize, i64) -> Status;
    syev_batched = "cusolverDnXsyevBatched": fn(Object, Object, u32, u32, i64, DataType, Place, i64, DataType, Place,
        DataType, Place, usize, *mut c_void, usize, *mut i32, i64) -> Status;
    syevd_size = "cusolverDnXsyevd_bufferSize": fn(Object, Object, u32, u32, i64, DataType, Place, i64, DataType, Place,
        DataType, *mut usize, *mut usize) -> Status;
    syevd = "cusolverDnXsyevd": fn(Object, Object, u32, u32, i64, DataType, Place, i64, DataType, Place, DataType, Place,
        usize, *mut c_void, usize, *mut i32) -> Status;
    // Handle, params, jobz, econ, m, n, A, S, U, V.
    gesvdp_size = "cusolverDnXgesvdp_bufferSize": fn(Object, Object, u32, i32, i64, i64, DataType, Place, i64, DataType,
        Place, DataType, Place, i64, DataType, Place, i64, DataType, *mut usize, *mut usize) -> Status;
    gesvdp = "cusolverDnXgesvdp": fn(Object, Object, u32, i32, i64, i64, DataType, Place, i64, DataType, Place, DataType,
        Place, i64, DataType, Place, i64, DataType, Place, usize, *mut c_void, usize, *mut i32, *mut f64) -> Status;
    // Handle, params, jobu, jobvt, m, n, A, S, U, VT.
    gesvd_size = "cusolverDnXgesvd_bufferSize": fn(Object, Object, i8, i8, i64, i64, DataType, Place, i64, DataType, Place,
        DataType, Place, i64, DataType, Place, i64, DataType, *mut usize, *mut usize) -> Status;
    gesvd = "cusolverDnXgesvd": fn(Object, Object, i8, i8, i64, i64, DataType, Place, i64, DataType, Place, DataType,
        Place, i64, DataType, Place, i64, DataType, Place, usize, *mut c_void, usize, *mut i32) -> Status;
    // Handle, jobz, m, n, A, S, U, V; batches of at most 32 rows and columns.
    gesvdj_batched_size = "cusolverDnZgesvdjBatched_bufferSize": fn(Object, u32, i32, i32, Place, i32, Place, Place, i32,
        Place, i32, *mut i32, Object, i32) -> Status;
    gesvdj_batched = "cusolverDnZgesvdjBatched": fn(Object, u32, i32, i32, Place, i32, Place, Place, i32, Place, i32, Place,
        i32, *mut i32, Object, i32) -> Status;
    // Handle, params, jobvl, jobvr, n, A, W, VL, VR.
    geev_size = "cusolverDnXgeev_bufferSize": fn(Object, Object, u32, u32, i64, DataType, Place, i64, DataType, Place,
        DataType, Place, i64, DataType, Place, i64, DataType, *mut usize, *mut usize) -> Status;
    geev = "cusolverDnXgeev": fn(Object, Object, u32, u32, i64, DataType, Place, i64, DataType, Place, DataType, Place, i64,
        DataType, Place, i64, DataType, Place, usize, *mut c_void, usize, *mut i32) -> Status;
    // Handle, params, m, n, A, tau.
    geqrf_size = "cusolverDnXgeqrf_bufferSize": fn(Object, Object, i64, i64, DataType, Place, i64, DataType, Place,
        DataType, *mut usize, *mut usize) -> Status;
    geqrf = "cusolverDnXgeqrf": fn(Object, Object, i64, i64, DataType, Place, i64, DataType, Place, DataType, Place, usize,
        *mut c_void, usize, *mut i32) -> Status;
    // Handle, m, n, k, A, lda, tau.
    sorgqr_size = "cusolverDnSorgqr_bufferSize": fn(Object, i32, i32, i32, Place, i32, Place, *mut i32) -> Status;
    sorgqr = "cusolverDnSorgqr": fn(Object, i32, i32, i32, Place, i32, Place, Place, i32, *mut i32) -> Status;
    dorgqr_size = "cusolverDnDorgqr_bufferSize": fn(Object, i32, i32, i32, Place, i32, Place, *mut i32) -> Status;
    dorgqr = "cusolverDnDorgqr": fn(Object, i32, i32, i32, Place, i32, Place, Place, i32, *mut i32) -> Status;
    ungqr_size = "cusolverDnZungqr_bufferSize": fn(Object, i32, i32, i32, Place, i32, Place, *mut i32) -> Status;
    ungqr = "cusolverDnZungqr": fn(Object, i32, i32, i32, Place, i32, Place, Place, i32, *mut i32) -> Status;
    // Handle, params, m, n, A, pivots.
    getrf_size = "cusolverDnXgetrf_bufferSize": fn(Object, Object, i64, i64, DataType, Place, i64, DataType, *mut usize,
        *mut usize) -> Status;
    getrf = "cusolverDnXgetrf": fn(Object, Object, i64, i64, DataType, Place, i64, *mut i64, DataType, Place, usize,
        *mut c_void, usize, *mut i32) -> Status;
    // Handle, params, trans, n, sides, A, pivots, B.
    getrs = "cusolverDnXgetrs": fn(Object, Object, u32, i64, i64, DataType, Place, i64, *const i64, DataType, Place, i64,
        *mut i32) -> Status;
    // Handle, params, uplo, n, A.
    potrf_size = "cusolverDnXpotrf_bufferSize": fn(Object, Object, u32, i64, DataType, Place, i64, DataType, *mut usize,
        *mut usize) -> Status;
    potrf = "cusolverDnXpotrf": fn(Object, Object, u32, i64, DataType, Place, i64, DataType, Place, usize, *mut c_void,
        usize, *mut i32) -> Status;
}

/// The error of a call.
pub fn check(call: &'static str, status: Status) -> Result<(), DriverError> {
    let (name, text) = match status {
        SUCCESS => return Ok(()),
        1 => ("CUSOLVER_STATUS_NOT_INITIALIZED", "the library could not be initialized"),
        2 => ("CUSOLVER_STATUS_ALLOC_FAILED", "the library could not allocate memory"),
        INVALID_VALUE => ("CUSOLVER_STATUS_INVALID_VALUE", "an argument is not allowed"),
        4 => ("CUSOLVER_STATUS_ARCH_MISMATCH", "the library has no code for this GPU"),
        6 => ("CUSOLVER_STATUS_EXECUTION_FAILED", "a kernel of the library failed"),
        7 => ("CUSOLVER_STATUS_INTERNAL_ERROR", "an internal operation of the library failed"),
        NOT_SUPPORTED => ("CUSOLVER_STATUS_NOT_SUPPORTED", "the library does not support this"),
        _ => ("CUSOLVER_STATUS, a code without a name", "an error that this library has no words for"),
    };
    Err(DriverError { call, code: status, name, text })
}

/// Whether the library does not take a problem of this size or kind; nothing was queued.
pub fn is_refused(error: &DriverError) -> bool {
    error.name.starts_with("CUSOLVER_STATUS") && [INVALID_VALUE, NOT_SUPPORTED].contains(&error.code)
}
