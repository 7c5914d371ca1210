//! What happens where the source pass inserted a call: truth values of tensors, the user's current line, the wait at
//! the end of a `try`.

use crate::base::diag::Diag;
use crate::base::span::{Origin, Site};
use crate::script::bind::iterate;
use crate::script::cuda_api::devices;
use crate::script::error;
use crate::script::error::{Context, diagnose};
use crate::script::host::Host;
use crate::script::host::function_times::Moment;
use crate::script::host::lost;
use crate::script::nn::fields::called;
use crate::script::source::Hooks;
use crate::script::source::pass::written_name;
use crate::script::values::module::ModuleValue;
use crate::script::values::panics::Items;
use crate::script::values::raise::{ErrorValue, raise, site_of};
use crate::script::values::types::{Cell, Tensor};
use crate::tensor::observe;
use rhai::{Dynamic, EvalAltResult, ImmutableString, Module, Position, Shared};
use std::any::{Any, TypeId};
use std::cell::LazyCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The session's implementation of the source pass's hooks.
pub struct SessionHooks(pub Arc<Host>);

type RhaiResult = Result<Dynamic, Box<EvalAltResult>>;

impl Hooks for SessionHooks {
    fn keeps_variables(&self) -> bool {
        !self.0.is_last_script.load(Ordering::Relaxed)
    }

    fn has_function(&self, name: &str) -> bool {
        self.0.registered.read().contains(name)
    }

    fn truth(&self, value: Dynamic, at: Position) -> Result<bool, Box<EvalAltResult>> {
        // `if model.training`: a cell has the truth value of its content.
        let value = match value.read_lock::<Cell>().map(|cell| cell.get()) {
            Some(inside) => inside,
            None => value,
        };
        if let Ok(truth) = value.as_bool() {
            return Ok(truth);
        }
        if let Some(tensor) = value.read_lock::<Tensor>() {
            let origin = Origin::at(crate::script::values::raise::site_of(at));
            return observe::truth(&self.0.rt, &tensor).map_err(|diag| raise(diag.or_at(origin, ""), at));
        }
        Err(Box::new(EvalAltResult::ErrorMismatchDataType("bool".into(), value.type_name().into(), at)))
    }

    fn index(&self, value: &Dynamic, at: Position) -> Result<Option<i64>, Box<EvalAltResult>> {
        let Some(tensor) = value.read_lock::<Tensor>() else { return Ok(None) };
        if !tensor.shape().is_empty() || !tensor.dtype().is_int() {
            return Ok(None);
        }
        let origin = self.0.origin_at(site_of(at));
        let item = observe::item(&self.0.rt, &tensor).map_err(|diag| raise(diag.or_at(origin, ""), at))?;
        Ok(Some(item.to_i64()))
    }

    fn enter(&self, site: Site, level: usize) -> u32 {
        self.0.rt.calls.enter(site, level)
    }

    fn leave(&self, entered: u32) {
        self.0.rt.calls.leave(entered);
    }

    fn step(&self, count: u32) -> Option<Dynamic> {
        self.0.watch.step_by(count)
    }

    fn round(&self, count: u32, depth: u32) -> Option<Dynamic> {
        self.0.rt.end_loop_round(depth);
        self.0.watch.step_by(count)
    }

    fn method_noted(&self, name: &ImmutableString, count: usize) {
        self.0.methods.note(name, count, TypeId::of::<ModuleValue>(), called);
    }

    fn methods(&self) -> Option<Shared<Module>> {
        self.0.methods.module()
    }

    fn looks(&self) -> bool {
        self.0.watch.checks_variables()
    }

    fn look(&self, value: &Dynamic) -> Result<(), Box<EvalAltResult>> {
        self.0.watch.look(value).map_err(|diag| raise(diag, Position::NONE))
    }

    fn loses(&self, at: Position) -> bool {
        let lost = self.0.sources.read().lost(site_of(at));
        lost.is_some_and(|lost| !lost.outlives || self.0.is_last_script.load(Ordering::Relaxed))
    }

    fn loses_by_call(&self, at: Position) -> bool {
        let site = site_of(at);
        let is_by_call = self.0.sources.read().lost(site).is_some_and(|lost| lost.by.is_some());
        is_by_call && !self.0.lost.lock().contains(&site)
    }

    fn lost(&self, at: Position) {
        lost::warn(&self.0, site_of(at));
    }

    fn keep_closure(&self, name: ImmutableString, closure: Weak<dyn Any + Send + Sync>) {
        self.0.closures.keep(name, closure);
    }

    fn kept_closure(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.closures.get(name)
    }

    fn profiles(&self) -> bool {
        self.0.rt.profile_now().is_some()
    }

    fn function_begins(&self, name: &str, at: Position) {
        let now = self.moment();
        self.0.function_times.lock().enter(written_name(name), site_of(at), now);
    }

    fn function_ends(&self) {
        let now = self.moment();
        self.0.function_times.lock().leave(now);
    }

    fn items(&self, value: Dynamic) -> Option<Items> {
        iterate::items(&self.0, value)
    }

    fn within(
        &self,
        word: &'static str,
        value: Option<&Dynamic>,
        at: Position,
    ) -> Result<Box<dyn Any>, Box<EvalAltResult>> {
        match devices::enter(&self.0, word, value) {
            Ok(restore) => Ok(Box::new(restore)),
            Err(diag) => {
                let here = self.0.origin_at(site_of(at));
                let mut diag = diag.or_at(here, "here");
                diag.labels
                    .iter_mut()
                    .filter(|label| label.origin.user.is_none())
                    .for_each(|label| label.origin = here);
                Err(raise(diag, at))
            }
        }
    }

    fn try_enter(&self) -> u64 {
        // Work that was queued before the block is not part of it: its faults stay unreported until later.
        self.0.rt.current_queue_number()
    }

    fn try_leave(&self, entered: u64, result: RhaiResult) -> RhaiResult {
        let left = result.map_err(crate::script::session::leave::unwrap_exit).map_err(|error| self.as_value(error));
        let by_fault = match &left {
            Err(error) if ends_the_script(error) => return left,
            Err(error) => fault_in(error).filter(|fault| fault.queued >= entered).map(|fault| fault.queued),
            Ok(_) => None,
        };
        match self.leave_block(entered, by_fault.unwrap_or(u64::MAX)) {
            Ok(None) => left,
            Err(stopped) => Err(raise(stopped, Position::NONE)),
            Ok(Some(fault)) => {
                if let Err(EvalAltResult::Exit(..)) = left.as_ref().map_err(|error| &**error) {
                    *self.0.exit_status.lock() = None;
                }
                let fault = match left.err().and_then(|error| words(&error)) {
                    Some(words) => fault.note(format!("the `try` was being left by {words}")),
                    None => fault,
                };
                Err(raise(fault, Position::NONE))
            }
        }
    }
}

/// Whether an error came from a call of the library to the block: its place is known by the calls that are left.
fn is_of_library(error: &EvalAltResult) -> bool {
    let is_call = matches!(error, EvalAltResult::ErrorInFunctionCall(..));
    let EvalAltResult::ErrorRuntime(value, _) = error.unwrap_inner() else { return false };
    is_call
        && value.read_lock::<ErrorValue>().is_some_and(|error| {
            !error.0.is_late && error.0.labels.first().is_some_and(|label| !label.origin.inner.is_none())
        })
}

/// What is thrown again has the stack of that place.
fn diag_at_users_call(error: Box<EvalAltResult>, context: &Context) -> Box<Diag> {
    let mut diag = diagnose(error, context);
    diag.stack.clear();
    diag
}

impl SessionHooks {
    /// Waits for what was queued and saved since `entered`; its earliest error that comes before `left_by`. The others
    /// are spent.
    fn leave_block(&self, entered: u64, left_by: u64) -> crate::base::diag::Result<Option<Box<Diag>>> {
        if self.0.rt.current_queue_number() == entered {
            return Ok(None);
        }
        let saved = self.0.writer.leave_block(&self.0.rt, entered).filter(|diag| diag.queued < left_by);
        let left_by = saved.as_ref().map_or(left_by, |diag| diag.queued);
        Ok(self.0.rt.leave_block(entered, left_by)?.or(saved))
    }

    fn moment(&self) -> Moment {
        let (now_ns, busy_ns) = self.0.rt.profile_now().unwrap_or_default();
        Moment { now_ns, busy_ns }
    }

    /// Rhai's own errors become ours, and ours get a position, so that `catch (e)` has `e.code` and `e.line` for all
    /// of them. Values that the script threw stay as they are.
    fn as_value(&self, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
        let at = error.position();
        let sources = self.0.sources.read().clone();
        let known = LazyCell::new(|| self.0.known_now());
        let is_whole = match error.unwrap_inner() {
            EvalAltResult::ErrorRuntime(value, at) => match value.read_lock::<ErrorValue>() {
                Some(error) => !error.0.labels.is_empty(),
                None => error::is_thrown(*at, &Context { sources: &sources, known: &known }),
            },
            _ => false,
        };
        if ends_the_script(&error) || is_jump(&error) {
            return error;
        }
        if is_whole {
            return if is_of_library(&error) {
                raise(diag_at_users_call(error, &Context { sources: &sources, known: &known }), at)
            } else {
                error
            };
        }
        raise(diagnose(error, &Context { sources: &sources, known: &known }), at)
    }
}

/// Bound: characters of a thrown text that a note shows.
const SHOWN: usize = 80;

/// How a block was left, for a note.
fn words(error: &EvalAltResult) -> Option<String> {
    Some(match error.unwrap_inner() {
        EvalAltResult::Return(..) => "`return`".into(),
        EvalAltResult::LoopBreak(true, ..) => "`break`".into(),
        EvalAltResult::LoopBreak(false, ..) => "`continue`".into(),
        EvalAltResult::Exit(..) => "`exit`".into(),
        EvalAltResult::ErrorRuntime(value, _) => match fault_in(error) {
            Some(diag) => format!("{}: {}", diag.code, diag.message),
            None => match value.read_lock::<rhai::ImmutableString>() {
                Some(text) => format!("`throw {:?}`", text.chars().take(SHOWN).collect::<String>()),
                None => "`throw`".into(),
            },
        },
        _ => return None,
    })
}

/// The diagnostic that an error carries.
fn fault_in(error: &EvalAltResult) -> Option<Box<Diag>> {
    match error.unwrap_inner() {
        EvalAltResult::ErrorRuntime(value, _) => value.read_lock::<ErrorValue>().map(|error| error.0.clone()),
        _ => None,
    }
}

/// What no `try` catches: calls that are too deep are one error, whether their number or the stack is used up first.
fn ends_the_script(error: &EvalAltResult) -> bool {
    matches!(
        error.unwrap_inner(),
        EvalAltResult::ErrorTerminated(..)
            | EvalAltResult::ErrorTooManyOperations(..)
            | EvalAltResult::ErrorStackOverflow(..)
    )
}

/// `return`, `break`, `continue` and `exit` are errors inside the interpreter.
fn is_jump(error: &EvalAltResult) -> bool {
    matches!(error, EvalAltResult::Return(..) | EvalAltResult::LoopBreak(..) | EvalAltResult::Exit(..))
}
