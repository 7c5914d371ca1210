//! Function transforms of every operation, on PyTorch's samples (`tests/fixtures/opinfo`): what `func::vmap` computes is what
//! a loop over the samples computes, for values and for gradients, and `func::jvp` and `func::vjp` are transposes of each
//! other and agree with finite differences.
//!
//! `TSCRIPT_OPINFO=add,topk` runs only these files; `TSCRIPT_FUNC_CASES=9` so many cases of each file (at first the few that
//! a usual run takes), `TSCRIPT_FUNC_VERBOSE=1` shows the script of each failure.

use super::opinfo::{Data, Suite, floats, indices, selects, stem};
use super::opinfo_host::{Engine, Host};
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many cases of a file a usual run takes.
const CASES: usize = 2;

/// Files whose operations have no transform, and why.
const LEFT_OUT: &[(&str, &str)] = &[];

/// Parts of the messages of what `vmap` refuses.
const REFUSED: &[&str] = &["none that the script could read", "that all samples share"];

/// Operations whose samples name positions twice: the last value written stays, and the gradient counts all of them, as PyTorch's.
const NOT_TRANSPOSED: &[&str] =
    &["nn_functional_max_unpool1d", "nn_functional_max_unpool2d", "nn_functional_max_unpool3d"];

/// Operations whose samples are no smooth functions of their operands: matrices that are symmetric only by half.
const NOT_NUMERIC: &[&str] = &[
    "cholesky_inverse",
    "cholesky_solve",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_eigh",
    "linalg_eigvalsh",
    "linalg_matrix_sqrth",
    "linalg_pinv_hermitian",
    "frexp",
    "bfloat16",
    "half",
    "float",
];

/// The start of each script: numbers to weigh with, and a comparison that takes NaN and infinities for equal.
const PRELUDE: &str = r#"
let around = |x, step| (arange(x.numel(), #{dtype: "f64"}) * step + 0.3).sin().reshape(x.shape).to(x.dtype);
let off = |a, b| {
    if a.shape != b.shape { throw `shape ${a.shape} and ${b.shape}`; }
    if a.dtype != b.dtype { throw `dtype ${a.dtype} and ${b.dtype}`; }
    if a.numel() == 0 { return 0.0; }
    let [a, b] = [a.double(), b.double()];
    let same = (a == b) | (a.isnan() & b.isnan());
    where(same, zeros_like(a), (a - b).abs() / (1 + b.abs())).nan_to_num(9.0).max().item()
};
"#;

fn is_float(data: &Data) -> bool {
    data.dtype.contains('f')
}

/// The parts of a case that a script is made of.
struct Parts {
    inputs: Vec<(String, Data)>,
    /// Names of the float inputs.
    floats: Vec<String>,
    /// Names of the inputs that have gradients.
    grads: Vec<String>,
    body: String,
}

impl Parts {
    fn of(suite: &Suite, case: &Value) -> Option<Parts> {
        let call = case["call"].as_str().filter(|call| !call.is_empty())?;
        if case["form"] == "error" || case["form"] == "inplace" {
            return None;
        }
        let mut parts = Parts { inputs: Vec::new(), floats: Vec::new(), grads: Vec::new(), body: String::new() };
        for (name, input) in case["in"].as_object()? {
            let data = suite.tensors[input.as_u64()? as usize].clone();
            if is_float(&data) {
                parts.floats.push(name.clone());
            }
            parts.inputs.push((name.clone(), data));
        }
        if let Some(grads) = case["grad"].as_object() {
            parts.grads = grads.keys().cloned().collect();
        }
        let mut outs = Vec::new();
        for out in case["out"].as_array()? {
            // A result that is only known by its kind is random.
            out[1].as_u64()?;
            outs.push((out[0].as_str()?.to_string(), is_float(&suite.tensors[out[1].as_u64()? as usize])));
        }
        let pre = case["pre"].as_str().unwrap_or("");
        let list = |outs: &[(String, bool)], only: bool| {
            outs.iter().filter(|(_, float)| !only || *float).map(|(out, _)| out.as_str()).collect::<Vec<_>>().join(", ")
        };
        parts.body = format!("{pre} let out = {call}; [{}]", list(&outs, !parts.grads.is_empty()));
        (!parts.floats.is_empty() && !outs.is_empty()).then_some(parts)
    }

    /// All float inputs in double precision.
    fn doubled(&self) -> String {
        self.floats.iter().map(|name| format!("let {name} = {name}.double();\n")).collect()
    }

    fn vmap(&self) -> String {
        let names = self.floats.join(", ");
        let each =
            |scale: &str| self.floats.iter().map(|name| format!("{name} * {scale}")).collect::<Vec<_>>().join(", ");
        let stacked: Vec<String> =
            self.floats.iter().map(|name| format!("stack([{name} * 1, {name} * 0.75])")).collect();
        let (doubled, body) = (self.doubled(), &self.body);
        format!(
            "{PRELUDE} {doubled} let f = |{names}| {{ {body} }};
            let loops = (); try {{ let [a, b] = [f({}), f({})];
            loops = []; for i in 0..len(a) {{ loops.push(stack([a[i], b[i]])); }} }} catch {{ loops = (); }}
            let worst = -1.0;
            if loops != () {{ worst = 0.0;
                let ys = func::vmap(f, #{{randomness: \"different\"}})({});
                for i in 0..len(ys) {{ worst = max(worst, off(ys[i], loops[i])); }} }}
            let worst = tensor(worst, #{{dtype: \"f64\"}});",
            each("1"),
            each("0.75"),
            stacked.join(", ")
        )
    }

    fn jvp(&self) -> String {
        let names = self.grads.join(", ");
        let (doubled, body) = (self.doubled(), &self.body);
        format!(
            "{PRELUDE} {doubled} let f = |{names}| {{ {body} }};
            let xs = [{names}];
            let ts = xs.map(|x| around(x, 0.37));
            let [ys, js] = func::jvp(f, xs, ts);
            let [_, pull] = func::vjp(f, {names});
            let us = ys.map(|y| around(y, 0.61));
            let gs = pull(us);
            let [a, b, c, size] = [tensor(0.0, #{{dtype: \"f64\"}}), tensor(0.0, #{{dtype: \"f64\"}}), tensor(0.0, #{{dtype: \"f64\"}}), tensor(1.0, #{{dtype: \"f64\"}})];
            for i in 0..len(us) {{ a += (us[i] * js[i]).sum(); size += (us[i] * js[i]).abs().sum(); }}
            for i in 0..len(ts) {{ b += (gs[i] * ts[i]).sum(); }}
            let worst = ((a - b).abs() / size).nan_to_num(0.0);
            let h = 1e-6;
            let moved = |sign| {{ let all = []; for i in 0..len(xs) {{ all.push(xs[i] + ts[i] * (sign * h)); }} all }};
            let [up, down] = [moved(1.0), moved(-1.0)];
            let [up, down] = [func::vjp(|all| f({spread}), up)[0], func::vjp(|all| f({spread}), down)[0]];
            for i in 0..len(us) {{ c += (us[i] * (up[i] - down[i]) / (2 * h)).sum(); }}
            let numeric = ((a - c).abs() / size).nan_to_num(0.0);",
            spread = (0..self.grads.len()).map(|at| format!("all[{at}]")).collect::<Vec<_>>().join(", "),
        )
    }

    fn gradients(&self) -> String {
        let names = self.grads.join(", ");
        let (doubled, body) = (self.doubled(), &self.body);
        let zoomed: Vec<String> = self.grads.iter().map(|name| format!("{name} * 0.75")).collect();
        let stacked: Vec<String> =
            self.grads.iter().map(|name| format!("stack([{name} * 1, {name} * 0.75])")).collect();
        format!(
            "{PRELUDE} {doubled} let f = |{names}| {{ {body} }};
            let [ys, pull] = func::vjp(f, {names});
            let us = ys.map(|y| around(y, 0.61));
            let vs = ys.map(|y| around(y, 0.23));
            let both = []; for i in 0..len(us) {{ both.push(stack([us[i], vs[i]])); }}
            let gs = func::vmap(pull)(both);
            let [g0, g1] = [pull(us), pull(vs)];
            let worst = 0.0;
            for i in 0..len(gs) {{ worst = max(worst, off(gs[i], stack([g0[i], g1[i]]))); }}
            let h = |{names}| {{ let ys = f({names}); let s = tensor(0.0, #{{dtype: \"f64\"}}); for i in 0..len(ys) {{ s = s + (ys[i] * us[i]).sum(); }} s }};
            let at = #{{argnums: [{}]}};
            let loops = (); try {{ loops = [func::grad(h, at)({names}), func::grad(h, at)({})]; }} catch {{}}
            if loops != () {{
                let gs = func::vmap(func::grad(h, at), #{{randomness: \"different\"}})({});
                for i in 0..len(gs) {{ worst = max(worst, off(gs[i], stack([loops[0][i], loops[1][i]]))); }} }}
            let worst = tensor(worst, #{{dtype: \"f64\"}});",
            (0..self.grads.len()).map(|at| at.to_string()).collect::<Vec<_>>().join(", "),
            zoomed.join(", "),
            stacked.join(", "),
        )
    }
}

/// How a number of `table.json` is computed: of the results of `f` at `xs`, along `ts`, or of two samples.
const OF_TABLE: &[(&str, &str)] = &[
    ("jvp", "func::jvp(f, xs, ts)[1]"),
    ("vmap", "func::vmap(f, #{randomness: \"different\"})(BOTH)"),
    ("both", "func::vmap(|NAMES| func::jvp(f, [NAMES], ts)[1], #{randomness: \"different\"})(BOTH)"),
];

impl Parts {
    fn of_table(&self, results: &str) -> String {
        let names = self.grads.join(", ");
        let both: Vec<String> = self.grads.iter().map(|name| format!("stack([{name} * 1, {name} * 0.75])")).collect();
        let results = results.replace("NAMES", &names).replace("BOTH", &both.join(", "));
        let (doubled, body) = (self.doubled(), &self.body);
        format!(
            "{PRELUDE} {doubled} let f = |{names}| {{ {body} }};
            let xs = [{names}]; let ts = xs.map(|x| around(x, 0.37));
            let worst = tensor(0.0, #{{dtype: \"f64\"}});
            for y in {results} {{ worst += (around(y, 0.61) * y).sum(); }}"
        )
    }
}

/// Runs a script for the cases of all files; `problem` judges its numbers.
fn run_all(
    script: fn(&Parts) -> String,
    only_gradients: bool,
    results: &[&str],
    problem: fn(&str, &[f64]) -> Option<String>,
) {
    let setting = |name: &str| std::env::var(name).ok();
    let only: Option<Vec<String>> = setting("TSCRIPT_OPINFO").map(|list| list.split(',').map(str::to_string).collect());
    let most = setting("TSCRIPT_FUNC_CASES").and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let (mut host, mut problems, mut done) = (Engine::new(), BTreeMap::new(), 0);
    let names: Vec<String> = results.iter().map(|name| name.to_string()).collect();
    for path in indices() {
        let name = stem(&path);
        if !path.components().any(|part| part.as_os_str() == "opinfo")
            || LEFT_OUT.iter().any(|(left, _)| *left == name)
            || only.as_ref().is_some_and(|only| !only.iter().any(|expected| selects(expected, &name)))
        {
            continue;
        }
        let suite = Suite::read(&path);
        let cases = suite.cases.iter().filter(|case| !only_gradients || case["grad"].is_object());
        let parts = cases.filter_map(|case| Some((Parts::of(&suite, case)?, case))).take(most);
        for (parts, case) in parts {
            let text = script(&parts);
            done += 1;
            let answer = catch_unwind(AssertUnwindSafe(|| host.run(&parts.inputs, &text, &names)));
            let wrong = match answer {
                Ok(Ok(found)) => problem(&name, &found.iter().map(|data| floats(data)[0]).collect::<Vec<_>>()),
                // What PyTorch refuses, too: the values of each sample, and writes into what all samples share.
                Ok(Err(message)) if REFUSED.iter().any(|part| message.contains(part)) => None,
                Ok(Err(message)) => Some(message),
                Err(_) => {
                    host = Engine::new();
                    Some("panicked".into())
                }
            };
            if let Some(wrong) = wrong {
                if setting("TSCRIPT_FUNC_VERBOSE").is_some() {
                    println!("{name}: {wrong}\n{text}\n");
                }
                problems.entry(name.clone()).or_insert_with(|| format!("{}: {wrong}", case["call"]));
            }
        }
    }
    println!("{done} cases");
    let told: Vec<String> = problems.iter().map(|(name, wrong)| format!("{name}: {wrong}")).collect();
    assert!(done > 0, "no fixture file is called so");
    assert!(told.is_empty(), "{} files have problems:\n{}", told.len(), told.join("\n"));
}

#[test]
fn vmap_is_a_loop_over_samples() {
    run_all(Parts::vmap, false, &["worst"], |_, found| {
        (found[0] > 1e-7).then(|| format!("differs by {:e} from the loop", found[0]))
    });
}

#[test]
fn gradients_of_samples_are_those_of_a_loop() {
    run_all(Parts::gradients, true, &["worst"], |_, found| {
        (found[0] > 1e-9).then(|| format!("differs by {:e} from the loop", found[0]))
    });
}

#[test]
fn jvp_and_vjp_are_transposes_and_agree_with_differences() {
    run_all(Parts::jvp, true, &["worst", "numeric"], |name, found| {
        let is_low = ["bfloat16", "half", "float", "cumsum", "cumprod"].contains(&name);
        if !NOT_TRANSPOSED.contains(&name) && found[0] > if is_low { 1e-2 } else { 1e-9 } {
            return Some(format!("<u, J t> and <J^T u, t> differ by {:e}", found[0]));
        }
        // What computes in 32 bits or less is too rough for differences.
        (found[1] > 1e-5 && !is_low && !NOT_NUMERIC.contains(&name))
            .then(|| format!("differs by {:e} from finite differences", found[1]))
    });
}

/// `tests/fixtures/func/table.py` has what `torch.func` gives for the same cases.
#[test]
fn forward_derivatives_and_samples_are_those_of_pytorch() {
    let path = super::scripts::root().join("tests/fixtures/func/table.json");
    let table: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("the table")).expect("valid JSON");
    let only = std::env::var("TSCRIPT_OPINFO").ok();
    let (mut host, mut problems, mut done) = (Engine::new(), Vec::new(), 0);
    let names = ["worst".to_string()];
    for path in indices() {
        let name = stem(&path);
        let Some(expected) =
            table[&name].as_array().filter(|_| path.components().any(|part| part.as_os_str() == "opinfo"))
        else {
            continue;
        };
        let is_asked = only.as_ref().is_none_or(|only| only.split(',').any(|asked| selects(asked, &name)));
        if !is_asked {
            continue;
        }
        let suite = Suite::read(&path);
        let cases = suite.cases.iter().filter(|case| case["grad"].is_object());
        for (parts, entry) in cases.filter_map(|case| Parts::of(&suite, case)).zip(expected) {
            for (kind, results) in OF_TABLE {
                let Some(want) = entry[*kind].as_f64() else { continue };
                done += 1;
                let text = parts.of_table(results);
                let answer = catch_unwind(AssertUnwindSafe(|| host.run(&parts.inputs, &text, &names)));
                let wrong = match answer {
                    Ok(Ok(found)) => {
                        let got = floats(&found[0])[0];
                        let near = if ["bfloat16", "half", "float"].contains(&name.as_str()) { 1e-2 } else { 1e-6 };
                        ((got - want).abs() > near * (1.0 + want.abs())).then(|| format!("{got}, and PyTorch {want}"))
                    }
                    Ok(Err(message)) => Some(message),
                    Err(_) => {
                        host = Engine::new();
                        Some("panicked".into())
                    }
                };
                problems.extend(wrong.map(|wrong| format!("{name}: {kind} of {}: {wrong}", entry["call"])));
            }
        }
    }
    assert!(done > 0 && (only.is_some() || done > 2000), "{done} cases");
    assert!(problems.is_empty(), "{} of {done} differ:\n{}", problems.len(), problems.join("\n"));
}
