//! Random programs against PyTorch's answers in `tests/fixtures/programs/answers.json`, which `tests/fixtures/programs.py`
//! makes with the texts that `TSCRIPT_BLESS=1` writes into `programs.json`. `TSCRIPT_PROGRAMS` names another folder, for
//! other programs: `TSCRIPT_FUZZ_COUNT` of them, from `TSCRIPT_FUZZ_SEED` on.
//!
//! A statement that fails here must fail there, with nothing done; variables and gradients are compared afterwards.

use super::modes::Mode;
use super::program::{FLOATS, Kind, PARAMETERS, Program, Statement, TYPED};
use crate::scripts::{folder, none};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tscript::{Session, Tensor};

/// Programs that are kept.
const KEPT: u64 = 400;

fn texts() -> Value {
    let one = |seed| {
        let program = Program::of(Kind::Torch, seed);
        let statements: Vec<String> = program.statements.into_iter().map(|statement| statement.text).collect();
        json!({"optimizer": program.optimizer, "statements": statements})
    };
    let first = super::setting("TSCRIPT_FUZZ_SEED").unwrap_or(1);
    (first..first + super::setting("TSCRIPT_FUZZ_COUNT").unwrap_or(KEPT)).map(one).collect()
}

fn place(name: &str) -> std::path::PathBuf {
    std::env::var_os("TSCRIPT_PROGRAMS").map_or_else(|| folder("fixtures").join("programs"), Into::into).join(name)
}

fn read(name: &str) -> Vec<Value> {
    let path = place(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    value.as_array().expect("a list").clone()
}

/// An element; `"nan"` and `"inf"` are texts, which JSON has no numbers for.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().and_then(|word| word.parse().ok()).expect("a number"))
}

/// Why a tensor is not the one that is wanted: `[shape, elements]`, or null for none.
fn unlike(expected: &Value, session: &mut Session, text: &str) -> Option<String> {
    let is_none = session.eval::<bool>(&format!("{text} == ()")).unwrap_or(false);
    if expected.is_null() || is_none {
        return (expected.is_null() != is_none).then(|| format!("{text}: wanted {expected}, it is none: {is_none}"));
    }
    let read = session.eval::<Tensor>(&format!("({text}).detach().double()"));
    let (shape, elements) = match read.and_then(|tensor| Ok((tensor.shape(), tensor.to_vec::<f64>()?))) {
        Ok(read) => read,
        Err(error) => return Some(format!("{text}: wanted {expected}, found {} {}", error.code(), error.message())),
    };
    let dtype = session.eval::<String>(&format!("`${{({text}).dtype}}`")).unwrap_or_default();
    if expected[2] != dtype.as_str() {
        return Some(format!("{text}: wanted {expected}, it is {dtype}"));
    }
    let listed = |at: usize| expected[at].as_array().expect("a list").iter();
    // What is rounded in the middle of a sum or a function differs.
    let near_to = match dtype.as_str() {
        "f16" | "bf16" => 2e-2,
        "f32" => 1e-5,
        _ => 1e-7,
    };
    let near = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= near_to * (b.abs() + 1e-2);
    let same_shape = listed(0).map(|size| size.as_u64().expect("a size") as usize).eq(shape.iter().copied());
    let same = same_shape && listed(1).zip(&elements).all(|(a, &b)| near(number(a), b));
    (!same).then(|| format!("{text}: wanted {expected}, found {shape:?} {elements:?}"))
}

/// A session that runs several programs; their variables hide those of the programs before.
struct Judge {
    session: Session,
    printed: Arc<Mutex<Vec<String>>>,
    uses: usize,
}

/// Bound: programs that one session runs; it keeps the lines and variables of each.
const USES: usize = 25;

impl Judge {
    fn new() -> Judge {
        let printed: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = printed.clone();
        let builder = Mode::BASE.builder().output(move |line| sink.lock().expect("no panic").push(line.to_string()));
        Judge { session: builder.build().expect("a session starts"), printed, uses: 0 }
    }

    fn judge(&mut self, program: &Program, answer: &Value) -> Option<String> {
        self.uses += 1;
        if self.uses > USES {
            *self = Judge::new();
        }
        self.printed.lock().expect("no panic").clear();
        // The block is left out, so that the variables stay.
        let text = program.text(Mode::BASE);
        let text = text.trim_end().trim_start_matches('{').trim_end_matches('}');
        if let Err(error) = self.session.run_str("random", text) {
            return Some(format!("it ends with {}: {}", error.code(), error.message()));
        }
        let printed = self.printed.lock().expect("no panic").clone();
        for at in 0..program.statements.len() {
            let ours = printed.iter().find(|line| line.starts_with(&format!("{at}: ")));
            let theirs = answer["failed"].as_array().expect("a list").iter().find(|one| one[0] == at);
            match (theirs, ours) {
                (None, Some(line)) => return Some(format!("statement {at} fails here only: {line}")),
                // By the law what it wrote is poisoned, where PyTorch leaves it as it was; later statements see that.
                (Some(_), Some(line)) if line.contains(" E04") => return None,
                (Some(theirs), None) => return Some(format!("statement {at} fails there only: {}", theirs[1])),
                _ => {}
            }
        }
        let grads = PARAMETERS.map(|name| format!("{name}.grad"));
        let names = FLOATS.into_iter().chain(PARAMETERS).chain(TYPED);
        names.chain(grads.iter().map(String::as_str)).find_map(|name| unlike(&answer[name], &mut self.session, name))
    }
}

/// Programs whose answers differ, and why. One that agrees must leave the list.
const KNOWN: &[(usize, &str)] = &[
    (2, "PyTorch's backward writes into an expanded gradient, and refuses itself to"),
    (196, "what `grad` gives is one number over and over there, so that a write through a mask changes all"),
];

#[test]
fn random_programs_answer_as_pytorch_does() {
    if std::env::var("TSCRIPT_BLESS").is_ok_and(|value| value == "1") {
        let path = place("programs.json");
        let lines: Vec<String> = texts().as_array().into_iter().flatten().map(Value::to_string).collect();
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the texts can be written");
    }
    let mut problems = Vec::new();
    let mut judge = Judge::new();
    let (programs, answers) = (read("programs.json"), read("answers.json"));
    assert_eq!(programs.len(), answers.len(), "`tests/fixtures/programs.py` makes the answers");
    for (n, (program, answer)) in programs.iter().zip(&answers).enumerate() {
        let statement = |text: &Value| Statement {
            text: text.as_str().expect("a text").to_string(),
            caught: true,
            ..Statement::default()
        };
        let program = Program {
            kind: Kind::Torch,
            optimizer: program["optimizer"].as_str().expect("a text").to_string(),
            statements: program["statements"].as_array().expect("a list").iter().map(statement).collect(),
        };
        let why = judge.judge(&program, answer);
        let known = KNOWN.iter().find(|known| known.0 == n && std::env::var_os("TSCRIPT_PROGRAMS").is_none());
        if let Some((_, reason)) = known {
            problems.extend(why.is_none().then(|| format!("program {n} agrees, but is listed: {reason}")));
            continue;
        }
        if let Some(why) = why {
            let texts: Vec<&str> = program.statements.iter().map(|statement| statement.text.as_str()).collect();
            problems.push(format!("program {n}: {why}\n  {}\n  {}", program.optimizer, texts.join("\n  ")));
        }
    }
    none(problems);
}
