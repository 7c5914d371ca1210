//! cuDNN's backend API: descriptors with attributes, by number. Knows no convolutions.
//!
//! Its ten functions are looked up here: cudarc's bindings for it are seven thousand lines to compile. Numbers and names are
//! those of `cudnn_graph.h`, which are stable.

use super::super::error::{DriverError, constant};
use super::super::library::functions;
use std::ffi::{c_char, c_void};

/// A kind of descriptor, `cudnnBackendDescriptorType_t`.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Kind {
    Convolution = 1,
    Engine = 2,
    EngineConfig = 3,
    Heuristic = 4,
    Plan = 5,
    Forward = 10,
    BackwardFilter = 11,
    BackwardData = 12,
    Graph = 15,
    VariantPack = 16,
    Tensor = 17,
}

/// Attributes, `cudnnBackendAttributeName_t`.
pub mod attribute {
    pub const CONVOLUTION_COMP_TYPE: i32 = 100;
    pub const CONVOLUTION_CONV_MODE: i32 = 101;
    pub const CONVOLUTION_DILATIONS: i32 = 102;
    pub const CONVOLUTION_FILTER_STRIDES: i32 = 103;
    pub const CONVOLUTION_POST_PADDINGS: i32 = 104;
    pub const CONVOLUTION_PRE_PADDINGS: i32 = 105;
    pub const CONVOLUTION_SPATIAL_DIMS: i32 = 106;
    pub const HEURISTIC_MODE: i32 = 200;
    pub const HEURISTIC_GRAPH: i32 = 201;
    pub const HEURISTIC_RESULTS: i32 = 202;
    pub const CONFIG_ENGINE: i32 = 300;
    pub const PLAN_HANDLE: i32 = 400;
    pub const PLAN_CONFIG: i32 = 401;
    pub const PLAN_WORKSPACE_SIZE: i32 = 402;
    /// Alpha, beta, convolution, weights, input, output, in this order, for each of the three operations.
    pub const FORWARD: [i32; 6] = [700, 701, 702, 703, 704, 705];
    pub const BACKWARD_DATA: [i32; 6] = [706, 707, 708, 709, 710, 711];
    pub const BACKWARD_FILTER: [i32; 6] = [712, 713, 714, 715, 716, 717];
    pub const GRAPH_HANDLE: i32 = 800;
    pub const GRAPH_OPERATIONS: i32 = 801;
    pub const TENSOR_ALIGNMENT: i32 = 900;
    pub const TENSOR_DATA_TYPE: i32 = 901;
    pub const TENSOR_DIMENSIONS: i32 = 902;
    pub const TENSOR_STRIDES: i32 = 903;
    pub const TENSOR_ID: i32 = 906;
    pub const PACK_IDS: i32 = 1000;
    pub const PACK_POINTERS: i32 = 1001;
    pub const PACK_WORKSPACE: i32 = 1003;
    pub const ENGINE_NUMERICAL_NOTE: i32 = 1303;
}

/// A value that an attribute takes, with its `cudnnBackendAttributeType_t`.
///
/// # Safety
/// The bytes of the type are what the library reads for `TYPE`.
pub unsafe trait Value: Copy {
    const TYPE: i32;
}

/// Enumerations, which differ in their type only: `cudnnDataType_t`, `cudnnConvolutionMode_t`, `cudnnBackendHeurMode_t`
/// and `cudnnBackendNumericalNote_t`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct DataType(pub i32);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Mode(pub i32);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct HeuristicMode(pub i32);
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Note(pub i32);
/// A pointer: a descriptor of the library, a handle or a device address.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Raw(pub *mut c_void);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Handle(pub *mut c_void);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Address(pub u64);

// SAFETY: CUDNN_TYPE_DATA_TYPE, an enumeration.
unsafe impl Value for DataType {
    const TYPE: i32 = 1;
}
// SAFETY: CUDNN_TYPE_CONVOLUTION_MODE, an enumeration.
unsafe impl Value for Mode {
    const TYPE: i32 = 7;
}
// SAFETY: CUDNN_TYPE_HEUR_MODE, an enumeration.
unsafe impl Value for HeuristicMode {
    const TYPE: i32 = 8;
}
// SAFETY: CUDNN_TYPE_NUMERICAL_NOTE, an enumeration.
unsafe impl Value for Note {
    const TYPE: i32 = 11;
}
// SAFETY: CUDNN_TYPE_BACKEND_DESCRIPTOR, a pointer.
unsafe impl Value for Raw {
    const TYPE: i32 = 15;
}
// SAFETY: CUDNN_TYPE_HANDLE, a pointer.
unsafe impl Value for Handle {
    const TYPE: i32 = 0;
}
// SAFETY: CUDNN_TYPE_VOID_PTR, a pointer, of the device's 64-bit addresses.
unsafe impl Value for Address {
    const TYPE: i32 = 6;
}
// SAFETY: 3 is CUDNN_TYPE_INT64, a signed integer of eight bytes.
unsafe impl Value for i64 {
    const TYPE: i32 = 3;
}
// SAFETY: 4 is CUDNN_TYPE_FLOAT, an IEEE float of four bytes.
unsafe impl Value for f32 {
    const TYPE: i32 = 4;
}
// SAFETY: 5 is CUDNN_TYPE_DOUBLE, an IEEE float of eight bytes.
unsafe impl Value for f64 {
    const TYPE: i32 = 5;
}

/// Whether the library does not support what was asked (`CUDNN_STATUS_NOT_SUPPORTED` and its subcodes).
pub fn is_unsupported(error: &DriverError) -> bool {
    error.name.starts_with("CUDNN_STATUS") && (3000..4000).contains(&error.code)
}

type Status = u32;
type RawDescriptor = *mut c_void;

functions! {
    Dnn;
    create = "cudnnCreate": fn(*mut *mut c_void) -> Status;
    destroy = "cudnnDestroy": fn(*mut c_void) -> Status;
    set_stream = "cudnnSetStream": fn(*mut c_void, *mut c_void) -> Status;
    error_string = "cudnnGetErrorString": fn(Status) -> *const c_char;
    create_descriptor = "cudnnBackendCreateDescriptor": fn(i32, *mut RawDescriptor) -> Status;
    destroy_descriptor = "cudnnBackendDestroyDescriptor": fn(RawDescriptor) -> Status;
    set_attribute = "cudnnBackendSetAttribute": fn(RawDescriptor, i32, i32, i64, *const c_void) -> Status;
    get_attribute = "cudnnBackendGetAttribute": fn(RawDescriptor, i32, i32, i64, *mut i64, *mut c_void) -> Status;
    finalize = "cudnnBackendFinalize": fn(RawDescriptor) -> Status;
    execute = "cudnnBackendExecute": fn(*mut c_void, RawDescriptor, RawDescriptor) -> Status;
}

impl Functions {
    fn check(&self, call: &'static str, status: Status) -> Result<(), DriverError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a constant text, the name of the status.
        let name = unsafe { constant((self.error_string)(status)) }.unwrap_or("CUDNN_STATUS, a code without a name");
        Err(DriverError { call, code: status, name, text: "cuDNN refused" })
    }

    /// A handle for the current context.
    pub fn handle(&self) -> Result<Handle, DriverError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the call writes one pointer, to `handle`, and reads nothing of ours.
        self.check("cudnnCreate", unsafe { (self.create)(&mut handle) })?;
        Ok(Handle(handle))
    }

    /// # Safety
    /// The handle is valid, and nobody uses it after this.
    pub unsafe fn destroy(&self, handle: Handle) {
        // SAFETY: the handle is alive and nobody uses it afterwards, as this function asks of its caller.
        let _ = unsafe { (self.destroy)(handle.0) };
    }

    /// # Safety
    /// Handle and stream are valid, and of the same context.
    pub unsafe fn set_stream(&self, handle: Handle, stream: *mut c_void) -> Result<(), DriverError> {
        // SAFETY: handle and stream are alive and of one context, as this function asks of its caller.
        self.check("cudnnSetStream", unsafe { (self.set_stream)(handle.0, stream) })
    }

    /// # Safety
    /// The handle is valid; both descriptors are finalized, and what they refer to is valid.
    pub unsafe fn execute(&self, handle: Handle, plan: &Descriptor, pack: &Descriptor) -> Result<(), DriverError> {
        // SAFETY: the handle is alive, and the finished descriptors refer to what is alive, as this function asks of
        // its caller.
        self.check("cudnnBackendExecute", unsafe { (self.execute)(handle.0, plan.raw, pack.raw) })
    }
}

/// An owned descriptor. Those that it refers to must live as long.
pub struct Descriptor {
    functions: &'static Functions,
    raw: RawDescriptor,
}

impl Descriptor {
    pub fn new(functions: &'static Functions, kind: Kind) -> Result<Descriptor, DriverError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the call writes one pointer, to `raw`, and reads nothing of ours.
        let status = unsafe { (functions.create_descriptor)(kind as i32, &mut raw) };
        functions.check("cudnnBackendCreateDescriptor", status)?;
        Ok(Descriptor { functions, raw })
    }

    pub fn raw(&self) -> Raw {
        Raw(self.raw)
    }

    /// Sets an attribute; `Err` if the library rejects it, the number of values, or their type.
    pub fn set<T: Value>(&self, attribute: i32, values: &[T]) -> Result<(), DriverError> {
        let (count, at) = (values.len() as i64, values.as_ptr().cast());
        // SAFETY: the descriptor is alive; the library reads `count` values of the stated type.
        let status = unsafe { (self.functions.set_attribute)(self.raw, attribute, T::TYPE, count, at) };
        self.functions.check("cudnnBackendSetAttribute", status)
    }

    /// Reads up to `values.len()` values, and returns how many there are.
    pub fn get<T: Value>(&self, attribute: i32, values: &mut [T]) -> Result<usize, DriverError> {
        let room = values.len() as i64;
        let at = if values.is_empty() { std::ptr::null_mut() } else { values.as_mut_ptr().cast() };
        let mut count = 0;
        // SAFETY: the descriptor is alive; the library writes at most `room` values of the stated type. Descriptors
        // among them it fills in place, and they stay ours.
        let status = unsafe { (self.functions.get_attribute)(self.raw, attribute, T::TYPE, room, &mut count, at) };
        self.functions.check("cudnnBackendGetAttribute", status)?;
        Ok(count.max(0) as usize)
    }

    /// Finalizes the descriptor: no attribute can be set after this.
    pub fn finish(self) -> Result<Descriptor, DriverError> {
        // SAFETY: the descriptor is alive, and so is what it refers to.
        let status = unsafe { (self.functions.finalize)(self.raw) };
        self.functions.check("cudnnBackendFinalize", status)?;
        Ok(self)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive, and nobody can use it after this.
        let _ = unsafe { (self.functions.destroy_descriptor)(self.raw) };
    }
}
