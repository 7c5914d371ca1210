//! Packs the texts that are part of the program, the library's and the CUDA headers, which together are three times as
//! large as what is left of them: `base/packed.rs` unpacks them where they are first needed. Says how the program is linked.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Error> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    for folder in ["std", "kernels"] {
        println!("cargo::rerun-if-changed={folder}");
        pack(&root.join(folder), &out.join(folder))?;
    }
    link();
    Ok(())
}

/// The program lies at a fixed address: 57,000 pointers in its tables need no change at each start
/// (docs/decisions/0133-the-program-at-a-fixed-address.md).
fn link() {
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" && env::var_os("CARGO_FEATURE_CLI").is_some() {
        println!("cargo::rustc-link-arg-bin=tscript=-no-pie");
    }
}

/// Packs all files of a folder, each into one of the same name.
fn pack(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            pack(&entry.path(), &to)?;
            continue;
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(entry.path())?)?;
        fs::write(to, encoder.finish()?)?;
    }
    Ok(())
}
