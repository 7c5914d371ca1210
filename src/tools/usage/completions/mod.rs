//! `tscript completions`: a text for a shell, made from the table.

mod bash;
mod fish;
mod zsh;

use super::{Flag, Word, table};
use crate::base::code;

/// A shell that can be taught.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub fn of(name: &str) -> Option<Shell> {
        match name {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            "fish" => Some(Shell::Fish),
            _ => None,
        }
    }
}

pub fn text(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash::text(),
        Shell::Zsh => zsh::text(),
        Shell::Fish => fish::text(),
    }
}

/// The words that a place takes, if they can be listed.
fn listed(word: Word) -> Vec<String> {
    match word {
        Word::OneOf(words) => words.iter().map(|word| word.to_string()).collect(),
        Word::Code => code::ALL.iter().map(|(code, _)| code.to_string()).collect(),
        Word::Topic => {
            let commands = table::COMMANDS.iter().map(|usage| usage.name);
            commands.chain(table::TOPICS.iter().copied()).map(String::from).collect()
        }
        Word::Script | Word::Path | Word::Folder | Word::File | Word::Free => Vec::new(),
    }
}

/// Every flag once, with that of `--help`.
fn all_flags() -> Vec<&'static Flag> {
    let mut all: Vec<&Flag> = Vec::new();
    for flag in table::COMMANDS.iter().flat_map(|usage| usage.all_flags()) {
        if all.iter().all(|known| known.name != flag.name) {
            all.push(flag);
        }
    }
    all
}

/// The first clause of an explanation, without marks of code.
fn brief(text: &str) -> String {
    let end = text.find([';', ':']).filter(|&end| !text[end..].starts_with("://")).unwrap_or(text.len());
    let clause = if text[..end].split_whitespace().count() > 2 { &text[..end] } else { text };
    clause.replace('`', "")
}
