//! Element-wise arithmetic over the members of several lists, recorded as one program: a step of an optimizer for all
//! its parameters. Knows dtypes and no shapes; the caller chooses the memory.
//!
//! Written with operators: `f.set(0, f.get(0) - f.get(1) * rate)`. Arithmetic is that of the rows: operands are promoted
//! to a common dtype, and 16-bit floats are rounded after each operation.

use crate::base::dtype::DType;
use crate::kernel::elementwise as math;
use crate::kernel::program::{Class, Function, Instr, Reg};
use std::cell::RefCell;

/// The program of one element. Operand `i` is the member of list `i`.
pub struct Formula(RefCell<Written>);

/// The program so far. Slots of views are numbered in the order of their use.
#[derive(Debug)]
pub struct Written {
    pub instrs: Vec<Instr>,
    pub regs: Vec<Class>,
    /// The scalar table, as numbers.
    pub scalars: Vec<f64>,
    /// By slot: the operand behind it, and whether it is stored.
    pub slots: Vec<(usize, bool)>,
    dtypes: Vec<DType>,
    /// By operand: its current value.
    now: Vec<Option<Held>>,
    skip: Option<Skip>,
}

/// An operand of no dimensions: where it is not 0, operands keep their values.
#[derive(Clone, Copy, Debug)]
struct Skip {
    operand: usize,
    /// Whether it is not 0, once that was asked.
    is_set: Option<Reg>,
}

/// A register, and the dtype of its value.
#[derive(Clone, Copy, Debug)]
struct Held {
    reg: Reg,
    dtype: DType,
}

/// A value of the current element.
#[derive(Clone, Copy)]
pub struct Value<'f> {
    formula: &'f Formula,
    held: Held,
}

impl Formula {
    /// By operand, its dtype; all are floats.
    pub fn new(dtypes: &[DType]) -> Formula {
        Formula(RefCell::new(Written {
            instrs: Vec::new(),
            regs: Vec::new(),
            scalars: Vec::new(),
            slots: Vec::new(),
            dtypes: dtypes.to_vec(),
            now: vec![None; dtypes.len()],
            skip: None,
        }))
    }

    /// The same; where an operand of no dimensions is not 0, nothing is changed.
    pub fn skipping(dtypes: &[DType], operand: usize) -> Formula {
        let formula = Formula::new(dtypes);
        formula.0.borrow_mut().skip = Some(Skip { operand, is_set: None });
        formula
    }

    pub fn written(self) -> Written {
        self.0.into_inner()
    }

    fn value(&self, held: Held) -> Value<'_> {
        Value { formula: self, held }
    }

    /// The current value of an operand.
    pub fn get(&self, operand: usize) -> Value<'_> {
        self.value(self.0.borrow_mut().get(operand))
    }

    /// Assigns a value to an operand, and returns the operand's new value. Invariant: once for each operand, since a
    /// program stores to a location once.
    pub fn set(&self, operand: usize, value: Value<'_>) -> Value<'_> {
        self.value(self.0.borrow_mut().set(operand, value.held))
    }

    fn apply(&self, function: &'static Function, values: &[Held]) -> Value<'_> {
        self.value(self.0.borrow_mut().apply(function, values))
    }

    fn number(&self, number: f64, dtype: DType) -> Held {
        self.0.borrow_mut().number(number, dtype)
    }
}

impl Written {
    fn reg(&mut self, class: Class) -> Reg {
        self.regs.push(class);
        (self.regs.len() - 1) as Reg
    }

    fn slot(&mut self, operand: usize, stored: bool) -> u16 {
        self.slots.push((operand, stored));
        (self.slots.len() - 1) as u16
    }

    fn get(&mut self, operand: usize) -> Held {
        if let Some(held) = self.now[operand] {
            return held;
        }
        let dtype = self.dtypes[operand];
        let slot = self.slot(operand, false);
        let reg = self.reg(Class::of(dtype));
        self.instrs.push(Instr::Load { slot, out: reg });
        let held = Held { reg, dtype };
        self.now[operand] = Some(held);
        held
    }

    fn set(&mut self, operand: usize, value: Held) -> Held {
        debug_assert!(!self.slots.contains(&(operand, true)), "a program stores to a place once");
        let value = self.cast(value, self.dtypes[operand]);
        let value = self.unless_skipped(operand, value);
        let slot = self.slot(operand, true);
        self.instrs.push(Instr::Store { reg: value.reg, slot });
        self.now[operand] = Some(value);
        value
    }

    fn unless_skipped(&mut self, operand: usize, value: Held) -> Held {
        let Some(Skip { operand: flag, is_set }) = self.skip else { return value };
        let is_set = is_set.unwrap_or_else(|| {
            let flag = self.get(flag);
            let zero = self.number(0.0, flag.dtype);
            let class = Class::of(flag.dtype);
            self.chosen(&math::NE, &[class; 2], [flag.reg, zero.reg, 0, 0], Class::Bool)
        });
        self.skip = Some(Skip { operand: flag, is_set: Some(is_set) });
        let (old, class) = (self.get(operand), Class::of(value.dtype));
        let reg = self.chosen(&math::WHERE, &[Class::Bool, class, class], [is_set, old.reg, value.reg, 0], class);
        Held { reg, ..value }
    }

    /// A function whose operands differ in class.
    fn chosen(&mut self, function: &'static Function, classes: &[Class], args: [Reg; 4], gives: Class) -> Reg {
        let variant = function.variant(classes).expect("comparisons and choices of floats");
        let out = self.reg(gives);
        self.instrs.push(Instr::Apply { function, variant: variant as u16, args, out });
        out
    }

    fn cast(&mut self, value: Held, to: DType) -> Held {
        let (from, class) = (Class::of(value.dtype), Class::of(to));
        if value.dtype == to || (from == class && matches!(to, DType::F32 | DType::F64)) {
            return Held { reg: value.reg, dtype: to };
        }
        let out = self.reg(class);
        self.instrs.push(Instr::Cast { reg: value.reg, from, to, out });
        Held { reg: out, dtype: to }
    }

    fn number_of(&mut self, operand: usize, beside: DType) -> Held {
        let held = self.get(operand);
        let (from, to) = (Class::of(held.dtype), Class::of(beside));
        if from == to {
            return Held { reg: held.reg, dtype: beside };
        }
        let out = self.reg(to);
        let wide = if to == Class::F64 { DType::F64 } else { DType::F32 };
        self.instrs.push(Instr::Cast { reg: held.reg, from, to: wide, out });
        Held { reg: out, dtype: beside }
    }

    /// A number combined with a value of some dtype.
    fn number(&mut self, number: f64, dtype: DType) -> Held {
        let class = Class::of(dtype);
        let index = self.scalars.len() as u16;
        self.scalars.push(number);
        let out = self.reg(class);
        self.instrs.push(Instr::Scalar { index, class, out });
        Held { reg: out, dtype }
    }

    fn apply(&mut self, function: &'static Function, values: &[Held]) -> Held {
        let dtype = values.iter().map(|value| value.dtype).reduce(DType::promote).expect("functions have operands");
        let class = Class::of(dtype);
        let mut args = [0 as Reg; 4];
        for (arg, &value) in args.iter_mut().zip(values) {
            *arg = self.cast(value, dtype).reg;
        }
        let classes = [class; 4];
        let variant = function.variant(&classes[..values.len()]).expect("functions of floats");
        let out = self.reg(class);
        self.instrs.push(Instr::Apply { function, variant: variant as u16, args, out });
        if matches!(dtype, DType::F32 | DType::F64) {
            return Held { reg: out, dtype };
        }
        let rounded = self.reg(class);
        self.instrs.push(Instr::Cast { reg: out, from: class, to: dtype, out: rounded });
        Held { reg: rounded, dtype }
    }
}

/// The other operand of an operator.
pub enum Side<'f> {
    Value(Value<'f>),
    Number(f64),
}

impl<'f> From<Value<'f>> for Side<'f> {
    fn from(value: Value<'f>) -> Side<'f> {
        Side::Value(value)
    }
}

impl From<f64> for Side<'_> {
    fn from(number: f64) -> Self {
        Side::Number(number)
    }
}

impl<'f> Value<'f> {
    /// The value of an operand of no dimensions, as a number combined with this value: not rounded to 16 bits.
    pub fn number(self, operand: usize) -> Value<'f> {
        let held = self.formula.0.borrow_mut().number_of(operand, self.held.dtype);
        self.formula.value(held)
    }

    fn of(self, function: &'static Function) -> Value<'f> {
        self.formula.apply(function, &[self.held])
    }

    fn with(self, function: &'static Function, other: impl Into<Side<'f>>) -> Value<'f> {
        let other = match other.into() {
            Side::Value(value) => value.held,
            Side::Number(number) => self.formula.number(number, self.held.dtype),
        };
        self.formula.apply(function, &[self.held, other])
    }

    fn behind(self, function: &'static Function, number: f64) -> Value<'f> {
        let number = self.formula.number(number, self.held.dtype);
        self.formula.apply(function, &[number, self.held])
    }

    pub fn abs(self) -> Value<'f> {
        self.of(&math::ABS)
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> Value<'f> {
        self.of(&math::SIGN)
    }

    pub fn sqrt(self) -> Value<'f> {
        self.of(&math::SQRT)
    }

    pub fn reciprocal(self) -> Value<'f> {
        self.of(&math::RECIPROCAL)
    }

    pub fn max(self, other: impl Into<Side<'f>>) -> Value<'f> {
        self.with(&math::MAXIMUM, other)
    }

    pub fn min(self, other: impl Into<Side<'f>>) -> Value<'f> {
        self.with(&math::MINIMUM, other)
    }

    pub fn pow(self, exponent: f64) -> Value<'f> {
        self.with(&math::POW, exponent)
    }
}

/// `base ** exponent`.
pub fn power(base: f64, exponent: Value<'_>) -> Value<'_> {
    exponent.behind(&math::POW, base)
}

macro_rules! operators {
    ($($Trait:ident $method:ident $FUNCTION:ident)*) => { $(
        impl<'f, T: Into<Side<'f>>> std::ops::$Trait<T> for Value<'f> {
            type Output = Value<'f>;

            fn $method(self, other: T) -> Value<'f> {
                self.with(&math::$FUNCTION, other)
            }
        }

        impl<'f> std::ops::$Trait<Value<'f>> for f64 {
            type Output = Value<'f>;

            fn $method(self, other: Value<'f>) -> Value<'f> {
                other.behind(&math::$FUNCTION, self)
            }
        }
    )* };
}
operators! { Add add ADD  Sub sub SUB  Mul mul MUL  Div div DIV }

impl<'f> std::ops::Neg for Value<'f> {
    type Output = Value<'f>;

    fn neg(self) -> Value<'f> {
        self.of(&math::NEG)
    }
}
