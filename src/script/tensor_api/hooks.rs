//! Hooks of tensors: `x.register_hook(|g| ..)`, `x.register_post_accumulate_grad_hook(|x| ..)`, and the handle that
//! takes a hook away again.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::op::tensor::{GradCall, GradStep, Tensor};
use crate::script::bind::properties::method;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::values::panics::GuardedCall;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::tensor::hooks;
use parking_lot::Mutex;
use rhai::{Dynamic, FnPtr, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

/// What `register_hook` and its kin give: `h.remove()`.
#[derive(Clone)]
pub struct Handle(pub Arc<dyn Removable>);

/// What a handle can take away.
pub trait Removable: Send + Sync {
    fn remove(&self);
}

/// A closure that backward calls with a tensor, until it is removed.
struct Hook {
    call: Mutex<Option<Arc<(Caller, FnPtr)>>>,
    /// Whether the closure may give another gradient.
    replaces: bool,
}

impl Removable for Hook {
    fn remove(&self) {
        let closure = self.call.lock().take();
        // Dropped outside the lock: it may hold this very handle.
        drop(closure);
    }
}

impl GradCall for Hook {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let Some(call) = self.call.lock().clone() else { return Ok(Vec::new()) };
        let (caller, closure) = &*call;
        let given = step.grads.iter().flatten().map(|g| Dynamic::from(g.clone())).collect();
        let result = caller.call(closure, given).map_err(|error| caller.host().carried(error))?;
        if !self.replaces || result.is_unit() {
            return Ok(Vec::new());
        }
        match result.read_lock::<Tensor>() {
            Some(g) => Ok(vec![Some(g.clone())]),
            None => {
                let text = format!("a hook gives another gradient or `()`, not {}", type_names::of_value(&result));
                Err(Diag::error(code::GRAD_OWN, text))
            }
        }
    }

    fn is_over(&self) -> bool {
        self.call.lock().is_none()
    }
}

/// The closure of a hook.
pub fn closure_of(value: &Dynamic, form: &str) -> Result<FnPtr> {
    match value.flatten_clone().try_cast::<FnPtr>() {
        Some(closure) => Ok(closure),
        None => {
            let text = format!("a closure is expected, as in `{form}`, not {}", type_names::of_value(value));
            Err(Diag::error(code::ARGUMENT_TYPE, text))
        }
    }
}

type Register = fn(&mut crate::tensor::engine::Engine, &Tensor, Arc<dyn GradCall>) -> Result<()>;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let kinds: [(&str, &str, bool, Register); 2] = [
        ("register_hook", "x.register_hook(|g| ..)", true, hooks::register),
        (
            "register_post_accumulate_grad_hook",
            "x.register_post_accumulate_grad_hook(|x| ..)",
            false,
            hooks::register_accumulated,
        ),
    ];
    for (name, form, replaces, add) in kinds {
        let shared = host.clone();
        method(module, host, name, 2, move |_, context, x, rest| {
            let call = (Caller::new(&shared, context), closure_of(rest[0], form)?);
            let hook = Arc::new(Hook { call: Mutex::new(Some(Arc::new(call))), replaces });
            add(&mut shared.engine(context), x, hook.clone())?;
            Ok(Dynamic::from(Handle(hook)))
        });
    }
    let remove = GuardedCall::new(|_: Option<NativeCallContext>, values| -> Native {
        if let Some(handle) = values[0].read_lock::<Handle>().map(|handle| handle.clone()) {
            handle.0.remove();
        }
        Ok(Dynamic::UNIT)
    });
    module.place_on(TypeId::of::<Handle>(), "remove", 1..=1, &remove);
}
