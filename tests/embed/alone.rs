//! Tests whose body runs in a process of its own.

use std::process::Command;

/// Runs the body of the test `name` in a process of its own, where nobody else takes memory or prints; under `ulimit -v`
/// where megabytes are given. What it wrote to the error output.
pub fn alone(name: &str, megabytes: Option<usize>, body: impl FnOnce()) -> String {
    const ALONE: &str = "TSCRIPT_TEST_ALONE";
    if std::env::var(ALONE).is_ok_and(|expected| expected == name) {
        body();
        return String::new();
    }
    let program = std::env::current_exe().expect("a program");
    let limit = megabytes.map_or(String::new(), |megabytes| format!("ulimit -v {}; ", megabytes << 10));
    let line = format!("{limit}exec '{}' --exact {name} --test-threads=1 --nocapture", program.display());
    let mut child = Command::new("sh");
    let out = child.args(["-c", &line]).env(ALONE, name).env("RUST_BACKTRACE", "1").output().expect("a shell");
    let reported = String::from_utf8_lossy(&out.stderr).into_owned();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("1 passed"), "{}: {said}\n{reported}", out.status);
    reported
}
