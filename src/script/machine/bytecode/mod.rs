//! Statements in order: loops, branches, arithmetic and calls as instructions over registers. The registers of a frame are
//! its variables, then what is computed on the way, then numbers that the code names. A node that has no instruction of
//! its own stays a node, which the machine evaluates where an instruction says so.
//!
//! `emit` makes the instructions of nodes and `flow` those of loops and conditions; `run` follows them, `away` does what
//! is no plain number, and `frames` enters functions. Decision 0148 says why.

mod away;
mod children;
mod emit;
mod flow;
mod frames;
mod lent_parts;
mod run;

pub use emit::lower;

use super::tree::{Assign, Node, Op, Operands, Slot};
use super::unit::Function;
use super::value::Value;
use crate::base::span::Site;
use rhai::Position;
use std::ops::Range;
use std::sync::Weak;

/// A body as instructions.
pub struct Bytecode {
    pub code: Box<[Instruction]>,
    /// What an instruction needs away from its usual way, at the same index.
    pub sides: Box<[Side]>,
    pub nodes: Box<[Node]>,
    pub assigns: Box<[Assign]>,
    pub calls: Box<[DirectCall]>,
    pub rounds: Box<[Round]>,
    /// Numbers that the code names, in the last registers.
    pub constants: Box<[Value]>,
    /// Registers of variables.
    pub variables: usize,
    /// Registers of variables and of what is computed on the way.
    pub changing: usize,
}

/// Eight bytes: what is done, and up to three registers. A target stands in `to`.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub opcode: Opcode,
    pub to: u16,
    pub a: u16,
    pub b: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// `to` becomes a copy of `a`.
    Copy,
    /// The same, unless it is a value that is lent to functions.
    CopyUnlessLent,
    /// The variable `a` moves to `to`.
    Take,
    /// `to` becomes the literal at the side.
    Literal,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    /// The operator at the side.
    Operate,
    Negate,
    Not,
    /// Go to `to` unless `a < b`.
    UnlessLess,
    UnlessLessEqual,
    UnlessGreater,
    UnlessGreaterEqual,
    UnlessEqual,
    UnlessNotEqual,
    /// Go to `to` unless `a` is the text on the right of the comparison, or is not.
    UnlessText,
    /// Go to `to` if `a` does not hold.
    Unless,
    /// Go to `to` if `a` holds.
    When,
    Jump,
    /// A step of a loop's round.
    Step,
    /// The same, and back to `to`.
    Again,
    /// Go to the arm for `a` of the `switch` at the side, or to `to`.
    Switch,
    /// The value of a node.
    Evaluate,
    /// A node whose value nobody reads.
    Execute,
    /// `to = a[b]` of an array in a variable.
    Index,
    /// The number of a chain at hand, or what it gives.
    Element,
    /// The number that a function makes of what is at hand, or what it gives.
    Number,
    /// `a.push(b)` of an array in a variable.
    Push,
    /// The length of an array in a variable.
    Length,
    /// `a[b] = to` of an array in a variable.
    StoreIndex,
    /// The call at the side.
    Call,
    /// The call at the side of what the variable `a` holds; `b` is its node.
    Apply,
    /// Begins a `for` over the range of `a` and `a + 1`; `to` is where it ends.
    Count,
    /// The next number of such a loop, back to `to`.
    Next,
    /// All rounds of another `for`, whose body stands behind; `to` is where it ends.
    Each,
    /// The end of a round of such a loop.
    EndRound,
    /// Leaves a loop over a range whose state is `a`: goes to `to`, if it counts here.
    LeaveCount,
    /// The variables from `a` to before `b` end.
    Clear,
    /// `a` is the value of the body.
    Return,
    /// `a` is the value of a part that a node has called.
    Finish,
}

/// What an instruction needs that meets no number.
#[derive(Clone, Copy)]
pub struct Side {
    /// In `nodes`, or `calls` for a call.
    pub node: u32,
    /// In `assigns`: how `to` is written.
    pub assign: u32,
    /// In `rounds`: the loop around, or the one that is meant.
    pub round: u32,
    pub op: Op,
    /// A condition that is asked of tensors, too.
    pub is_truth: bool,
    pub at: Position,
}

/// No index.
pub const NONE: u32 = u32::MAX;

/// A loop.
#[derive(Default)]
pub struct Round {
    pub weight: u32,
    /// How many loops of the function are around it.
    pub depth: u8,
    pub at: Position,
    /// Where `continue` and `break` lead.
    pub again: u16,
    pub out: u16,
    /// The registers of what is declared in it.
    pub clears: Range<Slot>,
    /// What `break` gives goes there.
    pub result: Option<u16>,
    /// The state of a loop over a range.
    pub count: Option<u16>,
    /// It is run by the machine, round by round.
    pub is_each: bool,
    pub variable: Slot,
    pub counter: Option<Slot>,
    pub is_inclusive: bool,
}

/// A call of a function of the same text.
pub struct DirectCall {
    pub function: Weak<Function>,
    pub arguments: Box<[Argument]>,
    /// Some of them are parts.
    pub has_parts: bool,
    pub operands: Operands,
    pub at: Position,
    /// In a user's source: the place that is known while it runs.
    pub mark: Option<Site>,
}

/// Where an argument stands.
#[derive(Clone, Copy)]
pub enum Argument {
    Register(u16),
    /// A variable that may be lent, and is read at the call where it is not.
    Lendable(Slot),
    /// The same; what is not worth lending was read before the arguments behind it, to this register.
    Early(Slot, u16),
    /// A part of what a variable holds, by the node that leads to it.
    Part(u32),
}
