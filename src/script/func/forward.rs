//! `func::jvp` and `func::linearize`: derivatives along tangents.

use super::calls::{Call, Ran, closure, function, is_live, leave, run};
use super::reverse::{MOST, all, primals, same_shape};
use super::tree;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::bind::native::{flag, native_in_context, variadic};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::hooks::GradMode;
use crate::tensor::transforms;
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    native_in_context(natives, host, "func::jvp", |host, context, [f, given, tangents, strict, has_aux]| {
        let call = Call { host, context, name: "jvp" };
        let parts = || -> Result<_> {
            let (strict, has_aux) = (flag("strict", strict)?, flag("has_aux", has_aux)?);
            Ok((function(f)?, list("primals", given)?, list("tangents", tangents)?, strict, has_aux))
        };
        let (f, given, tangents, strict, has_aux) = parts().map_err(|diag| call.wrong(diag))?;
        jvp(&call, &f, given, tangents, strict, has_aux)
    });
    let shared = host.clone();
    variadic(natives, "func::linearize", 1..=MOST, move |context, values| {
        let call = Call { host: &shared, context, name: "linearize" };
        let (f, primals, has_aux) = primals(values).map_err(|diag| call.wrong(diag))?;
        linearize(&call, &f, primals, has_aux)
    });
}

fn list(name: &str, value: &Dynamic) -> Result<Array> {
    value.read_lock::<Array>().map(|list| list.clone()).ok_or_else(|| {
        let found = type_names::of_value(value);
        Diag::error(code::ARGUMENT_TYPE, format!("`{name}` is an array with one for each argument, not {found}"))
            .help("`func::jvp(f, [x], [tangent])`")
    })
}

/// The tensors of tangents, one for each of the primals.
fn tangents_of(chosen: &Dynamic, tangents: &Array, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let tangents = Dynamic::from(tangents.clone());
    if !tree::is_alike(&tangents, chosen) {
        return Err(Diag::error(code::TRANSFORM, "the tangents must be arrays and maps as the primals are"));
    }
    let found = tree::tensors(&tangents, "a tangent")?;
    for (t, x) in found.iter().zip(inputs) {
        same_shape("tangent", t, "primal", x)?;
    }
    Ok(found)
}

fn results(output: &Dynamic) -> Result<Vec<Tensor>> {
    tree::tensors(output, "the result of the function")
}

/// Derivatives of results that have no gradient are zeros; `strict` refuses them.
fn check_strict(ys: &[Tensor], strict: bool) -> Result<()> {
    match ys.iter().position(|y| !y.requires_grad()) {
        Some(at) if strict => Err(Diag::error(
            code::GRAD_NONE,
            format!("with `strict` each result must depend on the primals, and result {at} does not"),
        )),
        _ => Ok(()),
    }
}

fn jvp(call: &Call, f: &Dynamic, primals: Array, tangents: Array, strict: bool, has_aux: bool) -> Native {
    if tangents.len() != primals.len() {
        let text = format!("there are {} primals and {} tangents", primals.len(), tangents.len());
        return Err(call.wrong(Diag::error(code::TRANSFORM, text)));
    }
    if primals.is_empty() {
        return Err(call.wrong(Diag::error(code::TRANSFORM, "there is no tensor to differentiate for")));
    }
    let argnums = all(&primals);
    let checked = Dynamic::from(primals.clone());
    let given = tree::tensors(&checked, "what is differentiated for").map_err(|diag| call.wrong(diag))?;
    let ts = tangents_of(&checked, &tangents, &given).map_err(|diag| call.wrong(diag))?;
    let Ran { inputs, output, aux, recorded, .. } = run(call, f, &argnums, primals, has_aux)?;
    let (value, forward, aux) = call.with(|e| {
        let ys = results(&output)?;
        check_strict(&ys, strict)?;
        let live = is_live(e, &ys, recorded)? || is_live(e, &ts, recorded)?;
        let _mode = GradMode::set(&e.rt, true);
        let ts: Vec<Option<Tensor>> = ts.into_iter().map(Some).collect();
        let forward = transforms::push_forward(e, &ys, &inputs, &ts, live)?;
        let forward: Result<Vec<Tensor>> = forward.iter().map(|t| transforms::leave(e, t, recorded)).collect();
        let aux = aux.map(|aux| leave(e, &aux, recorded)).transpose()?;
        Ok((leave(e, &output, recorded)?, tree::of_tensors(&output, forward?), aux))
    })?;
    let mut all = vec![value, forward];
    all.extend(aux);
    Ok(Dynamic::from(all))
}

/// Runs the function once, and gives its output and a function of tangents that does not run it again.
fn linearize(call: &Call, f: &Dynamic, primals: Array, has_aux: bool) -> Native {
    if has_aux {
        return Err(call.wrong(Diag::error(code::UNKNOWN_KEYWORD, "there is no keyword `has_aux`")));
    }
    let argnums = all(&primals);
    let Ran { chosen, inputs, output, recorded, .. } = run(call, f, &argnums, primals, false)?;
    let (value, ys, live) = call.with(|e| {
        let ys = results(&output)?;
        let live = is_live(e, &ys, recorded)?;
        Ok((leave(e, &output, recorded)?, ys, live))
    })?;
    let push = closure(call.host, "linearize", move |call, given| {
        call.with(|e| {
            let ts = tangents_of(&chosen, &given, &inputs)?;
            let recorded = e.rt.grad_enabled();
            let live = recorded && (live || is_live(e, &ts, true)?);
            let _mode = GradMode::set(&e.rt, true);
            let ts: Vec<Option<Tensor>> = ts.into_iter().map(Some).collect();
            let forward = transforms::push_forward(e, &ys, &inputs, &ts, live)?;
            let forward: Result<Vec<Tensor>> = forward.iter().map(|t| transforms::leave(e, t, recorded)).collect();
            Ok(tree::of_tensors(&output, forward?))
        })
    });
    Ok(Dynamic::from(vec![value, push.map_err(|diag| call.wrong(diag))?]))
}
