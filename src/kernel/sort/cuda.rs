//! CUDA launches of the kernels in `kernel/sort/host`: stable sorts along a dim, topk, and selections from sorted rows. Of
//! equal elements the earlier comes first, also in `topk`, where PyTorch makes no guarantee.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, fill, input, scratch};
use crate::kernel::cuda::rows::{each, launch, word};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{dim, flag, int};
use crate::kernel::select::cuda as select;
use crate::kernel::sort::cuda_unique as slices;

type Done = Result<(), GpuError>;

const TILE: usize = 1024;
/// Bound: rows of which one thread goes through all elements, to choose among equals as the CPU does.
const CHOOSY: usize = 256;

fn text(dtype: DType) -> &'static Source {
    let wide = dtype.size_bytes() == 8;
    source("sort/sort.cuh", &[("T", Value::Type(dtype)), ("WIDE", Value::Number(wide as u32))])
}

/// The argument words of `sort/sort.cuh`.
#[derive(Clone, Copy, Default)]
struct Words {
    x: u64,
    values: u64,
    at: u64,
    from: u64,
    to: u64,
    rows: usize,
    n: usize,
    run: u64,
    kept: usize,
    descending: usize,
    tiles: usize,
}

impl Words {
    fn list(&self) -> [u64; 11] {
        let [rows, n, kept, descending, tiles] =
            [self.rows, self.n, self.kept, self.descending, self.tiles].map(|n| n as u64);
        [self.x, self.values, self.at, self.from, self.to, rows, n, self.run, kept, descending, tiles]
    }
}

/// The view with one dim moved to the end; a 0-dimensional one as a row of one.
fn moved(view: &RawView, d: usize) -> RawView {
    let mut view = view.clone();
    if view.shape.is_empty() {
        view.shape.push(1);
        view.strides.push(1);
        return view;
    }
    let (size, stride) = (view.shape.remove(d), view.strides.remove(d));
    view.shape.push(size);
    view.strides.push(stride);
    view
}

/// Dense rows to be sorted.
struct Table {
    x: RawView,
    rows: usize,
    n: usize,
    source: &'static Source,
    /// Bytes of a key with its position.
    entry: usize,
}

impl Table {
    fn new(x: &RawView, d: usize, gpu: &mut dyn Gpu) -> Result<Table, GpuError> {
        let x = input(&moved(x, d), x.dtype, gpu)?;
        let n = x.shape.last().copied().unwrap_or(1);
        let rows = x.shape.iter().rev().skip(1).product();
        if n >= u32::MAX as usize {
            return Err(GpuError::Unsupported("a sort of rows this long"));
        }
        let entry = if x.dtype.size_bytes() == 8 { 16 } else { 8 };
        Ok(Table { source: text(x.dtype), x, rows, n, entry })
    }

    fn words(&self) -> Words {
        Words { x: self.x.ptr as u64, rows: self.rows, n: self.n, ..Words::default() }
    }

    /// Sorted entries of all rows.
    fn sorted(&self, descending: bool, gpu: &mut dyn Gpu) -> Result<u64, GpuError> {
        let bytes = self.rows * self.n * self.entry;
        let mut from = gpu.scratch(bytes)? as u64;
        let mut to = if self.n > TILE { gpu.scratch(bytes)? as u64 } else { from };
        let tiles = self.n.div_ceil(TILE);
        let mut words = Words { to: from, descending: descending.into(), tiles, ..self.words() };
        launch(self.source, "ts_block_sort", (self.rows * tiles, 1), 512, &words.list(), gpu)?;
        let mut length = TILE;
        while length < self.n {
            (words.from, words.to, words.run) = (from, to, length as u64);
            each(self.source, "ts_merge_runs", self.rows * self.n, &words.list(), gpu)?;
            std::mem::swap(&mut from, &mut to);
            length *= 2;
        }
        Ok(from)
    }

    /// The first `kept` entries of all rows, and how many lie in a row's memory: tiles give their best until one is left.
    fn best(&self, kept: usize, descending: bool, gpu: &mut dyn Gpu) -> Result<(u64, usize), GpuError> {
        let (mut from, mut n) = (0, self.n);
        loop {
            let tiles = n.div_ceil(TILE);
            let to = gpu.scratch(self.rows * tiles * kept * self.entry)? as u64;
            let words = Words { from, to, n, kept, tiles, descending: descending.into(), ..self.words() };
            launch(self.source, "ts_block_topk", (self.rows * tiles, 1), 512, &words.list(), gpu)?;
            (from, n) = (to, tiles * kept);
            if tiles == 1 {
                return Ok((from, n));
            }
        }
    }
}

/// Sorts along `d` and keeps the first of each row that the outputs have room for.
fn run(
    x: &RawView,
    values: Option<&RawView>,
    at: Option<&RawView>,
    d: usize,
    descending: bool,
    gpu: &mut dyn Gpu,
) -> Done {
    let table = Table::new(x, d, gpu)?;
    let mut output =
        |view: Option<&RawView>, dtype: DType| view.map(|view| Output::new(&moved(view, d), dtype, gpu)).transpose();
    let (values, at) = (output(values, x.dtype)?, output(at, DType::I64)?);
    let kept =
        [&values, &at].into_iter().flatten().next().map_or(0, |out| out.dense.shape.last().copied().unwrap_or(1));
    if table.rows * table.n == 0 || kept == 0 {
        return Ok(());
    }
    let (from, tiles) = if kept * 4 <= TILE && table.n > TILE {
        table.best(kept, descending, gpu)?
    } else {
        (table.sorted(descending, gpu)?, table.n)
    };
    let place = |out: &Option<Output>| word(out.as_ref().map(|out| &out.dense));
    let words = Words { values: place(&values), at: place(&at), from, kept, tiles, ..table.words() };
    each(table.source, "ts_gather_sorted", table.rows * kept, &words.list(), gpu)?;
    [values, at].into_iter().flatten().try_for_each(|out| out.finish(gpu))
}

pub fn sort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 0), flag(call, 1), gpu)
}

pub fn argsort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(&call.inputs[0], None, call.outputs.first(), dim(call, 0), flag(call, 1), gpu)
}

pub fn sort_values(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(&call.inputs[0], call.outputs.first(), None, dim(call, 0), flag(call, 1), gpu)
}

pub fn topk(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 1), flag(call, 2), gpu)
}

/// Positions of the smallest of each row of a dense matrix, in order.
pub fn smallest(x: &RawView, at: &RawView, gpu: &mut dyn Gpu) -> Done {
    run(x, None, Some(at), x.shape.len().saturating_sub(1), false, gpu)
}

/// What is picked from a sorted row.
#[derive(Clone, Copy, PartialEq)]
enum Rank {
    Kth(usize),
    Median,
    NanMedian,
    Mode,
}

fn pick(call: &Call<'_>, dim_attr: usize, rank: Rank, gpu: &mut dyn Gpu) -> Done {
    let mut x = call.inputs[0].clone();
    let whole = matches!(call.attrs.get(dim_attr), None | Some(Attr::None));
    if whole {
        let dense = input(&x, x.dtype, gpu)?;
        x = RawView::contiguous(dense.ptr, dense.dtype, &[dense.numel()]);
    }
    let d = if whole { 0 } else { dim(call, dim_attr) };
    let table = Table::new(&x, d, gpu)?;
    if table.rows == 0 {
        return Ok(());
    }
    if table.n == 0 {
        let fill_value = if x.dtype.is_float() { Scalar::Float(f64::NAN) } else { Scalar::Int(0) };
        fill(fill_value, &call.outputs[0], gpu)?;
        return call.outputs.get(1).map_or(Ok(()), |at| fill(Scalar::Int(0), at, gpu));
    }
    let from = table.sorted(false, gpu)?;
    // Without the dim, or with size 1 there: row-major they are the same.
    let values = Output::new(&call.outputs[0], x.dtype, gpu)?;
    let at = call.outputs.get(1).map(|at| Output::new(at, DType::I64, gpu)).transpose()?;
    let (is_float, place) = (x.dtype.is_float() as usize, word(at.as_ref().map(|at: &Output| &at.dense)));
    let mut words = Words { values: values.dense.ptr as u64, at: place, from, tiles: is_float, ..table.words() };
    if rank == Rank::Mode {
        let bytes = table.rows * 8;
        let best = gpu.scratch(bytes)?;
        gpu.fill_zero(best, bytes)?;
        words.to = best as u64;
        each(table.source, "ts_longest_runs", table.rows * table.n, &words.list(), gpu)?;
        each(table.source, "ts_mode", table.rows, &words.list(), gpu)?;
    } else {
        (words.kept, words.run) = match rank {
            Rank::Kth(k) => (0, k as u64),
            Rank::NanMedian => (2, 0),
            _ => (1, 0),
        };
        if let (Rank::Kth(_), true) = (rank, table.n <= CHOOSY) {
            words.to = gpu.scratch(table.rows * table.n * table.entry)? as u64;
            words.descending = CHOOSY;
        }
        each(table.source, "ts_select_kth", table.rows, &words.list(), gpu)?;
    }
    values.finish(gpu)?;
    at.map_or(Ok(()), |at| at.finish(gpu))
}

pub fn kthvalue(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 1, Rank::Kth(int(call, 0).max(1) as usize - 1), gpu)
}

pub fn median(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Rank::Median, gpu)
}

pub fn nanmedian(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Rank::NanMedian, gpu)
}

/// Of the most frequent element the last: the CPU's choice in rows of up to 16 elements.
pub fn mode(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Rank::Mode, gpu)
}

/// Distinct elements, or slices along a dim.
pub fn unique(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, consecutive) = (&call.inputs[0], flag(call, 1));
    if !matches!(call.attrs.first(), None | Some(Attr::None)) && !x.shape.is_empty() {
        return slices::unique(call, gpu);
    }
    let [values, inverse, counts, number] = [0, 1, 2, 3].map(|k| &call.outputs[k]);
    let n = x.numel();
    if n == 0 {
        return fill(Scalar::Int(0), number, gpu);
    }
    let dense = input(x, x.dtype, gpu)?;
    let mut row = RawView::contiguous(dense.ptr, dense.dtype, &[n]);
    let mut at = 0;
    if !consecutive {
        let (sorted, places) = (scratch(x.dtype, &[n], gpu)?, scratch(DType::I64, &[n], gpu)?);
        run(&row, Some(&sorted), Some(&places), 0, false, gpu)?;
        (row, at) = (sorted, places.ptr as u64);
    }
    let source = text(x.dtype);
    let firsts = scratch(DType::Bool, &[n], gpu)?;
    let words = Words { x: row.ptr as u64, rows: 1, n, ..Words::default() };
    each(source, "ts_unique_flags", n, &Words { to: firsts.ptr as u64, ..words }.list(), gpu)?;
    let ranks = scratch(DType::I64, &[n], gpu)?;
    select::ranks(&firsts, &ranks, number, gpu)?;
    let run = gpu.scratch(n * 8)? as u64;
    let (from, to) = (ranks.ptr as u64, inverse.ptr as u64);
    each(source, "ts_unique_scatter", n, &Words { values: values.ptr as u64, at, from, to, run, ..words }.list(), gpu)?;
    let (at, to) = (number.ptr as u64, counts.ptr as u64);
    each(source, "ts_unique_counts", n, &Words { at, to, run, ..words }.list(), gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::ALL.into_iter().map(text).chain(super::cuda_unique::texts()).collect()
}
