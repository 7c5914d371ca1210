//! A text as an editor has it, perhaps broken in the middle of a word: its tokens, its syntax, the values on the way,
//! and what `check` finds in it.

pub use super::seen::Seen;
use super::syntax::Stmt;
use super::{FINDINGS, parse, parts};
use crate::script::error::Error;
use crate::script::session::handle::Session;
use crate::script::source::lex::{Token, lex, script_start};
use crate::script::source::recover::recover;
use crate::script::source::{Source, SourceKind};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What is known of a text.
pub struct Reading {
    pub text: Arc<str>,
    /// In pairs of brackets, also where the text is broken: mended places are tokens without characters.
    pub tokens: Vec<Token>,
    pub body: Vec<Stmt>,
    pub seen: Seen,
    /// The findings of `check`, in the order of the text.
    pub problems: Vec<Error>,
}

impl Reading {
    /// Tokens and syntax alone.
    pub fn of_text(text: &str) -> Reading {
        let mut reading = Reading::unread(text, recover(text));
        reading.body = parse::parse(text, &reading.tokens);
        reading
    }

    fn unread(text: &str, tokens: Vec<Token>) -> Reading {
        Reading { text: text.into(), tokens, body: Vec::new(), seen: Seen::default(), problems: Vec::new() }
    }

    /// The text of a token; empty if there is none.
    pub fn word(&self, token: usize) -> &str {
        self.tokens.get(token).map_or("", |token| &self.text[token.range()])
    }
}

#[doc(hidden)]
impl Session {
    /// Reads a file's text for an editor; its imports begin at a folder. The session keeps nothing of it.
    pub fn reading(&mut self, path: &Path, home: &Path, text: &str) -> Reading {
        // Of this file alone.
        self.modules.lock().roots.clear();
        self.imports_from(home);
        let name = path.display().to_string();
        let compiled = self.add(SourceKind::File, &name, text).and_then(|source| {
            let compiled = self.compile(&source)?;
            Ok((source, compiled))
        });
        let (source, compiled, broken) = match compiled {
            Ok((source, compiled)) => (Some(source), Some(compiled), Vec::new()),
            // A text that cannot be cut into tokens is registered, too.
            Err(error) => (self.registered(&name, text), None, parts(&error)),
        };
        let tokens = match &compiled {
            // Nothing is to be mended.
            Some(_) => lex(text, script_start(text)).unwrap_or_default(),
            None => recover(text),
        };
        let mut reading = Reading::unread(text, tokens);
        let mut found = broken;
        if source.is_none() {
            // Too large for a session.
            reading.body = parse::parse(text, &reading.tokens);
        }
        if let Some(source) = &source {
            let survey = self.survey(source, text, &reading.tokens, compiled.as_ref(), Some(Seen::default()));
            (reading.body, reading.seen) = (survey.body, survey.seen.unwrap_or_default());
            if compiled.is_some() {
                found = survey.found;
            }
        }
        let mut sources = self.host.sources.write();
        reading.problems = found.into_iter().take(FINDINGS).map(|diag| Error::new(diag, &sources)).collect();
        if let Some(source) = source {
            sources.release(&source);
        }
        reading
    }

    /// The same without its problems, in a third of the time: for what is asked between two keystrokes.
    pub fn quick_reading(&mut self, home: &Path, text: &str) -> Reading {
        self.modules.lock().roots.clear();
        self.imports_from(home);
        // Without findings nobody looks at positions.
        let Ok(source) = self.add(SourceKind::File, "", "") else { return Reading::of_text(text) };
        let mut reading = Reading::unread(text, recover(text));
        let survey = self.survey(&source, text, &reading.tokens, None, Some(Seen::default()));
        (reading.body, reading.seen) = (survey.body, survey.seen.unwrap_or_default());
        reading
    }

    /// The source of this name and text.
    fn registered(&self, name: &str, text: &str) -> Option<Arc<Source>> {
        let sources = self.host.sources.read();
        sources.sources().iter().rfind(|source| *source.name == *name && *source.text == *text).cloned()
    }

    /// Texts that `import` finds before files: modules of these names that are open in an editor.
    pub fn set_open_modules(&mut self, texts: BTreeMap<String, String>) {
        self.modules.lock().memory = texts;
    }
}
