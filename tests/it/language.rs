//! `tests/LANGUAGE.md` names a test for each sentence of the language: these tests are there.

use super::scripts::{none, root};
use std::path::Path;

/// The texts of a file, or of all files in a folder of that name.
fn sources(folder: &Path, module: &str) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(folder.join(format!("{module}.rs"))) {
        return Some(text);
    }
    let files = std::fs::read_dir(folder.join(module)).ok()?;
    let texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
    Some(texts.collect::<Vec<_>>().join("\n"))
}

/// Whether there is a test of this name.
fn is_there(name: &str) -> bool {
    let tests = root().join("tests");
    if name.ends_with(".rhai") {
        return root().join("scripts/semantics").join(name).is_file();
    }
    if name.contains('/') {
        return tests.join(format!("{name}.rhai")).is_file();
    }
    let (folder, rest) = match name.strip_prefix("embed::") {
        Some(rest) => (tests.join("embed"), rest),
        None => (tests.join("it"), name),
    };
    let Some((module, test)) = rest.split_once("::") else { return false };
    sources(&folder, module).is_some_and(|text| test.is_empty() || text.contains(&format!("fn {test}(")))
}

#[test]
fn the_test_of_each_sentence_is_there() {
    let text = std::fs::read_to_string(root().join("tests/LANGUAGE.md")).expect("the table");
    let mut problems = Vec::new();
    let mut rows = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| sentence")) {
        let (_, named) = line.trim_end_matches(" |").rsplit_once(" | ").expect("two columns");
        rows += 1;
        // Tests of the library's own are not looked for.
        let listed = named.split(", ").filter(|part| !part.contains("cargo test --lib"));
        let names: Vec<&str> = listed.filter_map(|part| part.split('`').nth(1)).collect();
        if names.is_empty() {
            problems.push(format!("no test stands in: {line}"));
        }
        problems.extend(names.iter().filter(|name| !is_there(name)).map(|name| format!("there is no test {name}")));
    }
    assert!(rows > 60, "{rows} sentences");
    none(problems);
}
