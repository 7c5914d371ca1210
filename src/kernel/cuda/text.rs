//! The CUDA texts that are part of the program.

use crate::base::packed;
use crate::kernel::FAMILIES;
use crate::kernel::family::Family;
use std::sync::LazyLock;

/// Headers that several families include.
pub static COMMON: Family = Family {
    name: "common",
    kernels: &[],
    headers: &[
        "common/base.cuh",
        "common/reduce.cuh",
        "common/rows.cuh",
        "common/unravel.cuh",
        "common/mma.cuh",
        "common/wgmma.cuh",
        "common/look_back.cuh",
        "common/flags.cuh",
        "math/math.cuh",
        "math/special.cuh",
        "math/single.cuh",
        "math/special_more.cuh",
        "math/polynomial.cuh",
    ],
    structs: &[],
    texts: Vec::new,
};

/// Names and texts of the headers that `#include "name"` finds.
pub fn headers() -> &'static [(&'static str, &'static str)] {
    static ALL: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let texts = |family: &'static Family| {
            family.structs.iter().map(|structs| (structs.header, &*structs.parts.concat().leak()))
        };
        let unpacked = |family: &'static Family| {
            family.headers.iter().map(|name| (*name, packed::text(&format!("kernels/{name}"))))
        };
        FAMILIES.iter().flat_map(|family| unpacked(family).chain(texts(family))).collect()
    });
    &ALL
}

/// Options of every source, beside language (C++17, `-default-device`) and architecture. The compiler makes no fused
/// multiply-adds of its own, so that a fused chain gives bit for bit the results of single operations.
pub static OPTIONS: &[&str] = &["--fmad=false"];
