//! The benchmark of breadth (`tests/bench/breadth.py`) leaves no operation out: every name of the op table is in a case, or among
//! those that are not timed, with a reason.

use std::collections::BTreeSet;
use tscript::internals::op::row::CallForm;
use tscript::internals::op::table;

/// The words of a text, `fft::hfft` being one.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').map(|word| word.trim_matches(':')).collect()
}

#[test]
fn every_operation_is_timed_or_excused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/breadth/cases.py");
    let text = std::fs::read_to_string(path).expect("the cases of the benchmark");
    let (cases, excused) = text.split_once("NOT_TIMED = {").expect("names that are not timed");
    let (cases, excused) = (words(cases), words(excused));
    let operators = ["add", "sub", "mul", "div", "matmul"];
    let mut left_out = Vec::new();
    for op in table::all().filter(|op| op.call != CallForm::Internal) {
        let last = op.name.rsplit("::").next().unwrap_or(op.name);
        let plain = last.trim_end_matches('_');
        let timed =
            [last, plain].iter().any(|name| cases.contains(name) || cases.contains(format!("{name}_").as_str()));
        let is_private = op.name.starts_with('_');
        if !timed && !is_private && !excused.contains(op.name) && !operators.contains(&op.name) {
            left_out.push(op.name);
        }
    }
    assert!(left_out.is_empty(), "neither timed nor excused: {left_out:?}");
}
