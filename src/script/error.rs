//! Errors on their way out of the interpreter: as a value that a script can catch, and as the library's
//! error type. How Rhai's own errors become diagnostics is in `error/eval.rs` and `error/parse.rs`.
//!
//! Knows no terminal: `tools/render` draws.

mod absent;
mod absent_cuda;
mod eval;
mod parse;

pub use eval::diagnose;
pub use parse::{compile, diagnose_parse};

use super::raise::ErrorValue;
use super::source::SourceMap;
use crate::base::diag::{Diag, Label, Severity};
use parking_lot::RwLock;
use rhai::{Dynamic, Engine};
use std::fmt;
use std::sync::Arc;

/// Names that exist, for suggestions.
#[derive(Clone, Default, Debug)]
pub struct Known {
    /// Variables and constants of the top level.
    pub variables: Vec<String>,
    /// Functions and methods, native and written in the script.
    pub functions: Vec<String>,
    pub properties: Vec<String>,
    /// Modules: imported names and what `import` finds.
    pub modules: Vec<String>,
}

/// What turning an error into a diagnostic needs to know.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub sources: &'a SourceMap,
    pub known: &'a Known,
}

/// What `catch (e)` can ask of an error.
const PROPERTIES: [&str; 7] = ["code", "message", "line", "column", "file", "help", "notes"];

/// Registers the type `error`, which `catch (e)` gets: `code`, `message`, `line`, `column`, `file`, `help`,
/// `notes`. Thrown again, it is still the same error.
pub fn register(engine: &mut Engine, sources: Arc<RwLock<SourceMap>>) {
    let place = move |error: &ErrorValue| {
        let first = error.0.labels.first()?;
        sources.read().location(first.origin.user)
    };
    let (line, column, file) = (place.clone(), place.clone(), place);
    let number = |number: usize| Dynamic::from(number as i64);
    engine
        .register_type_with_name::<ErrorValue>("error")
        .register_get("code", |e: &mut ErrorValue| e.0.code.to_string())
        .register_get("message", |e: &mut ErrorValue| e.0.message.clone())
        .register_get("line", move |e: &mut ErrorValue| line(e).map_or(Dynamic::UNIT, |at| number(at.line)))
        .register_get("column", move |e: &mut ErrorValue| column(e).map_or(Dynamic::UNIT, |at| number(at.column)))
        .register_get("file", move |e: &mut ErrorValue| {
            file(e).map_or(Dynamic::UNIT, |at| Dynamic::from(at.source.to_string()))
        })
        .register_get("help", |e: &mut ErrorValue| e.0.help.clone().map_or(Dynamic::UNIT, Dynamic::from))
        .register_get("notes", |e: &mut ErrorValue| {
            e.0.notes.iter().cloned().map(Dynamic::from).collect::<rhai::Array>()
        })
        .register_fn("to_string", |e: &mut ErrorValue| format!("{}: {}", e.0.code, e.0.message))
        .register_fn("to_debug", |e: &mut ErrorValue| format!("{}: {}", e.0.code, e.0.message));
}

/// Frames that know only where the call stands get the name that is written there.
fn name_frames(diag: &mut Diag, sources: &SourceMap) {
    for frame in diag.stack.iter_mut().filter(|frame| frame.function.is_empty()) {
        let source = sources.source(frame.call);
        let rest = source.and_then(|source| source.text.get(source.offset(frame.call)..)).unwrap_or("");
        let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        frame.function = if name.is_empty() || name == "call" { "a closure" } else { name }.to_string();
    }
}

/// Why a script failed: one diagnostic, further ones that came with it, and the texts they point into.
///
/// ```
/// use miette::Diagnostic;
/// use tscript::Session;
///
/// let mut session = Session::builder().build()?;
/// let error = session.run_str("sum.rhai", "let total = 1;\nprint(totl);").unwrap_err();
/// assert_eq!(error.code(), "E0102");
/// assert_eq!(error.help(), Some("did you mean `total`?"));
/// let place = error.location().unwrap();
/// assert_eq!((&*place.source, place.line, place.column), ("sum.rhai", 2, 7));
/// // Any renderer of miette's can show it; `tscript run` draws its own.
/// assert_eq!(error.labels().unwrap().count(), 1);
/// # Ok::<(), tscript::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    diag: Box<Diag>,
    extra: Vec<Diag>,
    sources: SourceMap,
}

impl Error {
    #[doc(hidden)]
    pub fn new(diag: Box<Diag>, sources: &SourceMap) -> Error {
        Error::several(diag, Vec::new(), sources)
    }

    /// The first diagnostic with those that came with it: further parse errors, an untold fault.
    #[doc(hidden)]
    pub fn several(diag: Box<Diag>, extra: Vec<Box<Diag>>, sources: &SourceMap) -> Error {
        let mut diag = diag;
        let mut extra: Vec<Diag> = extra.into_iter().map(|diag| *diag).collect();
        std::iter::once(&mut *diag).chain(&mut extra).for_each(|diag| name_frames(diag, sources));
        let all: Vec<&Diag> = std::iter::once(&*diag).chain(&extra).collect();
        let sources = sources.snapshot(&all);
        Error(Box::new(Inner { diag, extra, sources }))
    }

    /// The stable code, such as `E0301`.
    pub fn code(&self) -> String {
        self.0.diag.code.to_string()
    }

    /// What is wrong, in one sentence without its place.
    pub fn message(&self) -> &str {
        &self.0.diag.message
    }

    /// What to do about it, where that is known.
    pub fn help(&self) -> Option<&str> {
        self.0.diag.help.as_deref()
    }

    /// Source, line and column (from 1, in characters) of the primary label.
    pub fn location(&self) -> Option<super::source::Location> {
        self.0.sources.location(self.0.diag.labels.first()?.origin.user)
    }

    #[doc(hidden)]
    pub fn diag(&self) -> &Diag {
        &self.0.diag
    }

    #[doc(hidden)]
    pub fn extra(&self) -> &[Diag] {
        &self.0.extra
    }

    /// The sources that the diagnostics name.
    #[doc(hidden)]
    pub fn sources(&self) -> &SourceMap {
        &self.0.sources
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.0.diag.code, self.0.diag.message)?;
        match self.location() {
            Some(place) => write!(f, " ({}:{}:{})", place.source, place.line, place.column),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// One diagnostic with its primary source, as miette wants it.
#[derive(Debug)]
struct Report {
    diag: Diag,
    source: Option<miette::NamedSource<String>>,
    labels: Vec<miette::LabeledSpan>,
}

impl Report {
    /// Labels in other sources than the primary one's become part of the help: miette shows one source.
    fn new(diag: &Diag, sources: &SourceMap) -> Report {
        let primary = diag.labels.iter().find_map(|label| sources.source(label.origin.user));
        let span = |label: &Label| {
            let (source, range) = sources.span(label.origin.user, label.focus, label.keyword.as_deref())?;
            let text = Some(label.text.clone()).filter(|text| !text.is_empty());
            let same = primary.is_some_and(|primary| primary.base == source.base);
            same.then(|| miette::LabeledSpan::new(text, range.start, range.len()))
        };
        Report {
            diag: diag.clone(),
            labels: diag.labels.iter().filter_map(span).collect(),
            source: primary.map(|source| miette::NamedSource::new(&source.name, source.text.to_string())),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diag.message)
    }
}

impl std::error::Error for Report {}

fn help(diag: &Diag) -> Option<Box<dyn fmt::Display>> {
    let lines: Vec<&str> = diag.notes.iter().map(String::as_str).chain(diag.help.as_deref()).collect();
    (!lines.is_empty()).then(|| Box::new(lines.join("\n")) as Box<dyn fmt::Display>)
}

fn severity(diag: &Diag) -> Option<miette::Severity> {
    Some(match diag.severity {
        Severity::Error => miette::Severity::Error,
        Severity::Warning => miette::Severity::Warning,
    })
}

impl miette::Diagnostic for Report {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diag.code))
    }
    fn severity(&self) -> Option<miette::Severity> {
        severity(&self.diag)
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        help(&self.diag)
    }
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as &dyn miette::SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        (!self.labels.is_empty()).then(|| Box::new(self.labels.iter().cloned()) as _)
    }
}

impl miette::Diagnostic for Error {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.0.diag.code))
    }
    fn severity(&self) -> Option<miette::Severity> {
        severity(&self.0.diag)
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        help(&self.0.diag)
    }
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        let source = self.0.diag.labels.iter().find_map(|label| self.0.sources.source(label.origin.user))?;
        Some(&**source as &dyn miette::SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        let labels = Report::new(&self.0.diag, &self.0.sources).labels;
        (!labels.is_empty()).then(|| Box::new(labels.into_iter()) as _)
    }
}

/// A source shows itself, by its name.
impl miette::SourceCode for super::source::Source {
    fn read_span<'a>(
        &'a self,
        span: &miette::SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn miette::SpanContents<'a> + 'a>, miette::MietteError> {
        let inner = self.text.as_bytes().read_span(span, before, after)?;
        Ok(Box::new(
            miette::MietteSpanContents::new_named(
                self.name.to_string(),
                inner.data(),
                *inner.span(),
                inner.line(),
                inner.column(),
                inner.line_count(),
            )
            .with_language("rhai"),
        ))
    }
}

#[cfg(test)]
mod tests;
