//! Runs scripts for the other tests and collects what they print.

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
    let result = builder.build().and_then(|mut session| session.run_str(name, text));
    let printed = printed.lock().expect("no test panics while printing").clone();
    Ran { printed, result }
}

pub fn builder() -> Builder {
    Session::builder()
}

/// A folder of `tests/`.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
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
    let wanted = std::fs::read_to_string(path).unwrap_or_default();
    (wanted != got).then(|| format!("{} differs. Expected:\n{wanted}\nGot:\n{got}", path.display()))
}

/// Fails with all messages together.
pub fn none(problems: Vec<String>) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
