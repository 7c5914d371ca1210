//! Packs the texts that are part of the program, the library's, the CUDA headers and the pages of error codes, which
//! together are three times as large as what is left of them: `base/packed.rs` unpacks them where they are first needed.
//! Says how the program is linked.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Error> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=std");
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=docs/errors");
    // A module of the library is unpacked when it is imported, headers when the first kernel is compiled.
    let mut library = vec![root.join("std")];
    for entry in fs::read_dir(root.join("std"))? {
        library.extend(Some(entry?.path()).filter(|path| path.is_dir()));
    }
    library.sort();
    pack(&root, &library, &out.join("std.rs"))?;
    pack(&root, &[root.join("kernels")], &out.join("kernels.rs"))?;
    pack(&root, &[root.join("docs/errors")], &out.join("errors.rs"))?;
    println!("cargo::rustc-env=TSCRIPT_BUILD_TARGET={}", env::var("TARGET").unwrap_or_default());
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rustc-env=TSCRIPT_BUILD_COMMIT={}", commit(&root).unwrap_or_default());
    }
    link(&out);
    Ok(())
}

/// The commit of the sources, with its date where that is known: what `TSCRIPT_COMMIT` says, what the packed crate holds, or
/// what git says. Not in builds for development, which each commit would make anew.
fn commit(root: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=TSCRIPT_COMMIT");
    if let Some(given) = env::var("TSCRIPT_COMMIT").ok().filter(|given| !given.is_empty()) {
        return Some(given);
    }
    if let Ok(packed) = fs::read_to_string(root.join(".cargo_vcs_info.json")) {
        let (_, hash) = packed.split_once("\"sha1\": \"")?;
        return hash.get(..12).map(String::from);
    }
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string()).filter(|text| !text.is_empty())
    };
    // A folder inside another repository is not of its commits.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != fs::canonicalize(root).ok()? {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = root.join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["log", "-1", "--abbrev=12", "--format=%h %cs"])
}

/// The program lies at a fixed address: 57,000 pointers in its tables need no change at each start. What ships has equal
/// functions and constants once, where the linker can do that (docs/decisions/0133-the-program-at-a-fixed-address.md).
fn link(out: &Path) {
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let ships = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if ships && target("OS") == "linux" && env::var_os("CARGO_FEATURE_CLI").is_some() {
        // Cargo leaves `strip = true` out for a package that has an `opt-level` of its own.
        println!("cargo::rustc-link-arg-bin=tscript=-Wl,-s");
    }
    if target("OS") != "linux" || target("ENV") != "gnu" || env::var_os("CARGO_FEATURE_CLI").is_none() {
        return;
    }
    println!("cargo::rustc-link-arg-bin=tscript=-no-pie");
    // All symbols are found at the start, so that the tables of their addresses are never written again
    // (`.cargo/config.toml` asks rustc for less, docs/decisions/0152-calls-where-functions-lie.md).
    println!("cargo::rustc-link-arg-bin=tscript=-Wl,-z,now");
    if ships && links_with(out, FOLDING) {
        println!("cargo::rustc-link-arg-bin=tscript={FOLDING}");
    }
}

/// Functions, and constants: nothing compares those by their addresses that are equal in their bytes.
const FOLDING: &str = "-Wl,--icf=all,--ignore-data-address-equality";

/// Whether a program of one line links with this argument.
fn links_with(out: &Path, argument: &str) -> bool {
    let (text, program) = (out.join("trial.rs"), out.join("trial"));
    if fs::write(&text, "fn main() {}\n").is_err() {
        return false;
    }
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc.args(["--target", &env::var("TARGET").unwrap_or_default(), "-C", &format!("link-arg={argument}"), "-o"]);
    rustc.arg(program).arg(text).output().is_ok_and(|output| output.status.success())
}

/// Packs a folder: the texts of its files one after the other, since they are alike. What is in it is written down as an
/// item of Rust, which `base/packed.rs` includes.
fn pack(root: &Path, folders: &[PathBuf], to: &Path) -> Result<(), Error> {
    let mut packs = format!("pub static PACKS: [Pack; {}] = [", folders.len());
    for folder in folders {
        let (mut encoder, mut files) = (DeflateEncoder::new(Vec::new(), Compression::best()), String::new());
        let mut paths = Vec::new();
        files_of(folder, root.join("std") != *folder, &mut paths)?;
        paths.sort();
        for path in &paths {
            let text = fs::read(path)?;
            encoder.write_all(&text)?;
            let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
            files.push_str(&format!("({name:?}, {}), ", text.len()));
        }
        let name = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().replace(['/', '\\'], "-");
        let packed = to.with_file_name(format!("{name}.packed"));
        fs::write(&packed, encoder.finish()?)?;
        packs.push_str(&format!("Pack::new(include_bytes!({packed:?}), &[{files}]), "));
    }
    fs::write(to, packs + "];")
}

/// The files of a folder, and with `all` those of the folders in it.
fn files_of(folder: &Path, all: bool, paths: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true if all => files_of(&entry.path(), all, paths)?,
            true => {}
            false => paths.push(entry.path()),
        }
    }
    Ok(())
}
