//! From a kernel's fault to the diagnostic of the line that queued it.

use super::call_chain::Step;
use crate::base::attr::Attr;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Frame};
use crate::base::span::Origin;
use crate::kernel::abi::{Fault, FaultKind};
use crate::sched::runtime::Runtime;
use crate::sched::window::node::{Node, Work};
use std::sync::Arc;

impl Runtime {
    /// The diagnostic of a fault that a kernel of `node` reported, on a stream or on `cpu`.
    pub(in crate::sched) fn diagnose(&self, fault: Fault, node: &Node, place: &str) -> Arc<Diag> {
        let diag =
            describe_fault(fault, node).label(node.origin, Focus::Expression, format!("queued here, on {place}"));
        let made = operand(fault, node).and_then(|at| node.made.get(at).copied());
        let diag = match made {
            // Tensors that the operation itself created on the way have no source line.
            Some(made) if !made.user.is_none() && made != node.origin => {
                diag.label(made, Focus::Expression, made_here(fault.kind))
            }
            _ => diag,
        };
        self.late(diag, node.number, node.call_chain)
    }

    /// A diagnostic of work that was queued earlier, with its queue number and the calls that led to it.
    pub(in crate::sched) fn late(&self, mut diag: Box<Diag>, number: u64, call_chain: u32) -> Arc<Diag> {
        diag.is_late = true;
        diag.queued = number;
        for step in self.steps(call_chain) {
            match step {
                Step::Call(call) => diag.stack.push(Frame { function: String::new(), call }),
                Step::Backward(asked) => diag = diag.label(asked, Focus::Call, "gradients were asked for here"),
            }
        }
        Arc::from(diag)
    }
}

/// Code, message and note.
fn describe_fault(fault: Fault, node: &Node) -> Box<Diag> {
    let Fault { kind, position, value, bound } = fault;
    let (code, message, note) = match kind {
        FaultKind::Index { dim } => (
            code::KERNEL_INDEX,
            format!("index {value} is out of range for dimension {dim} of size {bound}"),
            format!("element {position} of the index; the device and every other tensor are unharmed"),
        ),
        FaultKind::Label => (
            code::KERNEL_LABEL,
            format!("class label {value} is out of range for {bound} classes"),
            format!("element {position} of the target; labels go from 0 to {}", bound - 1),
        ),
        FaultKind::Probability => (
            code::KERNEL_PROBABILITY,
            match bound {
                1 => "probabilities must lie between 0 and 1".to_string(),
                _ => "probabilities must be finite and not negative, and as many of them positive as are drawn"
                    .to_string(),
            },
            format!("the first bad one is element {position}"),
        ),
        FaultKind::Deviation => (
            code::KERNEL_VALUE,
            "standard deviations must not be negative".to_string(),
            format!("the first bad one is element {position}"),
        ),
        FaultKind::Range => (
            code::KERNEL_VALUE,
            "the range of the elements is not finite".to_string(),
            format!("the first that is NaN or infinite is element {position}"),
        ),
        FaultKind::DivisionByZero => (
            code::KERNEL_DIVISION,
            "division of integers by zero".to_string(),
            format!("the divisor is 0 at element {position}"),
        ),
        FaultKind::NotPositiveDefinite => (
            code::KERNEL_NOT_POSITIVE,
            "the matrix is not positive-definite".to_string(),
            format!("the leading minor of order {value} is not positive-definite (matrix {position} of the batch)"),
        ),
        FaultKind::Singular => (
            code::KERNEL_SINGULAR,
            "the matrix is singular".to_string(),
            format!("pivot {value} is zero (matrix {position} of the batch)"),
        ),
        FaultKind::NoConvergence => (
            code::KERNEL_CONVERGE,
            "the decomposition did not converge".to_string(),
            format!("matrix {position} of the batch; does it hold NaN or infinity?"),
        ),
        FaultKind::NotFinite => (
            code::CHECK_NOT_FINITE,
            format!("`{}` made NaN or infinity from finite inputs", node.name),
            format!("the first is element {position} of the result"),
        ),
    };
    Diag::error(code, message).note(note)
}

/// How the operand with the bad value is called.
fn made_here(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Index { .. } => "the index tensor was made here",
        FaultKind::Label => "the target was made here",
        FaultKind::Probability => "the probabilities were made here",
        FaultKind::Deviation => "the deviations were made here",
        FaultKind::Range => "the elements were made here",
        FaultKind::DivisionByZero => "the divisor was made here",
        _ => "the matrix was made here",
    }
}

/// Which operand holds the bad value. Kernels that take indices take the indexed tensor first; those with an index
/// for each of several dims take these last, and the dims as their first attribute.
fn operand(fault: Fault, node: &Node) -> Option<usize> {
    let is_index = |at: &usize| node.inputs[*at].view().is_some_and(|view| view.dtype.is_int());
    let first_index = || (1..node.inputs.len()).find(is_index).or((!node.inputs.is_empty()).then_some(0));
    match (&node.work, fault.kind) {
        (Work::Map { check, .. }, _) => check.map(|(at, _)| at as usize),
        (Work::Kernel { attrs, .. }, FaultKind::Index { dim }) => match attrs.first() {
            Some(Attr::Ints(dims)) if dims.len() < node.inputs.len() => {
                let dim_at = dims.iter().position(|&other| other == dim as i64);
                dim_at.map(|at| node.inputs.len() - dims.len() + at).filter(is_index).or_else(first_index)
            }
            _ => first_index(),
        },
        (_, FaultKind::Label) => first_index(),
        _ => Some(0),
    }
}

/// The position that queued the failed work.
pub fn queued_at(diag: &Diag) -> Origin {
    diag.labels.first().map_or(Origin::NONE, |label| label.origin)
}

/// Whether two faults have the same text and position.
pub fn is_same(a: &Diag, b: &Diag) -> bool {
    a.code == b.code && a.message == b.message && a.notes == b.notes && queued_at(a) == queued_at(b)
}
