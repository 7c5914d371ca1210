//! Sampling images at given places: `affine_grid` and `grid_sample`. The places become positions of neighbors and
//! weights by element-wise maps, the neighbors are gathered; so gradients of any order come along.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::indexing::gather::GATHER;
use crate::op::rows::linalg::matmul::product;
use crate::op::rows::nn::activation::HARDTANH;
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::arith::FMOD;
use crate::op::rows::pointwise::power::MINIMUM;
use crate::op::rows::pointwise::unary::{FLOOR, ROUND};
use crate::op::rows::shape::rearrange::transposed;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SELECT, STRAIGHT};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(affine_grid(theta: Tensor, size: Ints, align_corners: Bool = None));

pub static AFFINE_GRID: Op = Op {
    name: "affine_grid",
    params: affine_grid::PARAMS,
    summary: "The places in an image that affine maps send the pixels of another image to, for `grid_sample`.",
    details: "`theta` is [N, 2, 3] for `size` [N, C, H, W], or [N, 3, 4] for [N, C, D, H, W]; the result [N, (D,) H, W, 2 or 3]. \
Places run from -1 to 1: between the centers of the corner pixels with `align_corners`, else between their outer edges.",
    examples: &[
        ex(
            "affine_grid(tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), [1, 1, 1, 2], true)",
            "tensor([[[[-1.,  0.],\n          [ 1.,  0.]]]])",
        ),
        ex("affine_grid(ones([1, 2, 2]), [1, 1, 2, 2])", "E0201"),
        ex("affine_grid(ones([1, 2, 3]), [1, 1, 0, 2])", "E0206"),
        ex("affine_grid(tensor([[[1, 0, 0], [0, 1, 0]]]), [1, 1, 2, 2])", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (theta, size) = (a.tensor(affine_grid::theta), a.ints(affine_grid::size).unwrap_or_default());
        float_only(theta, "theta")?;
        if let Some(bad) = size.iter().find(|&&n| n < 1) {
            fail!(VALUE, "sizes must be positive; one is {bad}");
        }
        let n = match size.len() {
            4 | 5 => size.len() - 2,
            other => fail!(VALUE, "`size` must name 4 or 5 dimensions, not {other}"),
        };
        let expected = [size[0] as usize, n, n + 1];
        if theta.shape()[..] != expected {
            fail!(SHAPE, "`theta` must have shape {expected:?} for this `size`; it has {:?}", theta.shape().as_slice());
        }
        let sizes: Shape = size[2..].iter().map(|&n| n as usize).collect();
        let base = places(e, theta, &sizes, a.flag(affine_grid::align_corners))?;
        let theta = transposed(e, theta)?;
        let grid = product(e, &base, &theta)?;
        let mut shape = Shape::from_slice(&[size[0] as usize]);
        shape.extend_from_slice(&sizes);
        shape.push(n);
        e.apply(&RESHAPE, args![&grid, shape.as_slice()])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// The pixels' own places with a one behind: `[pixels, n + 1]`, the last dimension first, as `theta` reads them.
fn places(e: &mut dyn Emit, theta: &Tensor, sizes: &[usize], align: bool) -> Result<Tensor> {
    let place = |i: usize, size: usize| match (size, align) {
        (1, _) => 0.0,
        (_, true) => 2.0 * i as f64 / (size - 1) as f64 - 1.0,
        (_, false) => (2 * i + 1) as f64 / size as f64 - 1.0,
    };
    infer::size_bytes(sizes, DType::F64)?;
    let pixels: usize = sizes.iter().product();
    e.host_room(pixels.saturating_mul(8 * (sizes.len() + 1)))?;
    let mut bytes = Vec::with_capacity(pixels * (sizes.len() + 1) * 8);
    for pixel in 0..pixels {
        let mut rest = pixel;
        for &size in sizes.iter().rev() {
            bytes.extend(place(rest % size, size).to_ne_bytes());
            rest /= size;
        }
        bytes.extend(1f64.to_ne_bytes());
    }
    let base = e.upload(&bytes, &[pixels, sizes.len() + 1], DType::F64, theta.device())?;
    e.cast(&base, theta.dtype())
}

/// What becomes of places outside of the image.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Copy, PartialEq)]
enum Between {
    Linear,
    Nearest,
    Cubic,
}

/// How to sample, and sizes of the image.
struct Sampler {
    outside: Outside,
    align: bool,
    sizes: Shape,
}

impl Sampler {
    /// From -1..1 to pixels of dimension `d`.
    fn pixels<'c>(&self, place: Expr<'c>, d: usize) -> Expr<'c> {
        let (size, from) = (self.sizes[d] as f64, place + 1.0);
        if self.align { from * (0.5 * (size - 1.0)) } else { from * (0.5 * size) - 0.5 }
    }

    /// Positions held or mirrored into the image.
    fn inside<'c>(&self, x: Expr<'c>, d: usize) -> Expr<'c> {
        let last = self.sizes[d] as f64 - 1.0;
        let x = match self.outside {
            Outside::Zeros => return x,
            Outside::Border => x,
            Outside::Reflection if self.align && last == 0.0 => x * 0.0,
            Outside::Reflection if self.align => mirrored(x, 2.0 * last),
            Outside::Reflection => mirrored(x + 0.5, 2.0 * (last + 1.0)) - 0.5,
        };
        x.call(&HARDTANH, args![0.0, last])
    }

    /// Is a whole position in the image? And the position, harmless where it is not, as i64.
    fn index<'c>(&self, x: Expr<'c>, d: usize) -> (Expr<'c>, Expr<'c>) {
        let last = self.sizes[d] as f64 - 1.0;
        let known = x.greater_equal(0.0).and(x.less_equal(last));
        (known, known.choose(x, 0.0).cast(DType::I64))
    }

    /// Elements of the image (`[N, C, pixels]`) at whole positions, one of `[N, 1, out]` for each dimension; 0 outside.
    fn fetch<'c>(&self, image: Expr<'c>, at: &[Expr<'c>]) -> Expr<'c> {
        let (mut known, mut flat) = self.index(at[0], 0);
        for (d, &x) in at.iter().enumerate().skip(1) {
            let (also, index) = self.index(x, d);
            (known, flat) = (known.and(also), flat * Scalar::Int(self.sizes[d] as i64) + index);
        }
        let values = image.then_with(flat, |e, image, flat| {
            let shape = [image.shape()[0], image.shape()[1], flat.shape()[2]];
            let flat = e.call(&EXPAND, args![flat, shape.as_slice()])?;
            e.call(&GATHER, args![image, 2, &flat])
        });
        values.zero_unless(known)
    }

    fn linear<'c>(&self, image: Expr<'c>, at: &[Expr<'c>]) -> Expr<'c> {
        let ends = |&x: &Expr<'c>| {
            let low = x.of(&FLOOR);
            let up = x - low;
            [(low, 1.0 - up), (low + 1.0, up)]
        };
        let axes: Vec<_> = at.iter().map(ends).collect();
        let n = axes.len();
        let term = |corner: usize| {
            // The last dimension's ends alternate fastest.
            let end = |d: usize| axes[d][corner >> (n - 1 - d) & 1];
            let positions: Vec<Expr<'c>> = (0..n).map(|d| end(d).0).collect();
            let weight = (0..n - 1).rev().fold(end(n - 1).1, |weight, d| weight * end(d).1);
            self.fetch(image, &positions) * weight
        };
        (1..1usize << n).fold(term(0), |sum, corner| sum + term(corner))
    }

    fn nearest<'c>(&self, image: Expr<'c>, at: &[Expr<'c>]) -> Expr<'c> {
        let whole: Vec<Expr<'c>> = at.iter().map(|x| x.of(&ROUND)).collect();
        // A gradient of zeros for the places, as PyTorch's.
        let (known, _) = self.index(whole[0], 0);
        self.fetch(image, &whole) + known.choose(whole[0] * 0.0, 0.0)
    }

    fn cubic<'c>(&self, image: Expr<'c>, at: &[Expr<'c>]) -> Expr<'c> {
        let taps = |(d, &x): (usize, &Expr<'c>)| {
            let low = x.of(&FLOOR);
            let tap = |(k, weight): (usize, Expr<'c>)| (self.inside(low + (k as f64 - 1.0), d).of(&FLOOR), weight);
            cubic_weights(x - low).into_iter().enumerate().map(tap).collect()
        };
        let axes: Vec<Vec<_>> = at.iter().enumerate().map(taps).collect();
        self.taps(image, &axes, &mut Vec::new())
    }

    /// The weighted sum over the taps of the dimensions from `chosen` on, the last dimension innermost.
    fn taps<'c>(&self, image: Expr<'c>, axes: &[Vec<(Expr<'c>, Expr<'c>)>], chosen: &mut Vec<Expr<'c>>) -> Expr<'c> {
        let Some(axis) = axes.get(chosen.len()) else { return self.fetch(image, chosen) };
        let mut term = |&(position, weight): &(Expr<'c>, Expr<'c>)| {
            chosen.push(position);
            let value = self.taps(image, axes, chosen);
            chosen.pop();
            value * weight
        };
        let first = term(&axis[0]);
        axis[1..].iter().fold(first, |sum, tap| sum + term(tap))
    }
}

/// Mirrors positions at 0 and half of `twice`, as often as it takes.
fn mirrored(x: Expr<'_>, twice: f64) -> Expr<'_> {
    let extra = x.abs().with(&FMOD, twice);
    extra.with(&MINIMUM, twice - extra)
}

/// Weights of the four neighbors at distance `t` from the second (Keys' kernel with a = -3/4).
fn cubic_weights(t: Expr<'_>) -> [Expr<'_>; 4] {
    const A: f64 = -0.75;
    [far(t + 1.0, A), near(t, A), near(1.0 - t, A), far(2.0 - t, A)]
}

/// `a x³ - 5 a x² + 8 a x - 4 a`.
fn far(x: Expr<'_>, a: f64) -> Expr<'_> {
    ((x * a - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
}

/// `(a + 2) x³ - (a + 3) x² + 1`.
fn near(x: Expr<'_>, a: f64) -> Expr<'_> {
    (x * (a + 2.0) - (a + 3.0)) * x * x + 1.0
}

fn sampled(e: &mut dyn Emit, a: &Args, between: Between, outside: Outside, align: bool) -> Result<Vec<Tensor>> {
    let (x, grid) = (a.input(), a.tensor(grid_sample::grid));
    float_only(x, "input")?;
    infer::same_dtype(&[("input", x), ("grid", grid)])?;
    let (shape, places) = (x.shape(), grid.shape());
    if !(4..=5).contains(&shape.len()) || places.len() != shape.len() {
        fail!(
            SHAPE,
            "`input` and `grid` must both have 4 or 5 dimensions; they have shapes {:?} and {:?}",
            shape.as_slice(),
            places.as_slice()
        );
    }
    let n = shape.len() - 2;
    if places[0] != shape[0] {
        fail!(SHAPE, "`input` has {} samples, `grid` {}", shape[0], places[0]);
    }
    if places[n + 1] != n {
        fail!(SHAPE, "the last dimension of `grid` must have size {n}, not {}", places[n + 1]);
    }
    if shape[2..].contains(&0) {
        fail!(SHAPE, "an image of sizes {:?} is empty", &shape[2..]);
    }
    let out: Shape = Shape::from_slice(&shape[..2]).into_iter().chain(places[1..=n].iter().copied()).collect();
    let count: usize = places[1..=n].iter().product();
    // As in PyTorch: cubic weights are worked out in f32 at least, the others in the operands' own dtype.
    let narrow = x.dtype();
    let wide = match (between, narrow) {
        (Between::Cubic, DType::F16 | DType::BF16) => DType::F32,
        _ => narrow,
    };
    let (x, grid) = (&e.cast(x, wide)?, &e.cast(grid, wide)?);
    let image = e.call(&RESHAPE, args![x, [shape[0], shape[1], shape[2..].iter().product()].as_slice()])?;
    // The gradients of both go by the places, and change with neither.
    let (image, grid) = match between {
        Between::Nearest => (e.call(&STRAIGHT, args![&image, grid])?, e.call(&STRAIGHT, args![grid, ()])?),
        _ => (image, grid.clone()),
    };
    let grid = e.call(&RESHAPE, args![&grid, [shape[0], 1, count, n].as_slice()])?;
    let sampler = Sampler { outside, align, sizes: Shape::from_slice(&shape[2..]) };
    let y = compute(e, |c| {
        let (image, grid) = (c.of(&image), c.of(&grid));
        let position = |d: usize| {
            // Places name the last dimension first.
            let position = sampler.pixels(grid.call(&SELECT, args![3, n - 1 - d]), d);
            if between == Between::Cubic { position } else { sampler.inside(position, d) }
        };
        let at: Vec<Expr<'_>> = (0..n).map(position).collect();
        let y = match between {
            Between::Linear => sampler.linear(image, &at),
            Between::Nearest => sampler.nearest(image, &at),
            Between::Cubic => sampler.cubic(image, &at),
        };
        y.call(&RESHAPE, args![out.as_slice()])
    })?;
    Ok(vec![e.cast(&y, narrow)?])
}

const GRID_DETAILS: &str = "`input` is [N, C, H, W] and `grid` [N, H', W', 2], places x, y between -1 and 1; the result [N, C, H', W']. \
Or [N, C, D, H, W] and [N, D', H', W', 3]. Outside of the image there are zeros, its border, or its reflection.";

signature!(grid_sample(
    input: Tensor, grid: Tensor, mode: Str(&["bilinear", "nearest", "bicubic"]) = "bilinear",
    padding_mode: Str(&["zeros", "border", "reflection"]) = "zeros", align_corners: Bool = None,
));

pub static GRID_SAMPLE: Op = Op {
    name: "grid_sample",
    params: grid_sample::PARAMS,
    summary: "Reads an image at given places, between its pixels.",
    details: GRID_DETAILS,
    examples: &[
        ex("grid_sample(tensor([[[[1.0, 3.0]]]]), tensor([[[[0.0, 0.0]]]]))", "tensor([[[[2.]]]])"),
        ex("grid_sample(ones([1, 1, 2, 2]), ones([2, 1, 1, 2]))", "E0201"),
        ex("grid_sample(ones([1, 1, 2, 2]), ones([1, 1, 1, 2]), \"cubic\")", "E0206"),
        ex("grid_sample(ones([1, 1, 2, 2]), ones([1, 1, 1, 2]).double())", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let between = match a.text(grid_sample::mode) {
            "nearest" => Between::Nearest,
            "bicubic" => Between::Cubic,
            _ => Between::Linear,
        };
        let outside = match a.text(grid_sample::padding_mode) {
            "border" => Outside::Border,
            "reflection" => Outside::Reflection,
            _ => Outside::Zeros,
        };
        sampled(e, a, between, outside, a.flag(grid_sample::align_corners))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// With numbers for the modes, as `torch.grid_sampler` takes them.
fn by_number(e: &mut dyn Emit, a: &Args, dims: Option<usize>) -> Result<Vec<Tensor>> {
    let between = match a.int(numbered::interpolation_mode) {
        0 => Between::Linear,
        1 => Between::Nearest,
        2 => Between::Cubic,
        other => fail!(VALUE, "`interpolation_mode` is 0, 1 or 2, not {other}"),
    };
    let outside = match a.int(numbered::padding_mode) {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        other => fail!(VALUE, "`padding_mode` is 0, 1 or 2, not {other}"),
    };
    if let Some(dims) = dims.filter(|&dims| a.input().ndim() != dims) {
        fail!(SHAPE, "`input` must have {dims} dimensions; it has shape {:?}", a.input().shape().as_slice());
    }
    sampled(e, a, between, outside, a.flag(numbered::align_corners))
}

signature!(numbered(input: Tensor, grid: Tensor, interpolation_mode: Int, padding_mode: Int, align_corners: Bool));

macro_rules! numbered {
    ($($NAME:ident $name:literal $dims:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: numbered::PARAMS,
            summary: "`grid_sample` with its modes as numbers, in the order of their names there.",
            details: GRID_DETAILS,
            examples: &[
                ex(concat!($name, "(ones([1, 1, 2, 2]), ones([1, 1, 1, 2]), 3, 0, false)"), "E0206"),
                ex(concat!($name, "(ones([1, 2]), ones([1, 2]), 0, 0, false)"), "E0201"),
            ],
            lower: Lower::Compose(|e, a| by_number(e, a, $dims)),
            grad: Grad::Composed,
            call: CallForm::Function,
            ..Op::BASE
        };)*
    };
}

numbered! {
    GRID_SAMPLER "grid_sampler" None;
    GRID_SAMPLER_2D "grid_sampler_2d" Some(4);
    GRID_SAMPLER_3D "grid_sampler_3d" Some(5);
}

pub static ROWS: &[&Op] = &[&AFFINE_GRID, &GRID_SAMPLE, &GRID_SAMPLER, &GRID_SAMPLER_2D, &GRID_SAMPLER_3D];
