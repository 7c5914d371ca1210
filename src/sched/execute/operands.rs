//! A step's operands for one run: their memory, their addresses, and the scalars of the nodes.

use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Shape, Strides};
use crate::base::span::Origin;
use crate::kernel::abi::RawView;
use crate::kernel::program::Class;
use crate::op::tensor::View;
use crate::sched::backend::step::Command;
use crate::sched::fault::Found;
use crate::sched::runtime::Runtime;
use crate::sched::window::each;
use crate::sched::window::node::{Input, Node, Work};
use crate::sched::window::plan::{Fused, Operands, ScalarRef, Step, view_of};
use std::sync::Arc;

/// The operands of a kernel's last run.
pub(super) struct Kept<'a> {
    pub operands: &'a mut Option<Arc<Operands>>,
    /// Their shapes and strides may differ in this run.
    pub has_new_layouts: bool,
}

impl Runtime {
    /// Prepares a step for this run; false if there is no memory, which is then one of the faults.
    #[inline]
    pub(super) fn make_ready(
        &self,
        nodes: &[Node],
        step: &mut Step,
        kept: &mut Kept<'_>,
        slot: u32,
        faults: &mut Found,
    ) -> bool {
        match step {
            Step::Fused(fused) => self.fill_fused(nodes, fused, slot, faults),
            Step::Kernel(at) => {
                let node = &nodes[*at];
                let ready = self.ensure_all(node, *at, slot, faults);
                if ready {
                    fill_kernel(node, kept);
                }
                ready
            }
            Step::Each(at, _) => self.ensure_all(&nodes[*at], *at, slot, faults),
        }
    }

    /// Allocates memory for a step's output. If that fails, other programs took memory that admission had counted on:
    /// the node faults, the session goes on.
    #[inline]
    fn ensure(&self, view: &View, node: &Node, at: usize, slot: u32, faults: &mut Found) -> bool {
        view.buffer.has_memory() || self.ensure_new(view, node, at, slot, faults)
    }

    fn ensure_new(&self, view: &View, node: &Node, at: usize, slot: u32, faults: &mut Found) -> bool {
        match self.give_memory_of(&view.buffer, slot) {
            Ok(()) => true,
            Err(mut diag) => {
                for label in &mut diag.labels {
                    if label.origin == Origin::NONE {
                        label.origin = node.origin;
                    }
                }
                let diag = diag.or_at(node.origin, "queued here");
                faults.push((at, self.late(diag, node.number, node.call_chain)));
                false
            }
        }
    }

    /// Addresses and scalars of one run of a fused step; false if there is no memory.
    fn fill_fused(&self, nodes: &[Node], step: &mut Fused, stream: u32, faults: &mut Found) -> bool {
        for (slot, raw) in step.slots.iter().zip(Arc::make_mut(&mut step.views)) {
            let node = &nodes[slot.node];
            let view = view_of(node, slot.operand);
            if !self.ensure(view, node, slot.node, stream, faults) {
                return false;
            }
            raw.ptr = view.ptr();
        }
        if !step.scalars.is_empty() {
            for (entry, scalar) in Arc::make_mut(&mut step.table).iter_mut().zip(&step.scalars) {
                *entry = scalar_bits(nodes, *scalar);
            }
        }
        true
    }

    /// Not: one iterator over both, whose closure is called for each view.
    #[inline]
    fn ensure_all(&self, node: &Node, at: usize, slot: u32, faults: &mut Found) -> bool {
        for input in &node.inputs {
            if let Input::View(view) = input
                && !self.ensure(view, node, at, slot, faults)
            {
                return false;
            }
        }
        for view in &node.outputs {
            if !self.ensure(view, node, at, slot, faults) {
                return false;
            }
        }
        true
    }
}

/// A prepared step as devices see it, and the nodes that own its error slots.
#[inline]
pub(super) fn command<'a>(
    nodes: &'a [Node],
    step: &'a Step,
    kept: &'a Option<Arc<Operands>>,
) -> (Command<'a>, &'a [usize]) {
    match step {
        Step::Fused(fused) => {
            let Fused { program, shape, views, table, fallible, .. } = &**fused;
            (Command::Fused { program, shape, views, table }, fallible)
        }
        Step::Kernel(at) => {
            let Work::Kernel { kernel, attrs, seed, offset } = &nodes[*at].work else { unreachable!("a kernel step") };
            let operands = kept.as_ref().expect("it was filled in");
            let (kernel, seed, offset) = (*kernel, *seed, *offset);
            (Command::Kernel { kernel, attrs, operands, seed, offset }, std::slice::from_ref(at))
        }
        Step::Each(at, members) => {
            let node = &nodes[*at];
            let (each, scalars, lines) = each::of(node).expect("a step over many tensors");
            (Command::Each { each, node, scalars, lines, members }, &[])
        }
    }
}

/// A kernel's operands with their addresses.
#[inline]
fn fill_kernel(node: &Node, kept: &mut Kept<'_>) {
    let made = || Operands { inputs: node.reads().map(raw).collect(), outputs: node.outputs.iter().map(raw).collect() };
    let Operands { inputs, outputs } = Arc::make_mut(kept.operands.get_or_insert_with(|| Arc::new(made())));
    let has_new_layouts = kept.has_new_layouts;
    let fill = |(known, view): (&mut RawView, &Arc<View>)| match has_new_layouts {
        true => *known = raw(view),
        false => known.ptr = view.ptr(),
    };
    inputs.iter_mut().zip(node.reads()).for_each(fill);
    outputs.iter_mut().zip(&node.outputs).for_each(fill);
}

fn raw(view: &Arc<View>) -> RawView {
    RawView {
        ptr: view.ptr(),
        dtype: view.dtype,
        shape: Shape::from_slice(&view.layout.shape),
        strides: Strides::from_slice(&view.layout.strides),
    }
}

/// A scalar table entry as raw bits.
fn scalar_bits(nodes: &[Node], scalar: ScalarRef) -> u64 {
    let random = |node: usize, input: u8| match &nodes[node].inputs[input as usize] {
        Input::Random(drawn) => [drawn.seed, drawn.offset, drawn.low as u64, drawn.range],
        _ => [0; 4],
    };
    match scalar {
        ScalarRef::Seed { node, input } => random(node, input)[0],
        ScalarRef::Offset { node, input } => random(node, input)[1],
        ScalarRef::Low { node, input } => random(node, input)[2],
        ScalarRef::Range { node, input } => random(node, input)[3],
        ScalarRef::Value { node, input, class, dtype } => {
            let Input::Scalar(value) = nodes[node].inputs[input as usize] else { return 0 };
            bits(value, class, dtype)
        }
    }
}

/// A number as an element of `dtype` in a register of `class`: raw bits of f64, i64, or 0 and 1.
fn bits(value: Scalar, class: Class, dtype: DType) -> u64 {
    match class {
        Class::Bool => (value.to_f64() != 0.0 || value.to_f64().is_nan()) as u64,
        Class::I64 => dtype.wrap(value.to_i64()) as u64,
        // 16-bit tensors compute with the number in f32, as in PyTorch.
        Class::F32 | Class::F64 => value.to_f64().to_bits(),
    }
}
