//! A session as a conversation: entries one after another, each with a number by which errors name it. Work that an
//! entry queued may fail while a later one runs; the error still points into the entry that queued it.
//!
//! Independent of terminals and commands.

use crate::script::error::Error;
use crate::script::host::Host;
use crate::script::session::handle::Session;
use crate::script::source::scope::Names;
use crate::script::source::{LAST, SourceKind, SourceMap};
use rhai::{Dynamic, Position};

#[doc(hidden)]
impl Session {
    /// Runs one entry and returns its value. Work that it queued is started and may still be running.
    ///
    /// `_` is the value of the last entry that had one.
    pub fn enter(&mut self, number: u32, text: &str) -> Result<Dynamic, Error> {
        let value = self.value_of(number, text)?;
        if !value.is_unit() {
            self.scope.set_or_push(LAST, value.clone());
        }
        Ok(value)
    }

    /// As `enter`, but leaves `_` unchanged.
    pub fn value_of(&mut self, number: u32, text: &str) -> Result<Dynamic, Error> {
        let _entered = Host::enter(&self.host);
        let name = (self.entry_name)(number);
        let kind = SourceKind::Repl(number);
        let compiled = self.add(kind, &name, text).and_then(|source| Ok((self.compile(&source)?, source)));
        let (ast, source) = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                // Nothing was created from this text: its lines can be reused.
                let named = |source: &&std::sync::Arc<crate::script::source::Source>| *source.name == *name;
                let source = self.host.sources.read().sources().iter().rev().find(named).cloned();
                if let Some(source) = source {
                    self.host.sources.write().release(&source);
                }
                return Err(error);
            }
        };
        let host = self.host.clone();
        host.passing(&source, || {
            let value = self.evaluate(&ast)?;
            self.host.rt.flush();
            Ok(value)
        })
    }

    /// Whether an entry uses `_`, the last value.
    pub fn uses_last_value(&self, text: &str) -> bool {
        let (tokens, _) = crate::script::source::lex::lex_partial(text);
        let word = |index: usize| tokens.get(index).map_or("", |token| &text[token.range()]);
        (0..tokens.len()).any(|index| word(index) == "_" && word(index + 1) != "=>")
    }

    /// Faults of queued work that are known and were not reported, earliest first.
    pub fn late_errors(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        while let Some(diag) = self.host.rt.known_fault() {
            errors.push(self.error(diag));
        }
        errors
    }

    /// Whether a text can be run; false if only its beginning is there: a bracket is open, an operand is missing. A
    /// text that no continuation can make valid counts as finished.
    pub fn is_finished(&self, text: &str) -> bool {
        let mut map = SourceMap::new();
        let natives = self.host.natives.read();
        let Ok(added) = map.add(SourceKind::Repl(0), "", text, &|name| natives.contains(name), Names::NONE) else {
            return true;
        };
        if added.problem.is_some() {
            return !added.incomplete;
        }
        // An empty line ends an entry without open brackets.
        let blank = text.rsplit_once('\n').is_some_and(|(_, last)| last.trim().is_empty());
        if blank || text.trim().is_empty() {
            return true;
        }
        let written = added.source.rewritten();
        let Err(error) = self.engine.compile_with_scope(&self.scope, written) else { return true };
        !ends_at(written, error.position())
    }
}

/// Whether a position is the end of a text, ignoring trailing blanks and comments.
fn ends_at(text: &str, at: Position) -> bool {
    let (Some(line), Some(column)) = (at.line(), at.position()) else { return true };
    let Some(start) = text.split_inclusive('\n').take(line - 1).map(str::len).reduce(|a, b| a + b).or(Some(0)) else {
        return true;
    };
    let rest = &text[start.min(text.len())..];
    let from = rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at);
    crate::script::source::lex::lex(&rest[from..], 0).is_ok_and(|tokens| tokens.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::values::panics::Guarded;

    fn session() -> Session {
        Session::builder().build().expect("a session")
    }

    fn text(session: &mut Session, number: u32, entry: &str) -> String {
        let value = session.enter(number, entry).unwrap_or_else(|error| panic!("{entry}: {error:#}"));
        session.show(&value).expect("can be shown")
    }

    #[test]
    fn unfinished_text_is_distinguished_from_wrong_text() {
        let session = session();
        for open in ["let x = [1,", "fn f(x) {", "x +", "let y =", "1 + // more", "`a", "if true", "f(1, /* a", "x."] {
            assert!(!session.is_finished(open), "{open}");
        }
        for done in
            ["", "1 + 1", "let x = 1", "if true { 1 }", "x )", "let = 3", "\"abc", "1 +\n", "fn f() { 1 }", "1 1"]
        {
            assert!(session.is_finished(done), "{done}");
        }
    }

    #[test]
    fn all_definitions_persist_between_entries() {
        let mut session = session();
        drop(session.enter(1, "const K = 3; import \"nn\" as nn; let x = tensor([1.0, 2.0]);").unwrap());
        drop(session.enter(2, "fn scaled(v) { v * global::K }").unwrap());
        assert_eq!(text(&mut session, 3, "scaled(x)"), "tensor([3., 6.])");
        assert_eq!(text(&mut session, 4, "_ + 1"), "tensor([4., 7.])");
        assert_eq!(text(&mut session, 5, "nn::linear(2, 4).forward(x).shape"), "[4]");
        assert_eq!(text(&mut session, 6, "switch 3 { 1 => 0, _ => 7 }"), "7");
        drop(session.enter(7, "fn made() { nn::linear(2, 2).forward(tensor([1.0, 1.0])).shape }").unwrap());
        assert_eq!(text(&mut session, 8, "made()"), "[2]");
        drop(session.enter(9, "const K = 4; let x = 1;").unwrap());
        assert_eq!(text(&mut session, 10, "scaled(x)"), "4");
        assert_eq!(session.scope.iter_raw().filter(|(name, ..)| *name == "x").count(), 1);
    }

    #[test]
    fn a_late_error_names_the_entry_that_queued_it() {
        let mut session = session();
        drop(session.enter(1, "let x = arange(10); let wrong = x[tensor([11])];").unwrap());
        let late = session.late_errors();
        assert_eq!(late.len(), 1);
        assert_eq!(late[0].code(), "E0401");
        assert_eq!(&*late[0].location().expect("a place").source, "repl:1");
        let value = session.enter(3, "wrong + 1").unwrap();
        let error = session.show(&value).expect_err("poison");
        assert_eq!(&*error.location().expect("a place").source, "repl:1");
        assert_eq!(text(&mut session, 4, "x.sum()"), "tensor(45)");
    }

    #[test]
    fn a_panic_in_native_code_leaves_the_session() {
        let mut session = session();
        session.change_engine(|engine| {
            engine.register_fn("explode", Guarded(|| -> i64 { panic!("on purpose") }));
            engine.register_fn("blow", Guarded(|_: &mut rhai::Array| -> i64 { panic!("on purpose") }));
        });
        drop(session.enter(1, "let x = tensor([1, 2]);").unwrap());
        let error = session.enter(2, "explode()").expect_err("a panic");
        assert_eq!(error.code(), "E0806");
        assert_eq!(error.location().expect("a place").line, 1);
        assert_eq!(text(&mut session, 3, "x + 1"), "tensor([2, 3])");
        let caught = "let told = (); try {\n explode()\n } catch (e) { told = [e.code, e.line] } told";
        assert_eq!(text(&mut session, 4, caught), "[\"E0806\", 2]");
        // A value that a closure shares is locked while a method of it runs.
        let shared = "let a = [1]; let f = || a.len(); try { a.blow() } catch (e) { } a.push(2); f.call()";
        assert_eq!(text(&mut session, 5, shared), "2");
    }

    #[test]
    fn text_that_does_not_parse_keeps_no_lines() {
        let mut session = session();
        drop(session.enter(1, "let a = 1").unwrap());
        let before = session.host.sources.read().sources().len();
        session.enter(2, "let = 1").expect_err("no name");
        session.enter(3, "f(").expect_err("open");
        assert_eq!(session.host.sources.read().sources().len(), before);
    }
}
