//! The gradient graph: what is recorded when a row is called, and what in-place changes do to it.

use super::engine::Engine;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::layout::Layout;
use crate::base::span::Origin;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{Grad, Kind, Lower, Op, Save};
use crate::op::tensor::{Edge, Edges, GradNode, Held, Meta, Saved, SavedEdge, SavedList, SliceOf, Tensor};
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Where the gradient of `tensor` goes; none when it needs none.
pub fn edge_of(e: &mut Engine, tensor: &Tensor) -> Option<Edge> {
    if !tensor.requires_grad() {
        return None;
    }
    let mut auto = tensor.0.auto.lock();
    if auto.base.is_some() {
        drop(auto);
        refresh(e, tensor);
        auto = tensor.0.auto.lock();
    }
    match &auto.edge {
        Some((node, output)) => Some(Edge::Node(node.clone(), *output)),
        None => Some(Edge::Leaf(tensor.clone())),
    }
}

/// A view whose base was changed in place takes its history from the base.
fn refresh(e: &mut Engine, tensor: &Tensor) {
    let (base, rebased) = {
        let auto = tensor.0.auto.lock();
        match &auto.base {
            Some(base) => (base.clone(), auto.rebased),
            None => return,
        }
    };
    let base_rebased = base.0.auto.lock().rebased;
    if base_rebased == rebased {
        return;
    }
    let edge = edge_of(e, &base);
    let node = GradNode {
        op: &crate::op::rows::view::PART,
        args: Args::default(),
        inputs: smallvec![Some(Meta::of(&base))],
        outputs: smallvec![Meta::of(tensor)],
        edges: smallvec![edge],
        saved: Mutex::new(Some(SavedList::new())),
        sequence: e.rt.next_sequence(),
        stream: e.rt.slot_of(tensor.device()),
        origin: e.origin,
        slice: Some(SliceOf {
            base: Meta::of(&base),
            layout: tensor.view().layout.clone(),
            base_layout: base.view().layout.clone(),
            base_edge: None,
        }),
        retained: OnceLock::new(),
    };
    let mut auto = tensor.0.auto.lock();
    auto.edge = Some((Arc::new(node), 0));
    auto.rebased = base_rebased;
}

/// The gradient slots of a call: one for each tensor-like parameter, one for each element of a list.
type Slots<'a> = SmallVec<[Option<&'a Tensor>; 4]>;

fn slots<'a>(op: &'static Op, args: &'a Args) -> Slots<'a> {
    let mut slots = Slots::new();
    for (at, param) in op.params.iter().enumerate() {
        match (args.get(at), param.kind) {
            (Arg::Tensor(tensor), _) => slots.push(Some(tensor)),
            (Arg::Tensors(list), _) => slots.extend(list.iter().map(Some)),
            (Arg::OptTensors(list), _) => slots.extend(list.iter().map(Option::as_ref)),
            (_, Kind::Tensor | Kind::Operand) => slots.push(None),
            _ => {}
        }
    }
    slots
}

/// Is anything to be recorded?
fn wanted(e: &Engine, args: &Args) -> bool {
    if !e.grad_enabled() {
        return false;
    }
    let mut any = false;
    args.for_each_tensor(|tensor| any |= tensor.requires_grad());
    any
}

fn node(e: &mut Engine, op: &'static Op, args: &Args, slots: &Slots<'_>, outputs: SmallVec<[Meta; 1]>) -> GradNode {
    let stream = outputs.first().map_or(crate::sched::stream::HOST, |output| e.rt.slot_of(output.device));
    // Not: `collect`, which asks for room element by element.
    let (mut edges, mut inputs) = (Edges::new(), SmallVec::new());
    for slot in slots {
        edges.push(slot.and_then(|tensor| edge_of(e, tensor)));
        inputs.push(slot.map(Meta::of));
    }
    GradNode {
        op,
        stream,
        inputs,
        outputs,
        edges,
        args: args.without_tensors(),
        saved: Mutex::new(None),
        sequence: e.rt.next_sequence(),
        origin: e.origin,
        slice: None,
        retained: OnceLock::new(),
    }
}

fn saved(tensor: &Tensor, made: Origin, edge: SavedEdge) -> Saved {
    let view = tensor.view();
    let version = view.buffer.version.load(Ordering::Acquire);
    Saved { held: Held::new(view), version, edge, made }
}

/// Saves the operands that the row's gradient reads. What shares memory with `written` is saved as a copy.
fn save_inputs(
    e: &mut Engine,
    op: &'static Op,
    args: &Args,
    slots: &Slots<'_>,
    written: Option<&Tensor>,
) -> Result<SavedList> {
    let wanted = |slot: usize| slots.get(slot).copied().flatten().is_some_and(Tensor::requires_grad);
    let mut all = SavedList::new();
    for what in op.saves {
        let tensor = match *what {
            Save::In(at) => args.opt_tensor(at),
            Save::For(at, slot) if wanted(slot) => args.opt_tensor(at),
            Save::For(..) | Save::Out(_) => None,
        };
        let Some(tensor) = tensor else {
            all.push(None);
            continue;
        };
        let slot = slots.iter().position(|slot| slot.is_some_and(|other| std::ptr::eq(other, tensor)));
        let edge = match slot {
            Some(slot) if tensor.requires_grad() => SavedEdge::Input(slot),
            _ => SavedEdge::None,
        };
        let shared = written.is_some_and(|x| Arc::ptr_eq(&x.view().buffer, &tensor.view().buffer));
        all.push(Some(if shared {
            let copy = e.quietly(|e| e.call_row(&crate::op::rows::view::CLONE, crate::args![tensor]))?;
            saved(&copy, copy.0.made, edge)
        } else {
            saved(tensor, tensor.0.made, edge)
        }));
    }
    Ok(all)
}

fn attach(tensor: &Tensor, node: &Arc<GradNode>, output: usize) {
    let mut auto = tensor.0.auto.lock();
    auto.edge = Some((node.clone(), output));
    auto.requires_grad = false;
    drop(auto);
    tensor.set_tracked(true);
}

/// Adds a finished call to the graph.
pub fn track(e: &mut Engine, op: &'static Op, args: &Args, results: &[Tensor]) -> Result<()> {
    let is_view = matches!(op.lower, Lower::View(_));
    if is_view {
        remember_base(args.tensor(0), &results[0]);
    }
    if !wanted(e, args) || !results.iter().any(|result| result.dtype().is_float()) {
        return Ok(());
    }
    if let Grad::Stop(_) | Grad::Unset = op.grad {
        // The reason is told when somebody asks for the gradient.
        if op.results.len() > 1 {
            return Ok(());
        }
    }
    let slots = slots(op, args);
    let mut operands = save_inputs(e, op, args, &slots, None)?;
    for (slot, what) in operands.iter_mut().zip(op.saves) {
        if let Save::Out(n) = what {
            let edge = |result: &Tensor| match result.dtype().is_float() {
                true => SavedEdge::Output(*n),
                false => SavedEdge::None,
            };
            *slot = results.get(*n).map(|result| saved(result, result.0.made, edge(result)));
        }
    }
    let mut outputs = SmallVec::new();
    results.iter().for_each(|result| outputs.push(Meta::of(result)));
    let mut node = node(e, op, args, &slots, outputs);
    *node.saved.get_mut() = Some(operands);
    let node = Arc::new(node);
    for (n, result) in results.iter().enumerate().filter(|(_, result)| result.dtype().is_float()) {
        attach(result, &node, n);
    }
    Ok(())
}

/// A view keeps the tensor that owns the history of the buffer.
fn remember_base(source: &Tensor, view: &Tensor) {
    let (base, rebased) = {
        let auto = source.0.auto.lock();
        (auto.base.clone(), auto.rebased)
    };
    let base = base.unwrap_or_else(|| source.clone());
    let mut auto = view.0.auto.lock();
    auto.rebased = rebased;
    auto.base = Some(base);
}

/// May `x` be changed in place?
pub fn check_inplace(e: &Engine, x: &Tensor) -> Result<()> {
    let view = x.view();
    if view.layout.shape.iter().zip(&view.layout.strides).any(|(&size, &stride)| size > 1 && stride == 0) {
        return Err(Diag::error(
            code::VALUE,
            "an expanded tensor cannot be written: several elements share one memory location",
        )
        .help("make a copy first with `.clone()`"));
    }
    if !e.grad_enabled() {
        return Ok(());
    }
    let base = x.0.auto.lock().base.clone();
    let is_leaf = |tensor: &Tensor| {
        let auto = tensor.0.auto.lock();
        auto.requires_grad && auto.edge.is_none()
    };
    if is_leaf(x) {
        return Err(Diag::error(code::GRAD_LEAF, "a leaf that requires gradients cannot be changed in place")
            .label(crate::base::span::Origin::NONE, Focus::Call, "in this call")
            .label(x.0.made, Focus::Expression, "the leaf was made here")
            .help("do it inside `no_grad(|| ...)`, or work on a result computed from it"));
    }
    if let Some(base) = base.filter(is_leaf) {
        return Err(Diag::error(
            code::GRAD_LEAF,
            "a view of a leaf that requires gradients cannot be changed in place",
        )
        .label(crate::base::span::Origin::NONE, Focus::Call, "in this call")
        .label(base.0.made, Focus::Expression, "the leaf was made here")
        .help("do it inside `no_grad(|| ...)`, or work on a result computed from it"));
    }
    Ok(())
}

/// What is known before the write and needed after it.
pub struct Pending {
    node: Option<Box<GradNode>>,
    saved: SavedList,
}

/// Saves operands before the write makes them stale.
pub fn before_inplace(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Pending> {
    let x = args.tensor(0).clone();
    if !wanted(e, args) || !x.dtype().is_float() {
        return Ok(Pending { node: None, saved: SavedList::new() });
    }
    let slots = slots(op, args);
    let saved = save_inputs(e, op, args, &slots, Some(&x))?;
    let node = node(e, op, args, &slots, smallvec![Meta::of(&x)]);
    Ok(Pending { node: Some(Box::new(node)), saved })
}

/// Gives `x` (and the base it is a view of) the new history.
pub fn after_inplace(e: &mut Engine, x: &Tensor, pending: Pending) -> Result<()> {
    let Some(mut node) = pending.node else { return Ok(()) };
    let mut operands = pending.saved;
    for (slot, what) in operands.iter_mut().zip(node.op.saves) {
        if let Save::Out(n) = what {
            *slot = Some(saved(x, x.0.made, SavedEdge::Output(*n)));
        }
    }
    *node.saved.get_mut() = Some(operands);
    let base = x.0.auto.lock().base.clone();
    let Some(base) = base else {
        let node = Arc::from(node);
        attach(x, &node, 0);
        x.0.auto.lock().rebased += 1;
        return Ok(());
    };
    node.slice = Some(SliceOf {
        base: Meta::of(&base),
        layout: x.view().layout.clone(),
        base_layout: base.view().layout.clone(),
        base_edge: edge_of(e, &base),
    });
    let node = Arc::from(node);
    attach(&base, &node, 0);
    base.0.auto.lock().rebased += 1;
    x.set_tracked(true);
    refresh(e, x);
    Ok(())
}

/// An error that names both lines when a saved operand was changed since.
pub fn check_saved(saved: &Saved, node: &GradNode) -> Result<()> {
    let buffer = &saved.held.view().buffer;
    if buffer.version.load(Ordering::Acquire) == saved.version {
        return Ok(());
    }
    Err(Diag::error(
        code::GRAD_STALE,
        format!("the gradient of `{}` needs a tensor that was changed in place since", node.op.name),
    )
    .label(node.origin, Focus::Expression, "needed by this operation's gradient")
    .label(buffer.last_writer(), Focus::Expression, "changed in place here")
    .help("write the change out of place, or change a `.clone()`"))
}

/// A gradient of a `straight` row, with the row's operands as what it comes from too.
pub fn still(e: &mut Engine, node: &GradNode, g: &Tensor) -> Tensor {
    let still = e.tensor(g.view());
    let mut edges: Edges = smallvec![edge_of(e, g)];
    edges.extend(node.edges.iter().cloned());
    let mut inputs: SmallVec<[Option<Meta>; 2]> = smallvec![Some(Meta::of(g))];
    inputs.extend(node.inputs.iter().cloned());
    let of_gradient = GradNode {
        op: &crate::op::rows::view::STILL,
        args: Args::default(),
        inputs,
        outputs: smallvec![Meta::of(g)],
        edges,
        saved: Mutex::new(Some(SavedList::new())),
        sequence: e.rt.next_sequence(),
        stream: e.rt.slot_of(g.device()),
        origin: node.origin,
        slice: None,
        retained: OnceLock::new(),
    };
    attach(&still, &Arc::new(of_gradient), 0);
    still
}

/// Rebuilds a saved operand. Only `connected` ones have their place in the graph again.
pub fn unpack(saved: Saved, node: &Arc<GradNode>, connected: bool) -> Tensor {
    let edge = match saved.edge {
        SavedEdge::Input(slot) => match &node.edges[slot] {
            Some(Edge::Leaf(leaf)) => return leaf.clone(),
            Some(Edge::Node(from, n)) if connected => Some((from.clone(), *n)),
            _ => None,
        },
        SavedEdge::Output(n) if connected => Some((node.clone(), n)),
        _ => None,
    };
    let tensor = Tensor::of_held(saved.held, saved.made);
    if edge.is_some() {
        tensor.0.auto.lock().edge = edge;
        tensor.set_tracked(true);
    }
    tensor
}

/// A base's memory as one flat buffer: where `layout` and `base_layout` lie in it.
pub fn flat(slice: &SliceOf) -> (usize, Layout, Layout) {
    let (start, end) = slice.base_layout.extent().unwrap_or((0, 0));
    let shift = |layout: &Layout| Layout { offset: layout.offset.saturating_sub(start), ..layout.clone() };
    (end - start, shift(&slice.layout), shift(&slice.base_layout))
}
