//! The examples of every row of the op table run and print what the row says, or fail with the code it says.
//!
//! `tests/fixtures/examples_expected_failures.txt` lists those that do not yet: an unlisted failure fails the test, a
//! listed success is printed. `TSCRIPT_BLESS=1` rewrites the list.

use super::golden::without_device;
use super::scripts::{folder, none, part, with_gpus};
use tscript::{Builder, Dynamic, Session};

#[test]
fn examples_of_rows_run() {
    let mut problems = Vec::new();
    let mut count = 0;
    let path = folder("fixtures").join("examples_expected_failures.txt");
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let mut failing = String::new();
    for op in tscript::internals::op::table::all() {
        for example in op.examples {
            count += 1;
            let got = answer(Session::builder(), example.code);
            let line = format!("{}: {}", op.name, example.code.replace('\n', " "));
            let known = listed.lines().any(|known| known == line);
            if got.trim_end() == example.result.trim_end() {
                if known {
                    println!("passes now, and is listed: {line}");
                }
                continue;
            }
            failing += &line;
            failing.push('\n');
            if !known {
                problems.push(format!("{}: `{}` gives\n  {got}\nnot\n  {}", op.name, example.code, example.result));
            }
        }
    }
    assert!(count > 100, "only {count} examples");
    if std::env::var("TSCRIPT_BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, failing).expect("the list can be written");
        return;
    }
    none(problems);
}

/// The same examples where the default device is a GPU: no row may bring tensors of the CPU among its operands.
/// `TSCRIPT_EXAMPLES_PART=3/16` takes every sixteenth row from the fourth on.
#[test]
fn examples_of_rows_run_on_a_gpu() {
    let mut problems = Vec::new();
    let listed = folder("fixtures").join("examples_expected_failures.txt");
    let listed = std::fs::read_to_string(listed).unwrap_or_default();
    let part = part("TSCRIPT_EXAMPLES_PART");
    for (at, op) in tscript::internals::op::table::all().enumerate() {
        for example in op.examples.iter().filter(|_| part.is_none_or(|(first, of)| at % of == first)) {
            let line = format!("{}: {}", op.name, example.code.replace('\n', " "));
            let got = answer(with_gpus(Session::builder(), 1).expect("a GPU").device("cuda"), example.code);
            let known = listed.lines().any(|known| known == line);
            if !known && without_device(&got).trim_end() != example.result.trim_end() {
                problems.push(format!("{}: `{}` gives\n  {got}\nnot\n  {}", op.name, example.code, example.result));
            }
        }
    }
    none(problems);
}

/// What `print` would show of the last value, or the code of the error.
fn answer(builder: Builder, code: &str) -> String {
    let mut session = builder.build().expect("a session starts");
    match session.eval::<Dynamic>(code).and_then(|value| session.show(&value)) {
        Ok(text) => text,
        Err(error) => error.code(),
    }
}
