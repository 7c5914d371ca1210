//! `tscript devices`: what scripts can compute on, and what is missing.

use crate::script::machine::{self, Found, Inventory};
use std::fmt::Write;
use std::path::PathBuf;

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
    cuda(&machine::inventory(), &mut text);
    text
}

/// Driver and GPUs, then the libraries that make them useful; what is missing comes with the way to get it.
fn cuda(inventory: &Inventory, text: &mut String) {
    let _ = writeln!(text, "cuda");
    match &inventory.driver {
        Ok(driver) => {
            let (major, minor) = driver.cuda;
            let version = driver.version.as_deref().unwrap_or("of unknown version");
            let _ = writeln!(text, "  driver   {version}, for CUDA {major}.{minor}{}", file(&driver.path));
            for gpu in &driver.gpus {
                let (major, minor) = gpu.capability;
                let (memory, l2) = (gibibytes(gpu.memory_bytes as u64 >> 10), gpu.l2_bytes >> 20);
                let _ = writeln!(text, "  cuda:{:<3} {}, capability {major}.{minor}", gpu.index, gpu.name);
                let _ = writeln!(text, "           {memory}, {} multiprocessors, L2 {l2} MiB", gpu.multiprocessors);
            }
        }
        Err(missing) => {
            let _ = writeln!(text, "  driver   not usable: {missing}");
            let _ = writeln!(text, "           {}", missing.remedy());
        }
    }
    for library in &inventory.libraries {
        let Found { name, purpose, found, remedy } = library;
        let _ = match found {
            Some((version, path)) => writeln!(text, "  {name:<8} {version}, {purpose}{}", file(path)),
            None => writeln!(text, "  {name:<8} not found, for {purpose}: {remedy}"),
        };
    }
}

fn file(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(String::new, |path| format!(" ({})", path.display()))
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
