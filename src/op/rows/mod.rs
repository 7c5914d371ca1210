//! The rows, one file a family. A new operation is a new row here and nothing elsewhere.

pub mod activation;
pub mod arith;
pub mod blend;
pub mod compare;
pub mod contract;
pub mod convert;
pub mod copies;
pub mod create;
pub mod dropout;
pub mod indexing;
pub mod join;
pub mod linalg;
pub mod matmul;
pub mod norms;
pub mod padding;
pub mod pieces;
pub mod power;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod slopes;
pub mod special;
pub mod spectral;
pub mod unary;
pub mod view;

use super::row::Op;

/// Every family, in the order of the manual.
pub static FAMILIES: &[&[&Op]] = &[
    create::ROWS,
    random::ROWS,
    convert::ROWS,
    arith::ROWS,
    power::ROWS,
    compare::ROWS,
    blend::ROWS,
    unary::ROWS,
    unary::MORE,
    special::ROWS,
    special::MORE,
    activation::ROWS,
    slopes::ROWS,
    dropout::ROWS,
    reduce::ROWS,
    view::ROWS,
    shape::ROWS,
    pieces::ROWS,
    join::ROWS,
    copies::ROWS,
    padding::ROWS,
    matmul::ROWS,
    contract::ROWS,
    linalg::ROWS,
    spectral::ROWS,
    norms::ROWS,
    indexing::ROWS,
];
