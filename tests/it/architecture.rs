//! The rules of `docs/architecture.md` that can be read off the sources: imports go down, nothing above the table asks
//! for an operation's name, Rhai is known on one floor, `unsafe` has its places, folders stay small.

use super::scripts::{none, root};
use std::collections::{BTreeMap, BTreeSet};
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

/// Rows read their arguments by the names of their signature, not by number.
#[test]
fn arguments_have_names() {
    const READS: &[&str] = &[
        "attr",
        "dtype",
        "device",
        "flag",
        "float",
        "get",
        "int",
        "ints",
        "is_none",
        "meta",
        "needs",
        "operand",
        "opt_float",
        "opt_input",
        "opt_int",
        "opt_tensor",
        "saved",
        "scalar",
        "tensor",
        "tensor_list",
        "text",
    ];
    let mut problems = Vec::new();
    for (_, path, text) in sources().into_iter().filter(|(_, path, _)| path.starts_with("op/rows")) {
        for read in READS {
            for (at, found) in text.match_indices(&format!(".{read}(")) {
                let of_arguments = ["a", "v", "args"]
                    .contains(&text[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or(""));
                let argument = text[at + found.len()..].split(')').next().unwrap_or("");
                if of_arguments && !argument.is_empty() && argument.chars().all(|c| c.is_ascii_digit()) {
                    problems.push(format!("{}: {found}{argument})", path.display()));
                }
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
        let touches = module == "sched" && path.ends_with("touch.rs");
        let allowed = touches || ["kernel", "device"].contains(&module.as_str());
        if !allowed && text.lines().any(uses) {
            problems.push(format!("src/{}: `unsafe` outside kernel/, device/ and sched's touch.rs", path.display()));
        }
    }
    none(problems);
}

/// Reasons that send a reader elsewhere.
const FORMULAS: &[&str] = &["as above", "as below", "passed on", "the caller's promise", "by the caller"];

#[test]
fn reasons_of_unsafe_code_say_what_holds() {
    let mut problems = Vec::new();
    for (_, path, _) in sources() {
        let text = std::fs::read_to_string(root().join("src").join(&path)).expect("a source");
        for reason in text.lines().filter_map(|line| line.split_once("// SAFETY: ")).map(|(_, reason)| reason) {
            if FORMULAS.iter().any(|formula| reason.starts_with(formula)) {
                problems.push(format!("src/{}: `SAFETY: {reason}` says neither what holds nor why", path.display()));
            }
        }
    }
    none(problems);
}

/// Files of a folder, at most.
const FILES_MAX: usize = 25;

#[test]
fn no_folder_is_crowded() {
    let mut problems = Vec::new();
    let mut folders: Vec<PathBuf> = ["src", "kernels", "std"].map(PathBuf::from).into();
    while let Some(folder) = folders.pop() {
        let (mut files, name) = (0, folder.to_string_lossy().into_owned());
        for entry in std::fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(folder.join(entry.file_name())),
                false => files += 1,
            }
        }
        if files > FILES_MAX {
            problems.push(format!("{name} holds {files} files, at most {FILES_MAX}: which two ideas live there?"));
        }
    }
    none(problems);
}

/// The room of a floor that a path of modules below the floor leads to.
fn room_of(path: &str, rooms: &[String]) -> Option<String> {
    let first = word(path);
    rooms.contains(&first).then_some(first)
}

/// The rooms of a floor have an order. Not asked of chapters of rows: the gradient of a view is a sum, that of a sum is a
/// view. Files beside the rooms hold what all of them share.
#[test]
fn rooms_do_not_import_each_other_in_circles() {
    none(["script", "sched"].into_iter().flat_map(circles).collect());
}

fn circles(floor: &str) -> Vec<String> {
    let folder = root().join("src").join(floor);
    let is_room = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let rooms: Vec<String> =
        entries.filter(is_room).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(rooms.len() >= 8, "the rooms were not found");
    let before = format!("crate::{floor}::");
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, path, text) in sources().into_iter().filter(|(module, ..)| module == floor) {
        let mut parts = path.components().skip(1).map(|part| part.as_os_str().to_string_lossy().into_owned());
        let Some(own) = parts.next().filter(|own| rooms.contains(own)) else { continue };
        if path.ends_with("tests.rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        let others = code.match_indices(&before).flat_map(|(at, sign)| {
            let rest = &code[at + sign.len()..];
            let list = rest.strip_prefix('{').map(|list| list.split('}').next().unwrap_or(""));
            let names: Vec<&str> = list.map_or(vec![rest], |list| list.split(',').map(str::trim).collect());
            names.into_iter().filter_map(|name| room_of(name, &rooms)).collect::<Vec<_>>()
        });
        imports.entry(own.clone()).or_default().extend(others.filter(|other| *other != own));
    }
    // A room goes once all that it imports have gone; what cannot go is in a circle.
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        let done: Vec<String> =
            imports.iter().filter(|(_, others)| others.is_disjoint(&left)).map(|(room, _)| room.clone()).collect();
        if done.is_empty() {
            break;
        }
        done.iter().for_each(|room| drop(imports.remove(room)));
    }
    imports.into_iter().map(|(room, others)| format!("{floor}/{room} imports {others:?}")).collect()
}

/// Above the seam nobody knows what devices there are: a further kind is one folder and one line. `host` is no kind.
#[test]
fn the_scheduler_names_kinds_of_devices_in_their_folders_only() {
    let folders = std::fs::read_dir(root().join("src/sched/backend")).expect("a folder");
    let folders = folders.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let kinds: Vec<String> = folders.map(name).filter(|name| name != "host").collect();
    assert!(kinds.len() >= 3, "{kinds:?}");
    // Where a kind is named, and where its driver is.
    let mut signs: Vec<(&str, String)> = kinds.iter().map(|kind| (kind.as_str(), format!("backend::{kind}"))).collect();
    signs.extend([("cuda", "::cuda".to_string()), ("simulated", "device::simulated".to_string())]);
    let mut problems = Vec::new();
    for (_, path, text) in sources().into_iter().filter(|(module, ..)| module == "sched") {
        for (folder, sign) in &signs {
            let is_own = path.starts_with(format!("sched/backend/{folder}"));
            let registers = path.ends_with("sched/backend/mod.rs");
            if !is_own && !registers && text.contains(sign.as_str()) {
                problems.push(format!("src/{} names `{sign}`", path.display()));
            }
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
