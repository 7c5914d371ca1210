//! Every CUDA text compiles, without a GPU: NVRTC for three architectures.
//!
//! The library is looked for at `NVRTC_LIBRARY`, on the loader's path and where pip puts it. Absent, the test says so
//! and passes, unless `TSCRIPT_REQUIRE_NVRTC=1`.

use super::cuda_host::fused::texts;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use tscript::internals::kernel::FAMILIES;
use tscript::internals::kernel::cuda::{OPTIONS, Source, headers};

/// The oldest that is supported, that of the machines at hand, and the newest.
const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90a", "sm_120"];

const LANGUAGE: &[&str] = &["--std=c++17", "-default-device"];

type Create = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;

pub struct Nvrtc {
    create: Create,
    compile: Compile,
    log_size: Size,
    log: Text,
    destroy: Destroy,
}

fn candidates() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::env::var_os("NVRTC_LIBRARY").map(PathBuf::from).into_iter().collect();
    all.extend(["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from));
    let mut roots: Vec<PathBuf> = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect();
    roots.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let inside = |path: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(path).map(|d| d.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
    };
    for root in roots {
        for python in inside(&root.join("lib")) {
            for packages in ["site-packages", "dist-packages"] {
                for part in inside(&python.join(packages).join("nvidia")) {
                    let files = inside(&part.join("lib")).into_iter();
                    all.extend(
                        files.filter(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc.so"))),
                    );
                }
            }
        }
    }
    all
}

pub fn open() -> Option<Nvrtc> {
    let handle = candidates().into_iter().find_map(|path| {
        // It opens its table of built-in functions by name: what lies beside it is loaded first, and is found then.
        for part in path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
            if part.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so")
                && let Some(name) = part.path().to_str().and_then(|name| CString::new(name).ok())
            {
                // SAFETY: loading a library that runs no code of ours.
                unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
            }
        }
        let path = CString::new(path.to_str()?).ok()?;
        // SAFETY: loading a library that runs no code of ours.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        (!handle.is_null()).then_some(handle)
    })?;
    let symbol = |name: &CStr| {
        // SAFETY: the handle is that of a loaded library.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    };
    // SAFETY: the types are those of nvrtc.h.
    unsafe {
        Some(Nvrtc {
            create: std::mem::transmute::<*mut c_void, Create>(symbol(c"nvrtcCreateProgram")),
            compile: std::mem::transmute::<*mut c_void, Compile>(symbol(c"nvrtcCompileProgram")),
            log_size: std::mem::transmute::<*mut c_void, Size>(symbol(c"nvrtcGetProgramLogSize")),
            log: std::mem::transmute::<*mut c_void, Text>(symbol(c"nvrtcGetProgramLog")),
            destroy: std::mem::transmute::<*mut c_void, Destroy>(symbol(c"nvrtcDestroyProgram")),
        })
    }
}

impl Nvrtc {
    /// The log when the text does not compile.
    fn compile(&self, text: &str, architecture: &str) -> Result<(), String> {
        let c = |text: &str| CString::new(text).expect("no NUL in it");
        let (names, texts): (Vec<CString>, Vec<CString>) =
            headers().iter().map(|(name, text)| (c(name), c(text))).unzip();
        let pointers = |all: &[CString]| all.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
        let (names, texts_at) = (pointers(&names).into_boxed_slice(), pointers(&texts));
        let options: Vec<CString> = LANGUAGE
            .iter()
            .chain(OPTIONS)
            .map(|o| c(o))
            .chain([c(&format!("--gpu-architecture={architecture}"))])
            .collect();
        let (text, options_at) = (c(text), pointers(&options));
        let mut program = std::ptr::null_mut();
        // SAFETY: as nvrtc.h says; all strings live until the program is destroyed.
        unsafe {
            let made = (self.create)(
                &mut program,
                text.as_ptr(),
                c"kernel.cu".as_ptr(),
                headers().len() as c_int,
                texts_at.as_ptr(),
                names.as_ptr(),
            );
            assert_eq!(made, 0);
            let done = (self.compile)(program, options_at.len() as c_int, options_at.as_ptr());
            let mut size = 0;
            (self.log_size)(program, &mut size);
            let mut log = vec![0u8; size.max(1)];
            (self.log)(program, log.as_mut_ptr().cast());
            (self.destroy)(&mut program);
            if done == 0 { Ok(()) } else { Err(String::from_utf8_lossy(&log).into_owned()) }
        }
    }
}

#[test]
fn every_text_compiles() {
    let Some(nvrtc) = open() else {
        assert!(std::env::var_os("TSCRIPT_REQUIRE_NVRTC").is_none(), "libnvrtc is not there");
        eprintln!("not tested: that CUDA texts compile (no libnvrtc; `pip install nvidia-cuda-nvrtc` brings it)");
        return;
    };
    let mut all: HashMap<u128, String> =
        texts().into_iter().map(|source| (source.key, source.text.into_owned())).collect();
    all.extend(
        FAMILIES
            .iter()
            .flat_map(|family| (family.texts)())
            .map(|source: &Source| (source.key, source.text.to_string())),
    );
    let mut all: Vec<(u128, String)> = all.into_iter().collect();
    all.sort();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nvrtc");
    let _ = std::fs::create_dir_all(&folder);
    let surroundings = format!("{OPTIONS:?}{:?}", headers());
    // Every text for one architecture, and some for the others too: what differs among them are few instructions.
    // Those of warpgroups are Hopper's alone.
    for (n, (_, text)) in all.iter().enumerate() {
        for (k, architecture) in ARCHITECTURES.iter().enumerate() {
            let chosen = n % ARCHITECTURES.len() == k || n % 16 == 0;
            if if text.contains("wgmma") { *architecture == "sm_90a" } else { chosen } {
                // A text that compiled once with these headers need not again.
                let mark =
                    folder.join(format!("{:032x}-{architecture}", Source::new(format!("{text}{surroundings}")).key));
                if !mark.exists() {
                    nvrtc.compile(text, architecture).unwrap_or_else(|log| panic!("{architecture}:\n{text}\n{log}"));
                    let _ = std::fs::write(mark, "");
                }
            }
        }
    }
    assert!(nvrtc.compile("__global__ void f() { nonsense }", "sm_90").is_err());
    eprintln!("{} CUDA texts compiled", all.len());
}
