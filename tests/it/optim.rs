//! `std/optim` against torch.optim: parameters after each of eight steps, also through a saved and loaded state, and
//! the rates of every schedule step by step. Fixtures and their generator: `tests/fixtures/optim`.

use super::scripts::{builder, folder, none, run, with_gpus};
use serde_json::Value;
use std::fmt::Write;
use tscript::Session;

fn fixtures() -> Value {
    let text = std::fs::read_to_string(folder("fixtures/optim/optim.json")).expect("the fixtures");
    serde_json::from_str(&text).expect("JSON")
}

/// One case as a script; with `reload` the optimizer is replaced by a fresh one with the same state half way.
fn steps(all: &Value, case: &Value, reload: bool) -> String {
    let make = case["make"].as_str().expect("a source");
    let mut s = String::from("import \"optim\" as optim; import \"test\" as test;\nlet f64 = #{dtype: \"f64\"};\n");
    for (name, value) in ["p", "q"].iter().zip(all["start"].as_array().expect("two")) {
        writeln!(s, "let {name} = tensor({value}, f64).requires_grad_();").expect("a string takes text");
    }
    writeln!(s, "let opt = {make};").expect("a string takes text");
    for (at, grads) in all["grads"].as_array().expect("a list").iter().enumerate() {
        for (name, grad) in ["p", "q"].iter().zip(grads.as_array().expect("two")) {
            let value = if grad.is_null() { "()".to_string() } else { format!("tensor({grad}, f64)") };
            writeln!(s, "{name}.grad = {value};").expect("a string takes text");
        }
        let clip = case["clip"].as_str().unwrap_or("");
        if !case["lrs"].is_null() {
            writeln!(s, "opt.set_lr({});", case["lrs"][at]).expect("a string takes text");
        }
        let want = &case["after"][at];
        writeln!(
            s,
            "{clip} opt.step();\ntest::assert_close(p.flatten(), tensor({}, f64), 1e-9, 1e-12);\n\
             test::assert_close(q.flatten(), tensor({}, f64), 1e-9, 1e-12);",
            want[0], want[1]
        )
        .expect("a string takes text");
        if reload && at == 3 {
            writeln!(s, "let d = opt.state_dict(); opt = {make}; opt.load_state_dict(d);").expect("text");
        }
    }
    s
}

#[test]
fn optimizers_step_as_torch_optim_does() {
    let all = fixtures();
    let cases = all["cases"].as_array().expect("a list");
    assert!(cases.len() > 70, "only {} cases", cases.len());
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let mut problems = Vec::new();
    for case in cases {
        for reload in [false, true] {
            if let Err(error) = session.run_str("optim", &steps(&all, case, reload)) {
                problems.push(format!("{} (reload: {reload}): {error:#}", case["make"]));
            }
        }
    }
    none(problems);
}

/// The rates of a schedule step by step; with `reload` optimizer and schedule are replaced half way by fresh ones with
/// the same states.
fn rates(case: &Value, reload: bool) -> String {
    let make = case["make"].as_str().expect("a source");
    let (count, momentum) = (case["groups"].as_u64().expect("a count"), case["momentum"].as_bool() == Some(true));
    let groups: Vec<String> =
        (0..count).map(|i| format!("#{{params: [zeros([1]).requires_grad_()], lr: {:?}}}", 0.5 + i as f64)).collect();
    let (groups, kind) = (groups.join(", "), case["kind"].as_str().expect("a name"));
    let more = if momentum && kind == "sgd" { ", momentum: 0.9" } else { "" };
    let mut s = format!(
        "import \"optim\" as optim; import \"test\" as test;\n\
         fn made() {{ optim::{kind}([{groups}], #{{lr: 0.5{more}}}) }}\nlet opt = made();\nlet s = {make};\n"
    );
    let rows = case["rows"].as_array().expect("a list");
    for (at, row) in rows.iter().enumerate() {
        let mut shown: Vec<String> = (0..count).map(|i| format!("opt.get({i}, \"lr\")")).collect();
        if momentum {
            let (setting, item) = if kind == "adam" { ("betas", "[0]") } else { ("momentum", "") };
            shown.extend((0..count).map(|i| format!("opt.get({i}, \"{setting}\"){item}")));
        }
        writeln!(s, "test::assert_close([{}], {row}, 1e-12, 1e-14);", shown.join(", ")).expect("text");
        if at + 1 == rows.len() {
            break;
        }
        if reload && at == rows.len() / 2 {
            let fresh = format!("opt = made(); s = {make}; opt.load_state_dict(a); s.load_state_dict(b);");
            writeln!(s, "let a = opt.state_dict(); let b = s.state_dict(); {fresh}").expect("text");
        }
        let loss = match &case["losses"][at] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            loss => loss.to_string(),
        };
        writeln!(s, "s.step({loss});").expect("a string takes text");
    }
    s
}

#[test]
fn schedules_give_the_rates_of_torch() {
    let all = fixtures();
    let cases = all["rates"].as_array().expect("a list");
    assert!(cases.len() > 90, "only {} cases", cases.len());
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let mut problems = Vec::new();
    for case in cases {
        for reload in [false, true] {
            if let Err(error) = session.run_str("rates", &rates(case, reload)) {
                problems.push(format!("{} (reload: {reload}): {error:#}", case["make"]));
            }
        }
    }
    none(problems);
}

/// An optimizer of which only the rates are known, and a schedule that goes on after some step.
#[test]
fn schedules_go_on_where_those_of_torch_do() {
    let all = fixtures();
    let cases = all["resumed"].as_array().expect("a list");
    assert!(cases.len() > 40, "only {} cases", cases.len());
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let mut problems = Vec::new();
    for case in cases {
        let make = case["make"].as_str().expect("a source");
        let mut s = format!(
            "import \"optim\" as optim; import \"test\" as test;\n\
             let made = |group| optim::sgd([group + #{{params: [zeros([1]).requires_grad_()], lr: 0.3}}], 0.5);\n\
             let opt = made.call(#{{}});\n\
             try {{ {make}; throw \"it knows no rate\"; }} catch (e) {{ test::assert_equal(e.code, \"E0206\"); }}\n\
             let known = made.call(#{{initial_lr: {}}});\n\
             opt.load_state_dict(known.state_dict());\n\
             let s = {make};\n",
            case["initial"]
        );
        for row in case["rows"].as_array().expect("a list") {
            writeln!(s, "test::assert_close([opt.lr()], {row}, 1e-12, 1e-14); s.step();").expect("text");
        }
        if let Err(error) = session.run_str("resumed", &s) {
            problems.push(format!("{make}: {error:#}"));
        }
    }
    none(problems);
}

/// Losses, parameters and calls of the closure after each step; half of the runs go on from a loaded state.
#[test]
fn lbfgs_steps_as_that_of_torch() {
    let all = fixtures();
    let cases = all["lbfgs"].as_array().expect("a list");
    assert!(cases.len() > 30, "only {} cases", cases.len());
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let mut problems = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let (make, loss) = (case["make"].as_str().expect("a source"), case["loss"].as_str().expect("a source"));
        let mut s = format!(
            "import \"optim\" as optim; import \"test\" as test;\n\
             let p = tensor([-1.0, 2.0], #{{dtype: \"f64\", requires_grad: true}}); let calls = 0;\n\
             let closure = || {{ calls += 1; p.grad = (); let loss = {loss}; loss.backward(); loss }};\n\
             let opt = {make};\n"
        );
        for (step, row) in case["rows"].as_array().expect("a list").iter().enumerate() {
            if at % 2 == 1 && step == 2 {
                writeln!(s, "let d = opt.state_dict(); opt = {make}; opt.load_state_dict(d);").expect("text");
            }
            writeln!(
                s,
                "let loss = opt.step(closure).item();\n\
                 test::assert_close([loss, p[0].item(), p[1].item()], [{}, {}, {}], 1e-5, 1e-9);\n\
                 test::assert_equal(calls, {});",
                row[0], row[1], row[2], row[3]
            )
            .expect("a string takes text");
        }
        if let Err(error) = session.run_str("lbfgs", &s) {
            problems.push(format!("{make} of {loss}: {error:#}"));
        }
    }
    none(problems);
}

#[test]
fn averaged_models_are_those_of_torch() {
    let all = fixtures();
    let mut session = Session::builder().all_files().build().expect("a session starts");
    let mut problems = Vec::new();
    for case in all["averages"].as_array().expect("a list") {
        let options = case["options"].as_str().expect("a source");
        let mut s = format!(
            "import \"nn\" as nn; import \"optim\" as optim; import \"test\" as test; let f64 = #{{dtype: \"f64\"}};\n\
             let model = nn::module(#{{weight: nn::parameter(zeros([3], f64)), seen: zeros([3], f64)}});\n\
             let average = optim::averaged_model(model, #{{{options}}});\n"
        );
        let rows = case["rows"].as_array().expect("a list");
        for (value, row) in all["values"].as_array().expect("a list").iter().zip(rows) {
            writeln!(
                s,
                "model.weight.detach().copy_(tensor({}, f64)); model.seen.copy_(tensor({}, f64));\n\
                 average.update_parameters(model);\n\
                 test::assert_close(average.module.weight.detach(), tensor({}, f64), 1e-12, 1e-14);\n\
                 test::assert_close(average.module.seen, tensor({}, f64), 1e-12, 1e-14);\n\
                 test::assert_equal(average.n_averaged.item(), {});",
                value[0], value[1], row[0], row[1], row[2]
            )
            .expect("a string takes text");
        }
        if let Err(error) = session.run_str("averages", &s) {
            problems.push(format!("{options}: {error:#}"));
        }
    }
    none(problems);
}

/// One launch steps tensors of all sizes, beside numbers of the step: those without dimensions, and those that end
/// within a vector, too.
#[test]
fn parameters_of_all_shapes_step_on_a_gpu_as_on_the_host() {
    let text = "import \"optim\" as optim; import \"test\" as test;
        fn trained(device, at) {
            let values = [tensor(0.5), tensor([1.0]), arange(8.0).reshape(4, 2).t(), arange(1027.0) / 100.0, tensor([[2.0, 3.0]])];
            let ps = values.map(|p| p.to(device).requires_grad_());
            let opt = switch at {
                0 => optim::sgd(ps, #{lr: 0.1, momentum: 0.9, dampening: 0.5}),
                1 => optim::adam(ps, #{lr: 0.1}),
                2 => optim::asgd(ps, #{lr: 0.1, t0: 1.0}),
                3 => optim::nadam(ps, #{lr: 0.1}),
                4 => optim::sgd(ps, #{lr: 0.1}),
                _ => optim::lion(ps, #{lr: 0.1}),
            };
            for i in 0..3 {
                for p in ps { p.grad = (p.detach() * 0.5).cos(); }
                opt.step();
            }
            ps.map(|p| p.detach().cpu())
        }
        for at in 0..6 {
            let gpu = trained(\"cuda:0\", at);
            let host = trained(\"cpu\", at);
            for i in 0..5 { test::assert_close(gpu[i], host[i], 1e-5, 1e-6); }
        }";
    let Some(builder) = with_gpus(builder(), 1) else { return };
    let ran = run(builder, "shapes", text);
    if let Err(error) = ran.result {
        panic!("{}", error.diag().message);
    }
}
