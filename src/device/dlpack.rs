//! DLPack: exchange of tensors between libraries by a pointer, without a copy. Both forms of the capsule, the plain one and
//! the versioned one of DLPack 1.0; host memory only.
//!
//! Knows no session: the owner of a tensor's memory is in `lent.rs`.

#![warn(missing_docs)]

use super::lent::Lent;
use crate::base::dtype::DType;
use crate::base::limits::MAX_DIMS;
use std::any::Any;
use std::ffi::c_void;
use std::ptr::NonNull;

const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;
/// The major version that is written, and the only one that is read.
const VERSION: Version = Version { major: 1, minor: 0 };
const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Described {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Plain {
    tensor: Described,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Described,
}

/// A tensor that is passed to or from another library: [`Tensor::to_dlpack`](crate::Tensor::to_dlpack) and
/// [`Tensor::from_dlpack`](crate::Tensor::from_dlpack). Dropping it releases the memory.
///
/// ```
/// use tscript::{Dlpack, Tensor};
///
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
/// // What a Python extension puts into a capsule named "dltensor" ...
/// let raw = x.to_dlpack()?.into_raw();
/// // ... and what it takes out of one.
/// // SAFETY: the pointer is of a DLManagedTensor that nobody else takes.
/// let back = unsafe { Dlpack::from_raw(raw) }.map_err(|why| eprintln!("{why}")).unwrap();
/// let back = Tensor::from_dlpack(back)?;
/// assert_eq!(back.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// // The same for one named "dltensor_versioned", which DLPack 1.0 brought.
/// let raw = back.to_dlpack()?.into_raw_versioned();
/// // SAFETY: the pointer is of a DLManagedTensorVersioned that nobody else takes.
/// drop(unsafe { Dlpack::from_raw_versioned(raw) });
/// # Ok::<(), tscript::Error>(())
/// ```
#[derive(Debug)]
pub struct Dlpack {
    /// From the first element of the tensor to the end of the last.
    memory: Lent,
    dtype: DType,
    shape: Vec<usize>,
    /// In elements.
    strides: Vec<usize>,
    read_only: bool,
    /// A tensor of this session shares the memory.
    shared: bool,
}

/// The owner of a tensor of another library: dropping it calls the tensor's deleter.
enum Foreign {
    Plain(NonNull<Plain>),
    Versioned(NonNull<Versioned>),
}

// SAFETY: DLPack asks that deleters can be called from any thread; the pointers are used for nothing else.
unsafe impl Send for Foreign {}
// SAFETY: `&Foreign` gives access to nothing: only dropping it, which one thread does, uses the pointer.
unsafe impl Sync for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        match *self {
            Foreign::Plain(managed) => {
                // SAFETY: `from_raw` took over the tensor, whose deleter is called this once.
                unsafe {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
            Foreign::Versioned(managed) => {
                // SAFETY: `from_raw_versioned` took over the tensor, whose deleter is called this once.
                unsafe {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// What an exported tensor points into, freed by its deleter.
struct Exported {
    shape: Vec<i64>,
    strides: Vec<i64>,
    _memory: Lent,
}

unsafe extern "C" fn delete_plain(managed: *mut Plain) {
    // SAFETY: made by `into_raw` from two boxes; a deleter is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Exported>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: made by `into_raw_versioned` from two boxes; a deleter is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Exported>()));
    }
}

impl Dlpack {
    /// Memory with its layout, strides in elements.
    pub(crate) fn new(memory: Lent, dtype: DType, shape: Vec<usize>, strides: Vec<usize>) -> Dlpack {
        Dlpack { memory, dtype, shape, strides, read_only: false, shared: true }
    }

    /// The memory, its dtype, shape, strides in elements, and whether it is read-only.
    pub(crate) fn into_parts(self) -> (Lent, DType, Vec<usize>, Vec<usize>, bool) {
        (self.memory, self.dtype, self.shape, self.strides, self.read_only || self.shared)
    }

    /// Takes over a `DLManagedTensor`, what a capsule named `dltensor` holds. Its deleter is called when nobody uses
    /// the memory any more, also where this is an error: a device that is not the host, a dtype that tscript does not
    /// have, strides that go backwards.
    ///
    /// # Safety
    /// `managed` points to a valid `DLManagedTensor` that nobody else takes over, its deleter may be called from any
    /// thread, and while the tensor is in use nobody else writes its memory.
    pub unsafe fn from_raw(managed: *mut c_void) -> Result<Dlpack, String> {
        let managed = NonNull::new(managed.cast::<Plain>()).ok_or("the pointer is null")?;
        let keeper = Foreign::Plain(managed);
        // SAFETY: `managed` is a valid tensor that the caller gives away, and `keeper` keeps it alive (`from_raw`).
        unsafe { read(&managed.as_ref().tensor, keeper, false) }
    }

    /// As [`from_raw`](Dlpack::from_raw) for a `DLManagedTensorVersioned`, what a capsule named `dltensor_versioned`
    /// holds. One that may only be read is copied when it becomes a tensor.
    ///
    /// # Safety
    /// As for [`from_raw`](Dlpack::from_raw).
    pub unsafe fn from_raw_versioned(managed: *mut c_void) -> Result<Dlpack, String> {
        let managed = NonNull::new(managed.cast::<Versioned>()).ok_or("the pointer is null")?;
        let keeper = Foreign::Versioned(managed);
        // SAFETY: `managed` is valid (`from_raw_versioned`); version, context and deleter lie the same in all versions.
        let Version { major, .. } = unsafe { managed.as_ref().version };
        if major != VERSION.major {
            return Err(format!("DLPack {major} is not known, only {}", VERSION.major));
        }
        // SAFETY: `managed` is a valid tensor that the caller gives away, and `keeper` keeps it alive
        // (`from_raw_versioned`).
        unsafe { read(&managed.as_ref().tensor, keeper, managed.as_ref().flags & READ_ONLY != 0) }
    }

    /// A pointer to a new `DLManagedTensor`, for a capsule named `dltensor`. The receiver calls its deleter; until then
    /// the memory stays valid.
    pub fn into_raw(self) -> *mut c_void {
        let (tensor, context) = self.export();
        Box::into_raw(Box::new(Plain { tensor, context, deleter: Some(delete_plain) })).cast()
    }

    /// As [`into_raw`](Dlpack::into_raw): a `DLManagedTensorVersioned`, for a capsule named `dltensor_versioned`.
    pub fn into_raw_versioned(self) -> *mut c_void {
        let flags = if self.read_only { READ_ONLY } else { 0 };
        let (tensor, context) = self.export();
        let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut Versioned));
        Box::into_raw(Box::new(Versioned { version: VERSION, context, deleter, flags, tensor })).cast()
    }

    fn export(self) -> (Described, *mut c_void) {
        let data = self.memory.address() as *mut c_void;
        let numbers = |list: &[usize]| list.iter().map(|&n| n as i64).collect();
        let exported = Exported { shape: numbers(&self.shape), strides: numbers(&self.strides), _memory: self.memory };
        let exported = Box::leak(Box::new(exported));
        let tensor = Described {
            data,
            device: Device { kind: CPU, id: 0 },
            ndim: exported.shape.len() as i32,
            dtype: described(self.dtype),
            shape: exported.shape.as_mut_ptr(),
            strides: exported.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (tensor, (&raw mut *exported).cast())
    }
}

fn described(dtype: DType) -> DataType {
    let code = match dtype {
        DType::I64 | DType::I32 | DType::I16 | DType::I8 => 0,
        DType::U8 => 1,
        DType::F64 | DType::F32 | DType::F16 => 2,
        DType::BF16 => 4,
        DType::C64 | DType::C128 => 5,
        DType::Bool => 6,
    };
    DataType { code, bits: dtype.size_bytes() as u8 * 8, lanes: 1 }
}

/// Reads the description of a tensor of another library.
///
/// # Safety
/// It is valid, and so is what it points to until the keeper is dropped.
unsafe fn read(tensor: &Described, keeper: Foreign, read_only: bool) -> Result<Dlpack, String> {
    if ![CPU, CUDA_HOST].contains(&tensor.device.kind) {
        return Err(format!("the tensor is on a device of kind {}, not in host memory", tensor.device.kind));
    }
    let Some(dtype) = DType::ALL.into_iter().find(|&dtype| described(dtype) == tensor.dtype) else {
        let DataType { code, bits, lanes } = tensor.dtype;
        return Err(format!("elements of kind {code} with {bits} bits and {lanes} lanes are not known"));
    };
    let ndim = usize::try_from(tensor.ndim).ok().filter(|&n| n <= MAX_DIMS).ok_or("too many dimensions")?;
    let list = |at: *mut i64| -> Result<Vec<usize>, String> {
        let numbers: &[i64] = match ndim {
            0 => &[],
            // SAFETY: DLPack has `ndim` numbers there.
            _ => unsafe { std::slice::from_raw_parts(at, ndim) },
        };
        let number = |&n: &i64| usize::try_from(n).map_err(|_| "sizes and strides cannot be negative".to_string());
        numbers.iter().map(number).collect()
    };
    if ndim > 0 && tensor.shape.is_null() {
        return Err("there is no shape".into());
    }
    let shape = list(tensor.shape)?;
    let strides = if tensor.strides.is_null() {
        crate::base::layout::contiguous_strides(&shape).iter().map(|&stride| stride as usize).collect()
    } else {
        list(tensor.strides)?
    };
    let bytes = extent(&shape, &strides, dtype.size_bytes()).ok_or("the tensor is larger than memory")?;
    let offset = usize::try_from(tensor.byte_offset).map_err(|_| "the offset is larger than memory")?;
    let address = (tensor.data as *mut u8).wrapping_add(offset);
    if bytes == 0 {
        return Ok(Dlpack {
            memory: Lent::vec(Vec::<u64>::new()),
            dtype,
            shape,
            strides,
            read_only: false,
            shared: false,
        });
    }
    if address.is_null() || !(address as usize).is_multiple_of(dtype.size_bytes()) {
        return Err("the elements do not lie where their size wants them".into());
    }
    let keeper: Box<dyn Any + Send + Sync> = Box::new(keeper);
    // SAFETY: the tensor's memory is valid until `keeper` is dropped; `bytes` is what shape and strides reach of it.
    let memory = unsafe { Lent::new(address, bytes, keeper) };
    Ok(Dlpack { memory, dtype, shape, strides, read_only, shared: false })
}

/// Bytes from the first element to the end of the last.
fn extent(shape: &[usize], strides: &[usize], element: usize) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let reach = |sum: usize, (&size, &stride): (&usize, &usize)| sum.checked_add((size - 1).checked_mul(stride)?);
    let last = shape.iter().zip(strides).try_fold(0, reach)?;
    last.checked_add(1)?.checked_mul(element).filter(|&bytes| bytes <= isize::MAX as usize)
}
