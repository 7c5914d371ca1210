//! Functions whose backward is code of the script, as PyTorch's `torch.autograd.Function`: their nodes in the gradient
//! graph.

use super::batch::{self, script_code};
use super::engine::Engine;
use super::grad::{EdgeGrads, Walk};
use super::history;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::layout::broadcast;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Op};
use crate::op::tensor::{Edges, GradCall, GradNode, GradStep, Levels, Meta, SavedEdge, Tensor};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

static FUNCTION: Op = Op { name: "function", call: CallForm::Internal, ..Op::BASE };

static ONCE: Op = Op {
    name: "function",
    call: CallForm::Internal,
    grad: Grad::Stop("its backward is marked `once_differentiable`"),
    ..Op::BASE
};

/// A call of such a function that has run.
pub struct Call<'a> {
    /// One for each argument; none for what is no tensor.
    pub inputs: &'a [Option<Tensor>],
    pub saved: &'a [Option<Tensor>],
    pub backward: Box<dyn GradCall>,
}

/// Gives the results, made without recording, their place in the graph. Those that are arguments or have a place
/// already become handles of their own.
pub fn record(e: &mut Engine, mut call: Call, outputs: &mut [&mut Tensor], differentiable: &[bool]) -> Result<()> {
    if let Some(tensor) = call.saved.iter().flatten().find(|tensor| tensor.is_inference()) {
        return Err(history::of_inference(tensor, "cannot be saved for backward"));
    }
    let given: Vec<Tensor> = outputs.iter().map(|output| (**output).clone()).collect();
    let around = script_code::Around::of(e, call.inputs, call.saved, outputs)?;
    if let Some(around) = &around {
        for (output, _) in outputs.iter_mut().zip(differentiable).filter(|(_, on)| **on) {
            **output = around.lifted(e, output)?;
        }
    }
    let kept: Vec<_> =
        call.saved.iter().map(|x| x.as_ref().map(|x| call.kept(x, &given, outputs, differentiable))).collect();
    if let Some(around) = around {
        let levels = kept.iter().map(|kept| kept.as_ref().map_or_else(Levels::new, |(x, _)| batch::levels(x)));
        call.backward = around.all_samples(e, levels.collect(), call.backward);
    }
    let (mut edges, mut inputs) = (Edges::new(), SmallVec::new());
    for input in call.inputs {
        edges.push(match input {
            Some(tensor) => history::edge_of(e, tensor)?,
            None => None,
        });
        inputs.push(input.as_ref().map(|input| Meta::of(&batch::value(input))));
    }
    let saved = |(x, edge): (Tensor, SavedEdge)| history::saved(&batch::value(&x), x.0.made, edge);
    let saved = kept.into_iter().map(|kept| kept.map(saved)).collect();
    let metas = outputs.iter().map(|output| Meta::of(&batch::value(output))).collect();
    let mut node = history::plain_node(e, &FUNCTION, Args::default(), inputs, metas, edges);
    history::keep(e, &mut node, saved);
    node.own = Some(call.backward);
    let node = Arc::new(node);
    for (n, output) in outputs.iter_mut().enumerate().filter(|(n, _)| differentiable[*n]) {
        let is_taken = output.requires_grad() || call.inputs.iter().flatten().any(|input| input.same(output));
        if is_taken {
            **output = e.detach(output);
        }
        history::attach(&batch::value(output), &node, n);
    }
    Ok(())
}

impl Call<'_> {
    /// A tensor that is saved, and its place; results, `given` by the function, may have become others since.
    fn kept(
        &self,
        x: &Tensor,
        given: &[Tensor],
        outputs: &[&mut Tensor],
        differentiable: &[bool],
    ) -> (Tensor, SavedEdge) {
        let is_it = |other: &Tensor| other.same(x);
        if let Some(slot) = self.inputs.iter().position(|input| input.as_ref().is_some_and(is_it)) {
            return (x.clone(), if x.requires_grad() { SavedEdge::Input(slot) } else { SavedEdge::None });
        }
        match given.iter().position(is_it) {
            Some(n) if differentiable[n] => (outputs[n].clone(), SavedEdge::Output(n)),
            _ => (x.clone(), SavedEdge::None),
        }
    }
}

impl Walk<'_> {
    /// The gradients of the arguments, from the script's backward.
    #[cold]
    pub(super) fn own_backward(
        &mut self,
        node: &Arc<GradNode>,
        own: &dyn GradCall,
        grads: &[Option<Tensor>],
    ) -> Result<EdgeGrads> {
        let saved = self.unpack(node)?;
        let step = GradStep {
            grads,
            saved: &saved,
            inputs: &node.inputs,
            outputs: &node.outputs,
            origin: node.origin,
            create_graph: self.mode.create_graph,
            accumulates: self.accumulate,
        };
        let found = self.called(own, &step)?;
        let mut out = EdgeGrads::new();
        for (slot, g) in found.into_iter().enumerate() {
            let (Some(g), Some(Some(edge)), Some(Some(meta))) = (g, node.edges.get(slot), node.inputs.get(slot)) else {
                continue;
            };
            check(slot, &g, meta)?;
            out.push((edge.clone(), self.sum_to_operand(g, Some(meta))?));
        }
        Ok(out)
    }
}

/// A gradient that backward gave for an argument; one of more dimensions is summed up.
pub fn check(slot: usize, g: &Tensor, meta: &Meta) -> Result<()> {
    let shape = g.shape();
    if broadcast(&meta.shape, &shape).is_none_or(|wide| wide != shape) {
        let (found, expected) = (shape.as_slice(), meta.shape.as_slice());
        let text =
            format!("`backward` gave a gradient of shape {found:?} for argument {slot}, whose shape is {expected:?}");
        return Err(Diag::error(code::GRAD_OWN, text));
    }
    if g.device() != meta.device {
        let text =
            format!("`backward` gave a gradient on {} for argument {slot}, which is on {}", g.device(), meta.device);
        return Err(Diag::error(code::GRAD_OWN, text));
    }
    if !g.dtype().is_differentiable() {
        let text = format!("`backward` gave a gradient of dtype {} for argument {slot}", g.dtype());
        return Err(Diag::error(code::GRAD_OWN, text));
    }
    Ok(())
}

/// A gradient from which no gradient may be computed.
pub fn once(e: &mut Engine, g: &Tensor, grads: &[Option<Tensor>]) -> Result<Tensor> {
    let mut edges: Edges = smallvec![];
    for g in grads.iter().flatten() {
        edges.push(history::edge_of(e, g)?);
    }
    if edges.iter().all(Option::is_none) {
        return Ok(g.clone());
    }
    let inputs = grads.iter().flatten().map(|g| Some(Meta::of(&batch::value(g)))).collect();
    let alias = e.detach(g);
    let node = history::plain_node(e, &ONCE, Args::default(), inputs, smallvec![Meta::of(&batch::value(g))], edges);
    history::attach(&batch::value(&alias), &Arc::new(node), 0);
    Ok(alias)
}

/// Whether gradients flow to any of these.
pub fn is_recorded(e: &Engine, inputs: &[Option<Tensor>]) -> bool {
    e.grad_enabled() && inputs.iter().flatten().any(Tensor::requires_grad)
}
