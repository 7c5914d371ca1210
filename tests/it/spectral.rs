//! Spectra, windows and frequencies against PyTorch. The cases and their generator: `tests/fixtures/spectral.py`.

use super::scripts::{builder, folder, none, run};
use serde_json::Value;
use std::fmt::Write;

/// A line that prints a tensor as JSON, numbers with all digits.
fn shown(name: &str, expected: &Value) -> String {
    let is_complex = expected["dtype"].as_str().is_some_and(|dtype| dtype.starts_with('c'));
    let parts = if is_complex { format!("view_as_real({name})") } else { name.to_string() };
    format!("print(to_json([`${{{name}.dtype}}`, {name}.shape, {parts}.flatten().to_array()]));\n")
}

fn script(case: &Value) -> String {
    let (setup, code) = (case["setup"].as_str().expect("a text"), case["code"].as_str().expect("a text"));
    let mut text = format!("{setup}\n");
    let differentiated = case.get("grad").is_some();
    if differentiated {
        text += "x.requires_grad_();\n";
        text += "fn parts(t) { if t.is_complex() { view_as_real(t) } else { t } }\n";
        text += "fn squares(t, f) { let p = parts(t); let w = f.call(arange(p.numel(), #{dtype: p.dtype})).reshape(p.shape); \
                 (p * p * w).sum() }\n";
    }
    let _ = write!(text, "let y = {code};\n{}", shown("y", &case["result"]));
    if differentiated {
        text += "let g = grad(squares(y, |a| cos(a)), [x], #{create_graph: true})[0];\n";
        text += "let s = grad(squares(g, |a| sin(a)), [x])[0];\n";
        text += &shown("g", &case["grad"]);
        text += &shown("s", &case["second"]);
    }
    text
}

/// What differs between a printed tensor and the expected one.
fn difference(line: &str, expected: &Value) -> Option<String> {
    let got: Value = serde_json::from_str(line).ok()?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let numbers = |value: &Value| list(value).iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect::<Vec<f64>>();
    let (a, b) = (numbers(&got[2]), numbers(&expected["data"]));
    let size = b.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    let single = matches!(expected["dtype"].as_str(), Some("f32" | "c64"));
    let bound = size * if single { 2e-5 } else { 1e-11 };
    let same = got[0] == expected["dtype"] && got[1] == expected["shape"] && a.len() == b.len();
    // Not: `>`, which NaN passes.
    let near = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= bound);
    (!same || !near).then(|| format!("gives {line}\nin PyTorch {expected}"))
}

fn check(file: &str, least: usize) {
    let text = std::fs::read_to_string(folder("fixtures/spectral").join(file)).expect("the cases");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(cases.len() >= least, "only {} cases", cases.len());
    let mut problems = Vec::new();
    for case in &cases {
        let ran = run(builder(), "spectral", &script(case));
        let code = &case["code"];
        if let Err(error) = ran.result {
            problems.push(format!("{code}: {error}"));
            continue;
        }
        let wanted = ["result", "grad", "second"].into_iter().filter_map(|name| Some((name, case.get(name)?)));
        for ((name, wanted), line) in wanted.zip(ran.printed.lines()) {
            problems.extend(difference(line, wanted).map(|found| format!("{code}, {name}: {found}")));
        }
    }
    none(problems);
}

#[test]
fn windows_and_frequencies_are_pytorchs() {
    check("frequencies.jsonl", 200);
}

#[test]
fn transforms_and_their_gradients_are_pytorchs() {
    check("transforms.jsonl", 400);
}
