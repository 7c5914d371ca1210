//! What can stand at the cursor of an entry: of a text that which the session offers, and files; after a colon commands,
//! and what they take.

use super::commands::COMMANDS;
use crate::base::order;
use crate::script::manual;
use crate::script::session::handle::Session;
use rustyline::completion::{FilenameCompleter, Pair};

/// Completes entries.
pub struct Offers {
    files: FilenameCompleter,
}

impl Offers {
    pub fn new() -> Offers {
        Offers { files: FilenameCompleter::new() }
    }

    /// Where the word begins that is completed, and what may stand in its place.
    pub fn complete(&self, session: &Session, line: &str, at: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        match line[..at].trim_start().strip_prefix(':') {
            Some(rest) => self.command(session, line, at, rest),
            None => self.offered(session, line, at),
        }
    }

    fn offered(&self, session: &Session, line: &str, at: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        let offer = session.complete(line, at);
        if offer.files {
            let (start, mut found) = self.files.complete_path(&line[offer.start..at], at - offer.start)?;
            order::by(&mut found, |a, b| a.display.cmp(&b.display));
            return Ok((offer.start + start, found));
        }
        Ok((offer.start, offer.words.into_iter().map(pair).collect()))
    }

    /// After a colon: commands, then their arguments.
    fn command(&self, session: &Session, line: &str, at: usize, rest: &str) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some((name, argument)) = rest.split_once(char::is_whitespace) else {
            let names = COMMANDS.iter().map(|command| command.name).filter(|name| name.starts_with(rest));
            return Ok((at - rest.len(), names.map(|name| pair(format!("{name} "))).collect()));
        };
        let argument = argument.trim_start();
        let start = at - argument.len();
        match COMMANDS.iter().find(|command| command.name == name).map(|command| command.takes) {
            Some("EXPR") => {
                let (begun, found) = self.offered(session, argument, argument.len())?;
                Ok((start + begun, found))
            }
            Some("FILE") => self.files.complete_path(line, at),
            Some(takes) if takes.contains("NAME") => {
                let mut names: Vec<&str> = manual::names().filter(|name| name.starts_with(argument)).collect();
                names.sort_unstable();
                names.dedup();
                Ok((start, names.into_iter().map(|name| pair(name.to_string())).collect()))
            }
            _ => Ok((at, Vec::new())),
        }
    }
}

pub fn pair(word: String) -> Pair {
    Pair { display: word.clone(), replacement: word }
}
