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

use super::chapter::Chapter::{self, *};
use super::row::Op;

/// Every family with its chapter of the reference, in the order of the manual.
pub static FAMILIES: &[(Chapter, &[&Op])] = &[
    (Creation, create::ROWS),
    (Random, random::ROWS),
    (Random, counts::ROWS),
    (Creation, tapers::ROWS),
    (Creation, convert::ROWS),
    (Pointwise, arith::ROWS),
    (Pointwise, power::ROWS),
    (Pointwise, compare::ROWS),
    (Pointwise, blend::ROWS),
    (Pointwise, unary::ROWS),
    (Pointwise, unary::MORE),
    (Pointwise, parts::SAME),
    (Pointwise, parts::ROWS),
    (Pointwise, special::ROWS),
    (Pointwise, special::MORE),
    (Pointwise, spread::ROWS),
    (Pointwise, tails::ROWS),
    (Pointwise, bessel::ROWS),
    (Pointwise, bessel::POLYNOMIALS),
    (Activation, activation::ROWS),
    (Activation, slopes::ROWS),
    (Activation, dropout::ROWS),
    (Reduction, reduce::ROWS),
    (Reduction, extreme::ROWS),
    (Reduction, moments::ROWS),
    (Reduction, magnitude::ROWS),
    (Reduction, covariance::ROWS),
    (Reduction, scan::ROWS),
    (Reduction, differences::ROWS),
    (Ordering, sort::ROWS),
    (Ordering, distinct::ROWS),
    (Reduction, histogram::ROWS),
    (Shape, view::ROWS),
    (Shape, shape::ROWS),
    (Shape, pieces::ROWS),
    (Shape, join::ROWS),
    (Shape, copies::ROWS),
    (Shape, copied::COPIES),
    (Shape, copied::UNSAFE),
    (Shape, copied::ROWS),
    (Shape, padding::ROWS),
    (LinearAlgebra, matmul::ROWS),
    (LinearAlgebra, contract::ROWS),
    (LinearAlgebra, products::ROWS),
    (LinearAlgebra, linalg::ROWS),
    (LinearAlgebra, lu::ROWS),
    (LinearAlgebra, reported::ROWS),
    (LinearAlgebra, maps::ROWS),
    (LinearAlgebra, reflections::ROWS),
    (LinearAlgebra, spectral::ROWS),
    (LinearAlgebra, least::ROWS),
    (LinearAlgebra, norms::ROWS),
    (Indexing, gather::ROWS),
    (Indexing, slices::ROWS),
    (Indexing, masks::ROWS),
    (Indexing, indexing::ROWS),
    (Layer, conv::ROWS),
    (Layer, checked::ROWS),
    (Layer, columns::ROWS),
    (Layer, pool::ROWS),
    (Layer, fractional::ROWS),
    (Layer, resample::ROWS),
    (Layer, resample::UPSAMPLED),
    (Layer, grid::ROWS),
    (Activation, softmax::ROWS),
    (Layer, norm::ROWS),
    (Layer, native::ROWS),
    (Layer, embed::ROWS),
    (Layer, bag::ROWS),
    (Loss, loss::ROWS),
    (Loss, loss_pairs::ROWS),
    (Loss, likelihood::ROWS),
    (Loss, ctc::ROWS),
    (Loss, distance::ROWS),
    (Loss, pairs::ROWS),
    (Layer, attention::ROWS),
    (Layer, multihead::ROWS),
    (Optimizer, optim::ROWS),
    (Optimizer, adaptive::ROWS),
    (Optimizer, clip::ROWS),
    (Optimizer, signs::ROWS),
];
