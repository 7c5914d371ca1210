//! Formats of values in texts: `${x:.3f}`, `"{:.3f}".format(x)`, `format(x, ".3f")`.

use super::flow::Flow;
use super::syntax::Shown;
use super::value::Value;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::language::format::{self, Field, Item, Part};

impl<'a> Flow<'a> {
    /// A value in an interpolated text.
    pub(super) fn shown(&mut self, shown: &'a Shown) {
        let value = self.expr(&shown.value);
        if let Some(spec) = &shown.format
            && !spec.contains('{')
            && let Err(diag) = formatted(&value, spec)
        {
            self.report_at(shown.colon, diag, "here");
        }
    }

    /// `format(x, ".3f")`, `"{:.3f}".format(x)`.
    pub(super) fn format_call(&mut self, token: u32, values: &[Value]) {
        let judged = match values {
            [Value::Str(Some(text)), rest @ ..] if text.contains('{') => filled(text, rest),
            [value, Value::Str(Some(spec))] if !matches!(value, Value::Str(_)) => formatted(value, spec),
            _ => Ok(()),
        };
        if let Err(diag) = judged {
            self.report_at(token, diag, "in this call");
        }
    }
}

/// The fields of a text and the values for them.
fn filled(text: &str, values: &[Value]) -> Result<()> {
    let parts = format::parts(text).map_err(refused)?;
    let mut next = 0;
    for part in &parts {
        let Part::Place { of, spec } = part else { continue };
        // Its width may be any.
        if spec.contains('{') {
            return Ok(());
        }
        let at = match of {
            // Names are keys of a map.
            Field::Named(_) => return Ok(()),
            Field::Next => {
                next += 1;
                next - 1
            }
            Field::At(at) => *at,
        };
        match values.get(at) {
            Some(value) => formatted(value, spec)?,
            None => {
                return Err(refused(format!("place {at} of the text has no value; {} were given", values.len())));
            }
        }
    }
    Ok(())
}

/// Whether a specification fits a value, as far as it is known.
fn formatted(value: &Value, spec: &str) -> Result<()> {
    if spec.is_empty() {
        return Ok(());
    }
    let item = match value {
        Value::Int(n) => Item::Int(n.unwrap_or(1)),
        Value::Float(x) => Item::Float(x.unwrap_or(1.5)),
        Value::Bool(_) if format::is_of_numbers(spec) => Item::Int(1),
        Value::Str(_) | Value::Bool(_) | Value::Unit => Item::Text(String::new()),
        Value::Tensor(Some(tensor)) if tensor.numel() != 1 => {
            let text = format!("`format`: a tensor of {} elements has no format", tensor.numel());
            return Err(Diag::error(code::ARGUMENT_TYPE, text)
                .help("format one element, or round them all: `x.round(#{decimals: 2})`"));
        }
        Value::Array(_) | Value::Map(_) => {
            return Err(Diag::error(code::ARGUMENT_TYPE, format!("`format`: {} has no format", value.kind())));
        }
        _ => return format::validate(spec).map_err(refused),
    };
    format::format_value(&item, spec).map(drop).map_err(refused)
}

fn refused(why: String) -> Box<Diag> {
    Diag::error(code::VALUE, format!("`format`: {why}"))
}
