//! The device decides whether a step is skipped, since the host does not wait for the results that this depends on.

use super::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::cuda::specialize::source;
use crate::kernel::family::{Family, headers};

/// A family without a kernel that rows name.
pub static FAMILY: Family =
    Family { name: "gate", kernels: &[], headers: headers! { "device/gate.cuh" }, structs: &[], texts };

/// Bound: conditions of one launch; `TS_CONDITIONS` in the text.
const CONDITIONS: usize = 24;

fn text() -> &'static Source {
    source("device/gate.cuh", &[])
}

/// Sets the 32-bit word `held` to whether a word is not above its bound: addresses of 64-bit words, with bounds.
pub fn gate(held: u64, conditions: &[(u64, u64)], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let mut continues = 0;
    let none: &[(u64, u64)] = &[];
    let parts = conditions.chunks(CONDITIONS).chain(conditions.is_empty().then_some(none));
    for part in parts {
        let mut words = [0u64; 3 + 2 * CONDITIONS];
        words[..3].copy_from_slice(&[held, continues, part.len() as u64]);
        for (at, &(word, bound)) in part.iter().enumerate() {
            (words[3 + at], words[3 + CONDITIONS + at]) = (word, bound);
        }
        let args = &[Param::Words(&words)];
        gpu.launch(&Launch { source: text(), entry: "ts_gate", grid: [1; 3], block: [1; 3], shared_bytes: 0, args })?;
        continues = 1;
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    vec![text()]
}
