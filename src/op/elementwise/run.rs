//! Runs the steps of an element-wise function: each is a call of a row.

use super::params::Declared;
use super::program::{Program, What};
use super::{Elementwise, numbers};
use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::base::quoted::Quoted;
use crate::base::span::Origin;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::infer::{self, Operand};
use crate::op::row::{Kind, Op, Source};
use crate::op::rows::pointwise::arith::MOVE;
use crate::op::rows::pointwise::compare::WHERE;
use crate::op::rows::shape::view::{CLONE, EXPAND};
use crate::op::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A value of a call.
#[derive(Clone, Debug)]
pub enum Value {
    Tensor(Tensor),
    Number(Scalar),
}

impl Value {
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            Value::Number(_) => None,
        }
    }

    fn operand(&self) -> Operand<'_> {
        match self {
            Value::Tensor(tensor) => Operand::of(tensor),
            Value::Number(number) => Operand::Number(*number),
        }
    }

    fn arg(self) -> Arg {
        match self {
            Value::Tensor(tensor) => tensor.into(),
            Value::Number(number) => number.into(),
        }
    }
}

/// What the letters of a call stand for.
type Letters<'a> = SmallVec<[(&'a str, DType); 2]>;

impl Elementwise {
    /// The results for some arguments, one for each input. Without a tensor among them they are numbers.
    pub fn call(&self, e: &mut dyn Emit, given: &[Value]) -> Result<Vec<Value>> {
        let letters = self.checked(given)?;
        let results = run(e, &self.forward, &self.text, given.to_vec(), &letters)?;
        let shapes: Vec<Shape> = given.iter().filter_map(Value::tensor).map(Tensor::shape).collect();
        if shapes.is_empty() {
            return Ok(results.into_iter().flatten().collect());
        }
        let shape = infer::broadcast_all(shapes.iter().map(Shape::as_slice)).map_err(|diag| self.in_call(diag))?;
        let mut made: Vec<Value> = Vec::new();
        for (value, param) in results.into_iter().flatten().zip(&self.params.results) {
            let dtype = dtype_of(&param.declared, &letters);
            let result = finished(e, value, dtype, &shape, given, &made)?;
            made.push(Value::Tensor(result));
        }
        Ok(made)
    }

    /// The gradients of the inputs by the function's own text: of `given`, its results, and what arrived for these.
    pub fn gradients(
        &self,
        e: &mut dyn Emit,
        given: &[Value],
        results: &[Option<Tensor>],
        arrived: &[Tensor],
    ) -> Result<Vec<Option<Tensor>>> {
        let Some(backward) = &self.backward else { fail!(INTERNAL, "the function has no gradient of its own") };
        let letters = self.checked(given)?;
        let mut all = given.to_vec();
        // What the text does not read was not kept.
        let unread = || Value::Number(Scalar::Int(0));
        all.extend(results.iter().map(|result| result.clone().map_or_else(unread, Value::Tensor)));
        all.extend(arrived.iter().cloned().map(Value::Tensor));
        if let [only] = arrived {
            all.push(Value::Tensor(only.clone()));
        }
        let found = run(e, &backward.program, &backward.text, all, &letters)?;
        let mut gradients = Vec::new();
        for (value, input) in found.into_iter().zip(given) {
            gradients.push(match (value, input) {
                (Some(Value::Tensor(g)), Value::Tensor(_)) => Some(g),
                (Some(Value::Number(number)), Value::Tensor(x)) => {
                    Some(e.source(Source::Fill(number), &x.shape(), x.dtype(), x.device())?)
                }
                _ => None,
            });
        }
        Ok(gradients)
    }

    /// The dtypes of the arguments are those that the parameters declare.
    fn checked(&self, given: &[Value]) -> Result<Letters<'_>> {
        let mut letters: Letters<'_> = Letters::new();
        for (value, param) in given.iter().zip(&self.params.inputs) {
            let name = &param.name;
            let wanted = match &param.declared {
                Declared::Any => continue,
                Declared::Of(dtype) => *dtype,
                Declared::Same(letter) => match letters.iter().find(|(known, _)| known == letter) {
                    Some((_, dtype)) => *dtype,
                    None => {
                        if let Value::Tensor(x) = value {
                            letters.push((letter, x.dtype()));
                        }
                        continue;
                    }
                },
            };
            let (fits, found) = match value {
                Value::Tensor(x) => (x.dtype() == wanted, x.dtype().to_string()),
                Value::Number(number) => (number.category() <= wanted.category(), format!("the number {number}")),
            };
            if !fits {
                let diag = Diag::error(code::DTYPE, format!("`{name}` is declared as {wanted}, and is {found}"));
                let diag = diag.help(format!("convert it before the call, `.to(\"{wanted}\")`, or declare no dtype"));
                return Err(in_call(self.params_text.mark(diag, param.range.clone(), "declared here")));
            }
        }
        self.letters_of_numbers(letters)
    }

    /// Letters that only numbers have stand for what PyTorch makes of numbers.
    fn letters_of_numbers<'a>(&'a self, letters: Letters<'a>) -> Result<Letters<'a>> {
        for param in &self.params.results {
            if let Declared::Same(letter) = &param.declared
                && !letters.iter().any(|(known, _)| known == letter)
            {
                let diag =
                    Diag::error(code::DTYPE, format!("no argument says which dtype `{letter}` is: it is a number's"));
                return Err(in_call(self.params_text.mark(diag, param.range.clone(), "declared here")));
            }
        }
        Ok(letters)
    }

    fn in_call(&self, diag: Box<Diag>) -> Box<Diag> {
        in_call(self.params_text.mark(
            diag,
            0..self.params_text.text.len(),
            "the arguments of these do not fit together",
        ))
    }
}

fn in_call(diag: Box<Diag>) -> Box<Diag> {
    if diag.labels.iter().any(|label| label.origin == Origin::NONE) {
        return diag;
    }
    diag.label(Origin::NONE, Focus::Call, "in this call")
}

fn dtype_of(declared: &Declared, letters: &Letters<'_>) -> Option<DType> {
    match declared {
        Declared::Any => None,
        Declared::Of(dtype) => Some(*dtype),
        Declared::Same(letter) => letters.iter().find(|(known, _)| known == letter).map(|(_, dtype)| *dtype),
    }
}

/// The results of a program. A value goes as soon as no later step uses it, so that it needs no memory.
fn run(
    e: &mut dyn Emit,
    program: &Program,
    text: &Quoted,
    given: Vec<Value>,
    letters: &Letters<'_>,
) -> Result<Vec<Option<Value>>> {
    let last = program.last_uses();
    let mut given: Vec<Option<Value>> = given.into_iter().map(Some).collect();
    let mut values: Vec<Option<Value>> = Vec::with_capacity(program.steps.len());
    for (at, step) in program.steps.iter().enumerate() {
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        for &used in &step.args {
            args.push(values[used].clone().expect("a step uses values that are kept for it"));
        }
        for &used in step.args.iter().filter(|&&used| last[used] == at) {
            values[used] = None;
        }
        let value = match step.what {
            What::Given(n) => Ok(given[n].take().expect("each given value is one step")),
            What::Number(number) => Ok(Value::Number(number)),
            What::Row(op) => applied(e, op, args),
            What::Cast(to) => cast(e, &args[0], dtype_of(&program.dtypes[to], letters)),
            What::Choose => chosen(e, args),
        };
        let placed = |diag: Box<Diag>| match diag.is_late {
            true => diag,
            false => in_call(text.mark(helped(diag, step.what), step.range.clone(), "in this operation")),
        };
        let value = value.map_err(placed)?;
        values.push((last[at] != at).then_some(value));
    }
    Ok(program.results.iter().map(|result| values[(*result)?].clone()).collect())
}

/// The advice of these operators' rows is about the language's own precedence.
#[cold]
fn helped(diag: Box<Diag>, what: What) -> Box<Diag> {
    match what {
        What::Row(op) if matches!(op.operator, "&" | "|" | "^") && diag.help.is_some() => {
            diag.help("`&`, `|` and `^` are for bits; logic is `&&` and `||`, and a power `x ** 2`")
        }
        _ => diag,
    }
}

/// One operation. Numbers stand where a row takes tensors as tensors without dimensions, which promote as they do.
fn applied(e: &mut dyn Emit, op: &'static Op, args: SmallVec<[Value; 4]>) -> Result<Value> {
    let known: Option<SmallVec<[Scalar; 4]>> = args
        .iter()
        .map(|value| match value {
            Value::Number(number) => Some(*number),
            Value::Tensor(_) => None,
        })
        .collect();
    if let Some(known) = known {
        return match numbers::value(op, &known) {
            Some(value) => value.map(Value::Number),
            None => of_numbers(e, op, &known),
        };
    }
    let dtype = {
        let operands: SmallVec<[Operand<'_>; 4]> = args.iter().map(Value::operand).collect();
        infer::result_type(&operands, e.default_float())
    };
    let device = args.iter().filter_map(Value::tensor).map(Tensor::device).next().unwrap_or(DeviceId::Cpu);
    let mut list = Args::default();
    for (value, param) in args.into_iter().zip(op.params) {
        list.0.push(match (value, param.kind) {
            (Value::Number(number), Kind::Tensor) => e.source(Source::Fill(number), &[], dtype, device)?.into(),
            (Value::Tensor(_), Kind::Number | Kind::Float | Kind::Int) => {
                fail!(ARGUMENT_TYPE, "`{}` of `{}` is a number, not a tensor", param.name, op.name)
            }
            (Value::Number(number), Kind::Float) => number.to_f64().into(),
            (Value::Number(Scalar::Float(x)), Kind::Int) if x.fract() != 0.0 => {
                fail!(ARGUMENT_TYPE, "`{}` of `{}` is an integer, not {x}", param.name, op.name)
            }
            (Value::Number(number), Kind::Int) => number.to_i64().into(),
            (value, _) => value.arg(),
        });
    }
    e.one(op, list).map(Value::Tensor)
}

/// A composed row of numbers alone: computed by tensors in 64 bits, and read.
fn of_numbers(e: &mut dyn Emit, op: &'static Op, known: &[Scalar]) -> Result<Value> {
    let mut args: SmallVec<[Value; 4]> = SmallVec::new();
    for (at, &number) in known.iter().enumerate() {
        let dtype = match number {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
        };
        args.push(match at {
            0 => Value::Tensor(e.source(Source::Fill(number), &[], dtype, DeviceId::Cpu)?),
            _ => Value::Number(number),
        });
    }
    let Value::Tensor(result) = applied(e, op, args)? else { fail!(INTERNAL, "a row gave a number") };
    let read = e.read(&result)?;
    read.first().copied().map(Value::Number).ok_or_else(|| Diag::error(code::INTERNAL, "a row gave nothing"))
}

fn cast(e: &mut dyn Emit, value: &Value, dtype: Option<DType>) -> Result<Value> {
    let Some(dtype) = dtype else { return Ok(value.clone()) };
    Ok(match value {
        Value::Tensor(tensor) => Value::Tensor(e.cast(tensor, dtype)?),
        Value::Number(number) => Value::Number(match dtype {
            DType::Bool => Scalar::Bool(!number.is_zero()),
            _ if dtype.is_int() => Scalar::Int(dtype.wrap(number.to_i64())),
            // Numbers have 64 bits; those of a narrower dtype round when they meet its tensors.
            _ => Scalar::Float(number.to_f64()),
        }),
    })
}

fn chosen(e: &mut dyn Emit, args: SmallVec<[Value; 4]>) -> Result<Value> {
    let dtype = {
        let operands: SmallVec<[Operand<'_>; 4]> = args[1..].iter().map(Value::operand).collect();
        infer::result_type(&operands, e.default_float())
    };
    if let Value::Number(condition) = args[0] {
        let taken = &args[if condition.is_zero() { 2 } else { 1 }];
        return if taken.tensor().is_some() { cast(e, taken, Some(dtype)) } else { Ok(taken.clone()) };
    }
    let args = Args(args.into_iter().map(Value::arg).collect());
    e.one(&WHERE, args).map(Value::Tensor)
}

/// A result as a tensor of its own, with the shape and the device of all arguments together.
fn finished(
    e: &mut dyn Emit,
    value: Value,
    dtype: Option<DType>,
    shape: &[usize],
    given: &[Value],
    made: &[Value],
) -> Result<Tensor> {
    let tensors = || given.iter().filter_map(Value::tensor);
    let device = tensors().map(Tensor::device).find(|device| *device != DeviceId::Cpu).unwrap_or(DeviceId::Cpu);
    let mut result = match value {
        Value::Number(number) => {
            let mut operands: SmallVec<[Operand<'_>; 4]> = smallvec![Operand::Number(number)];
            operands.extend(given.iter().map(Value::operand));
            let common = infer::result_type(&operands, e.default_float());
            return e.source(Source::Fill(number), shape, dtype.unwrap_or(common), device);
        }
        Value::Tensor(tensor) => tensor,
    };
    if let Some(dtype) = dtype {
        result = e.cast(&result, dtype)?;
    }
    if result.device() != device {
        let (dtype, none) = (result.dtype(), &result);
        result = e.one(&MOVE, args![none, device, dtype])?;
    }
    let mut is_shared = result.shape().as_slice() != shape;
    if is_shared {
        let sizes: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
        result = e.one(&EXPAND, args![&result, sizes.as_slice()])?;
    }
    let buffer = result.view().buffer.clone();
    is_shared |= tensors().chain(made.iter().filter_map(Value::tensor)).any(|x| Arc::ptr_eq(&x.view().buffer, &buffer));
    if is_shared { e.one(&CLONE, args![&result]) } else { Ok(result) }
}
