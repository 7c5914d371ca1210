//! Which nodes `grad(ys, xs)` computes: those on the way from `ys` to the inputs.

use super::grad::Walk;
use super::history;
use crate::base::diag::Result;
use crate::base::number_hash::ByNumber;
use crate::op::tensor::{Edge, GradNode, Tensor};
use std::sync::Arc;

impl Walk<'_> {
    /// Finds the nodes that lead from `ys` to the inputs.
    pub(super) fn find_needed_nodes(&mut self, ys: &[Tensor]) -> Result<()> {
        let mut leading: ByNumber<u64, bool> = ByNumber::default();
        let mut seen: ByNumber<u64, ()> = ByNumber::default();
        // A node stays on the stack until all its successors were visited.
        let mut stack: Vec<(Arc<GradNode>, bool)> = Vec::new();
        for y in ys {
            if let Some(Edge::Node(node, _)) = history::edge_of(self.e, y)? {
                stack.push((node, false));
            }
        }
        while let Some((node, done)) = stack.pop() {
            if !done && seen.insert(node.sequence, ()).is_some() {
                continue;
            }
            if !done {
                stack.push((node.clone(), true));
                stack.extend(node.next().filter_map(|edge| match edge {
                    Edge::Node(next, _) if !seen.contains_key(&next.sequence) => Some((next.clone(), false)),
                    _ => None,
                }));
                continue;
            }
            let on_the_way = node.next().any(|edge| match edge {
                Edge::Node(next, _) => leading.contains_key(&next.sequence),
                Edge::Leaf(leaf) => self.asks_for(leaf),
            });
            let is_end = |edge: &Option<Edge>| matches!(edge, Some(Edge::Node(end, _)) if Arc::ptr_eq(end, &node));
            if on_the_way || self.requested.iter().any(|(edge, _)| is_end(edge)) {
                leading.insert(node.sequence, on_the_way);
            }
        }
        self.leading = Some(leading);
        Ok(())
    }

    pub(super) fn asks_for(&self, leaf: &Tensor) -> bool {
        self.requested.iter().any(|(edge, _)| matches!(edge, Some(Edge::Leaf(other)) if other.same(leaf)))
    }

    /// Whether the gradient of an edge is needed.
    pub(super) fn is_needed(&self, edge: &Edge) -> bool {
        match (edge, &self.leading) {
            (_, None) => true,
            (Edge::Node(node, _), Some(leading)) => leading.contains_key(&node.sequence),
            (Edge::Leaf(leaf), Some(_)) => self.asks_for(leaf),
        }
    }
}
