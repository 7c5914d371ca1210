//! Hooks of modules: `m.register_forward_hook(|m, args, out| ..)` and its kin. The first hook of a module puts a function
//! into its field `forward` that calls the hooks around what was there, so that a module without hooks costs nothing.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::tensor::{GradCall, GradStep, Tensor};
use crate::script::bind::native::flag;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::nn::hook_list::HookList;
use crate::script::nn::module_methods::keyed;
use crate::script::tensor_api::hooks::closure_of;
use crate::script::values::calling;
use crate::script::values::module::{ModuleValue, module as module_of};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::tensor::own_functions::{self, Call};
use parking_lot::Mutex;
use rhai::{Array, Dynamic, FnPtr, NativeCallContext};
use std::sync::Arc;

/// The name of the function in `forward`.
const HOOKED: &str = "forward_with_hooks";

/// Kinds of hooks.
const BEFORE: &str = "before";
const AFTER: &str = "after";
const BACKWARD: &str = "backward";
const BACKWARD_BEFORE: &str = "before backward";

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for (name, kind, form) in [
        ("register_forward_pre_hook", BEFORE, "m.register_forward_pre_hook(|m, args| ..)"),
        ("register_forward_hook", AFTER, "m.register_forward_hook(|m, args, output| ..)"),
        ("register_full_backward_hook", BACKWARD, "m.register_full_backward_hook(|m, grad_input, grad_output| ..)"),
        ("register_full_backward_pre_hook", BACKWARD_BEFORE, "m.register_full_backward_pre_hook(|m, grad_output| ..)"),
    ] {
        let shared = host.clone();
        keyed(natives, host, name, move |_, _, this, [hook, prepend]| {
            let closure = closure_of(hook, form)?;
            let hooks = hooks_of(&shared, &module_of(this).expect("a module"))?;
            Ok(hooks.add(kind, closure, flag("prepend", prepend)?))
        });
    }
}

/// The hooks of a module, which calls them from now on.
fn hooks_of(host: &Arc<Host>, module: &ModuleValue) -> Result<HookList> {
    let Some(forward) = module.get("forward").and_then(|forward| forward.try_cast::<FnPtr>()) else {
        fail!(TYPE, "the module has no `forward` that hooks could be called around");
    };
    let known = module.get("_hooks").and_then(|hooks| hooks.try_cast::<HookList>());
    if forward.fn_name() == HOOKED
        && let Some(hooks) = known
    {
        return Ok(hooks);
    }
    let hooks = HookList::default();
    let (host, own) = (host.clone(), hooks.clone());
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        let Some((this, arguments)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
        let arguments = arguments.iter_mut().map(|value| std::mem::take(*value)).collect();
        run(&host, &context, &own, &forward, this, arguments)
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn(HOOKED, call).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))?;
    module.set("forward", pointer.into());
    module.set("_hooks", Dynamic::from(hooks.clone()));
    Ok(hooks)
}

/// A call of a module with hooks.
fn run(
    host: &Arc<Host>,
    context: &NativeCallContext,
    hooks: &HookList,
    forward: &FnPtr,
    this: &mut Dynamic,
    mut arguments: Array,
) -> Native {
    let module = this.clone();
    for hook in hooks.of(BEFORE) {
        let given = calling::call(context, &hook, None, vec![module.clone(), arguments.clone().into()])?;
        if !given.is_unit() {
            arguments = listed(given);
        }
    }
    let backward = [hooks.of(BACKWARD_BEFORE), hooks.of(BACKWARD)];
    let around = match backward.iter().all(Vec::is_empty) {
        true => None,
        false => Around::new(host, context, &module, backward, &mut arguments)
            .map_err(|diag| host.raise(context, diag, ""))?,
    };
    let mut output = calling::call(context, forward, Some(this), arguments.clone())?;
    for hook in hooks.of(AFTER) {
        let given =
            calling::call(context, &hook, None, vec![module.clone(), arguments.clone().into(), output.clone()])?;
        if !given.is_unit() {
            output = given;
        }
    }
    if let Some(around) = around {
        output = around.after(host, context, output).map_err(|diag| host.raise(context, diag, ""))?;
    }
    Ok(output)
}

fn listed(value: Dynamic) -> Array {
    match value.read_lock::<Array>() {
        Some(list) => list.clone(),
        None => vec![value.clone()],
    }
}

/// What stands around a call of a module with backward hooks: a step of the gradient graph after it, which learns the
/// gradients of the outputs, and one before it, which calls the hooks.
struct Around {
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
    fn new(
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

    fn after(self, host: &Host, context: &NativeCallContext, output: Dynamic) -> Result<Dynamic> {
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
