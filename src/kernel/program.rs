//! A fused element-wise step as data: the planner makes it and every device runs it.
//!
//! A program works on tiles of `TILE` elements held in registers of four classes. 16-bit floats live in
//! `F32` registers and are rounded by `Cast` after each operation, small integers live in `I64` and are
//! wrapped by `Cast`; so a fused chain gives bit for bit what single operations give.

use super::abi::{FaultKind, RawView};
use crate::base::dtype::DType;
use crate::base::layout::{Shape, Strides, contiguous_strides};
use crate::kernel::fused::host::Prepared;
use smallvec::SmallVec;

/// Representation of a register's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// `u8`, 0 or 1.
    Bool,
    I64,
    F32,
    F64,
}

impl Class {
    pub const fn of(dtype: DType) -> Class {
        match dtype {
            DType::Bool => Class::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Class::I64,
            DType::F16 | DType::BF16 | DType::F32 => Class::F32,
            DType::F64 => Class::F64,
            // Invariant: the engine computes complex numbers by their real parts; no program names their dtypes.
            DType::C64 | DType::C128 => unreachable!(),
        }
    }

    pub const fn size_bytes(self) -> usize {
        match self {
            Class::Bool => 1,
            Class::F32 => 4,
            Class::I64 | Class::F64 => 8,
        }
    }
}

/// Elements of a tile: a few tile registers fit into the L1 cache.
pub const TILE: usize = 1024;

/// Computes `n` (at most `TILE`) elements: reads `args`, writes `out`. `out` may be one of `args`.
///
/// # Safety
/// Each pointer is `n` elements of the class that the variant names, aligned to one element.
pub type TileFn = unsafe fn(args: &[*const u8; 4], out: *mut u8, n: usize);

/// One element-wise function for one combination of classes.
pub struct Variant {
    pub args: &'static [Class],
    pub out: Class,
    /// For AVX-512, for AVX2 with FMA, and portable; indexed by `simd::level()`.
    pub tiles: [TileFn; 3],
}

/// A condition on an operand's values, checked at run time; a violation is a fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// An integer divisor is not 0.
    NonZero,
    /// From 0 to 1.
    Probability,
    /// A standard deviation: not negative, and not NaN.
    Deviation,
    /// Neither NaN nor infinite.
    Finite,
}

impl Check {
    /// The fault of a violation, and its `value`.
    pub const fn fault(self) -> (FaultKind, i64) {
        match self {
            Check::NonZero => (FaultKind::DivisionByZero, 0),
            Check::Probability => (FaultKind::Probability, 1),
            Check::Deviation => (FaultKind::Deviation, 0),
            Check::Finite => (FaultKind::Range, 0),
        }
    }
}

/// An element-wise function: arithmetic once as Rust and once as CUDA text.
pub struct Function {
    pub name: &'static str,
    /// An argument that is checked.
    pub check: Option<(u8, Check)>,
    /// A CUDA expression over `a`, `b`, `c`, `d`, for example `ts_exp(a)`.
    pub cuda: &'static str,
    pub variants: &'static [Variant],
    /// Its replacements for results of i8, i16 and i32, if overflow of these types changes the result.
    pub narrow: Option<&'static [&'static Function; 3]>,
}

impl Function {
    /// The function for results of this dtype.
    pub fn of_width(&'static self, dtype: DType) -> &'static Function {
        let at = match dtype {
            DType::I8 => 0,
            DType::I16 => 1,
            DType::I32 => 2,
            _ => return self,
        };
        self.narrow.map_or(self, |narrow| narrow[at])
    }

    pub fn variant(&self, args: &[Class]) -> Option<usize> {
        self.variants.iter().position(|variant| variant.args == args)
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Index of a tile register.
pub type Reg = u16;

/// How values are combined by a reduction. NaN wins in `Min` and `Max`; arg-forms give the first position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceKind {
    Sum,
    Prod,
    Min,
    Max,
    /// Index (i64) of the first smallest / largest element; NaN counts as both.
    ArgMin,
    ArgMax,
    /// Bool in, bool out.
    Any,
    All,
}

/// How random words become values, as `base::rng` defines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Draw {
    /// [0, 1) with 24 bits (f32) or 53 bits (f64).
    Uniform,
    /// Standard normal by Box-Muller.
    Normal,
    /// The raw 32-bit word as i64.
    Word,
    /// Integers of [low, low + range): the scalar table holds `low` at `seed + 2`, `range` (u64) at `seed + 3`.
    Integer,
}

/// One instruction of a tile program.
#[derive(Clone, Debug)]
pub enum Instr {
    /// reg <- view `slot`, converted to the class of its dtype.
    Load { slot: u16, out: Reg },
    /// reg <- entry of the scalar table (raw bits of f64, i64, or 0/1), for every element.
    Scalar { index: u16, class: Class, out: Reg },
    /// reg (I64) <- the element's position, row-major in the dims as the script sees them (`Program::order`).
    Position { out: Reg },
    /// reg <- random values by position; the scalar table holds seed at `seed` and first counter at `seed + 1`.
    Random { draw: Draw, class: Class, seed: u16, out: Reg },
    /// reg <- function of registers.
    Apply { function: &'static Function, variant: u16, args: [Reg; 4], out: Reg },
    /// reg of the class of `to` <- value converted and rounded (or wrapped) to dtype `to`.
    /// Float to integer truncates towards zero as C does; to bool is `!= 0`.
    Cast { reg: Reg, from: Class, to: DType, out: Reg },
    /// Reports a fault of node `node` for the lowest position whose value violates `check`.
    Check { check: Check, reg: Reg, node: u16 },
    /// View `slot` <- reg, whose class is that of the view's dtype and whose value is already rounded to it.
    Store { reg: Reg, slot: u16 },
    /// Combines over the last `Program::reduced` dims of the iteration shape into view `slot`, whose shape
    /// is the output dims. `class` is the accumulator's; the result is rounded to the view's dtype at the end.
    Reduce { kind: ReduceKind, reg: Reg, class: Class, slot: u16 },
}

/// A step: straight-line code for one element, over an iteration shape.
///
/// A view of a `Load` or `Store` has the iteration shape (stride 0 where it is broadcast). An output view may
/// overlap an input view only if the two are identical; outputs do not overlap each other.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub instrs: Vec<Instr>,
    /// Class of each register.
    pub regs: Vec<Class>,
    /// How many trailing dims are reduced; 0 for a pure map. Invariant: without a `Reduce`, 0.
    pub reduced: usize,
    /// For programs that use positions: the place of each dim of the iteration shape among the dims of the script's
    /// tensor; empty for the identity. Positions so do not depend on the order in which a step iterates.
    pub order: SmallVec<[u8; 8]>,
    /// What is computed from the reductions' results; none for a pure map.
    pub epilogue: Option<Box<Epilogue>>,
    /// What the CPU prepares at the program's first run. Invariant: the fields above do not change afterwards.
    pub prepared: Prepared,
}

/// A map over the dims that remain, after the reductions of a program: a mean's division, the root of a norm.
///
/// Invariants: it has no `Check`, `Position` or `Random`; what it reads is a result of a `Reduce`, of its own, or memory
/// that the program does not write; what it writes is not read by the program and is either such a result, through the
/// same view, or other memory.
#[derive(Clone, Debug)]
pub struct Epilogue {
    /// Its scalar table is the program's.
    pub program: Program,
    /// For each slot of `program` the slot of the whole program.
    pub slots: SmallVec<[u16; 8]>,
    /// The first slot that nothing before the epilogue accesses; those behind it are like it.
    pub first: u16,
    /// Slots of `Reduce` instructions whose values are read by nobody else: a device need not write them.
    pub unread: SmallVec<[u16; 4]>,
}

impl Epilogue {
    /// The views of its slots.
    pub fn views(&self, views: &[RawView]) -> SmallVec<[RawView; 4]> {
        self.slots.iter().map(|&slot| views[slot as usize].clone()).collect()
    }

    /// Its program, with slots of the whole program.
    pub fn over_all_slots(&self) -> Program {
        let mut program = self.program.clone();
        for instr in &mut program.instrs {
            if let Instr::Load { slot, .. } | Instr::Store { slot, .. } = instr {
                *slot = self.slots[*slot as usize];
            }
        }
        program
    }
}

impl Program {
    pub fn new(instrs: Vec<Instr>, regs: Vec<Class>, reduced: usize) -> Program {
        Program { instrs, regs, reduced, ..Program::default() }
    }

    /// Distance between positions along each dim of the iteration shape.
    pub fn position_strides(&self, shape: &[usize]) -> Strides {
        let Program { order, .. } = self;
        if order.is_empty() {
            return contiguous_strides(shape);
        }
        let mut seen = Shape::from_elem(1, shape.len());
        for (&size, &at) in shape.iter().zip(order) {
            seen[at as usize] = size;
        }
        let strides = contiguous_strides(&seen);
        order.iter().map(|&at| strides[at as usize]).collect()
    }
}
