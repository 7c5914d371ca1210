//! The rules of `src/ARCHITECTURE.md` that can be read off the sources: imports go down (I1), nothing above the
//! table asks for an operation's name (I2), Rhai is known on one floor (I3), `unsafe` in two places (I9).

use super::scripts::{none, root};
use std::path::PathBuf;

/// The floors, lowest first; modules of one floor do not know each other.
const FLOORS: &[&[&str]] =
    &[&["base"], &["kernel", "device", "files"], &["op"], &["sched"], &["tensor"], &["script"], &["tools"]];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// Every source file with its module, its path and its text without comments.
fn sources() -> Vec<(String, PathBuf, String)> {
    let root = root().join("src");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&root).expect("below src").to_path_buf();
                let module = inside.components().next().expect("a part").as_os_str().to_string_lossy().into_owned();
                let text = std::fs::read_to_string(&path).expect("a source");
                let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
                found.push((module, inside, code.join("\n")));
            }
        }
    }
    found
}

/// The modules of ours that a text names after `crate::`.
fn named(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + 7..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(list.split(',').map(|part| word(part.trim_start()))),
            None => found.push(word(rest)),
        }
    }
    found
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn imports_go_down() {
    let mut problems = Vec::new();
    for (module, path, text) in sources() {
        let Some(own) = floor(&module) else { continue };
        if path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        for other in named(&text) {
            let Some(theirs) = floor(&other) else { continue };
            if other != module && theirs >= own {
                problems.push(format!("src/{}: floor {own} names `{other}` of floor {theirs}", path.display()));
            }
            if module == "tools" && ["kernel", "device"].contains(&other.as_str()) {
                problems.push(format!("src/{}: tools go through `Session`, and this names `{other}`", path.display()));
            }
        }
    }
    problems.dedup();
    none(problems);
}

#[test]
fn nothing_above_the_table_asks_for_a_name() {
    let mut problems = Vec::new();
    for (module, path, text) in sources() {
        if floor(&module).is_none_or(|own| own <= 2) {
            continue;
        }
        for line in text.lines() {
            if ["op.name ==", "op.name !=", "match op.name"].iter().any(|sign| line.contains(sign)) {
                problems.push(format!("src/{}: {}", path.display(), line.trim()));
            }
        }
    }
    none(problems);
}

#[test]
fn rhai_is_known_on_one_floor() {
    let knows = |text: &str| text.contains("rhai::") || text.contains("use rhai");
    let wrong = sources().into_iter().filter(|(module, _, text)| module != "script" && knows(text));
    none(wrong.map(|(_, path, _)| format!("src/{} names rhai", path.display())).collect());
}

#[test]
fn unsafe_has_its_places_and_reasons() {
    let mut problems = Vec::new();
    for (module, path, text) in sources() {
        let uses = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
        // The runtime calls kernels and copies what they made.
        let allowed = ["kernel", "device"].contains(&module.as_str()) || path.ends_with("sched/touch.rs");
        if !allowed && text.lines().any(uses) {
            problems.push(format!("src/{}: `unsafe` outside kernel/, device/ and sched/touch.rs", path.display()));
        }
    }
    none(problems);
}

/// The reader itself must see what it looks for.
#[test]
fn imports_are_seen() {
    assert_eq!(named("use crate::base::code;\nuse crate::{op, sched::plan};"), ["base", "op", "sched"]);
    assert_eq!(floor("tensor"), Some(4));
}
