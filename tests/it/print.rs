//! Printing against PyTorch's own output, case by case: `tests/fixtures/print.py` made the expectations.

use serde_json::Value as Json;
use tscript::internals::base::dtype::{DType, Scalar};
use tscript::internals::base::print::{PrintOptions, Printed, format};

#[test]
fn prints_as_pytorch() {
    let cases: Vec<Json> = serde_json::from_str(include_str!("../fixtures/print.json")).unwrap();
    assert!(cases.len() > 500);
    for (number, case) in cases.iter().enumerate() {
        let shape: Vec<usize> = serde_json::from_value(case["shape"].clone()).unwrap();
        let dtype = DType::parse(case["dtype"].as_str().unwrap()).unwrap();
        let value = values(case, dtype);
        let printed = Printed {
            requires_grad: case["requires_grad"] == true,
            grad_fn: case["grad_fn"].as_str(),
            ..Printed::new(&shape, dtype)
        };
        let element = |index: &[usize]| value(index.iter().zip(&shape).fold(0, |linear, (i, size)| linear * size + i));
        let text = format(&printed, &options(&case["options"]), element, &mut |_| Ok::<(), ()>(())).unwrap();
        assert_eq!(text, case["text"].as_str().unwrap(), "case {number}: {dtype} {shape:?} {}", case["options"]);
    }
}

/// A float is the same text wherever it becomes one.
#[test]
fn floats_are_written_as_by_python() {
    for (x, text) in [("1e-9", "1e-09"), ("1e22", "1e+22"), ("0.1", "0.1"), ("2.0", "2.0"), ("-1e-5", "-1e-05")] {
        let script = format!(
            "let x = {x}; print(x); print(x, 1); print([x]); print(`${{x}}`); print(\"\" + x); print(x + \"\"); print(str(x)); print(x.to_string());"
        );
        let printed = super::scripts::run(super::scripts::builder(), "floats", &script).printed;
        let want = [text, &format!("{text} 1"), &format!("[{text}]"), text, text, text, text, text].join("\n");
        assert_eq!(printed.trim_end(), want);
    }
}

/// Element by linear index: listed, or `(index % modulus) * scale + offset`.
fn values(case: &Json, dtype: DType) -> Box<dyn Fn(usize) -> Scalar + '_> {
    let scalar = move |x: f64| match dtype {
        DType::Bool => Scalar::Bool(x != 0.0),
        dtype if dtype.is_float() => Scalar::Float(x),
        _ => Scalar::Int(x as i64),
    };
    if let Some(rule) = case["rule"].as_array() {
        let number = |i: usize| rule[i].as_f64().expect("a number");
        let (modulus, scale, offset) = (number(0) as usize, number(1), number(2));
        return Box::new(move |i| scalar((i % modulus) as f64 * scale + offset));
    }
    let data = case["data"].as_array().expect("a list");
    Box::new(move |i| {
        let text = data[i].as_str().expect("a text");
        match dtype.is_int() {
            true => Scalar::Int(text.parse().expect("a number")),
            false => scalar(text.parse().expect("a number")),
        }
    })
}

fn options(json: &Json) -> PrintOptions {
    let plain = PrintOptions::default();
    let number = |key: &str, default: usize| json[key].as_u64().map_or(default, |n| n as usize);
    PrintOptions {
        precision: number("precision", plain.precision),
        threshold: number("threshold", plain.threshold),
        edgeitems: number("edgeitems", plain.edgeitems),
        linewidth: number("linewidth", plain.linewidth),
        sci_mode: json["sci_mode"].as_bool(),
    }
}
