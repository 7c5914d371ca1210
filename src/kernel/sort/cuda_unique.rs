//! CUDA launches of `unique_dim` (`kernel/sort/host/unique`): sorts the indices of slices by comparing whole slices.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{fill, input, scratch};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{dim, flag};
use crate::kernel::select::cuda as select;

type Done = Result<(), GpuError>;

/// Entries that a block sorts at once, as in the text.
const TILE: usize = 2048;

fn text(dtype: DType) -> &'static Source {
    source("sort/unique.cuh", &[("T", Value::Type(dtype))])
}

/// The argument words of `sort/unique.cuh`.
#[derive(Clone, Copy)]
struct Words {
    /// x, values, order, inverse, begins, counts, number, firsts, ranks.
    addresses: [u64; 9],
    n: usize,
    m: usize,
    size: usize,
    inner: usize,
    from: usize,
    to: usize,
}

impl Words {
    fn list(&self) -> [u64; 15] {
        let mut words = [0; 15];
        words[..9].copy_from_slice(&self.addresses);
        let sizes = [self.n, self.m, self.size, self.inner, self.from, self.to];
        words[9..].copy_from_slice(&sizes.map(|n| n as u64));
        words
    }
}

/// Distinct slices along the dim that the first attribute names.
pub fn unique(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, d, consecutive) = (&call.inputs[0], dim(call, 0), flag(call, 1));
    let [values, inverse, counts, number] = [0, 1, 2, 3].map(|k| &call.outputs[k]);
    let n = x.shape[d];
    if n == 0 {
        return fill(Scalar::Int(0), number, gpu);
    }
    let mut front = x.clone();
    let (size, stride) = (front.shape.remove(d), front.strides.remove(d));
    front.shape.insert(0, size);
    front.strides.insert(0, stride);
    let (dense, source) = (input(&front, x.dtype, gpu)?, text(x.dtype));
    let size = if consecutive { n } else { n.next_power_of_two().max(TILE) };
    let mut numbers = |count: usize| Ok(gpu.scratch(count * 8)? as u64);
    let (order, begins) = (numbers(size)?, numbers(n)?);
    let firsts = scratch(DType::Bool, &[n], gpu)?;
    let ranks = scratch(DType::I64, &[n], gpu)?;
    let at = |view: &RawView| view.ptr as u64;
    let ends = [at(counts), at(number), at(&firsts), at(&ranks)];
    let mut addresses = [at(&dense), at(values), order, at(inverse), begins, 0, 0, 0, 0];
    addresses[5..].copy_from_slice(&ends);
    let (m, inner) = (dense.numel() / n, x.shape[d + 1..].iter().product());
    let words = Words { addresses, n, m, size, inner, from: 2, to: TILE };
    if consecutive {
        each(source, "ts_iota", n, &words.list(), gpu)?;
    } else {
        sort(source, &words, gpu)?;
    }
    each(source, "ts_unique_dim_flags", n, &words.list(), gpu)?;
    select::ranks(&firsts, &ranks, number, gpu)?;
    each(source, "ts_unique_dim_inverse", n, &words.list(), gpu)?;
    each(source, "ts_unique_dim_counts", n, &words.list(), gpu)?;
    each(source, "ts_unique_dim_gather", n * m, &words.list(), gpu)
}

/// Tiles first; then longer and longer runs, whose wide steps go across tiles.
fn sort(source: &'static Source, words: &Words, gpu: &mut dyn Gpu) -> Done {
    let tiles = (words.size / TILE, 1);
    launch(source, "ts_bitonic_sort_tile", tiles, 1024, &words.list(), gpu)?;
    let mut run = 2 * TILE;
    while run <= words.size {
        let mut step = run / 2;
        while step >= TILE {
            let across = Words { from: run, to: step, ..*words };
            launch(source, "ts_bitonic_step", (words.size / 512, 1), 256, &across.list(), gpu)?;
            step /= 2;
        }
        launch(source, "ts_bitonic_sort_tile", tiles, 1024, &Words { from: run, to: run, ..*words }.list(), gpu)?;
        run *= 2;
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::ALL.into_iter().map(text).collect()
}
