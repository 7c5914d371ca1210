//! Hooks of modules: `m.register_forward_hook(|m, args, out| ..)` and its kin. The first hook of a module puts a function
//! into its field `forward` that calls the hooks around what was there, so that a module without hooks costs nothing.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result, Severity};
use crate::fail;
use crate::script::bind::native::flag;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::hook_list::{Hook, HookList, Manner};
use crate::script::nn::module_backward_hooks::Around;
use crate::script::nn::module_methods::keyed;
use crate::script::tensor_api::hooks::closure_of;
use crate::script::values::calling;
use crate::script::values::module::{ModuleValue, module as module_of};
use crate::script::values::raise::{ErrorValue, Native, Outcome};
use crate::script::values::type_names;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map, NativeCallContext};
use std::sync::Arc;

/// The name of the function in `forward`.
const HOOKED: &str = "forward_with_hooks";

/// Kinds of hooks.
const BEFORE: &str = "before";
const AFTER: &str = "after";
const BACKWARD: &str = "backward";
const BACKWARD_BEFORE: &str = "before backward";

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    keyed(natives, host, "register_forward_pre_hook", move |host, _, this, [hook, prepend, with_kwargs]| {
        let closure = closure_of(hook, "m.register_forward_pre_hook(|m, args| ..)")?;
        let manner = Manner { with_kwargs: flag("with_kwargs", with_kwargs)?, always: false };
        Ok(hooks_of(host, &module_of(this).expect("a module"))?.add_as(
            BEFORE,
            closure,
            manner,
            flag("prepend", prepend)?,
        ))
    });
    keyed(natives, host, "register_forward_hook", move |host, _, this, [hook, prepend, with_kwargs, always_call]| {
        let closure = closure_of(hook, "m.register_forward_hook(|m, args, output| ..)")?;
        let always = flag("always_call", always_call)?;
        let manner = Manner { with_kwargs: flag("with_kwargs", with_kwargs)?, always };
        Ok(hooks_of(host, &module_of(this).expect("a module"))?.add_as(
            AFTER,
            closure,
            manner,
            flag("prepend", prepend)?,
        ))
    });
    for (name, kind, form) in [
        ("register_full_backward_hook", BACKWARD, "m.register_full_backward_hook(|m, grad_input, grad_output| ..)"),
        ("register_full_backward_pre_hook", BACKWARD_BEFORE, "m.register_full_backward_pre_hook(|m, grad_output| ..)"),
    ] {
        keyed(natives, host, name, move |host, _, this, [hook, prepend]| {
            let closure = closure_of(hook, form)?;
            let hooks = hooks_of(host, &module_of(this).expect("a module"))?;
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
        let (host, context, hooks, module) = (&host, &context, &own, this.clone());
        let call = HookedCall { host, context, hooks, module, arguments, output: Dynamic::UNIT, called: Vec::new() };
        call.run(&forward, this)
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn(HOOKED, call).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))?;
    module.set("forward", pointer.into());
    module.set("_hooks", Dynamic::from(hooks.clone()));
    Ok(hooks)
}

/// A call of a module with hooks.
struct HookedCall<'a> {
    host: &'a Arc<Host>,
    context: &'a NativeCallContext<'a>,
    hooks: &'a HookList,
    module: Dynamic,
    /// As the hooks before `forward` make them; keywords are a map at the end.
    arguments: Array,
    /// What `forward` and the hooks after it have given so far.
    output: Dynamic,
    /// The numbers of the hooks with `always_call` that were called.
    called: Vec<u64>,
}

impl HookedCall<'_> {
    fn run(mut self, forward: &FnPtr, this: &mut Dynamic) -> Native {
        match self.around(forward, this) {
            Ok(()) => Ok(self.output),
            Err(error) => {
                if !error.is_pseudo_error() && error.unwrap_inner().is_catchable() {
                    self.after_error()?;
                }
                Err(error)
            }
        }
    }

    fn around(&mut self, forward: &FnPtr, this: &mut Dynamic) -> Outcome<()> {
        let backward = [self.hooks.of(BACKWARD_BEFORE), self.hooks.of(BACKWARD)];
        for hook in self.hooks.all(BEFORE) {
            self.before(&hook)?;
        }
        let around = match backward.iter().all(Vec::is_empty) {
            true => None,
            false => {
                let made = Around::new(self.host, self.context, &self.module, backward, &mut self.arguments);
                made.map_err(|diag| self.raised(diag))?
            }
        };
        self.output = calling::call(self.context, forward, Some(this), self.arguments.clone())?;
        for hook in self.hooks.all(AFTER) {
            if hook.manner.always {
                self.called.push(hook.number);
            }
            self.after(&hook)?;
        }
        if let Some(around) = around {
            let output = std::mem::take(&mut self.output);
            self.output = around.after(self.host, self.context, output).map_err(|diag| self.raised(diag))?;
        }
        Ok(())
    }

    fn raised(&self, diag: Box<Diag>) -> Box<EvalAltResult> {
        self.host.raise(self.context, diag, "")
    }

    /// Calls a hook before `forward`.
    fn before(&mut self, hook: &Hook) -> Outcome<()> {
        if hook.manner.with_kwargs {
            let (args, kwargs) = parted(&self.arguments);
            let had = args.len() < self.arguments.len();
            let given = vec![self.module.clone(), args.into(), kwargs.into()];
            let given = calling::call(self.context, &hook.closure, None, given)?;
            if !given.is_unit() {
                self.arguments = joined(&given, had).map_err(|diag| self.raised(diag))?;
            }
            return Ok(());
        }
        let given = vec![self.module.clone(), self.arguments.clone().into()];
        let given = calling::call(self.context, &hook.closure, None, given)?;
        if !given.is_unit() {
            let mut new = listed(given);
            // Keywords stay where the hook gives the arguments before them alone.
            if let Some(keywords) = self.arguments.last().filter(|last| last.is_map())
                && self.arguments.len() > 1
                && new.len() + 1 == self.arguments.len()
            {
                new.push(keywords.clone());
            }
            self.arguments = new;
        }
        Ok(())
    }

    /// Calls a hook after `forward`.
    fn after(&mut self, hook: &Hook) -> Outcome<()> {
        let given = match hook.manner.with_kwargs {
            true => {
                let (args, kwargs) = parted(&self.arguments);
                vec![self.module.clone(), args.into(), kwargs.into(), self.output.clone()]
            }
            false => vec![self.module.clone(), self.arguments.clone().into(), self.output.clone()],
        };
        let given = calling::call(self.context, &hook.closure, None, given)?;
        if !given.is_unit() {
            self.output = given;
        }
        Ok(())
    }

    /// Calls the hooks that are always called and were not, after an error, which stays the one that is raised: what they
    /// raise becomes a warning. What ends the script ends it here, too.
    fn after_error(&mut self) -> Outcome<()> {
        let left = self.hooks.all(AFTER).into_iter().filter(|hook| hook.manner.always);
        for hook in left.filter(|hook| !self.called.contains(&hook.number)).collect::<Vec<_>>() {
            match self.after(&hook) {
                Err(error) if !error.is_pseudo_error() && error.unwrap_inner().is_catchable() => {
                    self.host.rt.warn(self.silenced(*error));
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// The warning in place of an error of a hook.
    #[cold]
    fn silenced(&self, error: EvalAltResult) -> Box<Diag> {
        let told = match error.unwrap_inner() {
            EvalAltResult::ErrorRuntime(value, _) => value.read_lock::<ErrorValue>().map(|told| told.0.clone()),
            _ => None,
        };
        let mut diag = told.unwrap_or_else(|| {
            let at = self.host.origin(self.context);
            Diag::warning(code::THROWN, error.to_string()).label(at, Focus::Call, "in a hook of this call")
        });
        diag.severity = Severity::Warning;
        diag.note("a hook with `always_call` raised this after the call had failed; the first error is the one that is raised")
    }
}

/// The arguments without the keywords at their end, and these.
fn parted(arguments: &Array) -> (Array, Map) {
    match arguments.split_last().map(|(last, rest)| (last.read_lock::<Map>().map(|map| map.clone()), rest)) {
        Some((Some(keywords), rest)) => (rest.to_vec(), keywords),
        _ => (arguments.clone(), Map::new()),
    }
}

/// The arguments that a hook with keywords gives, as `[args, kwargs]`.
fn joined(given: &Dynamic, had_keywords: bool) -> Result<Array> {
    let pair = given.read_lock::<Array>().filter(|pair| pair.len() == 2);
    let parts = pair.and_then(|pair| {
        let (args, kwargs) = (pair[0].read_lock::<Array>()?.clone(), pair[1].read_lock::<Map>()?.clone());
        Some((args, kwargs))
    });
    let Some((mut arguments, keywords)) = parts else {
        let kind = type_names::of_value(given);
        fail!(
            ARGUMENT_TYPE,
            "a hook with `with_kwargs` gives `()` or `[args, kwargs]`, an array and a map, not {kind}"
        );
    };
    if had_keywords || !keywords.is_empty() {
        arguments.push(keywords.into());
    }
    Ok(arguments)
}

/// An array as it is, any other value as the only one of an array.
pub fn listed(value: Dynamic) -> Array {
    match value.read_lock::<Array>() {
        Some(list) => list.clone(),
        None => vec![value.clone()],
    }
}
