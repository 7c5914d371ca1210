//! Checks of values that an operation needs, made while computing: a bad value is a late error. Parts of other rows.

use crate::kernel::elementwise as f;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote};
use crate::op::rows::signatures::unary;

/// The numbers themselves: name, function, what they must be.
macro_rules! checked {
    ($($NAME:ident $name:literal $summary:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: $summary,
            lower: Lower::Map { function: &f::$NAME, promote: Promote::Same },
            grad: Grad::Stop("what is checked is taken as it is"),
            call: CallForm::Internal,
            ..Op::BASE
        };)*
        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
}

checked! {
    PROBABILITY "probability" "Numbers from 0 to 1.";
    DEVIATION "deviation" "Numbers that are not negative.";
    FINITE "finite" "Numbers that are neither NaN nor infinite.";
}
