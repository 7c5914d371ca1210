//! Bounds that several floors share, with their reasons. Counts, never times. Others are where they apply: `grep -r
//! "Bound:" src`.

/// Bound: nodes a window holds before it is flushed, so that a device does not idle while the script records.
pub const WINDOW_NODES: usize = 512;
/// Bound: bytes of results of the nodes of a window, before it is flushed: a dozen operations on the largest tensors in
/// use are still fused, and the device does not wait longer.
pub const WINDOW_BYTES: usize = 16 << 30;
/// Bound: dimensions of a tensor, as in PyTorch's iterators and our kernels' index arithmetic.
pub const MAX_DIMS: usize = 16;
/// Bound: lines of all sources of a session together; Rhai's positions keep 16 bits for the line.
pub const MAX_LINES: usize = 65_535;
/// Bound: columns of a line, for the same reason.
pub const MAX_COLUMNS: usize = 65_534;
/// Bound: nested script calls; each takes up to 13.5 kB of native stack.
pub const CALL_LEVELS: usize = 1000;
/// Bound: depth of an expression in the parser; 70 chained calls are ordinary code.
pub const EXPR_DEPTH: usize = 256;
/// Bound: simulated GPUs of a session; each has a thread of its own.
pub const MAX_SIMULATED_GPUS: usize = 64;
/// Bound: bytes of one source.
pub const SOURCE_BYTES: usize = 16 << 20;
