//! The cache key of a window's plan: its structure, and which buffers have handles outside of the window.
//!
//! The key contains: rows' functions, dtypes, layouts, which operands share a buffer and at which offset. Not:
//! scalars, kernels' attributes, random offsets, addresses; those are read from the nodes at each run. Nor the layouts of
//! operands of kernels, which no plan depends on: a decoding step whose cache has grown by one is the known step.

use super::fuse::Group;
use super::node::{Input, Node, Work};
use crate::op::tensor::{Buffer, View};
use crate::sched::order::gate::Gate;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// 128 bits: two different windows have practically never the same key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key(u64, u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Hashes a key to itself: it is already a hash.
#[derive(Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
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
pub type ByKey<T> = HashMap<Key, T, BuildHasherDefault<IdentityHasher>>;

impl Key {
    /// Mixes a word into two independent halves: wyhash's mixing step, and an invertible multiplication.
    #[inline(always)]
    fn push(&mut self, value: u64) {
        let wide = (self.0 ^ value) as u128 * 0x9E37_79B9_7F4A_7C15;
        self.0 = ((wide as u64) ^ (wide >> 64) as u64).wrapping_add(value);
        self.1 = (self.1 ^ value).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29);
    }
}

/// A buffer of the window, and the offset of its first view that counts.
struct SeenBuffer<'a> {
    offset: Option<usize>,
    buffer: &'a Buffer,
}

// Tags: the first words of inputs and of work without a function or kernel, whose addresses are larger.
const SCALAR: u64 = 1;
const POSITION: u64 = 2;
/// Plus the kind of random values.
const RANDOM: u64 = 3;
const TRANSFER: u64 = 4;
const EACH: u64 = 5;
const REDUCE: u64 = 0x52 << 32;

/// The key of a window, and a hash of what its kernels' operands look like, by which repetitions tell equal runs.
pub fn of(nodes: &[Node]) -> (Key, u64) {
    let mut key = Key(0x243F_6A88_85A3_08D3, nodes.len() as u64);
    let mut layouts = Key(0x1319_8A2E_0370_7344, 0);
    // An operation usually writes one new buffer, and reads results of others.
    let mut seen = Vec::with_capacity(nodes.len() + 8);
    // The gates so far: nodes with the same gate may be fused.
    let mut gates: SmallVec<[&Arc<Gate>; 4]> = SmallVec::new();
    for node in nodes {
        push_work(&mut key, &node.work, (node.gate.is_some() as u64) << 63 | (node.begins_round as u64) << 62);
        if let Some(gate) = &node.gate {
            let known = gates.iter().position(|known| Arc::ptr_eq(known, gate));
            key.push(known.unwrap_or_else(|| {
                gates.push(gate);
                gates.len() - 1
            }) as u64);
        }
        match node.work {
            Work::Kernel { .. } => push_buffers(&mut key, &mut layouts, &mut seen, node),
            _ => push_operands(&mut key, &mut seen, node),
        }
    }
    // Which buffers have handles outside of the window, in the order of their first use.
    for some in seen.chunks(64) {
        let live = some.iter().fold(0, |live, seen| {
            seen.buffer.window_index.store(0, Ordering::Relaxed);
            live << 1 | seen.buffer.is_live() as u64
        });
        key.push(live);
    }
    (key, layouts.0)
}

/// The key of a group of nodes that becomes one fused step. `stored` says which results have readers outside.
pub fn of_group(nodes: &[Node], group: &Group, stored: &dyn Fn(&Arc<Buffer>) -> bool) -> Key {
    let mut key = Key(0xA409_3822_299F_31D0, group.nodes.len() as u64);
    let mut seen = Vec::with_capacity(group.nodes.len() + 4);
    for at in &group.nodes {
        let node = &nodes[*at];
        let is_stored = node.outputs.first().is_some_and(|view| stored(&view.buffer));
        let in_epilogue = group.epilogue.contains(at);
        push_work(&mut key, &node.work, (is_stored as u64) << 63 | (in_epilogue as u64) << 62);
        push_operands(&mut key, &mut seen, node);
    }
    seen.iter().for_each(|seen| seen.buffer.window_index.store(0, Ordering::Relaxed));
    key
}

#[inline]
fn push_operands<'a>(key: &mut Key, seen: &mut Vec<SeenBuffer<'a>>, node: &'a Node) {
    for input in &node.inputs {
        match input {
            Input::View(view) => push_view(key, seen, view),
            Input::Scalar(_) => key.push(SCALAR),
            Input::Position => key.push(POSITION),
            Input::Random(drawn) => key.push(RANDOM + drawn.draw as u64),
        }
    }
    for view in &node.outputs {
        push_view(key, seen, view);
    }
}

/// `flags`: the highest two bits of the first word, which are 0 in all work tags and pointers.
fn push_work(key: &mut Key, work: &Work, flags: u64) {
    match work {
        Work::Map { function, args, result, check } => {
            key.push(function.map_or(0, |function| function as *const _ as u64));
            let types = args.iter().fold(*result as u64, |all, &dtype| all << 8 | dtype as u64);
            key.push(types << 8 | check.map_or(0xFF, |(at, _)| at as u64) | flags);
        }
        Work::Reduce { kind, dims, keepdim, compute } => {
            key.push(REDUCE | *dims as u64 | flags);
            key.push((*kind as u64) << 16 | (*keepdim as u64) << 8 | *compute as u64);
        }
        Work::Kernel { kernel, .. } => key.push(std::ptr::from_ref(*kernel) as u64 | flags),
        Work::Each { each, .. } => {
            key.push(EACH | flags);
            each.key.iter().for_each(|&half| key.push(half));
        }
        Work::Transfer => key.push(TRANSFER | flags),
    }
}

/// The operands of a kernel: which buffers they are of goes into the key, what they look like into `layouts`.
#[inline]
fn push_buffers<'a>(key: &mut Key, layouts: &mut Key, seen: &mut Vec<SeenBuffer<'a>>, node: &'a Node) {
    for view in node.reads().chain(&node.outputs) {
        let index = number(seen, &view.buffer) as u64;
        key.push(index << 32 | (view.dtype as u64) << 8 | view.layout.ndim() as u64);
        push_layout(layouts, view);
    }
}

#[inline]
fn push_view<'a>(key: &mut Key, seen: &mut Vec<SeenBuffer<'a>>, view: &'a View) {
    let index = number(seen, &view.buffer);
    // Offsets matter only relative to other views of the same buffer in the window.
    let first = *seen[index - 1].offset.get_or_insert(view.layout.offset);
    let offset = view.layout.offset.wrapping_sub(first) as u64;
    let ndim = view.layout.ndim() as u64;
    key.push((index as u64) << 32 | (view.dtype as u64) << 8 | ndim | ((offset != 0) as u64) << 31);
    if offset != 0 {
        key.push(offset);
    }
    push_layout(key, view);
}

/// The number of a buffer in the order of first use, from 1.
#[inline]
fn number<'a>(seen: &mut Vec<SeenBuffer<'a>>, buffer: &'a Buffer) -> usize {
    let index = buffer.window_index.load(Ordering::Relaxed) as usize;
    if index != 0 {
        return index;
    }
    seen.push(SeenBuffer { offset: None, buffer });
    buffer.window_index.store(seen.len() as u32, Ordering::Relaxed);
    seen.len()
}

#[inline]
fn push_layout(key: &mut Key, view: &View) {
    for (&size, &stride) in view.layout.shape.iter().zip(&view.layout.strides) {
        key.push((size as u64).rotate_left(32) ^ stride as u64);
    }
}
