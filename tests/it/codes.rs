//! A kind of mistake has one code, however it is made and wherever it is met: in a run, in the REPL, in a `try`, and,
//! where it can tell without running, in `tscript check`. That each code's explanation gives it: `explain.rs`.

use super::scripts::none;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tscript::Session;
use tscript::internals::script::manual;
use tscript::internals::script::manual::Form;

const WAYS: &[(&str, &[&str])] = &[
    (
        "E0102",
        &["nope", "nope + 1", "nope.x", "nope += 1;", "let f = || nope; f.call()", "fn f() { nope } f()", "`${nope}`"],
    ),
    ("E0103", &["nope(1)", "nope()", "zeros([1]).nope()", "[1].nope()", "\"a\".nope(1)", "1.nope()", "cuda::nope()"]),
    ("E0104", &["zeros([1]).nope", "#{a: 1}.nope", "[1].nope", "1.nope", "\"a\".nope", "ones([1]).device.nope"]),
    ("E0109", &["assert(false)", "assert(1 > 2, \"why\")", "import \"test\" as test; test::assert(false)"]),
    (
        "E0110",
        &[
            "const C = 1; C = 2;",
            "const C = 1; C += 2;",
            "const C = [1]; C = 2;",
            "const C = [1]; C.push(2);",
            "const C = [1]; C[0] = 2;",
            "const C = #{a: 1}; C.a = 2;",
        ],
    ),
    (
        "E0203",
        &[
            "zeros([1], #{devise: 1})",
            "tensor(1, #{dtyp: 1})",
            "zeros([2]).sum(#{dims: 0})",
            "import \"nn\" as nn; nn::linear(1, 1, #{bais: false})",
        ],
    ),
    (
        "E0205",
        &[
            "relu()",
            "softmax(zeros([2]))",
            "zeros([2]).softmax()",
            "fn f(x) { x } f()",
            "fn area(w, h) { w * h } 2.area(3)",
            "fn area(w, h) { w * h } zeros([1]).area(3)",
            "fn area(w, h) { w * h } \"a\".area(3)",
            "let f = |x| x; f.call()",
            "import \"nn\" as nn; nn::linear(1)",
        ],
    ),
    ("E0207", &["[1][5]", "\"a\"[5]", "zeros([2])[5]", "let a = [1]; a[5] = 1;", "let x = zeros([2]); x[5] = 1;"]),
    (
        "E0208",
        &[
            "zeros([2]).relu(1, 2)",
            "relu(zeros([2]), 1, 2)",
            "relu(zeros([2]), 1, 2, 3, 4, 5)",
            "zeros([2]).sum(1, 2, 3, 4, 5, 6)",
            "pow(2, 3, 5)",
            "fn f(x) { x } f(1, 2)",
            "fn f(x) { x } 2.f(1, 2)",
            "let f = |x| x; f.call(1, 2)",
            "cuda::is_available(1)",
            "import \"nn\" as nn; nn::relu(1, 2, 3)",
        ],
    ),
    ("E0213", &["tensor(1, #{dtype: \"f33\"})", "zeros([1]).to(\"f33\")", "set_default_dtype(\"f33\")"]),
    ("E0214", &["1 % 0", "1 % 0", "9223372036854775807 + 1"]),
    ("E0215", &["\"a\" - 1", "if 1 { }", "for x in 1 { }", "let a = [1]; a[1.5]"]),
    (
        "E0302",
        &["tensor(1, #{device: \"tpu\"})", "zeros([1]).to(\"tpu\")", "device(\"tpu\")", "with_device(\"tpu\", || 1)"],
    ),
];

fn session() -> Session {
    Session::builder().output(|_| {}).on_warning(|_| {}).build().expect("a session")
}

#[test]
fn a_mistake_has_one_code_wherever_it_is_made() {
    let mut problems = Vec::new();
    for (code, scripts) in WAYS {
        for script in *scripts {
            let mut session = session();
            let ran = session.run_str("ways", script).err().map_or("nothing".to_string(), |error| error.code());
            let entered = session.enter(1, script).err().map_or("nothing".to_string(), |error| error.code());
            // Functions and imports stand at the top level.
            let function = script.split_once("} ").filter(|_| script.starts_with("fn "));
            let (top, rest) = match function {
                Some((top, rest)) => (format!("{top}}}"), rest.to_string()),
                None => match script.split_once(" as nn; ").or_else(|| script.split_once(" as test; ")) {
                    Some((top, rest)) => {
                        (format!("{top} as {};", if top.contains("nn") { "nn" } else { "test" }), rest.into())
                    }
                    None => (String::new(), script.to_string()),
                },
            };
            let rest = rest.trim_end_matches(';').to_string();
            let caught =
                format!("{top}\nlet told = \"\"; try {{ {rest}; }} catch (e) {{ told = `${{e.code}} ${{e.line}}`; }}");
            let reported = match session.run_str("caught", &caught) {
                Ok(()) => session.get::<String>("told").unwrap_or_default(),
                // Found by the parser.
                Err(error) => format!("{} 2", error.code()),
            };
            let found = self::session().check_source(Path::new("ways"), script);
            let checked = found
                .iter()
                .find(|error| error.diag().severity == tscript::internals::base::diag::Severity::Error)
                .map(|error| error.code());
            let same =
                ran == *code && entered == *code && [format!("{code} 1"), format!("{code} 2")].contains(&reported);
            if !same || checked.as_ref().is_some_and(|checked| checked != code) {
                problems
                    .push(format!("{code}: {script}: run {ran}, REPL {entered}, caught {reported}, check {checked:?}"));
            }
        }
    }
    none(problems);
}

/// Every error of a native function that a script can catch is an error with a code, and knows its line.
#[test]
fn every_error_of_a_native_function_has_a_place() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let folder = tempfile::tempdir().expect("a folder");
    let session = Session::builder().output(move |line| sink.lock().expect("no panic").push(line.to_string()));
    let mut session = session
        .on_warning(|_| {})
        .file_roots(vec![folder.path().to_path_buf()])
        .simulate_gpus(2)
        .build()
        .expect("a session");
    // `eval` is syntax, `exit` ends the script, `sleep` waits, the others print or draw what they are given.
    let left_out = ["eval", "exit", "cuda::sleep", "print", "show", "plot", "debug", "progress"];
    let wrong = ["()", "1e-3", "\"{bad\"", "#{zz: 1}"];
    let mut text = String::new();
    for name in manual::names() {
        let form = manual::native(name).map(|native| native.form);
        if left_out.contains(&name) || matches!(form, Some(Form::Syntax | Form::Block)) {
            continue;
        }
        let mut calls = vec![format!("{name}()"), format!("{name}(-7, |a, b| a)")];
        for value in wrong {
            calls.push(format!("{name}({value})"));
            if !name.contains("::") {
                calls.push(format!("(zeros([2])).{name}({value})"));
            }
        }
        for call in calls {
            let shown = call.replace('`', "").replace('"', "'");
            text += &format!(
                "try {{ {call}; }} catch (e) {{ if type_of(e) != \"error\" || e.line == () {{ print(\"{shown}: \" + e.to_string()); }} }}\n"
            );
        }
    }
    // Rhai's own functions of the plain values.
    for call in [
        "parse_json(\"{bad\")",
        "parse_int(\"z\")",
        "parse_float(\"z\")",
        "range(5, -2, 0)",
        "enumerate([1], 1e-3)",
        "#{a: 1}.pop(\"x\")",
        "[1].sort(|a| a)",
        "[1].map(1)",
        "[1, 2].reduce(|a| a)",
        "\"a\".pad(-1, 1)",
        "5 in 5",
        "Fn(\"\").call()",
        "5 << 70",
        "blob(-1)",
        "[].splice(1, 2, 3)",
        "\"abc\".sub_string(\"a\")",
    ] {
        let shown = call.replace('"', "'");
        text += &format!(
            "try {{ {call}; }} catch (e) {{ if type_of(e) != \"error\" || e.line == () {{ print(\"{shown}: \" + e.to_string()); }} }}\n"
        );
    }
    session.run_str("sweep", &text).unwrap_or_else(|error| panic!("{error:#}"));
    none(std::mem::take(&mut lines.lock().expect("no panic")));
}
