//! Forward derivatives: tangents of inputs go through the recorded graph up to the results, each node by its row's rule.
//! A node without one is transposed: its gradient's rule is linear in what arrives, so that the gradient of that rule's result
//! for what arrived is the derivative along the tangents.

use super::engine::Engine;
use super::grad::{self, Mode, Walk};
use super::{batch, history, transforms};
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::base::number_hash::ByNumber;
use crate::kernel::program::ReduceKind;
use crate::op::args::{Arg, Args};
use crate::op::complex;
use crate::op::emit::{Backward, Emit};
use crate::op::expr;
use crate::op::row::{Forward, Grad, Kind, Lower, Op, Source};
use crate::op::rows::pointwise::arith::MOVE;
use crate::op::rows::shape::view::{CLONE, EXPAND};
use crate::op::tensor::{Edge, GradNode, Meta, Tensor};
use crate::sched::order::points::HOST;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// One tangent for each slot, or for each result.
type Tangents = SmallVec<[Option<Tensor>; 2]>;

/// The tangents of results along those of inputs; none where nothing depends on the inputs. `live`: the work is recorded.
pub fn push(
    e: &mut Engine,
    ys: &[Tensor],
    xs: &[Tensor],
    tangents: &[Option<Tensor>],
    live: bool,
) -> Result<Vec<Option<Tensor>>> {
    let mut sweep = Sweep { live, of_nodes: ByNumber::default(), of_leaves: ByNumber::default() };
    for (x, t) in xs.iter().zip(tangents) {
        let Some(t) = t else { continue };
        let t = batch::shown(e, t, &batch::levels(x))?;
        let plain = batch::value(x);
        match history::edge_of(e, &plain)? {
            Some(Edge::Leaf(leaf)) => _ = sweep.of_leaves.insert(leaf.0.auto.lock().since, t),
            Some(Edge::Node(node, n)) => {
                let outs = sweep.of_nodes.entry(node.sequence).or_default();
                outs.resize(node.outputs.len(), None);
                outs[n] = Some(t);
            }
            None => {}
        }
    }
    let mut edges = Vec::new();
    for y in ys {
        edges.push(history::edge_of(e, &batch::value(y))?);
    }
    for node in sweep.order(&edges) {
        sweep.visit(e, &node)?;
    }
    let mut found: Vec<Option<Tensor>> =
        edges.iter().map(|edge| edge.as_ref().and_then(|edge| sweep.of(edge))).collect();
    // As a gradient: one that repeats a number could not be changed in place.
    for t in found.iter_mut().flatten().filter(|t| t.view().layout.repeated().next().is_some()) {
        *t = quietly(e, live, |e| e.call_row(&CLONE, args![&*t]))?;
    }
    batch::results_inside(e, ys, found)
}

/// Work that is recorded only if the tangents are.
fn quietly<R>(e: &mut Engine, live: bool, work: impl FnOnce(&mut Engine) -> R) -> R {
    if live { work(e) } else { e.without_recording(work) }
}

struct Sweep {
    live: bool,
    of_nodes: ByNumber<u64, Tangents>,
    of_leaves: ByNumber<u64, Tensor>,
}

impl Sweep {
    fn of(&self, edge: &Edge) -> Option<Tensor> {
        match edge {
            Edge::Leaf(leaf) => self.of_leaves.get(&leaf.0.auto.lock().since).cloned(),
            Edge::Node(node, n) => self.of_nodes.get(&node.sequence).and_then(|outs| outs.get(*n).cloned().flatten()),
        }
    }

    /// The nodes between the inputs and the results, each after those that it depends on.
    fn order(&self, ends: &[Option<Edge>]) -> Vec<Arc<GradNode>> {
        let mut order: Vec<Arc<GradNode>> = Vec::new();
        // Whether a node that was visited leads to an input.
        let mut leads: ByNumber<u64, bool> = ByNumber::default();
        let mut stack: Vec<(Arc<GradNode>, bool)> = Vec::new();
        stack.extend(ends.iter().flatten().filter_map(|edge| match edge {
            Edge::Node(node, _) => Some((node.clone(), false)),
            Edge::Leaf(_) => None,
        }));
        while let Some((node, is_done)) = stack.pop() {
            if self.of_nodes.contains_key(&node.sequence) || (!is_done && leads.contains_key(&node.sequence)) {
                continue;
            }
            if !is_done {
                leads.insert(node.sequence, false);
                stack.push((node.clone(), true));
                stack.extend(node.next().filter_map(|edge| match edge {
                    Edge::Node(next, _) if !leads.contains_key(&next.sequence) => Some((next.clone(), false)),
                    _ => None,
                }));
                continue;
            }
            let is_input = |sequence: &u64| self.of_nodes.contains_key(sequence);
            let on_the_way = node.next().any(|edge| match edge {
                Edge::Node(next, _) => is_input(&next.sequence) || leads.get(&next.sequence) == Some(&true),
                Edge::Leaf(leaf) => self.of_leaves.contains_key(&leaf.0.auto.lock().since),
            });
            if on_the_way {
                leads.insert(node.sequence, true);
                order.push(node);
            }
        }
        order
    }

    fn visit(&mut self, e: &mut Engine, node: &Arc<GradNode>) -> Result<()> {
        let tangents: Tangents = node.edges.iter().map(|edge| edge.as_ref().and_then(|edge| self.of(edge))).collect();
        if node.stream != HOST {
            let here = e.rt.slot_of(node.outputs[0].device);
            e.rt.order_after(here, node.stream);
        }
        let outer = std::mem::replace(&mut e.origin, node.origin);
        let name = std::mem::replace(&mut e.name, node.op.name);
        let found = self.outputs(e, node, &tangents);
        e.origin = outer;
        e.name = name;
        let found =
            found.map_err(|diag| if diag.is_late { diag } else { diag.or_at(node.origin, "in its derivative") })?;
        self.of_nodes.insert(node.sequence, found);
        Ok(())
    }

    fn outputs(&self, e: &mut Engine, node: &Arc<GradNode>, tangents: &Tangents) -> Result<Tangents> {
        let is_plain = node.slice.is_none() && node.own.is_none() && node.again.is_none();
        if is_plain && tangents.iter().any(Option::is_some) {
            let direct = quietly(e, self.live, |e| direct(e, node, tangents, self.live));
            match direct {
                Err(diag) if batch::is_slice_wise(&diag) => {}
                Ok(None) => {}
                Ok(Some(found)) => {
                    let found = fitted(e, &found, &node.outputs[0], self.live)?;
                    let mut outs: Tangents = smallvec![None; node.outputs.len()];
                    outs[0] = Some(found);
                    return Ok(outs);
                }
                Err(diag) => return Err(diag),
            }
        }
        self.transposed(e, node)
    }

    /// By the gradient of the gradient's rule.
    fn transposed(&self, e: &mut Engine, node: &Arc<GradNode>) -> Result<Tangents> {
        let mut cotangents: Tangents = Tangents::new();
        for out in node.results() {
            cotangents.push(if out.dtype.is_differentiable() {
                let zeros = e.source(Source::Fill(Scalar::Int(0)), &out.shape, out.dtype, out.device)?;
                history::set_leaf(&zeros, true);
                Some(zeros)
            } else {
                None
            });
        }
        let whole = Mode { retain_graph: true, create_graph: true, ..Mode::default() };
        let back = Walk::new(e, whole, false).rule(node, &mut cotangents.clone())?;
        let given: Vec<Tensor> = cotangents.iter().flatten().cloned().collect();
        transforms::end(&given);
        let (mut seeds, mut weights) = (Vec::new(), Vec::new());
        for (edge, g) in back {
            if let Some(t) = self.of(&edge).filter(|_| g.requires_grad()) {
                weights.push(Some(t));
                seeds.push(g);
            }
        }
        if seeds.is_empty() || given.is_empty() {
            return Ok(smallvec![None; node.outputs.len()]);
        }
        let mode = Mode { retain_graph: true, create_graph: self.live, allow_unused: true, materialize: false };
        let mut found = grad::grad(e, &seeds, &given, &weights, mode)?.into_iter();
        Ok(cotangents.iter().map(|cotangent| cotangent.as_ref().and_then(|_| found.next().flatten())).collect())
    }
}

/// A tangent in the shape and dtype of a result.
fn fitted(e: &mut Engine, t: &Tensor, to: &Meta, live: bool) -> Result<Tensor> {
    quietly(e, live, |e| {
        let mut t = (e as &mut dyn Emit).cast_gradient(t, to.dtype)?;
        if t.device() != to.device {
            t = e.call_row(&MOVE, args![&t, to.device, to.dtype])?;
        }
        if t.shape() == to.shape { Ok(t) } else { e.call_row(&EXPAND, args![&t, to.shape.as_slice()]) }
    })
}

/// By the row's own rule, if it has one that fits this call.
fn direct(e: &mut Engine, node: &Arc<GradNode>, tangents: &Tangents, live: bool) -> Result<Option<Tensor>> {
    let op = node.op;
    let is_usual = matches!(op.forward, Forward::Usual);
    let is_complex = node.inputs.iter().flatten().chain(&node.outputs).any(|meta| meta.dtype.is_complex());
    let mode = Mode { retain_graph: true, create_graph: live, ..Mode::default() };
    let saved = Walk::new(e, mode, false).unpack(node)?;
    let call = Call { node, tangents, saved: &saved };
    match (&op.forward, &op.lower) {
        (Forward::Usual, Lower::Map { .. }) if !is_complex || complex::is_analytic(op) => call.along_each(e),
        (Forward::Symmetric, _) if !is_complex => call.along_each(e),
        (Forward::Usual, Lower::View(_)) => call.linear(e, &[0]),
        (Forward::Usual, Lower::Reduce { kind: ReduceKind::Sum, .. }) => call.linear(e, &[0]),
        (Forward::Linear(at), _) => call.linear(e, at),
        (Forward::Product(a, b, bias), _) => call.product(e, *a, *b, *bias),
        (Forward::Rule(rule), _) if !is_usual && tangents[0].is_some() => rule(e, &call.backward(tangents, &[true])),
        _ => Ok(None),
    }
}

/// A node whose tangents are computed.
struct Call<'a> {
    node: &'a GradNode,
    tangents: &'a Tangents,
    saved: &'a [Option<Tensor>],
}

impl Call<'_> {
    fn backward<'b>(&'b self, grads: &'b [Option<Tensor>], needs: &'b [bool]) -> Backward<'b> {
        let node = self.node;
        let (args, inputs, outputs) = (&node.args, &node.inputs, &node.outputs);
        Backward { op: node.op, grads, args, inputs, outputs, tensors: self.saved, needs }
    }

    /// The gradient's rule with a tangent in place of the gradient, for one operand after the other.
    fn along_each(&self, e: &mut Engine) -> Result<Option<Tensor>> {
        let mut sum: Option<Tensor> = None;
        for (slot, t) in self.tangents.iter().enumerate() {
            let Some(t) = t else { continue };
            let arriving = [Some(fitted(e, t, &self.node.outputs[0], true)?)];
            let mut needs = vec![false; self.tangents.len()];
            needs[slot] = true;
            let backward = self.backward(&arriving, &needs);
            let mut parts = match self.node.op.grad {
                Grad::Of(all) => expr::derivatives(e, &backward, all)?,
                Grad::Rule(rule) => rule(e, &backward)?,
                _ => return Ok(None),
            };
            let Some(part) = parts.get_mut(slot).and_then(Option::take) else { continue };
            let part = fitted(e, &part, &self.node.outputs[0], true)?;
            sum = Some(match sum {
                Some(sum) => (e as &mut dyn Emit).add(&sum, &part)?,
                None => part,
            });
        }
        Ok(sum)
    }

    /// Where the slots of an argument begin, and how many they are.
    fn slots(&self, argument: usize) -> (usize, usize) {
        let op = self.node.op;
        let is_list = |kind: Kind| matches!(kind, Kind::Tensors | Kind::OptTensors);
        let has_slot = |at: usize| op.params[at].kind.takes_tensor() || matches!(self.node.args.get(at), Arg::Taken);
        let others = (0..op.params.len()).filter(|&at| has_slot(at) && !is_list(op.params[at].kind)).count();
        let of_list = self.tangents.len().saturating_sub(others);
        let count = |at: usize| match (is_list(op.params[at].kind), has_slot(at)) {
            (true, true) => of_list,
            (false, true) => 1,
            (_, false) => 0,
        };
        ((0..argument).map(count).sum(), count(argument))
    }

    /// The tangent in a slot, or zeros.
    fn tangent(&self, e: &mut Engine, slot: usize) -> Result<Option<Tensor>> {
        match (&self.tangents[slot], &self.node.inputs[slot]) {
            (Some(t), _) => Ok(Some(t.clone())),
            (None, Some(meta)) => {
                let zero = e.source(Source::Fill(Scalar::Int(0)), &[], meta.dtype, meta.device)?;
                e.call_row(&EXPAND, args![&zero, meta.shape.as_slice()]).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// The call's arguments with the saved tensors; none if one that is needed was not saved, or has a tangent itself.
    fn arguments(&self, linear: &[usize]) -> Option<Args> {
        let mut args = self.node.args.clone();
        let backward = self.backward(&[], &[]);
        for at in (0..args.0.len()).filter(|at| !linear.contains(at)) {
            let (first, count) = self.slots(at);
            if self.tangents[first..first + count].iter().any(Option::is_some) {
                return None;
            }
            if matches!(args.0[at], Arg::Taken) {
                args.0[at] = Arg::Tensor(backward.find_saved(at)?.clone());
            }
        }
        Some(args)
    }

    fn linear(&self, e: &mut Engine, positions: &[usize]) -> Result<Option<Tensor>> {
        let Some(mut args) = self.arguments(positions) else { return Ok(None) };
        for &at in positions {
            let (first, count) = self.slots(at);
            let is_list = matches!(self.node.op.params[at].kind, Kind::Tensors | Kind::OptTensors);
            args.0[at] = match args.get(at) {
                Arg::Taken if is_list => {
                    let list: Result<Vec<Option<Tensor>>> =
                        (first..first + count).map(|slot| self.tangent(e, slot)).collect();
                    Arg::Tensors(list?.into_iter().flatten().collect())
                }
                Arg::Taken => self.tangent(e, first)?.into(),
                other if other.scalar().is_some() => Arg::from(Scalar::Int(0)),
                other => other.clone(),
            };
        }
        first(e, self.node.op, args).map(Some)
    }

    /// `a(t, y) + a(x, u)`; the bias's tangent goes with the first of them.
    fn product(&self, e: &mut Engine, a: usize, b: usize, bias: Option<usize>) -> Result<Option<Tensor>> {
        let mut linear = vec![a, b];
        linear.extend(bias);
        let Some(plain) = self.arguments(&linear) else { return Ok(None) };
        let backward = self.backward(&[], &[]);
        let mut added = match bias {
            Some(at) => self.tangents[self.slots(at).0].clone(),
            None => None,
        };
        let mut sum: Option<Tensor> = None;
        for (own, other) in [(a, b), (b, a)] {
            let Some(t) = &self.tangents[self.slots(own).0] else { continue };
            let Some(factor) = backward.find_saved(other) else { return Ok(None) };
            let mut args = plain.clone();
            args.0[own] = t.into();
            args.0[other] = factor.into();
            if let Some(at) = bias {
                args.0[at] = added.take().into();
            }
            let part = first(e, self.node.op, args)?;
            sum = Some(match sum {
                Some(sum) => (e as &mut dyn Emit).add(&sum, &part)?,
                None => part,
            });
        }
        Ok(if added.is_some() { None } else { sum })
    }
}

fn first(e: &mut Engine, op: &'static Op, args: Args) -> Result<Tensor> {
    e.one(op, args)
}
