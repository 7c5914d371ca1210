//! `grad(outputs, inputs)`, also as `autograd::grad`: gradients as values, of many cotangents at once if they are batched.

use super::vmap::Entered;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::sched::samples::Randomness;
use crate::script::bind::native::{flag, given, native, native_with_help};
use crate::script::bind::properties;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::grad::{self, Mode};
use rhai::{Array, Dynamic};
use std::sync::Arc;

/// `_has_samples(x)`: whether a tensor has a value for each sample, inside of `vmap`.
pub fn questions(natives: &mut Natives) {
    raw(natives, "_has_samples", 1, |_, values| {
        Ok(values[0].read_lock::<Tensor>().is_some_and(|x| x.samples().is_some()).into())
    });
}

/// Registers it under a name.
pub fn register(natives: &mut Natives, host: &Arc<Host>, name: &'static str) {
    // `x.grad()` is a call of it, too.
    let told = |diag: Box<Diag>| match diag.code {
        code::MISSING_ARGUMENT => {
            diag.help("`grad(y, [x])` computes gradients; what `backward()` added up is the property `x.grad`")
        }
        _ => diag,
    };
    native_with_help(
        natives,
        host,
        name,
        told,
        |_, engine, [ys, xs, weights, retain, create, _, unused, batched, materialize]| {
            let ys: Vec<Tensor> = tensor_list(ys, "outputs")?.into_iter().flatten().collect();
            let xs: Vec<Tensor> = tensor_list(xs, "inputs")?.into_iter().flatten().collect();
            let weights = given(weights).map_or(Ok(Vec::new()), |value| tensor_list(value, "grad_outputs"))?;
            let mode = properties::mode(retain, create, unused, materialize)?;
            let found = match flag("is_grads_batched", batched)? {
                true => of_batch(engine, &ys, &xs, &weights, mode)?,
                false => grad::grad(engine, &ys, &xs, &weights, mode)?,
            };
            let list: Array = found.into_iter().map(|g| g.map_or(Dynamic::UNIT, Dynamic::from)).collect();
            Ok(Dynamic::from(list))
        },
    );
}

/// `autograd::backward(tensors)`: gradients of the sum of all, in one walk.
pub fn register_backward(natives: &mut Natives, host: &Arc<Host>) {
    native(natives, host, "autograd::backward", |_, engine, [ys, weights, retain, create, inputs]| {
        let ys: Vec<Tensor> = tensor_list(ys, "tensors")?.into_iter().flatten().collect();
        if ys.is_empty() {
            fail!(VALUE, "`tensors` is empty: there is nothing to differentiate");
        }
        let weights = given(weights).map_or(Ok(vec![None; ys.len()]), |value| tensor_list(value, "grad_tensors"))?;
        if weights.len() != ys.len() {
            fail!(VALUE, "there are {} `grad_tensors` for {} tensors", weights.len(), ys.len());
        }
        let how = properties::mode(retain, create, &Dynamic::UNIT, &Dynamic::FALSE)?;
        properties::backward(engine, &ys, &weights, how, inputs)
    });
}

/// The gradients for each cotangent of a batch, which is the first dim of all of them.
fn of_batch(
    e: &mut Engine,
    ys: &[Tensor],
    xs: &[Tensor],
    weights: &[Option<Tensor>],
    mode: Mode,
) -> Result<Vec<Option<Tensor>>> {
    let sizes: Vec<usize> = weights.iter().flatten().map(|g| g.shape().first().copied().unwrap_or(0)).collect();
    let Some(&count) = sizes.first().filter(|count| **count > 0) else {
        let diag = Diag::error(code::VALUE, "`is_grads_batched` wants `grad_outputs` with a batch as their first dim");
        return Err(diag.help("for `y`: `grad(y, [x], #{grad_outputs: eye(y.numel), is_grads_batched: true})`"));
    };
    if sizes.iter().any(|size| *size != count) {
        fail!(SHAPE, "the batches in `grad_outputs` have different sizes: {sizes:?}");
    }
    let level = Entered::new(&e.rt, count, Randomness::Same);
    let mut hidden = Vec::new();
    for g in weights {
        hidden.push(g.as_ref().map(|g| level.hide(e, g, 0)).transpose()?);
    }
    let found = grad::grad(e, ys, xs, &hidden, mode)?;
    found.into_iter().map(|g| g.map(|g| level.show(e, &g)).transpose()).collect()
}

/// A tensor, or an array of tensors (with `()` where `optional`).
fn tensor_list(value: &Dynamic, what: &str) -> Result<Vec<Option<Tensor>>> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(vec![Some(tensor.clone())]);
    }
    let wrong = |value: &Dynamic| {
        let text = format!("`{what}` is a tensor or an array of tensors, not {}", type_names::of_value(value));
        Diag::error(code::ARGUMENT_TYPE, text)
    };
    let Some(array) = value.read_lock::<Array>() else { return Err(wrong(value)) };
    array
        .iter()
        .map(|item| match item.read_lock::<Tensor>() {
            Some(tensor) => Ok(Some(tensor.clone())),
            None if item.is_unit() => Ok(None),
            None => Err(wrong(item)),
        })
        .collect()
}
