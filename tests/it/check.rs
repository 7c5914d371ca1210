//! `tscript check`: names that stand for nothing are told without running the text, and nothing else is.

use super::scripts;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tscript::{Error, Session};

/// The codes that checking a text tells, with their lines; warnings first.
fn told(text: &str) -> Vec<String> {
    let warned = Arc::new(Mutex::new(Vec::new()));
    let sink = warned.clone();
    let place = |error: &Error| {
        let line = error.location().map_or(0, |at| at.line);
        format!("{} {line}", error.code())
    };
    let builder = Session::builder().all_files();
    let builder = builder.on_warning(move |error| sink.lock().expect("no panic").push(place(error)));
    let mut session = builder.build().expect("a session starts");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("own.rhai"), "fn known() { #{greet: || 1} }").expect("it can be written");
    let checked = session.check_source(&folder.path().join("a.rhai"), text);
    let mut found = warned.lock().expect("no panic").clone();
    if let Err(error) = checked {
        found.push(place(&error));
        found.extend(error.extra().iter().map(|diag| diag.code.to_string()));
    }
    found
}

#[test]
fn names_that_stand_for_nothing_are_told() {
    for (text, wanted) in [
        ("let x = y + 1;", vec!["E0102 1"]),
        ("let x = 1;\nfn f() { x }", vec!["E0102 2"]),
        ("if true { let x = 1; }\nprint(x);", vec!["E0102 2"]),
        ("print(x);\nlet x = 1;", vec!["E0102 1"]),
        ("x = 5;", vec!["E0102 1"]),
        ("let f = |x| x + z;", vec!["E0102 1"]),
        ("print(`a ${b} c`);", vec!["E0102 1"]),
        ("zeors([2]);", vec!["E0103 1"]),
        ("fn f(x) { x }\nf(1, 2);", vec!["E0208 2"]),
        ("let f = |x| x; f(1);", vec!["E0103 1"]),
        ("zeros([2]).reluu();", vec!["E0103 1"]),
        ("import \"nope\" as nope;", vec!["E0106 1"]),
        ("nn::linear(2, 3);", vec!["E0106 1"]),
        ("import \"nn\" as nn;\nnn::linaer(2, 3);", vec!["E0103 2"]),
        ("import \"own\" as own;\nown::unknown();", vec!["E0103 2"]),
        ("cuda::is_avialable();", vec!["E0103 1"]),
        ("zeros([2], #{dvice: \"cpu\"});", vec!["E0203 1"]),
        ("let x = zeros([2]);\nx.sum(#{dim: 0, keepdims: true});", vec!["E0203 2"]),
        ("a; b; c;", vec!["E0102 1", "E0102", "E0102"]),
        ("let y = (2;\nzeors([2]);", vec!["E0101 1"]),
    ] {
        assert_eq!(told(text), wanted, "{text}");
    }
}

#[test]
fn what_stands_for_something_is_not_told() {
    for text in [
        "let x = 1; let f = |y| x + y; print(f.call(2), `${x:.3f} ${PI:e}`);",
        "fn f(x) { let y = x; for i in 0..y { print(i, y); } g(y) } fn g(z) { z } f(3); [1].map(g);",
        "import \"nn\" as nn; let m = nn::linear(2, 3); m.train(); print(m.forward(ones([1, 2])).shape, m.weight);",
        "import \"own\" as own; own::known().greet(); own::known().anything();",
        "let m = #{hello: || 1, n: 2}; m.hello(); m.later = |x| x; m.later(1); print(this_is(m));\nfn this_is(m) { m.n }",
        "try { throw 1; } catch (e) { print(e); } switch 3 { 1 => 2, _ => 3 }; let v = if true { 1 } else { 2 }; print(v);",
        "print(args, INF, f32, arg(\"lr\", 1)); const K = 2; fn f() { global::K } f();",
        "with_device(\"cpu\") { let a = 1; print(a); } no_grad() { print(cuda::is_available()); }",
        "let a = [1, 2]; let b = a.map(|x| x * 2).filter(|x| x > 1); b.push(3); print(b.len(), Fn(\"f\").call(1)); fn f(x) { x }",
        "zeros([2], #{device: \"cpu\", dtype: f32}).sum(#{dim: 0}).to(#{non_blocking: true, copy: true}); let m = #{sum: |o| o}; m.sum(#{x: 1});",
        "eval(\"let hidden = 1\"); print(hidden);",
        "let s = \"text\"; s.to_upper(); print(s.split(\" \"), type_of(s));",
    ] {
        assert_eq!(told(text), Vec::<String>::new(), "{text}");
    }
}

/// Loops that take pairs apart as Python does.
#[test]
fn a_loop_that_counts_where_pairs_are_meant_is_told() {
    for (text, wanted) in [
        ("for (a, b) in [[1, 2]] { print(a, b); }", vec!["E0112 1"]),
        ("let m = #{a: 1};\nfor (k, v) in m.items() { print(k, v); }", vec![]),
        ("let ps = [[1, 2], [3, 4]];\nfor (a, b) in ps { print(a, b); }", vec!["E0112 2"]),
        ("for (k, v) in #{a: 1} { print(k, v); }", vec!["E0112 1"]),
        ("for (row, i) in [[1, 2]] { print(row, i); }", vec![]),
        ("for (a, b) in [1, 2] { print(a, b); }", vec![]),
        ("for (a, b) in [[1, 2, 3]] { print(a, b); }", vec![]),
        ("for (a, b) in f() { print(a, b); }\nfn f() { [[1, 2]] }", vec![]),
    ] {
        assert_eq!(told(text), wanted, "{text}");
    }
}

/// Every script of the repository, those that are wrong on purpose apart.
#[test]
fn the_repositorys_scripts_are_right() {
    let wrong = ["cuda_names.rhai", "with_device_ways_out.rhai"];
    let root = scripts::root();
    let mut problems = Vec::new();
    for folder in ["scripts", "scripts/semantics", "tests/golden", "tests/std"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder").flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rhai")) {
            if wrong.iter().any(|name| path.ends_with(Path::new(name))) {
                continue;
            }
            let mut session = Session::builder().all_files().build().expect("a session starts");
            let text = session.read_source(&path).expect("it can be read");
            if let Err(error) = session.check_source(&path, &text) {
                problems.push(format!("{}: {error:#}", path.display()));
            }
        }
    }
    scripts::none(problems);
}
