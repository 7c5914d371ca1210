//! The REPL: reads an entry, runs it, shows its value and where that is, and continues after any error.
//!
//! Uses `Session`. Line editing is in `line.rs`, commands in `commands.rs`, what is shown where in `face.rs`.

pub mod answer;
mod commands;
pub mod face;
mod habits;
mod history;
pub mod interrupts;
mod line;
pub mod offers;
mod paint;
mod typeahead;

use super::command::Settings;
use super::render::Coloring;
use super::run::{Failure, guarded};
use super::{FAILED, complain, say, terminal};
use crate::script::draw::terminal::Terminal;
use crate::script::error::Error;
use crate::script::session::handle::Session;
pub use commands::help::described;
pub use commands::state::variable;
use face::{Face, Streams};
use habits::Habit;
pub use history::file as history_file;
use interrupts::Interrupts;
use std::cell::RefCell;
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::Arc;
use typeahead::Typeahead;

/// The conversation.
pub struct Repl {
    /// Shared with the line editor, which asks it for names while a line is typed.
    pub session: Rc<RefCell<Session>>,
    settings: Settings,
    pub interrupts: Arc<Interrupts>,
    /// Number of the next entry.
    pub number: u32,
    /// Entries that ran without an error, for `:save`.
    entries: Vec<String>,
    /// Those that ended in an error.
    entries_failed: usize,
    face: Rc<dyn Face>,
    /// Of what the face says.
    color: Coloring,
    failed: bool,
    /// The exit status of an entry that called `exit`.
    exit_status: Option<u8>,
}

/// Whether the conversation continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Go {
    On,
    Leave,
}

/// `tscript` without a command.
pub fn repl(settings: Settings) -> u8 {
    let mut repl = match Repl::new(settings, Rc::new(Streams)) {
        Ok(repl) => repl,
        Err(failure) => {
            complain(&super::run::text(&failure));
            return FAILED;
        }
    };
    repl.interrupts.clone().count_signals();
    if std::io::stdin().is_terminal() { repl.converse() } else { repl.read_all() }
}

/// Whether an entry is complete, or continues in the next line.
pub fn is_finished(session: &Session, text: &str) -> bool {
    let text = habits::without_prompts(text);
    text.trim_start().starts_with(':') || habits::habit(&text).is_some() || session.is_finished(&text)
}

impl Repl {
    pub fn new(settings: Settings, face: Rc<dyn Face>) -> Result<Repl, Failure> {
        let session = guarded(|| face.session(&settings))?;
        Ok(Repl {
            interrupts: Interrupts::new(session.interrupt_handle()),
            session: Rc::new(RefCell::new(session)),
            settings,
            number: 1,
            entries: Vec::new(),
            entries_failed: 0,
            color: face.color(),
            face,
            failed: false,
            exit_status: None,
        })
    }

    /// Entries from a person.
    fn converse(&mut self) -> u8 {
        let mut lines = match line::Lines::new(self.session.clone(), self.color) {
            Ok(lines) => lines,
            Err(error) => {
                complain(&format!("error: the terminal cannot be used: {error}\n"));
                return FAILED;
            }
        };
        let _typeahead = Typeahead::pass_on();
        say(concat!("tscript ", env!("CARGO_PKG_VERSION"), "   :help tells more, Ctrl-D leaves"));
        loop {
            let read = lines.read(&self.prompt());
            self.session.borrow().set_terminal(Terminal { columns: lines.columns(), ..terminal::of_stdout() });
            match read {
                line::Read::Entry(text) => {
                    if self.take(&text) == Go::Leave {
                        return self.exit_status.unwrap_or(0);
                    }
                }
                line::Read::Dropped => {}
                line::Read::End => return 0,
                line::Read::Broken(reason) => {
                    complain(&format!("error: the terminal cannot be read: {reason}\n"));
                    return FAILED;
                }
            }
        }
    }

    /// Entries from a file or another program: no prompts, and the exit status says whether all succeeded.
    fn read_all(&mut self) -> u8 {
        let mut text = String::new();
        let input = std::io::stdin();
        loop {
            let mut bytes = Vec::new();
            let count = match std::io::BufRead::read_until(&mut input.lock(), b'\n', &mut bytes) {
                Ok(count) => count,
                Err(error) => {
                    complain(&format!("error: the input cannot be read: {error}\n"));
                    return FAILED;
                }
            };
            text.push_str(&String::from_utf8_lossy(&bytes));
            let command = text.trim_start().starts_with(':');
            if count > 0 && !command && !is_finished(&self.session.borrow(), text.trim_end_matches(['\n', '\r'])) {
                continue;
            }
            let go = self.take(&std::mem::take(&mut text));
            if count == 0 || go == Go::Leave {
                return self.exit_status.unwrap_or(if self.failed { FAILED } else { 0 });
            }
        }
    }

    /// `cpu> `, `cuda:1 s3> `.
    fn prompt(&self) -> String {
        let placement = self.session.borrow().placement();
        match placement.stream {
            Some(stream) => format!("{} s{stream}> ", placement.device),
            None => format!("{}> ", placement.device),
        }
    }

    /// Runs one entry or command.
    pub fn take(&mut self, text: &str) -> Go {
        // Line feeds before the text stay: they count in the places of errors.
        let text = habits::without_prompts(text.trim_end());
        let whole = text.trim_end();
        let text = whole.trim_start();
        if text.is_empty() {
            return Go::On;
        }
        self.interrupts.begin();
        let go = match (text.strip_prefix(':'), self.habit(text)) {
            (Some(command), _) => commands::run(self, command),
            (None, Some(Habit::Leave)) => Go::Leave,
            (None, Some(Habit::Command(command))) => {
                // Shows the equivalent here.
                self.face.say(&self.color.dim(&format!(":{command}")));
                commands::run(self, &command)
            }
            (None, Some(Habit::Tell(entry, help))) => {
                self.refuse(&format!("`{entry}` is no entry here"), help);
                Go::On
            }
            (None, None) => self.evaluate(whole),
        };
        let late = self.session.borrow().late_errors();
        for error in late {
            self.tell(&error);
        }
        let stopped = self.interrupts.end();
        // Interrupting a program that reads a pipe ends the program.
        if stopped && !std::io::stdin().is_terminal() { Go::Leave } else { go }
    }

    /// The meaning of an entry that is a habit from elsewhere; a variable of that name takes precedence.
    fn habit<'t>(&self, text: &'t str) -> Option<Habit<'t>> {
        let found = habits::habit(text)?;
        let named = text.trim_end_matches(';').trim();
        let is_variable = self.session.borrow().variables(0).iter().any(|variable| variable.name == named);
        (!is_variable).then_some(found)
    }

    /// Runs an entry and shows its value; one that calls `exit` leaves.
    fn evaluate(&mut self, text: &str) -> Go {
        let number = self.take_number();
        self.exit_status = None;
        let session = self.session.clone();
        let face = self.face.clone();
        let work = || -> Result<(), Error> {
            let mut session = session.borrow_mut();
            let value = session.enter(number, text)?;
            if session.exit_status().is_some() { Ok(()) } else { face.value(&session, &value) }
        };
        match guarded(work) {
            Ok(()) => {
                self.entries.push(text.trim_start().to_string());
                self.exit_status = self.session.borrow().exit_status();
            }
            Err(failure) => {
                self.entries_failed += 1;
                self.fail(failure);
            }
        }
        if self.exit_status.is_some() { Go::Leave } else { Go::On }
    }

    fn take_number(&mut self) -> u32 {
        self.number += 1;
        self.number - 1
    }

    fn fail(&mut self, failure: Failure) {
        match failure {
            Failure::Script(error) => self.tell(&error),
            Failure::Panic(_) => {
                self.failed = true;
                self.face.internal();
            }
        }
    }

    fn tell(&mut self, error: &Error) {
        self.failed = true;
        self.face.error(error);
    }

    /// An error of a command: a message and what to do.
    fn refuse(&mut self, message: &str, help: &str) {
        self.failed = true;
        self.face.refuse(message, help);
    }
}
