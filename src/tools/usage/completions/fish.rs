//! Completion for fish, a line for each word.

use super::{brief, listed};
use crate::tools::usage::{Flag, Word, table};
use std::fmt::Write;

pub fn text() -> String {
    let mut text =
        String::from("# fish completion of tscript, written by `tscript completions fish`\n\ncomplete -c tscript -f\n");
    let first = "__fish_use_subcommand";
    let _ = writeln!(text, "complete -c tscript -n {first} -k -a '(__fish_complete_suffix .rhai)'");
    for usage in table::COMMANDS {
        let summary = quoted(&brief(usage.summary));
        let _ = writeln!(text, "complete -c tscript -n {first} -a {} -d {summary}", usage.name);
    }
    table::ALONE.iter().chain(table::REPL.all_flags()).for_each(|flag| line(&mut text, first, flag));
    let _ = writeln!(text, "complete -c tscript -n {first} -s e -x -d 'runs a text'");
    for usage in table::COMMANDS {
        let seen = format!("'__fish_seen_subcommand_from {}'", usage.name);
        usage.all_flags().for_each(|flag| line(&mut text, &seen, flag));
        let _ = writeln!(text, "complete -c tscript -n {seen} -s h -l help -d 'what the command takes'");
        if let Some(operand) = usage.operand {
            let _ = writeln!(text, "complete -c tscript -n {seen}{}", action(operand));
        }
    }
    text
}

fn line(text: &mut String, condition: &str, flag: &Flag) {
    let value = match &flag.value {
        None => String::new(),
        Some(value) if value.optional => action(value.word),
        Some(value) if value.word == Word::File => format!(" -r{}", action(value.word)),
        Some(value) => format!(" -x{}", action(value.word)),
    };
    let _ =
        writeln!(text, "complete -c tscript -n {condition} -l {}{value} -d {}", flag.name, quoted(&brief(flag.text)));
}

fn action(word: Word) -> String {
    match word {
        Word::Script | Word::Path => " -k -a '(__fish_complete_suffix .rhai)'".to_string(),
        Word::Folder => " -a '(__fish_complete_directories)'".to_string(),
        Word::File => " -F".to_string(),
        Word::Free => String::new(),
        Word::OneOf(_) | Word::Code | Word::Topic => format!(" -a {}", quoted(&listed(word).join(" "))),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
