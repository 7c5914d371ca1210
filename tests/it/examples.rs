//! The examples of every row of the op table run and print what the row says, or fail with the code it says.

use super::scripts::none;
use tscript::{Dynamic, Session};

#[test]
fn examples_of_rows_run() {
    let mut problems = Vec::new();
    let mut count = 0;
    for op in tscript::op::table::all() {
        for example in op.examples {
            count += 1;
            let got = answer(example.code);
            if got.trim_end() != example.result.trim_end() {
                problems.push(format!("{}: `{}` gives\n  {got}\nnot\n  {}", op.name, example.code, example.result));
            }
        }
    }
    assert!(count > 100, "only {count} examples");
    none(problems);
}

/// What `print` would show of the last value, or the code of the error.
fn answer(code: &str) -> String {
    let mut session = Session::builder().build().expect("a session starts");
    match session.eval::<Dynamic>(code).and_then(|value| session.show(&value)) {
        Ok(text) => text,
        Err(error) => error.code(),
    }
}
