//! The device decides whether a step is skipped, since the host does not wait for the results that this depends on.

use super::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::cuda::specialize::source;
use crate::kernel::family::{Family, headers};
use crate::kernel::structs::structs;

/// A family without a kernel that rows name.
pub static FAMILY: Family =
    Family { name: "gate", kernels: &[], headers: headers! { "device/gate.cuh" }, structs: &[&ARGS], texts };

structs! {
    // Bound: conditions of one launch.
    pub static ARGS = "device/gate_args.cuh", MAX_CONDITIONS = 24;
    struct Args {
        held: mut u32,
        /// Not 0 if earlier launches have checked other conditions of the same step.
        goes_on: u64,
        count: usize,
        words: [const u64; MAX_CONDITIONS],
        bounds: [u64; MAX_CONDITIONS],
    }
}

fn text() -> &'static Source {
    source("device/gate.cuh", &[])
}

/// Sets the 32-bit word `held` to whether a word is not above its bound: addresses of 64-bit words, with bounds.
pub fn gate(held: u64, conditions: &[(u64, u64)], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let mut goes_on = 0;
    let none: &[(u64, u64)] = &[];
    let parts = conditions.chunks(MAX_CONDITIONS).chain(conditions.is_empty().then_some(none));
    for part in parts {
        let mut args = Args { held: held as *mut u8, goes_on, count: part.len(), ..Args::NONE };
        for (at, &(word, bound)) in part.iter().enumerate() {
            (args.words[at], args.bounds[at]) = (word as *const u8, bound);
        }
        let args = &[Param::Words(args.words())];
        gpu.launch(&Launch { source: text(), entry: "ts_gate", grid: [1; 3], block: [1; 3], shared_bytes: 0, args })?;
        goes_on = 1;
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    vec![text()]
}
