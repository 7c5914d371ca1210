//! The trace of a session: rows, flows from launch to execution, lines, waits, counters; the table; the flag.

use super::scripts::builder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tscript::internals::tools::profile::{chrome_trace, table};

const SCRIPT: &str = "let s = stream(#{device: \"cuda:0\"});
let x = ones([64, 64], #{device: \"cuda:0\"});
s.wait_stream(default_stream(0));
with_stream(s) { let y = (x @ x).relu(); print(y.sum().item()); }
let host = ones([8, 8]);
let h = (host + 1).exp();
print(h.sum().item());
print(x.to(\"cuda:1\").sum().item());
synchronize();
";

fn session(seed: Option<u64>) -> tscript::Session {
    let base = builder().output(|_| {}).simulate_gpus(2).profile(true);
    let base = if let Some(seed) = seed { base.simulate_seed(seed) } else { base };
    let mut session = base.build().expect("a session starts");
    session.run_str("work.rhai", SCRIPT).expect("it runs");
    session
}

fn events(session: &tscript::Session) -> Vec<Value> {
    let text = chrome_trace(&session.timeline().expect("it was asked for"));
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    trace["traceEvents"].as_array().expect("events").clone()
}

fn of<'a>(events: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == phase)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// How many steps the last line of a script took.
fn steps(text: &str) -> usize {
    let mut session = builder().output(|_| {}).profile(true).build().expect("a session starts");
    session.run_str("steps.rhai", text).expect("it runs");
    let last = format!("steps.rhai:{}", text.lines().count());
    let events = events(&session);
    of(&events, "X").filter(|e| e["cat"] == "work" && e["args"]["lines"].to_string().contains(&last)).count()
}

/// A pass over all elements is one step: both parts of complex numbers, and a norm whose factors are made before it.
#[test]
fn passes_over_all_elements_are_one_step() {
    let parts = "let x = rand([64]); let y = rand([64]); synchronize();
        let z = complex(x, y); let w = z * z + x.to(\"c64\"); synchronize();";
    assert_eq!(steps(parts), 1);
    let norm = "let x = rand([4, 3, 8, 8]); let s = rand([3]); synchronize();
        let y = batch_norm(x, s, s, s, s); synchronize();";
    assert_eq!(steps(norm), 2);
}

#[test]
fn a_trace_has_a_row_a_stream_and_one_for_the_script() {
    for seed in [None, Some(4)] {
        let events = events(&session(seed));
        let mut rows = BTreeMap::new();
        for event in of(&events, "M") {
            let key = (event["pid"].as_u64(), event["tid"].as_u64(), event["name"].to_string());
            rows.insert(key, event["args"]["name"].as_str().expect("a name").to_string());
        }
        let names: BTreeSet<&str> = rows.values().map(String::as_str).collect();
        for expected in ["script", "cpu", "cuda:0", "cuda:1", "stream 0", "stream 1"] {
            assert!(names.contains(expected), "{expected} is missing in {names:?}");
        }
        let tracks: BTreeSet<_> = of(&events, "M").map(|e| (e["pid"].as_u64(), e["tid"].as_u64())).collect();
        let slices: Vec<&Value> = of(&events, "X").collect();
        assert!(slices.iter().all(|e| tracks.contains(&(e["pid"].as_u64(), e["tid"].as_u64()))));
        assert!(slices.iter().all(|e| number(&e["ts"]) >= 0.0 && number(&e["dur"]) >= 0.0));
        assert!(of(&events, "C").any(|e| e["name"] == "memory of cuda:0" && number(&e["args"]["bytes"]) >= 16384.0));
    }
}

#[test]
fn every_slice_names_its_line_and_flows_lead_from_launch_to_work() {
    for seed in [None, Some(4)] {
        let events = events(&session(seed));
        let lines = |event: &Value| -> Vec<String> {
            let lines = event["args"]["lines"].as_array().expect("lines");
            lines.iter().map(|line| line.as_str().expect("a text").to_string()).collect()
        };
        let at = |category: &str, name: &str| -> BTreeSet<String> {
            let fits = |e: &&Value| e["cat"] == category && e["name"].as_str().is_some_and(|n| n.contains(name));
            of(&events, "X").filter(fits).flat_map(lines).collect()
        };
        assert!(of(&events, "X").all(|event| !lines(event).is_empty()));
        for (name, line) in [("matmul", 4), ("relu", 4), ("exp", 6), ("to", 8)] {
            let expected = format!("work.rhai:{line}");
            assert!(at("launch", name).contains(&expected), "{name}: {:?}", at("launch", name));
            assert!(at("work", name).contains(&expected), "{name}: {:?}", at("work", name));
        }
        assert!(at("wait", "reading").contains("work.rhai:4"), "{:?}", at("wait", ""));
        let ids = |phase| of(&events, phase).map(|e| e["id"].as_u64().expect("an id")).collect::<BTreeSet<u64>>();
        let (starts, ends) = (ids("s"), ids("f"));
        assert!(ends.len() > 5 && ends.is_subset(&starts), "{ends:?} out of {starts:?}");
        assert!(of(&events, "f").all(|e| e["bp"] == "e"));
        if seed.is_none() {
            // Nothing is carried out before it was asked for. With a seed the streams have a time of their own.
            let start = |phase, id| of(&events, phase).find(|e| e["id"] == id).map(|e| number(&e["ts"]));
            for id in ends {
                assert!(start("s", id) <= start("f", id), "{id}");
            }
        }
    }
}

#[test]
fn the_table_shows_slow_lines_and_waits() {
    let session = session(None);
    let text = table(&session.timeline().expect("it was asked for"));
    assert!(text.starts_with("slowest lines: "), "{text}");
    assert!(text.contains("lines that made the script wait: "), "{text}");
    for line in ["work.rhai:4", "work.rhai:6", "work.rhai:7"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(tscript::Session::builder().build().expect("a session").timeline().is_none());
}

#[test]
fn functions_of_the_script_have_names_lines_and_times() {
    let mut session = builder().output(|_| {}).profile(true).build().expect("a session starts");
    let text = "// A comment.
fn fib(n) {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}
fn train(x) { for i in 0..3 { x = (x @ x).tanh(); } x.sum().item() }
print(fib(12), train(randn([8, 8])), [1, 2, 3].map(|x| x * fib(x)));
try { fib(\"a\"); } catch (e) { }
";
    session.run_str("work.rhai", text).expect("it runs");
    let timeline = session.timeline().expect("it was asked for");
    let text = table(&timeline);
    for line in ["work.rhai:2 `fib`", "work.rhai:5 `train`", "work.rhai:6 a closure", "work.rhai:6 the top level"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let times: BTreeMap<&str, _> =
        timeline.functions.functions.iter().map(|(function, time)| (&*function.name, time)).collect();
    // fib(12) makes 465 calls, those of 1, 2 and 3 nine, and the one that fails one.
    assert_eq!(times["fib"].calls, 465 + 9 + 1);
    assert_eq!((times["fib"].busy_ns, times["train"].calls), (0, 1));
    assert!(times["train"].busy_ns > 0 && times["train"].busy_ns <= times["train"].own_ns);
    let own: u64 = times.values().map(|time| time.own_ns).sum();
    assert_eq!(own, times[""].total_ns);
    let calls = events(&session);
    let calls = of(&calls, "X").filter(|event| event["cat"] == "function" && event["name"] == "`fib`").count();
    assert_eq!(calls, 475);
}

#[test]
fn the_program_writes_a_trace_and_ends_with_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let (script, trace) = (folder.path().join("a.rhai"), folder.path().join("t.json"));
    std::fs::write(&script, "let x = ones([8, 8]);\nprint((x @ x).sum().item());\n").expect("written");
    let run = |words: &[&std::ffi::OsStr]| {
        let program = std::process::Command::new(super::scripts::program()).arg("run").args(words).output();
        program.expect("it starts")
    };
    let out = run(&[script.as_os_str(), "--profile".as_ref(), trace.as_os_str()]);
    let reported = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && reported.contains("slowest lines") && reported.contains("a.rhai:2"), "{reported}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "512.0\n");
    let text = std::fs::read_to_string(&trace).expect("the trace");
    assert!(serde_json::from_str::<Value>(&text).expect("JSON")["traceEvents"].as_array().is_some_and(|e| e.len() > 4));
    let nowhere = folder.path().join("no").join("t.json");
    let out = run(&[script.as_os_str(), "--profile".as_ref(), nowhere.as_os_str()]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("E06") && out.status.code() == Some(1));
}

/// What the library and `backward` make by themselves has a name, too.
#[test]
fn nothing_is_without_a_name() {
    for gpus in [0, 1] {
        let base = builder().output(|_| {}).profile(true);
        let base = if gpus > 0 { base.simulate_gpus(gpus).device("cuda") } else { base };
        let mut session = base.build().expect("a session starts");
        let text = "import \"nn\" as nn; import \"optim\" as optim;
            let model = nn::sequential([nn::linear(3, 2), nn::batch_norm1d(2), nn::dropout(0.5)]);
            let opt = optim::adam(model.parameters(), #{lr: 0.1});
            model.forward(randn([4, 3])).sum().backward();
            opt.step();
            let x = zeros([2, 2]); x[0] = 1; x[x > 0] = 2; print(x, model.layers[0].weight);";
        session.run_str("work.rhai", text).expect("it runs");
        let unnamed: Vec<Value> = of(&events(&session), "X")
            .filter(|event| event["name"].as_str().is_none_or(|name| name.split(", ").any(str::is_empty)))
            .cloned()
            .collect();
        assert!(unnamed.is_empty(), "{unnamed:?}");
    }
}
