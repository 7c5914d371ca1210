//! Operations of which all arguments are numbers: they have the values of elements, in 64 bits.

use crate::base::arithmetic::{Power, power};
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise::of_numbers;
use crate::kernel::program::{Check, Class};
use crate::op::infer::{self, Operand};
use crate::op::row::{Lower, Op, Promote};
use crate::op::rows::pointwise::arith;
use smallvec::SmallVec;

/// The value; `None` for a row that is composed of others.
pub fn value(op: &'static Op, numbers: &[Scalar]) -> Option<Result<Scalar>> {
    if op.is(&arith::POW) {
        return Some(raised(numbers));
    }
    let Lower::Map { function, promote } = &op.lower else { return None };
    let promote = match promote {
        Promote::FloatOnly => Promote::Float,
        other => *other,
    };
    let operands: SmallVec<[Operand<'_>; 4]> = numbers.iter().map(|&number| Operand::Number(number)).collect();
    let plan = match infer::map(promote, &operands, DType::F64) {
        Ok(plan) => plan,
        Err(diag) => return Some(Err(diag)),
    };
    if plan.identity {
        return Some(Ok(numbers[0]));
    }
    if let Some((at, Check::NonZero)) = function.check
        && plan.result.is_int()
        && numbers[at as usize].is_zero()
    {
        return Some(Err(Diag::error(crate::base::code::ARITHMETIC, "division of integers by zero")));
    }
    let classes: SmallVec<[Class; 4]> = plan.args.iter().map(|&dtype| Class::of(dtype)).collect();
    of_numbers(function, numbers, &classes).map(Ok)
}

fn raised(numbers: &[Scalar]) -> Result<Scalar> {
    let [base, exponent] = numbers else { fail!(MISSING_ARGUMENT, "a power has a base and an exponent") };
    match (base, exponent) {
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => Ok(Scalar::Float(base.to_f64().powf(exponent.to_f64()))),
        _ => match power(base.to_i64(), exponent.to_i64()) {
            Some(Power::Int(value)) => Ok(Scalar::Int(value)),
            Some(Power::Float(value)) => Ok(Scalar::Float(value)),
            None => fail!(ARITHMETIC, "{base} to the power {exponent} has no result in 64 bits"),
        },
    }
}
