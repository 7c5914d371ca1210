//! Fused steps of earlier windows. A window that is new as a whole, such as that of a decoding step whose cache has grown
//! by one, mostly has groups that were compiled before, at other places of other windows.

use super::fuse::Group;
use super::key::{self, ByKey};
use super::node::Node;
use super::plan::{Fused, ScalarRef, Slot};
use super::tile_program;
use crate::op::tensor::Buffer;
use std::sync::Arc;

/// Bound: steps kept; a script that makes more repeats nothing.
const MAX_STEPS: usize = 2048;

/// By the structure of their groups. Their nodes are counted within the group.
#[derive(Default)]
pub struct KnownSteps(ByKey<Fused>);

impl KnownSteps {
    /// The step of a group: as it is known, or compiled. `stored` says which results have readers outside.
    pub fn step(&mut self, nodes: &[Node], group: &Group, stored: &dyn Fn(&Arc<Buffer>) -> bool) -> Fused {
        let key = key::of_group(nodes, group, stored);
        if let Some(known) = self.0.get(&key) {
            return moved(known, |place| group.nodes[place]);
        }
        let made = tile_program::build(nodes, group, stored);
        if self.0.len() >= MAX_STEPS {
            self.0.clear();
        }
        self.0.insert(key, moved(&made, |at| group.nodes.partition_point(|&node| node < at)));
        made
    }
}

/// The step with other indices of nodes. Its operands are of no run yet.
fn moved(step: &Fused, to: impl Fn(usize) -> usize) -> Fused {
    let slot =
        |slot: &Slot| Slot { node: to(slot.node), shape: slot.shape.clone(), strides: slot.strides.clone(), ..*slot };
    let scalar = |scalar: &ScalarRef| match *scalar {
        ScalarRef::Value { node, input, class, dtype } => ScalarRef::Value { node: to(node), input, class, dtype },
        ScalarRef::Seed { node, input } => ScalarRef::Seed { node: to(node), input },
        ScalarRef::Offset { node, input } => ScalarRef::Offset { node: to(node), input },
        ScalarRef::Low { node, input } => ScalarRef::Low { node: to(node), input },
        ScalarRef::Range { node, input } => ScalarRef::Range { node: to(node), input },
    };
    Fused {
        program: step.program.clone(),
        shape: step.shape.clone(),
        slots: step.slots.iter().map(slot).collect(),
        scalars: step.scalars.iter().map(scalar).collect(),
        nodes: step.nodes.iter().map(|&node| to(node)).collect(),
        fallible: step.fallible.iter().map(|&node| to(node)).collect(),
        views: Arc::new((*step.views).clone()),
        table: Arc::new(vec![0; step.scalars.len()]),
    }
}
