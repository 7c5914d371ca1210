//! `tscript devices`: the devices that scripts can compute on, and what is missing.

use super::command::Settings;
use super::run::{simulated_gpus, visible};
#[cfg(feature = "cuda")]
use crate::script::inspect::machine::{Driver, Facts, Found, Inventory, Missing, inventory};
use crate::script::inspect::machine::{SIMULATED_BYTES, vector_level};
use std::fmt::Write;
#[cfg(feature = "cuda")]
use std::path::PathBuf;

pub fn report(settings: &Settings) -> String {
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
    #[cfg(feature = "cuda")]
    cuda(&inventory(), &mut text);
    #[cfg(not(feature = "cuda"))]
    text.push_str("cuda\n  none: this build has no CUDA, as it was made without the feature `cuda`\n");
    if let Some(count) = simulated_gpus(settings) {
        simulated(visible(count), settings.simulate_memory, &mut text);
    }
    text
}

/// GPUs that scripts get instead of real ones.
fn simulated(count: usize, bytes: Option<usize>, text: &mut String) {
    let memory = gibibytes(bytes.unwrap_or(SIMULATED_BYTES) as u64 >> 10);
    let _ = writeln!(text, "simulated, in place of all GPUs");
    for index in 0..count {
        let _ = writeln!(text, "  cuda:{index:<3} {memory}");
    }
    if count == 0 {
        let _ = writeln!(text, "  none: CUDA_VISIBLE_DEVICES hides them");
    }
}

/// Driver and GPUs, then the libraries that they need; with help for what is missing.
#[cfg(feature = "cuda")]
fn cuda(inventory: &Inventory, text: &mut String) {
    let _ = writeln!(text, "cuda");
    driver(&inventory.driver, text);
    for library in &inventory.libraries {
        let Found { name, purpose, found, remedy, .. } = library;
        let _ = match found {
            Some((version, path)) => writeln!(text, "  {name:<8} {version}, {purpose}{}", file(path)),
            None => writeln!(text, "  {name:<8} not found, for {purpose}: {remedy}"),
        };
    }
}

#[cfg(feature = "cuda")]
fn driver(driver: &Result<Driver, Missing>, text: &mut String) {
    match driver {
        Ok(driver) => {
            let (major, minor) = driver.cuda;
            let version = driver.version.as_deref().unwrap_or("of unknown version");
            let _ = writeln!(text, "  driver   {version}, for CUDA {major}.{minor}{}", file(&driver.path));
            driver.gpus.iter().for_each(|facts| gpu(facts, text));
        }
        Err(missing) => {
            let _ = writeln!(text, "  driver   not usable: {missing}");
            let _ = writeln!(text, "           {}", missing.remedy());
        }
    }
}

#[cfg(feature = "cuda")]
fn gpu(gpu: &Facts, text: &mut String) {
    let (major, minor) = gpu.capability;
    let (memory, l2) = (gibibytes(gpu.memory_bytes as u64 >> 10), gpu.l2_bytes >> 20);
    let _ = writeln!(text, "  cuda:{:<3} {}, capability {major}.{minor}", gpu.index, gpu.name);
    let _ = writeln!(text, "           {memory}, {} multiprocessors, L2 {l2} MiB", gpu.multiprocessors);
}

#[cfg(feature = "cuda")]
fn file(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(String::new, |path| format!(" ({})", path.display()))
}

/// The vector instructions that kernels use here.
pub fn vectors() -> &'static str {
    match vector_level() {
        "avx512" => "AVX-512",
        "avx2" => "AVX2 with FMA",
        _ => "the target's baseline",
    }
}

/// The value of the first line `name : value` of a file of the system.
pub fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

pub fn kibibytes(name: &str) -> Option<u64> {
    field("/proc/meminfo", name)?.split_whitespace().next()?.parse().ok()
}

pub fn gibibytes(kibibytes: u64) -> String {
    format!("{:.1} GiB", kibibytes as f64 / (1 << 20) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_gpus_are_labeled() {
        let mut text = String::new();
        simulated(2, Some(3 << 29), &mut text);
        assert_eq!(text, "simulated, in place of all GPUs\n  cuda:0   1.5 GiB\n  cuda:1   1.5 GiB\n");
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn present_and_missing_parts_are_listed() {
        let gpu = Facts {
            index: 0,
            name: "NVIDIA H100 80GB HBM3".into(),
            capability: (9, 0),
            memory_bytes: 85_017_493_504,
            multiprocessors: 132,
            threads_per_multiprocessor: 2048,
            l2_bytes: 50 << 20,
            shared_bytes_per_block: 232_448,
            shared_bytes_per_multiprocessor: 233_472,
            uuid: [0; 16],
        };
        let driver = Driver {
            cuda: (13, 0),
            version: Some("580.159.04".into()),
            path: Some("/usr/lib/libcuda.so.1".into()),
            gpus: vec![gpu],
        };
        let library = |name, found| Found {
            name,
            purpose: "kernels",
            found,
            without: "slow",
            needed: false,
            remedy: "install it",
        };
        let libraries = vec![library("NVRTC", Some(("13.0".to_string(), None))), library("NCCL", None)];
        let mut text = String::new();
        cuda(&Inventory { driver: Ok(driver), libraries }, &mut text);
        assert_eq!(
            text,
            "cuda\n\
             \x20 driver   580.159.04, for CUDA 13.0 (/usr/lib/libcuda.so.1)\n\
             \x20 cuda:0   NVIDIA H100 80GB HBM3, capability 9.0\n\
             \x20          79.2 GiB, 132 multiprocessors, L2 50 MiB\n\
             \x20 NVRTC    13.0, kernels\n\
             \x20 NCCL     not found, for kernels: install it\n"
        );
        let mut text = String::new();
        cuda(&Inventory { driver: Err(Missing::Library), libraries: Vec::new() }, &mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("not usable") && lines[2].contains("install"), "{text}");
    }
}
