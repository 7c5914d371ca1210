//! The judge made of PyTorch's own samples: runs every case of `tests/fixtures/opinfo`, of `tests/fixtures/second`
//! (gradients of gradients), `tests/fixtures/operands` (dtypes) and `tests/fixtures/semantics` as a script and compares results and gradients with PyTorch's.
//!
//! It speaks to the language only through `Host`: variables in, text, variables out. It knows no operation.
//! `expected_failures.txt` is a ratchet: an unlisted failure fails the test; a listed success is printed, and the
//! list wants rewriting then.
//! `TSCRIPT_OPINFO=add,topk` runs only these files, `TSCRIPT_OPINFO_PART=3/16` every sixteenth case from the fourth on,
//! `TSCRIPT_OPINFO_VERBOSE=1` shows each failing call, `TSCRIPT_OPINFO_BLESS=1` rewrites the list.
//! `TSCRIPT_OPINFO_DEVICE=cuda` runs all on a simulated GPU, with `TSCRIPT_TEST_DEVICES=cuda` on a real one.
//! `TSCRIPT_OPINFO_FOLDER` reads the cases of another folder (a wider set that is not kept).

use super::opinfo_host::{Engine, Host};
use super::scripts::{on_real_gpus, part, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A tensor as bytes, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// `f32`, `i64`, ...
    pub dtype: String,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// What became of one case.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Passed,
    /// The language has no such name yet.
    Unsupported(String),
    Failed(String),
    /// Another process does it.
    LeftOut,
}

/// One file's cases with their tensors.
pub struct Suite {
    name: String,
    tier: String,
    pub cases: Vec<Value>,
    pub tensors: Vec<Data>,
}

/// Relative and absolute tolerance of torch.testing.
fn tolerance(dtype: &str) -> (f64, f64) {
    match dtype {
        "f64" => (1e-7, 1e-7),
        "f32" => (1.3e-6, 1e-5),
        "f16" => (1e-3, 1e-5),
        "bf16" => (1.6e-2, 1e-5),
        _ => (0.0, 0.0),
    }
}

#[test]
fn operations_answer_as_pytorch_does() {
    let only: Option<Vec<String>> =
        std::env::var("TSCRIPT_OPINFO").ok().map(|list| list.split(',').map(|s| s.trim().to_string()).collect());
    let verbose = std::env::var("TSCRIPT_OPINFO_VERBOSE").is_ok_and(|v| v != "0");
    let mut verdicts = BTreeMap::new();
    let mut report = Report::default();
    let part = part("TSCRIPT_OPINFO_PART");
    for path in indices() {
        let name = stem(&path);
        if only.as_ref().is_some_and(|names| !names.iter().any(|n| selects(n, &name))) {
            continue;
        }
        let suite = Suite::read(&path);
        let results = suite.run(part);
        report.add(&suite, &results, verbose);
        verdicts.insert(name, results);
    }
    assert!(!verdicts.is_empty(), "no fixture file is called {only:?}");
    println!("{}", report.text());
    if part.is_none() {
        report.write();
    }
    let elsewhere = std::env::var("TSCRIPT_OPINFO_FOLDER").is_ok();
    // The list's numbers are those of the cases that are kept here.
    let listed = if elsewhere { Ratchet::default() } else { Ratchet::read() };
    if std::env::var("TSCRIPT_OPINFO_BLESS").is_ok_and(|v| v != "0") {
        assert!(only.is_none() && part.is_none() && !elsewhere, "bless the whole set, not a part of it");
        Ratchet::write(&verdicts);
        return;
    }
    let (problems, better) = listed.problems(&verdicts, only.is_some() || part.is_some());
    if !better.is_empty() {
        println!(
            "{} listed cases pass now; TSCRIPT_OPINFO_BLESS=1 rewrites the list:\n{}",
            better.len(),
            better.join("\n")
        );
    }
    assert!(
        problems.is_empty(),
        "{} problems; TSCRIPT_OPINFO_VERBOSE=1 shows the calls, TSCRIPT_OPINFO_BLESS=1 rewrites the list:\n{}",
        problems.len(),
        problems
            .iter()
            .take(if part.is_some() || elsewhere { usize::MAX } else { 60 })
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// `topk` selects `topk`; `pad` also `nn_functional_pad_constant`.
pub fn selects(expected: &str, name: &str) -> bool {
    let bare = name.strip_prefix("nn_functional_").or_else(|| name.strip_prefix("linalg_")).unwrap_or(name);
    name == expected || bare == expected || bare.strip_prefix(expected).is_some_and(|rest| rest.starts_with('_'))
}

fn fixtures() -> PathBuf {
    root().join("tests/fixtures")
}

/// Every index file, in order.
pub fn indices() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let folders = match std::env::var("TSCRIPT_OPINFO_FOLDER") {
        Ok(elsewhere) => vec![PathBuf::from(elsewhere)],
        Err(_) => ["opinfo", "opinfo_complex", "operands", "second", "semantics"]
            .map(|folder| fixtures().join(folder))
            .to_vec(),
    };
    for folder in folders {
        let entries = std::fs::read_dir(folder).expect("the fixtures' folder");
        let paths = entries.map(|entry| entry.expect("a folder entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|ext| ext == "json")));
    }
    found.sort();
    found
}

pub fn stem(path: &Path) -> String {
    path.file_stem().expect("a file name").to_string_lossy().into_owned()
}

impl Suite {
    pub fn read(path: &Path) -> Suite {
        let text = std::fs::read_to_string(path).expect("an index file");
        let index: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Suite {
            name: stem(path),
            tier: index["tier"].as_str().expect("a tier").to_string(),
            cases: index["cases"].as_array().expect("cases").clone(),
            tensors: read_tensors(&path.with_extension("safetensors")),
        }
    }

    /// Every case, or those of a part: `(3, 16)` is every sixteenth from the fourth on.
    fn run(&self, part: Option<(usize, usize)>) -> Vec<Verdict> {
        // Short files begin at different places, so that all parts have something to do.
        let shift = self.name.len();
        let mut host = Engine::new();
        let mut verdicts = Vec::with_capacity(self.cases.len());
        for (at, case) in self.cases.iter().enumerate() {
            if part.is_some_and(|(first, of)| (at + shift) % of != first) {
                verdicts.push(Verdict::LeftOut);
                continue;
            }
            let script = Script::of(case, &self.tensors);
            let answer = catch_unwind(AssertUnwindSafe(|| host.run(&script.inputs, &script.text, &script.results)));
            verdicts.push(match answer {
                Ok(answer) => self.judge(case, answer),
                Err(_) => {
                    // A session that panicked is not used again.
                    host = Engine::new();
                    Verdict::Failed("panicked".to_string())
                }
            });
        }
        verdicts
    }

    fn judge(&self, case: &Value, answer: Result<Vec<Data>, String>) -> Verdict {
        let refused = case["form"] == "error";
        match answer {
            Err(message) if unsupported(&message) => Verdict::Unsupported(first_line(&message)),
            Err(_) if refused => Verdict::Passed,
            Err(message) => Verdict::Failed(first_line(&message)),
            Ok(_) if refused => Verdict::Failed("was accepted, and PyTorch refuses it".to_string()),
            Ok(results) => {
                let mut expected: Vec<(String, &Value, &[Value])> = Vec::new();
                for out in case["out"].as_array().into_iter().flatten() {
                    let out = out.as_array().expect("a result");
                    expected.push((out[0].as_str().unwrap_or("").to_string(), &out[1], &out[2..]));
                }
                for (name, grad) in case["grad"].as_object().into_iter().flatten() {
                    let grad = grad.as_array().expect("a gradient");
                    expected.push((format!("{name}.grad"), &grad[0], &grad[1..]));
                }
                for ((name, expected, limits), got) in expected.iter().zip(&results) {
                    if let Err(why) = self.compare(expected, limits, got) {
                        return Verdict::Failed(format!("`{name}`: {why}"));
                    }
                }
                Verdict::Passed
            }
        }
    }

    fn compare(&self, expected: &Value, limits: &[Value], got: &Data) -> Result<(), String> {
        let Some(number) = expected.as_u64() else {
            // A random result: only its kind is known.
            let shape = ints(&expected["shape"]);
            let same = expected["dtype"] == got.dtype.as_str() && shape.iter().eq(got.shape.iter());
            return if same { Ok(()) } else { Err(format!("{} {:?}, expected {expected}", got.dtype, got.shape)) };
        };
        let want = &self.tensors[number as usize];
        let default = tolerance(&want.dtype);
        let limit = |at: usize, or: f64| limits.get(at).and_then(Value::as_f64).unwrap_or(or);
        same(want, got, limit(0, default.0), limit(1, default.1))
    }
}

/// A name that the language does not know is no refusal of bad arguments.
fn unsupported(message: &str) -> bool {
    ["E0102", "E0103", "E0104", "Function not found"].iter().any(|sign| message.contains(sign))
}

fn first_line(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    line.chars().take(200).collect()
}

fn ints(list: &Value) -> Vec<usize> {
    list.as_array().into_iter().flatten().map(|n| n.as_u64().expect("a size") as usize).collect()
}

/// Same dtype and shape, values within `atol + rtol * |want|`; NaN equals NaN.
fn same(want: &Data, got: &Data, rtol: f64, atol: f64) -> Result<(), String> {
    if want.dtype != got.dtype || want.shape != got.shape {
        return Err(format!("{} {:?}, expected {} {:?}", got.dtype, got.shape, want.dtype, want.shape));
    }
    if !want.dtype.contains('f') {
        let size = want.bytes.len() / want.shape.iter().product::<usize>().max(1);
        let at = want.bytes.iter().zip(&got.bytes).position(|(a, b)| a != b);
        return match at {
            None => Ok(()),
            Some(at) => {
                Err(format!("element {}: {}, expected {}", at / size, whole(got, at / size), whole(want, at / size)))
            }
        };
    }
    let (wants, gots) = (floats(want), floats(got));
    let mut worst: Option<(usize, f64)> = None;
    let mut bad = 0;
    for (at, (a, b)) in wants.iter().zip(&gots).enumerate() {
        let fine = a == b || (a.is_nan() && b.is_nan()) || (a.is_finite() && (a - b).abs() <= atol + rtol * a.abs());
        if !fine {
            bad += 1;
            let off = (a - b).abs();
            if worst.is_none_or(|(_, most)| off > most || off.is_nan()) {
                worst = Some((at, off));
            }
        }
    }
    match worst {
        None => Ok(()),
        Some((at, _)) => {
            Err(format!("{bad} of {}; element {at}: {:e}, expected {:e}", wants.len(), gots[at], wants[at]))
        }
    }
}

/// Element `at` of an integer or `bool` tensor.
pub fn whole(data: &Data, at: usize) -> i64 {
    let size = data.bytes.len() / data.shape.iter().product::<usize>().max(1);
    let mut wide = [0; 8];
    let bytes = &data.bytes[at * size..(at + 1) * size];
    let negative = data.dtype.starts_with('i') && bytes[size - 1] >= 0x80;
    wide.fill(if negative { 0xff } else { 0 });
    wide[..size].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

pub fn floats(data: &Data) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.chunks_exact(N).map(|chunk| read(chunk.try_into().expect("a whole element"))).collect()
    }
    match data.dtype.as_str() {
        "f64" => each(&data.bytes, f64::from_le_bytes),
        "f32" => each(&data.bytes, |b| f32::from_le_bytes(b) as f64),
        "f16" => each(&data.bytes, |b| half::f16::from_le_bytes(b).to_f64()),
        _ => each(&data.bytes, |b| half::bf16::from_le_bytes(b).to_f64()),
    }
}

fn read_tensors(path: &Path) -> Vec<Data> {
    use safetensors::Dtype;
    let bytes = std::fs::read(path).expect("a tensor file");
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let read = |number: usize| {
        let view = file.tensor(&number.to_string()).expect("tensors are numbered from 0");
        let dtype = match view.dtype() {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
            Dtype::I64 => "i64",
            Dtype::I32 => "i32",
            Dtype::I16 => "i16",
            Dtype::I8 => "i8",
            Dtype::U8 => "u8",
            Dtype::BOOL => "bool",
            other => panic!("{}: dtype {other:?}", path.display()),
        };
        Data { dtype: dtype.to_string(), shape: view.shape().to_vec(), bytes: view.data().to_vec() }
    };
    (0..file.len()).map(read).collect()
}

/// The weights of a gradient's sum, as `tests/fixtures/store.py` has them: exact in every float type.
fn weights(dtype: &str, shape: &[usize]) -> Data {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| ((i * 37 % 101) as f64 - 50.0) / 64.0);
    let bytes = match dtype {
        "f64" => values.flat_map(|x| x.to_le_bytes()).collect(),
        "f32" => values.flat_map(|x| (x as f32).to_le_bytes()).collect(),
        "f16" => values.flat_map(|x| half::f16::from_f64(x).to_le_bytes()).collect(),
        _ => values.flat_map(|x| half::bf16::from_f64(x).to_le_bytes()).collect(),
    };
    Data { dtype: dtype.to_string(), shape: shape.to_vec(), bytes }
}

/// A case as the host gets it.
struct Script {
    inputs: Vec<(String, Data)>,
    text: String,
    /// Variables to read afterwards.
    results: Vec<String>,
}

impl Script {
    fn of(case: &Value, tensors: &[Data]) -> Script {
        let mut script = Script { inputs: Vec::new(), text: String::new(), results: Vec::new() };
        for (name, input) in case["in"].as_object().into_iter().flatten() {
            script.input(name, input, tensors);
        }
        for name in case["requires_grad"].as_array().into_iter().flatten() {
            let _ = writeln!(script.text, "{}.requires_grad_();", name.as_str().unwrap_or(""));
        }
        for name in case["grad"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let _ = writeln!(script.text, "{name}.requires_grad_();");
        }
        let call = case["call"].as_str().expect("a call");
        let pre = case["pre"].as_str().unwrap_or("");
        if case["form"] == "error" {
            // Leaving a `try` waits for what was queued in it, so that late errors show here.
            let _ = writeln!(script.text, "try {{ {pre} {call}; }} catch (e) {{ throw e; }}");
            return script;
        }
        let _ = match call {
            "" => writeln!(script.text, "{pre}"),
            _ => writeln!(script.text, "{pre} let out = {call};"),
        };
        for (at, out) in case["out"].as_array().into_iter().flatten().enumerate() {
            let _ = writeln!(script.text, "let r{at} = {};", out[0].as_str().unwrap_or(""));
            script.results.push(format!("r{at}"));
        }
        script.gradients(case, tensors);
        script
    }

    fn input(&mut self, name: &str, input: &Value, tensors: &[Data]) {
        if let Some(pairs) = input.get("complex") {
            self.input(&format!("{name}_pairs"), pairs, tensors);
            let _ = writeln!(self.text, "let {name} = view_as_complex({name}_pairs).detach();");
            return;
        }
        if let Some(number) = input.as_u64() {
            self.inputs.push((name.to_string(), tensors[number as usize].clone()));
            return;
        }
        let number = input[0].as_u64().expect("a tensor number") as usize;
        self.inputs.push((format!("{name}_flat"), tensors[number].clone()));
        let _ = writeln!(self.text, "let {name} = {name}_flat.as_strided({}, {}, {});", input[1], input[2], input[3]);
    }

    fn gradients(&mut self, case: &Value, tensors: &[Data]) {
        let Some(grads) = case["grad"].as_object() else { return };
        let loss = ints(&case["loss"]);
        for &at in &loss {
            let number = case["out"][at][1].as_u64().expect("an exact result") as usize;
            let result = &tensors[number];
            self.inputs.push((format!("w{at}"), weights(&result.dtype, &result.shape)));
        }
        let _ = match loss[..] {
            [at] => writeln!(self.text, "r{at}.backward(w{at}.to(r{at}.device));"),
            _ => {
                let terms: Vec<String> = loss.iter().map(|at| format!("(r{at} * w{at}).sum()")).collect();
                writeln!(self.text, "({}).backward();", terms.join(" + "))
            }
        };
        for name in grads.keys() {
            let _ = match case["in"][name].get("complex") {
                Some(_) => writeln!(self.text, "let g_{name} = view_as_real({name}.grad);"),
                None => writeln!(self.text, "let g_{name} = {name}.grad;"),
            };
            self.results.push(format!("g_{name}"));
        }
    }
}

/// Counts by file, and what failed.
#[derive(Default)]
struct Report {
    rows: Vec<(String, String, [usize; 3])>,
    failures: Vec<String>,
}

impl Report {
    fn add(&mut self, suite: &Suite, verdicts: &[Verdict], verbose: bool) {
        let mut counts = [0; 3];
        for (at, verdict) in verdicts.iter().enumerate() {
            let (column, why) = match verdict {
                Verdict::Passed => (0, None),
                Verdict::Failed(why) => (1, Some(why)),
                Verdict::Unsupported(why) => (2, Some(why)),
                Verdict::LeftOut => continue,
            };
            counts[column] += 1;
            let Some(why) = why else { continue };
            let case = &suite.cases[at];
            let said = if case["call"] == "" { &case["pre"] } else { &case["call"] };
            let line = format!("{}#{at} {} {} `{said}`: {why}", suite.name, case["form"], case["dtype"]);
            if verbose {
                println!("{line}");
                println!("{}", Script::of(case, &suite.tensors).text);
            }
            self.failures.push(line);
        }
        self.rows.push((suite.tier.clone(), suite.name.clone(), counts));
    }

    /// Worst first, what passes whole only counted.
    fn text(&self) -> String {
        let mut text = String::from("| tier | operation | passed | failed | unsupported |\n|---|---|---|---|---|\n");
        let mut rows: Vec<_> = self.rows.iter().filter(|(_, _, [_, failed, missing])| failed + missing > 0).collect();
        rows.sort_by_key(|(tier, name, [_, failed, missing])| {
            (tier.clone(), usize::MAX - failed - missing, name.clone())
        });
        for (tier, name, [passed, failed, missing]) in rows {
            let _ = writeln!(text, "| {tier} | {name} | {passed} | {failed} | {missing} |");
        }
        let tiers: BTreeSet<&String> = self.rows.iter().map(|(tier, _, _)| tier).collect();
        for tier in tiers {
            let of = self.rows.iter().filter(|row| row.0 == *tier);
            let whole = of.clone().filter(|row| row.2[1] + row.2[2] == 0).count();
            let sum = of.clone().fold([0; 3], |s, row| [s[0] + row.2[0], s[1] + row.2[1], s[2] + row.2[2]]);
            let [passed, failed, missing] = sum;
            let _ = writeln!(
                text,
                "\n{tier}: {whole} of {} files whole; {passed} cases passed, {failed} failed, {missing} unsupported",
                of.count()
            );
        }
        text
    }

    fn write(&self) {
        let path = root().join("target/opinfo-report.md");
        let text = format!("# OpInfo report\n\n{}\n## Failures\n\n- {}\n", self.text(), self.failures.join("\n- "));
        if let Err(why) = std::fs::write(&path, text) {
            println!("{}: {why}", path.display());
        }
    }
}

/// The failures that are known: `name#7` is one case, `name *` a whole file.
#[derive(Default)]
struct Ratchet {
    whole: BTreeSet<String>,
    single: BTreeSet<(String, usize)>,
}

impl Ratchet {
    fn path() -> PathBuf {
        fixtures().join("opinfo/expected_failures.txt")
    }

    /// What may fail on real GPUs besides, with the reason; written by hand.
    fn of_gpus() -> PathBuf {
        fixtures().join("opinfo/expected_failures_gpu.txt")
    }

    fn read() -> Ratchet {
        let mut list = Ratchet::default();
        let mut text = std::fs::read_to_string(Self::path()).unwrap_or_default();
        if on_real_gpus() {
            text += &std::fs::read_to_string(Self::of_gpus()).unwrap_or_default();
        }
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let name = line.split_whitespace().next().unwrap_or("");
            match name.split_once('#') {
                Some((file, at)) => {
                    list.single.insert((file.to_string(), at.parse().unwrap_or_else(|_| panic!("{line}"))));
                }
                None => {
                    list.whole.insert(name.to_string());
                }
            }
        }
        list
    }

    fn problems(&self, verdicts: &BTreeMap<String, Vec<Verdict>>, partial: bool) -> (Vec<String>, Vec<String>) {
        let (mut problems, mut better) = (Vec::new(), Vec::new());
        for (file, results) in verdicts {
            for (at, verdict) in results.iter().enumerate() {
                let listed = self.whole.contains(file) || self.single.contains(&(file.clone(), at));
                match verdict {
                    Verdict::Passed if listed => better.push(format!("{file}#{at}")),
                    Verdict::Failed(why) | Verdict::Unsupported(why) if !listed => {
                        problems.push(format!("{file}#{at}: {why}"));
                    }
                    _ => {}
                }
            }
        }
        if !partial {
            let gone = self.whole.iter().filter(|file| !verdicts.contains_key(*file)).cloned();
            problems.extend(gone.map(|file| format!("{file}: listed, and there is no such file")));
        }
        for (file, at) in &self.single {
            let count = verdicts.get(file).map(Vec::len);
            if count.map_or(!partial, |count| *at >= count) {
                problems.push(format!("{file}#{at}: listed, and there is no such case"));
            }
        }
        (problems, better)
    }

    fn write(verdicts: &BTreeMap<String, Vec<Verdict>>) {
        let mut text =
            String::from("// Cases that are known to fail: `file#case`, or `file *` when all do. See README.md.\n");
        for (file, results) in verdicts {
            if results.iter().all(|verdict| *verdict != Verdict::Passed) {
                let _ = writeln!(text, "{file} *");
                continue;
            }
            for (at, verdict) in results.iter().enumerate() {
                if let Verdict::Failed(why) | Verdict::Unsupported(why) = verdict {
                    let _ = writeln!(text, "{file}#{at} {why}");
                }
            }
        }
        std::fs::write(Self::path(), text).expect("the list can be written");
    }
}

/// The judge itself must be able to say no.
mod tests {
    use super::*;

    fn data(values: &[f32]) -> Data {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Data { dtype: "f32".to_string(), shape: vec![values.len()], bytes }
    }

    #[test]
    fn comparison_distinguishes_values_shapes_and_dtypes() {
        let x = data(&[1.0, f32::NAN, f32::INFINITY]);
        assert_eq!(same(&x, &x, 0.0, 0.0), Ok(()));
        assert!(same(&x, &data(&[1.0, 1.0, f32::INFINITY]), 1.0, 1.0).is_err());
        assert!(same(&x, &data(&[1.0, f32::NAN, f32::MAX]), 1.0, 1.0).is_err());
        assert!(same(&data(&[1.0]), &data(&[1.001]), 1e-4, 1e-4).is_err());
        assert!(same(&data(&[1.0]), &data(&[1.0001]), 1e-3, 0.0).is_ok());
        assert!(same(&x, &Data { dtype: "i32".to_string(), ..x.clone() }, 1.0, 1.0).is_err());
        let (a, b) = (weights("f64", &[3]), weights("f64", &[1, 3]));
        assert!(same(&a, &b, 1.0, 1.0).is_err());
        assert_eq!(floats(&a), [-0.78125, -0.203125, 0.375]);
    }

    #[test]
    fn ratchet_reports_both_directions() {
        let list =
            Ratchet { whole: ["a".to_string()].into(), single: [("b".to_string(), 1), ("b".to_string(), 9)].into() };
        let bad = Verdict::Failed("off".to_string());
        let verdicts = BTreeMap::from([
            ("a".to_string(), vec![bad.clone(), Verdict::Passed]),
            ("b".to_string(), vec![bad.clone(), bad]),
        ]);
        let (problems, better) = list.problems(&verdicts, false);
        assert_eq!(problems, ["b#0: off", "b#9: listed, and there is no such case"]);
        assert_eq!(better, ["a#1"]);
    }
}
