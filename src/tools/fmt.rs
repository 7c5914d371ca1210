//! `tscript fmt`: scripts in the one style, in their files or from the standard input to the standard output.

use super::render::{Coloring, render};
use super::run::{builder_of_checks, guarded, named, source, text as told};
use super::test::scripts_in;
use super::{FAILED, complain, print_all, say};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::order;
use crate::files::input::os_reason;
use crate::files::write::atomic;
use crate::script::format::WIDTH;
use std::path::{Path, PathBuf};

mod diff;

/// What is done with a script whose formatted form differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It takes the script's place; of the standard input it is printed.
    #[default]
    Write,
    /// The script is named.
    Check,
    /// The difference is shown.
    Diff,
}

/// Options of the command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub files: Vec<PathBuf>,
    pub mode: Mode,
    pub width: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { files: Vec::new(), mode: Mode::Write, width: WIDTH }
    }
}

pub fn fmt(options: &Options) -> u8 {
    let (files, status) = files_of(&options.files);
    files.iter().map(|file| one(file, options)).fold(status, u8::max)
}

/// The scripts that paths stand for, and the status of those that cannot be read; a folder means all scripts in it.
pub fn files_of(paths: &[PathBuf]) -> (Vec<PathBuf>, u8) {
    let mut files = Vec::new();
    let mut status = 0;
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        if let Err(error) = scripts_in(path, ".rhai", &mut files) {
            complain(&format!("error: cannot read {}: {}\n", path.display(), os_reason(&error)));
            status = FAILED;
        }
        order::by(&mut files[before..], Ord::cmp);
    }
    (files, status)
}

fn one(file: &Path, options: &Options) -> u8 {
    let work = || {
        let mut session = builder_of_checks().build()?;
        let text = source(&session, file)?;
        let formatted = session.format_source(&named(file), &text, options.width)?;
        Ok((text, formatted))
    };
    let (text, formatted) = match guarded(work) {
        Ok(found) => found,
        Err(failure) => {
            complain(&told(&failure));
            return FAILED;
        }
    };
    let is_stdin = file == Path::new("-");
    match options.mode {
        Mode::Write if is_stdin => print(&formatted),
        _ if text == formatted => 0,
        Mode::Write => written(file, &formatted),
        Mode::Check => {
            say(&named(file).display().to_string());
            FAILED
        }
        Mode::Diff => {
            say(&diff::unified(&named(file).display().to_string(), &text, &formatted));
            FAILED
        }
    }
}

fn print(formatted: &str) -> u8 {
    print_all(&[formatted]);
    0
}

fn written(file: &Path, formatted: &str) -> u8 {
    let done: Result<()> = atomic(file, &mut |sink| {
        let failed =
            |error: std::io::Error| Diag::error(code::FILE, format!("cannot be written: {}", os_reason(&error)));
        sink.write_all(formatted.as_bytes()).map_err(failed)
    });
    let Err(mut diag) = done else { return 0 };
    diag.message = format!("{}: {}", file.display(), diag.message);
    complain(&render(&diag, &Default::default(), Coloring::of_stderr()));
    FAILED
}
