//! The modules of `std/nn` against torch.nn: names and order of state and parameters, outputs, gradients, buffers
//! afterwards, and the distribution of initial values. Fixtures and their generator: `tests/fixtures/nn`.

use super::scripts::{folder, none};
use serde_json::Value;
use std::fmt::Write;
use tscript::Session;

/// Everything is f64 on both sides; what is left is the order of sums. PyTorch itself rounds constants to f32 in the
/// gradients of these two (1/6, 1/alpha).
fn tolerance(name: &str) -> &'static str {
    if name.ends_with("_hardsigmoid") || name.ends_with("_celu") { "1e-6, 1e-7" } else { "1e-9, 1e-10" }
}

fn session() -> Session {
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let path = folder("fixtures/nn/nn.npz").display().to_string();
    session.run_str("fixtures", &format!("let f = load({path:?});")).expect("the fixtures load");
    session
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|item| item.as_str().expect("a string")).collect()
}

/// The script that runs one case and throws where it differs.
fn script(case: &Value) -> String {
    let text = |key: &str| case[key].as_str().expect("a string");
    let name = text("name");
    let close = tolerance(name);
    let mut s = String::from("import \"nn\" as nn; import \"test\" as test;\n");
    let mut line = |text: String| writeln!(s, "{text}").expect("a string takes text");
    line(format!("let m = {};", text("make")));
    line(format!("test::assert_equal(m.named_parameters().map(|p| p[0]), {});", case["parameters"]));
    line(format!("test::assert_equal(m.named_buffers().map(|p| p[0]), {});", case["buffers"]));
    let mut state = strings(&case["state"]);
    state.sort_unstable();
    line(format!("test::assert_equal(m.state_dict().keys(), {});", serde_json::to_string(&state).expect("JSON")));
    line("m.double(); let d = #{};".to_string());
    for key in state {
        line(format!("d[{key:?}] = f[\"{name}/state/{key}\"];"));
    }
    line("m.load_state_dict(d);".to_string());
    line(if text("mode") == "train" { "m.train();".to_string() } else { "m.eval();".to_string() });
    for letter in strings(&case["inputs"]) {
        line(format!("let {letter} = f[\"{name}/in/{letter}\"].clone();"));
    }
    for letter in strings(&case["graded"]) {
        line(format!("{letter}.requires_grad_();"));
    }
    line(format!("let ys = {};", text("call")));
    line(format!("test::assert_equal(ys.len(), {});", case["outputs"]));
    for i in 0..case["outputs"].as_u64().expect("a count") {
        line(format!("test::assert_close(ys[{i}], f[\"{name}/out/{i}\"], {close});"));
    }
    line("let loss = 0.0;".to_string());
    for i in case["weighted"].as_array().expect("a list") {
        line(format!("loss = loss + (ys[{i}] * f[\"{name}/weight/{i}\"]).sum();"));
    }
    line("loss.backward();".to_string());
    for letter in strings(&case["graded"]) {
        line(format!("test::assert_close({letter}.grad, f[\"{name}/grad/{letter}\"], {close});"));
    }
    line("let own = #{}; for p in m.named_parameters() { own[p[0]] = p[1]; }".to_string());
    for key in strings(&case["named"]) {
        line(format!("test::assert_close(own[{key:?}].grad, f[\"{name}/pgrad/{key}\"], {close});"));
    }
    line("for p in m.named_buffers() { own[p[0]] = p[1]; }".to_string());
    for key in strings(&case["buffers"]) {
        line(format!("test::assert_close(own[{key:?}], f[\"{name}/after/{key}\"], {close});"));
    }
    s
}

#[test]
fn modules_do_what_torch_nn_does() {
    let text = std::fs::read_to_string(folder("fixtures/nn/cases.json")).expect("the cases");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(cases.len() > 400, "only {} cases", cases.len());
    let mut session = session();
    let mut problems = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        // A session has 65,535 lines for all its sources.
        if at % 150 == 149 {
            session = self::session();
        }
        let name = case["name"].as_str().expect("a name");
        if let Err(error) = session.run_str(name, &script(case)) {
            problems.push(format!("{name}: {} at {}\n", error, case["make"]));
        }
    }
    none(problems);
}

#[test]
fn initial_values_are_distributed_as_in_torch() {
    let text = std::fs::read_to_string(folder("fixtures/nn/init.json")).expect("the cases");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let mut problems = Vec::new();
    for case in &cases {
        let make = case["make"].as_str().expect("a source");
        let mut session = Session::builder().seed(7).all_files().build().expect("a session starts");
        let source = format!(
            "import \"nn\" as nn;\nlet m = {make};\nlet d = if m.contains(\"training\") {{ m.state_dict() }} else {{ m }};\n\
             fn told(t) {{ let v = t.detach().double(); [v.min().item(), v.max().item(), v.mean().item(), \
             (v - v.mean()).square().mean().sqrt().item()] }}\n"
        );
        if let Err(error) = session.run_str("init", &source) {
            problems.push(format!("{make}: {error:#}"));
            continue;
        }
        for tensor in case["tensors"].as_array().expect("a list") {
            let name = tensor["name"].as_str().expect("a name");
            let found: rhai_array::Numbers = match session.eval::<tscript::Dynamic>(&format!("told(d[{name:?}])")) {
                Ok(value) => rhai_array::numbers(&value),
                Err(error) => {
                    problems.push(format!("{make} {name}: {error:#}"));
                    continue;
                }
            };
            let reported = |key: &str| tensor[key].as_f64().expect("a number");
            let (low, high, mean, std) = (reported("low"), reported("high"), reported("mean"), reported("std"));
            let count = reported("count");
            // Extremes of normal values scatter; those of uniform ones lie at their bounds.
            let normal = (high - low) > 3.7 * std && std > 0.0;
            let edge = if normal { 0.35 * (high - low) } else { (0.01 + 8.0 / count) * (high - low) };
            let near = 6.0 * std / count.sqrt() + 1e-12;
            let fits = (found[0] - low).abs() <= edge
                && (found[1] - high).abs() <= edge
                && (found[2] - mean).abs() <= 1.5 * near
                && (found[3] - std).abs() <= near.max(0.001 * std);
            if !fits {
                problems.push(format!("{make} {name}: {found:?} and not {low} {high} {mean} {std}"));
            }
        }
    }
    none(problems);
}

/// Four numbers out of a script's array.
mod rhai_array {
    pub type Numbers = Vec<f64>;

    pub fn numbers(value: &tscript::Dynamic) -> Numbers {
        let array = value.clone().into_array().expect("an array");
        array.iter().map(|item| item.as_float().expect("a float")).collect()
    }
}

/// A target of another shape is told at the user's line, once a place, in layers, too; where PyTorch is silent, nothing
/// is.
#[test]
fn a_target_of_another_shape_is_warned_of() {
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = told.clone();
    let builder = Session::builder().on_warning(move |warning| {
        let line = warning.location().map_or(0, |at| at.line);
        sink.lock().expect("no panic").push(format!("{line} {} {}", warning.code(), warning.message()));
    });
    let script = "import \"nn\" as nn;
let [x, t] = [ones([3, 1]), ones([3])];
for i in 0..3 { mse_loss(x, t); }
let loss = nn::l1_loss();
loss(x, t); loss(x, x);
smooth_l1_loss(x, tensor(1.0));
x.huber_loss(t);
mse_loss(x, t.view_as(x)); mse_loss(x, t.unsqueeze(1));
kl_div(x, t); poisson_nll_loss(x, t); hinge_embedding_loss(x, t);
";
    builder.build().expect("a session").run_str("a", script).expect("it runs");
    let shapes = "the target has shape [3] and the input [3, 1]: they are compared as [3, 3]";
    let expected = [
        format!("3 E0217 `mse_loss`: {shapes}"),
        format!("5 E0217 `l1_loss`: {shapes}"),
        "6 E0217 `smooth_l1_loss`: the target has shape [] and the input [3, 1]: they are compared as [3, 1]"
            .to_string(),
        format!("7 E0217 `huber_loss`: {shapes}"),
    ];
    assert_eq!(*told.lock().expect("no panic"), expected);
}
