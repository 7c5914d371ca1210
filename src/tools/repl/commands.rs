//! The commands after a colon, in one table that help, completion and suggestions read.

pub mod help;
mod measure;
pub mod state;
mod storage;

use super::{Go, Repl};
use crate::base::suggest::nearest;

/// A command of the REPL.
pub struct Command {
    pub name: &'static str,
    /// The argument after the name.
    pub takes: &'static str,
    pub summary: &'static str,
    run: fn(&mut Repl, &str) -> Go,
}

const fn command(
    name: &'static str,
    takes: &'static str,
    summary: &'static str,
    run: fn(&mut Repl, &str) -> Go,
) -> Command {
    Command { name, takes, summary, run }
}

/// All of them, in the order of `:help`.
pub const COMMANDS: &[Command] = &[
    command("help", "[NAME [N]]", "what NAME is, with examples; `:help sum 2` runs the second one", help::help),
    command("type", "EXPR", "the type of a value; of its tensors shape, dtype, device", state::kind),
    command("vars", "", "the variables: shape, dtype, device, bytes", state::variables),
    command("mem", "", "memory of each device, and the lines whose tensors hold the most", state::memory),
    command("devices", "", "what scripts can compute on", state::devices),
    command("streams", "", "streams and the work that waits on them", state::streams),
    command("time", "EXPR", "how long EXPR takes: the median of many runs, each waited for", measure::time),
    command("profile", "EXPR", "where the time of EXPR goes, pass by pass", measure::profile),
    command("plan", "EXPR", "what is fused into what, and what is stored; runs EXPR once", measure::plan),
    command("load", "FILE", "runs a script here", storage::load),
    command("save", "FILE", "writes the entries that ran without an error as a script", storage::save),
    command("reset", "", "forgets variables, functions and imports", storage::reset),
    command("quit", "", "leaves; so does Ctrl-D", |_, _| Go::Leave),
];

/// Runs the text after the colon.
pub fn run(repl: &mut Repl, text: &str) -> Go {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let exact = COMMANDS.iter().find(|command| command.name == name);
    // `:q`, `:h`: an unambiguous prefix of a command.
    let begun: Vec<&Command> = COMMANDS.iter().filter(|command| command.name.starts_with(name)).collect();
    let alone = if let [one] = begun[..] { Some(one).filter(|_| !name.is_empty()) } else { None };
    let Some(command) = exact.or(alone) else {
        let help = match nearest(name, COMMANDS.iter().map(|command| command.name)) {
            Some(found) => format!("did you mean `:{found}`?"),
            None => "`:help` lists the commands".to_string(),
        };
        repl.refuse(&format!("there is no command `:{name}`"), &help);
        return Go::On;
    };
    let rest = rest.trim();
    let wants = !command.takes.is_empty() && !command.takes.starts_with('[');
    match (wants, command.takes.is_empty()) {
        (true, _) if rest.is_empty() => {
            repl.refuse(&format!("`:{name}` expects something after it"), &format!("`:{name} {}`", command.takes));
        }
        (_, true) if !rest.is_empty() => {
            repl.refuse(&format!("`:{name}` takes nothing after it"), command.summary);
        }
        _ => return (command.run)(repl, rest),
    }
    Go::On
}
