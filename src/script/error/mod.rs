//! Errors of the interpreter: as a value that a script can catch, and as the library's error type. `error/eval.rs`
//! and `error/parse.rs` convert Rhai's own errors to diagnostics.
//!
//! Independent of terminals: `tools/render` draws.

mod absent;
mod absent_cuda;
mod eval;
mod habits;
mod names;
mod parse;
mod paths;
mod report;
mod syntax;

pub use absent::reason as why_absent;
pub use eval::{diagnose, is_thrown, operator_help};
pub use names::{arity_message, members_of};
pub use parse::{compile, diagnose_parse};
pub use paths::{import_help, is_python};
pub use report::called;

use super::source::SourceMap;
use crate::base::diag::Diag;
use crate::script::values::native_forms::LazyForms;
use crate::script::values::raise::ErrorValue;
use parking_lot::RwLock;
use rhai::{Dynamic, Engine};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Names that exist, for suggestions.
#[derive(Clone, Default, Debug)]
pub struct Known {
    /// Variables and constants of the top level.
    pub variables: Vec<String>,
    /// Functions and methods, native ones and the script's.
    pub functions: Vec<String>,
    pub properties: Vec<String>,
    /// Modules: imported names and those that `import` finds.
    pub modules: Vec<String>,
    /// Functions of the script, with the number of their parameters.
    pub written: Vec<(String, usize)>,
    /// Closures that take variables along, which are their first parameters, and how many.
    pub captured: HashMap<String, usize>,
    /// Modules that were imported.
    pub loaded: Vec<rhai::Shared<rhai::Module>>,
    /// The forms of native functions.
    pub forms: Arc<LazyForms>,
}

/// The environment for converting an error to a diagnostic.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub sources: &'a SourceMap,
    /// Found out where it is asked for: nothing else wants it.
    pub known: &'a dyn Deref<Target = Known>,
}

/// The properties of an error in `catch (e)`.
const PROPERTIES: [&str; 7] = ["code", "message", "line", "column", "file", "help", "notes"];

/// Registers the type `error` of `catch (e)`: `code`, `message`, `line`, `column`, `file`, `help`, `notes`. It can be
/// thrown again unchanged.
pub fn register(engine: &mut Engine, sources: Arc<RwLock<SourceMap>>) {
    let place = move |error: &ErrorValue| {
        let first = error.0.labels.first()?;
        sources.read().location(first.origin.user)
    };
    let (line, column, file) = (place.clone(), place.clone(), place);
    let number = |number: usize| Dynamic::from(number as i64);
    crate::script::values::type_names::note::<ErrorValue>("error");
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

/// Frames without a name get the name in the text of the call.
fn name_frames(diag: &mut Diag, sources: &SourceMap) {
    for frame in diag.stack.iter_mut().filter(|frame| frame.function.is_empty()) {
        let source = sources.source(frame.call);
        let rest = source.and_then(|source| source.text.get(source.offset(frame.call)..)).unwrap_or("");
        let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        frame.function = if name.is_empty() || name == "call" { "a closure" } else { name }.to_string();
    }
}

/// Why a script failed: one diagnostic, further ones reported with it, and the texts that they refer to.
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
///
/// `{}` is the message alone, as miette and other reporters expect, which show code and place beside it; `{:#}` and
/// `{:?}` are one line with all three: `[E0102] there is no variable `totl` (sum.rhai:2:7)`.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    diag: Box<Diag>,
    extra: Vec<Diag>,
    sources: SourceMap,
    /// The miette report, created at the first use.
    report: OnceLock<report::Report>,
}

impl Error {
    /// Leaves out calls from lines of a source behind this one, which a tool has appended.
    #[doc(hidden)]
    pub fn without_calls_behind(mut self, source: &str, line: usize) -> Error {
        let Inner { diag, sources, .. } = &mut *self.0;
        diag.stack.retain(|frame| {
            let at = sources.location(frame.call);
            !at.is_some_and(|at| *at.source == *source && at.line > line)
        });
        self
    }

    #[doc(hidden)]
    pub fn new(diag: Box<Diag>, sources: &SourceMap) -> Error {
        Error::with_related(diag, Vec::new(), sources)
    }

    /// The first diagnostic with those that came with it: further parse errors, an unreported fault.
    #[doc(hidden)]
    pub fn with_related(diag: Box<Diag>, extra: Vec<Box<Diag>>, sources: &SourceMap) -> Error {
        let mut diag = diag;
        let mut extra: Vec<Diag> = extra.into_iter().map(|diag| *diag).collect();
        std::iter::once(&mut *diag).chain(&mut extra).for_each(|diag| name_frames(diag, sources));
        let all: Vec<&Diag> = std::iter::once(&*diag).chain(&extra).collect();
        let sources = sources.snapshot(&all);
        Error(Box::new(Inner { diag, extra, sources, report: OnceLock::new() }))
    }

    /// The stable code, such as `E0301`.
    pub fn code(&self) -> String {
        self.0.diag.code.to_string()
    }

    /// What is wrong, in one sentence without the position.
    pub fn message(&self) -> &str {
        &self.0.diag.message
    }

    /// What to do about it, if that is known.
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

    /// The sources that the diagnostics refer to.
    #[doc(hidden)]
    pub fn sources(&self) -> &SourceMap {
        &self.0.sources
    }

    fn report(&self) -> &report::Report {
        self.0.report.get_or_init(|| report::Report::new(&self.0.diag, &self.0.extra, &self.0.sources))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&self.0.diag.message);
        }
        write!(f, "[{}] {}", self.0.diag.code, self.0.diag.message)?;
        match self.location() {
            Some(place) => write!(f, " ({}:{}:{})", place.source, place.line, place.column),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
#[cfg(feature = "cli")]
mod tests;
