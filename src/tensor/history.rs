//! The gradient graph: what is recorded when a row is called, and what in-place changes do to it.

use super::batch;
use super::engine::Engine;
use crate::args;
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::layout::Layout;
use crate::base::span::Origin;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{Grad, Kind, Lower, Op, Save};
use crate::op::rows::pointwise::complex::{VIEW_AS_COMPLEX, VIEW_AS_REAL};
use crate::op::rows::shape::view::{AS_STRIDED, STILL};
use crate::op::tensor::{
    Auto, Edge, Edges, GradNode, Held, MadeAs, Meta, Saved, SavedEdge, SavedList, SliceOf, Tensor, Tracked, View,
};
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, OnceLock};

/// The target of the gradient of `tensor`; none if it needs none.
pub fn edge_of(e: &mut Engine, tensor: &Tensor) -> Result<Option<Edge>> {
    if !tensor.requires_grad() {
        return Ok(None);
    }
    if let Some(samples) = tensor.samples() {
        return edge_of(e, &samples.value);
    }
    refresh(e, tensor)?;
    let mut auto = tensor.0.auto.lock();
    if auto.requires_grad && auto.since == 0 {
        auto.since = e.rt.next_sequence();
    }
    Ok(match &auto.edge {
        Some((node, output)) => Some(Edge::Node(node.clone(), *output)),
        None if auto.requires_grad => Some(Edge::Leaf(tensor.clone())),
        // A view that was created before its base required gradients, or while none were recorded: as in PyTorch it
        // requires gradients with its base and has no place in the graph until something is written.
        None => None,
    })
}

/// Whether it was not created by an operation of the gradient graph.
pub fn is_leaf(tensor: &Tensor) -> bool {
    matches!(made_by(tensor), MadeBy::Nothing)
}

/// The creator of a tensor, for printing.
pub enum MadeBy {
    Nothing,
    /// A row of this name.
    Row(&'static str),
    /// An in-place change of a view of it.
    CopySlices,
    /// It shows its base, which has changed since.
    View,
    /// As `View`, but such a view may not be used any more.
    Invalid,
}

pub fn made_by(tensor: &Tensor) -> MadeBy {
    let auto = tensor.0.auto.lock();
    match (&auto.edge, stale_base(tensor, &auto)) {
        (_, Some(_)) if auto.made_as != MadeAs::Usual => MadeBy::Invalid,
        (_, Some(_)) => MadeBy::View,
        (None, None) => MadeBy::Nothing,
        (Some((node, _)), None) if node.slice.is_some() => MadeBy::CopySlices,
        (Some((node, _)), None) => MadeBy::Row(node.op.name),
    }
}

/// The base of a view whose memory was written since its edge was taken. A handle that was given other memory
/// (`x.data = y`) does not show its base any more.
fn stale_base(tensor: &Tensor, auto: &Auto) -> Option<Tensor> {
    let base = auto.base.as_ref()?;
    let view = tensor.view();
    let changed = view.version() != auto.version && Arc::ptr_eq(&view.buffer, &base.view().buffer);
    (changed && (auto.edge.is_some() || base.requires_grad())).then(|| base.clone())
}

/// A view whose memory was written gets its place in the graph from its base.
pub(super) fn refresh(e: &mut Engine, tensor: &Tensor) -> Result<()> {
    let auto = tensor.0.auto.lock();
    let Some(base) = stale_base(tensor, &auto) else { return Ok(()) };
    let made_as = auto.made_as;
    if auto.requires_grad && auto.edge.is_none() {
        return Err(moved_inside(tensor, &base));
    }
    drop(auto);
    if made_as != MadeAs::Usual && !shows_parts(tensor, &base, made_as) {
        return Err(forbidden(tensor, made_as, true));
    }
    let edge = edge_of(e, &base)?;
    let node = part_of(e, tensor, &base.view(), edge);
    attach(tensor, &Arc::new(node), 0);
    Ok(())
}

/// Whether a leaf still is one when its gradient arrives.
pub(super) fn check_leaf(leaf: &Tensor) -> Result<()> {
    let auto = leaf.0.auto.lock();
    match stale_base(leaf, &auto) {
        Some(base) if auto.edge.is_none() => Err(moved_inside(leaf, &base)),
        _ => Ok(()),
    }
}

/// A leaf whose memory was written, through the tensor that it is a view of, with something that has a history.
#[cold]
fn moved_inside(leaf: &Tensor, base: &Tensor) -> Box<Diag> {
    Diag::error(code::GRAD_LEAF, "a leaf was moved into the inside of the graph")
        .label(Origin::NONE, Focus::Call, "in this call")
        .label(base.view().buffer.last_writer(), Focus::Expression, "its memory was written here")
        .label(leaf.0.made, Focus::Expression, "the leaf was made here")
        .help("make the leaf of memory of its own: `x.view(shape).clone().requires_grad_()`")
}

/// Whether a view shows real numbers as complex ones, or the other way round.
fn shows_parts(view: &Tensor, base: &Tensor, made_as: MadeAs) -> bool {
    made_as == MadeAs::Reinterpreted && view.dtype().real_part() == base.dtype().real_part()
}

/// The place in the graph of a part of a base, from the positions of both in memory. Between complex and real numbers, pairs of
/// real ones stand.
fn part_of(e: &mut Engine, tensor: &Tensor, base: &View, edge: Option<Edge>) -> GradNode {
    let own = tensor.view();
    let between = |op: &'static Op, e: &mut Engine, from: &View, to: &View, edge: Option<Edge>| {
        plain_node(e, op, args![Arg::Taken], smallvec![Some(from.meta())], smallvec![to.meta()], smallvec![edge])
    };
    match (own.dtype.is_complex(), base.dtype.is_complex()) {
        (false, true) => {
            let pairs = base.as_pairs();
            let node = between(&VIEW_AS_REAL, e, base, &pairs, edge);
            window_of(e, &own, &pairs, Some(Edge::Node(Arc::new(node), 0)))
        }
        (true, false) => {
            let pairs = own.as_pairs();
            let node = window_of(e, &pairs, base, edge);
            between(&VIEW_AS_COMPLEX, e, &pairs, &own, Some(Edge::Node(Arc::new(node), 0)))
        }
        _ => window_of(e, &own, base, edge),
    }
}

fn window_of(e: &mut Engine, own: &View, base: &View, edge: Option<Edge>) -> GradNode {
    let ints = |values: &[isize]| values.iter().map(|&n| n as i64).collect::<Ints>();
    let whole = &base.layout;
    let args = args![
        Arg::Taken,
        own.layout.shape.as_slice(),
        ints(&own.layout.strides),
        own.layout.offset,
        whole.shape.as_slice(),
        ints(&whole.strides),
        whole.offset
    ];
    plain_node(e, &AS_STRIDED, args, smallvec![Some(base.meta())], smallvec![own.meta()], smallvec![edge])
}

/// A node of a row that saves nothing.
pub(super) fn plain_node(
    e: &mut Engine,
    op: &'static Op,
    args: Args,
    inputs: SmallVec<[Option<Meta>; 2]>,
    outputs: SmallVec<[Meta; 1]>,
    edges: Edges,
) -> GradNode {
    GradNode {
        op,
        args,
        stream: e.rt.slot_of(outputs[0].device),
        inputs,
        outputs,
        edges,
        saved: Mutex::new(Some(SavedList::new())),
        sequence: e.rt.next_sequence(),
        origin: e.origin,
        slice: None,
        retained: OnceLock::new(),
        hooks: OnceLock::new(),
        own: None,
        again: None,
    }
}

/// An in-place change that a view does not allow: of itself, or (`indirect`) of its base.
#[cold]
fn forbidden(view: &Tensor, made_as: MadeAs, indirect: bool) -> Box<Diag> {
    let (what, help) = match made_as {
        MadeAs::OneOfSeveral => (
            "one of several views that one operation made",
            "write the change out of place, or take the one view by an index: `x[i]`",
        ),
        MadeAs::Reinterpreted => (
            "a view of the parts of complex numbers, or of real numbers as complex ones,",
            "write to the tensor itself, or make a new one: `complex(re, im)`",
        ),
        _ => (
            "a view that was made inside `no_grad`",
            "have the view and the in-place change both inside `no_grad`, or both outside",
        ),
    };
    let text = match indirect {
        false => format!("{what} cannot be changed in place while gradients are recorded"),
        true => format!("{what} cannot be used in the gradient graph after its memory was changed in place"),
    };
    let origin = Origin::NONE;
    Diag::error(code::GRAD_VIEW, text)
        .label(origin, Focus::Call, "in this call")
        .label(view.0.made, Focus::Expression, "the view was made here")
        .help(help)
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

/// Whether anything is recorded.
#[inline]
fn should_record(e: &Engine, args: &Args) -> bool {
    if !e.grad_enabled() {
        return false;
    }
    let mut any = false;
    args.for_each_tensor(|tensor| any |= tensor.requires_grad());
    any
}

fn node(
    e: &mut Engine,
    op: &'static Op,
    args: &Args,
    slots: &Slots<'_>,
    outputs: SmallVec<[Meta; 1]>,
) -> Result<GradNode> {
    let stream = outputs.first().map_or(crate::sched::order::points::HOST, |output| e.rt.slot_of(output.device));
    // Not: `collect`, which reserves memory element by element.
    let (mut edges, mut inputs) = (Edges::new(), SmallVec::new());
    for slot in slots {
        edges.push(match slot {
            Some(tensor) => edge_of(e, tensor)?,
            None => None,
        });
        inputs.push(slot.map(Meta::of));
    }
    Ok(GradNode {
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
        hooks: OnceLock::new(),
        own: None,
        again: None,
    })
}

pub(super) fn saved(tensor: &Tensor, made: Origin, edge: SavedEdge) -> Saved {
    let view = tensor.view();
    let version = view.version();
    Saved { held: Held::new(view), version, edge, made }
}

/// Saves the operands that the row's gradient reads. Operands that share memory with `written` are copied.
fn save_inputs(
    e: &mut Engine,
    op: &'static Op,
    args: &Args,
    slots: &Slots<'_>,
    written: Option<&Tensor>,
) -> Result<SavedList> {
    let should_record = |at: usize| args.opt_tensor(at).is_some_and(Tensor::requires_grad);
    let mut all = SavedList::new();
    for what in op.saves {
        let tensor = match *what {
            Save::In(at) => args.opt_tensor(at),
            Save::For(at, other) if should_record(other) => args.opt_tensor(at),
            Save::For(..) | Save::Out(_) => None,
        };
        let Some(tensor) = tensor else {
            all.push(None);
            continue;
        };
        if tensor.is_inference() {
            return Err(of_inference(tensor, "cannot be saved for backward"));
        }
        let slot = slots.iter().position(|slot| slot.is_some_and(|other| std::ptr::eq(other, tensor)));
        let edge = match slot {
            Some(slot) if tensor.requires_grad() => SavedEdge::Input(slot),
            _ => SavedEdge::None,
        };
        let shared = written.is_some_and(|x| Arc::ptr_eq(&x.view().buffer, &tensor.view().buffer));
        all.push(Some(if shared {
            let copy = e.without_recording(|e| e.call_row(&crate::op::rows::shape::view::CLONE, args![tensor]))?;
            saved(&copy, copy.0.made, edge)
        } else {
            saved(tensor, tensor.0.made, edge)
        }));
    }
    Ok(all)
}

/// The error of a tensor that was made in `inference_mode`.
#[cold]
pub fn of_inference(tensor: &Tensor, what: &str) -> Box<Diag> {
    Diag::error(code::GRAD_INFERENCE, format!("a tensor that was made in `inference_mode` {what}"))
        .label(Origin::NONE, Focus::Call, "in this call")
        .label(tensor.0.made, Focus::Expression, "it was made here")
        .help("work on a copy, `x.clone()`, that is made outside; or make it in `no_grad`")
}

/// A node saves its operands, unless they are to be computed again.
pub(super) fn keep(e: &Engine, node: &mut GradNode, operands: SavedList) {
    if let Some(keeper) = e.rt.keeper() {
        node.again = keeper.put(&operands).map(|number| (keeper, number));
    }
    *node.saved.get_mut() = Some(if node.again.is_some() { SavedList::new() } else { operands });
}

/// Gives a tensor its place in the graph. A retained gradient is retained at the new place.
pub(super) fn attach(tensor: &Tensor, node: &Arc<GradNode>, output: usize) {
    let mut auto = tensor.0.auto.lock();
    let before = auto.edge.replace((node.clone(), output));
    auto.requires_grad = false;
    if auto.base.is_some() {
        auto.version = tensor.view().version();
    }
    if auto.retain_grad
        && let Some((before, _)) = before
    {
        if let Some(retained) = before.retained.get() {
            retained.lock().retain(|(_, cell)| !std::ptr::eq(cell.as_ptr(), Arc::as_ptr(&tensor.0)));
        }
        node.retained.get_or_init(Default::default).lock().push((output, Arc::downgrade(&tensor.0)));
    }
    drop(auto);
    tensor.set_tracked(Tracked::Yes);
}

/// Keeps the gradient of a result in its `.grad`, also if the result is changed in place later.
pub fn retain_grad(e: &mut Engine, tensor: &Tensor) -> Result<()> {
    if !tensor.requires_grad() {
        return Err(Diag::error(code::GRAD_NONE, "a tensor that does not require gradients has none to keep")
            .label(Origin::NONE, Focus::Call, "in this call")
            .label(tensor.0.made, Focus::Expression, "it was made here"));
    }
    refresh(e, tensor)?;
    let mut auto = tensor.0.auto.lock();
    if let (Some((node, output)), false) = (&auto.edge, auto.retain_grad) {
        node.retained.get_or_init(Default::default).lock().push((*output, Arc::downgrade(&tensor.0)));
        auto.retain_grad = true;
    }
    Ok(())
}

/// Sets whether a leaf requires gradients, as a script asks for it. Inside of `vmap` it would be one leaf for all samples.
pub fn requires_grad(tensor: &Tensor, on: bool) -> Result<()> {
    if tensor.samples().is_some() {
        return Err(Diag::error(code::VMAP, "`requires_grad_` inside of `vmap` would make one leaf of all samples")
            .help("`func::grad(f)(x)` and `func::vjp(f, x)` give the gradients of each sample"));
    }
    set_leaf(tensor, on);
    Ok(())
}

/// Sets whether a leaf requires gradients.
pub fn set_leaf(tensor: &Tensor, on: bool) {
    let mut auto = tensor.0.auto.lock();
    auto.requires_grad = on;
    let otherwise = if auto.base.is_some() { Tracked::AsBase } else { Tracked::No };
    drop(auto);
    tensor.set_tracked(if on { Tracked::Yes } else { otherwise });
}

/// Removes a tensor from the graph.
pub fn detach_in_place(tensor: &Tensor) -> Result<()> {
    let tensor = &batch::value(tensor);
    let mut auto = tensor.0.auto.lock();
    if auto.base.is_some() {
        return Err(Diag::error(code::GRAD_VIEW, "a view cannot be taken out of the gradient graph in place")
            .label(Origin::NONE, Focus::Call, "in this call")
            .label(tensor.0.made, Focus::Expression, "the view was made here")
            .help("use `.detach()`"));
    }
    auto.requires_grad = false;
    auto.edge = None;
    drop(auto);
    tensor.set_tracked(Tracked::No);
    Ok(())
}

/// Gives `x` the layout of `y`, a view of it (`t_`).
pub fn relayout(e: &mut Engine, x: &Tensor, y: &Tensor) -> Result<()> {
    no_samples(&[x, y], "the layout of a tensor")?;
    check_inplace(e, x, x.requires_grad())?;
    y.view().write_by(e.origin);
    x.set_view(y.view());
    let edge = y.0.auto.lock().edge.clone();
    if let Some((node, output)) = edge {
        attach(x, &node, output);
    }
    Ok(())
}

/// Inside of `vmap` a handle keeps what it shows.
fn no_samples(tensors: &[&Tensor], what: &str) -> Result<()> {
    match tensors.iter().find(|x| x.samples().is_some()) {
        None => Ok(()),
        Some(_) => Err(Diag::error(code::VMAP, format!("{what} cannot be exchanged inside of `vmap`"))
            .help("use what the operation without `_` gives")),
    }
}

/// Gives `x` the memory of `y`, with its own count of writes.
pub fn assign_data(e: &Engine, x: &Tensor, y: &Tensor) -> Result<()> {
    no_samples(&[x, y], "the memory of a tensor")?;
    let (old, new) = (x.view(), y.view());
    if x.requires_grad() && !new.dtype.is_differentiable() {
        let text = format!("the data of a tensor that requires gradients must be floating-point, not {}", new.dtype);
        return Err(Diag::error(code::DTYPE, text));
    }
    x.exchange_view(Arc::new(new.counted_apart(old.version_since_made())), e.origin);
    Ok(())
}

/// Adds a finished call to the graph.
pub fn track(e: &mut Engine, op: &'static Op, args: &Args, results: &[Tensor]) -> Result<()> {
    if matches!(op.lower, Lower::View(_)) {
        remember_base(e, args.tensor(0), &results[0]);
    }
    if op.reinterprets {
        remember_base(e, args.tensor(0), &results[0]);
        let mut auto = results[0].0.auto.lock();
        if auto.base.is_some() {
            auto.made_as = MadeAs::Reinterpreted;
        }
    }
    if !should_record(e, args) || !results.iter().any(|result| result.dtype().is_differentiable()) {
        return Ok(());
    }
    if let Grad::Stop(_) | Grad::Unset = op.grad {
        // The reason is reported when the gradient is requested.
        if op.results.has_names() {
            return Ok(());
        }
    }
    let slots = slots(op, args);
    let mut operands = save_inputs(e, op, args, &slots, None)?;
    for (slot, what) in operands.iter_mut().zip(op.saves) {
        if let Save::Out(n) = what {
            let edge = |result: &Tensor| match result.dtype().is_differentiable() {
                true => SavedEdge::Output(*n),
                false => SavedEdge::None,
            };
            *slot = results.get(*n).map(|result| saved(result, result.0.made, edge(result)));
        }
    }
    let mut outputs = SmallVec::new();
    results.iter().for_each(|result| outputs.push(Meta::of(result)));
    let mut node = node(e, op, args, &slots, outputs)?;
    keep(e, &mut node, operands);
    let node = Arc::new(node);
    for (n, result) in results.iter().enumerate().filter(|(_, result)| result.dtype().is_differentiable()) {
        attach(result, &node, n);
    }
    Ok(())
}

/// A view keeps the tensor that owns the history of the memory. Inside an operation there are no views: its
/// intermediate tensors are independent.
fn remember_base(e: &Engine, source: &Tensor, view: &Tensor) {
    if e.quiet > 0 {
        return;
    }
    let version = view.version();
    let (base, made_as) = {
        let auto = source.0.auto.lock();
        // A leaf owns its history also where its memory is another tensor's: `w.reshape([2, 2]).requires_grad_()`.
        let is_leaf = auto.requires_grad && auto.edge.is_none();
        let base = auto.base.as_ref().filter(|_| !is_leaf);
        (base.unwrap_or(source).clone(), auto.made_as)
    };
    let mut auto = view.0.auto.lock();
    auto.base = Some(base);
    auto.made_as = if e.rt.grad_enabled() { made_as } else { MadeAs::Unrecorded };
    auto.version = version;
    drop(auto);
    view.set_tracked(Tracked::AsBase);
}

/// These views were returned by one operation.
pub fn made_together(e: &Engine, views: &[Tensor]) {
    if e.grad_enabled() {
        views.iter().for_each(|view| view.0.auto.lock().made_as = MadeAs::OneOfSeveral);
    }
}

/// These parts are not views for gradients, and count their writes separately.
pub fn made_apart(views: &[Tensor]) {
    for view in views {
        let mut auto = view.0.auto.lock();
        auto.base = None;
        auto.made_as = MadeAs::Usual;
        auto.version = 0;
        let tracked = if auto.edge.is_some() { Tracked::Yes } else { Tracked::No };
        drop(auto);
        view.set_view(Arc::new(view.view().counted_apart(0)));
        view.set_tracked(tracked);
    }
}

/// The script gets the conjugate of a tensor; of real numbers it is the tensor itself, or a view.
pub fn note_conjugate(result: &Tensor) {
    if result.dtype().is_complex() {
        result.0.auto.lock().is_conjugate = true;
    }
}

/// A conjugate is not changed in place, nor what shows a part of one: in PyTorch the tensor that it was made of would change.
pub fn check_conjugate(x: &Tensor) -> Result<()> {
    let auto = x.0.auto.lock();
    let (own, base) = (auto.is_conjugate, auto.base.clone());
    drop(auto);
    if !own && !base.is_some_and(|base| base.0.auto.lock().is_conjugate) {
        return Ok(());
    }
    Err(Diag::error(code::GRAD_VIEW, "a conjugate is a view in PyTorch, through which this would change what it was made of; here it is a copy")
        .label(Origin::NONE, Focus::Call, "in this call")
        .label(x.0.made, Focus::Expression, "the conjugate was made here")
        .help("`x.conj().clone()` and `x.conj_physical()` give a tensor of its own; the tensor itself is changed by `x.mul_(..)`"))
}

/// Whether `x` may be changed in place. `tracked`: a gradient flows to it or to the written value.
pub fn check_inplace(e: &Engine, x: &Tensor, tracked: bool) -> Result<()> {
    if !tracked || !e.grad_enabled() {
        return Ok(());
    }
    let (base, made_as, leaf) = {
        let auto = x.0.auto.lock();
        (auto.base.clone(), auto.made_as, auto.requires_grad && auto.edge.is_none())
    };
    if let Some(base) = &base
        && made_as != MadeAs::Usual
        && !shows_parts(x, base, made_as)
    {
        return Err(forbidden(x, made_as, false));
    }
    let of_leaf = base.filter(|base| base.requires_grad() && base.0.auto.lock().edge.is_none());
    let (text, made) = match of_leaf {
        Some(base) => ("a view of a leaf that requires gradients cannot be changed in place", base.0.made),
        None if leaf => ("a leaf that requires gradients cannot be changed in place", x.0.made),
        None => return Ok(()),
    };
    Err(Diag::error(code::GRAD_LEAF, text)
        .label(Origin::NONE, Focus::Call, "in this call")
        .label(made, Focus::Expression, "the leaf was made here")
        .help("do it inside `no_grad(|| ...)`, or work on a result computed from it"))
}

/// What is known before the write and needed after it.
pub struct Pending {
    node: Option<Box<GradNode>>,
    saved: SavedList,
}

/// Saves operands before the write makes them stale.
pub fn before_inplace(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Pending> {
    let x = args.tensor(0).clone();
    if !should_record(e, args) || !x.dtype().is_differentiable() {
        return Ok(Pending { node: None, saved: SavedList::new() });
    }
    let slots = slots(op, args);
    let saved = save_inputs(e, op, args, &slots, Some(&x))?;
    let node = node(e, op, args, &slots, smallvec![Meta::of(&x)])?;
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
    keep(e, &mut node, operands);
    let base = x.0.auto.lock().base.clone();
    let Some(base) = base.filter(|base| Arc::ptr_eq(&base.view().buffer, &x.view().buffer)) else {
        attach(x, &Arc::from(node), 0);
        return Ok(());
    };
    node.slice = Some(SliceOf {
        base: Meta::of(&base),
        layout: x.view().layout.clone(),
        is_complex: x.dtype().is_complex(),
        base_layout: base.view().layout.clone(),
        base_edge: edge_of(e, &base)?,
    });
    attach(&base, &Arc::from(node), 0);
    refresh(e, x)
}

/// An error that names both lines if a saved operand was changed since.
pub fn check_saved(saved: &Saved, node: &GradNode) -> Result<()> {
    let view = saved.held.view();
    if view.version() == saved.version {
        return Ok(());
    }
    Err(Diag::error(
        code::GRAD_STALE,
        format!("the gradient of `{}` needs a tensor that was changed in place since", node.op.name),
    )
    .label(node.origin, Focus::Expression, "needed by this operation's gradient")
    .label(view.buffer.last_writer(), Focus::Expression, "changed in place here")
    .help("write the change out of place, or change a `.clone()`"))
}

/// A gradient of a `piecewise_linear` row, which also depends formally on the row's operands.
pub fn depend_on_operands(e: &mut Engine, node: &GradNode, g: &Tensor) -> Result<Tensor> {
    // Inside of `vmap` the gradient may have samples where the operands have none.
    let all = batch::value(g);
    let alias = e.tensor(all.view());
    let mut edges: Edges = smallvec![edge_of(e, &all)?];
    edges.extend(node.edges.iter().cloned());
    let mut inputs: SmallVec<[Option<Meta>; 2]> = smallvec![Some(Meta::of(&all))];
    inputs.extend(node.inputs.iter().cloned());
    let mut of_gradient = plain_node(e, &STILL, Args::default(), inputs, smallvec![Meta::of(&all)], edges);
    of_gradient.origin = node.origin;
    attach(&alias, &Arc::new(of_gradient), 0);
    Ok(batch::like(e, alias, g))
}

/// Rebuilds a saved operand. Only `connected` ones get their place in the graph again.
pub fn unpack(e: &mut Engine, saved: Saved, node: &Arc<GradNode>, connected: bool) -> Tensor {
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
    match (edge, &node.slice) {
        // What was written into a view: the node's own output is the base.
        (Some((from, n)), Some(slice)) if matches!(saved.edge, SavedEdge::Output(_)) => {
            let view = tensor.view();
            let base = View::new(view.buffer.clone(), slice.base_layout.clone(), slice.base.dtype);
            let part = part_of(e, &tensor, &base, Some(Edge::Node(from, n)));
            attach(&tensor, &Arc::new(part), 0);
        }
        (Some((from, n)), _) => attach(&tensor, &from, n),
        (None, _) => {}
    }
    tensor
}

/// The memory of a base and of its part, as one flat buffer: its size, and where the part and the base lie in it. Where one
/// is complex and the other real, all are real, and the complex one has a dim of two more.
pub fn flat(slice: &SliceOf) -> (usize, Layout, Layout) {
    let is_mixed = slice.is_complex != slice.base.dtype.is_complex();
    let real = |layout: &Layout, is_complex: bool| match is_mixed && is_complex {
        true => pairs(layout),
        false => layout.clone(),
    };
    let (layout, base_layout) =
        (real(&slice.layout, slice.is_complex), real(&slice.base_layout, slice.base.dtype.is_complex()));
    let extents = [base_layout.extent(), layout.extent()];
    let start = extents.iter().flatten().map(|extent| extent.0).min().unwrap_or(0);
    let end = extents.iter().flatten().map(|extent| extent.1).max().unwrap_or(start);
    let shift = |layout: &Layout| Layout { offset: layout.offset.saturating_sub(start), ..layout.clone() };
    (end - start, shift(&layout), shift(&base_layout))
}

/// Complex elements as pairs of real ones.
fn pairs(layout: &Layout) -> Layout {
    let mut layout = layout.doubled();
    layout.shape.push(2);
    layout.strides.push(1);
    layout
}
