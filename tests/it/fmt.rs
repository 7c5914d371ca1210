//! `tscript fmt`: texts and their formatted forms (`tests/fmt`), what must never change, the program with its files, and
//! that the scripts of the repository and of the book are formatted. `TSCRIPT_BLESS=1` formats them.

use super::command_line::tscript;
use super::docs::page::{blesses, pages};
use super::random_programs;
use super::scripts::{compare, file_name, folder, none, root, scripts};
use std::path::{Path, PathBuf};
use tscript::Session;

const WIDTH: usize = 100;

/// Scripts that stay as they are, and why.
const EXEMPT: &[(&str, &str)] = &[
    ("tests/check/wrong", "mistakes, also of the parser; lines and columns are the test"),
    ("tests/errors", "mistakes, also of the parser; lines and columns are the test"),
    ("tests/fmt", "texts that are to be formatted"),
    ("editor/vscode/test/grammar", "lines and columns are the test"),
];

fn session() -> Session {
    Session::builder().all_files().build().expect("a session")
}

fn formatted(text: &str) -> String {
    session().format_source(Path::new("x.rhai"), text, WIDTH).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// All characters that count.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect()
}

/// What is wrong with the formatted form of a text at a width, if it can be read at all.
fn problem(text: &str, width: usize) -> Option<String> {
    let mut session = session();
    let path = Path::new("x.rhai");
    let once = match session.format_source(path, text, width) {
        Ok(once) => once,
        Err(error) if error.code() == "E0806" => return Some(error.to_string()),
        Err(_) => return None,
    };
    let twice = match session.format_source(path, &once, width) {
        Ok(twice) => twice,
        Err(error) => return Some(format!("the formatted form is refused: {error}\n{once}")),
    };
    if bare(text) != bare(&once) {
        return Some(format!("other characters:\n{once}"));
    }
    (once != twice).then(|| format!("formatting again changes\n{once}\nto\n{twice}"))
}

/// All scripts below the repository.
fn all_scripts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = file_name(&path);
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if name.ends_with(".rhai") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 500, "{} scripts", found.len());
    found
}

#[test]
fn texts_have_one_form() {
    let wrong = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a script");
        compare(&path.with_extension("out"), &formatted(&text))
    };
    none(scripts("fmt").into_iter().filter_map(wrong).collect());
}

#[test]
fn formatting_twice_is_formatting_once() {
    let mut problems = Vec::new();
    for (at, path) in all_scripts().iter().enumerate() {
        let text = std::fs::read_to_string(path).expect("a script");
        for width in [WIDTH, 1 + at * 37 % 120] {
            let found = problem(&text, width);
            problems.extend(found.map(|found| format!("{} at {width}: {found}", path.display())));
        }
    }
    for seed in 0..300 {
        let text = random_programs::text_of(seed);
        for width in [WIDTH, 1 + seed as usize * 7 % 120] {
            problems.extend(problem(&text, width).map(|found| format!("program {seed} at {width}: {found}")));
        }
    }
    none(problems);
}

#[test]
fn scripts_of_the_repository_are_formatted() {
    let mut problems = Vec::new();
    for path in all_scripts() {
        let name = path.strip_prefix(root()).expect("below the root").to_path_buf();
        if EXEMPT.iter().any(|(folder, _)| name.starts_with(folder)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a script");
        let formatted = formatted(&text);
        if formatted != text && blesses() {
            std::fs::write(&path, formatted).expect("written");
        } else if formatted != text {
            problems.push(format!("{} is not formatted: `tscript fmt {0}`", name.display()));
        }
    }
    none(problems);
}

/// But for the reference, whose examples are lines of tables and of the library's comments, and for blocks that are
/// mistakes of the parser.
#[test]
fn scripts_of_the_book_are_formatted() {
    let mut problems = Vec::new();
    for page in pages().iter().filter(|page| !page.name().starts_with("docs/reference")) {
        let mut text = page.text.clone();
        for block in page.blocks.iter().filter(|block| block.language == "tscript").rev() {
            let Ok(formatted) = session().format_source(Path::new("x.rhai"), &block.text, WIDTH) else { continue };
            if formatted != block.text {
                problems.push(format!("{}:{} is not formatted; it would be\n{formatted}", page.name(), block.line));
                text.replace_range(block.range.clone(), &formatted);
            }
        }
        if blesses() && text != page.text {
            std::fs::write(&page.path, text).expect("written");
        }
    }
    if !blesses() {
        none(problems);
    }
}

/// What follows is the next statement, as behind an `if`.
#[test]
fn a_block_form_ends_its_statement() {
    assert_eq!(formatted("fn f() { no_grad { 5 } -1 }"), "fn f() {\n    no_grad { 5 }\n    -1\n}\n");
    assert_eq!(formatted("with_device(d) { f(); } [1].len();"), "with_device(d) { f(); }\n[1].len();\n");
    for stays in ["let y = no_grad { x } + 1;\n", "no_grad { x }.sum();\n", "let f = |v| no_grad { v } - 1;\n"] {
        assert_eq!(formatted(stays), stays);
    }
}

#[test]
fn patterns_that_a_run_refuses_are_left_alone() {
    for text in ["let [a, a] = [1, 2];", "let [a b] = [5];", "for [a 5] in xs {}", "let [if] = [1];"] {
        let refused = session().format_source(Path::new("x.rhai"), text, WIDTH);
        assert_eq!(refused.map_err(|error| error.code().to_string()), Err("E0101".to_string()), "{text}");
    }
}

#[test]
fn lines_end_as_in_the_file() {
    for (text, expected) in [
        ("", ""),
        ("\n\n  \n", ""),
        ("x", "x\n"),
        ("// only\n\n\n\n// comments", "// only\n\n// comments\n"),
        ("/* one */", "/* one */\n"),
        ("let a=1;\r\nlet b =`x\r\ny`;\r\n", "let a = 1;\r\nlet b = `x\r\ny`;\r\n"),
        ("\u{feff}let a=1", "\u{feff}let a = 1\n"),
        ("#!/usr/bin/env tscript\n\n\nlet a=1;", "#!/usr/bin/env tscript\n\nlet a = 1;\n"),
        ("let a=`x\ny`;\r\nlet b=1;\r\n", "let a = `x\ny`;\r\nlet b = 1;\r\n"),
        ("#!/usr/bin/env tscript\r\nlet a=1;", "#!/usr/bin/env tscript\r\nlet a = 1;\r\n"),
        ("#!/usr/bin/env tscript", "#!/usr/bin/env tscript\n"),
        ("let a = 1;   \t\n\t// b \t\n", "let a = 1;\n// b\n"),
    ] {
        assert_eq!(formatted(text), expected, "{text:?}");
        assert_eq!(formatted(expected), expected, "{text:?}");
    }
}

#[test]
fn what_is_deep_or_long_is_no_danger() {
    let deep = format!("let x = {}{};", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(session().format_source(Path::new("x.rhai"), &deep, WIDTH).expect_err("refused").code(), "E0101");
    let nested = format!("let x = {}1{};", "[".repeat(30), "]".repeat(30));
    assert_eq!(problem(&nested, 20), None);
    let sum = format!("let x = {};", vec!["a_name"; 40].join("+"));
    assert!(formatted(&sum).lines().all(|line| line.len() <= WIDTH));
    let chain = format!("x{};", ".a(1)".repeat(200));
    assert_eq!(problem(&chain, WIDTH), None);
    let array = format!("let x = [{}];", (0..5000).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    assert!(formatted(&array).lines().count() < 500);
}

/// Files below a folder, with their texts.
fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
}

#[test]
fn files_and_folders_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let read = |name: &str| std::fs::read_to_string(at(name)).expect("a file");
    write(
        folder.path(),
        &[
            ("a.rhai", "let a=1;\n"),
            ("b/c.rhai", "let c=1;\n"),
            ("bad.rhai", "let x=[1;\n"),
            ("text.rhai", "let x=\"a;\n"),
            ("good.rhai", "let good = 1;\n"),
            (".hidden/d.rhai", "let d=1;\n"),
            ("target/e.rhai", "let e=1;\n"),
            ("f.txt", "let f=1;\n"),
        ],
    );
    let old = std::fs::metadata(at("good.rhai")).and_then(|about| about.modified()).expect("a time");
    let path = folder.path().to_str().expect("a name");
    let (out, complaint, status) = tscript(&["fmt", "--check", path], "");
    assert_eq!((out, status), (format!("{path}/a.rhai\n{path}/b/c.rhai\n"), 1), "{complaint}");
    assert_eq!(read("a.rhai"), "let a=1;\n");
    let (out, complaint, status) = tscript(&["fmt", path], "");
    assert_eq!((out.as_str(), status), ("", 1));
    for part in
        ["error[E0101]: `[` is never closed", "bad.rhai:1", "error[E0101]: a string is never closed", "text.rhai:1"]
    {
        assert!(complaint.contains(part), "{part}\n{complaint}");
    }
    assert_eq!((read("a.rhai").as_str(), read("b/c.rhai").as_str()), ("let a = 1;\n", "let c = 1;\n"));
    assert_eq!((read("bad.rhai").as_str(), read("f.txt").as_str()), ("let x=[1;\n", "let f=1;\n"));
    assert_eq!((read(".hidden/d.rhai").as_str(), read("target/e.rhai").as_str()), ("let d=1;\n", "let e=1;\n"));
    assert_eq!(std::fs::metadata(at("good.rhai")).and_then(|about| about.modified()).expect("a time"), old);
    assert_eq!(
        tscript(&["fmt", "--check", at("a.rhai").to_str().expect("a name")], ""),
        (String::new(), String::new(), 0)
    );
    assert_eq!(tscript(&["fmt", "nowhere.rhai"], "").2, 1);
    assert_eq!(tscript(&["fmt"], "").2, 2);
}

#[cfg(unix)]
#[test]
fn permissions_are_kept_and_heeded() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &[("run.rhai", "let a=1;\n"), ("kept.rhai", "let a=1;\n")]);
    let set = |name: &str, mode: u32| {
        std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(mode)).expect("set");
    };
    set("run.rhai", 0o755);
    set("kept.rhai", 0o444);
    let (_, complaint, status) = tscript(&["fmt", folder.path().to_str().expect("a name")], "");
    assert_eq!(status, 1);
    assert!(complaint.contains("error[E0601]") && complaint.contains("kept.rhai: cannot be written"), "{complaint}");
    let path = folder.path().join("run.rhai");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o755);
    assert_eq!(std::fs::read_to_string(path).expect("a file"), "let a = 1;\n");
    assert_eq!(std::fs::read_to_string(folder.path().join("kept.rhai")).expect("a file"), "let a=1;\n");
}

#[test]
fn the_standard_input_is_formatted_to_the_output() {
    assert_eq!(tscript(&["fmt", "-"], "let a=1"), ("let a = 1;\n".replace(';', ""), String::new(), 0));
    assert_eq!(tscript(&["fmt", "-"], "let a = 1;\n"), ("let a = 1;\n".into(), String::new(), 0));
    assert_eq!(
        tscript(&["fmt", "--width", "9", "-"], "f(abc, def)"),
        ("f(\n    abc,\n    def,\n)\n".into(), String::new(), 0)
    );
    assert_eq!(tscript(&["fmt", "--check", "-"], "let a=1;"), ("stdin\n".into(), String::new(), 1));
    let (out, complaint, status) = tscript(&["fmt", "-"], "let a=(1;");
    assert_eq!((out.as_str(), status), ("", 1));
    assert!(complaint.contains("E0101") && complaint.contains("stdin:1:7"), "{complaint}");
    let expected = "--- stdin\n+++ stdin (formatted)\n@@ -1,2 +1,2 @@\n-let a=1;\n+let a = 1;\n b;\n";
    assert_eq!(tscript(&["fmt", "--diff", "-"], "let a=1;\nb;\n"), (expected.into(), String::new(), 1));
    assert_eq!(tscript(&["fmt", "--diff", "-"], "let a = 1;\n"), (String::new(), String::new(), 0));
}

#[test]
fn the_tests_folders_are_there() {
    for (name, _) in EXEMPT {
        assert!(root().join(name).is_dir(), "{name}");
    }
    assert!(folder("fmt").is_dir());
}
