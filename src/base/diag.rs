//! A diagnostic: an error or warning with its places and advice. Plain data; `script/error` adds byte spans and
//! converts it to the library's error type, `tools/render` formats it.

use super::code::Code;
use super::span::{Origin, Site};

/// Error or warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    Error,
    Warning,
}

/// The part of the source that a site refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Focus {
    /// The operator or the call: `+`, `sum(#{dim: 1})`.
    Call,
    /// The whole expression: `a.relu().sum(#{dim: 1})`.
    Expression,
    /// Argument `n` of the call, 0-based, the receiver of a method not counted.
    Argument(usize),
    /// A keyword in the call's trailing map.
    Keyword,
    /// So many characters from the place on: a part of a string.
    Characters(u16),
}

/// A place with a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Label {
    pub origin: Origin,
    pub focus: Focus,
    /// For `Focus::Keyword`: the keyword.
    pub keyword: Option<String>,
    pub text: String,
}

/// One frame of the script's call stack, innermost first. A frame without a name gets the name at the place of the
/// call.
#[derive(Clone, PartialEq, Debug)]
pub struct Frame {
    pub function: String,
    pub call: Site,
}

/// One error or warning.
#[derive(Clone, PartialEq, Debug)]
pub struct Diag {
    pub severity: Severity,
    pub code: Code,
    pub message: String,
    /// The first is the primary one.
    pub labels: Vec<Label>,
    pub notes: Vec<String>,
    pub help: Option<String>,
    pub stack: Vec<Frame>,
    /// The error is of work that was queued earlier; the stack is the one of that time.
    pub is_late: bool,
    /// The sequence number of that work in the session.
    pub queued: u64,
}

/// Boxed, so that a `Result` on the hot path stays small.
pub type Result<T, E = Box<Diag>> = std::result::Result<T, E>;

impl Diag {
    pub fn error(code: Code, message: impl Into<String>) -> Box<Diag> {
        Box::new(Diag {
            severity: Severity::Error,
            code,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
            stack: Vec::new(),
            is_late: false,
            queued: 0,
        })
    }

    pub fn warning(code: Code, message: impl Into<String>) -> Box<Diag> {
        let mut diag = Diag::error(code, message);
        diag.severity = Severity::Warning;
        diag
    }

    pub fn label(mut self: Box<Self>, origin: Origin, focus: Focus, text: impl Into<String>) -> Box<Self> {
        self.labels.push(Label { origin, focus, keyword: None, text: text.into() });
        self
    }

    /// Makes a place the primary one.
    pub fn label_first(mut self: Box<Self>, origin: Origin, focus: Focus, text: impl Into<String>) -> Box<Self> {
        self.labels.insert(0, Label { origin, focus, keyword: None, text: text.into() });
        self
    }

    pub fn keyword(mut self: Box<Self>, origin: Origin, keyword: &str, text: impl Into<String>) -> Box<Self> {
        let keyword = Some(keyword.to_string());
        self.labels.push(Label { origin, focus: Focus::Keyword, keyword, text: text.into() });
        self
    }

    pub fn note(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.notes.push(text.into());
        self
    }

    pub fn help(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.help = Some(text.into());
        self
    }

    /// Makes `origin` the primary place if there is none yet; the binder calls this for every error of a callee.
    pub fn or_at(mut self: Box<Self>, origin: Origin, text: impl Into<String>) -> Box<Self> {
        if self.labels.is_empty() {
            self.labels.push(Label { origin, focus: Focus::Call, keyword: None, text: text.into() });
        }
        self
    }
}

/// `Err(Diag::error(code, format!(..)))`.
#[macro_export]
macro_rules! fail {
    ($code:ident, $($arg:tt)*) => {
        return Err($crate::base::diag::Diag::error($crate::base::code::$code, format!($($arg)*)))
    };
}
