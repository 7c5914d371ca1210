//! Element-wise arithmetic over the members of several lists, written down as one program: what a step of an optimizer
//! is, for all its parameters. Knows dtypes and no shapes; who runs it decides over which memory.
//!
//! Arithmetic is that of the rows: operands are promoted to a common dtype, and 16-bit floats are rounded after each
//! operation.

use crate::base::dtype::DType;
use crate::kernel::program::{Class, Function, Instr, Reg};

/// A value of the element that is computed.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    reg: Reg,
    dtype: DType,
}

/// The program of one element. Operand `i` is the member of list `i`; slots of views are numbered as they are met.
#[derive(Debug)]
pub struct Formula {
    pub instrs: Vec<Instr>,
    pub regs: Vec<Class>,
    /// The scalar table, as numbers.
    pub scalars: Vec<f64>,
    /// By slot: the operand behind it, and whether it is stored.
    pub slots: Vec<(usize, bool)>,
    dtypes: Vec<DType>,
    /// By operand: what it holds now.
    now: Vec<Option<Value>>,
}

impl Formula {
    /// With the dtype of each operand; floats all.
    pub fn new(dtypes: &[DType]) -> Formula {
        Formula {
            instrs: Vec::new(),
            regs: Vec::new(),
            scalars: Vec::new(),
            slots: Vec::new(),
            dtypes: dtypes.to_vec(),
            now: vec![None; dtypes.len()],
        }
    }

    fn reg(&mut self, class: Class) -> Reg {
        self.regs.push(class);
        (self.regs.len() - 1) as Reg
    }

    fn slot(&mut self, operand: usize, stored: bool) -> u16 {
        self.slots.push((operand, stored));
        (self.slots.len() - 1) as u16
    }

    /// What an operand holds now.
    pub fn get(&mut self, operand: usize) -> Value {
        if let Some(value) = self.now[operand] {
            return value;
        }
        let dtype = self.dtypes[operand];
        let slot = self.slot(operand, false);
        let reg = self.reg(Class::of(dtype));
        self.instrs.push(Instr::Load { slot, out: reg });
        let value = Value { reg, dtype };
        self.now[operand] = Some(value);
        value
    }

    /// Makes an operand hold a value. Invariant: once for each operand, since a program stores to a place once.
    pub fn set(&mut self, operand: usize, value: Value) {
        debug_assert!(!self.slots.contains(&(operand, true)), "a program stores to a place once");
        let value = self.cast(value, self.dtypes[operand]);
        let slot = self.slot(operand, true);
        self.instrs.push(Instr::Store { reg: value.reg, slot });
        self.now[operand] = Some(value);
    }

    fn cast(&mut self, value: Value, to: DType) -> Value {
        let (from, class) = (Class::of(value.dtype), Class::of(to));
        if value.dtype == to || (from == class && matches!(to, DType::F32 | DType::F64)) {
            return Value { reg: value.reg, dtype: to };
        }
        let out = self.reg(class);
        self.instrs.push(Instr::Cast { reg: value.reg, from, to, out });
        Value { reg: out, dtype: to }
    }

    /// What an operand of no dimensions holds, as a number beside a value: not rounded to 16 bits.
    pub fn number_of(&mut self, operand: usize, beside: Value) -> Value {
        let held = self.get(operand);
        let (from, to) = (Class::of(held.dtype), Class::of(beside.dtype));
        if from == to {
            return Value { reg: held.reg, dtype: beside.dtype };
        }
        let out = self.reg(to);
        let wide = if to == Class::F64 { DType::F64 } else { DType::F32 };
        self.instrs.push(Instr::Cast { reg: held.reg, from, to: wide, out });
        Value { reg: out, dtype: beside.dtype }
    }

    /// A number beside a value of some dtype.
    fn number(&mut self, number: f64, dtype: DType) -> Value {
        let class = Class::of(dtype);
        let index = self.scalars.len() as u16;
        self.scalars.push(number);
        let out = self.reg(class);
        self.instrs.push(Instr::Scalar { index, class, out });
        Value { reg: out, dtype }
    }

    fn apply(&mut self, function: &'static Function, values: &[Value]) -> Value {
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
            return Value { reg: out, dtype };
        }
        let rounded = self.reg(class);
        self.instrs.push(Instr::Cast { reg: out, from: class, to: dtype, out: rounded });
        Value { reg: rounded, dtype }
    }

    /// A function of one value.
    pub fn of(&mut self, function: &'static Function, x: Value) -> Value {
        self.apply(function, &[x])
    }

    /// A function of two values.
    pub fn of_two(&mut self, function: &'static Function, x: Value, y: Value) -> Value {
        self.apply(function, &[x, y])
    }

    /// A function of a value and a number.
    pub fn with(&mut self, function: &'static Function, x: Value, number: f64) -> Value {
        let number = self.number(number, x.dtype);
        self.apply(function, &[x, number])
    }

    /// A function of a number and a value.
    pub fn before(&mut self, function: &'static Function, number: f64, x: Value) -> Value {
        let number = self.number(number, x.dtype);
        self.apply(function, &[number, x])
    }

    /// A function of a value and two numbers.
    pub fn with_two(&mut self, function: &'static Function, x: Value, numbers: [f64; 2]) -> Value {
        let [first, second] = numbers.map(|number| self.number(number, x.dtype));
        self.apply(function, &[x, first, second])
    }
}
