//! Diagnostics as Rhai errors, and the place where a native call stands.

use crate::base::diag::Diag;
use crate::base::span::Site;
use rhai::{Dynamic, EvalAltResult, NativeCallContext, Position};

/// A diagnostic on its way through the interpreter.
pub fn raise(diag: Box<Diag>, position: Position) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(ErrorValue(diag)), position))
}

/// The place of a native call.
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
