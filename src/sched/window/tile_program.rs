//! From a group of nodes to one tile program: loads, arithmetic, casts, stores, reductions.

use super::fuse::{Group, alternate};
use super::node::{Input, Node, Work};
use super::plan::{Fused, Operand, ScalarRef, Slot, view_of};
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape, Strides};
use crate::kernel::abi::RawView;
use crate::kernel::program::{Class, Draw, Epilogue, Instr, Program, Reg};
use crate::op::tensor::{Buffer, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// Compiles a group. `stored` says which results have readers outside.
pub fn build(nodes: &[Node], group: &Group, stored: &dyn Fn(&Arc<Buffer>) -> bool) -> Fused {
    let mut body = Builder::new(&group.shape, group.reduced.unwrap_or(0));
    for at in group.nodes.iter().filter(|at| !group.epilogue.contains(at)) {
        body.node(*at, &nodes[*at], stored);
    }
    body.tidy();
    let epilogue = group.epilogue.first().map(|&first| {
        let mut epilogue = Builder::new(nodes[first].iteration(), 0);
        for &at in &group.epilogue {
            epilogue.node(at, &nodes[at], stored);
        }
        epilogue.tidy();
        body.append(epilogue, nodes, stored)
    });
    body.finish(nodes, group, epilogue)
}

/// A value that is already in a register: memory seen through a layout, as a dtype.
struct Value {
    view: Arc<View>,
    /// Layout in iteration space.
    layout: Layout,
    reg: Reg,
}

struct Builder {
    /// Iteration dims in program order: kept ones first, reduced ones last.
    order: Vec<usize>,
    shape: Shape,
    reduced: usize,
    instrs: Vec<Instr>,
    regs: Vec<Class>,
    values: Vec<Value>,
    /// Views that are stored to, with their slots.
    stores: Vec<(Arc<View>, u16)>,
    slots: Vec<Slot>,
    scalars: Vec<ScalarRef>,
    fallible: Vec<usize>,
}

impl Builder {
    /// `mask`: bits of the reduced dims.
    fn new(shape: &[usize], mask: u32) -> Builder {
        let is_reduced = |dim: &usize| mask & (1 << dim) != 0;
        let ndim = shape.len();
        let mut order: Vec<usize> = (0..ndim).filter(|dim| !is_reduced(dim)).collect();
        order.extend((0..ndim).filter(is_reduced));
        Builder {
            shape: order.iter().map(|&dim| shape[dim]).collect(),
            reduced: (0..ndim).filter(is_reduced).count(),
            order,
            instrs: Vec::new(),
            regs: Vec::new(),
            values: Vec::new(),
            stores: Vec::new(),
            slots: Vec::new(),
            scalars: Vec::new(),
            fallible: Vec::new(),
        }
    }

    fn reg(&mut self, class: Class) -> Reg {
        self.regs.push(class);
        (self.regs.len() - 1) as Reg
    }

    fn node(&mut self, at: usize, node: &Node, stored: &dyn Fn(&Arc<Buffer>) -> bool) {
        match &node.work {
            Work::Map { function, args, result, check } => {
                let mut operands = [0 as Reg; 4];
                for (i, input) in node.inputs.iter().enumerate() {
                    operands[i] = self.operand(at, i, input, args[i]);
                }
                if let &Some((operand, check)) = check {
                    let reg = operands[operand as usize];
                    self.instrs.push(Instr::Check { check, reg, node: self.fallible.len() as u16 });
                    self.fallible.push(at);
                }
                let (reg, dtype) = match function {
                    None => (operands[0], args[0]),
                    Some(function) => {
                        let classes: Vec<Class> = args.iter().map(|&dtype| Class::of(dtype)).collect();
                        let variant = function
                            .variant(&classes)
                            .unwrap_or_else(|| panic!("{} has no variant for {classes:?}", function.name));
                        let out = self.reg(function.variants[variant].out);
                        self.instrs.push(Instr::Apply { function, variant: variant as u16, args: operands, out });
                        (self.rounded(out, Class::of(*result), *result), *result)
                    }
                };
                let view = &node.outputs[0];
                let reg = self.cast(reg, dtype, view.dtype);
                self.bind(at, view, reg, stored(&view.buffer));
            }
            Work::Reduce { kind, keepdim, compute, dims } => {
                let reg = self.operand(at, 0, &node.inputs[0], *compute);
                let view = &node.outputs[0];
                let slot = self.reduce_slot(at, view, *keepdim, *dims);
                self.instrs.push(Instr::Reduce { kind: *kind, reg, class: Class::of(*compute), slot });
            }
            Work::Kernel { .. } | Work::Each { .. } | Work::Transfer => unreachable!("steps of their own"),
        }
    }

    /// A register with the operand, converted to `dtype`.
    fn operand(&mut self, node: usize, input: usize, operand: &Input, dtype: DType) -> Reg {
        let class = Class::of(dtype);
        match operand {
            Input::View(view) => {
                let reg = self.load(node, input, view);
                self.cast(reg, view.dtype, dtype)
            }
            Input::Scalar(_) => {
                let index = self.scalars.len() as u16;
                self.scalars.push(ScalarRef::Value { node, input: input as u8, class, dtype });
                let out = self.reg(class);
                self.instrs.push(Instr::Scalar { index, class, out });
                out
            }
            Input::Position => {
                let out = self.reg(Class::I64);
                self.instrs.push(Instr::Position { out });
                self.cast(out, DType::I64, dtype)
            }
            Input::Random(drawn) => {
                let draw = drawn.draw;
                let seed = self.scalars.len() as u16;
                let input = input as u8;
                self.scalars.extend([ScalarRef::Seed { node, input }, ScalarRef::Offset { node, input }]);
                if draw == Draw::Integer {
                    self.scalars.extend([ScalarRef::Low { node, input }, ScalarRef::Range { node, input }]);
                }
                let out = self.reg(class);
                self.instrs.push(Instr::Random { draw, class, seed, out });
                self.rounded(out, class, dtype)
            }
        }
    }

    /// 16-bit floats and small integers are rounded or wrapped after arithmetic.
    fn rounded(&mut self, reg: Reg, class: Class, dtype: DType) -> Reg {
        if matches!(dtype, DType::F32 | DType::F64 | DType::I64 | DType::Bool) {
            return reg;
        }
        let out = self.reg(class);
        self.instrs.push(Instr::Cast { reg, from: class, to: dtype, out });
        out
    }

    fn cast(&mut self, reg: Reg, from: DType, to: DType) -> Reg {
        // Widening within a class changes no bits.
        let widens = Class::of(from) == Class::of(to)
            && (from == to || to == DType::F32 || to == DType::I64 || (to == DType::I32 && from.size_bytes() < 4));
        if widens {
            return reg;
        }
        let out = self.reg(Class::of(to));
        self.instrs.push(Instr::Cast { reg, from: Class::of(from), to, out });
        out
    }

    fn iteration_layout(&self, view: &View) -> Layout {
        let full: Vec<usize> = {
            let mut full = vec![0; self.order.len()];
            for (at, &dim) in self.order.iter().enumerate() {
                full[dim] = self.shape[at];
            }
            full
        };
        view.layout.broadcast_to(&full).permute(&self.order)
    }

    fn load(&mut self, node: usize, input: usize, view: &Arc<View>) -> Reg {
        let layout = self.iteration_layout(view);
        let known = self.values.iter().rev().find(|value| {
            Arc::ptr_eq(&value.view.buffer, &view.buffer) && value.view.dtype == view.dtype && value.layout == layout
        });
        if let Some(value) = known {
            return value.reg;
        }
        let reg = self.reg(Class::of(view.dtype));
        let slot = self.slot(node, Operand::Input(input as u8), layout.strides.clone(), layout.shape.clone());
        self.instrs.push(Instr::Load { slot, out: reg });
        self.values.push(Value { view: view.clone(), layout, reg });
        reg
    }

    /// Makes `reg` the current value of a view, and stores it if it has readers outside.
    fn bind(&mut self, node: usize, view: &Arc<View>, reg: Reg, stored: bool) {
        let layout = self.iteration_layout(view);
        // An older value of this memory is stale now; `compatible` has checked that it has the same layout, or lies between
        // what is written.
        let shares = |other: &View| Arc::ptr_eq(&other.buffer, &view.buffer) && !alternate(other, view);
        self.values.retain(|value| !shares(&value.view));
        if stored {
            let old = self.stores.iter().position(|(other, _)| shares(other));
            let slot = match old {
                // Invariant: a program stores to a location once, the last value. Earlier values may still be read in
                // registers, which may alias the location.
                Some(old) => {
                    let slot = self.stores[old].1;
                    self.instrs.retain(|instr| !matches!(instr, Instr::Store { slot: other, .. } if *other == slot));
                    slot
                }
                None => {
                    let slot = self.slot(node, Operand::Output(0), layout.strides.clone(), layout.shape.clone());
                    self.stores.push((view.clone(), slot));
                    slot
                }
            };
            self.instrs.push(Instr::Store { reg, slot });
        }
        self.values.push(Value { view: view.clone(), layout, reg });
    }

    fn slot(&mut self, node: usize, operand: Operand, strides: Strides, shape: Shape) -> u16 {
        self.slots.push(Slot { node, operand, strides, shape });
        (self.slots.len() - 1) as u16
    }

    fn reduce_slot(&mut self, node: usize, view: &Arc<View>, keepdim: bool, dims: u32) -> u16 {
        let kept = |at: usize| !keepdim || dims & (1 << at) == 0;
        let pick = |at: &usize| kept(*at);
        let strides = (0..view.layout.ndim()).filter(pick).map(|at| view.layout.strides[at]).collect();
        let shape = (0..view.layout.ndim()).filter(pick).map(|at| view.layout.shape[at]).collect();
        self.slot(node, Operand::Output(0), strides, shape)
    }

    fn tidy(&mut self) {
        self.drop_dead();
        self.drop_unused_slots();
    }

    /// Takes over the slots and scalars of a map over the results of the reductions.
    fn append(&mut self, after: Builder, nodes: &[Node], stored: &dyn Fn(&Arc<Buffer>) -> bool) -> Box<Epilogue> {
        let first = self.slots.len() as u16;
        let results: SmallVec<[u16; 4]> = self.instrs.iter().filter_map(reduce_slot).collect();
        let reduced = self.order[self.order.len() - self.reduced..].to_vec();
        let without = after.order.len() + reduced.len() == self.order.len();
        let is_kept = |dim: usize| without || !reduced.contains(&dim);
        let mut slots = SmallVec::new();
        for slot in after.slots {
            let view = view_of(&nodes[slot.node], slot.operand);
            let is_view = |at: &&u16| {
                let known = &self.slots[**at as usize];
                let result = view_of(&nodes[known.node], known.operand);
                Arc::ptr_eq(&result.buffer, &view.buffer) && result.layout == view.layout && result.dtype == view.dtype
            };
            let known = results.iter().find(is_view).copied();
            slots.push(known.unwrap_or_else(|| {
                let kept = (0..slot.shape.len()).filter(|&dim| is_kept(dim));
                let (shape, strides) = kept.map(|dim| (slot.shape[dim], slot.strides[dim])).unzip();
                self.slot(slot.node, slot.operand, strides, shape)
            }));
        }
        let mut instrs = after.instrs;
        for instr in &mut instrs {
            if let Instr::Scalar { index, .. } = instr {
                *index += self.scalars.len() as u16;
            }
        }
        self.scalars.extend(after.scalars);
        let is_unread = |at: &u16| {
            let slot = &self.slots[*at as usize];
            !stored(&view_of(&nodes[slot.node], slot.operand).buffer)
        };
        let (instrs, regs) = reuse_registers(instrs, &after.regs);
        let unread = results.into_iter().filter(is_unread).collect();
        Box::new(Epilogue { program: Program::new(instrs, regs, 0), slots, first, unread })
    }

    fn finish(self, nodes: &[Node], group: &Group, epilogue: Option<Box<Epilogue>>) -> Fused {
        let (instrs, regs) = reuse_registers(self.instrs, &self.regs);
        let views = self
            .slots
            .iter()
            .map(|slot| RawView {
                ptr: std::ptr::null_mut(),
                dtype: view_of(&nodes[slot.node], slot.operand).dtype,
                shape: slot.shape.clone(),
                strides: slot.strides.clone(),
            })
            .collect();
        let mut program = Program::new(instrs, regs, self.reduced);
        program.order = self.order.iter().map(|&dim| dim as u8).collect();
        program.epilogue = epilogue;
        Fused {
            views: Arc::new(views),
            table: Arc::new(vec![0; self.scalars.len()]),
            program: Arc::new(program),
            shape: self.shape,
            slots: self.slots,
            scalars: self.scalars,
            nodes: group.nodes.clone(),
            fallible: self.fallible,
        }
    }

    /// Slots of removed loads are removed too: their buffers may have no memory.
    fn drop_unused_slots(&mut self) {
        let mut number = vec![u16::MAX; self.slots.len()];
        let mut kept = Vec::with_capacity(self.slots.len());
        let mut all: Vec<Option<Slot>> = std::mem::take(&mut self.slots).into_iter().map(Some).collect();
        for instr in &mut self.instrs {
            let Some(slot) = slot_of(instr) else { continue };
            let old = *slot as usize;
            if let Some(value) = all[old].take() {
                number[old] = kept.len() as u16;
                kept.push(value);
            }
            *slot = number[old];
        }
        self.slots = kept;
    }

    /// Removes instructions whose results are not used.
    fn drop_dead(&mut self) {
        let mut needed = vec![false; self.regs.len()];
        let mut kept = Vec::with_capacity(self.instrs.len());
        for instr in self.instrs.drain(..).rev() {
            let (sources, out) = uses(&instr);
            if out.is_none_or(|out| needed[out as usize]) {
                sources.iter().flatten().for_each(|&reg| needed[reg as usize] = true);
                kept.push(instr);
            }
        }
        kept.reverse();
        self.instrs = kept;
    }
}

/// The slot of an instruction that has one.
fn slot_of(instr: &mut Instr) -> Option<&mut u16> {
    match instr {
        Instr::Load { slot, .. } | Instr::Store { slot, .. } | Instr::Reduce { slot, .. } => Some(slot),
        _ => None,
    }
}

/// The slot of a reduction's result.
fn reduce_slot(instr: &Instr) -> Option<u16> {
    if let Instr::Reduce { slot, .. } = *instr { Some(slot) } else { None }
}

/// Registers that an instruction reads and the one that it writes.
fn uses(instr: &Instr) -> ([Option<Reg>; 4], Option<Reg>) {
    match *instr {
        Instr::Load { out, .. } | Instr::Scalar { out, .. } | Instr::Position { out } | Instr::Random { out, .. } => {
            ([None; 4], Some(out))
        }
        Instr::Apply { function, variant, args, out } => {
            let count = function.variants[variant as usize].args.len();
            let mut sources = [None; 4];
            for (source, arg) in sources.iter_mut().zip(args).take(count) {
                *source = Some(arg);
            }
            (sources, Some(out))
        }
        Instr::Cast { reg, out, .. } => ([Some(reg), None, None, None], Some(out)),
        Instr::Check { reg, .. } | Instr::Store { reg, .. } | Instr::Reduce { reg, .. } => {
            ([Some(reg), None, None, None], None)
        }
    }
}

/// Reuses registers whose value is not needed any more, so that a long chain stays in the first-level cache.
/// Invariant: a `Load` register is never written again, since it may alias memory.
pub(in crate::sched) fn reuse_registers(mut instrs: Vec<Instr>, classes: &[Class]) -> (Vec<Instr>, Vec<Class>) {
    let mut last = vec![0usize; classes.len()];
    for (at, instr) in instrs.iter().enumerate() {
        uses(instr).0.iter().flatten().for_each(|&reg| last[reg as usize] = at);
    }
    let mut map: Vec<Reg> = vec![Reg::MAX; classes.len()];
    let mut regs: Vec<Class> = Vec::new();
    let mut free: Vec<Reg> = Vec::new();
    let mut pinned: Vec<bool> = Vec::new();
    for (at, instr) in instrs.iter_mut().enumerate() {
        let (sources, out) = uses(instr);
        let renamed = sources.map(|source| source.map(|reg| map[reg as usize]));
        for (old, new) in sources.iter().zip(renamed) {
            if let (Some(old), Some(new)) = (old, new)
                && last[*old as usize] == at
                && !pinned[new as usize]
                && !free.contains(&new)
            {
                free.push(new);
            }
        }
        let target = out.map(|out| {
            let class = classes[out as usize];
            let load = matches!(instr, Instr::Load { .. } | Instr::Scalar { .. });
            let found = if load { None } else { free.iter().position(|&reg| regs[reg as usize] == class) };
            let reg = match found {
                Some(at) => free.swap_remove(at),
                None => {
                    regs.push(class);
                    pinned.push(load);
                    (regs.len() - 1) as Reg
                }
            };
            map[out as usize] = reg;
            reg
        });
        rename(instr, renamed, target);
    }
    (instrs, regs)
}

fn rename(instr: &mut Instr, sources: [Option<Reg>; 4], target: Option<Reg>) {
    match instr {
        Instr::Load { out, .. } | Instr::Scalar { out, .. } | Instr::Position { out } | Instr::Random { out, .. } => {
            *out = target.expect("it writes");
        }
        Instr::Apply { args, out, .. } => {
            for (arg, source) in args.iter_mut().zip(sources) {
                *arg = source.unwrap_or(0);
            }
            *out = target.expect("it writes");
        }
        Instr::Cast { reg, out, .. } => {
            *reg = sources[0].expect("it reads");
            *out = target.expect("it writes");
        }
        Instr::Check { reg, .. } | Instr::Store { reg, .. } | Instr::Reduce { reg, .. } => {
            *reg = sources[0].expect("it reads");
        }
    }
}
