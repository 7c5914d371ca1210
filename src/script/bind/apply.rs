//! Calls of values: `f(x)` where `f` is a variable, `fs[0](x)`, `make(3)(x)`. A closure is called, a module runs its
//! `forward`; what a variable holds and cannot be called leaves the name to a function.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::{Natives, raw};
use crate::script::bind::signed::MAX_ARITY;
use crate::script::host::Host;
use crate::script::source::hooks::compiled_word;
use crate::script::values::calling;
use crate::script::values::module::fields;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Dynamic, Engine, FnPtr, NativeCallContext};
use std::sync::Arc;

/// What runs when a value is called.
pub enum Callee {
    Closure(FnPtr),
    /// The `forward` of a module, which sees the module as `this`.
    Forward(FnPtr),
}

/// How a value is called; none where it cannot be.
pub fn callee(value: &Dynamic) -> Option<Callee> {
    if value.is_fnptr() {
        return value.read_lock::<FnPtr>().map(|pointer| Callee::Closure(pointer.clone()));
    }
    let map = fields(value)?;
    let forward = map.get("forward")?.read_lock::<FnPtr>()?.clone();
    Some(Callee::Forward(forward))
}

/// Calls a value, if it can be called.
pub fn apply(context: &NativeCallContext, value: &mut Dynamic, arguments: Vec<Dynamic>) -> Option<Native> {
    Some(match callee(value)? {
        Callee::Closure(pointer) => calling::call(context, &pointer, None, arguments),
        Callee::Forward(pointer) => calling::call(context, &pointer, Some(value), arguments),
    })
}

/// The error of a call of what is no function.
pub fn not_callable(value: &Dynamic) -> Box<Diag> {
    let kind = type_names::of_value(value);
    Diag::error(code::TYPE, format!("{kind} cannot be called"))
        .help("closures, functions (`Fn(\"name\")`) and modules with a `forward` can be called")
}

/// `x.__apply(a, b)`, which the source pass writes for `x(a, b)` where `x` is no name.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=MAX_ARITY {
        let shared = host.clone();
        raw(module, "__apply", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let Some((value, arguments)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
            let arguments = arguments.iter_mut().map(|value| value.flatten_clone()).collect();
            match apply(&context, value, arguments) {
                Some(result) => result,
                None => Err(shared.raise(&context, not_callable(value), "")),
            }
        });
    }
}

/// `__either(f, f(x))`, which the source pass writes for `f(x)` where `f` is a variable, or a constant that a function
/// names: `__either(global::F, F(x))`.
pub fn install(engine: &mut Engine) {
    compiled_word(engine, &["__either", "(", "$expr$", ",", "$expr$", ")"]);
}
