//! `tscript check`: mistakes that a text alone shows are told without running it, and nothing else is. `tests/check`
//! has scripts that are wrong, with what is told of them, and scripts that are right.

use super::scripts;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tscript::{Error, Session};

/// What checking a text tells, in its order.
fn check(path: &Path, text: &str) -> Vec<Error> {
    Session::builder().all_files().build().expect("a session starts").check_source(path, text)
}

/// The code and line of a finding.
fn place(error: &Error) -> String {
    let line = error.location().map_or(0, |at| at.line);
    format!("{} {line}", error.code())
}

fn reported(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("own.rhai"), "fn known() { #{greet: || 1} }").expect("it can be written");
    check(&folder.path().join("a.rhai"), text).iter().map(place).collect()
}

/// The same without what is odd, which is another test's matter.
fn errors(text: &str) -> Vec<String> {
    let odd = ["E0115", "E0116", "E0117", "E0118", "E0119", "E0120"];
    reported(text).into_iter().filter(|found| !odd.iter().any(|code| found.starts_with(code))).collect()
}

/// Scripts that fail in a run, or do something that nobody means: what is told of each, line by line.
#[test]
fn wrong_scripts_are_reported() {
    let mut text = String::new();
    let mut problems = Vec::new();
    for path in scripts::scripts("check/wrong") {
        let (name, script) = (scripts::file_name(&path), std::fs::read_to_string(&path).expect("a script"));
        let found = check(Path::new(&name), &script);
        if found.is_empty() {
            problems.push(format!("{name}: nothing is told"));
        }
        for error in &found {
            let at = error.location().map_or(String::new(), |at| format!("{}:{}", at.line, at.column));
            let help = error.help().map_or(String::new(), |help| format!("\n    {help}"));
            text += &format!("{name}:{at}: {}: {}{help}\n", error.code(), error.message());
        }
        // A run says so, too, unless it is only odd.
        let is_error =
            |error: &Error| !["E0115", "E0116", "E0117", "E0118", "E0119", "E0120"].contains(&error.code().as_str());
        let ran = scripts::run(scripts::builder().output(|_| {}), &name, &script);
        if found.iter().any(is_error) != ran.result.is_err() {
            problems.push(format!("{name}: a run says {:?}", ran.result.err()));
        }
    }
    problems.extend(scripts::compare(&scripts::folder("check").join("wrong.txt"), &text));
    scripts::none(problems);
}

/// Scripts that run, and of which nothing is told.
#[test]
fn right_scripts_are_left_alone() {
    let mut problems = Vec::new();
    for path in scripts::scripts("check/right") {
        let (name, script) = (scripts::file_name(&path), std::fs::read_to_string(&path).expect("a script"));
        let ran = scripts::run(scripts::builder(), &name, &script);
        problems.extend(ran.result.err().map(|error| format!("{name} does not run: {error}")));
        problems.extend(check(Path::new(&name), &script).iter().map(|error| format!("{name}: {error}")));
    }
    scripts::none(problems);
}

#[test]
fn undefined_names_are_reported() {
    for (text, expected) in [
        ("let x = y + 1;", vec!["E0102 1"]),
        ("let x = 1;\nfn f() { x }", vec!["E0102 2"]),
        ("if true { let x = 1; }\nprint(x);", vec!["E0102 2"]),
        ("print(x);\nlet x = 1;", vec!["E0102 1"]),
        ("x = 5;", vec!["E0102 1"]),
        ("let f = |x| x + z;", vec!["E0102 1"]),
        ("print(`a ${b} c`);", vec!["E0102 1"]),
        ("zeors([2]);", vec!["E0103 1"]),
        ("fn f(x) { x }\nf(1, 2);", vec!["E0208 2"]),
        ("let f = 2; f(1);", vec!["E0103 1"]),
        ("let f = |x| x; f(1, 2);", vec!["E0208 1"]),
        ("zeros([2]).reluu();", vec!["E0103 1"]),
        ("import \"nope\" as nope;", vec!["E0106 1"]),
        ("nn::linear(2, 3);", vec!["E0106 1"]),
        ("import \"nn\" as nn;\nnn::linaer(2, 3);", vec!["E0103 2"]),
        ("import \"own\" as own;\nown::unknown();", vec!["E0103 2"]),
        ("cuda::is_avialable();", vec!["E0103 1"]),
        ("zeros([2], #{dvice: \"cpu\"});", vec!["E0203 1"]),
        ("let x = zeros([2]);\nx.sum(#{dim: 0, keepdimz: true});", vec!["E0203 2"]),
        ("a; b; c;", vec!["E0102 1", "E0102 1", "E0102 1"]),
        ("let y = (2;\nzeors([2]);", vec!["E0101 1"]),
    ] {
        assert_eq!(errors(text), expected, "{text}");
    }
}

#[test]
fn defined_names_are_not_reported() {
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
        assert_eq!(errors(text), Vec::<String>::new(), "{text}");
    }
}

/// What a statement names and does not call is told by a run, too, before it begins.
#[test]
fn a_run_warns_of_methods_that_are_not_called() {
    let reported = |text: &str| {
        let found = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = found.clone();
        let builder =
            Session::builder().on_warning(move |error: &Error| sink.lock().expect("no panic").push(place(error)));
        let mut session = builder.output(|_| {}).build().expect("a session starts");
        session.run_str("a", &format!("import \"optim\" as optim;\nlet m = #{{a: 1}};\n{text}")).expect("it runs");
        drop(session);
        found.lock().expect("no panic").clone()
    };
    let opt = "let opt = optim::sgd([ones([1], #{requires_grad: true})], #{lr: 0.1});";
    assert_eq!(reported(&format!("{opt} opt.step;")), ["E0116 3"]);
    assert_eq!(
        reported(&format!("{opt}\nif true {{ opt.zero_grad; }}\nopt.state_dict; opt.lr;")),
        ["E0116 4", "E0116 5", "E0116 5"]
    );
    for fine in ["m.a;", "opt.step();", "let f = opt.step; f.call();", "m.step = 3;", "opt.step"] {
        assert_eq!(reported(&format!("{opt} {fine}")), Vec::<String>::new(), "{fine}");
    }
}

/// Loops that take pairs apart as Python does.
#[test]
fn a_loop_that_counts_where_pairs_are_meant_is_reported() {
    for (text, expected) in [
        ("for (a, b) in [[1, 2]] { print(a, b); }", vec!["E0112 1"]),
        ("let m = #{a: 1};\nfor (k, v) in m.items() { print(k, v); }", vec![]),
        ("let ps = [[1, 2], [3, 4]];\nfor (a, b) in ps { print(a, b); }", vec!["E0112 2"]),
        ("for (k, v) in #{a: 1} { print(k, v); }", vec!["E0112 1"]),
        ("for (row, i) in [[1, 2]] { print(row, i); }", vec![]),
        ("for (a, b) in [1, 2] { print(a, b); }", vec![]),
        ("for (a, b) in [[1, 2, 3]] { print(a, b); }", vec![]),
        ("for (a, b) in f() { print(a, b); }\nfn f() { [[1, 2]] }", vec![]),
    ] {
        assert_eq!(reported(text), expected, "{text}");
    }
}

/// A function gets copies of arrays and maps: `check` says where a change of one is lost, and so does a run.
#[test]
fn changes_that_nobody_sees_are_reported() {
    for (text, expected) in [
        ("fn f(xs) { xs.push(1); }\nf([]);", vec!["E0114 1"]),
        ("fn f(m) {\n m.a.b += 1; }\nf(#{a: #{b: 1}});", vec!["E0114 2"]),
        ("fn f(xs) {\n for i in 0..3 { xs[i] = i; } }\nf([1, 2, 3]);", vec!["E0114 2"]),
        ("fn f(xs) { xs += [1]; }\nf([]);", vec!["E0114 1"]),
        ("fn f(m) { if m.n > 1 { m.n = 0; return m; }\n m.n = 1; }\nf(#{n: 1});", vec!["E0114 2"]),
        // Returned, read afterwards, in the same loop, or by a closure; with another value; used.
        ("fn f(xs) { xs.push(1); xs }\nf([]);", vec![]),
        ("fn f(xs) { xs.push(1); print(xs); }\nf([]);", vec![]),
        ("fn f(xs) { for i in 0..3 { if xs.len() > 1 { break; } xs.push(i); } }\nf([]);", vec![]),
        ("fn f(xs) { let g = || xs.len(); xs.push(1); g }\nf([]);", vec![]),
        ("fn f(xs) { let xs = [1]; xs.push(1); xs }\nf([]);", vec![]),
        ("fn f(xs) { xs.pop() }\nprint(f([1]));", vec![]),
        // A tensor is no copy, nor is what a cell holds.
        ("fn f(m) { m.x[0] = 1.0; }\nf(#{x: zeros([2])});", vec![]),
        ("fn f(m) { m.x.set(1); }\nf(#{x: cell(0)});", vec![]),
        ("fn f(m) { m.x.push(1); }\nf(#{x: []});", vec!["E0114 1"]),
        ("fn f(x) { x[0] = 1.0; x += 1.0; }\nf(zeros([2]));", vec![]),
        // The variable of a loop is a copy, too.
        ("for m in [#{a: 1}] { m.a = 2; }", vec!["E0114 1"]),
        ("for m in [[1]] { for i in 0..2 { m.push(i); } }", vec!["E0114 1"]),
        ("for m in [[1]] { m.push(2); print(m); }", vec![]),
        ("let last = ();\nfor m in [[1]] { m.push(2); last = m; }\nprint(last);", vec![]),
        ("let fs = [];\nfor m in [[1]] { m.push(1); fs.push(|| m); }\nprint(fs.len());", vec![]),
        ("for m in [[1]] { for i in 0..2 { if m.len() > 1 { break; } m.push(i); } }", vec![]),
        ("for x in [zeros([1])] { x[0] = 1.0; x += 1.0; }", vec![]),
        // What a call gives, and nobody holds.
        ("let a = [3, 1];\nsorted(a).push(2);\nreversed(a).push(4);", vec!["E0114 2", "E0114 3"]),
        ("let a = [3, 1];\na.map(|x| x).sort();\na.filter(|x| x > 1).clear();", vec!["E0114 2", "E0114 3"]),
        ("set([1]).add(2);\nlet s = set([1]); s.add(2); print(s);", vec!["E0114 1"]),
    ] {
        let only =
            |found: Vec<String>| found.into_iter().filter(|found| found.starts_with("E0114")).collect::<Vec<_>>();
        assert_eq!(only(reported(text)), expected, "{text}");
        assert_eq!(only(warned_twice(text)), expected, "a run of {text}");
    }
    // The text alone does not say what these are.
    for text in [
        "\n[3, 1].map(|x| x).sort();",
        "let m = #{k: [1]};\nm.get(\"k\").push(2);",
        "let m = #{k: [1]};\n(m.k ?? []).push(2);",
        "let s = set([1]);\ns.union([2]).add(3);",
        "fn f(m) {\n let r = m.get(\"k\", []); r.push(1); }\nf(#{});",
        "fn f(m) {\n let [q] = m.rows; q.push(1); }\nf(#{rows: [[1]]});",
        "let bank = [#{bal: 0, dep: |x| { this.bal += x; }}];\nfor b in bank { b.dep(5); }",
        "fn up() { this.n += 1; } fn f(m) {\n m.up(); }\nf(#{n: 1});",
        "fn f(xs) {\n for m in xs { m.push(1); } }\nf([[1], [2]]);",
        "let ms = [[1]];\nfor (m, i) in ms { m.push(i); }",
        "\nfor [i, m] in enumerate([[1]]) { m.push(i); }",
        "\nfor #{m} in [#{m: [1]}] { m.push(1); }",
    ] {
        assert_eq!(warned_twice(text), ["E0114 2"], "a run of {text}");
    }
    // Read by the method, by what comes later, through a handle; and what later texts may read.
    for text in [
        "let bank = [#{bal: 0, dep: |x| { this.bal += x; }}]; for b in bank { b.dep(5); print(b.bal); }",
        "let bank = [#{c: cell(0), dep: |x| { this.c.set(x); }}]; for b in bank { b.dep(5); }",
        "fn up() { this.n += 1; } fn f(m) { m.up(); m } f(#{n: 1});",
        "let g = [[1]]; if true { let r = g[0]; r.push(1); g[0] = r; }",
        "let g = [[1]]; if true { let r = g[0]; r.push(1); eval(\"print(r)\"); }",
        "if true { let r = sorted([1]); r.push(1); }",
        "let x = [zeros([2])]; if true { let r = x[0]; r[0] = 1.0; r.add_(1); x[0].add_(1); }",
        "let g = [[1]]; let r = g[0]; r.push(1);",
        "let m = #{l: [1]}; m.l.push(2); m[\"l\"][0] = 1; print(m);",
    ] {
        assert_eq!(warned_twice(text), Vec::<String>::new(), "a run of {text}");
    }
    // A script has no later texts.
    for (text, expected) in [
        ("let g = [[1]]; let r = g[0];\nr.push(1);\nprint(g);", vec!["E0114 2"]),
        ("let a = [1, 2];\na[0..1].push(3);", vec!["E0114 2"]),
        ("let g = [[1]]; export let r = g[0]; r.push(1);", vec![]),
    ] {
        assert_eq!(reported(text), expected, "{text}");
    }
}

/// The closure of a `for_each` gets the number of the element.
#[test]
fn a_for_each_that_counts_is_reported() {
    for (text, expected) in [
        ("let t = 0;\n[10, 20].for_each(|x| t += x);\nprint(t);", vec!["E0112 2"]),
        ("let t = 0;\n[10, 20].for_each(|i| t += i);\nprint(t);", vec![]),
        ("let v = [10, 20]; v.for_each(|x| this += x);\nprint(v);", vec![]),
        ("let v = [10, 20]; v.for_each(|| this += 1);\nprint(v);", vec![]),
    ] {
        assert_eq!(reported(text), expected, "{text}");
        assert_eq!(warned_twice(text), expected, "a run of {text}");
    }
}

/// Python's names of types are none here.
#[test]
fn types_of_python_are_reported() {
    let found = reported("let x = 1; print(type_of(x) == \"int\", x.type_of() != \"str\", type_of(x) == \"i64\");");
    assert_eq!(found, ["E0118 1", "E0118 1"]);
}

/// Methods that other values have, entries of maps that are none, and patterns that do not fit.
#[test]
fn what_a_known_value_has_not_is_reported() {
    for (text, expected) in [
        ("let x = 5; x.push(1);", "E0103 1"),
        ("let s = \"abc\"; s.push(1);", "E0103 1"),
        ("let m = #{a: 1}; m.b();", "E0103 1"),
        ("let m = #{a: 1}; m.a();", "E0103 1"),
        ("let [a, b] = [1]; print(a, b);", "E0206 1"),
        ("let [a, ..b] = []; print(a, b);", "E0206 1"),
        ("let #{a, b} = #{a: 1}; print(a, b);", "E0104 1"),
    ] {
        assert_eq!(reported(text), [expected], "{text}");
    }
    for text in [
        "let m = #{a: 1}; m.b = |x| x; m.b(1);",
        "let m = #{len: 1}; print(m.len(), m.keys(), m.get(\"a\"));",
        "fn b() { this } let m = #{a: 1}; m.b();",
        "let [a, ..b] = [1]; let [c] = [2]; let #{x, ..} = #{x: 1, y: 2}; print(a, b, c, x);",
        "let t = \"ab\"; print(t.index(\"b\"), t.count(\"a\"), [1].index(1), [1].count(1), 3.to_string(), 4.max(5));",
        "let xs = [1]; xs.push(2); xs.insert(0, 1); xs.sort(|a, b| a - b); xs.extend(0..2); print(xs.copy());",
    ] {
        assert_eq!(reported(text), Vec::<String>::new(), "{text}");
    }
}

/// The warnings of a text that runs twice in a session: a place is told once.
fn warned_twice(text: &str) -> Vec<String> {
    let warned = Arc::new(Mutex::new(Vec::new()));
    let sink = warned.clone();
    let builder = Session::builder().on_warning(move |warning| {
        let line = warning.location().map_or(0, |at| at.line);
        sink.lock().expect("no panic").push(format!("{} {line}", warning.code()));
    });
    let mut session = builder.build().expect("a session");
    for _ in 0..2 {
        session.run_str("a", text).expect("it runs");
    }
    warned.lock().expect("no panic").clone()
}

/// What runs is told of a change of a tensor in a map; the text alone does not say what `m.w` is.
#[test]
fn changes_of_tensors_in_maps_are_seen() {
    for text in [
        "fn f(m) { m.w *= 2; }\nf(#{w: ones([2])});",
        "fn f(ws) { for i in 0..2 { ws[i] *= 2; } }\nf([ones([1]), ones([2])]);",
    ] {
        let builder = Session::builder().on_warning(move |warning| panic!("{warning}"));
        builder.build().expect("a session").run_str("a", text).expect("it runs");
    }
}

#[test]
fn names_of_imported_files_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let lib = "let p = 1;\nexport p;\nexport const Q = 2;\nexport let r = 3;\nfn f() { 2 }\n";
    std::fs::write(folder.path().join("lib.rhai"), lib).expect("written");
    for (text, expected) in [
        ("import \"lib\" as lib;\nprint(lib::p, lib::Q, lib::f());", vec![]),
        ("import \"lib\" as lib;\nprint(lib::q);", vec!["E0102 2"]),
        ("let n = \"nn\";\nimport n as q;\nprint(q::relu());", vec![]),
    ] {
        let found: Vec<String> = check(&folder.path().join("a.rhai"), text).iter().map(place).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn what_is_wrong_with_imported_files_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("lib", "export let x = 1;\nfn f(x) { x }\n"),
        ("bad", "fn f( { 1 }\n"),
        ("back", "import \"a\" as a;\nfn f() { 1 }\n"),
        ("a", "import \"back\" as back;\nfn f() { 2 }\n"),
        ("data", "fn own() { 1 }\n"),
        ("sub/c", "import \"d\" as d;\nfn v() { d::w() + 1 }\n"),
        ("sub/d", "fn w() { 1 }\n"),
        ("sub/e", "import \"sub/d\" as d;\nfn v() { d::w() + 1 }\n"),
        ("sub/f", "fn v() { import \"nowhere\" as d; d::w() }\n"),
    ] {
        std::fs::create_dir_all(folder.path().join("sub")).expect("made");
        std::fs::write(folder.path().join(format!("{name}.rhai")), text).expect("written");
    }
    for (text, expected) in [
        ("import \"lib\" as lib;\nlib::x = 2;", vec!["E0110 2"]),
        ("import \"bad\" as bad;\nprint(bad::f(1));", vec!["E0101 1"]),
        ("import \"back\" as back;\nfn f() { 2 }\nprint(back::f());", vec!["E0107 1"]),
        ("import \"./data\" as data;\nprint(data::own());", vec![]),
        ("import \"data\" as data;\nprint(data::own());", vec!["E0103 2"]),
        ("import \"sub/c\" as c;\nprint(c::v());", vec!["E0106 1"]),
        ("import \"sub/e\" as e;\nprint(e::v());", vec![]),
        ("import \"sub/f\" as f;\nprint(f::nothing);", vec!["E0102 2"]),
    ] {
        let found: Vec<String> = check(&folder.path().join("main.rhai"), text).iter().map(place).collect();
        assert_eq!(found, expected, "{text}");
        let mut session = Session::builder().module_root(folder.path()).build().expect("a session starts");
        let ran = session.run_str("main", text).map(drop).map_err(|error| error.code().to_string());
        assert_eq!(ran, expected.first().map_or(Ok(()), |place| Err(place[..5].to_string())), "a run of {text}");
    }
    let text = "import \"sub/c\" as c;";
    let mut session = Session::builder().module_root(folder.path()).build().expect("a session starts");
    let ran = session.run_str("main", text).expect_err("no such module");
    let told = check(&folder.path().join("main.rhai"), text);
    assert_eq!(told[0].help(), ran.help());
    assert!(ran.help().is_some_and(|help| help.contains("import \"sub/d\"")), "{:?}", ran.help());
}

/// Every script of the repository, those that are wrong on purpose apart. Scripts that show what memory and queues do
/// may hold values that they never look at.
#[test]
fn the_repositorys_scripts_are_right() {
    let wrong = ["cuda_names.rhai", "with_device_ways_out.rhai"];
    let root = scripts::root();
    let mut problems = Vec::new();
    let folders = ["scripts", "scripts/semantics", "tests/golden", "tests/std", "std", "std/nn", "std/optim"];
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder").flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rhai")) {
            if wrong.iter().any(|name| path.ends_with(Path::new(name))) {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("it can be read");
            let holds = ["scripts/semantics", "tests/golden"].contains(&folder);
            // A closure that fails on purpose and is called far from where it stands.
            let meant = |error: &Error| path.ends_with("data_test.rhai") && error.code() == "E0201";
            let odd = |error: &Error| holds && ["E0115", "E0116", "E0118"].contains(&error.code().as_str());
            let counts = |error: &&Error| !odd(error) && !meant(error);
            let found = check(&path, &text);
            problems.extend(found.iter().filter(counts).map(|error| format!("{}: {error}", path.display())));
        }
    }
    scripts::none(problems);
}

/// One table of names for a check and a run: what one takes the other takes.
#[test]
fn keywords_are_those_of_a_run() {
    for (call, expected) in [
        ("x.sum(#{keepdims: true})", ""),
        ("x.sum(#{axis: 0, keepdim: true})", ""),
        ("softmax(#{input: x, dim: 0})", ""),
        ("softmax(#{x: x, axis: 0})", ""),
        ("add(#{x1: x, x2: x})", ""),
        ("zeros(#{size: [2]})", ""),
        ("x.sum(#{axes: 0})", "E0203"),
        ("x.softmax(#{dimension: 0})", "E0203"),
        ("zeros([2], #{axis: 0})", "E0203"),
        ("zeros([2], #{pin_memory: false})", ""),
        ("x.relu(#{pin_memory: true})", "E0203"),
        ("x.to(#{copy: true})", ""),
        ("x.to(#{copied: true})", "E0203"),
        ("tensor([1], #{requires_grad: false, device: \"cpu\"})", ""),
        ("tensor([1], #{grad: true})", "E0203"),
    ] {
        let text = format!("let x = ones([2, 3]);\nprint({call});\nprint(x);");
        let ran = scripts::run(scripts::builder().output(|_| {}), "a.rhai", &text).result;
        assert_eq!(ran.err().map_or(String::new(), |error| error.code().to_string()), expected, "{call}: run");
        let checked = check(Path::new("a.rhai"), &text);
        assert_eq!(checked.first().map_or(String::new(), |error| error.code().to_string()), expected, "{call}: check");
    }
}

/// What is behind the bound of what is analyzed counts as used.
#[test]
fn long_texts_have_no_unused_variables() {
    let row = vec!["1"; 1000].join(",");
    let rows = vec![row; 250].join(",\n");
    assert_eq!(reported(&format!("let x = [{rows}];\nprint(x.len());")), [""; 0]);
}
