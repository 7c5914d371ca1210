//! Backward: walks the gradient graph from the highest sequence number down, as PyTorch's engine does.

use super::batch;
use super::check;
use super::engine::Engine;
use super::history;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::Scalar;
use crate::base::number_hash::{ByNumber, Few};
use crate::op::args::{Arg, Args};
use crate::op::complex;
use crate::op::emit::{Backward, Emit};
use crate::op::expr;
use crate::op::row::{Grad, Source};
use crate::op::rows::pointwise::arith;
use crate::op::rows::shape::view;
use crate::op::tensor::{Edge, GradNode, Meta, Tensor, Tracked};
use crate::sched::order::points::HOST;
use crate::sched::streams::stream::StreamHandle;
use smallvec::{SmallVec, smallvec};
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Options of backward.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mode {
    /// Keep saved operands for another backward.
    pub retain_graph: bool,
    /// Record gradients of gradients.
    pub create_graph: bool,
    /// `grad`: an input that the outputs do not depend on gives none instead of an error.
    pub allow_unused: bool,
    /// `grad`: such an input gives zeros, which require gradients.
    pub materialize: bool,
}

/// The work list: the entry with the highest number is next, since no further gradient can arrive there.
enum Ready {
    Node(Arc<GradNode>),
    /// A leaf, by its number.
    Leaf(u64),
}

impl Ready {
    fn number(&self) -> u64 {
        match self {
            Ready::Node(node) => node.sequence,
            Ready::Leaf(since) => *since,
        }
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Ready) -> bool {
        self.number() == other.number()
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Ready) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Ready) -> std::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}

/// One gradient for each result of a node; none if none arrived.
pub(super) type Grads = SmallVec<[Option<Tensor>; 1]>;
/// Gradients to propagate, with their targets.
pub type EdgeGrads = SmallVec<[(Edge, Tensor); 2]>;

/// What has arrived at a node so far.
pub(super) struct PendingGrads {
    pub(super) grads: Grads,
    /// Slots of the streams that computed it.
    pub(super) from: SmallVec<[u32; 2]>,
}

/// The gradient of a leaf so far. It is added to `.grad` when it is complete, so that a failed walk leaves no partial
/// sums.
pub(super) struct LeafGrad {
    leaf: Tensor,
    pub(super) sum: Tensor,
    /// Slots of the streams that computed it.
    pub(super) from: SmallVec<[u32; 2]>,
}

/// One walk. Each operation runs on the stream of its forward; the walk orders the streams between which it passes
/// gradients, and at the end the current streams after all of them.
pub(super) struct Walk<'a> {
    pub(super) e: &'a mut Engine,
    pub(super) mode: Mode,
    heap: BinaryHeap<Ready>,
    pub(super) arrived: Few<PendingGrads>,
    pub(super) due: Few<LeafGrad>,
    /// Slots of the streams that were used.
    used: SmallVec<[u32; 4]>,
    /// `grad(ys, xs)`: the requested edges, and the gradients that arrived there. Inputs without an edge get none:
    /// see `history::edge_of`.
    pub(super) requested: Vec<(Option<Edge>, Option<Tensor>)>,
    /// `grad(ys, xs)`: the nodes on the way to the inputs, and whether they are on the way or only its end. Other
    /// nodes are not computed, and keep their saved operands.
    pub(super) leading: Option<ByNumber<u64, bool>>,
    /// `backward()`: leaves accumulate into `.grad`.
    pub(super) accumulate: bool,
}

/// `y.backward(g)`: adds gradients to the leaves' `.grad`.
pub fn backward(e: &mut Engine, ys: &[Tensor], gs: &[Option<Tensor>], mode: Mode) -> Result<()> {
    if let Some(y) = ys.iter().chain(gs.iter().flatten()).find(|x| x.samples().is_some()) {
        return Err(Diag::error(code::VMAP, "`backward` inside of `vmap` would add the gradients of all samples up")
            .label(y.0.made, Focus::Expression, "this has a value for each sample")
            .help("`func::grad(f)(x)` gives the gradients of each sample"));
    }
    let mut walk = Walk::new(e, mode, true);
    walk.seed(ys, gs)?;
    walk.run_steps()?;
    e.rt.end_round();
    Ok(())
}

/// `y.backward(g, inputs: xs)`: adds gradients only to the `.grad` of these, leaves or not.
pub fn backward_to(e: &mut Engine, ys: &[Tensor], gs: &[Option<Tensor>], xs: &[Tensor], mode: Mode) -> Result<()> {
    if xs.is_empty() {
        return Err(Diag::error(code::VALUE, "`inputs` is empty: there is nothing that gradients could be added to")
            .help("leave `inputs` out, and all leaves get theirs"));
    }
    let mode = Mode { allow_unused: true, materialize: false, ..mode };
    // A tensor that is listed twice gets its gradient once.
    let mut asked: Vec<Tensor> = Vec::new();
    for x in xs {
        if !asked.iter().any(|other| other.same(x)) {
            asked.push(x.clone());
        }
    }
    let found = grad(e, ys, &asked, gs, mode)?;
    let mut walk = Walk::new(e, mode, true);
    for (x, g) in asked.iter().zip(found) {
        if let Some(g) = g {
            walk.accumulate_into(x, g)?;
        }
    }
    e.rt.end_round();
    Ok(())
}

/// `grad(ys, xs)`: gradients of the sum of `ys` (weighted with `gs`) with respect to `xs`.
pub fn grad(
    e: &mut Engine,
    ys: &[Tensor],
    xs: &[Tensor],
    gs: &[Option<Tensor>],
    mode: Mode,
) -> Result<Vec<Option<Tensor>>> {
    if xs.is_empty() {
        return Err(Diag::error(code::VALUE, "`inputs` is empty: there is nothing to differentiate for"));
    }
    if ys.iter().chain(xs).chain(gs.iter().flatten()).any(|x| x.samples().is_some()) {
        let (inside, weights) = batch::grads_inside(e, ys, xs, gs)?;
        let inputs: Vec<Tensor> = xs.iter().map(batch::value).collect();
        let found = grad_of(e, &inside, &inputs, &weights, mode)?;
        return batch::results_inside(e, xs, found);
    }
    grad_of(e, ys, xs, gs, mode)
}

fn grad_of(
    e: &mut Engine,
    ys: &[Tensor],
    xs: &[Tensor],
    gs: &[Option<Tensor>],
    mode: Mode,
) -> Result<Vec<Option<Tensor>>> {
    let mut walk = Walk::new(e, mode, false);
    for x in xs {
        match history::edge_of(walk.e, x)? {
            Some(edge) => walk.requested.push((Some(edge), None)),
            None if x.requires_grad() => walk.requested.push((None, None)),
            None => {
                return Err(Diag::error(code::GRAD_NONE, "an input does not require gradients")
                    .label(crate::base::span::Origin::NONE, Focus::Call, "in this call")
                    .label(x.0.made, Focus::Expression, "it was made here")
                    .help("make it with `requires_grad: true`, or call `.requires_grad_()`"));
            }
        }
    }
    walk.find_needed_nodes(ys)?;
    walk.seed(ys, gs)?;
    walk.run_steps()?;
    walk.hooks_of_requested_leaves()?;
    let mut found: Vec<Option<Tensor>> = walk.requested.into_iter().map(|(_, grad)| grad).collect();
    // A gradient that repeats one number could not be changed in place.
    for grad in found.iter_mut().flatten().filter(|grad| grad.view().layout.repeated().next().is_some()) {
        *grad = if mode.create_graph {
            e.call_row(&view::CLONE, args![&*grad])?
        } else {
            e.without_recording(|e| e.call_row(&view::CLONE, args![&*grad]))?
        };
    }
    if mode.materialize {
        for (grad, x) in found.iter_mut().zip(xs).filter(|(grad, _)| grad.is_none()) {
            let zeros = e.source(Source::Fill(Scalar::Int(0)), &x.shape(), x.dtype(), x.device())?;
            zeros.0.auto.lock().requires_grad = true;
            zeros.set_tracked(Tracked::Yes);
            *grad = Some(zeros);
        }
    }
    if let (Some(at), false) = (found.iter().position(Option::is_none), mode.allow_unused) {
        return Err(Diag::error(code::GRAD_NONE, format!("the outputs do not depend on input {at}"))
            .help("`allow_unused: true` gives `()` for such inputs"));
    }
    Ok(found)
}

/// Whether nothing else holds this tensor or its memory. Then it can be overwritten or kept.
pub(super) fn is_alone(g: &Tensor) -> bool {
    let view = g.view();
    let handles = view.buffer.handles.load(std::sync::atomic::Ordering::Acquire);
    Arc::strong_count(&g.0) == 1 && handles == 1 && view.covers_buffer()
}

impl<'a> Walk<'a> {
    pub(super) fn new(e: &'a mut Engine, mode: Mode, accumulate: bool) -> Walk<'a> {
        Walk {
            e,
            mode,
            heap: BinaryHeap::new(),
            arrived: Few::default(),
            due: Few::default(),
            used: SmallVec::new(),
            requested: Vec::new(),
            leading: None,
            accumulate,
        }
    }

    fn seed(&mut self, ys: &[Tensor], gs: &[Option<Tensor>]) -> Result<()> {
        for (at, y) in ys.iter().enumerate() {
            let Some(edge) = history::edge_of(self.e, y)? else {
                return Err(Diag::error(
                    code::GRAD_NONE,
                    "this tensor does not require gradients and was not computed from one that does",
                )
                .label(crate::base::span::Origin::NONE, Focus::Call, "in this call")
                .label(y.0.made, Focus::Expression, "it was made here")
                .help("make a leaf with `requires_grad: true`; was it computed inside `no_grad`, or detached?"));
            };
            let g = match gs.get(at).cloned().flatten() {
                Some(g) => {
                    if g.shape() != y.shape() {
                        return Err(Diag::error(
                            code::GRAD_SHAPE,
                            format!(
                                "the gradient has shape {:?}, the tensor {:?}",
                                g.shape().as_slice(),
                                y.shape().as_slice()
                            ),
                        ));
                    }
                    if g.dtype().is_complex() && !y.dtype().is_complex() {
                        let text = format!("the gradient is {}, and the tensor {}", g.dtype(), y.dtype());
                        return Err(
                            Diag::error(code::DTYPE, text).help("the gradient of a real tensor is real: take `g.real`")
                        );
                    }
                    if g.device() != y.device() {
                        let text = format!("the gradient is on {}, the tensor on {}", g.device(), y.device());
                        return Err(Diag::error(code::DEVICE_MISMATCH, text)
                            .help(format!("move the gradient: `.to(\"{}\")`", y.device())));
                    }
                    g
                }
                None if y.dtype().is_complex() => {
                    let text = "a gradient is implicit for a real result only, and this one is complex";
                    return Err(Diag::error(code::GRAD_SHAPE, text)
                        .help("make a real number of it, for example with `.abs().sum()`, or pass a gradient"));
                }
                None if y.numel() == 1 => {
                    self.e.source(Source::Fill(Scalar::Int(1)), &y.shape(), y.dtype(), y.device())?
                }
                None => {
                    return Err(Diag::error(
                        code::GRAD_SHAPE,
                        format!("a tensor of shape {:?} needs an explicit gradient", y.shape().as_slice()),
                    )
                    .help("reduce it to one number, for example with `.sum()`, or pass a gradient of its shape"));
                }
            };
            self.send(edge, g)?;
        }
        Ok(())
    }

    /// Adds a gradient to the target of an edge.
    fn send(&mut self, edge: Edge, g: Tensor) -> Result<()> {
        if !self.is_needed(&edge) {
            return Ok(());
        }
        match edge {
            Edge::Leaf(leaf) => self.leaf(&leaf, g),
            Edge::Node(node, output) => {
                let here = self.e.rt.slot_of(g.device());
                let sequence = node.sequence;
                let Some(entry) = self.arrived.get_mut(sequence) else {
                    let mut grads: Grads = smallvec![None; node.outputs.len()];
                    grads[output] = Some(g);
                    self.heap.push(Ready::Node(node));
                    self.arrived.insert(sequence, PendingGrads { grads, from: smallvec![here] });
                    return Ok(());
                };
                let old = entry.grads[output].take();
                let from = std::mem::take(&mut entry.from);
                let sum = match old {
                    None => g,
                    Some(old) => {
                        from.iter().for_each(|&slot| self.e.rt.order_after(here, slot));
                        (self.e as &mut dyn Emit).add(&old, &g)?
                    }
                };
                let entry = self.arrived.get_mut(sequence).expect("it was there");
                entry.grads[output] = Some(sum);
                entry.from = from;
                if !entry.from.contains(&here) {
                    entry.from.push(here);
                }
                Ok(())
            }
        }
    }

    fn leaf(&mut self, leaf: &Tensor, g: Tensor) -> Result<()> {
        if !self.accumulate {
            for at in 0..self.requested.len() {
                if matches!(&self.requested[at].0, Some(Edge::Leaf(other)) if other.same(leaf)) {
                    let sum = match self.requested[at].1.take() {
                        None => g.clone(),
                        Some(old) => (self.e as &mut dyn Emit).add(&old, &g)?,
                    };
                    self.requested[at].1 = Some(sum);
                }
            }
            return Ok(());
        }
        // As in PyTorch, also one that has stopped requiring gradients since. The inputs of transforms keep none.
        if !leaf.requires_grad() || leaf.0.auto.lock().is_over {
            return Ok(());
        }
        let (here, since) = (self.e.rt.slot_of(g.device()), leaf.0.auto.lock().since);
        let Some(LeafGrad { leaf, sum, mut from }) = self.due.remove(since) else {
            history::check_leaf(leaf)?;
            self.heap.push(Ready::Leaf(since));
            self.due.insert(since, LeafGrad { leaf: leaf.clone(), sum: g, from: smallvec![here] });
            return Ok(());
        };
        from.iter().for_each(|&slot| self.e.rt.order_after(here, slot));
        let sum = match !self.mode.create_graph && is_alone(&sum) && sum.dtype() == g.dtype() {
            true => self.e.without_recording(|e| e.apply_inplace(&arith::ADD, args![&sum, &g]))?,
            false => (self.e as &mut dyn Emit).add(&sum, &g)?,
        };
        if !from.contains(&here) {
            from.push(here);
        }
        self.due.insert(since, LeafGrad { leaf, sum, from });
        Ok(())
    }

    /// Adds to `.grad`, and calls the hooks that come after.
    fn accumulate_into(&mut self, leaf: &Tensor, g: Tensor) -> Result<()> {
        self.add_into(leaf, g)?;
        self.accumulated(leaf)
    }

    fn add_into(&mut self, leaf: &Tensor, g: Tensor) -> Result<()> {
        let old = leaf.0.auto.lock().grad.clone();
        let here = self.e.rt.slot_of(g.device());
        self.used.iter().for_each(|&slot| self.e.rt.order_after(here, slot));
        let new = match old {
            Some(old) if !self.mode.create_graph => {
                self.e.without_recording(|e| e.apply_inplace(&arith::ADD, args![&old, &g]))?;
                return Ok(());
            }
            Some(old) => (self.e as &mut dyn Emit).add(&old, &g)?,
            None if self.mode.create_graph => self.e.call_row(&view::CLONE, args![&g])?,
            // Nothing else holds it: it becomes the gradient without a copy.
            None if is_alone(&g) => self.e.detach(&g),
            None => self.e.without_recording(|e| e.call_row(&view::CLONE, args![&g]))?,
        };
        leaf.0.auto.lock().grad = Some(new);
        Ok(())
    }

    /// The gradient of a result that keeps it: a separate tensor, since others use this one.
    fn keep(&mut self, result: &Tensor, g: &Tensor) -> Result<()> {
        let old = result.0.auto.lock().grad.clone();
        let sum = |e: &mut Engine| match &old {
            Some(old) => e.call_row(&arith::ADD, args![old, g]),
            None => e.call_row(&view::CLONE, args![g]),
        };
        let new = if self.mode.create_graph { sum(self.e)? } else { self.e.without_recording(sum)? };
        result.0.auto.lock().grad = Some(new);
        Ok(())
    }

    /// Work that is queued meanwhile is known to belong to this backward.
    fn run_steps(&mut self) -> Result<()> {
        let before = self.e.rt.calls.enter_backward(self.e.origin);
        let done = self.run();
        self.e.rt.calls.leave(before);
        done
    }

    fn run(&mut self) -> Result<()> {
        while let Some(ready) = self.heap.pop() {
            let node = match ready {
                Ready::Node(node) => node,
                Ready::Leaf(since) => {
                    self.complete(since)?;
                    continue;
                }
            };
            let PendingGrads { grads, from } = self.arrived.remove(node.sequence).expect("queued with its gradients");
            let before = self.enter(node.stream, &from);
            let done = self.visit(&node, grads);
            if let Some(before) = before {
                self.e.rt.set_current_stream(&before)?;
            }
            if let Err(diag) = done {
                self.settle(node);
                return Err(diag);
            }
        }
        for &slot in &self.used {
            let device = self.e.rt.device_of_slot(slot);
            self.e.rt.order_after(self.e.rt.slot_of(device), slot);
        }
        Ok(())
    }

    /// The gradient of a leaf is complete.
    fn complete(&mut self, since: u64) -> Result<()> {
        let LeafGrad { leaf, sum, from } = self.due.remove(since).expect("queued with its gradient");
        let before = self.enter(*from.last().expect("some stream made it"), &from);
        let done = self.hooked_leaf(&leaf, sum).and_then(|sum| self.accumulate_into(&leaf, sum));
        if let Some(before) = before {
            self.e.rt.set_current_stream(&before)?;
        }
        done
    }

    /// A walk that fails leaves the same state as PyTorch: leaves that expected no more gradients have theirs. These
    /// are found only here, since counting uses in each walk would need another walk.
    fn settle(&mut self, failed: Arc<GradNode>) {
        let mut open = vec![failed];
        open.extend(std::mem::take(&mut self.heap).into_iter().filter_map(|ready| match ready {
            Ready::Node(node) => Some(node),
            Ready::Leaf(_) => None,
        }));
        let (mut seen, mut awaited) = (ByNumber::<u64, ()>::default(), ByNumber::<u64, ()>::default());
        while let Some(node) = open.pop() {
            if seen.insert(node.sequence, ()).is_some() {
                continue;
            }
            let base = node.slice.as_ref().and_then(|slice| slice.base_edge.as_ref());
            for edge in node.edges.iter().flatten().chain(base) {
                match edge {
                    Edge::Node(next, _) => open.push(next.clone()),
                    Edge::Leaf(leaf) => _ = awaited.insert(leaf.0.auto.lock().since, ()),
                }
            }
        }
        let mut whole: Vec<u64> = self.due.numbers().filter(|since| !awaited.contains_key(since)).collect();
        whole.sort_unstable_by(|a, b| b.cmp(a));
        // The first error is reported.
        whole.into_iter().for_each(|since| _ = self.complete(since));
    }

    /// Switches to the stream of a forward operation, after the streams that computed its gradients.
    fn enter(&mut self, slot: u32, from: &[u32]) -> Option<Arc<StreamHandle>> {
        if slot == HOST {
            return None;
        }
        let is_current = self.e.rt.is_current(slot);
        let before = if is_current { None } else { self.e.rt.enter_slot(slot) };
        let stays = is_current || before.is_some();
        let here = if stays { slot } else { self.e.rt.slot_of(self.e.rt.device_of_slot(slot)) };
        from.iter().for_each(|&other| self.e.rt.order_after(here, other));
        if !self.used.contains(&here) {
            self.used.push(here);
        }
        before
    }

    fn visit(&mut self, node: &Arc<GradNode>, mut grads: Grads) -> Result<()> {
        let is_end = self.leading.as_ref().is_some_and(|leading| leading.get(&node.sequence) == Some(&false));
        if node.hooks.get().is_some() {
            // As in PyTorch: what `grad(ys, xs)` gives has gone through the hooks where it goes no further.
            if !is_end {
                self.capture(node, &grads);
            }
            self.hooked(node, &mut grads)?;
        }
        if is_end || node.hooks.get().is_none() {
            self.capture(node, &grads);
        }
        self.retain(node, &grads)?;
        if is_end {
            return Ok(());
        }
        let outer = self.e.origin;
        self.e.origin = node.origin;
        let name = std::mem::replace(&mut self.e.name, node.op.name);
        let result = self.step(node, grads, outer);
        self.e.origin = outer;
        self.e.name = name;
        for (edge, g) in result? {
            self.send(edge, g)?;
        }
        Ok(())
    }

    /// Gradients of requested results.
    fn capture(&mut self, node: &Arc<GradNode>, grads: &[Option<Tensor>]) {
        for (edge, found) in &mut self.requested {
            if let Some(Edge::Node(other, n)) = edge
                && Arc::ptr_eq(other, node)
            {
                *found = grads[*n].clone();
            }
        }
    }

    fn retain(&mut self, node: &Arc<GradNode>, grads: &[Option<Tensor>]) -> Result<()> {
        if let Some(retained) = node.retained.get() {
            let retained: Vec<_> = retained.lock().clone();
            for (n, cell) in retained {
                if let (Some(cell), Some(g)) = (cell.upgrade(), grads[n].clone()) {
                    self.keep(&Tensor(cell), &g)?;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, node: &Arc<GradNode>, mut grads: Grads, asked: crate::base::span::Origin) -> Result<EdgeGrads> {
        if node.edges.iter().all(Option::is_none) && node.slice.as_ref().is_none_or(|s| s.base_edge.is_none()) {
            return Ok(EdgeGrads::new());
        }
        if !self.mode.create_graph {
            self.e.quiet += 1;
        }
        let inputs = check::of_backward(self.e, node, &grads);
        let result = self.rule(node, &mut grads);
        let result = result.and_then(|out| check::after_backward(self.e, node, inputs, out));
        let result = match self.e.rt.detects_anomalies() {
            true => result.and_then(|out| check::nan_of_backward(self.e, node, out)),
            false => result,
        };
        if !self.mode.create_graph {
            self.e.quiet -= 1;
        }
        result.map_err(|diag| {
            if diag.is_late {
                return diag;
            }
            // The mistake is the second call, not the operation.
            if diag.code == code::GRAD_FREED {
                return diag.label_first(asked, Focus::Call, "gradients are asked for again here");
            }
            diag.or_at(node.origin, "in the gradient of this operation").label(
                asked,
                Focus::Call,
                "gradients were asked for here",
            )
        })
    }

    pub(super) fn rule(&mut self, node: &Arc<GradNode>, grads: &mut [Option<Tensor>]) -> Result<EdgeGrads> {
        let mut base_gradient = None;
        if let Some(slice) = &node.slice {
            let g = grads[0].take().expect("it has one result");
            let (flat, part) = self.gather_part(slice, &g)?;
            base_gradient = Some((flat, part.clone()));
            grads[0] = Some(self.of_part(slice, &part)?);
        }
        if let (&Grad::Window(window), None) = (&node.op.grad, &node.slice) {
            return self.window(node, window, grads[0].take());
        }
        if let Some(own) = &node.own {
            return self.own_backward(node, &**own, grads);
        }
        if !matches!(node.op.grad, Grad::Rule(_) | Grad::Of(_)) {
            let reason = match node.op.grad {
                Grad::Stop(reason) => reason,
                _ => "no gradient is known",
            };
            return Err(Diag::error(code::GRAD_STOP, format!("`{}` has no gradient: {reason}", node.op.name)));
        }
        let saved = self.unpack(node)?;
        if node.outputs.len() == 1 && grads[0].is_none() {
            return Ok(EdgeGrads::new());
        }
        let mut needs: SmallVec<[bool; 8]> = SmallVec::new();
        let is_needed = |edge: &Option<Edge>| edge.as_ref().is_some_and(|edge| self.is_needed(edge));
        node.edges.iter().for_each(|edge| needs.push(is_needed(edge)));
        if let Some(slice) = &node.slice {
            needs[0] = is_needed(&slice.base_edge);
        }
        // The rows say `g * f'(z)`; the gradient of an analytic function is `g * conj(f'(z))`.
        let conjugates = node.outputs.iter().any(|out| out.dtype.is_complex()) && complex::is_analytic(node.op);
        if conjugates {
            complex::conjugate(self.e, grads)?;
        }
        let mut of = |e: &mut Engine, grads: &[Option<Tensor>]| {
            let backward = Backward {
                op: node.op,
                grads,
                args: &node.args,
                inputs: &node.inputs,
                outputs: &node.outputs,
                tensors: &saved,
                needs: &needs,
            };
            match node.op.grad {
                Grad::Of(all) => expr::derivatives(e, &backward, all),
                Grad::Rule(rule) => rule(e, &backward),
                _ => Ok(Vec::new()),
            }
        };
        let mut inputs = match self.e.rt.samples.were_used() {
            true => batch::node_slices(self.e, grads, &mut of)?,
            false => of(self.e, grads)?,
        };
        if conjugates {
            complex::conjugate(self.e, &mut inputs)?;
        }
        self.edge_grads(node, inputs, base_gradient)
    }

    fn edge_grads(
        &mut self,
        node: &Arc<GradNode>,
        inputs: Vec<Option<Tensor>>,
        base_gradient: Option<(Tensor, Tensor)>,
    ) -> Result<EdgeGrads> {
        let mut out = EdgeGrads::new();
        if let (Some((flat, part)), Some(slice)) = (base_gradient, &node.slice)
            && let Some(edge) = &slice.base_edge
        {
            let value = match inputs.first().cloned().flatten() {
                Some(g) => {
                    let g = self.sum_to_operand(g, node.inputs[0].as_ref())?;
                    Arg::Tensor(self.as_in_base(slice, g)?)
                }
                None => Arg::from(Scalar::Int(0)),
            };
            self.e.apply_inplace(&arith::COPY, Args(smallvec::smallvec![Arg::Tensor(part), value]))?;
            let whole = self.of_base(slice, &flat)?;
            out.push((edge.clone(), whole));
        }
        let skip = node.slice.is_some() as usize;
        for (slot, g) in inputs.into_iter().enumerate().skip(skip) {
            let (Some(g), Some(Some(edge))) = (g, node.edges.get(slot)) else { continue };
            let mut g = self.sum_to_operand(g, node.inputs[slot].as_ref())?;
            if node.op.piecewise_linear && self.mode.create_graph && node.slice.is_none() {
                g = history::depend_on_operands(self.e, node, &g)?;
            }
            out.push((edge.clone(), g));
        }
        Ok(out)
    }

    /// Sums over broadcast dims and casts to the operand's dtype.
    pub(super) fn sum_to_operand(&mut self, g: Tensor, meta: Option<&Meta>) -> Result<Tensor> {
        let Some(meta) = meta else { return Ok(g) };
        let view = g.view();
        if view.dtype == meta.dtype && view.buffer.device == meta.device && view.shape() == meta.shape.as_slice() {
            return Ok(g);
        }
        let e = self.e as &mut dyn Emit;
        let g = e.sum_to(&g, &meta.shape)?;
        if g.device() != meta.device {
            // A 0-dimensional tensor of the host took part in work of a device.
            let g = e.cast_gradient(&g, meta.dtype)?;
            return e.call(&arith::MOVE, args![&g, meta.device, meta.dtype]);
        }
        e.cast_gradient(&g, meta.dtype)
    }

    pub(super) fn unpack(&mut self, node: &Arc<GradNode>) -> Result<SmallVec<[Option<Tensor>; 2]>> {
        let mut guard = node.saved.lock();
        let Some(saved) = guard.as_ref() else {
            return Err(Diag::error(code::GRAD_FREED, "the graph was already used and its saved tensors freed")
                .label(
                    node.origin,
                    Focus::Expression,
                    "the saved operands of this operation were freed by the first backward",
                )
                .help("call the first `backward` with `retain_graph: true`"));
        };
        saved.iter().flatten().try_for_each(|saved| history::check_saved(saved, node))?;
        let again = self.mode.retain_graph || (node.again.is_none() && saved.iter().all(Option::is_none));
        let mut saved = if again { saved.clone() } else { guard.take().unwrap_or_default() };
        drop(guard);
        if let Some((keeper, number)) = &node.again {
            saved = keeper.take(*number)?;
        }
        let connected = self.mode.create_graph;
        let mut tensors = SmallVec::new();
        saved
            .into_iter()
            .for_each(|slot| tensors.push(slot.map(|saved| history::unpack(self.e, saved, node, connected))));
        Ok(tensors)
    }
}
