//! The key under which a window's plan is kept: its structure, and which buffers somebody else can see.
//!
//! In the key: rows' functions, dtypes, layouts, which operands share a buffer and where in it. Never:
//! scalars, kernels' attributes, random offsets, addresses; those are looked up in the nodes at each run.

use super::node::{Input, Node, Work};
use crate::op::tensor::{Buffer, View};
use std::sync::atomic::Ordering;

/// 128 bits, so that two windows never share a key by accident.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(u64, u64);

impl Key {
    /// One multiplication that keeps both halves (wyhash's mixing step).
    #[inline(always)]
    fn push(&mut self, value: u64) {
        let fold = |x: u64, k: u64| {
            let wide = x as u128 * k as u128;
            (wide as u64) ^ (wide >> 64) as u64
        };
        self.0 = fold(self.0 ^ value, 0x9E37_79B9_7F4A_7C15).wrapping_add(value);
        self.1 = fold(self.1.rotate_left(23) ^ value, 0xD6E8_FEB8_6659_FD93).wrapping_add(1);
    }
}

/// The key of a window.
pub fn of(nodes: &[Node]) -> Key {
    let mut key = Key(0x243F_6A88_85A3_08D3, nodes.len() as u64);
    let mut seen: Vec<(&Buffer, usize)> = Vec::with_capacity(2 * nodes.len());
    for node in nodes {
        key.push(node.guarded as u64);
        push_work(&mut key, &node.work);
        for input in &node.inputs {
            match input {
                Input::View(view) => push_view(&mut key, &mut seen, view),
                Input::Scalar(_) => key.push(1),
                Input::Position => key.push(2),
                Input::Random { draw, .. } => key.push(3 + *draw as u64),
            }
        }
        for view in &node.outputs {
            push_view(&mut key, &mut seen, view);
        }
    }
    for (buffer, _) in seen {
        key.push(buffer.is_live() as u64);
        buffer.mark.store(0, Ordering::Relaxed);
    }
    key
}

fn push_work(key: &mut Key, work: &Work) {
    match work {
        Work::Map { function, args, result, divisor } => {
            key.push(function.map_or(0, |function| function as *const _ as u64));
            let types = args.iter().fold(*result as u64, |all, &dtype| all << 8 | dtype as u64);
            key.push(types << 8 | divisor.map_or(0xFF, |at| at as u64));
        }
        Work::Reduce { kind, dims, keepdim, compute } => {
            key.push(0x52 << 32 | *dims as u64);
            key.push((*kind as u64) << 16 | (*keepdim as u64) << 8 | *compute as u64);
        }
        Work::Kernel { host, .. } => key.push(*host as usize as u64),
        Work::Each { each, .. } => each.key.iter().for_each(|&half| key.push(half)),
        Work::Transfer => key.push(4),
    }
}

fn push_view<'a>(key: &mut Key, seen: &mut Vec<(&'a Buffer, usize)>, view: &'a View) {
    let buffer = &*view.buffer;
    let mark = match buffer.mark.load(Ordering::Relaxed) {
        0 => {
            seen.push((buffer, view.layout.offset));
            buffer.mark.store(seen.len() as u32, Ordering::Relaxed);
            seen.len()
        }
        mark => mark as usize,
    };
    // Where in the buffer only counts between views of the same window.
    let offset = view.layout.offset.wrapping_sub(seen[mark - 1].1);
    key.push((mark as u64) << 32 | (view.dtype as u64) << 8 | view.layout.ndim() as u64);
    key.push(offset as u64);
    for (&size, &stride) in view.layout.shape.iter().zip(&view.layout.strides) {
        key.push((size as u64).rotate_left(32) ^ stride as u64);
    }
}
