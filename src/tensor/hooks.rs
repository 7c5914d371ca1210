//! Hooks: what a script does with gradients on their way, as PyTorch's `register_hook`.

use super::batch::script_code;
use super::engine::Engine;
use super::grad::{Grads, Walk};
use super::history;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::span::Origin;
use crate::op::tensor::{Edge, GradCall, GradNode, GradStep, Hook, LeafHooks, Tensor};
use crate::sched::runtime::Runtime;
use std::sync::Arc;

/// Adds a hook of the gradient of a tensor: called in each backward, once all of the gradient is there. It stays with the
/// value that the tensor has now, also if the tensor is changed in place later.
pub fn register(e: &mut Engine, tensor: &Tensor, hook: Arc<dyn GradCall>) -> Result<()> {
    let hook = script_code::hook_of(e, tensor, hook);
    match history::edge_of(e, tensor)? {
        Some(Edge::Node(node, output)) => {
            let mut hooks = node.hooks.get_or_init(Default::default).lock();
            hooks.retain(|(_, hook)| !hook.is_over());
            hooks.push((output, hook));
        }
        Some(Edge::Leaf(leaf)) => add(&leaf, hook, |hooks| &mut hooks.gradient),
        None => {
            return Err(Diag::error(
                code::GRAD_NONE,
                "a tensor that does not require gradients has none to call a hook with",
            )
            .label(Origin::NONE, Focus::Call, "in this call")
            .label(tensor.0.made, Focus::Expression, "it was made here"));
        }
    }
    Ok(())
}

/// Whether a leaf has hooks that were not taken away.
pub fn has_any(leaf: &Tensor) -> bool {
    let auto = leaf.0.auto.lock();
    let Some(hooks) = &auto.hooks else { return false };
    hooks.gradient.iter().chain(&hooks.accumulated).any(|(_, hook)| !hook.is_over())
}

/// Adds a hook that is called with a leaf after its `.grad` has grown.
pub fn register_accumulated(e: &mut Engine, tensor: &Tensor, hook: Arc<dyn GradCall>) -> Result<()> {
    match history::edge_of(e, tensor)? {
        Some(Edge::Leaf(leaf)) => add(&leaf, hook, |hooks| &mut hooks.accumulated),
        _ => {
            return Err(Diag::error(code::GRAD_NONE, "only a leaf that requires gradients adds them up in `.grad`")
                .label(Origin::NONE, Focus::Call, "in this call")
                .label(tensor.0.made, Focus::Expression, "it was made here")
                .help("`register_hook` works for every tensor that requires gradients"));
        }
    }
    Ok(())
}

fn add(leaf: &Tensor, hook: Arc<dyn GradCall>, list: fn(&mut LeafHooks) -> &mut Vec<Hook>) {
    let mut auto = leaf.0.auto.lock();
    let list = list(auto.hooks.get_or_insert_default());
    list.retain(|(_, hook)| !hook.is_over());
    list.push((0, hook));
}

/// Whether operations are recorded, until it is dropped.
pub struct GradMode(Arc<Runtime>, bool);

impl GradMode {
    pub fn set(rt: &Arc<Runtime>, on: bool) -> GradMode {
        GradMode(rt.clone(), rt.set_grad_enabled(on))
    }
}

impl Drop for GradMode {
    fn drop(&mut self) {
        self.0.set_grad_enabled(self.1);
    }
}

/// A gradient that a hook gave in place of another.
fn check(new: &Tensor, old: &Tensor) -> Result<()> {
    let (new, old) = (new.view(), old.view());
    let (code, what, a, b) = if new.shape() != old.shape() {
        (code::GRAD_SHAPE, "shape", format!("{:?}", new.shape()), format!("{:?}", old.shape()))
    } else if new.dtype != old.dtype {
        (code::DTYPE, "dtype", new.dtype.to_string(), old.dtype.to_string())
    } else if new.buffer.device != old.buffer.device {
        (code::DEVICE_MISMATCH, "device", new.buffer.device.to_string(), old.buffer.device.to_string())
    } else {
        return Ok(());
    };
    Err(Diag::error(code, format!("a hook gave a gradient of {what} {a} in place of one of {what} {b}")))
}

impl Walk<'_> {
    /// Calls the hooks of a node's results with the gradients that have arrived.
    #[cold]
    pub(super) fn hooked(&mut self, node: &GradNode, grads: &mut Grads) -> Result<()> {
        // A hook may register others, which are called the next time.
        let hooks: Vec<Hook> = node.hooks.get().map_or(Vec::new(), |hooks| hooks.lock().clone());
        for (output, hook) in hooks {
            if let Some(g) = &mut grads[output] {
                self.replaced(&hook, g, node.origin)?;
            }
        }
        Ok(())
    }

    fn replaced(&mut self, hook: &Arc<dyn GradCall>, g: &mut Tensor, origin: Origin) -> Result<()> {
        let given = [Some(g.clone())];
        let create_graph = self.mode.create_graph;
        let accumulates = self.accumulate;
        let step = GradStep { grads: &given, saved: &[], inputs: &[], outputs: &[], origin, create_graph, accumulates };
        if let Some(new) = self.called(&**hook, &step)?.pop().flatten() {
            let place = |diag: Box<Diag>| {
                diag.label(Origin::NONE, Focus::Call, "in the backward that was asked for here").label(
                    origin,
                    Focus::Expression,
                    "the gradient is of what was made here",
                )
            };
            check(&new, g).map_err(place)?;
            *g = new;
        }
        Ok(())
    }

    /// Calls code of the script: operations in it are recorded where gradients of gradients are.
    pub(super) fn called(&mut self, call: &dyn GradCall, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let _restore = GradMode::set(&self.e.rt, step.create_graph);
        call.call(step)
    }

    /// The gradient of a leaf after its hooks.
    pub(super) fn hooked_leaf(&mut self, leaf: &Tensor, mut g: Tensor) -> Result<Tensor> {
        let hooks = leaf.0.auto.lock().hooks.as_ref().map_or(Vec::new(), |hooks| hooks.gradient.clone());
        for (_, hook) in hooks {
            self.replaced(&hook, &mut g, leaf.0.made)?;
        }
        Ok(g)
    }

    /// Calls the hooks of a leaf whose `.grad` has grown.
    pub(super) fn accumulated(&mut self, leaf: &Tensor) -> Result<()> {
        let hooks = leaf.0.auto.lock().hooks.as_ref().map_or(Vec::new(), |hooks| hooks.accumulated.clone());
        for (_, hook) in hooks {
            let given = [Some(leaf.clone())];
            let step = GradStep {
                grads: &given,
                saved: &[],
                inputs: &[],
                outputs: &[],
                origin: leaf.0.made,
                create_graph: self.mode.create_graph,
                accumulates: self.accumulate,
            };
            self.called(&*hook, &step)?;
        }
        Ok(())
    }

    /// `grad(ys, xs)`: the hooks of leaves among `xs`.
    pub(super) fn hooks_of_requested_leaves(&mut self) -> Result<()> {
        for at in 0..self.requested.len() {
            let (Some(Edge::Leaf(leaf)), Some(g)) = &self.requested[at] else { continue };
            if leaf.0.auto.lock().hooks.is_none() {
                continue;
            }
            let (leaf, g) = (leaf.clone(), g.clone());
            let is_same = |(edge, _): &(Option<Edge>, _)| matches!(edge, Some(Edge::Leaf(other)) if other.same(&leaf));
            // A leaf that is listed twice has one gradient.
            self.requested[at].1 = match self.requested[..at].iter().find(|known| is_same(known)) {
                Some((_, known)) => known.clone(),
                None => Some(self.hooked_leaf(&leaf, g)?),
            };
        }
        Ok(())
    }
}
