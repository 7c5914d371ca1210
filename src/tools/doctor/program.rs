//! The program itself and what the CPU has for it.

use super::{Finding, State};
use crate::script::inspect::machine::{vector_choice, vector_level, vector_levels};
use crate::tools::devices::{gibibytes, kibibytes, vectors};
use crate::tools::version::{FEATURES, short};

pub fn findings() -> Vec<Finding> {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, built)| *built).map(|(name, _)| *name).collect();
    let mut all = vec![
        Finding::good("version", short()).at(std::env::current_exe().ok()),
        Finding::good("features", features.join(", ")),
        optimization(),
        vector_instructions(),
    ];
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    all.push(Finding::good("cores", cores.to_string()));
    if let (Some(total), Some(free)) = (kibibytes("MemTotal"), kibibytes("MemAvailable")) {
        all.push(Finding::good("memory", format!("{}, of which {} are free", gibibytes(total), gibibytes(free))));
    }
    all
}

fn optimization() -> Finding {
    if !cfg!(debug_assertions) {
        return Finding::good("build", "optimized");
    }
    let slow = Finding::new("build", State::Missing, "not optimized").costs("kernels are some fifty times slower");
    slow.advice("cargo build --release")
}

fn vector_instructions() -> Finding {
    if let Err(why) = vector_choice() {
        return Finding::new("vectors", State::Broken, why.as_str())
            .costs("no script runs")
            .advice("unset TSCRIPT_SIMD");
    }
    let best = vector_levels().first().copied().unwrap_or_default();
    if vector_level() != best {
        let chosen = Finding::new("vectors", State::Missing, format!("{}, as TSCRIPT_SIMD says", vectors()));
        return chosen.costs(format!("this machine has `{best}`, which is faster")).advice("unset TSCRIPT_SIMD");
    }
    match best {
        "portable" if cfg!(target_arch = "x86_64") => {
            Finding::new("vectors", State::Missing, vectors()).costs("the processor has no AVX2; kernels are slower")
        }
        _ => Finding::good("vectors", vectors()),
    }
}
