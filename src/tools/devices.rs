//! `tscript devices`: what scripts can compute on, and what is missing.

use std::fmt::Write;
use std::path::PathBuf;

/// What CUDA programs load first; it comes with the driver.
const DRIVER: &str = "libcuda.so.1";

pub fn report() -> String {
    let mut text = String::new();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let _ = writeln!(text, "cpu");
    if let Some(model) = field("/proc/cpuinfo", "model name") {
        let _ = writeln!(text, "  model    {model}");
    }
    let _ = writeln!(text, "  cores    {cores}");
    if let Some(total) = kibibytes("MemTotal") {
        let free = kibibytes("MemAvailable").unwrap_or(0);
        let _ = writeln!(text, "  memory   {}, of which {} are free", gibibytes(total), gibibytes(free));
    }
    let _ = writeln!(text, "  vectors  {}", vectors());
    let _ = writeln!(text, "cuda");
    match driver() {
        Some(path) => {
            let _ = writeln!(text, "  driver   {}", path.display());
            let _ = writeln!(text, "  not used: this version computes on the CPU only");
        }
        None => {
            let _ = writeln!(text, "  not present: no {DRIVER} in the folders where the loader looks");
            let _ = writeln!(text, "  this version computes on the CPU only, with or without it");
        }
    }
    text
}

/// The widest vector instructions that kernels are compiled for and this machine has.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bw") {
            return "AVX-512";
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return "AVX2 with FMA";
        }
    }
    "the target's baseline"
}

/// The value of the first line `name : value` of a file of the system.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn kibibytes(name: &str) -> Option<u64> {
    field("/proc/meminfo", name)?.split_whitespace().next()?.parse().ok()
}

fn gibibytes(kibibytes: u64) -> String {
    format!("{:.1} GiB", kibibytes as f64 / (1 << 20) as f64)
}

fn driver() -> Option<PathBuf> {
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64"];
    let folders = std::env::split_paths(&given).chain(usual.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(DRIVER)).find(|path| path.exists())
}
