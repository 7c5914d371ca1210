//! The name lists of the editors are those of the op table and of the native functions; `TSCRIPT_BLESS=1` rewrites them.
//!
//! What of the editors needs no network: the extension's manifest, its snippets, the settings of `tscript new`, the guide.
//! `editor/test.sh` tries the rest with the editors themselves.

use super::scripts::{compare, none, root};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tscript::Session;
use tscript::internals::op::row::CallForm;
use tscript::internals::op::table;
use tscript::internals::script::manual::{Form, natives};

fn path(name: &str) -> PathBuf {
    root().join("editor").join(name)
}

/// What is called: operations, their other names and in-place forms, native functions and methods.
fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for op in table::all().filter(|op| op.call != CallForm::Internal) {
        for name in std::iter::once(&op.name).chain(op.aliases).filter(|name| !name.starts_with('.')) {
            if op.call != CallForm::InPlace {
                // `fft::rfft` is colored as `rfft`.
                names.insert(name.rsplit("::").next().unwrap_or(name).to_string());
            }
            if op.inplace {
                names.insert(format!("{name}_"));
            }
        }
    }
    let called = natives().filter(|native| !matches!(native.form, Form::Property | Form::PropertyOf(_)));
    let called = called.filter(|native| !["import", "with_device", "with_stream"].contains(&native.name));
    names.extend(called.filter_map(|native| native.name.rsplit("::").next()).map(str::to_string));
    names
}

fn properties() -> BTreeSet<String> {
    let computed = table::all().flat_map(|op| op.aliases).filter_map(|alias| alias.strip_prefix('.'));
    let own = natives().filter(|native| matches!(native.form, Form::Property | Form::PropertyOf(_)));
    computed.chain(own.map(|native| native.name)).map(str::to_string).collect()
}

fn joined(names: &BTreeSet<String>, separator: &str) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(separator)
}

/// The text with the value of the `match` under a comment replaced.
fn with_match(text: &str, comment: &str, pattern: &str) -> String {
    let start = text.find(&format!("\"comment\": \"generated: {comment}\"")).expect("the comment is there");
    let key = start + text[start..].find("\"match\": \"").expect("a pattern follows") + "\"match\": \"".len();
    let end = key + text[key..].find("\"\n").expect("it ends");
    format!("{}{pattern}{}", &text[..key], &text[end..])
}

/// The text with what stands between two comment lines replaced; a comment begins with `mark`.
fn with_lines(text: &str, mark: &str, comment: &str, lines: &str) -> String {
    let head = format!("{mark} generated: {comment}\n");
    let start = text.find(&head).expect("the comment is there") + head.len();
    let end = start + text[start..].find(&format!("{mark} end\n")).expect("it ends");
    format!("{}{lines}{}", &text[..start], &text[end..])
}

/// A pattern of tree-sitter for nodes with one of the names.
fn query(node: &str, capture: &str, names: &BTreeSet<String>) -> String {
    let mut text = format!("({node}\n  (#any-of? {capture}");
    let mut width = usize::MAX;
    for name in names {
        if width.saturating_add(name.len()) > 110 {
            text.push_str("\n   ");
            width = 3;
        }
        text.push_str(&format!(" \"{name}\""));
        width += name.len() + 3;
    }
    format!("{text}))\n")
}

#[test]
fn editor_lists_are_those_of_the_table() {
    let (functions, properties) = (functions(), properties());
    let grammar = path("vscode/syntaxes/tscript.tmLanguage.json");
    let text = std::fs::read_to_string(&grammar).expect("the grammar");
    let called = format!(r"\\b(?:{})(?=\\s*\\()", joined(&functions, "|"));
    let text = with_match(&text, "operations and native functions", &called);
    let text = with_match(&text, "properties", &format!(r"(?<=\\.)(?:{})\\b(?!\\s*\\()", joined(&properties, "|")));
    serde_json::from_str::<serde_json::Value>(&text).expect("the grammar is JSON");
    let mut problems: Vec<String> = compare(&grammar, &text).into_iter().collect();

    let syntax = path("vim/syntax/tscript.vim");
    let text = std::fs::read_to_string(&syntax).expect("the syntax");
    // Not: keywords. They would win over a variable of the same name; what is called is followed by its bracket.
    let called = format!("syntax match   tscriptOperation   \"\\<\\%({})\\>\\ze\\s*(\"\n", joined(&functions, "\\|"));
    let called = called.replace(")\\>\\ze", "\\)\\>\\ze");
    let text = with_lines(&text, "\"", "operations and native functions", &called);
    let read = format!("syntax match   tscriptProperty    \"\\.\\@<=\\%({}\\)\\>\"\n", joined(&properties, "\\|"));
    let text = with_lines(&text, "\"", "properties", &read);
    problems.extend(compare(&syntax, &text));

    let queries = path("tree-sitter-tscript/queries/tscript/highlights.scm");
    let text = std::fs::read_to_string(&queries).expect("the queries");
    let read = query("(member name: (identifier) @variable.member.builtin)", "@variable.member.builtin", &properties);
    let text = with_lines(&text, ";", "properties", &read);
    let function = "@function.builtin";
    let called = "[
  (call function: (identifier) @function.builtin)
  (call function: (scoped_identifier name: (identifier) @function.builtin))
  (method_call name: (identifier) @function.builtin)]";
    let text = with_lines(&text, ";", "operations and native functions", &query(called, function, &functions));
    problems.extend(compare(&queries, &text));
    none(problems.into_iter().map(|problem| problem.chars().take(200).collect()).collect());
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The strings under a key of each item of a list.
fn strings<'a>(list: &'a Value, key: &str) -> BTreeSet<&'a str> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[key].as_str().expect("a string")).collect()
}

fn all_source_of_the_extension() -> String {
    let files = std::fs::read_dir(path("vscode/src")).expect("a folder").map(|file| file.expect("a file").path());
    files
        .chain([root().join("src/tools/lsp/execute.rs")])
        .map(|file| std::fs::read_to_string(file).expect("text"))
        .collect()
}

#[test]
fn the_extension_has_what_its_manifest_names() {
    let manifest = json("editor/vscode/package.json");
    let adds = &manifest["contributes"];
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    let source = all_source_of_the_extension();
    let commands = strings(&adds["commands"], "command");
    for command in &commands {
        assert!(source.contains(&format!("'{command}'")) || source.contains(&format!("\"{command}\"")), "{command}");
    }
    for (menu, items) in adds["menus"].as_object().expect("menus") {
        assert!(strings(items, "command").is_subset(&commands), "{menu}");
    }
    for file in strings(&adds["grammars"], "path").into_iter().chain(strings(&adds["snippets"], "path")) {
        json(&format!("editor/vscode/{file}"));
    }
    let locked = json("editor/vscode/package-lock.json");
    for kind in ["dependencies", "devDependencies"] {
        assert_eq!(manifest[kind], locked["packages"][""][kind], "package-lock.json is stale");
    }
}

/// The server's settings, and those that `tscript new` writes, are the extension's.
#[test]
fn settings_are_those_of_the_extension() {
    let manifest = json("editor/vscode/package.json");
    let known = &manifest["contributes"]["configuration"]["properties"];
    let written = json("src/tools/new/template/vscode.json");
    let written = written.as_object().expect("settings").keys().filter(|name| name.starts_with("tscript."));
    let of_server =
        ["inlayHints.shapes", "inlayHints.parameterNames", "format.width"].map(|name| format!("tscript.{name}"));
    for name in written.chain(&of_server) {
        assert!(known[name].is_object(), "{name}");
    }
    let readme = text("editor/vscode/README.md");
    let untold = known.as_object().expect("settings").keys().filter(|name| !readme.contains(&format!("`{name}`")));
    none(untold.map(|name| format!("{name} is not in the README")).collect());
}

/// The text that a snippet puts in where nothing is typed: `${1:default}`, `${2|first,second|}`, `$0`.
fn expanded(body: &str) -> String {
    let mut text = String::new();
    let mut rest = body;
    let mut known = std::collections::BTreeMap::new();
    while let Some(at) = rest.find(['$', '\\']) {
        let (before, mark) = rest.split_at(at);
        text.push_str(before);
        let escaped = mark.strip_prefix('\\').and_then(|behind| behind.chars().next());
        if let Some(escaped) = escaped {
            text.push(escaped);
            rest = &mark[1 + escaped.len_utf8()..];
            continue;
        }
        let inside = mark.strip_prefix("${");
        let digits = inside.unwrap_or(&mark[1..]);
        let number = &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())];
        let behind = &digits[number.len()..];
        let (value, end) = match behind.as_bytes().first() {
            Some(b':') if inside.is_some() => {
                let end = closing(behind);
                (expanded(&behind[1..end]), &behind[end + 1..])
            }
            Some(b'|') if inside.is_some() => {
                let end = behind.find("|}").expect("a choice ends");
                (behind[1..end].split(',').next().unwrap_or("").to_string(), &behind[end + 2..])
            }
            _ => (
                known.get(number).cloned().unwrap_or_default(),
                behind.trim_start_matches(if inside.is_some() { "}" } else { "" }),
            ),
        };
        known.entry(number.to_string()).or_insert(value.clone());
        text.push_str(&value);
        rest = end;
    }
    text + rest
}

/// Where the brace closes that is open before a text.
fn closing(text: &str) -> usize {
    let mut level = 0;
    let end = text.char_indices().find(|(_, c)| match c {
        '{' => {
            level += 1;
            false
        }
        '}' if level == 0 => true,
        '}' => {
            level -= 1;
            false
        }
        _ => false,
    });
    end.expect("it closes").0
}

#[test]
fn snippets_are_formatted_scripts_without_mistakes() {
    assert_eq!(expanded("a ${1:b} $1 ${2|c,d|} \\${x} ${3:[${4:1}, 2]}$0;"), "a b b c ${x} [1, 2];");
    let snippets = json("editor/vscode/snippets/tscript.json");
    let mut problems = Vec::new();
    for (name, snippet) in snippets.as_object().expect("snippets") {
        let lines: Vec<&str> = snippet["body"].as_array().expect("lines").iter().filter_map(Value::as_str).collect();
        let script = expanded(&lines.join("\n"));
        let script = format!("{}\n", script.trim_end());
        let mut session = Session::builder().simulate_gpus(1).all_files().build().expect("a session");
        let found = session.check_source(Path::new("snippet.rhai"), &script);
        // What a snippet declares is for what comes behind it.
        let wrong = found.iter().filter(|found| found.code() != "E0115").map(|found| format!("{name}: {found}"));
        problems.extend(wrong);
        match session.format_source(Path::new("snippet.rhai"), &script, 100) {
            Ok(formatted) if formatted == script => {}
            Ok(formatted) => problems.push(format!("{name}: formatted it is\n{formatted}")),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    none(problems);
}

#[test]
fn the_grammar_of_tree_sitter_has_all_functions_with_blocks() {
    let grammar = text("editor/tree-sitter-tscript/grammar.js");
    let hooks = text("src/script/source/hooks.rs");
    let list = hooks.split_once("BLOCK_WORDS: [&str;").expect("the list").1;
    let list = &list[list.find("= [").expect("it begins")..list.find("];").expect("it ends")];
    let words: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(words.len() > 5, "{words:?}");
    none(words.into_iter().filter(|word| !grammar.contains(&format!("'{word}'"))).map(str::to_string).collect());
}

/// What the guide says is in a file is in it, and the scripts that it calls are there.
#[test]
fn the_guide_shows_what_is_there() {
    let guide = text("docs/guide/editors.md");
    let helix = text("editor/helix/languages.toml");
    let (_, helix) = helix.split_once('\n').expect("a comment");
    assert!(guide.contains(&format!("```toml\n{helix}```")), "the guide shows another editor/helix/languages.toml");
    let mut called = 0;
    let words = guide.split([' ', '\n', '`', '"', '(', ')']);
    // What is made is not there before.
    for word in words.filter(|word| word.starts_with("editor/") && !word.ends_with(".vsix")) {
        called += 1;
        assert!(root().join(word.trim_end_matches(['.', ',', ':'])).exists(), "{word}");
    }
    assert!(called > 5);
}
