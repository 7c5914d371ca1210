//! `args`, `arg("lr", 1e-3)`, `flag("verbose")`: the command line after `--`.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::base::suggest::nearest;
use crate::script::bind::properties::number;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::source::lex::{lex, script_start};
use crate::script::values::raise::Native;
use rhai::{Array, Dynamic};
use std::sync::Arc;

/// Parses a word as the type of the default.
fn parse(name: &str, word: &str, default: &Dynamic) -> Result<Dynamic> {
    let wrong =
        |what: &str| Diag::error(code::VALUE, format!("the script argument `--{name}` expects {what}, not \"{word}\""));
    if default.is_int() {
        return word.parse().map(|i| number(Scalar::Int(i))).map_err(|_| wrong("an integer"));
    }
    if default.is_float() {
        return word.parse().map(|x| number(Scalar::Float(x))).map_err(|_| wrong("a number"));
    }
    if default.is_bool() {
        return word.parse().map(Dynamic::from_bool).map_err(|_| wrong("true or false"));
    }
    Ok(word.to_string().into())
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    crate::script::bind::rows::raw(module, "arg", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let name = values[0].clone().into_string().unwrap_or_default();
        let default = values[1].clone();
        let mut arguments = shared.arguments.lock();
        arguments.note(&name, Some(default.to_string()));
        match arguments.value(&name) {
            Some(word) => parse(&name, &word, &default).map_err(|diag| shared.raise(&context, diag, "asked for here")),
            None => Ok(default),
        }
    });
    let shared = host.clone();
    crate::script::bind::rows::raw(module, "flag", 1, move |_, values| -> Native {
        let name = values[0].clone().into_string().unwrap_or_default();
        let mut arguments = shared.arguments.lock();
        arguments.note(&name, None);
        let long = format!("--{name}");
        Ok(Dynamic::from_bool(arguments.words.contains(&long)))
    });
}

/// A word of the command line that the script does not use.
#[derive(PartialEq, Debug)]
pub struct UnusedWord {
    pub message: String,
    pub help: String,
}

/// The arguments that a text reads, as far as the text shows.
#[derive(Default)]
struct ArgumentsRead<'a> {
    /// Names that take a value.
    values: Vec<&'a str>,
    flags: Vec<&'a str>,
}

/// Collects `arg("name", ..)` and `flag("name")` of a script's texts. None where the script may read arguments that are
/// not visible here: it uses `args` itself, computes names or modules, or reads no argument by name.
fn arguments_read(texts: &[String]) -> Option<ArgumentsRead<'_>> {
    let mut found = ArgumentsRead::default();
    texts.iter().try_for_each(|text| read_in(text, &mut found))?;
    (!found.values.is_empty() || !found.flags.is_empty()).then_some(found)
}

fn read_in<'a>(text: &'a str, found: &mut ArgumentsRead<'a>) -> Option<()> {
    let tokens = lex(text, script_start(text)).ok()?;
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.range()]);
    let string = |at: usize| {
        let plain = word(at).strip_prefix('"')?.strip_suffix('"')?;
        (!plain.contains('\\')).then_some(plain)
    };
    for at in 0..tokens.len() {
        let is_member = at > 0 && matches!(word(at - 1), "." | "?.");
        match word(at) {
            "args" if !is_member => return None,
            "eval" if word(at + 1) == "(" => return None,
            "import" if string(at + 1).is_none() => return None,
            "\"arg\"" | "\"flag\"" => return None,
            "arg" | "flag" if is_member => return None,
            "arg" if word(at + 1) == "(" => found.values.push(string(at + 2).filter(|_| word(at + 3) == ",")?),
            "flag" if word(at + 1) == "(" => found.flags.push(string(at + 2).filter(|_| word(at + 3) == ")")?),
            _ => {}
        }
    }
    Some(())
}

/// The first word after `--` that the script does not read, or that lacks its value. Otherwise a misspelt `--lr`
/// would be ignored. `texts` are those of the script and of the files that it imports.
pub fn unused_word(texts: &[String], words: &[String]) -> Option<UnusedWord> {
    let read = if words.is_empty() { return None } else { arguments_read(texts)? };
    let wrong = |message: String, help: &str| Some(UnusedWord { message, help: help.to_string() });
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            return wrong(format!("`{word}` belongs to no argument of the script"), HELP);
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        match (read.values.contains(&name), read.flags.contains(&name), value) {
            (true, _, Some(_)) | (false, true, None) => {}
            (true, is_flag, None) => {
                let next = words.next_if(|next| !next.starts_with("--"));
                if next.is_none() && !is_flag {
                    return wrong(format!("`--{name}` expects a value after it"), HELP);
                }
            }
            (false, true, Some(_)) => return wrong(format!("`--{name}` takes no value"), "leave out what follows `=`"),
            (false, false, _) => {
                let near = nearest(name, read.values.iter().chain(&read.flags).copied());
                let help = near.map_or(HELP.to_string(), |near| format!("did you mean `--{near}`?"));
                return wrong(format!("the script asks for no argument `--{name}`"), &help);
            }
        }
    }
    None
}

const HELP: &str = "`tscript run FILE -- --help` lists what a script asks for";

/// The command line as an array, for the variable `args`.
pub fn words(host: &Host) -> Array {
    host.arguments.lock().words.iter().map(|word| word.clone().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "import \"nn\" as nn; let lr = arg(\"lr\", 0.1); if flag(\"disable-cuda\") { print(\"args\"); }";

    fn report(text: &str, line: &str) -> Option<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        unused_word(&[text.to_string()], &words).map(|wrong| format!("{} | {}", wrong.message, wrong.help))
    }

    #[test]
    fn unused_words_are_reported() {
        for line in ["", "--lr 1", "--lr=1 --disable-cuda", "--lr -0.5", "--lr 1 --lr 2", "--disable-cuda --lr 3"] {
            assert_eq!(report(TEXT, line), None, "{line}");
        }
        for (line, expected) in [
            ("--lrr 1", "the script asks for no argument `--lrr` | did you mean `--lr`?"),
            ("--disable_cuda", "the script asks for no argument `--disable_cuda` | did you mean `--disable-cuda`?"),
            ("--lr", "`--lr` expects a value after it | `tscript run FILE"),
            ("--lr --disable-cuda", "`--lr` expects a value after it | `tscript run FILE"),
            ("--disable-cuda=1", "`--disable-cuda` takes no value | leave out"),
            ("--lr 1 more", "`more` belongs to no argument of the script | `tscript run FILE"),
            ("-x", "`-x` belongs to no argument of the script | `tscript run FILE"),
        ] {
            let found = report(TEXT, line).unwrap_or_default();
            assert!(found.starts_with(expected), "{line}: {found}");
        }
    }

    #[test]
    fn a_script_with_hidden_arguments_is_not_judged() {
        for text in [
            "print(1);",
            "arg(\"a\", 1); print(args);",
            "arg(\"a\", 1); let n = \"b\"; arg(n, 1);",
            "arg(\"a\", 1); import `settings` as s;",
            "arg(\"a\", 1); \"b\".arg(2);",
            "arg(\"a\", 1); call(Fn(\"arg\"), 1);",
            "arg(\"a\", 1); eval(\"1\");",
        ] {
            assert_eq!(report(text, "--other 1"), None, "{text}");
        }
    }
}
