//! What happens where the source pass inserted a word: truth of tensors, the user's running line, the wait at
//! the end of a `try`.

use super::error::{self, Context, diagnose};
use super::host::Host;
use super::raise::{ErrorValue, raise};
use super::source::Hooks;
use super::value::{Cell, Tensor};
use crate::base::span::{Origin, Site};
use crate::tensor::observe;
use rhai::{Dynamic, EvalAltResult, Position};
use std::sync::Arc;

/// The session's side of the pass.
pub struct SessionHooks(pub Arc<Host>);

type RhaiResult = Result<Dynamic, Box<EvalAltResult>>;

impl Hooks for SessionHooks {
    fn truth(&self, value: Dynamic, at: Position) -> Result<bool, Box<EvalAltResult>> {
        // `if model.training`: a cell is as true as what it holds.
        let value = match value.read_lock::<Cell>().map(|cell| cell.get()) {
            Some(inside) => inside,
            None => value,
        };
        if let Ok(truth) = value.as_bool() {
            return Ok(truth);
        }
        if let Some(tensor) = value.read_lock::<Tensor>() {
            let origin = Origin::at(super::raise::site_of(at));
            return observe::truth(&self.0.rt, &tensor).map_err(|diag| raise(diag.or_at(origin, ""), at));
        }
        Err(Box::new(EvalAltResult::ErrorMismatchDataType("bool".into(), value.type_name().into(), at)))
    }

    fn enter(&self, site: Site, level: usize) -> u32 {
        self.0.rt.calls.enter(site, level)
    }

    fn leave(&self, entered: u32) {
        self.0.rt.calls.leave(entered);
    }

    fn try_enter(&self) -> u64 {
        // What was queued before the block is not the block's: its faults stay untold for later.
        self.0.rt.place_in_order()
    }

    fn try_leave(&self, entered: u64, result: RhaiResult) -> RhaiResult {
        match result.map_err(super::leave::out_of) {
            // An error that is already on its way out goes first; what it left behind stays untold.
            Err(error) if !is_jump(&error) => Err(self.as_value(error)),
            other => match self.0.rt.synchronize_since(entered) {
                Ok(()) => other,
                Err(diag) => Err(raise(diag, Position::NONE)),
            },
        }
    }
}

impl SessionHooks {
    /// Rhai's own errors become ours, and ours get a place, so that `catch (e)` has `e.code` and `e.line` for every one
    /// of them. What the script threw itself stays as it is.
    fn as_value(&self, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
        let stops = matches!(
            error.unwrap_inner(),
            EvalAltResult::ErrorTerminated(..) | EvalAltResult::ErrorTooManyOperations(..)
        );
        let at = error.position();
        let sources = self.0.sources.read().clone();
        let known = error::Known::default();
        let is_whole = match error.unwrap_inner() {
            EvalAltResult::ErrorRuntime(value, at) => match value.read_lock::<ErrorValue>() {
                Some(error) => !error.0.labels.is_empty(),
                None => error::is_thrown(*at, &Context { sources: &sources, known: &known }),
            },
            _ => false,
        };
        if stops || is_whole {
            return error;
        }
        let known = self.0.known_now();
        raise(diagnose(error, &Context { sources: &sources, known: &known }), at)
    }
}

/// `return`, `break`, `continue` and `exit` travel as errors inside the interpreter.
fn is_jump(error: &EvalAltResult) -> bool {
    matches!(error, EvalAltResult::Return(..) | EvalAltResult::LoopBreak(..) | EvalAltResult::Exit(..))
}
