//! The models of `tests/bench/models` in their small form give what PyTorch gives, on the CPU and on a GPU.
//! `tests/bench/models.py --small --modes eager --write tests/fixtures/training/models.json` makes the fixture.

use super::scripts::{builder, folder, none, on_real_gpus, scripts, with_gpus};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tscript::Builder;

/// What a script printed.
fn printed(builder: Builder, path: &Path) -> Result<String, tscript::Error> {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let builder = builder.arguments(["--small"]).output(move |line| {
        let mut text = sink.lock().expect("no test panics while printing");
        *text += &format!("{line}\n");
    });
    builder.build()?.run_file(path)?;
    let text = printed.lock().expect("no test panics while printing").clone();
    Ok(text)
}

/// Steps of mixed precision differ in their last digits, and more with each step.
fn is_close(got: &Value, want: &Value) -> bool {
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().into_iter().flatten().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
    };
    let (got, want) = (numbers(got), numbers(want));
    let allowed = |step: usize, want: f64| 0.02 * want.abs().max(0.1) * (1 + step) as f64;
    let mut pairs = got.iter().zip(&want).enumerate();
    !want.is_empty() && got.len() == want.len() && pairs.all(|(i, (a, b))| (a - b).abs() <= allowed(i, *b))
}

fn compare(builder: impl Fn() -> Builder) {
    let text = std::fs::read_to_string(folder("fixtures/training").join("models.json")).expect("the fixture");
    let want: Value = serde_json::from_str(&text).expect("JSON");
    let (mut problems, mut count) = (Vec::new(), 0);
    for path in scripts("bench/models").iter().filter(|path| !path.ends_with("common.rhai")) {
        match printed(builder(), path) {
            Err(error) => problems.push(format!("{}: {error:#}", path.display())),
            Ok(text) => {
                for line in text.lines() {
                    let case: Value = serde_json::from_str(line).expect("a line of JSON");
                    let name = case["case"].as_str().expect("a name");
                    count += 1;
                    if !is_close(&case["check"], &want[name]) {
                        problems.push(format!("{name} gives {}, and PyTorch {}", case["check"], want[name]));
                    }
                }
            }
        }
    }
    none(problems);
    assert_eq!(count, want.as_object().map_or(0, |want| want.len()), "cases of the models");
}

#[test]
fn models_give_what_pytorch_gives() {
    compare(builder);
}

#[test]
fn models_on_a_gpu_give_what_pytorch_gives() {
    if with_gpus(builder(), 1).is_none() {
        return;
    }
    // A real GPU, where it is asked for, is the device that scripts begin on.
    compare(|| match on_real_gpus() {
        true => builder().device("cuda"),
        false => builder().simulate_gpus(1).device("cuda"),
    });
}
