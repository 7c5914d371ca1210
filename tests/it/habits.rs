//! Mistakes of people who come from Python and PyTorch, and what they are told: `tests/habits/*.txt`, each script (`> `)
//! with its answer below. `TSCRIPT_BLESS=1` rewrites the answers: read each as somebody who has never seen tscript.
//!
//! The REPL says the same, and `tscript check` what it can tell without running, with the same code.

use super::scripts::{compare, none, root};
use std::path::Path;
use tscript::internals::base::diag::Diag;
use tscript::internals::script::source::SourceMap;
use tscript::{Error, Session};

/// What scripts find, and the words that ask for it.
const BEFORE: &[(&str, &[&str])] = &[
    ("import \"nn\" as nn;", &["nn", "model", "opt"]),
    ("import \"optim\" as optim;", &["optim", "opt"]),
    ("import \"data\" as data;", &["data"]),
    ("import \"test\" as test;", &["test"]),
    ("let x = tensor([[1.0, 2.0], [3.0, 4.0]]); let xs = [1, 2, 3]; let m = #{a: 1}; let loss = 0.5;", &[""]),
    ("let model = nn::linear(2, 2);", &["model", "opt"]),
    ("let opt = optim::sgd(model.parameters(), #{lr: 0.1});", &["opt"]),
];

/// One line, so that a mistake stands on the next.
fn before(script: &str) -> String {
    let words: Vec<&str> = script.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let asked = |names: &&(&str, &[&str])| names.1.iter().any(|name| name.is_empty() || words.contains(name));
    BEFORE.iter().filter(asked).map(|(text, _)| *text).collect::<Vec<_>>().join(" ")
}

/// The files of `tests/habits`.
const TABLES: [&str; 9] =
    ["libraries", "syntax", "names", "tensors", "modules", "training", "javascript", "rust", "pytorch"];

fn session() -> Session {
    let folder = root().join("tests/habits");
    let session = Session::builder().output(|_| {}).on_warning(|_| {}).file_roots(vec![folder]).build();
    session.expect("a session")
}

fn reported(result: Result<(), Error>) -> String {
    let Err(error) = result else { return "fine\n".into() };
    let one = |diag: &Diag, sources: &SourceMap| {
        let place = diag.labels.first().and_then(|label| {
            let (source, range) = sources.span(label.origin.user, label.focus, label.keyword.as_deref())?;
            Some(format!(" at `{}`", source.text[range].lines().next().unwrap_or("")))
        });
        let mut text = format!("{}{}: {}\n", diag.code, place.unwrap_or_default(), diag.message);
        for (word, line) in
            diag.notes.iter().map(|note| ("note", note)).chain(diag.help.iter().map(|help| ("help", help)))
        {
            text += &format!("  {word}: {line}\n");
        }
        text
    };
    one(error.diag(), error.sources()).replace(&root().display().to_string(), "ROOT")
}

/// The scripts of a table, in their order; headings are `# ..`.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let script = |block: &str| -> String {
        let lines = block.lines().filter_map(|line| line.strip_prefix('>'));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    text.split("\n\n").map(|block| (block, script(block))).collect()
}

fn answered(path: &Path, problems: &mut Vec<String>) -> usize {
    let text = std::fs::read_to_string(path).expect("a table");
    let mut out = Vec::new();
    let mut count = 0;
    let mut checker = session();
    for (block, script) in blocks(&text) {
        if script.is_empty() {
            out.push(block.trim_end().to_string() + "\n");
            continue;
        }
        count += 1;
        let before = before(&script);
        let mut session = session();
        session.runs_one_script();
        let whole = format!("{before}\n{script}");
        let answer = reported(session.run_str("habit", &whole));
        let checked = checker.check_source(Path::new("habit"), &whole);
        // What entries and scripts do not share is how they are parsed.
        let entered = if path.ends_with("syntax.txt") {
            reported(self::session().enter(1, &whole).map(drop))
        } else {
            answer.clone()
        };
        if entered != answer {
            problems.push(format!("the REPL says of\n{script}\n{entered}and a script\n{answer}"));
        }
        // It tells all mistakes of a text; a run ends at the first that it meets.
        let checked: Vec<String> = checked
            .iter()
            .filter(|error| error.diag().severity == tscript::internals::base::diag::Severity::Error)
            .map(|error| error.code())
            .collect();
        if !checked.is_empty() && !checked.iter().any(|code| answer.starts_with(&**code)) {
            problems.push(format!("`check` says {checked:?} of\n{script}\nand a run\n{answer}"));
        }
        let lines: String = script.lines().map(|line| format!("> {line}").trim_end().to_string() + "\n").collect();
        out.push(format!("{lines}{answer}"));
    }
    problems.extend(compare(path, &out.join("\n")));
    count
}

#[test]
fn mistakes_lead_to_the_right_spelling() {
    let mut problems = Vec::new();
    let mut count = 0;
    for table in TABLES {
        count += answered(&root().join(format!("tests/habits/{table}.txt")), &mut problems);
    }
    assert!(count >= 600, "{count} mistakes");
    none(problems);
}

/// No answer shows a name of the inside: a Rust path, a rewritten function.
#[test]
fn answers_speak_of_names_that_users_wrote() {
    let mut problems = Vec::new();
    for table in TABLES {
        let text = std::fs::read_to_string(root().join(format!("tests/habits/{table}.txt"))).expect("a table");
        for line in text.lines().filter(|line| !line.starts_with('>')) {
            if line.contains("__x")
                || line.contains("tscript::")
                || line.contains("__eval")
                || line.contains("INTERNAL")
            {
                problems.push(format!("{table}: {line}"));
            }
        }
    }
    none(problems);
}
