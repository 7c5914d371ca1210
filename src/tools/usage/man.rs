//! `tscript man`: the manual page in roff, made from the table.

use super::help::shown;
use super::table::{ALONE, CALLS, COMMANDS, ENVIRONMENT, EXIT_STATUS, REPL, TITLE};
use super::{Flag, Usage};
use std::fmt::Write;

pub fn text() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH TSCRIPT 1 \"\" \"tscript {version}\" \"User Commands\"\n.SH NAME\n");
    let (name, what) = TITLE.split_once(": ").unwrap_or((TITLE, ""));
    let _ = writeln!(page, "{name} \\- {}", escaped(what));
    page += ".SH SYNOPSIS\n";
    for (call, _) in CALLS {
        let _ = writeln!(page, ".B tscript\n{}\n.br", escaped(call.trim_start_matches("tscript").trim_start()));
    }
    page += ".SH DESCRIPTION\n";
    page += &paragraph(
        "Runs scripts in Rhai with tensors, devices and streams; the names are PyTorch's. Without a script it is a REPL, \
         whose `:help` shows more. `tscript FILE ARGUMENTS` runs a script as `tscript run FILE -- ARGUMENTS` does.",
    );
    page += ".SH OPTIONS\n";
    ALONE.iter().for_each(|flag| page += &option(flag));
    page += ".TP\n\\fB\\-e\\fR CODE\nruns a text\n";
    REPL.all_flags().for_each(|flag| page += &option(flag));
    page += ".SH COMMANDS\n";
    COMMANDS.iter().for_each(|usage| page += &command(usage));
    page += ".SH EXIT STATUS\n";
    page += &paragraph(EXIT_STATUS);
    page += ".SH ENVIRONMENT\n";
    for variables in ENVIRONMENT {
        let _ = writeln!(page, ".SS {}", escaped(variables.title));
        for (name, what) in variables.entries {
            let _ = write!(page, ".TP\n{}\n{}\n", bold(name), escaped(what));
        }
    }
    page += ".SH FILES\n";
    for (file, what) in FILES {
        let _ = write!(page, ".TP\n{}\n{}\n", bold(file), escaped(what));
    }
    page
}

const FILES: &[(&str, &str)] = &[
    ("~/.cache/tscript/kernels", "kernels that were compiled for GPUs; it may be deleted at any time"),
    ("~/.cache/tscript/std", "texts of the library that editors show; it may be deleted at any time"),
    ("~/.local/share/tscript/history", "the REPL's history"),
];

fn command(usage: &Usage) -> String {
    let call = format!("tscript {} {}", usage.name, usage.words);
    let mut text = format!(".SS {}\n", escaped(call.trim_end()));
    if usage.about.is_empty() {
        text += &paragraph(&format!("{}.", capitalized(usage.summary)));
    }
    usage.about.iter().for_each(|about| text += &paragraph(about));
    if usage.lists_flags {
        usage.all_flags().for_each(|flag| text += &option(flag));
    }
    usage.notes.iter().for_each(|note| text += &paragraph(note));
    text
}

fn option(flag: &Flag) -> String {
    format!(".TP\n{}\n{}\n", bold(&shown(flag)), escaped(flag.text))
}

fn paragraph(text: &str) -> String {
    format!(".PP\n{}\n", escaped(text))
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Text of a line: what roff takes for requests and hyphens is text, code is bold.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = part.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        match index % 2 {
            0 => out += &part,
            _ => {
                let _ = write!(out, "\\fB{part}\\fR");
            }
        }
    }
    if out.starts_with('.') { format!("\\&{out}") } else { out }
}
