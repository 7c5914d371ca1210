//! The discrete Fourier transforms of `torch.fft`.

use super::core::{FROM_HALF, TO_HALF, Transform, WHOLE, complex_of};
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::tensor::Tensor;
use crate::signature;

const NORMS: &[&str] = &["backward", "ortho", "forward"];

const ONE: &str = "`n`: the length of the transform along `dim`; the input is cut to it, or filled up with zeros. \
    `norm`: \"backward\" (the default) divides the inverse by the length, \"forward\" the other direction, \"ortho\" both \
    by its root.";
const MANY: &str = "`s`: the lengths of the transform along `dim` (-1: the size there); the input is cut to them, or \
    filled up with zeros. `norm`: \"backward\" (the default) divides the inverse by the number of elements, \"forward\" \
    the other direction, \"ortho\" both by its root.";

/// What goes in and comes out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Complex,
    /// A real signal, half of its spectrum.
    ToHalf,
    FromHalf,
}

/// The dims that are transformed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Over {
    One,
    LastTwo,
    All,
}

#[derive(Clone, Copy)]
pub struct Form {
    pub kind: Kind,
    /// Divides by the length where `norm` is "forward": the exponent is negative.
    pub forward: bool,
    pub over: Over,
}

signature!(along_one(input: Tensor, n: Int = None, dim: Dim = (-1), norm: Str(NORMS) = None));
signature!(along_many(input: Tensor, s: Ints = None, dim: Dims = None, norm: Str(NORMS) = None));

/// The operand in the dtype in which it is transformed.
pub fn operand(e: &mut dyn Emit, x: &Tensor, kind: Kind) -> Result<Tensor> {
    let dtype = x.dtype();
    if dtype.is_complex() {
        if kind == Kind::ToHalf {
            return Err(Diag::error(code::DTYPE, format!("a real tensor is expected, not {dtype}"))
                .help("`fft::fft` transforms complex numbers; `.real` is the real part"));
        }
        return Ok(x.clone());
    }
    match dtype {
        DType::F32 | DType::F64 => Ok(x.clone()),
        DType::F16 | DType::BF16 => Err(Diag::error(code::DTYPE, format!("{dtype} is not supported"))
            .help("convert first, for example with `.float()`")),
        _ => e.cast(x, e.default_float()),
    }
}

/// The factor for a direction and a number of elements.
pub fn scale(norm: &str, forward: bool, elements: f64) -> f64 {
    match (norm, forward) {
        ("ortho", _) => 1.0 / elements.sqrt(),
        ("forward", true) | ("backward" | "", false) => 1.0 / elements,
        _ => 1.0,
    }
}

/// The dims and the length for each, `None` where it is that of the input.
fn dims_and_lengths(a: &Args, over: Over, ndim: usize) -> Result<(Ints, Vec<Option<i64>>)> {
    if over == Over::One {
        let dim = infer::dim(a.int(along_one::dim), ndim)? as i64;
        return Ok((Ints::from_slice(&[dim]), vec![a.opt_int(along_one::n)]));
    }
    let (s, dim) = (a.ints(along_many::s), a.ints(along_many::dim));
    let dim = match (dim, over) {
        (None, Over::LastTwo) => Some(Ints::from_slice(&[-2, -1])),
        (dim, _) => dim,
    };
    if ndim == 0 && dim.as_ref().is_some_and(|dim| !dim.is_empty()) {
        fail!(DIM, "`dim` names dimensions, and a 0-dimensional tensor has none");
    }
    let mut dims = Ints::new();
    for &given in dim.iter().flatten() {
        let at = infer::dim(given, ndim)? as i64;
        if dims.contains(&at) {
            fail!(VALUE, "dimension {at} appears twice in `dim`");
        }
        dims.push(at);
    }
    match (s, dim.is_some()) {
        (Some(s), true) if s.len() != dims.len() => {
            fail!(VALUE, "`s` has {} lengths and `dim` {} dims", s.len(), dims.len())
        }
        (Some(s), false) if s.len() > ndim => {
            fail!(VALUE, "`s` has {} lengths, the tensor {ndim} dimensions", s.len())
        }
        (Some(s), given) => {
            let dims = if given { dims } else { ((ndim - s.len()) as i64..ndim as i64).collect() };
            Ok((dims, s.iter().map(|&n| (n != -1).then_some(n)).collect()))
        }
        (None, true) => {
            let lengths = vec![None; dims.len()];
            Ok((dims, lengths))
        }
        (None, false) => Ok(((0..ndim as i64).collect(), vec![None; ndim])),
    }
}

/// One transform as a row of `core`.
pub fn transformed(e: &mut dyn Emit, a: &Args, form: Form) -> Result<Vec<Tensor>> {
    let x = operand(e, a.input(), form.kind)?;
    let shape = x.shape();
    if shape.is_empty() && form.over == Over::One {
        fail!(SHAPE, "a tensor of at least one dimension is expected");
    }
    let (dims, asked) = dims_and_lengths(a, form.over, shape.len())?;
    if dims.is_empty() && form.kind != Kind::Complex {
        fail!(VALUE, "at least one dimension is transformed");
    }
    if dims.is_empty() {
        return Ok(vec![e.cast(&x, complex_of(x.dtype()))?]);
    }
    let last = dims.len().saturating_sub(1);
    let mut lengths = Ints::new();
    for (at, (&dim, asked)) in dims.iter().zip(asked).enumerate() {
        let size = shape[dim as usize] as i64;
        let own = if form.kind == Kind::FromHalf && at == last { 2 * (size - 1) } else { size };
        let length = asked.unwrap_or(own);
        if length < 1 {
            return Err(Diag::error(code::VALUE, format!("a transform of {length} points along dimension {dim}"))
                .help("at least one point is transformed"));
        }
        lengths.push(length);
    }
    let mut sizes = lengths.clone();
    if let (Kind::ToHalf, Some(size)) = (form.kind, sizes.last_mut()) {
        *size = *size / 2 + 1;
    }
    let elements = lengths.iter().map(|&n| n as f64).product();
    let scale = scale(a.text(along_one::norm), form.forward, elements);
    // Of a half spectrum the exponent's sign is that of its conjugate.
    let (op, flag) = match form.kind {
        Kind::Complex => (&WHOLE, !form.forward),
        Kind::ToHalf => (&TO_HALF, !form.forward),
        Kind::FromHalf => (&FROM_HALF, form.forward),
    };
    let transform = Transform { dims, lengths, sizes, scale, flag, middle: 1.0, real: false };
    Ok(vec![transform.of(e, op, &x)?])
}

macro_rules! transforms {
    ($($NAME:ident $name:literal $over:ident $kind:ident $forward:literal $summary:literal [$($example:expr),*];)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: transforms!(@params $over),
            summary: $summary,
            details: transforms!(@details $over),
            examples: &[$($example),*],
            lower: Lower::Compose(|e, a| {
                transformed(e, a, Form { kind: Kind::$kind, forward: $forward, over: Over::$over })
            }),
            grad: Grad::Composed,
            call: CallForm::Function,
            ..Op::BASE
        };)*

        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
    (@params One) => { along_one::PARAMS };
    (@params $many:ident) => { along_many::PARAMS };
    (@details One) => { ONE };
    (@details $many:ident) => { MANY };
}

transforms! {
    FFT "fft::fft" One Complex true "The discrete Fourier transform along a dimension." [
        ex("fft::fft(tensor([1.0, 0.0, 0.0, 0.0])).real", "tensor([1., 1., 1., 1.])"),
        ex("fft::fft(ones([4]), 0)", "E0206"), ex("fft::fft(ones([4]), #{dim: 1})", "E0209")
    ];
    IFFT "fft::ifft" One Complex false "The inverse discrete Fourier transform along a dimension." [
        ex("fft::ifft(tensor([4.0, 0.0, 0.0, 0.0])).real", "tensor([1., 1., 1., 1.])")
    ];
    RFFT "fft::rfft" One ToHalf true
        "The discrete Fourier transform of a real signal: the half of the spectrum that determines it, n / 2 + 1 elements." [
        ex("fft::rfft(ones([4])).real", "tensor([4., 0., 0.])"), ex("fft::rfft(ones([4], #{dtype: \"f16\"}))", "E0202")
    ];
    IRFFT "fft::irfft" One FromHalf false
        "The inverse of `rfft`: a real signal of `n` elements, 2 (size - 1) without `n`, from half of its spectrum." [
        ex("fft::irfft(fft::rfft(tensor([1.0, 2.0, 3.0])), 3)", "tensor([1., 2., 3.])"),
        ex("fft::irfft(ones([1]))", "E0206")
    ];
    HFFT "fft::hfft" One FromHalf true
        "The transform of a signal that is its own mirror image, conjugate, given by its half: a real spectrum of `n` elements." [
        ex("fft::hfft(ones([3]))", "tensor([4., 0., 0., 0.])")
    ];
    IHFFT "fft::ihfft" One ToHalf false "The inverse of `hfft`: half of the signal from a real spectrum." [
        ex("fft::ihfft(tensor([4.0, 0.0, 0.0, 0.0])).real", "tensor([1., 1., 1.])")
    ];
    FFT2 "fft::fft2" LastTwo Complex true "The discrete Fourier transform along two dimensions, the last two without `dim`." [
        ex("fft::fft2(ones([2, 2])).real", "tensor([[4., 0.],\n        [0., 0.]])")
    ];
    IFFT2 "fft::ifft2" LastTwo Complex false "The inverse discrete Fourier transform along two dimensions." [
        ex("fft::ifft2(ones([2, 2])).real", "tensor([[1., 0.],\n        [0., 0.]])")
    ];
    RFFT2 "fft::rfft2" LastTwo ToHalf true "The discrete Fourier transform of real numbers along two dimensions, half of it along the last." [
        ex("fft::rfft2(ones([2, 4])).shape", "[2, 3]")
    ];
    IRFFT2 "fft::irfft2" LastTwo FromHalf false "The inverse of `rfft2`." [
        ex("fft::irfft2(fft::rfft2(ones([2, 2])))", "tensor([[1., 1.],\n        [1., 1.]])")
    ];
    FFTN "fft::fftn" All Complex true "The discrete Fourier transform along several dimensions, all of them without `dim`." [
        ex("fft::fftn(ones([2, 2])).real", "tensor([[4., 0.],\n        [0., 0.]])"),
        ex("fft::fftn(ones([2, 2]), #{dim: [0, 0]})", "E0206")
    ];
    IFFTN "fft::ifftn" All Complex false "The inverse discrete Fourier transform along several dimensions." [
        ex("fft::ifftn(ones([2, 2])).real", "tensor([[1., 0.],\n        [0., 0.]])"),
        ex("fft::ifftn(tensor(1.5), [4], [0])", "E0209")
    ];
    RFFTN "fft::rfftn" All ToHalf true "The discrete Fourier transform of real numbers along several dimensions, half of it along the last." [
        ex("fft::rfftn(ones([2, 2, 6])).shape", "[2, 2, 4]")
    ];
    IRFFTN "fft::irfftn" All FromHalf false "The inverse of `rfftn`." [
        ex("fft::irfftn(fft::rfftn(ones([2, 2])))", "tensor([[1., 1.],\n        [1., 1.]])")
    ];
    HFFT2 "fft::hfft2" LastTwo FromHalf true "`hfft` along two dimensions, of which the last is given by its half." [
        ex("fft::hfft2(ones([2, 2]))", "tensor([[4., 0.],\n        [0., 0.]])")
    ];
    IHFFT2 "fft::ihfft2" LastTwo ToHalf false "The inverse of `hfft2`." [
        ex("fft::ihfft2(ones([2, 2])).real", "tensor([[1., 0.],\n        [0., 0.]])")
    ];
    HFFTN "fft::hfftn" All FromHalf true "`hfft` along several dimensions, of which the last is given by its half." [
        ex("fft::hfftn(ones([2, 2]))", "tensor([[4., 0.],\n        [0., 0.]])")
    ];
    IHFFTN "fft::ihfftn" All ToHalf false "The inverse of `hfftn`." [
        ex("fft::ihfftn(ones([2, 2])).real", "tensor([[1., 0.],\n        [0., 0.]])")
    ];
}
