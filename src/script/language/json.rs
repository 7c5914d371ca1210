//! `to_json` of any plain value and of tensors. Rhai's own supports maps only, and writes the name of the type for
//! values that it does not know.

use crate::base::diag::Result;
use crate::base::float_text::float_text;
use crate::fail;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::language::growing::Growing;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

/// Bytes of a value in a list that grows; twice while it is copied.
const VALUE: usize = 48;
/// Bound: nesting of values, and so the depth of the recursion.
const DEPTH: usize = 100;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let mut out = Growing::new(&shared);
        match write(&shared, values[0], &mut out, 0).and_then(|()| out.finish()) {
            Ok(text) => Ok(text.into()),
            Err(mut diag) => {
                diag.message = format!("`to_json`: {}", diag.message);
                Err(shared.raise(&context, diag, ""))
            }
        }
    };
    raw(module, "to_json", 1, call.clone());
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
    let own = FuncRegistration::new("to_json").in_global_namespace();
    own.place_raw_in(&mut module.module, [TypeId::of::<Map>()], func);
    // Rhai's own creates all values before any size is checked.
    let shared = host.clone();
    let parse = move |context: NativeCallContext, text: &str| -> Native {
        let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        shared.watch.room(values.saturating_mul(VALUE)).map_err(|diag| shared.raise(&context, diag, ""))?;
        serde_json::from_str::<Dynamic>(text).map_err(|error| error.to_string().into())
    };
    FuncRegistration::new("parse_json").in_global_namespace().place_in(&mut module.module, parse);
}

fn write(host: &Host, value: &Dynamic, out: &mut Growing, depth: usize) -> Result<()> {
    if depth > DEPTH {
        fail!(VALUE, "values are nested more than {DEPTH} deep");
    }
    if let Some(array) = value.read_lock::<Array>() {
        return listed(array.iter(), ["[", "]"], out, |item, out| write(host, item, out, depth + 1));
    }
    if let Some(set) = value.read_lock::<crate::script::values::set::Set>() {
        let all: Vec<&Dynamic> = set.iter().collect();
        return listed(all.into_iter(), ["[", "]"], out, |item, out| write(host, item, out, depth + 1));
    }
    if let Some(map) = value.read_lock::<Map>() {
        return listed(map.iter(), ["{", "}"], out, |(name, item), out| {
            quoted(name, out)?;
            out.push(":")?;
            write(host, item, out, depth + 1)
        });
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        let tensor = tensor.clone();
        let numbers = observe::scalars(&host.rt, &tensor)?;
        return nested(&tensor.shape(), &mut numbers.into_iter(), out);
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return quoted(&text, out);
    }
    if let Ok(c) = value.as_char() {
        return quoted(c.encode_utf8(&mut [0; 4]), out);
    }
    match (value.as_int(), value.as_float(), value.as_bool()) {
        (Ok(i), ..) => out.push(&i.to_string()),
        (_, Ok(x), _) if x.is_finite() => out.push(&float_text(x)),
        (_, Ok(x), _) => fail!(VALUE, "JSON has no number {x}"),
        (.., Ok(on)) => out.push(if on { "true" } else { "false" }),
        _ if value.is_unit() => out.push("null"),
        _ => fail!(ARGUMENT_TYPE, "{} has no form in JSON", type_names::of_value(value)),
    }
}

fn listed<T>(
    items: impl Iterator<Item = T>,
    [open, close]: [&str; 2],
    out: &mut Growing,
    mut one: impl FnMut(T, &mut Growing) -> Result<()>,
) -> Result<()> {
    out.push(open)?;
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(",")?;
        }
        one(item, out)?;
    }
    out.push(close)
}

/// A tensor's elements as nested lists.
fn nested(
    shape: &[usize],
    numbers: &mut impl Iterator<Item = crate::base::dtype::Scalar>,
    out: &mut Growing,
) -> Result<()> {
    use crate::base::dtype::Scalar;
    let Some((&size, inner)) = shape.split_first() else {
        return match numbers.next() {
            Some(Scalar::Int(i)) => out.push(&i.to_string()),
            Some(Scalar::Bool(on)) => out.push(if on { "true" } else { "false" }),
            Some(Scalar::Float(x)) if x.is_finite() => out.push(&float_text(x)),
            Some(Scalar::Float(x)) => fail!(VALUE, "JSON has no number {x}"),
            None => Ok(()),
        };
    };
    listed(0..size, ["[", "]"], out, |_, out| nested(inner, numbers, out))
}

fn quoted(text: &str, out: &mut Growing) -> Result<()> {
    out.push("\"")?;
    for c in text.chars() {
        match c {
            '"' => out.push("\\\""),
            '\\' => out.push("\\\\"),
            '\n' => out.push("\\n"),
            '\t' => out.push("\\t"),
            c if c.is_control() => out.push(&format!("\\u{:04x}", c as u32)),
            c => out.push(c.encode_utf8(&mut [0; 4])),
        }?;
    }
    out.push("\"")
}
