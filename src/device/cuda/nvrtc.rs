//! Compiles CUDA source text to machine code by NVRTC, with headers from memory. Needs neither a GPU nor a driver.
//!
//! NVRTC is loaded for the first compilation. Does not know how the result is used.

use super::error::DriverError;
use super::library::Library;
use cudarc::nvrtc::sys;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::sync::OnceLock;

const FUNCTIONS: &[&str] = &[
    "nvrtcCompileProgram",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetCUBIN",
    "nvrtcGetCUBINSize",
    "nvrtcGetErrorString",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetPTX",
    "nvrtcGetPTXSize",
    "nvrtcGetProgramLog",
    "nvrtcGetProgramLogSize",
    "nvrtcGetSupportedArchs",
    "nvrtcVersion",
];

/// Options of every compilation. Functions without `__host__` or `__device__` are device functions. Not:
/// `--use_fast_math`.
const OPTIONS: &[&str] = &["-default-device", "--std=c++17"];

/// What to do where NVRTC is missing, in one line.
pub const REMEDY: &str = "pip install nvidia-cuda-nvrtc, or install NVIDIA's CUDA toolkit 13";

/// CUDA text to be compiled.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// What messages call the text, such as `softmax.cu`.
    pub name: &'a str,
    pub text: &'a str,
    /// Names and texts of the headers that `#include "name"` finds.
    pub headers: &'a [(&'a str, &'a str)],
    /// Further options of NVRTC.
    pub options: &'a [&'a str],
    /// Identifies all of the above within this process: equal keys mean equal texts.
    pub key: u128,
}

/// Why there is no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelError {
    /// NVRTC is not found, or lacks a function.
    Compiler {
        function: Option<&'static str>,
    },
    /// The text does not compile. `excerpt` has the lines that the log names.
    Text {
        name: String,
        log: String,
        excerpt: String,
    },
    /// NVRTC itself failed.
    Internal {
        call: &'static str,
        text: &'static str,
    },
    /// The driver does not accept the code of a newer compiler.
    Newer {
        compiler: (u32, u32),
        driver: (u32, u32),
    },
    /// The text has no kernel of this name.
    Entry {
        name: String,
        entry: String,
    },
    Driver(DriverError),
}

impl From<DriverError> for KernelError {
    fn from(error: DriverError) -> KernelError {
        KernelError::Driver(error)
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelError::Compiler { function: None } => {
                write!(f, "NVRTC, which compiles kernels, is not found: {REMEDY}")
            }
            KernelError::Compiler { function: Some(function) } => {
                write!(f, "NVRTC, which compiles kernels, is too old: it lacks {function}; {REMEDY}")
            }
            KernelError::Text { name, log, excerpt } => {
                write!(f, "{name} does not compile:\n{}", log.trim_end())?;
                if excerpt.is_empty() { Ok(()) } else { write!(f, "\n{}", excerpt.trim_end()) }
            }
            KernelError::Internal { call, text } => write!(f, "{call}: {text}"),
            KernelError::Newer { compiler: (major, minor), driver: (runs, up_to) } => {
                write!(f, "NVRTC {major}.{minor} is newer than the driver, which runs CUDA {runs}.{up_to}: ")?;
                write!(f, "install a newer driver, or NVRTC {runs}.{up_to}")
            }
            KernelError::Entry { name, entry } => write!(f, "{name} has no kernel {entry}"),
            KernelError::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KernelError {}

/// NVRTC's version, such as (13, 0). Loads it.
pub fn version() -> Result<(u32, u32), KernelError> {
    available()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library has the function; it writes two numbers.
    check("nvrtcVersion", unsafe { sys::nvrtcVersion(&mut major, &mut minor) })?;
    Ok((major.max(0) as u32, minor.max(0) as u32))
}

/// Machine code (cubin) for devices of this compute capability, or, if NVRTC does not know it yet, PTX that the driver
/// compiles. `cuModuleLoadData` takes both. Cost: 30 to 50 ms for a small kernel, and 200 ms more the first time.
pub fn compile(text: &Text<'_>, capability: (u32, u32)) -> Result<Vec<u8>, KernelError> {
    available()?;
    let target = capability.0 * 10 + capability.1;
    let known = architectures()?;
    let exact = known.contains(&target);
    let newest = known.iter().copied().filter(|&arch| arch <= target).max().unwrap_or(target);
    // Instructions that only Hopper has, such as wgmma, need the architecture `sm_90a`.
    let suffix = if target == 90 { "a" } else { "" };
    let architecture = match exact {
        true => format!("--gpu-architecture=sm_{target}{suffix}"),
        false => format!("--gpu-architecture=compute_{newest}"),
    };
    let program = Program::new(text)?;
    program.compile(text, &architecture)?;
    if exact {
        program.read(("nvrtcGetCUBINSize", sys::nvrtcGetCUBINSize), ("nvrtcGetCUBIN", sys::nvrtcGetCUBIN))
    } else {
        program.read(("nvrtcGetPTXSize", sys::nvrtcGetPTXSize), ("nvrtcGetPTX", sys::nvrtcGetPTX))
    }
}

fn available() -> Result<(), KernelError> {
    static STATE: OnceLock<Result<(), KernelError>> = OnceLock::new();
    let load = || {
        let library = Library::Nvrtc.load().ok_or(KernelError::Compiler { function: None })?;
        match library.lacks(FUNCTIONS) {
            Some(function) => Err(KernelError::Compiler { function: Some(function) }),
            None => Ok(()),
        }
    };
    STATE.get_or_init(load).clone()
}

/// The architectures that NVRTC makes machine code for, such as 90.
fn architectures() -> Result<Vec<u32>, KernelError> {
    let mut count = 0;
    // SAFETY: the library has the function; it writes one number.
    check("nvrtcGetNumSupportedArchs", unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) })?;
    let mut found = vec![0; count.max(0) as usize];
    // SAFETY: the list has as many places as the library said it fills.
    check("nvrtcGetSupportedArchs", unsafe { sys::nvrtcGetSupportedArchs(found.as_mut_ptr()) })?;
    Ok(found.into_iter().map(|arch| arch.max(0) as u32).collect())
}

fn check(call: &'static str, result: sys::nvrtcResult) -> Result<(), KernelError> {
    if result == sys::nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    // SAFETY: the library has the function; it returns a constant text.
    let text = unsafe { super::error::constant(sys::nvrtcGetErrorString(result)) };
    Err(KernelError::Internal { call, text: text.unwrap_or("an error without a name") })
}

/// A program of NVRTC.
struct Program(sys::nvrtcProgram);

type Size = unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult;
type Fill = unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult;

impl Program {
    fn new(text: &Text<'_>) -> Result<Program, KernelError> {
        let terminated = |part: &str| {
            CString::new(part).map_err(|_| KernelError::Text {
                name: text.name.to_string(),
                log: "it holds a character 0".to_string(),
                excerpt: String::new(),
            })
        };
        let (source, name) = (terminated(text.text)?, terminated(text.name)?);
        let names = text.headers.iter().map(|(name, _)| terminated(name)).collect::<Result<Vec<_>, _>>()?;
        let texts = text.headers.iter().map(|(_, text)| terminated(text)).collect::<Result<Vec<_>, _>>()?;
        let (names_at, texts_at) = (pointers(&names), pointers(&texts));
        let mut program = Program(std::ptr::null_mut());
        // SAFETY: all texts end in 0 and outlive the call, which copies them; both lists have the stated length.
        check("nvrtcCreateProgram", unsafe {
            sys::nvrtcCreateProgram(
                &mut program.0,
                source.as_ptr(),
                name.as_ptr(),
                names.len() as i32,
                texts_at.as_ptr(),
                names_at.as_ptr(),
            )
        })?;
        Ok(program)
    }

    fn compile(&self, text: &Text<'_>, architecture: &str) -> Result<(), KernelError> {
        let options = [architecture].into_iter().chain(OPTIONS.iter().copied()).chain(text.options.iter().copied());
        let options: Vec<CString> = options.filter_map(|option| CString::new(option).ok()).collect();
        let at = pointers(&options);
        // SAFETY: the program is alive; the options end in 0 and outlive the call.
        let result = unsafe { sys::nvrtcCompileProgram(self.0, options.len() as i32, at.as_ptr()) };
        if result == sys::nvrtcResult::NVRTC_SUCCESS {
            return Ok(());
        }
        let log = self.read(
            ("nvrtcGetProgramLogSize", sys::nvrtcGetProgramLogSize),
            ("nvrtcGetProgramLog", sys::nvrtcGetProgramLog),
        )?;
        let log = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().into_owned()).unwrap_or_default();
        if log.trim().is_empty() {
            return check("nvrtcCompileProgram", result);
        }
        let excerpt = excerpt(text, &log);
        Err(KernelError::Text { name: text.name.to_string(), log, excerpt })
    }

    fn read(&self, size: (&'static str, Size), fill: (&'static str, Fill)) -> Result<Vec<u8>, KernelError> {
        let mut bytes = 0;
        // SAFETY: the program is alive; the call writes one number.
        check(size.0, unsafe { (size.1)(self.0, &mut bytes) })?;
        let mut content = vec![0u8; bytes];
        // SAFETY: the buffer has as many bytes as the library said it fills.
        check(fill.0, unsafe { (fill.1)(self.0, content.as_mut_ptr().cast()) })?;
        Ok(content)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the program is alive, and nobody can use it after this.
            let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
        }
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

/// The lines that the log names as `FILE(LINE): error`, with their numbers. Bound: the first five; later ones usually
/// follow from them.
fn excerpt(text: &Text<'_>, log: &str) -> String {
    let mut shown: Vec<(&str, usize)> = Vec::new();
    let mut lines = String::new();
    for message in log.lines() {
        let Some((file, rest)) = message.split_once('(') else { continue };
        let Some((number, rest)) = rest.split_once(')') else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        if !rest.starts_with(": error") && !rest.starts_with(": catastrophic") || shown.contains(&(file, number)) {
            continue;
        }
        let header = text.headers.iter().find(|(name, _)| *name == file).map(|(_, text)| *text);
        let source = if file == text.name { Some(text.text) } else { header };
        let Some(line) = source.and_then(|source| source.lines().nth(number.saturating_sub(1))) else { continue };
        shown.push((file, number));
        lines.push_str(&format!("{file}:{number}: {}\n", line.trim_end()));
        if shown.len() == 5 {
            break;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(text: &'a str, headers: &'a [(&'a str, &'a str)]) -> Text<'a> {
        Text { name: "some.cu", text, headers, options: &[], key: 0 }
    }

    #[test]
    fn every_function_that_is_called_is_asked_for() {
        assert_eq!(super::super::library::functions_named("nvrtc"), FUNCTIONS);
    }

    #[test]
    fn the_lines_of_errors_are_shown() {
        let headers = [("h.cuh", "int one;\nint two\n")];
        let text = text("line 1\n  line 2\nline 3\n", &headers);
        let log = "some.cu(2): error: expected a \";\"\n\nsome.cu(2): error: again\nh.cuh(2): error: and here\n\
                   some.cu(3): warning #177-D: unused\nsome.cu(99): error: nowhere\nother(1): error: unknown\n";
        assert_eq!(excerpt(&text, log), "some.cu:2:   line 2\nh.cuh:2: int two\n");
    }

    /// NVRTC needs no GPU. Where it is not installed, the error says how to install it.
    #[test]
    fn texts_compile_or_say_why_not() {
        let headers = [("twice.cuh", "__device__ float twice(float x) { return x + x; }")];
        let good = "#include \"twice.cuh\"\nextern \"C\" __global__ void f(float *x) { x[threadIdx.x] = twice(x[0]); }";
        match compile(&text(good, &headers), (9, 0)) {
            Err(KernelError::Compiler { .. }) => return eprintln!("NVRTC is not installed: nothing was compiled"),
            Err(error) => panic!("{error}"),
            Ok(cubin) => assert_eq!(&cubin[..4], b"\x7fELF"),
        }
        // A capability between two that NVRTC knows: PTX for the driver.
        let ptx = compile(&text(good, &headers), (9, 1)).expect("portable code");
        assert!(String::from_utf8_lossy(&ptx).contains(".target sm_90"), "PTX for the next lower one");
        let bad = "extern \"C\" __global__ void f(float *x) {\n  x[0] = nope;\n}";
        let said = compile(&text(bad, &[]), (9, 0)).expect_err("an unknown name").to_string();
        assert!(said.contains("some.cu(2): error") && said.contains("some.cu:2:   x[0] = nope;"), "{said}");
        assert!(matches!(compile(&text("a\0b", &[]), (9, 0)), Err(KernelError::Text { .. })));
    }
}
