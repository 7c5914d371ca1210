//! `func::grad`, `func::grad_and_value` and `func::vjp`.

use super::calls::{Argnums, Call, Ran, closure, function, is_live, leave, named, run};
use super::tree;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::bind::native::{flag, native, variadic};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::grad::Mode;
use crate::tensor::hooks::GradMode;
use crate::tensor::transforms;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// Bound: arguments of one call.
pub const MOST: usize = 15;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for (name, with_value) in [("func::grad", false), ("func::grad_and_value", true)] {
        let shared = host.clone();
        native(natives, host, name, move |_, _, [f, argnums, has_aux]| {
            let (f, argnums) = (function(f)?, Argnums::of(argnums)?);
            let has_aux = flag("has_aux", has_aux)?;
            let name = name.trim_start_matches("func::");
            closure(&shared, name, move |call, arguments| gradient(call, &f, &argnums, arguments, has_aux, with_value))
        });
    }
    let shared = host.clone();
    variadic(natives, "func::vjp", 1..=MOST, move |context, values| {
        let call = Call { host: &shared, context, name: "vjp" };
        let (f, primals, has_aux) = primals(values).map_err(|diag| call.wrong(diag))?;
        vjp(&call, &f, primals, has_aux)
    });
}

/// The function, its arguments, and `has_aux` of `vjp(f, *primals)`.
pub fn primals(values: &mut [&mut Dynamic]) -> Result<(Dynamic, Array, bool)> {
    let mut given: Array = values.iter().map(|value| value.flatten_clone()).collect();
    let mut has_aux = false;
    let named = given.last().and_then(|last| {
        let map = last.read_lock::<Map>()?;
        if map.len() == 1 { map.get("has_aux").cloned() } else { None }
    });
    if let Some(on) = named {
        has_aux = flag("has_aux", &on)?;
        given.pop();
    }
    let f = function(&given.remove(0))?;
    if given.is_empty() {
        return Err(Diag::error(code::MISSING_ARGUMENT, "the arguments of the function follow it"));
    }
    Ok((f, given, has_aux))
}

/// The arguments of a function that is differentiated for all of them.
pub fn all(primals: &Array) -> Argnums {
    Argnums::Several((0..primals.len() as i64).collect())
}

fn gradient(call: &Call, f: &Dynamic, argnums: &Argnums, arguments: Array, has_aux: bool, with_value: bool) -> Native {
    let Ran { chosen, inputs, output, aux, recorded } = run(call, f, argnums, arguments, has_aux)?;
    let (grads, value, aux) = call.with(|e| {
        let Some(y) = tree::tensor(&output) else {
            let found = crate::script::values::type_names::of_value(&output);
            return Err(Diag::error(code::TRANSFORM, format!("the function must give a tensor, not {found}")));
        };
        if y.ndim() > 0 {
            let shape = y.shape();
            let text = format!(
                "the function must give a tensor without dimensions, and gave one of shape {:?}",
                shape.as_slice()
            );
            return Err(Diag::error(code::GRAD_SHAPE, text).help(
                "reduce it to one number, for example with `.sum()`; `func::jacrev` differentiates each element",
            ));
        }
        let grads = gradients(e, &y, &inputs, recorded)?;
        let value = leave(e, &output, recorded)?;
        let aux = aux.map(|aux| leave(e, &aux, recorded)).transpose()?;
        Ok((tree::of_tensors(&chosen, grads), value, aux))
    })?;
    Ok(match (with_value, aux) {
        (false, None) => grads,
        (false, Some(aux)) => Dynamic::from(vec![grads, aux]),
        (true, None) => Dynamic::from(vec![grads, value]),
        (true, Some(aux)) => Dynamic::from(vec![grads, Dynamic::from(vec![value, aux])]),
    })
}

fn gradients(e: &mut Engine, y: &Tensor, inputs: &[Tensor], recorded: bool) -> Result<Vec<Tensor>> {
    if !y.dtype().is_float() {
        let text = format!("the function must give a tensor of a floating-point dtype, not {}", y.dtype());
        return Err(Diag::error(code::DTYPE, text));
    }
    let live = is_live(e, std::slice::from_ref(y), recorded)?;
    let one = transforms::filled(e, y, 1)?;
    let mode = Mode { create_graph: live, retain_graph: live, ..Mode::default() };
    let _mode = GradMode::set(&e.rt, true);
    let found = transforms::pull_back(e, std::slice::from_ref(y), inputs, &[one], mode)?;
    found.iter().map(|g| transforms::leave(e, g, recorded)).collect()
}

/// Runs the function, and gives its output and a function of cotangents.
fn vjp(call: &Call, f: &Dynamic, primals: Array, has_aux: bool) -> Native {
    let argnums = all(&primals);
    let Ran { chosen, inputs, output, aux, recorded } = run(call, f, &argnums, primals, has_aux)?;
    let ys = tree::tensors(&output, "the result of the function").map_err(|diag| call.wrong(diag))?;
    let (value, aux, live) = call.with(|e| {
        let aux = aux.map(|aux| leave(e, &aux, recorded)).transpose()?;
        Ok((leave(e, &output, recorded)?, aux, is_live(e, &ys, recorded)?))
    })?;
    let pull = closure(call.host, "vjp", move |call, mut given| {
        let cotangent = if given.len() == 1 { given.remove(0) } else { Dynamic::from(given) };
        call.with(|e| {
            let gs = like_results(&cotangent, &output, &ys)?;
            let recorded = e.rt.grad_enabled();
            let live = recorded && (live || is_live(e, &gs, true)?);
            let mode = Mode { create_graph: live, retain_graph: true, ..Mode::default() };
            let found = transforms::pull_back(e, &ys, &inputs, &gs, mode)?;
            let left: Result<Vec<Tensor>> = found.iter().map(|g| transforms::leave(e, g, recorded)).collect();
            Ok(tree::of_tensors(&chosen, left?))
        })
    })
    .map_err(|diag| call.wrong(named("vjp", diag)))?;
    let mut all = vec![value, pull];
    all.extend(aux);
    Ok(Dynamic::from(all))
}

/// The tensors of a cotangent, which has the structure of the results.
fn like_results(cotangent: &Dynamic, output: &Dynamic, ys: &[Tensor]) -> Result<Vec<Tensor>> {
    if !tree::is_alike(cotangent, output) {
        return Err(Diag::error(
            code::TRANSFORM,
            "the cotangents must be arrays and maps as the function's results are",
        ));
    }
    let gs = tree::tensors(cotangent, "a cotangent")?;
    for (g, y) in gs.iter().zip(ys) {
        same_shape("cotangent", g, "result", y)?;
    }
    Ok(gs)
}

/// The error of a tangent or cotangent of another shape.
pub fn same_shape(what: &str, g: &Tensor, of: &str, y: &Tensor) -> Result<()> {
    if g.shape() != y.shape() {
        let (own, expected) = (g.shape(), y.shape());
        let text = format!("a {what} has shape {:?}, and its {of} {:?}", own.as_slice(), expected.as_slice());
        return Err(Diag::error(code::GRAD_SHAPE, text));
    }
    if !g.dtype().is_differentiable() || (g.dtype().is_complex() && !y.dtype().is_complex()) {
        let text = format!("a {what} of dtype {} does not go with a {of} of dtype {}", g.dtype(), y.dtype());
        return Err(Diag::error(code::DTYPE, text));
    }
    Ok(())
}
