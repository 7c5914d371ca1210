//! Runs scripts for the other tests and collects what they print; where files are, and which GPUs there are.
//!
//! `TSCRIPT_ROOT` and `TSCRIPT_PROGRAM` say where the repository and the program are, for a binary that was carried to
//! another machine. `TSCRIPT_TEST_DEVICES=cuda` takes real GPUs wherever a test would simulate them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tscript::{Builder, Error, Session};

/// What became of a script.
pub struct Ran {
    pub printed: String,
    pub result: Result<(), Error>,
}

/// Runs a text under a name in a session of its own.
pub fn run(builder: Builder, name: &str, text: &str) -> Ran {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let builder = builder.output(move |line| {
        let mut text = sink.lock().expect("no test panics while printing");
        text.push_str(line);
        text.push('\n');
    });
    let result = builder.build().and_then(|mut session| {
        // As the program does.
        session.runs_one_script();
        session.run_str(name, text)
    });
    let printed = printed.lock().expect("no test panics while printing").clone();
    Ran { printed, result }
}

pub fn builder() -> Builder {
    Session::builder().all_files()
}

/// The repository.
pub fn root() -> PathBuf {
    std::env::var_os("TSCRIPT_ROOT").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The program.
pub fn program() -> PathBuf {
    std::env::var_os("TSCRIPT_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_tscript").into(), PathBuf::from)
}

/// What a process of several does: the part that a variable names, `3/16`, and of how many.
pub fn part(variable: &str) -> Option<(usize, usize)> {
    let reported = std::env::var(variable).ok()?;
    let (first, of) = reported.split_once('/').expect("a part is written 3/16");
    Some((first.parse().expect("a number"), of.parse().expect("a number")))
}

/// A folder of `tests/`.
pub fn folder(name: &str) -> PathBuf {
    root().join("tests").join(name)
}

/// Whether GPUs are real ones.
pub fn on_real_gpus() -> bool {
    std::env::var("TSCRIPT_TEST_DEVICES").is_ok_and(|devices| devices.split(',').any(|device| device == "cuda"))
}

/// GPUs of this machine.
pub fn real_gpus() -> usize {
    let counted = builder().build().and_then(|mut session| session.eval::<i64>("cuda::device_count()"));
    counted.map_or(0, |count| count as usize)
}

/// With simulated GPUs, or the real ones; none when there are too few of those.
pub fn with_gpus(builder: Builder, expected: usize) -> Option<Builder> {
    if !on_real_gpus() {
        return Some(builder.simulate_gpus(expected));
    }
    let found = real_gpus();
    if found < expected {
        eprintln!("left out: it needs {expected} GPUs, and there are {found}");
        return None;
    }
    Some(builder)
}

/// The scripts of a folder of `tests/`, in order.
pub fn scripts(name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(name)).expect("the folder is there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rhai"));
    found.sort();
    assert!(!found.is_empty(), "no scripts in tests/{name}");
    found
}

pub fn file_name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Compares with a file beside the script, or writes it when `TSCRIPT_BLESS=1`. The message when they differ.
pub fn compare(path: &Path, got: &str) -> Option<String> {
    if std::env::var("TSCRIPT_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(path, got).expect("the expected text can be written");
        return None;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    (expected != got).then(|| format!("{} differs. Expected:\n{expected}\nGot:\n{got}", path.display()))
}

/// Fails with all messages together.
pub fn none(problems: Vec<String>) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
