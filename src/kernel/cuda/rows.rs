//! How rows are divided among threads (`kernels/common/rows.cuh`), and helpers that families of kernels share.

use super::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::abi::RawView;
use crate::kernel::cuda::specialize::Value;

/// Bound: elements of one operand that a thread keeps in registers.
const MAX_REGISTERS: usize = 32;

/// The macros that specialize the text of a row kernel.
pub type Names = [(&'static str, Value); 3];

/// For kernels of the same text that do not process rows.
pub const PLAIN: Names = [("V", Value::Number(1)), ("E", Value::Number(0)), ("LANES", Value::Number(256))];

/// The shape of a row kernel.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Elements of a vector.
    pub vector: usize,
    /// Vectors that a thread caches in registers; 0: none.
    pub cached: usize,
    pub lanes: usize,
    pub blocks: usize,
    pub threads: usize,
}

impl Rows {
    /// For `rows` rows of `n` elements, where a thread holds elements of `operands_cached` operands in registers at
    /// once; `operands` are all that are accessed.
    pub fn of(rows: usize, n: usize, operands_cached: usize, operands: &[&RawView]) -> Rows {
        let size = operands.iter().map(|view| view.dtype.size_bytes()).max().unwrap_or(4);
        let aligned =
            |v: usize| n.is_multiple_of(v) && operands.iter().all(|o| (o.ptr as usize).is_multiple_of(v * size));
        let vector = [16 / size, 8 / size, 1].into_iter().find(|&v| v >= 1 && aligned(v)).unwrap_or(1);
        let vectors = n.div_ceil(vector).max(1);
        let max_vectors = (MAX_REGISTERS / operands_cached / vector).max(1);
        // A few vectors for each thread, whole warps except for short rows, and more threads if a row would not fit
        // into registers.
        let mut lanes = vectors.div_ceil(2).next_power_of_two().clamp(1, 256);
        while lanes < 1024 && vectors.div_ceil(lanes) > max_vectors {
            lanes *= 2;
        }
        let each = vectors.div_ceil(lanes).next_power_of_two();
        let cached = if each <= max_vectors { each } else { 0 };
        let threads = lanes.max(256);
        Rows { vector, cached, lanes, blocks: rows.div_ceil(threads / lanes).max(1), threads }
    }

    /// The macros of the text.
    pub fn names(&self) -> Names {
        let number = |n: usize| Value::Number(n as u32);
        [("V", number(self.vector)), ("E", number(self.cached)), ("LANES", number(self.lanes))]
    }
}

/// Launches a kernel of one block dim whose only argument is a struct of words.
pub fn launch(
    source: &Source,
    entry: &str,
    (blocks, parts): (usize, usize),
    threads: usize,
    words: &[u64],
    gpu: &mut dyn Gpu,
) -> Result<(), GpuError> {
    gpu.launch(&Launch {
        source,
        entry,
        grid: [blocks as u32, parts as u32, 1],
        block: [threads as u32, 1, 1],
        shared_bytes: 0,
        args: &[Param::Words(words)],
    })
}

/// Launches a thread for each of `n` elements.
pub fn each(source: &Source, entry: &str, n: usize, words: &[u64], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    if n == 0 {
        return Ok(());
    }
    launch(source, entry, (n.div_ceil(256), 1), 256, words, gpu)
}

/// The address of a view; null if there is none.
pub fn address(view: Option<&RawView>) -> *mut u8 {
    view.map_or(std::ptr::null_mut(), |view| view.ptr)
}

/// Shapes of row kernels for the compile test.
pub fn sample_shapes() -> [Names; 3] {
    let number = Value::Number;
    [(4, 2, 256), (1, 4, 1024), (1, 0, 1024)]
        .map(|(v, e, t)| [("V", number(v)), ("E", number(e)), ("LANES", number(t))])
}
