//! `docs/reference/` and the book's table of contents are written from the tables that the program itself reads: op
//! table, natives, the library's comments, help of the command line, codes. `TSCRIPT_BLESS=1` rewrites them.

use crate::scripts::{compare, none, program, root};
use std::fmt::Write;
use std::process::Command;
use tscript::internals::base::code;
use tscript::internals::op::chapter::Chapter;
use tscript::internals::op::row::{CallForm, Op};
use tscript::internals::op::rows::FAMILIES;
use tscript::internals::script::library::texts::STD;
use tscript::internals::script::manual;
use tscript::internals::script::manual::{Form, Function, Native, Page, Sample};

const NOTE: &str =
    "<!-- Written from the program's tables by `TSCRIPT_BLESS=1 cargo test --test it docs::reference`. -->\n";

/// A page of the reference: its path below `docs/`, its title, its text.
struct Sheet {
    path: String,
    title: String,
    text: String,
}

fn sheet(name: &str, title: &str, text: &str) -> Sheet {
    let text = format!("{NOTE}\n# {title}\n\n{}\n", text.trim());
    Sheet { path: format!("reference/{name}.md"), title: title.to_string(), text }
}

/// Fills lines to the width of a page; what stands in code is not broken by it more than anything else is.
fn paragraph(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 120 {
            lines.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// What an example shows: its text, then what it gives, or a link to the error.
fn sample(sample: &Sample) -> String {
    let code = sample.code.trim_end();
    let is_code = sample.result.len() == 5 && code::Code::parse(&sample.result).is_some();
    match sample.result.trim_end() {
        "" => format!("```tscript\n{code}\n```\n"),
        result if is_code => format!("```tscript\n{code}\n```\n\nError [{result}](../errors/{result}.md).\n"),
        result => format!("```tscript\n{code}\n```\n\n```text\n{result}\n```\n"),
    }
}

/// A name with all that is known of it.
fn entry(page: &Page) -> String {
    let mut text = format!("### `{}`\n\n```text\n{}\n```\n\n", page.name, page.calls.join("\n"));
    let _ = write!(text, "{}\n\n", paragraph(&page.summary));
    if !page.details.is_empty() {
        let parts: Vec<String> = page.details.split("\n\n").map(|part| part.trim().to_string()).collect();
        let _ = write!(text, "{}\n\n", parts.join("\n\n"));
    }
    for example in &page.examples {
        text += &sample(example);
        text.push('\n');
    }
    text
}

/// Whether users know the row by its name.
fn is_public(op: &Op) -> bool {
    op.call != CallForm::Internal && !op.name.starts_with('_')
}

fn operations(found: &mut Vec<Sheet>) -> String {
    let mut index = String::new();
    for chapter in Chapter::ALL {
        let families = FAMILIES.iter().filter(|(of, _)| of == chapter);
        let rows: Vec<&Op> = families.flat_map(|(_, rows)| rows.iter().copied()).filter(|op| is_public(op)).collect();
        if rows.is_empty() {
            continue;
        }
        let name = format!("operations-{}", chapter.name());
        // Several rows may have one name.
        let mut names: Vec<&str> = Vec::new();
        for op in rows {
            let name = manual::written(op);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut text = format!("{}\n\n", links("", &names));
        for op in &names {
            text += &entry(&manual::page(op).expect("an operation"));
        }
        let _ = write!(index, "## {}\n\n{}\n\n", chapter.title(), links(&format!("{name}.md"), &names));
        found.push(sheet(&name, chapter.title(), &text));
    }
    index
}

/// Natives that are no rows, by what they belong to.
fn natives(found: &mut Vec<Sheet>) {
    for (name, title, all) in manual::CHAPTERS {
        let mut text = String::new();
        let mut owners: Vec<&str> = Vec::new();
        for native in *all {
            let owner = owner(native);
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
        for owner in &owners {
            if owners.len() > 1 {
                let _ = write!(text, "## {owner}\n\n");
            }
            let mut names: Vec<&str> =
                all.iter().filter(|native| self::owner(native) == *owner).map(|n| n.name).collect();
            names.dedup();
            let _ = write!(text, "{}\n\n", links("", &names));
            for native in all.iter().filter(|native| self::owner(native) == *owner) {
                text += &entry(&native.page());
            }
        }
        found.push(sheet(name, title, &text));
    }
}

fn owner(native: &Native) -> &'static str {
    match native.form {
        Form::Function => "Functions",
        Form::Syntax | Form::Block => "Words of the language",
        Form::Method => "Methods of a tensor",
        Form::Property => "Properties of a tensor",
        Form::Of(of) | Form::PropertyOf(of) => match of {
            "text" => "Strings",
            "blob" => "Blobs",
            "xs" => "Arrays and ranges",
            "set" => "Sets",
            "pattern" => "Patterns",
            "match" => "Matches",
            "m" => "Maps",
            "n" => "Numbers",
            "t" => "Moments",
            "c" => "Cells",
            "d" => "Devices",
            "s" => "Streams",
            "e" => "Events",
            "model" => "Modules",
            "loader" => "Loaders",
            "generator" => "Random generators",
            "optimizer_state" => "States of optimizers",
            "ctx" => "Contexts of functions with their own gradient",
            "h" => "Handles of hooks",
            "sparse" => "Sparse tensors",
            other => panic!("no heading for what belongs to `{other}`"),
        },
    }
}

/// What a text is about: its first sentence, or what stands before a colon in it.
fn heading(text: &str) -> String {
    let sentence = text.split(". ").next().unwrap_or(text).trim_end_matches('.');
    sentence.split(": ").next().unwrap_or(sentence).to_string()
}

/// Links to the entries of a page.
fn links(page: &str, names: &[&str]) -> String {
    let link = |name: &&str| format!("[`{name}`]({page}#{})", name.to_lowercase().replace([':', '(', ')', ' '], ""));
    paragraph(&names.iter().map(link).collect::<Vec<_>>().join(" "))
}

/// The library's modules, file by file.
fn library(found: &mut Vec<Sheet>) {
    for library in STD {
        let module = library.name;
        let functions = manual::functions(module);
        let mut text = format!("```tscript\nimport \"{module}\" as {module};\n```\n\n");
        let mut reported: Vec<&str> = Vec::new();
        for (file, source) in library.files() {
            let about: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
            let defined = |function: &&Function| source.contains(&format!("\nfn {}(", function.name));
            let inside: Vec<&Function> = functions
                .iter()
                .filter(defined)
                .filter(|function| !reported.contains(&function.name.as_str()))
                .collect();
            if inside.is_empty() {
                continue;
            }
            reported.extend(inside.iter().map(|function| function.name.as_str()));
            let mut words = about.join("\n").trim().to_string();
            let heading = heading(words.lines().next().unwrap_or(file));
            // A first line that is the heading is not told twice.
            let (first, rest) = words.split_once('\n').unwrap_or((&words, ""));
            if first.trim_end_matches('.') == heading {
                words = rest.trim().to_string();
            }
            if library.files().len() > 1 {
                let _ = write!(text, "## {heading}\n\n");
            }
            if !words.is_empty() {
                let _ = write!(text, "{words}\n\n");
            }
            let names: Vec<String> = inside.iter().map(|function| format!("{module}::{}", function.name)).collect();
            let _ = write!(text, "{}\n\n", links("", &names.iter().map(String::as_str).collect::<Vec<_>>()));
            for function in inside {
                text += &entry(&function.page());
            }
        }
        assert_eq!(reported.len(), functions.len(), "{module}: functions without a place");
        found.push(sheet(module, &format!("The module {module}"), &text));
    }
}

/// What the program writes.
fn written(words: &[&str], input: &str) -> String {
    use std::io::Write;
    use std::process::Stdio;
    let mut command = Command::new(program());
    command.args(words).env("NO_COLOR", "1").env("TSCRIPT_HISTORY", "").env_remove("TSCRIPT_SIMULATE_GPUS");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("it reads");
    String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("UTF-8")
}

fn command_line() -> Sheet {
    let mut text = format!("```text\n{}\n```\n\n", written(&["help"], "").trim());
    for command in tscript::internals::tools::command::commands().filter(|command| *command != "help") {
        let _ = write!(text, "## `tscript {command}`\n\n```text\n{}\n```\n\n", written(&["help", command], "").trim());
    }
    let variables = written(&["help", "environment"], "");
    let _ = write!(text, "## Variables of the environment\n\n```text\n{}\n```\n\n", variables.trim());
    sheet("command-line", "The command line", &text)
}

fn repl() -> Sheet {
    let text = format!("`:help` in the REPL tells:\n\n```text\n{}\n```\n", written(&[], ":help\n").trim());
    sheet("repl", "Commands of the REPL", &text)
}

fn errors() -> Sheet {
    let families = [
        ("E01", "Syntax and names"),
        ("E02", "Arguments"),
        ("E03", "Devices, streams, memory"),
        ("E04", "Late errors: found while computing"),
        ("E05", "Races"),
        ("E06", "Files"),
        ("E07", "Gradients"),
        ("E08", "Limits and host programs"),
    ];
    let mut text = "`tscript explain E0201` shows the page of a code in the terminal.\n\n".to_string();
    let mut listed = 0;
    for (family, title) in families {
        let _ = write!(text, "## {title}\n\n| code | |\n|---|---|\n");
        for (code, title) in code::ALL.iter().filter(|(code, _)| code.to_string().starts_with(family)) {
            let _ = writeln!(text, "| [{code}](../errors/{code}.md) | {title} |");
            listed += 1;
        }
        text.push('\n');
    }
    assert_eq!(listed, code::ALL.len(), "a family of codes has no title");
    sheet("errors", "Error codes", &text)
}

/// The contents of the book from the reference on.
fn contents(sheets: &[Sheet]) -> String {
    let mut text = String::new();
    for sheet in sheets {
        let _ = writeln!(text, "- [{}]({})", sheet.title, sheet.path);
        if sheet.path == "reference/errors.md" {
            for (code, title) in code::ALL {
                let _ = writeln!(text, "  - [{code}: {title}](errors/{code}.md)");
            }
        }
    }
    text
}

#[test]
fn the_reference_is_that_of_the_tables() {
    let mut sheets = Vec::new();
    let index = operations(&mut sheets);
    sheets.insert(0, sheet("operations", "All operations", &index));
    natives(&mut sheets);
    library(&mut sheets);
    sheets.extend([command_line(), repl(), errors()]);
    let docs = root().join("docs");
    let mut problems = Vec::new();
    for sheet in &sheets {
        problems.extend(compare(&docs.join(&sheet.path), &sheet.text));
    }
    let summary = docs.join("SUMMARY.md");
    let text = std::fs::read_to_string(&summary).expect("the contents");
    let (head, _) = text.split_once("# Reference\n").expect("a part `Reference`");
    problems.extend(compare(&summary, &format!("{head}# Reference\n\n{}", contents(&sheets))));
    for entry in std::fs::read_dir(docs.join("reference")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if !sheets.iter().any(|sheet| docs.join(&sheet.path) == path) {
            problems.push(format!("{} is written by nobody", path.display()));
        }
    }
    none(problems.into_iter().map(|problem| problem.chars().take(400).collect()).collect());
}
