//! What a conversation shows, and where: the terminal, or something else in its place.

use super::answer;
use crate::script::Dynamic;
use crate::script::error::Error;
use crate::script::session::handle::Session;
use crate::tools::command::Settings;
use crate::tools::render::{Coloring, render_error};
use crate::tools::run::{builder, internal};
use crate::tools::{complain, say, terminal};

/// Where entries and commands show what they have to say.
pub trait Face {
    /// A new session whose output is shown here.
    fn session(&self, settings: &Settings) -> Result<Session, Error>;
    /// Text of a command, without a line feed at its end.
    fn say(&self, text: &str);
    /// The value of an entry; waits for it.
    fn value(&self, session: &Session, value: &Dynamic) -> Result<(), Error>;
    fn error(&self, error: &Error);
    /// A panic: an error of the program.
    fn internal(&self);
    /// An entry that is refused before it runs: why, and what to do.
    fn refuse(&self, message: &str, help: &str);
    /// Of what `say` shows.
    fn color(&self) -> Coloring;
}

/// The standard output, and the standard error for errors.
pub struct Streams;

impl Face for Streams {
    fn session(&self, settings: &Settings) -> Result<Session, Error> {
        let session = builder(settings).module_root(".").build()?;
        session.set_terminal(terminal::of_stdout());
        Ok(session)
    }

    fn say(&self, text: &str) {
        say(text);
    }

    fn value(&self, session: &Session, value: &Dynamic) -> Result<(), Error> {
        if let Some(answer) = answer::of(session, value)? {
            say(&answer.text);
            answer.lines.iter().for_each(|line| say(&self.color().dim(&format!("    {line}"))));
        }
        Ok(())
    }

    fn error(&self, error: &Error) {
        complain(&render_error(error, Coloring::of_stderr()));
    }

    fn internal(&self) {
        complain(&internal(Coloring::of_stderr()));
    }

    fn refuse(&self, message: &str, help: &str) {
        complain(&format!("error: {message}\n   = help: {help}\n"));
    }

    fn color(&self) -> Coloring {
        Coloring::of_stdout()
    }
}
