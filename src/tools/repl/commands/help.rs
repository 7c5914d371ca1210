//! `:help`: the commands, or the help page of a name; an example of it runs as an entry.

use super::super::{Go, Repl};
use super::{COMMANDS, Command};
use crate::base::code::Code;
use crate::base::explain;
use crate::base::suggest::nearest;
use crate::script::error::why_absent;
use crate::script::manual::{self, Page};
use crate::script::session::handle::Session;
use crate::tools::render::Coloring;

pub fn help(repl: &mut Repl, text: &str) -> Go {
    let mut words = text.split_whitespace();
    let (name, number) = (words.next(), words.next());
    match (name, number) {
        (None, _) => overview(repl),
        (Some(name), None) => tell(repl, name),
        (Some(name), Some(number)) => example(repl, name, number),
    }
    Go::On
}

fn overview(repl: &Repl) {
    let mut text = String::from(
        "An entry is run when it is complete, and goes on in further lines until then. `_` is the last value.\n",
    );
    text +=
        "Tab completes, Ctrl-R searches what was entered before, Ctrl-C stops or drops an entry, Ctrl-D leaves.\n\n";
    for command in COMMANDS {
        let call = format!(":{} {}", command.name, command.takes);
        text += &format!("  {call:<18} {}\n", command.summary);
    }
    text += "\nNAME is an operation (`:help sum`), a function of the library (`:help nn::linear`), a module (`:help nn`),\n";
    text += "one of your functions, or the code of an error (`:help E0201`).";
    repl.face.say(&text);
}

fn tell(repl: &mut Repl, name: &str) {
    let found = described(&repl.session.borrow(), repl.color, name);
    match found {
        Ok(text) => repl.face.say(&text),
        Err(Unknown { message, help }) => repl.refuse(&message, &help),
    }
}

/// A name of which nothing is known: what to say, and what to do.
pub struct Unknown {
    message: String,
    help: String,
}

/// The help page of a name; of a variable what it is.
pub fn described(session: &Session, color: Coloring, name: &str) -> Result<String, Unknown> {
    let plain = name.trim_end_matches("()").trim_end_matches("::").trim_start_matches([':', '.']);
    let command = COMMANDS.iter().find(|command| command.name == plain);
    let of_command = |command: &Command| format!(":{} {}\n\n  {}", command.name, command.takes, command.summary);
    if let Some(command) = command.filter(|_| name.starts_with(':')) {
        return Ok(of_command(command));
    }
    if let Some(page) = session.page(plain) {
        return Ok(drawn(color, &page));
    }
    if let Some(code) = Code::parse(plain) {
        return Ok(format!("{code}: {}\n\n{}", code.title(), explain::explain(code).trim()));
    }
    let functions = manual::functions(plain);
    if !functions.is_empty() {
        let widest = functions.iter().map(|function| function.name.len()).max().unwrap_or(0);
        let lines = functions.iter().map(|function| format!("  {:<widest$}  {}", function.name, function.summary));
        return Ok(format!("import \"{plain}\" as {plain};\n\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    if manual::MODULES.contains(&plain) {
        let mut names: Vec<String> = manual::of_module(plain).map(|name| format!("  {plain}::{name}")).collect();
        names.sort_unstable();
        names.dedup();
        return Ok(format!("`{plain}` needs no import\n\n{}", names.join("\n")));
    }
    if let Some(command) = command {
        return Ok(of_command(command));
    }
    // `?x` of a variable describes its value.
    if let Some(text) = super::state::variable(session, plain) {
        return Ok(text);
    }
    if let Some((_, method)) = plain.rsplit_once('.').filter(|(_, method)| !method.is_empty()) {
        return described(session, color, method);
    }
    let in_modules = manual::in_modules(plain);
    if let [name] = &*in_modules {
        return described(session, color, name);
    }
    if let Some(reason) = why_absent(plain.rsplit("::").next().unwrap_or(plain)) {
        return Err(Unknown { message: format!("there is no `{plain}`"), help: reason.to_string() });
    }
    let help = match nearest(plain, manual::names()) {
        _ if !in_modules.is_empty() => {
            in_modules.iter().map(|name| format!("`:help {name}`")).collect::<Vec<_>>().join(", ")
        }
        Some(found) => format!("did you mean `:help {found}`?"),
        None => "`:help` tells what can be asked for".to_string(),
    };
    Err(Unknown { message: format!("nothing is known of `{plain}`"), help })
}

fn drawn(color: Coloring, page: &Page) -> String {
    let mut text = String::new();
    for call in &page.calls {
        text += &format!("{}\n", color.wrap("1", call));
    }
    if !page.summary.is_empty() {
        text += &format!("\n  {}\n", page.summary.replace('\n', "\n  "));
    }
    if !page.details.is_empty() {
        text += &format!("\n  {}\n", page.details.replace('\n', "\n  "));
    }
    if !page.examples.is_empty() {
        text += "\nexamples:\n";
    }
    for (index, sample) in page.examples.iter().enumerate() {
        let code = sample.code.replace('\n', "\n     ");
        text += &format!("  {}  {code}\n", index + 1);
        if !sample.result.is_empty() {
            text += &format!("     {}\n", color.dim(&sample.result.replace('\n', "\n     ")));
        }
    }
    if !page.examples.is_empty() {
        text += &format!("`:help {} 1` runs the first.\n", page.name);
    }
    text
}

fn example(repl: &mut Repl, name: &str, number: &str) {
    let Some(page) = repl.session.borrow().page(name) else { return tell(repl, name) };
    let chosen = number.parse::<usize>().ok().and_then(|number| page.examples.get(number.checked_sub(1)?));
    let Some(sample) = chosen else {
        let count = page.examples.len();
        let help = if count == 0 { "it has none".to_string() } else { format!("it has {count}, counted from 1") };
        return repl.refuse(&format!("`{name}` has no example {number}"), &help);
    };
    repl.face.say(&repl.color.dim(&sample.code));
    repl.evaluate(&sample.code);
}
