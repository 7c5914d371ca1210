//! `elementwise("x, y -> z", "z = x * y + 1")`: element-wise functions that a script writes as text.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::Scalar;
use crate::base::quoted::Quoted;
use crate::base::span::Site;
use crate::fail;
use crate::op::elementwise::{Elementwise, Value};
use crate::op::tensor::Tensor;
use crate::script::bind::native::{given, native, text};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::tensor::elementwise;
use rhai::{Dynamic, FnPtr, Map, NativeCallContext};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    native(natives, host, "elementwise", move |_, engine, [params, operation, backward]| {
        // In the library the call's own line, where the texts stand.
        let site = if engine.origin.inner.is_none() { engine.origin.user } else { engine.origin.inner };
        function(&shared, site, params, operation, given(backward))
    });
}

/// A text that the script gave for a parameter.
pub fn quoted(host: &Host, site: Site, (at, name): (usize, &str), value: &Dynamic) -> Result<Quoted> {
    let text = text(name, value)?;
    let sources = host.sources.read();
    let by_name = sources.quoted(&text, site, Focus::Keyword, Some(name));
    if by_name.has_places() {
        return Ok(by_name);
    }
    Ok(sources.quoted(&text, site, Focus::Argument(at), None))
}

fn function(
    host: &Arc<Host>,
    site: Site,
    params: &Dynamic,
    operation: &Dynamic,
    backward: Option<&Dynamic>,
) -> Result<Dynamic> {
    let params = quoted(host, site, (0, "params"), params)?;
    let operation = quoted(host, site, (1, "operation"), operation)?;
    let backward = match backward {
        Some(backward) => Some(quoted(host, site, (2, "backward"), backward)?),
        None => None,
    };
    let function = Arc::new(Elementwise::new(params, operation, backward)?);
    let host = host.clone();
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        host.call(&context, |engine| {
            let given = arguments(&function, values)?;
            let results = elementwise::call(engine, &function, &given).map_err(with_name)?;
            Ok(returned(&function, results))
        })
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn("elementwise", call);
    pointer.map(Dynamic::from).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))
}

#[cold]
fn with_name(mut diag: Box<Diag>) -> Box<Diag> {
    if !diag.is_late && !diag.message.starts_with('`') {
        diag.message = format!("`elementwise`: {}", diag.message);
    }
    diag
}

fn arguments(function: &Elementwise, values: &[&mut Dynamic]) -> Result<Vec<Value>> {
    let names: Vec<&str> = function.inputs().collect();
    if values.len() != names.len() {
        let few = values.len() < names.len();
        let code = if few { code::MISSING_ARGUMENT } else { code::EXTRA_ARGUMENT };
        let (count, found) = (names.len(), values.len());
        let arguments = if count == 1 { "argument" } else { "arguments" };
        let message = format!("the function takes {count} {arguments}, `{}`, not {found}", names.join("`, `"));
        return Err(Diag::error(code, message));
    }
    let mut given = Vec::new();
    for (value, name) in values.iter().zip(names) {
        given.push(argument(value, name)?);
    }
    Ok(given)
}

/// A value of the script as an argument of a kernel.
pub fn argument(value: &Dynamic, name: &str) -> Result<Value> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(Value::Tensor(tensor.clone()));
    }
    let value = value.flatten_clone();
    let number = match (value.as_int(), value.as_float(), value.as_bool()) {
        (Ok(number), ..) => Scalar::Int(number),
        (_, Ok(number), _) => Scalar::Float(number),
        (.., Ok(truth)) => Scalar::Bool(truth),
        _ => fail!(ARGUMENT_TYPE, "`{name}` is a tensor or a number, not {}", type_names::of_value(&value)),
    };
    Ok(Value::Number(number))
}

/// The one result, or a map of several by their names.
fn returned(function: &Elementwise, mut results: Vec<Value>) -> Dynamic {
    if results.len() == 1 {
        return results.pop().map_or(Dynamic::UNIT, plain);
    }
    let named: Map = crate::base::order::map(function.results().map(Into::into).zip(results.into_iter().map(plain)));
    named.into()
}

fn plain(value: Value) -> Dynamic {
    match value {
        Value::Tensor(tensor) => Dynamic::from(tensor),
        Value::Number(Scalar::Bool(truth)) => truth.into(),
        Value::Number(Scalar::Int(number)) => number.into(),
        Value::Number(Scalar::Float(number)) => number.into(),
    }
}
