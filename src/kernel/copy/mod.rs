//! Copies, fills, and operations that only move elements: concatenation, repetition, flips, tril and triu, transposition.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_transpose;
#[cfg(feature = "cuda")]
mod cuda_triangle;
pub mod host;

use super::family::family;

family! {
    "copy";
    kernels {
        "cat" CAT: host::arrange::cat, cuda::cat;
        "repeat" REPEAT: host::arrange::repeat, cuda::repeat;
        "repeat_interleave" REPEAT_INTERLEAVE: host::arrange::repeat_interleave, cuda::repeat_interleave;
        "flip" FLIP: host::arrange::flip, cuda::flip;
        "roll" ROLL: host::arrange::roll, cuda::roll;
        "diag_embed" DIAG_EMBED: host::arrange::diag_embed, cuda::diag_embed;
        "tril" TRIL: host::arrange::tril, cuda::tril;
        "triu" TRIU: host::arrange::triu, cuda::triu;
        "fill_diagonal" FILL_DIAGONAL: host::arrange::fill_diagonal, cuda::fill_diagonal;
        "triangle_indices" TRIANGLE_INDICES: host::triangle::triangle_indices, cuda_triangle::triangle_indices;
        "strided_add" STRIDED_ADD: host::strided_add::strided_add, cuda::strided_add;
    }
    headers { "copy/transpose.cuh" "copy/tril_triu.cuh" "copy/triangle.cuh" }
    structs { cuda::TRIL_TRIU_ARGS cuda_transpose::TRANSPOSE_ARGS cuda_triangle::TRIANGLE_ARGS }
    texts cuda::texts
}
