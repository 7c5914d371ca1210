//! Function transforms against PyTorch's: `tests/fixtures/func/func.py` has the same functions in both languages.

use super::opinfo::floats;
use super::opinfo_host::{Engine, Host};
use super::scripts::root;
use serde_json::Value;

/// The numbers that both sides start from.
const NUM: &str = r#"set_default_dtype("f64");
let num = |seed, shape| { let n = 1; for size in shape { n *= size; } (arange(n) * 0.7 + seed).sin().reshape(shape) };
"#;

fn check(host: &mut Engine, case: &Value) -> Result<(), String> {
    let expected = case["out"].as_array().expect("results");
    let names: Vec<String> = (0..expected.len()).map(|at| format!("r{at}")).collect();
    let read: String = (0..expected.len()).map(|at| format!("let r{at} = out[{at}].double();\n")).collect();
    let text = format!("{NUM}{}\n{read}", case["text"].as_str().expect("a text"));
    let found = host.run(&[], &text, &names)?;
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).expect("a shape");
        if found.shape != shape {
            return Err(format!("result {at} has shape {:?}, expected {shape:?}", found.shape));
        }
        let values: Vec<f64> = serde_json::from_value(expected["values"].clone()).expect("values");
        for (got, want) in floats(found).iter().zip(&values) {
            if (got - want).abs() > 1e-9 * (1.0 + want.abs()) {
                return Err(format!("result {at} has {got}, expected {want}"));
            }
        }
    }
    Ok(())
}

#[test]
fn transforms_answer_as_pytorch_does() {
    let text = std::fs::read_to_string(root().join("tests/fixtures/func/func.json")).expect("the fixtures");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("valid fixtures");
    assert!(cases.len() > 40);
    let mut problems = Vec::new();
    for case in &cases {
        if let Err(wrong) = check(&mut Engine::new(), case) {
            problems.push(format!("{}: {wrong}", case["name"]));
        }
    }
    assert!(problems.is_empty(), "{} of {} cases:\n{}", problems.len(), cases.len(), problems.join("\n"));
}

/// A script that must fail with a code, and a part of the message.
fn fails(text: &str, code: &str, part: &str) {
    let message = Engine::new().run(&[], text, &[]).expect_err(text);
    assert!(message.contains(code) && message.contains(part), "{text}\n{message}");
}

#[test]
fn what_does_not_fit_a_transform_is_told() {
    fails("func::grad(|x| x * 2)(ones([3]))", "E0704", "shape [3]");
    fails("func::grad(|x| 3)(ones([3]))", "E0711", "must give a tensor");
    fails("func::grad(|x| x.sum())(3.0)", "E0711", "and not hold a float");
    fails("func::grad(|x| x.sum())(tensor([1, 2]))", "E0202", "floating-point");
    fails("func::grad(|x| x.sum(), 2)(ones([3]))", "E0206", "argument 2");
    fails("func::grad(|x| x.sum(), [0, 0])(ones([3]))", "E0206", "twice");
    fails("func::grad(|x| x.sum(), 0, true)(ones([3]))", "E0711", "has_aux");
    fails("func::grad(3)", "E0", "cannot be called");
    fails("let [y, pull] = func::vjp(|x| x * 2, ones([3])); pull(ones([2]))", "E0704", "cotangent");
    fails("let [y, pull] = func::vjp(|x| x * 2, ones([3])); pull([ones([3])])", "E0711", "cotangents");
    fails("func::jvp(|x| x * 2, [ones([3])], [ones([2])])", "E0704", "tangent");
    fails("func::jvp(|x| x * 2, [ones([3])], [])", "E0711", "0 tangents");
    fails("func::jvp(|x| x * 2, ones([3]), [ones([3])])", "E0204", "`primals` is an array");
    fails("func::jvp(|x| ones([2]), [ones([3])], [ones([3])], #{strict: true})", "E0703", "result 0");
    fails("func::vmap(|a, b| a + b)(ones([3]), ones([4]))", "E0711", "3 and 4 samples");
    fails("func::vmap(|a| a, ())(ones([3]))", "E0711", "no argument has samples");
    fails("func::vmap(|a| a)(ones([]))", "E0711", "without dimensions");
    fails("func::vmap(|a| a, [0, 0])(ones([3]))", "E0711", "`in_dims`");
    fails("func::vmap(|a| a, #{out_dims: [0, 0]})(ones([3]))", "E0711", "`out_dims`");
    fails("func::vmap(|a| a, #{out_dims: ()})(ones([3]))", "E0711", "has samples");
    fails("func::vmap(|a| 3)(ones([3]))", "E0711", "what the function gives");
    fails("func::vmap(|a| a, 3)(ones([3]))", "E0209", "3");
    fails("func::vmap(|a| a, #{randomness: \"any\"})", "E02", "randomness");
    fails("func::vmap(|a| a, #{chunk_size: 0})", "E0206", "chunk_size");
    fails("func::vmap(|a| a * rand([2]))(ones([3]))", "E0710", "random");
    fails("func::vmap(|a| { if a > 0 { a } else { -a } })(ones([3]))", "E0710", "none that the script could read");
    fails("func::vmap(|a| a.nonzero())(tensor([[1, 0], [1, 1]]))", "E0710", "not the same for all samples");
    fails("let z = zeros([]); func::vmap(|a| { z.add_(a); a })(ones([3]))", "E0710", "all samples share");
    fails("let c = cell(()); func::vmap(|a| { c.set(a); a })(ones([3])); c.get() + 1", "E0710", "has ended");
    fails("func::vmap(|a| { let b = a * 1; b.requires_grad_(); b })(ones([3]))", "E0710", "requires_grad_");
    fails(
        "let w = ones([3], #{requires_grad: true}); func::vmap(|a| { (w * a).sum().backward(); a })(ones([3]))",
        "E0710",
        "backward",
    );
    fails("func::vmap(|a| { let b = a * 1; b.t_(); b })(ones([3, 2, 2]))", "E0710", "layout");
    // The dims of the samples are none of a sample's own.
    for call in [
        "inv(a)",
        "det(a)",
        "lu_factor(a)",
        "cholesky_ex(a)",
        "svd(a)",
        "tril(a)",
        "inv(a.to(\"c64\"))",
        "pad(a, [1, 1, 1, 1])",
    ] {
        fails(&format!("func::vmap(|a| {call})(eye(3))"), "E02", " 2 dimensions");
    }
    fails("func::vmap(|a| view_as_complex(a))(ones([2]))", "E0201", "size 2");
    fails("func::vmap(|a| fft::irfft2(a, [4], [0]))(ones([2]))", "E0209", "0-dimensional");
    fails("func::vmap(|a| { print(a); a })(ones([3]))", "E0710", "none that the script could read");
    fails("vmap(|a| a)", "E0103", "vmap");
    let net = "import \"nn\" as nn; let m = nn::linear(2, 1);";
    fails(&format!("{net} func::functional_call(m, #{{other: ones([1])}}, [ones([2])])"), "E0711", "no tensor `other`");
    fails(
        &format!("{net} func::functional_call(m, #{{bias: ones([1])}}, [ones([2])], #{{strict: true}})"),
        "E0711",
        "`weight`",
    );
    fails(
        &format!("{net} func::functional_call(m, [#{{bias: ones([1])}}, #{{bias: ones([1])}}], [ones([2])])"),
        "E0711",
        "two of the maps",
    );
    fails(&format!("{net} func::stack_module_state([m, nn::linear(3, 1)])"), "E0711", "one kind");
}

#[test]
fn a_module_is_as_before_after_a_functional_call_that_fails() {
    let text = "import \"nn\" as nn; let m = nn::linear(2, 1); let w = m.weight;
        try { func::functional_call(m, #{weight: ones([1, 3])}, [ones([2])]); } catch {}
        let same = equal(m.weight, w);";
    let found = Engine::new().run(&[], text, &["same".to_string()]).expect("it runs");
    assert_eq!(found[0].bytes, [1]);
}

#[test]
fn random_numbers_are_the_same_or_different() {
    let text = "let draw = |how| func::vmap(|x| x + rand([4]), #{randomness: how})(zeros([3, 4]));
        let [a, b] = [draw(\"same\"), draw(\"different\")];
        let same = equal(a[0], a[1]) && equal(a[1], a[2]); let different = !equal(b[0], b[1]) && !equal(b[1], b[2]);
        let d = func::vmap(|x| dropout(x, 0.5), #{randomness: \"same\"})(ones([3, 64]));
        let e = func::vmap(|x| dropout(x, 0.5), #{randomness: \"different\"})(ones([3, 64]));
        let dropped = equal(d[0], d[1]) && !equal(e[0], e[1]);";
    let names = ["same", "different", "dropped"].map(str::to_string);
    let found = Engine::new().run(&[], text, &names).expect("it runs");
    assert!(found.iter().all(|data| data.bytes == [1]), "{found:?}");
}
