//! From values to text: `print`, `to_string`, interpolation, and `+`, `+=` and `append` of a text and any value.
//!
//! Rhai's own functions ignore an error of converting to text and write the type name instead; a tensor that a fault
//! has reached must raise that fault wherever it becomes text. `show.rs` formats the values.

use crate::base::float_text::float_text;
use crate::script::bind::rows;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::growth::SizeCheck;
use crate::script::language::show;
use crate::script::values::ascii;
use crate::script::values::module::ModuleValue;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::types::Tensor;
use rhai::{
    Array, Dynamic, EvalAltResult, FuncRegistration, Identifier, ImmutableString, Map, NativeCallContext, RhaiFunc,
};
use std::any::TypeId;
use std::fmt::Write;
use std::sync::Arc;

/// Bound: values of one `print`.
const MOST_PRINTED: usize = 15;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    printed(module, host);
    interpolated(module, host);
    joined(module, host);
}

/// Rhai passes what `print` and `debug` return to its callback.
fn printed(module: &mut Natives, host: &Arc<Host>) {
    for arity in (0..=MOST_PRINTED).filter(|arity| *arity != 1) {
        let shared = host.clone();
        rows::raw(module, "print", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            shared.rt.note_call(shared.origin(&context));
            show::several(&shared, values).map(Dynamic::from).map_err(|diag| shared.raise(&context, diag, ""))
        });
    }
    for name in ["to_string", "to_debug", "print", "debug"] {
        let shared = host.clone();
        let print = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            match plain_text(values[0]) {
                Some(text) => Ok(text.into()),
                None => shown(&shared, &context, values[0]).map(Dynamic::from),
            }
        };
        rows::raw(module, name, 1, print.clone());
        // Rhai has its own functions for these types, which would take precedence over one for any type.
        for kind in [TypeId::of::<Map>(), TypeId::of::<Array>(), TypeId::of::<f64>()] {
            let func =
                RhaiFunc::Method { func: Arc::new(print.clone()), has_context: true, is_pure: true, is_volatile: true };
            FuncRegistration::new(name).in_global_namespace().place_raw_in(&mut module.module, [kind], func);
        }
    }
}

fn shown(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Result<String, Box<EvalAltResult>> {
    host.rt.note_call(host.origin(context));
    show::value(host, value).map_err(|diag| host.raise(context, diag, ""))
}

/// The text of a number, truth, character or text: what no device has to tell first.
pub fn plain_text(value: &Dynamic) -> Option<ImmutableString> {
    if value.is_string() {
        return value.read_lock::<ImmutableString>().map(|text| text.clone());
    }
    if value.is_int() {
        return value.as_int().ok().map(|int| int_text(int).into());
    }
    if value.is_float() {
        return value.as_float().ok().map(|x| float_text(x).into());
    }
    if value.is_char() {
        return value.as_char().ok().map(ascii::text_of);
    }
    value.is_bool().then(|| if value.as_bool() == Ok(true) { "true".into() } else { "false".into() })
}

/// An integer's digits, made where a short text stands: no memory is asked for.
fn int_text(int: i64) -> Identifier {
    let mut text = Identifier::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{int}");
    text
}

/// A value as text.
fn text(host: &Host, context: &NativeCallContext, value: &mut Dynamic) -> Result<ImmutableString, Box<EvalAltResult>> {
    if let Some(text) = plain_text(value) {
        return Ok(text);
    }
    if value.is_array() || value.is_map() || value.is::<ModuleValue>() || value.is::<Tensor>() {
        return shown(host, context, value).map(Into::into);
    }
    // Types of the host program and Rhai's own have their own `to_string`.
    let converted = context.call_native_fn_raw("to_string", true, &mut [value])?;
    let kind = converted.type_name();
    converted.into_immutable_string().or_else(|_| Ok(context.engine().map_type_name(kind).into()))
}

/// The function that the source pass inserts into `${..}`.
fn interpolated(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    rows::raw(module, "__text", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        text(&shared, &context, values[0]).map(Dynamic::from)
    });
}

/// `"loss " + x`, `x + " is the loss"`, `t += x`, `t.append(x)`.
fn joined(module: &mut Natives, host: &Arc<Host>) {
    let own = |name: &str| FuncRegistration::new(name).in_global_namespace();
    let shared = host.clone();
    let after = move |context: NativeCallContext, before: &mut ImmutableString, mut value: Dynamic| -> Native {
        join(&shared, &context, before.clone(), &text(&shared, &context, &mut value)?)
    };
    own("+").with_purity(true).place_in(&mut module.module, after);
    let shared = host.clone();
    let before = move |context: NativeCallContext, value: &mut Dynamic, after: ImmutableString| -> Native {
        let value = text(&shared, &context, value)?;
        join(&shared, &context, value, &after)
    };
    own("+").with_purity(true).place_in(&mut module.module, before);
    for name in ["+=", "append"] {
        let shared = host.clone();
        let grown = move |context: NativeCallContext, whole: &mut ImmutableString, mut value: Dynamic| -> Native {
            let more = text(&shared, &context, &mut value)?;
            SizeCheck { host: &shared, context: &context }.text(whole.len() + more.len())?;
            whole.make_mut().push_str(&more);
            Ok(Dynamic::UNIT)
        };
        own(name).with_purity(false).place_in(&mut module.module, grown);
    }
}

fn join(host: &Host, context: &NativeCallContext, mut before: ImmutableString, after: &str) -> Native {
    if !after.is_empty() {
        SizeCheck { host, context }.text(before.len() + after.len())?;
        before.make_mut().push_str(after);
    }
    Ok(before.into())
}
