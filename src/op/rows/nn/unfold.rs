//! Windows of images as columns, and back: `torch.nn.functional.unfold` and `fold`. A strided view reads the
//! windows, a strided sum puts them back.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::diag::Result;
use crate::base::layout::{Layout, Strides, contiguous_strides};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{Grad, Lower, Op, ex};
use crate::op::rows::nn::padding::PAD_CONSTANT;
use crate::op::rows::nn::windows::{batched, tuple, unbatched, window_count};
use crate::op::rows::shape::rearrange::UNFOLD;
use crate::op::rows::shape::view::{AS_STRIDED, CONTIGUOUS, RESHAPE, SLICE, spread};
use crate::op::tensor::Tensor;
use crate::signature;

/// Windows of an image: kernel, dilation, padding, stride, and how many there are.
struct Windows {
    kernel: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
    count: Ints,
}

impl Windows {
    fn of(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, image: &[usize]) -> Result<Windows> {
        let count: Ints = (0..2)
            .map(|i| window_count(image[i] as i64, kernel[i], stride[i], padding[i], dilation[i], false))
            .collect();
        if count.iter().any(|&n| n < 1) {
            fail!(SHAPE, "no window of {:?} fits into an image of {image:?}", kernel.as_slice());
        }
        Ok(Windows { kernel, dilation, padding, stride, count })
    }

    fn columns(&self) -> i64 {
        self.count.iter().product()
    }

    fn taps(&self) -> i64 {
        self.kernel.iter().product()
    }

    fn padded(&self, lead: [usize; 2], image: &[usize]) -> [usize; 4] {
        let size = |i: usize| image[i] + 2 * self.padding[i] as usize;
        [lead[0], lead[1], size(0), size(1)]
    }

    /// Where `[N, C, kh, kw, oh, ow]` lies in a dense padded image.
    fn layout(&self, padded: &[usize; 4]) -> Layout {
        let dense = contiguous_strides(padded);
        let mut strides: Strides = dense[..2].into();
        strides.extend((0..2).map(|i| dense[2 + i] * self.dilation[i] as isize));
        strides.extend((0..2).map(|i| dense[2 + i] * self.stride[i] as isize));
        let mut shape = crate::base::layout::Shape::from_slice(&padded[..2]);
        shape.extend(self.kernel.iter().chain(&self.count).map(|&n| n as usize));
        Layout { shape, strides, offset: 0 }
    }
}

fn unfolded(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let (x, was_batched) = batched(e, a.input(), 2)?;
    let shape = x.shape();
    if shape[1..].contains(&0) {
        fail!(SHAPE, "an image of shape {:?} is empty", a.input().shape().as_slice());
    }
    let list = |at: usize, name: &str, least: i64| tuple(a, at, 2, name, least);
    let (kernel, dilation) =
        (list(unfold_either::kernel_size, "kernel_size", 1)?, list(unfold_either::dilation, "dilation", 1)?);
    let w = Windows::of(
        kernel,
        dilation,
        list(unfold_either::padding, "padding", 0)?,
        list(unfold_either::stride, "stride", 1)?,
        &shape[2..],
    )?;
    let padded = w.padded([shape[0], shape[1]], &shape[2..]);
    let (p, q) = (w.padding[0], w.padding[1]);
    let x = if p + q > 0 { e.call(&PAD_CONSTANT, args![&x, Ints::from_slice(&[q, q, p, p])])? } else { x };
    let x = e.call(&CONTIGUOUS, args![&x])?;
    let offset = x.view().layout.offset as i64;
    let part = w.layout(&padded);
    let ints = |list: &[isize]| list.iter().map(|&n| n as i64).collect::<Ints>();
    let (own_shape, own_strides) = (x.shape(), ints(&contiguous_strides(&x.shape())));
    let windows = e.call(
        &AS_STRIDED,
        args![&x, part.shape.as_slice(), ints(&part.strides), offset, own_shape.as_slice(), own_strides, offset],
    )?;
    let sizes = [shape[0] as i64, shape[1] as i64 * w.taps(), w.columns()];
    let y = e.call(&RESHAPE, args![&windows, sizes.as_slice()])?;
    unbatched(e, y, was_batched)
}

signature!(unfold_either(
    input: Tensor, kernel_size: IntOrInts = None, dilation: IntOrInts = None, padding: IntOrInts = None,
    stride: IntOrInts = None, dimension: Dim = None, size: Int = None, step: Int = None,
));

/// PyTorch has two functions of this name. A method call with three integers is `Tensor.unfold`, a view of
/// windows along one dimension; all else is `torch.nn.functional.unfold`.
pub static UNFOLD_EITHER: Op = Op {
    name: "unfold",
    params: unfold_either::PARAMS,
    summary: "Windows: of an image as columns, or along one dimension as a view.",
    details: "`unfold(input, kernel_size, dilation, padding, stride)`: [N, C, H, W] (or [C, H, W]) to \
[N, C kh kw, L], one column for each of L windows. `x.unfold(dimension, size, step)`, three integers: all windows of \
a size along a dimension, in a new last dimension, without a copy. An image's windows with three integers are \
written with keywords or arrays.",
    examples: &[
        ex(
            "unfold(tensor([[[1, 2, 3], [4, 5, 6]]]), [2, 2])",
            "tensor([[1, 2],\n        [2, 3],\n        [4, 5],\n        [5, 6]])",
        ),
        ex("tensor([1, 2, 3]).unfold(0, 2, 1)", "tensor([[1, 2],\n        [2, 3]])"),
        ex("unfold(ones([1, 2, 2]), 3)", "E0201"),
        ex("unfold(ones([1, 2, 2]), [1, 1, 1])", "E0206"),
        ex("unfold(ones([1, 2, 2]))", "E0205"),
        ex("ones([3]).unfold(5, 1, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let single = |at: usize| match a.attr(at) {
            Attr::Int(value) => Some(*value),
            _ => None,
        };
        if !a.is_none(unfold_either::dimension) || !a.is_none(unfold_either::size) || !a.is_none(unfold_either::step) {
            // Keywords may name what positions did not.
            let Some(dimension) = single(5).or(single(1)) else { fail!(MISSING_ARGUMENT, "`dimension` is missing") };
            let size = a.opt_int(unfold_either::size).or(if a.is_none(unfold_either::dimension) {
                single(2)
            } else {
                single(1)
            });
            let Some(size) = size else { fail!(MISSING_ARGUMENT, "`size` is missing") };
            let Some(step) = a.opt_int(unfold_either::step).or(single(3)) else {
                fail!(MISSING_ARGUMENT, "`step` is missing")
            };
            return e.apply(&UNFOLD, args![a.input(), dimension, size, step]);
        }
        if let (Some(dimension), Some(size), Some(step), true) =
            (single(1), single(2), single(3), a.is_none(unfold_either::stride))
        {
            return e.apply(&UNFOLD, args![a.input(), dimension, size, step]);
        }
        if a.is_none(unfold_either::kernel_size) {
            fail!(MISSING_ARGUMENT, "`kernel_size` is missing");
        }
        let mut full = a.clone();
        for (at, default) in [(2, 1i64), (3, 0), (4, 1)] {
            if full.is_none(at) {
                full.0[at] = default.into();
            }
        }
        Ok(vec![unfolded(e, &full)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1,
));

pub static FOLD: Op = Op {
    name: "fold",
    params: fold::PARAMS,
    summary: "Adds columns back into the windows of an image.",
    details: "`input` is [N, C kh kw, L] or [C kh kw, L], as `unfold` gives; the result [N, C, H, W] with `output_size` \
[H, W]. Where windows overlap their elements are summed.",
    examples: &[
        ex("fold(ones([4, 2]), [2, 3], [2, 2])", "tensor([[[1., 2., 1.],\n         [1., 2., 1.]]])"),
        ex("fold(ones([4, 3]), [2, 3], [2, 2])", "E0201"),
        ex("fold(ones([4, 2]), [2, 3], [2, 2], #{stride: 0})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = |at: usize, name: &str, least: i64| tuple(a, at, 2, name, least);
        let image: Vec<usize> = list(fold::output_size, "output_size", 1)?.iter().map(|&n| n as usize).collect();
        let (kernel, dilation) = (list(fold::kernel_size, "kernel_size", 1)?, list(fold::dilation, "dilation", 1)?);
        let w = Windows::of(
            kernel,
            dilation,
            list(fold::padding, "padding", 0)?,
            list(fold::stride, "stride", 1)?,
            &image,
        )?;
        let (x, was_batched) = batched(e, a.input(), 1)?;
        let shape = x.shape();
        let (taps, columns) = (w.taps() as usize, w.columns() as usize);
        if shape[1] == 0 || shape[1] % taps != 0 || shape[2] != columns {
            fail!(
                SHAPE,
                "`input` must be [C * {taps}, {columns}] for these windows; it has shape {:?}",
                a.input().shape().as_slice()
            );
        }
        let padded = w.padded([shape[0], shape[1] / taps], &image);
        let part = w.layout(&padded);
        let windows = e.call(&RESHAPE, args![&x, part.shape.as_slice()])?;
        let mut y = spread(e, &windows, &padded, &part)?;
        for (i, (&start, &size)) in w.padding.iter().zip(&image).enumerate().filter(|(_, (start, _))| **start > 0) {
            y = e.call(&SLICE, args![&y, 2 + i, start, start + size as i64, 1])?;
        }
        Ok(vec![unbatched(e, y, was_batched)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&UNFOLD_EITHER, &FOLD];
