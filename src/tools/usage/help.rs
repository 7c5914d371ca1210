//! The texts of `--help`, laid out from the table.

use super::table::{CALLS, COMMANDS, ENVIRONMENT, EXIT_STATUS, TITLE};
use super::{Flag, Usage, of};
use std::fmt::Write;

/// Columns of a text.
const WIDTH: usize = 118;
/// Bound: columns of what stands left of the explanations; a longer one stands on a line of its own.
const LEFT: usize = 28;

/// The text for a command or another topic, or for the program.
pub fn text(topic: Option<&str>) -> String {
    match topic {
        Some("environment") => environment(),
        Some(name) => of(name).filter(|usage| usage.name != "help").map_or_else(program, command),
        None => program(),
    }
}

fn program() -> String {
    let calls: Vec<(String, &str)> = CALLS.iter().map(|(call, what)| (call.to_string(), *what)).collect();
    let calls = list(&calls, 7, usize::MAX);
    let left = |usage: &Usage| format!("{} {}", usage.name, usage.short).trim_end().to_string();
    let commands: Vec<(String, &str)> = COMMANDS.iter().map(|usage| (left(usage), usage.summary)).collect();
    let calls = calls.strip_prefix("       ").unwrap_or(&calls);
    let commands = list(&commands, 2, LEFT);
    let status = filled(&format!("exit status: {EXIT_STATUS}"), 0);
    format!("{TITLE}\n\nusage: {calls}\n{commands}\n  --help, --version, -V\n\n{status}")
}

fn command(usage: &Usage) -> String {
    let mut text = format!("usage: {}\n", format!("tscript {} {}", usage.name, usage.words).trim_end());
    let mut paragraph = |lines: String| {
        let _ = write!(text, "\n{lines}");
    };
    usage.about.iter().for_each(|about| paragraph(filled(about, 0)));
    if usage.lists_flags {
        let groups = usage.flags.iter().map(|group| group.iter().map(|flag| (shown(flag), flag.text)).collect());
        groups.for_each(|group: Vec<(String, &str)>| paragraph(list(&group, 2, LEFT)));
    }
    usage.notes.iter().for_each(|note| paragraph(filled(note, 0)));
    text
}

fn environment() -> String {
    let one = |variables: &super::Variables| {
        let entries: Vec<(String, &str)> =
            variables.entries.iter().map(|(name, what)| (name.to_string(), *what)).collect();
        format!("{}:\n\n{}", variables.title, list(&entries, 2, LEFT))
    };
    ENVIRONMENT.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// A flag with its value.
pub fn shown(flag: &Flag) -> String {
    match &flag.value {
        None => format!("--{}", flag.name),
        Some(value) if value.optional => format!("--{} [{}]", flag.name, value.shown),
        Some(value) => format!("--{} {}", flag.name, value.shown),
    }
}

/// Two columns, the left one indented and as wide as its widest entry of at most `most` columns.
fn list(entries: &[(String, &str)], indent: usize, most: usize) -> String {
    let widths = entries.iter().map(|(left, _)| left.chars().count());
    let width = widths.filter(|&width| width <= most).max().unwrap_or(0);
    let mut text = String::new();
    for (left, right) in entries {
        let explained = filled(right, indent + width + 3);
        let explained = explained.trim();
        let _ = match left.chars().count() > width {
            true => writeln!(text, "{:indent$}{left}\n{:indent$}{:width$}   {explained}", "", "", ""),
            false => writeln!(text, "{}", format!("{:indent$}{left:width$}   {explained}", "").trim_end()),
        };
    }
    text
}

/// A paragraph broken into lines, all of them indented.
fn filled(paragraph: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            let _ = write!(text, "{:indent$}", "");
            column = indent;
        } else {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::environment;
    use std::path::Path;

    /// Text of the program's sources, below a folder.
    fn sources(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *all += &std::fs::read_to_string(&path).expect("a source");
            }
        }
    }

    /// Every environment variable that is read is documented. Those for tests, those of the build, and those that terminals set, are not
    /// settings.
    #[test]
    fn every_variable_that_is_read_is_documented() {
        let mut all = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        let words = all.split('"').skip(1).filter(|word| word.len() > 5 && !word.contains("_ERROR"));
        let variable = |word: &&str| {
            let begins = ["TSCRIPT_", "CUDA_", "XDG_"].iter().any(|prefix| word.starts_with(prefix));
            begins && word.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !word.ends_with('_')
        };
        let documented = environment();
        let missing: Vec<&str> = words
            .filter(variable)
            .filter(|word| {
                !word.starts_with("TSCRIPT_TEST_") && !word.starts_with("TSCRIPT_BUILD_") && !documented.contains(word)
            })
            .collect();
        assert!(missing.is_empty(), "`tscript help environment` does not tell {missing:?}");
    }
}
