//! A kernel that decides on the device whether a later step is skipped, since the host does not wait for the results
//! that this depends on.

use super::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::cuda::specialize::source;
use crate::kernel::family::Family;
use crate::kernel::structs::structs;

/// Has no kernel that rows of the op table name.
pub static FAMILY: Family =
    Family { name: "gate", kernels: &[], headers: &["device/gate.cuh"], structs: &[&ARGS], texts };

structs! {
    // Bound: conditions of one launch.
    pub static ARGS = "device/gate_args.cuh", MAX_CONDITIONS = 24;
    struct Args {
        held: mut u32,
        /// Not 0: combine with the result of earlier launches, which checked other conditions of the same step.
        accumulate: u64,
        count: usize,
        words: [const u64; MAX_CONDITIONS],
        bounds: [u64; MAX_CONDITIONS],
    }
}

fn text() -> &'static Source {
    source("device/gate.cuh", &[])
}

/// Sets the 32-bit word `held` to 1 if any of the conditions holds. A condition is the address of a 64-bit word and a
/// bound; it holds if the word is not above the bound.
pub fn gate(held: u64, conditions: &[(u64, u64)], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let mut accumulate = 0;
    let none: &[(u64, u64)] = &[];
    let parts = conditions.chunks(MAX_CONDITIONS).chain(conditions.is_empty().then_some(none));
    for part in parts {
        let mut args = Args { held: held as *mut u8, accumulate, count: part.len(), ..Args::NONE };
        for (at, &(word, bound)) in part.iter().enumerate() {
            (args.words[at], args.bounds[at]) = (word as *const u8, bound);
        }
        let args = &[Param::Words(args.words())];
        gpu.launch(&Launch { source: text(), entry: "ts_gate", grid: [1; 3], block: [1; 3], shared_bytes: 0, args })?;
        accumulate = 1;
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    vec![text()]
}
