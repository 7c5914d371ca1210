//! Hooks of modules: `m.register_forward_hook(|m, args, out| ..)` and its kin. The first hook of a module puts a function
//! into its field `forward` that calls the hooks around what was there, so that a module without hooks costs nothing.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::tensor::{GradCall, GradStep, Tensor};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::nn::module_methods::method;
use crate::script::tensor_api::hooks::{Handle, Removable, closure_of};
use crate::script::values::module::{ModuleValue, module as module_of};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::tensor::own_functions::{self, Call};
use parking_lot::Mutex;
use rhai::{Array, Dynamic, FnPtr, NativeCallContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the function in `forward`.
const HOOKED: &str = "forward_with_hooks";

/// The number of the next hook.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Before,
    After,
    Backward,
}

/// The hooks of a module, in the order in which they were registered.
#[derive(Clone, Default)]
struct Hooks(Arc<Mutex<Vec<(u64, Kind, FnPtr)>>>);

struct Registered {
    hooks: Hooks,
    number: u64,
}

impl Removable for Registered {
    fn remove(&self) {
        let mut all = self.hooks.0.lock();
        if let Some(at) = all.iter().position(|(number, ..)| *number == self.number) {
            let hook = all.remove(at);
            drop(all);
            // Dropped outside the lock: it may hold this very handle.
            drop(hook);
        }
    }
}

impl Hooks {
    fn of(&self, kind: Kind) -> Vec<FnPtr> {
        self.0.lock().iter().filter(|(_, other, _)| *other == kind).map(|(.., closure)| closure.clone()).collect()
    }
}

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for (name, kind, form) in [
        ("register_forward_pre_hook", Kind::Before, "m.register_forward_pre_hook(|m, args| ..)"),
        ("register_forward_hook", Kind::After, "m.register_forward_hook(|m, args, output| ..)"),
        (
            "register_full_backward_hook",
            Kind::Backward,
            "m.register_full_backward_hook(|m, grad_input, grad_output| ..)",
        ),
    ] {
        let shared = host.clone();
        method(natives, host, name, 2, move |_, _, this, rest| {
            let closure = closure_of(rest[0], form)?;
            let hooks = hooks_of(&shared, &module_of(this).expect("a module"))?;
            // No other hook ever has the number, so that a handle that is used twice takes no other away.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            hooks.0.lock().push((number, kind, closure));
            Ok(Dynamic::from(Handle(Arc::new(Registered { hooks, number }))))
        });
    }
}

/// The hooks of a module, which calls them from now on.
fn hooks_of(host: &Arc<Host>, module: &ModuleValue) -> Result<Hooks> {
    let Some(forward) = module.get("forward").and_then(|forward| forward.try_cast::<FnPtr>()) else {
        fail!(TYPE, "the module has no `forward` that hooks could be called around");
    };
    let known = module.get("_hooks").and_then(|hooks| hooks.try_cast::<Hooks>());
    if forward.fn_name() == HOOKED
        && let Some(hooks) = known
    {
        return Ok(hooks);
    }
    let hooks = Hooks::default();
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
    hooks: &Hooks,
    forward: &FnPtr,
    this: &mut Dynamic,
    mut arguments: Array,
) -> Native {
    let module = this.clone();
    for hook in hooks.of(Kind::Before) {
        let given = hook.call_raw(context, None, [module.clone(), arguments.clone().into()])?;
        if !given.is_unit() {
            arguments = listed(given);
        }
    }
    let backward = hooks.of(Kind::Backward);
    let around = match backward.is_empty() {
        true => None,
        false => Around::new(host, context, &module, backward, &mut arguments)
            .map_err(|diag| host.raise(context, diag, ""))?,
    };
    let mut output = forward.call_raw(context, Some(this), arguments.clone())?;
    for hook in hooks.of(Kind::After) {
        let given = hook.call_raw(context, None, [module.clone(), arguments.clone().into(), output.clone()])?;
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
        hooks: Vec<FnPtr>,
        arguments: &mut Array,
    ) -> Result<Option<Around>> {
        let (caller, outputs) = (Caller::new(host, context), Mutex::default());
        let shared = Shared { caller, module: module.clone(), hooks, arguments: are_tensors(arguments), outputs };
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
        *self.0.shared.outputs.lock() = placed(step.grads, &self.1);
        if !self.0.is_before {
            self.0.shared.call(&[])?;
        }
        Ok(step.grads.to_vec())
    }
}

impl GradCall for Before {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let grads = self.0.call(step.grads)?;
        self.0.outputs.lock().clear();
        Ok(grads)
    }
}
