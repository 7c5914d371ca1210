//! What may be written over a part of a module: over a parameter a parameter, over a buffer a tensor, over a layer a layer,
//! as in PyTorch, and over each of them `()`. Whatever else a field holds is replaced by any value. And what a tensor is in a
//! module: a parameter, also while it is frozen, or a buffer.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::values::module::{ModuleValue, is_own, may_hold_modules};
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, ImmutableString, Map};

/// Whether a value may become that of a field.
pub fn takes(fields: &Map, name: &str, value: &Dynamic) -> Result<()> {
    let Some(old) = fields.get(name) else { return Ok(()) };
    if is_tensor(old) && is_listed(fields, BUFFERS, name) {
        if is_tensor(value) || value.is_unit() {
            return Ok(());
        }
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
    let is_old = old.read_lock::<Tensor>().is_some_and(|old| is_parameter(&old));
    if !is_old {
        return Ok(());
    }
    match value.read_lock::<Tensor>() {
        None => Err(unfit(name, "a parameter of the module: a tensor", value)),
        Some(new) if is_parameter(&new) => Ok(()),
        Some(new) if new.requires_grad() => Err(computed(name)),
        Some(_) => Err(plain(name)),
    }
}

/// Whether a value is a tensor, dense or sparse.
pub fn is_tensor(value: &Dynamic) -> bool {
    value.is::<Tensor>() || value.is::<Sparse>()
}

/// The error of a sparse tensor that would be a parameter.
#[cold]
pub fn sparse_parameter(name: &str) -> Box<Diag> {
    Diag::error(code::ARGUMENT_TYPE, format!("`{name}`: a sparse tensor is a buffer of modules, never a parameter"))
        .help("keep its values as a parameter, `nn::parameter(s.coalesce().values())`, and make the sparse tensor of them in `forward`")
}

/// Whether a tensor is a parameter: it was made or listed as one, or gradients end in it, which optimizers then train.
pub fn is_parameter(tensor: &Tensor) -> bool {
    let is_marked = tensor.0.auto.lock().is_parameter;
    is_marked || (tensor.requires_grad() && crate::tensor::history::is_leaf(tensor))
}

/// A tensor that is a parameter stays one when it is frozen.
pub fn mark(tensor: &Tensor) {
    tensor.0.auto.lock().is_parameter = true;
}

/// Whether a value is a tensor that is no parameter, or an array or plain map of such tensors. Those that are parameters
/// stay so.
pub fn is_buffer(value: &Dynamic) -> bool {
    fn look(value: &Dynamic, depth: usize, any: &mut bool) -> bool {
        if let Some(tensor) = value.read_lock::<Tensor>() {
            *any = true;
            if is_parameter(&tensor) {
                mark(&tensor);
                return false;
            }
            return true;
        }
        if value.is::<Sparse>() {
            *any = true;
            return true;
        }
        let mut all = true;
        if let Some(map) = value.read_lock::<Map>() {
            map.values().for_each(|item| all &= depth < DEPTH && look(item, depth + 1, any));
        } else if let Some(array) = value.read_lock::<Array>() {
            array.iter().for_each(|item| all &= depth < DEPTH && look(item, depth + 1, any));
        } else {
            all = !value.is::<ModuleValue>();
        }
        all
    }
    let mut any = false;
    look(value, 0, &mut any) && any
}

/// Notes what a field is that a script has written: a new one is the last part of its module. Of tensors in arrays and maps
/// each is judged when it is listed.
pub fn noted(fields: &mut Map, name: &str) {
    let Some(value) = fields.get(name).filter(|value| may_hold_modules(value) || is_tensor(value)) else { return };
    if is_own(name) {
        return;
    }
    let is_buffer = is_tensor(value) && is_buffer(value);
    if !is_listed(fields, ORDER, name) {
        list(fields, ORDER, name, true);
    }
    if is_buffer != is_listed(fields, BUFFERS, name) {
        list(fields, BUFFERS, name, is_buffer);
        list(fields, TRANSIENT, name, false);
    }
}

/// The fields that list names of a module's parts: in order; those that are buffers; those of them that no state holds.
pub const ORDER: &str = "_order";
pub const BUFFERS: &str = "_buffers";
pub const TRANSIENT: &str = "_transient";

/// Bound: nesting of arrays and maps in which tensors are looked for.
const DEPTH: usize = 128;

/// Whether a name is in one of these lists.
pub fn is_listed(fields: &Map, of: &str, name: &str) -> bool {
    let names = fields.get(of).and_then(|names| names.read_lock::<Array>());
    names.is_some_and(|names| {
        names.iter().any(|known| known.read_lock::<ImmutableString>().is_some_and(|known| *known == *name))
    })
}

/// Makes a name the last one of a list, or takes it out.
pub fn list(fields: &mut Map, of: &str, name: &str, stays: bool) {
    let names = fields.entry(of.into()).or_insert_with(|| Array::new().into());
    let Some(mut names) = names.write_lock::<Array>() else { return };
    names.retain(|known| known.read_lock::<ImmutableString>().is_none_or(|known| *known != *name));
    if stays {
        names.push(name.into());
    }
}

/// What to write instead of an assignment to a parameter.
const OTHERWISE: &str = "`nn::parameter(x)` makes a parameter of it, which an optimizer has to be told of; \
     `no_grad(|| m.w.copy_(x))` changes the one that is there";

#[cold]
fn plain(name: &str) -> Box<Diag> {
    let text = format!("`{name}` is a parameter of the module, and this tensor is none");
    Diag::error(code::ARGUMENT_TYPE, text).help(OTHERWISE)
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
    Diag::error(code::GRAD_LEAF, text).help(OTHERWISE)
}
