//! Which nodes are fused: a node joins the latest group of the same iteration that it can reach without crossing a
//! hazard. `tile_program.rs` then compiles a group.

use super::node::{Node, Work};
use crate::base::layout::Shape;
use crate::op::tensor::View;
use crate::sched::order::gate::Gate;
use std::sync::Arc;

/// Bound: how many steps back a node may move to join others; hazards are compared pairwise.
const LOOK_BACK: usize = 16;
/// Bound: nodes of one fused step, so that registers stay in the cache and generated kernels stay small.
pub const MAX_FUSED: usize = 48;
/// Bound: reductions of one fused step. Each has accumulators in registers, and compiling twenty takes seconds.
const MAX_REDUCTIONS: usize = 4;

/// Nodes that will become one step.
pub struct Group {
    pub nodes: Vec<usize>,
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
            Some(group) => {
                let group = &mut groups[round + group];
                group.nodes.push(at);
                if let Work::Reduce { dims, .. } = node.work {
                    group.reduced = Some(dims);
                    group.reductions += 1;
                }
            }
            None => groups.push(Group {
                nodes: vec![at],
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

/// The latest group that the node may join without crossing a hazard.
fn home(nodes: &[Node], groups: &[Group], node: &Node) -> Option<usize> {
    if node.is_kernel() {
        return None;
    }
    for (at, group) in groups.iter().enumerate().rev().take(LOOK_BACK) {
        if fits(group, node) && group.nodes.iter().all(|&other| compatible(&nodes[other], node)) {
            return Some(at);
        }
        if group.nodes.iter().any(|&other| hazard(&nodes[other], node)) {
            return None;
        }
    }
    None
}

fn fits(group: &Group, node: &Node) -> bool {
    let reduction = match node.work {
        Work::Reduce { dims, .. } => {
            group.reduced.is_none_or(|other| other == dims) && group.reductions < MAX_REDUCTIONS
        }
        _ => true,
    };
    !group.kernel
        && group.gate.as_ref().map(Arc::as_ptr) == node.gate.as_ref().map(Arc::as_ptr)
        && group.nodes.len() < MAX_FUSED
        && reduction
        && group.shape.as_slice() == node.iteration()
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

/// Whether `second` may run in the same tile loop right after `first`. Shared memory must be accessed through the
/// same layout, element by element, or through layouts that alternate.
fn compatible(first: &Node, second: &Node) -> bool {
    let exact = |a: &Arc<View>, b: &Arc<View>| {
        !Arc::ptr_eq(&a.buffer, &b.buffer)
            || (a.dtype == b.dtype && a.layout == b.layout && !a.layout.strides.contains(&0))
            || alternate(a, b)
    };
    let reduces = matches!(first.work, Work::Reduce { .. });
    let second_reduces = matches!(second.work, Work::Reduce { .. });
    // A reduction's result has another shape: nothing may read or write it in the same loop.
    let apart = |a: &Arc<View>, b: &Arc<View>| !Arc::ptr_eq(&a.buffer, &b.buffer);
    second.outputs.iter().all(|w| {
        let check = |v: &Arc<View>| if second_reduces { apart(v, w) } else { exact(v, w) };
        first.reads().all(check) && first.outputs.iter().all(|o| if reduces { apart(o, w) } else { check(o) })
    }) && second.reads().all(|r| first.outputs.iter().all(|w| if reduces { apart(w, r) } else { exact(w, r) }))
}
