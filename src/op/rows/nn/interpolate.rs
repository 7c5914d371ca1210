//! Images at other sizes: interpolation, and sizes traded between channels and space.

use crate::args;
use crate::base::attr::{Attr, Ints, Text};
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::resample;
use crate::kernel::resample::antialias::Side;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::nn::pool::{ADAPTIVE_AVG_POOL1D, ADAPTIVE_AVG_POOL2D, ADAPTIVE_AVG_POOL3D};
use crate::op::rows::nn::windows::{spatial, tuple};
use crate::op::rows::pointwise::blend::CLAMP;
use crate::op::rows::pointwise::unary::FLOOR;
use crate::op::rows::shape::rearrange::PERMUTE;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::tensor::Tensor;
use crate::signature;

// Of both inner rows: sizes of the result, mode, align_corners, factors.
signature!(inner(input: Tensor, size: Ints, mode: Text, align_corners: Bool, scales: Floats = None));

fn queue(call: KernelCall, a: &Args) -> KernelCall {
    let (x, size) = (a.input(), a.ints(inner::size).unwrap_or_default());
    let mut shape = x.shape();
    shape.truncate(2);
    shape.extend(size.iter().map(|&size| size as usize));
    let call = call
        .input(x)
        .int(size.len() as i64)
        .attr(a.attr(inner::mode).clone())
        .flag(a.flag(inner::align_corners))
        .attr(a.attr(inner::scales).clone());
    call.output(&shape, x.dtype())
}

fn other(e: &mut dyn Emit, v: &Backward<'_>, op: &'static Op) -> Result<Vec<Option<Tensor>>> {
    let size: Ints = v.meta(inner::input).shape[2..].iter().map(|&size| size as i64).collect();
    let (mode, align, scales) =
        (v.args.attr(inner::mode).clone(), v.args.flag(inner::align_corners), v.args.attr(inner::scales).clone());
    Ok(vec![Some(e.call(op, args![v.g(), size, mode, align, scales])?)])
}

static RESAMPLE: Op = Op {
    name: "interpolate",
    params: inner::PARAMS,
    summary: "Resamples a batch.",
    lower: Lower::Kernel(|_, a| Ok(queue(KernelCall::new("interpolate", &resample::INTERPOLATE), a))),
    grad: Grad::Rule(|e, v| other(e, v, &RESAMPLE_SPREAD)),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

static RESAMPLE_SPREAD: Op = Op {
    name: "interpolate",
    params: inner::PARAMS,
    summary: "The transpose of resampling.",
    lower: Lower::Kernel(|_, a| Ok(queue(KernelCall::new("interpolate_grad", &resample::INTERPOLATE_GRAD), a))),
    grad: Grad::Rule(|e, v| other(e, v, &RESAMPLE)),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// Sizes of the result, and the factors that the kernel goes by when the caller gave them.
fn target(a: &Args, from: &Ints) -> Result<(Ints, Attr)> {
    let n = from.len();
    // A list, also one of a single number, has one for each dimension.
    let factors: Option<Vec<f64>> = match a.get(interpolate::scale_factor) {
        Arg::Attr(Attr::Float(factor)) => Some(vec![*factor; n]),
        Arg::Attr(Attr::Floats(list)) if list.len() == n => Some(list.to_vec()),
        Arg::Attr(Attr::Floats(list)) => {
            fail!(VALUE, "`scale_factor` has {} numbers; {n} are expected, or a number for all", list.len())
        }
        Arg::Tensors(_) => fail!(ARGUMENT_TYPE, "`scale_factor` is a number or an array of numbers"),
        _ => None,
    };
    if let Attr::Ints(list) = a.attr(interpolate::size)
        && list.len() != n
    {
        fail!(VALUE, "`size` has {} numbers; {n} are expected, or an integer for all", list.len());
    }
    match (a.is_none(interpolate::size), factors) {
        (false, None) => {
            if a.flag(interpolate::recompute_scale_factor) {
                fail!(VALUE, "`recompute_scale_factor` applies to `scale_factor`, not to `size`");
            }
            Ok((tuple(a, interpolate::size, n, "size", 1)?, Attr::None))
        }
        (true, Some(factors)) => {
            let size: Ints =
                from.iter().zip(&factors).map(|(&size, factor)| (size as f64 * factor).floor() as i64).collect();
            if let Some(bad) = size.iter().find(|&&size| !(1..=i32::MAX as i64).contains(&size)) {
                fail!(VALUE, "a factor gives a size of {bad}");
            }
            let scales =
                if a.flag(interpolate::recompute_scale_factor) { Attr::None } else { Attr::Floats(factors.into()) };
            Ok((size, scales))
        }
        (true, None) => fail!(MISSING_ARGUMENT, "`size` or `scale_factor` is expected"),
        (false, Some(_)) => fail!(VALUE, "`size` and `scale_factor` exclude each other"),
    }
}

fn interpolate(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let x = a.input();
    let (shape, mode) = (x.shape(), a.text(interpolate::mode));
    if !(3..=5).contains(&shape.len()) || shape[1..].contains(&0) {
        fail!(
            SHAPE,
            "`input` must be [N, C, d..] with one to three dims d.., not empty; it has shape {:?}",
            shape.as_slice()
        );
    }
    let n = shape.len() - 2;
    let fits = match mode {
        "linear" => n == 1,
        "bilinear" | "bicubic" => n == 2,
        "trilinear" => n == 3,
        _ => true,
    };
    if !fits {
        fail!(SHAPE, "\"{mode}\" does not go with {} dimensions, shape {:?}", shape.len(), shape.as_slice());
    }
    let smooth = matches!(mode, "linear" | "bilinear" | "bicubic" | "trilinear");
    if !smooth && !a.is_none(interpolate::align_corners) {
        fail!(VALUE, "`align_corners` applies to the linear and cubic modes only");
    }
    if a.flag(interpolate::antialias) && !matches!(mode, "bilinear" | "bicubic") {
        fail!(VALUE, "`antialias` applies to the modes \"bilinear\" and \"bicubic\" only");
    }
    let (size, scales) = target(a, &spatial(x, n))?;
    if mode == "area" {
        let op = [&ADAPTIVE_AVG_POOL1D, &ADAPTIVE_AVG_POOL2D, &ADAPTIVE_AVG_POOL3D][n - 1];
        return e.call(op, args![x, size]);
    }
    let dtype = x.dtype();
    if !dtype.is_float() && dtype != DType::U8 {
        fail!(DTYPE, "a floating-point tensor is expected, not {dtype}");
    }
    if a.flag(interpolate::antialias) {
        return antialiased(e, x, &size, mode, a.flag(interpolate::align_corners), &scales);
    }
    let x = if dtype.is_float() { x.clone() } else { e.cast(x, DType::F32)? };
    let y = match smooth && !dtype.is_float() {
        true => dim_by_dim(e, x, &size, a.attr(interpolate::mode), a.flag(interpolate::align_corners), &scales)?,
        false => e.call(
            &RESAMPLE,
            args![&x, size, a.attr(interpolate::mode).clone(), a.flag(interpolate::align_corners), scales],
        )?,
    };
    e.cast(&y, dtype)
}

signature!(windows(
    input: Tensor, dim: Int, size: Int, mode: Text, align_corners: Bool, factor: Float = None, is_coarse: Bool = false,
    out: Int = None,
));

/// One side with antialiasing; with `out`, the transpose of resampling from `size` to `out`.
static WINDOWS: Op = Op {
    name: "interpolate",
    params: windows::PARAMS,
    summary: "Resamples a dimension with antialiasing.",
    lower: Lower::Steps(|e, a| {
        let (x, dim, size) = (a.input(), a.int(windows::dim) as usize, a.int(windows::size) as usize);
        let mut shape = x.shape();
        let of = a.opt_int(windows::out);
        let (from, to) = of.map_or((shape[dim], size), |out| (size, out as usize));
        let side = Side {
            mode: a.text(windows::mode),
            size: from,
            out: to,
            align_corners: a.flag(windows::align_corners),
            factor: a.opt_float(windows::factor),
            is_coarse: a.flag(windows::is_coarse),
        };
        let made = if of.is_some() { side.transposed() } else { side.windows() };
        let bytes: Vec<u8> = made.first.iter().flat_map(|at| at.to_ne_bytes()).collect();
        let first = e.upload(&bytes, &[size], DType::I64, x.device())?;
        let bytes: Vec<u8> = made.weights.iter().flat_map(|weight| weight.to_ne_bytes()).collect();
        let weights = e.upload(&bytes, &[made.taps, size], DType::F64, x.device())?;
        let weights = e.cast(&weights, x.dtype())?;
        shape[dim] = size;
        let call = KernelCall::new("window_sums", &resample::WINDOW_SUMS).input(x).input(&first).input(&weights);
        e.kernel(call.int(dim as i64).output(&shape, x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let dim = v.args.int(windows::dim);
        let size = v.meta(windows::input).shape[dim as usize] as i64;
        let out = match v.args.opt_int(windows::out) {
            Some(_) => Arg::None,
            None => v.args.int(windows::size).into(),
        };
        let [mode, align, factor, coarse] =
            [windows::mode, windows::align_corners, windows::factor, windows::is_coarse]
                .map(|at| v.args.get(at).clone());
        Ok(vec![Some(e.call(&WINDOWS, args![v.g(), dim, size, mode, align, factor, coarse, out])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// An image side by side, the last first. Sums are at least `f32`; bytes are rounded after each side.
fn antialiased(e: &mut dyn Emit, x: &Tensor, size: &Ints, mode: &str, align: bool, scales: &Attr) -> Result<Tensor> {
    let dtype = x.dtype();
    let inner = match dtype {
        DType::U8 | DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let mut x = e.cast(x, inner)?;
    for dim in [1, 0] {
        let factor = if let Attr::Floats(all) = scales { Attr::Float(all[dim]) } else { Attr::None };
        let mode = Attr::Str(Text::Given(mode.into()));
        x = e.call(&WINDOWS, args![&x, dim + 2, size[dim], mode, align, factor, dtype == DType::U8])?;
        if dtype == DType::U8 {
            x = rounded_to_bytes(e, &x)?;
        }
    }
    e.cast(&x, dtype)
}

fn rounded_to_bytes(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let y = e.add(x, Scalar::Float(0.5))?;
    let y = e.call(&FLOOR, args![&y])?;
    e.call(&CLAMP, args![&y, 0, 255])
}

/// Bytes are resampled along one dim after the other, the last first, and rounded each time, as PyTorch does it.
fn dim_by_dim(e: &mut dyn Emit, mut x: Tensor, size: &Ints, mode: &Attr, align: bool, scales: &Attr) -> Result<Tensor> {
    let mode = match mode {
        Attr::Str(mode) => Attr::Str(Text::Given(format!("{mode} of bytes").into())),
        other => other.clone(),
    };
    for dim in (0..size.len()).rev() {
        let mut now = spatial(&x, size.len());
        now[dim] = size[dim];
        let scales = match scales {
            Attr::Floats(all) => Attr::Floats((0..all.len()).map(|i| if i == dim { all[i] } else { 1.0 }).collect()),
            _ => Attr::None,
        };
        let y = e.call(&RESAMPLE, args![&x, now, mode.clone(), align, scales])?;
        x = rounded_to_bytes(e, &y)?;
    }
    Ok(x)
}

signature!(interpolate(
    input: Tensor, size: IntOrInts = None, scale_factor: FloatsOrTensors = None,
    mode: Str(&["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"]) = "nearest",
    align_corners: Bool = None, recompute_scale_factor: Bool = None, antialias: Bool = false,
));

pub static INTERPOLATE: Op = Op {
    name: "interpolate",
    aliases: &["upsample"],
    params: interpolate::PARAMS,
    summary: "Resamples signals, images or volumes to a size, or by a factor.",
    details: "`input` is [N, C, d..]. \"linear\" takes one spatial dimension, \"bilinear\" and \"bicubic\" two, \"trilinear\" \
three, the others any. With `align_corners` the corner elements keep their places. With `antialias` a smaller image is made of \
all elements of the larger one, as Pillow does it; for \"bilinear\" and \"bicubic\".",
    examples: &[
        ex("interpolate(tensor([[[1.0, 2.0]]]), #{scale_factor: 2})", "tensor([[[1., 1., 2., 2.]]])"),
        ex(
            "interpolate(tensor([[[1.0, 3.0]]]), 3, #{mode: \"linear\", align_corners: true})",
            "tensor([[[1., 2., 3.]]])",
        ),
        ex(
            "interpolate(arange(16.0).reshape([1, 1, 4, 4]), [1, 2], #{mode: \"bilinear\", antialias: true})",
            "tensor([[[[6.7143, 8.2857]]]])",
        ),
        ex("interpolate(ones([1, 1, 2]), 3, #{mode: \"bilinear\"})", "E0201"),
        ex("interpolate(ones([1, 1, 2, 2]), 3, #{antialias: true})", "E0206"),
        ex("interpolate(ones([1, 1, 2]), 3, #{scale_factor: 2})", "E0206"),
        ex("interpolate(ones([1, 1, 2, 2]), [3])", "E0206"),
        ex("interpolate(ones([1, 1, 2, 2]), #{scale_factor: [2.0]})", "E0206"),
        ex("interpolate(ones([1, 1, 2]))", "E0205"),
        ex("interpolate(tensor([[[1, 2]]]), 3)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![interpolate(e, a)?])),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Reshapes to `parts` after the leading dims, permutes those parts, and reshapes to `last`.
fn rearranged(
    e: &mut dyn Emit,
    x: &Tensor,
    lead: usize,
    parts: &[usize],
    order: &[usize],
    last: &[usize],
) -> Result<Tensor> {
    let shape = x.shape();
    let with = |more: &[usize]| -> Shape { shape[..lead].iter().chain(more).copied().collect() };
    let split = e.call(&RESHAPE, args![x, with(parts).as_slice()])?;
    let dims: Vec<usize> = (0..lead).chain(order.iter().map(|at| at + lead)).collect();
    let permuted = e.call(&PERMUTE, args![&split, dims.as_slice()])?;
    e.call(&RESHAPE, args![&permuted, with(last).as_slice()])
}

fn image(x: &Tensor) -> Result<(usize, [usize; 3])> {
    let shape = x.shape();
    match shape.len().checked_sub(3) {
        Some(lead) => Ok((lead, [shape[lead], shape[lead + 1], shape[lead + 2]])),
        None => fail!(SHAPE, "`input` must have at least 3 dimensions; it has shape {:?}", shape.as_slice()),
    }
}

signature!(upsampled(input: Tensor, size: IntOrInts = None, scale_factor: FloatsOrTensors = None));

/// `name mode align_corners summary, example => result`
macro_rules! upsampled {
    ($($NAME:ident $name:literal $mode:literal $align:expr, $summary:literal, $code:literal => $result:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: upsampled::PARAMS,
            summary: $summary,
            examples: &[
                ex($code, $result),
                ex(concat!($name, "(ones([1, 1, 2, 2]))"), "E0205"),
                ex(concat!($name, "(ones([2]), 3)"), "E0201"),
            ],
            lower: Lower::Compose(|e, a| {
                let mut all = args![a.input(), a.attr(upsampled::size).clone(), a.attr(upsampled::scale_factor).clone(), $mode];
                all.0.push($align);
                all.complete(&INTERPOLATE);
                Ok(vec![interpolate(e, &all)?])
            }),
            grad: Grad::Composed,
            call: CallForm::Function,
            ..Op::BASE
        };)*
        /// Older names.
        pub static UPSAMPLED: &[&Op] = &[$(&$NAME),*];
    };
}

upsampled! {
    UPSAMPLE_NEAREST "upsample_nearest" "nearest" Arg::None, "`interpolate` with the mode \"nearest\".",
        "upsample_nearest(tensor([[[[1.0, 2.0]]]]), [1, 4])" => "tensor([[[[1., 1., 2., 2.]]]])";
    UPSAMPLE_BILINEAR "upsample_bilinear" "bilinear" true.into(), "`interpolate` with the mode \"bilinear\" and aligned corners.",
        "upsample_bilinear(tensor([[[[1.0, 3.0]]]]), [1, 3])" => "tensor([[[[1., 2., 3.]]]])";
}

/// How many pixels one becomes along a side, as an argument of this name.
fn factor(name: &str, r: i64) -> Result<usize> {
    if r < 1 {
        fail!(VALUE, "`{name}` must be positive, not {r}");
    }
    // Bound: the square, and its products with sizes that memory holds, stay within a `usize`.
    if r > i32::MAX as i64 {
        fail!(VALUE, "`{name}` may be {} at most, not {r}", i32::MAX);
    }
    Ok(r as usize)
}

signature!(pixel_shuffle(input: Tensor, upscale_factor: Int));

pub static PIXEL_SHUFFLE: Op = Op {
    name: "pixel_shuffle",
    params: pixel_shuffle::PARAMS,
    summary: "Turns channels into space: [.., C r², H, W] to [.., C, H r, W r].",
    examples: &[
        ex("pixel_shuffle(tensor([1, 2, 3, 4]).reshape([4, 1, 1]), 2)", "tensor([[[1, 2],\n         [3, 4]]])"),
        ex("pixel_shuffle(ones([3, 1, 1]), 2)", "E0201"),
        ex("pixel_shuffle(ones([4, 1, 1]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, r) = (a.input(), a.int(pixel_shuffle::upscale_factor));
        let (lead, [c, h, w]) = image(x)?;
        let r = factor("upscale_factor", r)?;
        if c % (r * r) != 0 {
            fail!(SHAPE, "{c} channels are no multiple of {} = {r}²", r * r);
        }
        let c = c / (r * r);
        Ok(vec![rearranged(e, x, lead, &[c, r, r, h, w], &[0, 3, 1, 4, 2], &[c, h * r, w * r])?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(pixel_unshuffle(input: Tensor, downscale_factor: Int));

pub static PIXEL_UNSHUFFLE: Op = Op {
    name: "pixel_unshuffle",
    params: pixel_unshuffle::PARAMS,
    summary: "Turns space into channels: [.., C, H r, W r] to [.., C r², H, W].",
    examples: &[
        ex("pixel_unshuffle(tensor([[[1, 2], [3, 4]]]), 2).flatten()", "tensor([1, 2, 3, 4])"),
        ex("pixel_unshuffle(ones([1, 3, 3]), 2)", "E0201"),
        ex("pixel_unshuffle(ones([1, 2, 2]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, r) = (a.input(), a.int(pixel_unshuffle::downscale_factor));
        let (lead, [c, h, w]) = image(x)?;
        let r = factor("downscale_factor", r)?;
        if h % r != 0 || w % r != 0 {
            fail!(SHAPE, "an image of {h} by {w} does not split into squares of {r}");
        }
        let (h, w) = (h / r, w / r);
        Ok(vec![rearranged(e, x, lead, &[c, h, r, w, r], &[0, 2, 4, 1, 3], &[c * r * r, h, w])?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(channel_shuffle(input: Tensor, groups: Int));

pub static CHANNEL_SHUFFLE: Op = Op {
    name: "channel_shuffle",
    aliases: &["native_channel_shuffle"],
    params: channel_shuffle::PARAMS,
    summary: "Deals channels out of groups in turn: [N, g C, ..] read as [N, g, C, ..], permuted to [N, C, g, ..].",
    examples: &[
        ex("channel_shuffle(tensor([1, 2, 3, 4]).reshape([1, 4, 1]), 2).flatten()", "tensor([1, 3, 2, 4])"),
        ex("channel_shuffle(ones([1, 3, 1]), 2)", "E0201"),
        ex("channel_shuffle(ones([1, 4, 1]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, groups) = (a.input(), a.int(channel_shuffle::groups));
        let shape = x.shape();
        if shape.len() < 3 {
            fail!(SHAPE, "`input` must have at least 3 dimensions; it has shape {:?}", shape.as_slice());
        }
        if groups < 1 {
            fail!(VALUE, "`groups` must be positive, not {groups}");
        }
        let groups = groups as usize;
        if shape[1] % groups != 0 {
            fail!(SHAPE, "{} channels do not split into {groups} groups", shape[1]);
        }
        let (c, plane) = (shape[1] / groups, shape[2..].iter().product::<usize>());
        Ok(vec![rearranged(e, x, 1, &[groups, c, plane], &[1, 0, 2], &shape[1..])?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&RESAMPLE, &RESAMPLE_SPREAD, &WINDOWS, &INTERPOLATE, &PIXEL_SHUFFLE, &PIXEL_UNSHUFFLE, &CHANNEL_SHUFFLE];
