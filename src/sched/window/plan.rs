//! From a window of nodes to steps: neighboring element-wise work is fused (`fuse.rs` decides which), results without
//! readers outside are never stored. A pure function of the window's structure and of which buffers still have
//! handles.

use super::each::Members;
use super::fuse::{self, Group};
use super::known_steps::KnownSteps;
use super::node::{Node, Work};
use crate::base::layout::{Shape, Strides};
use crate::base::number_hash::ByNumber;
use crate::kernel::abi::RawView;
use crate::kernel::program::{Class, Program};
use crate::op::tensor::{Buffer, View};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// The steps for a device, in order.
pub struct Plan {
    pub steps: Vec<Step>,
    /// For each step the operands whose buffer it is the last to use: candidates for release.
    pub last_uses: Vec<SmallVec<[(u32, Operand); 4]>>,
    /// What the kind of device that runs it caches.
    pub prepared: Prepared,
    /// For each step, after its first run: a kernel's operands, whose addresses change from run to run.
    pub operands: Vec<Option<Arc<Operands>>>,
    /// Of this run: what its kernels' operands look like (`key.rs`), and whether that is new since the last run.
    pub layouts: u64,
    pub has_new_layouts: bool,
}

impl Plan {
    /// Begins a run.
    pub fn begin(&mut self, layouts: u64) {
        self.has_new_layouts = std::mem::replace(&mut self.layouts, layouts) != layouts;
    }

    /// Every buffer of the window, once.
    pub fn buffers<'a>(&'a self, nodes: &'a [Node]) -> impl Iterator<Item = &'a Arc<Buffer>> {
        self.last_uses.iter().flatten().map(|&(node, operand)| &view_of(&nodes[node as usize], operand).buffer)
    }
}

/// What a kind of device prepares at a plan's first run for later runs; only that kind looks inside.
#[derive(Default)]
pub struct Prepared(Option<Box<dyn Any + Send>>);

impl Prepared {
    /// Created here if there is none.
    pub fn get<T: Default + Send + 'static>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.0 = Some(Box::<T>::default());
        }
        self.0.as_mut().and_then(|kept| kept.downcast_mut()).expect("just made")
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// A kernel's operands as it sees them. Shared with queues that run later: a run that finds them still in use there
/// copies them.
#[derive(Clone)]
pub struct Operands {
    pub inputs: Vec<RawView>,
    pub outputs: Vec<RawView>,
}

pub enum Step {
    Fused(Box<Fused>),
    /// Index of the node.
    Kernel(usize),
    /// The node of a step over many tensors.
    Each(usize, Box<Members>),
}

impl Step {
    /// The nodes that it computes, at least one.
    pub fn nodes(&self) -> &[usize] {
        match self {
            Step::Fused(fused) => &fused.nodes,
            Step::Kernel(at) | Step::Each(at, _) => std::slice::from_ref(at),
        }
    }
}

/// A fused element-wise step. Refers to the window's nodes by index, so that it is valid for every repetition.
pub struct Fused {
    /// Shared with the devices' queues.
    pub program: Arc<Program>,
    pub shape: Shape,
    pub slots: Vec<Slot>,
    pub scalars: Vec<ScalarRef>,
    /// The nodes fused into it, in order.
    pub nodes: Vec<usize>,
    /// Nodes that own an error slot; `Check::node` is an index in this list.
    pub fallible: Vec<usize>,
    /// The slots as a kernel sees them; only the addresses change from run to run. Shared as `Operands`.
    pub views: Arc<Vec<RawView>>,
    /// The scalar table, filled for each run.
    pub table: Arc<Vec<u64>>,
}

/// A view of a program.
pub struct Slot {
    pub node: usize,
    pub operand: Operand,
    /// Strides in the order of the iteration shape.
    pub strides: Strides,
    pub shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    Input(u8),
    Output(u8),
}

/// Where an entry of the scalar table comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarRef {
    Value { node: usize, input: u8, class: Class, dtype: crate::base::dtype::DType },
    Seed { node: usize, input: u8 },
    Offset { node: usize, input: u8 },
    Low { node: usize, input: u8 },
    Range { node: usize, input: u8 },
}

/// Plans a window. `live` says whether a buffer has handles outside of it.
pub fn plan(nodes: &[Node], known: &mut KnownSteps, live: impl Fn(&Buffer) -> bool) -> Plan {
    let groups = fuse::groups(nodes);
    let last = last_groups(nodes, &groups);
    let steps = groups
        .iter()
        .enumerate()
        .map(|(at, g)| {
            if g.kernel {
                let node = g.nodes[0];
                return match nodes[node].work {
                    Work::Each { .. } => Step::Each(node, Box::default()),
                    _ => Step::Kernel(node),
                };
            }
            // A result is stored if it has readers outside of the step.
            let stored = |buffer: &Arc<Buffer>| live(buffer) || last.get(&Arc::as_ptr(buffer)) > Some(&at);
            Step::Fused(Box::new(known.step(nodes, g, &stored)))
        })
        .collect();
    let last_uses = last_uses(nodes, &groups, last);
    let operands = groups.iter().map(|_| None).collect();
    Plan { steps, last_uses, prepared: Prepared::default(), operands, layouts: 0, has_new_layouts: false }
}

/// For each buffer the last group that uses it.
fn last_groups(nodes: &[Node], groups: &[Group]) -> ByNumber<*const Buffer, usize> {
    // A node makes one buffer, and mostly reads what others made.
    let mut last = ByNumber::with_capacity_and_hasher(nodes.len() + 8, Default::default());
    for (at, group) in groups.iter().enumerate() {
        for node in group.nodes.iter().map(|&n| &nodes[n]) {
            for view in node.reads() {
                last.insert(Arc::as_ptr(&view.buffer), at);
            }
            for view in &node.outputs {
                last.insert(Arc::as_ptr(&view.buffer), at);
            }
        }
    }
    last
}

/// For each group the operands whose buffer no later group uses: each buffer of the window occurs once.
fn last_uses(
    nodes: &[Node],
    groups: &[Group],
    mut last: ByNumber<*const Buffer, usize>,
) -> Vec<SmallVec<[(u32, Operand); 4]>> {
    let mut released: Vec<SmallVec<[(u32, Operand); 4]>> = groups.iter().map(|_| SmallVec::new()).collect();
    for (at, group) in groups.iter().enumerate() {
        for &n in &group.nodes {
            let inputs = nodes[n].inputs.iter().enumerate();
            let inputs = inputs.filter_map(|(i, input)| input.view().map(|view| (Operand::Input(i as u8), view)));
            let outputs = nodes[n].outputs.iter().enumerate().map(|(i, view)| (Operand::Output(i as u8), view));
            for (operand, view) in inputs.chain(outputs) {
                let buffer = Arc::as_ptr(&view.buffer);
                if last.get(&buffer) == Some(&at) {
                    last.remove(&buffer);
                    released[at].push((n as u32, operand));
                }
            }
        }
    }
    released
}

/// The view that an operand of a node is.
pub fn view_of(node: &Node, operand: Operand) -> &Arc<View> {
    match operand {
        Operand::Input(i) => node.inputs[i as usize].view().expect("a slot is a view"),
        Operand::Output(i) => &node.outputs[i as usize],
    }
}
