//! What function transforms (`func::grad`, `func::vjp`, `func::jvp`) do with the gradient graph: inputs of their own, whose
//! gradients nobody else asks for, and results that do not show that a transform computed them.

use super::engine::Engine;
use super::grad::{self, Mode};
use super::{batch, forward, history};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::base::number_hash::ByNumber;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Op, Source};
use crate::op::tensor::{Edge, GradNode, Tensor};
use smallvec::smallvec;
use std::sync::Arc;

/// The input of a transform, connected to the tensor that was passed.
static INPUT: Op = Op { name: "input", call: CallForm::Internal, grad: Grad::Of(&[|t| t.g]), ..Op::BASE };

/// An input of a transform's own for a tensor that was passed: the same memory, and a place in the graph that is the
/// input's alone. It is connected with the tensor's place where gradients are `recorded` outside of the transform.
pub fn enter(e: &mut Engine, x: &Tensor, recorded: bool) -> Result<Tensor> {
    if !x.dtype().is_differentiable() {
        let text =
            format!("only tensors of floating-point or complex dtypes can be differentiated for, not {}", x.dtype());
        return Err(Diag::error(code::DTYPE, text).help("convert it, for example by `.to(\"f32\")`"));
    }
    // Inside of `vmap` each sample has a gradient of its own.
    let x = &batch::lifted(e, x)?;
    let plain = batch::value(x);
    let own = e.tensor(plain.view());
    if recorded && plain.requires_grad() {
        let edges = smallvec![history::edge_of(e, &plain)?];
        let metas = [plain.view().meta(), plain.view().meta()];
        let [input, output] = metas;
        let node = history::plain_node(e, &INPUT, Args::default(), smallvec![Some(input)], smallvec![output], edges);
        history::attach(&own, &Arc::new(node), 0);
    } else {
        history::set_leaf(&own, true);
    }
    Ok(batch::like(e, own, x))
}

/// The function of a transform has run: of its inputs nobody else asks for gradients.
pub fn end(inputs: &[Tensor]) {
    for input in inputs {
        batch::value(input).0.auto.lock().is_over = true;
    }
}

/// Whether gradients flow from a tensor to a leaf that is not the input of a transform that has ended.
pub fn is_live(e: &mut Engine, y: &Tensor) -> Result<bool> {
    let is_open = |leaf: &Tensor| leaf.requires_grad() && !leaf.0.auto.lock().is_over;
    let mut seen: ByNumber<u64, ()> = ByNumber::default();
    let mut stack: Vec<Arc<GradNode>> = Vec::new();
    match history::edge_of(e, &batch::value(y))? {
        Some(Edge::Leaf(leaf)) => return Ok(is_open(&leaf)),
        Some(Edge::Node(node, _)) => stack.push(node),
        None => return Ok(false),
    }
    while let Some(node) = stack.pop() {
        if seen.insert(node.sequence, ()).is_some() {
            continue;
        }
        for edge in node.next() {
            match edge {
                Edge::Leaf(leaf) if is_open(leaf) => return Ok(true),
                Edge::Leaf(_) => {}
                Edge::Node(next, _) => stack.push(next.clone()),
            }
        }
    }
    Ok(false)
}

/// A result as it leaves a transform: outside of the graph unless it leads to something outside of the transform.
pub fn leave(e: &mut Engine, y: &Tensor, recorded: bool) -> Result<Tensor> {
    let plain = batch::value(y);
    if !plain.requires_grad() || (recorded && is_live(e, y)?) {
        return Ok(y.clone());
    }
    let alone = e.detach(&plain);
    Ok(batch::like(e, alone, y))
}

/// The product of a cotangent with the Jacobian: a gradient for each input, zeros where nothing depends on it. Results that
/// do not require gradients are left out.
pub fn pull_back(e: &mut Engine, ys: &[Tensor], xs: &[Tensor], gs: &[Tensor], mode: Mode) -> Result<Vec<Tensor>> {
    let (mut seeds, mut weights) = (Vec::new(), Vec::new());
    for (y, g) in ys.iter().zip(gs) {
        if batch::value(y).requires_grad() {
            seeds.push(y.clone());
            weights.push(Some(g.clone()));
        }
    }
    let mode = Mode { allow_unused: true, materialize: false, ..mode };
    let found = match seeds.is_empty() {
        true => vec![None; xs.len()],
        false => grad::grad(e, &seeds, xs, &weights, mode)?,
    };
    found.into_iter().zip(xs).map(|(g, x)| g.map_or_else(|| zeros_like(e, x), Ok)).collect()
}

/// Zeros in the shape of a tensor, for each sample where it has samples.
pub fn zeros_like(e: &mut Engine, x: &Tensor) -> Result<Tensor> {
    filled(e, x, 0)
}

/// The derivatives of results along tangents of the inputs; those without a tangent stay as they are.
pub fn push_forward(
    e: &mut Engine,
    ys: &[Tensor],
    xs: &[Tensor],
    tangents: &[Option<Tensor>],
    live: bool,
) -> Result<Vec<Tensor>> {
    let found = forward::push(e, ys, xs, tangents, live)?;
    found.into_iter().zip(ys).map(|(t, y)| t.map_or_else(|| zeros_like(e, y), Ok)).collect()
}

/// A tensor as another, filled with a number.
pub fn filled(e: &mut Engine, x: &Tensor, number: i64) -> Result<Tensor> {
    let plain = batch::value(x);
    let made = e.source(Source::Fill(Scalar::Int(number)), &plain.shape(), plain.dtype(), plain.device())?;
    Ok(batch::like(e, made, x))
}
