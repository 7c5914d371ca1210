//! Carries out plans on the host: on the script's own thread, its steps over the pool.

use crate::base::device_id::DeviceId;
use crate::base::diag::Diag;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Shape, Strides};
use crate::base::span::Origin;
use crate::device::queues::Point;
use crate::kernel::abi::{Call, Faults, RawView};
use crate::kernel::program::Class;
use crate::op::tensor::View;
use crate::sched::backend::touch;
use crate::sched::fault::ledger::Outcome;
use crate::sched::runtime::{Runtime, State, threads};
use crate::sched::streams::stream::HOST;
use crate::sched::window::each;
use crate::sched::window::node::{Input, Node, Work};
use crate::sched::window::plan::{Fused, Operands, Plan, ScalarRef, Step, view_of};
use std::sync::Arc;

/// The faults of a run with their nodes.
pub type Found = Vec<(usize, Arc<Diag>)>;

impl Runtime {
    /// Runs the host's window to its end.
    pub(in crate::sched) fn run_on_host(&self, state: &mut State, nodes: &[Node], plan: &mut Plan) {
        let mut outcome = Outcome { faults: Vec::new(), skipped: Vec::new(), reached: None };
        let mut noted = 0;
        for ((step, last_uses), operands) in plan.steps.iter_mut().zip(&plan.last_uses).zip(&mut plan.operands) {
            let start = self.trace.begin();
            let begun = self.time_now();
            let mut is_left_out = false;
            // Looked at before each step, since a window may hold minutes of work.
            let ended = self.options.stop.drops(self.options.stop.run());
            let gate = nodes[step.nodes()[0]].gate.as_ref();
            if gate.is_some() {
                // Faults of this window come before, where they were queued before.
                for (at, diag) in &outcome.faults[noted..] {
                    state.ledger.note(diag, HOST, DeviceId::Cpu, nodes[*at].number);
                }
                noted = outcome.faults.len();
            }
            match &mut *step {
                step if gate.is_some_and(|gate| (ended && gate.leave_out()) || gate.is_held()) => {
                    outcome.skipped.extend_from_slice(step.nodes());
                    is_left_out = true;
                }
                step if ended => {
                    let faults = step.nodes().iter().map(|&at| (at, self.left_out(&nodes[at])));
                    outcome.faults.extend(faults);
                    is_left_out = true;
                }
                Step::Fused(fused) => self.run_fused(nodes, fused, &mut outcome.faults),
                Step::Kernel(at) => self.run_kernel(nodes, *at, operands, &mut outcome.faults),
                Step::Each(step) => self.run_each(nodes, step.node, &mut outcome.faults),
            }
            self.trace.pass(DeviceId::Cpu, nodes, step, start);
            if !is_left_out {
                self.note_host_step(state, begun, nodes, step.nodes());
            }
            for &(node, operand) in last_uses {
                let buffer = &view_of(&nodes[node as usize], operand).buffer;
                if !buffer.is_live() && buffer.has_memory() {
                    buffer.home.release(buffer);
                }
            }
        }
        let point = Point { stream: HOST, sequence: 0 };
        state.ledger.settle(nodes, outcome, point, DeviceId::Cpu);
        state.ledger.follow();
    }

    /// Memory for a step's output. Running out here means that admission was wrong by what others took
    /// meanwhile: the node faults, the session lives.
    #[inline]
    pub(in crate::sched) fn ensure(&self, view: &View, node: &Node, at: usize, faults: &mut Found) -> bool {
        view.buffer.has_memory() || self.ensure_new(view, node, at, faults)
    }

    fn ensure_new(&self, view: &View, node: &Node, at: usize, faults: &mut Found) -> bool {
        match self.give_memory(&view.buffer) {
            Ok(()) => true,
            Err(mut diag) => {
                for label in &mut diag.labels {
                    if label.origin == Origin::NONE {
                        label.origin = node.origin;
                    }
                }
                let diag = diag.or_at(node.origin, "queued here");
                faults.push((at, self.late(diag, node.number, node.trail)));
                false
            }
        }
    }

    fn run_fused(&self, nodes: &[Node], step: &mut Fused, faults: &mut Found) {
        if !self.fill_fused(nodes, step, faults) {
            return;
        }
        let slots: Vec<Faults> = step.fallible.iter().map(|_| Faults::default()).collect();
        let may_end = nodes[step.nodes[0]].gate.is_none();
        let done = touch::run_fused(&step.program, &step.shape, &step.views, &step.table, &slots, &self.ward(may_end));
        if let Err(end) = done {
            faults.extend(step.nodes.iter().map(|&at| (at, self.ended(&end, &nodes[at], "cpu"))));
            return;
        }
        for (slot, &at) in slots.iter().zip(&step.fallible) {
            if let Some(found) = slot.take() {
                faults.push((at, self.diagnose(found, &nodes[at], "cpu")));
            }
        }
    }

    /// Addresses and scalars of one run of a fused step; false when there is no memory.
    pub(in crate::sched) fn fill_fused(&self, nodes: &[Node], step: &mut Fused, faults: &mut Found) -> bool {
        for (slot, raw) in step.slots.iter().zip(&mut step.views) {
            let node = &nodes[slot.node];
            let view = view_of(node, slot.operand);
            if !self.ensure(view, node, slot.node, faults) {
                return false;
            }
            raw.ptr = view.ptr();
        }
        for (entry, scalar) in step.table.iter_mut().zip(&step.scalars) {
            *entry = scalar_bits(nodes, *scalar);
        }
        true
    }

    fn run_kernel(&self, nodes: &[Node], at: usize, kept: &mut Option<Operands>, faults: &mut Found) {
        let node = &nodes[at];
        let Work::Kernel { host, attrs, seed, offset, .. } = &node.work else { unreachable!("a kernel step") };
        if !node.reads().chain(&node.outputs).all(|view| self.ensure(view, node, at, faults)) {
            return;
        }
        let Operands { inputs, outputs } = kept.get_or_insert_with(|| Operands {
            inputs: node.reads().map(raw).collect(),
            outputs: node.outputs.iter().map(raw).collect(),
        });
        inputs.iter_mut().zip(node.reads()).for_each(|(raw, view)| raw.ptr = view.ptr());
        outputs.iter_mut().zip(&node.outputs).for_each(|(raw, view)| raw.ptr = view.ptr());
        let slot = Faults::default();
        let call = Call { inputs, outputs, attrs, threads: threads(), faults: &slot, seed: *seed, offset: *offset };
        if let Err(end) = touch::run_kernel(*host, &call, &self.ward(node.gate.is_none())) {
            faults.push((at, self.ended(&end, node, "cpu")));
            return;
        }
        if let Some(found) = slot.take() {
            faults.push((at, self.diagnose(found, node, "cpu")));
        }
    }

    fn run_each(&self, nodes: &[Node], at: usize, faults: &mut Found) {
        let node = &nodes[at];
        let Some((each, scalars, _)) = each::of(node) else { return };
        if !self.ensure_all(node, at, faults) {
            return;
        }
        for member in 0..each.members(node) {
            let shape = each.shape(node, member);
            let views = each.views(node, member);
            if let Err(end) =
                touch::run_fused(&each.program, shape, &views, scalars, &[], &self.ward(node.gate.is_none()))
            {
                faults.push((at, self.ended(&end, node, "cpu")));
                return;
            }
        }
    }

    pub(in crate::sched) fn ensure_all(&self, node: &Node, at: usize, faults: &mut Found) -> bool {
        node.reads().chain(&node.outputs).all(|view| self.ensure(view, node, at, faults))
    }

    /// A kernel's operands with their addresses; none when there is no memory.
    pub(in crate::sched) fn operands(
        &self,
        node: &Node,
        at: usize,
        faults: &mut Found,
    ) -> Option<(Vec<RawView>, Vec<RawView>)> {
        if !self.ensure_all(node, at, faults) {
            return None;
        }
        Some((node.reads().map(raw).collect(), node.outputs.iter().map(raw).collect()))
    }
}

fn raw(view: &Arc<View>) -> RawView {
    RawView {
        ptr: view.ptr(),
        dtype: view.dtype,
        shape: Shape::from_slice(&view.layout.shape),
        strides: Strides::from_slice(&view.layout.strides),
    }
}

/// A table entry as raw bits.
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
        Class::I64 => {
            let value = value.to_i64();
            let wrapped = match dtype {
                DType::U8 => value as u8 as i64,
                DType::I8 => value as i8 as i64,
                DType::I16 => value as i16 as i64,
                DType::I32 => value as i32 as i64,
                _ => value,
            };
            wrapped as u64
        }
        // 16-bit tensors compute with the number in f32, as PyTorch does.
        Class::F32 | Class::F64 => value.to_f64().to_bits(),
    }
}
