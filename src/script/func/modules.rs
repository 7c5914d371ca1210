//! `func::functional_call` and `func::stack_module_state`: modules as functions of their tensors.

use super::calls::Call;
use super::tree;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::op::rows::shape::join::STACK;
use crate::script::bind::native::{flag, given, native, native_in_context};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::module_methods;
use crate::script::nn::swap::Swapped;
use crate::script::values::module::ModuleValue;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::history;
use rhai::{Array, Dynamic, Map};
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    native_in_context(natives, host, "func::functional_call", |host, context, values| {
        let call = Call { host, context, name: "functional_call" };
        functional_call(&call, values)
    });
    native(natives, host, "func::stack_module_state", |_, engine, [models]| {
        let named = |diag| super::calls::named("stack_module_state", diag);
        stack_module_state(engine, models).map_err(named)
    });
}

/// Calls a module with other tensors in place of its own.
fn functional_call(call: &Call, [module, tensors, given_args, kwargs, tie_weights, strict]: [&Dynamic; 6]) -> Native {
    let parts = || -> Result<_> {
        if !module.is::<ModuleValue>() {
            let found = type_names::of_value(module);
            return Err(Diag::error(code::ARGUMENT_TYPE, format!("a module is called, not {found}")));
        }
        let tensors = replacements(tensors)?;
        let mut arguments: Array = match given(given_args) {
            None => Array::new(),
            Some(list) if list.is_array() => list.read_lock::<Array>().map(|list| list.clone()).unwrap_or_default(),
            Some(one) => vec![one.clone()],
        };
        if let Some(kwargs) = given(kwargs) {
            if !kwargs.is_map() {
                let found = type_names::of_value(kwargs);
                return Err(Diag::error(code::ARGUMENT_TYPE, format!("`kwargs` is a map, not {found}")));
            }
            arguments.push(kwargs.clone());
        }
        Ok((tensors, arguments, flag("tie_weights", tie_weights)?, flag("strict", strict)?))
    };
    let (tensors, arguments, ties, strict) = parts().map_err(|diag| call.wrong(diag))?;
    let swapped = Swapped::new(module, &tensors, ties, strict).map_err(|diag| call.wrong(diag))?;
    let result = call.apply(module, arguments);
    drop(swapped);
    result
}

/// The tensors by name, from a map or from an array of maps of which none has a name of another.
fn replacements(value: &Dynamic) -> Result<BTreeMap<String, Tensor>> {
    let mut all = BTreeMap::new();
    let mut add = |value: &Dynamic| -> Result<()> {
        let Some(map) = value.read_lock::<Map>() else {
            let found = type_names::of_value(value);
            let text = format!("the tensors are given by name, in a map or an array of maps, and not as {found}");
            return Err(Diag::error(code::ARGUMENT_TYPE, text)
                .help("`func::functional_call(model, params, [x])`, where `params` is as `model.state_dict()`"));
        };
        for (name, value) in map.iter() {
            let Some(x) = tree::tensor(value) else {
                let found = type_names::of_value(value);
                return Err(Diag::error(code::ARGUMENT_TYPE, format!("`{name}` must be a tensor, not {found}")));
            };
            if all.insert(name.to_string(), x).is_some() {
                return Err(Diag::error(code::TRANSFORM, format!("two of the maps have `{name}`")));
            }
        }
        Ok(())
    };
    match value.read_lock::<Array>() {
        Some(maps) => maps.iter().try_for_each(&mut add)?,
        None => add(value)?,
    }
    Ok(all)
}

/// The parameters and the buffers of modules of one kind, stacked.
fn stack_module_state(e: &mut crate::tensor::engine::Engine, models: &Dynamic) -> Result<Dynamic> {
    let Some(models) = models.read_lock::<Array>().map(|list| list.clone()) else {
        let found = type_names::of_value(models);
        return Err(Diag::error(code::ARGUMENT_TYPE, format!("an array of modules is expected, not {found}")));
    };
    if models.is_empty() {
        return Err(Diag::error(code::TRANSFORM, "there is no module"));
    }
    if let Some(other) = models.iter().find(|model| !model.is::<ModuleValue>()) {
        let found = type_names::of_value(other);
        return Err(Diag::error(code::ARGUMENT_TYPE, format!("an array of modules is expected, and holds {found}")));
    }
    let mut both = Vec::new();
    for buffers in [false, true] {
        let mut lists = Vec::new();
        for model in &models {
            lists.push(module_methods::named(model, buffers)?);
        }
        let mut stacked = Map::new();
        for (at, (name, first)) in lists[0].iter().enumerate() {
            let mut parts = Vec::new();
            for list in &lists {
                let is_alike = |(other, x): &&(String, Tensor)| other == name && x.shape() == first.shape();
                let Some((_, x)) = list.get(at).filter(|_| list.len() == lists[0].len()).filter(is_alike) else {
                    return Err(Diag::error(
                        code::TRANSFORM,
                        "the modules must be of one kind, with tensors of one size",
                    )
                    .help(format!("they differ in `{name}`")));
                };
                if x.requires_grad() != first.requires_grad() {
                    let text = format!("`{name}` requires gradients in some of the modules only");
                    return Err(Diag::error(code::TRANSFORM, text));
                }
                parts.push(x.clone());
            }
            let all = e.without_recording(|e| e.call_row(&STACK, args![parts, 0]))?;
            if !buffers && first.requires_grad() {
                history::set_leaf(&all, true);
            }
            stacked.insert(name.as_str().into(), Dynamic::from(all));
        }
        both.push(Dynamic::from(stacked));
    }
    Ok(Dynamic::from(both))
}
