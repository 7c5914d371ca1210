//! Strings, characters, regular expressions, and numbers as text, against CPython. The cases and their generator:
//! `tests/fixtures/text.py`. `TSCRIPT_TEXT_FILE` names another file of them.

use super::scripts::{builder, folder, none};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// The lines of a file of JSON.
fn lines(path: std::path::PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the cases");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What expressions give as JSON, or `["error", code]`; a hundred in one script.
fn answers(expressions: &[String]) -> Vec<Value> {
    const SHOWN: &str = "fn shown(m) { if type_of(m) == \"()\" { () } else { [m.group(), m.span(), m.groups()] } }\n";
    let mut answers = Vec::new();
    for some in expressions.chunks(100) {
        let mut text = SHOWN.to_string();
        for expression in some {
            writeln!(
                text,
                "try {{ print(to_json({expression})) }} catch (e) {{ print(to_json([\"error\", e.code])) }}"
            )
            .expect("a string takes text");
        }
        let printed = Arc::new(Mutex::new(Vec::new()));
        let sink = printed.clone();
        let builder = builder().output(move |line| sink.lock().expect("no panic").push(line.to_string()));
        let ended = builder.build().expect("a session starts").run_str("text", &text);
        ended.unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
        let printed = printed.lock().expect("no panic");
        assert_eq!(printed.len(), some.len(), "{text}");
        answers.extend(printed.iter().map(|line| serde_json::from_str(line).expect("JSON")));
    }
    answers
}

fn same(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| same(got, expected))
        }
        (Value::Number(got), Value::Number(expected)) => got.as_f64() == expected.as_f64(),
        _ => got == expected,
    }
}

#[test]
fn strings_and_patterns_give_what_cpython_gives() {
    let path = std::env::var_os("TSCRIPT_TEXT_FILE").map_or_else(|| folder("fixtures/text/cases.jsonl"), Into::into);
    let cases = lines(path);
    assert!(cases.len() > 1000, "only {} cases", cases.len());
    let expressions: Vec<String> = cases.iter().map(|case| case[0].as_str().expect("code").to_string()).collect();
    let problem = |(case, got): (&Value, Value)| {
        let fails = got[0] == "error" && got[1].as_str().is_some_and(|code| code.starts_with("E02"));
        let agrees = if case[2] == "error" { fails } else { same(&got, &case[1]) };
        let expected = if case[2] == "error" { &case[2] } else { &case[1] };
        (!agrees).then(|| format!("{}: {got}; in CPython {expected}", case[0].as_str().unwrap_or("")))
    };
    none(cases.iter().zip(answers(&expressions)).filter_map(problem).collect());
}

#[test]
fn characters_are_what_cpython_says() {
    let methods = [
        "isalpha",
        "isalnum",
        "isdigit",
        "isdecimal",
        "isnumeric",
        "isspace",
        "isupper",
        "islower",
        "istitle",
        "isprintable",
        "isidentifier",
    ];
    // What CPython 3.11 has from Unicode 14, and later versions otherwise.
    let changed = [0x295, 0x10fc, 0xa7f2, 0xa7f3, 0xa7f4, 0xab69, 0x1171e];
    // The ends of each run, and one between them. Code points without a character got one since then.
    let runs = lines(folder("fixtures/text/characters.jsonl"));
    let mut points: Vec<(u64, &Value)> = Vec::new();
    for run in runs.iter().filter(|run| run[2] != "Cn") {
        let (first, last) = (run[0].as_u64().expect("a number"), run[1].as_u64().expect("a number"));
        points.extend([first, first.midpoint(last), last].map(|point| (point, run)));
    }
    points.retain(|(point, _)| !changed.contains(point));
    points.dedup_by_key(|(point, _)| *point);
    let ask = |&(point, _): &(u64, &Value)| {
        let answers: Vec<String> = methods.iter().map(|name| format!("c.{name}()")).collect();
        let more = "(\"a\" + c).isidentifier(), unicodedata::category(c)";
        format!("{{ let c = chr({point}); [{}, {more}] }}", answers.join(", "))
    };
    let got = answers(&points.iter().map(ask).collect::<Vec<_>>());
    let problem = |((point, run), got): ((u64, &Value), Value)| {
        let mut expected: Vec<Value> = run[3].as_str().expect("answers").chars().map(|c| json!(c == '1')).collect();
        expected.push(run[2].clone());
        (got != Value::Array(expected.clone())).then(|| format!("U+{point:04X}: {got}; in CPython {expected:?}"))
    };
    none(points.into_iter().zip(got).filter_map(problem).collect());
}

#[test]
fn cases_and_normal_forms_are_those_of_cpython() {
    let changed = lines(folder("fixtures/text/changed.jsonl"));
    let ask = |line: &Value| {
        let c = format!("chr({})", line[0]);
        match line[1].as_str() {
            Some("cases") => format!("{{ let c = {c}; [c.upper(), c.lower(), c.title(), c.casefold()] }}"),
            _ => format!("[\"NFC\", \"NFD\", \"NFKC\", \"NFKD\"].map(|form| unicodedata::normalize(form, {c}))"),
        }
    };
    let got = answers(&changed.iter().map(ask).collect::<Vec<_>>());
    let problem = |(line, got): (&Value, Value)| {
        let expected = &line.as_array().expect("a list")[2..];
        (got.as_array().is_none_or(|got| got != expected)).then(|| format!("{line}: {got}"))
    };
    none(changed.iter().zip(got).filter_map(problem).collect());
}
