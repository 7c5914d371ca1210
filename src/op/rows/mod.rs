//! The rows, one file a family. A new operation is a new row here and nothing elsewhere.

pub mod activation;
pub mod adaptive;
pub mod arith;
pub mod attention;
pub mod bag;
pub mod bessel;
pub mod blend;
pub mod checked;
pub mod clip;
pub mod columns;
pub mod compare;
pub mod contract;
pub mod conv;
pub mod convert;
pub mod copied;
pub mod copies;
pub mod counts;
pub mod covariance;
pub mod create;
pub mod ctc;
pub mod differences;
pub mod distance;
pub mod distinct;
pub mod dropout;
pub mod embed;
pub mod expanded;
pub mod extreme;
pub mod fractional;
pub mod gather;
pub mod grid;
pub mod histogram;
pub mod indexing;
pub mod join;
pub mod least;
pub mod likelihood;
pub mod linalg;
pub mod loss;
pub mod loss_pairs;
pub mod lu;
pub mod magnitude;
pub mod maps;
pub mod masks;
pub mod matmul;
pub mod moments;
pub mod multihead;
pub mod native;
pub mod norm;
pub mod norms;
pub mod optim;
pub mod padding;
pub mod pairs;
pub mod parts;
pub mod pieces;
pub mod pool;
pub mod power;
pub mod products;
pub mod random;
pub mod reduce;
pub mod reflections;
pub mod reported;
pub mod resample;
pub mod scan;
pub mod shape;
pub mod signs;
pub mod slices;
pub mod slopes;
pub mod softmax;
pub mod sort;
pub mod special;
pub mod spectral;
pub mod spread;
pub mod tails;
pub mod tapers;
pub mod unary;
pub mod view;
pub mod windows;

use super::row::Op;

/// Every family, in the order of the manual.
pub static FAMILIES: &[&[&Op]] = &[
    create::ROWS,
    random::ROWS,
    counts::ROWS,
    tapers::ROWS,
    convert::ROWS,
    arith::ROWS,
    power::ROWS,
    compare::ROWS,
    blend::ROWS,
    unary::ROWS,
    unary::MORE,
    parts::SAME,
    parts::ROWS,
    special::ROWS,
    special::MORE,
    spread::ROWS,
    tails::ROWS,
    bessel::ROWS,
    bessel::POLYNOMIALS,
    activation::ROWS,
    slopes::ROWS,
    dropout::ROWS,
    reduce::ROWS,
    extreme::ROWS,
    moments::ROWS,
    magnitude::ROWS,
    covariance::ROWS,
    scan::ROWS,
    differences::ROWS,
    sort::ROWS,
    distinct::ROWS,
    histogram::ROWS,
    view::ROWS,
    shape::ROWS,
    pieces::ROWS,
    join::ROWS,
    copies::ROWS,
    copied::COPIES,
    copied::UNSAFE,
    copied::ROWS,
    padding::ROWS,
    matmul::ROWS,
    contract::ROWS,
    products::ROWS,
    linalg::ROWS,
    lu::ROWS,
    reported::ROWS,
    maps::ROWS,
    reflections::ROWS,
    spectral::ROWS,
    least::ROWS,
    norms::ROWS,
    gather::ROWS,
    slices::ROWS,
    masks::ROWS,
    indexing::ROWS,
    conv::ROWS,
    checked::ROWS,
    columns::ROWS,
    pool::ROWS,
    fractional::ROWS,
    resample::ROWS,
    resample::UPSAMPLED,
    grid::ROWS,
    softmax::ROWS,
    norm::ROWS,
    native::ROWS,
    embed::ROWS,
    bag::ROWS,
    loss::ROWS,
    loss_pairs::ROWS,
    likelihood::ROWS,
    ctc::ROWS,
    distance::ROWS,
    pairs::ROWS,
    attention::ROWS,
    multihead::ROWS,
    optim::ROWS,
    adaptive::ROWS,
    clip::ROWS,
    signs::ROWS,
];
