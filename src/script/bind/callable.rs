//! Functions and methods of the library that are called by signatures (`signed.rs`): what stands around each.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::signature::Signature;
use crate::fail;
use crate::script::bind::rows::{Natives, raw};
use crate::script::bind::signed::{Binder, Bound, Form, MOST};
use crate::script::host::Host;
use crate::script::source::scope::{EXPORTED, written};
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{
    AST, Dynamic, FnAccess, FnNamespace, FnPtr, FuncRegistration, ImmutableString, Module, NativeCallContext, RhaiFunc,
    ScriptFuncDef,
};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A native function as Rhai keeps it; all numbers of values share one.
type Call = Arc<dyn Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native + Send + Sync>;

/// The functions of a module that have signatures, under the names by which others call them.
pub fn offer(module: &mut Module, host: &Arc<Host>, ast: &AST, signatures: BTreeMap<String, Signature>) {
    let mut widest: BTreeMap<&str, &Arc<ScriptFuncDef>> = BTreeMap::new();
    for def in ast.iter_fn_def().filter(|def| def.access == FnAccess::Public) {
        let known = widest.entry(written(&def.name)).or_insert(def);
        if known.params.len() < def.params.len() {
            *known = def;
        }
    }
    for (name, signature) in signatures {
        let Some(def) = widest.get(name.as_str()) else { continue };
        // So that a native function can call it; its name is nobody else's.
        let hash = Module::new().set_script_fn((*def).clone());
        #[allow(deprecated)]
        module.update_fn_namespace(hash, FnNamespace::Global);
        let rest = def.params.last().is_some_and(|param| param == "options");
        let form = Form { own: def.params.len() - rest as usize, rest };
        let (inner, most) = (def.name.clone(), signature.positional.min(MOST - 1) + 1);
        let (host, binder) = (host.clone(), Binder::new(signature));
        let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            // Rhai lends variables: they are not ours to take.
            let given = values.iter().map(|value| value.flatten_clone()).collect();
            let bound = binder.bind(form, given, 0).map_err(|diag| host.raise(&context, diag, ""))?;
            made(&context, &inner, bound)
        };
        let call: Call = Arc::new(call);
        let exported: ImmutableString = format!("{name}{EXPORTED}").into();
        for arity in 0..=most {
            let func = RhaiFunc::Method { func: call.clone(), has_context: true, is_pure: true, is_volatile: true };
            let types = [TypeId::of::<Dynamic>(); MOST];
            FuncRegistration::new(exported.clone()).place_raw_in(module, &types[..arity], func);
        }
    }
}

fn made(context: &NativeCallContext, inner: &str, mut bound: Bound) -> Native {
    let mut arguments: Vec<&mut Dynamic> = bound.values.iter_mut().collect();
    let mut result = context.call_fn_raw(inner, false, false, &mut arguments)?;
    if bound.placement.is_empty() {
        return Ok(result);
    }
    context.call_fn_raw("to", true, true, &mut [&mut result, &mut bound.placement.into()])
}

/// `_callable(signature, own, closure)`: a method with keywords; the closure takes `own` values, `()` for those that
/// were not given, and a map of the others if the signature has more.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_callable", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        callable(&shared, values).map_err(|diag| shared.raise(&context, diag, ""))
    });
}

fn callable(host: &Arc<Host>, values: &[&mut Dynamic]) -> Result<Dynamic> {
    let text = values[0].read_lock::<ImmutableString>().map(|text| text.to_string()).unwrap_or_default();
    let Some(signature) = Signature::parse(&text) else { fail!(VALUE, "`{text}` is no signature") };
    let Some(inner) = values[2].clone().try_cast::<FnPtr>() else {
        fail!(ARGUMENT_TYPE, "`{}`: a closure is wanted, not {}", signature.name, type_names::of_value(values[2]));
    };
    let own = values[1].as_int().ok().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let form = Form { own, rest: signature.params.len() > own };
    let (host, binder) = (host.clone(), Binder::new(signature));
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        let Some((this, given)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
        let given = given.iter_mut().map(|value| std::mem::take(*value)).collect();
        let bound = binder.bind(form, given, own).map_err(|diag| host.raise(&context, diag, ""))?;
        inner.call_raw(&context, Some(this), bound.values)
    };
    // The function has no name of its own; a method is found by the map's key.
    #[allow(deprecated)]
    let made = FnPtr::from_fn("forward", call);
    made.map(Dynamic::from).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))
}
