//! Input from other prompts: Python's, IPython's, psql's. Each has an equivalent here.
//!
//! Works on text only: the caller checks whether a variable has such a name.

/// The meaning of such an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Habit<'a> {
    Leave,
    /// A command of this REPL does it: the text after its colon.
    Command(String),
    /// There is no direct equivalent: what to do instead.
    Tell(&'a str, &'static str),
}

/// The habit behind an entry, if it is one.
pub fn habit(text: &str) -> Option<Habit<'_>> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let help = |name: &str| Some(Habit::Command(format!("help {}", name.trim()).trim_end().to_string()));
    match text {
        "exit" | "quit" | "quit()" | "\\q" | "bye" | "logout" => return Some(Habit::Leave),
        "help" | "help()" | "?" | "\\?" | "\\h" => return help(""),
        "who" | "whos" | "vars()" | "dir()" | "locals()" | "globals()" => return Some(Habit::Command("vars".into())),
        "clear" | "cls" | "clear()" => {
            return Some(Habit::Tell(text, "Ctrl-L clears the screen; `:reset` forgets the variables"));
        }
        "ls" | "pwd" | "cd" | "ll" => return Some(Habit::Tell(text, "commands of the shell are not run from here")),
        "license" | "credits" | "copyright" => return Some(Habit::Tell(text, "`:help` lists what there is")),
        _ => {}
    }
    if text.starts_with("cd ") || text.starts_with("ls ") {
        return Some(Habit::Tell(text, "commands of the shell are not run from here"));
    }
    if let Some(magic) = text.strip_prefix('%') {
        return Some(of_ipython(text, magic.trim_start_matches('%')));
    }
    if text.starts_with('!') && text[1..].starts_with(char::is_alphabetic) && text.contains([' ', '/', '-'])
        || text == "!ls"
    {
        return Some(Habit::Tell(text, "commands of the shell are not run from here"));
    }
    let asked = text.strip_prefix('?').or_else(|| text.strip_suffix('?')).map(|name| name.trim_matches('?'));
    if let Some(name) = asked.filter(|name| is_path(name.trim())) {
        return help(name);
    }
    // `help nn::linear`, as at a shell.
    if let Some(name) = text.strip_prefix("help ").map(str::trim).filter(|name| is_path(name)) {
        return help(name);
    }
    let call = |function: &str| {
        let inside = text.strip_prefix(function)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(inside.trim_matches(['"', '\'']).trim())
    };
    if let Some(name) = call("help").filter(|name| is_path(name)) {
        return help(name);
    }
    if let Some(name) = call("dir").filter(|name| is_path(name)) {
        return Some(Habit::Command(format!("type {name}")));
    }
    None
}

/// `%timeit x` and others.
fn of_ipython<'a>(text: &'a str, magic: &str) -> Habit<'a> {
    let (word, rest) = magic.split_once(char::is_whitespace).unwrap_or((magic, ""));
    let with = |command: &str| Habit::Command(format!("{command} {}", rest.trim()).trim_end().to_string());
    match word {
        "time" | "timeit" => with("time"),
        "prun" | "lprun" | "profile" => with("profile"),
        "who" | "whos" | "who_ls" => Habit::Command("vars".into()),
        "reset" => Habit::Command("reset".into()),
        "run" | "load" => with("load"),
        "save" => with("save"),
        "memit" | "mprun" => Habit::Command("mem".into()),
        "history" | "hist" | "recall" => {
            Habit::Tell(text, "Ctrl-R searches what was entered before; the arrows go through it")
        }
        "paste" | "cpaste" => Habit::Tell(text, "paste as it is: lines that belong together are taken together"),
        "debug" | "pdb" => {
            Habit::Tell(text, "there is no debugger; `:plan` and `:profile` show what an expression does")
        }
        _ => Habit::Tell(text, "`:help` lists the commands, which begin with a colon"),
    }
}

fn is_path(name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.');
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(inside)
}

/// A text without the prompts that were copied with it: `>>> x`, `In [1]: x`, `cpu> x`.
pub fn without_prompts(text: &str) -> String {
    if prompt(text.trim_start()).is_none() {
        return text.to_string();
    }
    let line = |line: &str| {
        let start = line.trim_start();
        let rest = prompt(start).or_else(|| start.strip_prefix("...:")).or_else(|| {
            let dots = start.strip_prefix("...")?;
            (dots.is_empty() || dots.starts_with(' ')).then_some(dots)
        });
        rest.map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest)).to_string()
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What follows a prompt.
fn prompt(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix(">>>") {
        return (rest.is_empty() || rest.starts_with(' ')).then_some(rest);
    }
    if let Some(rest) = line.strip_prefix("In [") {
        let (number, rest) = rest.split_once("]:")?;
        return number.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest);
    }
    let (device, rest) = line.split_once("> ")?;
    let device = device.split_once(" s").map_or(device, |(device, _)| device);
    crate::base::device_id::DeviceSpec::parse(device).map(|_| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_have_counterparts() {
        let command = |text: &str| match habit(text) {
            Some(Habit::Command(command)) => command,
            other => format!("{other:?}"),
        };
        for (text, expected) in [
            ("help", "help"),
            ("help()", "help"),
            ("help nn::linear", "help nn::linear"),
            ("help(softmax)", "help softmax"),
            ("?softmax", "help softmax"),
            ("softmax?", "help softmax"),
            ("x.sum??", "help x.sum"),
            ("%time x @ x", "time x @ x"),
            ("%timeit -", "time -"),
            ("%whos", "vars"),
            ("dir(x)", "type x"),
            ("who", "vars"),
        ] {
            assert_eq!(command(text), expected, "{text}");
        }
        for text in ["exit", "quit", "quit()", "\\q", "exit;"] {
            assert_eq!(habit(text), Some(Habit::Leave), "{text}");
        }
        for text in ["!ls -l", "!ls", "ls", "ls -l", "cd ..", "clear", "%history", "%nope"] {
            assert!(matches!(habit(text), Some(Habit::Tell(..))), "{text}");
        }
        for text in ["x", "exit(3)", "!flag", "let help = 1", "a ?? b", "x?.y", "7 % 2", "dir"] {
            assert_eq!(habit(text), None, "{text}");
        }
    }

    #[test]
    fn prompts_are_taken_off() {
        for (text, expected) in [
            (">>> 1 + 1", "1 + 1"),
            ("In [12]: x", "x"),
            ("cpu> let a = 1", "let a = 1"),
            ("cuda:1 s3> a", "a"),
            (">>> for i in 0..2 {\n...     print(i);\n... }", "for i in 0..2 {\n    print(i);\n}"),
            ("a > b", "a > b"),
            ("1 + 1", "1 + 1"),
        ] {
            assert_eq!(without_prompts(text), expected);
        }
    }
}
