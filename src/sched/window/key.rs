//! The key under which a window's plan is kept: its structure, and which buffers somebody else can see.
//!
//! In the key: rows' functions, dtypes, layouts, which operands share a buffer and where in it. Never:
//! scalars, kernels' attributes, random offsets, addresses; those are looked up in the nodes at each run.

use super::node::{Input, Node, Work};
use crate::op::tensor::{Buffer, View};
use crate::sched::order::gate::Gate;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// 128 bits, so that two windows never share a key by accident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key(u64, u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// A key is a hash already.
#[derive(Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | byte as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// Plans by key.
pub type ByKey<T> = HashMap<Key, T, BuildHasherDefault<AsItIs>>;

impl Key {
    /// Two independent halves: wyhash's mixing step, and a multiplication that loses nothing.
    #[inline(always)]
    fn push(&mut self, value: u64) {
        let wide = (self.0 ^ value) as u128 * 0x9E37_79B9_7F4A_7C15;
        self.0 = ((wide as u64) ^ (wide >> 64) as u64).wrapping_add(value);
        self.1 = (self.1 ^ value).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29);
    }
}

/// A buffer of the window: where in it the first view of it begins.
struct Met<'a> {
    offset: usize,
    buffer: &'a Buffer,
}

/// The key of a window.
pub fn of(nodes: &[Node]) -> Key {
    let mut key = Key(0x243F_6A88_85A3_08D3, nodes.len() as u64);
    // An operation makes one buffer, and mostly reads what others made.
    let mut met = Vec::with_capacity(nodes.len() + 8);
    // Steps of one gate may become one.
    let mut gates: SmallVec<[&Arc<Gate>; 4]> = SmallVec::new();
    for node in nodes {
        push_work(&mut key, &node.work, (node.gate.is_some() as u64) << 63 | (node.begins_round as u64) << 62);
        if let Some(gate) = &node.gate {
            key.push(gates.iter().position(|known| Arc::ptr_eq(known, gate)).unwrap_or(gates.len()) as u64);
            gates.push(gate);
        }
        for input in &node.inputs {
            match input {
                Input::View(view) => push_view(&mut key, &mut met, view),
                Input::Scalar(_) => key.push(1),
                Input::Position => key.push(2),
                Input::Random(drawn) => key.push(3 + drawn.draw as u64),
            }
        }
        for view in &node.outputs {
            push_view(&mut key, &mut met, view);
        }
    }
    // Who can see the buffers, in the order in which they were met.
    for some in met.chunks(64) {
        let live = some.iter().fold(0, |live, met| {
            met.buffer.mark.store(0, Ordering::Relaxed);
            live << 1 | met.buffer.is_live() as u64
        });
        key.push(live);
    }
    key
}

/// `marks`: the highest two bits of a word, which no work has.
fn push_work(key: &mut Key, work: &Work, marks: u64) {
    match work {
        Work::Map { function, args, result, check } => {
            key.push(function.map_or(0, |function| function as *const _ as u64));
            let types = args.iter().fold(*result as u64, |all, &dtype| all << 8 | dtype as u64);
            key.push(types << 8 | check.map_or(0xFF, |(at, _)| at as u64) | marks);
        }
        Work::Reduce { kind, dims, keepdim, compute } => {
            key.push(0x52 << 32 | *dims as u64 | marks);
            key.push((*kind as u64) << 16 | (*keepdim as u64) << 8 | *compute as u64);
        }
        Work::Kernel { kernel, .. } => key.push(std::ptr::from_ref(*kernel) as u64 | marks),
        Work::Each { each, .. } => {
            key.push(5 | marks);
            each.key.iter().for_each(|&half| key.push(half));
        }
        Work::Transfer => key.push(4 | marks),
    }
}

#[inline]
fn push_view<'a>(key: &mut Key, met: &mut Vec<Met<'a>>, view: &'a View) {
    let buffer = &*view.buffer;
    let layout = &view.layout;
    let mut mark = buffer.mark.load(Ordering::Relaxed) as usize;
    let mut offset = 0;
    if mark == 0 {
        met.push(Met { offset: layout.offset, buffer });
        mark = met.len();
        buffer.mark.store(mark as u32, Ordering::Relaxed);
    } else {
        // Where in the buffer only counts between views of the same window.
        offset = layout.offset.wrapping_sub(met[mark - 1].offset) as u64;
    }
    let (shape, strides): (&[usize], &[isize]) = (&layout.shape, &layout.strides);
    key.push((mark as u64) << 32 | (view.dtype as u64) << 8 | shape.len() as u64 | ((offset != 0) as u64) << 31);
    if offset != 0 {
        key.push(offset);
    }
    for (&size, &stride) in shape.iter().zip(strides) {
        key.push((size as u64).rotate_left(32) ^ stride as u64);
    }
}
