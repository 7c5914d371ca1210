//! From a kernel's fault to the diagnostic of the line that queued it.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::kernel::abi::{Fault, FaultKind};

/// The diagnostic of a fault in the operation `name` that was queued at `origin`.
pub fn diagnose(fault: Fault, name: &str, origin: Origin, place: &str) -> Box<Diag> {
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
            "probabilities must be finite, not negative, and of a positive sum".to_string(),
            format!("the first bad one is element {position}"),
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
            format!("`{name}` made NaN or infinity from finite inputs"),
            format!("the first is element {position} of the result"),
        ),
    };
    let text = format!("`{name}` was queued here, on {place}");
    Diag::error(code, message).label(origin, Focus::Expression, text).note(note)
}
