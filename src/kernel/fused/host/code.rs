//! A program prepared for the CPU: registers are renamed to values that are written once (SSA form), values have places
//! in the scratch memory, and the vector level is chosen. Knows nothing of shapes or views.

use super::convert;
use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::host::simd;
use crate::kernel::program::{Check, Class, Draw, Instr, Program, ReduceKind, TILE, TileFn};
use std::sync::{Arc, OnceLock};

/// The program's `Code`, made once.
#[derive(Clone, Default)]
pub struct Prepared(OnceLock<Arc<Code>>);

impl Prepared {
    /// Invariant: a program's views have the same dtypes at every run.
    pub(crate) fn get(&self, program: &Program, views: &[RawView]) -> &Code {
        self.0.get_or_init(|| Arc::new(Code::new(program, views)))
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "prepared" } else { "not prepared" })
    }
}

/// Index of a value.
pub(crate) type Id = u16;

/// The content of a register between one definition and the next.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub class: Class,
    /// Bytes per element of all values before it in the scratch memory: its place is this times the tile.
    pub place: usize,
    /// Index of the last op that reads it.
    pub last: usize,
}

/// `Instr` over values.
pub(crate) enum Op {
    Load {
        slot: u16,
        out: Id,
    },
    Position {
        out: Id,
    },
    Random {
        draw: Draw,
        class: Class,
        seed: u16,
        out: Id,
    },
    Apply {
        tile: TileFn,
        args: [Id; 4],
        out: Id,
    },
    Check {
        check: Check,
        class: Class,
        arg: Id,
        node: u16,
    },
    /// `from`: index of the op that computes the value, if that op may write directly into the output's memory.
    Store {
        arg: Id,
        slot: u16,
        from: Option<usize>,
    },
    Reduce {
        kind: ReduceKind,
        arg: Id,
        slot: u16,
    },
}

pub(crate) struct Code {
    pub ops: Vec<Op>,
    pub values: Vec<Value>,
    /// Entry of the scalar table, value: filled once, before the tiles.
    pub scalars: Vec<(u16, Id)>,
    /// Bytes of scratch memory per element of a tile.
    pub scratch: usize,
    /// Elements of a full tile.
    pub tile: usize,
    /// Whether an op needs the position of elements.
    pub positions: bool,
    pub reduces: usize,
}

/// Bound: bytes of values in use at once, so that the registers of a tile stay in the L1 cache.
const CACHE_BYTES: usize = 28 << 10;
/// Bound: elements of the shortest full tile; with shorter ones the function calls would cost more than the cache
/// saves.
const SHORTEST: usize = 256;

impl Code {
    fn new(program: &Program, views: &[RawView]) -> Code {
        let now = vec![None; program.regs.len()];
        let mut maker = Maker { now, values: Vec::new(), ops: Vec::new(), rounded: Vec::new() };
        let mut scalars = Vec::new();
        let mut positions = false;
        for instr in &program.instrs {
            match *instr {
                Instr::Load { slot, out } => {
                    let out = maker.define(out, program.regs[out as usize]);
                    maker.ops.push(Op::Load { slot, out });
                }
                Instr::Scalar { index, class, out } => scalars.push((index, maker.define(out, class))),
                Instr::Position { out } => {
                    positions = true;
                    let out = maker.define(out, Class::I64);
                    maker.ops.push(Op::Position { out });
                }
                Instr::Random { draw, class, seed, out } => {
                    positions = true;
                    let out = maker.define(out, class);
                    maker.ops.push(Op::Random { draw, class, seed, out });
                }
                Instr::Apply { function, variant, ref args, out } => {
                    let variant = &function.variants[variant as usize];
                    let first = maker.read(args[0]);
                    let mut read = [first; 4];
                    for (i, value) in read.iter_mut().enumerate().take(variant.args.len()) {
                        *value = maker.read(args[i]);
                    }
                    let out = maker.define(out, variant.out);
                    maker.ops.push(Op::Apply { tile: variant.tiles[simd::level()], args: read, out });
                }
                Instr::Cast { reg, from, to, out } => {
                    let value = maker.read(reg);
                    let value = maker.cast(value, from, to);
                    maker.now[out as usize] = Some(value);
                }
                Instr::Check { check, reg, node } => {
                    positions = true;
                    let (arg, class) = (maker.read(reg), program.regs[reg as usize]);
                    maker.ops.push(Op::Check { check, class, arg, node });
                }
                Instr::Store { reg, slot } => {
                    let arg = maker.read(reg);
                    maker.ops.push(Op::Store { arg, slot, from: None });
                }
                Instr::Reduce { kind, reg, class, slot } => {
                    let mut arg = maker.read(reg);
                    let (have, arg_form) =
                        (maker.values[arg as usize].class, matches!(kind, ReduceKind::ArgMin | ReduceKind::ArgMax));
                    if have != class && !arg_form {
                        arg = maker.cast(arg, have, representative(class));
                    }
                    maker.ops.push(Op::Reduce { kind, arg, slot });
                }
            }
        }
        maker.drop_rounding(views);
        let mut reduces = 0;
        for at in 0..maker.ops.len() {
            // Reductions read their operands after all ops of a tile: these values live until then.
            if let Op::Reduce { arg, .. } = maker.ops[at] {
                maker.values[arg as usize].last = maker.ops.len();
                reduces += 1;
            }
        }
        let Maker { values, ops, .. } = maker;
        let mut code = Code { ops, values, scalars, scratch: 0, tile: TILE, positions, reduces };
        code.find_direct_stores();
        code.place_values();
        code
    }

    /// The column of a space that holds positions, if there is one.
    pub fn position_column(&self, views: &[RawView]) -> Option<u16> {
        self.positions.then_some(views.len() as u16)
    }

    /// The two views of a program that only copies elements from one to the other.
    pub fn copies<'v>(&self, views: &'v [RawView]) -> Option<(&'v RawView, &'v RawView)> {
        let [Op::Load { slot, out }, Op::Store { arg, slot: to, .. }] = self.ops[..] else { return None };
        let (from, to) = (&views[slot as usize], &views[to as usize]);
        (arg == out && from.dtype == to.dtype && from.shape == to.shape && from.ptr != to.ptr).then_some((from, to))
    }

    /// Lets the op that computes a value store it directly, if nothing is loaded in between; only for the first store
    /// of a value.
    fn find_direct_stores(&mut self) {
        for store in 0..self.ops.len() {
            let Op::Store { arg, .. } = self.ops[store] else { continue };
            let maker = self.ops[..store].iter().position(|op| matches!(*op, Op::Apply { out, .. } if out == arg));
            let Some(maker) = maker else { continue };
            let disturbed = self.ops[maker..store].iter().any(|op| match *op {
                Op::Load { .. } => true,
                Op::Store { arg: other, .. } => other == arg,
                _ => false,
            });
            if !disturbed && let Op::Store { from, .. } = &mut self.ops[store] {
                *from = Some(maker);
            }
        }
    }

    /// Values from memory and scalars have their own place in scratch memory, since they outlive a tile; others share
    /// places.
    fn place_values(&mut self) {
        let mut slots: Vec<(usize, usize, usize)> = Vec::new(); // (size, start, free from op)
        let mut end = 0;
        let mut take = |size: usize, slots: &mut Vec<(usize, usize, usize)>, from: usize, until: usize| -> usize {
            // A value that outlives a tile cannot use a shared place: an op of the next tile would overwrite it.
            let shared = until != usize::MAX;
            if let Some(place) = slots.iter_mut().find(|place| shared && place.0 == size && place.2 < from) {
                place.2 = until;
                return place.1;
            }
            slots.push((size, end, until));
            end += size;
            end - size
        };
        for &(_, id) in &self.scalars {
            let value = &mut self.values[id as usize];
            value.place = take(value.class.size_bytes(), &mut slots, 0, usize::MAX);
        }
        for (index, op) in self.ops.iter().enumerate() {
            let (out, lasting) = match *op {
                Op::Load { out, .. } => (out, true),
                Op::Position { out } | Op::Random { out, .. } | Op::Apply { out, .. } => (out, false),
                _ => continue,
            };
            let value = &mut self.values[out as usize];
            let until = if lasting { usize::MAX } else { value.last.max(index) };
            value.place = take(value.class.size_bytes(), &mut slots, index, until);
        }
        self.scratch = end;
        if let Some(fitting) = CACHE_BYTES.checked_div(end) {
            self.tile = (fitting & !63).clamp(SHORTEST, TILE);
        }
    }
}

/// A dtype that is its own class's representation.
fn representative(class: Class) -> DType {
    match class {
        Class::Bool => DType::Bool,
        Class::I64 => DType::I64,
        Class::F32 => DType::F32,
        Class::F64 => DType::F64,
    }
}

struct Maker {
    /// The value that each register has at this point.
    now: Vec<Option<Id>>,
    values: Vec<Value>,
    ops: Vec<Op>,
    /// Values that are others rounded or wrapped within their class: (value, the other, to which dtype).
    rounded: Vec<(Id, Id, DType)>,
}

impl Maker {
    /// Where a rounded value is only stored as its dtype, the store does the rounding.
    fn drop_rounding(&mut self, views: &[RawView]) {
        for (rounded, exact, dtype) in std::mem::take(&mut self.rounded) {
            let mut stores = false;
            let only_stored = self.ops.iter().all(|op| match *op {
                Op::Store { arg, slot, .. } if arg == rounded => {
                    stores = true;
                    views[slot as usize].dtype == dtype
                }
                Op::Apply { args, .. } => !args.contains(&rounded),
                Op::Check { arg, .. } | Op::Reduce { arg, .. } => arg != rounded,
                _ => true,
            });
            if !only_stored || !stores {
                continue;
            }
            self.ops.retain(|op| !matches!(*op, Op::Apply { out, .. } if out == rounded));
            for op in &mut self.ops {
                if let Op::Store { arg, .. } = op
                    && *arg == rounded
                {
                    *arg = exact;
                }
            }
        }
        for (index, op) in self.ops.iter().enumerate() {
            let args = match *op {
                Op::Apply { args, .. } => args,
                Op::Store { arg, .. } | Op::Check { arg, .. } | Op::Reduce { arg, .. } => [arg; 4],
                _ => continue,
            };
            args.iter().for_each(|&arg| self.values[arg as usize].last = index);
        }
    }

    fn define(&mut self, reg: u16, class: Class) -> Id {
        let id = self.fresh(class);
        self.now[reg as usize] = Some(id);
        id
    }

    fn fresh(&mut self, class: Class) -> Id {
        self.values.push(Value { class, place: 0, last: 0 });
        (self.values.len() - 1) as Id
    }

    fn read(&mut self, reg: u16) -> Id {
        let id = self.now[reg as usize].expect("a program writes a register before it reads it");
        self.values[id as usize].last = self.ops.len();
        id
    }

    /// The value converted to `to`; itself if that changes nothing.
    fn cast(&mut self, value: Id, from: Class, to: DType) -> Id {
        match convert::cast(from, to) {
            None => value,
            Some(tiles) => {
                self.values[value as usize].last = self.ops.len();
                let out = self.fresh(Class::of(to));
                self.ops.push(Op::Apply { tile: tiles[simd::level()], args: [value; 4], out });
                if from == Class::of(to) {
                    self.rounded.push((out, value, to));
                }
                out
            }
        }
    }
}
