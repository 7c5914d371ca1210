//! `autograd::function(#{forward: .., backward: ..})`: operations whose gradient the script computes itself, as PyTorch's
//! `torch.autograd.Function`. The context `ctx` is a module: a handle that forward and backward share.

use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::span::Origin;
use crate::fail;
use crate::op::tensor::{GradCall, GradStep, Tensor};
use crate::script::bind::native::native;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::machine::Function;
use crate::script::values::calling;
use crate::script::values::module::{ModuleValue, module as module_of};
use crate::script::values::raise::{Native, site_of};
use crate::script::values::type_names;
use crate::tensor::engine::Engine;
use crate::tensor::hooks::GradMode;
use crate::tensor::own_functions::{self, Call};
use rhai::{Array, Dynamic, FnPtr, Map, NativeCallContext};
use std::sync::Arc;

/// Bound: tensors of one `ctx.save_for_backward(..)`.
const MOST: usize = 14;

/// What the script gave.
struct Own {
    forward: FnPtr,
    backward: FnPtr,
    once: bool,
}

/// The functions of the module `autograd`, which needs no import.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut natives = Natives::default();
    let shared = host.clone();
    native(&mut natives, host, "autograd::function", move |_, _, [parts]| function(&shared, parts));
    natives
}

/// The methods of a context.
pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for (name, field) in [("save_for_backward", "_saved"), ("mark_non_differentiable", "_fixed")] {
        for arity in 1..=MOST + 1 {
            let shared = host.clone();
            raw(natives, name, arity, move |context, values| -> Native {
                let context = context.expect("registered with a context");
                let kept = keep(name, field, values);
                kept.map_err(|diag| shared.raise(&context, diag, ""))
            });
        }
    }
    let shared = host.clone();
    raw(natives, "set_materialize_grads", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        match (context_of(values[0]), values[1].as_bool()) {
            (Some(ctx), Ok(on)) => Ok(ctx.set("_materialize", on.into()).into()),
            _ => Err(shared.raise(&context, no_context("set_materialize_grads"), "")),
        }
    });
}

#[cold]
fn no_context(name: &str) -> Box<Diag> {
    Diag::error(
        code::ARGUMENT_TYPE,
        format!("`{name}` belongs to the `ctx` that `autograd::function` gives to `forward`"),
    )
}

fn context_of(value: &Dynamic) -> Option<ModuleValue> {
    module_of(value).filter(|ctx| ctx.read().contains_key("needs_input_grad"))
}

fn keep(name: &str, field: &str, values: &[&mut Dynamic]) -> Result<Dynamic> {
    let Some(ctx) = context_of(values[0]) else { return Err(no_context(name)) };
    let mut kept = Array::new();
    for (at, value) in values[1..].iter().enumerate() {
        if !value.is_unit() && !value.is::<Tensor>() && !value.flatten_clone().is::<Tensor>() {
            let found = type_names::of_value(value);
            return Err(Diag::error(code::ARGUMENT_TYPE, format!("`{name}` takes tensors; argument {at} is {found}"))
                .help("other values become fields of the context: `ctx.k = 3`"));
        }
        kept.push(value.flatten_clone());
    }
    ctx.set(field, kept.into());
    Ok(Dynamic::UNIT)
}

fn function(host: &Arc<Host>, parts: &Dynamic) -> Result<Dynamic> {
    let Some(parts) = parts.read_lock::<Map>() else {
        fail!(
            ARGUMENT_TYPE,
            "`autograd::function` takes a map, `#{{forward: |ctx, x| .., backward: |ctx, g| ..}}`, not {}",
            type_names::of_value(parts)
        );
    };
    let closure = |name: &str| match parts.get(name).map(|value| value.flatten_clone()) {
        Some(value) if value.is_fnptr() => Ok(value.cast::<FnPtr>()),
        Some(value) => fail!(ARGUMENT_TYPE, "`{name}` is a closure, not {}", type_names::of_value(&value)),
        None => fail!(MISSING_ARGUMENT, "`autograd::function` needs `forward` and `backward`; `{name}` is missing"),
    };
    if let Some(other) =
        parts.keys().find(|name| !matches!(name.as_str(), "forward" | "backward" | "once_differentiable"))
    {
        let text = format!("`autograd::function` knows `forward`, `backward` and `once_differentiable`, not `{other}`");
        let diag = Diag::error(code::UNKNOWN_KEYWORD, text);
        return Err(match other.as_str() {
            "jvp" => diag.help("`func::jvp` and `func::jacfwd` derive it from `backward`"),
            "vmap" | "generate_vmap_rule" => diag.help("`func::vmap` goes through the operations of `forward` and `backward`"),
            "setup_context" => diag.help(
                "the context is the first argument of `forward`: `forward: |ctx, x| { ctx.save_for_backward(x); x * 2 }`",
            ),
            _ => diag,
        });
    }
    let once = parts.get("once_differentiable").is_some_and(|on| on.as_bool().unwrap_or(false));
    let own = Arc::new(Own { forward: closure("forward")?, backward: closure("backward")?, once });
    let host = host.clone();
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        let arguments: Vec<Dynamic> = values.iter().map(|value| value.flatten_clone()).collect();
        apply(&host, &context, &own, arguments)
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn("function", call);
    pointer.map(Dynamic::from).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))
}

fn tensor_of(value: &Dynamic) -> Option<Tensor> {
    value.read_lock::<Tensor>().map(|tensor| tensor.clone())
}

/// Calls such a function: forward runs without recording.
fn apply(host: &Arc<Host>, context: &NativeCallContext, own: &Arc<Own>, arguments: Vec<Dynamic>) -> Native {
    let inputs: Vec<Option<Tensor>> = arguments.iter().map(tensor_of).collect();
    let needs: Array = inputs.iter().map(|x| x.as_ref().is_some_and(Tensor::requires_grad).into()).collect();
    let fields = [("_name", "ctx".into()), ("needs_input_grad", needs.into()), ("saved_tensors", Array::new().into())];
    let ctx = ModuleValue::new(fields.into_iter().map(|(name, value): (&str, Dynamic)| (name.into(), value)).collect());
    let is_recorded = own_functions::is_recorded(&host.engine(context), &inputs);
    let mut given = vec![Dynamic::from(ctx.clone())];
    given.extend(arguments);
    let mut result = {
        let _restore = GradMode::set(&host.rt, false);
        calling::call(context, &own.forward, None, given)?
    };
    let lists = ["_saved", "_fixed"].map(|name| ctx.change(|fields| fields.remove(name)).flatten());
    let [saved, fixed] = lists.map(|list| list.and_then(|list| list.try_cast::<Array>()).unwrap_or_default());
    if is_recorded {
        let saved: Vec<Option<Tensor>> = saved.iter().map(tensor_of).collect();
        let fixed: Vec<Tensor> = fixed.iter().filter_map(tensor_of).collect();
        let recorded = record(host, context, own, ctx, (&inputs, &saved, &fixed), &mut result);
        recorded.map_err(|diag| host.raise(context, diag, ""))?;
    }
    Ok(result)
}

type Kept<'a> = (&'a [Option<Tensor>], &'a [Option<Tensor>], &'a [Tensor]);

fn record(
    host: &Arc<Host>,
    context: &NativeCallContext,
    own: &Arc<Own>,
    ctx: ModuleValue,
    (inputs, saved, fixed): Kept,
    result: &mut Dynamic,
) -> Result<()> {
    let mut found: Vec<Option<Tensor>> = match result.read_lock::<Array>() {
        Some(list) => list.iter().map(tensor_of).collect(),
        None => vec![tensor_of(result)],
    };
    let positions = found.iter().map(Option::is_some).collect();
    let mut outputs: Vec<&mut Tensor> = found.iter_mut().flatten().collect();
    let changes = |x: &Tensor| x.dtype().is_differentiable() && !fixed.iter().any(|other| other.same(x));
    let differentiable: Vec<bool> = outputs.iter().map(|x| changes(x)).collect();
    if differentiable.iter().any(|on| *on) {
        let caller = Caller::new(host, context);
        let backward = Box::new(OwnBackward { caller, own: own.clone(), ctx, positions });
        let call = Call { inputs, saved, backward };
        own_functions::record(&mut host.engine(context), call, &mut outputs, &differentiable)?;
    }
    let put = |slot: &mut Dynamic, tensor: Option<Tensor>| {
        if let Some(tensor) = tensor {
            *slot = Dynamic::from(tensor);
        }
    };
    if result.is_array() {
        let mut list = result.write_lock::<Array>().expect("an array");
        list.iter_mut().zip(found).for_each(|(slot, tensor)| put(slot, tensor));
    } else {
        put(result, found.pop().flatten());
    }
    Ok(())
}

/// The backward of one call.
struct OwnBackward {
    caller: Caller,
    own: Arc<Own>,
    ctx: ModuleValue,
    /// Which results of forward are tensors.
    positions: Vec<bool>,
}

impl GradCall for OwnBackward {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let host = self.caller.host();
        let mut engine = Engine::new(host.rt.clone(), step.origin);
        let given = self.given(&mut engine, step)?;
        let saved: Array = step.saved.iter().map(|x| x.clone().map_or(Dynamic::UNIT, Dynamic::from)).collect();
        let was = self.ctx.get("saved_tensors").unwrap_or_default();
        self.ctx.set("saved_tensors", saved.into());
        let result = {
            let _restore = GradMode::set(&host.rt, step.create_graph && !self.own.once);
            self.caller.call(&self.own.backward, given)
        };
        // The context must not keep what the graph frees.
        self.ctx.set("saved_tensors", was);
        let result = result.map_err(|error| host.carried(error))?;
        let mut found = self.gradients(step, &result).map_err(|diag| self.placed(diag, step.origin))?;
        if self.own.once && step.create_graph {
            for g in found.iter_mut().flatten() {
                *g = own_functions::once(&mut engine, g, step.grads)?;
            }
        }
        Ok(found)
    }
}

impl OwnBackward {
    /// The arguments of backward: the context, and a gradient for each result; zeros where none arrived.
    fn given(&self, engine: &mut Engine, step: &GradStep) -> Result<Vec<Dynamic>> {
        let materialize = self.ctx.get("_materialize").is_none_or(|on| on.as_bool().unwrap_or(true));
        let mut given = vec![Dynamic::from(self.ctx.clone())];
        let mut arrived = step.grads.iter().zip(step.outputs);
        for is_tensor in &self.positions {
            let Some((g, meta)) = is_tensor.then(|| arrived.next()).flatten() else {
                given.push(Dynamic::UNIT);
                continue;
            };
            given.push(match g {
                Some(g) => Dynamic::from(g.clone()),
                None if materialize => Dynamic::from((engine as &mut dyn crate::op::emit::Emit).zeros_like(meta)?),
                None => Dynamic::UNIT,
            });
        }
        Ok(given)
    }

    /// What backward gave, for each argument.
    fn gradients(&self, step: &GradStep, result: &Dynamic) -> Result<Vec<Option<Tensor>>> {
        let all: Array = match result.read_lock::<Array>() {
            Some(list) => list.clone(),
            None => vec![result.clone()],
        };
        let (expected, found) = (step.inputs.len(), all.len());
        if found < expected || all[expected..].iter().any(|more| !more.is_unit()) {
            fail!(
                GRAD_OWN,
                "`backward` gave {found} gradients; `forward` takes {expected} arguments besides the context"
            );
        }
        let mut gradients = Vec::new();
        for (at, (value, input)) in all.iter().zip(step.inputs).enumerate() {
            let g = tensor_of(value);
            if g.is_none() && !value.is_unit() {
                let kind = type_names::of_value(value);
                fail!(
                    GRAD_OWN,
                    "`backward` gives a tensor or `()` for each argument, and not {kind} for argument {at}"
                );
            }
            if g.is_some() && input.is_none() {
                fail!(
                    GRAD_OWN,
                    "`backward` gave a gradient for argument {at}, which is no tensor: its gradient is `()`"
                );
            }
            gradients.push(g);
        }
        Ok(gradients)
    }

    /// Adds the places of the call and of the closure.
    #[cold]
    fn placed(&self, diag: Box<Diag>, origin: Origin) -> Box<Diag> {
        let diag = diag.label(origin, Focus::Call, "in the gradient of this call");
        let closure = self.caller.host().closures.get(self.own.backward.fn_name());
        let Some(function) = closure.and_then(|closure| closure.downcast::<Function>().ok()) else { return diag };
        let at = Origin::at(site_of(function.place()));
        diag.label(at, Focus::Expression, "by this `backward`")
    }
}
