//! Tables of habits: every piece of code in a column `tscript` runs after what a comment `<!-- setup: .. -->` before the
//! table says, in a session with simulated GPUs. Code in a row whose last cell begins with an error's code fails with it.

use super::page::pages;
use crate::scripts::{builder, none};
use std::path::Path;

/// The cells of a row.
fn cells(line: &str) -> Vec<String> {
    let inside = line.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
    inside.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// The pieces of code of a cell.
fn code(cell: &str) -> Vec<String> {
    let fence = if cell.contains("``") { "``" } else { "`" };
    cell.split(fence).skip(1).step_by(2).map(|code| code.trim().to_string()).collect()
}

/// The code of what a text ends with: none, or that of its error.
fn outcome(folder: &Path, text: &str) -> Result<(), String> {
    let words = ["--lr", "0.5", "--quick"];
    let session = builder().simulate_gpus(2).output(|_| {}).module_root(folder).arguments(words);
    let ran = session.build().and_then(|mut session| {
        session.runs_one_script();
        session.run_str("row.rhai", text)
    });
    ran.map_err(|error| format!("{error:#}"))
}

#[test]
fn every_row_of_a_table_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut problems = Vec::new();
    let mut count = 0;
    for page in pages() {
        let (mut setup, mut column) = (String::new(), None);
        for (number, line) in page.text.lines().enumerate() {
            if let Some(text) = line.strip_prefix("<!-- setup:") {
                setup = text.trim_end_matches("-->").to_string();
            }
            if !line.starts_with('|') {
                column = None;
                continue;
            }
            let cells = cells(line);
            let Some(at) = column else {
                column = cells.iter().position(|cell| cell == "tscript");
                continue;
            };
            let expected = cells.last().and_then(|note| note.split([':', ' ', ',']).next());
            let expected = expected.filter(|word| word.len() == 5 && word.starts_with('E'));
            for code in cells.get(at).map(|cell| code(cell)).unwrap_or_default() {
                count += 1;
                let code = code.replace("/tmp/", &format!("{}/", folder.path().display()));
                let got = outcome(folder.path(), &format!("{setup}\n{code}"));
                let right = match (&got, expected) {
                    (Ok(()), None) => true,
                    (Err(error), Some(expected)) => error.contains(expected),
                    _ => false,
                };
                if !right {
                    let got = got.err().unwrap_or("no error".to_string());
                    problems.push(format!("{}:{}: `{code}`: {got}", page.name(), number + 1));
                }
            }
        }
    }
    assert!(count > 100, "only {count} pieces of code in tables");
    none(problems);
}
