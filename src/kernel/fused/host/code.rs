//! A program prepared for the CPU: registers are renamed to values that are written once (SSA form), values have places
//! in the scratch memory, and the vector level is chosen. Knows nothing of shapes or views.

use super::convert::{self, representative};
use super::{GRAIN, narrow};
use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::host::simd;
use crate::kernel::program::{Check, Class, Draw, Function, Instr, Program, ReduceKind, TILE, TileFn, Variant};
use std::sync::{Arc, OnceLock};

/// The program's `Code`, made once.
#[derive(Clone, Default)]
pub struct Prepared {
    /// In the width of its elements, where it can be computed so.
    narrow: OnceLock<Option<Arc<Code>>>,
    code: OnceLock<Arc<Code>>,
}

impl Prepared {
    /// Invariant: a program's views have the same dtypes at every run.
    pub(crate) fn get(&self, program: &Program, views: &[RawView], scalars: &[u64]) -> &Code {
        let narrow = self.narrow.get_or_init(|| Code::narrow(program, views).map(Arc::new));
        match narrow {
            Some(code) if code.takes(scalars) => code,
            _ => self.code.get_or_init(|| Arc::new(Code::new(program, views))),
        }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prepared = self.code.get().is_some() || self.narrow.get().is_some();
        f.write_str(if prepared { "prepared" } else { "not prepared" })
    }
}

/// Index of a value.
pub(crate) type Id = u16;

/// The content of a register between one definition and the next.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub class: Class,
    /// What its elements are in memory: the class's own dtype, or the short one of a program in that width.
    pub dtype: DType,
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
    /// The view whose elements are reduced as they are, or as what a conversion makes of them.
    pub plain: Option<Plain>,
    /// Minimal number of elements for a further thread.
    pub grain: usize,
    /// Scalars that must have their value in this dtype too.
    exact: Vec<u16>,
    narrow: Option<DType>,
}

/// A view that a program only reduces.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    pub slot: u16,
    /// Whether elements are converted first: to truth values, or truth values to numbers.
    pub converts: bool,
}

impl Plain {
    fn of(program: &Program) -> Option<Plain> {
        let (&Instr::Load { slot, out }, mut rest) = program.instrs.split_first()? else { return None };
        let (mut reduced, mut converts) = (out, false);
        if let Some((&Instr::Cast { reg, to: DType::Bool, out: truth, .. }, others)) = rest.split_first()
            && reg == out
        {
            (reduced, converts, rest) = (truth, true, others);
        }
        for instr in rest {
            let Instr::Reduce { reg, class, kind, .. } = *instr else { return None };
            let of_positions = matches!(kind, ReduceKind::ArgMin | ReduceKind::ArgMax);
            converts |= class != program.regs[reg as usize] && !of_positions;
            if reg != reduced {
                return None;
            }
        }
        Some(Plain { slot, converts })
    }
}

/// Bound: bytes of values in use at once, so that the registers of a tile stay in the L1 cache.
const CACHE_BYTES: usize = 28 << 10;
/// Bound: elements of the shortest full tile; with shorter ones the function calls would cost more than the cache
/// saves.
const SHORTEST: usize = 256;

impl Code {
    fn new(program: &Program, views: &[RawView]) -> Code {
        Code::build(program, views, None).expect("every program is computed in registers")
    }

    /// For a program over short elements of one dtype, and over truth values, whose functions are there in this width.
    pub(super) fn narrow(program: &Program, views: &[RawView]) -> Option<Code> {
        let dtype = narrow::dtype_of(program, views)?;
        Code::build(program, views, Some(dtype))
    }

    /// Whether scalars have values that the code can be run with.
    fn takes(&self, scalars: &[u64]) -> bool {
        let dtype = self.narrow.unwrap_or(DType::I64);
        self.exact.iter().all(|&at| narrow::is_exact(scalars[at as usize] as i64, dtype))
    }

    /// `narrow`: in the width of this dtype; none if that is not possible.
    fn build(program: &Program, views: &[RawView], narrow: Option<DType>) -> Option<Code> {
        let mut maker = Maker::new(program, narrow);
        for instr in &program.instrs {
            maker.add(program, instr)?;
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
        let Maker { values, ops, scalars, positions, exact, only_narrow, .. } = maker;
        let size = narrow.map_or(8, |dtype| dtype.size_bytes());
        let tile = if only_narrow && reduces == 0 { narrow::TILE_BYTES / size } else { TILE };
        let grain = if narrow.is_some() { narrow::GRAIN_BYTES / size } else { GRAIN };
        let plain = Plain::of(program).filter(|_| reduces > 0);
        let mut code = Code { ops, values, scalars, scratch: 0, tile, positions, reduces, plain, grain, exact, narrow };
        code.find_direct_stores();
        code.place_values();
        Some(code)
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
            value.place = take(value.dtype.size_bytes(), &mut slots, 0, usize::MAX);
        }
        for (index, op) in self.ops.iter().enumerate() {
            let (out, lasting) = match *op {
                Op::Load { out, .. } => (out, true),
                Op::Position { out } | Op::Random { out, .. } | Op::Apply { out, .. } => (out, false),
                _ => continue,
            };
            let value = &mut self.values[out as usize];
            let until = if lasting { usize::MAX } else { value.last.max(index) };
            value.place = take(value.dtype.size_bytes(), &mut slots, index, until);
        }
        self.scratch = end;
        if let Some(fitting) = CACHE_BYTES.checked_div(end) {
            self.tile = (fitting & !63).clamp(SHORTEST, self.tile);
        }
    }
}

struct Maker {
    /// The value that each register has at this point.
    now: Vec<Option<Id>>,
    values: Vec<Value>,
    ops: Vec<Op>,
    /// Values that are others rounded or wrapped within their class: (value, the other, to which dtype).
    rounded: Vec<(Id, Id, DType)>,
    scalars: Vec<(u16, Id)>,
    positions: bool,
    narrow: Option<DType>,
    /// Registers whose value differs from the narrow one until it is wrapped or rounded.
    wide: Vec<bool>,
    exact: Vec<u16>,
    /// Whether every function takes tiles of the narrow length.
    only_narrow: bool,
}

impl Maker {
    fn new(program: &Program, narrow: Option<DType>) -> Maker {
        Maker {
            now: vec![None; program.regs.len()],
            values: Vec::new(),
            ops: Vec::new(),
            rounded: Vec::new(),
            scalars: Vec::new(),
            positions: false,
            narrow,
            wide: vec![false; program.regs.len()],
            exact: Vec::new(),
            only_narrow: narrow.is_some(),
        }
    }

    /// None if the instruction is not there in the narrow width.
    fn add(&mut self, program: &Program, instr: &Instr) -> Option<()> {
        match *instr {
            Instr::Load { slot, out } => {
                let out = self.define(out, program.regs[out as usize]);
                self.ops.push(Op::Load { slot, out });
            }
            Instr::Scalar { index, class, out } => {
                let out = self.define(out, class);
                self.scalars.push((index, out));
            }
            Instr::Position { out } => {
                self.only_wide()?;
                self.positions = true;
                let out = self.define(out, Class::I64);
                self.ops.push(Op::Position { out });
            }
            Instr::Random { draw, class, seed, out } => {
                self.only_wide()?;
                self.positions = true;
                let out = self.define(out, class);
                self.ops.push(Op::Random { draw, class, seed, out });
            }
            Instr::Apply { function, variant, ref args, out } => {
                let variant = &function.variants[variant as usize];
                let mut read = [self.read(args[0])?; 4];
                for (i, value) in read.iter_mut().enumerate().take(variant.args.len()) {
                    *value = self.read(args[i])?;
                }
                let (tile, class) = (self.tile(function, variant, &read[..variant.args.len()])?, variant.out);
                self.wide[out as usize] = self.narrow.is_some() && class != Class::Bool;
                let out = self.set(out, class);
                self.ops.push(Op::Apply { tile, args: read, out });
            }
            Instr::Cast { reg, from, to, out } => {
                let value = if self.narrow == Some(to) { self.now[reg as usize]? } else { self.read(reg)? };
                let value = self.cast(value, from, to)?;
                self.now[out as usize] = Some(value);
                self.wide[out as usize] = false;
            }
            Instr::Check { check, reg, node } => {
                self.only_wide()?;
                self.positions = true;
                let (arg, class) = (self.read(reg)?, program.regs[reg as usize]);
                self.ops.push(Op::Check { check, class, arg, node });
            }
            Instr::Store { reg, slot } => {
                let arg = self.read(reg)?;
                self.must_fit(&[arg]);
                self.ops.push(Op::Store { arg, slot, from: None });
            }
            Instr::Reduce { kind, reg, class, slot } => {
                let mut arg = self.read(reg)?;
                let (have, arg_form) =
                    (self.values[arg as usize].class, matches!(kind, ReduceKind::ArgMin | ReduceKind::ArgMax));
                if have != Class::Bool || class != Class::Bool {
                    self.only_wide()?;
                }
                if have != class && !arg_form {
                    arg = self.cast(arg, have, representative(class))?;
                }
                self.ops.push(Op::Reduce { kind, arg, slot });
            }
        }
        Some(())
    }

    fn only_wide(&self) -> Option<()> {
        self.narrow.is_none().then_some(())
    }

    /// The tile function of a variant, which in the narrow width may ask scalars to be exact.
    fn tile(&mut self, function: &'static Function, variant: &Variant, args: &[Id]) -> Option<TileFn> {
        let general = variant.tiles[simd::level()];
        let Some(dtype) = self.narrow else { return Some(general) };
        if variant.args.iter().chain([&variant.out]).all(|&class| class == Class::Bool) {
            let narrow = narrow::of_truths(function);
            self.only_narrow &= narrow.is_some();
            return Some(narrow.unwrap_or(general));
        }
        let (tile, exact) = narrow::tile(function, variant, dtype)?;
        if exact {
            self.must_fit(args);
        }
        Some(tile)
    }

    /// Notes that those of the values that are scalars must have their value in the narrow dtype.
    fn must_fit(&mut self, values: &[Id]) {
        if self.narrow.is_some() {
            let exact = self.scalars.iter().filter(|(_, id)| values.contains(id)).map(|&(index, _)| index);
            self.exact.extend(exact);
        }
    }

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
        self.wide[reg as usize] = false;
        self.set(reg, class)
    }

    fn set(&mut self, reg: u16, class: Class) -> Id {
        let id = self.fresh(class);
        self.now[reg as usize] = Some(id);
        id
    }

    fn fresh(&mut self, class: Class) -> Id {
        let narrow = self.narrow.filter(|&dtype| Class::of(dtype) == class);
        self.values.push(Value { class, dtype: narrow.unwrap_or(representative(class)), place: 0, last: 0 });
        (self.values.len() - 1) as Id
    }

    /// None for a value that is not yet what it is in the narrow width.
    fn read(&mut self, reg: u16) -> Option<Id> {
        let id = self.now[reg as usize].expect("a program writes a register before it reads it");
        self.values[id as usize].last = self.ops.len();
        (!self.wide[reg as usize]).then_some(id)
    }

    /// The value converted to `to`; itself if that changes nothing.
    fn cast(&mut self, value: Id, from: Class, to: DType) -> Option<Id> {
        let tile = match self.narrow {
            // Narrow functions have wrapped or rounded it.
            Some(dtype) if dtype == to && from == Class::of(to) => return Some(value),
            Some(dtype) => narrow::cast(from, to, dtype)?,
            None => match convert::cast(from, to) {
                None => return Some(value),
                Some(tiles) => tiles[simd::level()],
            },
        };
        self.values[value as usize].last = self.ops.len();
        let out = self.fresh(Class::of(to));
        self.ops.push(Op::Apply { tile, args: [value; 4], out });
        if from == Class::of(to) {
            self.rounded.push((out, value, to));
        }
        Some(out)
    }
}
