//! NVIDIA's driver, GPUs and libraries.

use super::{Finding, State};
use crate::script::inspect::machine::{Driver, Facts, Found, Inventory, Missing};
use crate::tools::devices::gibibytes;

pub fn findings(inventory: &Inventory) -> Vec<Finding> {
    let mut all = vec![driver(&inventory.driver)];
    let usable = inventory.driver.as_ref().ok();
    all.extend(usable.into_iter().flat_map(|driver| &driver.gpus).map(gpu));
    all.extend(inventory.libraries.iter().map(|found| library(found, usable.is_some())));
    all
}

fn driver(driver: &Result<Driver, Missing>) -> Finding {
    match driver {
        Ok(driver) => {
            let (major, minor) = driver.cuda;
            let version = driver.version.as_deref().unwrap_or("of unknown version");
            Finding::good("driver", format!("{version}, for CUDA {major}.{minor}")).at(driver.path.clone())
        }
        Err(missing) => {
            let state = match missing {
                Missing::Library | Missing::Device { .. } => State::Missing,
                Missing::Old { .. } | Missing::Start(_) => State::Broken,
            };
            let cost = "scripts run on the CPU, or on simulated GPUs (`--simulate-gpus 1`)";
            Finding::new("driver", state, missing.to_string()).costs(cost).advice(missing.remedy())
        }
    }
}

fn gpu(gpu: &Facts) -> Finding {
    let (major, minor) = gpu.capability;
    let memory = gibibytes(gpu.memory_bytes as u64 >> 10);
    Finding::good(format!("cuda:{}", gpu.index), format!("{}, capability {major}.{minor}, {memory}", gpu.name))
}

/// A library; without a GPU its absence costs nothing. Without NVRTC a GPU is of no use.
fn library(found: &Found, gpu: bool) -> Finding {
    match &found.found {
        Some((version, path)) => Finding::good(found.name, format!("{version}, {}", found.purpose)).at(path.clone()),
        None if !gpu => Finding::new(found.name, State::Missing, "not found; only GPUs need it"),
        None => {
            let state = if found.needed { State::Broken } else { State::Missing };
            Finding::new(found.name, state, "not found").costs(found.without).advice(found.remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &'static str, needed: bool) -> Found {
        Found { name, purpose: "kernels", found: None, without: "slow", needed, remedy: "install it" }
    }

    #[test]
    fn what_a_gpu_needs_is_broken_only_beside_one() {
        let driver = || Ok(Driver { cuda: (13, 0), version: None, path: None, gpus: Vec::new() });
        let states = |driver| -> Vec<State> {
            let libraries = vec![found("NVRTC", true), found("NCCL", false)];
            findings(&Inventory { driver, libraries }).iter().map(|found| found.state).collect()
        };
        assert_eq!(states(driver()), [State::Good, State::Broken, State::Missing]);
        assert_eq!(states(Err(Missing::Library)), [State::Missing; 3]);
        let old = Missing::Old { version: None, function: "f" };
        assert_eq!(states(Err(old)), [State::Broken, State::Missing, State::Missing]);
    }
}
