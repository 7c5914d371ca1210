//! `:load`, `:save`, `:reset`.

use super::super::{Go, Repl};
use crate::files;
use crate::script::source::lex::{lex, script_start};
use crate::tools::run::guarded;
use std::path::Path;

pub fn load(repl: &mut Repl, path: &str) -> Go {
    let path = path.trim_matches('"').to_string();
    let session = repl.session.clone();
    let work = || {
        let mut session = session.borrow_mut();
        let text = session.read_source(Path::new(&path))?;
        session.run_source(Path::new(&path), &text).map(|()| text)
    };
    match guarded(work) {
        Ok(text) => repl.entries.push(body(&text).to_string()),
        Err(failure) => {
            repl.entries_failed += 1;
            repl.fail(failure);
        }
    }
    Go::On
}

pub fn save(repl: &mut Repl, path: &str) -> Go {
    let path = path.trim_matches('"');
    let defined: Vec<_> = repl.entries.iter().map(|entry| function(entry)).collect();
    // A script defines a function once: the last definition counts.
    let is_last = |at: &usize| defined[*at].is_none() || !defined[at + 1..].contains(&defined[*at]);
    let text: String = (0..repl.entries.len()).filter(is_last).map(|at| statement(&repl.entries[at])).collect();
    if let Err(diag) = files::write_text(Path::new(path), &text) {
        repl.refuse(&diag.message, "name a file in a folder that is there");
        return Go::On;
    }
    let count = repl.entries.len();
    repl.face.say(&format!("{count} entr{} written to {path}", if count == 1 { "y" } else { "ies" }));
    let session = repl.session.borrow();
    let uses = repl.entries.iter().filter(|entry| session.uses_last_value(entry)).count();
    if uses > 0 {
        repl.face.say("`_` means nothing in a script: give those values names there");
    }
    if repl.entries_failed > 0 {
        let failed = repl.entries_failed;
        let are = if failed == 1 { "y that ended in an error is" } else { "ies that ended in an error are" };
        repl.face.say(&format!("{failed} entr{are} left out, with what came of them before the error"));
    }
    for name in redefined(&repl.entries, &defined) {
        let name = name.to_string();
        repl.face.say(&format!("the last definition of `{name}` is written: what called an earlier one changes there"));
    }
    Go::On
}

/// A file's text behind a first line `#!`.
fn body(text: &str) -> &str {
    text[script_start(text)..].trim()
}

/// Functions that were used before they were defined again.
fn redefined<'a>(entries: &[String], defined: &[Option<(&'a str, usize)>]) -> Vec<&'a str> {
    let names = |entry: &str, name: &str| {
        let tokens = lex(entry, 0).unwrap_or_default();
        tokens.iter().any(|token| &entry[token.range()] == name)
    };
    let mut found: Vec<&str> = (0..entries.len())
        .filter_map(|at| {
            let (name, _) = defined[at]?;
            let next = at + 1 + defined[at + 1..].iter().position(|later| *later == defined[at])?;
            entries[at + 1..next].iter().any(|entry| names(entry, name)).then_some(name)
        })
        .collect();
    found.dedup();
    found
}

/// The name of the function that an entry is, and how many parameters it has; none for any other entry.
fn function(entry: &str) -> Option<(&str, usize)> {
    let tokens = lex(entry, 0).ok()?;
    let word = |at: usize| tokens.get(at).map_or("", |token| &entry[token.range()]);
    if word(0) != "fn" || word(2) != "(" {
        return None;
    }
    let close = tokens[2].partner as usize;
    let is_whole =
        word(close + 1) == "{" && (tokens[close + 1].partner as usize..tokens.len()).all(|at| "};".contains(word(at)));
    let parameters = (3..close).filter(|&at| word(at) != ",").count();
    is_whole.then(|| (word(1), parameters))
}

/// An entry as scripts need it: with a `;` at its end, unless it is a function.
fn statement(entry: &str) -> String {
    let entry = entry.trim_end();
    if function(entry).is_some() {
        return format!("{entry}\n");
    }
    let last = entry.lines().last().unwrap_or("");
    match (entry.ends_with(';'), last.contains("//")) {
        (true, _) => format!("{entry}\n"),
        (false, true) => format!("{entry}\n;\n"),
        (false, false) => format!("{entry};\n"),
    }
}

pub fn reset(repl: &mut Repl, _: &str) -> Go {
    match guarded(|| repl.face.session(&repl.settings)) {
        Ok(session) => {
            repl.interrupts.follow(session.interrupt_handle());
            *repl.session.borrow_mut() = session;
            repl.entries.clear();
            repl.entries_failed = 0;
        }
        Err(failure) => repl.fail(failure),
    }
    Go::On
}
