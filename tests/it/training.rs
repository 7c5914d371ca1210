//! What belongs to training beside optimizers: `metrics`, `prune`, parametrizations and fused layers of `nn`, against
//! torchmetrics, scikit-learn and PyTorch. Fixtures and their generator: `tests/fixtures/training`.

use super::scripts::{folder, none};
use serde_json::Value;
use tscript::Session;

/// Runs the scripts of a file, whose `got` is compared with what the others gave.
fn compare(file: &str, least: usize, relative: f64, absolute: f64) {
    let text = std::fs::read_to_string(folder("fixtures/training").join(file)).expect("the fixtures");
    let cases: Value = serde_json::from_str(&text).expect("JSON");
    let cases = cases.as_array().expect("a list");
    assert!(cases.len() >= least, "only {} cases", cases.len());
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let mut problems = Vec::new();
    for case in cases {
        let (script, want) = (case["script"].as_str().expect("a script"), &case["want"]);
        let text = format!(
            "import \"nn\" as nn; import \"optim\" as optim; import \"metrics\" as metrics; import \"prune\" as prune; \
             import \"quantization\" as quantization; \
             import \"amp\" as amp; import \"test\" as test;\n{script}\n\
             let got = cat(got.map(|x| x.to(\"f64\").reshape([-1])));\n\
             test::assert_close(got, tensor({want}, #{{dtype: \"f64\"}}), {relative:?}, {absolute:?});"
        );
        if let Err(error) = session.run_str("training", &text) {
            problems.push(format!("{script}\n{error:#}"));
        }
    }
    none(problems);
}

#[test]
fn metrics_are_those_of_torchmetrics_and_scikit_learn() {
    compare("metrics.json", 290, 2e-5, 1e-6);
}

#[test]
fn parametrized_pruned_and_fused_modules_are_those_of_torch() {
    compare("modules.json", 95, 1e-9, 1e-11);
}

/// Products of 16 bits differ in their last digit where sums are added up in another order.
#[test]
fn steps_of_mixed_precision_are_those_of_torch() {
    compare("amp_steps.json", 18, 1e-2, 4e-3);
}

#[test]
fn own_functions_hooks_and_checkpoints_are_those_of_torch() {
    compare("autograd.json", 15, 1e-9, 1e-11);
}

#[test]
fn antialiased_images_are_those_of_torch() {
    compare("antialias.json", 45, 1e-12, 1e-12);
}

#[test]
fn sparse_tensors_and_their_gradients_are_those_of_torch() {
    compare("sparse.json", 30, 1e-9, 1e-11);
}

/// Inputs are rounded to seven bits: where two roundings of a quotient fall apart, by one step of the scale.
#[test]
fn quantized_models_are_those_of_torch() {
    compare("quantization.json", 5, 1e-4, 1e-5);
}

/// What a checkpoint leaves of a deep part is its input: on a GPU, whose memory is counted.
#[test]
fn a_checkpoint_holds_less_memory_and_gives_the_same_gradients() {
    let text = r#"
        let w = rand([32, 32], #{requires_grad: true});
        let x = rand([2048, 32]);
        let deep = |a| { for i in 0..16 { a = dropout((a @ w).tanh(), #{p: 0.25}); } a };
        let held = |run| {
            manual_seed(3);
            w.grad = ();
            synchronize();
            let before = cuda::memory_allocated();
            let y = run.call();
            synchronize();
            let most = cuda::memory_allocated() - before;
            y.sum().backward();
            let next = rand([4]);
            synchronize();
            [most, w.grad.clone(), next]
        };
        let plain = held.call(|| deep.call(x));
        let again = held.call(|| checkpoint(deep, x));
        print(equal(plain[1], again[1]), equal(plain[2], again[2]), again[0] * 8 < plain[0]);
    "#;
    let gpu = super::scripts::with_gpus(super::scripts::builder(), 1).expect("a GPU").device("cuda");
    let ran = super::scripts::run(gpu, "checkpoint", text);
    ran.result.expect("the script runs");
    assert_eq!(ran.printed, "true true true\n");
}
