//! `tscript check`: mistakes and warnings in scripts, printed for people or, line by line, for other programs.

use super::fmt::files_of;
use super::profile::quoted;
use super::render::{Coloring, Place, labeled, render_error};
use super::run::{Failure, builder_of_checks, guarded, named, source, text};
use super::{FAILED, complain, say};
use crate::base::diag::Severity;
use crate::script::error::Error;
use std::path::{Path, PathBuf};

/// How findings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// With the lines of the script, on the standard error.
    #[default]
    Human,
    /// `file:line:column: error[E0101]: message`.
    Short,
    /// One object a line.
    Json,
}

/// Options of the command line.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub files: Vec<PathBuf>,
    pub format: Format,
    pub deny_warnings: bool,
}

pub fn check(options: &Options) -> u8 {
    let (files, status) = files_of(&options.files);
    files.iter().map(|file| one(file, options)).fold(status, u8::max)
}

fn one(file: &Path, options: &Options) -> u8 {
    let work = || {
        let mut session = builder_of_checks().build()?;
        let text = source(&session, file)?;
        Ok(session.check_source(&named(file), &text))
    };
    let found = match guarded(work) {
        Ok(found) => found,
        // A file that cannot be read.
        Err(Failure::Script(error)) => vec![error],
        Err(failure) => {
            complain(&text(&failure));
            return FAILED;
        }
    };
    for finding in &found {
        match options.format {
            Format::Human => complain(&render_error(finding, Coloring::of_stderr())),
            Format::Short => say(&short(finding, file)),
            Format::Json => say(&object(finding, file)),
        }
    }
    let counts = |finding: &Error| options.deny_warnings || finding.diag().severity == Severity::Error;
    if found.iter().any(counts) { FAILED } else { 0 }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn short(finding: &Error, file: &Path) -> String {
    let diag = finding.diag();
    let (line, column) = finding.location().map_or((1, 1), |at| (at.line, at.column));
    let message = diag.message.replace('\n', " ");
    format!("{}:{line}:{column}: {}[{}]: {message}", file.display(), word(diag.severity), diag.code)
}

/// Lines and columns count from 1, columns in characters; ends are after the last character.
fn object(finding: &Error, file: &Path) -> String {
    let diag = finding.diag();
    let place = |(source, range, text): &Place| {
        let (line, column) = source.line_column(range.start);
        let (end_line, end_column) = source.line_column(range.end);
        let place = format!(
            r#""file":{},"line":{line},"column":{column},"end_line":{end_line},"end_column":{end_column}"#,
            quoted(&source.name)
        );
        (place, quoted(text))
    };
    let places: Vec<(String, String)> = labeled(diag, finding.sources()).iter().map(place).collect();
    let nowhere = || {
        let file = quoted(&file.display().to_string());
        format!(r#""file":{file},"line":1,"column":1,"end_line":1,"end_column":1"#)
    };
    let first = places.first().map_or_else(nowhere, |(place, _)| place.clone());
    let labels: Vec<String> = places.iter().map(|(place, text)| format!(r#"{{{place},"text":{text}}}"#)).collect();
    let notes: Vec<String> = diag.notes.iter().map(|note| quoted(note)).collect();
    format!(
        r#"{{{first},"code":"{}","severity":"{}","message":{},"notes":[{}],"help":{},"labels":[{}]}}"#,
        diag.code,
        word(diag.severity),
        quoted(&diag.message),
        notes.join(","),
        diag.help.as_deref().map_or("null".to_string(), quoted),
        labels.join(",")
    )
}
