//! `:load`, `:save`, `:reset`.

use super::super::{Go, Repl};
use crate::files::input::os_reason;
use crate::tools::run::guarded;

pub fn load(repl: &mut Repl, path: &str) -> Go {
    let path = path.trim_matches('"').to_string();
    let session = repl.session.clone();
    if let Err(failure) = guarded(|| session.borrow_mut().run_file(&path)) {
        repl.fail(failure);
    }
    Go::On
}

pub fn save(repl: &mut Repl, path: &str) -> Go {
    let path = path.trim_matches('"');
    let text: String = repl.entries.iter().map(|entry| statement(entry)).collect();
    if let Err(error) = std::fs::write(path, text) {
        let reason = os_reason(&error);
        repl.refuse(&format!("cannot write {path}: {reason}"), "name a file in a folder that is there");
        return Go::On;
    }
    let count = repl.entries.len();
    repl.face.say(&format!("{count} entr{} written to {path}", if count == 1 { "y" } else { "ies" }));
    let session = repl.session.borrow();
    let uses = repl.entries.iter().filter(|entry| session.uses_last_value(entry)).count();
    if uses > 0 {
        repl.face.say("`_` means nothing in a script: give those values names there");
    }
    Go::On
}

/// An entry with a `;` at its end, as scripts need it.
fn statement(entry: &str) -> String {
    let entry = entry.trim_end();
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
        }
        Err(failure) => repl.fail(failure),
    }
    Go::On
}
