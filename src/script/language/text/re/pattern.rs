//! A compiled pattern, and how it is searched: as Python's `re` does, where an empty match may follow another match.
//! Source: "Regular expression operations" of Python's library reference.

use super::translate::{self, Translated};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::host::Host;
use fancy_regex::{Captures, CompileError, Error, Regex, RegexBuilder, RegexInput, RuntimeError};
use rhai::ImmutableString;
use std::ops::Range;
use std::sync::OnceLock;

/// Bound: bytes of a compiled automaton; larger ones come from counts of counts, such as `(a{1000}){1000}`.
const PROGRAM_BYTES: usize = 10 << 20;
/// Bound: steps back of one search; a tenth of a second.
const STEPS_BACK: usize = 1_000_000;

/// A pattern of a script.
pub struct Pattern {
    pub source: ImmutableString,
    translated: Translated,
    /// By `Kind`, for plain texts and all others; compiled when they are first needed.
    compiled: [[OnceLock<Regex>; 2]; 3],
    /// The names of groups, by number; the whole match is the first.
    pub names: Vec<Option<String>>,
}

#[derive(Clone, Copy)]
enum Kind {
    Search,
    /// Up to the end of the text.
    Whole,
    /// Not empty.
    Something,
}

/// Where a search begins and what it may give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Search,
    /// `re::match`: at the first place.
    AtStart,
    /// `re::fullmatch`.
    Whole,
}

/// The groups of a match: where they start and end, in bytes.
pub type Groups = Vec<Option<Range<usize>>>;

impl Pattern {
    pub fn new(source: &str, flags: i64) -> Result<Pattern> {
        let translated = translate::translate(source, flags).map_err(|why| no_pattern(source, &why))?;
        let mut pattern =
            Pattern { source: source.into(), translated, compiled: Default::default(), names: Vec::new() };
        let first = pattern.regex(Kind::Search, true)?;
        let names: Vec<Option<String>> = first.capture_names().map(|name| name.map(str::to_string)).collect();
        if let Some(twice) = (1..names.len()).find(|&at| names[at].is_some() && names[..at].contains(&names[at])) {
            let name = names[twice].as_deref().unwrap_or_default();
            return Err(no_pattern(source, &format!("two groups have the name `{name}`")));
        }
        pattern.names = names;
        Ok(pattern)
    }

    pub fn flags(&self) -> i64 {
        self.translated.flags
    }

    /// The number of a group with a name.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.as_deref() == Some(name))
    }

    fn regex(&self, kind: Kind, plain: bool) -> Result<&Regex> {
        let slot = &self.compiled[kind as usize][plain as usize];
        if let Some(regex) = slot.get() {
            return Ok(regex);
        }
        let text = if plain { &self.translated.plain } else { &self.translated.exact };
        let text = match kind {
            Kind::Whole => format!("(?:{text})\\z"),
            _ => text.clone(),
        };
        let mut builder = RegexBuilder::new(&text);
        builder.backtrack_limit(STEPS_BACK).delegate_size_limit(PROGRAM_BYTES);
        builder.find_not_empty(matches!(kind, Kind::Something));
        let regex = builder.build().map_err(|error| self.refused(&error))?;
        Ok(slot.get_or_init(|| regex))
    }

    /// The first match from a place on.
    pub fn find(&self, text: &str, is_ascii: bool, from: usize, how: How) -> Result<Option<Groups>> {
        let kind = if how == How::Whole { Kind::Whole } else { Kind::Search };
        self.run(kind, text, is_plain(text, is_ascii), from, how != How::Search)
    }

    fn run(&self, kind: Kind, text: &str, plain: bool, from: usize, anchored: bool) -> Result<Option<Groups>> {
        let input = RegexInput::new(text).from_pos(from).anchored(anchored);
        match self.regex(kind, plain) {
            Ok(regex) => Ok(regex.captures_input(input).map_err(|error| self.refused(&error))?.map(groups)),
            // A pattern that is always empty has no match that is not.
            Err(_) if matches!(kind, Kind::Something) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[cold]
    fn refused(&self, error: &Error) -> Box<Diag> {
        match error {
            Error::RuntimeError(RuntimeError::BacktrackLimitExceeded | RuntimeError::StackOverflow) => {
                let text =
                    format!("the pattern {:?} takes more than {STEPS_BACK} steps back on this text", self.source);
                Diag::error(code::VALUE, text).help("nested repetitions such as `(a+)+` beside a lookaround or a back reference make many; patterns without these two take none")
            }
            Error::CompileError(inner) if matches!(**inner, CompileError::InnerError(_)) => {
                let why = format!("its automaton takes more than {} MB", PROGRAM_BYTES >> 20);
                no_pattern(&self.source, &why).help("counts of counts such as `(a{1000}){1000}` multiply")
            }
            error => no_pattern(&self.source, &error.to_string()),
        }
    }
}

/// Whether the plain translation means the same for a text.
fn is_plain(text: &str, is_ascii: bool) -> bool {
    is_ascii && !text.ends_with('\n')
}

/// Bound: characters of a pattern that a message shows.
const SHOWN: usize = 80;

/// A pattern in quotes, cut where it is long.
fn shown(source: &str) -> String {
    match source.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}..", &source[..end]),
        None => format!("{source:?}"),
    }
}

#[cold]
fn no_pattern(source: &str, why: &str) -> Box<Diag> {
    Diag::error(code::VALUE, format!("{} is no pattern: {why}", shown(source)))
}

fn groups(captures: Captures<'_, str>) -> Groups {
    (0..captures.len()).map(|at| captures.get(at).map(|group| group.start()..group.end())).collect()
}

/// All matches of a text, from a place on.
pub struct Matches<'a> {
    host: &'a Host,
    pattern: &'a Pattern,
    text: &'a str,
    plain: bool,
    from: usize,
    /// The last match was empty: the next one at its place is not.
    was_empty: bool,
}

impl<'a> Matches<'a> {
    pub fn new(host: &'a Host, pattern: &'a Pattern, text: &'a str, is_ascii: bool, from: usize) -> Matches<'a> {
        Matches { host, pattern, text, plain: is_plain(text, is_ascii), from, was_empty: false }
    }
}

impl Matches<'_> {
    pub fn next(&mut self) -> Result<Option<Groups>> {
        self.host.rt.heed()?;
        if self.from > self.text.len() {
            return Ok(None);
        }
        let mut found = None;
        if self.was_empty {
            found = self.pattern.run(Kind::Something, self.text, self.plain, self.from, true)?;
            if found.is_none() {
                match self.text[self.from..].chars().next() {
                    Some(c) => self.from += c.len_utf8(),
                    None => return Ok(None),
                }
            }
        }
        if found.is_none() {
            found = self.pattern.run(Kind::Search, self.text, self.plain, self.from, false)?;
        }
        let Some(groups) = found else {
            self.from = self.text.len() + 1;
            return Ok(None);
        };
        let whole = groups[0].clone().unwrap_or(0..0);
        self.was_empty = whole.is_empty();
        self.from = whole.end;
        Ok(Some(groups))
    }
}
