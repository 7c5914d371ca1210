//! Diagnostics as Rhai errors, and the position of a native call.

use crate::base::diag::Diag;
use crate::base::span::Origin;
use crate::base::span::Site;
use rhai::{Dynamic, EvalAltResult, NativeCallContext, Position};

/// Bound: characters of a message; more is not read.
const MESSAGE: usize = 1000;

/// A diagnostic as an error of the interpreter.
pub fn raise(mut diag: Box<Diag>, position: Position) -> Box<EvalAltResult> {
    // Arguments are quoted in many messages, and may be texts of megabytes.
    if let Some((end, _)) = diag.message.char_indices().nth(MESSAGE) {
        diag.message.truncate(end);
        diag.message.push('…');
    }
    Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(ErrorValue(diag)), position))
}

/// The position of a native call.
pub fn site(context: &NativeCallContext) -> Site {
    site_of(context.call_position())
}

pub fn site_of(position: Position) -> Site {
    match (position.line(), position.position()) {
        (Some(line), column) => Site::new(line as u16, column.unwrap_or(0) as u16),
        _ => Site::NONE,
    }
}

/// A diagnostic as a value: what `catch (e)` gets.
#[derive(Clone, Debug)]
pub struct ErrorValue(pub Box<Diag>);

/// A native result.
pub type Native = std::result::Result<Dynamic, Box<EvalAltResult>>;

pub type Outcome<T> = Result<T, Box<EvalAltResult>>;

/// A diagnostic with the position that an iterator stands for.
pub fn at_iterator(diag: Box<Diag>, origin: Origin) -> Box<EvalAltResult> {
    let mut diag = diag.or_at(origin, "here");
    for label in &mut diag.labels {
        if label.origin == Origin::NONE {
            label.origin = origin;
        }
    }
    raise(diag, Position::NONE)
}
