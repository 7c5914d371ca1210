//! The commands: what stands after a colon. One table; help, completion and suggestions read it.

use super::{Go, Repl};
use crate::base::suggest::nearest;

/// A command of the REPL.
pub struct Command {
    pub name: &'static str,
    /// What stands after the name.
    pub takes: &'static str,
    pub summary: &'static str,
    run: fn(&mut Repl, &str) -> Go,
}

/// All of them, in the order of `:help`.
pub const COMMANDS: &[Command] =
    &[Command { name: "quit", takes: "", summary: "leaves; so does Ctrl-D", run: |_, _| Go::Leave }];

/// Runs what stands after the colon.
pub fn run(repl: &mut Repl, text: &str) -> Go {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(repl, rest.trim()),
        None => {
            let help = match nearest(name, COMMANDS.iter().map(|command| command.name)) {
                Some(found) => format!("did you mean `:{found}`?"),
                None => "`:help` lists the commands".to_string(),
            };
            repl.refuse(&format!("there is no command `:{name}`"), &help);
            Go::On
        }
    }
}
