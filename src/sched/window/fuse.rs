//! Which nodes are fused: a node joins the latest group of the same iteration that it can reach without crossing a
//! hazard, or the epilogue of one whose reductions it reads. `tile_program.rs` then compiles a group.

use super::node::{Input, Node, Work};
use crate::base::layout::Shape;
use crate::op::tensor::View;
use crate::sched::order::gate::Gate;
use smallvec::SmallVec;
use std::sync::Arc;

/// Bound: how many steps back a node may move to join others; hazards are compared pairwise.
const LOOK_BACK: usize = 16;
/// Bound: nodes of one fused step, so that registers stay in the cache and generated kernels stay small.
pub const MAX_FUSED: usize = 48;
/// Bound: reductions of one fused step. Each has accumulators in registers, and compiling twenty takes seconds.
const MAX_REDUCTIONS: usize = 4;

/// Nodes that will become one step.
pub struct Group {
    /// All nodes, in order.
    pub nodes: Vec<usize>,
    /// Those among them that are computed from the results of the reductions.
    pub epilogue: SmallVec<[usize; 4]>,
    pub shape: Shape,
    /// Bit mask of reduced dims once a reduction joined.
    pub reduced: Option<u32>,
    reductions: usize,
    pub kernel: bool,
    /// The gate of all its nodes.
    gate: Option<Arc<Gate>>,
}

/// The groups of a window's nodes, in the order of their first nodes.
pub fn groups(nodes: &[Node]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // Rounds of a loop stay separate: the plan of one does not depend on how many are in the window.
    let mut round = 0;
    for (at, node) in nodes.iter().enumerate() {
        if node.begins_round {
            round = groups.len();
        }
        match home(nodes, &groups[round..], node) {
            Some((group, part)) => {
                let group = &mut groups[round + group];
                group.nodes.push(at);
                match node.work {
                    _ if part == Part::Epilogue => group.epilogue.push(at),
                    Work::Reduce { dims, .. } => {
                        group.reduced = Some(dims);
                        group.reductions += 1;
                    }
                    _ => {}
                }
            }
            None => groups.push(Group {
                nodes: vec![at],
                epilogue: SmallVec::new(),
                shape: Shape::from_slice(node.iteration()),
                reduced: match node.work {
                    Work::Reduce { dims, .. } => Some(dims),
                    _ => None,
                },
                reductions: matches!(node.work, Work::Reduce { .. }) as usize,
                kernel: node.is_kernel(),
                gate: node.gate.clone(),
            }),
        }
    }
    groups
}

/// The part of a group that a node joins.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Body,
    Epilogue,
}

/// The latest group that the node may join without crossing a hazard.
fn home(nodes: &[Node], groups: &[Group], node: &Node) -> Option<(usize, Part)> {
    if node.is_kernel() {
        return None;
    }
    for (at, group) in groups.iter().enumerate().rev().take(LOOK_BACK) {
        if may_join(group, node) {
            if fits(group, node) && in_body(nodes, group, node) {
                return Some((at, Part::Body));
            }
            if in_epilogue(nodes, group, node) {
                return Some((at, Part::Epilogue));
            }
        }
        if group.nodes.iter().any(|&other| hazard(&nodes[other], node)) {
            return None;
        }
    }
    None
}

fn may_join(group: &Group, node: &Node) -> bool {
    !group.kernel
        && group.gate.as_ref().map(Arc::as_ptr) == node.gate.as_ref().map(Arc::as_ptr)
        && group.nodes.len() < MAX_FUSED
}

/// Whether a node iterates as a group does.
fn fits(group: &Group, node: &Node) -> bool {
    let reduction = match node.work {
        Work::Reduce { dims, .. } => {
            group.reduced.is_none_or(|other| other == dims) && group.reductions < MAX_REDUCTIONS
        }
        _ => true,
    };
    reduction && group.shape.as_slice() == node.iteration()
}

/// Whether a node may run in the loop over a group's elements.
fn in_body(nodes: &[Node], group: &Group, node: &Node) -> bool {
    group.nodes.iter().all(|at| match group.epilogue.contains(at) {
        true => !hazard(&nodes[*at], node),
        false => compatible(&nodes[*at], node),
    })
}

/// Whether a node is a map of results of a group's reductions, which can be computed where those end: it accesses them, and
/// what others computed of them, element by element, and nothing else that the group accesses.
fn in_epilogue(nodes: &[Node], group: &Group, node: &Node) -> bool {
    let plain = |input: &Input| matches!(input, Input::View(_) | Input::Scalar(_));
    let is_map = matches!(node.work, Work::Map { check: None, .. }) && node.inputs.iter().all(plain);
    if group.reduced.is_none() || !is_map {
        return false;
    }
    let result = |at: &usize| &nodes[*at].outputs[0];
    let is_result = |at: &usize| group.epilogue.contains(at) || matches!(nodes[*at].work, Work::Reduce { .. });
    let reads = |at: &usize| node.reads().any(|view| Arc::ptr_eq(&view.buffer, &result(at).buffer));
    let shape = node.outputs[0].shape();
    group.nodes.iter().any(|at| is_result(at) && reads(at))
        && group.epilogue.iter().all(|at| result(at).shape() == shape)
        && group.nodes.iter().all(|at| {
            let other = &nodes[*at];
            if !is_result(at) {
                return !hazard(other, node);
            }
            let apart_or_same = |view: &Arc<View>| {
                !Arc::ptr_eq(&view.buffer, &result(at).buffer)
                    || same_elements(view, result(at)) && view.shape() == shape
            };
            let written = |view: &Arc<View>| node.outputs.iter().any(|w| Arc::ptr_eq(&w.buffer, &view.buffer));
            let old = |view: &Arc<View>| match group.epilogue.contains(at) {
                true => node.outputs.iter().all(|w| same_elements(view, w)),
                false => !written(view),
            };
            node.reads().chain(&node.outputs).all(apart_or_same) && other.reads().all(old)
        })
}

/// Whether two nodes access the same buffer with at least one write.
fn hazard(first: &Node, second: &Node) -> bool {
    let same = |a: &Arc<View>, b: &Arc<View>| Arc::ptr_eq(&a.buffer, &b.buffer);
    second.outputs.iter().any(|w| first.reads().any(|r| same(r, w)) || first.outputs.iter().any(|o| same(o, w)))
        || second.reads().any(|r| first.outputs.iter().any(|w| same(w, r)))
}

/// Whether two views of a buffer lie at odd and at even places, as real and imaginary parts do: they share no element.
pub fn alternate(a: &View, b: &View) -> bool {
    let even = |view: &View| view.layout.strides.iter().all(|stride| stride % 2 == 0);
    a.dtype == b.dtype && a.layout.offset % 2 != b.layout.offset % 2 && even(a) && even(b)
}

/// Whether two views are of different buffers, or access theirs element by element in the same order or alternate.
fn same_elements(a: &Arc<View>, b: &Arc<View>) -> bool {
    !Arc::ptr_eq(&a.buffer, &b.buffer)
        || (a.dtype == b.dtype && a.layout == b.layout && !a.layout.may_overlap())
        || alternate(a, b)
}

/// Whether `second` may run in the same tile loop right after `first`. Shared memory must be accessed through the
/// same layout, element by element, or through layouts that alternate.
fn compatible(first: &Node, second: &Node) -> bool {
    let reduces = matches!(first.work, Work::Reduce { .. });
    let second_reduces = matches!(second.work, Work::Reduce { .. });
    // A reduction's result has another shape: nothing may read or write it in the same loop.
    let apart = |a: &Arc<View>, b: &Arc<View>| !Arc::ptr_eq(&a.buffer, &b.buffer);
    second.outputs.iter().all(|w| {
        let check = |v: &Arc<View>| if second_reduces { apart(v, w) } else { same_elements(v, w) };
        first.reads().all(check) && first.outputs.iter().all(|o| if reduces { apart(o, w) } else { check(o) })
    }) && second.reads().all(|r| first.outputs.iter().all(|w| if reduces { apart(w, r) } else { same_elements(w, r) }))
}
