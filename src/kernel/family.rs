//! The record of a family of kernels: the kernels of one folder here, with their CUDA text in the folder of the same
//! name in `kernels/`.
//!
//! The record is the only interface of a family: rows of the op table name a [`Kernel`], devices call its `host` or its
//! `cuda`, and the tests compile what [`Family`] lists. A new family is a folder, a record in its `mod.rs` and a line
//! in `kernel::FAMILIES`.

use super::abi::HostFn;
#[cfg(feature = "cuda")]
use super::cuda::{CudaFn, Source};
#[cfg(feature = "cuda")]
use super::structs::Structs;

/// One kernel, in the form of each kind of device. Its address identifies it: each is a `static`.
pub struct Kernel {
    pub name: &'static str,
    pub host: HostFn,
    /// Without one, the kernel runs on the host, on copies of its operands.
    #[cfg(feature = "cuda")]
    pub cuda: Option<CudaFn>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The kernels of a folder, and their CUDA texts.
pub struct Family {
    /// The folder's name.
    pub name: &'static str,
    pub kernels: &'static [&'static Kernel],
    /// Names, as `#include` has them, of the files in `kernels/`.
    #[cfg(feature = "cuda")]
    pub headers: &'static [&'static str],
    /// Structs with a Rust and a CUDA form.
    #[cfg(feature = "cuda")]
    pub structs: &'static [&'static Structs],
    /// The texts that launches compile, with samples of the types and numbers that they are specialized by: for tests.
    #[cfg(feature = "cuda")]
    pub texts: fn() -> Vec<&'static Source>,
}

/// Makes `FAMILY` and a static for each kernel: `"name" STATIC: host function, CUDA launch;`, the launch where there is one.
macro_rules! family {
    (
        $name:literal;
        kernels { $($kernel_name:literal $kernel:ident: $host:path $(, $cuda:path)?;)* }
        headers { $($header:literal)* }
        structs { $($structs:path)* }
        texts $texts:path
    ) => {
        $(
            pub static $kernel: $crate::kernel::family::Kernel = $crate::kernel::family::Kernel {
                name: $kernel_name,
                host: $host,
                #[cfg(feature = "cuda")]
                cuda: $crate::kernel::family::launch!($($cuda)?),
            };
        )*

        pub static FAMILY: $crate::kernel::family::Family = $crate::kernel::family::Family {
            name: $name,
            kernels: &[$(&$kernel),*],
            #[cfg(feature = "cuda")]
            headers: &[$($header),*],
            #[cfg(feature = "cuda")]
            structs: &[$(&$structs),*],
            #[cfg(feature = "cuda")]
            texts: $texts,
        };
    };
}
pub(crate) use family;

#[cfg(feature = "cuda")]
macro_rules! launch {
    () => {
        None
    };
    ($cuda:path) => {
        Some($cuda)
    };
}
#[cfg(feature = "cuda")]
pub(crate) use launch;
