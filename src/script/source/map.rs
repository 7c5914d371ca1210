//! The sources of a session: one range of global lines for each, so that a packed `Site` alone identifies source,
//! line and column: Rhai counts lines in 16 bits, and does not keep the source of a closure.
//!
//! Columns of a site count characters of the *rewritten* text, as Rhai does; everything that leaves this module is in
//! original bytes, lines and columns. Creates only diagnostics about size and syntax.

use super::lex::LexError;
use super::pass::{self, Assignment, Marks, Options, Place, Rewritten, Underscore};
use super::scope::Names;
use super::span::Spans;
use super::tree::Lost;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Label, Result};
use crate::base::limits::{MAX_COLUMNS, MAX_LINES, SOURCE_BYTES};
use crate::base::span::{Origin, Site};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Bound: lines before the latest text that are kept.
const RECENT: u32 = 8192;

/// Where a text came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceKind {
    File,
    /// The n-th entry of the REPL.
    Repl(u32),
    /// The text of an `eval`.
    Eval,
    /// A module of the standard library.
    Std,
}

/// One text with its global lines. Immutable once it is registered.
#[derive(Debug)]
pub struct Source {
    pub name: Arc<str>,
    pub kind: SourceKind,
    /// As the user wrote it.
    pub text: Arc<str>,
    /// Global lines before its first.
    pub base: u32,
    rewritten: Rewritten,
    /// Start byte of each original line; lines are those of the rewritten text.
    line_starts: Vec<u32>,
    spans: OnceLock<Spans>,
    /// It could not be read, so that it left no code.
    is_refused: AtomicBool,
}

/// A position for people: line and column from 1, the column in characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub source: Arc<str>,
    pub line: usize,
    pub column: usize,
}

/// A registered source, and the problem of its text if it cannot be compiled.
#[derive(Debug)]
pub struct Added {
    pub source: Arc<Source>,
    pub problem: Option<Box<Diag>>,
    /// The problem is that the text is unfinished: the REPL requests another line.
    pub incomplete: bool,
}

/// All sources, in order of their lines. A clone is a snapshot and costs one reference per source.
#[derive(Clone, Default, Debug)]
pub struct SourceMap {
    sources: Vec<Arc<Source>>,
    /// So many of them, from the first on, have no free lines between them.
    dense: usize,
    /// Where a text with this hash begins that was registered last.
    known: HashMap<u64, u32>,
    /// Where the text begins that was registered last.
    latest: u32,
}

impl Source {
    /// The input of Rhai: as many line feeds as there are global lines before this source, and the text. For
    /// `Engine::compile_scripts_with_scope`, which takes several pieces.
    pub fn compiled(&self) -> [String; 2] {
        ["\n".repeat(self.base as usize), self.rewritten.text.clone()]
    }

    /// The text that Rhai sees, without the leading line feeds.
    pub fn rewritten(&self) -> &str {
        &self.rewritten.text
    }

    /// Names of properties that a statement reads without using them.
    pub fn unused_properties(&self) -> &[Range<usize>] {
        &self.rewritten.unused_properties
    }

    /// The position at which the text assigns to a property of a name, `opt.lr = 0.5`, if there is one.
    fn assigned(&self, name: &str) -> Option<Site> {
        let site = |line: u32, column: u32| {
            let line = u16::try_from(line + self.base).ok()?;
            Some(Site::new(line, u16::try_from(column).ok()?))
        };
        let mut places = self.rewritten.targets().filter_map(|(line, column)| site(line, column));
        places.find(|&at| {
            let rest = self.text.get(self.offset(at)..).and_then(|text| text.strip_prefix(name));
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    }

    pub fn is_std(&self) -> bool {
        self.kind == SourceKind::Std
    }

    /// Whether the text leaves no code behind its run.
    pub fn is_passing(&self) -> bool {
        (self.rewritten.is_passing || self.is_refused.load(Ordering::Relaxed)) && !self.is_std()
    }

    /// Notes that the text cannot be compiled.
    pub fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    pub fn line_count(&self) -> u32 {
        self.rewritten.line_count()
    }

    fn holds(&self, line: u32) -> bool {
        line > self.base && line <= self.base + self.line_count()
    }

    /// Original position of a site of this source.
    fn place(&self, site: Site) -> Place {
        self.rewritten.place((site.line() as u32).saturating_sub(self.base), site.column() as u32)
    }

    /// Original byte of a site of this source.
    pub fn offset(&self, site: Site) -> usize {
        match self.place(site) {
            Place::At(offset) => offset,
            Place::For(range) => range.start,
        }
    }

    /// The site of an original byte; bytes inside a character count as its start.
    pub fn site(&self, offset: usize) -> Site {
        let offset = self.text.floor_char_boundary(offset);
        let (line, column) = self.rewritten.position(offset);
        match (u16::try_from(line + self.base), u16::try_from(column)) {
            (Ok(line), Ok(column)) => Site::new(line, column),
            _ => Site::NONE,
        }
    }

    /// Line and column, from 1 and in characters, of an original byte.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start as usize <= offset).max(1);
        let start = self.line_starts.get(line - 1).map_or(0, |start| *start as usize);
        // A byte order mark has no column.
        let before = self.text[start..].char_indices().take_while(|(at, _)| start + at < offset);
        (line, before.filter(|(_, c)| *c != '\u{feff}').count() + 1)
    }

    /// Original bytes of `focus` at a site. Not empty unless the text is.
    pub fn span(&self, site: Site, focus: Focus, keyword: Option<&str>) -> Range<usize> {
        let range = match self.place(site) {
            Place::For(range) => range,
            Place::At(offset) => {
                let spans = self.spans.get_or_init(|| Spans::new(&self.text));
                spans.find(&self.text, offset, focus, keyword)
            }
        };
        clamp(&self.text, range)
    }

    fn diag(&self, error: &LexError) -> Box<Diag> {
        let mut diag = Diag::error(code::SYNTAX, error.message.clone());
        for (range, text) in &error.labels {
            let origin = Origin::at(self.site(range.start));
            diag.labels.push(Label { origin, focus: Focus::Call, keyword: None, text: text.clone() });
        }
        diag.help = error.help.clone();
        diag
    }
}

/// A range within the text, on character boundaries.
fn clamp(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(range.start);
    start..text.floor_char_boundary(range.end).max(start)
}

fn too_large(message: String, help: &str) -> Box<Diag> {
    Diag::error(code::SOURCE_TOO_LARGE, message).help(help)
}

impl SourceMap {
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// All sources, in order of their lines.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().map(|source| &**source)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sources.len()
    }

    /// Registers a text, rewrites it, and gives it lines. `is_native` says which functions, methods and `ns::name`s
    /// never run script code, `names` how functions are renamed.
    ///
    /// An error (E0105) means that the text was not registered; a `problem` (E0101) that it was registered, so that
    /// the diagnostic can show it, but cannot be compiled: release it after the report.
    pub fn add(
        &mut self,
        kind: SourceKind,
        name: &str,
        text: &str,
        is_native: &dyn Fn(&str) -> bool,
        names: Names,
    ) -> Result<Added> {
        if text.len() > SOURCE_BYTES {
            let message = format!("{name} has {} bytes; a source may have {SOURCE_BYTES}", text.len());
            return Err(too_large(message, "load data with `load(path)` instead of writing it into the script"));
        }
        let marks = if kind == SourceKind::Std { Marks::None } else { Marks::Set };
        let underscore = if matches!(kind, SourceKind::Repl(_)) { Underscore::LastValue } else { Underscore::Nothing };
        let options = |base| Options { is_native, marks, underscore, names, base };
        // A text that runs again has the same positions.
        let same = |source: &&Arc<Source>| source.kind == kind && *source.name == *name && *source.text == *text;
        let hash = hash_of(name, text);
        let at_base = |base: &u32| {
            let at = self.sources.binary_search_by_key(base, |source| source.base).ok()?;
            self.sources.get(at)
        };
        if let Some(known) = self.known.get(&hash).and_then(at_base).filter(same)
            && pass::rewrite(text, &options(known.base)).is_ok_and(|again| again.text == known.rewritten.text)
        {
            return Ok(Added { source: known.clone(), problem: None, incomplete: false });
        }
        let lines = text.bytes().filter(|b| *b == b'\n').count() + 1;
        let gap = self.gap(lines).or_else(|| {
            (lines <= MAX_LINES).then(|| self.give_up())?;
            self.gap(lines)
        });
        let (index, base) = gap.ok_or_else(|| {
            let message =
                format!("{name} has {lines} lines, and all sources of a session may have {MAX_LINES} together");
            too_large(message, "split the work over several sessions, or load data with `load(path)`")
        })?;
        let (rewritten, error) = match pass::rewrite(text, &options(base)) {
            Ok(rewritten) => (rewritten, None),
            Err(error) => (pass::unchanged(text), Some(error)),
        };
        if let Some(line) = rewritten.long_line() {
            let message = format!("line {line} of {name} is longer than {MAX_COLUMNS} characters");
            return Err(too_large(message, "break the line, or load data with `load(path)`"));
        }
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect();
        let (name, text) = (Arc::from(name), Arc::from(text));
        let is_refused = AtomicBool::new(error.is_some());
        let source =
            Arc::new(Source { name, kind, text, base, rewritten, line_starts, spans: OnceLock::new(), is_refused });
        let problem = error.as_ref().map(|error| source.diag(error));
        self.sources.insert(index, source.clone());
        self.known.insert(hash, base);
        self.latest = base;
        Ok(Added { source, problem, incomplete: error.is_some_and(|error| error.incomplete) })
    }

    /// Removes a source; its lines are reused. Sites inside it become invalid, so no live tensor or function may have
    /// come from it.
    pub fn release(&mut self, source: &Source) {
        if let Some(at) = self.sources.iter().position(|other| other.base == source.base) {
            self.sources.remove(at);
            self.dense = self.dense.min(at);
        }
    }

    /// Removes the texts that left no code, but for those that ran last: what they made has no place in messages any more.
    fn give_up(&mut self) {
        let recent = self.latest.saturating_sub(RECENT)..=self.latest;
        let is_kept = |source: &Arc<Source>| !source.is_passing() || recent.contains(&source.base);
        // What runs, and what an error shows, has another holder.
        self.sources.retain(|source| is_kept(source) || Arc::strong_count(source) > 1);
        self.dense = 0;
    }

    /// The first free range of so many lines: the index to insert at, and the lines before it.
    fn gap(&mut self, lines: usize) -> Option<(usize, u32)> {
        let end = |sources: &[Arc<Source>]| sources.last().map_or(0, |source| source.base + source.line_count());
        while self.sources.get(self.dense).is_some_and(|next| next.base == end(&self.sources[..self.dense])) {
            self.dense += 1;
        }
        let mut index = self.dense;
        let mut free = end(&self.sources[..index]);
        for source in &self.sources[index..] {
            if (source.base - free) as usize >= lines {
                break;
            }
            free = source.base + source.line_count();
            index += 1;
        }
        (free as usize + lines <= MAX_LINES).then_some((index, free))
    }

    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// The source of a site.
    pub fn source(&self, site: Site) -> Option<&Arc<Source>> {
        let line = site.line() as u32;
        let after = self.sources.partition_point(|source| source.base < line);
        let source = self.sources.get(after.checked_sub(1)?)?;
        source.holds(line).then_some(source)
    }

    /// How the bracket or property at a site is assigned to; `None` if it is only read.
    pub fn assignment(&self, site: Site) -> Option<Assignment> {
        let source = self.source(site)?;
        source.rewritten.assignment((site.line() as u32).saturating_sub(source.base), site.column() as u32)
    }

    /// The name that begins at a site.
    pub fn name(&self, site: Site) -> String {
        let Some(source) = self.source(site) else { return String::new() };
        let rest = &source.text[source.offset(site)..];
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_string()
    }

    /// If a change that nobody sees begins at the name at a site: what of it is known.
    pub fn lost(&self, site: Site) -> Option<Lost> {
        let source = self.source(site)?;
        source.rewritten.lost((site.line() as u32).saturating_sub(source.base), site.column() as u32)
    }

    /// The parameter where the `for_each` at a site counts in it: its name and its site.
    pub fn each_counted(&self, site: Site) -> Option<(String, Site)> {
        let source = self.source(site)?;
        let line = (site.line() as u32).saturating_sub(source.base);
        let name = source.rewritten.each_counted(line, site.column() as u32)?;
        Some((source.text[name.clone()].to_string(), source.site(name.start)))
    }

    /// Whether a dot stands before the name at a site.
    pub fn is_method(&self, site: Site) -> bool {
        let Some(source) = self.source(site) else { return false };
        let before = source.text[..source.offset(site)].trim_end();
        before.ends_with('.') && !before.ends_with("..")
    }

    /// Where the user's texts assign to a property of a name.
    pub fn assigned(&self, name: &str) -> Option<Site> {
        self.sources.iter().filter(|source| !source.is_std()).find_map(|source| source.assigned(name))
    }

    /// True for a site inside the standard library.
    pub fn is_std(&self, site: Site) -> bool {
        self.source(site).is_some_and(|source| source.is_std())
    }

    /// The text up to the end of a site's line, from its beginning.
    pub fn line_text(&self, site: Site) -> Option<&str> {
        let source = self.source(site)?;
        let at = source.offset(site);
        let start = source.text[..at].rfind('\n').map_or(0, |end| end + 1);
        source.text[start..].lines().next()
    }

    /// Source and original bytes of `focus` at a site.
    pub fn span(&self, site: Site, focus: Focus, keyword: Option<&str>) -> Option<(&Arc<Source>, Range<usize>)> {
        let source = self.source(site)?;
        Some((source, source.span(site, focus, keyword)))
    }

    /// Source, line and column for people.
    pub fn location(&self, site: Site) -> Option<Location> {
        let source = self.source(site)?;
        let (line, column) = source.line_column(source.offset(site));
        Some(Location { source: source.name.clone(), line, column })
    }

    /// Only the sources that a diagnostic refers to, for an error that outlives the session.
    pub fn snapshot(&self, diags: &[&Diag]) -> SourceMap {
        let labels = diags.iter().flat_map(|diag| &diag.labels).flat_map(|l| [l.origin.user, l.origin.inner]);
        let frames = diags.iter().flat_map(|diag| &diag.stack).map(|frame| frame.call);
        let sites: Vec<Site> = labels.chain(frames).collect();
        let named = |source: &Source| sites.iter().any(|site| source.holds(site.line() as u32));
        let sources = self.sources.iter().filter(|source| named(source)).cloned().collect();
        SourceMap { sources, ..SourceMap::default() }
    }
}

fn hash_of(name: &str, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, text).hash(&mut hasher);
    hasher.finish()
}
