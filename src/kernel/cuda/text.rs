//! The CUDA texts that are part of the program.

use crate::kernel::FAMILIES;
use crate::kernel::family::{Family, headers};
use std::sync::LazyLock;

/// What several families include.
pub static COMMON: Family = Family {
    name: "common",
    kernels: &[],
    headers: headers! {
        "common/base.cuh" "common/reduce.cuh" "common/rows.cuh" "common/unravel.cuh" "common/mma.cuh" "common/wgmma.cuh"
        "math/math.cuh" "math/special.cuh" "math/special_more.cuh" "math/polynomial.cuh"
    },
    structs: &[],
    texts: Vec::new,
};

/// What `#include "name"` means in a source: names and texts.
pub fn headers() -> &'static [(&'static str, &'static str)] {
    static ALL: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let made = |family: &'static Family| {
            family.structs.iter().map(|structs| (structs.header, &*structs.parts.concat().leak()))
        };
        FAMILIES.iter().flat_map(|family| family.headers.iter().copied().chain(made(family))).collect()
    });
    &ALL
}

/// What every source is compiled with, besides language (C++17, `-default-device`) and architecture. No fused
/// multiply-adds but those that are written: a fused chain gives bit for bit what single operations give.
pub static OPTIONS: &[&str] = &["--fmad=false"];
