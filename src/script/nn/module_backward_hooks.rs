//! Backward hooks of modules: steps of the gradient graph around a call, which learn the gradients of its outputs and of its
//! arguments and call the hooks with them.

use crate::base::diag::Result;
use crate::fail;
use crate::op::tensor::{GradCall, GradStep, Tensor};
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::nn::module_hooks::listed;
use crate::script::values::type_names;
use crate::tensor::own_functions::{self, Call};
use parking_lot::Mutex;
use rhai::{Array, Dynamic, FnPtr, NativeCallContext};
use std::sync::Arc;

/// What stands around a call of a module with backward hooks: a step of the gradient graph after it, which learns the
/// gradients of the outputs, and one before it, which calls the hooks.
pub struct Around {
    shared: Arc<Shared>,
    /// Whether gradients flow to arguments.
    is_before: bool,
}

struct Shared {
    caller: Caller,
    module: Dynamic,
    /// Those that are called before the gradients of the arguments are computed.
    before: Vec<FnPtr>,
    hooks: Vec<FnPtr>,
    /// Which of the arguments are tensors.
    arguments: Vec<bool>,
    /// The gradients of the outputs that have arrived.
    outputs: Mutex<Array>,
}

fn are_tensors(list: &Array) -> Vec<bool> {
    list.iter().map(|value| value.is::<Tensor>()).collect()
}

fn tensors(list: &Array) -> Vec<Option<Tensor>> {
    list.iter().map(|value| value.read_lock::<Tensor>().map(|tensor| tensor.clone())).collect()
}

/// Gives tensors a step of the gradient graph of their own; nothing where none is recorded.
fn pass(host: &Host, context: &NativeCallContext, list: &mut Array, step: Box<dyn GradCall>) -> Result<bool> {
    let mut found = tensors(list);
    let inputs: Vec<Option<Tensor>> = found.iter().flatten().cloned().map(Some).collect();
    let engine = &mut host.engine(context);
    if !own_functions::is_recorded(engine, &inputs) {
        return Ok(false);
    }
    let mut outputs: Vec<&mut Tensor> = found.iter_mut().flatten().collect();
    let flows: Vec<bool> = outputs.iter().map(|x| x.dtype().is_float()).collect();
    own_functions::record(engine, Call { inputs: &inputs, saved: &[], backward: step }, &mut outputs, &flows)?;
    for (slot, tensor) in list.iter_mut().zip(found) {
        if let Some(tensor) = tensor {
            *slot = Dynamic::from(tensor);
        }
    }
    Ok(true)
}

impl Around {
    pub fn new(
        host: &Arc<Host>,
        context: &NativeCallContext,
        module: &Dynamic,
        [before, hooks]: [Vec<FnPtr>; 2],
        arguments: &mut Array,
    ) -> Result<Option<Around>> {
        let (caller, outputs) = (Caller::new(host, context), Mutex::default());
        let module = module.clone();
        let shared = Shared { caller, module, before, hooks, arguments: are_tensors(arguments), outputs };
        let shared = Arc::new(shared);
        let is_before = pass(host, context, arguments, Box::new(Before(shared.clone())))?;
        Ok(Some(Around { shared, is_before }))
    }

    pub fn after(self, host: &Host, context: &NativeCallContext, output: Dynamic) -> Result<Dynamic> {
        let is_list = output.is_array();
        let mut list = listed(output);
        let places = are_tensors(&list);
        pass(host, context, &mut list, Box::new(After(self, places)))?;
        Ok(if is_list { list.into() } else { list.pop().unwrap_or_default() })
    }
}

/// Gradients of tensors at their places among arguments or outputs, with `()` at the others.
fn placed(grads: &[Option<Tensor>], places: &[bool]) -> Array {
    let mut grads = grads.iter();
    let next = |is_tensor: &bool| if *is_tensor { grads.next().cloned().flatten() } else { None };
    places.iter().map(next).map(|g| g.map_or(Dynamic::UNIT, Dynamic::from)).collect()
}

impl Shared {
    /// The gradients of the outputs, which are at these places, as the hooks before backward make them.
    fn begin(&self, grads: &[Option<Tensor>], places: &[bool]) -> Result<Vec<Option<Tensor>>> {
        let mut grads = grads.to_vec();
        for hook in &self.before {
            let given = vec![self.module.clone(), placed(&grads, places).into()];
            let result = self.caller.call(hook, given).map_err(|error| self.caller.host().carried(error))?;
            if result.is_unit() {
                continue;
            }
            let all = tensors(&listed(result.clone()));
            if all.len() != places.len() {
                fail!(
                    GRAD_OWN,
                    "a hook before backward gives `()` or an array of {}, for each output its gradient or `()`, not {}",
                    places.len(),
                    type_names::of_value(&result)
                );
            }
            let at_places = all.into_iter().zip(places).filter(|(_, is_tensor)| **is_tensor);
            grads = at_places.map(|(grad, _)| grad).collect();
        }
        Ok(grads)
    }

    /// Calls the hooks; the gradients of the arguments after them.
    fn call(&self, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let mut grads = grads.to_vec();
        for hook in &self.hooks {
            let outputs = self.outputs.lock().clone();
            let given = vec![self.module.clone(), placed(&grads, &self.arguments).into(), outputs.into()];
            let result = self.caller.call(hook, given).map_err(|error| self.caller.host().carried(error))?;
            if result.is_unit() {
                continue;
            }
            let all = tensors(&listed(result.clone()));
            let expected = self.arguments.len();
            let at_places = all.iter().zip(&self.arguments).filter(|(_, is_tensor)| **is_tensor);
            let new: Vec<Option<Tensor>> = at_places.map(|(grad, _)| grad.clone()).collect();
            // None where no argument has a gradient.
            let fits = |old: &[Option<Tensor>]| match old {
                [] => new.iter().all(Option::is_none),
                old => new.iter().zip(old).all(|(new, old)| new.is_some() || old.is_none()),
            };
            if all.len() != expected || !fits(&grads) {
                let kind = type_names::of_value(&result);
                fail!(
                    GRAD_OWN,
                    "a backward hook gives `()` or an array of {expected}, for each argument its gradient or `()`, not {kind}"
                );
            }
            if !grads.is_empty() {
                grads = new;
            }
        }
        Ok(grads)
    }
}

/// With the places of tensors among the outputs.
struct After(Around, Vec<bool>);
struct Before(Arc<Shared>);

impl GradCall for After {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let grads = self.0.shared.begin(step.grads, &self.1)?;
        *self.0.shared.outputs.lock() = placed(&grads, &self.1);
        if !self.0.is_before {
            self.0.shared.call(&[])?;
        }
        Ok(grads)
    }
}

impl GradCall for Before {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let grads = self.0.call(step.grads)?;
        self.0.outputs.lock().clear();
        Ok(grads)
    }
}
