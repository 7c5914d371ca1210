//! Code on the pages runs, and prints what the pages say.
//!
//! - A block `tscript` runs as a script of its own, by the program. A block `text` right after it holds what it prints,
//!   with warnings and the error at the end; without one, the comments behind each `print` are what it prints.
//! - A first line `// run: --simulate-gpus 2` gives flags, a first line `// model.rhai` the file's name. The blocks of a
//!   page share a folder: what one saves, the next loads.
//! - Lines that begin with `$ ` in a block `console` are commands of a shell, what follows each is what it writes.
//! - Lines that begin with a prompt in a block `repl` are entered, one after another.
//! - A line `...` of the expected text stands for any lines.

use super::page::{Block, Page, blesses, pages};
use crate::scripts::{none, program};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program's prompts, which say where tensors are made.
const PROMPTS: &[&str] = &["cpu> ", "cuda:0> ", "...> "];

/// A command in the folder of a page, with nothing of the environment that changes what is written.
fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("NO_COLOR", "1").env("COLUMNS", "100").env_remove("TSCRIPT_BLESS");
    for name in ["CUDA_VISIBLE_DEVICES", "TSCRIPT_SIMULATE_GPUS", "TSCRIPT_GRAPHICS"] {
        command.env_remove(name);
    }
    command
}

/// What a command writes, its errors last.
fn written(mut command: Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr)
}

/// Runs a script; what it writes.
fn run(block: &Block, folder: &Path) -> String {
    let first = block.text.lines().next().unwrap_or("");
    let flags = first.strip_prefix("// run: ").unwrap_or("").split_whitespace();
    let named = first.strip_prefix("// ").filter(|name| name.ends_with(".rhai") && !name.contains(' '));
    let name = named.unwrap_or("script.rhai");
    std::fs::write(folder.join(name), &block.text).expect("it can be written");
    let mut command = command(&program(), folder);
    command.arg("run").args(flags).arg(name);
    written(command, "")
}

/// The lines of a script that are printed according to the comments behind them.
fn commented(text: &str) -> String {
    let printing = text.lines().filter(|line| line.contains("print("));
    printing.filter_map(|line| line.split_once("// ")).map(|(_, comment)| format!("{comment}\n")).collect()
}

/// What a shell writes for the commands of a block, after each of them.
fn shell(block: &Block, folder: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program().parent().expect("a folder").display());
    let mut all = String::new();
    for line in block.text.lines().filter(|line| line.starts_with("$ ")) {
        let mut command = command(Path::new("sh"), folder);
        command.env("PATH", &path).args(["-c", &format!("{} 2>&1", &line[2..])]);
        all += &format!("{line}\n{}", written(command, ""));
    }
    all
}

/// What the REPL answers to the entries of a block, after each of them. Answers are told apart by the refusal of a command
/// that is entered between them, since such a line is not counted as an entry.
fn talk(block: &Block, folder: &Path) -> String {
    let entry = |line: &&str| PROMPTS.iter().any(|prompt| line.starts_with(prompt));
    let lines: Vec<&str> = block.text.lines().filter(entry).collect();
    let entered = |line: &str| PROMPTS.iter().find_map(|prompt| line.strip_prefix(prompt)).unwrap_or("").to_string();
    let mut input = String::new();
    for (at, line) in lines.iter().enumerate() {
        input += &entered(line);
        input.push('\n');
        if !lines.get(at + 1).is_some_and(|next| next.starts_with("...> ")) {
            input += ":-\n";
        }
    }
    // Errors where they belong among the answers.
    let answers = |input: &str| {
        let mut command = command(Path::new("sh"), folder);
        command.env("TSCRIPT_HISTORY", "").args(["-c", "exec \"$0\" 2>&1"]).arg(program());
        written(command, input)
    };
    let (refused, answers) = (answers(":-\n"), answers(&input));
    let mut answers = answers.split(refused.as_str()).map(str::to_string).collect::<Vec<_>>().into_iter();
    let mut all = String::new();
    for (at, line) in lines.iter().enumerate() {
        all += &format!("{line}\n");
        if !lines.get(at + 1).is_some_and(|next| next.starts_with("...> ")) {
            all += &answers.next().unwrap_or_default();
        }
    }
    all
}

/// Whether a text is as expected, where a line `...` stands for any lines.
fn fits(expected: &str, got: &str) -> bool {
    let parts: Vec<&str> = expected.split("...\n").collect();
    let [first, middle @ .., last] = &parts[..] else { return expected == got };
    let Some(mut rest) = got.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Blanks inside a line are not what a comment is about.
fn squeezed(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

fn without_trailing_blanks(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The differences of a page, or the page with the expected texts put right.
fn check(page: &Page, problems: &mut Vec<String>) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = String::new();
    let mut from = 0;
    for (at, block) in page.blocks.iter().enumerate() {
        let place = format!("{}:{}", page.name(), block.line);
        let (range, expected, got) = match block.language.as_str() {
            "tscript" => {
                let got = run(block, folder.path());
                match page.next_to(at).filter(|next| next.language == "text") {
                    Some(next) => (next.range.clone(), next.text.clone(), got),
                    None => {
                        let expected = commented(&block.text);
                        if squeezed(&expected) != squeezed(&got) {
                            problems.push(format!("{place} prints\n{got}and its comments say\n{expected}"));
                        }
                        continue;
                    }
                }
            }
            "console" => (block.range.clone(), block.text.clone(), shell(block, folder.path())),
            "repl" => (block.range.clone(), block.text.clone(), talk(block, folder.path())),
            _ => continue,
        };
        let got = without_trailing_blanks(&got);
        if fits(&expected, &got) {
            continue;
        }
        problems.push(format!("{place}: expected\n{expected}and it is\n{got}"));
        text += &page.text[from..range.start];
        text += &got;
        from = range.end;
    }
    text + &page.text[from..]
}

/// `TSCRIPT_PAGE=guide/memory` takes the pages whose path contains that.
#[test]
fn code_on_the_pages_runs_as_they_say() {
    let only = std::env::var("TSCRIPT_PAGE").ok();
    let mut problems = Vec::new();
    for page in pages() {
        // The tables' own examples: `examples.rs`, `std_docs.rs`, `explain.rs` and the manual's tests run them.
        let elsewhere = page.name().starts_with("docs/reference/") || page.name().starts_with("docs/errors/");
        if elsewhere || only.as_ref().is_some_and(|only| !page.name().contains(only.as_str())) {
            continue;
        }
        let text = check(&page, &mut problems);
        if blesses() && text != page.text {
            std::fs::write(&page.path, text).expect("it can be written");
        }
    }
    if !blesses() {
        none(problems);
    }
}

#[test]
fn dots_stand_for_lines() {
    assert!(fits("a\n...\nd\n", "a\nb\nc\nd\n") && fits("a\n", "a\n"));
    assert!(!fits("a\n...\nd\n", "a\nb\n") && !fits("a\n", "a\nb\n"));
}
