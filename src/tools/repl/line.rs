//! Entry of text at a terminal, through rustyline: several lines, history, search, completion, colors, hints.
//!
//! What the session computes while a person types must be fast and run no script code.

use super::offers::{Offers, pair};
use super::{history, paint};
use crate::script::session::handle::Session;
use crate::tools::render::Coloring;
use rustyline::completion::{Completer, Pair};
use rustyline::config::{ColorMode, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::{FileHistory, SearchDirection};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

/// The prompt of continuation lines.
const CONTINUES: &str = "...  the entry goes on; Ctrl-C drops it";

/// What a Tab writes at the beginning of a line.
const INDENT: &str = "    ";

/// The line editor with its history.
pub struct Lines {
    editor: Editor<Typing, FileHistory>,
    history: Option<PathBuf>,
    color: Coloring,
}

/// What came from the terminal.
pub enum Read {
    Entry(String),
    /// Ctrl-C: what was typed is dropped.
    Dropped,
    End,
    Broken(String),
}

impl Lines {
    pub fn new(session: Rc<RefCell<Session>>, color: Coloring) -> Result<Lines, String> {
        let mode = if color == Coloring::On { ColorMode::Enabled } else { ColorMode::Disabled };
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_prompt_limit(200)
            .color_mode(mode)
            .tab_stop(4)
            .history_ignore_space(true)
            .max_history_size(history::ENTRIES)
            .map_err(|error| error.to_string())?
            .build();
        let mut editor = Editor::with_config(config).map_err(|error| error.to_string())?;
        editor.set_helper(Some(Typing { session, color, offers: Offers::new(), over: Cell::new(false) }));
        let history = history::path();
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        Ok(Lines { editor, history, color })
    }

    /// How wide the terminal is now.
    pub fn columns(&mut self) -> usize {
        self.editor.dimensions().map_or(80, |(columns, _)| columns as usize)
    }

    pub fn read(&mut self, prompt: &str) -> Read {
        let styled = self.color.wrap("1;34", prompt);
        match self.editor.readline(&(prompt, styled.as_str())) {
            Ok(text) => {
                self.remember(&text);
                Read::Entry(text)
            }
            Err(ReadlineError::Interrupted) => Read::Dropped,
            Err(ReadlineError::Eof) => Read::End,
            Err(error) => Read::Broken(error.to_string()),
        }
    }

    /// Saved at once, so that a crash loses nothing.
    fn remember(&mut self, text: &str) {
        let added = self.editor.add_history_entry(text.trim_end()).unwrap_or(false);
        if let Some(path) = self.history.as_ref().filter(|_| added) {
            let _ = self.editor.append_history(path);
        }
    }
}

/// Answers the line editor's requests about the text being typed.
struct Typing {
    session: Rc<RefCell<Session>>,
    color: Coloring,
    offers: Offers,
    /// The entry has ended: no bracket is marked any more.
    over: Cell<bool>,
}

impl Helper for Typing {}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let done = super::is_finished(&self.session.borrow(), text);
        Ok(if done { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        // At the beginning of a line there is nothing to complete: a Tab indents, also a pasted one.
        if line[..at].rsplit('\n').next().is_some_and(|begun| begun.trim().is_empty()) {
            return Ok((at, vec![pair(INDENT.to_string())]));
        }
        self.offers.complete(&self.session.borrow(), line, at)
    }
}

/// Text after the cursor that is not typed.
struct Shown {
    text: String,
    /// The part that the right arrow key accepts.
    taken: Option<String>,
}

impl Hint for Shown {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        self.taken.as_deref()
    }
}

impl Hinter for Typing {
    type Hint = Shown;

    /// In an unfinished entry, that it continues; the signature of the call at the cursor; otherwise the rest of the
    /// last entry that began like this.
    fn hint(&self, line: &str, at: usize, context: &Context<'_>) -> Option<Shown> {
        if at < line.len() || line.trim().is_empty() {
            return None;
        }
        if line.ends_with('\n') && !super::is_finished(&self.session.borrow(), line) {
            return Some(Shown { text: CONTINUES.to_string(), taken: None });
        }
        if let Some(signature) = self.session.borrow().signature(line) {
            return Some(Shown { text: format!("   {signature}"), taken: None });
        }
        let newest = context.history().len().checked_sub(1)?;
        let found = context.history().starts_with(line, newest, SearchDirection::Reverse).ok()??;
        let rest = found.entry.get(at..)?.to_string();
        let plain = !rest.is_empty() && !rest.contains('\n');
        plain.then(|| Shown { text: rest.clone(), taken: Some(rest) })
    }
}

impl Highlighter for Typing {
    fn highlight<'l>(&self, line: &'l str, at: usize) -> Cow<'l, str> {
        if self.color == Coloring::Off {
            return Cow::Borrowed(line);
        }
        let cursor = (!self.over.get()).then_some(at);
        Cow::Owned(paint::paint(line, cursor))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.color.dim(hint))
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.over.set(kind == CmdKind::ForcedRefresh);
        self.color == Coloring::On
    }
}
