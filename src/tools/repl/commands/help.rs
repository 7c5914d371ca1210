//! `:help`: the commands, or the help page of a name; an example of it runs as an entry.

use super::super::{Go, Repl};
use super::COMMANDS;
use crate::base::code::Code;
use crate::base::explain;
use crate::base::suggest::nearest;
use crate::script::error::why_absent;
use crate::script::manual::{self, Page};

pub fn help(repl: &mut Repl, text: &str) -> Go {
    let mut words = text.split_whitespace();
    let (name, number) = (words.next(), words.next());
    match (name, number) {
        (None, _) => overview(repl),
        (Some(name), None) => about(repl, name),
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

fn about(repl: &mut Repl, name: &str) {
    let plain = name.trim_end_matches("()").trim_end_matches("::").trim_start_matches([':', '.']);
    let page = repl.session.borrow().page(plain);
    let in_modules = if page.is_some() { Vec::new() } else { manual::in_modules(plain) };
    if let Some(command) = COMMANDS.iter().find(|command| name.starts_with(':') && command.name == plain) {
        repl.face.say(&format!(":{} {}\n\n  {}", command.name, command.takes, command.summary));
    } else if let Some(page) = page {
        repl.face.say(&drawn(repl, &page));
    } else if let Some(code) = Code::parse(plain) {
        repl.face.say(&format!("{code}: {}\n\n{}", code.title(), explain::explain(code).trim()));
    } else if !manual::functions(plain).is_empty() {
        let functions = manual::functions(plain);
        let widest = functions.iter().map(|function| function.name.len()).max().unwrap_or(0);
        let lines = functions.iter().map(|function| format!("  {:<widest$}  {}", function.name, function.summary));
        repl.face.say(&format!("import \"{plain}\" as {plain};\n\n{}", lines.collect::<Vec<_>>().join("\n")));
    } else if let Some(command) = COMMANDS.iter().find(|command| command.name == plain) {
        repl.face.say(&format!(":{} {}\n\n  {}", command.name, command.takes, command.summary));
    } else if repl.session.borrow().variables(0).iter().any(|variable| variable.name == plain) {
        // `?x` of a variable describes its value.
        super::state::kind(repl, plain);
    } else if let Some((_, method)) = plain.rsplit_once('.').filter(|(_, method)| !method.is_empty()) {
        about(repl, method);
    } else if let [name] = &*in_modules {
        about(repl, name);
    } else if let Some(reason) = why_absent(plain.rsplit("::").next().unwrap_or(plain)) {
        repl.refuse(&format!("there is no `{plain}`"), reason);
    } else {
        let help = match nearest(plain, manual::names()) {
            _ if !in_modules.is_empty() => {
                in_modules.iter().map(|name| format!("`:help {name}`")).collect::<Vec<_>>().join(", ")
            }
            Some(found) => format!("did you mean `:help {found}`?"),
            None => "`:help` tells what can be asked for".to_string(),
        };
        repl.refuse(&format!("nothing is known of `{plain}`"), &help);
    }
}

fn drawn(repl: &Repl, page: &Page) -> String {
    let mut text = String::new();
    for call in &page.calls {
        text += &format!("{}\n", repl.color.wrap("1", call));
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
            text += &format!("     {}\n", repl.color.dim(&sample.result.replace('\n', "\n     ")));
        }
    }
    if !page.examples.is_empty() {
        text += &format!("`:help {} 1` runs the first.\n", page.name);
    }
    text
}

fn example(repl: &mut Repl, name: &str, number: &str) {
    let Some(page) = repl.session.borrow().page(name) else { return about(repl, name) };
    let chosen = number.parse::<usize>().ok().and_then(|number| page.examples.get(number.checked_sub(1)?));
    let Some(sample) = chosen else {
        let count = page.examples.len();
        let help = if count == 0 { "it has none".to_string() } else { format!("it has {count}, counted from 1") };
        return repl.refuse(&format!("`{name}` has no example {number}"), &help);
    };
    repl.face.say(&repl.color.dim(&sample.code));
    repl.evaluate(&sample.code);
}
