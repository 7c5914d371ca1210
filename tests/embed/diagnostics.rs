//! A host program: an editor's back end, which shows errors in its own way. All that it knows of an error it asks of
//! `miette::Diagnostic`, as it would of any other library's.

use miette::{Diagnostic, NarratableReportHandler, SourceCode, SourceSpan};
use std::fmt::Write;
use tscript::Session;

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
