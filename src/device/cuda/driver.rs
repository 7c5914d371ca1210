//! The driver and its devices, or what is missing. Creates no context by itself.

use super::context::Context;
use super::error::{DriverError, driver};
use super::library::Library;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::fmt;
use std::sync::OnceLock;

/// The functions of the driver that this folder calls. A driver that lacks one is too old.
const FUNCTIONS: &[&str] = &[
    "cuCtxEnablePeerAccess",
    "cuCtxGetCurrent",
    "cuCtxGetStreamPriorityRange",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceCanAccessPeer",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetUuid_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventElapsedTime_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncGetParamInfo",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphExecUpdate_v2",
    "cuGraphGetNodes",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphUpload",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemCreate",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetAllocationGranularity",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemMap",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyPeerAsync",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamBeginCapture_v2",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamGetCaptureInfo_v3",
    "cuStreamGetPriority",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// What a machine lacks for CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// `libcuda` is not installed.
    Library,
    /// The driver has not all functions that are needed.
    Old { version: Option<(u32, u32)>, function: &'static str },
    /// The driver reports no device; `visible` is the value of `CUDA_VISIBLE_DEVICES`.
    Device { visible: Option<String> },
    /// The driver does not start.
    Start(DriverError),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Library => write!(f, "NVIDIA's driver library (libcuda.so.1) is not found"),
            Missing::Old { version: Some((major, minor)), function } => {
                write!(f, "NVIDIA's driver is too old: it is for CUDA {major}.{minor} and lacks {function}")
            }
            Missing::Old { version: None, function } => write!(f, "NVIDIA's driver is too old: it lacks {function}"),
            Missing::Device { visible: Some(value) } => {
                write!(f, "NVIDIA's driver shows no GPU: CUDA_VISIBLE_DEVICES is {value:?}")
            }
            Missing::Device { visible: None } => write!(f, "NVIDIA's driver finds no GPU"),
            Missing::Start(error) => write!(f, "NVIDIA's driver does not start: {error}"),
        }
    }
}

impl Missing {
    /// What to do about it, in one line.
    pub fn remedy(&self) -> &'static str {
        match self {
            Missing::Library => {
                "install NVIDIA's driver 570 or newer; in a container, start it with access to the GPUs (docker run --gpus all)"
            }
            Missing::Old { .. } => "install NVIDIA's driver 570 or newer",
            Missing::Device { visible: Some(_) } => {
                "set CUDA_VISIBLE_DEVICES to the numbers that nvidia-smi shows, or unset it"
            }
            Missing::Device { visible: None } => {
                "see whether nvidia-smi shows one; in a container, start it with access to the GPUs (docker run --gpus all)"
            }
            Missing::Start(error) => match error.code {
                34 => {
                    "what is found is the toolkit's stub: install the driver, or take the stub's folder off LD_LIBRARY_PATH"
                }
                802 => "wait for the fabric manager, or start it (systemctl start nvidia-fabricmanager)",
                803 | 804 => {
                    "the driver's library and its kernel module differ in version: restart the machine, or install one of both"
                }
                _ => "see what nvidia-smi says",
            },
        }
    }
}

/// NVIDIA's driver with at least one device.
pub struct Driver {
    version: (u32, u32),
    devices: Vec<Device>,
}

/// A GPU, in the numbering that CUDA shows to this process (`CUDA_VISIBLE_DEVICES` has been applied).
pub struct Device {
    handle: sys::CUdevice,
    facts: Facts,
    context: OnceLock<Context>,
}

/// Properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub index: u32,
    pub name: String,
    pub capability: (u32, u32),
    pub memory_bytes: usize,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    pub l2_bytes: usize,
    /// Shared memory that one block can have with opt-in (`MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`).
    pub shared_bytes_per_block: u32,
    pub shared_bytes_per_multiprocessor: u32,
    pub uuid: [u8; 16],
}

/// The driver of this process, started at the first call.
/// Cost: 180 to 260 ms with two GPUs; afterwards nothing.
pub fn open() -> Result<&'static Driver, Missing> {
    static DRIVER: OnceLock<Result<Driver, Missing>> = OnceLock::new();
    DRIVER.get_or_init(start).as_ref().map_err(Clone::clone)
}

fn start() -> Result<Driver, Missing> {
    let library = Library::Driver.load().ok_or(Missing::Library)?;
    if let Some(function) = library.lacks(FUNCTIONS) {
        // A very old driver may also lack the function that returns its version.
        let version = if library.lacks(&["cuDriverGetVersion"]).is_none() { version().ok() } else { None };
        return Err(Missing::Old { version, function });
    }
    let visible = || std::env::var("CUDA_VISIBLE_DEVICES").ok();
    // SAFETY: the library is loaded and has the function; 0 is the only flag it knows.
    if let Err(error) = unsafe { driver!(cuInit(0)) } {
        return Err(if error.code == 100 { Missing::Device { visible: visible() } } else { Missing::Start(error) });
    }
    let version = version().map_err(Missing::Start)?;
    let devices = devices().map_err(Missing::Start)?;
    if devices.is_empty() {
        return Err(Missing::Device { visible: visible() });
    }
    Ok(Driver { version, devices })
}

fn version() -> Result<(u32, u32), DriverError> {
    let mut version = 0;
    // SAFETY: the caller checked for the function; it writes one number, also before `cuInit`.
    unsafe { driver!(cuDriverGetVersion(&mut version)) }?;
    let version = version.max(0) as u32;
    Ok((version / 1000, version % 1000 / 10))
}

fn devices() -> Result<Vec<Device>, DriverError> {
    let mut count = 0;
    // SAFETY: the driver is started; the call writes one number.
    unsafe { driver!(cuDeviceGetCount(&mut count)) }?;
    (0..count).map(Device::query).collect()
}

impl Driver {
    /// The newest CUDA that the driver can run, such as (13, 0).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// At least one.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    pub fn device(&self, index: usize) -> Option<&Device> {
        self.devices.get(index)
    }
}

impl Device {
    fn query(index: i32) -> Result<Device, DriverError> {
        let mut handle = 0;
        let mut name = [0; 256];
        let mut memory_bytes = 0;
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the driver is started, `index` is below its count, and each call writes only what it is given,
        // the name with a 0 at its end within the stated length.
        unsafe {
            driver!(cuDeviceGet(&mut handle, index))?;
            driver!(cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, handle))?;
            driver!(cuDeviceTotalMem_v2(&mut memory_bytes, handle))?;
            driver!(cuDeviceGetUuid_v2(&mut uuid, handle))?;
        }
        let get = |attribute| number(handle, attribute);
        let facts = Facts {
            index: index as u32,
            name: name.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect(),
            capability: (
                get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            memory_bytes,
            multiprocessors: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_per_multiprocessor: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            l2_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
            shared_bytes_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_bytes_per_multiprocessor: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            uuid: uuid.bytes.map(|byte| byte as u8),
        };
        Ok(Device { handle, facts, context: OnceLock::new() })
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The device's context, shared by the whole process, also with other users of CUDA in it (it is the primary one).
    /// It is created at the first use, and released only when the process ends.
    pub fn context(&'static self) -> &'static Context {
        self.context.get_or_init(|| Context::new(self.handle, &self.facts))
    }

    /// Whether this device can read and write the memory of `other`.
    pub fn can_access(&self, other: &Device) -> Result<bool, DriverError> {
        let mut able = 0;
        // SAFETY: both handles are of devices; the call writes one number.
        unsafe { driver!(cuDeviceCanAccessPeer(&mut able, self.handle, other.handle)) }?;
        Ok(able != 0)
    }
}

fn number(device: sys::CUdevice, attribute: Attribute) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: the handle is of a device; the call writes one number.
    unsafe { driver!(cuDeviceGetAttribute(&mut value, attribute, device)) }?;
    Ok(value.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_is_called_is_asked_for() {
        assert_eq!(super::super::library::functions_named("cu"), FUNCTIONS);
    }

    #[test]
    fn what_is_missing_is_said_in_a_line_each() {
        let error = DriverError { call: "cuInit", code: 802, name: "CUDA_ERROR_SYSTEM_NOT_READY", text: "not ready" };
        let cases = [
            Missing::Library,
            Missing::Old { version: Some((11, 4)), function: "cuFuncGetParamInfo" },
            Missing::Old { version: None, function: "cuInit" },
            Missing::Device { visible: Some(String::new()) },
            Missing::Device { visible: None },
            Missing::Start(error),
        ];
        for missing in cases {
            assert!(!missing.to_string().contains('\n') && !missing.remedy().is_empty());
        }
        assert!(Missing::Start(error).remedy().contains("fabric"));
    }
}
