//! Reading and writing by index tensors and masks.

use crate::op::row::{CallForm, Grad, Kind, Op, Param};

const X: Param = Param::new("input", Kind::Tensor);

pub static NONZERO: Op = Op { name: "nonzero", params: &[X], ..Op::BASE };

/// `x[i, None, j]`: one entry for each dimension, absent where the whole dimension stays.
pub static INDEX: Op = Op {
    name: "index",
    params: &[X, Param::new("indices", Kind::OptTensors)],
    grad: Grad::Unset,
    call: CallForm::Internal,
    ..Op::BASE
};

/// `x[i, None, j] = value`, or added when `accumulate`.
pub static INDEX_PUT: Op = Op {
    name: "index_put",
    params: &[
        X,
        Param::new("indices", Kind::OptTensors),
        Param::new("values", Kind::Tensor),
        Param::opt("accumulate", Kind::Bool, crate::op::row::Default::Bool(false)),
    ],
    inplace: true,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&NONZERO, &INDEX, &INDEX_PUT];
