//! Values as text: `print(x)`, interpolation, `to_string`.

use crate::base::bytes::element;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::base::float_text::float_text;
use crate::base::print::{self, Printed, format};
use crate::op::tensor::View;
use crate::script::host::Host;
use crate::script::language::growing::{Growing, character, literal};
use crate::script::source::pass::written_name;
use crate::script::values::generator::GeneratorValue;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// `tensor([[1., 2.]], device=cuda:1)`.
pub fn tensor(host: &Host, x: &Tensor) -> Result<String> {
    let view = observe::settle(&host.rt, x)?;
    let grad_fn = crate::script::bind::properties::grad_fn(x);
    let printed = Printed {
        shape: view.shape(),
        dtype: view.dtype,
        device: view.buffer.device,
        requires_grad: x.requires_grad() && grad_fn.is_none(),
        grad_fn: grad_fn.as_deref(),
        default_dtype: host.rt.default_float(),
    };
    formatted(host, &view, &printed)
}

/// Elements alone, without device, dtype and gradient.
pub fn bare(host: &Host, x: &Tensor) -> Result<String> {
    let view = observe::settle(&host.rt, x)?;
    let printed = Printed { default_dtype: view.dtype, ..Printed::new(view.shape(), view.dtype) };
    formatted(host, &view, &printed)
}

/// Elements that are shown of a tensor: the indices of each dimension, and the texts in row-major order.
pub fn elements(host: &Host, x: &Tensor) -> Result<(Vec<Vec<usize>>, Vec<String>)> {
    let view = observe::settle(&host.rt, x)?;
    let options = *host.print.options.lock();
    let mut room = Growing::new(host);
    let at = reading(host, &view);
    let texts = print::elements(view.shape(), view.dtype, &options, at, &mut |bytes| room.reserve(bytes))?;
    Ok((print::visible(view.shape(), &options), texts))
}

fn formatted(host: &Host, view: &Arc<View>, printed: &Printed) -> Result<String> {
    let options = *host.print.options.lock();
    let mut room = Growing::new(host);
    format(printed, &options, reading(host, view), &mut |bytes| room.reserve(bytes))
}

/// The element at an index; of complex numbers with a last index for the part.
fn reading<'h>(host: &'h Host, view: &Arc<View>) -> impl FnMut(&[usize]) -> Scalar + use<'h> {
    let read = view.clone().as_real();
    move |index: &[usize]| {
        let at: isize = index.iter().zip(&read.layout.strides).map(|(&i, &s)| i as isize * s).sum();
        element(&host.rt.peek_bytes(&read, read.layout.offset.wrapping_add_signed(at)), read.dtype)
    }
}

/// Any value as `print` shows it.
pub fn value(host: &Host, value: &Dynamic) -> Result<String> {
    if let Some(x) = value.read_lock::<Tensor>() {
        return tensor(host, &x);
    }
    if let Some(text) = value.read_lock::<rhai::ImmutableString>() {
        return Ok(text.to_string());
    }
    let mut text = Growing::new(host);
    push(host, value, &mut text)?;
    text.finish()
}

/// A value as it is shown inside an array: strings are quoted.
pub fn quoted(host: &Host, value: &Dynamic) -> Result<String> {
    let mut text = Growing::new(host);
    nested(host, value, &mut text)?;
    text.finish()
}

/// Values separated by spaces, as `print` shows several; a last map `#{sep: ", "}` sets the separator.
pub fn several(host: &Host, values: &[&mut Dynamic]) -> Result<String> {
    let separator = values.last().filter(|_| values.len() > 1).and_then(|last| {
        let map = last.read_lock::<Map>()?;
        let text = map.get("sep")?.read_lock::<rhai::ImmutableString>()?.to_string();
        (map.len() == 1).then_some(text)
    });
    let shown = &values[..values.len() - separator.is_some() as usize];
    let mut text = Growing::new(host);
    for (at, item) in shown.iter().enumerate() {
        if at > 0 {
            text.push(separator.as_deref().unwrap_or(" "))?;
        }
        push(host, item, &mut text)?;
    }
    text.finish()
}

/// Appends a value as `print` shows it.
pub fn push(host: &Host, item: &Dynamic, to: &mut Growing) -> Result<()> {
    if let Ok(c) = item.as_char() {
        return to.push(c.encode_utf8(&mut [0; 4]));
    }
    match item.read_lock::<rhai::ImmutableString>() {
        Some(text) => to.push(&text),
        None => nested(host, item, to),
    }
}

/// A value inside an array or map: strings are quoted.
fn nested(host: &Host, item: &Dynamic, to: &mut Growing) -> Result<()> {
    if let Some(array) = item.read_lock::<Array>() {
        to.push("[")?;
        for (at, item) in array.iter().enumerate() {
            to.push(if at > 0 { ", " } else { "" })?;
            nested(host, item, to)?;
        }
        return to.push("]");
    }
    if let Some(set) = item.read_lock::<crate::script::values::set::Set>() {
        to.push("set([")?;
        for (at, item) in set.iter().enumerate() {
            to.push(if at > 0 { ", " } else { "" })?;
            nested(host, item, to)?;
        }
        return to.push("])");
    }
    if let Some(text) = crate::script::nn::outline::module(item) {
        return to.push(&text);
    }
    if let Some(map) = item.read_lock::<Map>() {
        if let Some((name, groups)) = crate::script::nn::outline::optimizer(&map) {
            drop(map);
            return optimizer(host, &name, &groups, to);
        }
        to.push("#{")?;
        for (at, (name, item)) in map.iter().enumerate() {
            to.push(if at > 0 { ", " } else { "" })?;
            to.push(name)?;
            to.push(": ")?;
            nested(host, item, to)?;
        }
        return to.push("}");
    }
    if let Some(text) = item.read_lock::<rhai::ImmutableString>() {
        return to.push_quoted(&text);
    }
    if let Ok(x) = item.as_float() {
        return to.push(&float_text(x));
    }
    if let Ok(c) = item.as_char() {
        return to.push(&character(c));
    }
    if item.is_unit() {
        return to.push("()");
    }
    if let Some(tensor) = item.read_lock::<Tensor>() {
        let tensor = tensor.clone();
        return to.push(&self::tensor(host, &tensor)?);
    }
    if let Some(sparse) = item.read_lock::<crate::script::values::sparse::Sparse>() {
        return to.push(&super::show_sparse::sparse(host, &sparse.clone())?);
    }
    if let Some(cell) = item.read_lock::<crate::script::values::types::Cell>() {
        // Not the content of arrays and maps: a cell may be inside its own content.
        let inner = cell.get();
        if inner.is_array() || inner.is_map() || inner.read_lock::<crate::script::values::types::Cell>().is_some() {
            return to.push("cell");
        }
        to.push("cell(")?;
        nested(host, &inner, to)?;
        return to.push(")");
    }
    to.push(&plain(item))
}

/// The groups of an optimizer with their settings, as PyTorch shows them.
fn optimizer(host: &Host, name: &str, groups: &[Map], to: &mut Growing) -> Result<()> {
    to.push(&format!("{name} (\n"))?;
    for (at, settings) in groups.iter().enumerate() {
        to.push(&format!("Parameter Group {at}\n"))?;
        for (key, value) in settings {
            to.push(&format!("    {key}: "))?;
            nested(host, value, to)?;
            to.push("\n")?;
        }
    }
    to.push(")")
}

fn plain(item: &Dynamic) -> String {
    use crate::script::values::types::{DTypeValue, DeviceValue};
    if let Some(dtype) = item.read_lock::<DTypeValue>() {
        return dtype.0.to_string();
    }
    if let Some(device) = item.read_lock::<DeviceValue>() {
        return device.0.to_string();
    }
    if let Some(stream) = item.read_lock::<crate::script::values::types::StreamValue>() {
        return stream.text();
    }
    if let Some(generator) = item.read_lock::<GeneratorValue>() {
        return generator.text();
    }
    if let Some(event) = item.read_lock::<crate::script::values::types::EventValue>() {
        return event.text();
    }
    if let Some(found) = item.read_lock::<crate::script::language::text::re::Match>() {
        return found.shown();
    }
    if let Some(pattern) = item.read_lock::<crate::script::language::text::re::PatternValue>() {
        return format!("re::compile({})", literal(&pattern.0.source));
    }
    if let Some(function) = item.read_lock::<rhai::FnPtr>() {
        let name = function.fn_name();
        return if name.starts_with("anon$") { "closure".into() } else { format!("Fn({})", written_name(name)) };
    }
    if let Some(steps) = item.read_lock::<crate::script::values::steps::Steps>() {
        return steps.to_string();
    }
    if let Some(error) = item.read_lock::<crate::script::values::raise::ErrorValue>() {
        return format!("{}: {}", error.0.code, error.0.message);
    }
    // A type of ours without a text of its own: its last name.
    let text = item.to_string();
    match text.rsplit_once("::") {
        Some((_, name)) if text == item.type_name() => name.to_lowercase(),
        _ => text,
    }
}
