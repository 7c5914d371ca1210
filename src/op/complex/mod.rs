//! Calls with complex operands. Kernels compute real numbers only: each row that takes complex numbers has a rule here
//! that computes the result from real and imaginary parts, by other rows. A row without a rule refuses them.

mod arithmetic;
mod functions;
pub mod linalg;
mod numbers;
mod reductions;
mod rules;

use super::args::{Arg, Args};
use super::emit::Emit;
use super::row::Op;
use super::rows::pointwise::complex::{COMPLEX, PART};
use super::rows::pointwise::complex_parts::CONJ;
use super::tensor::{Meta, Tensor, seen_complex};
use crate::args;
use crate::base::attr::Attr;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, ResultType, Scalar};
use crate::fail;

pub use rules::{is_analytic, rule};

/// Computes the results of a call.
#[derive(Clone, Copy)]
pub enum Forward {
    One(fn(&mut dyn Emit, &'static Op, &Args) -> Result<Tensor>),
    All(fn(&mut dyn Emit, &'static Op, &Args) -> Result<Vec<Tensor>>),
}

impl Forward {
    pub fn run(self, e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
        match self {
            Forward::One(compute) => Ok(vec![compute(e, op, args)?]),
            Forward::All(compute) => compute(e, op, args),
        }
    }
}

/// How a row takes complex operands.
#[derive(Clone, Copy)]
pub enum Rule {
    /// As it is: it moves elements, or is written with rows that have rules of their own.
    Plain,
    /// Once for the real parts of the arguments at these positions, and once for the imaginary parts: a real-linear
    /// function.
    Parts(&'static [usize]),
    /// With other rows, which bring the gradient.
    Compose(Forward),
    /// An analytic function; its gradient is the row's, conjugated.
    Analytic(Forward),
    /// The row's own gradient is right as it is.
    Tracked(Forward),
}

/// Whether a call has complex operands or is asked for a complex result.
#[inline]
pub fn involved(args: &Args) -> bool {
    let asked = |arg: &Arg| matches!(arg, Arg::Attr(Attr::DType(dtype)) if dtype.is_complex());
    if args.0.iter().any(asked) {
        return true;
    }
    seen_complex() && any_complex(args)
}

fn any_complex(args: &Args) -> bool {
    let mut any = false;
    args.for_each_tensor(|tensor| any |= tensor.dtype().is_complex());
    any
}

#[cold]
pub fn refused(name: &str) -> Box<Diag> {
    let of = if name.is_empty() { String::new() } else { format!(" by `{name}`") };
    Diag::error(code::DTYPE, format!("complex numbers are not supported{of}"))
        .help("work on the parts, `z.real` and `z.imag`, on `z.abs()`, or on `view_as_real(z)`")
}

#[cold]
pub fn loses_imaginary(to: DType) -> Box<Diag> {
    Diag::error(code::DTYPE, format!("a complex tensor cannot become {to}: its imaginary part would be lost"))
        .help("take the part that is meant first: `z.real`, `z.imag` or `z.abs()`")
}

/// The conjugates of those that are complex.
pub fn conjugate(e: &mut dyn Emit, tensors: &mut [Option<Tensor>]) -> Result<()> {
    for tensor in tensors.iter_mut().flatten().filter(|tensor| tensor.dtype().is_complex()) {
        *tensor = e.call(&CONJ, args![&*tensor])?;
    }
    Ok(())
}

/// Real and imaginary parts.
pub(super) struct Z {
    pub re: Tensor,
    pub im: Tensor,
    /// The imaginary part is 0 because the operand is real.
    pub is_real: bool,
}

pub(super) fn part(e: &mut dyn Emit, z: &Tensor, which: i64) -> Result<Tensor> {
    e.call(&PART, args![z, which])
}

pub(super) fn join(e: &mut dyn Emit, parts: [Tensor; 2]) -> Result<Tensor> {
    let [re, im] = parts;
    e.call(&COMPLEX, args![re, im])
}

/// The parts of an operand, of dtype `real`; `like` says on which device numbers lie.
pub(super) fn parts(e: &mut dyn Emit, arg: &Arg, real: DType, like: &Meta) -> Result<Z> {
    let constant = |e: &mut dyn Emit, value: Scalar| {
        e.full(&[], value, &Meta { shape: Default::default(), dtype: real, device: like.device })
    };
    match arg {
        Arg::Tensor(z) if z.dtype().is_complex() => {
            let (re, im) = (part(e, z, 0)?, part(e, z, 1)?);
            Ok(Z { re: e.cast(&re, real)?, im: e.cast(&im, real)?, is_real: false })
        }
        Arg::Tensor(x) => Ok(Z { re: e.cast(x, real)?, im: constant(e, Scalar::Int(0))?, is_real: true }),
        other => match other.scalar() {
            Some(value) => Ok(Z { re: constant(e, value)?, im: constant(e, Scalar::Int(0))?, is_real: true }),
            None => fail!(ARGUMENT_TYPE, "an operand is neither a tensor nor a number"),
        },
    }
}

/// Applies a real-linear row to the real parts and to the imaginary parts of the arguments at these positions.
pub fn by_parts(e: &mut dyn Emit, op: &'static Op, args: &Args, at: &[usize]) -> Result<Vec<Tensor>> {
    rules::check_written(op, args, at)?;
    let mut real = if rules::is_replaced(op) { args.input().dtype().real_part() } else { real_of(e, args, at) };
    for (place, arg) in args.0.iter().enumerate() {
        let mut complex = false;
        arg.for_each_tensor(&mut |tensor: &Tensor| complex |= tensor.dtype().is_complex());
        match arg {
            Arg::Attr(Attr::DType(dtype)) if dtype.is_complex() => real = dtype.real_part(),
            Arg::Attr(Attr::DType(dtype)) => return Err(loses_imaginary(*dtype)),
            _ if complex && !at.contains(&place) => return Err(refused(op.name)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for which in 0..2 {
        let mut parts = args.clone();
        for (place, arg) in parts.0.iter_mut().enumerate() {
            *arg = match std::mem::replace(arg, Arg::None) {
                Arg::Attr(Attr::DType(_)) => real.into(),
                Arg::Tensor(x) if at.contains(&place) => part_of(e, &x, which, real)?.into(),
                Arg::Tensors(list) if at.contains(&place) => {
                    Arg::Tensors(list.iter().map(|x| part_of(e, x, which, real)).collect::<Result<_>>()?)
                }
                other if at.contains(&place) && which == 1 && other.scalar().is_some() => Scalar::Int(0).into(),
                other => other,
            };
        }
        found.push(e.apply(op, parts)?);
    }
    let (im, re) = (found.pop().unwrap_or_default(), found.pop().unwrap_or_default());
    re.into_iter().zip(im).map(|(re, im)| join(e, [re, im])).collect()
}

/// The dtype of the parts of what the arguments at these positions promote to.
fn real_of(e: &dyn Emit, args: &Args, at: &[usize]) -> DType {
    let mut all = ResultType::default();
    for arg in at.iter().map(|&place| args.get(place)) {
        arg.for_each_tensor(&mut |tensor: &Tensor| all.tensor(tensor.dtype(), tensor.ndim()));
        if let Some(number) = arg.scalar() {
            all.number(number);
        }
    }
    all.get(e.default_float()).real_part()
}

fn part_of(e: &mut dyn Emit, x: &Tensor, which: i64, real: DType) -> Result<Tensor> {
    match (x.dtype().is_complex(), which) {
        (true, _) => {
            let part = part(e, x, which)?;
            e.cast(&part, real)
        }
        (false, 0) => e.cast(x, real),
        (false, _) => e.zeros_like(&Meta { dtype: real, ..Meta::of(x) }),
    }
}
