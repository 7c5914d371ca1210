//! Attention of f32 on tensor cores (`kernels/attention/tf32.cuh`): sizes of tiles for each head dim, and what they take.

use super::cuda_mma::{Problem, Work, text};
use crate::base::dtype::DType;
use crate::kernel::cuda::Source;

/// Bound: shared memory that a block may have on every compute capability from 8.0 on.
const SHARED: usize = 99 << 10;
/// Queries, or keys, that a block keeps.
const KEPT: usize = 64;
/// Rows of the other factor in a tile.
const TILE: usize = 32;
/// Tiles of 16 queries that a warp has in the forward pass.
const QUERY_TILES: usize = 1;

/// Blocks that shall fit on a multiprocessor: registers are limited so. Sums of wider heads need more of them.
fn blocks(head_dim: usize) -> usize {
    match head_dim {
        ..=32 => 4,
        33..=64 => 3,
        _ => 2,
    }
}

/// Bytes of rows in shared memory, each padded by 16 bytes against bank conflicts.
fn bytes(rows: usize, head_dim: usize) -> usize {
    rows * (head_dim + 4) * size_of::<f32>()
}

/// Tiles of a gradient's other factors: one is copied while one is computed, where there is room for two.
fn stages(head_dim: usize) -> usize {
    if bytes(2 * (KEPT + 2 * TILE), head_dim) <= SHARED { 2 } else { 1 }
}

fn forward_text(head_dim: usize, mask: Option<DType>) -> &'static Source {
    let numbers = [("Q", QUERY_TILES), ("N", TILE), ("BLOCKS", blocks(head_dim))];
    text("attention/tf32.cuh", DType::F32, head_dim, mask, &numbers)
}

fn gradient_text(head_dim: usize, mask: Option<DType>) -> &'static Source {
    let numbers = [("STAGES", stages(head_dim)), ("N", TILE), ("BLOCKS", blocks(head_dim))];
    text("attention/tf32_grad.cuh", DType::F32, head_dim, mask, &numbers)
}

pub fn forward(p: &Problem<'_>) -> (&'static Source, Work) {
    let blocks = p.heads * p.queries.div_ceil(KEPT * QUERY_TILES);
    (forward_text(p.head_dim, p.mask_type()), ("ts_attention_forward_tf32", blocks, bytes(2 * 2 * TILE, p.head_dim)))
}

pub fn gradient(p: &Problem<'_>) -> (&'static Source, [Work; 2]) {
    let shared = bytes(2 * (KEPT + stages(p.head_dim) * TILE), p.head_dim);
    let work = [("ts_attention_dq_tf32", p.queries), ("ts_attention_dk_dv_tf32", p.keys)]
        .map(|(entry, rows)| (entry, p.heads * rows.div_ceil(KEPT), shared));
    (gradient_text(p.head_dim, p.mask_type()), work)
}

/// Texts for the compile test.
pub fn texts() -> impl Iterator<Item = &'static Source> {
    [(64, None), (128, Some(DType::Bool)), (40, Some(DType::F32))]
        .into_iter()
        .flat_map(|(head_dim, mask)| [forward_text(head_dim, mask), gradient_text(head_dim, mask)])
}
