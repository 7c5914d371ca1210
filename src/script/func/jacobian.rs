//! `func::jacrev`, `func::jacfwd` and `func::hessian`: all derivatives of a function, by `vmap` over the standard basis.

use super::calls::{Argnums, Call, Ran, closure, function, is_live, leave, run};
use super::tree;
use super::vmap::{Entered, randomness};
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::op::row::Source;
use crate::op::rows::creation::create::EYE;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::{NARROW, PERMUTE};
use crate::op::rows::shape::view::RESHAPE;
use crate::sched::samples::Randomness;
use crate::script::bind::convert::integer;
use crate::script::bind::native::{flag, given, native};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::grad::Mode;
use crate::tensor::hooks::GradMode;
use crate::tensor::transforms;
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    native(natives, host, "func::jacrev", move |_, _, [f, argnums, has_aux, chunk_size]| {
        let (f, argnums) = (function(f)?, Argnums::of(argnums)?);
        let (has_aux, chunk) = (flag("has_aux", has_aux)?, chunk(chunk_size)?);
        closure(&shared, "jacrev", move |call, arguments| jacrev(call, &f, &argnums, arguments, has_aux, chunk))
    });
    let shared = host.clone();
    native(natives, host, "func::jacfwd", move |_, _, [f, argnums, has_aux, randomness_]| {
        let (f, argnums) = (function(f)?, Argnums::of(argnums)?);
        let (has_aux, randomness) = (flag("has_aux", has_aux)?, randomness(randomness_)?);
        closure(&shared, "jacfwd", move |call, arguments| jacfwd(call, &f, &argnums, arguments, has_aux, randomness))
    });
    let shared = host.clone();
    native(natives, host, "func::hessian", move |_, _, [f, argnums]| {
        let (f, argnums) = (function(f)?, Argnums::of(argnums)?);
        let inner = argnums.clone();
        let gradient =
            closure(&shared, "hessian", move |call, arguments| jacrev(call, &f, &inner, arguments, false, None))?;
        closure(&shared, "hessian", move |call, arguments| {
            jacfwd(call, &gradient, &argnums, arguments, false, Randomness::Error)
        })
    });
}

/// The value of `chunk_size`: how many samples at once.
pub fn chunk(value: &Dynamic) -> Result<Option<usize>> {
    let Some(value) = given(value) else { return Ok(None) };
    match integer(value) {
        Some(n) if n > 0 => Ok(Some(n as usize)),
        _ => {
            let found = type_names::of_value(value);
            Err(Diag::error(code::VALUE, format!("`chunk_size` is an integer above 0, or `()`, not {found} {value}")))
        }
    }
}

/// Rows of the standard basis of a tensor's elements, in its shape.
fn basis(e: &mut Engine, like: &Tensor, from: usize, count: usize) -> Result<Tensor> {
    let n = like.numel();
    let all = e.call_row(&EYE, args![n, (), like.dtype(), like.device()])?;
    let rows = if count == n { all } else { e.call_row(&NARROW, args![&all, 0, from, count])? };
    let shape: Vec<usize> = std::iter::once(count).chain(like.shape().iter().copied()).collect();
    e.call_row(&RESHAPE, args![&rows, shape.as_slice()])
}

/// Calls `work` with the standard basis as samples; gives its results with these in front, for all of the basis.
fn over_basis(
    e: &mut Engine,
    like: &Tensor,
    chunk: Option<usize>,
    randomness: Randomness,
    work: &mut dyn FnMut(&mut Engine, Tensor) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let n = like.numel();
    let step = chunk.unwrap_or(n).min(n);
    let mut parts: Vec<Vec<Tensor>> = Vec::new();
    for from in (0..n).step_by(step.max(1)) {
        let count = step.min(n - from);
        let rows = basis(e, like, from, count)?;
        let level = Entered::new(&e.rt, count, randomness);
        let rows = level.hide(e, &rows, 0)?;
        let mut seen = Vec::new();
        for x in work(e, rows)? {
            seen.push(level.show(e, &x)?);
        }
        parts.push(seen);
    }
    if parts.len() == 1 {
        return Ok(parts.swap_remove(0));
    }
    let count = parts[0].len();
    let joined = |e: &mut Engine, at: usize| {
        let pieces: Vec<Tensor> = parts.iter().map(|part| part[at].clone()).collect();
        e.call_row(&CAT, args![pieces, 0])
    };
    (0..count).map(|at| joined(e, at)).collect()
}

fn shape_of(y: &Tensor, x: &Tensor) -> Vec<usize> {
    y.shape().iter().chain(x.shape().iter()).copied().collect()
}

/// A Jacobian without elements.
fn empty(e: &mut Engine, y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let zero = Source::Fill(crate::base::dtype::Scalar::Int(0));
    crate::op::emit::Emit::source(e, zero, &shape_of(y, x), x.dtype(), x.device())
}

/// The Jacobians of each result for each input, by rows: a cotangent for each element of a result.
fn by_rows(
    e: &mut Engine,
    ys: &[Tensor],
    inputs: &[Tensor],
    chunk: Option<usize>,
    mode: Mode,
) -> Result<Vec<Vec<Tensor>>> {
    let mut all = Vec::new();
    for y in ys {
        if y.numel() == 0 {
            all.push(inputs.iter().map(|x| empty(e, y, x)).collect::<Result<_>>()?);
            continue;
        }
        let found = over_basis(e, y, chunk, Randomness::Same, &mut |e, rows| {
            transforms::pull_back(e, std::slice::from_ref(y), inputs, &[rows], mode)
        })?;
        let mut shaped = Vec::new();
        for (g, x) in found.iter().zip(inputs) {
            shaped.push(e.call_row(&RESHAPE, args![g, shape_of(y, x).as_slice()])?);
        }
        all.push(shaped);
    }
    Ok(all)
}

/// The same by columns: a tangent for each element of an input.
fn by_columns(
    e: &mut Engine,
    ys: &[Tensor],
    inputs: &[Tensor],
    randomness: Randomness,
    live: bool,
) -> Result<Vec<Vec<Tensor>>> {
    let mut all: Vec<Vec<Tensor>> = vec![Vec::new(); ys.len()];
    for (at, x) in inputs.iter().enumerate() {
        if x.numel() == 0 {
            for (list, y) in all.iter_mut().zip(ys) {
                list.push(empty(e, y, x)?);
            }
            continue;
        }
        let found = over_basis(e, x, None, randomness, &mut |e, columns| {
            let mut tangents = Vec::new();
            for other in 0..inputs.len() {
                tangents.push((other == at).then(|| columns.clone()));
            }
            transforms::push_forward(e, ys, inputs, &tangents, live)
        })?;
        for ((list, y), t) in all.iter_mut().zip(ys).zip(&found) {
            let order: Vec<usize> = (1..t.ndim()).chain([0]).collect();
            let last = e.call_row(&PERMUTE, args![t, order.as_slice()])?;
            list.push(e.call_row(&RESHAPE, args![&last, shape_of(y, x).as_slice()])?);
        }
    }
    Ok(all)
}

/// The results' structure, with that of the inputs in place of each tensor.
fn nested(
    e: &mut Engine,
    output: &Dynamic,
    chosen: &Dynamic,
    all: Vec<Vec<Tensor>>,
    recorded: bool,
) -> Result<Dynamic> {
    let mut blocks = Vec::new();
    for list in all {
        let left: Result<Vec<Tensor>> = list.iter().map(|j| transforms::leave(e, j, recorded)).collect();
        blocks.push(tree::of_tensors(chosen, left?));
    }
    Ok(tree::rebuilt(output, &mut blocks.into_iter()))
}

fn results(output: &Dynamic) -> Result<Vec<Tensor>> {
    let ys = tree::tensors(output, "the result of the function")?;
    match ys.iter().find(|y| !y.dtype().is_float()) {
        Some(y) => {
            let text = format!("the function must give tensors of floating-point dtypes, not {}", y.dtype());
            Err(Diag::error(code::DTYPE, text))
        }
        None => Ok(ys),
    }
}

fn jacrev(
    call: &Call,
    f: &Dynamic,
    argnums: &Argnums,
    arguments: Array,
    has_aux: bool,
    chunk: Option<usize>,
) -> Native {
    let Ran { chosen, inputs, output, aux, recorded } = run(call, f, argnums, arguments, has_aux)?;
    finish(call, aux, recorded, |e| {
        let ys = results(&output)?;
        let mode = Mode { retain_graph: true, create_graph: is_live(e, &ys, recorded)?, ..Mode::default() };
        let all = by_rows(e, &ys, &inputs, chunk, mode)?;
        nested(e, &output, &chosen, all, recorded)
    })
}

fn jacfwd(
    call: &Call,
    f: &Dynamic,
    argnums: &Argnums,
    arguments: Array,
    has_aux: bool,
    randomness: Randomness,
) -> Native {
    let Ran { chosen, inputs, output, aux, recorded } = run(call, f, argnums, arguments, has_aux)?;
    finish(call, aux, recorded, |e| {
        let ys = results(&output)?;
        let live = is_live(e, &ys, recorded)?;
        let all = by_columns(e, &ys, &inputs, randomness, live)?;
        nested(e, &output, &chosen, all, recorded)
    })
}

fn finish(
    call: &Call,
    aux: Option<Dynamic>,
    recorded: bool,
    jacobians: impl FnOnce(&mut Engine) -> Result<Dynamic>,
) -> Native {
    let (jacobians, aux) = call.with(|e| {
        let _mode = GradMode::set(&e.rt, true);
        let jacobians = jacobians(e)?;
        Ok((jacobians, aux.map(|aux| leave(e, &aux, recorded)).transpose()?))
    })?;
    Ok(match aux {
        Some(aux) => Dynamic::from(vec![jacobians, aux]),
        None => jacobians,
    })
}
