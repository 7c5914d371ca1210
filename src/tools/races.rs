//! Races that a run has found, written down for editors: one JSON file for each source file in the user's cache folder,
//! `races/HASH.json`. A run that looks for races to its end and finds none
//! removes those of its files.

use super::cache;
use super::render::labeled;
use crate::base::code;
use crate::base::diag::Diag;
use crate::files::write;
use crate::script::error::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bound: races of one run that are written down.
const RACES: usize = 100;

/// A race, as an editor can mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The line of the access that came later, from 1 on, and its text; the file may have changed since.
    pub line: usize,
    pub text: String,
    /// Where the access begins in it, in bytes.
    pub column: usize,
    /// The missing call, such as `s.wait_stream(default_stream());`.
    pub call: String,
    pub message: String,
}

/// The races of a run, by file, while it runs.
#[derive(Clone, Default)]
pub struct Found(Arc<Mutex<BTreeMap<PathBuf, Vec<Race>>>>);

impl Found {
    /// Notes the races of a warning, or of the error that ends a run.
    pub fn note(&self, error: &Error) {
        for diag in std::iter::once(error.diag()).chain(error.extra()).filter(|diag| diag.code == code::RACE) {
            let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((file, race)) = read(error, diag)
                && found.values().map(Vec::len).sum::<usize>() < RACES
            {
                found.entry(file).or_default().push(race);
            }
        }
    }

    /// Writes them down; those of `files` are the present ones then. What cannot be written does not matter to a run.
    pub fn write(&self, files: &[PathBuf]) {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files.iter().filter_map(|file| file.canonicalize().ok()).filter(|file| !found.contains_key(file)) {
            if let Some(noted) = place(&file) {
                let _ = std::fs::remove_file(noted);
            }
        }
        for (file, races) in found.iter() {
            let Some(noted) = place(file) else { continue };
            let text = json!({"file": file, "races": races.iter().map(to_json).collect::<Vec<Value>>()}).to_string();
            let is_there = noted.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok());
            if is_there {
                let fill = &mut |sink: &mut dyn write::Sink| {
                    sink.write_all(text.as_bytes()).map_err(|error| write::unwritable(&error))
                };
                let _ = write::atomic(&noted, fill);
            }
        }
    }
}

/// The races that the last run has written down of a file.
pub fn of_file(file: &Path) -> Vec<Race> {
    let Some(noted) = file.canonicalize().ok().and_then(|file| place(&file)) else { return Vec::new() };
    let text = std::fs::read_to_string(noted).unwrap_or_default();
    let noted: Value = serde_json::from_str(&text).unwrap_or_default();
    noted["races"].as_array().into_iter().flatten().filter_map(from_json).collect()
}

/// Where the races of a file are written down: its name is a hash of the file's path, the same in every build (FNV-1a).
fn place(file: &Path) -> Option<PathBuf> {
    let bytes = file.as_os_str().as_encoded_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3));
    Some(cache::folder()?.join("races").join(format!("{hash:016x}.json")))
}

/// A race with its file. None where the advice names no stream of the script.
fn read(error: &Error, diag: &Diag) -> Option<(PathBuf, Race)> {
    let (_, rest) = diag.help.as_deref()?.split_once("write `")?;
    let call = rest.strip_suffix('`')?.to_string();
    let (source, range, _) = labeled(diag, error.sources()).into_iter().next()?;
    let (line, _) = source.line_column(range.start);
    let begins = source.text[..range.start].rfind('\n').map_or(0, |end| end + 1);
    let text = source.text[begins..].lines().next().unwrap_or("").to_string();
    let file = Path::new(&*source.name).canonicalize().ok()?;
    let column = range.start - begins;
    Some((file, Race { line, text, column, call, message: diag.message.clone() }))
}

fn to_json(race: &Race) -> Value {
    json!({"line": race.line, "column": race.column, "text": race.text, "call": race.call, "message": race.message})
}

fn from_json(value: &Value) -> Option<Race> {
    let text = |key: &str| value[key].as_str().map(str::to_string);
    let number = |key: &str| usize::try_from(value[key].as_u64()?).ok();
    Some(Race {
        line: number("line")?,
        column: number("column")?,
        text: text("text")?,
        call: text("call")?,
        message: text("message")?,
    })
}
