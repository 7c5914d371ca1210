//! `exit()` and `exit(n)`: a script ends itself with an exit status. It is not an error: `catch` does not see it, and
//! queued work still completes.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::session::handle::Session;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Dynamic, EvalAltResult};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for arity in 0..=1 {
        let shared = host.clone();
        raw(module, "exit", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let status = values.first().map_or(Ok(0), |value| status(value));
            let status = status.map_err(|diag| shared.raise(&context, diag, ""))?;
            *shared.exit_status.lock() = Some(status);
            let value = values.first().map_or(Dynamic::UNIT, |value| (**value).clone());
            Err(Box::new(EvalAltResult::Exit(value, context.call_position())))
        });
    }
}

/// The `exit` that an error carries, if any: functions that call closures wrap errors of these.
pub fn unwrap_exit(error: Box<EvalAltResult>) -> Box<EvalAltResult> {
    match error.unwrap_inner() {
        EvalAltResult::Exit(value, at) => Box::new(EvalAltResult::Exit(value.clone(), *at)),
        _ => error,
    }
}

/// The result of a text or a call: an `exit` becomes its value.
pub fn exit_as_value(
    result: std::result::Result<Dynamic, Box<EvalAltResult>>,
) -> std::result::Result<Dynamic, Box<EvalAltResult>> {
    result.or_else(|error| match *unwrap_exit(error) {
        EvalAltResult::Exit(value, _) => Ok(value),
        other => Err(Box::new(other)),
    })
}

fn status(value: &Dynamic) -> Result<u8> {
    const HELP: &str = "`throw \"why\"` ends a script with a message and the status 1";
    if value.is_unit() {
        return Ok(0);
    }
    let Ok(number) = value.as_int() else {
        let text = format!("`exit` expects a status from 0 to 255, not {}", type_names::of_value(value));
        return Err(Diag::error(code::ARGUMENT_TYPE, text).help(HELP));
    };
    match u8::try_from(number) {
        Ok(status) => Ok(status),
        Err(_) => fail!(VALUE, "`exit` expects a status from 0 to 255, not {number}"),
    }
}

#[doc(hidden)]
impl Session {
    /// The exit status of the last text, if it ended with `exit`.
    pub fn exit_status(&self) -> Option<u8> {
        *self.host.exit_status.lock()
    }
}
