//! Expressions over tensors, as gradient rules and compositions write them: `-g * result * result`.
//!
//! Each operator applies a row at once. An expression is an index into the sheet of one calculation, so that it is
//! `Copy`; the first error is kept in the sheet, nothing is applied after it, and reading the result returns it.

use super::args::{Arg, Args};
use super::emit::{Backward, Emit};
use super::row::Op;
use super::rows::linalg::matmul::MATMUL;
use super::rows::pointwise::arith::{ADD, CAST, DIV, MUL, NEG, POW, SUB};
use super::rows::pointwise::compare::{EQ, GE, GT, LE, LOGICAL_AND, LOGICAL_OR, LT, WHERE};
use super::rows::pointwise::power::SQUARE;
use super::rows::pointwise::unary::{ABS, COS, COSH, EXP, LOG, LOG1P, RSQRT, SGN, SIGMOID, SIN, SINH, SQRT, TANH};
use super::rows::reduction::reduce::SUM;
use super::rows::shape::copies::{TRIL, TRIU};
use super::rows::shape::join::CAT;
use super::rows::shape::rearrange::{TRANSPOSE, adjoint};
use super::rows::shape::view::{SLICE, UNSQUEEZE};
use super::tensor::Tensor;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;

/// One calculation: its values so far.
struct Sheet<'e> {
    emit: RefCell<&'e mut dyn Emit>,
    backward: Option<&'e Backward<'e>>,
    made: RefCell<SmallVec<[Tensor; 8]>>,
    failed: RefCell<Option<Box<Diag>>>,
}

/// `Sheet` without its lifetime, which may not shrink.
trait Calculate {
    fn apply(&self, op: &'static Op, args: Args) -> Term;
    fn keep(&self, tensor: Tensor) -> Term;
    fn detach(&self, term: Term) -> Term;
    fn make(&self, work: &mut dyn FnMut(&mut dyn Emit) -> Result<Tensor>) -> Term;
    fn fail(&self, diag: Box<Diag>) -> Term;
    fn arg(&self, term: Term) -> Arg;
}

#[derive(Clone, Copy)]
enum Term {
    Made(usize),
    /// The gradient that arrived.
    Gradient,
    /// A saved argument, or the number that was passed instead.
    Argument(usize),
    /// A saved result.
    Result(usize),
    Failed,
}

impl Calculate for Sheet<'_> {
    fn apply(&self, op: &'static Op, args: Args) -> Term {
        if self.failed.borrow().is_some() {
            return Term::Failed;
        }
        let made = self.emit.borrow_mut().one(op, args);
        self.enter(made)
    }

    fn make(&self, work: &mut dyn FnMut(&mut dyn Emit) -> Result<Tensor>) -> Term {
        if self.failed.borrow().is_some() {
            return Term::Failed;
        }
        let made = work(&mut **self.emit.borrow_mut());
        self.enter(made)
    }

    fn fail(&self, diag: Box<Diag>) -> Term {
        self.failed.borrow_mut().get_or_insert(diag);
        Term::Failed
    }

    fn detach(&self, term: Term) -> Term {
        match self.arg(term) {
            Arg::Tensor(tensor) => {
                let alone = self.emit.borrow_mut().detach(&tensor);
                self.keep(alone)
            }
            _ => term,
        }
    }

    fn keep(&self, tensor: Tensor) -> Term {
        let mut made = self.made.borrow_mut();
        made.push(tensor);
        Term::Made(made.len() - 1)
    }

    fn arg(&self, term: Term) -> Arg {
        match (term, self.backward) {
            (Term::Made(at), _) => Arg::Tensor(self.made.borrow()[at].clone()),
            (Term::Gradient, Some(v)) => v.g().into(),
            (Term::Argument(at), Some(v)) => v.operand(at),
            (Term::Result(n), Some(v)) => v.output(n).into(),
            _ => Arg::None,
        }
    }
}

impl<'e> Sheet<'e> {
    fn new(emit: &'e mut dyn Emit, backward: Option<&'e Backward<'e>>) -> Sheet<'e> {
        Sheet { emit: RefCell::new(emit), backward, made: RefCell::default(), failed: RefCell::default() }
    }

    /// The value, or the error.
    fn enter(&self, made: Result<Tensor>) -> Term {
        match made {
            Ok(tensor) => self.keep(tensor),
            Err(diag) => self.fail(diag),
        }
    }

    fn tensor(&self, term: Term) -> Result<Tensor> {
        match self.failed.borrow_mut().take() {
            Some(diag) => Err(diag),
            None => as_tensor(self.arg(term)),
        }
    }

    /// The result of an expression whose terms nobody uses any more.
    fn finish(&self, term: Term) -> Result<Tensor> {
        let tensor = match term {
            Term::Made(at) if at + 1 == self.made.borrow().len() => self.made.borrow_mut().pop(),
            _ => None,
        };
        let result = tensor.map_or_else(|| self.tensor(term), Ok);
        self.made.borrow_mut().clear();
        result
    }
}

fn as_tensor(arg: Arg) -> Result<Tensor> {
    match arg {
        Arg::Tensor(tensor) => Ok(tensor),
        _ => fail!(INTERNAL, "an expression of numbers alone is no tensor"),
    }
}

/// A value of a calculation.
#[derive(Clone, Copy)]
pub struct Expr<'c> {
    sheet: &'c (dyn Calculate + 'c),
    term: Term,
}

/// The other operand of an operator.
pub enum Operand<'c> {
    Expr(Expr<'c>),
    Arg(Arg),
}

impl<'c> From<Expr<'c>> for Operand<'c> {
    fn from(expr: Expr<'c>) -> Operand<'c> {
        Operand::Expr(expr)
    }
}

macro_rules! operands {
    ($($type:ty => |$x:ident| $arg:expr;)*) => { $(
        impl From<$type> for Operand<'_> {
            fn from($x: $type) -> Self { Operand::Arg($arg.into()) }
        }
    )* };
}
operands! {
    f64 => |x| Scalar::Float(x);
    i32 => |x| Scalar::Int(x as i64);
    Scalar => |x| x;
    &Tensor => |x| x;
    Arg => |x| x;
}

impl Operand<'_> {
    fn arg(self) -> Arg {
        match self {
            Operand::Expr(expr) => expr.arg(),
            Operand::Arg(arg) => arg,
        }
    }
}

impl<'c> Expr<'c> {
    /// As an argument of a row.
    pub fn arg(self) -> Arg {
        self.sheet.arg(self.term)
    }

    fn apply(self, op: &'static Op, args: Args) -> Expr<'c> {
        Expr { term: self.sheet.apply(op, args), ..self }
    }

    /// As a tensor, for code that does not use expressions.
    pub fn tensor(self) -> Result<Tensor> {
        as_tensor(self.arg())
    }

    /// The result of a function of tensors. The function must not use expressions.
    pub fn then(self, work: impl FnOnce(&mut dyn Emit, &Tensor) -> Result<Tensor>) -> Expr<'c> {
        Expr { term: make(self.sheet, |e| work(e, &self.tensor()?)), ..self }
    }

    /// A row of one operand.
    pub fn of(self, op: &'static Op) -> Expr<'c> {
        self.apply(op, Args(smallvec![self.arg()]))
    }

    /// A row of two operands, this the first.
    pub fn with(self, op: &'static Op, other: impl Into<Operand<'c>>) -> Expr<'c> {
        self.apply(op, Args(smallvec![self.arg(), other.into().arg()]))
    }

    /// A row of two operands, this the second.
    pub fn behind(self, op: &'static Op, first: impl Into<Operand<'c>>) -> Expr<'c> {
        self.apply(op, Args(smallvec![first.into().arg(), self.arg()]))
    }

    /// A row with this as its first argument and further ones.
    pub fn call(self, op: &'static Op, rest: Args) -> Expr<'c> {
        let mut args = Args(smallvec![self.arg()]);
        args.0.extend(rest.0);
        self.apply(op, args)
    }

    /// Selects one of two values by this condition.
    pub fn choose(self, yes: impl Into<Operand<'c>>, no: impl Into<Operand<'c>>) -> Expr<'c> {
        self.apply(&WHERE, Args(smallvec![self.arg(), yes.into().arg(), no.into().arg()]))
    }

    /// 0 where a condition is true.
    pub fn zero_where(self, condition: Expr<'c>) -> Expr<'c> {
        condition.choose(0, self)
    }

    /// The quotient by a distance, 0 where that is 0; derivatives are finite there, too.
    pub fn over_distance(self, distance: Expr<'c>) -> Expr<'c> {
        let is_none = distance.equals(0);
        (self / is_none.choose(1, distance)).zero_where(is_none)
    }

    /// 0 where a condition is false.
    pub fn zero_unless(self, condition: Expr<'c>) -> Expr<'c> {
        condition.choose(self, 0)
    }

    /// The same value outside the gradient graph.
    pub fn detach(self) -> Expr<'c> {
        Expr { term: self.sheet.detach(self.term), ..self }
    }

    pub fn cast(self, dtype: DType) -> Expr<'c> {
        match self.arg() {
            Arg::Tensor(tensor) if tensor.dtype() == dtype => self,
            _ => self.call(&CAST, Args(smallvec![dtype.into()])),
        }
    }
}

fn make(sheet: &dyn Calculate, work: impl FnOnce(&mut dyn Emit) -> Result<Tensor>) -> Term {
    let mut work = Some(work);
    sheet.make(&mut |e| match work.take() {
        Some(work) => work(e),
        None => fail!(INTERNAL, "an expression is made once"),
    })
}

/// Dimensions and matrices.
impl<'c> Expr<'c> {
    /// The matrices of the last two dimensions, transposed.
    pub fn mt(self) -> Expr<'c> {
        self.call(&TRANSPOSE, args![-2, -1])
    }

    /// Transposed, and conjugated where it is complex.
    pub fn mh(self) -> Expr<'c> {
        self.then(adjoint)
    }

    pub fn triu(self, diagonal: i64) -> Expr<'c> {
        self.call(&TRIU, args![diagonal])
    }

    pub fn tril(self, diagonal: i64) -> Expr<'c> {
        self.call(&TRIL, args![diagonal])
    }

    pub fn unsqueeze(self, dim: i64) -> Expr<'c> {
        self.call(&UNSQUEEZE, args![dim])
    }

    pub fn sum(self, dim: i64) -> Expr<'c> {
        self.call(&SUM, args![dim])
    }

    /// The sum along a dimension, which is kept with size 1.
    pub fn sum_keepdim(self, dim: i64) -> Expr<'c> {
        self.call(&SUM, args![dim, true])
    }

    /// A range of a dimension.
    pub fn slice(self, dim: i64, from: usize, to: usize) -> Expr<'c> {
        self.call(&SLICE, args![dim, from, to, 1])
    }

    /// Concatenates this and another along a dimension.
    pub fn cat(self, other: Expr<'c>, dim: i64) -> Expr<'c> {
        self.then_with(other, |e, x, y| e.call(&CAT, args![vec![x.clone(), y.clone()], dim]))
    }

    /// As `then`, of two.
    pub fn then_with(
        self,
        other: Expr<'c>,
        work: impl FnOnce(&mut dyn Emit, &Tensor, &Tensor) -> Result<Tensor>,
    ) -> Expr<'c> {
        self.then(|e, x| work(e, x, &other.tensor()?))
    }
}

macro_rules! methods {
    ($($name:ident $OP:ident)*) => { impl<'c> Expr<'c> { $(
        pub fn $name(self) -> Expr<'c> { self.of(&$OP) }
    )* } };
    (two $($name:ident $OP:ident)*) => { impl<'c> Expr<'c> { $(
        pub fn $name(self, other: impl Into<Operand<'c>>) -> Expr<'c> { self.with(&$OP, other) }
    )* } };
}
methods! {
    abs ABS  sgn SGN  square SQUARE  sqrt SQRT  rsqrt RSQRT  exp EXP  log LOG  log1p LOG1P  sin SIN  cos COS
    sinh SINH  cosh COSH  tanh TANH  sigmoid SIGMOID
}
methods! { two
    matmul MATMUL  pow POW
    equals EQ  less LT  less_equal LE  greater GT  greater_equal GE  and LOGICAL_AND  or LOGICAL_OR
}

macro_rules! operators {
    ($($Trait:ident $method:ident $OP:ident)*) => { $(
        impl<'c, T: Into<Operand<'c>>> std::ops::$Trait<T> for Expr<'c> {
            type Output = Expr<'c>;

            fn $method(self, other: T) -> Expr<'c> {
                self.with(&$OP, other)
            }
        }

        operators! { @number $Trait $method $OP f64 }
        operators! { @number $Trait $method $OP i32 }
    )* };
    (@number $Trait:ident $method:ident $OP:ident $number:ident) => {
        impl<'c> std::ops::$Trait<Expr<'c>> for $number {
            type Output = Expr<'c>;

            fn $method(self, other: Expr<'c>) -> Expr<'c> {
                other.behind(&$OP, self)
            }
        }
    };
}
operators! { Add add ADD  Sub sub SUB  Mul mul MUL  Div div DIV }

impl<'c> std::ops::Neg for Expr<'c> {
    type Output = Expr<'c>;

    fn neg(self) -> Expr<'c> {
        self.of(&NEG)
    }
}

/// The operands of a composition.
#[derive(Clone, Copy)]
pub struct Calc<'c>(&'c (dyn Calculate + 'c));

impl<'c> Calc<'c> {
    pub fn of(self, tensor: &Tensor) -> Expr<'c> {
        Expr { sheet: self.0, term: self.0.keep(tensor.clone()) }
    }

    /// The single result of a row.
    pub fn call(self, op: &'static Op, args: Args) -> Expr<'c> {
        Expr { sheet: self.0, term: self.0.apply(op, args) }
    }
}

/// The tensor that an expression makes.
pub fn compute(e: &mut dyn Emit, expression: impl for<'c> FnOnce(Calc<'c>) -> Expr<'c>) -> Result<Tensor> {
    let sheet = Sheet::new(e, None);
    let term = expression(Calc(&sheet)).term;
    sheet.tensor(term)
}

/// As `compute`, of several.
pub fn compute_all<const N: usize>(
    e: &mut dyn Emit,
    expressions: impl for<'c> FnOnce(Calc<'c>) -> [Expr<'c>; N],
) -> Result<[Tensor; N]> {
    let sheet = Sheet::new(e, None);
    let made = expressions(Calc(&sheet)).map(|made| made.term);
    let tensors: Vec<Tensor> = made.into_iter().map(|term| sheet.tensor(term)).collect::<Result<_>>()?;
    match <[Tensor; N]>::try_from(tensors) {
        Ok(tensors) => Ok(tensors),
        Err(_) => fail!(INTERNAL, "an expression makes one tensor"),
    }
}

/// The environment of a gradient expression. Reading an argument or result here requires that the row saves it.
#[derive(Clone, Copy)]
pub struct Terms<'c> {
    /// The gradient that arrived.
    pub g: Expr<'c>,
    /// The first argument.
    pub input: Expr<'c>,
    /// The second argument.
    pub other: Expr<'c>,
    /// The one result.
    pub result: Expr<'c>,
    sheet: &'c (dyn Calculate + 'c),
    backward: &'c Backward<'c>,
}

impl<'c> Terms<'c> {
    fn new(sheet: &'c Sheet<'c>, backward: &'c Backward<'c>) -> Terms<'c> {
        let expr = |term| Expr { sheet, term };
        let (input, other) = (expr(Term::Argument(0)), expr(Term::Argument(1)));
        Terms { g: expr(Term::Gradient), input, other, result: expr(Term::Result(0)), sheet, backward }
    }

    /// An argument.
    pub fn arg(self, at: usize) -> Expr<'c> {
        Expr { term: Term::Argument(at), ..self.g }
    }

    /// The gradient of one of several results, if one arrived.
    pub fn grad(self, n: usize) -> Option<Expr<'c>> {
        let arrived = self.backward.grads[n].as_ref();
        arrived.map(|g| Expr { term: self.sheet.keep(g.clone()), ..self.g })
    }

    /// A saved result of several.
    pub fn output(self, n: usize) -> Expr<'c> {
        Expr { term: Term::Result(n), ..self.g }
    }

    /// The result of a function of tensors. The function must not use expressions.
    pub fn make(self, work: impl FnOnce(&mut dyn Emit) -> Result<Tensor>) -> Expr<'c> {
        Expr { term: make(self.sheet, work), ..self.g }
    }

    /// Zeros like an argument.
    pub fn zeros_like(self, at: usize) -> Expr<'c> {
        self.make(|e| e.zeros_like(self.backward.meta(at)))
    }

    /// An argument that is a number.
    pub fn float(self, at: usize) -> f64 {
        self.backward.args.float(at)
    }

    pub fn int(self, at: usize) -> i64 {
        self.backward.args.int(at)
    }

    pub fn flag(self, at: usize) -> bool {
        self.backward.args.flag(at)
    }

    /// An operand, if it is a number.
    pub fn number(self, at: usize) -> Option<f64> {
        match self.backward.args.get(at) {
            Arg::Taken => None,
            _ => Some(self.float(at)),
        }
    }

    /// The gradient of an argument, computed only if it is needed.
    pub fn if_needed(self, at: usize, gradient: impl FnOnce() -> Expr<'c>) -> Option<Expr<'c>> {
        self.backward.needs(at).then(gradient)
    }

    /// There is no gradient, for this reason.
    pub fn stop(self, reason: &str) -> Expr<'c> {
        Expr { term: self.sheet.fail(Diag::error(code::GRAD_STOP, reason)), ..self.g }
    }
}

/// The gradient of one operand.
pub type Derivative = for<'c> fn(Terms<'c>) -> Expr<'c>;

/// One gradient for each slot, computed only if it is needed.
pub fn derivatives(e: &mut dyn Emit, v: &Backward<'_>, all: &[Derivative]) -> Result<Vec<Option<Tensor>>> {
    let sheet = Sheet::new(e, Some(v));
    let terms = Terms::new(&sheet, v);
    let mut gradients = Vec::with_capacity(all.len());
    for (slot, derivative) in all.iter().enumerate() {
        gradients.push(match v.needs_slot(slot) {
            true => Some(sheet.finish(derivative(terms).term)?),
            false => None,
        });
    }
    Ok(gradients)
}

/// As `derivatives`, for a rule that shares work between slots.
pub fn derive<const N: usize>(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    rule: impl for<'c> FnOnce(Terms<'c>) -> [Option<Expr<'c>>; N],
) -> Result<Vec<Option<Tensor>>> {
    let sheet = Sheet::new(e, Some(v));
    let made = rule(Terms::new(&sheet, v));
    made.into_iter().map(|made| made.map(|made| sheet.tensor(made.term)).transpose()).collect()
}
