//! The structs that launches pass lie in memory as the C++ compiler lays them out.

use super::{HostGpu, include};
use tscript::internals::kernel::FAMILIES;

/// Types that the texts have defined where they include the structs: only addresses of them are passed.
const TYPES: &str = "typedef float T, C, M, W, ADD, FROM, Pair; typedef unsigned long long Cell; typedef double Key;\n";

#[test]
fn rust_and_cuda_lay_out_structs_alike() {
    if HostGpu::open().is_none() {
        return;
    }
    let mut text = format!("#include \"common/base.cuh\"\n{TYPES}");
    let mut count = 0;
    for (n, family) in FAMILIES.iter().enumerate() {
        for (k, structs) in family.structs.iter().enumerate() {
            // A struct may be a field of those of the same family after it, and hides others of its name.
            let before =
                family.structs[..k].iter().map(|other| format!("{}namespace inner {{\n", other.parts.concat()));
            text += &format!("namespace s{n}_{k} {{\n{}{}", before.collect::<String>(), structs.parts.concat());
            for layout in structs.layouts {
                let name = layout.name;
                text +=
                    &format!("static_assert(sizeof({name}) == {}, \"{}: {name}\");\n", layout.bytes, structs.header);
                for (field, offset) in layout.fields {
                    let what = format!("{}: {name}.{field}", structs.header);
                    text += &format!("static_assert(__builtin_offsetof({name}, {field}) == {offset}, \"{what}\");\n");
                }
                count += 1;
            }
            text += &"}".repeat(k + 1);
            text += "\n";
        }
    }
    let file = include().join("layouts.cpp");
    std::fs::write(&file, text).expect("the text can be written");
    let shim = crate::scripts::root().join("tests/it/cuda_host/shim.h");
    let done = std::process::Command::new("g++")
        .args(["-std=c++17", "-w", "-DTS_HOST", "-fsyntax-only", "-include"])
        .arg(shim)
        .arg("-I")
        .arg(include())
        .arg(&file)
        .output()
        .expect("g++ can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(count >= 2, "{count} structs");
}
