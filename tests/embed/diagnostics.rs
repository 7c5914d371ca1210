//! A host program: an editor's back end, which shows errors in its own way. All that it knows of an error it asks of
//! `miette::Diagnostic`, as it would of any other library's.

use miette::{Diagnostic, JSONReportHandler, NarratableReportHandler, SourceCode, SourceSpan};
use std::fmt::Write;
use tscript::{Object, Session, Tensor, Value};

/// One entry of the editor's list: `file:line:column`, then the words, then each marked text.
fn entry(error: &dyn Diagnostic) -> String {
    let mut shown = String::new();
    let code = error.code().map(|code| code.to_string()).unwrap_or_default();
    for (at, label) in error.labels().into_iter().flatten().enumerate() {
        let Some((place, text)) = error.source_code().and_then(|source| marked(source, label.inner())) else {
            continue;
        };
        if at == 0 {
            let _ = writeln!(shown, "{place}: {error} [{code}]");
        }
        let _ = writeln!(shown, "    {place}: `{text}` {}", label.label().unwrap_or_default());
    }
    if shown.is_empty() {
        let _ = writeln!(shown, "{error} [{code}]");
    }
    if let Some(help) = error.help() {
        let _ = writeln!(shown, "    help: {help}");
    }
    shown
}

/// Where a span is, and its text.
fn marked(source: &dyn SourceCode, span: &SourceSpan) -> Option<(String, String)> {
    let contents = source.read_span(span, 0, 0).ok()?;
    let name = contents.name().unwrap_or("?");
    let place = format!("{name}:{}:{}", contents.line() + 1, contents.column() + 1);
    Some((place, String::from_utf8_lossy(contents.data()).into_owned()))
}

/// Runs what stands in the editor.
fn problems(name: &str, text: &str) -> Option<tscript::Error> {
    let mut session = Session::builder().output(|_| {}).build().expect("a session starts");
    session.run_str(name, text).err()
}

#[test]
fn an_error_becomes_an_entry() {
    let text = "let weights = randn([3, 4]);\nlet inputs = randn([5, 2]);\nlet y = inputs @ weights;\n";
    let error = problems("layer.rhai", text).expect("shapes that do not fit");
    let shown = entry(&error);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("layer.rhai:3:16: ") && lines[0].ends_with("[E0201]"), "{shown}");
    assert!(shown.contains("layer.rhai:1:15: `randn([3, 4])` made here"), "{shown}");

    let error = problems("typo.rhai", "let total = 1;\nprint(totl);").expect("no such variable");
    let shown = entry(&error);
    assert!(shown.contains("typo.rhai:2:7: `totl`") && shown.contains("did you mean `total`?"), "{shown}");
    // Columns count characters, here as in `location`.
    let error = problems("wide.rhai", "let s = \"日本語é\"; s.nope;").expect("no such property");
    assert!(entry(&error).starts_with("wide.rhai:1:19: "), "{}", entry(&error));
    assert_eq!(error.location().map(|at| at.column), Some(19));
    assert!(problems("fine.rhai", "1 + 1").is_none());
}

#[test]
fn reports_of_others_work_too() {
    let late = problems("late.rhai", "let x = arange(3);\nlet y = x[tensor([0, 7])];\nprint(y);").expect("an index");
    let mut shown = String::new();
    NarratableReportHandler::new().render_report(&mut shown, &late).expect("it can be shown");
    for part in ["index 7 is out of range", "late.rhai", "line 2", "E0401"] {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}

/// What an editor gets that takes reports as JSON.
fn json(error: &tscript::Error) -> serde_json::Value {
    let mut text = String::new();
    JSONReportHandler::new().render_report(&mut text, error).expect("it can be shown");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_report_contains_all_that_the_program_shows() {
    let module = "fn wrong(x) {\n    x @ ones([5, 2])\n}\n";
    let mut session = Session::builder().module("layers", module).build().expect("a session starts");
    let text = "import \"layers\" as layers;\nlet x = ones([3, 4]);\nfn outer(x) { layers::wrong(x) }\nouter(x);\n";
    let error = session.run_str("main.rhai", text).expect_err("shapes that do not fit");
    let reported = json(&error);
    assert_eq!(reported["code"], "E0201");
    assert_eq!(reported["message"], error.message(), "the code stands beside it, once");
    assert_eq!(reported["filename"], "layers");
    // The primary label comes first and is marked as such.
    let primary: Vec<bool> = error.labels().expect("labels").map(|label| label.primary()).collect();
    assert!(primary[0] && !primary[1..].contains(&true), "{primary:?}");
    // What lies in another source is a related diagnostic with that source.
    let related = reported["related"].as_array().expect("related diagnostics");
    let made = related.iter().find(|other| other["filename"] == "main.rhai").expect("where `x` was made");
    assert!(made["labels"][0]["label"].as_str().is_some_and(|text| text.contains("made here")), "{reported}");
    // The call stack.
    let help = reported["help"].as_str().expect("a help");
    assert!(
        help.contains("in: `wrong`, called from main.rhai:3:") && help.contains("`outer`, called from main.rhai:4:1"),
        "{help}"
    );
}

#[test]
fn what_else_was_wrong_comes_along() {
    let error = problems("two.rhai", "let a = ;\nlet b = 1;\nlet c = 1 +* 2;\n").expect("two mistakes");
    let related: Vec<String> = error.related().expect("the second").map(|other| other.to_string()).collect();
    assert_eq!(related.len(), 1, "{related:?}");
    let second = json(&error)["related"][0].clone();
    assert_eq!((second["code"].as_str(), second["severity"].as_str()), (Some("E0101"), Some("error")));
}

#[test]
fn one_line_has_code_and_place() {
    let error = problems("typo.rhai", "let total = 1;\nprint(totl);").expect("no such variable");
    assert_eq!(error.to_string(), "there is no variable `totl`");
    assert_eq!(format!("{error:#}"), "[E0102] there is no variable `totl` (typo.rhai:2:7)");
    assert_eq!(format!("{error:?}"), format!("{error:#}"));
}

#[test]
fn a_late_error_that_the_program_meets_has_its_place() {
    let mut session = Session::builder().build().expect("a session starts");
    let text = "let x = arange(3);\nfn pick(x, i) { x[tensor([0, i])] }\nfn queued(x) { pick(x, 7) }\n";
    session.run_str("late.rhai", text).expect("nothing is wrong yet");
    let x: Tensor = session.get("x").expect("a tensor");
    let y: Tensor = session.call("queued", (x,)).expect("queued");
    for error in [y.to_vec::<i64>().map(drop), y.to_bytes().map(drop), y.to_dlpack().map(drop)]
        .map(|result| result.expect_err("an index"))
    {
        let place = error.location().expect("a place");
        assert_eq!((error.code(), &*place.source, place.line), ("E0401".to_string(), "late.rhai", 2), "{error:?}");
        assert!(error.help().is_some() || error.labels().is_some_and(|mut labels| labels.next().is_some()));
        let reported = json(&error)["help"].as_str().unwrap_or_default().to_string();
        assert!(reported.contains("in: `pick`, called from late.rhai:3:"), "{reported}");
    }
}

#[derive(Clone)]
struct Account;

impl Object for Account {
    const NAME: &'static str = "account";
}

/// Of a type that only this program's Rust knows.
#[derive(Clone)]
struct Purse;

impl Object for Purse {
    const NAME: &'static str = "purse";
}

#[test]
fn types_have_the_names_that_scripts_use() {
    let mut session = Session::builder()
        .object::<Account>(|account| account.method("pay", |_: &mut Account, cents: i64| cents))
        .function("take", |_: Account| 1i64)
        .function("number", |n: i64| n)
        .build()
        .expect("a session starts");
    session.set("account", Account).expect("a value");
    session.set("purse", Purse).expect("a value");
    session.set("t", Tensor::from_slice(&[1.0f32, 2.0], &[2]).expect("a tensor")).expect("a value");
    let mut reported = Vec::new();
    let values =
        ["account", "purse", "t", "t.dtype", "t.device", "cell(1)", "slice(0, 1, 1)", "|x| x", "0..3", "#{}", "[1]"];
    for value in values {
        for use_of in [
            "VALUE + account",
            "VALUE - 1",
            "-VALUE",
            "!VALUE",
            "VALUE.nope",
            "VALUE.nope()",
            "VALUE.nope = 1",
            "VALUE[0.5]",
            "nope(VALUE)",
            "take(VALUE)",
            "number(VALUE)",
            "account.pay(VALUE)",
            "if VALUE { }",
            "for x in VALUE { x.nope }",
            "zeros(VALUE)",
            "zeros([1]).sum(VALUE)",
            "[1][VALUE]",
            "#{}[VALUE]",
            "1 in VALUE",
            "throw VALUE",
            "sorted([VALUE, 1])",
            "tensor(VALUE)",
            "VALUE.call(1)",
            "(|| 1).call(VALUE)",
            "int(VALUE)",
            "\"a\".pad(VALUE, VALUE)",
            "[1].map(VALUE)",
            "to_json(VALUE)",
            "sum([VALUE, 1])",
            "max([VALUE, 1])",
            "let a = [1]; a[0] = VALUE; a.sum()",
            "load(VALUE)",
            "assert(VALUE)",
            "with_device(VALUE, || 1)",
            "switch VALUE { 1 => 2 } + 1",
            "VALUE % 2",
            "VALUE ?? 1; VALUE.x.y",
            "abs(VALUE)",
            "len(VALUE)",
        ] {
            if let Err(error) = session.run_str("types", &use_of.replace("VALUE", value)) {
                reported.push(format!("{} {:?} {:?}", error, error.help(), error.diag().labels));
            }
        }
    }
    reported.extend(session.get::<String>("t").err().map(|error| error.to_string()));
    reported.extend(session.get::<String>("account").err().map(|error| error.to_string()));
    reported.extend(session.get::<Account>("t").err().map(|error| error.to_string()));
    reported.extend(session.get::<Account>("purse").err().map(|error| error.to_string()));
    reported.extend(session.get::<Vec<i64>>("account").err().map(|error| error.to_string()));
    reported.extend(session.get::<bool>("account").err().map(|error| error.to_string()));
    reported.extend(session.get::<Tensor>("account").err().map(|error| error.to_string()));
    for name in ["account", "purse"] {
        let value: Value = session.get(name).expect("a value");
        let Value::Other(opaque) = value else { panic!("it has no form outside") };
        assert_eq!((opaque.type_name(), format!("{opaque:?}")), (name, format!("<{name}>")));
    }
    let leaks: Vec<&String> = reported
        .iter()
        .filter(|text| {
            ["::", "Account", "Purse", "Value", "ImmutableString", "alloc"].iter().any(|part| text.contains(part))
        })
        .filter(|text| !text.contains("nn::"))
        .collect();
    assert!(leaks.is_empty() && reported.len() > 200, "{} of {}: {leaks:#?}", leaks.len(), reported.len());
}
