//! CUDA launches of the kernels in `kernel/sort/host`: stable sorts along a dim, topk, and selections from sorted rows.
//! Of equal elements the earlier is first, also in `topk`, where PyTorch makes no guarantee.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, fill, input, scratch};
use crate::kernel::cuda::rows::{address, each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{dim, flag, int};
use crate::kernel::select::cuda as select;
use crate::kernel::sort::cuda_unique as slices;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

const TILE: usize = 1024;
/// Bound: length of rows in which one thread reads all elements, to select among equal ones as the CPU does.
const MAX_CPU_ORDER: usize = 256;

fn text(dtype: DType) -> &'static Source {
    let wide = dtype.size_bytes() == 8;
    source("sort/sort.cuh", &[("T", Value::Type(dtype)), ("WIDE", Value::Number(wide as u32))])
}

structs! {
    pub static ARGS = "sort/args.cuh";
    struct Args {
        x: const T,
        values: mut T,
        indices: mut i64,
        from: mut Entry,
        to: mut Entry,
        rows: usize,
        n: usize,
        run: usize,
        topk: usize,
        descending: usize,
        tiles: usize,
    }
}

/// The view with one dim moved to the end; a 0-dimensional view as a row of one element.
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

/// Contiguous rows to be sorted.
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

    fn words(&self) -> Args {
        Args { x: self.x.ptr, rows: self.rows, n: self.n, ..Args::NONE }
    }

    /// Sorted entries of all rows.
    fn sorted(&self, descending: bool, gpu: &mut dyn Gpu) -> Result<*mut u8, GpuError> {
        let bytes = self.rows * self.n * self.entry;
        let mut from = gpu.scratch(bytes)?;
        let mut to = if self.n > TILE { gpu.scratch(bytes)? } else { from };
        let tiles = self.n.div_ceil(TILE);
        let mut args = Args { to: from, descending: descending.into(), tiles, ..self.words() };
        launch(self.source, "ts_block_sort", (self.rows * tiles, 1), 512, args.words(), gpu)?;
        let mut length = TILE;
        while length < self.n {
            (args.from, args.to, args.run) = (from, to, length);
            each(self.source, "ts_merge_runs", self.rows * self.n, args.words(), gpu)?;
            std::mem::swap(&mut from, &mut to);
            length *= 2;
        }
        Ok(from)
    }

    /// The first `topk` entries of all rows, and the entries that a row has in memory: each pass selects within tiles,
    /// until one tile is left.
    fn topk_entries(&self, k: usize, descending: bool, gpu: &mut dyn Gpu) -> Result<(*mut u8, usize), GpuError> {
        let (mut from, mut n) = (std::ptr::null_mut(), self.n);
        loop {
            let tiles = n.div_ceil(TILE);
            let to = gpu.scratch(self.rows * tiles * k * self.entry)?;
            let args = Args { from, to, n, topk: k, tiles, descending: descending.into(), ..self.words() };
            launch(self.source, "ts_block_topk", (self.rows * tiles, 1), 512, args.words(), gpu)?;
            (from, n) = (to, tiles * k);
            if tiles == 1 {
                return Ok((from, n));
            }
        }
    }
}

/// Sorts along `d` and writes the first elements of each row, as many as the outputs have.
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
    let k = [&values, &at].into_iter().flatten().next().map_or(0, |out| out.dense.shape.last().copied().unwrap_or(1));
    if table.rows * table.n == 0 || k == 0 {
        return Ok(());
    }
    let (from, tiles) = if k * 4 <= TILE && table.n > TILE {
        table.topk_entries(k, descending, gpu)?
    } else {
        (table.sorted(descending, gpu)?, table.n)
    };
    let place = |out: &Option<Output>| address(out.as_ref().map(|out| &out.dense));
    let args = Args { values: place(&values), indices: place(&at), from, topk: k, tiles, ..table.words() };
    each(table.source, "ts_gather_sorted", table.rows * k, args.words(), gpu)?;
    [values, at].into_iter().flatten().try_for_each(|out| out.finish(gpu))
}

pub fn sort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 0), flag(call, 1), gpu)
}

pub fn argsort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(&call.inputs[0], None, call.outputs.first(), dim(call, 0), flag(call, 1), gpu)
}

pub fn topk(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 1), flag(call, 2), gpu)
}

/// Indices of the smallest elements of each row of a contiguous matrix, in order.
pub fn smallest(x: &RawView, at: &RawView, gpu: &mut dyn Gpu) -> Done {
    run(x, None, Some(at), x.shape.len().saturating_sub(1), false, gpu)
}

/// Which element of a sorted row is selected.
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
    // Outputs without the dim or with size 1 in it have the same row-major memory.
    let values = Output::new(&call.outputs[0], x.dtype, gpu)?;
    let at = call.outputs.get(1).map(|at| Output::new(at, DType::I64, gpu)).transpose()?;
    let (is_float, place) = (x.dtype.is_float() as usize, address(at.as_ref().map(|at: &Output| &at.dense)));
    let mut args = Args { values: values.dense.ptr, indices: place, from, tiles: is_float, ..table.words() };
    if rank == Rank::Mode {
        let bytes = table.rows * 8;
        let runs = gpu.scratch(bytes)?;
        gpu.fill_zero(runs, bytes)?;
        args.to = runs;
        each(table.source, "ts_longest_runs", table.rows * table.n, args.words(), gpu)?;
        each(table.source, "ts_mode", table.rows, args.words(), gpu)?;
    } else {
        (args.topk, args.run) = match rank {
            Rank::Kth(k) => (0, k),
            Rank::NanMedian => (2, 0),
            _ => (1, 0),
        };
        if let (Rank::Kth(_), true) = (rank, table.n <= MAX_CPU_ORDER) {
            args.to = gpu.scratch(table.rows * table.n * table.entry)?;
            args.descending = MAX_CPU_ORDER;
        }
        each(table.source, "ts_select_kth", table.rows, args.words(), gpu)?;
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

/// The last index of the most frequent element, as on the CPU for rows of up to 16 elements.
pub fn mode(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Rank::Mode, gpu)
}

/// `unique`, of elements or of slices along a dim.
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
    let mut indices = std::ptr::null_mut();
    if !consecutive {
        let (sorted, positions) = (scratch(x.dtype, &[n], gpu)?, scratch(DType::I64, &[n], gpu)?);
        run(&row, Some(&sorted), Some(&positions), 0, false, gpu)?;
        (row, indices) = (sorted, positions.ptr);
    }
    let source = text(x.dtype);
    let firsts = scratch(DType::Bool, &[n], gpu)?;
    let args = Args { x: row.ptr, rows: 1, n, ..Args::NONE };
    each(source, "ts_unique_flags", n, Args { to: firsts.ptr, ..args }.words(), gpu)?;
    let ranks = scratch(DType::I64, &[n], gpu)?;
    select::ranks(&firsts, &ranks, number, gpu)?;
    // The kernel reads this address from `run`.
    let args = Args { run: gpu.scratch(n * 8)? as usize, ..args };
    let (from, to) = (ranks.ptr, inverse.ptr);
    each(source, "ts_unique_scatter", n, Args { values: values.ptr, indices, from, to, ..args }.words(), gpu)?;
    let (indices, to) = (number.ptr, counts.ptr);
    each(source, "ts_unique_counts", n, Args { indices, to, ..args }.words(), gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).chain(super::cuda_unique::texts()).collect()
}
