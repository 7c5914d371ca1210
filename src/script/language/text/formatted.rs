//! Texts made of values: `format`, `join`, repetition.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::bind::convert;
use crate::script::bind::rows::{Natives, WIDE_ARITY, raw};
use crate::script::host::Host;
use crate::script::language::format;
use crate::script::language::format::{Field, Part};
use crate::script::language::growing::Growing;
use crate::script::language::growth::SizeCheck;
use crate::script::language::show;
use crate::script::language::walk;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString, Map, NativeCallContext};
use std::sync::Arc;

/// Bound: arguments of one `format`.
const MAX_ARGS: usize = WIDE_ARITY;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=MAX_ARGS {
        register_format(module, host, "format", arity, formatted);
    }
    // Inserted by the source pass for `${x:.2f}` between backticks.
    register_format(module, host, "__format", 2, |host, values| {
        one(host, values[0], &values[1].read_lock::<ImmutableString>().map_or(String::new(), |spec| spec.to_string()))
    });
    joined(module, host);
    repeated(module, host);
}

fn register_format(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    arity: usize,
    write: fn(&Host, &[&mut Dynamic]) -> Result<String>,
) {
    let host = host.clone();
    raw(module, name, arity, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        write(&host, values).map(Dynamic::from).map_err(|mut diag| {
            diag.message = format!("`format`: {}", diag.message);
            host.raise(&context, diag, "")
        })
    });
}

/// `"{:.2f}".format(x)`, or `format(x, ".2f")`.
fn formatted(host: &Host, values: &[&mut Dynamic]) -> Result<String> {
    let (first, rest) = (&*values[0], &values[1..]);
    let text = first.read_lock::<ImmutableString>().map(|text| text.to_string());
    match text {
        Some(text) => match rest {
            [spec] if let Some(spec) = spec_of(&text, spec) => one(host, first, &spec),
            _ => filled(host, &text, rest),
        },
        None if rest.len() == 1 => match rest[0].read_lock::<ImmutableString>() {
            Some(spec) => one(host, first, &spec),
            None => fail!(ARGUMENT_TYPE, "a format is a string, as in `format(x, \".2f\")`"),
        },
        None => fail!(ARGUMENT_TYPE, "a value and its format are expected, as in `format(x, \".2f\")`"),
    }
}

/// The format of `format("text", ">8")`, where the text has no places for values.
fn spec_of(text: &str, spec: &Dynamic) -> Option<ImmutableString> {
    let spec = spec.read_lock::<ImmutableString>()?.clone();
    let has_places = format::parts(text).is_ok_and(|parts| parts.iter().any(|part| matches!(part, Part::Place { .. })));
    (!has_places && (spec.is_empty() || format::validate(&spec).is_ok())).then_some(spec)
}

/// One value; without a format, as `print` shows it.
pub fn one(host: &Host, value: &Dynamic, spec: &str) -> Result<String> {
    if spec.is_empty() {
        return show::value(host, value);
    }
    let single = value.read_lock::<Tensor>().map(|tensor| tensor.clone());
    let item = match &single {
        Some(tensor) if tensor.numel() == 1 => {
            crate::script::bind::properties::number(observe::item(&host.rt, tensor)?)
        }
        Some(tensor) => {
            let text = format!("a tensor of {} elements has no format", tensor.numel());
            return Err(Diag::error(code::ARGUMENT_TYPE, text)
                .help("format one element, or round them all: `x.round(#{decimals: 2})`"));
        }
        None => value.clone(),
    };
    let plain = match (item.as_int(), item.as_float()) {
        (Ok(i), _) => format::Item::Int(i),
        (_, Ok(x)) => format::Item::Float(x),
        _ if let Ok(on) = item.as_bool()
            && format::is_of_numbers(spec) =>
        {
            format::Item::Int(on as i64)
        }
        _ if item.is_array() || item.is_map() => {
            fail!(ARGUMENT_TYPE, "{} has no format", type_names::of_value(&item))
        }
        _ => format::Item::Text(show::value(host, &item)?),
    };
    format::format_value(&plain, spec).or_else(|why| fail!(VALUE, "{why}"))
}

fn filled(host: &Host, text: &str, values: &[&mut Dynamic]) -> Result<String> {
    let parts = format::parts(text).or_else(|why| fail!(VALUE, "{why}"))?;
    let named = parts.iter().any(|part| matches!(part, Part::Place { of: Field::Named(_), .. }));
    let map = values.last().filter(|_| named).and_then(|last| last.read_lock::<Map>().map(|map| map.clone()));
    let count = values.len() - map.is_some() as usize;
    let mut given = Given { values: &values[..count], map, next: 0, used: 0 };
    let mut out = Growing::new(host);
    for part in &parts {
        match part {
            Part::Text(text) => out.push(text)?,
            Part::Place { of, spec } => {
                let value = given.value(of)?;
                let spec = given.spec(host, spec)?;
                out.push(&one(host, &value, &spec)?)?;
            }
        }
    }
    let used = given.used;
    if used < count {
        fail!(VALUE, "the text has places for {used} values, and {count} were given; a place is `{{}}` or `{{:.2f}}`");
    }
    out.finish()
}

/// The values of one `format`.
struct Given<'a, 'v> {
    values: &'a [&'v mut Dynamic],
    map: Option<Map>,
    next: usize,
    used: usize,
}

impl Given<'_, '_> {
    fn value(&mut self, of: &Field) -> Result<Dynamic> {
        let at = match of {
            Field::Named(name) => match self.map.as_ref().and_then(|map| map.get(name.as_str())) {
                Some(value) => return Ok(value.clone()),
                None => fail!(VALUE, "there is no value `{name}`; names stand in a map: `.format(#{{{name}: x}})`"),
            },
            Field::Next => {
                self.next += 1;
                self.next - 1
            }
            Field::At(at) => *at,
        };
        self.used = self.used.max(at + 1);
        match self.values.get(at) {
            Some(value) => Ok(value.flatten_clone()),
            None => fail!(VALUE, "place {at} of the text has no value; {} were given", self.values.len()),
        }
    }

    /// A specification with the values of the places in it: `>{width}`.
    fn spec(&mut self, host: &Host, spec: &str) -> Result<String> {
        if !spec.contains('{') {
            return Ok(spec.to_string());
        }
        let mut whole = String::new();
        for part in format::parts(spec).or_else(|why| fail!(VALUE, "{why}"))? {
            match part {
                Part::Text(text) => whole += &text,
                Part::Place { of, spec } => {
                    let value = self.value(&of)?;
                    whole += &one(host, &value, &spec)?;
                }
            }
        }
        Ok(whole)
    }
}

fn of(module: &mut Natives, name: &'static str) -> FuncRegistration {
    module.note(name);
    FuncRegistration::new(name).in_global_namespace()
}

/// `", ".join(words)` and `words.join(", ")`.
fn joined(module: &mut Natives, host: &Arc<Host>) {
    fn join(host: &Host, context: &NativeCallContext, words: &Array, between: &str) -> Native {
        let all = || -> Result<String> {
            let mut out = Growing::new(host);
            for (at, word) in words.iter().enumerate() {
                if at > 0 {
                    out.push(between)?;
                }
                show::push(host, word, &mut out)?;
            }
            out.finish()
        };
        all().map(Dynamic::from).map_err(|diag| host.raise(context, diag, ""))
    }
    let shared = host.clone();
    let text_first = move |context: NativeCallContext, between: &str, words: Array| -> Native {
        join(&shared, &context, &words, between)
    };
    of(module, "join").place_in(&mut module.module, text_first);
    let shared = host.clone();
    let walked = move |context: NativeCallContext, between: &str, values: Dynamic| -> Native {
        join(&shared, &context, &walk::elements(&shared, &context, &values)?, between)
    };
    of(module, "join").place_in(&mut module.module, walked);
    let shared = host.clone();
    let array_first = move |context: NativeCallContext, words: &mut Array, between: &str| -> Native {
        join(&shared, &context, words, between)
    };
    of(module, "join").place_in(&mut module.module, array_first);
}

/// `"=" * 40`.
fn repeated(module: &mut Natives, host: &Arc<Host>) {
    fn repeat(host: &Host, context: &NativeCallContext, text: &str, times: i64) -> Native {
        let times = usize::try_from(times).unwrap_or(0);
        SizeCheck { host, context }.text(text.len().saturating_mul(times))?;
        Ok(text.repeat(times).into())
    }
    let own = || FuncRegistration::new("*").in_global_namespace();
    let shared = host.clone();
    let right = move |context: NativeCallContext, text: &str, times: i64| repeat(&shared, &context, text, times);
    own().place_in(&mut module.module, right);
    let shared = host.clone();
    let left = move |context: NativeCallContext, times: i64, text: &str| repeat(&shared, &context, text, times);
    own().place_in(&mut module.module, left);
    // A float that is a whole number stands for the integer.
    let shared = host.clone();
    own().place_in(&mut module.module, move |context: NativeCallContext, text: &str, times: f64| {
        repeat(&shared, &context, text, convert::times(&context, "string, f64", times)?)
    });
    let shared = host.clone();
    own().place_in(&mut module.module, move |context: NativeCallContext, times: f64, text: &str| {
        repeat(&shared, &context, text, convert::times(&context, "f64, string", times)?)
    });
}
