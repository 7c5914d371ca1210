//! Random programs of views, in-place changes and gradients against PyTorch, in every way to run them: values,
//! gradients, `requires_grad`, `is_leaf`, `_version`, and at which statement which error arises. The programs and
//! their generator: `tests/fixtures/views.py`. `TSCRIPT_VIEWS_FILE` names another file of them.

use super::scripts::{builder, folder, none, on_real_gpus, with_gpus};
use serde_json::Value;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use tscript::{Builder, Session};

fn programs() -> Vec<Value> {
    let path = std::env::var_os("TSCRIPT_VIEWS_FILE").map_or_else(|| folder("fixtures/views/views.jsonl"), Into::into);
    let text = std::fs::read_to_string(path).expect("the programs");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The statements, each with a mark after it, and a line for each variable that is looked at.
fn script(program: &Value) -> String {
    let mut text = String::new();
    for statement in program["p"].as_array().expect("statements") {
        writeln!(text, "{}\nprint(\"done\");", statement.as_str().expect("a text")).expect("a string takes text");
    }
    for look in program["v"].as_array().into_iter().flatten() {
        let x = look[0].as_str().expect("a name");
        writeln!(
            text,
            "{{ let g = {x}.grad; print([{x}.requires_grad, {x}.is_leaf, {x}._version, {x}.tolist(), \
             if type_of(g) == \"()\" {{ () }} else {{ g.tolist() }}]); }}"
        )
        .expect("a string takes text");
    }
    text
}

/// Equal numbers, to the digits that the file keeps; an unknown answer is equal to all.
fn alike(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| alike(got, expected))
        }
        (Value::Number(got), Value::Number(expected)) => {
            let (got, expected) = (got.as_f64().unwrap_or(f64::NAN), expected.as_f64().unwrap_or(f64::NAN));
            (got - expected).abs() <= 1e-8 * expected.abs().max(1.0)
        }
        _ => got == expected,
    }
}

/// What is wrong with one variable's line.
fn look(line: Option<&str>, expected: &Value) -> Option<String> {
    let got: Value = serde_json::from_str(&line.unwrap_or("").replace("()", "null")).unwrap_or(Value::Null);
    let parts = ["requires_grad", "is_leaf", "_version", "values", "gradient"];
    let wrong = parts.iter().enumerate().find(|&(at, part)| {
        let unknown = *part == "is_leaf" && expected[at + 1].is_null();
        !unknown && !alike(&got[at], &expected[at + 1])
    });
    wrong.map(|(at, part)| format!("{}: {part} is {}, in PyTorch {}", expected[0], got[at], expected[at + 1]))
}

fn check(session: &mut Session, printed: &Mutex<String>, program: &Value) -> Option<String> {
    printed.lock().expect("no test panics while printing").clear();
    let ended = session.run_str("views", &script(program));
    let printed = printed.lock().expect("no test panics while printing").clone();
    let count = program["p"].as_array().expect("statements").len();
    let done = printed.lines().filter(|line| *line == "done").count();
    match (ended, program["e"].as_str()) {
        (Ok(()), None) => {
            let mut lines = printed.lines().skip(done);
            program["v"].as_array().expect("variables").iter().find_map(|expected| look(lines.next(), expected))
        }
        (Ok(()), Some(code)) => Some(format!("the last statement is no {code}")),
        (Err(error), Some(code)) if done + 1 == count && error.code() == code => None,
        (Err(error), code) => Some(format!("statement {}: {error}; in PyTorch {code:?}", done + 1)),
    }
}

fn agrees(way: &str, builder: impl Fn() -> Builder) {
    let programs = programs();
    assert!(programs.len() > 200, "only {} programs", programs.len());
    let printed = Arc::new(Mutex::new(String::new()));
    let build = |printed: &Arc<Mutex<String>>| {
        let sink = printed.clone();
        let builder = builder().output(move |line| {
            let mut text = sink.lock().expect("no test panics while printing");
            text.push_str(line);
            text.push('\n');
        });
        builder.build().expect("a session starts")
    };
    let mut session = None;
    let mut problems = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        // A session has room for so many lines of scripts.
        if at % 200 == 0 {
            session = Some(build(&printed));
        }
        let session = session.as_mut().expect("just made");
        if let Some(problem) = check(session, &printed, program) {
            let text: Vec<&str> =
                program["p"].as_array().expect("statements").iter().filter_map(Value::as_str).collect();
            problems.push(format!("program {}, {way}: {problem}\n    {}", at + 1, text.join("\n    ")));
        }
    }
    none(problems);
}

#[test]
fn random_programs_of_views_give_what_pytorch_gives() {
    agrees("by default", builder);
}

#[test]
fn and_blocking() {
    agrees("blocking", || builder().blocking(true));
}

#[test]
fn and_with_a_window_of_one() {
    agrees("a window of one", || builder().window(1));
}

#[test]
fn and_on_a_gpu() {
    agrees("a GPU", || {
        let gpu = with_gpus(builder(), 1).expect("a GPU").device("cuda");
        if on_real_gpus() { gpu } else { gpu.simulate_seed(1) }
    });
}
