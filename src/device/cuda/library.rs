//! Finds CUDA's shared libraries, which cudarc then loads by their names.
//!
//! cudarc panics when a library or a function is missing, so both are looked up here first. A library that the loader does
//! not find is searched where toolkits and Python packages install it; once it is loaded from there, the loader knows its
//! name too. Does not know what the functions do.

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The libraries that this project uses or lists in its inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Driver,
    Nvrtc,
    BlasLt,
    Dnn,
    Nccl,
    Solver,
    Fft,
}

/// The functions of a library that cudarc does not bind, or binds at a cost, as a struct of pointers with `load`, which gives
/// `None` where the library, one of them, or one of the files named in brackets is missing.
macro_rules! functions {
    ($library:ident $([$($part:literal),*])?; $($field:ident = $name:literal: fn($($argument:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions of the library.
        pub struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// The functions, looked up at the first call; `None`: the library is not found, or lacks one of them.
            pub fn load() -> Option<&'static Functions> {
                static LOADED: std::sync::OnceLock<Option<Functions>> = std::sync::OnceLock::new();
                LOADED.get_or_init(Functions::look_up).as_ref()
            }

            fn look_up() -> Option<Functions> {
                let library = $crate::device::cuda::library::Library::$library.load()?;
                if !library.has_parts(&[$($($part),*)?]) {
                    return None;
                }
                Some(Functions {
                    $($field: {
                        let address = library.symbol($name)?;
                        // SAFETY: the function of this name has this type, by the library's header.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(address)
                        }
                    },)*
                })
            }
        }
    };
}
pub(super) use functions;

/// A loaded library; it is never unloaded.
pub struct Loaded {
    handle: *mut c_void,
    path: Option<PathBuf>,
}

// SAFETY: the handle is never closed, and looking a symbol up is safe from any thread.
unsafe impl Send for Loaded {}
// SAFETY: for `Sync` as for `Send`: the handle is never closed, and looking a symbol up is safe from any thread.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// The library's file, if the loader reports it.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The address of a function.
    pub(super) fn symbol(&self, name: &str) -> Option<*mut c_void> {
        system::symbol(self.handle, &CString::new(name).ok()?)
    }

    /// Whether files that the library opens by itself are there: it ends the process where one is missing.
    #[cfg(unix)]
    pub(super) fn has_parts(&self, names: &[&str]) -> bool {
        names.iter().all(|name| system::has_part(self.path(), name))
    }

    #[cfg(not(unix))]
    pub(super) fn has_parts(&self, names: &[&str]) -> bool {
        names.is_empty()
    }

    /// The first of these functions that the library lacks.
    pub(super) fn lacks<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.symbol(name).is_none())
    }
}

impl Library {
    /// The library, loaded at the first call. `None`: it is not found. Cost: cuBLASLt takes 60 to 150 ms, NVRTC 15, the
    /// others 1, for relocation.
    pub fn load(self) -> Option<&'static Loaded> {
        static LOADED: [OnceLock<Option<Loaded>>; 7] = [const { OnceLock::new() }; 7];
        let found = || if self.is_hidden() { None } else { system::load(self) };
        LOADED[self as usize].get_or_init(found).as_ref()
    }

    /// For tests: libraries named in `TSCRIPT_TEST_HIDE` count as missing.
    fn is_hidden(self) -> bool {
        std::env::var("TSCRIPT_TEST_HIDE").is_ok_and(|names| names.split(',').any(|name| name == format!("{self:?}")))
    }

    /// The names to load by, in cudarc's order: cudarc must find the same file.
    #[cfg(unix)]
    fn names(self) -> Vec<String> {
        match self {
            Library::Driver => cudarc::get_lib_name_candidates("cuda"),
            Library::Nvrtc => cudarc::get_lib_name_candidates("nvrtc"),
            Library::BlasLt => cudarc::get_lib_name_candidates("cublasLt"),
            Library::Dnn => vec!["libcudnn.so.9".into()],
            Library::Nccl => vec!["libnccl.so.2".into()],
            Library::Solver => vec!["libcusolver.so.12".into(), "libcusolver.so.11".into()],
            Library::Fft => vec!["libcufft.so.12".into(), "libcufft.so.11".into()],
        }
    }

    /// The names of files to search in folders that the loader does not search.
    #[cfg(unix)]
    fn files(self) -> &'static [&'static str] {
        match self {
            // It must match the kernel module, so it is not searched elsewhere.
            Library::Driver => &[],
            Library::Nvrtc => &["libnvrtc.so.13", "libnvrtc.so.12"],
            Library::BlasLt => &["libcublasLt.so.13", "libcublasLt.so.12"],
            Library::Dnn => &["libcudnn.so.9"],
            Library::Nccl => &["libnccl.so.2"],
            Library::Solver => &["libcusolver.so.12", "libcusolver.so.11"],
            Library::Fft => &["libcufft.so.12", "libcufft.so.11"],
        }
    }

    /// A function that every version has; its address identifies the file.
    #[cfg(unix)]
    fn landmark(self) -> &'static std::ffi::CStr {
        match self {
            Library::Driver => c"cuInit",
            Library::Nvrtc => c"nvrtcVersion",
            Library::BlasLt => c"cublasLtGetVersion",
            Library::Dnn => c"cudnnGetVersion",
            Library::Nccl => c"ncclGetVersion",
            Library::Solver => c"cusolverGetVersion",
            Library::Fft => c"cufftGetVersion",
        }
    }

    /// The names of files that the library opens later by itself; it ends the process if one is missing.
    #[cfg(unix)]
    fn parts(self) -> &'static [&'static str] {
        match self {
            Library::Dnn => &["libcudnn_graph.so.9", "libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9"],
            _ => &[],
        }
    }

    /// Libraries that it loads by name and might not find in the folders searched here.
    #[cfg(unix)]
    fn needs(self) -> &'static [Library] {
        match self {
            Library::Dnn => &[Library::BlasLt, Library::Nvrtc],
            _ => &[],
        }
    }
}

#[cfg(unix)]
mod system {
    use super::{Library, Loaded};
    use std::ffi::{CStr, CString, OsStr, c_void};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    /// Every Linux machine with a driver has one of these.
    #[cfg(target_os = "linux")]
    const DRIVER: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

    pub fn load(library: Library) -> Option<Loaded> {
        // Cost: trying all of cudarc's names without success takes a tenth of the program's start time.
        #[cfg(target_os = "linux")]
        if library == Library::Driver && DRIVER.iter().all(|name| open(OsStr::new(name)).is_none()) {
            return None;
        }
        // Once loaded, they are found by name.
        for other in library.needs() {
            other.load();
        }
        let named = library.names().into_iter().find_map(|name| open(OsStr::new(&name)));
        let handle = named.or_else(|| {
            let files = library.files();
            if files.is_empty() {
                return None;
            }
            let folders = folders();
            files.iter().find_map(|file| folders.iter().find_map(|folder| open_file(&folder.join(file))))
        })?;
        let path = path(handle, library.landmark());
        let whole = library.parts().iter().all(|part| has_part(path.as_deref(), part));
        whole.then_some(Loaded { handle, path })
    }

    /// Whether the file of this name can be loaded, from the folder of the library or by its name.
    pub fn has_part(library: Option<&Path>, part: &str) -> bool {
        let beside = library.and_then(|path| open(path.with_file_name(part).as_os_str()));
        beside.or_else(|| open(OsStr::new(part))).is_some()
    }

    pub fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is of a library that is never closed.
        let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    fn open(name: &OsStr) -> Option<*mut c_void> {
        let name = CString::new(name.as_bytes()).ok()?;
        // SAFETY: loading runs the library's constructors; CUDA's are made to be loaded so.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        (!handle.is_null()).then_some(handle)
    }

    fn open_file(path: &Path) -> Option<*mut c_void> {
        if !path.is_file() {
            return None;
        }
        parts(path);
        open(path.as_os_str())
    }

    /// NVRTC opens its table of built-in functions by name: the file beside it is loaded first, so that it is found.
    fn parts(path: &Path) {
        let Some(entries) = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
        for part in entries.flatten().map(|entry| entry.path()) {
            let name = part.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with("libnvrtc-builtins.so") {
                open(part.as_os_str());
            }
        }
    }

    fn path(handle: *mut c_void, landmark: &CStr) -> Option<PathBuf> {
        let address = symbol(handle, landmark)?;
        // SAFETY: all zeros is a value of this plain struct; the call only writes it.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked about.
        let known = unsafe { libc::dladdr(address, &mut info) };
        if known == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the loader's string lives as long as the library, which is never closed.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(PathBuf::from(std::ffi::OsString::from_vec(name.to_bytes().to_vec())))
    }

    /// Where toolkits and `pip install nvidia-...` put libraries, nearest first.
    fn folders() -> Vec<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let mut folders = Vec::new();
        for prefix in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable) {
            packages(&prefix.join("lib"), "site-packages", &mut folders);
            folders.push(prefix.join("lib"));
        }
        for toolkit in ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable) {
            folders.push(toolkit.join("lib64"));
            folders.push(toolkit.join("lib"));
        }
        folders.push(PathBuf::from("/usr/local/cuda/lib64"));
        if let Some(home) = variable("HOME") {
            packages(&home.join(".local/lib"), "site-packages", &mut folders);
        }
        packages(Path::new("/usr/local/lib"), "dist-packages", &mut folders);
        packages(Path::new("/usr/local/lib"), "site-packages", &mut folders);
        folders
    }

    /// The folders `LIB/python3*/PACKAGES/nvidia/*/lib`.
    fn packages(lib: &Path, packages: &str, folders: &mut Vec<PathBuf>) {
        for python in subfolders(lib) {
            let name = python.file_name().unwrap_or_default().as_bytes();
            if name.starts_with(b"python3") {
                let nvidia = python.join(packages).join("nvidia");
                folders.extend(subfolders(&nvidia).into_iter().map(|part| part.join("lib")));
            }
        }
    }

    /// In the order of their names, so that two runs find the same file.
    fn subfolders(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        crate::base::order::by(&mut found, Ord::cmp);
        found
    }
}

/// On other systems only cudarc's own search is available, and it reports no path.
#[cfg(not(unix))]
mod system {
    use super::{Library, Loaded};
    use std::ffi::{CStr, c_void};

    pub fn load(library: Library) -> Option<Loaded> {
        // SAFETY: loading runs the library's constructors; CUDA's are made to be loaded so.
        let present = unsafe {
            match library {
                Library::Driver => cudarc::driver::sys::is_culib_present(),
                Library::Nvrtc => cudarc::nvrtc::sys::is_culib_present(),
                Library::BlasLt => cudarc::cublaslt::sys::is_culib_present(),
                Library::Dnn | Library::Nccl | Library::Solver | Library::Fft => false,
            }
        };
        present.then_some(Loaded { handle: library as usize as *mut c_void, path: None })
    }

    pub fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: `load` found the library, whose handle is never closed.
        unsafe {
            let library = match handle as usize {
                0 => cudarc::driver::sys::culib(),
                1 => cudarc::nvrtc::sys::culib(),
                _ => cudarc::cublaslt::sys::culib(),
            };
            library.get::<*mut c_void>(name.to_bytes()).ok().map(|found| *found)
        }
    }
}

/// The functions of a library that this folder calls, sorted. cudarc panics at one that the library lacks, so each list
/// of functions that is looked up must be equal to this.
#[cfg(test)]
pub(super) fn functions_named(prefix: &str) -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device/cuda")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("this folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).expect("a source");
            let calls = text.match_indices("driver!(").chain(text.match_indices("sys::"));
            for (at, mark) in calls {
                let rest = &text[at + mark.len()..];
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_function = name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(char::is_uppercase))
                    && !name.ends_with("_t")
                    && !["nvrtcProgram", "nvrtcResult"].contains(&name.as_str());
                if is_function {
                    found.push(name);
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}
