//! What is known of one text: its reading, its names, its lines.

use super::protocol::position::{Encoding, Lines};
use super::protocol::uri;
use crate::script::check::reading::Reading;
use crate::script::edit::around::token_at;
use crate::script::edit::devices::devices;
use crate::script::edit::guess::{Guess, Guesses};
use crate::script::edit::names::Names;
use crate::script::library::home::home;
use crate::script::source::lex::Kind;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Open texts by their paths.
pub type OpenTexts = BTreeMap<PathBuf, String>;

pub struct View {
    pub uri: String,
    pub path: PathBuf,
    pub reading: Reading,
    pub names: Names,
    pub lines: Lines,
    /// Texts that are open, which go before the files.
    pub open: Rc<OpenTexts>,
    devices: OnceCell<HashMap<u32, String>>,
    guesses: OnceCell<Guesses>,
    /// The semantic tokens of the whole text, once somebody has asked for them.
    pub semantic: OnceCell<Vec<u32>>,
    home: OnceCell<PathBuf>,
}

impl View {
    pub fn new(uri: &str, path: PathBuf, reading: Reading, encoding: Encoding, open: Rc<OpenTexts>) -> View {
        let names = Names::of(&reading);
        let lines = Lines::new(&reading.text, encoding);
        View {
            uri: uri.to_string(),
            path,
            reading,
            names,
            lines,
            open,
            devices: OnceCell::new(),
            guesses: OnceCell::new(),
            semantic: OnceCell::new(),
            home: OnceCell::new(),
        }
    }

    /// Another file as it is open, or on the disk; without the values on the way.
    pub fn other(&self, path: &Path) -> Option<View> {
        let text = match self.open.get(path) {
            Some(text) => text.clone(),
            None => text_of(path)?,
        };
        let reading = Reading::of_text(&text);
        Some(View::new(&uri::of(path), path.to_path_buf(), reading, self.lines.encoding, self.open.clone()))
    }

    pub fn text(&self) -> &str {
        &self.reading.text
    }

    pub fn word(&self, token: usize) -> &str {
        self.reading.word(token)
    }

    pub fn kind(&self, token: usize) -> Option<Kind> {
        self.reading.tokens.get(token).map(|token| token.kind)
    }

    /// All bytes.
    pub fn range_of_all(&self) -> Range<usize> {
        0..self.text().len()
    }

    /// The word before a token, if there is one.
    pub fn before(&self, token: usize) -> &str {
        token.checked_sub(1).map_or("", |at| self.word(at))
    }

    /// The bytes of a token; of a string, those of a name in quotes.
    pub fn name_bytes(&self, token: usize) -> Range<usize> {
        let range = self.bytes(token, token);
        let quoted = self.text()[range.clone()].starts_with('"') && range.len() >= 2;
        if quoted { range.start + 1..range.end - 1 } else { range }
    }

    /// The bytes from a token to another.
    pub fn bytes(&self, first: usize, last: usize) -> Range<usize> {
        let end = self.text().len();
        let start = self.reading.tokens.get(first).map_or(end, |token| token.start as usize);
        start..self.reading.tokens.get(last).map_or(end, |token| token.end as usize).max(start)
    }

    pub fn offset(&self, params: &Value) -> usize {
        self.lines.offset(self.text(), &params["position"])
    }

    /// The token at the position of a request.
    pub fn token(&self, params: &Value) -> Option<usize> {
        token_at(&self.reading, self.offset(params))
    }

    pub fn range(&self, bytes: Range<usize>) -> Value {
        self.lines.range(self.text(), bytes)
    }

    pub fn name_range(&self, token: usize) -> Value {
        self.range(self.name_bytes(token))
    }

    pub fn location(&self, bytes: Range<usize>) -> Value {
        json!({"uri": self.uri, "range": self.range(bytes)})
    }

    /// The folder at which the names of imports begin.
    pub fn home(&self) -> &Path {
        self.home.get_or_init(|| home(&self.path, self.text(), &|path| self.open.get(path).cloned()))
    }

    /// What stands before the dot of a member, as far as that can be guessed.
    pub fn receiver(&self, member: usize) -> Option<&Guess> {
        self.guesses.get_or_init(|| Guesses::of(&self.reading, &self.names)).receiver(member as u32)
    }

    /// By which name the manual calls values of the type that stands before the dot of a member.
    pub fn owner(&self, member: usize) -> Option<&'static str> {
        self.receiver(member).and_then(Guess::owner)
    }

    /// The device of a value, if the text names it.
    pub fn device(&self, token: usize) -> Option<&str> {
        let devices = self.devices.get_or_init(|| devices(&self.reading, &self.names));
        devices.get(&(token as u32)).map(String::as_str)
    }
}

/// The text of a file. Not: of a pipe, which would be waited for.
pub fn text_of(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    std::fs::read_to_string(path).ok()
}
