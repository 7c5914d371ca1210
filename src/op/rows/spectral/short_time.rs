//! Short-time Fourier transforms: spectra of overlapping frames of a signal, and signals from them.

use super::core::{FROM_HALF, TO_HALF, Transform, WHOLE};
use super::transforms::{Kind, operand};
use crate::args;
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{Grad, Lower, Op, ex};
use crate::op::rows::nn::padding::{PAD, PAD_CONSTANT};
use crate::op::rows::nn::unfold::FOLD;
use crate::op::rows::pointwise::arith::DIV;
use crate::op::rows::pointwise::complex::VIEW_AS_REAL;
use crate::op::rows::reduction::reduce::AMIN;
use crate::op::rows::shape::rearrange::{SQUEEZE, TRANSPOSE, UNFOLD};
use crate::op::rows::shape::view::{EXPAND, SLICE, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// Bound: sums of windows below which a sample cannot be told from those around it, as in PyTorch.
const WINDOW_SUM_LEAST: f64 = 1e-11;

signature!(stft(
    input: Tensor, n_fft: Int, hop_length: Int = None, win_length: Int = None, window: Tensor = None,
    center: Bool = true, pad_mode: Str(&["reflect", "constant", "replicate", "circular"]) = "reflect",
    normalized: Bool = false, onesided: Bool = None, return_complex: Bool = None, align_to_window: Bool = None,
));

signature!(istft(
    input: Tensor, n_fft: Int, hop_length: Int = None, win_length: Int = None, window: Tensor = None,
    center: Bool = true, normalized: Bool = false, onesided: Bool = None, length: Int = None,
    return_complex: Bool = false,
));

/// The sizes of frames; both lists of parameters begin alike.
struct Frames {
    n: i64,
    hop: i64,
    window: i64,
}

impl Frames {
    fn of(a: &Args) -> Result<Frames> {
        let n = a.int(stft::n_fft);
        if n < 1 {
            fail!(VALUE, "`n_fft` must be positive, but is {n}");
        }
        let hop = a.opt_int(stft::hop_length).unwrap_or(n / 4);
        if hop < 1 {
            fail!(VALUE, "`hop_length` must be positive, but is {hop}");
        }
        let window = a.opt_int(stft::win_length).unwrap_or(n);
        if window < 1 || window > n {
            fail!(VALUE, "`win_length` must be from 1 to `n_fft`, {n}, but is {window}");
        }
        Ok(Frames { n, hop, window })
    }

    /// Frames of `n_fft` samples, the window in their middle.
    fn of_signal(&self, e: &mut dyn Emit, a: &Args, x: &Tensor) -> Result<Tensor> {
        let parts = e.call(&UNFOLD, args![x, 1, self.n, self.hop])?;
        match self.weights(e, a, &Meta::of(x))? {
            Some(window) => e.mul(&parts, &window),
            None => Ok(parts),
        }
    }

    /// Frames whose window begins every hop, with zeros around it.
    fn of_windows(&self, e: &mut dyn Emit, a: &Args, x: &Tensor) -> Result<Tensor> {
        let parts = e.call(&UNFOLD, args![x, 1, self.window, self.hop])?;
        let narrow = Frames { n: self.window, ..*self };
        let parts = match narrow.weights(e, a, &Meta::of(x))? {
            Some(window) => e.mul(&parts, &window)?,
            None => parts,
        };
        let left = (self.n - self.window) / 2;
        let pads = Ints::from_slice(&[left, self.n - self.window - left]);
        e.call(&PAD_CONSTANT, args![&parts, pads, Scalar::Int(0)])
    }

    /// The window with zeros on both sides; none where all weights are 1.
    fn weights(&self, e: &mut dyn Emit, a: &Args, like: &Meta) -> Result<Option<Tensor>> {
        let window = match a.get(stft::window) {
            Arg::Tensor(window) => {
                if window.shape().as_slice() != [self.window as usize] {
                    let shape = window.shape();
                    fail!(SHAPE, "`window` has shape {:?}, not [{}]", shape.as_slice(), self.window);
                }
                window.clone()
            }
            _ if self.window == self.n => return Ok(None),
            _ => e.full(&[self.window as usize], Scalar::Float(1.0), like)?,
        };
        let left = (self.n - self.window) / 2;
        if self.window == self.n {
            return Ok(Some(window));
        }
        let pads = Ints::from_slice(&[left, self.n - self.window - left]);
        e.call(&PAD_CONSTANT, args![&window, pads, Scalar::Int(0)]).map(Some)
    }
}

/// A tensor with or without a batch, with one.
fn batched(e: &mut dyn Emit, x: &Tensor, own: usize) -> Result<(Tensor, bool)> {
    if x.ndim() != own && x.ndim() != own + 1 {
        let shape = x.shape();
        fail!(SHAPE, "a tensor of {own} or {} dimensions is expected, not shape {:?}", own + 1, shape.as_slice());
    }
    let alone = x.ndim() == own;
    Ok((if alone { e.call(&UNSQUEEZE, args![x, 0])? } else { x.clone() }, alone))
}

fn without_batch(e: &mut dyn Emit, x: Tensor, alone: bool) -> Result<Tensor> {
    if alone { e.call(&SQUEEZE, args![&x, 0]) } else { Ok(x) }
}

/// Transforms along the last of three dims.
fn along(n: i64, size: i64, scale: f64, flag: bool) -> Transform {
    let list = |n: i64| Ints::from_slice(&[n]);
    Transform { dims: list(2), lengths: list(n), sizes: list(size), scale, flag, middle: 1.0, real: false }
}

fn forward(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let given = a.input().dtype();
    if !given.is_float() && !given.is_complex() {
        fail!(DTYPE, "a signal of floating-point or complex numbers is expected, not {given}");
    }
    let x = operand(e, a.input(), Kind::Complex)?;
    let window_is_complex = matches!(a.get(stft::window), Arg::Tensor(window) if window.dtype().is_complex());
    let complex = x.dtype().is_complex() || window_is_complex;
    let as_complex = match a.is_none(stft::return_complex) {
        true if !complex => {
            return Err(Diag::error(code::MISSING_ARGUMENT, "argument `return_complex` is missing for a real signal")
                .help("`return_complex: true` gives complex numbers, `false` pairs in a last dimension"));
        }
        true => true,
        false => a.flag(stft::return_complex),
    };
    let frames = Frames::of(a)?;
    if a.flag(stft::center) && !a.is_none(stft::align_to_window) {
        fail!(VALUE, "`align_to_window` goes with `center: false`");
    }
    let aligned = a.flag(stft::align_to_window);
    let (mut x, alone) = batched(e, &x, 1)?;
    let half = frames.n / 2;
    if a.flag(stft::center) {
        let row = e.call(&UNSQUEEZE, args![&x, 1])?;
        let pads = Ints::from_slice(&[half, half]);
        let padded = e.call(&PAD, args![&row, pads, a.attr(stft::pad_mode).clone(), ()])?;
        x = e.call(&SQUEEZE, args![&padded, 1])?;
    }
    let length = x.shape()[1] as i64;
    if length < frames.n {
        fail!(VALUE, "a signal of {length} samples has no frame of `n_fft` = {} samples", frames.n);
    }
    let parts = if aligned { frames.of_windows(e, a, &x)? } else { frames.of_signal(e, a, &x)? };
    let onesided = if a.is_none(stft::onesided) { !complex } else { a.flag(stft::onesided) };
    if onesided && complex {
        fail!(VALUE, "the spectrum of a complex signal has two sides: `onesided: false`");
    }
    let scale = if a.flag(stft::normalized) { 1.0 / (frames.n as f64).sqrt() } else { 1.0 };
    let spectra = match onesided {
        true => along(frames.n, half + 1, scale, false).of(e, &TO_HALF, &parts)?,
        false => along(frames.n, frames.n, scale, false).of(e, &WHOLE, &parts)?,
    };
    let turned = e.call(&TRANSPOSE, args![&spectra, 1, 2])?;
    let result = without_batch(e, turned, alone)?;
    if as_complex { Ok(vec![result]) } else { pairs(e, &result) }
}

/// Complex numbers as pairs in a last dimension.
fn pairs(e: &mut dyn Emit, x: &Tensor) -> Result<Vec<Tensor>> {
    e.apply(&VIEW_AS_REAL, args![x])
}

pub static STFT: Op = Op {
    name: "stft",
    params: stft::PARAMS,
    summary: "The short-time Fourier transform: spectra of overlapping frames of a signal, [.., frequencies, frames].",
    details: "Frames of `n_fft` samples begin every `hop_length` (n_fft / 4) samples and are multiplied by `window`, \
              which is surrounded by zeros if it is shorter. `center`: frame t is around sample t * hop_length; the \
              signal is padded for it by `pad_mode`; without it `align_to_window` \
              has the windows begin with the signal, not the frames. `normalized`: divided by the root of `n_fft`.",
    examples: &[
        ex("stft(ones([16]), 8, #{return_complex: true}).shape", "[5, 9]"),
        ex("stft(ones([16]), 8)", "E0205"),
        ex("stft(arange(16), 8, #{return_complex: true})", "E0202"),
        ex("stft(ones([4]), 8, #{center: false, return_complex: true})", "E0206"),
    ],
    lower: Lower::Compose(forward),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Adds frames `[batch, frames, n]` where they overlap.
fn overlapped(e: &mut dyn Emit, frames: &Tensor, length: i64, f: &Frames) -> Result<Tensor> {
    let columns = e.call(&TRANSPOSE, args![frames, 1, 2])?;
    let list = |a: i64, b: i64| Ints::from_slice(&[a, b]);
    let image = args![&columns, list(1, length), list(1, f.n), list(1, 1), list(0, 0), list(1, f.hop)];
    let rows = e.call(&FOLD, image)?;
    let row = e.call(&SQUEEZE, args![&rows, 2])?;
    e.call(&SQUEEZE, args![&row, 1])
}

fn inverse(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let x = a.input();
    if !x.dtype().is_complex() {
        return Err(Diag::error(code::DTYPE, format!("a complex tensor is expected, not {}", x.dtype()))
            .help("`view_as_complex` takes pairs in a last dimension as complex numbers"));
    }
    let frames = Frames::of(a)?;
    if frames.hop > frames.window {
        fail!(VALUE, "`hop_length`, {}, leaves gaps between windows of {} samples", frames.hop, frames.window);
    }
    let (x, alone) = batched(e, x, 2)?;
    let (rows, count) = (x.shape()[1] as i64, x.shape()[2] as i64);
    let half = frames.n / 2;
    let onesided = if a.is_none(istft::onesided) { rows != frames.n } else { a.flag(istft::onesided) };
    let as_complex = a.flag(istft::return_complex);
    if onesided && as_complex {
        fail!(VALUE, "the signal of half a spectrum is real: `return_complex` goes with `onesided: false`");
    }
    let expected = if onesided { half + 1 } else { frames.n };
    if rows != expected || count == 0 {
        fail!(
            SHAPE,
            "spectra of {expected} frequencies and at least one frame are expected, not of {rows} and {count}"
        );
    }
    let by = if a.flag(istft::normalized) { (frames.n as f64).sqrt() } else { frames.n as f64 };
    let turned = e.call(&TRANSPOSE, args![&x, 1, 2])?;
    let (op, flag) = if as_complex { (&WHOLE, true) } else { (&FROM_HALF, false) };
    let mut parts = along(frames.n, frames.n, 1.0 / by, flag).of(e, op, &turned)?;
    let window = match frames.weights(e, a, &Meta { dtype: x.dtype().real_part(), ..Meta::of(&x) })? {
        Some(window) => window,
        None => {
            e.full(&[frames.n as usize], Scalar::Float(1.0), &Meta { dtype: x.dtype().real_part(), ..Meta::of(&x) })?
        }
    };
    parts = e.mul(&parts, &window)?;
    let whole = frames.n + frames.hop * (count - 1);
    let squares = e.mul(&window, &window)?;
    let squares = e.call(&EXPAND, args![&squares, Ints::from_slice(&[1, count, frames.n])])?;
    let start = if a.flag(istft::center) { half } else { 0 };
    let end = match a.opt_int(istft::length) {
        Some(length) if length < 1 => fail!(VALUE, "`length` must be positive, but is {length}"),
        Some(length) => start + length,
        None => whole - start,
    };
    let mut cut = |frames_of: &Tensor| -> Result<Tensor> {
        let all = overlapped(e, frames_of, whole, &frames)?;
        e.call(&SLICE, args![&all, 1, start, end.min(whole), 1])
    };
    let (signal, sums) = (cut(&parts)?, cut(&squares)?);
    covered(e, &sums)?;
    let mut signal = e.call(&DIV, args![&signal, &sums])?;
    if end > whole {
        signal = e.call(&PAD_CONSTANT, args![&signal, Ints::from_slice(&[0, end - whole]), Scalar::Int(0)])?;
    }
    Ok(vec![without_batch(e, signal, alone)?])
}

/// Every sample lies in a window.
fn covered(e: &mut dyn Emit, sums: &Tensor) -> Result<()> {
    if sums.numel() == 0 {
        return Ok(());
    }
    let least = e.call(&AMIN, args![sums, Ints::new(), false])?;
    let least = e.detach(&least);
    match e.read(&least)?.first() {
        Some(sum) if sum.to_f64() <= WINDOW_SUM_LEAST => {
            fail!(VALUE, "some samples are in no window, or where windows are 0")
        }
        _ => Ok(()),
    }
}

pub static ISTFT: Op = Op {
    name: "istft",
    params: istft::PARAMS,
    summary: "The signal of a short-time Fourier transform, from [.., frequencies, frames].",
    details: "The least squares solution: frames are multiplied by `window` again, added where they overlap, and divided \
              by the sum of the squared windows, which must not be 0 anywhere. Waits, to know this.",
    examples: &[
        ex("istft(stft(ones([16]), 8, #{return_complex: true}), 8).shape", "[16]"),
        ex("istft(ones([5, 3]), 8)", "E0202"),
    ],
    lower: Lower::Compose(inverse),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&STFT, &ISTFT];
