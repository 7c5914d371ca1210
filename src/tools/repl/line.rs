//! Entry of text at a terminal, through rustyline: several lines, history, search, completion, colours, hints.
//!
//! What is asked of the session while a person types must be quick and run no script code.

use super::history;
use crate::script::session::Session;
use crate::tools::render::Colour;
use rustyline::config::{ColorMode, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, history::FileHistory};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// The line editor with its history.
pub struct Lines {
    editor: Editor<Typing, FileHistory>,
    history: Option<PathBuf>,
    colour: Colour,
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
    pub fn new(session: Rc<RefCell<Session>>, colour: Colour) -> Result<Lines, String> {
        let mode = if colour == Colour::On { ColorMode::Enabled } else { ColorMode::Disabled };
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
        editor.set_helper(Some(Typing { session }));
        let history = history::path();
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        Ok(Lines { editor, history, colour })
    }

    pub fn read(&mut self, prompt: &str) -> Read {
        let styled = self.colour.wrap("1;34", prompt);
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

    /// At once, so that a crash loses nothing.
    fn remember(&mut self, text: &str) {
        let added = self.editor.add_history_entry(text.trim_end()).unwrap_or(false);
        if let Some(path) = self.history.as_ref().filter(|_| added) {
            let _ = self.editor.append_history(path);
        }
    }
}

/// Answers what the line editor asks about the text being typed.
struct Typing {
    session: Rc<RefCell<Session>>,
}

impl rustyline::Helper for Typing {}
impl rustyline::completion::Completer for Typing {
    type Candidate = String;
}
impl rustyline::highlight::Highlighter for Typing {}
impl rustyline::hint::Hinter for Typing {
    type Hint = String;
}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let done = text.trim_start().starts_with(':') || self.session.borrow().is_finished(text);
        Ok(if done { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}
