//! Completion for zsh, by its function `_arguments`.

use super::{brief, listed};
use crate::tools::usage::{Flag, Usage, Word, table};
use std::fmt::Write;

pub fn text() -> String {
    let mut text = String::from(
        "#compdef tscript\n# zsh completion of tscript, written by `tscript completions zsh`\n\n_tscript() {\n    local -a commands\n    commands=(\n",
    );
    for usage in table::COMMANDS {
        let _ = writeln!(text, "        {}", quoted(&format!("{}:{}", usage.name, brief(usage.summary))));
    }
    text += "    )\n    local first=\n    (( CURRENT > 2 )) && first=$words[2]\n    case $first in\n";
    for usage in table::COMMANDS {
        let _ = writeln!(
            text,
            "        ({}) shift words; (( CURRENT-- ))\n            _arguments -s{} ;;",
            usage.name,
            specs(usage)
        );
    }
    let alone: String = table::ALONE.iter().map(|flag| format!(" {}", spec(flag))).collect();
    let _ = write!(
        text,
        "        (*.rhai) _files ;;\n        (*) _arguments -s{}{alone} '-e[runs a text]:CODE:' '1: :_tscript_first' '*:file:_files' ;;\n    esac\n}}\n\n",
        flags(&table::REPL)
    );
    text + "_tscript_first() {\n    _describe -t commands command commands\n    _files -g '*.rhai'\n}\n\n\
            if [[ $funcstack[1] == _tscript ]]; then _tscript \"$@\"; else compdef _tscript tscript; fi\n"
}

fn specs(usage: &Usage) -> String {
    let operand = match usage.operand {
        None => String::new(),
        Some(word) => format!(" {}", quoted(&format!("*:{}:{}", name(word), action(word)))),
    };
    format!("{} '(-h --help)'{{-h,--help}}'[what the command takes]'{operand}", flags(usage))
}

fn flags(usage: &Usage) -> String {
    usage.all_flags().map(|flag| format!(" {}", spec(flag))).collect()
}

fn spec(flag: &Flag) -> String {
    let text = brief(flag.text).replace('[', "\\[").replace(']', "\\]");
    let many = if flag.name == "simulate-fault" { "*" } else { "" };
    let value = match &flag.value {
        None => String::new(),
        Some(value) if value.optional => format!("=-::{}:{}", value.shown, action(value.word)),
        Some(value) => format!(":{}:{}", value.shown, action(value.word)),
    };
    match value.strip_prefix("=-") {
        Some(value) => quoted(&format!("{many}--{}=-[{text}]{value}", flag.name)),
        None => quoted(&format!("{many}--{}[{text}]{value}", flag.name)),
    }
}

fn name(word: Word) -> &'static str {
    match word {
        Word::Script => "script",
        Word::Path => "script or folder",
        Word::Folder => "folder",
        Word::File => "file",
        Word::OneOf(_) | Word::Free => "word",
        Word::Code => "code",
        Word::Topic => "topic",
    }
}

fn action(word: Word) -> String {
    match word {
        Word::Script | Word::Path => "_files -g \"*.rhai\"".to_string(),
        Word::Folder => "_files -/".to_string(),
        Word::File => "_files".to_string(),
        Word::Free => String::new(),
        Word::OneOf(_) | Word::Code | Word::Topic => format!("({})", listed(word).join(" ").replace(':', "\\:")),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
