//! Sampling images at given places: `affine_grid` and `grid_sample`. A kernel gives the results and another the gradients;
//! gradients of gradients are those of the composition in `gradient.rs`.

mod gradient;

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::resample::{self, grid};
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::compute;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, Source, ex};
use crate::op::rows::linalg::matmul::product;
use crate::op::rows::nn::grid_sample::gradient::Sampler;
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::transposed;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::tensor::{Meta, Tensor};
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
        let base = base_places(e, theta, &sizes, a.flag(affine_grid::align_corners))?;
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
fn base_places(e: &mut dyn Emit, theta: &Tensor, sizes: &[usize], align: bool) -> Result<Tensor> {
    infer::size_bytes(sizes, DType::F64)?;
    let pixels: usize = sizes.iter().product();
    let whole: Shape = sizes.iter().copied().chain([1]).collect();
    let mut columns = Vec::with_capacity(sizes.len() + 1);
    for (d, &size) in sizes.iter().enumerate().rev() {
        let at = e.source(Source::Position, &[size], DType::I64, theta.device())?;
        let at = e.cast(&at, DType::F64)?;
        let (first, steps) = match (size, align) {
            (1, _) => (0, 1),
            (_, true) => (0, size - 1),
            (_, false) => (1, size),
        };
        let edges = if size == 1 { 0.0 } else { 1.0 };
        let moved = compute(e, |c| (c.of(&at) * 2.0 + first) / steps as f64 - edges)?;
        let place = e.cast(&moved, theta.dtype())?;
        let along: Shape = (0..whole.len()).map(|at| if at == d { size } else { 1 }).collect();
        let place = e.call(&RESHAPE, args![&place, along.as_slice()])?;
        columns.push(e.call(&EXPAND, args![&place, whole.as_slice()])?);
    }
    columns.push(e.full(&whole, Scalar::Int(1), &Meta::of(theta))?);
    let base = e.call(&CAT, args![columns, sizes.len() as i64])?;
    e.call(&RESHAPE, args![&base, [pixels, sizes.len() + 1].as_slice()])
}

signature!(places(input: Tensor, grid: Tensor, mode: Int, padding_mode: Int, align_corners: Bool));

/// Arguments: image, places, mode and padding as the kernel numbers them, align_corners.
static SAMPLE: Op = Op {
    name: "grid_sample",
    params: places::PARAMS,
    summary: "Reads images at places.",
    lower: Lower::Kernel(|_, a| {
        let (x, grid) = (a.input(), a.tensor(places::grid));
        let (shape, at) = (x.shape(), grid.shape());
        let out: Shape = shape[..2].iter().chain(&at[1..at.len() - 1]).copied().collect();
        let call = KernelCall::new("grid_sample", &resample::GRID_SAMPLE).input(x).input(grid);
        Ok(with_modes(call, a).output(&out, x.dtype()))
    }),
    saves: &[Save::For(places::input, places::grid), Save::In(places::grid)],
    grad: Grad::Rule(|e, v| {
        let wanted = [places::input, places::grid].map(|at| v.needs(at));
        // Places of the nearest pixels change nothing.
        let is_nearest = v.args.int(places::mode) == grid::NEAREST;
        let made = [wanted[0], wanted[1] && !is_nearest];
        let mut grads = match made {
            [false, false] => [None, None],
            _ if e.grad_enabled() => composed(e, v, made)?,
            _ => gradients(e, v, made)?,
        };
        if wanted[1] && is_nearest {
            grads[1] = Some(e.zeros_like(v.meta(places::grid))?);
        }
        Ok(grads.to_vec())
    }),
    piecewise_linear: true,
    call: CallForm::Internal,
    ..Op::BASE
};

fn with_modes(call: KernelCall, a: &Args) -> KernelCall {
    call.int(a.int(places::mode)).int(a.int(places::padding_mode)).flag(a.flag(places::align_corners))
}

/// By the kernel: the gradients of the image and of the places that are to be made, at least one.
fn gradients(e: &mut dyn Emit, v: &Backward<'_>, made: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
    let call =
        KernelCall::new("grid_sample_grad", &resample::GRID_SAMPLE_GRAD).input(v.g()).input(v.saved(places::grid));
    let call = if made[1] { call.input(v.saved(places::input)) } else { call };
    let mut call = with_modes(call, v.args).flag(made[0]).flag(made[1]);
    for (at, made) in [places::input, places::grid].into_iter().zip(made) {
        let meta = v.meta(at);
        call = if made { call.output(&meta.shape, meta.dtype) } else { call };
    }
    let mut results = e.kernel(call)?.into_iter();
    Ok(made.map(|made| if made { results.next() } else { None }))
}

/// The same by rows, which have gradients.
fn composed(e: &mut dyn Emit, v: &Backward<'_>, made: [bool; 2]) -> Result<[Option<Tensor>; 2]> {
    let sampler = Sampler {
        between: v.args.int(places::mode),
        outside: v.args.int(places::padding_mode),
        align: v.args.flag(places::align_corners),
        image: v.meta(places::input).shape.clone(),
    };
    let x = made[1].then(|| v.saved(places::input));
    sampler.gradients(e, [v.g(), v.saved(places::grid)], x, made[0])
}

fn sampled(e: &mut dyn Emit, a: &Args, between: i64, outside: i64, align: bool) -> Result<Vec<Tensor>> {
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
    e.apply(&SAMPLE, args![x, grid, between, outside, align])
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
            "nearest" => grid::NEAREST,
            "bicubic" => grid::CUBIC,
            _ => grid::LINEAR,
        };
        let outside = match a.text(grid_sample::padding_mode) {
            "border" => grid::BORDER,
            "reflection" => grid::REFLECTION,
            _ => grid::ZEROS,
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
        mode @ (grid::LINEAR | grid::NEAREST | grid::CUBIC) => mode,
        other => fail!(VALUE, "`interpolation_mode` is 0, 1 or 2, not {other}"),
    };
    let outside = match a.int(numbered::padding_mode) {
        mode @ (grid::ZEROS | grid::BORDER | grid::REFLECTION) => mode,
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

pub static ROWS: &[&Op] = &[&AFFINE_GRID, &SAMPLE, &GRID_SAMPLE, &GRID_SAMPLER, &GRID_SAMPLER_2D, &GRID_SAMPLER_3D];
