//! What can stand at the cursor of an entry: of a text that which the session offers, and files; after a colon commands,
//! and what they take.

use super::commands::COMMANDS;
use crate::base::order;
use crate::script::manual;
use crate::script::session::handle::Session;
use rustyline::completion::Pair;
use std::path::Path;

/// Completes entries.
pub struct Offers;

impl Offers {
    pub fn new() -> Offers {
        Offers
    }

    /// Where the word begins that is completed, and what may stand in its place.
    pub fn complete(&self, session: &Session, line: &str, at: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        match line[..at].trim_start().strip_prefix(':') {
            Some(rest) => self.command(session, at, rest),
            None => self.offered(session, line, at),
        }
    }

    fn offered(&self, session: &Session, line: &str, at: usize) -> rustyline::Result<(usize, Vec<Pair>)> {
        let offer = session.complete(line, at);
        if offer.files {
            return Ok((offer.start, files(&line[offer.start..at])));
        }
        Ok((offer.start, offer.words.into_iter().map(pair).collect()))
    }

    /// After a colon: commands, then their arguments.
    fn command(&self, session: &Session, at: usize, rest: &str) -> rustyline::Result<(usize, Vec<Pair>)> {
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
            Some("FILE") => Ok((start, files(argument))),
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

/// The files whose paths begin so, as they are: neither in a string nor behind `:load` has a blank an escape.
fn files(path: &str) -> Vec<Pair> {
    let (folder, begun) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
    let entries = Path::new(if folder.is_empty() { "." } else { folder }).read_dir().into_iter().flatten().flatten();
    let mut found: Vec<Pair> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(begun))?;
            let end = if entry.path().is_dir() { "/" } else { "" };
            Some(Pair { replacement: format!("{folder}{name}{end}"), display: name })
        })
        .collect();
    order::by(&mut found, |a, b| a.display.cmp(&b.display));
    found
}

pub fn pair(word: String) -> Pair {
    Pair { display: word.clone(), replacement: word }
}
