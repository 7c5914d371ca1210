//! Histograms with their edges: `histogram` and `histogramdd`. Edges are found in the elements' own dtype, elements
//! in the edges by search; the last bin has its right edge too.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{Grad, Lower, Op, Returns, ex};
use crate::op::rows::creation::create::LINSPACE;
use crate::op::rows::indexing::index_select::INDEX_ADD;
use crate::op::rows::ordering::distinct::BUCKETIZE;
use crate::op::rows::pointwise::blend::CLAMP_MAX;
use crate::op::rows::pointwise::compare::{GE, LE, LOGICAL_AND, WHERE};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::reduction::scan::DIFF;
use crate::op::rows::shape::view::{RESHAPE, SELECT, SLICE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// Equal bins between bounds: those given, or the extremes of the elements.
fn edges(e: &mut dyn Emit, x: &Tensor, bins: i64, range: Option<[f64; 2]>) -> Result<Tensor> {
    if bins < 1 {
        fail!(VALUE, "the number of bins must be positive, not {bins}");
    }
    let [mut low, mut high] = match range {
        Some(range) => range,
        None if x.numel() == 0 => [0.0, 1.0],
        None => {
            let values = e.read(x)?;
            let values = || values.iter().map(|value| value.to_f64());
            if values().any(f64::is_nan) {
                fail!(VALUE, "the elements have no range: there is NaN among them");
            }
            [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
        }
    };
    if !low.is_finite() || !high.is_finite() {
        fail!(VALUE, "the bounds {low} and {high} are not finite");
    }
    if low > high {
        fail!(VALUE, "the bounds descend from {low} to {high}");
    }
    if low == high {
        (low, high) = (low - 0.5, high + 0.5);
    }
    infer::size_bytes(&[bins as usize + 1], x.dtype())?;
    let (low, high) = (Scalar::Float(low), Scalar::Float(high));
    e.call(&LINSPACE, args![low, high, bins + 1, x.dtype(), x.device()])
}

/// Edges that were given as a tensor.
fn given<'a>(x: &Tensor, edges: &'a Tensor) -> Result<&'a Tensor> {
    if edges.ndim() != 1 || edges.numel() == 0 {
        fail!(SHAPE, "edges of bins have one dimension, not shape {:?}", edges.shape().as_slice());
    }
    infer::same_dtype(&[("input", x), ("bins", edges)])?;
    Ok(edges)
}

fn checked(x: &Tensor, weight: Option<&Tensor>, expected: &[usize]) -> Result<()> {
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        fail!(DTYPE, "`input` must be f32 or f64, not {}", x.dtype());
    }
    if let Some(weight) = weight {
        infer::same_dtype(&[("input", x), ("weight", weight)])?;
        if weight.shape()[..] != *expected {
            fail!(SHAPE, "`weight` has shape {:?}, {expected:?} is expected", weight.shape().as_slice());
        }
    }
    Ok(())
}

/// The sums of weights over the bins of points, which are given by coordinate; and the density, if asked for.
fn counted(
    e: &mut dyn Emit,
    meta: &Meta,
    (n, points): (usize, &[Tensor]),
    edges: &[Tensor],
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Tensor> {
    let dtype = meta.dtype;
    let mut place: Option<(Tensor, Tensor)> = None;
    let mut shape = Vec::new();
    for (x, edges) in points.iter().zip(edges) {
        let bins = edges.numel() as i64 - 1;
        shape.push(bins as usize);
        let (low, high) = (e.call(&SELECT, args![edges, 0, 0])?, e.call(&SELECT, args![edges, 0, bins])?);
        let (above, below) = (e.call(&GE, args![x, &low])?, e.call(&LE, args![x, &high])?);
        let known = e.call(&LOGICAL_AND, args![&above, &below])?;
        let found = e.call(&BUCKETIZE, args![x, edges, false, true])?;
        let found = e.call(&CLAMP_MAX, args![&found, Scalar::Int(bins)])?;
        let bin = e.sub(&found, Scalar::Int(1))?;
        place = Some(match place {
            None => (known, bin),
            Some((before, flat)) => {
                let flat = e.mul(&flat, Scalar::Int(bins))?;
                (e.call(&LOGICAL_AND, args![&before, &known])?, e.add(&flat, &bin)?)
            }
        });
    }
    // Points without coordinates have one bin of no extent, in which PyTorch finds none.
    let Some((known, flat)) = place else { return e.full(&[], Scalar::Int(0), meta) };
    infer::size_bytes(&shape, dtype)?;
    let count: usize = shape.iter().product();
    // What lies outside goes behind the last bin.
    let bin = e.call(&WHERE, args![&known, &flat, Scalar::Int(count as i64)])?;
    let bin = e.call(&RESHAPE, args![&bin, [n].as_slice()])?;
    let weights = match weight {
        Some(weight) => e.call(&RESHAPE, args![weight, [n].as_slice()])?,
        None => e.full(&[n], Scalar::Int(1), meta)?,
    };
    let zeros = e.full(&[count + 1], Scalar::Int(0), meta)?;
    let sums = e.call(&INDEX_ADD, args![&zeros, 0, &bin, &weights])?;
    let sums = e.call(&SLICE, args![&sums, 0, 0, count, 1])?;
    let mut hist = e.call(&RESHAPE, args![&sums, shape.as_slice()])?;
    if density {
        let total = e.call(&SUM, args![&sums])?;
        hist = e.div(&hist, &total)?;
        for (d, edges) in edges.iter().enumerate() {
            let mut own = vec![1usize; shape.len()];
            own[d] = shape[d];
            let width = e.call(&DIFF, args![edges])?;
            let width = e.call(&RESHAPE, args![&width, own.as_slice()])?;
            hist = e.div(&hist, &width)?;
        }
    }
    Ok(hist)
}

/// Pairs of bounds, one for each coordinate.
fn bounds(a: &Args, at: usize, count: usize) -> Result<Vec<Option<[f64; 2]>>> {
    match a.attr(at) {
        Attr::Floats(list) if list.len() == 2 * count => {
            Ok(list.chunks(2).map(|pair| Some([pair[0], pair[1]])).collect())
        }
        Attr::Floats(list) => fail!(VALUE, "`range` has {} numbers; {} are expected", list.len(), 2 * count),
        _ => Ok(vec![None; count]),
    }
}

signature!(histogram(
    input: Tensor, bins: Operand = 100, range: Floats = None, weight: Tensor = None, density: Bool = false,
));

pub static HISTOGRAM: Op = Op {
    name: "histogram",
    params: histogram::PARAMS,
    summary: "How many elements lie in each of the bins between edges, and the edges.",
    details: "`bins` is a number of equal bins between the bounds `range` (else the smallest and largest element), or a tensor \
of edges. With `weight` weights are summed; with `density` the histogram's integral is 1. Reads the elements where \
bounds are not given, which waits.",
    examples: &[
        ex("histogram(tensor([0.0, 1.0, 2.0]), 2).hist", "tensor([1., 2.])"),
        ex("histogram(tensor([0.0, 1.0, 2.0]), 2).bin_edges", "tensor([0., 1., 2.])"),
        ex("histogram(ones([2]), 0)", "E0206"),
        ex("histogram(tensor([NAN, 1.0]), 2)", "E0206"),
        ex("histogram(ones([2]), 2, #{weight: ones([3])})", "E0201"),
        ex("histogram(tensor([1]), 2)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, weight) = (a.input(), a.opt_tensor(histogram::weight));
        checked(x, weight, &x.shape())?;
        let edges = match a.get(histogram::bins) {
            Arg::Tensor(bins) => {
                if !a.is_none(histogram::range) {
                    fail!(VALUE, "edges have their bounds; `range` goes with a number of bins");
                }
                given(x, bins)?.clone()
            }
            _ => match a.scalar(histogram::bins) {
                Some(Scalar::Int(bins)) => edges(e, x, bins, bounds(a, 2, 1)?[0])?,
                _ => fail!(ARGUMENT_TYPE, "`bins` must be an integer or a tensor of edges"),
            },
        };
        let points = [e.call(&RESHAPE, args![x, [x.numel()].as_slice()])?];
        let hist = counted(
            e,
            &Meta::of(x),
            (x.numel(), &points),
            std::slice::from_ref(&edges),
            weight,
            a.flag(histogram::density),
        )?;
        Ok(vec![hist, edges])
    }),
    grad: Grad::Stop("counts have no gradient"),
    results: Returns::Named(&["hist", "bin_edges"]),
    ..Op::BASE
};

signature!(histogramdd(
    input: Tensor, bins: IntsOrTensors, range: Floats = None, weight: Tensor = None, density: Bool = false,
));

pub static HISTOGRAMDD: Op = Op {
    name: "histogramdd",
    params: histogramdd::PARAMS,
    summary: "How many points lie in each of the boxes between edges of every coordinate, and the edges.",
    details: "`input` is [.., D], points of D coordinates; `bins` one number, D numbers, or D tensors of edges; `range` 2 D \
bounds.",
    examples: &[
        ex(
            "histogramdd(tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), [2, 2]).hist",
            "tensor([[0., 1.],\n        [1., 1.]])",
        ),
        ex("histogramdd(zeros([3, 0]), 5).hist", "tensor(0.)"),
        ex("histogramdd(ones([2, 2]), [2, 2, 2])", "E0206"),
        ex("histogramdd(ones([2]), [2, 2])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, weight) = (a.input(), a.opt_tensor(histogramdd::weight));
        let shape = x.shape();
        let Some((&d, lead)) = shape.split_last().filter(|(_, lead)| !lead.is_empty()) else {
            fail!(SHAPE, "`input` must be [.., D] with 2 dimensions at least; it has shape {:?}", shape.as_slice())
        };
        checked(x, weight, lead)?;
        let n: usize = lead.iter().product();
        let flat = e.call(&RESHAPE, args![x, [n, d].as_slice()])?;
        let mut points = Vec::new();
        for at in 0..d {
            points.push(e.call(&SELECT, args![&flat, 1, at])?);
        }
        let given_edges = a.tensor_list(histogramdd::bins);
        let mut all = Vec::new();
        if given_edges.is_empty() {
            let mut bins = a.ints(histogramdd::bins).unwrap_or_default();
            if bins.len() == 1 {
                bins = std::iter::repeat_n(bins[0], d).collect();
            }
            if bins.len() != d {
                fail!(VALUE, "`bins` has {} numbers for {d} coordinates", bins.len());
            }
            for ((x, &bins), range) in points.iter().zip(&bins).zip(bounds(a, 2, d)?) {
                all.push(edges(e, x, bins, range)?);
            }
        } else {
            if given_edges.len() != d {
                fail!(VALUE, "`bins` has {} tensors for {d} coordinates", given_edges.len());
            }
            for bins in given_edges {
                all.push(given(x, bins)?.clone());
            }
        }
        let hist = counted(e, &Meta::of(x), (n, &points), &all, weight, a.flag(histogramdd::density))?;
        Ok(std::iter::once(hist).chain(all).collect())
    }),
    grad: Grad::Stop("counts have no gradient"),
    results: Returns::NamedRest("hist", "bin_edges"),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&HISTOGRAM, &HISTOGRAMDD];
