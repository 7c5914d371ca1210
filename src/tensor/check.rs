//! `--check`: finds the first operation that turns finite inputs into NaN or infinity. Waits for each operation of
//! the script, and checks the elements of its operands before and after it.

use super::engine::Engine;
use super::grad::EdgeGrads;
use crate::base::attr::Attr;
use crate::base::bytes::element;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::op::args::{Arg, Args};
use crate::op::row::Op;
use crate::op::tensor::{GradNode, Tensor, View};
use std::sync::Arc;

/// Whether the results of this call are checked: it is not part of another, and all its inputs are finite.
pub fn before(e: &Engine, op: &Op, args: &Args) -> bool {
    e.rt.options.check && e.name.is_empty() && !op.leaves_unset && are_finite(e, args)
}

/// The operation has run. Operands that it wrote count as results too.
pub fn after(e: &Engine, name: &str, args: &Args, results: &[Tensor]) -> Result<()> {
    let mut views: Vec<Arc<View>> = results.iter().map(Tensor::view).collect();
    args.for_each_tensor(|tensor| views.push(tensor.view()));
    match views.iter().find_map(|view| first_bad(e, view).map(|bad| (view, bad))) {
        None => Ok(()),
        Some((view, bad)) => {
            let views: Vec<Arc<View>> = views.iter().filter(|view| first_bad(e, view).is_some()).cloned().collect();
            let message = format!("`{name}` made NaN or infinity from finite inputs");
            Err(report(e, message, view, bad, &views))
        }
    }
}

/// Whether the inputs of this step of a backward are finite; false if they are not checked.
pub fn of_backward(e: &Engine, node: &GradNode, grads: &[Option<Tensor>]) -> bool {
    if !e.rt.options.check || !are_finite(e, &node.args) {
        return false;
    }
    let saved = node.saved.lock();
    let kept = saved.iter().flatten().flatten().map(|saved| saved.held.view().clone());
    let arrived = grads.iter().flatten().map(Tensor::view);
    kept.chain(arrived).all(|view| first_bad(e, &view).is_none())
}

/// The step has computed these gradients.
pub fn after_backward(e: &Engine, node: &GradNode, inputs_finite: bool, out: EdgeGrads) -> Result<EdgeGrads> {
    if !inputs_finite {
        return Ok(out);
    }
    let views = out.iter().map(|(_, gradient)| gradient.view());
    match views.into_iter().find_map(|view| first_bad(e, &view).map(|bad| (view, bad))) {
        None => Ok(out),
        Some((view, bad)) => {
            let message = format!("the gradient of `{}` made NaN or infinity from finite inputs", node.op.name);
            Err(report(e, message, &view, bad, std::slice::from_ref(&view)))
        }
    }
}

/// `detect_anomaly`: a step of backward that computed NaN.
#[cold]
pub fn nan_of_backward(e: &Engine, node: &GradNode, out: EdgeGrads) -> Result<EdgeGrads> {
    for (_, gradient) in &out {
        let view = gradient.view();
        if find(e, &view, f64::is_nan).is_some() {
            let message = format!("the gradient of `{}` has NaN", node.op.name);
            return Err(Diag::error(code::CHECK_NOT_FINITE, message).label(
                node.origin,
                Focus::Expression,
                "in the gradient of this operation",
            ));
        }
    }
    Ok(out)
}

fn report(e: &Engine, message: String, view: &View, (position, value): (usize, f64), views: &[Arc<View>]) -> Box<Diag> {
    let place = e.rt.place_of(view.buffer.device);
    let diag = Diag::error(code::CHECK_NOT_FINITE, message)
        .label(e.origin, Focus::Expression, format!("queued here, on {place}"))
        .note(format!("the first is element {position} of the result, {value}"));
    e.rt.found(diag, views)
}

fn are_finite(e: &Engine, args: &Args) -> bool {
    let mut finite = true;
    args.for_each_tensor(|tensor| finite = finite && first_bad(e, &tensor.view()).is_none());
    finite && args.0.iter().all(|arg| !matches!(arg, Arg::Attr(attr) if !is_finite(attr)))
}

fn is_finite(attr: &Attr) -> bool {
    match attr {
        Attr::Float(value) => value.is_finite(),
        Attr::Scalar(value) => value.to_f64().is_finite(),
        Attr::Floats(values) => values.iter().all(|value| value.is_finite()),
        _ => true,
    }
}

/// Position and value of the first element that is not finite. A poisoned tensor counts as not finite as an operand
/// and as valid as a result: its own fault is reported, not the consequences.
fn first_bad(e: &Engine, view: &Arc<View>) -> Option<(usize, f64)> {
    find(e, view, |value| !value.is_finite())
}

fn find(e: &Engine, view: &Arc<View>, is_bad: fn(f64) -> bool) -> Option<(usize, f64)> {
    if !view.dtype.is_differentiable() || view.layout.numel() == 0 {
        return None;
    }
    let view = &view.clone().as_real();
    let bytes = e.rt.peek_elements(view)?;
    let values = bytes.chunks_exact(view.dtype.size_bytes()).map(|chunk| element(chunk, view.dtype).to_f64());
    values.enumerate().find(|(_, value)| is_bad(*value))
}
