//! What may be written over a part of a module: over a parameter a tensor that can be trained, over a buffer a tensor, over
//! a layer a layer, as in PyTorch, and over each of them `()`. Whatever else a field holds is replaced by any value.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::values::module::ModuleValue;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, ImmutableString, Map};

/// Whether a value may become that of a field.
pub fn takes(fields: &Map, name: &str, value: &Dynamic) -> Result<()> {
    let Some(old) = fields.get(name) else { return Ok(()) };
    if old.is::<Tensor>() && !value.is::<Tensor>() && !value.is_unit() && is_buffer(fields, name) {
        return Err(unfit(name, "a buffer of the module: a tensor", value));
    }
    follows(old, value, name)
}

/// Whether a value may stand where a parameter or a layer stands, in a field or in a list.
pub fn follows(old: &Dynamic, value: &Dynamic, name: &str) -> Result<()> {
    if value.is_unit() {
        return Ok(());
    }
    if old.is::<ModuleValue>() && !value.is::<ModuleValue>() {
        return Err(unfit(name, "a layer of the module: a module", value));
    }
    let is_parameter = old.read_lock::<Tensor>().is_some_and(|old| is_trained(&old));
    if !is_parameter {
        return Ok(());
    }
    match value.read_lock::<Tensor>() {
        None => Err(unfit(name, "a parameter of the module: a tensor", value)),
        Some(new) if new.requires_grad() && !is_trained(&new) => Err(computed(name)),
        Some(_) => Ok(()),
    }
}

/// Whether gradients end in a tensor, which optimizers then train.
fn is_trained(tensor: &Tensor) -> bool {
    tensor.requires_grad() && crate::tensor::history::is_leaf(tensor)
}

fn is_buffer(fields: &Map, name: &str) -> bool {
    let names = fields.get("_buffers").and_then(|names| names.read_lock::<Array>());
    names.is_some_and(|names| {
        names.iter().any(|buffer| buffer.read_lock::<ImmutableString>().is_some_and(|buffer| *buffer == *name))
    })
}

#[cold]
fn unfit(name: &str, what: &str, value: &Dynamic) -> Box<Diag> {
    let text = format!("`{name}` is {what} or `()` is expected, not {}", type_names::of_value(value));
    let diag = Diag::error(code::ARGUMENT_TYPE, text);
    if name.ends_with(']') {
        return diag.help("`m.pop(i)` takes an item out of the list");
    }
    diag.help(format!("`m.remove(\"{name}\")` takes the part out; then the name is free for any value"))
}

#[cold]
fn computed(name: &str) -> Box<Diag> {
    let text = format!("`{name}` is a parameter of the module, and this is the result of an operation");
    Diag::error(code::GRAD_LEAF, text).help(
        "`nn::parameter(x)` makes a parameter of it, which an optimizer has to be told of; \
         `no_grad(|| m.w.copy_(x))` changes the one that is there",
    )
}
