//! Native functions that take keywords, registered by their entries of the manual: binding, `check` and help use one
//! signature.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::bind::properties::no_tensor;
use crate::script::bind::rows::Natives;
use crate::script::bind::signed::Binder;
use crate::script::host::Host;
use crate::script::manual;
use crate::script::values::panics::GuardedCall;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use rhai::{Dynamic, NativeCallContext};
use std::borrow::Cow;
use std::sync::Arc;

/// Registers the function that the manual describes under a name (`cuda::sleep` as `sleep`). It receives a value for
/// each parameter: the argument, or the default.
pub fn native<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    call: impl Fn(&Host, &mut Engine, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    native_with_help(module, host, name, |diag| diag, call);
}

/// The same; `explain` adds help to the error of a call that does not fit the signature.
pub fn native_with_help<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    explain: fn(Box<Diag>) -> Box<Diag>,
    call: impl Fn(&Host, &mut Engine, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    place_native(module, host, name, explain, Box::new(call));
}

/// What a function is called by, once it has a value for each parameter.
type NativeBody<const N: usize> = dyn Fn(&Host, &mut Engine, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync;

// Compiled once for each number of parameters, not for each function.
fn place_native<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    explain: fn(Box<Diag>) -> Box<Diag>,
    body: Box<NativeBody<N>>,
) {
    let binder = binder(name, N);
    let shared = host.clone();
    let counts = counts(&binder, 0);
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| {
            let keywords = binder.keywords(values);
            let values = binder.borrow(values, keywords.as_ref()).map_err(explain)?;
            body(&shared, engine, values)
        })
    };
    put(module, name, counts, call);
}

/// The same of a method of tensors.
pub fn method<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    call: impl Fn(&mut Engine, &Tensor, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    place_method(module, host, name, Box::new(call));
}

/// The same of a method.
type MethodBody<const N: usize> = dyn Fn(&mut Engine, &Tensor, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync;

fn place_method<const N: usize>(module: &mut Natives, host: &Arc<Host>, name: &str, body: Box<MethodBody<N>>) {
    let binder = binder(name, N);
    let shared = host.clone();
    let counts = counts(&binder, 1);
    let owned_name = name.to_string();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| {
            let tensor = values[0].read_lock::<Tensor>().map(|tensor| tensor.clone());
            let Some(tensor) = tensor else { return Err(no_tensor(&owned_name, values[0])) };
            let keywords = binder.keywords(&values[1..]);
            let values = binder.borrow(&values[1..], keywords.as_ref())?;
            body(engine, &tensor, values)
        })
    };
    put(module, name, counts, call);
}

/// The same of a function that calls script code.
pub fn native_in_context<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    call: impl Fn(&Arc<Host>, &NativeCallContext, [&Dynamic; N]) -> Native + Send + Sync + 'static,
) {
    let binder = binder(name, N);
    let shared = host.clone();
    let counts = counts(&binder, 0);
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let keywords = binder.keywords(values);
        match binder.borrow(values, keywords.as_ref()) {
            Ok(values) => call(&shared, &context, values),
            Err(diag) => Err(shared.raise(&context, diag, "")),
        }
    };
    put(module, name, counts, call);
}

/// Registers a function that takes any values, so many.
pub fn variadic(
    module: &mut Natives,
    name: &str,
    counts: std::ops::RangeInclusive<usize>,
    call: impl Fn(&NativeCallContext, &mut [&mut Dynamic]) -> Native + Send + Sync + 'static,
) {
    put(module, name, counts, move |context, values| call(&context.expect("registered with a context"), values));
}

/// The signature of a function that is described, with as many parameters as its code names.
fn binder(name: &str, params: usize) -> Binder {
    bound_by(manual::native(name), name, params)
}

/// The same of what the manual describes with a form: a method of a type other than tensors.
pub(in crate::script) fn binder_of(form: manual::Form, name: &str, params: usize) -> Binder {
    bound_by(manual::natives().find(|native| native.name == name && native.form == form), name, params)
}

fn bound_by(described: Option<&'static manual::Native>, name: &str, params: usize) -> Binder {
    let described = described.expect("a native function has a line in the manual");
    let signature = described.signature().expect("a function has a signature");
    assert_eq!(signature.params.len(), params, "`{name}` has other parameters in the manual");
    Binder::new(Cow::Borrowed(signature))
}

/// The numbers of arguments that are registered with the interpreter. A missing argument is reported by the
/// signature, which knows keywords.
pub(in crate::script) fn counts(binder: &Binder, receiver: usize) -> std::ops::RangeInclusive<usize> {
    let (least, most) = binder.signature.counts();
    match binder.signature.takes_keywords() {
        // One argument more: the signature's message is better than the interpreter's.
        true => receiver + least.min(1)..=receiver + most + 1,
        false => receiver + least..=receiver + most,
    }
}

fn put(
    module: &mut Natives,
    name: &str,
    counts: std::ops::RangeInclusive<usize>,
    call: impl Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native + Send + Sync + 'static,
) {
    let call = GuardedCall::new(call);
    match name.split_once("::") {
        Some((_, name)) => {
            module.note(name);
            module.place_qualified(name, counts, &call);
        }
        None => {
            module.note(name);
            module.place(name, counts, &call);
        }
    }
}

/// The argument, if one was passed.
pub fn given(value: &Dynamic) -> Option<&Dynamic> {
    (!value.is_unit()).then_some(value)
}

/// The value of a boolean parameter.
pub fn flag(name: &str, value: &Dynamic) -> Result<bool> {
    let not = |_| {
        let text = format!("`{name}` is true or false, not {}", type_names::of_value(value));
        Diag::error(code::ARGUMENT_TYPE, text)
    };
    value.as_bool().map_err(not)
}

/// The value of a string parameter.
pub fn text(name: &str, value: &Dynamic) -> Result<String> {
    match value.read_lock::<rhai::ImmutableString>() {
        Some(text) => Ok(text.to_string()),
        None => {
            let text = format!("`{name}` is a string, not {}", type_names::of_value(value));
            Err(Diag::error(code::ARGUMENT_TYPE, text))
        }
    }
}

/// Puts the function's name in front of an error message.
pub fn named(name: &str) -> impl Fn(Box<Diag>) -> Box<Diag> {
    move |mut diag| {
        if !diag.is_late && !diag.message.starts_with('`') {
            diag.message = format!("`{name}`: {}", diag.message);
        }
        diag
    }
}
