//! Functions and methods of the library that are called by signatures (`signed.rs`): the wrappers that bind their
//! arguments.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::signature::Signature;
use crate::fail;
use crate::script::bind::rows::{Natives, raw};
use crate::script::bind::signed::{Binder, Bound, Form, MAX_ARITY};
use crate::script::host::Host;
use crate::script::source::scope::{EXPORTED, written};
use crate::script::values::calling;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{
    AST, Dynamic, FnAccess, FnNamespace, FnPtr, FuncRegistration, ImmutableString, Module, NativeCallContext,
    ScriptFuncDef,
};
use std::any::TypeId;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Registers the functions of a module that have signatures, under the names by which other code calls them.
pub fn export_signed(module: &mut Module, host: &Arc<Host>, ast: &AST, signatures: BTreeMap<String, Signature>) {
    let mut widest: BTreeMap<&str, &Arc<ScriptFuncDef>> = BTreeMap::new();
    for def in ast.iter_fn_def().filter(|def| def.access == FnAccess::Public) {
        let known = widest.entry(written(&def.name)).or_insert(def);
        if known.params.len() < def.params.len() {
            *known = def;
        }
    }
    for (name, signature) in signatures {
        let Some(def) = widest.get(name.as_str()) else { continue };
        // Global, so that a native function can call it; the name is unique.
        let hash = Module::new().set_script_fn((*def).clone());
        #[allow(deprecated)]
        module.update_fn_namespace(hash, FnNamespace::Global);
        let rest = def.params.last().is_some_and(|param| param == "options");
        let form = Form { own: def.params.len() - rest as usize, rest };
        let (inner, max_args) = (def.name.clone(), signature.positional.min(MAX_ARITY - 1) + 1);
        let (host, binder) = (host.clone(), Binder::new(Cow::Owned(signature)));
        let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            // Rhai passes variables by reference; they must not be moved out.
            let arguments = values.iter().map(|value| value.flatten_clone()).collect();
            let bound = binder.bind(form, arguments, 0).map_err(|diag| host.raise(&context, diag, ""))?;
            call_inner(&context, &inner, bound)
        };
        let call = GuardedCall::new(call);
        let exported: ImmutableString = format!("{name}{EXPORTED}").into();
        for arity in 0..=max_args {
            let types = [TypeId::of::<Dynamic>(); MAX_ARITY];
            FuncRegistration::new(exported.clone()).place_shared_in(module, &types[..arity], &call);
        }
    }
}

/// `f.name` as it was written.
fn names(module: &mut Module) {
    let name = |pointer: &mut FnPtr| ImmutableString::from(written(pointer.fn_name()));
    FuncRegistration::new_getter("name").with_purity(true).place_in(module, name);
    FuncRegistration::new("name").in_global_namespace().with_purity(true).place_in(module, name);
}

fn call_inner(context: &NativeCallContext, inner: &str, mut bound: Bound) -> Native {
    let mut arguments: Vec<&mut Dynamic> = bound.values.iter_mut().collect();
    let mut result = context.call_fn_raw(inner, false, false, &mut arguments)?;
    if bound.placement.is_empty() {
        return Ok(result);
    }
    context.call_fn_raw("to", true, true, &mut [&mut result, &mut bound.placement.into()])
}

/// `_callable(signature, own, closure)`: a method with keywords; the closure takes `own` values, `()` for those that
/// were not arguments, and a map of the others if the signature has more.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    names(&mut module.module);
    let shared = host.clone();
    raw(module, "_callable", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        callable(&shared, values).map_err(|diag| shared.raise(&context, diag, ""))
    });
}

/// The name of every method with keywords: it is found by the map's key, and needs no name of its own.
const METHOD: &str = "__method";

/// Whether a value is what `_callable` gives: a method of an object of the library.
pub fn is_library_method(value: &Dynamic) -> bool {
    value.read_lock::<FnPtr>().is_some_and(|pointer| pointer.fn_name() == METHOD)
}

fn callable(host: &Arc<Host>, values: &[&mut Dynamic]) -> Result<Dynamic> {
    let text = values[0].read_lock::<ImmutableString>().map(|text| text.to_string()).unwrap_or_default();
    let Some(signature) = Signature::parse(&text) else { fail!(VALUE, "`{text}` is no signature") };
    let Some(inner) = values[2].clone().try_cast::<FnPtr>() else {
        fail!(ARGUMENT_TYPE, "`{}`: a closure is expected, not {}", signature.name, type_names::of_value(values[2]));
    };
    let own = values[1].as_int().ok().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let form = Form { own, rest: signature.params.len() > own };
    let (host, binder) = (host.clone(), Binder::new(Cow::Owned(signature)));
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        let Some((this, arguments)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
        let arguments = arguments.iter_mut().map(|value| std::mem::take(*value)).collect();
        let bound = binder.bind(form, arguments, own).map_err(|diag| host.raise(&context, diag, ""))?;
        // What it queues belongs to the user's line.
        let before = host.rt.calls.enter_silently(host.origin(&context).user);
        let result = calling::call(&context, &inner, Some(this), bound.values);
        host.rt.calls.leave(before);
        result
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn(METHOD, call);
    pointer.map(Dynamic::from).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))
}
