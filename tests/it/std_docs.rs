//! Every function that a module of `std/` offers is documented, with an example that runs and prints what its comments
//! say.

use super::scripts::{builder, none, root, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A public function: its documentation and where it stands.
struct Function {
    docs: Vec<String>,
    place: String,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Functions by file and name; overloads share the documentation of the first.
fn functions() -> BTreeMap<(PathBuf, String), Function> {
    let mut paths = Vec::new();
    files(&root().join("std"), &mut paths);
    let mut all = BTreeMap::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a source");
        let mut docs: Vec<String> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if let Some(doc) = line.strip_prefix("///") {
                docs.push(doc.strip_prefix(' ').unwrap_or(doc).to_string());
                continue;
            }
            if let Some(rest) = line.strip_prefix("fn ") {
                let name = rest.split('(').next().expect("a name").to_string();
                let place = format!("{}:{}", path.display(), number + 1);
                let docs = std::mem::take(&mut docs);
                all.entry((path.clone(), name)).or_insert(Function { docs, place });
            }
            docs.clear();
        }
    }
    all
}

/// The lines of the example and what its comments say that it prints.
fn example(docs: &[String]) -> Option<(String, String)> {
    let start = docs.iter().position(|line| line == "```rhai")?;
    let end = start + 1 + docs[start + 1..].iter().position(|line| line == "```")?;
    let lines = &docs[start + 1..end];
    let mut expected = String::new();
    for line in lines {
        if let Some((_, comment)) = line.split_once("// ") {
            expected += comment;
            expected.push('\n');
        }
    }
    Some((lines.join("\n"), expected))
}

/// Alignment inside a printed tensor is not what an example is about.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("//", "").replace("[ ", "[").replace("  ", " ")
}

#[test]
fn every_function_of_std_has_an_example_that_holds() {
    let all = functions();
    assert!(all.len() > 150, "only {} functions", all.len());
    let mut problems = Vec::new();
    for ((_, name), function) in all {
        let place = &function.place;
        if function.docs.first().is_none_or(|line| line.is_empty() || line.starts_with("```")) {
            problems.push(format!("{place}: `{name}` is not documented; if it is not for users, make it `private`"));
            continue;
        }
        let Some((code, expected)) = example(&function.docs) else {
            problems.push(format!("{place}: `{name}` has no example"));
            continue;
        };
        if !code.contains(&format!("::{name}(")) {
            problems.push(format!("{place}: the example of `{name}` does not call it"));
        }
        let ran = run(builder(), &name, &code);
        if let Err(error) = ran.result {
            problems.push(format!("{place}: {error:#}"));
        } else if squeezed(&ran.printed) != squeezed(&expected) {
            problems.push(format!("{place}: `{name}` prints\n{}and not\n{expected}", ran.printed));
        }
    }
    none(problems);
}
