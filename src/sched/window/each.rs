//! Steps over many tensors at once: one program, run for each member of several lists. Optimizers record them.
//!
//! Invariant: members of one node share no written buffer, so that their order does not matter.

use super::node::{Input, Node, Work};
use super::tile_program;
use crate::base::layout::Shape;
use crate::kernel::abi::RawView;
use crate::kernel::program::{Instr, Program};
use crate::op::formula::Written;
use crate::op::tensor::View;
use crate::sched::runtime::Runtime;
use std::cell::RefCell;
use std::sync::Arc;

/// Bound: programs kept; each optimizer has one for its settings and dtypes.
const MAX_PROGRAMS: usize = 512;

/// A compiled formula.
#[derive(Debug)]
pub struct EachProgram {
    /// A hash of all that it does.
    pub key: [u64; 2],
    pub program: Arc<Program>,
    /// By slot of the program: the operand, and whether it is stored.
    pub slots: Vec<(usize, bool)>,
    /// By slot of the program: its column. Slots of one operand are the same memory.
    pub columns: Vec<usize>,
    /// Loads and stores of each member: so many inputs and outputs of the node belong to one.
    pub loads: usize,
    pub stores: usize,
}

impl EachProgram {
    fn new(formula: Written, key: [u64; 2]) -> EachProgram {
        let (instrs, regs) = tile_program::reuse_registers(formula.instrs, &formula.regs);
        let slots = formula.slots;
        let mut operands: Vec<usize> = Vec::new();
        let mut columns = Vec::with_capacity(slots.len());
        for &(operand, _) in &slots {
            columns.push(operands.iter().position(|&known| known == operand).unwrap_or_else(|| {
                operands.push(operand);
                operands.len() - 1
            }));
        }
        let stores = slots.iter().filter(|(_, stored)| *stored).count();
        let program = Arc::new(Program::new(instrs, regs, 0));
        EachProgram { key, program, loads: slots.len() - stores, stores, columns, slots }
    }

    /// How many tensors a node of this program works on.
    pub fn members(&self, node: &Node) -> usize {
        node.outputs.len() / self.stores.max(1)
    }

    /// Shape over which a member's step runs.
    pub fn shape<'a>(&self, node: &'a Node, member: usize) -> &'a [usize] {
        node.outputs[member * self.stores].shape()
    }

    /// A member's operands by slot.
    fn operands<'a>(&self, node: &'a Node, member: usize) -> impl Iterator<Item = &'a Arc<View>> {
        let mut inputs = node.inputs[member * self.loads..].iter().filter_map(Input::view);
        let mut outputs = node.outputs[member * self.stores..].iter();
        self.slots.iter().filter_map(move |&(_, stored)| if stored { outputs.next() } else { inputs.next() })
    }

    /// A member's views as a kernel sees them. Precondition: all have memory.
    pub fn views(&self, node: &Node, member: usize) -> Vec<RawView> {
        let shape = Shape::from_slice(self.shape(node, member));
        let raw = |view: &Arc<View>| {
            let strides = view.layout.broadcast_to(&shape).strides;
            RawView { ptr: view.ptr(), dtype: view.dtype, shape: shape.clone(), strides }
        };
        self.operands(node, member).map(raw).collect()
    }
}

/// The members' views, which a plan keeps: between runs only the addresses change.
#[derive(Default)]
pub struct Members(RefCell<Vec<Vec<RawView>>>);

impl Members {
    /// Shape and views of each member, one after the other. Precondition: all have memory.
    pub fn try_for_each<E>(
        &self,
        each: &EachProgram,
        node: &Node,
        mut work: impl FnMut(&[usize], &[RawView]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut kept = self.0.borrow_mut();
        (0..each.members(node)).try_for_each(|member| {
            match kept.get_mut(member) {
                Some(views) => {
                    views.iter_mut().zip(each.operands(node, member)).for_each(|(raw, view)| raw.ptr = view.ptr());
                }
                None => kept.push(each.views(node, member)),
            }
            work(each.shape(node, member), &kept[member])
        })
    }
}

impl Runtime {
    /// The program of a formula, compiled at its first use.
    pub fn each_program(&self, formula: Written) -> Arc<EachProgram> {
        let key = key_of(&formula);
        let mut programs = self.programs.lock();
        if let Some(known) = programs.get(&key) {
            return known.clone();
        }
        if programs.len() >= MAX_PROGRAMS {
            programs.clear();
        }
        let made = Arc::new(EachProgram::new(formula, key));
        programs.insert(key, made.clone());
        made
    }
}

/// A hash of everything except the numbers in the scalar table.
fn key_of(formula: &Written) -> [u64; 2] {
    let mut key = [0x243F_6A88_85A3_08D3u64, 0x1319_8A2E_0370_7344];
    let mut push = |value: u64| {
        let fold = |x: u64, k: u64| {
            let wide = x as u128 * k as u128;
            (wide as u64) ^ (wide >> 64) as u64
        };
        key[0] = fold(key[0] ^ value, 0x9E37_79B9_7F4A_7C15).wrapping_add(value);
        key[1] = fold(key[1].rotate_left(23) ^ value, 0xD6E8_FEB8_6659_FD93).wrapping_add(1);
    };
    for &(operand, stored) in &formula.slots {
        push((operand as u64) << 1 | stored as u64);
    }
    for instr in &formula.instrs {
        match *instr {
            Instr::Load { slot, out } => push(1 << 56 | (slot as u64) << 16 | out as u64),
            Instr::Scalar { index, class, out } => {
                push(2 << 56 | (class as u64) << 32 | (index as u64) << 16 | out as u64);
            }
            Instr::Apply { function, variant, args, out } => {
                push(std::ptr::from_ref(function) as u64);
                push(3 << 56 | (variant as u64) << 16 | out as u64);
                push(args.iter().fold(0, |all, &arg| all << 16 | arg as u64));
            }
            Instr::Cast { reg, from, to, out } => {
                push(4 << 56 | (from as u64) << 40 | (to as u64) << 32 | (reg as u64) << 16 | out as u64);
            }
            Instr::Store { reg, slot } => push(5 << 56 | (reg as u64) << 16 | slot as u64),
            Instr::Position { .. } | Instr::Random { .. } | Instr::Check { .. } | Instr::Reduce { .. } => {
                unreachable!("formulas have none")
            }
        }
    }
    key
}

/// Members of a node, and how many inputs and outputs each has: a member of a step over many tensors depends on its
/// own operands only.
pub fn shape_of(node: &Node) -> (usize, usize, usize) {
    let members = of(node).map_or(1, |(each, ..)| each.members(node).max(1));
    (members, node.inputs.len() / members, node.outputs.len() / members)
}

/// The program of a node that has one, with its scalars and whether its members are contiguous.
pub fn of(node: &Node) -> Option<(&Arc<EachProgram>, &[u64], bool)> {
    match &node.work {
        Work::Each { each, scalars, lines } => Some((each, scalars, *lines)),
        _ => None,
    }
}
