//! `to_json` of any plain value and of tensors. Rhai's own supports maps only, and writes the name of the type for
//! values that it does not know.

use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::base::float_text::float_text;
use crate::base::suggest::unknown_keyword;
use crate::fail;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::language::growing::Growing;
use crate::script::language::text::call::integer;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes of a value in a list that grows; twice while it is copied.
const VALUE: usize = 48;
/// Bound: nesting of values, and so the depth of the recursion.
const DEPTH: usize = 100;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let written = || {
            let indent = values.get(1).map_or(Ok(None), |given| indent(given))?;
            let mut text = Writer { host: &shared, out: Growing::new(&shared), indent, depth: 0 };
            text.value(values[0])?;
            text.out.finish()
        };
        match written() {
            Ok(text) => Ok(text.into()),
            Err(mut diag) => {
                diag.message = format!("`to_json`: {}", diag.message);
                Err(shared.raise(&context, diag, ""))
            }
        }
    };
    raw(module, "to_json", 1, call.clone());
    raw(module, "to_json", 2, call.clone());
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
    let own = FuncRegistration::new("to_json").in_global_namespace();
    own.place_raw_in(&mut module.module, [TypeId::of::<Map>()], func);
    // Rhai's own creates all values before any size is checked.
    let shared = host.clone();
    let parse = move |context: NativeCallContext, text: &str| -> Native {
        let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        shared.watch.room(values.saturating_mul(VALUE)).map_err(|diag| shared.raise(&context, diag, ""))?;
        serde_json::from_str::<Dynamic>(&with_integers(text)).map_err(|error| error.to_string().into())
    };
    FuncRegistration::new("parse_json").in_global_namespace().place_in(&mut module.module, parse);
}

/// A text with ` 0` for `-0`, which its reader makes a float.
fn with_integers(text: &str) -> Cow<'_, str> {
    let mut changed = Cow::Borrowed(text);
    if !text.contains("-0") {
        return changed;
    }
    let (mut in_string, mut is_escaped, mut before) = (false, false, b' ');
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'-' if !in_string && !matches!(before, b'e' | b'E') && is_zero(&text[at + 1..]) => {
                changed.to_mut().replace_range(at..=at, " ");
            }
            _ => {}
        }
        before = byte;
    }
    changed
}

/// Whether a number that begins a text is the integer 0.
fn is_zero(text: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E');
    text.strip_prefix('0').is_some_and(|rest| !rest.starts_with(goes_on))
}

/// How many blanks deeper each value stands: `#{indent: 2}`, or 2; none where all is on one line.
fn indent(given: &Dynamic) -> Result<Option<usize>> {
    let by_name = given.read_lock::<Map>().map(|map| map.clone());
    if let Some(unknown) = by_name.iter().flat_map(Map::keys).find(|key| *key != "indent") {
        return Err(unknown_keyword(unknown, &["indent"]));
    }
    let value = by_name.map_or_else(|| given.clone(), |map| map.get("indent").cloned().unwrap_or(Dynamic::UNIT));
    if value.is_unit() {
        return Ok(None);
    }
    match integer("indent", &value)? {
        // Bound: deeper ones are typing errors.
        blanks @ 0..=100 => Ok(Some(blanks as usize)),
        blanks => fail!(VALUE, "`indent` is at least 0 and at most 100, not {blanks}"),
    }
}

/// The text that is written.
struct Writer<'h> {
    host: &'h Host,
    out: Growing<'h>,
    indent: Option<usize>,
    depth: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Dynamic) -> Result<()> {
        if self.depth > DEPTH {
            fail!(VALUE, "values are nested more than {DEPTH} deep");
        }
        if let Some(array) = value.read_lock::<Array>() {
            return self.listed(array.iter(), ["[", "]"], Writer::value);
        }
        if let Some(set) = value.read_lock::<crate::script::values::set::Set>() {
            let all: Vec<&Dynamic> = set.iter().collect();
            return self.listed(all.into_iter(), ["[", "]"], Writer::value);
        }
        if let Some(map) = value.read_lock::<Map>() {
            return self.listed(map.iter(), ["{", "}"], |text, (name, item)| {
                quoted(name, &mut text.out)?;
                text.out.push(if text.indent.is_some() { ": " } else { ":" })?;
                text.value(item)
            });
        }
        if let Some(tensor) = value.read_lock::<Tensor>() {
            let tensor = tensor.clone();
            let numbers = observe::scalars(&self.host.rt, &tensor)?;
            return self.nested(&tensor.shape(), &mut numbers.into_iter());
        }
        let out = &mut self.out;
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
        &mut self,
        items: impl Iterator<Item = T>,
        [open, close]: [&str; 2],
        mut one: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.out.push(open)?;
        self.depth += 1;
        let mut is_empty = true;
        for item in items {
            if !is_empty {
                self.out.push(",")?;
            }
            is_empty = false;
            self.new_line()?;
            one(self, item)?;
        }
        self.depth -= 1;
        if !is_empty {
            self.new_line()?;
        }
        self.out.push(close)
    }

    fn new_line(&mut self) -> Result<()> {
        let Some(indent) = self.indent else { return Ok(()) };
        self.out.push("\n")?;
        self.out.push(&" ".repeat(indent * self.depth))
    }

    /// A tensor's elements as nested lists.
    fn nested(&mut self, shape: &[usize], numbers: &mut impl Iterator<Item = Scalar>) -> Result<()> {
        let out = &mut self.out;
        let Some((&size, inner)) = shape.split_first() else {
            return match numbers.next() {
                Some(Scalar::Int(i)) => out.push(&i.to_string()),
                Some(Scalar::Bool(on)) => out.push(if on { "true" } else { "false" }),
                Some(Scalar::Float(x)) if x.is_finite() => out.push(&float_text(x)),
                Some(Scalar::Float(x)) => fail!(VALUE, "JSON has no number {x}"),
                None => Ok(()),
            };
        };
        self.listed(0..size, ["[", "]"], |text, _| text.nested(inner, numbers))
    }
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
