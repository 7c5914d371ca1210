//! The library's error type as `miette::Diagnostic`: the primary label first and marked as such, labels in other
//! sources and further errors as related diagnostics, notes and the call stack in the help.
//!
//! Independent of miette's renderers. A diagnostic of miette shows one source.

use super::Error;
use crate::base::diag::{Diag, Focus, Frame, Label, Severity};
use crate::base::span::Site;
use crate::script::source::{Source, SourceMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bound: calls that are shown; an endless recursion has a thousand.
const FRAMES: usize = 8;

/// How a frame of the call stack is shown: "`f`, called from t.rhai:4:13".
pub fn called(frame: &Frame, sources: &SourceMap) -> String {
    let name = if frame.function.contains(' ') { frame.function.clone() } else { format!("`{}`", frame.function) };
    let verb = if frame.function.starts_with("the module") { "imported" } else { "called" };
    match sources.location(frame.call) {
        Some(at) => format!("{name}, {verb} from {}:{}:{}", at.source, at.line, at.column),
        None => format!("{name}, {verb} from the host program"),
    }
}

/// A diagnostic in one source.
#[derive(Clone, Debug)]
pub(super) struct Report {
    message: String,
    /// None for a diagnostic that only accompanies another.
    code: Option<String>,
    severity: miette::Severity,
    source: Option<Arc<Source>>,
    labels: Vec<miette::LabeledSpan>,
    help: Option<String>,
    related: Vec<Report>,
}

impl Report {
    /// A diagnostic with those that were reported with it.
    pub(super) fn new(diag: &Diag, extra: &[Diag], sources: &SourceMap) -> Report {
        let places: Vec<(Arc<Source>, Range<usize>, &str)> = diag.labels.iter().flat_map(|l| of(l, sources)).collect();
        let source = places.first().map(|(source, ..)| source.clone());
        let mut report = Report {
            message: diag.message.clone(),
            code: Some(diag.code.to_string()),
            severity: match diag.severity {
                Severity::Error => miette::Severity::Error,
                Severity::Warning => miette::Severity::Warning,
            },
            labels: source.as_ref().map_or(Vec::new(), |source| spans(source, &places, true)),
            help: help(diag, sources),
            related: Vec::new(),
            source,
        };
        let mut told: Vec<u32> = report.source.iter().map(|source| source.base).collect();
        for (source, ..) in &places {
            if !told.contains(&source.base) {
                told.push(source.base);
                report.related.push(Report {
                    message: format!("what it has to do with {}", source.name),
                    code: None,
                    severity: miette::Severity::Advice,
                    labels: spans(source, &places, false),
                    source: Some(source.clone()),
                    help: None,
                    related: Vec::new(),
                });
            }
        }
        report.related.extend(extra.iter().map(|diag| Report::new(diag, &[], sources)));
        report
    }
}

/// The positions of a label: the user's, and the corresponding one in the standard library.
fn of<'a>(label: &'a Label, sources: &SourceMap) -> Vec<(Arc<Source>, Range<usize>, &'a str)> {
    let place = |site: Site, focus: Focus, keyword: Option<&str>, text: &'a str| {
        let (source, range) = sources.span(site, focus, keyword)?;
        Some((source.clone(), range, text))
    };
    let keyword = label.keyword.as_deref();
    let (user, inner) = match label.origin.inner.is_none() {
        true => (place(label.origin.user, label.focus, keyword, &label.text), None),
        false => (
            place(label.origin.user, Focus::Call, None, &label.text),
            place(label.origin.inner, label.focus, keyword, "at work here, in the standard library"),
        ),
    };
    user.into_iter().chain(inner).collect()
}

fn spans(source: &Source, places: &[(Arc<Source>, Range<usize>, &str)], has_primary: bool) -> Vec<miette::LabeledSpan> {
    let here = places.iter().filter(|(other, ..)| other.base == source.base);
    here.enumerate()
        .map(|(at, (_, range, text))| {
            let text = Some(text.to_string()).filter(|text| !text.is_empty());
            match has_primary && at == 0 {
                true => miette::LabeledSpan::new_primary_with_span(text, range.clone()),
                false => miette::LabeledSpan::new_with_span(text, range.clone()),
            }
        })
        .collect()
}

/// Notes, help and the call stack, a line each: miette has one place for all three.
fn help(diag: &Diag, sources: &SourceMap) -> Option<String> {
    let mut lines: Vec<String> = diag.notes.iter().cloned().chain(diag.help.clone()).collect();
    lines.extend(diag.stack.iter().take(FRAMES).map(|frame| format!("in: {}", called(frame, sources))));
    if diag.stack.len() > FRAMES {
        lines.push(format!("in: {} more calls", diag.stack.len() - FRAMES));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl miette::Diagnostic for Report {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.code.as_ref().map(|code| Box::new(code) as Box<dyn fmt::Display>)
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| &**source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        (!self.labels.is_empty()).then(|| Box::new(self.labels.iter().cloned()) as _)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        let each = self.related.iter().map(|report| report as &dyn miette::Diagnostic);
        (!self.related.is_empty()).then(|| Box::new(each) as _)
    }
}

impl miette::Diagnostic for Error {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.report().code()
    }

    fn severity(&self) -> Option<miette::Severity> {
        self.report().severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.report().help()
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.report().source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        self.report().labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        self.report().related()
    }
}

/// A source is read under its own name.
impl miette::SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &miette::SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn miette::SpanContents<'a> + 'a>, miette::MietteError> {
        let inner = self.text.as_bytes().read_span(span, before, after)?;
        // Columns count characters, as everywhere here; miette's own count bytes.
        let start = inner.span().offset();
        let line = self.text[..start].rfind('\n').map_or(0, |end| end + 1);
        let column = self.text[line..start].chars().count();
        Ok(Box::new(
            miette::MietteSpanContents::new_named(
                self.name.to_string(),
                inner.data(),
                *inner.span(),
                inner.line(),
                column,
                inner.line_count(),
            )
            .with_language("rhai"),
        ))
    }
}
