//! What of CUDA this machine has, to be shown to users: driver, GPUs, libraries, and how to install what is missing.
//! Creates no context. Does not format the output.

use super::driver::{Facts, Missing, open};
use super::library::Library;
use super::{blas, dnn, fft, nvrtc, solver};
use std::path::PathBuf;

/// The whole inventory.
pub struct Inventory {
    pub driver: Result<Driver, Missing>,
    /// The libraries, the most important first.
    pub libraries: Vec<Found>,
}

pub struct Driver {
    /// The newest CUDA that it can run.
    pub cuda: (u32, u32),
    /// The driver's own version, if the system reports it, such as `580.159.04`.
    pub version: Option<String>,
    pub path: Option<PathBuf>,
    pub gpus: Vec<Facts>,
}

/// A library, installed or not.
pub struct Found {
    pub name: &'static str,
    /// What it is used for.
    pub purpose: &'static str,
    /// Version and file, if it is there.
    pub found: Option<(String, Option<PathBuf>)>,
    /// What happens without it.
    pub without: &'static str,
    /// Whether GPUs are of no use without it.
    pub needed: bool,
    /// How to get it.
    pub remedy: &'static str,
}

/// Makes the inventory. Cost: without a driver a few failed searches; with one, the driver's start and the loading of
/// the libraries, 0.5 s.
pub fn inventory() -> Inventory {
    let driver = open().map(|driver| Driver {
        cuda: driver.version(),
        version: kernel_module(),
        path: path(Library::Driver),
        gpus: driver.devices().iter().map(|device| device.facts().clone()).collect(),
    });
    let libraries = vec![
        Found {
            name: "NVRTC",
            purpose: "compiling kernels",
            found: nvrtc::version().ok().map(|(major, minor)| (format!("{major}.{minor}"), path(Library::Nvrtc))),
            without: "GPUs cannot be used: there are no kernels",
            needed: true,
            remedy: nvrtc::REMEDY,
        },
        Found {
            name: "cuBLASLt",
            purpose: "matrix products",
            found: packed(Library::BlasLt, c"cublasLtGetVersion"),
            without: "slower kernels of our own multiply matrices",
            needed: false,
            remedy: blas::REMEDY,
        },
        Found {
            name: "cuDNN",
            purpose: "convolutions",
            found: packed(Library::Dnn, c"cudnnGetVersion"),
            without: "slower kernels of our own compute convolutions",
            needed: false,
            remedy: dnn::REMEDY,
        },
        Found {
            name: "cuSOLVER",
            purpose: "decompositions of matrices",
            found: version_of(Library::Solver, "cusolverGetVersion"),
            without: "the host decomposes large matrices",
            needed: false,
            remedy: solver::REMEDY,
        },
        Found {
            name: "cuFFT",
            purpose: "Fourier transforms",
            found: version_of(Library::Fft, "cufftGetVersion"),
            without: "slower kernels of our own transform",
            needed: false,
            remedy: fft::REMEDY,
        },
        Found {
            name: "NCCL",
            purpose: "several GPUs together",
            found: nccl(),
            without: "nothing yet: tensors are copied between GPUs without it",
            needed: false,
            remedy: "pip install nvidia-nccl-cu13, or NVIDIA's packages for your system",
        },
    ];
    Inventory { driver, libraries }
}

fn path(library: Library) -> Option<PathBuf> {
    library.load()?.path().map(PathBuf::from)
}

/// A library whose function `name` returns its version as one number.
fn packed(library: Library, name: &std::ffi::CStr) -> Option<(String, Option<PathBuf>)> {
    let address = library.load()?.symbol(name.to_str().ok()?)?;
    // SAFETY: both functions that are asked so are `size_t f(void)`.
    let get_version: unsafe extern "C" fn() -> usize = unsafe { std::mem::transmute(address) };
    // SAFETY: the function is `size_t f(void)`, and asking for a version needs no set-up of the library.
    Some((readable(unsafe { get_version() }), path(library)))
}

/// A library of the toolkit whose version 12500 is 12.5.0.
fn version_of(library: Library, name: &str) -> Option<(String, Option<PathBuf>)> {
    let version = one_number(library, name)?;
    Some((format!("{}.{}.{}", version / 1000, version / 100 % 10, version % 100), path(library)))
}

/// What a function that writes the version as one number writes.
fn one_number(library: Library, name: &str) -> Option<usize> {
    let address = library.load()?.symbol(name)?;
    // SAFETY: the functions that are asked so are `int f(int *)`.
    let get_version: unsafe extern "C" fn(*mut i32) -> i32 = unsafe { std::mem::transmute(address) };
    let mut version = 0;
    // SAFETY: it writes one number and needs no set-up.
    let status = unsafe { get_version(&mut version) };
    (status == 0).then_some(version.max(0) as usize)
}

fn nccl() -> Option<(String, Option<PathBuf>)> {
    Some((readable(one_number(Library::Nccl, "ncclGetVersion")?), path(Library::Nccl)))
}

/// 91400 is 9.14.0.
fn readable(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// The version that the driver's kernel module reports.
fn kernel_module() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    module_version(&text)
}

fn module_version(text: &str) -> Option<String> {
    let words = text.lines().next()?.split_whitespace();
    let is_version = |word: &&str| {
        word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.') && word.starts_with(|c| c != '.')
    };
    words.into_iter().find(is_version).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@host)\n";
        assert_eq!(module_version(text).as_deref(), Some("580.159.04"));
        assert_eq!(module_version(""), None);
        assert_eq!(readable(91400), "9.14.0");
        assert_eq!(readable(22809), "2.28.9");
        assert_eq!(readable(130_401), "13.4.1");
    }

    /// On every machine the inventory is made and has an entry for everything.
    #[test]
    fn every_machine_has_an_inventory() {
        let inventory = inventory();
        assert_eq!(inventory.libraries.len(), 6);
        assert!(inventory.libraries.iter().all(|library| !library.remedy.is_empty()));
        if let Ok(driver) = inventory.driver {
            assert!(!driver.gpus.is_empty());
        }
    }
}
