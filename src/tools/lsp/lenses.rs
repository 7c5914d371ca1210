//! `textDocument/codeLens`: runs the script, or a test.

use super::execute::{RUN, TEST};
use super::view::View;
use serde_json::{Value, json};

/// The ending of the names of files with tests.
const TESTS: &str = "_test.rhai";

pub fn lenses(view: &View) -> Value {
    let is_test = view.path.to_string_lossy().ends_with(TESTS);
    let lens = |range: Value, title: &str, command: &str, arguments: Value| json!({"range": range, "command": {"title": title, "command": command, "arguments": arguments}});
    let mut found = Vec::new();
    let start = view.range(0..0);
    if super::library::is_library_file(&view.path) || view.reading.tokens.is_empty() {
        return Value::Array(found);
    }
    if !is_test {
        found.push(lens(start, "Run", RUN, json!([view.uri])));
        return Value::Array(found);
    }
    found.push(lens(start, "Run all tests", TEST, json!([view.uri])));
    let tests =
        view.names.functions().filter(|(_, function)| function.name.starts_with("test_") && function.params.is_empty());
    for (_, test) in tests {
        let range = view.name_range(test.token as usize);
        found.push(lens(range, "Run test", TEST, json!([view.uri, test.name])));
    }
    Value::Array(found)
}
