//! Random values, masks of dropout, sampling. The generator's rules are in `base::rng`.

use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout;
use crate::fail;
use crate::kernel::program::Draw;
use crate::kernel::random as sampling;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Source, ex};
use crate::op::rows::creation::create::leaf;
use crate::op::rows::pointwise::compare::LT;
use crate::op::rows::pointwise::complex::VIEW_AS_COMPLEX;
use crate::op::rows::pointwise::unary::{CEIL, EXP, FLOOR, LOG1P, TAN};
use crate::op::rows::pointwise::value_checks::{DEVIATION, PROBABILITY};
use crate::op::tensor::Tensor;
use crate::signature;

fn draws(dtype: DType) -> Result<()> {
    if dtype.is_complex() { Ok(()) } else { float_type(dtype) }
}

/// A complex tensor from a real one whose last dimension holds the parts.
fn paired(e: &mut dyn Emit, make: Maker, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
    let shape: Vec<usize> = shape.iter().copied().chain([2]).collect();
    let pairs = make(e, &shape, dtype.real_part(), device)?;
    e.call(&VIEW_AS_COMPLEX, args![&pairs])
}

fn float_type(dtype: DType) -> Result<()> {
    if !dtype.is_float() {
        fail!(DTYPE, "a floating-point dtype is expected, not {dtype}");
    }
    Ok(())
}

fn draw(e: &mut dyn Emit, draw: Draw, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
    infer::size_bytes(shape, dtype)?;
    let (seed, offset) = e.draw(layout::numel(shape).unwrap_or(0) as u64);
    e.source(Source::Random { draw, seed, offset }, shape, dtype, device)
}

/// Uniform in [0, 1). 16-bit types get as many bits as they have, so that none rounds up to 1.
fn uniform(e: &mut dyn Emit, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
    if dtype.is_complex() {
        return paired(e, uniform, shape, dtype, device);
    }
    let levels = match dtype {
        DType::F16 => 2048.0,
        DType::BF16 => 256.0,
        _ => return draw(e, Draw::Uniform, shape, dtype, device),
    };
    let fine = draw(e, Draw::Uniform, shape, DType::F32, device)?;
    let scaled = e.mul(&fine, levels)?;
    let whole = e.call(&FLOOR, args![&scaled])?;
    let coarse = e.mul(&whole, 1.0 / levels)?;
    e.cast(&coarse, dtype)
}

/// Complex values have a variance of 1, half of it in each part.
fn normal(e: &mut dyn Emit, shape: &[usize], dtype: DType, device: DeviceId) -> Result<Tensor> {
    if dtype.is_complex() {
        let unit = paired(e, normal, shape, dtype, device)?;
        return e.mul(&unit, std::f64::consts::FRAC_1_SQRT_2);
    }
    draw(e, Draw::Normal, shape, dtype, device)
}

/// Uniform in [low, high).
pub fn between(
    e: &mut dyn Emit,
    shape: &[usize],
    dtype: DType,
    device: DeviceId,
    low: f64,
    high: f64,
) -> Result<Tensor> {
    let unit = uniform(e, shape, dtype, device)?;
    if (low, high) == (0.0, 1.0) {
        return Ok(unit);
    }
    let scaled = e.mul(&unit, high - low)?;
    e.add(&scaled, low)
}

/// Integers of [low, high) as i64, cast to `dtype`.
fn integers(e: &mut dyn Emit, shape: &[usize], dtype: DType, device: DeviceId, low: i64, high: i64) -> Result<Tensor> {
    if low >= high {
        fail!(VALUE, "there is no integer from {low} up to but not with {high}");
    }
    if dtype.int_range().is_some_and(|(least, most)| low < least || high - 1 > most) {
        fail!(VALUE, "{dtype} does not hold all of {low} to {}", high - 1);
    }
    infer::size_bytes(shape, DType::I64)?;
    let (seed, offset) = e.draw(layout::numel(shape).unwrap_or(0) as u64);
    let source = Source::Integers { seed, offset, low, range: high.wrapping_sub(low) as u64 };
    let drawn = e.source(source, shape, DType::I64, device)?;
    e.cast(&drawn, dtype)
}

type Maker = fn(&mut dyn Emit, &[usize], DType, DeviceId) -> Result<Tensor>;

/// A new float tensor from arguments `size, dtype, device, requires_grad`.
fn new(e: &mut dyn Emit, a: &Args, make: Maker) -> Result<Vec<Tensor>> {
    let shape = infer::shape(&a.ints(rand::size).unwrap_or_default())?;
    let dtype = a.dtype(rand::dtype).unwrap_or_else(|| e.default_float());
    draws(dtype)?;
    let device = a.device(rand::device).unwrap_or_else(|| e.default_device());
    let tensor = make(e, &shape, dtype, device)?;
    leaf(a, 3, tensor)
}

/// The same after the fashion of a tensor: `input, dtype, device, requires_grad`.
fn new_like(e: &mut dyn Emit, a: &Args, make: Maker) -> Result<Vec<Tensor>> {
    let x = a.input();
    let dtype = a.dtype(rand_like::dtype).unwrap_or(x.dtype());
    draws(dtype)?;
    let device = a.device(rand_like::device).unwrap_or(x.device());
    let tensor = make(e, &x.shape(), dtype, device)?;
    leaf(a, 3, tensor)
}

signature!(rand(
    size: Sizes, dtype: DType = None, device: Device = None, requires_grad: Bool = false, generator: Ignored = None,
));

pub static RAND: Op = Op {
    name: "rand",
    params: rand::PARAMS,
    summary: "Uniform values of [0, 1).",
    examples: &[
        ex("manual_seed(0); rand([1000]).min() >= 0", "tensor(true)"),
        ex("rand([2], #{dtype: \"i64\"})", "E0202"),
        ex("rand([-1])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| new(e, a, uniform)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static RANDN: Op = Op {
    name: "randn",
    params: rand::PARAMS,
    summary: "Values of the standard normal distribution.",
    examples: &[
        ex("randn([2, 3]).shape == [2, 3]", "true"),
        ex("randn([2], #{dtype: \"i64\"})", "E0202"),
        ex("randn([-1])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| new(e, a, normal)),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(rand_like(
    input: Tensor, dtype: DType = None, device: Device = None, requires_grad: Bool = false,
    generator: Ignored = None,
));

pub static RAND_LIKE: Op = Op {
    name: "rand_like",
    params: rand_like::PARAMS,
    summary: "Uniform values of [0, 1) with the shape, dtype and device of another tensor.",
    examples: &[ex("rand_like(ones([2])).shape == [2]", "true"), ex("rand_like(tensor([1]))", "E0202")],
    lower: Lower::Compose(|e, a| new_like(e, a, uniform)),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static RANDN_LIKE: Op = Op {
    name: "randn_like",
    params: rand_like::PARAMS,
    summary: "Normal values with the shape, dtype and device of another tensor.",
    examples: &[ex("randn_like(ones([2])).shape == [2]", "true"), ex("randn_like(tensor([1]))", "E0202")],
    lower: Lower::Compose(|e, a| new_like(e, a, normal)),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(randint(
    low: Ints = None, high: Ints = None, size: Sizes = None, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false, generator: Ignored = None,
));

pub static RANDINT: Op = Op {
    name: "randint",
    params: randint::PARAMS,
    summary: "Integers from `low` (0) up to but not with `high`: `randint(low, high, size)` or `randint(high, size)`.",
    examples: &[
        ex("randint(3, 4, [2])", "tensor([3, 3])"),
        ex("randint(1, [2, 2]).sum()", "tensor(0)"),
        ex("randint(5, 5, [2])", "E0206"),
        ex("randint(5)", "E0205"),
    ],
    lower: Lower::Compose(|e, a| {
        let (first, second, third) = (a.ints(randint::low), a.ints(randint::high), a.ints(randint::size));
        // `randint(high, size)`: what was given shifts by one place.
        let (low, high, size) = match (first, second, third) {
            (Some(low), Some(high), Some(size)) => (low[..].first().copied(), high[..].first().copied(), size),
            (Some(high), None, Some(size)) | (None, Some(high), Some(size)) | (Some(high), Some(size), None) => {
                (Some(0), high[..].first().copied(), size)
            }
            _ => {
                return Err(Diag::error(code::MISSING_ARGUMENT, "`high` and `size` are expected")
                    .help("write `randint(0, 10, [2, 3])`, or `randint(10, [2, 3])`"));
            }
        };
        let (Some(low), Some(high)) = (low, high) else { fail!(ARGUMENT_TYPE, "the bounds are integers") };
        let shape = infer::shape(&size)?;
        let device = a.device(randint::device).unwrap_or_else(|| e.default_device());
        let tensor = integers(e, &shape, a.dtype(randint::dtype).unwrap_or(DType::I64), device, low, high)?;
        leaf(a, 5, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(randint_like(
    input: Tensor, low: Int = None, high: Int = None, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false,
));

pub static RANDINT_LIKE: Op = Op {
    name: "randint_like",
    params: randint_like::PARAMS,
    summary: "Random integers with the shape, dtype and device of another tensor.",
    examples: &[
        ex("randint_like(zeros([2]), 3, 4)", "tensor([3., 3.])"),
        ex("randint_like(zeros([2]), 3, 3)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let (low, high) = match (a.opt_int(randint_like::low), a.opt_int(randint_like::high)) {
            (Some(low), Some(high)) => (low, high),
            (Some(high), None) | (None, Some(high)) => (0, high),
            _ => fail!(MISSING_ARGUMENT, "`high` is missing"),
        };
        let device = a.device(randint_like::device).unwrap_or(x.device());
        let tensor = integers(e, &x.shape(), a.dtype(randint_like::dtype).unwrap_or(x.dtype()), device, low, high)?;
        leaf(a, 5, tensor)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(randperm(
    n: Int, dtype: DType = None, device: Device = None, requires_grad: Bool = false, generator: Ignored = None,
));

pub static RANDPERM: Op = Op {
    name: "randperm",
    params: randperm::PARAMS,
    summary: "The integers 0 to n - 1 in random order.",
    examples: &[
        ex("randperm(10).sum()", "tensor(45)"),
        ex("randperm(-1)", "E0206"),
        ex("randperm(300, #{dtype: \"u8\"})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let n = a.int(randperm::n);
        let shape = infer::shape(&[n])?;
        let dtype = a.dtype(randperm::dtype).unwrap_or(DType::I64);
        if dtype == DType::Bool {
            fail!(DTYPE, "`bool` does not hold an order");
        }
        if dtype.int_range().is_some_and(|(_, most)| n - 1 > most) {
            fail!(VALUE, "{dtype} does not hold all of 0 to {}", n - 1);
        }
        let device = a.device(randperm::device).unwrap_or_else(|| e.default_device());
        let mut call = KernelCall::new("randperm", &sampling::RANDPERM).output(&shape, dtype).draws(n as u64);
        call.device = Some(device);
        let tensor = e.kernel(call)?.swap_remove(0);
        leaf(a, 3, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(moved(input: Tensor, mean: Operand, std: Operand));

/// Normal values with given means and deviations, whose gradients are 0 as in PyTorch.
static MOVED: Op = Op {
    name: "normal",
    params: moved::PARAMS,
    summary: "mean + std · input.",
    lower: Lower::Steps(|e, a| {
        let std = match a.opt_tensor(moved::std) {
            Some(std) => {
                let std = e.cast(std, a.input().dtype())?;
                Arg::from(&e.call(&DEVIATION, args![&std])?)
            }
            None => a.get(moved::std).clone(),
        };
        let scaled = e.mul(a.input(), std)?;
        Ok(vec![e.add(&scaled, a.get(moved::mean).clone())?])
    }),
    grad: Grad::Rule(crate::op::rows::pointwise::arith::ZERO),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(normal(
    mean: Operand = 0.0, std: Operand = 1.0, size: Sizes = None, dtype: DType = None, device: Device = None,
    requires_grad: Bool = false, generator: Ignored = None,
));

pub static NORMAL: Op = Op {
    name: "normal",
    params: normal::PARAMS,
    summary: "Normal values; `mean` and `std` are numbers (with `size`) or tensors.",
    examples: &[
        ex("normal(3.0, 0.0, [2])", "tensor([3., 3.])"),
        ex("normal(tensor([1.0, 2.0]), 0.0)", "tensor([1., 2.])"),
        ex("normal(0.0, -1.0, [2])", "E0206"),
        ex("normal(0.0, 1.0)", "E0205"),
        ex("normal(tensor([1]), 1.0)", "E0202"),
        ex("normal(zeros([2]), tensor([1.0, -1.0]))", "E0411"),
        ex("normal(tensor([1.0, 2.0]), tensor([0, 0]))", "tensor([1., 2.])"),
    ],
    lower: Lower::Compose(|e, a| {
        let tensors: Vec<Tensor> = a.tensors().into_iter().collect();
        if a.opt_tensor(normal::std).is_none() && (a.float(normal::std) < 0.0 || a.float(normal::std).is_nan()) {
            fail!(VALUE, "`std` must not be negative, but is {}", a.float(normal::std));
        }
        let (shape, dtype, device) = match tensors.first() {
            None if a.is_none(normal::size) => fail!(MISSING_ARGUMENT, "argument `size` is missing"),
            None => (
                infer::shape(&a.ints(normal::size).unwrap_or_default())?,
                a.dtype(normal::dtype).unwrap_or_else(|| e.default_float()),
                a.device(normal::device).unwrap_or_else(|| e.default_device()),
            ),
            Some(first) => {
                let shapes: Vec<_> = tensors.iter().map(Tensor::shape).collect();
                let shape = infer::broadcast_all(shapes.iter().map(|shape| shape.as_slice()))?;
                (shape, first.dtype(), first.device())
            }
        };
        float_type(dtype)?;
        let unit = normal(e, &shape, dtype, device)?;
        let tensor = e.one(&MOVED, args![&unit, a.get(normal::mean).clone(), a.get(normal::std).clone()])?;
        leaf(a, 5, tensor)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

fn check_probability(p: f64) -> Result<()> {
    if !(0.0..=1.0).contains(&p) {
        fail!(VALUE, "a probability lies between 0 and 1; {p} does not");
    }
    Ok(())
}

/// Ones with probability `p`, as `bool`. Drawn in the dtype of `p`, or f32.
fn trials(e: &mut dyn Emit, p: &Arg, shape: &[usize], device: DeviceId) -> Result<Tensor> {
    match p {
        Arg::Tensor(p) => {
            float_type(p.dtype())?;
            let wide = if p.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
            let unit = draw(e, Draw::Uniform, shape, wide, device)?;
            // After the draw: what fails late has drawn, also where the fault ends the call.
            let p = e.call(&PROBABILITY, args![p])?;
            let p = e.cast(&p, wide)?;
            e.call(&LT, args![&unit, &p])
        }
        other => {
            let p = Args(smallvec::smallvec![other.clone()]).float(0);
            check_probability(p)?;
            let unit = draw(e, Draw::Uniform, shape, DType::F32, device)?;
            e.call(&LT, args![&unit, p])
        }
    }
}

signature!(bernoulli(input: Tensor, p: Float = None, generator: Ignored = None));

pub static BERNOULLI: Op = Op {
    name: "bernoulli",
    params: bernoulli::PARAMS,
    summary: "1 with the probability that each element gives (or `p`), else 0.",
    examples: &[
        ex("bernoulli(tensor([0.0, 1.0]))", "tensor([0., 1.])"),
        ex("bernoulli(ones([2]), 2.0)", "E0206"),
        ex("bernoulli(tensor([1]))", "E0202"),
        ex("bernoulli(tensor([0.5, 1.5]))", "E0403"),
    ],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let p = match a.opt_float(bernoulli::p) {
            Some(p) => Arg::from(p),
            None => Arg::from(x),
        };
        let drawn = trials(e, &p, &x.shape(), x.device())?;
        Ok(vec![e.cast(&drawn, x.dtype())?])
    }),
    grad: Grad::Rule(crate::op::rows::pointwise::arith::ZERO),
    ..Op::BASE
};

signature!(bernoulli_(input: Tensor, p: Operand = 0.5, generator: Ignored = None));

pub static BERNOULLI_: Op = Op {
    name: "bernoulli",
    params: bernoulli_::PARAMS,
    summary: "Overwrites with 1 with probability `p` (a number or a tensor), else 0.",
    examples: &[ex("zeros([2]).bernoulli_(1.0)", "tensor([1., 1.])"), ex("zeros([2]).bernoulli_(2.0)", "E0206")],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let drawn = trials(e, a.get(bernoulli_::p), &x.shape(), x.device())?;
        Ok(vec![e.cast(&drawn, x.dtype())?])
    }),
    grad: Grad::Rule(crate::op::rows::pointwise::arith::ZERO),
    inplace: true,
    call: CallForm::InPlace,
    ..Op::BASE
};

signature!(multinomial_args(input: Tensor, num_samples: Int, replacement: Bool = false, generator: Ignored = None));

pub static MULTINOMIAL: Op = Op {
    name: "multinomial",
    params: multinomial_args::PARAMS,
    summary: "Draws indices with the (unnormalized) probabilities of each row.",
    details: "Negative or non-finite probabilities, a row that sums to 0, and fewer positive ones than samples \
              without replacement are late errors.",
    examples: &[
        ex("multinomial(tensor([0.0, 1.0]), 3, true)", "tensor([1, 1, 1])"),
        ex("multinomial(ones([2]), 3)", "E0206"),
        ex("multinomial(ones([2]), 0)", "E0206"),
        ex("multinomial(tensor([1, 2]), 1)", "E0202"),
        ex("multinomial(ones([1, 2, 3]), 1)", "E0201"),
        ex("multinomial(tensor([-1.0, 1.0]), 1)", "E0403"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, samples, replacement) =
            (a.input(), a.int(multinomial_args::num_samples), a.flag(multinomial_args::replacement));
        float_type(x.dtype())?;
        let shape = x.shape();
        if shape.is_empty() || shape.len() > 2 {
            fail!(SHAPE, "probabilities are a vector or a matrix, not a tensor of shape {:?}", shape.as_slice());
        }
        let categories = shape[shape.len() - 1];
        if samples <= 0 {
            fail!(VALUE, "`num_samples` must be positive, but is {samples}");
        }
        if !replacement && samples as u64 > categories as u64 {
            fail!(VALUE, "{samples} samples without replacement from {categories} categories");
        }
        if categories >= 1 << 24 {
            fail!(VALUE, "{categories} categories are more than the 2^24 that can be drawn from");
        }
        let mut out = shape.clone();
        let rows: usize = shape[..shape.len() - 1].iter().product();
        let last = out.len() - 1;
        out[last] = samples as usize;
        let draws = rows as u64 * if replacement || samples == 1 { samples as u64 } else { categories as u64 };
        Ok(KernelCall::new("multinomial", &sampling::MULTINOMIAL)
            .input(x)
            .flag(replacement)
            .output(&out, DType::I64)
            .draws(draws))
    }),
    grad: Grad::Stop("indices have no gradient"),
    ..Op::BASE
};

signature!(normal_into(input: Tensor, mean: Float = 0.0, std: Float = 1.0, generator: Ignored = None));
signature!(log_normal(input: Tensor, mean: Float = 1.0, std: Float = 2.0, generator: Ignored = None));
signature!(uniform_into(input: Tensor, from: Float = 0.0, to: Float = 1.0, generator: Ignored = None));
signature!(exponential(input: Tensor, lambd: Float = 1.0, generator: Ignored = None));
signature!(geometric(input: Tensor, p: Float, generator: Ignored = None));
signature!(cauchy(input: Tensor, median: Float = 0.0, sigma: Float = 1.0, generator: Ignored = None));
signature!(random(input: Tensor, from: Int = None, to: Int = None, generator: Ignored = None));

/// In-place draws: name, signature, summary, examples, the maker.
macro_rules! inplace {
    ($($NAME:ident $name:literal $list:ident $summary:literal [$($code:literal => $result:literal),*] $make:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: $list::PARAMS,
            summary: $summary,
            examples: &[$(ex($code, $result)),*],
            lower: Lower::Steps(|e, a| {
                let make: fn(&mut dyn Emit, &Args, &Tensor) -> Result<Tensor> = $make;
                Ok(vec![make(e, a, a.input())?])
            }),
            grad: Grad::Rule(crate::op::rows::pointwise::arith::ZERO),
            inplace: true,
            call: CallForm::InPlace,
            ..Op::BASE
        };)*
    };
}

/// ln(1 - u), which is finite.
fn log_uniform(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    float_type(x.dtype())?;
    let wide = x.dtype().compute();
    let unit = draw(e, Draw::Uniform, &x.shape(), wide, x.device())?;
    let negative = e.neg(&unit)?;
    e.call(&LOG1P, args![&negative])
}

/// Normal values in the dtype that `x` computes in.
fn gaussian(e: &mut dyn Emit, a: &Args, x: &Tensor) -> Result<Tensor> {
    float_type(x.dtype())?;
    let (mean, std) = (a.float(normal_into::mean), a.float(normal_into::std));
    if std < 0.0 || std.is_nan() {
        fail!(VALUE, "`std` must not be negative, but is {std}");
    }
    let unit = normal(e, &x.shape(), x.dtype().compute(), x.device())?;
    let scaled = if std == 1.0 { unit } else { e.mul(&unit, std)? };
    if mean == 0.0 { Ok(scaled) } else { e.add(&scaled, mean) }
}

inplace! {
    NORMAL_ "normal" normal_into "Overwrites with normal values."
        ["zeros([2]).normal_(3.0, 0.0)" => "tensor([3., 3.])", "zeros([2]).normal_(0.0, -1.0)" => "E0206",
         "tensor([1]).normal_()" => "E0202"]
        |e, a, x| { let drawn = gaussian(e, a, x)?; e.cast(&drawn, x.dtype()) };
    LOG_NORMAL_ "log_normal" log_normal "Overwrites with e to the power of normal values."
        ["zeros([2]).log_normal_().shape" => "[2]", "zeros([2]).log_normal_(0.0, 0.0)" => "E0206"]
        |e, a, x| {
            if a.float(log_normal::std) <= 0.0 {
                fail!(VALUE, "`std` must be positive, not {}", a.float(log_normal::std));
            }
            let drawn = gaussian(e, a, x)?;
            let grown = e.call(&EXP, args![&drawn])?;
            e.cast(&grown, x.dtype())
        };
    UNIFORM_ "uniform" uniform_into "Overwrites with uniform values of [from, to)."
        ["zeros([2]).uniform_(3.0, 3.0)" => "tensor([3., 3.])", "zeros([2]).uniform_(1.0, 0.0)" => "E0206",
         "tensor([1]).uniform_()" => "E0202"]
        |e, a, x| {
            float_type(x.dtype())?;
            let (low, high) = (a.float(uniform_into::from), a.float(uniform_into::to));
            let most = x.dtype().largest();
            if low > high || low.is_nan() || high.is_nan() || low < -most || high > most || high - low > most {
                fail!(VALUE, "from {low} to {high} is no range that {} holds", x.dtype());
            }
            between(e, &x.shape(), x.dtype(), x.device(), low, high)
        };
    EXPONENTIAL_ "exponential" exponential "Overwrites with values of the exponential distribution of rate `lambd`."
        ["zeros([100]).exponential_().min() >= 0" => "tensor(true)", "zeros([2]).exponential_(0.0)" => "E0206"]
        |e, a, x| {
            let rate = a.float(exponential::lambd);
            if rate <= 0.0 || rate.is_nan() {
                fail!(VALUE, "`lambd` must be positive, but is {rate}");
            }
            let log = log_uniform(e, x)?;
            let scaled = e.mul(&log, -1.0 / rate)?;
            e.cast(&scaled, x.dtype())
        };
    GEOMETRIC_ "geometric" geometric "Overwrites with how many trials a success of probability `p` takes."
        ["zeros([2]).geometric_(0.5).min() >= 1" => "tensor(true)", "zeros([2]).geometric_(1.0)" => "E0206"]
        |e, a, x| {
            let p = a.float(geometric::p);
            if !(p > 0.0 && p < 1.0) {
                fail!(VALUE, "`p` must lie between 0 and 1, but is {p}");
            }
            let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
            let unit = draw(e, Draw::Uniform, &x.shape(), wide, x.device())?;
            let negative = e.neg(&unit)?;
            let log = e.call(&LOG1P, args![&negative])?;
            let trials = e.mul(&log, 1.0 / (-p).ln_1p())?;
            let whole = e.call(&CEIL, args![&trials])?;
            // u = 0 counts as a success at once.
            let least = e.call(&crate::op::rows::pointwise::power::MAXIMUM, args![&whole, 1.0])?;
            e.cast(&least, x.dtype())
        };
    CAUCHY_ "cauchy" cauchy "Overwrites with values of the Cauchy distribution."
        ["zeros([2]).cauchy_().shape == [2]" => "true", "zeros([2]).cauchy_(0.0, 0.0)" => "E0206"]
        |e, a, x| {
            float_type(x.dtype())?;
            let (median, sigma) = (a.float(cauchy::median), a.float(cauchy::sigma));
            if sigma <= 0.0 || sigma.is_nan() {
                fail!(VALUE, "`sigma` must be positive, but is {sigma}");
            }
            let unit = draw(e, Draw::Uniform, &x.shape(), x.dtype().compute(), x.device())?;
            let centered = e.sub(&unit, 0.5)?;
            let angle = e.mul(&centered, std::f64::consts::PI)?;
            let slope = e.call(&TAN, args![&angle])?;
            let scaled = e.mul(&slope, sigma)?;
            let moved = e.add(&scaled, median)?;
            e.cast(&moved, x.dtype())
        };
    RANDOM_ "random" random
        "Overwrites with integers: all that the dtype holds, of [0, to), or of [from, to)."
        ["zeros([2]).random_(3, 4)" => "tensor([3., 3.])", "zeros([2]).random_(3, 3)" => "E0206"]
        |e, a, x| {
            let most = match x.dtype() {
                DType::F16 => 1 << 11,
                DType::BF16 => 1 << 8,
                DType::F32 => 1 << 24,
                DType::F64 => 1 << 53,
                other => other.int_range().map_or(i64::MAX, |(_, most)| most),
            };
            // Without bounds the upper end belongs to them.
            let all = if x.dtype() == DType::I64 { i64::MAX } else { most + 1 };
            let (low, high) = match (a.opt_int(random::from), a.opt_int(random::to)) {
                (Some(low), Some(high)) => (low, high),
                (Some(high), None) | (None, Some(high)) => (0, high),
                (None, None) => (0, all),
            };
            integers(e, &x.shape(), x.dtype(), x.device(), low, high)
        };
}

pub static ROWS: &[&Op] = &[
    &RAND,
    &RANDN,
    &RAND_LIKE,
    &RANDN_LIKE,
    &RANDINT,
    &RANDINT_LIKE,
    &RANDPERM,
    &MOVED,
    &NORMAL,
    &BERNOULLI,
    &BERNOULLI_,
    &MULTINOMIAL,
    &NORMAL_,
    &LOG_NORMAL_,
    &UNIFORM_,
    &EXPONENTIAL_,
    &GEOMETRIC_,
    &CAUCHY_,
    &RANDOM_,
];
